"""Runs of chapters: parameters checked before anything starts, folders that are complete."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from notebooks import write_chapter

from oralib import runs
from oralib.__main__ import main
from oralib.runs.record import readable


@pytest.fixture
def chapter(tmp_path):
    return runs.find_chapter(str(write_chapter(tmp_path)))


# ------------------------------------------------------------------------------- parameters


def test_every_chapter_with_parameters_is_found():
    names = [chapter.name for chapter in runs.chapters()]
    assert "06-dp-sgd" in names
    assert "running" in names
    assert "reproducibility" not in names
    assert runs.find_chapter("06").name == "06-dp-sgd"
    assert runs.find_chapter("06-dp-sgd").parameters["trials"].default == 200


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("x", "1e-3", 0.001),
        ("x", "3", 3.0),
        ("x", "inf", float("inf")),
        ("n", "1e4", 10_000),
        ("n", "7.0", 7),
        ("n", 12, 12),
        ("ratios", "1,2.5", [1.0, 2.5]),
        ("ratios", "[1, 4]", [1.0, 4.0]),
        ("ratios", [3], [3.0]),
        ("word", "42", "42"),
        ("seed", "0", 0),
    ],
)
def test_values_are_converted(chapter, name, text, value):
    assert runs.check_parameters(chapter, {name: text}) == {name: value}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"sed": "1"},
            r"sed is not a parameter of small, got sed='1'; did you mean seed\? "
            r"\(its parameters: x, n, ratios, word, seed\)",
        ),
        ({"n": "1.5"}, r"n must be an integer, got n=1.5"),
        ({"n": "many"}, r"n must be an integer, got n='many'"),
        ({"n": True}, r"n must be an integer, got n=True"),
        ({"n": "0"}, r"n must be at least 1, got n=0"),
        ({"n": "inf"}, r"n must be an integer, got n=inf"),
        ({"x": "two"}, r"x must be a number, got x='two'"),
        ({"ratios": ""}, r"ratios must be a list with at least one entry"),
        ({"ratios": "1,a"}, r"ratios must be a number, got ratios='a'"),
        ({"ratios": 3}, r"ratios must be a list such as 1,2,3, got ratios=3"),
        ({"seed": "-1"}, r"seed must be at least 0, got seed=-1"),
        ({"word": 3}, r"word must be a word, got word=3"),
    ],
)
def test_wrong_values_are_named(chapter, given, message):
    with pytest.raises(ValueError, match=message):
        runs.check_parameters(chapter, given)


def test_chapters_check_the_same_ranges():
    gaps = runs.find_chapter("04-the-gaps")
    with pytest.raises(ValueError, match=r"p must lie in \(0, 1\), got p=1.5"):
        runs.check_parameters(gaps, {"p": "1.5"})


def test_unknown_chapters(tmp_path):
    with pytest.raises(ValueError, match=r"no chapter '06-dp-sdg'; did you mean 06-dp-sgd\?"):
        runs.find_chapter("06-dp-sdg")
    with pytest.raises(ValueError, match=r"there is no notebook nowhere\.ipynb"):
        runs.find_chapter("nowhere.ipynb")
    (tmp_path / "broken.ipynb").write_text("{")
    with pytest.raises(ValueError, match=r"broken.ipynb is not a notebook"):
        runs.find_chapter(str(tmp_path / "broken.ipynb"))


# -------------------------------------------------------------------------------- one run


def test_a_run_leaves_a_complete_folder(tmp_path, capsys):
    path, out = write_chapter(tmp_path), tmp_path / "out" / "run"
    arguments = ["run", str(path), "-p", "x=3", "-p", "n=1e1", "--out", str(out)]
    assert main(arguments) == 0
    names = sorted(file.name for file in out.iterdir())
    assert names == ["notebook.ipynb", "page.html", "results.csv", "results.json"]
    assert [folder.name for folder in out.parent.iterdir()] == ["run"]
    with (out / "results.csv").open() as file:
        assert list(csv.reader(file))[:3] == [
            ["name", "value"],
            ["square", "19.0"],
            ["text", "3.0 ± 10"],
        ]
    record = json.loads((out / "results.json").read_text())
    assert record["parameters"] == {
        "x": 3.0,
        "n": 10,
        "ratios": [1, 2],
        "word": "a",
        "seed": 1,
    }
    origin = record["provenance"]
    assert origin["seed"] == 1
    assert origin["packages"]["numpy"]
    assert re.fullmatch(r"unknown|[0-9a-f]{40}(-dirty)?", origin["commit"])
    assert origin["seconds"] > 0
    page = (out / "page.html").read_text()
    assert "The square is 19.0, see elsewhere and <em>thm-a</em>" in page
    assert "<strong>Theorem.</strong> Squares" in page
    assert ":::" not in page
    printed = capsys.readouterr().out
    assert "square   19.0" in printed
    assert str(out) in printed
    # Again, with another value: the folder is replaced as a whole.
    assert main(["run", str(path), "-p", "x=2", "--out", str(out)]) == 0
    assert json.loads((out / "results.json").read_text())["results"]["square"] == 6.0


def test_a_notebook_without_a_kernel_is_python(tmp_path):
    path, out = write_chapter(tmp_path), tmp_path / "out"
    notebook = json.loads(path.read_text())
    notebook["metadata"] = {}
    path.write_text(json.dumps(notebook))
    assert main(["run", str(path), "-p", "x=2", "--out", str(out)]) == 0
    assert json.loads((out / "results.json").read_text())["results"]["square"] == 6.0


def test_control_c_leaves_nothing_and_says_one_line(tmp_path):
    path, out = write_chapter(tmp_path, extra="\ntime.sleep(60)"), tmp_path / "runs" / "out"
    run = subprocess.Popen(
        [sys.executable, "-m", "oralib", "run", str(path), "--out", str(out)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for _ in range(300):
        if (out.parent / ".partial").exists():
            break
        time.sleep(0.1)
    time.sleep(3)
    os.killpg(run.pid, signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "interrupted\n" in said
    assert "Traceback" not in said
    assert not out.exists()
    assert not (out.parent / ".partial").exists()


def test_nothing_starts_with_a_wrong_parameter(tmp_path, capsys):
    path, out = write_chapter(tmp_path), tmp_path / "out"
    assert main(["run", str(path), "-p", "y=3", "--out", str(out)]) == 2
    assert "error: y is not a parameter of small" in capsys.readouterr().err
    assert main(["run", str(path), "-p", "x", "--out", str(out)]) == 2
    assert "-p needs name=value, got -p x" in capsys.readouterr().err
    assert main(["run", str(path), "-p", "x=1", "-p", "x=2", "--out", str(out)]) == 2
    assert "x is given twice" in capsys.readouterr().err
    assert main(["run"]) == 2
    assert "run needs a chapter; --list shows them" in capsys.readouterr().err
    assert not out.exists()


def test_a_chapter_that_fails_leaves_nothing(tmp_path, capsys):
    path, out = write_chapter(tmp_path), tmp_path / "out"
    assert main(["run", str(path), "-p", "word=fail", "-p", "x=7", "--out", str(out)]) == 1
    assert "small failed: RuntimeError: cannot do x=7.0" in capsys.readouterr().err
    assert not out.exists()
    assert not (tmp_path / ".partial").exists()


def test_folders_of_others_are_left_alone(tmp_path, capsys):
    path, out = write_chapter(tmp_path), tmp_path / "out"
    out.mkdir()
    (out / "precious.txt").write_text("x")
    assert main(["run", str(path), "--out", str(out)]) == 2
    assert "exists and is not a run; give another folder" in capsys.readouterr().err
    assert (out / "precious.txt").read_text() == "x"


def test_a_folder_that_cannot_be_written(tmp_path, capsys):
    path = write_chapter(tmp_path)
    (tmp_path / "file").write_text("x")
    assert main(["run", str(path), "--out", str(tmp_path / "file" / "out")]) == 1
    assert "cannot be written: Not a directory" in capsys.readouterr().err


def test_list_shows_types_defaults_and_meanings(capsys):
    assert main(["run", "--list"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"epsilon\s+float\s+2\.0\s+privacy level of the training, in nats", printed)
    assert main(["run", "04", "--list"]) == 0
    assert capsys.readouterr().out.startswith("04-the-gaps\n")


def test_list_without_a_book_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.modules["oralib.runs.chapters"], "BOOK", tmp_path)
    assert main(["run", "--list"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: there is no book beside this installation")
    assert said.count("\n") == 1
    assert main(["run", str(write_chapter(tmp_path)), "--list"]) == 0


def test_markdown_becomes_readable():
    text = readable(
        "{glue:text}`a` and {glue:text}`b:.2f`, {numref}`fig-x`, {cite:t}`k`\n"
        ":::{admonition} Note\n:class: tip\ntext\n:::",
        {"a": 1, "b": 2.5},
    )
    assert text == "1 and 2.5, *fig-x*, *k*\n**Note**\n\ntext\n"

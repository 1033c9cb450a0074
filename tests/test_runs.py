"""Runs of chapters: parameters checked before anything starts, folders that are complete."""

import csv
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from errno import EACCES
from pathlib import Path

import filelock
import nbformat
import pytest
from nbclient.exceptions import CellTimeoutError
from notebooks import write_chapter

import oralib
from oralib import _signals, runs
from oralib.__main__ import main
from oralib.runs import folders
from oralib.runs.chapters import settings
from oralib.runs.single import _appear

COMMAND = [sys.executable, "-m", "oralib", "run"]

#: The same command by the script that an installation makes.
SCRIPT = shutil.which("oralib", path=sysconfig.get_path("scripts"))
STARTS = {"module": [sys.executable, "-m", "oralib"], "script": [sys.executable, SCRIPT]}


@pytest.fixture
def chapter(tmp_path):
    return runs.find_chapter(str(write_chapter(tmp_path)))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run that is complete; not to be touched."""
    folder = tmp_path_factory.mktemp("finished")
    runs.run_chapter(runs.find_chapter(str(write_chapter(folder))), {}, folder / "run")
    return folder / "run"


def contents(folder):
    """All that is in a folder, by path; a link as what it points to."""
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def test_a_run_starts_without_a_grammar_of_addresses():
    """It would take longer than all other imports; whoever wants it afterwards can have it."""
    script = (
        "import sys, oralib.runs.kernel, oralib.runs.page; assert 'lark' not in sys.modules; "
        "import importlib.util; assert importlib.util.find_spec('rfc3987_syntax')"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# ------------------------------------------------------------------------------- parameters


def test_every_chapter_with_parameters_is_found():
    names = [chapter.name for chapter in runs.chapters()]
    assert "06-dp-sgd" in names
    assert "running" in names
    assert "reproducibility" not in names
    assert runs.find_chapter("06").name == "06-dp-sgd"
    assert runs.find_chapter("06-dp-sgd").parameters["trials"].default == 10_000


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


LISTS = """rates: list = [0.1]  # numbers
flags: list = [True]  # truths
opts: list = ["adam"]  # words"""


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("rates", "1e-3,5e-4", [0.001, 0.0005]),
        ("rates", "[1e-3, 2]", [0.001, 2]),
        ("flags", "false,True", [False, True]),
        ("flags", "[true, false]", [True, False]),
        ("flags", "[True, False]", [True, False]),
        ("opts", "adam,sgd", ["adam", "sgd"]),
        ("opts", '["adam", "a,b"]', ["adam", "a,b"]),
        ("opts", "['adam']", ["adam"]),
        ("opts", "[adam, sgd]", ["adam", "sgd"]),
        ("opts", "01,1e3", ["01", "1e3"]),
    ],
)
def test_lists_are_what_they_look_like(tmp_path, name, text, value):
    chapter = runs.find_chapter(str(own_notebook(tmp_path, LISTS)))
    assert repr(runs.check_parameters(chapter, {name: text})) == repr({name: value})


@pytest.mark.parametrize(
    "text", ["(1,2)", "1;2", "1 2", "[null]", "[1,None]", "0x10,2", "true", "[true]", '["a"]']
)
def test_a_list_of_numbers_has_no_words(tmp_path, text):
    chapter = runs.find_chapter(str(own_notebook(tmp_path, LISTS)))
    with pytest.raises(ValueError, match="rates must be a list of numbers such as 1,2,3, got rat"):
        runs.check_parameters(chapter, {"rates": text})


def test_quotation_marks_are_no_part_of_a_word(tmp_path):
    chapter = runs.find_chapter(str(own_notebook(tmp_path, LISTS)))
    for text in ('"adam",sgd', "[['adam']]", "'adam'"):
        with pytest.raises(ValueError, match="opts must be a list such as 1,2,3, got opts="):
            runs.check_parameters(chapter, {"opts": text})


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
        ({"n": "0"}, r"n must lie in \[1, 10000000\], got n=0"),
        ({"n": "inf"}, r"n must be an integer, got n=inf"),
        ({"x": "two"}, r"x must be a number, got x='two'"),
        ({"ratios": ""}, r"ratios must be a list with at least one entry"),
        ({"ratios": "1,a"}, r"ratios must be a list of numbers such as 1,2,3, got ratios=1,a"),
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
    with pytest.raises(ValueError, match=r"p must lie in \[0.001, 0.999\], got p=1.5"):
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
    assert "<p>The square is 19.0, or 19.00 ± 10.</p>" in page
    assert '>elsewhere</span> and <a class="reference internal" href="#thm-a">Theorem 1</a>' in page
    assert "<strong>Theorem 1</strong> (Squares)" in page
    assert ":::" not in page
    printed = capsys.readouterr().out
    assert "square   19.0" in printed
    assert str(out) in printed
    # Again, with another value: the folder is replaced as a whole, but only if this is asked for.
    before = contents(out)
    assert main(["run", str(path), "-p", "x=2", "--out", str(out)]) == 2
    assert f"{out} is a complete run; --force replaces it" in capsys.readouterr().err
    assert contents(out) == before
    assert main(["run", str(path), "-p", "x=2", "--out", str(out), "--force"]) == 0
    assert f"the run in {out} will be replaced\n" in capsys.readouterr().err
    assert json.loads((out / "results.json").read_text())["results"]["square"] == 6.0
    assert [folder.name for folder in out.parent.iterdir()] == ["run"]


def test_a_notebook_without_a_kernel_is_python(tmp_path):
    path, out = write_chapter(tmp_path), tmp_path / "out"
    notebook = json.loads(path.read_text())
    notebook["metadata"] = {}
    path.write_text(json.dumps(notebook))
    assert main(["run", str(path), "-p", "x=2", "--out", str(out)]) == 0
    assert json.loads((out / "results.json").read_text())["results"]["square"] == 6.0


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


def test_a_folder_that_cannot_be_written(tmp_path, capsys):
    path = write_chapter(tmp_path)
    (tmp_path / "file").write_text("x")
    assert main(["run", str(path), "--out", str(tmp_path / "file" / "out")]) == 1
    assert "cannot be written: Not a directory" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["1,,2", ",1", "]1[", "[[1]]", "[1", "1]"])
def test_a_list_is_written_as_one(tmp_path, capsys, given):
    path = write_chapter(tmp_path)
    assert main(["run", str(path), "-p", f"ratios={given}", "--out", str(tmp_path / "out")]) == 2
    assert "ratios must be a list such as 1,2,3, got" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_no_room_for_the_output_is_one_line():
    command = [sys.executable, "-m", "oralib", "run", "04", "--list"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr in ("", "error: No space left on device\n")


@pytest.mark.skipif(sys.platform == "win32", reason="there a current folder cannot be removed")
def test_a_current_folder_that_is_gone_is_one_line(tmp_path):
    program = """
import os, subprocess, sys
os.chdir(sys.argv[1])
os.rmdir(sys.argv[1])
command = [sys.executable, "-m", "oralib", "run", "04", "--out", "x"]
done = subprocess.run(command, capture_output=True, text=True)
assert done.returncode == 1, done
assert done.stderr == "error: the current folder does not exist any more\\n", done.stderr
"""
    (tmp_path / "gone").mkdir()
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "gone")], check=True)


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_too_few_open_files_are_one_line(tmp_path, command):
    """Kernels and workers would end without a word, and a sweep wait for them for ever."""
    resource = pytest.importorskip("resource")
    what = str(write_chapter(tmp_path))
    if command == "sweep":
        grid = tmp_path / "grid.yml"
        grid.write_text("chapter: small.ipynb\npoints: [{x: 1}]\n")
        what = str(grid)
    done = subprocess.run(
        [sys.executable, "-m", "oralib", command, what, "--out", str(tmp_path / "out")],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32)),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"error: {command} opens up to 64 files at once in each of its processes, and 32 are "
        "allowed here; allow more, for example by ulimit -n 1024\n"
    )
    assert not (tmp_path / "out").exists()


def test_too_little_memory_is_one_line(capsys, monkeypatch):
    def plan(*given, **named):
        raise MemoryError

    monkeypatch.setattr("oralib.planning.plan_audit", plan)
    words = "plan --d 10 --steps 2 --sample-rate 0.1 --epsilon 2 --delta 1e-5"
    assert main(words.split()) == 1
    assert capsys.readouterr().err == "error: this needs more memory than there is\n"


@pytest.mark.parametrize("start", STARTS)
def test_a_package_that_cannot_be_imported_is_one_line(tmp_path, start):
    """With status 2, as 1 would say that the claim of an audit is refuted."""
    (tmp_path / "numba").mkdir()
    (tmp_path / "numba" / "__init__.py").write_text("raise OSError('no memory\\nfor a library')")
    (tmp_path / "user.py").write_text("import oralib")
    done = subprocess.run(
        [*STARTS[start], "audit", "x.csv", "--delta", "0"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    said = "error: oralib cannot be imported: OSError: no memory for a library\n"
    assert done.stderr == said
    other = [sys.executable, "-m", "user"]
    done = subprocess.run(other, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")


def test_a_mistake_of_ours_refutes_no_claim(tmp_path):
    """Its traceback is wanted, and not Python's own status, 1."""
    program = """
import sys
import oralib.__main__ as command

def mistaken(arguments=None):
    raise KeyError("a mistake")

command.main = mistaken
command.console()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 2
    assert "KeyError: 'a mistake'" in done.stderr


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
    # With an installed package, the book is that of the unpacked sources.
    monkeypatch.setattr(sys.modules["oralib.runs.chapters"], "BOOK", tmp_path / "none")
    monkeypatch.chdir(Path(__file__).parent.parent)
    assert main(["run", "04", "--list"]) == 0
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--list"]) == 2
    assert main(["run", str(write_chapter(tmp_path)), "--list"]) == 0


# ------------------------------------------------------------------------- folders of others

#: What somebody else may have in a file with this name.
FOREIGN = {
    "nothing": "",
    "object": "{}",
    "scores": '{"a": 1, "chapter": "one"}',
    "pairs": '[["a", 1], ["b", 2]]',
    "list": "[1, 2]",
    "number": "3",
    "null": "null",
    "text": "no JSON",
    "nan": '{"format": "oralib-run/1", "chapter": NaN}',
    "deep": "[" * 100_000,
    "large": '{"a": "' + 10_000_000 * "x" + '"}',
    "format": '{"format": "oralib-run/1"}',
    "types": '{"format": "oralib-run/1", "chapter": "a", "parameters": {}, "results": {}, '
    '"provenance": {"code": "a", "seconds": 1.0}, "files": {"../x": "y"}, "digest": 3}',
}


@pytest.mark.parametrize("force", [[], ["--force"]], ids=["", "force"])
@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_a_folder_without_our_mark_is_refused(tmp_path, capsys, text, force):
    path, out = write_chapter(tmp_path), tmp_path / "out"
    out.mkdir()
    (out / "results.json").write_text(text)
    (out / "thesis.tex").write_text("ten years")
    before = contents(tmp_path)
    assert main(["run", str(path), "--out", str(out), *force]) == 2
    said = capsys.readouterr().err
    assert said == f"error: {out} exists and is not a run; give another folder\n"
    assert contents(tmp_path) == before


def _add_notes(out):
    (out / "notes.txt").write_text("mine")
    return "notes.txt"


def _add_a_folder(out):
    (out / ".ipynb_checkpoints").mkdir()
    return ".ipynb_checkpoints"


def _edit_the_notebook(out):
    path = out / "notebook.ipynb"
    path.write_text(path.read_text().replace("A chapter", "A chapter, with my remarks"))
    return "notebook.ipynb"


def _link_the_page(out):
    (out / "page.html").rename(out.parent / "page.html")
    (out / "page.html").symlink_to(out.parent / "page.html")
    return "page.html"


@pytest.mark.parametrize("change", [_add_notes, _add_a_folder, _edit_the_notebook, _link_the_page])
def test_a_run_with_something_of_others_in_it_is_refused(tmp_path, finished, capsys, change):
    path, out = write_chapter(tmp_path), tmp_path / "out"
    shutil.copytree(finished, out)
    name = change(out)
    before = contents(tmp_path)
    assert main(["run", str(path), "--out", str(out), "--force"]) == 2
    assert f"{name} in it is not as the run has left it" in capsys.readouterr().err
    assert contents(tmp_path) == before


def test_edited_results_are_not_a_run(tmp_path, finished):
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    assert runs.check_free(out, force=True)
    text = (out / "results.json").read_text()
    (out / "results.json").write_text(text.replace('"square": 3.0', '"square": 4.0'))
    with pytest.raises(ValueError, match="exists and is not a run"):
        runs.check_free(out, force=True)


@pytest.mark.parametrize("force", [False, True])
def test_links_files_and_near_folders_are_refused(tmp_path, finished, monkeypatch, force):
    real, link = tmp_path / "real", tmp_path / "link"
    shutil.copytree(finished, real)
    link.symlink_to(real)
    (tmp_path / "second").symlink_to(link)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    (tmp_path / "a" / "home").mkdir(parents=True)
    (tmp_path / "b" / "here").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "a" / "home"))
    monkeypatch.chdir(tmp_path / "b" / "here")
    before = contents(tmp_path)
    for place, message in (
        (link, "is a symbolic link"),
        (tmp_path / "second", "is a symbolic link"),
        (tmp_path / "dangling", "is a symbolic link"),
        (tmp_path / "file", "is not a folder"),
        (Path(), "is the current folder"),
        (Path("../here"), "is the current folder"),
        (Path(".."), "contains the current folder"),
        (tmp_path / "a" / "home", "is home"),
        (tmp_path / "a", "contains home"),
        (Path("/"), "is a mount"),
    ):
        with pytest.raises(ValueError, match=message):
            runs.check_free(place, force)
    assert contents(tmp_path) == before


def test_a_folder_that_appears_while_a_run_is_going(tmp_path, capsys):
    """Somebody else makes a folder of this name in the meantime; both are kept."""
    out = tmp_path / "{out} #1"  # braces, which papermill would fill in
    extra = "\nfrom pathlib import Path\nPath(word).mkdir()\nPath(word, 'mine').write_text('x')"
    path = write_chapter(tmp_path, extra=extra)
    assert main(["run", str(path), "-p", f"word={out}", "--out", str(out)]) == 1
    beside = tmp_path / "{out} #1-1"
    assert f"is not a run; give another folder; the run is in {beside}\n" in capsys.readouterr().err
    assert contents(out) == {"mine": b"x"}
    assert not runs.check_free(tmp_path / "new")
    assert runs.check_free(beside, force=True)
    assert not (tmp_path / ".partial").exists()


def test_notes_that_are_added_while_a_run_is_going(tmp_path, finished, capsys):
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    before = contents(out)
    extra = "\nfrom pathlib import Path\nPath(word, 'notes').write_text('x')"
    path = write_chapter(tmp_path, extra=extra)
    assert main(["run", str(path), "-p", f"word={out}", "--out", str(out), "--force"]) == 1
    assert f"the run is in {out}-1\n" in capsys.readouterr().err
    assert contents(out) == {**before, "notes": b"x"}


def test_what_comes_between_the_check_and_the_renaming_is_kept(tmp_path):
    old, new = tmp_path / "run", tmp_path / "new"
    for folder, text in ((old, "old"), (new, "new")):
        folder.mkdir()
        (folder / "results.json").write_text(text)
    (old / "notes").write_text("mine")
    assert folders.swap(new, old, {}, ["results.json"]) == tmp_path / "run.old-1"
    assert contents(tmp_path) == {
        "run/results.json": b"new",
        "run.old-1/results.json": b"old",
        "run.old-1/notes": b"mine",
    }


def test_an_old_run_that_cannot_be_removed_is_no_failure(tmp_path, finished, monkeypatch, capsys):
    """The new one is there by then; its folder may be closed, or one of its files."""
    out, written = tmp_path / "run", tmp_path / "written"
    for folder in (out, written):
        shutil.copytree(finished, folder)
    before = contents(out)

    def closed(path, missing_ok=False):
        raise PermissionError(EACCES, os.strerror(EACCES), str(path))

    monkeypatch.setattr(Path, "unlink", closed)
    _appear(written, out, force=True)
    assert capsys.readouterr().err == f"the old run could not be removed; it is now {out}.old-1\n"
    assert contents(out) == contents(tmp_path / "run.old-1") == before


def test_an_error_while_renaming_brings_the_old_run_back(tmp_path, monkeypatch):
    old, new = tmp_path / "run", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "results.json").write_text(folder.name)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(folders, "publish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        folders.swap(new, old, {}, ["results.json"])
    assert contents(tmp_path) == {"run/results.json": b"run", "new/results.json": b"new"}


def test_parents_are_not_made_behind_a_link(tmp_path, capsys):
    path = write_chapter(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert main(["run", str(path), "--out", str(tmp_path / "link" / "a" / "out")]) == 2
    assert f"{tmp_path / 'link'} is a symbolic link to nothing" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()


def test_unseen_places_are_not_made_behind_a_link(tmp_path, capsys):
    path = write_chapter(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".partial").symlink_to(tmp_path / "elsewhere")
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 2
    assert ".partial is a symbolic link; nothing is written there" in capsys.readouterr().err
    assert list((tmp_path / "elsewhere").iterdir()) == []


# --------------------------------------------------------------------------------- names


def test_every_run_has_a_folder_of_its_own():
    chapter = runs.find_chapter("06-dp-sgd")
    ratios = ",".join(str(i / 7) for i in range(1, 23))

    def name(**given):
        return runs.default_folder(chapter, runs.check_parameters(chapter, given)).name.lower()

    long = [name(ratios=ratios, trials=trials) for trials in (50, 60)]
    assert long[0] != long[1]
    assert len(long[0]) <= 120
    assert name(delta="1e-5") == name(delta="0.00001")
    assert name(epsilon="4").startswith("06-dp-sgd-epsilon=4.0-")
    assert name(epsilon="4") != name(epsilon="4.1")


def test_names_of_folders_are_plain(tmp_path):
    """Words differ even where case does not count, and none of them is a path."""
    chapter = runs.find_chapter(str(write_chapter(tmp_path)))
    words = ["a", "A", "é", "../../x", "a/b", 'a"b', "C:", " ", "x" * 1000, "true", "1"]
    found = [runs.default_folder(chapter, {"word": word}) for word in words]
    assert {folder.parent for folder in found} == {Path("runs")}
    assert len({folder.name.lower() for folder in found}) == len(words)
    assert all(re.fullmatch(r"[A-Za-z0-9.,=+_-]+-[0-9a-f]{12}", folder.name) for folder in found)
    # The chapter's own default, and the same chapter after a change.
    assert (
        runs.default_folder(chapter, {"word": "a"}).name.split("-")[-1]
        == (runs.default_folder(chapter, {}).name.split("-")[-1])
    )
    other = runs.find_chapter(str(write_chapter(tmp_path, name="é")))
    assert re.fullmatch(r"run-[0-9a-f]{12}", runs.default_folder(other, {}).name)
    changed = runs.find_chapter(str(write_chapter(tmp_path, extra="\n1 + 1")))
    assert runs.default_folder(changed, {}) != runs.default_folder(chapter, {})


# -------------------------------------------------------------------------------- signals


SIGNALS = [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, 143, "terminated\n")]
HANGUP = (signal.SIGHUP, 129, "hung up\n")


def start_and_wait(path, out):
    """A run in a process group of its own, in the middle of the last cell."""
    run = subprocess.Popen(
        [*COMMAND, str(path), "--out", str(out)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for _ in range(600):
        if list(out.parent.glob("under way")):
            return run
        time.sleep(0.1)
    run.kill()
    pytest.fail("the run does not start")


SLOW = "\nopen('under way', 'w').close()\ntime.sleep(60)"


@pytest.mark.parametrize(("number", "status", "word"), [*SIGNALS, HANGUP])
def test_a_signal_leaves_nothing_and_says_one_line(tmp_path, number, status, word):
    path, out = write_chapter(tmp_path, extra=SLOW), tmp_path / "out"
    run = start_and_wait(path, out)
    assert (tmp_path / ".partial").exists()
    os.killpg(run.pid, number)
    _, said = run.communicate(timeout=60)
    assert run.returncode == status
    assert said.split("\r")[-1].endswith(word)
    assert said.count("\n") == 1
    assert not out.exists()
    assert not (tmp_path / ".partial").exists()


def test_the_next_run_clears_what_a_killed_one_has_left(tmp_path):
    """And nothing else: not a run that is going, not what somebody has put there."""
    path, out = write_chapter(tmp_path, extra=SLOW), tmp_path / "out"
    run = start_and_wait(path, out)
    partial = tmp_path / ".partial"
    (dead,) = partial.iterdir()
    next_path = write_chapter(tmp_path, name="next")
    assert main(["run", str(next_path), "--out", str(tmp_path / "first")]) == 0
    assert dead.exists()  # it lives
    run.kill()
    run.communicate()
    machine = dead.name.partition("-")[2]
    living, stranger, empty = (partial / f"{32 * letter}-{machine}" for letter in "abc")
    elsewhere = partial / f"{32 * 'd'}-00000000"  # its locks may not be seen from here
    for folder in (living, stranger, empty, elsewhere):
        folder.mkdir()
        (folder / "lock").touch()
    (stranger / "thesis.tex").write_text("x")
    (partial / "mine").write_text("x")
    with filelock.FileLock(living / "lock"):
        assert main(["run", str(next_path), "--out", str(tmp_path / "second")]) == 0
        assert {entry.name for entry in partial.iterdir()} == {
            "mine",
            living.name,
            stranger.name,
            elsewhere.name,
        }
    assert (stranger / "thesis.tex").read_text() == "x"


@pytest.mark.parametrize(
    ("start", "module"),
    [
        *(("module", name) for name in ("oralib._signals", "numba", "oralib", "nbformat")),
        *(("module", name) for name in ("oralib.runs.chapters", "papermill", "docutils.core")),
        *(("script", name) for name in ("oralib._signals", "oralib.runs.chapters")),
    ],
)
@pytest.mark.parametrize(("number", "status", "word"), SIGNALS)
def test_a_signal_during_imports_is_one_line(tmp_path, start, module, number, status, word):
    """The interpreter tells which module it has just imported."""
    words = [sys.executable, "-X", "importtime", *STARTS[start][1:], "run"]
    run = subprocess.Popen(
        [*words, str(write_chapter(tmp_path))],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    for line in run.stderr:
        if line.split("|")[-1].strip() == module:
            break
    run.send_signal(number)
    _, said = run.communicate(timeout=60)
    assert [line for line in said.splitlines() if "|" not in line] == [word.strip()]
    assert run.returncode == status
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "inner"),
    [
        ("plan --d 9 --steps 2 --sample-rate 0.1 --epsilon 2 --delta 0.1", "planning.plan_audit"),
        ("audit scores.csv --delta 1e-5", "scores.audit_scores"),
    ],
)
def test_commands_that_only_compute_end_at_once(tmp_path, words, inner):
    """Numba turns an exception that comes from a signal into others, with tracebacks."""
    (tmp_path / "scores.csv").write_text("score,included\n1,1\n2,0\n")
    program = f"""
import sys
sys.argv, sys.orig_argv = ["-m"], ["python", "-m", "oralib"]
from oralib import _signals, planning, scores
import oralib.__main__, signal
def stopped(*given, **named):
    try:
        signal.raise_signal(signal.SIGINT)
    except BaseException as error:
        raise SystemError("a result with an exception set")
{inner} = stopped
oralib.__main__.main({words.split()!r})
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_an_interrupt_does_not_wait_for_the_end_of_a_block():
    """A kernel hears no signals while it runs, so none runs in the main thread."""
    program = """
import hashlib, os, signal, sys, threading
import numpy as np
from oralib._streams import play

ended = []

def block(size, rng):
    hashlib.pbkdf2_hmac("sha256", b"", b"", 40_000_000)  # hears no signals, as a kernel
    ended.append(True)
    return (np.zeros(size),)

threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    play(block, 1, 0)
except KeyboardInterrupt:
    os._exit(8 if ended else 7)
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == 7


def test_the_script_is_the_module(tmp_path):
    """They say the same and end alike; only their name differs."""
    for arguments in (["run", "nothing"], ["-h"]):
        done = [
            subprocess.run([*start, *arguments], capture_output=True, text=True, cwd=tmp_path)
            for start in STARTS.values()
        ]
        module, script = (
            (end.returncode, end.stdout.replace("python -m oralib", "oralib"), end.stderr)
            for end in done
        )
        assert module == script
    assert done[0].stdout.startswith("usage: python -m oralib [-h]")
    assert done[1].stdout.startswith("usage: oralib [-h]")


def test_workers_of_the_script_keep_their_signals():
    """A process that it spawns has its arguments, but is not a command of ours."""
    program = """
import signal, sys
before = signal.getsignal(signal.SIGTERM)
sys.argv = [sys.argv[1], "sweep"]
import oralib
assert signal.getsignal(signal.SIGTERM) == before
"""
    subprocess.run([sys.executable, "-c", program, "bin/oralib"], check=True)


def test_other_programs_keep_their_signals():
    program = """
import signal
before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
import oralib.__main__
assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
oralib._signals.raise_from_now_on()
assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("words", [[], ["--algorithm", "oralib"], ["-m", "oralib"]])
def test_packages_that_use_the_library_keep_their_signals(tmp_path, words):
    """Also those that import it in the moment when Python looks for their module."""
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "__init__.py").write_text("import oralib\n")
    look = "import signal\nassert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
    (tmp_path / "lab" / "__main__.py").write_text(look)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)}
    line = [sys.executable, "-X", "utf8", "-m", "lab", *words]
    subprocess.run(line, cwd=tmp_path, env=env, check=True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-m", "oralib", "run"], True),
        (["-Im", "oralib"], True),
        (["-moralib"], True),
        (["-W", "error", "-Xdev", "-X", "utf8", "-m", "oralib"], True),
        (["--check-hash-based-pycs", "never", "-m", "oralib"], True),
        (["-m", "lab", "-m", "oralib"], False),
        (["-m", "lab", "--algorithm", "oralib"], False),
        (["-c", "import oralib", "-m", "oralib"], False),
        (["script.py", "-m", "oralib"], False),
        (["-Wm", "oralib"], False),
        ([], False),
    ],
)
def test_python_with_oralib_as_its_module_is_known(monkeypatch, words, expected):
    monkeypatch.setattr(sys, "orig_argv", ["python", *words])
    assert _signals.is_module() == expected


# ------------------------------------------------------------------------------ provenance


def test_the_chapter_is_run_as_it_was_read(tmp_path):
    chapter = runs.find_chapter(str(write_chapter(tmp_path)))
    write_chapter(tmp_path, extra="\nassert False")
    record = runs.run_chapter(chapter, {}, tmp_path / "out")
    assert record["results"]["square"] == 3.0
    notebook = nbformat.read(tmp_path / "out" / "notebook.ipynb", 4)
    assert notebook.metadata.papermill.input_path == str(tmp_path / "small.ipynb")
    # What the kernel was asked is not in the notebook.
    assert [cell.get("execution_count") for cell in notebook.cells] == [None, 1, 2, 3, 4, None, 5]
    assert "described" not in (tmp_path / "out" / "notebook.ipynb").read_text()
    edited = runs.find_chapter(str(tmp_path / "small.ipynb"))
    with pytest.raises(runs.RunFailed, match=r"small is of version .*, not "):
        runs.run_chapter(edited, {}, tmp_path / "new", code=record["provenance"]["code"])


@pytest.mark.parametrize("minor", [4, 5])
def test_other_parameters_are_named_at_the_top(tmp_path, minor):
    path = write_chapter(tmp_path)
    notebook = nbformat.read(path, 4)
    if minor == 4:
        for cell in notebook.cells:
            del cell["id"]
        notebook.nbformat_minor = 4
        nbformat.write(notebook, path)
    chapter = runs.find_chapter(str(path))
    runs.run_chapter(chapter, {"x": 1, "ratios": [1, 2]}, tmp_path / "same")
    assert "other parameters" not in (tmp_path / "same" / "page.html").read_text()
    odd = {"x": 2, "word": "`b`</code>", "ratios": [*range(1, 99)]}
    runs.run_chapter(chapter, odd, tmp_path / "other")
    made = nbformat.read(tmp_path / "other" / "notebook.ipynb", 4)
    nbformat.validate(made)
    said = made.cells[0].source
    assert "`x` is `` 2.0 `` instead of `` 1.0 ``" in said
    assert "`n`" not in said
    assert max(map(len, said.splitlines())) < 700
    page = (tmp_path / "other" / "page.html").read_text()
    assert page.index("Run with other parameters") < page.index("<h1>A chapter")
    assert "</code>&quot;" not in page
    # The notebook of a run may be run itself.
    again = runs.find_chapter(str(tmp_path / "other" / "notebook.ipynb"))
    runs.run_chapter(again, {"n": 3}, tmp_path / "again")
    made = nbformat.read(tmp_path / "again" / "notebook.ipynb", 4)
    nbformat.validate(made)
    (said,) = [cell.source for cell in made.cells if "Run with other" in cell.source]
    assert "`n` is `` 3 `` instead of `` 2 ``" in said


def write_kernel(folder, monkeypatch, **environment):
    """Another kernel behind the name python3: a virtual environment with our packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    spec = folder / "jupyter" / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    content = {
        "argv": [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Another",
        "language": "python",
        "env": environment,
    }
    spec.write_text(json.dumps(content))
    monkeypatch.setenv("JUPYTER_PATH", str(folder / "jupyter"))
    return python


PATHS = [sysconfig.get_path("purelib"), str(Path(oralib.__file__).parent.parent)]


def test_the_kernel_says_what_it_is(tmp_path, chapter, monkeypatch):
    fake = tmp_path / "lib" / "numpy-9.9.9.dist-info"
    fake.mkdir(parents=True)
    (fake / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 9.9.9\n")
    paths = os.pathsep.join([str(tmp_path / "lib"), *PATHS])
    python = write_kernel(tmp_path, monkeypatch, PYTHONPATH=paths)
    origin = runs.run_chapter(chapter, {}, tmp_path / "out")["provenance"]
    assert origin["executable"] == str(python)
    assert origin["packages"]["numpy"] == "9.9.9"


def test_a_kernel_without_the_library_or_with_another_one(tmp_path, chapter, monkeypatch, capsys):
    paths = os.pathsep.join(PATHS)
    write_kernel(tmp_path, monkeypatch, PYTHONPATH=PATHS[0])
    arguments = ["run", str(chapter.path), "--out", str(tmp_path / "out")]
    assert main(arguments) == 1
    assert "/venv/bin/python, has no oralib\n" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "jupyter")
    library = copy_library(tmp_path)
    (library / "laws.py").write_text("")
    write_kernel(tmp_path, monkeypatch, PYTHONPATH=os.pathsep.join([str(library.parent), paths]))
    assert main(arguments) == 1
    said = capsys.readouterr().err
    assert f"has another oralib than the one that was asked for: {library} is of version" in said
    assert not (tmp_path / "out").exists()


def test_a_kernel_that_cannot_be_started(tmp_path, chapter, monkeypatch, capsys):
    write_kernel(tmp_path, monkeypatch).unlink()
    assert main(["run", str(chapter.path), "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert "small failed: the kernel 'python3' cannot be started" in said
    assert said.count("\n") == 1


def test_a_kernel_that_dies_says_why(tmp_path, chapter, monkeypatch, capsys):
    write_kernel(tmp_path, monkeypatch)
    assert main(["run", str(chapter.path), "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err.split("\r")[-1].strip()
    assert said.startswith("small failed: Kernel died before replying to kernel_info")
    assert said.endswith("No module named ipykernel_launcher")
    assert "\n" not in said


@pytest.mark.parametrize("often", [2, 3])
def test_a_kernel_whose_ports_are_taken_is_started_again(
    tmp_path, chapter, monkeypatch, capsys, often
):
    """Ports are chosen before the kernel begins, so others may be quicker; but not for ever."""
    python = write_kernel(tmp_path, monkeypatch, PYTHONPATH=os.pathsep.join(PATHS))
    spec = tmp_path / "jupyter" / "kernels" / "python3" / "kernel.json"
    late = tmp_path / "late.sh"
    late.write_text(
        "#!/bin/sh\n"
        f"echo >> {tmp_path}/tried\n"
        f"if [ $(wc -l < {tmp_path}/tried) -le {often} ]; then\n"
        "    echo 'zmq.error.ZMQError: Address already in use' >&2; exit 1\n"
        "fi\n"
        f'exec {python} -m ipykernel_launcher -f "$1"\n'
    )
    content = json.loads(spec.read_text())
    spec.write_text(json.dumps(content | {"argv": ["sh", str(late), "{connection_file}"]}))
    status = main(["run", str(chapter.path), "--out", str(tmp_path / "out")])
    assert status == (0 if often < 3 else 1)
    assert ("Address already in use" in capsys.readouterr().err) == (often == 3)


def test_a_kernel_that_never_answers_is_one_line(tmp_path, chapter, monkeypatch, capfd):
    """As with too little memory for its threads."""
    write_kernel(tmp_path, monkeypatch)
    spec = tmp_path / "jupyter" / "kernels" / "python3" / "kernel.json"
    words = [sys.executable, "-c", "import time; time.sleep(60)"]
    spec.write_text(json.dumps({"argv": words, "display_name": "x", "language": "python"}))
    monkeypatch.setattr("oralib.runs.kernel.START", 1)
    assert main(["run", str(chapter.path), "--out", str(tmp_path / "out")]) == 1
    said = "small failed: the kernel 'python3' has not answered within 1 s of its start"
    assert capfd.readouterr().err.split("\r")[-1].strip() == said


def test_a_kernel_that_is_broken_by_a_cell_is_one_line(tmp_path, chapter, monkeypatch, capfd):
    path = write_chapter(tmp_path, extra="\nimport json; json.dumps = lambda *a, **k: '{}'")
    arguments = ["run", str(path), "--out", str(tmp_path / "out")]
    assert main(arguments) == 1
    said = capfd.readouterr().err.split("\r")[-1]
    assert said.startswith("small failed: the kernel 'python3' cannot be understood: ")
    assert said.count("\n") == 1  # which of its messages comes first is chance

    def execute(*given, **named):  # after sys.modules.clear() in a cell, which takes a minute
        raise CellTimeoutError.error_from_timeout_and_cell("No output", 4, None)

    monkeypatch.setattr("papermill.execute_notebook", execute)
    assert main(arguments) == 1
    said = capfd.readouterr().err
    assert said.startswith("small failed: the kernel 'python3' lives and does not answer any more")
    assert said.count("\n") == 1


def test_a_cell_that_leaves_for_a_folder_that_goes(tmp_path):
    cell = "import tempfile\nwith tempfile.TemporaryDirectory() as place: os.chdir(place)"
    chapter = runs.find_chapter(str(write_chapter(tmp_path, extra="\n" + cell)))
    assert runs.run_chapter(chapter, {}, tmp_path / "out")["results"]["square"] == 3


def copy_library(folder):
    library = folder / "copy" / "oralib"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(oralib.__file__).parent, library, ignore=ignored)
    return library


@pytest.mark.parametrize("after", ["", "text"], ids=["changed", "restored"])
def test_results_of_a_library_that_was_edited_meanwhile_are_not_kept(tmp_path, after):
    library = copy_library(tmp_path)
    extra = f"""
from pathlib import Path
path = Path({str(library / "laws.py")!r})
text = path.read_text()
path.write_text(text + "# edited")
if {after!r}:
    path.write_text(text)
"""
    path = write_chapter(tmp_path, extra=extra)
    done = subprocess.run(
        [*COMMAND, str(path), "--out", str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": str(library.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    message = f"small failed: oralib at {library} has changed in the meantime"
    assert done.stderr.split("\r")[-1].strip().startswith(message)
    assert not (tmp_path / "out").exists()


# -------------------------------------------------------------------------- other systems


def test_runs_can_be_imported_where_there_is_no_unix(tmp_path):
    """Neither its modules nor its names."""
    program = """
import os, signal, sys, warnings
import platformdirs  # which looks at the system itself
sys.modules.update(dict.fromkeys(("fcntl", "resource", "pwd", "grp", "termios")))
del signal.SIGKILL, os.fork, os.getuid, os.geteuid, os.killpg, os.setsid, os.O_NOFOLLOW
warnings.simplefilter("ignore")  # of filelock, which misses a better lock
from pathlib import Path
import oralib.runs
from oralib.runs.folders import unseen
with unseen(Path(sys.argv[1], "run")) as place:
    assert (place / "lock").exists()
assert not os.listdir(sys.argv[1])
"""
    subprocess.run([sys.executable, "-c", program, tmp_path], check=True)


# --------------------------------------------------------------------- notebooks of one's own


def own_notebook(folder, parameters, *cells):
    """A notebook with a parameters cell, and others."""
    tagged = nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})
    others = [nbformat.v4.new_code_cell(cell) for cell in cells]
    path = folder / "own.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[tagged, *others]), path)
    return path


def test_a_notebook_may_begin_with_a_byte_order_mark(tmp_path):
    path = write_chapter(tmp_path)
    plain = runs.find_chapter(str(path))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert runs.find_chapter(str(path)) == plain


def test_a_parameters_cell_may_have_comments_and_signs_in_words(tmp_path):
    path = own_notebook(tmp_path, "# what to draw\n\ncolour: str = '#fff'  # of the ε curve")
    (declared,) = runs.find_chapter(str(path)).parameters.values()
    assert (declared.default, declared.meaning) == ("#fff", "of the ε curve")


@pytest.mark.parametrize(
    "line", ["n: int = (", "n: int = 2 * 3", "n: set = {1}", "n = 3", "a: int = 1; b: int = 2"]
)
def test_a_line_that_declares_nothing_is_named(line, tmp_path):
    path = own_notebook(tmp_path, line)
    with pytest.raises(ValueError, match=r"own\.ipynb: a parameters cell has one 'name: type"):
        runs.find_chapter(str(path))


def test_what_is_no_notebook_is_no_matter_to_other_chapters(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.modules["oralib.runs.chapters"], "BOOK", tmp_path)
    os.mkfifo(tmp_path / "a-pipe.ipynb")
    (tmp_path / "b-folder.ipynb").mkdir()
    (tmp_path / "empty.ipynb").touch()
    os.symlink("nowhere", tmp_path / "link.ipynb")
    own_notebook(tmp_path, "a: int = 1")
    assert runs.find_chapter("own").name == "own"
    assert capsys.readouterr().err == ""
    assert [chapter.name for chapter in runs.chapters()] == ["own"]
    said = capsys.readouterr().err.splitlines()
    names = ("a-pipe", "b-folder", "empty", "link")
    assert [name in line for name, line in zip(names, said, strict=True)] == 4 * [True]
    assert all(line.startswith("left out: ") for line in said)
    with pytest.raises(ValueError, match=r"empty\.ipynb is not a notebook"):
        runs.find_chapter("empty")


def test_home_is_known_where_shells_leave_its_sign(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    path = own_notebook(tmp_path, "a: int = 1")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "notes").touch()
    for out in ("~", "~/kept"):
        assert main(["run", f"~/{path.name}", f"--out={out}"]) == 2
        assert str(tmp_path) in capsys.readouterr().err
    assert main(["sweep", "~/none.yml"]) == 2
    assert str(tmp_path / "none.yml") in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["run", "x", "--out", "~nobody-like-this/x"])
    assert "~nobody-like-this/x: Could not determine home" in capsys.readouterr().err


def test_values_in_lists(tmp_path):
    chapter = runs.find_chapter(str(own_notebook(tmp_path, "v: list = [(1, 2), {'a': (3,)}]")))
    # papermill would write a tuple as a word.
    assert settings(chapter, {}) == {"v": [[1, 2], {"a": [3]}]}
    with pytest.raises(ValueError, match="v must have texts in UTF-8"):
        runs.check_parameters(chapter, {"v": "a,b\udcff"})


def test_what_papermill_writes_can_be_read_again(tmp_path):
    from papermill.translators import PythonTranslator

    values = {"x": math.inf, "v": [-math.inf, "float('nan')", [1]], "w": "a 'b' é\n"}
    path = own_notebook(tmp_path, "x: float = 1\nv: list = []\nw: str = ''")
    notebook = nbformat.read(path, 4)
    given = nbformat.v4.new_code_cell(PythonTranslator.codify(values))
    given.metadata["tags"] = ["injected-parameters"]
    notebook.cells.append(given)
    nbformat.write(notebook, path)
    assert settings(runs.find_chapter(str(path)), {}) == values


def test_odd_names_and_numbers_are_one_line():
    with pytest.raises(ValueError, match="there is no notebook"):
        runs.find_chapter("a" * 500 + ".ipynb")
    chapter = runs.find_chapter("04-the-gaps")
    with pytest.raises(ValueError, match="epsilon must be a number that a double can hold"):
        runs.check_parameters(chapter, {"epsilon": "1" + 400 * "0"})


def test_start_up_files_of_the_user_are_no_part_of_a_run(tmp_path, monkeypatch):
    startup = tmp_path / "home" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00.py").write_text("x = 3\n")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "home"))
    path = own_notebook(tmp_path, "a: int = 1", "assert 'x' not in globals()")
    runs.run_chapter(runs.find_chapter(str(path)), {}, tmp_path / "out")


def test_assertions_of_a_chapter_are_never_left_out(monkeypatch):
    from oralib.runs.kernel import _environment

    monkeypatch.setenv("PYTHONOPTIMIZE", "2")
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    monkeypatch.setenv("SETTING", "kept")
    given = _environment("profile")
    assert not {"PYTHONOPTIMIZE", "PYTHONSAFEPATH"} & set(given)
    assert (given["SETTING"], given["IPYTHONDIR"]) == ("kept", "profile")


def test_an_empty_folder_keeps_its_mode(tmp_path):
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    path = own_notebook(tmp_path, "a: int = 1")
    runs.run_chapter(runs.find_chapter(str(path)), {}, private)
    assert (private / "results.json").exists()
    assert private.stat().st_mode & 0o777 == 0o700


def test_the_commit_is_that_of_this_repository(tmp_path, monkeypatch):
    from oralib.runs.record import _commit

    known = _commit()
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    assert _commit() == known


@pytest.mark.parametrize("command", ["plan -h", "run --list"])
def test_a_reader_who_has_enough_hears_nothing(command):
    shell = f"{sys.executable} -m oralib {command} | head -0"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_a_closed_output_is_no_error():
    shell = f"{sys.executable} -m oralib run --list >&-"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

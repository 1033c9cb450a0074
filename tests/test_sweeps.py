"""Sweeps with the real parts: Dask clusters, processes that are killed, disks that are full."""

import contextlib
import contextvars
import gc
import itertools
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import filelock
import nbformat
import numpy as np
import pandas as pd
import pytest
from notebooks import run_points_here, write_chapter

from oralib import runs
from oralib.__main__ import main
from oralib.runs import folders, picture, plain_yaml, record, sweep
from oralib.runs import table as tables
from oralib.runs.chapters import settings
from oralib.runs.record import read_results, sealed, would_import_the_same, write_results

COMMAND = [sys.executable, "-m", "oralib", "sweep"]


def write_grid(folder, text, name="grid.yml"):
    path = folder / name
    path.write_text("chapter: small.ipynb\n" + text)
    return path


@pytest.fixture
def folder(tmp_path):
    write_chapter(tmp_path)
    return tmp_path


# -------------------------------------------------------------------------------- grid files


def test_a_grid_has_products_and_points(folder):
    path = write_grid(
        folder,
        "parameters: {seed: 3}\nproduct: {x: [1, 2], n: [1, 1e1]}\npoints: [{x: 9}]\n"
        "results: [square]\nshow: square\n",
    )
    grid = runs.read_grid(path)
    assert grid.axes == ("x", "n")
    assert grid.results == ("square",)
    assert list(grid.points) == [
        {"seed": 3, "x": 1.0, "n": 1},
        {"seed": 3, "x": 1.0, "n": 10},
        {"seed": 3, "x": 2.0, "n": 1},
        {"seed": 3, "x": 2.0, "n": 10},
        {"seed": 3, "x": 9.0},
    ]
    keys = {runs.point_key(grid.chapter, point) for point in grid.points}
    assert len(keys) == 5


def test_the_grids_of_the_book_are_good():
    for name, count in (("plane", 50), ("figure-7", 45), ("figure-8", 70)):
        grid = runs.read_grid(runs.chapters()[0].path.parent / "grids" / f"{name}.yml")
        assert len(grid.points) == count
        assert grid.show == "run_bound"


BAD = [
    ("prodct: {x: [1]}", r"prodct is not a key of a grid; did you mean product\?"),
    ("product: {x: []}", r"product: x must be a list of values, got x=\[\]"),
    ("product: {x: 3}", r"product: x must be a list of values, got x=3"),
    ("product: {y: [3]}", r"y is not a parameter of small"),
    ("product: {n: [1.5]}", r"n must be an integer, got n=1.5"),
    ("product: {n: [1, two]}", r"n must be an integer, got n='two'"),
    ("product: {x: [1, 1.0]}", r"points 1 and 2 are the same: \{'x': 1.0\}"),
    ("product: {x: [1]}\npoints: [{x: 1}]", r"points 1 and 2 are the same"),
    ("points: [{x: 1, seed: 1}, {x: 1}]", r"points 1 and 2 are the same"),
    ("points: [3]", r"points must be a list of settings"),
    ("parameters: {x: 1}\nproduct: {x: [1, 2]}", r"x is set twice"),
    ("parameters: 3\nproduct: {x: [1]}", r"parameters must map names to values"),
    ("parameters: {x: 1}", r"must give between 1 and 10000 points, got 0"),
    ("product: {x: [1], n: [2]}\nshow: [square]", r"show must be the name of a result"),
    ("product: {x: [1]}\nresults: square", r"results must be a list of names"),
    ("product: {x: [1", r"is not a YAML file"),
    # YAML that is read otherwise than it looks, or that would be more than it looks.
    ("product:\n  x: [1]\n  x: [2]", r"line 4, product: x is given twice, first in line 3"),
    ("product: {x: [1]}\nproduct: {x: [2]}", r"line 3: product is given twice, first in line 2"),
    ("points: [{1: 2}]", r"line 2, points: a key must be a word, got 1"),
    ("points: [{yes: 2}]", r"line 2, points: a key must be a word, got yes"),
    ("points: [{[x]: 2}]", r"line 2, points: a key must be a word, got a list or mapping"),
    ("points: [{<<: {x: 1}}]", r"line 2, points: a key must be a word, got <<"),
    ("product:\n  n: [010]", r"line 3, product: n: 010 is read by YAML as another number; write"),
    ("product: {n: [0x10]}", r"line 2, product: n: 0x10 is read by YAML as another number"),
    ("product: {n: [1_0]}", r"line 2, product: n: 1_0 is read by YAML as another number"),
    ("product: {n: [1:30]}", r"line 2, product: n: 1:30 is read by YAML as another number"),
    ("product: {x: [1:30.5]}", r"line 2, product: x: 1:30.5 is read by YAML as another number"),
    ("product: {x: [.nan]}", r"line 2, product: x: .nan is read by YAML as another number"),
    ("product: {word: [on]}", r"line 2, product: word: on is read by YAML as true or false"),
    ("parameters: {word: no}", r'word: no is read by YAML as true .*, or "no" for a word'),
    ("product: {word: [2020-01-01]}", r"word: 2020-01-01 is read by YAML as a date"),
    (f"product: {{n: [{5000 * '9'}]}}", r"line 2, product: n: 9{20}... has too many digits"),
    ("product: {x: &a [1], n: *a}", r"line 2, product: n: \*a is an alias"),
    ("product: {x: !!set {1, 2}}", r"line 2, product: x: tag:yaml.org,2002:set is a tag"),
    ("product: {x: [!!binary aaaa]}", r"line 2, product: x: aaaa has a tag"),
    ("points: " + 1000 * "[", r"line 2, points: there are more than 8 levels"),
    ("points:\n" + "\n".join(i * " " + "x:" for i in range(1, 1000)), r"line 9, points: x: "),
    ("points: [{x: '\0'}]", r"is not a YAML file"),
    (r'points: [{x: "\UFFFFFFFF"}]', r"is not a YAML file"),
    (r'points: [{x: "\U00110000"}]', r"is not a YAML file"),
    ("points: []\n---\npoints: []", r"is not a YAML file: expected a single document"),
    ("points: {}", r"points must be a list of settings, got points=\{\}"),
    ("#" * 1_000_000, r"must have at most 1,000,000 bytes"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_grids_start_nothing(folder, capsys, text, message):
    path, out = write_grid(folder, text), folder / "out"
    with pytest.raises(ValueError, match=message):
        runs.read_grid(path)
    assert main(["sweep", str(path), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {path}")
    assert said.count("\n") == 1
    assert not out.exists()


def test_an_alias_bomb_is_refused_at_once(folder):
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{i}: &a{i} [{', '.join(9 * [f'*a{i - 1}'])}]" for i in range(1, 10)]
    with pytest.raises(ValueError, match=r"line 3, a1: \*a0 is an alias"):
        runs.read_grid(write_grid(folder, "\n".join(lines)))


def test_a_grid_that_is_no_text(folder):
    path = folder / "grid.yml"
    path.write_bytes(b"chapter: small.ipynb\npoints: [{word: \xff}]\n")
    with pytest.raises(ValueError, match=r"grid.yml is not a text in UTF-8 \(line 2\)"):
        runs.read_grid(path)


def test_plain_values_are_read_as_they_look(folder):
    text = 'points:\n- {x: -1.5e-3, n: +7, word: "010"}\n- {x: .inf, n: 1e4, word: "yes"}\n'
    text += "- {x: 5., n: 3, word: 'a: b'}\n"
    assert list(runs.read_grid(write_grid(folder, text)).points) == [
        {"x": -0.0015, "n": 7, "word": "010"},
        {"x": float("inf"), "n": 10_000, "word": "yes"},
        {"x": 5.0, "n": 3, "word": "a: b"},
    ]


def test_numbers_in_lists_are_numbers(folder):
    path = folder / "grid.yml"
    path.write_text('rates: [1e-3, +2E4, "1e-3", 1e, 1e999, 1.5e3]\n')
    assert plain_yaml.read_yaml(path) == {"rates": [0.001, 20_000.0, "1e-3", "1e", "1e999", 1500.0]}


def test_the_default_of_a_chapter_is_the_same_point(folder):
    """Even if it is written as an integer there, and as a float in the grid."""
    with pytest.raises(ValueError, match="points 1 and 2 are the same"):
        runs.read_grid(write_grid(folder, "points: [{n: 2, ratios: [1.0, 2.0]}, {n: 2}]\n"))


def test_a_grid_of_ten_million_points_is_refused_at_once(folder):
    axis = list(range(1, 3163))
    path = write_grid(folder, f"product: {{x: {axis}, n: {axis}}}")
    with pytest.raises(ValueError, match="must give between 1 and 10000 points, got 9998244"):
        runs.read_grid(path)


def test_files_that_are_not_there(folder, capsys):
    assert main(["sweep", str(folder / "none.yml")]) == 2
    assert "none.yml cannot be read: No such file" in capsys.readouterr().err
    path = folder / "empty.yml"
    path.write_text("")
    assert main(["sweep", str(path)]) == 2
    assert "empty.yml is empty; a grid has a chapter" in capsys.readouterr().err
    path.write_text("- 3")
    assert main(["sweep", str(path)]) == 2
    assert "must have the keys chapter, parameters" in capsys.readouterr().err
    path.write_text("chapter: 06-dp-sdg\nproduct: {x: [1]}")
    assert main(["sweep", str(path)]) == 2
    assert "did you mean 06-dp-sgd?" in capsys.readouterr().err


def test_results_of_an_executed_chapter_are_known(folder, capsys):
    done = runs.run_chapter(runs.find_chapter(str(folder / "small.ipynb")), {}, folder / "run")
    assert list(done["results"]) == ["square", "text", "threads"]
    shutil.copy(folder / "run" / "notebook.ipynb", folder / "small.ipynb")
    path = write_grid(folder, "product: {x: [1]}\nresults: [sqare]")
    assert main(["sweep", str(path)]) == 2
    assert (
        "sqare is not a result of small, when it was executed last; did you mean square?"
        in capsys.readouterr().err
    )


def test_long_tables_are_cut_on_a_terminal():
    text = runs.as_text(pd.DataFrame({"x": range(100)}), most=3)
    assert text == " x\n 0\n 1\n 2\n... and 97 more"


def test_a_table_on_a_terminal():
    table = pd.DataFrame(
        {
            "x": [1.0, 1 / 3, math.inf],
            "bound": [math.nan, 1e-9, 12345678.9],
            "word": ["é ± 1", "", "b"],
            "missing": pd.Series([None, 3, None], dtype=object),
        }
    )
    assert [line.split() for line in runs.as_text(table).splitlines()] == [
        ["x", "bound", "word", "missing"],
        ["1", "NaN", "é", "±", "1"],
        ["0.333333", "1e-09", "3"],
        ["inf", "1.23457e+07", "b"],
    ]


# ---------------------------------------------------------------------------- a local cluster


GRID = "product: {x: [1, 2], n: [1, 2]}\nresults: [square, text]\nshow: square\n"
TABLE = "x,n,square,text\n" + "".join(
    f"{x}.0,{n},{x * x + n}.0,{x}.0 ± {n}\n" for x in (1, 2) for n in (1, 2)
)


def test_sweep_on_two_workers_and_again(folder, capsys):
    path, out = write_grid(folder, GRID), folder / "out"
    assert main(["sweep", str(path), "--out", str(out), "--workers", "2"]) == 0
    seen = capsys.readouterr()
    assert "4 points, 0 complete, 4 to run" in seen.err
    assert " x  n  square    text\n 1  1       2 1.0 ± 1\n" in seen.out
    assert (out / "table.csv").read_text() == TABLE
    assert json.loads((out / "table.json").read_text())[0]["square"] == 2.0
    assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")
    folders = sorted((out / "points").iterdir())
    assert len(folders) == 4
    times = [(point / "results.json").stat().st_mtime_ns for point in folders]
    # The same command has nothing to do, and says the same.
    assert main(["sweep", str(path), "--out", str(out), "--workers", "2"]) == 0
    assert "4 points, 4 complete, 0 to run" in capsys.readouterr().err
    assert (out / "table.csv").read_text() == TABLE
    assert times == [(point / "results.json").stat().st_mtime_ns for point in folders]
    # A larger grid runs what is new; a smaller one leaves the rest alone.
    write_grid(folder, GRID.replace("x: [1, 2]", "x: [1, 4]"))
    assert main(["sweep", str(path), "--out", str(out), "--workers", "2"]) == 0
    said = capsys.readouterr().err
    assert "the grid has changed: 2 points" in said
    assert "4 points, 2 complete, 2 to run" in said
    assert len((out / "table.csv").read_text().splitlines()) == 5


def test_changed_code_is_noticed(folder, capsys, workers_at_home):
    path, out = write_grid(folder, "product: {x: [1]}\n"), folder / "out"
    assert main(["sweep", str(path), "--out", str(out), "--workers", "1"]) == 0
    before = (out / "table.csv").read_text()
    write_chapter(folder, extra="\nresults.record(more=1)")
    capsys.readouterr()
    assert main(["sweep", str(path), "--out", str(out), "--workers", "1"]) == 0
    assert "the code has changed: 1 points were run by another version" in capsys.readouterr().err
    after = (out / "table.csv").read_text()
    assert after.splitlines()[0] == before.splitlines()[0] + ",more"


def test_a_failed_point_does_not_stop_the_others(folder, capsys, workers_at_home):
    path = write_grid(folder, "product: {x: [1, 2], word: [a, fail]}\nresults: [square]\n")
    out = folder / "out"
    assert main(["sweep", str(path), "--out", str(out), "--workers", "1"]) == 1
    seen = capsys.readouterr()
    assert "point 2 (x=1.0, word=fail) failed: RuntimeError: cannot do x=1.0" in seen.err
    assert "point 4 (x=2.0, word=fail) failed: RuntimeError: cannot do x=2.0" in seen.err
    assert "2 of 4 points" in seen.out
    assert (out / "table.csv").read_text() == "x,word,square\n1.0,a,3.0\n2.0,a,6.0\n"
    assert len(list((out / "points").iterdir())) == 2
    # Their notebooks are kept, where the message says, and they are run again.
    kept = [Path(place) for place in re.findall(r"point \d .*failed: .*\(see (.*)\)", seen.err)]
    assert len(kept) == 2
    assert sorted(kept) == sorted((out / "failed").iterdir())
    assert all("cannot do x=" in path.read_text() for path in kept)
    assert main(["sweep", str(path), "--out", str(out), "--workers", "1"]) == 1
    assert "4 points, 2 complete, 2 to run" in capsys.readouterr().err
    assert len(list((out / "failed").iterdir())) == 4


# ------------------------------------------------------------------------- folders of others


@pytest.mark.parametrize(
    "mark", [None, "", "{", "{}", "[1, 2]", "null", '{"format": "oralib-sweep/1"}']
)
def test_a_folder_that_is_not_a_sweep_is_refused(folder, capsys, mark):
    path, out = write_grid(folder, "points: [{x: 1}]\n"), folder / "out"
    out.mkdir()
    (out / "table.csv").write_text("mine")
    if mark is not None:
        (out / "sweep.json").write_text(mark)
    before = sorted(out.iterdir())
    assert main(["sweep", str(path), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert said == f"error: {out} exists and is not a sweep; give another folder\n"
    assert (out / "table.csv").read_text() == "mine"
    assert sorted(out.iterdir()) == before


def test_links_are_not_followed(folder, capsys):
    path, out = write_grid(folder, "points: [{x: 1}]\n"), folder / "out"
    (folder / "real").mkdir()
    out.symlink_to(folder / "real")
    assert main(["sweep", str(path), "--out", str(out)]) == 2
    assert f"{out} is a symbolic link" in capsys.readouterr().err
    out.unlink()
    out.mkdir()
    (folder / "file").write_text("mine")
    (out / ".lock").symlink_to(folder / "file")
    assert main(["sweep", str(path), "--out", str(out)]) == 2
    assert f"{out / '.lock'} is not a file" in capsys.readouterr().err
    assert (folder / "file").read_text() == "mine"
    (out / ".lock").unlink()
    (out / ".partial").symlink_to(folder / "real")
    assert main(["sweep", str(path), "--out", str(out)]) == 2
    assert f"{out / '.partial'} is not a folder" in capsys.readouterr().err
    assert list((folder / "real").iterdir()) == []


def test_a_start_that_was_killed_is_no_obstacle(folder, workers_at_home):
    path, out = write_grid(folder, "points: [{x: 1}]\n"), folder / "out"
    with folders.unseen(out / "sweep.json") as place:
        name = place.name
    (out / ".partial" / name).mkdir(parents=True)
    (out / ".lock").touch()
    assert main(["sweep", str(path), "--out", str(out), "--workers", "1"]) == 0
    assert {entry.name for entry in out.iterdir()} == {
        *(".lock", "chapter.ipynb", "figure.png", "points"),
        *("sweep.json", "table.csv", "table.json"),
    }


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A folder with a chapter, a grid and its sweep; not to be touched."""
    folder = tmp_path_factory.mktemp("swept")
    write_chapter(folder)
    write_grid(folder, "product: {x: [1, 2, 3]}\nresults: [square]\n")
    with pytest.MonkeyPatch.context() as patch:
        run_points_here(patch)
        assert main(["sweep", str(folder / "grid.yml"), "--out", str(folder / "out")]) == 0
    return folder


DAMAGES = {
    "empty": b"",
    "truncated": b'{"format": "oralib-run/1", "chap',
    "binary": b"\x89PNG\xff\x00",
    "object": b"{}",
    "number": b"3",
    "null": b"null",
    "list": b"[1]",
    "nan": b'{"format": "oralib-run/1", "provenance": NaN}',
    "deep": 100_000 * b"[",
}


def test_damaged_points_are_set_aside_and_run_again(swept, tmp_path, capsys, workers_at_home):
    """However they are damaged; the others are left as they are."""
    folder = tmp_path / "copy"
    shutil.copytree(swept, folder)
    path, out = folder / "grid.yml", folder / "out"
    good, bad, _ = sorted((out / "points").iterdir())
    (bad / "mine.txt").write_text("mine")
    before = (good / "results.json").stat().st_mtime_ns
    table = (out / "table.csv").read_text()
    for data in DAMAGES.values():
        (bad / "results.json").write_bytes(data)
        assert read_results(bad) is None
    capsys.readouterr()
    assert main(["sweep", str(path), "--out", str(out), "--workers", "1"]) == 0
    said = capsys.readouterr().err
    aside = out / "set-aside" / f"{bad.name}-1"
    assert f"is damaged and run again; it is now {aside}\n" in said
    assert "3 points, 2 complete, 1 to run" in said
    assert (aside / "mine.txt").read_text() == "mine"
    assert (aside / "results.json").read_bytes() == DAMAGES["deep"]
    assert (good / "results.json").stat().st_mtime_ns == before
    assert (out / "table.csv").read_text() == table


def test_a_point_is_known_again_whatever_its_numbers_are(tmp_path, capsys):
    parameters = "x: float = 1\nvalues: list = [[1]]"
    cell = nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "small.ipynb")
    text = "product: {x: [1, .inf, nan], values: [[1], [.inf, word], [[-.inf]]]}"
    grid = runs.read_grid(write_grid(tmp_path, text))
    keys = [runs.point_key(grid.chapter, point) for point in grid.points]
    for key, point in zip(keys, grid.points, strict=True):
        (tmp_path / "points" / key).mkdir(parents=True)
        origin = {"code": "c", "used": {}, "packages": {}, "seconds": 1.0}
        record = {"chapter": "small", "parameters": settings(grid.chapter, point), "results": {}}
        write_results(tmp_path / "points" / key, {**record, "provenance": origin})
    sweep._take_stock(grid, tmp_path, keys, "c")
    assert "damaged" not in capsys.readouterr().err
    os.rename(tmp_path / "points" / keys[0], tmp_path / "points" / "other")
    os.rename(tmp_path / "points" / keys[1], tmp_path / "points" / keys[0])
    sweep._take_stock(grid, tmp_path, keys, "c")
    assert "point 1 is damaged" in capsys.readouterr().err


def test_what_is_not_a_point_is_not_taken_for_one(swept, tmp_path, capsys, workers_at_home):
    """Records without keys, a copy of another point, files among the points, an edited table."""
    folder = tmp_path / "copy"
    shutil.copytree(swept, folder)
    path, out = folder / "grid.yml", folder / "out"
    first, second, third = sorted((out / "points").iterdir())
    shutil.rmtree(second)
    shutil.copytree(first, second)
    record = json.loads((third / "results.json").read_text())
    del record["parameters"], record["digest"]
    (third / "results.json").write_text(json.dumps(sealed(record)))
    (out / "points" / "notes.txt").write_text("mine")
    table = (out / "table.csv").read_text()
    (out / "table.csv").write_text("edited")
    (out / "figure.png").unlink()
    (out / "figure.png").symlink_to(folder / "grid.yml")
    assert main(["sweep", str(path), "--out", str(out), "--workers", "1"]) == 0
    said = capsys.readouterr().err
    assert "3 points, 1 complete, 2 to run" in said
    assert f"table.csv in {out} was not as the sweep has left it; it is now {out}" in said
    assert (out / "points" / "notes.txt").read_text() == "mine"
    assert (out / "table.csv").read_text() == table
    assert (out / "set-aside" / "table.csv-1").read_text() == "edited"
    assert (out / "set-aside" / "figure.png-1").is_symlink()
    assert (folder / "grid.yml").read_text().startswith("chapter")


@pytest.mark.parametrize("replaced", range(4))
def test_a_table_is_ours_whenever_the_sweep_is_killed(swept, tmp_path, monkeypatch, replaced):
    """Killed after so many files have been renamed, the mark first."""
    out = tmp_path / "out"
    shutil.copytree(swept / "out", out)
    grid = runs.read_grid(swept / "grid.yml")
    rename, done = os.replace, []

    def killed(old, new):
        if len(done) == replaced:
            raise KeyboardInterrupt
        done.append(new)
        rename(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            tables.write_table(out, pd.DataFrame({"x": [1.0, 2.0], "square": [7.0, 8.0]}), grid)
    tables.write_table(out, pd.DataFrame({"x": [1.0], "square": [9.0]}), grid)
    assert (out / "table.csv").read_text() == "x,square\n1.0,9.0\n"
    assert not (out / "set-aside").exists()


@pytest.mark.parametrize("moved", ["nothing", "all", "sweep", "notebook"])
def test_notebooks_of_one_name_do_not_share_a_sweep(tmp_path, capsys, moved, workers_at_home):
    one, two = tmp_path / "project" / "one", tmp_path / "project" / "two"
    for folder in (one, two):
        folder.mkdir(parents=True)
        write_chapter(folder)
        write_grid(folder, "product: {x: [1]}\n")
    out = tmp_path / "project" / "out"
    assert main(["sweep", str(one / "grid.yml"), "--out", str(out), "--workers", "1"]) == 0
    record = (out / "table.json").read_text()
    if moved == "all":
        (tmp_path / "project").rename(tmp_path / "moved")
        one, two, out = (tmp_path / "moved" / name for name in ("one", "two", "out"))
    elif moved == "sweep":
        out = out.rename(tmp_path / "elsewhere")
    elif moved == "notebook":
        one = one.rename(tmp_path / "elsewhere")
    capsys.readouterr()
    if moved != "notebook":
        assert main(["sweep", str(two / "grid.yml"), "--out", str(out), "--workers", "1"]) == 2
        assert f"is a sweep of {one / 'small.ipynb'}, another notebook" in capsys.readouterr().err
    assert main(["sweep", str(one / "grid.yml"), "--out", str(out), "--workers", "1"]) == 0
    assert "1 points, 1 complete, 0 to run" in capsys.readouterr().err
    assert (out / "table.json").read_text() == record


def test_a_linked_notebook_is_one_of_the_folder_of_the_link(tmp_path, capsys, workers_at_home):
    for number in (1, 2):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "data.txt").write_text(f"{number}")
    write_chapter(tmp_path / "1", extra="\nresults.record(more=int(open('data.txt').read()))")
    (tmp_path / "2" / "small.ipynb").symlink_to(tmp_path / "1" / "small.ipynb")
    chapter = runs.find_chapter(tmp_path / "2" / "small.ipynb")
    assert runs.run_chapter(chapter, {}, tmp_path / "out")["results"]["more"] == 2
    for number in (1, 2):
        write_grid(tmp_path / f"{number}", "product: {x: [1]}\nresults: [more]\n")
    words = ["sweep", "--out", str(tmp_path / "sweep"), "--workers", "1"]
    assert main([*words, str(tmp_path / "1" / "grid.yml")]) == 0
    assert main([*words, str(tmp_path / "2" / "grid.yml")]) == 2
    assert "another notebook" in capsys.readouterr().err


def test_names_are_those_that_python_has(tmp_path, capsys, workers_at_home):
    """Jupyter completes epsilon to a sign that Python takes for another one."""
    path = write_chapter(tmp_path)
    notebook = nbformat.read(path, 4)
    notebook.cells[1].source += "\n\u03f5: float = 1.0  # a level"
    notebook.cells[-1].source += "\nresults.record(\u03f5_bound=\u03f5 / 2)"
    nbformat.write(notebook, path)
    out = tmp_path / "run"
    assert main(["run", str(path), "-p", "\u03f5=4", "--out", str(out)]) == 0
    assert "\u03b5_bound  2" in capsys.readouterr().out
    grid = write_grid(tmp_path, "product: {\u03f5: [1, 2]}\nresults: [\u03f5_bound]\n")
    assert main(["sweep", str(grid), "--out", str(tmp_path / "out"), "--workers", "1"]) == 0
    twice = write_grid(tmp_path, "product: {\u03f5: [1], \u03b5: [2]}\n", "twice.yml")
    assert main(["sweep", str(twice), "--out", str(tmp_path / "twice")]) == 2
    assert "product has a name twice, written in two ways" in capsys.readouterr().err
    table = (tmp_path / "out" / "table.csv").read_text()
    assert table == "\u03b5,\u03f5_bound\n1.0,0.5\n2.0,1.0\n"


def test_results_may_have_names_that_python_would_change(tmp_path, workers_at_home):
    path = write_chapter(tmp_path, extra='\nresults.record(**{"R\u00b2": x})')
    grid = write_grid(tmp_path, "product: {x: [1]}\nresults: [R\u00b2]\nshow: R\u00b2\n")
    for name in ("new", "executed"):
        words = ["--out", str(tmp_path / name), "--workers", "1"]
        assert main(["sweep", str(grid), *words]) == 0
        assert (tmp_path / name / "table.csv").read_text() == "x,R\u00b2\n1.0,1.0\n"
        run = runs.run_chapter(runs.find_chapter(path), {}, tmp_path / f"run-{name}")
        assert run["results"]["R\u00b2"] == 1.0
        shutil.copy(tmp_path / f"run-{name}" / "notebook.ipynb", path)


def test_a_sweep_that_is_moved_with_its_modules_stays_complete(tmp_path, capsys, workers_at_home):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "helperz.py").write_text("VALUE = 1\n")
    write_chapter(tmp_path / "project", extra="\nimport helperz")
    write_grid(tmp_path / "project", "product: {x: [1]}\n")

    def swept(folder):
        words = [str(folder / "grid.yml"), "--out", str(folder / "out"), "--workers", "1"]
        assert main(["sweep", *words]) == 0
        return capsys.readouterr().err

    swept(tmp_path / "project")
    said = swept((tmp_path / "project").rename(tmp_path / "moved"))
    assert "1 points, 1 complete, 0 to run" in said


def test_a_sweep_of_another_chapter_is_left_alone(swept, tmp_path, capsys):
    folder = tmp_path / "copy"
    shutil.copytree(swept, folder)
    write_chapter(folder, name="other")
    path, out = folder / "other.yml", folder / "out"
    path.write_text("chapter: other.ipynb\npoints: [{x: 1}]\n")
    table = (out / "table.csv").read_text()
    assert main(["sweep", str(path), "--out", str(out)]) == 2
    assert f"{out} is a sweep of small, not of other" in capsys.readouterr().err
    assert (out / "table.csv").read_text() == table


def test_old_points_with_files_of_others_are_kept(swept, tmp_path, capsys, workers_at_home):
    folder = tmp_path / "copy"
    shutil.copytree(swept, folder)
    path, out = folder / "grid.yml", folder / "out"
    first, *_ = sorted((out / "points").iterdir())
    (first / "mine.txt").write_text("mine")
    write_chapter(folder, extra="\n1 + 1")
    assert main(["sweep", str(path), "--out", str(out), "--workers", "1"]) == 0
    said = capsys.readouterr().err
    assert "the code has changed: 3 points were run by another version" in said
    aside = out / "set-aside" / f"{first.name}-1"
    assert f"has files of somebody else; it is now {aside}\n" in said
    assert (aside / "mine.txt").read_text() == "mine"
    assert {entry.name for entry in (out / "set-aside").iterdir()} == {aside.name}
    assert len(list((out / "points").iterdir())) == 3


def test_a_chapter_that_is_edited_while_a_sweep_runs(folder, capsys, workers_at_home):
    """The first point to be run replaces the chapter; all are run from what was read before."""
    write_chapter(folder, name="edited", extra="\nsquare = -1")
    edit = "\nfrom pathlib import Path\n"
    edit += "Path('small.ipynb').write_text(Path('edited.ipynb').read_text())"
    write_chapter(folder, extra=edit)
    original = (folder / "small.ipynb").read_text()
    path, out = write_grid(folder, "product: {x: [1, 2]}\nresults: [square]\n"), folder / "out"
    arguments = ["sweep", str(path), "--out", str(out), "--workers", "1"]
    assert main(arguments) == 0
    assert (folder / "small.ipynb").read_text() != original
    assert (out / "table.csv").read_text() == "x,square\n1.0,3.0\n2.0,6.0\n"
    (folder / "small.ipynb").write_text(original)
    capsys.readouterr()
    assert main(arguments) == 0
    assert "2 points, 2 complete, 0 to run" in capsys.readouterr().err


def test_threads_and_workers_never_exceed_the_cores(folder, capsys, workers_at_home):
    cores = os.cpu_count()
    path = write_grid(folder, "points: [{x: 1}]\nresults: [threads]\n")
    assert main(["sweep", str(path), "--out", str(folder / "a"), "--workers", "1"]) == 0
    assert (folder / "a" / "table.csv").read_text() == f"x,threads\n1.0,{cores}\n"
    path = write_grid(folder, "points: [{x: 1}, {x: 2}]\nresults: [threads]\n")
    workers = min(2, cores)
    assert main(["sweep", str(path), "--out", str(folder / "b"), "--workers", str(workers)]) == 0
    assert f"1.0,{cores // workers}\n" in (folder / "b" / "table.csv").read_text()
    capsys.readouterr()
    assert main(["sweep", str(path), "--out", str(folder / "c"), "--workers", "1000"]) == 2
    assert f"workers must lie in [1, {cores}], the cores" in capsys.readouterr().err


def test_two_sweeps_keep_out_of_each_other(folder, capsys):
    path, out = write_grid(folder, "points: [{x: 1}]\n"), folder / "out"
    out.mkdir()
    with filelock.FileLock(out / ".lock"):
        assert main(["sweep", str(path), "--out", str(out)]) == 2
    assert "another sweep is at work" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written(folder, capsys):
    path = write_grid(folder, "points: [{x: 1}]\n")
    (folder / "file").write_text("x")
    assert main(["sweep", str(path), "--out", str(folder / "file" / "out")]) == 2
    assert "cannot be written to: Not a directory" in capsys.readouterr().err


def test_a_full_disk_is_reported_and_complete_points_are_kept(folder, workers_at_home):
    """Files cannot grow beyond a limit, as on a disk that is full."""
    path, out = write_grid(folder, GRID), folder / "out"
    small = write_grid(folder, "points: [{x: 1, n: 1}]\nresults: [square, text]\n", "small.yml")
    assert main(["sweep", str(small), "--out", str(out), "--workers", "1"]) == 0

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, 4_000))

    done = subprocess.run(
        [*COMMAND, str(path), "--out", str(out), "--workers", "1"],
        capture_output=True,
        text=True,
        preexec_fn=limit,
    )
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert len([entry for entry in (out / "points").iterdir() if entry.name != ".partial"]) == 1
    # With room again, the same command finishes.
    assert main(["sweep", str(path), "--out", str(out), "--workers", "1"]) == 0
    assert (out / "table.csv").read_text() == TABLE


# --------------------------------------------------------------------- clusters and killings


def check_complete(out):
    """Every visible point is complete."""
    points = out / "points"
    if points.exists():
        for entry in points.iterdir():
            if entry.name != ".partial":
                names = {file.name for file in entry.iterdir()}
                assert names == {"notebook.ipynb", "page.html", "results.csv", "results.json"}
                json.loads((entry / "results.json").read_text())


@contextlib.contextmanager
def scheduler_elsewhere(folder):
    """A real scheduler and two workers on loopback: its address, and the processes."""
    address = folder / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    scheduler = subprocess.Popen(
        [
            *(sys.executable, "-m", "distributed.cli.dask_scheduler"),
            *("--host", "127.0.0.1", "--port", "0", "--no-dashboard"),
            *("--scheduler-file", str(address)),
        ],
        **quiet,
    )
    workers = []
    try:
        for _ in range(200):
            if address.exists():
                break
            time.sleep(0.1)
        workers = [
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "distributed.cli.dask_worker"),
                    *("--scheduler-file", str(address), "--nthreads", "1", "--no-nanny"),
                    *("--host", "127.0.0.1", "--no-dashboard"),
                ],
                **quiet,
            )
            for _ in range(2)
        ]
        yield json.loads(address.read_text())["address"], scheduler, workers
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


def begun_sweep(path, out, place):
    sweep = subprocess.Popen(
        [*COMMAND, str(path), "--out", str(out), "--scheduler", place],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(600):  # until something is under way
        if (out / "points" / ".partial").exists():
            break
        time.sleep(0.1)
    time.sleep(0.5)
    return sweep


def test_a_scheduler_whose_worker_is_killed(folder):
    write_chapter(folder, extra="\ntime.sleep(1)")
    path, out = write_grid(folder, GRID), folder / "out"
    with scheduler_elsewhere(folder) as (place, _, workers):
        sweep = begun_sweep(path, out, place)
        workers[0].send_signal(signal.SIGKILL)
        said, errors = sweep.communicate(timeout=180)
        assert sweep.returncode == 0, errors
        assert "4 of 4 points" in said
        assert (out / "table.csv").read_text() == TABLE
        check_complete(out)


def test_a_scheduler_that_goes_in_the_middle(folder):
    """As when the job that holds it reaches its limit: one line, and nothing is lost."""
    write_chapter(folder, extra="\ntime.sleep(3)")
    path, out = write_grid(folder, GRID), folder / "out"
    with scheduler_elsewhere(folder) as (place, scheduler, _):
        sweep = begun_sweep(path, out, place)
        scheduler.send_signal(signal.SIGTERM)
        _, errors = sweep.communicate(timeout=180)
    assert sweep.returncode == 1
    assert "Traceback" not in errors
    assert "failed: None" not in errors
    (line,) = [line for line in errors.splitlines() if "scheduler" in line]
    assert re.fullmatch(
        r"the scheduler has gone, before \d points were complete; "
        "the same command goes on from here",
        line,
    )
    check_complete(out)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files cannot be counted")
def test_points_leave_no_open_files(folder, monkeypatch):
    """Dask calls each point in a context of its own."""
    for name in sweep._THREADS:  # which a worker sets for its kernels
        monkeypatch.setenv(name, "1")
    chapter = runs.find_chapter(str(folder / "small.ipynb"))
    home, open_files = folder / "out", []
    (home / "points").mkdir(parents=True)
    (home / sweep.SOURCE).write_text(chapter.text)
    code = sweep.code_version(chapter)
    gc.disable()
    try:
        for i in range(4):
            call = (str(chapter.path), {"x": float(i)}, str(home), f"key{i}", code, 1)
            assert contextvars.copy_context().run(sweep.run_point, *call) == sweep.Ended()
            open_files.append(len(os.listdir("/proc/self/fd")))
    finally:
        gc.enable()
    assert open_files[-1] <= open_files[1]


def test_no_scheduler_at_the_address(folder, capsys, monkeypatch):
    monkeypatch.setattr("oralib.runs.cluster._ANSWER", 1)
    path = write_grid(folder, "points: [{x: 1}]\n")
    arguments = ["sweep", str(path), "--out", str(folder / "out")]
    assert main([*arguments, "--scheduler", "tcp://127.0.0.1:9"]) == 2
    assert "there is no scheduler at tcp://127.0.0.1:9" in capsys.readouterr().err


def test_a_sweep_that_is_killed_again_and_again(folder, workers_at_home):
    path, out = write_grid(folder, GRID), folder / "out"
    arguments = [*COMMAND, str(path), "--out", str(out), "--workers", "2"]
    moments = random.Random(20)
    for _ in range(4):
        sweep = subprocess.Popen(
            arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        time.sleep(moments.uniform(0.0, 5.0))  # all of a sweep takes about as long
        sweep.kill()
        sweep.wait()
        check_complete(out)
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (out / "table.csv").read_text() == TABLE
    check_complete(out)
    assert len([entry for entry in (out / "points").iterdir()]) == 4
    undisturbed = folder / "undisturbed"
    assert main(["sweep", str(path), "--out", str(undisturbed), "--workers", "1"]) == 0
    for name in ("table.csv", "table.json", "figure.png"):
        assert (undisturbed / name).read_bytes() == (out / name).read_bytes(), name


@pytest.mark.parametrize(
    ("number", "status", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_signal_says_how_to_go_on(folder, number, status, word):
    write_chapter(folder, extra="\ntime.sleep(1)")
    path, out = write_grid(folder, GRID), folder / "out"
    sweep = subprocess.Popen(
        [*COMMAND, str(path), "--out", str(out), "--workers", "1"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for _ in range(600):
        if (out / "points" / ".partial").exists():
            break
        time.sleep(0.1)
    if number == signal.SIGINT:
        os.killpg(sweep.pid, number)  # as a terminal does: to all processes of the group
    else:
        sweep.send_signal(number)
    _, said = sweep.communicate(timeout=60)
    assert sweep.returncode == status
    assert f"{word}; the same command goes on from here" in said
    assert "Traceback" not in said
    check_complete(out)
    assert not (out / ".partial").exists()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_signals_wait_until_the_cluster_is_there(name):
    program = f"""
import os, signal
from oralib import _signals
from oralib.runs import cluster, sweep
number = signal.{name}
signal.signal(number, _signals.interrupt)
reached = []
try:
    with sweep._interrupted_later():
        with cluster._deaf_to_interrupts():
            os.kill(os.getpid(), number)
        reached.append("the end of the block")
    reached.append("what comes after it")
except KeyboardInterrupt as error:
    assert isinstance(error, _signals.Terminated) == (number == signal.SIGTERM)
    assert reached == ["the end of the block"]
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_workers_do_not_hear_interrupts_from_their_first_moment(tmp_path):
    """Python's own helper of the first process would let them through."""
    program = """
import multiprocessing, signal
from oralib.runs import cluster

def deaf():
    raise SystemExit(7 if signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()) else 1)

if __name__ == "__main__":
    with cluster._deaf_to_interrupts():
        child = multiprocessing.get_context("spawn").Process(target=deaf)
        child.start()
    child.join()
    assert child.exitcode == 7, child.exitcode
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
"""
    (tmp_path / "program.py").write_text(program)
    subprocess.run([sys.executable, tmp_path / "program.py"], check=True)


@pytest.mark.parametrize("linked", [None, "changed", "turned"])
@pytest.mark.parametrize("what", ["helper.py", "data.csv"])
def test_what_a_chapter_reads_is_part_of_its_version(folder, capsys, what, linked, workers_at_home):
    """A module beside a notebook of one's own, and a file of data; links to such as well."""
    (folder / "helper.py").write_text("def value():\n    return 5\n")
    (folder / "data.csv").write_text("5\n")
    elsewhere = folder.with_name(folder.name + "-elsewhere")
    elsewhere.mkdir()
    if linked:
        (folder / what).rename(elsewhere / what)
        (folder / what).symlink_to(elsewhere / what)
    (folder / "unused.py").write_text("1\n")
    write_chapter(
        folder,
        extra="\nimport helper\n"
        'results.record(more=helper.value() + float(open("data.csv").read()))',
    )
    path, out = write_grid(folder, "product: {x: [1]}\nresults: [more]\n"), folder / "out"
    again = ["sweep", str(path), "--out", str(out), "--workers", "1"]
    assert main(again) == 0
    assert (out / "table.csv").read_text() == "x,more\n1.0,10.0\n"
    (folder / "unused.py").write_text("2\n")
    capsys.readouterr()
    assert main(again) == 0
    assert "1 points, 1 complete, 0 to run" in capsys.readouterr().err
    text = (folder / what).read_text().replace("5", "7")
    if linked == "turned":
        (folder / what).unlink()
        (elsewhere / "other").write_text(text)
        (folder / what).symlink_to(elsewhere / "other")
    else:
        (folder / what).write_text(text)
    assert main(again) == 0
    said = "a file that the chapter used has changed: 1 points were run by another version, and so "
    assert f"{said}is table.csv until the end; they run again" in capsys.readouterr().err
    assert (out / "table.csv").read_text() == "x,more\n1.0,12.0\n"


@pytest.mark.parametrize(
    "change", ["another path", "a package", "shadowed", "a link", "no file", "nothing"]
)
def test_modules_that_would_be_found_elsewhere_are_other_modules(
    folder, capsys, change, monkeypatch, workers_at_home
):
    """The old files are as they were, but no import leads to them any more."""
    for number in (1, 2):
        place = folder.with_name(f"{folder.name}-{number}")
        place.mkdir()
        module = place / ("helperz/part.py" if change == "no file" else "helperz.py")
        module.parent.mkdir(exist_ok=True)
        module.write_text(f"VALUE = {number}\n")
    one, two = (str(folder.with_name(f"{folder.name}-{number}")) for number in (1, 2))
    link = folder.with_name(f"{folder.name}-current")
    if change == "a package":
        (folder / "helperz.py").write_text("VALUE = 1\n")
    elif change == "a link":
        link.symlink_to(one)
        monkeypatch.setenv("PYTHONPATH", str(link))
    else:
        monkeypatch.setenv("PYTHONPATH", one)
    name = "from helperz.part import VALUE" if change == "no file" else "from helperz import VALUE"
    write_chapter(folder, extra=f"\n{name}\nresults.record(more=VALUE)")
    path, out = write_grid(folder, "product: {x: [1]}\nresults: [more]\n"), folder / "out"
    again = ["sweep", str(path), "--out", str(out), "--workers", "1"]
    assert main(again) == 0
    assert (out / "table.csv").read_text() == "x,more\n1.0,1\n"
    if change in ("another path", "no file"):
        monkeypatch.setenv("PYTHONPATH", two)
    elif change == "a link":
        link.unlink()
        link.symlink_to(two)
    elif change == "shadowed":
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([two, one]))
    elif change == "a package":
        (folder / "helperz").mkdir()
        (folder / "helperz" / "__init__.py").write_text("VALUE = 2\n")
    capsys.readouterr()
    assert main(again) == 0
    said = capsys.readouterr().err
    if change == "nothing":
        assert "1 points, 1 complete, 0 to run" in said
    else:
        assert "1 points were run by another version" in said
        assert (out / "table.csv").read_text() == "x,more\n1.0,2\n"
        assert main(again) == 0
        assert "1 points, 1 complete, 0 to run" in capsys.readouterr().err


def sweep_that_is_complete(folder, capsys, extra):
    """The command of a sweep with one point and result, which has nothing more to do."""
    write_chapter(folder, extra=extra)
    path, out = write_grid(folder, "product: {x: [1]}\nresults: [more]\n"), folder / "out"
    again = ["sweep", str(path), "--out", str(out), "--workers", "1"]
    assert main(again) == 0
    assert main(again) == 0
    assert "1 points, 1 complete, 0 to run" in capsys.readouterr().err
    return again


BY_PATH = """
spec = spec_from_file_location("tools", "../{name}/tools.py")
tools = module_from_spec(spec)
spec.loader.exec_module(tools)
results.record(more=tools.VALUE)
"""
AS_A_SCRIPT = """
import runpy
results.record(more=runpy.run_path("../{name}/tools.py")["VALUE"])
"""
AS_A_PART = """
import sys
sys.path.insert(0, "../{name}")
from package.tools import VALUE
results.record(more=VALUE)
"""


@pytest.mark.parametrize("extra", [BY_PATH, AS_A_SCRIPT, AS_A_PART])
def test_code_elsewhere_is_noticed_however_it_is_run(folder, capsys, extra, workers_at_home):
    place = folder.with_name(f"{folder.name}-elsewhere")
    (place / "package").mkdir(parents=True)
    for module in (place / "tools.py", place / "package" / "tools.py"):
        module.write_text("VALUE = 1\n")
    again = sweep_that_is_complete(folder, capsys, extra.format(name=place.name))
    (place / "tools.py").write_text("VALUE = 2\n")
    (place / "package" / "tools").mkdir()  # Python takes it for the module, if both are there
    (place / "package" / "tools" / "__init__.py").write_text("VALUE = 2\n")
    assert main(again) == 0
    assert (folder / "out" / "table.csv").read_text() == "x,more\n1.0,2\n"


SCRATCH = """
with open("scratch.txt", "w") as file:
    file.write(str(x))
open("log.txt", "a").close()
time.sleep(3)
results.record(more=float(open("scratch.txt").read()))
"""
SAME_HANDLE = """
with open("scratch.txt", "w+") as file:
    file.write(str(x))
    file.flush()
    time.sleep(3)
    file.seek(0)
    results.record(more=float(file.read()))
"""


CHANGED = """
open("scratch.txt", "a").close()
with open("scratch.txt", "r+") as file:
    file.write(str(x))
time.sleep(3)
results.record(more=float(open("scratch.txt").read()))
"""
BY_A_LINK = SCRATCH.replace('"scratch.txt"', '"/proc/self/cwd/scratch.txt"')
BY_A_PROCESS = """
import subprocess
subprocess.run(["sh", "-c", f"echo {x} > scratch.txt"], check=True)
time.sleep(3)
results.record(more=float(open("scratch.txt").read()))
"""


@pytest.mark.parametrize("extra", [SCRATCH, SAME_HANDLE, CHANGED, BY_A_LINK, BY_A_PROCESS])
def test_points_that_read_each_others_files_are_not_kept(folder, capsys, extra):
    write_chapter(folder, extra=extra)
    path, out = write_grid(folder, "product: {x: [1, 2]}\nresults: [more]\n"), folder / "out"
    words = ["sweep", str(path), "--out", str(out), "--workers"]
    assert main([*words, "2"]) == 1
    said = capsys.readouterr().err
    for number in (1, 2):
        assert f"point {number} (x={number}.0) is not kept: another point wrote scratch.txt" in said
    assert len(list((out / "set-aside").iterdir())) == 2
    assert main([*words, "1"]) == 0
    assert (out / "table.csv").read_text() == "x,more\n1.0,1.0\n2.0,2.0\n"


@pytest.mark.parametrize(
    "failure",
    [
        "raise ValueError('two')",
        "raise SystemExit",
        "n = 1",  # after prose that says it
        "results.record(more=object())",
        "from IPython.display import clear_output; results.record(more=0); clear_output()",
    ],
)
def test_a_point_that_fails_disturbs_others_as_well(folder, capsys, failure):
    fail = f"if x == 2:\n    {failure}\n"
    write_chapter(folder, extra=SCRATCH.replace("results.record(", f"{fail}results.record("))
    path, out = write_grid(folder, "product: {x: [1, 2]}\nresults: [more]\n"), folder / "out"
    assert main(["sweep", str(path), "--out", str(out), "--workers", "2"]) == 1
    said = capsys.readouterr().err
    assert "point 2 (x=2.0) failed: " in said
    assert "point 1 (x=1.0) is not kept: another point wrote scratch.txt" in said
    assert (out / "table.csv").read_text() == "x\n"


PICTURE = """
from matplotlib.figure import Figure
import numpy as np
Figure().savefig("scratch.png")
np.savez("scratch.npz", x=x)
open("log.txt", "a").close()
time.sleep(3)
results.record(more=x)
"""


HALF = """
if x == 1:
    with open("cache.txt", "w") as file:
        for line in range(300):
            print(1, file=file, flush=True)
            time.sleep(0.2)
            if os.path.exists("seen.txt"):
                break
        print(1, file=file)
else:
    while not os.path.exists("cache.txt"):
        time.sleep(0.1)
lines = open("cache.txt").read().split()
if x == 2:
    open("seen.txt", "w").close()
    time.sleep(1)
results.record(more=len(lines))
"""


def test_a_cache_that_another_point_has_half_written_is_no_data(folder, capsys):
    write_chapter(folder, extra=HALF)
    path, out = write_grid(folder, "product: {x: [1, 2]}\nresults: [more]\n"), folder / "out"
    words = ["sweep", str(path), "--out", str(out), "--workers", "2"]
    assert main(words) == 1
    lines = len((folder / "cache.txt").read_text().split())
    assert (out / "table.csv").read_text() == f"x,more\n1.0,{lines}\n"
    assert main(words) == 0
    assert (out / "table.csv").read_text() == f"x,more\n1.0,{lines}\n2.0,{lines}\n"


REMOVED = BY_A_PROCESS.replace("(3)", "(0)") + "\nos.remove('scratch.txt')\n"
MISSED = """
try:
    open("scratch.txt").close()
except FileNotFoundError:
    pass
""" + BY_A_PROCESS.replace("(3)", "(0)")


@pytest.mark.parametrize(("extra", "points"), [(REMOVED, [1, 2]), (MISSED, [1])])
def test_what_a_process_makes_may_be_removed_or_missed(folder, extra, points, workers_at_home):
    write_chapter(folder, extra=extra)
    path = write_grid(folder, f"product: {{x: {points}}}\nresults: [more]\n")
    assert main(["sweep", str(path), "--out", str(folder / "out"), "--workers", "1"]) == 0
    rows = "".join(f"{x}.0,{x}.0\n" for x in points)
    assert (folder / "out" / "table.csv").read_text() == f"x,more\n{rows}"


def test_a_point_that_fails_makes_its_files_as_well(folder, workers_at_home):
    fail = BY_A_PROCESS.replace("(3)", "(0)") + "\nassert x < 2\n"
    write_chapter(folder, extra=fail)
    path, out = write_grid(folder, "product: {x: [1, 2]}\nresults: [more]\n"), folder / "out"
    assert main(["sweep", str(path), "--out", str(out), "--workers", "1"]) == 1
    assert (out / "table.csv").read_text() == "x,more\n1.0,1.0\n"


WAIT_FOR_IT = """
while not os.path.exists("made.txt"):
    time.sleep(0.1)
time.sleep(0.3)
results.record(more=float(open("made.txt").read()))
"""


def test_what_somebody_else_makes_while_a_point_runs_is_an_input(folder, workers_at_home):
    write_chapter(folder, extra=WAIT_FOR_IT)
    path, out = write_grid(folder, "product: {x: [1]}\nresults: [more]\n"), folder / "out"
    words = ["sweep", str(path), "--out", str(out)]
    made = folder / "made.txt"
    timer = threading.Timer(6, made.write_text, ["5"])
    timer.start()
    assert main(words) == 0
    timer.join()
    assert (out / "table.csv").read_text() == "x,more\n1.0,5.0\n"
    made.write_text("7")
    assert main(words) == 0
    assert (out / "table.csv").read_text() == "x,more\n1.0,7.0\n"


def test_nothing_is_run_from_the_current_folder_to_find_modules(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("open('ran', 'w').close()\nraise SystemExit\n")
    monkeypatch.chdir(tmp_path)
    record._paths_of_a_process.cache_clear()
    library = os.path.realpath(os.path.dirname(os.__file__))
    assert library in map(os.path.realpath, record._paths_of_a_process())
    assert [path.name for path in tmp_path.iterdir()] == ["json.py"]


def test_results_that_no_point_has_are_named(folder, capsys, workers_at_home):
    write_chapter(
        folder, extra="\nresults.record(nothing=math.nan)".replace("math", "__import__('math')")
    )
    path = write_grid(folder, "product: {x: [1]}\nresults: [nothing, sqare]\nshow: sqare\n")
    assert main(["sweep", str(path), "--out", str(folder / "out")]) == 0
    said = capsys.readouterr().err
    assert said.count("the table has no result") == 1
    assert "the table has no result sqare: no complete point has recorded it" in said


def test_large_files_are_read_once(folder, monkeypatch, workers_at_home):
    (folder / "large.bin").write_bytes(bytes(2_000_000))
    old = time.time() - 60
    os.utime(folder / "large.bin", (old, old))
    time.sleep(2.1)  # its other time cannot be set
    write_chapter(folder, extra="\nopen('large.bin', 'rb').close()")
    grid = runs.read_grid(str(write_grid(folder, "product: {x: [1, 2, 3]}\n")))
    runs.sweep_grid(grid, folder / "out", workers=1)
    read = []
    known = record.file_digest
    monkeypatch.setattr(record, "file_digest", lambda path: read.append(path) or known(path))
    record._known.clear()
    runs.sweep_grid(grid, folder / "out", workers=1)
    assert [Path(path).name for path in read].count("large.bin") == 1
    (folder / "large.bin").write_bytes(bytes(1_999_999) + b"1")
    code = sweep.code_version(grid.chapter)
    results = read_results(next((folder / "out" / "points").iterdir()))
    assert not record.is_current(results, grid.chapter, code)


def test_a_script_may_add_folders_to_its_path(folder, capsys, workers_at_home, monkeypatch):
    """Kernels do not look there."""
    (folder / "utils.py").write_text("VALUE = 1\n")
    (folder / "tools").mkdir()
    (folder / "tools" / "utils.py").write_text("VALUE = 2\n")
    again = sweep_that_is_complete(
        folder, capsys, "\nimport utils; results.record(more=utils.VALUE)"
    )
    monkeypatch.syspath_prepend(str(folder / "tools"))
    monkeypatch.syspath_prepend(str(folder))
    assert main(again) == 0
    assert "1 points, 1 complete, 0 to run" in capsys.readouterr().err


def test_points_may_write_the_same_files_if_they_do_not_read_them(folder):
    write_chapter(folder, extra=PICTURE)
    path, out = write_grid(folder, "product: {x: [1, 2]}\nresults: [more]\n"), folder / "out"
    assert main(["sweep", str(path), "--out", str(out), "--workers", "2"]) == 0


@pytest.mark.parametrize("make", [BY_A_PROCESS, BY_A_PROCESS.replace("scratch", "scratch-{x}")])
def test_what_a_process_of_the_notebook_makes_is_no_input(folder, capsys, make, workers_at_home):
    """Each point makes it anew, so that it is not as the point before has left it."""
    write_chapter(folder, extra=make.replace('"scratch-', 'f"scratch-').replace("(3)", "(0)"))
    path, out = write_grid(folder, "product: {x: [1, 2, 3]}\nresults: [more]\n"), folder / "out"
    again = ["sweep", str(path), "--out", str(out), "--workers", "1"]
    assert main(again) == 0
    assert main(again) == 0
    assert "3 points, 3 complete, 0 to run" in capsys.readouterr().err


def test_a_file_that_is_written_as_it_was_read_is_an_input(folder, capsys, workers_at_home):
    """Data that are cleaned in place, where there is nothing more to clean."""
    (folder / "data.csv").write_text("5\n")
    clean = """
text = open("data.csv").read()
with open("data.csv", "w") as file:
    file.write(text.strip() + "\\n")
results.record(more=float(text))
"""
    again = sweep_that_is_complete(folder, capsys, clean)
    (folder / "data.csv").write_text("7\n")
    assert main(again) == 0
    assert (folder / "out" / "table.csv").read_text() == "x,more\n1.0,7.0\n"


def test_a_module_that_the_notebook_writes_is_no_input(folder, capsys, workers_at_home):
    write = """
with open("settings_of_mine.py", "w") as file:
    file.write(f"VALUE = {x}")
import settings_of_mine
results.record(more=settings_of_mine.VALUE)
"""
    write_chapter(folder, extra=write)
    path, out = write_grid(folder, "product: {x: [1, 2]}\nresults: [more]\n"), folder / "out"
    again = ["sweep", str(path), "--out", str(out), "--workers", "1"]
    assert main(again) == 0
    assert (out / "table.csv").read_text() == "x,more\n1.0,1.0\n2.0,2.0\n"


def test_a_script_that_sweeps_is_not_executed_by_the_workers(folder):
    path = write_grid(folder, "product: {x: [1, 2]}\nresults: [square]\n")
    script = folder / "script.py"
    script.write_text(
        'open("begun", "a").write("once")\n'
        "from oralib import runs\n"
        f'print(runs.sweep_grid(runs.read_grid({path.name!r}), "out").table.square.tolist())\n'
    )
    done = subprocess.run(
        [sys.executable, script], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[3.0, 6.0]\n"
    assert (folder / "begun").read_text() == "once"


def test_paths_may_be_words(folder, capsys, workers_at_home, monkeypatch):
    monkeypatch.chdir(folder)
    write_grid(folder, "product: {x: [1]}\nresults: [square]\n")
    grid = runs.read_grid("grid.yml")
    assert runs.sweep_grid(grid, "out", workers=1).table.square.tolist() == [3.0]
    assert runs.run_chapter(grid.chapter, {}, "run")["results"]["square"] == 3.0
    assert not runs.check_free("another")
    assert [chapter.name for chapter in runs.chapters(".")] == ["small"]
    for call, name in (
        (lambda: runs.read_grid(3), "path"),
        (lambda: runs.sweep_grid(grid, None), "out"),
        (lambda: runs.run_chapter(grid.chapter, {}, 3), "folder"),
        (lambda: runs.check_free(None), "folder"),
    ):
        with pytest.raises(TypeError, match=f"{name} must be a path, got {name}="):
            call()


def test_a_name_in_the_place_of_what_has_it_is_refused(folder, monkeypatch):
    monkeypatch.chdir(folder)
    write_grid(folder, "product: {x: [1]}\n")
    grid = runs.read_grid("grid.yml")
    for call, name in (
        (lambda: runs.sweep_grid("grid.yml", "out"), "grid"),
        (lambda: runs.sweep_grid(grid, "out", workers="2"), "workers"),
        (lambda: runs.sweep_grid(grid, "out", workers=1.5), "workers"),
        (lambda: runs.sweep_grid(grid, "out", scheduler=5), "scheduler"),
        (lambda: runs.run_chapter("small", {}, "out"), "chapter"),
        (lambda: runs.run_chapter(grid.chapter, "out", {}), "given"),
        (lambda: runs.run_chapter(grid.chapter, ["x=3"], "out"), "given"),
        (lambda: runs.described("small"), "chapter"),
        (lambda: runs.check_parameters("small", {}), "chapter"),
        (lambda: runs.default_folder("small", {}), "chapter"),
        (lambda: runs.point_key("small", {}), "chapter"),
        (lambda: runs.find_chapter(6), "name"),
        (lambda: runs.check_parameters(grid.chapter, {1: 1}), "names of parameters"),
    ):
        with pytest.raises((TypeError, ValueError), match=f"{name} must be .*got"):
            call()
    assert not (folder / "out").exists()


def test_parameters_may_be_those_of_numpy(folder):
    chapter = runs.find_chapter(folder / "small.ipynb")
    given = {"x": np.float32(2), "n": np.int64(3), "ratios": np.array([1, 2])}
    given |= {"seed": np.uint8(4), "word": np.str_("b")}
    plain = {"x": 2.0, "n": 3, "ratios": [1.0, 2.0], "seed": 4, "word": "b"}
    found = runs.check_parameters(chapter, given)
    assert json.dumps(found) == json.dumps(plain)
    mixed = runs.check_parameters(chapter, {"ratios": [np.int64(1), np.float32(0.5)]})
    assert json.dumps(mixed) == json.dumps({"ratios": [1.0, 0.5]})
    with pytest.raises(ValueError, match=r"n must be an integer, got n=2\.5"):
        runs.check_parameters(chapter, {"n": np.float64(2.5)})


def test_an_installed_package_that_is_shadowed_later(folder, capsys, workers_at_home):
    use = "\nimport toolz\nresults.record(more=toolz.last([1, 2, 3]))"
    again = sweep_that_is_complete(folder, capsys, use)
    (folder / "toolz.py").write_text("def last(values):\n    return 100\n")
    assert main(again) == 0
    assert (folder / "out" / "table.csv").read_text() == "x,more\n1.0,100\n"


def test_failed_points_are_not_in_the_table(folder, capsys, monkeypatch, workers_at_home):
    """They have an earlier record, of modules that are no longer found."""
    for number, text in ((1, "return 1"), (2, "return 1 / (x - 2)")):
        place = folder.with_name(f"{folder.name}-{number}")
        place.mkdir()
        (place / "helperz.py").write_text(f"def f(x):\n    {text}\n")
    write_chapter(folder, extra="\nimport helperz\nresults.record(more=helperz.f(x))")
    path, out = write_grid(folder, "product: {x: [1, 2]}\nresults: [more]\n"), folder / "out"
    again = ["sweep", str(path), "--out", str(out), "--workers", "1"]
    for number, status in ((1, 0), (2, 1)):
        monkeypatch.setenv("PYTHONPATH", str(folder.with_name(f"{folder.name}-{number}")))
        assert main(again) == status
    assert (out / "table.csv").read_text() == "x,more\n1.0,-1.0\n"


def test_python_by_another_name_is_the_same(folder):
    record = {"provenance": {"found": {"helperz": "/elsewhere"}}}
    chapter = runs.find_chapter(str(folder / "small.ipynb"))
    place = Path(sys.executable).parent
    for executable, same in ((place / "python3.x", False), (Path("/other/python"), True)):
        record["provenance"]["executable"] = str(executable)
        assert would_import_the_same(record, chapter) is same


def test_sweeps_of_one_grid_at_one_scheduler_do_not_share_tasks():
    names = []

    class Client:
        def submit(self, *call, key, **options):
            names.append(key)
            raise InterruptedError

    for _ in range(2):
        with pytest.raises(InterruptedError):
            next(sweep._ended(Client(), {0: ("chapter", {}, "out", "same", "code", 1)}))
    assert names[0] != names[1]


def test_points_whose_files_change_meanwhile_are_not_complete(folder, capsys, workers_at_home):
    """The first point has read what the second one changes."""
    (folder / "data.csv").write_text("5\n")
    program = 'data = open("data.csv").read()\nif x == 2:\n    os.system("echo 7 > data.csv")'
    write_chapter(folder, extra=f"\n{program}")
    path, out = write_grid(folder, "product: {x: [1, 2]}\nresults: [square]\n"), folder / "out"
    assert main(["sweep", str(path), "--out", str(out), "--workers", "1"]) == 1
    said = capsys.readouterr().err
    assert "point 1 (x=1.0) is not complete: a file that it used has changed meanwhile" in said


def test_a_sweep_whose_folder_is_taken_away_says_so(folder, capsys, workers_at_home):
    write_chapter(folder, extra='\nimport shutil\nshutil.rmtree("out")')
    path, out = write_grid(folder, "product: {x: [1]}\n"), folder / "out"
    assert main(["sweep", str(path), "--out", str(out), "--workers", "1"]) != 0
    assert "is gone" in capsys.readouterr().err


def test_a_bad_scheduler_is_refused_before_anything_is_written(folder, capsys):
    path, out = write_grid(folder, "product: {x: [1]}\n"), folder / "out"
    assert main(["sweep", str(path), "--out", str(out), "--scheduler", "no address"]) == 2
    assert "scheduler must be an address" in capsys.readouterr().err
    assert not out.exists()


# ------------------------------------------------------------------------------- the table


def table_of(monkeypatch, points, records, results=None):
    """The table of a sweep whose points have these results; None for one that failed."""
    chapter = SimpleNamespace(name="small", path=Path("small.ipynb"), parameters={})
    axes = tuple(dict.fromkeys(name for point in points for name in point))
    monkeypatch.setattr(tables, "settings", lambda chapter, point: dict(point))
    grid = SimpleNamespace(chapter=chapter, points=points, axes=axes, results=results, show=None)
    keys = [str(i) for i in range(len(points))]
    told = zip(keys, records, strict=True)
    complete = {key: {"results": found} for key, found in told if found is not None}
    return tables.table_of(grid, keys, complete), grid


def written(tmp_path, table, grid):
    """The two files of a table, the JSON as it would be read elsewhere."""

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    tables.write_table(tmp_path, table, grid)
    listed = json.loads((tmp_path / "table.json").read_text(), parse_constant=refuse)
    return (tmp_path / "table.csv").read_text(), listed


def test_a_result_with_the_name_of_an_axis_does_not_take_its_place(monkeypatch):
    table, _ = table_of(monkeypatch, [{"aa": 1}], [{"aa": 99, "x": 2}])
    assert table.to_dict("records") == [{"aa": 1, "aa (result)": 99, "x": 2}]


def test_what_is_missing_is_not_what_is_no_number(monkeypatch, tmp_path):
    points = [{"x": 1.0, "r": [1, 2]}, {"x": math.inf, "r": [3]}, {"x": 2.0, "r": []}]
    records = [{"y": math.nan, "n": 3, "w": 'a "b", c', "b": True}, {"y": 0.25}, {"y": -math.inf}]
    table, grid = table_of(monkeypatch, points, records)
    assert list(table.columns) == ["x", "r", "y", "n", "w", "b"]
    assert [table[name].dtype.kind for name in ("x", "y")] == ["f", "f"]
    text, listed = written(tmp_path, table, grid)
    assert text == (
        'x,r,y,n,w,b\n1.0,"[1, 2]",nan,3,"a ""b"", c",True\ninf,[3],0.25,,,\n2.0,[],-inf,,,\n'
    )
    assert listed[0] == {"x": 1.0, "r": [1, 2], "y": "nan", "n": 3, "w": 'a "b", c', "b": True}
    assert listed[1] == {"x": "inf", "r": [3], "y": 0.25, "n": None, "w": None, "b": None}
    assert (tmp_path / "figure.png").exists()


def test_no_picture_of_an_earlier_table_is_left(monkeypatch, tmp_path, capsys):
    """If there is nothing to draw any more, the old one would pass for that of the new table."""
    table, grid = table_of(monkeypatch, [{"x": 1.0}, {"x": 2.0}], [{"y": 1.0}, {"y": 2.0}])
    written(tmp_path, table, grid)
    old = (tmp_path / "figure.png").read_bytes()
    table, grid = table_of(monkeypatch, [{"x": 1.0}, {"x": 2.0}], [{"y": math.inf}] * 2)
    written(tmp_path, table, grid)
    assert not (tmp_path / "figure.png").exists()
    assert (tmp_path / "set-aside" / "figure.png-1").read_bytes() == old
    assert "figure.png of an earlier one is now" in capsys.readouterr().err


def test_a_table_without_points(monkeypatch, tmp_path):
    table, grid = table_of(monkeypatch, [{"x": 1.0}], [None])
    assert len(table) == 0
    assert written(tmp_path, table, grid) == ("x\n", [])
    assert not (tmp_path / "figure.png").exists()


def test_the_table_of_a_sweep_is_a_frame(folder, workers_at_home):
    grid = runs.read_grid(write_grid(folder, "product: {x: [1, 2]}\nresults: [square]\n"))
    done = runs.sweep_grid(grid, folder / "out", workers=1)
    assert done.table["square"].tolist() == [3.0, 6.0]
    assert done.table["square"].dtype == float
    assert done.path == folder / "out" / "table.csv"
    assert pd.read_csv(done.path).equals(done.table)


# ------------------------------------------------------------------------------ the picture


@pytest.fixture
def drawn(monkeypatch):
    """What is drawn, and how."""
    calls = []
    for name in ("lines", "heatmap"):
        draw = getattr(picture.figures, name)

        def record(*given, draw=draw, name=name, **options):
            calls.append((name, given, options))
            return draw(*given, **options)

        monkeypatch.setattr(picture.figures, name, record)
    return calls


def product_table(**axes):
    rows = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    table = pd.DataFrame(rows)
    return table.assign(y=[float(i) for i in range(len(table))], y_se=0.5, word="a")


def test_one_parameter_is_a_curve_with_its_errors(drawn, tmp_path):
    table = product_table(x=[1, 10, 2])
    assert picture.draw_table(table, ["x"], None, tmp_path / "a.png")
    ((name, (curves, *labels), options),) = drawn
    assert (name, labels, options) == ("lines", ["x", "y"], {"log_x": False})
    assert [column.tolist() for column in curves["y"]] == [[1, 2, 10], [0, 2, 1], [0.5, 0.5, 0.5]]
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_one_parameter_is_a_curve_however_many_points_there_are(drawn, tmp_path):
    table = product_table(x=range(40), k=[1])
    assert picture.draw_table(table, ["x", "k"], None, tmp_path / "a.png")
    ((name, (curves, *_), _),) = drawn
    assert (name, len(curves["y"][0])) == ("lines", 40)


def test_few_settings_are_curves_and_many_are_a_map(drawn, tmp_path):
    path = tmp_path / "a.png"
    assert picture.draw_table(product_table(x=[1, 100, 2], k=[5, 6]), ["x", "k"], "y", path)
    name, (curves, *_), options = drawn.pop()
    assert (name, list(curves), options) == ("lines", ["k = 5", "k = 6"], {"log_x": True})
    assert curves["k = 6"][1].tolist() == [1, 5, 3]
    assert picture.draw_table(product_table(x=[1, 2], k=range(6)), ["x", "k"], "y", path)
    name, (values, columns, rows, *labels), _ = drawn.pop()
    assert (name, columns, rows, labels) == ("heatmap", [1, 2], [*range(6)], ["x", "k", "y"])
    assert values[2].tolist() == [2, 8]


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([20240001, 20240002], ["20240001", "20240002"]),
        ([1_000_000, 1_000_001], ["1000000", "1000001"]),
        ([0.5, 2.0, 1e-5], ["0.5", "2", "1e-05"]),
        ([1.0000001, 1.0000002], ["1.0000001", "1.0000002"]),
        ([1.0, 1.0000000000000002], ["1", "1.0000000000000002"]),
    ],
)
def test_curves_that_differ_little_have_labels_of_their_own(drawn, tmp_path, values, labels):
    table = product_table(x=[1, 2], k=values)
    assert picture.draw_table(table, ["x", "k"], "y", tmp_path / "a.png")
    ((_, (curves, *_), _),) = drawn
    assert list(curves) == [f"k = {label}" for label in labels]


def test_the_mean_of_something_infinite_is_not_drawn(drawn, tmp_path):
    table = product_table(x=[1, 2], k=[5, 6, 7], seed=[1, 2])
    table.loc[0, "y"] = float("inf")
    assert picture.draw_table(table, ["x", "k", "seed"], "y", tmp_path / "a.png")
    ((name, (values, *_), _),) = drawn
    assert name == "heatmap"
    assert [str(value) for value in values[0]] == ["nan", "6.5"]


def test_three_parameters(drawn, tmp_path):
    path = tmp_path / "a.png"
    few = product_table(x=[1, 2], law=["a", "b"], k=[5, 6])
    assert picture.draw_table(few, ["x", "law", "k"], "y", path)
    name, (curves, *_), _ = drawn.pop()
    assert list(curves) == [f"law = {law}, k = {k}" for law in "ab" for k in (5, 6)]
    many = product_table(x=[1, 2], k=[5, 6, 7], seed=[1, 2])
    assert picture.draw_table(many, ["x", "k", "seed"], "y", path)
    name, (values, *_, label), _ = drawn.pop()
    assert (name, label) == ("heatmap", "mean y over seed")
    assert values[0].tolist() == [0.5, 6.5]


def test_no_picture_without_numbers(tmp_path):
    for table, axes in (
        (pd.DataFrame({"law": ["a", "b"], "y": [1.0, 2.0]}), ["law"]),
        (pd.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"]}), ["x"]),
        (pd.DataFrame({"x": [1.0, 2.0], "y": [True, False]}), ["x"]),
        (pd.DataFrame({"x": [1.0, 2.0], "y": [math.nan, math.inf]}), ["x"]),
    ):
        assert not picture.draw_table(table, axes, "y", tmp_path / "a.png")
        assert not (tmp_path / "a.png").exists()

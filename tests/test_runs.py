"""The contract of runs and sweeps, sentence by sentence."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import psutil
import pytest
from bs4 import BeautifulSoup

from orabook import prose, runs
from orabook.__main__ import main
from orabook.builder import downloads, links, page
from orabook.runs import run, sweep

ROOT = Path(__file__).parent.parent
code, markdown = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell

PARAMETERS = """x: float = 1.0  # a number
n: int = 2  # an integer
flag: bool = False  # a switch
word: str = "a"  # a word
numbers: list = [1, 2]  # a list
seed: int = 1  # seed of all random numbers"""


@pytest.fixture
def small(tmp_path):
    """A chapter that takes a second, and fails where its word says so."""
    last = (
        'if word == "wait":\n    import pathlib, time\n    pathlib.Path("waiting").touch()\n'
        '    time.sleep(60)\nassert word != "fail", f"cannot do {x=}"\n'
        'results.record(square=y, infinite=float("inf"))'
    )
    cells = [
        markdown("# A chapter\n\n:::{prf:theorem} Squares\n:label: thm-a\nAre positive.\n:::"),
        code(PARAMETERS, metadata={"tags": ["parameters"]}),
        code(
            "from orabook import results\ny = x * x + n",
            metadata={"mystnb": {"image": {"alt": "The square is 1."}}},
        ),
        markdown("![a picture](beside.png)"),
        markdown('The square is {eval}`y`, or {eval}`f"{y:.2f} ± {n}"`, by $y = x^2 + n$.'),
        markdown("The word is {eval}`word`."),
        markdown(
            "See {doc}`which-bound`, {doc}`it <09-exact-bound>`, {prf:ref}`thm-a`, "
            "{prf:ref}`thm-valid-worst`, {numref}`fig-intro-game` and [that](which-bound.ipynb)."
        ),
        code(last),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "language": "python", "display_name": "P"}
    path = tmp_path / "small.ipynb"
    nbformat.write(notebook, path)
    path.with_name("beside.png").write_bytes((ROOT / "book" / "favicon.png").read_bytes())
    return path


# ---------------------------------------------------------------------- parameters, before any work


def test_values_are_converted_to_the_declared_types(small):
    chapter = runs.find_chapter(small)
    own = {"x": 1.0, "n": 2, "flag": False, "word": "a", "numbers": [1, 2], "seed": 1}
    assert runs.check_parameters(chapter, {}) == own
    for name, given, value in [
        ("x", "4", 4.0),
        ("n", "1e4", 10_000),
        ("n", 7.0, 7),
        ("flag", "True", True),
        ("word", "12", "12"),
        ("numbers", "1,2.5", [1, 2.5]),
        ("numbers", "a, b", ["a", "b"]),
        ("numbers", np.arange(2), [0, 1]),
    ]:
        found = runs.check_parameters(chapter, {name: given})
        assert found == {**own, name: value}
        assert type(found[name]) is type(value)


def test_bad_parameters_are_refused_before_any_work(small):
    chapter = runs.find_chapter(small)
    for name, given, said in [
        ("y", 1, r"y is not a parameter of small, got 1.*its parameters: x, n, flag"),
        ("sed", 1, r"did you mean seed\?"),
        ("n", "1.5", r"n must be an integer, got n=1.5"),
        ("x", "one", r"x must be a number, got x='one'"),
        ("numbers", 3, r"numbers must be a list such as 1,2,3, got numbers=3"),
        ("numbers", "{1: 2}", r"numbers must be a list such as 1,2,3, got numbers=\{1: 2\}"),
        ("numbers", "1: 2", r"numbers must be a list such as 1,2,3, got numbers=\[\{1: 2\}\]"),
        ("seed", -1, r"seed must be at least 0, got seed=-1"),
    ]:
        with pytest.raises(ValueError, match=said):
            runs.run_chapter(chapter, {name: given}, small.parent / "out")
    assert not (small.parent / "out").exists()


def test_the_command_line_names_what_is_wrong(small, capsys, monkeypatch):
    monkeypatch.chdir(small.parent)
    for words, said in [
        (["run", "small.ipynb", "-p", "n"], "-p needs name=value, got -p n"),
        (["run", "small.ipynb", "-p", "n=1", "-p", "n=2"], "n is given twice"),
        (["run", "06-dp-sdg"], "did you mean 06-dp-sgd?"),
        (["run", "none.ipynb"], "there is no notebook none.ipynb"),
        (["run"], "run needs a chapter; --list shows them"),
    ]:
        assert main(words) == 2
        assert said in capsys.readouterr().err
    assert main(["run", "small.ipynb", "--list"]) == 0
    assert "seed     int    1  seed of all random numbers" in capsys.readouterr().out
    # As outside the repository; ``orabook.runs.chapters`` is also the name of a function.
    monkeypatch.setattr(sys.modules["orabook.runs.chapters"], "BOOK", small.parent / "nowhere")
    assert main(["run", "--list"]) == 2
    assert "there is no book at" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------- one run


def test_a_run_leaves_notebook_results_and_page(small, capsys, monkeypatch):
    out = small.parent / "out"
    other = small.parent / "jupyter" / "kernels" / "python3" / "kernel.json"  # no kernel of ours
    other.parent.mkdir(parents=True)
    other.write_text('{"argv": ["false"], "display_name": "P", "language": "python"}')
    monkeypatch.setenv("JUPYTER_PATH", str(other.parents[2]))
    odd = "word=a`<b>*bold*</b>"
    assert main(["run", str(small), "-p", "x=3", "-p", odd, "--out", str(out)]) == 0
    assert "square    11.0" in capsys.readouterr().out
    files = {"notebook.ipynb", "page.html", "results.csv", "results.json"}
    assert {path.name for path in out.iterdir()} == files
    record = json.loads((out / "results.json").read_text())
    assert record["chapter"] == "small"
    assert record["parameters"]["x"] == 3.0
    assert record["results"] == {"square": 11.0, "infinite": "inf"}
    assert {"seed", "sources", "python", "inputs", "commit"} <= set(record["provenance"])
    assert record["provenance"]["packages"]["numpy"] == np.__version__
    assert (out / "results.csv").read_text() == "name,value\nsquare,11.0\ninfinite,inf\n"
    notebook = nbformat.read(out / "notebook.ipynb", 4)
    sources = [cell.source for cell in notebook.cells]
    assert "The square is 11.0, or 11.00 ± 2, by $y = x^2 + n$." in sources
    said = [cell.metadata.mystnb.image.alt for cell in notebook.cells if "mystnb" in cell.metadata]
    assert said == ["With the chapter's own parameters: The square is 1."]
    html = BeautifulSoup((out / "page.html").read_text(), "html.parser")
    words = " ".join(html.article.get_text().split())
    assert "Theorem 1 (Squares)" in words
    assert "The square is 11.0, or 11.00 ± 2" in words
    assert "Run with other parameters. Here x is 3.0 instead of 1.0; word is" in words
    assert "The word is a`<b>*bold*</b>." in words
    assert words.count("a`<b>*bold*</b>") == 3  # also at the top and in the cell of parameters
    assert (
        "See Which bound may I use?, it, Theorem 1, Theorem “Worst case of full feedback” in "
        "F. Our theorems and proofs, Fig. 2 in 1. Introduction and that."
    ) in words
    assert html.title.string == "A chapter"
    assert not html.select("[src^=http], link[href]")  # all of it is in the file
    assert not html.select("article a[href]:not([href^='#'])")
    assert html.select_one("img[alt='a picture']")["src"].startswith("data:image/png;base64,")


@pytest.mark.parametrize("path", sorted((ROOT / "book").glob("*.ipynb")), ids=lambda p: p.stem)
def test_no_number_in_prose_is_committed(path):
    """papermill copies the metadata of cells, and would show it beside other parameters."""
    assert all(prose.VALUES not in cell.metadata for cell in nbformat.read(path, 4).cells)


@pytest.mark.slow
@pytest.mark.parametrize("words", ["run small.ipynb -p word=wait", "sweep grid.yml"])
def test_ctrl_c_is_one_line(small, words):
    """The kernel is interrupted together with the run, and workers while they start."""
    write_grid(small.parent, "points: [{}]")
    command = [sys.executable, "-m", "orabook", *words.split()]
    started = subprocess.Popen(
        command, stderr=subprocess.PIPE, start_new_session=True, cwd=small.parent, text=True
    )
    for _ in range(1200):
        workers = psutil.Process(started.pid).children()[1:]  # the first tracks resources
        if (small.parent / "waiting").exists() or workers:
            break
        time.sleep(0.05)
    os.killpg(started.pid, signal.SIGINT)
    said = started.communicate()[1].removeprefix("0 of 1 points are complete\n")
    assert said == "interrupted\n"
    assert started.returncode == 130


def test_the_commit_is_that_of_our_own_repository(tmp_path, monkeypatch):
    """An archive may have been unpacked within somebody else's."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setattr(downloads, "ROOT", tmp_path / "unpacked")
    assert downloads.ask_git("rev-parse", "--is-inside-work-tree") == ""


def test_nothing_is_overwritten(small, monkeypatch):
    monkeypatch.setattr(run.papermill, "execute_notebook", executed)
    chapter, out = runs.find_chapter(small), small.parent / "out"
    out.mkdir()
    (out / "mine.txt").write_text("of somebody else")
    with pytest.raises(ValueError, match=r"out exists; give another folder"):
        runs.run_chapter(chapter, {}, out, page=False)
    runs.run_chapter(chapter, {}, out, page=False, force=True)
    (old,) = small.parent.glob("out-old-*")
    assert (old / "mine.txt").read_text() == "of somebody else"
    assert (out / "results.json").exists()


def test_failed_runs_say_why_and_leave_notebooks(small, capsys):
    out = small.parent / "out"
    assert main(["run", str(small), "-p", "word=fail", "--out", str(out)]) == 1
    said = capsys.readouterr().err
    assert "small failed: AssertionError: cannot do x=1.0 (see " in said
    assert not out.exists()
    (failed,) = small.parent.glob("out-failed-*")
    assert "cannot do" in (failed / "notebook.ipynb").read_text()
    assert not list(small.parent.glob(".out*"))


def executed(notebook, *_, **__):
    """A notebook as papermill returns it, without a kernel."""
    notebook.metadata["papermill"] = nbformat.NotebookNode()
    return notebook


def test_runs_without_page_fail_and_leave_results(small, capsys, monkeypatch):
    """As on a full disk."""
    monkeypatch.setattr(run.papermill, "execute_notebook", executed)
    monkeypatch.setattr(run, "BOOK", small.parent / "book")
    small.with_name("_config.yml").touch()
    failing = small.with_name("python")
    failing.write_text("#!/bin/sh\necho warning\necho 'OSError: [Errno 28] full' >&2\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr(run.sys, "executable", str(failing))
    out = small.parent / "out"
    assert main(["run", str(small), "--out", str(out)]) == 1
    said = f"the page could not be made: OSError: [Errno 28] full (the results are in {out})"
    assert f"small failed: {said}" in capsys.readouterr().err
    assert {path.name for path in out.iterdir()} == {
        "notebook.ipynb",
        "results.csv",
        "results.json",
    }


def test_a_page_is_written_whole_or_not(tmp_path, monkeypatch):
    def fill(path, text, **_):
        path.write_bytes(text[:2].encode())
        raise OSError(errno.ENOSPC, "No space left on device")

    page.write_page("a page", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "a page"
    (tmp_path / "page.html").unlink()
    monkeypatch.setattr(Path, "write_text", fill)
    with pytest.raises(OSError, match="No space left"):
        page.write_page("a page", tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_every_reference_to_another_page_has_words():
    told = links.book_at(ROOT)
    seen = 0
    for path in (ROOT / "book").glob("*.ipynb"):
        cells = nbformat.read(path, 4).cells
        prose = [cell.source for cell in cells if cell.cell_type == "markdown"]
        own = {label for text in prose for label in links.labels_in(text)}
        for text in prose:
            left = re.findall(
                r"\{(doc|ref|numref|prf:ref)\}`(?:[^`<]*<)?([^`>]+)",
                links.in_words(text, told, own),
            )
            assert {target for _, target in left} <= own, path.stem
            seen += len(left)
    assert seen > 50
    for words in told.labels.values():
        assert "{" not in re.sub(r"\$.*?\$", "", words), words


def test_what_was_edited_meanwhile_does_not_land(small, monkeypatch):
    chapter, out = runs.find_chapter(small), small.with_name("out")
    monkeypatch.setattr(run.papermill, "execute_notebook", lambda *_, **__: small.write_text("2"))
    with pytest.raises(runs.RunFailed, match=r"an input was edited meanwhile; run it again \(see "):
        runs.run_chapter(chapter, {}, out, inputs=[small])
    monkeypatch.setattr(run, "IMPORTED", "as a worker did, weeks ago")
    with pytest.raises(ValueError, match="edited after this process imported it; restart it"):
        runs.run_chapter(chapter, {}, out)
    assert not out.exists()


# -------------------------------------------------------------------------------------- the names


def test_names_of_runs_follow_their_content(small, tmp_path, monkeypatch):
    data, other = tmp_path / "data.csv", tmp_path / "other" / "data.csv"
    other.parent.mkdir()
    data.write_text("1")
    other.write_text("1")

    def key(**given):
        chapter = runs.find_chapter(small)
        parameters = runs.check_parameters(chapter, {"x": 2} | given)
        return run.key_of(parameters, run.origin_of(chapter, [data, other]))

    seen = [key()]
    notebook = nbformat.read(small, 4)
    notebook.cells[2].outputs = [nbformat.v4.new_output("stream", text="seen")]
    nbformat.write(notebook, small)
    assert key() == seen[0]  # outputs are no part of it
    assert key(x="2.0", n=2) == seen[0]
    seen.append(key(n=3))
    for path in (data, other):
        path.write_text("2")
        seen.append(key())
    notebook.cells[2].source += "  # changed"
    nbformat.write(notebook, small)
    seen.append(key())
    package = tmp_path / "orabook"
    package.mkdir()
    monkeypatch.setattr(run, "files", lambda name: tmp_path / name)
    for source in ("a = 1", "a = 2"):  # sources are read again each time
        (package / "module.py").write_text(source)
        seen.append(key())
    monkeypatch.setattr(run, "version", lambda name: "0")
    seen.append(key())
    monkeypatch.setattr(run.platform, "python_version", lambda: "3.0")
    seen.append(key())
    assert len(set(seen)) == len(seen)


# ------------------------------------------------------------------------------------------ grids


def write_grid(folder, text):
    path = folder / "grid.yml"
    path.write_text(f"chapter: small.ipynb\n{text}")
    return path


def test_a_grid_is_checked_before_the_first_run(small):
    grid = runs.read_grid(
        write_grid(
            small.parent,
            "parameters: {seed: 3}\nproduct: {x: [1, 1e-3], n: [1, 1e4]}\npoints: [{x: 5, n: 1}]\n"
            "inputs: [small.ipynb]\nshow: square",
        )
    )
    assert grid.axes == ("x", "n")
    assert [(p["x"], p["n"], p["seed"]) for p in grid.points] == [
        *((1.0, 1, 3), (1.0, 10_000, 3), (0.001, 1, 3), (0.001, 10_000, 3), (5.0, 1, 3)),
    ]
    for text, said in [
        ("", "a grid needs a product, or points"),
        ("product: {x: 1}", "x must be a list of values, got x=1"),
        ("product: {x: [1]}\nproduct: {x: [2]}", "product occurs twice"),
        ("prodct: {x: [1]}", "prodct is not a key of a grid"),
        ("product: {x: [1, 1.0]}", "points 1 and 2 are the same"),
        ("parameters: {x: 2}\nproduct: {x: [1]}", "x is set twice"),
        ("product: {y: [1]}", "y is not a parameter of small"),
        ("product: {x: [1]}\ninputs: [none.csv]", "there is no file .*none.csv"),
        ("product: {x: [1}", "expected"),
    ]:
        with pytest.raises(ValueError, match=f"grid.yml: .*{said}"):
            runs.read_grid(write_grid(small.parent, text))


# ----------------------------------------------------------------------------------------- sweeps


def complete(out):
    """The points that are there; each must be whole."""
    found = [path for path in out.iterdir() if len(path.name) == 16 and path.name[0] != "."]
    for path in found:
        assert {"notebook.ipynb", "results.json", "results.csv"} == {p.name for p in path.iterdir()}
    return found


@pytest.mark.slow
def test_killed_sweeps_go_on_past_failed_points(small):
    out = small.parent / "out"
    grid = write_grid(small.parent, "product: {x: [1, 3], word: [a, fail]}\nshow: square")
    words = [sys.executable, "-m", "orabook", "sweep", str(grid), "--out", str(out)]
    first = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    for _ in range(3600):
        if first.poll() is not None or (out.exists() and complete(out)):
            break
        time.sleep(0.05)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    before = {path: (path / "results.json").stat().st_mtime_ns for path in complete(out)}
    assert before
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"{len(before)} of 4 points are complete" in done.stderr
    assert done.stderr.count("failed: AssertionError: cannot do x=") == 2
    assert "2 of 4 points: " in done.stdout
    assert all((p / "results.json").stat().st_mtime_ns == t for p, t in before.items())
    assert len(complete(out)) == 2
    (table,) = out.glob("table-*/table.csv")
    assert list(pd.read_csv(table)["square"]) == [3, 11]
    assert table.with_name("figure.png").exists()


def test_interrupts_are_blocked_where_a_system_can(monkeypatch):
    def blocked():
        return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())

    with sweep._interrupts_blocked():
        assert blocked()
    assert not blocked()
    monkeypatch.delattr(signal, "pthread_sigmask")  # as on Windows
    with sweep._interrupts_blocked():
        pass


def test_a_sweep_says_if_all_points_failed(small, monkeypatch, capsys):
    failed = runs.Sweep(pd.DataFrame(), {1: "b", 0: "a (see failed)"}, small.parent / "no-table")
    monkeypatch.setattr(runs, "sweep_grid", lambda *_, **__: failed)
    assert main(["sweep", str(write_grid(small.parent, "product: {x: [1, 3]}"))]) == 1
    assert capsys.readouterr() == ("", "all 2 points failed, the first with a (see failed)\n")


def test_what_another_sweep_has_finished_is_no_failure(small):
    data = small.with_name("data.csv")
    data.write_text("1")
    grid = runs.read_grid(write_grid(small.parent, "product: {x: [1]}\ninputs: [data.csv]"))
    origin = run.origin_of(grid.chapter, grid.inputs)
    place = small.parent / "out" / run.key_of(grid.points[0], origin)
    place.mkdir(parents=True)
    assert sweep.run_point(grid, grid.points[0], place, origin) == ""
    other = origin | {"sources": "another"}
    said = sweep.run_point(grid, grid.points[0], place, other)
    assert said.startswith("the workers have another oralib: restart them")
    data.write_text("2")
    assert "an input has changed" in sweep.run_point(grid, grid.points[0], place, origin)


def dask_scheduler(log, *words):
    """A scheduler in a process of its own, and its address."""
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard"]
    with log.open("w") as file:
        started = subprocess.Popen([*command, "--port", "0", *words], stdout=file, stderr=file)
    for _ in range(1200):
        if found := re.search(r"Scheduler at: +(\S+)", log.read_text()):
            return started, found[1]
        assert started.poll() is None, log.read_text()
        time.sleep(0.05)
    raise TimeoutError(log.read_text())


@pytest.mark.slow
def test_missing_schedulers_and_workers_are_named(small):
    grid = write_grid(small.parent, "product: {x: [1, 3]}")
    scheduler, address = dask_scheduler(small.parent / "log", "--host", "127.0.0.1")
    words = ["sweep", str(grid), "--out", str(small.parent / "out"), "--scheduler", address]
    command = [sys.executable, "-m", "orabook", *words]
    started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert started.stderr.readline() == "0 of 2 points are complete\n"
    assert started.stderr.readline().endswith("has no workers yet; waiting for the first\n")
    time.sleep(1)  # the points are submitted
    scheduler.kill()
    scheduler.wait()
    assert started.communicate()[1].startswith("error: the scheduler is gone; the same command")
    assert started.returncode == 1


@pytest.mark.slow
def test_the_local_cluster_listens_on_loopback_only(small, monkeypatch):
    import distributed

    grid = runs.read_grid(write_grid(small.parent, "product: {x: [1]}"))
    listening = []

    class Watched(distributed.Client):
        def submit(self, *args, **kwargs):
            sockets = [
                connection
                for process in (psutil.Process(), *psutil.Process().children(recursive=True))
                for connection in process.net_connections()
                if connection.status == psutil.CONN_LISTEN
            ]
            listening.extend({socket.laddr.ip for socket in sockets})
            return super().submit(*args, **kwargs)

    monkeypatch.setattr(distributed, "Client", Watched)
    done = runs.sweep_grid(grid, small.parent / "out", workers=1)
    assert listening == ["127.0.0.1"]
    assert not done.failures

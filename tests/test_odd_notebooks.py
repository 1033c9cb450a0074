"""Runs of odd notebooks, in odd places: nothing is recorded that did not happen."""

import inspect
import json
import os
import re
import stat
import subprocess
import sys

import nbformat
import papermill
import pytest
from notebooks import write_chapter

from oralib import runs
from oralib.__main__ import main
from oralib.runs import folders, inside
from oralib.runs.chapters import read_chapter


def change(path, edit):
    """The notebook at a path, edited in place."""
    notebook = nbformat.read(path, 4)
    edit(notebook)
    nbformat.write(notebook, path)
    return path


def cell(source, *tags):
    return nbformat.v4.new_code_cell(source, metadata={"tags": list(tags)} if tags else {})


def test_two_parameters_cells_are_refused(tmp_path, capsys):
    """papermill would put values after the first, where the second undoes them."""
    path = write_chapter(tmp_path)
    change(path, lambda notebook: notebook.cells.insert(2, cell("y: int = 1", "parameters")))
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "must have one cell tagged parameters, got 2" in capsys.readouterr().err


def test_the_notebook_of_a_run_can_be_run_again(tmp_path):
    path = write_chapter(tmp_path)
    assert main(["run", str(path), "-p", "x=7", "--out", str(tmp_path / "a")]) == 0
    again = str(tmp_path / "a" / "notebook.ipynb")
    for name, given, x in (("b", [], 7.0), ("c", ["-p", "x=3"], 3.0)):
        assert main(["run", again, *given, "--out", str(tmp_path / name)]) == 0
        record = json.loads((tmp_path / name / "results.json").read_text())
        assert record["parameters"]["x"] == x
        assert record["results"]["square"] == x * x + 2


LAZY = """
import importlib.util, sys
spec = importlib.util.find_spec("never_used")
loader = spec.loader = importlib.util.LazyLoader(spec.loader)
module = sys.modules["never_used"] = importlib.util.module_from_spec(spec)
loader.exec_module(module)

class Odd:
    def __getattr__(self, name):
        raise KeyError(name)

sys.modules["odd"] = Odd()
"""


def test_modules_that_cannot_be_looked_at_are_left_alone(tmp_path):
    (tmp_path / "never_used.py").write_text("import not_there_at_all")
    path = write_chapter(tmp_path, extra=LAZY)
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 0
    assert json.loads((tmp_path / "out" / "results.json").read_text())["results"]["square"] == 3


ALL_HANDLES = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
handles = []
while True:
    handles.append(open("/dev/null"))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there a process has no such limit")
def test_a_notebook_that_leaves_no_file_handles_does_not_wait_for_ever(tmp_path, capsys):
    """Its kernel can neither say how the cell failed nor, if that was caught, what it is."""
    caught = ALL_HANDLES.replace("while", "try:\n  while").replace("    h", "      h")
    for number, source in enumerate((ALL_HANDLES, caught + "except OSError:\n    pass")):
        path = write_chapter(tmp_path, name=f"chapter{number}", extra=source)
        assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 1
        said = capsys.readouterr().err.splitlines()[-1]
        assert "Too many open files" in said
        assert ("cannot say what it is" in said) == (number == 1)
        assert not (tmp_path / "out").exists()


def test_a_cell_that_ends_the_kernel_is_a_failure(tmp_path, capsys):
    path = write_chapter(tmp_path)
    change(path, lambda notebook: notebook.cells.insert(4, cell("import sys\nsys.exit()")))
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 1
    assert "SystemExit: 0, before the last cell" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_cell_that_takes_the_streams_is_not_waited_for(tmp_path):
    taken = "\nimport sys\nsys.stdout, sys.stderr = None, object()"
    path = write_chapter(tmp_path, extra=taken)
    record = runs.run_chapter(runs.find_chapter(str(path)), {}, tmp_path / "out")
    assert record["results"]["square"] == 3


@pytest.mark.parametrize("kind", ["list[int]", "dict", '"int"', "Any"])
def test_types_that_cannot_be_checked_are_refused(tmp_path, kind):
    path = write_chapter(tmp_path)
    change(path, lambda notebook: notebook.cells[1].update(source=f"x: {kind} = 1  # a thing"))
    with pytest.raises(ValueError, match="a parameter must be of type int, float, bool, str, list"):
        read_chapter(path)


@pytest.mark.parametrize(
    "metadata", [{"oralib": None}, {"oralib": 3}, {"oralib": {"results": [1]}}, {"oralib": {}}]
)
def test_odd_outputs_give_no_traceback(tmp_path, capsys, metadata):
    def edit(notebook):
        output = nbformat.v4.new_output("display_data", {"text/plain": "x"}, metadata=metadata)
        notebook.cells[-1].outputs = [output]

    path = change(write_chapter(tmp_path), edit)
    expected = 2 if metadata == {"oralib": {"results": [1]}} else 0
    assert main(["run", str(path), "--list"]) == expected
    assert (expected == 0) == (capsys.readouterr().err == "")


def test_a_line_too_long_to_be_a_parameter(tmp_path, capsys):
    source = f"x: int = {'-' * 100_000}1"
    path = write_chapter(tmp_path)
    change(path, lambda notebook: notebook.cells[1].update(source=source))
    assert main(["run", str(path), "--list"]) == 2
    assert len(capsys.readouterr().err) < 400


def test_start_up_files_of_the_user_are_no_part_of_a_chapter(tmp_path, monkeypatch):
    (tmp_path / "startup.py").write_text("import builtins\nbuiltins.sneaky = 1\n")
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "startup.py"))
    path = write_chapter(tmp_path, extra="\nassert not hasattr(__builtins__, 'sneaky')")
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 0


def test_a_grid_that_is_a_pipe_is_refused(tmp_path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs named pipes")
    os.mkfifo(tmp_path / "grid.yml")
    with pytest.raises(ValueError, match="must be a file"):
        runs.read_grid(tmp_path / "grid.yml")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users as Unix has them")
def test_a_place_that_others_can_write_to_is_refused(tmp_path, capsys):
    """They could put another notebook in the place of ours."""
    path = write_chapter(tmp_path)
    (tmp_path / folders.PARTIAL).mkdir()
    (tmp_path / folders.PARTIAL).chmod(0o777)
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "can be written by other users" in capsys.readouterr().err
    (tmp_path / folders.PARTIAL).chmod(0o700)
    if os.geteuid() == 0:
        os.chown(tmp_path / folders.PARTIAL, 65534, 65534)
        assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 2
        assert "belongs to another user" in capsys.readouterr().err


def test_unseen_places_are_closed_to_others(tmp_path):
    with folders.unseen(tmp_path / "out") as place:
        for folder in (place, place.parent):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(sys.platform == "win32", reason="there are no groups like these")
def test_what_is_written_in_the_folder_of_a_team_is_the_teams(tmp_path):
    os.chmod(tmp_path, 0o2770)
    with folders.unseen(tmp_path / "out") as place:
        (place / folders.WRITTEN / "notebook.ipynb").write_text("{}")
        folders.publish(place / folders.WRITTEN, tmp_path / "out")
    assert (tmp_path / "out").stat().st_mode & stat.S_ISGID
    assert not (tmp_path / folders.PARTIAL).exists()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all names are words")
def test_folders_that_are_not_in_utf8_are_named(tmp_path, capsys):
    path, odd = write_chapter(tmp_path), tmp_path / os.fsdecode(b"ff\xff")
    odd.mkdir()
    assert main(["run", str(path), "--out", str(odd / "out")]) == 2
    said = capsys.readouterr().err
    assert "is not in UTF-8" in said
    assert "ff\\udcff" in said
    assert not any(odd.iterdir())


# ------------------------------------------------------------------------------------- surroundings


def command(*words, **options):
    """Run the command line in a process of its own, through a shell that can close streams."""
    line = " ".join([sys.executable, "-m", "oralib", *words])
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, **options)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell that can close streams")
@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_closed_streams(tmp_path, closed):
    path = write_chapter(tmp_path)
    # Kernels of tests leave streams alone; those of users watch them.
    settings = {k: word for k, word in os.environ.items() if k != "PYTEST_CURRENT_TEST"}
    done = command("run", str(path), "--out", str(tmp_path / "out"), closed, env=settings)
    assert done.returncode == 0, done
    assert (tmp_path / "out" / "results.json").exists()


@pytest.mark.parametrize("threads", ["0", "-1", "many", "100000"])
def test_a_bad_number_of_threads_is_one_line(threads):
    settings = {**os.environ, "NUMBA_NUM_THREADS": threads}
    done = command("run", "--list", env=settings)
    assert done.returncode == 2
    assert done.stderr.startswith("error: NUMBA_NUM_THREADS must lie in [1, ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["a$^$_{", "big"])
def test_the_table_is_there_whatever_the_picture_does(tmp_path, capsys, name, workers_at_home):
    value = "10**400" if name == "big" else "x"
    write_chapter(tmp_path, extra=f"\nresults.record(**{{{name!r}: {value}}})")
    grid = tmp_path / "grid.yml"
    grid.write_text(f"chapter: small.ipynb\nproduct: {{x: [1, 2]}}\nshow: {json.dumps(name)}\n")
    out = tmp_path / "out"
    assert main(["sweep", str(grid), "--out", str(out), "--workers", "1"]) == 0
    assert name in (out / "table.csv").read_text().splitlines()[0]
    said = capsys.readouterr().err
    assert (out / "figure.png").exists() != ("the table cannot be drawn" in said)


def test_other_versions_of_packages_are_named(tmp_path, capsys, monkeypatch, workers_at_home):
    write_chapter(tmp_path)
    grid = tmp_path / "grid.yml"
    grid.write_text("chapter: small.ipynb\nproduct: {x: [1]}\n")
    again = ["sweep", str(grid), "--out", str(tmp_path / "out"), "--workers", "1"]
    assert main(again) == 0
    assert "points are kept" not in capsys.readouterr().err
    version_of = inside.version_of
    others = {"scipy": "1.99.0", "numba": None}
    monkeypatch.setattr(inside, "version_of", lambda name: others.get(name, version_of(name)))
    assert main(again) == 0
    said = capsys.readouterr().err
    assert re.search(r"points are kept that were run with scipy [\d.]+; now it is 1.99.0", said)
    assert re.search(r"points are kept that were run with numba [\d.]+; now it is absent", said)


@pytest.mark.parametrize(
    "extra",
    [
        "import mpmath",
        "from mpmath import quad",
        "from mpmath import mp",
        "import mine",
        "import matplotlib.pyplot",
    ],
)
def test_packages_that_others_import_as_well_are_named_if_they_are_used(tmp_path, extra):
    (tmp_path / "mine.py").write_text("from mpmath import mpf as number\n")
    path = write_chapter(tmp_path, extra=f"\n{extra}")
    record = runs.run_chapter(runs.find_chapter(str(path)), {}, tmp_path / "out")
    named = record["provenance"]["packages"].keys()
    assert ("mpmath" in named) == ("matplotlib" not in extra)
    assert "pillow" not in named


@pytest.mark.parametrize("where", ["parameter", "result"])
def test_what_is_no_text_is_refused_by_name(tmp_path, capsys, where):
    extra = '\nresults.record(odd="\\ud800")' if where == "result" else ""
    path = write_chapter(tmp_path, extra=extra)
    given = ["-p", "word=a\udcff"] if where == "parameter" else []
    status = main(["run", str(path), *given, "--out", str(tmp_path / "out")])
    assert status == (2 if given else 1)
    assert re.search(r"(word|odd) must be a text in UTF-8", capsys.readouterr().err)


# ------------------------------------------------------------------------------------- what is read


def sweep(folder, capsys, text="product: {x: [1]}"):
    """The table of a small sweep of the chapter in the folder, and what was said."""
    (folder / "grid.yml").write_text(f"chapter: small.ipynb\n{text}\n")
    out = str(folder / "out")
    capsys.readouterr()
    status = main(["sweep", str(folder / "grid.yml"), "--out", out, "--workers", "1"])
    return status, (folder / "out" / "table.csv").read_text(), capsys.readouterr().err


def test_a_file_that_changes_after_it_was_read_is_noticed(tmp_path, capsys, workers_at_home):
    (tmp_path / "data.txt").write_text("1")
    extra = (
        "\ndata = open('data.txt').read()\nimport subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', \"open('data.txt', 'w').write('22')\"], check=True)"
    )
    write_chapter(tmp_path, extra=extra)
    status, _, said = sweep(tmp_path, capsys)
    assert status == 1
    assert "data.txt has changed since it was read" in said


def test_a_file_that_was_missing_is_noticed_when_it_comes(tmp_path, capsys, workers_at_home):
    extra = (
        "\ntry:\n    more = float(open('more.txt').read())\n"
        "except FileNotFoundError:\n    more = 0.0\nresults.record(more=more)"
    )
    write_chapter(tmp_path, extra=extra)
    text = "product: {x: [1]}\nresults: [more]"
    assert sweep(tmp_path, capsys, text)[1] == "x,more\n1.0,0.0\n"
    assert "1 complete, 0 to run" in sweep(tmp_path, capsys, text)[2]
    (tmp_path / "more.txt").write_text("5")
    assert sweep(tmp_path, capsys, text)[1] == "x,more\n1.0,5.0\n"


def test_captured_results_are_kept_and_cleared_ones_are_missed(tmp_path, capsys):
    path = write_chapter(tmp_path)
    cleared = "results.record(a=1)\nfrom IPython.display import clear_output\nclear_output()"

    def edit(notebook):
        notebook.cells[-1].source = "%%capture\n" + notebook.cells[-1].source
        notebook.cells.append(cell(cleared))

    assert main(["run", str(change(path, edit)), "--out", str(tmp_path / "out")]) == 1
    assert "small failed: a was recorded, but is not in the notebook" in capsys.readouterr().err


def test_results_keep_their_digits_and_their_names(tmp_path, capsys, workers_at_home):
    extra = (
        "\nresults.record(big=2**53 + 1 if x == 1 else 0.5, x=7)"
        "\nresults.record(**{'x (result)': 8})"
    )
    write_chapter(tmp_path, extra=extra)
    text = "product: {x: [1, 2]}\nresults: [big, x, x (result)]"
    _, table, _ = sweep(tmp_path, capsys, text)
    assert table.splitlines()[1] == "1.0,9007199254740993,7,8"


# ---------------------------------------------------------------------------------------- the page


@pytest.mark.parametrize("spoil", ["alt", "rst", "deep"])
def test_a_page_that_cannot_be_made_costs_no_results(tmp_path, spoil):
    def edit(notebook):
        if spoil == "alt":
            notebook.cells[-1].metadata["mystnb"] = {"image": {"alt": 5}, "figure": 3}
            notebook.cells[-1].source += "\nfrom IPython.display import display, HTML"
        elif spoil == "rst":
            notebook.cells[0].source += "\n\n```{eval-rst}\n.. class:: wide\n```"
        else:
            notebook.cells[0].source += "\n\n$" + r"\sqrt{" * 1500 + "x" + "}" * 1500 + "$"

    path = change(write_chapter(tmp_path), edit)
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "results.json").exists()
    assert (tmp_path / "out" / "page.html").stat().st_size > 100


def test_prose_runs_no_code_and_shows_no_files_of_others(tmp_path):
    (tmp_path / "secret.png").write_bytes(b"a secret")
    folder = tmp_path / "inner"
    folder.mkdir()
    text = "\n\nBefore {{ cycler.__init__.__globals__.os.getpid() }} after. ![a](../secret.png)"

    def edit(notebook):
        notebook.cells[0].source += text

    path = change(write_chapter(folder), edit)
    assert main(["run", str(path), "--out", str(folder / "out")]) == 0
    page = (folder / "out" / "page.html").read_text()
    assert "{{ cycler" in page
    assert "YSBzZWNyZXQ" not in page  # the secret in base 64


@pytest.mark.parametrize("source", ["x = {1, 2}", "x = " + "-" * 9000 + "1", "x = {[]: 1}"])
def test_injected_values_that_papermill_would_not_write(tmp_path, capsys, source):
    path = write_chapter(tmp_path)
    change(path, lambda notebook: notebook.cells.insert(2, cell(source, "injected-parameters")))
    assert main(["run", str(path), "--list"]) == 2
    assert "must be as papermill writes it" in capsys.readouterr().err


def test_a_name_that_is_too_long_is_refused_before_the_run(tmp_path, capsys):
    path = write_chapter(tmp_path)
    for name in ("x" * 300, ".partial"):
        assert main(["run", str(path), "--out", str(tmp_path / name)]) == 2
        assert "cannot be the name of a folder" in capsys.readouterr().err


def test_the_time_of_a_run_is_that_of_its_cells(tmp_path, monkeypatch):
    """papermill would write the notebook before and after each cell: thousands took an hour."""
    written = []
    original = papermill.engines.write_ipynb
    monkeypatch.setattr(
        papermill.engines, "write_ipynb", lambda *given: (written.append(1), original(*given))
    )
    path = write_chapter(tmp_path)
    many = [cell(f"y{i} = {i}") for i in range(40)]
    change(path, lambda notebook: notebook.cells.extend(many))
    runs.run_chapter(runs.find_chapter(str(path)), {}, tmp_path / "out")
    assert 1 <= len(written) <= 3
    cells = nbformat.read(tmp_path / "out" / "notebook.ipynb", 4).cells
    assert cells[-1].execution_count > 40


def run_inside(program, folder):
    """A program that reads the text of ``inside`` from its input, as kernels are given it."""
    source = inspect.getsource(inside)
    subprocess.run([sys.executable, "-c", program], cwd=folder, input=source, text=True, check=True)


def test_files_whose_times_were_set_back_are_known(tmp_path):
    """A module with a cache that looks fresh, and data that change after they were read."""
    program = """
import os, py_compile, subprocess, sys

def write(name, text):
    with open(name, "w") as file:
        file.write(text)
    os.utime(name, (0, 0))

write("helper.py", "X = 5")
py_compile.compile("helper.py")
write("helper.py", "X = 7")  # of the same size and time, as in many archives
write("data.csv", "5")
space = {"__name__": "inside"}
exec(sys.stdin.read(), space)
space["watch_files"]()
sys.path.insert(0, "")
import helper
assert helper.X == 7, helper.X
assert space["files_used"]().keys() == {"helper.py"}
open("data.csv").close()
other = "import os; open('data.csv', 'w').write('7'); os.utime('data.csv', (0, 0))"
subprocess.run([sys.executable, "-c", other], check=True)
assert space["files_used"]()["data.csv"] == "changed"
"""
    run_inside(program, tmp_path)


def test_files_that_are_easily_missed_count_as_used(tmp_path):
    """Those opened to be changed, and only read; hidden ones; modules below a hidden folder."""
    here = tmp_path / ".worktrees" / "feature" / "notebooks"
    program = """
import ctypes, os, sqlite3, sys

names = ["mapped.bin", "changed.bin", ".conf.json", ".cache/fonts.json", "../src/helper.py"]
for name in [*names, "library.so", "replaced.json", "replaced.new"]:
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "w") as file:
        file.write("5")
for name in ("plain.db", "by uri.db", "changed.db"):
    base = sqlite3.connect(name)
    base.execute("create table t (v)")
    base.commit()
    base.close()
space = {"__name__": "inside"}
exec(sys.stdin.read(), space)
space["watch_files"]()
sys.path.insert(0, "../src")
import helper
open("mapped.bin", "r+b").close()
os.close(os.open("mapped.bin", os.O_RDWR))
with open("changed.bin", "r+") as file:
    file.write("77")
open("new.bin", "w+").close()
sqlite3.connect("plain.db").close()
sqlite3.connect(":memory:").close()
sqlite3.connect("file:shared?mode=memory", uri=True).close()
sqlite3.connect("file:by%20uri.db?mode=ro", uri=True).close()
base = sqlite3.connect("changed.db")
base.execute("insert into t values (1)")
base.commit()
base.close()
open("replaced.json").close()
os.replace("replaced.new", "replaced.json")
try:
    ctypes.CDLL("./library.so")
except OSError:
    pass
open(".conf.json").close()
open(".cache/fonts.json").close()
used = {os.path.basename(name) for name in space["files_used"]()}
first = {"helper.py", "mapped.bin", ".conf.json", "replaced.json"}  # by the same content
bases = {"plain.db", "by uri.db", "plain.db-wal", "by uri.db-wal", "changed.db-wal"}
assert used == {*first, *bases, "library.so"}, used
"""
    here.mkdir(parents=True)
    (tmp_path / ".worktrees" / "feature" / "src").mkdir()
    run_inside(program, here)


def test_packages_that_were_installed_from_a_folder_count_as_used(tmp_path, monkeypatch):
    """Their version stays the same when they are changed and installed again."""
    tmp_path = tmp_path / "site-packages"
    tmp_path.mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, origin in (("mine", True), ("indexed", False), ("oralib", True)):
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        lines = [f"{name}/__init__.py,sha256=0,1", f"{name}_alone.py,,", f"{info.name}/RECORD,,"]
        (info / "RECORD").write_text("\n".join([*lines, "../../bin/tool,,"]))
        if origin:
            (info / "direct_url.json").write_text("{}")
    home = os.path.realpath(tmp_path)
    found = inside._packages_of_the_user()
    assert os.path.join(home, "mine", "") in found
    assert os.path.join(home, "mine_alone.py") in found
    assert not any("indexed" in path or "oralib" in path or ".." in path for path in found)


def test_times_that_were_set_back_do_not_hide_what_is_installed(tmp_path):
    program = "import sys; exec(sys.stdin.read(), space := {'__name__': 'inside'}); "
    program += "space['watch_files'](); import numpy; assert space['files_used']() == {}"

    run_inside(program, tmp_path)

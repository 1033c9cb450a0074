"""Kernels that are forked from a process with their imports differ from others in time only."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from notebooks import write_chapter

from oralib import runs
from oralib.runs import forks, inside, warm

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only")

#: The end of a chapter that says who has started its kernel, and what it sees.
LOOK = """
import ctypes
import random
import sys
ends_by = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(ends_by))  # PR_GET_PDEATHSIG
there = [name for name in ("numba", "oralib") if name in sys.modules]
import numba
import numpy as np

@numba.njit
def jitted_draw():
    return np.random.random()

results.record(
    parent=os.getppid(),
    there=str(there),
    draws=f"{random.random()} {np.random.random()} {jitted_draw()}",
    leads=os.getpgid(0) == os.getpid(),
    folder=os.getcwd(),
    executable=sys.executable,
    path=str(sys.path),
    backend=os.environ["MPLBACKEND"],
    arguments=str([word for word in sys.argv if word.startswith("-")]),
    shell=type(get_ipython()).__name__,
    ends_by=ends_by.value,
)
kept = open("kept.txt", "w")
kept.write("to the end")
"""

PARENT = "\nresults.record(parent=os.getppid())\n"


@pytest.fixture(autouse=True)
def place(monkeypatch):
    """Each test begins without such a process, and ends its own."""
    place = warm._Place()
    monkeypatch.setattr(warm, "_place", place)
    yield place
    place.clear()


def run(folder, name, extra, *, again=True):
    path = write_chapter(folder, extra=extra)
    return runs.run_chapter(runs.find_chapter(str(path)), {}, folder / name, again=again)


def is_fork(record):
    return record["results"]["parent"] != os.getpid()


def test_forks_differ_from_other_kernels_in_their_parent_only(tmp_path):
    first, second = run(tmp_path, "first", LOOK), run(tmp_path, "second", LOOK)
    assert (tmp_path / "kept.txt").read_text() == "to the end"
    cold = run(tmp_path, "cold", LOOK, again=False)
    assert is_fork(first)
    assert second["results"]["parent"] == first["results"]["parent"]
    assert not is_fork(cold)
    assert cold["results"]["ends_by"] == signal.SIGKILL
    # What the first one has imported the second one finds, but never the library.
    there = [record["results"]["there"] for record in (first, second, cold)]
    assert there == ["[]", "['numba']", "[]"]
    for warmed in (first, second):
        assert warmed["results"]["draws"].split() != cold["results"]["draws"].split()
        for name in cold["results"].keys() - {"parent", "there", "draws"}:
            assert warmed["results"][name] == cold["results"][name]
        for name in ("python", "packages", "used", "code"):
            assert warmed["provenance"][name] == cold["provenance"][name]
    # Generators without a seed do not repeat themselves.
    draws = [record["results"]["draws"].split() for record in (first, second, cold)]
    assert len({draw for three in draws for draw in three}) == 9


def test_what_lies_beside_the_chapter_is_imported(tmp_path, place):
    """A module with the name of a package, which a new process would find first."""
    place.learn(["pandas"])
    (tmp_path / "pandas.py").write_text("word = 'beside'\n")
    record = run(tmp_path, "beside", PARENT + "import pandas\nresults.record(got=pandas.word)")
    assert not is_fork(record)
    assert record["results"]["got"] == "beside"


THREADS = """
os.environ["NUMBA_NUM_THREADS"] = "1"
import numba
results.record(got=numba.get_num_threads())
"""

UNCOMPILED = """
os.environ["NUMBA_DISABLE_JIT"] = "1"
import numba

@numba.njit
def got():
    return type(got).__name__

results.record(got=got())
"""

VENDORED = """
import sys
sys.path.insert(0, "vendored")
import pandas
results.record(got=pandas.word)
"""


@pytest.mark.parametrize(
    ("package", "extra", "expected"),
    [("numba", THREADS, 1), ("numba", UNCOMPILED, "function"), ("pandas", VENDORED, "mine")],
)
def test_what_a_chapter_settles_before_its_imports_counts(
    tmp_path, place, package, extra, expected
):
    (tmp_path / "vendored").mkdir()
    (tmp_path / "vendored" / "pandas.py").write_text("word = 'mine'\n")
    place.learn([package])
    assert is_fork(run(tmp_path, "before", PARENT))
    record = run(tmp_path, "run", extra + PARENT)
    assert record["results"]["got"] == expected
    assert not is_fork(record)
    assert not is_fork(run(tmp_path, "after", PARENT))  # one of its points may do the same


def test_other_folders_for_modules_make_no_difference(tmp_path, place):
    place.learn(["pandas"])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "tools_of_mine.py").write_text("word = 'mine'\n")
    look = VENDORED.replace("vendored", "mine").replace("pandas", "tools_of_mine") + PARENT
    record = run(tmp_path, "run", look)
    assert record["results"]["got"] == "mine"
    assert is_fork(record)


@pytest.mark.parametrize("name", ["matplotlibrc", ".numba_config.yaml"])
def test_settings_beside_the_chapter_are_read(tmp_path, name):
    (tmp_path / name).touch()
    assert not is_fork(run(tmp_path, "beside", PARENT))


def test_settings_of_the_user_are_noticed(tmp_path, monkeypatch):
    forks._import({"matplotlib"})
    known = forks._state(), forks._places()
    monkeypatch.chdir(tmp_path)
    assert forks._is_as_from_nothing(*known)
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "matplotlibrc").write_text("lines.linewidth: 3\n")
    monkeypatch.setenv("MATPLOTLIBRC", str(tmp_path / "settings"))
    assert not forks._is_as_from_nothing(*known)


def test_a_package_that_is_exchanged_is_imported_anew(tmp_path, monkeypatch, place):
    packages = tmp_path / "packages"
    packages.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(packages))
    place.learn(["pandas"])
    look = PARENT + "import pandas\nresults.record(got=pandas.word)"
    (packages / "pandas.py").write_text("word = 'old'\n")
    old = run(tmp_path, "1", look)
    assert is_fork(old)
    (packages / "pandas.py").write_text("word = 'new'\n")
    new = run(tmp_path, "2", look)
    assert not is_fork(new)
    assert [record["results"]["got"] for record in (old, new)] == ["old", "new"]


def test_another_environment_is_another_process_and_a_dead_one_is_done_without(
    tmp_path, monkeypatch
):
    first = run(tmp_path, "first", PARENT)["results"]["parent"]
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    second = run(tmp_path, "second", PARENT)["results"]["parent"]
    assert len({first, second, os.getpid()}) == 3
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    os.kill(second, signal.SIGKILL)
    assert not is_fork(run(tmp_path, "third", PARENT))


def test_a_kernel_that_ends_is_noticed(tmp_path):
    with pytest.raises(runs.RunFailed, match="died"):
        run(tmp_path, "dies", "\nos._exit(3)")


def test_a_kernel_does_not_outlive_its_parent(tmp_path):
    note = tmp_path / "pid"
    end = f"open({str(note)!r}, 'w').write(str(os.getpid()))\nos.kill(os.getppid(), 9)"
    with pytest.raises(runs.RunFailed, match="died"):
        run(tmp_path, "dies", f"\n{end}\ntime.sleep(60)")
    kernel = Path("/proc") / note.read_text()
    for _ in range(100):
        if not kernel.exists():
            return
        time.sleep(0.1)
    pytest.fail("the kernel is still there after ten seconds")


def test_a_package_that_cannot_be_imported_is_the_affair_of_the_kernel(tmp_path, place):
    place.learn(["there_is_no_such_package"])
    assert is_fork(run(tmp_path, "run", PARENT))


def test_it_ends_when_nobody_asks_for_long_and_is_started_again(tmp_path, monkeypatch, place):
    impatient = tmp_path / "impatient.py"
    text = Path(forks.__file__).read_text()
    impatient.write_text(text.replace(f"_IDLE = {forks._IDLE}", "_IDLE = 2"))
    monkeypatch.setattr(forks, "__file__", str(impatient))
    first = run(tmp_path, "first", PARENT)
    assert is_fork(first)
    assert place._forks._process.wait(30) == 0
    second = run(tmp_path, "second", PARENT)
    assert is_fork(second)
    assert second["results"]["parent"] != first["results"]["parent"]


def test_it_does_not_end_while_a_kernel_lives(monkeypatch):
    """Whoever has asked for it may have been stopped, and will go on."""
    monkeypatch.setattr(forks, "_IDLE", 0.1)
    kernel = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1)"])
    ends, writes = os.pipe()
    with os.fdopen(ends) as asked, os.fdopen(writes, "w"):
        monkeypatch.setattr(sys, "stdin", asked)
        assert forks._lives(kernel.pid)
        assert forks._question({kernel.pid}) == ""
    assert not forks._lives(kernel.pid)
    assert forks._status(kernel.pid) == 0
    kernel.returncode = 0  # it was waited for


def test_it_ends_when_nobody_can_ask_any_more():
    asked = warm._Forks([sys.executable], dict(os.environ), os.getcwd())
    asked._close()
    assert asked._process.wait(30) == 0


def test_a_process_that_never_answers_is_given_up(monkeypatch, tmp_path):
    (tmp_path / "sleeps.py").write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(forks, "__file__", str(tmp_path / "sleeps.py"))
    monkeypatch.setattr(warm, "_PATIENCE", 0.2)
    asked = warm._Forks([sys.executable], dict(os.environ), os.getcwd())
    for _ in range(2):
        with pytest.raises(OSError, match=r"timed out|ended"):
            asked.ask({"pid": 1})
    asked.end()


def test_after_an_interrupt_no_answer_is_taken_for_another_one(monkeypatch, tmp_path):
    """Ctrl-C while an answer is awaited, which would then be that to the next question."""
    (tmp_path / "answers.py").write_text("while line := input():\n    print(line, flush=True)\n")
    monkeypatch.setattr(forks, "__file__", str(tmp_path / "answers.py"))
    asked = warm._Forks([sys.executable], dict(os.environ), os.getcwd())

    def interrupted():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(asked, "_said", SimpleNamespace(readline=interrupted))
        with pytest.raises(KeyboardInterrupt):
            asked.ask({"pid": 1})
    assert asked._process.wait(30) == -signal.SIGKILL
    asked.end()


def test_what_start_up_files_print_is_no_answer(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text("print('a word', flush=True)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    assert is_fork(run(tmp_path, "run", PARENT))


def test_threads_of_start_up_files_are_not_lost(tmp_path, monkeypatch):
    begin = "Thread(target=time.sleep, args=[99], daemon=True).start()"
    text = f"import time\nfrom threading import Thread\n{begin}\n"
    (tmp_path / "sitecustomize.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    assert not is_fork(run(tmp_path, "run", PARENT))


def test_a_folder_that_is_exchanged_is_seen(tmp_path):
    """The process that is forked is still in the old one, whatever that is called by now."""
    look = PARENT + "results.record(folder=os.getcwd())"
    folder, old = tmp_path / "book", tmp_path / "old"
    folder.mkdir()
    assert is_fork(run(folder, "1", look))
    folder.rename(old)
    folder.mkdir()
    second = run(folder, "2", look)
    assert is_fork(second)
    assert second["results"]["folder"] == str(folder)


def test_only_the_process_that_was_started_forks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert forks._is_at(os.getpid(), str(tmp_path))
    assert not forks._is_at(os.getpid() + 1, str(tmp_path))
    assert not forks._is_at(os.getpid(), str(tmp_path / "gone"))


def test_a_status_that_nobody_keeps_is_an_end():
    """Where SIGCHLD is ignored, the system forgets a process as soon as it has ended."""
    assert forks._status(os.getpid()) == -signal.SIGKILL  # which is no child


def test_the_path_is_that_of_a_kernel_that_is_told_to_be_safe(tmp_path):
    """There the folder of a script is not on it, but the first folder of the user may be."""
    start = f"runpy.run_path({forks.__file__!r}, run_name='__main__')"
    look = f"import sys, runpy\nbefore = sys.path[:]\n{start}\nassert sys.path == before"
    words = [sys.executable, "-P", "-c", look]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run(words, env=env, stdin=subprocess.DEVNULL, check=True)


def test_links_to_a_file_do_not_change_it(tmp_path):
    """Installers link files of one cache into many environments."""
    (tmp_path / "module.py").write_text("word = 1\n")
    known = forks._state_of(str(tmp_path / "module.py"))
    os.link(tmp_path / "module.py", tmp_path / "link.py")
    assert forks._state_of(str(tmp_path / "module.py")) == known
    (tmp_path / "other.py").write_text("word = 1\n")
    os.utime(tmp_path / "other.py", ns=(0, (tmp_path / "module.py").stat().st_mtime_ns))
    os.replace(tmp_path / "other.py", tmp_path / "module.py")
    assert forks._state_of(str(tmp_path / "module.py")) != known


def test_archives_that_are_imported_from_are_watched(tmp_path, monkeypatch):
    archive = tmp_path / "archive.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("module_in_an_archive.py", "word = 1\n")
    monkeypatch.syspath_prepend(archive)
    module = importlib.import_module("module_in_an_archive")
    try:
        assert inside.files_used()[str(archive)] == inside.file_digest(str(archive))
        known = forks._state_of(module.__file__)
        assert known is not None
        with zipfile.ZipFile(archive, "a") as file:
            file.writestr("another.py", "")
        assert forks._state_of(module.__file__) != known
    finally:
        del sys.modules["module_in_an_archive"]


def test_a_kernel_ends_with_its_parent_whoever_takes_its_place():
    """Kernels themselves see only that process 1 has taken it, which is seldom so on a desktop."""
    child = f"""
space = {{"__name__": "inside"}}
exec(open({inside.__file__!r}).read(), space)
space["end_with_parent"]()
import os, time
print(os.getpid(), flush=True)
time.sleep(60)"""
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline()
        process.kill()
        start = time.monotonic()
        assert process.stdout.read() == b""  # which it would keep open
        assert time.monotonic() - start < 30


def test_kernels_of_others_are_left_alone():
    """A kernel that is no ordinary Python process is started as its specification says."""
    options = {"env": {}, "stderr": sys.stderr}
    assert warm._forked(["R", "--slave"], **options) is None
    assert warm._forked(["ipykernel_launcher", "-f", "file"], **options) is None

    remote = SimpleNamespace(metadata={"kernel_provisioner": {"provisioner_name": "remote"}})
    manager = SimpleNamespace(kernel_spec=remote, provisioner=None)
    warm.up(manager)
    assert manager.provisioner is None


def test_the_chapters_of_the_book_can_be_forked(monkeypatch):
    """Nothing in their folder has the name of a package that they import."""
    forks._import({*forks._KERNEL, *inside.SLOW})
    assert set(json.loads(inside.described())["slow"]) == set(inside.SLOW)
    monkeypatch.chdir(runs.find_chapter("06-dp-sgd").path.parent)
    assert not forks._has_settings()
    assert forks._is_as_from_nothing(forks._state(), forks._places())

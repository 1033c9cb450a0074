"""Cached kernels: forgotten when any source changes, taken from no other user, never needed.

Every test runs new processes, with a home of their own, on a copy of the package: all of it, or a
small one with the real decorator and two kernels in two files.
"""

import fcntl
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import oralib
from oralib._jit import _is_ours_alone

PACKAGE = Path(oralib.__file__).parent

#: A kernel that is called by one in another file.
CALLED = """from oralib._jit import jit

@jit
def called(x):
    return x + 1
"""
CALLING = """from oralib._jit import jit
from oralib.called import called

@jit
def calling(x):
    return 10 * called(x)
"""
ASK = "import oralib.calling as module; print(module.calling(2), *module.calling.stats.cache_hits)"
VALUE, EDITED = 30, 50


def copy(folder: Path) -> Path:
    """The small package in a folder of its own."""
    package = folder / "oralib"
    package.mkdir()
    shutil.copy(PACKAGE / "_jit.py", package)
    for name, text in (("__init__", ""), ("called", CALLED), ("calling", CALLING)):
        (package / f"{name}.py").write_text(text)
    return package


def edit(package: Path) -> None:
    """Change the file of the called kernel, and not that of the kernel that calls it."""
    (package / "called.py").write_text(CALLED.replace("x + 1", "x + 3"))


def environment(folder: Path, **settings: str | None) -> dict[str, str]:
    """A home in the folder, and no other place for a cache; settings of None are unset."""
    user = folder / "user"
    user.mkdir(mode=0o700, exist_ok=True)
    given = {"HOME": str(user), "XDG_CACHE_HOME": None, "NUMBA_CACHE_DIR": None, **settings}
    chosen = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **given}
    return {name: value for name, value in chosen.items() if value is not None}


def ask(folder: Path, code: str = ASK, *, limit=None, **settings: str | None) -> list[str]:
    """The words that a new process prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder,
        env=environment(folder, **settings),
        capture_output=True,
        text=True,
        preexec_fn=limit,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.split()


def calling(folder: Path, **settings) -> tuple[int, bool]:
    """calling(2) in a new process, and whether its machine code came from the cache."""
    value, *hits = ask(folder, **settings)
    return int(value), bool(hits)


def caches(folder: Path) -> list[Path]:
    """Every folder of kernels below this one."""
    return sorted(folder.rglob("kernels-*"))


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


# --------------------------------------------------------------------------- keyed by the sources


@pytest.mark.parametrize(
    ("variable", "place"),
    [
        ("HOME", "user/.cache/oralib"),
        ("NUMBA_CACHE_DIR", "user/oralib"),
    ],
)
def test_an_edit_in_a_called_kernel_is_noticed(tmp_path, variable, place):
    package = copy(tmp_path)
    settings = {variable: str(tmp_path / "user")}
    assert calling(tmp_path, **settings) == (VALUE, False)
    assert calling(tmp_path, **settings) == (VALUE, True)
    edit(package)
    assert calling(tmp_path, **settings) == (EDITED, False)
    assert {cache.parent for cache in caches(tmp_path)} == {tmp_path / place}


def test_an_edit_of_the_binomial_kernels_changes_p_values(tmp_path):
    """The whole package, installed where it cannot be written."""
    package = tmp_path / "oralib"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__pycache__").write_text("a file where Numba would make a folder")
    code = "import oralib; print(f'{oralib.p_value(75, 100, 0.5):.6f}')"
    assert ask(tmp_path, code) == ["0.004805"]
    binomial = package / "_binomial.py"
    before, after = "small = exp(-epsilon)\n", "small = exp(-2 * epsilon)\n"
    assert before in binomial.read_text()
    binomial.write_text(binomial.read_text().replace(before, after))
    assert ask(tmp_path, code) == ["0.382722"]


def test_every_source_that_may_hold_kernels_counts(tmp_path):
    package = copy(tmp_path)
    calling(tmp_path)
    for name in ("parts", "runs"):
        (package / name).mkdir()
        (package / name / "more.py").write_text("")
    assert calling(tmp_path) == (VALUE, False)  # for parts
    (package / "runs" / "more.py").write_text("# edited")
    assert calling(tmp_path) == (VALUE, True)


def test_runs_hold_no_kernels():
    for source in (PACKAGE / "runs").rglob("*.py"):
        assert "jit" not in source.read_text(), source


def test_nothing_is_written_beside_the_sources(tmp_path):
    """Whoever removes the package finds no folder of that name that could be imported."""
    package = copy(tmp_path)
    before = files(package)
    calling(tmp_path)
    assert files(package) == before
    assert caches(package) == []


# ---------------------------------------------------------------------------------- doing without


def nowhere(folder: Path) -> str:
    """A path that even root cannot make: below a file."""
    (folder / "file").write_text("")
    return str(folder / "file" / "below")


def test_where_nothing_can_be_written_all_is_compiled(tmp_path):
    package = copy(tmp_path)
    (package / "__pycache__").write_text("")
    place = nowhere(tmp_path)
    settings = {"HOME": place, "XDG_CACHE_HOME": place, "NUMBA_CACHE_DIR": place}
    assert calling(tmp_path, **settings) == (VALUE, False)
    assert caches(tmp_path) == []


def test_a_cache_folder_that_cannot_be_made_is_replaced_by_the_users(tmp_path):
    copy(tmp_path)
    settings = {"NUMBA_CACHE_DIR": nowhere(tmp_path)}
    assert calling(tmp_path, **settings) == (VALUE, False)
    assert calling(tmp_path, **settings) == (VALUE, True)


def test_a_user_without_a_home_leaves_nothing_where_the_work_is(tmp_path):
    """The user's folder is then relative to the current one."""
    copy(tmp_path)
    before = files(tmp_path)
    assert calling(tmp_path, HOME="home") == (VALUE, False)
    assert files(tmp_path) == before


def test_a_user_without_a_home_and_a_name_can_import(tmp_path):
    """As in a container that is started for some number."""
    copy(tmp_path)
    settings = {"code": "import os; os.getuid = lambda: 2**31 - 2\n" + ASK, "HOME": None}
    assert calling(tmp_path, **settings) == (VALUE, False)
    settings["NUMBA_CACHE_DIR"] = str(tmp_path / "place")
    assert calling(tmp_path, **settings) == (VALUE, False)
    assert calling(tmp_path, **settings) == (VALUE, True)


def test_a_full_disk_gives_the_same_numbers(tmp_path):
    """Folders and empty files can be made, but no file can grow."""
    copy(tmp_path)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

    assert calling(tmp_path, limit=limit) == (VALUE, False)
    # With room again the cache works.
    assert calling(tmp_path) == (VALUE, False)
    assert calling(tmp_path) == (VALUE, True)


def test_what_editors_leave_beside_a_source_is_none(tmp_path):
    package = copy(tmp_path)
    calling(tmp_path)
    (package / ".#called.py").symlink_to("somebody@somewhere.1:2")
    assert calling(tmp_path) == (VALUE, True)


@pytest.mark.parametrize("full", [True, False])
def test_constants_that_were_changed_are_not_kept(tmp_path, full):
    package = copy(tmp_path)
    (package / "called.py").write_text(f"MORE = 1\n{CALLED.replace('x + 1', 'x + MORE')}")
    if full:
        calling(tmp_path)
    changing = "import oralib.called; oralib.called.MORE = 5\n" + ASK
    assert ask(tmp_path, changing) == ["70"]
    assert calling(tmp_path)[0] == VALUE


@pytest.mark.parametrize("full", [True, False])
def test_replaced_kernels_are_compiled_and_not_kept(tmp_path, full):
    package = copy(tmp_path)
    if full:
        calling(tmp_path)
    replacing = (
        "import numba, oralib.calling as module\n"
        "module.called = numba.njit(lambda x: x + 5)\n"
        "print(module.calling(2))"
    )
    reloading = (
        "import importlib, os, oralib.calling as module\n"
        f"path = {str(package / 'called.py')!r}\n"
        "from pathlib import Path\n"
        "text = Path(path).read_text()\n"
        "Path(path).write_text(text.replace('x + 1', 'x + 30'))\n"
        "import oralib.called\n"
        "importlib.reload(oralib.called)\n"
        "importlib.reload(module)\n"
        "print(module.calling(2))\n"
        "Path(path).write_text(text)"
    )
    assert ask(tmp_path, replacing) == ["70"]
    assert ask(tmp_path, reloading) == ["320"]
    assert calling(tmp_path)[0] == VALUE


def test_a_damaged_index_on_a_full_disk_costs_time_only(tmp_path):
    copy(tmp_path)
    calling(tmp_path)
    for file in caches(tmp_path)[0].rglob("*.nbi"):
        os.truncate(file, 0)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    code = "import oralib.calling as module, sys; sys.stdout.write(str(module.calling(2)))"
    assert ask(tmp_path, code, limit=limit) == [str(VALUE)]


def test_only_folders_of_our_own_names_are_forgotten(tmp_path):
    copy(tmp_path)
    calling(tmp_path)
    mine = caches(tmp_path)[0].parent / "kernels-mine"
    mine.mkdir()
    old = time.time() - 60 * 86400
    os.utime(mine, (old, old))
    calling(tmp_path)
    assert mine.exists()


def test_files_that_were_cut_short_are_written_anew(tmp_path):
    copy(tmp_path)
    calling(tmp_path)
    for ending in ("nbi", "nbc"):  # the index of a kernel, and its machine code
        cut = list(caches(tmp_path)[0].rglob(f"*.{ending}"))
        assert cut
        for file in cut:
            os.truncate(file, file.stat().st_size // 2)
        assert calling(tmp_path) == (VALUE, False)
    assert calling(tmp_path) == (VALUE, True)


def test_without_compilation_nothing_is_cached(tmp_path):
    copy(tmp_path)
    code = "from oralib.calling import calling; print(calling(2))"
    assert ask(tmp_path, code, NUMBA_DISABLE_JIT="1") == [str(VALUE)]


# ----------------------------------------------------------------------------- folders of others


def test_the_cache_is_closed_to_others(tmp_path):
    copy(tmp_path)
    before = os.umask(0)
    try:
        calling(tmp_path)
    finally:
        os.umask(before)
    (cache,) = caches(tmp_path)
    for place in (cache, cache.parent, cache.parent.parent):
        assert place.stat().st_mode & 0o777 == 0o700


def test_no_code_from_a_folder_that_another_user_can_write(tmp_path):
    copy(tmp_path)
    calling(tmp_path)
    (cache,) = caches(tmp_path)
    cache.chmod(0o770)
    before = {file: file.read_bytes() for file in files(cache)}
    assert calling(tmp_path) == (VALUE, False)
    assert {file: file.read_bytes() for file in files(cache)} == before
    cache.chmod(0o700)
    assert calling(tmp_path) == (VALUE, True)


def test_which_folders_are_ours_alone(tmp_path):
    above = tmp_path / "above"
    folder = above / "folder"
    folder.mkdir(parents=True)
    above.chmod(0o755)
    for mode, ours in ((0o700, True), (0o755, False), (0o770, False), (0o777, False)):
        folder.chmod(mode)
        assert _is_ours_alone(folder) == ours, oct(mode)
    folder.chmod(0o700)
    for mode, ours in ((0o700, True), (0o775, False), (0o777, False), (0o1777, True)):
        above.chmod(mode)  # the last is that of /tmp, where nobody can rename what is ours
        assert _is_ours_alone(folder) == ours, oct(mode)
    if os.geteuid() == 0:  # who alone can give folders away
        above.chmod(0o755)
        for path in (above, folder):
            os.chown(path, 12345, -1)
            assert not _is_ours_alone(folder), path
            os.chown(path, 0, -1)
        assert _is_ours_alone(folder)


def test_a_link_to_a_folder_of_ones_own_is_followed(tmp_path):
    copy(tmp_path)
    (tmp_path / "large disk").mkdir(mode=0o700)
    (tmp_path / "user").mkdir(mode=0o700)
    (tmp_path / "user" / ".cache").symlink_to(tmp_path / "large disk")
    assert calling(tmp_path) == (VALUE, False)
    assert calling(tmp_path) == (VALUE, True)
    assert caches(tmp_path / "large disk")


def test_users_of_one_cache_folder_keep_apart(tmp_path):
    """NUMBA_CACHE_DIR can be written by others: the own folder is used."""
    copy(tmp_path)
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert calling(tmp_path, NUMBA_CACHE_DIR=str(shared)) == (VALUE, False)
    assert calling(tmp_path, NUMBA_CACHE_DIR=str(shared)) == (VALUE, True)
    assert files(shared) == set()
    assert caches(tmp_path / "user")


# ---------------------------------------------------------------------------------- old versions


def make_old(folder: Path, days: float) -> None:
    then = time.time() - days * 86400
    os.utime(folder, (then, then))


def test_only_what_nobody_has_used_for_long_is_removed(tmp_path):
    copy(tmp_path)
    calling(tmp_path)
    (mine,) = caches(tmp_path)
    recent, old, held, strange = (
        mine.with_name(name)
        for name in (*(f"kernels-{16 * digit}" for digit in "123"), f"others-{16 * '4'}")
    )
    for folder, days in ((recent, 20), (old, 40), (held, 40), (strange, 40), (mine, 40)):
        folder.mkdir(exist_ok=True)
        (folder / "code.nbc").write_text("x")
        make_old(folder, days)
    link = mine.with_name(f"kernels-{16 * '5'}")
    link.symlink_to(tmp_path / "oralib")
    handle = os.open(held, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        assert calling(tmp_path) == (VALUE, True)
    finally:
        os.close(handle)
    assert sorted(path.name for path in mine.parent.iterdir()) == sorted(
        [mine.name, recent.name, held.name, strange.name, link.name]
    )
    assert time.time() - mine.stat().st_mtime < 86400  # it counts as used


def test_a_process_holds_its_folder_and_can_do_without_it(tmp_path):
    """Another version starts while this one, started long ago, has kernels still to compile."""
    package = copy(tmp_path)
    code = "from oralib.calling import calling; print(); input(); print(calling(2))"
    long = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert long.stdout.readline() == "\n"
        (cache,) = caches(tmp_path)
        make_old(cache, 40)
        edit(package)
        assert calling(tmp_path) == (EDITED, False)
        assert cache.exists()
        shutil.rmtree(cache)  # even that is no harm
        value, _ = long.communicate("\n", timeout=120)
        assert int(value) == VALUE
    finally:
        long.kill()
        long.wait()

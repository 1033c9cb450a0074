"""Kernels are compiled for many counts only, and cached in a folder that is closed to others.

Some tests start new processes with a small package: the real decorators, and a kernel in one file
that calls a kernel and a formula in another.
"""

import ast
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numba
import numpy as np
import pytest

import oralib
from oralib.bounds import (
    Anytime,
    Exact,
    Gaussian,
    Independent,
    RandomR,
    Steinke,
    clopper_pearson_lower,
)
from oralib.ground import jit

CALLED = """from oralib.ground.jit import formula, jit

@formula
def one_more(x):
    return x + 1

@jit
def called(x):
    return one_more(x)
"""
CALLING = """from oralib.ground.jit import jit
from oralib.called import called, one_more

@jit
def calling(x):
    return 10 * called(x) + 0 * one_more(x)
"""
ASK = """import oralib.calling as module
print(module.calling(2), *module.calling.compiled.stats.cache_hits)"""


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "oralib"
    (folder / "ground").mkdir(parents=True)
    (folder / "ground" / "__init__.py").write_text("")
    shutil.copy(jit.__file__, folder / "ground")
    for name, text in (("__init__", ""), ("called", CALLED), ("calling", CALLING)):
        (folder / f"{name}.py").write_text(text)
    return folder


def calling(package, place):
    """calling(2) in a new process, and whether its machine code came from the cache."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(place), "PYTHONPATH": ""}
    line = [sys.executable, "-W", "error", "-c", ASK]
    value, *hits = subprocess.check_output(line, cwd=package.parent, env=env, text=True).split()
    return int(value), bool(hits)


@pytest.mark.slow
def test_an_edit_in_a_called_kernel_is_noticed(package, tmp_path):
    place = tmp_path / "cache"
    assert calling(package, place) == (30, False)
    assert calling(package, place) == (30, True)
    (package / "other.py").write_text("no kernel")
    assert calling(package, place) == (30, True)
    (package / "called.py").write_text(CALLED.replace("x + 1", "x + 3"))
    assert calling(package, place) == (50, False)
    folders = list((place / "oralib").iterdir())
    assert len(folders) == 2
    assert all(folder.stat().st_mode & 0o777 == 0o700 for folder in folders)
    assert {path.suffix for path in package.iterdir() if path.is_file()} == {".py"}


def test_unwritable_cache_compiles(package, tmp_path):
    (tmp_path / "file").write_text("")
    assert calling(package, tmp_path / "file" / "below") == (30, False)


@pytest.mark.slow
def test_open_cache_is_not_used(package, tmp_path):
    """Machine code that others may have put there is not run."""
    place = tmp_path / "cache"
    assert calling(package, place) == (30, False)
    (place / "oralib").chmod(0o777)
    assert calling(package, place) == (30, False)


#: Bounds of a rule for several counts, which calls a kernel, and whether the kernel was compiled.
BOUNDS_OF = """import oralib.bounds.{module} as module
print(*module.{rule}().lower_bound([60, 80, 90], 100, n=1000, delta=1e-4).tolist())
kernel = module.{bounds}.__closure__[0].cell_contents
print(sum(kernel.compiled.stats.cache_misses.values()))"""


@pytest.mark.slow
def test_rules_keep_their_own_kernels(tmp_path):
    """Each is compiled by another process, and a third one loads the machine code of both."""
    rules = (("exact", "Exact", "exact_bounds"), ("random_r", "RandomR", "_bounds"))
    names = ("module", "rule", "bounds")
    programs = [BOUNDS_OF.format(**dict(zip(names, rule, strict=True))) for rule in rules]
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def printed(program):
        line = [sys.executable, "-c", program]
        return subprocess.check_output(line, env=env, text=True).splitlines()

    exact, random_r = ([float(x) for x in printed(program)[0].split()] for program in programs)
    claim = {"n": 1000, "delta": 1e-4}
    assert exact == [Exact().lower_bound(v, 100, **claim) for v in (60, 80, 90)]
    assert random_r == [RandomR().lower_bound(v, 100, **claim) for v in (60, 80, 90)]
    together = printed("\n".join(programs))
    assert [[float(x) for x in line.split()] for line in together[::2]] == [exact, random_r]
    assert together[1::2] == ["0", "0"]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A folder for caches, and a function that asks for the kernels' folder in it."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path / "oralib", jit._cache_folder.__wrapped__


def test_cache_folder_is_closed(cache):
    place, folder = cache
    found = folder()
    assert found.parent == place
    assert {path.stat().st_mode & 0o777 for path in (place, found)} == {0o700}
    for path in (place, found):
        for mode in (0o720, 0o702, 0o770, 0o777):
            path.chmod(mode)
            assert folder() is None
        path.chmod(0o755)  # others may read
        assert folder() == found


def test_cache_folder_belongs_to_the_user(cache, monkeypatch):
    place, folder = cache
    assert folder() is not None
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert folder() is None
    monkeypatch.undo()
    assert jit._is_closed(place)


@pytest.mark.parametrize("inner", [False, True])
def test_cache_folder_is_no_link(cache, inner):
    place, folder = cache
    path = folder() if inner else place
    folder()
    path.rename(path.parent / "elsewhere")
    path.symlink_to(path.parent / "elsewhere")
    assert folder() is None


#: What follows "import oralib", for single counts and one audit.
SINGLE = (
    "oralib.epsilon_lower_bound(160, 210)",
    "oralib.p_value(160, 210, 0.5)",
    "oralib.bounds.Gaussian().lower_bound(160, 210, n=1000, delta=1e-5)",
    "oralib.bounds.Independent().lower_bound(160, 210, n=1000, delta=1e-5)",
    "oralib.valid_lower_bound(oralib.Counts(160, 210, n=1000, r_fixed=True), delta=1e-5)",
    "oralib.valid_lower_bound(oralib.Counts(160, 210, n=1000), delta=1e-5)",
    "oralib.valid_lower_bound(oralib.Counts(160, 210, n=1000, feedback='full'))",
)


def test_single_counts_load_no_compiler():
    script = "\n".join(["import sys, oralib", *SINGLE, "print('numba' in sys.modules)"])
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True)
    assert (done.stdout.strip(), done.stderr) == (b"False", b"")


#: Counts, and how often a bound may fail: small, large, and at the edges.
COUNTS = [
    (v, r)
    for r in (1, 2, 7, 100, 1000, 99_999, 10**6, 10**9)
    for v in sorted({0, 1, r // 2, r // 2 + 1, 3 * r // 4, r - 1, r})
    if v <= r
]
BETAS = (5e-324, 1e-30, 0.05, 0.5, 1 - 1e-16)


@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-5, 1.0])
def test_plain_equals_compiled(delta):
    """One count takes the plain path, several take the compiled one: to the last bit."""
    v, r, beta = (np.array(x) for x in zip(*((*c, b) for c in COUNTS for b in BETAS), strict=True))
    n = 2 * r + 1
    epsilon = np.resize([0.0, 1e-9, 0.3, 2.0, 40.0, 800.0, np.inf], v.size)
    small, every = r <= 1000, slice(None, None, 7)
    rules = (
        (Steinke(), small),
        (Exact(), r > 0),
        (RandomR(), r > 0),
        (Gaussian(), small),
        (Independent(), small & (beta > 1e-9)),
    )
    for rule, chosen in rules:
        given = {"v": v, "r": r, "n": n, "beta": beta}
        given = {key: column[chosen][every] for key, column in given.items()}
        _check_rows(rule, partial(rule.lower_bound, delta=delta), given)
    for rule in (Steinke(), Exact()):
        given = {"v": v, "r": r, "n": n, "epsilon": epsilon}
        _check_rows(rule, partial(rule.p_value, delta=delta), given)
    if delta == 0:
        given = {"v": v, "r": r, "beta": beta}
        _check_rows(Anytime(), Anytime().lower_bound, given)
        _check_rows("accuracy", clopper_pearson_lower, given)


def _check_rows(name, function, columns):
    compiled = function(**columns)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    for row, expected in zip(rows, compiled, strict=True):
        assert function(**dict(zip(columns, row, strict=True))) == expected, (name, row)


def test_kernels_use_only_files_with_kernels():
    """A constant from elsewhere could change, and the machine code would keep the old one."""
    package = Path(oralib.__file__).parent
    sources = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts): path.read_text()
        for path in package.rglob("*.py")
    }
    kernels = {
        name: ast.parse(text)
        for name, text in sources.items()
        if "\n@jit\n" in text or "\n@formula\n" in text
    }
    assert len(kernels) > 10
    for name, module in kernels.items():
        origin = {
            alias.asname or alias.name: node.module
            for node in module.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for node in module.body:
            marks = set(map(ast.unparse, getattr(node, "decorator_list", ())))
            if isinstance(node, ast.FunctionDef) and marks & {"jit", "formula"}:
                inside = [part for line in node.body for part in ast.walk(line)]
                used = {part.id for part in inside if isinstance(part, ast.Name)}
                elsewhere = {word for word in used if origin.get(word, "").startswith("oralib")}
                assert {origin[word] for word in elsewhere} <= {*kernels}, (name, node.name)

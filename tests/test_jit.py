"""Cached kernels: forgotten when a source with kernels changes, closed to others, never needed.

New processes, with a home of their own, use a small package: the real decorator, and two kernels in
two files.
"""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_scores import gaussian, run, written

import oralib

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


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "oralib"
    folder.mkdir()
    shutil.copy(Path(oralib.__file__).parent / "_jit.py", folder)
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


def test_where_nothing_can_be_written_all_is_compiled(package, tmp_path):
    (tmp_path / "file").write_text("")
    assert calling(package, tmp_path / "file" / "below") == (30, False)


def test_one_audit_compiles_nothing_and_prints_the_same_without_a_warning(tmp_path):
    path = written(tmp_path / "scores.csv", *gaussian(200_000, shift=0.0))
    words = (str(path), "--delta", "1e-5", "--claim", "0.1", "--json")
    line, env = [sys.executable, "-m", "oralib", "audit", *words], {"PYTHONWARNINGS": "error"}
    done = subprocess.run(line, capture_output=True, text=True, env={**os.environ, **env})
    assert (done.returncode, done.stdout, done.stderr) == run(*words)


def test_what_a_kernel_uses_is_in_a_file_with_kernels():
    """A constant from elsewhere could change, and the machine code would keep the old one."""
    package = Path(oralib.__file__).parent
    sources = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts): path.read_text()
        for path in package.rglob("*.py")
    }
    kernels = {name: ast.parse(text) for name, text in sources.items() if "\n@jit\n" in text}
    assert len(kernels) > 10
    for name, module in kernels.items():
        origin = {
            alias.asname or alias.name: node.module
            for node in module.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for node in module.body:
            if isinstance(node, ast.FunctionDef) and "jit" in map(ast.unparse, node.decorator_list):
                inside = [part for line in node.body for part in ast.walk(line)]
                used = {part.id for part in inside if isinstance(part, ast.Name)}
                elsewhere = {word for word in used if origin.get(word, "").startswith("oralib")}
                assert {origin[word] for word in elsewhere} <= {*kernels}, (name, node.name)

"""Cached kernels are forgotten when any source file changes, and reused when none does."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import oralib

PACKAGE = Path(oralib.__file__).parent
BEFORE, AFTER = (
    "small = exp(-epsilon)\n        return 1",
    "small = exp(-2 * epsilon)\n        return 1",
)


def copy(folder: Path) -> Path:
    """The package in a folder of its own."""
    shutil.copytree(PACKAGE, folder / "oralib", ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "oralib"


def p_value(folder: Path, **environment: str) -> tuple[float, int]:
    """p_value(75, 100, 0.5) in a new process, and how many kernels came from the cache."""
    code = (
        "import oralib; from oralib.bounds import approximate as bounds;"
        "print(oralib.p_value(75, 100, 0.5), sum(bounds._p_values.stats.cache_hits.values()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    value, hits = done.stdout.split()
    return round(float(value), 6), int(hits)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["in tree", "NUMBA_CACHE_DIR"])
def test_an_edit_in_a_called_kernel_is_noticed(tmp_path, elsewhere):
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")} if elsewhere else {}
    package = copy(tmp_path)
    assert p_value(tmp_path, **environment) == (0.004805, 0)
    assert p_value(tmp_path, **environment) == (0.004805, 1)
    # The file of a called kernel changes; that of the calling one does not.
    called = package / "_binomial.py"
    assert BEFORE in called.read_text()
    called.write_text(called.read_text().replace(BEFORE, AFTER))
    assert p_value(tmp_path, **environment) == (0.382722, 0)


def test_other_versions_are_removed(tmp_path):
    package = copy(tmp_path)
    old = package / "__pycache__" / "oralib-kernels-0123456789abcdef"
    old.mkdir(parents=True)
    p_value(tmp_path)
    (kept,) = (package / "__pycache__").glob("oralib-kernels-*")
    assert kept != old


def test_an_unwritable_installation_works(tmp_path):
    """The cache folder cannot be made: the package still works."""
    package = copy(tmp_path)
    (package / "__pycache__").write_text("a file where the folder should be")
    user = str(tmp_path / "user")
    environment = {"PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": user, "HOME": user}
    assert p_value(tmp_path, **environment)[0] == 0.004805

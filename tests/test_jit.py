"""Cached kernels are forgotten when any source file changes, and reused when none does."""

import shutil
import subprocess
import sys
from pathlib import Path

import oralib

MODULES = {
    "__init__.py": "from oralib._jit import _forget_stale_kernels\n"
    "from pathlib import Path\n"
    "_forget_stale_kernels(Path(__file__).parent)\n",
    "inner.py": "from oralib._jit import jit\n\n@jit\ndef inner(x):\n    return x + 1\n",
    "outer.py": "from oralib._jit import jit\nfrom sample.inner import inner\n\n"
    "@jit\ndef outer(x):\n    return inner(x)\n",
}


def run(folder: Path) -> str:
    code = "from sample.outer import outer; print(outer(1), sum(outer.stats.cache_hits.values()))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_an_edit_in_a_called_kernel_is_noticed(tmp_path):
    package = tmp_path / "sample"
    package.mkdir()
    for name, text in MODULES.items():
        (package / name).write_text(text)
    assert run(tmp_path) == "2 0"
    assert run(tmp_path) == "2 1"
    # The file of the called kernel changes; that of the calling one does not.
    (package / "inner.py").write_text(MODULES["inner.py"].replace("x + 1", "x + 2"))
    assert run(tmp_path) == "3 0"


def test_an_unwritable_installation_works(tmp_path):
    """The cache folder cannot be made: the package still imports."""
    package = Path(oralib.__file__).parent
    copy = tmp_path / "oralib"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "__pycache__").write_text("a file where the folder should be")
    code = "import oralib; print(oralib.__file__)"
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert str(copy) in done.stdout

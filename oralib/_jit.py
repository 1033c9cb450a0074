"""The one decorator of every compiled kernel, and a kernel cache that is never stale."""

import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba

_PACKAGE = Path(__file__).parent
_NUMBA: Any = numba.config


def _cache_folder(base: str) -> Path:
    """Where the machine code of these very sources is kept: their digest is part of the name.

    Numba itself looks only at the file that defines a kernel, not at the files of the kernels it
    calls, and would go on using the old code of the latter.
    """
    others = ("claims", "runs")  # they hold no kernels
    sources = sorted(x for x in _PACKAGE.rglob("*.py") if x.parent.name not in others)
    digest = sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    return Path(base or _PACKAGE / "__pycache__") / f"oralib-kernels-{digest[:16]}"


def _forget_others(folder: Path) -> None:
    """Remove the machine code of other versions of the sources."""
    for old in folder.parent.glob("oralib-kernels-*"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)


_FOLDER = _cache_folder(_NUMBA.CACHE_DIR)
_forget_others(_FOLDER)


def jit(kernel: Callable[..., Any]) -> Any:
    """Compile a kernel on its first call.

    - ``cache=True``: a new process loads the machine code instead of compiling for seconds.
    - ``nogil=True``: blocks of trials run on several cores from plain Python threads.
    - ``error_model="numpy"``: a division by zero is inf or nan, as in the formulas, no exception.

    ``fastmath`` stays off: kernels rely on infinities and on the order of additions.
    """
    before = _NUMBA.CACHE_DIR
    _NUMBA.CACHE_DIR = str(_FOLDER)  # Numba reads it here, when it is told to cache
    try:
        return numba.njit(cache=True, nogil=True, error_model="numpy")(kernel)
    finally:
        _NUMBA.CACHE_DIR = before

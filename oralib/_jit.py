"""The one decorator of every compiled kernel, and a kernel cache that is never stale.

Numba looks only at the file that defines a kernel, not at the files of the kernels it calls, and
would keep using the old code of those. So the machine code is kept in a folder whose name is a
digest of all sources that hold kernels: below ``NUMBA_CACHE_DIR``, or else in the user's own
cache folder. Cached code is run as it is, so the folder is closed to other users. Where it cannot
be created, every process compiles for itself. Old folders are not removed.
"""

import contextlib
import sys
from collections.abc import Callable
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numba
import numpy as np
import platformdirs
from numba.core.caching import FunctionCache

_PACKAGE = Path(__file__).parent
_NUMBA: Any = numba.config


def _digest() -> str:
    """A digest of Numba's version and all sources with kernels, which hold their constants too."""
    digest = sha256(numba.__version__.encode())
    for source in sorted(_PACKAGE.rglob("[!.]*.py")):
        content = source.read_bytes()
        if b"\n@jit\n" in content:
            name = source.relative_to(_PACKAGE).as_posix()
            digest.update(f"\0{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def _cache_folder() -> Path | None:
    """Where the machine code of exactly these sources is kept; None if it cannot be kept."""
    with contextlib.suppress(OSError, RuntimeError):  # for a user without a home or a name
        place = Path(_NUMBA.CACHE_DIR or platformdirs.user_cache_path()).absolute() / "oralib"
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = place / f"kernels-{_digest()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder
    return None


def _is_one_audit() -> bool:
    """Whether this process is ``oralib audit`` or ``python -m oralib audit``."""
    words = [Path(word).stem for word in sys.orig_argv[1:4]]
    return any(pair == ("oralib", "audit") for pair in pairwise(words))


# One audit calls a kernel once or twice, in which Python is faster than a compiler.
if _is_one_audit():
    _NUMBA.DISABLE_JIT = True
    np.seterr(all="ignore")  # as in machine code

_FOLDER = _cache_folder()


def jit(kernel: Callable[..., Any]) -> Any:
    """Compile a kernel on its first call; another process loads its machine code.

    With ``nogil`` blocks of trials run on several cores from plain Python threads. A division by
    zero is inf or nan, as in the formulas. ``fastmath`` stays off: kernels rely on infinities and
    on the order of additions.
    """
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(kernel)
    if _FOLDER is not None and not _NUMBA.DISABLE_JIT:
        before, _NUMBA.CACHE_DIR = _NUMBA.CACHE_DIR, str(_FOLDER)  # where a new cache looks
        with contextlib.suppress(RuntimeError):  # if the folder cannot be written
            compiled._cache = FunctionCache(kernel)
        _NUMBA.CACHE_DIR = before
    return compiled

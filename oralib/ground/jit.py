"""The two decorators of compiled code, and a cache of machine code that is never stale.

A *formula* is a function of numbers: Python runs it as it is, and kernels compile it with
themselves. A *kernel* is a loop, compiled on its first call; Numba is loaded only then. So what
calls no kernel, such as the bound of a single count, waits for no compiler.

Numba looks only at the file that defines a kernel, not at the files of what it calls, and would
keep using the old code of those. So the machine code is kept in a folder whose name is a digest of
all sources that are compiled: below ``NUMBA_CACHE_DIR``, or else in the user's own cache folder.
Cached code is run as it is, so the folder is used only if it belongs to the user and nobody else
may write to it. Otherwise every process compiles for itself. Old folders are not removed.
"""

import contextlib
import os
import stat
from collections.abc import Callable
from functools import cache, update_wrapper
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

__all__ = ["Kernel", "formula", "jit"]

Function = TypeVar("Function", bound=Callable[..., Any])

#: The package oralib, all of whose kernels share one folder.
_PACKAGE = Path(__file__).parent.parent
#: The lines by which :func:`_digest` knows the sources that are compiled.
_MARKS = (b"\n@jit\n", b"\n@formula\n")
#: Held by the one thread that prepares kernels.
_LOCK = RLock()
#: The formulas that Numba does not know yet.
_formulas: list[Callable[..., Any]] = []


def formula(function: Function) -> Function:
    """Let kernels call a function of numbers, which stays as it is for Python."""
    _formulas.append(function)
    return function


class Kernel:
    """A function that is compiled on its first call; another process loads its machine code.

    ``plain`` is the function in Python.
    """

    def __init__(self, plain: Callable[..., Any]) -> None:
        update_wrapper(self, plain)
        self.plain = plain
        self._compiled: Any = None

    def __call__(self, *values: Any) -> Any:
        """Run the machine code."""
        return (self._compiled or self.compiled)(*values)

    @property
    def compiled(self) -> Any:
        """Numba's function."""
        with _LOCK:
            if self._compiled is None:
                self._compiled = _compiled(self.plain)
        return self._compiled

    @property
    def _numba_type_(self) -> Any:
        """The type that Numba gives to its function, so that kernels can call each other."""
        return self.compiled._numba_type_


def jit(function: Callable[..., Any]) -> Any:
    """Make a kernel of a function.

    With ``nogil`` blocks of trials run on several cores from plain Python threads. A division by
    zero is inf or nan, as in the formulas. ``fastmath`` stays off: kernels rely on infinities and
    on the order of additions.
    """
    return Kernel(function)


def _compiled(function: Callable[..., Any]) -> Any:
    """Return Numba's function, whose machine code is kept in the folder of these sources."""
    import numba  # here, because it is slow to import
    from numba.core.caching import FunctionCache

    while _formulas:
        numba.extending.register_jitable(error_model="numpy")(_formulas.pop())
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(function)
    config: Any = numba.config
    folder = _cache_folder()
    if folder is not None and not config.DISABLE_JIT:
        before = config.CACHE_DIR
        config.CACHE_DIR = str(folder)  # where a new cache looks
        with contextlib.suppress(RuntimeError):  # if the folder cannot be written
            compiled._cache = FunctionCache(function)
        config.CACHE_DIR = before
    return compiled


@cache
def _cache_folder() -> Path | None:
    """Return the folder for the machine code of exactly these sources; None if there is none."""
    import numba
    import platformdirs

    config: Any = numba.config
    with contextlib.suppress(OSError, RuntimeError):  # for a user without a home or a name
        place = Path(config.CACHE_DIR or platformdirs.user_cache_path()).absolute() / "oralib"
        folder = place / f"kernels-{_digest(numba.__version__)}"
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_closed(place):
            folder.mkdir(mode=0o700, exist_ok=True)
            if _is_closed(folder):
                return folder
    return None


def _is_closed(folder: Path) -> bool:
    """Return True for a folder of the user, not a link, to which nobody else may write."""
    if not hasattr(os, "geteuid"):  # Windows, where every user has a cache folder
        return True
    status = os.lstat(folder)
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return is_own and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _digest(numba_version: str) -> str:
    """Return a digest of Numba's version and all compiled sources, which hold their constants."""
    digest = sha256(numba_version.encode())
    for source in sorted(_PACKAGE.rglob("[!.]*.py")):
        content = source.read_bytes()
        if any(mark in content for mark in _MARKS):
            name = source.relative_to(_PACKAGE).as_posix()
            digest.update(f"\0{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]

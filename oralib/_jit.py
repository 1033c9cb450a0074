"""The one decorator of every compiled kernel, and a kernel cache that is never stale.

Machine code is kept where ``NUMBA_CACHE_DIR`` says, or else in the user's own cache folder, and
never beside the sources. Cached code is run as it is, so it is taken only from a folder that no
other user can write. Where there is no such folder every process compiles for itself, which takes
longer and gives the same numbers.
"""

import contextlib
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import numba
import platformdirs
from numba.core.caching import FunctionCache

fcntl: Any = None  # on Windows, where nothing is locked and nothing removed
with contextlib.suppress(ImportError):
    fcntl = import_module("fcntl")

_PACKAGE = Path(__file__).parent
_NUMBA: Any = numba.config

#: Machine code that no process has asked for in so many days is removed.
_KEPT_DAYS = 30


# --------------------------------------------------------------------------------- the folder

#: The sources as they were when their digest was taken: one that is loaded again later may differ.
_STAMPS: dict[str, tuple[int, int]] = {}
_EDITED: set[Any] = set()
#: The constants of kernels as they were when these were defined.
_WRITTEN: dict[Any, dict[str, Any]] = {}


def _stamp(source: str) -> tuple[int, int]:
    status = os.stat(source)
    return status.st_mtime_ns, status.st_size


def _digest() -> str:
    """What machine code depends on: Numba, and every source that holds kernels or their constants.

    Numba itself looks only at the file that defines a kernel, not at the files of the kernels it
    calls, and would go on using the old code of the latter.
    """
    digest = sha256(numba.__version__.encode())
    for source in sorted(_PACKAGE.rglob("*.py")):
        name = source.relative_to(_PACKAGE)
        hidden = name.name.startswith(".") or not source.is_file()  # as editors leave them
        if name.parts[0] != "runs" and not hidden:  # they have no kernels
            _STAMPS[str(source)] = _stamp(str(source))
            content = source.read_bytes()
            digest.update(f"\0{name.as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def _cache_folder() -> Path | None:
    """Where the machine code of these very sources is kept; None if there is no safe place."""
    places = [Path(_NUMBA.CACHE_DIR).absolute() / "oralib"] if _NUMBA.CACHE_DIR else []
    with contextlib.suppress(RuntimeError):  # of a user without a home, and without a name
        places.append(platformdirs.user_cache_path("oralib", appauthor=False))
    name = f"kernels-{_digest()}"
    for place in places:
        # Without a home the user's folder is relative, and would be made wherever one works.
        if place.is_absolute():
            with contextlib.suppress(OSError):
                folder = _made(place / name)
                if _is_ours_alone(folder):
                    os.utime(folder)  # used today
                    return folder
    return None


def _made(folder: Path) -> Path:
    """The folder, made if it is not there and closed to others, by a name without links."""
    for place in (*reversed(folder.parents), folder):
        if not place.exists():
            place.mkdir(mode=0o700, exist_ok=True)
    return folder.resolve(strict=True)


def _is_ours_alone(folder: Path) -> bool:
    """Whether no other user (but root) can write into the folder or put another in its place."""
    if not hasattr(os, "geteuid"):
        return True  # Windows keeps a user's folders to the user by other means
    user = os.geteuid()
    status = folder.stat()
    if status.st_uid != user or status.st_mode & 0o777 != 0o700:
        return False
    for above in folder.parents:
        status = above.stat()
        open_to_others = status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX
        if status.st_uid not in (0, user) or open_to_others:
            return False
    return True


def _hold(folder: Path) -> None:
    """Show other processes, as long as this one lives, that the folder is in use."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)  # closed with the process
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)


def _forget_old(folder: Path) -> None:
    """Remove the machine code of other sources that nobody uses and nobody has used for long."""
    if fcntl is None:
        return
    for other in folder.parent.glob(f"kernels-{'[0-9a-f]' * 16}"):
        with contextlib.suppress(OSError):
            if other == folder or time.time() - other.stat().st_mtime < _KEPT_DAYS * 86400:
                continue
            handle = os.open(other, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(other, ignore_errors=True)
            finally:
                os.close(handle)


_FOLDER = _cache_folder()
if _FOLDER is not None:
    _hold(_FOLDER)
    _forget_old(_FOLDER)


# ------------------------------------------------------------------------------ the decorator


def _is_as_written(kernel: Any) -> bool:
    """Whether all that a kernel calls is that of the sources, and nobody has replaced it."""
    seen: set[Any] = set()
    todo = [kernel]
    while todo:
        function = todo.pop()
        if function in _EDITED:
            return False
        if function in seen:
            continue
        seen.add(function)
        if _constants(function) != _WRITTEN.get(function, _constants(function)):
            return False  # Numba would make them part of the machine code
        for name in function.__code__.co_names:
            called = getattr(function.__globals__.get(name), "py_func", None)
            if called is not None:
                home = sys.modules.get(called.__module__)
                ours = getattr(home, called.__name__, None)
                if called.__module__.partition(".")[0] != __package__ or (
                    getattr(ours, "py_func", None) is not called
                ):
                    return False
                todo.append(called)
    return True


def _constants(kernel: Any) -> dict[str, Any]:
    """The numbers and words that a kernel takes from its module."""
    values = {name: kernel.__globals__.get(name) for name in kernel.__code__.co_names}
    return {
        name: x for name, x in values.items() if isinstance(x, bool | int | float | str | tuple)
    }


class _Cache(FunctionCache):
    """Numba's cache, where a file that cannot be read or written costs time and not the result."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if not _is_as_written(self._py_func):
            return None
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a file was cut short: a pickle can fail in any way
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        if not _is_as_written(self._py_func):
            return
        with contextlib.suppress(Exception):  # a full disk, or an index that was cut short
            super().save_overload(sig, data)


def _cache(kernel: Callable[..., Any]) -> _Cache | None:
    """The cache of a kernel in the folder; None if there is no folder, or Numba cannot use it."""
    source = kernel.__code__.co_filename
    with contextlib.suppress(OSError):
        if source in _STAMPS and _STAMPS[source] != _stamp(source):
            _EDITED.add(kernel)  # and loaded again
            return None
    if _FOLDER is None:
        return None
    before = _NUMBA.CACHE_DIR
    _NUMBA.CACHE_DIR = str(_FOLDER)  # where a new cache looks
    try:
        cache = _Cache(kernel)
    except RuntimeError:  # no place that can be written
        return None
    finally:
        _NUMBA.CACHE_DIR = before
    # Numba has other places to go to, which do not depend on the sources.
    return cache if Path(cache.cache_path).is_relative_to(_FOLDER) else None


def jit(kernel: Callable[..., Any]) -> Any:
    """Compile a kernel on its first call.

    - A cache: a new process loads the machine code instead of compiling for seconds.
    - ``nogil=True``: blocks of trials run on several cores from plain Python threads.
    - ``error_model="numpy"``: a division by zero is inf or nan, as in the formulas, no exception.

    ``fastmath`` stays off: kernels rely on infinities and on the order of additions.
    """
    _WRITTEN[kernel] = _constants(kernel)
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(kernel)
    cache = None if _NUMBA.DISABLE_JIT else _cache(kernel)
    if cache is not None:
        compiled._cache = cache
    return compiled

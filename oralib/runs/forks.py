"""A process that has imported what kernels need, and forks into one whenever it is asked to.

``warm`` starts it as a script of its own, maybe in another environment, so it needs the standard
library alone. It imports nothing of oralib, nor of the folder that it lies in: what may be edited
between two runs each kernel imports for itself.

It is asked by lines of JSON on its standard input, a socket, and answers each with one there.
``{"argv": ...}`` asks for a kernel, and the answer is its process id, or null where a kernel that
starts from nothing might import something else by now. ``{"pid": ...}`` asks for the exit status of
a kernel, which is null while it lives. When there are no more questions, it ends.
"""

import gc
import importlib
import importlib.machinery
import json
import os
import select
import signal
import sys
import threading
from typing import Any

#: Seconds without a question, and without a kernel, after which it ends.
_IDLE = 60

#: What every kernel imports.
_KERNEL = ("ipykernel.kernelapp", "ipykernel.debugger", "IPython.extensions.storemagic")

#: What packages read in the current folder when they are imported.
_SETTINGS = ("matplotlibrc", ".numba_config.yaml")


def main() -> None:
    """Answer, and in a process that was forked become a kernel."""
    # As every kernel does before it imports anything.
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    kernel = _asked_for(os.dup(0))
    if kernel is not None:
        _become(**kernel)


def _asked_for(answers: int) -> dict[str, Any] | None:
    """In a process that was forked, the kernel that it is to become; None at the end."""
    state: dict[str, object] = {}  # of the files that were imported
    places: dict[str, str | None] = {}  # where their packages were found
    kernels: set[int] = set()
    with os.fdopen(answers, "w") as said:
        while line := _question(kernels):
            question, answer = json.loads(line), None
            if "pid" in question:
                answer = _status(question["pid"])
            elif _is_at(question.pop("parent"), question.pop("cwd")) and not _has_settings():
                _import({*_KERNEL, *question.pop("packages")})
                state, places = _state() | state, _places() | places
                # A fork would lack the threads that start-up files of the user begin.
                if threading.active_count() == 1 and _is_as_from_nothing(state, places):
                    gc.freeze()  # kernels need not copy what is there, nor look for garbage in it
                    answer = os.fork()
                    if answer == 0:
                        return dict(question)
                    kernels.add(answer)
            said.write(json.dumps(answer) + "\n")
            said.flush()
    return None


def _question(kernels: set[int]) -> str:
    """The next one; nothing if nobody can ask any more, or nobody does and no kernel lives."""
    while not select.select([sys.stdin], [], [], _IDLE)[0]:
        if not any(_lives(pid) for pid in kernels):
            return ""
    return sys.stdin.readline()


def _is_at(pid: int, cwd: str) -> bool:
    """Be in this folder; False if there is none, or this is not the process that was meant.

    A folder may have been exchanged for another one of its name. And what starts Python may have
    put it into a container, where process ids are other ones.
    """
    try:
        os.chdir(cwd)
    except OSError:
        return False
    return os.getpid() == pid


def _import(names: set[str]) -> None:
    for name in sorted(names - set(sys.modules)):
        try:
            importlib.import_module(name)
        except Exception:  # a kernel that needs it will say so
            continue


def _has_settings() -> bool:
    return any(os.path.lexists(name) for name in _SETTINGS)


def _is_as_from_nothing(state: dict[str, object], places: dict[str, str | None]) -> bool:
    """Whether a new process here would import the same packages, and they are the same."""
    return _state() == state and _places(os.getcwd()) == places


def _state() -> dict[str, object]:
    """What changes when one of the files does that were imported, or read meanwhile."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    if "matplotlib" in sys.modules:
        files.append(sys.modules["matplotlib"].matplotlib_fname())  # its settings
    return {path: _state_of(path) for path in files if isinstance(path, str)}


def _state_of(path: str) -> object:
    try:
        status = os.stat(path)
    except NotADirectoryError:  # it lies in an archive
        return _state_of(os.path.dirname(path))
    except OSError:
        return None
    # Not the time of the last change: links that others make to an installed file change that, too.
    return status.st_ino, status.st_mtime_ns, status.st_size


def _places(cwd: str | None = None) -> dict[str, str | None]:
    """Where packages that were imported would be found, now and in this folder."""
    folders = list(sys.path)
    if cwd is not None:  # IPython puts it there
        kinds = [os.path.basename(folder) for folder in folders]
        first = [i for i, kind in enumerate(kinds) if kind in ("site-packages", "dist-packages")]
        folders.insert(min(first, default=0), cwd)
    importlib.invalidate_caches()
    names = {name.partition(".")[0] for name in sys.modules} - {"__main__"}
    found = {name: importlib.machinery.PathFinder.find_spec(name, folders) for name in names}
    return {name: None if spec is None else spec.origin for name, spec in found.items()}


def _lives(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:  # its status has been asked for
        return False


def _status(pid: int) -> int | None:
    """How a kernel has ended, as ``subprocess`` says it; None while it lives."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:  # where the system keeps no status, as the signal for it is ignored
        return -signal.SIGKILL
    return os.waitstatus_to_exitcode(status) if ended else None


def _become(argv: list[str], env: dict[str, str], stderr: str) -> None:
    """Go on as a kernel that was started with these arguments."""
    os.setsid()
    os.environ.clear()
    os.environ.update(env)
    _point(0, os.devnull)
    _point(2, stderr)
    if "numpy" in sys.modules:  # its generator would be the same in all forks
        sys.modules["numpy"].random.seed()
    sys.argv = ["ipykernel_launcher", *argv]
    sys.modules["ipykernel.kernelapp"].launch_new_instance()


def _point(number: int, path: str) -> None:
    """Let a file of this process be another one."""
    opened = os.open(path, os.O_RDWR | os.O_APPEND)
    os.dup2(opened, number)
    os.close(opened)


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:1] = [folder for folder in sys.path[:1] if folder != here]
    main()

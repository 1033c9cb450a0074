"""Ctrl-C, SIGTERM and a terminal that is closed: one line, and nothing left behind.

This is for ``python -m oralib`` and ``oralib``. Python imports the package before it runs
``oralib/__main__.py``, and that takes seconds. So the package imports this module first. If it is
being imported because of ``python -m oralib`` or of the script ``oralib``, and only then, each of
these signals ends the process at once, with one line: nothing has been started yet. When a command
is going to begin something that must be cleaned up, it calls :func:`raise_from_now_on`. From there
on a signal is an exception. A second signal ends the process at once.

What cannot be closed from here is the moment before the first line of the package: Python itself
starts, reads the files of ``site-packages`` and looks for the package, a few hundredths of a
second. Ctrl-C in that moment prints the traceback of Python's own. On Windows there is no SIGTERM
from other processes: they end this one without a word, and the next run clears what it has left.
"""

import os
import signal
import sys

# Nothing else is imported, not even typing: every import here is time in which Ctrl-C is not heard.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

#: What is said, and the exit status, as shells have it: 128 and the number of the signal.
ENDINGS = {signal.SIGINT: ("interrupted", 130), signal.SIGTERM: ("terminated", 143)}
if hasattr(signal, "SIGHUP"):  # not on Windows
    ENDINGS[signal.SIGHUP] = ("hung up", 129)


class Terminated(KeyboardInterrupt):
    """Another signal, to be treated like Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = signal.Signals(number)


def ended(error: KeyboardInterrupt, more: str = "") -> int:
    """Say how a command has ended, if anybody is there to hear it; the exit status."""
    word, status = ENDINGS[error.number if isinstance(error, Terminated) else signal.SIGINT]
    try:  # noqa: SIM105
        print(f"{word}{more}", file=sys.stderr)
    except OSError:  # of a terminal that has been closed
        pass
    return status


def end_at_once(number: int, frame: "Any" = None) -> "NoReturn":
    """One line, and the end: without exit handlers, which would print more."""
    word, status = ENDINGS[signal.Signals(number)]
    try:
        below = "\n" if os.isatty(2) else ""  # where a bar may be, and ^C
        os.write(2, f"{below}{word}\n".encode())
    finally:
        os._exit(status)


def interrupt(number: int, frame: "Any" = None) -> "NoReturn":
    """An exception, so that all is cleaned up; the next signal will not wait for it."""
    _handle(end_at_once)
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)


def raise_from_now_on() -> None:
    """Let signals be exceptions, in a process that was started by one of our commands."""
    _handle(interrupt, instead_of=end_at_once)


def end_from_now_on() -> None:
    """The work is done; a signal need not be an exception any more."""
    _handle(end_at_once, instead_of=interrupt)


def not_imported(kind: "Any", error: "Any", trace: "Any") -> "NoReturn":
    """One line for what another package raises while it is imported, as for want of memory.

    The status is not 1, Python's own, by which ``audit`` says that a claim is refuted.
    """
    said = f"{kind.__name__}: {' '.join(str(error).split())}"
    os.write(2, f"error: oralib cannot be imported: {said}\n".encode(errors="backslashreplace"))
    os._exit(2)


def _handle(handler: "Any", instead_of: "Any" = None) -> None:
    for number in ENDINGS:
        now = signal.getsignal(number)
        if now is not signal.SIG_IGN and instead_of in (None, now):  # nohup and & ignore them
            signal.signal(number, handler)


def is_script() -> bool:
    """Whether this process was started by the script that an installation makes.

    Its workers have the same ``sys.argv``, but Python itself was not started with it.
    """
    started = (getattr(sys, "argv", None) or [""])[0]
    name = os.path.basename(started).removesuffix(".exe").removesuffix("-script.py")
    names = [os.path.basename(word) for word in sys.orig_argv[1:]]
    place = next((i for i, word in enumerate(names) if word.startswith("oralib")), None)
    return name == "oralib" and place is not None and "-c" not in names[:place]


def is_module() -> bool:
    """Whether this process was started by ``python -m oralib``, not by a module that uses it."""
    words = iter(sys.orig_argv[1:])
    for word in words:
        if word == "--check-hash-based-pycs":
            next(words, None)
        elif not word.startswith("-"):
            return False
        elif not word.startswith("--"):
            for end, letter in enumerate(word[1:], start=2):
                if letter == "m":
                    return (word[end:] or next(words, "")) == "oralib"
                if letter == "c":
                    return False
                if letter in "WX":  # the rest, or the next word, belongs to it
                    if not word[end:]:
                        next(words, None)
                    break
    return False


# Python has set this in the moment when it imports the package of a module given to -m. That may be
# one of somebody else, which imports this one; its signals are its own.
if (getattr(sys, "argv", [""])[:1] == ["-m"] and is_module()) or is_script():
    _handle(end_at_once)
    sys.excepthook = not_imported
    # Where a stream is closed, the next file that is opened would get its number, and kernels would
    # inherit that.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest number that is free; kernels are to inherit it, as any stream.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    # What would end in a traceback of another package, as soon as it is imported.
    try:
        os.getcwd()
    except OSError:
        os.write(2, b"error: the current folder does not exist any more\n")
        os._exit(1)
    threads = os.environ.get("NUMBA_NUM_THREADS", "1")
    if not threads.isdecimal() or not 1 <= int(threads[:9]) <= (os.cpu_count() or 1):
        said = f"NUMBA_NUM_THREADS must lie in [1, {os.cpu_count()}], got {threads!a}"
        os.write(2, f"error: {said}\n".encode())
        os._exit(2)

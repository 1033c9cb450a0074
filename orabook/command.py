"""Paths, errors and the end of the process: the same for every command line."""

import argparse
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TypeAlias

__all__ = ["path", "process", "run_command"]

#: What ``ArgumentParser.add_subparsers`` returns, to which a command adds its parser.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def path(text: str) -> Path:
    """Read a path, with ``~`` for home where a shell does not expand it, as in ``--out=~/runs``."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:  # there is no such user
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None


def run_command(chosen: argparse.Namespace, *, trouble: int) -> int:
    """Run a command and return its status.

    It is 2 after a wrong argument, and ``trouble`` if a file cannot be used.
    """
    try:
        return int(chosen.command(chosen))
    except ValueError as error:
        print(f"error: {' '.join(str(error).splitlines())}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or error
        message = f"{reason}: {error.filename}" if error.filename else reason
        print(f"error: {message}", file=sys.stderr)
        return trouble


def process(main: Callable[[], int]) -> NoReturn:
    """End the process with the status of a command line, whatever happens to it."""
    for stream in (sys.stdout, sys.stderr):  # folder names may contain bytes that are not text
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        status = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        status = 130
    except OSError as error:  # the reader has stopped, as head does, or the disk is full
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = 141 if isinstance(error, BrokenPipeError) else 2
    except Exception:  # a bug in our code; Python's own status, 1, means that a run has failed
        traceback.print_exc()
        status = 2
    sys.exit(status)

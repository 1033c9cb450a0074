"""The common parts of commands: options, exit statuses, and a sign of life.

Nothing here imports NumPy, so that help and usage errors come at once.
"""

import argparse
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

if TYPE_CHECKING:
    from oralib import Training

__all__ = [
    "CANNOT_TELL",
    "STATUSES",
    "USAGE",
    "Commands",
    "Usage",
    "add_claim",
    "add_counts",
    "add_report",
    "add_training",
    "canaries",
    "clock",
    "complain",
    "formatted",
    "process",
    "saved",
    "trainings",
]

#: The exit status of a usage error, as of every command.
USAGE = 2

#: The exit status of evidence that cannot be used, and of an audit that cannot tell.
CANNOT_TELL = 3

#: The end of each help text.
STATUSES = """exit status:
  0  passed
  1  failed: what was stated does not hold
  2  a usage error, such as a folder that exists
  3  cannot tell, or the evidence cannot be used
"""

#: What ``ArgumentParser.add_subparsers`` returns, to which a command adds its parser.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

#: The time in seconds until a command that goes on shows a clock.
PATIENCE = 2.0


class Usage(Exception):
    """A usage error; the message names the argument."""


# ---------------------------------------------------------------------------------------- options


def formatted(
    commands: Commands, name: str, *, help: str, description: str, statuses: str = STATUSES
) -> Any:
    """Add the parser of a command, whose texts keep their lines."""
    return commands.add_parser(
        name,
        help=help,
        description=description,
        epilog=statuses,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_claim(parser: argparse.ArgumentParser) -> None:
    """Add the option of the claimed (ε, δ)."""
    parser.add_argument(
        "--claim",
        nargs=2,
        action=_Claim,
        metavar=("EPSILON", "DELTA"),
        help="the (ε, δ) that the training is said to have",
    )


def add_training(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add the option of the stated training."""
    parser.add_argument(
        "--training",
        action="append",
        type=_stretch,
        required=required,
        metavar="SIGMA,RATE,STEPS",
        help="the stated training: noise multiplier, rate and steps; once for each stretch of it",
    )


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add the option of the folder for the report."""
    parser.add_argument(
        "--report",
        type=_new_folder,
        metavar="FOLDER",
        help="a new folder for the report: text, HTML, JSON, Markdown and JUnit",
    )


def add_counts(parser: argparse.ArgumentParser) -> None:
    """Add the options of guesses that are fixed before the scores are seen."""
    parser.add_argument(
        "--beta",
        type=_beta,
        default=0.05,
        help="how often each statement about counts may fail, by default 0.05",
    )
    parser.add_argument(
        "--side",
        choices=("both", "in"),
        default="both",
        help="guess the highest and the lowest scores (both, the default), or the highest only",
    )


def canaries(word: str) -> int:
    """Return a number of canaries."""
    number = _number(word)
    if not 1 <= number <= 2**53 or not number.is_integer():
        raise argparse.ArgumentTypeError(f"must be a whole number, at least 1, got {word!r}")
    return int(number)


class _Claim(argparse.Action):
    """The claimed (ε, δ), checked."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        epsilon, delta = (_number(word) for word in values)
        if not (epsilon > 0 and 0 < delta < 1):
            raise argparse.ArgumentError(
                self,
                f"must be ε > 0 and δ between 0 and 1, as in 2 1e-5, got {' '.join(values)}",
            )
        setattr(namespace, self.dest, (epsilon, delta))


def _stretch(word: str) -> tuple[float, float, int]:
    """Return a stretch of a stated training."""
    numbers = [_number(part) for part in word.split(",")]
    if len(numbers) == 3:
        sigma, rate, steps = numbers
        if sigma > 0 and 0 < rate <= 1 and steps >= 1 and steps.is_integer():
            return sigma, rate, int(steps)
    raise argparse.ArgumentTypeError(
        "must be SIGMA,RATE,STEPS with SIGMA > 0, 0 < RATE <= 1 and whole STEPS, as in "
        f"2.42,0.1,100, got {word!r}"
    )


def _number(word: str) -> float:
    """Return a finite number; NaN, with which no comparison holds, if the word is none."""
    try:
        number = float(word)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def _beta(word: str) -> float:
    """Return how often a statement may fail."""
    number = _number(word)
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and 1, as 0.05, got {word!r}")
    return number


def _new_folder(word: str) -> Path:
    """Return the path of a folder that does not exist."""
    try:
        path = Path(word).expanduser()  # as in --report=~/audit, which no shell expands
    except RuntimeError as error:  # there is no such user
        raise argparse.ArgumentTypeError(f"{word}: {error}") from None
    if os.path.lexists(path):
        raise argparse.ArgumentTypeError(f"must be a new folder, got {word!r}, which exists")
    return path.absolute()  # a script may change the working directory


def saved(command: str, folder: Path, save: Callable[[], None]) -> bool:
    """Save a report; return whether it lies there, and say in one line why not."""
    try:
        save()
    except OSError as error:
        reason = error.strerror or error
        complain(command, f"argument --report: {folder} cannot be written: {reason}")
        return False
    return True


def trainings(stretches: Sequence[tuple[float, float, int]]) -> "list[Training]":
    """Return the stated training; raise :class:`Usage` if no accountant can know it."""
    from oralib import Training

    try:
        return [Training(*stretch) for stretch in stretches]
    except ValueError as error:
        raise Usage(f"argument --training: {error}") from None


# ------------------------------------------------------------------------------------ while it runs


@contextmanager
def clock(task: str, after: float = PATIENCE) -> Iterator[None]:
    """Show the seconds of a long task on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    over = Event()
    start = monotonic()

    def tick() -> None:
        visible = False
        while not over.wait(after / 2):
            seconds = monotonic() - start
            if seconds >= after:
                visible = True
                print(f"\r{task}: {seconds:.0f} s", end="", file=sys.stderr, flush=True)
        if visible:
            print(f"\r{' ' * (len(task) + 12)}\r", end="", file=sys.stderr, flush=True)

    thread = Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def complain(command: str, reason: object) -> None:
    """Say in one line on stderr why a command has ended."""
    print(f"oraudit {command}: {' '.join(str(reason).split())}", file=sys.stderr)


def process(main: Callable[[], int]) -> NoReturn:
    """End the process with the status of a command, whatever happens to it.

    Python's own status after an error is 1, which here would say that a training has failed.
    """
    # ``orabook.command`` ends its processes alike, with other statuses: neither package imports the
    # other's commands, and a third home for fifteen lines would need more lines than it saves.
    for stream in (sys.stdout, sys.stderr):  # names of files may hold bytes that are not text
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        status = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        status = 130
    except BrokenPipeError:  # the reader has stopped, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = 141
    except Exception:
        traceback.print_exc()
        status = CANNOT_TELL
    sys.exit(status)

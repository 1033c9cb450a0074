"""What the commands do the same way: options, exit statuses, and a sign of life.

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

#: The exit status of a usage error, as of every command, and of evidence that cannot be used.
USAGE = 2
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

#: Seconds until a command that goes on says so.
PATIENCE = 2.0


class Usage(Exception):
    """A command that was given something that it does not allow; the message says what."""


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
    """Add what was fixed of the guesses before the scores were seen."""
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
    allowed = "a whole number, at least 1"
    number = _number(word, allowed)
    if number < 1 or not number.is_integer() or number > 2**53:
        raise argparse.ArgumentTypeError(f"must be {allowed}, got {word!r}")
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
        allowed = "ε > 0 and δ between 0 and 1, as in 2 1e-5"
        try:
            epsilon, delta = (_number(word, allowed) for word in values)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentError(self, str(error)) from None
        if not (epsilon > 0 and 0 < delta < 1):
            raise argparse.ArgumentError(self, f"must be {allowed}, got {' '.join(values)}")
        setattr(namespace, self.dest, (epsilon, delta))


def _stretch(word: str) -> tuple[float, float, int]:
    allowed = "SIGMA,RATE,STEPS with SIGMA > 0, 0 < RATE <= 1 and whole STEPS, as in 2.42,0.1,100"
    numbers = [_number(part, allowed, word) for part in word.split(",")]
    if len(numbers) == 3:
        sigma, rate, steps = numbers
        if sigma > 0 and 0 < rate <= 1 and steps >= 1 and steps.is_integer():
            return sigma, rate, int(steps)
    raise argparse.ArgumentTypeError(f"must be {allowed}, got {word!r}")


def _number(word: str, allowed: str, whole: str = "") -> float:
    """Return a finite number."""
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"must be {allowed}, got {whole or word!r}")
    return number


def _beta(word: str) -> float:
    allowed = "a number between 0 and 1, as 0.05"
    number = _number(word, allowed)
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"must be {allowed}, got {word!r}")
    return number


def _new_folder(word: str) -> Path:
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
        why = error.strerror or error
        complain(command, f"argument --report: {folder} cannot be written: {why}")
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
def clock(words: str, after: float = PATIENCE) -> Iterator[None]:
    """Show the seconds so far on stderr, if that is a terminal, to whoever waits for long."""
    if not sys.stderr.isatty():
        yield
        return
    over = Event()
    start = monotonic()

    def tick() -> None:
        shown = False
        while not over.wait(after / 2):
            seconds = monotonic() - start
            if seconds >= after:
                shown = True
                print(f"\r{words}: {seconds:.0f} s", end="", file=sys.stderr, flush=True)
        if shown:
            print(f"\r{' ' * (len(words) + 12)}\r", end="", file=sys.stderr, flush=True)

    thread = Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def complain(command: str, words: object) -> None:
    """Say in one line on stderr why a command has ended."""
    print(f"oraudit {command}: {' '.join(str(words).split())}", file=sys.stderr)


def process(main: Callable[[], int]) -> NoReturn:
    """End the process with the status of a command, whatever happens to it.

    Python's own status after an error is 1, which here would say that a training has failed.
    """
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

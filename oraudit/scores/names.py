"""The names of columns: a table must have one known pair of them, and each name once."""

from collections.abc import Iterable
from pathlib import Path

from oralib.ground import arguments
from oraudit.scores import limits
from oraudit.scores.unusable import UnusableFile

__all__ = ["KNOWN", "checked", "pairs", "shown"]

#: The two kinds of tables: columns of what is judged, and of coins.
PAIRS = (("score", "included"), ("guess", "truth"))

#: The columns that are read; others are ignored.
KNOWN = ("id", *PAIRS[0], *PAIRS[1])

#: The largest number of names that an error shows.
_SHOWN = 8


def pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the pairs of columns that are there."""
    lower = {name.strip().lower() for name in names}
    return [pair for pair in PAIRS if lower.issuperset(pair)]


def shown(names: list[str]) -> str:
    """Return the first names, for an error."""
    first = ", ".join(arguments.shown(name) for name in names[:_SHOWN])
    return f"{first}, ..." if len(names) > _SHOWN else first


def checked(path: Path, names: list[str]) -> list[str]:
    """Return names in small letters; one pair of columns must be there, each column once."""
    if len(names) > limits.MOST_COLUMNS:
        raise UnusableFile(
            f"{path} has {len(names):,} columns; at most {limits.MOST_COLUMNS:,} are read"
        )
    present = pairs(names)
    if not present:
        raise UnusableFile(
            f"{path} has no names of columns: it must name score and included, or guess and "
            f"truth, got {shown(names)}"
        )
    if len(present) > 1:
        raise UnusableFile(f"{path} has scores and guesses; give a file with one of them")
    lower = [name.strip().lower() for name in names]
    for name in KNOWN:
        if lower.count(name) > 1:
            raise UnusableFile(
                f"{path} names the column {name} twice; each column must have a name of its own"
            )
    return lower

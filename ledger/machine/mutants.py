"""Mutants: small changes of one part of a claim, which its check must reject."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["WEAKER", "Mutant", "replaced", "shifted", "varied"]

#: A reason for which a check may let a mutant pass.
WEAKER = "a weaker statement, true as well"

#: The change of a constant, in percent, if a claim asks for no other.
PERCENT = 3


@dataclass(frozen=True)
class Mutant:
    """A small change of one part of a claim."""

    #: The part and its change, for people.
    name: str
    #: The keyword argument of the check that is changed.
    part: str
    #: From the part's value to the mutant's.
    change: Callable[[Any], Any]
    #: The reason why the check cannot reject it; empty if it must.
    excuse: str = ""


def varied(
    part: str, percent: float = PERCENT, *, up: str = "", down: str = ""
) -> tuple[Mutant, Mutant]:
    """Vary a constant by some percent up and down; ``up`` and ``down`` say why one may pass."""
    return (
        Mutant(f"{part} {percent:g}% up", part, lambda x: x * (1 + percent / 100), up),
        Mutant(f"{part} {percent:g}% down", part, lambda x: x * (1 - percent / 100), down),
    )


def shifted(part: str, by: float, *, up: str = "", down: str = "") -> tuple[Mutant, Mutant]:
    """Shift a number, for instance 0, up and down."""
    return (
        Mutant(f"{part} + {by:g}", part, lambda x: x + by, up),
        Mutant(f"{part} − {by:g}", part, lambda x: x - by, down),
    )


def replaced(part: str, excuse: str = "", **values: Any) -> tuple[Mutant, ...]:
    """Replace a part by each of some other values, given by name."""
    return tuple(
        Mutant(f"{part}: {name.replace('_', ' ')}", part, _constant(value), excuse)
        for name, value in values.items()
    )


def _constant(value: Any) -> Callable[[Any], Any]:
    return lambda _: value

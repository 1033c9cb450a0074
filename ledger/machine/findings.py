"""Findings, which checks return, made from cases or from several other findings."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any

__all__ = ["Cases", "Check", "Finding", "Function", "all_of", "each"]

Function = Callable[..., Any]
#: What a check compares: (name, one, other), in some checks with a standard error between the two.
Cases = Iterator[tuple[Any, ...]]


@dataclass(frozen=True)
class Finding:
    """The answer of a check about one version of a claim."""

    holds: bool
    evidence: str
    #: The evidence of each finding, if this one is put together from several.
    pieces: tuple[str, ...] = ()


Check = Callable[..., Finding]


def each(compare: Check, *options: Any, **named: Any) -> Callable[[Callable[..., Cases]], Check]:
    """Turn a function that yields cases into a check that compares all of them."""

    def decorate(cases: Callable[..., Cases]) -> Check:
        @wraps(cases)
        def check(**parts: Any) -> Finding:
            return compare(cases(**parts), *options, **named)

        return check

    return decorate


def all_of(*findings: Finding) -> Finding:
    """Join findings that hold, with the evidence of three; return the first that does not hold."""
    for finding in findings:
        if not finding.holds:
            return finding
    pieces = tuple(piece for finding in findings for piece in finding.pieces or (finding.evidence,))
    evidence = "; ".join(pieces[:3])
    rest = len(pieces) - 3
    if rest == 1:
        evidence += "; 1 more such result"
    elif rest > 1:
        evidence += f"; {rest} more such results"
    return Finding(True, evidence, pieces)

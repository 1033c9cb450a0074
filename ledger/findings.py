"""What a check returns, and how one is made from cases or from several findings."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any

Function = Callable[..., Any]
#: What a check compares: (name, one, other), in some checks with a standard error between the two.
Cases = Iterator[tuple[Any, ...]]


@dataclass(frozen=True)
class Finding:
    """What a check says about one version of a claim."""

    holds: bool
    evidence: str
    #: If it is put together from several findings, what each of them says.
    pieces: tuple[str, ...] = ()


Check = Callable[..., Finding]


def each(compare: Check, *options: Any, **more: Any) -> Callable[[Callable[..., Cases]], Check]:
    """Turn a function that yields cases into a check that compares all of them."""

    def decorate(cases: Callable[..., Cases]) -> Check:
        @wraps(cases)
        def check(**parts: Any) -> Finding:
            return compare(cases(**parts), *options, **more)

        return check

    return decorate


def all_of(*findings: Finding) -> Finding:
    """All findings hold; the first that does not, if any."""
    for finding in findings:
        if not finding.holds:
            return finding
    pieces = tuple(piece for found in findings for piece in found.pieces or (found.evidence,))
    more = len(pieces) - 3
    shown = pieces if more <= 0 else (*pieces[:3], f"{more} more such result{'s' * (more > 1)}")
    return Finding(True, "; ".join(shown), pieces)

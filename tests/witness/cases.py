"""All cases of the zoo, in the order of the table."""

from dataclasses import replace

from . import honest, loop_bugs, opacus_bugs, planted_cases
from .case import Case

__all__ = ["BUGS", "CASES", "HONEST"]

#: Bugs by where they come from. Those of several processes are in test_audit_distributed.
_SOURCES: dict[str, list[Case]] = {
    "known when the checks were written": opacus_bugs.DESIGN,
    "first met afterwards": opacus_bugs.FRESH,
    "first met afterwards, second batch": opacus_bugs.AGAIN,
    "the neighbour test": [*opacus_bugs.NEIGHBOURS, *loop_bugs.PURE],
    "a loop of one's own": [*loop_bugs.OWN, *loop_bugs.FRAMEWORKS],
    "known limits": opacus_bugs.LIMITS,
    "the noise is deleted": [*opacus_bugs.DELETED, *loop_bugs.DELETED],
    "what may be post-processing": opacus_bugs.HARMLESS,
    "planted by a reader, and missed": planted_cases.CASES,
}

BUGS: list[Case] = [
    replace(case, source=source) for source, cases in _SOURCES.items() for case in cases
]
HONEST: list[Case] = [replace(case, source="honest") for case in honest.CASES]
CASES: list[Case] = [*BUGS, *HONEST]

"""Claims: how one is entered in the ledger, and how its verdict is computed.

A row of the ledger is a check, a function under decorators that say the rest about its claim::

    @statement("eq:certain-guesses-of-ora", "Section E.3.2")
    @explained("E-adaptive-auditing#paper-section-e-3-count")
    @correction("n 2^(1−n): if all elements agree, all n of them are guessed.", power=1.0)
    @mutants(varied("power"))
    def certain_guesses_of_ora(power: float = 0.0, base: float = 2.0) -> Finding:
        \"\"\"ORA of Count takes 2^(1−n) certain guesses on average.\"\"\"

The docstring is the claim, in our words. The arguments are its parts: constants, conditions, rules,
directions; their defaults are what the paper states. The check tries them on cases that are
computed from mechanisms, tables, games and laws, and returns whether the claim holds, with its
evidence. The verdict follows from the finding about the version that the paper states and, if that
does not hold, from the finding about our correction. The file ``rows.txt`` numbers the rows.

A claim also has mutants. Each changes one part a little: a constant goes up or down by a few
percent, a condition is dropped, a direction is reversed. Constants that are stated as a ``float``
other than 0 and infinity are varied without being asked for; other mutants are listed. The check
must reject all of them. Where it cannot, the claim says why: some mutants are weaker statements
that are also true, and others differ by less than a simulation can see.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from itertools import product
from math import inf
from pathlib import Path
from typing import Any, Literal

from ledger.machine.findings import Check, Finding
from ledger.machine.mutants import Mutant, varied

__all__ = [
    "CORRECTED",
    "DEFINITION",
    "FAILS",
    "HOLDS",
    "IMPLEMENTED",
    "OURS",
    "STATEMENT",
    "Claim",
    "Verdict",
    "claims",
    "correction",
    "definition",
    "explained",
    "fails_unless",
    "mutants",
    "ours",
    "own_place",
    "remark",
    "statement",
]

HOLDS = "holds"
CORRECTED = "holds with a correction"
FAILS = "fails as stated"
IMPLEMENTED = "implemented"

#: The sorts of claims. A definition cannot hold; it can be implemented, and its properties checked.
STATEMENT = "statement"
DEFINITION = "definition"
OURS = "ours"

Kind = Literal[
    "exact enumeration",
    "closed form",
    "quadrature",
    "Monte Carlo",
    "counterexample",
    "linear program",
]
Decorator = Callable[[Check], Check]

#: Changes of a number, in percent, by which the fineness of a simulation is found, largest first.
PERCENTS = (10.0, 5.0, 2.0, 1.0)


# -------------------------------------------------------------------- claims and verdicts


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim, with its evidence."""

    claim: "Claim"
    #: Holds, holds with a correction, or fails as stated; for a definition implemented or fails.
    verdict: str
    #: The evidence for the version that the paper states.
    evidence: str
    #: The evidence for our correction, if one was needed.
    evidence_of_correction: str
    #: Whether the check accepted some version.
    accepted: bool
    #: The mutants that the check rejected, and those that it let pass; empty if none were tried.
    rejected: tuple[Mutant, ...] = ()
    passed: tuple[Mutant, ...] = ()
    #: The fineness of a simulation: for each number the least change, in percent, that is rejected.
    finest: Mapping[str, float] = field(default_factory=dict)

    @property
    def tried(self) -> int:
        """The number of mutants that were tried."""
        return len(self.rejected) + len(self.passed)

    @property
    def missed(self) -> tuple[Mutant, ...]:
        """Mutants that passed but should not have."""
        return tuple(mutant for mutant in self.passed if not mutant.excuse)

    @property
    def needlessly_excused(self) -> tuple[Mutant, ...]:
        """Mutants that were rejected although the claim says that its check cannot reject them."""
        return tuple(mutant for mutant in self.rejected if mutant.excuse)

    @property
    def as_expected(self) -> bool:
        """True if the verdict is the expected one, and the check as sharp as the claim says."""
        expected = self.verdict == self.claim.expected and self.accepted
        return expected and not self.missed and not self.needlessly_excused


@dataclass(frozen=True, eq=False)
class Claim:
    """A statement that can be checked."""

    #: Its place in the ledger.
    number: int
    #: Its name, for ``--only``; the label in the paper's source where there is one.
    label: str
    #: Statement, definition, or ours.
    sort: str
    #: Where the paper (or this book) states it.
    place: str
    #: The kind of its check.
    kind: Kind
    #: In one line, in our words.
    statement: str
    #: The check, from the parts of a claim to a finding.
    check: Check
    #: The parts as the paper states them.
    stated: Mapping[str, Any]
    #: Chapter and anchor where the book explains it.
    explained: str
    #: The verdict that we expect.
    expected: str
    #: Our correction in words, if the paper's parts do not hold, and the parts that it changes.
    correction: str = ""
    corrected: Mapping[str, Any] | None = None
    #: For a claim that fails and has no correction, parts that the check accepts.
    control: Mapping[str, Any] | None = None
    #: Small changes that the check must reject, or an excuse.
    mutants: tuple[Mutant, ...] = ()
    #: In words, what the check cannot see.
    remark: str = ""

    def verdict(self, *, mutants: bool = False) -> Verdict:
        """Run the check on every version and, if asked, on the mutants of the accepted one."""
        finding = self.check(**self.stated)
        name = FAILS
        accepted: Mapping[str, Any] | None = None
        evidence_of_correction = ""
        if finding.holds:
            name = IMPLEMENTED if self.sort == DEFINITION else HOLDS
            accepted = self.stated
        elif self.corrected is not None:
            parts = {**self.stated, **self.corrected}
            correction = self.check(**parts)
            evidence_of_correction = correction.evidence
            if correction.holds:
                name = CORRECTED
                accepted = parts
        elif self.control is not None:
            parts = {**self.stated, **self.control}
            if self.check(**parts).holds:
                accepted = parts
        is_accepted = accepted is not None
        verdict = Verdict(self, name, finding.evidence, evidence_of_correction, is_accepted)
        if accepted is None or not mutants:
            return verdict
        return self._try_mutants(verdict, accepted)

    def _try_mutants(self, verdict: Verdict, accepted: Mapping[str, Any]) -> Verdict:
        passed: list[Mutant] = []
        rejected: list[Mutant] = []
        for mutant in self.mutants:
            parts = {**accepted, mutant.part: mutant.change(accepted[mutant.part])}
            if self.check(**parts).holds:
                passed.append(mutant)
            else:
                rejected.append(mutant)
        finest = self._finest(accepted) if self.kind == "Monte Carlo" else {}
        return replace(verdict, rejected=tuple(rejected), passed=tuple(passed), finest=finest)

    def _finest(self, accepted: Mapping[str, Any]) -> dict[str, float]:
        """The least change, in percent, that is rejected of each number.

        Of changes up and down the larger counts, or the only one that is ever rejected: the other
        makes the claim weaker.
        """
        finest: dict[str, float] = {}
        for part, sign in product(accepted, (1, -1)):
            value = accepted[part]
            if not _is_varied(value):
                continue
            rejected = 0.0
            for percent in PERCENTS:
                parts = {**accepted, part: value * (1 + sign * percent / 100)}
                if self.check(**parts).holds:
                    break
                rejected = percent
            if rejected:
                finest[part] = max(rejected, finest.get(part, 0.0))
        return finest


def _is_varied(value: Any) -> bool:
    """True for a number that a change in percent changes."""
    return isinstance(value, float) and value not in (0.0, inf)


# -------------------------------------------------------- decorators that enter a claim


#: The labels of all claims, in order. The book names rows by number: new ones go to the end, and
#: the line of one that is gone stays, so that no other claim gets its number.
_ROWS = (Path(__file__).parent.parent / "rows.txt").read_text(encoding="utf-8").split()

#: The claims by label, filled by the modules of :mod:`ledger.claims` when they are imported.
_LEDGER: dict[str, Claim] = {}

#: The chapters of the paper's sections and appendices.
_CHAPTERS = ["02-preliminaries", "03-problem-setting", "04-the-gaps", "05-efficacy", "06-dp-sgd"]
_CHAPTERS += ["A-guessing-based-auditing", "B-gaps-in-detail", "C-efficacy-in-detail"]
_CHAPTERS += ["D-dp-sgd-in-detail", "E-adaptive-auditing"]


def claims() -> list[Claim]:
    """All claims, in order."""
    return [_LEDGER[label] for label in _ROWS if label in _LEDGER]


def _enter(sort: str, label: str, place: str, kind: Kind = "exact enumeration") -> Decorator:
    """Enter a check in the ledger; the other decorators stand below and have run before."""

    def enter(check: Check) -> Check:
        if label in _LEDGER:
            raise ValueError(f"label must be new in the ledger, got {label}")
        if label not in _ROWS:
            raise ValueError(f"label must be a line of ledger/rows.txt, got {label}")
        parameters = inspect.signature(check).parameters.values()
        stated = {parameter.name: parameter.default for parameter in parameters}
        text = " ".join((check.__doc__ or "").split())
        details = {"expected": IMPLEMENTED if sort == DEFINITION else HOLDS, **_details(check)}
        details.setdefault("explained", own_place(place))
        details["mutants"] = _all_mutants(stated, details.get("mutants", ()))
        strict = _with_known_words(check, stated, details)
        number = _ROWS.index(label) + 1
        _LEDGER[label] = Claim(number, label, sort, place, kind, text, strict, stated, **details)
        return strict

    return enter


def _with_known_words(check: Check, stated: Mapping[str, Any], details: dict[str, Any]) -> Check:
    """Make a check raise an error for words that no version or mutant of the claim has.

    Without it, a check that asks for one of two words would take any other for the second.
    """
    versions = [stated, details.get("corrected") or {}, details.get("control") or {}]
    allowed: dict[str, set[str]] = {}
    for part, value in stated.items():
        if isinstance(value, str):
            of_versions = {version[part] for version in versions if part in version}
            of_mutants = {m.change(value) for m in details["mutants"] if m.part == part}
            allowed[part] = of_versions | of_mutants

    @wraps(check)
    def strict(**parts: Any) -> Finding:
        for part in allowed.keys() & parts.keys():
            if parts[part] not in allowed[part]:
                choices = ", ".join(sorted(allowed[part]))
                raise ValueError(f"{part} must be one of {choices}, got {part}={parts[part]!r}")
        return check(**parts)

    return strict


def _all_mutants(stated: Mapping[str, Any], listed: Sequence[Mutant]) -> tuple[Mutant, ...]:
    """The listed mutants, and each other number up and down, in the order of the parts."""
    families: dict[str, list[Mutant]] = {part: [] for part in stated}
    for mutant in listed:
        if mutant.part not in families:
            raise ValueError(f"a mutant must change one of {', '.join(stated)}, got {mutant.part}")
        families[mutant.part].append(mutant)
    for part, value in stated.items():
        if not families[part] and _is_varied(value):
            families[part] += varied(part)
    return tuple(mutant for family in families.values() for mutant in family)


# Decorators that enter a claim of each sort, by its label, its place and its kind of check.
statement = partial(_enter, STATEMENT)
definition = partial(_enter, DEFINITION)
ours = partial(_enter, OURS)


def explained(place: str) -> Decorator:
    """Name chapter and anchor that explain the claim, if not the statement of its number does."""
    return _detail(explained=place)


def correction(words: str, **parts: Any) -> Decorator:
    """Say what must be changed for the claim to hold, in words and as parts of the check."""
    return _detail(correction=words, corrected=parts, expected=CORRECTED)


def fails_unless(**parts: Any) -> Decorator:
    """Let the claim fail without a correction; with these parts the check accepts it."""
    return _detail(control=parts, expected=FAILS)


def mutants(*families: Sequence[Mutant]) -> Decorator:
    """List changes that the check must reject; numbers without one here are varied anyway."""
    return _detail(mutants=tuple(mutant for family in families for mutant in family))


def remark(words: str) -> Decorator:
    """Add a remark: the limits of the check, or the reason for its form."""
    return _detail(remark=words)


def _detail(**values: Any) -> Decorator:
    def keep(check: Check) -> Check:
        _details(check).update(values)
        return check

    return keep


def _details(check: Check) -> dict[str, Any]:
    """The details that decorators have added so far; they are kept with the function."""
    details: dict[str, Any] = vars(check).setdefault("details", {})
    return details


def own_place(place: str) -> str:
    """Find chapter and anchor of the first numbered statement of a place, if there is one.

    >>> own_place("Theorems 5.1 and C.1")
    '05-efficacy#paper-theorem-5-1'
    """
    numbered = re.search(r"(\w+?)s? (\w)\.(\d+)", place)
    if numbered is None:
        return ""
    kind, section, number = numbered.groups()
    (chapter,) = (name for name in _CHAPTERS if name.lstrip("0")[0] == section)
    return f"{chapter}#paper-" + f"{kind}-{section}-{number}".lower()

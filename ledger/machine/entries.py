"""What a claim is, how it is entered in the ledger, and how its verdict is computed.

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

HOLDS = "holds"
CORRECTED = "holds with a correction"
FAILS = "fails as stated"
IMPLEMENTED = "implemented"

#: What a row is about. A definition cannot hold; it can be implemented, and its properties checked.
STATEMENT, DEFINITION, OURS = "statement", "definition", "ours"

Kind = Literal[
    "exact enumeration",
    "closed form",
    "quadrature",
    "Monte Carlo",
    "counterexample",
    "linear program",
]
Decorator = Callable[[Check], Check]

#: Changes by which the fineness of simulations is told, largest first.
PERCENTS = (10.0, 5.0, 2.0, 1.0)


# -------------------------------------------------------------------- claims and verdicts


@dataclass(frozen=True)
class Verdict:
    """What came out for a claim."""

    claim: "Claim"
    #: Holds, holds with a correction, or fails as stated; for a definition implemented or fails.
    verdict: str
    #: For the version that the paper states.
    evidence: str
    #: For our correction, if one was needed.
    evidence_of_correction: str
    #: Whether the check accepted some version.
    accepted: bool
    #: The mutants that the check rejected, and those that it let pass; empty if none were tried.
    rejected: tuple[Mutant, ...] = ()
    passed: tuple[Mutant, ...] = ()
    #: How fine a simulation tells: for each number the least change, in percent, that is rejected.
    finest: Mapping[str, float] = field(default_factory=dict)

    @property
    def tried(self) -> int:
        """How many mutants were tried."""
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
        """Whether the verdict is the expected one, and the check as sharp as the claim says."""
        expected = self.verdict == self.claim.expected and self.accepted
        return expected and not self.missed and not self.needlessly_excused


@dataclass(frozen=True, eq=False)
class Claim:
    """One checkable statement."""

    #: Its place in the ledger.
    number: int
    #: Its name, for ``--only``; the label in the paper's source where there is one.
    label: str
    #: Statement, definition, or ours.
    sort: str
    #: Where the paper (or this book) states it.
    place: str
    #: Which kind of check it has.
    kind: Kind
    #: In one line, in our words.
    statement: str
    #: From the parts of a claim to a finding.
    check: Check
    #: The parts as the paper states them.
    stated: Mapping[str, Any]
    #: Chapter and anchor where the book explains it.
    explained: str
    #: The verdict that we expect.
    expected: str
    #: What we say if the paper's parts do not hold, and the parts that we change then.
    correction: str = ""
    corrected: Mapping[str, Any] | None = None
    #: For a claim that fails and has no correction, parts that the check accepts.
    control: Mapping[str, Any] | None = None
    #: Small changes that the check must reject, or an excuse.
    mutants: tuple[Mutant, ...] = ()
    #: What the check cannot see, in words.
    remark: str = ""

    def verdict(self, *, mutants: bool = False) -> Verdict:
        """Run the check on every version and, if asked, on the mutants of the accepted one."""
        finding = self.check(**self.stated)
        accepted = dict(self.stated) if finding.holds else None
        evidence, word = "", FAILS
        if finding.holds:
            word = IMPLEMENTED if self.sort == DEFINITION else HOLDS
        elif self.corrected is not None:
            parts = {**self.stated, **self.corrected}
            correction = self.check(**parts)
            evidence = correction.evidence
            if correction.holds:
                word, accepted = CORRECTED, parts
        elif self.control is not None:
            parts = {**self.stated, **self.control}
            accepted = parts if self.check(**parts).holds else None
        verdict = Verdict(self, word, finding.evidence, evidence, accepted is not None)
        return verdict if accepted is None or not mutants else self._try_mutants(verdict, accepted)

    def _try_mutants(self, verdict: Verdict, accepted: Mapping[str, Any]) -> Verdict:
        passed: list[Mutant] = []
        rejected: list[Mutant] = []
        for mutant in self.mutants:
            parts = {**accepted, mutant.part: mutant.change(accepted[mutant.part])}
            (passed if self.check(**parts).holds else rejected).append(mutant)
        finest = self._finest(accepted) if self.kind == "Monte Carlo" else {}
        return replace(verdict, rejected=tuple(rejected), passed=tuple(passed), finest=finest)

    def _finest(self, accepted: Mapping[str, Any]) -> dict[str, float]:
        """Of up and down the worse; one of them does not count if that makes the claim weaker."""
        found: dict[str, float] = {}
        for part, sign in product(accepted, (1, -1)):
            value, least = accepted[part], 0.0
            if isinstance(value, float) and value not in (0.0, inf):
                for percent in PERCENTS:
                    parts = {**accepted, part: value * (1 + sign * percent / 100)}
                    if self.check(**parts).holds:
                        break
                    least = percent
            if least:
                found[part] = max(least, found.get(part, 0.0))
        return found


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
        words = " ".join((check.__doc__ or "").split())
        details = {"expected": IMPLEMENTED if sort == DEFINITION else HOLDS, **_details(check)}
        details.setdefault("explained", own_place(place))
        details["mutants"] = _all_mutants(stated, details.get("mutants", ()))
        strict, number = _with_known_words(check, stated, details), _ROWS.index(label) + 1
        _LEDGER[label] = Claim(number, label, sort, place, kind, words, strict, stated, **details)
        return strict

    return enter


def _with_known_words(check: Check, stated: Mapping[str, Any], details: dict[str, Any]) -> Check:
    """The check, with an error for words that no version or mutant of the claim has.

    Without it, a check that asks for one of two words would take any other for the second.
    """
    versions = [stated, details.get("corrected") or {}, details.get("control") or {}]
    words = {part: set[str]() for part, value in stated.items() if isinstance(value, str)}
    for part, known in words.items():
        known |= {version[part] for version in versions if part in version}
        known |= {m.change(stated[part]) for m in details["mutants"] if m.part == part}

    @wraps(check)
    def strict(**parts: Any) -> Finding:
        for part in words.keys() & parts.keys():
            if parts[part] not in words[part]:
                allowed = ", ".join(sorted(words[part]))
                raise ValueError(f"{part} must be one of {allowed}, got {part}={parts[part]!r}")
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
        if not families[part] and isinstance(value, float) and value not in (0.0, inf):
            families[part] += varied(part)
    return tuple(mutant for family in families.values() for mutant in family)


#: A claim of each sort: its label, its place and its kind of check.
statement, definition, ours = (partial(_enter, sort) for sort in (STATEMENT, DEFINITION, OURS))


def explained(place: str) -> Decorator:
    """Chapter and anchor that explain the claim, if that is not the statement of its number."""
    return _detail(explained=place)


def correction(words: str, **parts: Any) -> Decorator:
    """What must be changed for the claim to hold, in words and as parts of the check."""
    return _detail(correction=words, corrected=parts, expected=CORRECTED)


def fails_unless(**parts: Any) -> Decorator:
    """The claim fails, and we have no correction; with these parts the check accepts it."""
    return _detail(control=parts, expected=FAILS)


def mutants(*families: Sequence[Mutant]) -> Decorator:
    """Changes that the check must reject, beside those of numbers that have none here."""
    return _detail(mutants=tuple(mutant for family in families for mutant in family))


def remark(words: str) -> Decorator:
    """What the check cannot see, or why it is made as it is."""
    return _detail(remark=words)


def _detail(**values: Any) -> Decorator:
    def keep(check: Check) -> Check:
        _details(check).update(values)
        return check

    return keep


def _details(check: Check) -> dict[str, Any]:
    """What the decorators below have said about the claim; it is kept with the function."""
    details: dict[str, Any] = vars(check).setdefault("details", {})
    return details


def own_place(place: str) -> str:
    """Chapter and anchor of the first numbered statement that is named, if there is one.

    >>> own_place("Theorems 5.1 and C.1")
    '05-efficacy#paper-theorem-5-1'
    """
    numbered = re.search(r"(\w+?)s? (\w)\.(\d+)", place)
    if numbered is None:
        return ""
    kind, section, number = numbered.groups()
    (chapter,) = (name for name in _CHAPTERS if name.lstrip("0")[0] == section)
    return f"{chapter}#paper-" + f"{kind}-{section}-{number}".lower()

"""What a claim is, how its verdict is computed, and how checks report.

A check is a function whose keyword arguments are the parts of the claim: constants, conditions,
rules, directions. It tries them on cases that are computed from mechanisms, tables, games and
laws, and says whether the claim holds, with its evidence. The verdict follows from what the check
says about the version that the paper states and, if that does not hold, about our correction.

A claim also has a family of mutants. Each changes one part a little: a constant goes up or down by
a few percent, a condition is dropped, a direction is reversed. The check must reject all of them.
Where it cannot, the claim says why: some mutants are weaker statements that are also true, and
others differ by less than a simulation can see.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial, wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from oralib.bounds import Counts, epsilon_lower_bound

HOLDS = "holds"
CORRECTED = "holds with a correction"
FAILS = "fails as stated"
IMPLEMENTED = "implemented"

#: What a row is about. A definition cannot hold; it can be implemented, and its properties checked.
STATEMENT, DEFINITION, OURS = "statement", "definition", "ours"

EXACT = "exact enumeration"
CLOSED = "closed form"
QUADRATURE = "quadrature"
MONTE_CARLO = "Monte Carlo"
COUNTEREXAMPLE = "counterexample"
LINEAR_PROGRAM = "linear program"

Function = Callable[..., Any]
#: What a check compares: (name, one, other), in some checks with a standard error between the two.
Cases = Iterator[tuple[Any, ...]]

#: Why a check may let a mutant pass.
WEAKER = "a weaker statement, true as well"

#: By how much constants are varied.
PERCENT = 3


@dataclass(frozen=True)
class Finding:
    """What a check says about one version of a claim."""

    holds: bool
    evidence: str


Check = Callable[..., Finding]


@dataclass(frozen=True)
class Mutant:
    """A small change of one part of a claim.

    Attributes
    ----------
    name : the part and its change, for people.
    part : which keyword argument of the check is changed.
    change : from the part's value to the mutant's.
    excuse : why the check cannot reject it; empty if it must.
    """

    name: str
    part: str
    change: Callable[[Any], Any]
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
    """Shift a number, for instance 0, up and down by this much."""
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


@dataclass(frozen=True)
class Verdict:
    """What came out for a claim.

    Attributes
    ----------
    verdict : computed from the findings: holds, holds with a correction, or fails as stated; for
        a definition implemented, or fails as stated.
    evidence : for the version that the paper states.
    evidence_of_correction : for our correction, if one was needed.
    accepted : whether the check accepted some version.
    rejected : the mutants that the check rejected; empty if they were not tried.
    passed : the mutants that it let pass.
    tried : whether mutants were tried.
    """

    claim: "Claim"
    verdict: str
    evidence: str
    evidence_of_correction: str
    accepted: bool
    rejected: tuple[Mutant, ...] = ()
    passed: tuple[Mutant, ...] = ()
    tried: bool = False

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
        return (
            self.verdict == self.claim.expected
            and self.accepted
            and not self.missed
            and not self.needlessly_excused
        )


@dataclass(frozen=True, eq=False)
class Claim:
    """One checkable statement.

    Attributes
    ----------
    number : its place in the ledger.
    label : its name, for ``--only``; the label in the paper's source where there is one.
    sort : statement, definition, or ours.
    place : where the paper (or this book) states it.
    statement : in one line, in our words.
    kind : of the check.
    explained : chapter and anchor where the book explains it.
    check : from the parts of a claim to a finding.
    stated : the parts as the paper states them.
    corrected, correction : the parts that we change if the paper's do not hold, and what we say.
    control : for a claim that fails and has no correction, parts that the check accepts.
    mutants : small changes that the check must reject, or an excuse.
    remark : what the check cannot see, in words.
    expected : the verdict that we expect.
    """

    number: int
    label: str
    sort: str
    place: str
    statement: str
    kind: str
    explained: str
    check: Check
    stated: Mapping[str, Any]
    corrected: Mapping[str, Any] | None
    correction: str
    control: Mapping[str, Any] | None
    mutants: tuple[Mutant, ...]
    remark: str
    expected: str

    def verdict(self, *, mutants: bool = False) -> Verdict:
        """Run the check on every version and, if asked, on the mutants of the accepted one."""
        stated = self.check(**self.stated)
        accepted: Mapping[str, Any] | None = self.stated if stated.holds else None
        evidence, holds = "", IMPLEMENTED if self.sort == DEFINITION else HOLDS
        verdict = holds if stated.holds else FAILS
        if not stated.holds and self.corrected is not None:
            parts = {**self.stated, **self.corrected}
            corrected = self.check(**parts)
            evidence = corrected.evidence
            if corrected.holds:
                verdict, accepted = CORRECTED, parts
        elif not stated.holds and self.control is not None:
            parts = {**self.stated, **self.control}
            accepted = parts if self.check(**parts).holds else None
        found = Verdict(self, verdict, stated.evidence, evidence, accepted is not None)
        return found if accepted is None or not mutants else self._tried(found, accepted)

    def _tried(self, found: Verdict, accepted: Mapping[str, Any]) -> Verdict:
        passed: list[Mutant] = []
        rejected: list[Mutant] = []
        for mutant in self.mutants:
            parts = {**accepted, mutant.part: mutant.change(accepted[mutant.part])}
            (passed if self.check(**parts).holds else rejected).append(mutant)
        return replace(found, rejected=tuple(rejected), passed=tuple(passed), tried=True)


#: The claims by number, filled by the modules of this package when they are imported.
_LEDGER: dict[int, Claim] = {}


#: The chapters of the paper's sections and appendices.
_CHAPTERS = (
    *("02-preliminaries", "03-problem-setting", "04-the-gaps", "05-efficacy", "06-dp-sgd"),
    *("A-guessing-based-auditing", "B-gaps-in-detail", "C-efficacy-in-detail"),
    *("D-dp-sgd-in-detail", "E-adaptive-auditing"),
)


def _own_place(place: str) -> str:
    """Chapter and anchor of the first numbered statement that is named.

    >>> _own_place("Theorems 5.1 and C.1")
    '05-efficacy#paper-theorem-5-1'
    """
    kind, section, number = re.findall(r"(\w+?)s? (\w)\.(\d+)", place)[0]
    (chapter,) = (name for name in _CHAPTERS if name.lstrip("0")[0] == section)
    return f"{chapter}#paper-" + f"{kind}-{section}-{number}".lower()


def _claim(
    sort: str,
    number: int,
    label: str,
    place: str,
    statement: str,
    *,
    stated: Mapping[str, Any],
    mutants: Iterable[Mutant | Sequence[Mutant]],
    kind: str = EXACT,
    explained: str = "",
    corrected: Mapping[str, Any] | None = None,
    correction: str = "",
    control: Mapping[str, Any] | None = None,
    remark: str = "",
    expected: str | None = None,
) -> Callable[[Check], Check]:
    """Add a check to the ledger, with its claim.

    A numbered statement is explained where the book has that number, unless another place is given.
    """

    def enter(check: Check) -> Check:
        if number in _LEDGER or any(label == other.label for other in _LEDGER.values()):
            raise ValueError(f"claim {number} ({label}) is in the ledger already")
        holds = IMPLEMENTED if sort == DEFINITION else HOLDS
        verdict = expected or (holds if corrected is None else CORRECTED)
        flat = [m for entry in mutants for m in ([entry] if isinstance(entry, Mutant) else entry)]
        for mutant in flat:
            if mutant.part not in stated:
                raise ValueError(f"claim {number} ({label}) has no part {mutant.part}")
        where = explained or _own_place(place)
        _LEDGER[number] = Claim(
            *(number, label, sort, place, statement, kind, where, check, stated, corrected),
            *(correction, control, tuple(flat), remark, verdict),
        )
        return check

    return enter


#: What a check is decorated with; the numbers order the ledger.
statement, definition, ours = (partial(_claim, sort) for sort in (STATEMENT, DEFINITION, OURS))


def claims() -> list[Claim]:
    """All claims, in order."""
    return [_LEDGER[number] for number in sorted(_LEDGER)]


# ----------------------------------------------------------------------- how checks report


def each(compare: Check, *given: Any, **options: Any) -> Callable[[Callable[..., Cases]], Check]:
    """Turn a function that yields cases into a check that compares all of them."""

    def decorate(cases: Callable[..., Cases]) -> Check:
        @wraps(cases)
        def check(**parts: Any) -> Finding:
            return compare(cases(**parts), *given, **options)

        return check

    return decorate


def first_least(values: Iterable[float]) -> int:
    """The place of the least number; of those that are equal up to rounding, the first.

    >>> first_least([0.3, 0.1 + 0.2 - 0.1, 0.2])
    1
    """
    numbers = np.fromiter(values, dtype=float)
    least = numbers.min()
    return int(np.argmax(numbers <= least + 1e-12 * max(1.0, abs(least))))


def first_largest(values: Iterable[float]) -> int:
    """The place of the largest number; of those that are equal up to rounding, the first."""
    return first_least(-value for value in values)


def equal(cases: Iterable[tuple[str, float, float]], tolerance: float = 1e-9) -> Finding:
    """Two numbers agree in each case (name, one, other)."""
    count = 0
    for name, one, other in cases:
        count += 1
        if not (one == other or abs(one - other) <= tolerance):
            return Finding(False, f"{name}: {one:.6g} against {other:.6g}")
    return Finding(count > 0, f"{count} equalit{'y' if count == 1 else 'ies'} to {tolerance:g}")


def at_most(cases: Iterable[tuple[str, float, float]], slack: float = 1e-9) -> Finding:
    """In each case (name, value, limit) the value does not exceed the limit."""
    tried = []
    for name, value, limit in cases:
        if not value <= limit + slack:
            return Finding(False, f"{name}: {value:.4g} exceeds {limit:.4g}")
        tried.append((name, value, limit))
    if not tried:
        return Finding(False, "nothing to try")
    gaps = (limit - value if value < np.inf else np.inf for _, value, limit in tried)
    name, value, limit = tried[first_least(gaps)]
    return Finding(True, f"tried {len(tried)}; closest {name}: {value:.4g}, limit {limit:.4g}")


def tends(values: Sequence[float], limit: float, tolerance: float) -> Finding:
    """The values come closer and closer to the limit, in the end within the tolerance."""
    distance = np.abs(np.asarray(values, dtype=float) - limit)
    closer = bool((distance[1:] <= distance[:-1] + 1e-12).all())
    return Finding(closer and bool(distance[-1] <= tolerance), towards(values, limit))


def towards(values: Sequence[float], limit: float) -> str:
    """A sequence and its limit; what is 0 up to rounding, on any machine, is shown as 0."""
    listed = ", ".join(f"{value:.4g}" if abs(value) > 1e-9 else "0" for value in values)
    return f"{listed} towards {limit:.4g}"


def same_answers(answers: Mapping[str, tuple[bool, bool]]) -> Finding:
    """The claim's yes or no is the computed one in each case {name: (claimed, computed)}."""
    for name, (claimed, computed) in answers.items():
        if claimed != computed:
            words = {True: "yes", False: "no"}
            return Finding(False, f"{name}: claimed {words[claimed]}, computed {words[computed]}")
    listed = ", ".join(answers) if len(answers) <= 8 else f"{len(answers)} cases"
    return Finding(bool(answers), f"right for {listed}")


def near(cases: Iterable[tuple[str, float, float, float]], errors: float = 4.0) -> Finding:
    """In each case (name, mean, standard error, target) the mean is near the target."""
    tried = list(cases)
    distance = [abs(mean - target) / error for _, mean, error, target in tried]
    name, mean, error, target = tried[first_largest(distance)]
    said = f"farthest {name}: {mean:.3f} ± {error:.3f} against {target:.3f}"
    return Finding(any(distance) and all(z <= errors for z in distance), said)


def fits(counts: Counts, law: NDArray[np.float64]) -> Finding:
    """Played counts have the given law, by a chi-square test at the level 1e-4."""
    observed = np.zeros_like(law)
    np.add.at(observed, (counts.v, counts.r), 1)
    expected = law * counts.trials
    often = expected >= 5
    seen = np.append(observed[often], observed[~often].sum())
    due = np.append(expected[often], expected[~often].sum())
    if (observed[law < 1e-12] > 0).any():
        return Finding(False, "an outcome that the law excludes was played")
    seen, due = seen[due > 0], due[due > 0]
    value = float(stats.chi2.sf(((seen - due) ** 2 / due).sum(), max(1, len(due) - 1)))
    return Finding(value > 1e-4, f"{counts.trials} plays fit the law, chi-square p = {value:.3f}")


def all_of(*findings: Finding) -> Finding:
    """All findings hold; the first that does not, if any."""
    bad = [finding for finding in findings if not finding.holds]
    if bad:
        return bad[0]
    said = [finding.evidence for finding in findings[:3]]
    more = [f"and {len(findings) - 3} more"] if len(findings) > 3 else []
    return Finding(True, "; ".join([*said, *more]))


# ------------------------------------------------------------------------ what checks share


def binomial_counts(r: int, q: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(v, P[Bin(r, q) = v]) for every v that matters."""
    spread = 9 * np.sqrt(r * q * (1 - q)) + 9
    v = np.arange(max(0, int(r * q - spread)), min(r, int(r * q + spread)) + 1)
    return v, stats.binom.pmf(v, r, q)


def mean_bound(r: int, q: float, beta: float = 0.05) -> float:
    """The mean bound of r guesses that are each right with probability q."""
    v, weight = binomial_counts(r, q)
    return float(weight @ epsilon_lower_bound(v, r, beta=beta))


def chance(q: float, r: int, event: Callable[[Any], Any]) -> float:
    """P[event(V)] for V ~ Bin(r, q)."""
    v, weight = binomial_counts(r, q)
    return float(weight @ np.asarray(event(v), dtype=float))


def failure(law: NDArray[np.float64], epsilon: float, beta: float) -> float:
    """How often the bound exceeds ε, if (V, R) has the law."""
    return float((law * exceeds(len(law) - 1, epsilon, beta)).sum())


@cache
def exceeds(n: int, epsilon: float, beta: float) -> NDArray[np.float64]:
    """1 where the bound of (v, r) exceeds ε by more than rounding, for v, r up to n."""
    v, r = np.indices((n + 1, n + 1))
    bound = epsilon_lower_bound(np.minimum(v, r), r, beta=beta)
    return ((bound > epsilon * (1 + 1e-9) + 1e-9) & (v <= r)).astype(float)


def critical_levels(r: int, q: float, spread: float = 0.003) -> list[float]:
    """Levels β at which a test of Bin(r, q) has no slack: any more would be too much.

    Just below each tail P[Bin(r, q) >= v]: at a level a little higher the count v would be
    rejected, with a probability above β.
    """
    tails = stats.binom.sf(np.arange(r), r, q)
    levels = tails[(tails > 1e-3) & (tails < 0.9)] / (1 + spread)
    return [float(level) for level in levels]


def accuracy_values(n: int, least: int) -> NDArray[np.float64]:
    """v / r where at least this many guesses are taken; elsewhere a value that is never best."""
    v, r = np.indices((n + 1, n + 1))
    return np.where((r >= least) & (v <= r), v / np.maximum(r, 1), -1e6)

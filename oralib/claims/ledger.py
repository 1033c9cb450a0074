"""What a claim is, how its verdict is computed, and the few words in which checks report.

A check is a function of one argument: a version of the claim. It tries that version on many cases
and says whether it holds, with its evidence. The verdict follows from what the check says of the
version that the paper states and, if that one does not hold, of our correction. Beside them each
claim has a version that is broken on purpose, which its check must reject.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from oralib.bounds import epsilon_lower_bound
from oralib.games import Counts

HOLDS = "holds"
CORRECTED = "holds with a correction"
FAILS = "fails as stated"

EXACT = "exact enumeration"
CLOSED = "closed form"
QUADRATURE = "quadrature"
MONTE_CARLO = "Monte Carlo"
COUNTEREXAMPLE = "counterexample"


@dataclass(frozen=True)
class Finding:
    """What a check says of one version of a claim."""

    holds: bool
    evidence: str


@dataclass(frozen=True)
class Verdict:
    """What came out for a claim.

    Attributes
    ----------
    verdict : computed from the findings: holds, holds with a correction, or fails as stated.
    evidence : of the version that the paper states.
    evidence_of_correction : of our correction, if there was need of one.
    can_tell : whether the check rejected the broken version and accepted some version.
    """

    claim: "Claim"
    verdict: str
    evidence: str
    evidence_of_correction: str
    can_tell: bool

    @property
    def as_expected(self) -> bool:
        """Whether the computed verdict is the expected one, from a check that can tell."""
        return self.verdict == self.claim.expected and self.can_tell


@dataclass(frozen=True, eq=False)
class Claim:
    """One checkable statement.

    Attributes
    ----------
    number : its place in the ledger.
    label : its name, for ``--only``; the label in the paper's source where there is one.
    place : where the paper (or this book) states it.
    statement : in one line, in our words.
    kind : of the check.
    explained : chapter and anchor where the book explains it.
    check : from a version of the claim to a finding.
    stated, broken : the paper's version, and one that must be rejected.
    corrected, correction : our version if the paper's does not hold, and what it says.
    control : for a claim that fails and has no correction, a version that the check accepts.
    expected : the verdict that we expect.
    """

    number: int
    label: str
    place: str
    statement: str
    kind: str
    explained: str
    check: Callable[[Any], Finding]
    stated: Any
    broken: Any
    corrected: Any
    correction: str
    control: Any
    expected: str

    def verdict(self) -> Verdict:
        """Perform the check on every version."""
        stated = self.check(self.stated)
        accepted, evidence = stated.holds, ""
        if stated.holds:
            verdict = HOLDS
        elif self.corrected is not None:
            corrected = self.check(self.corrected)
            verdict = CORRECTED if corrected.holds else FAILS
            accepted, evidence = corrected.holds, corrected.evidence
        else:
            verdict = FAILS
            accepted = self.control is not None and self.check(self.control).holds
        can_tell = accepted and not self.check(self.broken).holds
        return Verdict(self, verdict, stated.evidence, evidence, can_tell)


_LEDGER: dict[int, Claim] = {}


def claim(
    number: int,
    label: str,
    place: str,
    statement: str,
    kind: str,
    explained: str,
    *,
    stated: Any,
    broken: Any,
    corrected: Any = None,
    correction: str = "",
    control: Any = None,
    expected: str | None = None,
) -> Callable[[Callable[[Any], Finding]], Callable[[Any], Finding]]:
    """Enter a check into the ledger, with its claim."""

    def enter(check: Callable[[Any], Finding]) -> Callable[[Any], Finding]:
        if number in _LEDGER or any(label == other.label for other in _LEDGER.values()):
            raise ValueError(f"claim {number} ({label}) is in the ledger already")
        verdict = expected or (HOLDS if corrected is None else CORRECTED)
        _LEDGER[number] = Claim(
            *(number, label, place, statement, kind, explained, check),
            *(stated, broken, corrected, correction, control, verdict),
        )
        return check

    return enter


def ledger() -> list[Claim]:
    """All claims, in order."""
    return [_LEDGER[number] for number in sorted(_LEDGER)]


# ----------------------------------------------------------------------- how checks report


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
    count, closest = 0, ("", 0.0, np.inf)
    for name, value, limit in cases:
        count += 1
        if not value <= limit + slack:
            return Finding(False, f"{name}: {value:.4g} exceeds {limit:.4g}")
        if limit - value < closest[2] - closest[1]:
            closest = (name, value, limit)
    name, value, limit = closest
    return Finding(count > 0, f"tried {count}; closest {name}: {value:.4g}, limit {limit:.4g}")


def tends(values: Sequence[float], limit: float, tolerance: float) -> Finding:
    """The values come ever closer to the limit, in the end to within the tolerance."""
    distance = np.abs(np.asarray(values, dtype=float) - limit)
    closer = bool((distance[1:] <= distance[:-1] + 1e-12).all())
    listed = ", ".join(f"{value:.4g}" for value in values)
    return Finding(closer and bool(distance[-1] <= tolerance), f"{listed} towards {limit:.4g}")


def same_answers(answers: dict[str, tuple[bool, bool]]) -> Finding:
    """The claim's yes or no is the computed one in each case {name: (claimed, computed)}."""
    for name, (claimed, computed) in answers.items():
        if claimed != computed:
            words = {True: "yes", False: "no"}
            return Finding(False, f"{name}: claimed {words[claimed]}, computed {words[computed]}")
    return Finding(bool(answers), f"right for {', '.join(answers)}")


def near(cases: Iterable[tuple[str, float, float, float]], errors: float = 4.0) -> Finding:
    """In each case (name, mean, standard error, target) the mean is near the target."""
    worst, said = 0.0, ""
    for name, mean, error, target in cases:
        z = abs(mean - target) / error
        if z >= worst:
            worst, said = z, f"{name}: {mean:.3f} ± {error:.3f} against {target:.3f}"
    return Finding(bool(0 < worst <= errors), f"farthest {said}")


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


def failure(law: NDArray[np.float64], epsilon: float, beta: float) -> float:
    """How often the bound exceeds ε, if (V, R) has the law."""
    return float((law * exceeds(len(law) - 1, epsilon, beta)).sum())


def exceeds(n: int, epsilon: float, beta: float) -> NDArray[np.float64]:
    """1 where the bound of (v, r) exceeds ε by more than rounding, for v, r up to n."""
    v, r = np.indices((n + 1, n + 1))
    bound = epsilon_lower_bound(np.minimum(v, r), r, beta=beta)
    return ((bound > epsilon * (1 + 1e-9) + 1e-9) & (v <= r)).astype(float)


def accuracy_values(n: int, least: int) -> NDArray[np.float64]:
    """v / r where at least so many guesses are taken; elsewhere, what nobody would choose."""
    v, r = np.indices((n + 1, n + 1))
    return np.where((r >= least) & (v <= r), v / np.maximum(r, 1), -1e6)

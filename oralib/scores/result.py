"""What an audit has shown, what it could have shown, and under which assumptions."""

from bisect import bisect_left
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import isfinite, isnan
from typing import Any

import numpy as np

from oralib import _check
from oralib._text import paragraphs
from oralib.bounds import Counts, valid_lower_bound
from oralib.bounds.crossing import LARGEST_WALK
from oralib.bounds.graded import graded_p_value
from oralib.scores import sentences
from oralib.scores.seen import Seen

#: Coins with a smaller p-value are not accepted as fair, nor guesses as having the right sign.
UNFAIR = 1e-3

#: What a claim may protect: an example that is added or removed, or replaced by another.
ADJACENCIES = ("add-remove", "replace")

#: The largest number of guesses that :meth:`ScoreAudit.guesses_needed` considers.
_MOST_GUESSES = 10**12


@dataclass(frozen=True)
class ScoreAudit:
    """What an audit has shown, and under which assumptions; ``str()`` of it is a report.

    Attributes
    ----------
    bound : float
        With probability 1 - β it does not exceed the ε of an (ε, δ)-DP training run.
    pure_bound : float
        The same for δ = 0.
    fdp_bound : float
        The same, only for a training run whose trade-off curve is Gaussian; nan where the number of
        guesses was not fixed, where δ = 0, or with feedback.
    estimate, accuracy : float
        The ε that the accuracy v / r alone suggests, which is not a bound; and v / r.
    v, r, n : int
        Right guesses, all guesses, and audited canaries, guessed or not.
    delta, beta : float
        The δ of the claim, and how often a bound may fail.
    test_beta : float
        The failure probability of each test: β, or β / m with m numbers of guesses.
    rule : str
        The p-value behind the bound, as :func:`oralib.valid_rule` names it, or ``"graded"``.
    number : str
        How the number of guesses was chosen: ``"fixed"``, ``"grid"``, ``"graded"``, ``"split"``, or
        ``"output"`` if the output determined it.
    grid : tuple of int
        All numbers of guesses that were tried.
    grades : tuple
        For each grade its right guesses, all of them, and what a right one counts, or nothing.
    side : str or None
        Which scores were guessed, as in :func:`oralib.audit_scores`; None if guesses were given.
    canaries, included : int or None
        The number of all canaries, audited or not, and of those that were included; None if only
        counts were given.
    coins_p_value : float or None
        How often fair coins are this uneven.
    ties_drawn, seed : int, int or None
        Guesses that were drawn by lot among equal scores; the seed of that and of the split.
    feedback : str
        What the guesser was told as it went, as :class:`oralib.Counts` names it.
    coins, r_in : str, int or None
        How canaries were chosen, and for balanced coins how many guesses say "included", as
        :class:`oralib.Counts` names them.
    adjacency : str
        What the claim protects, as in :func:`oralib.audit_scores`.
    auroc, tpr_at_1_percent : float or None
        How well the scores rank the audited canaries, and which share of the included ones scores
        higher than all but 1% of the others. Neither is a bound.
    seen : Seen or None
        What the canaries saw of the training, if they made the scores.
    problem : str
        Why nothing has been shown: coins that are not fair, or balance for a reason not given,
        canaries that are listed twice, or scores of the wrong sign. Then all bounds are nan.
        Otherwise empty.
    notes : tuple of str
        What to know before you believe these numbers.

    Examples
    --------
    >>> from oralib import audit_counts
    >>> audit = audit_counts(Counts(75, 100, n=1000, r_fixed=True), delta=1e-5)
    >>> round(audit.bound, 3), audit.rule, audit.refutes(2.0)
    (0.702, 'exact', False)
    """

    bound: float
    pure_bound: float
    fdp_bound: float
    estimate: float
    accuracy: float
    v: int
    r: int
    n: int
    delta: float
    beta: float
    test_beta: float
    rule: str
    number: str
    grid: tuple[int, ...] = ()
    grades: tuple[tuple[int, int, int], ...] = ()
    side: str | None = None
    canaries: int | None = None
    included: int | None = None
    coins_p_value: float | None = None
    ties_drawn: int = 0
    seed: int | None = None
    feedback: str = "none"
    coins: str = "independent"
    r_in: int | None = None
    adjacency: str = "add-remove"
    auroc: float | None = None
    tpr_at_1_percent: float | None = None
    seen: Seen | None = None
    problem: str = ""
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> Counts:
        """Its counts, with how it was set up."""
        fixed = self.number in ("fixed", "grid", "graded")
        how: dict[str, Any] = {"feedback": self.feedback, "coins": self.coins, "r_in": self.r_in}
        return Counts(np.array([self.v]), np.array([self.r]), self.n, r_fixed=fixed, **how)

    @cached_property
    def best_bound(self) -> float:
        """What the audit would have shown if all its guesses had been right."""
        return max(self.bound_of(k, k, self.n) for k in self.grid or (self.r,))

    @property
    def plausible_coins(self) -> bool:
        """Whether the coins may have been fair; if not, nothing has been shown."""
        return self.coins_p_value is None or self.coins_p_value >= UNFAIR

    @property
    def assumptions(self) -> dict[str, str]:
        """For each number, what must be true for it to be what its name says."""
        return sentences.assumptions(self)

    def refutes(self, claim: float) -> bool:
        """Whether a claim of (ε, δ)-DP is refuted with confidence 1 - β."""
        return self.verdict(claim) == "refuted"

    def verdict(self, claim: float) -> str:
        """``"refuted"``, ``"not refuted"``, ``"cannot test"`` or ``"invalid"``.

        The audit cannot test a claim if no outcome of it could have refuted the claim. It is
        invalid if there is a ``problem``.

        Examples
        --------
        >>> from oralib import audit_counts
        >>> audit = audit_counts(Counts(190, 200, n=1000, r_fixed=True), delta=1e-5)
        >>> audit.verdict(1.0), audit.verdict(4.0), audit.verdict(8.0), audit.guesses_needed(8.0)
        ('refuted', 'not refuted', 'cannot test', 8933)
        """
        claim = _check.real("claim", claim, 0)
        if self.problem:
            return "invalid"
        if self.bound > claim:
            return "refuted"
        return "not refuted" if self.best_bound > claim else "cannot test"

    def guesses_needed(self, claim: float) -> int | None:
        """How many guesses, all right, refute a claim in an audit like this; None if none do."""
        claim = _check.real("claim", claim, 0)
        # Bounds that take longer, or depend on how many canaries there are.
        limits = {"anytime certified": self.n, "balanced": self.n, "any order": LARGEST_WALK}
        most = limits.get(self.rule, _MOST_GUESSES)

        def enough(r: int) -> bool:
            return self.bound_of(r, r, max(r, self.n)) > claim

        if not most or not enough(most):
            return None
        return bisect_left(range(1, most + 1), True, key=enough) + 1

    def right_needed(self, claim: float) -> int | None:
        """How many of its guesses had to be right to refute a claim; None if even all are too few.

        With grades it is how many points they had to have.

        Examples
        --------
        >>> from oralib import audit_counts
        >>> audit = audit_counts(Counts(80, 120, n=1000, r_fixed=True), delta=1e-5)
        >>> audit.right_needed(2.0), audit.right_needed(8.0)
        (112, None)
        """
        claim = _check.real("claim", claim, 0)

        _, r, weights = np.array(self.grades or [(self.v, self.r, 1)]).T
        most, leaks = int(r @ weights), self.n * self.delta

        def enough(v: int) -> bool:
            if self.grades:
                return graded_p_value(v, r, weights, claim, leaks) < self.test_beta
            return self.bound_of(v, self.r, self.n) > claim

        return bisect_left(range(most + 1), True, key=enough) if enough(most) else None

    def bound_of(self, v: int, r: int, n: int) -> float:
        """The bound of other counts in an audit like this; without grades, unless v = r."""
        r_in = None if self.r_in is None else -(-r * self.r_in // max(self.r, 1))
        counts = replace(self.counts, v=np.array([v]), r=np.array([r]), n=n, r_in=r_in)
        return float(valid_lower_bound(counts, beta=self.test_beta, delta=self.delta)[0])

    def as_dict(self, claim: float | None = None) -> dict[str, Any]:
        """All fields and assumptions as Python values; what is not a number is None, or 'inf'."""
        fields: dict[str, Any] = {}
        if claim is not None:
            verdict = self.verdict(claim)
            refuted = None if verdict == "invalid" else verdict == "refuted"
            fields = {"claim": claim, "verdict": verdict, "refuted": refuted}
            fields["guesses_needed"] = self.guesses_needed(claim)
        for name, value in (asdict(self) | {"best_bound": self.best_bound}).items():
            if isinstance(value, float) and not isfinite(value):
                value = None if isnan(value) else str(value)
            fields[name] = list(value) if isinstance(value, tuple) else value
        fields["plausible_coins"] = self.plausible_coins
        fields["assumptions"] = self.assumptions
        return fields

    def rows(self, claim: float | None = None) -> list[tuple[str, str]]:
        """What was claimed and what was shown, in words, each with a label."""
        return sentences.rows(self, None if claim is None else _check.real("claim", claim, 0))

    def report(self, claim: float | None = None) -> str:
        """What was claimed and what was shown, as a text."""
        return paragraphs(self.rows(claim))

    def __str__(self) -> str:
        return self.report()

    def _repr_html_(self) -> str:
        return sentences.table(self.rows())

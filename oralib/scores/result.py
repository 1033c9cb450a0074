"""What an audit has shown, what it could have shown, and under which assumptions."""

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import exp, isfinite, isnan, log, nan
from typing import Any

import scipy

from oralib.bounds import Counts, epsilon_estimate, epsilon_lower_bound_fdp
from oralib.bounds.refuting import guesses_needed, like, right_needed
from oralib.bounds.valid import Rule, valid_lower_bound, valid_rule
from oralib.ground import arguments
from oralib.ground.solve import largest_passing
from oralib.ground.text import paragraphs
from oralib.ground.types import Adjacency, Choice, Side
from oralib.scores import sentences
from oralib.scores.guessing import Ranking
from oralib.scores.seen import Seen

#: Coins with a smaller p-value are not accepted as fair, nor guesses as having the right sign.
UNFAIR = 1e-3

#: The format of :meth:`ScoreAudit.as_dict`, and so of report.json.
FORMAT = 1


@dataclass(frozen=True)
class ScoreAudit:
    """What an audit has shown, and under which assumptions; ``str()`` of it is a report.

    Attributes
    ----------
    counts : Counts
        Right guesses, all guesses and audited canaries, and how the audit was set up.
    delta, beta, claim : float, float, float or None
        The δ of the claim, how often a bound may fail, and the claimed ε.
    choice : str
        How the number of guesses was chosen: ``"fixed"``, ``"grid"``, ``"split"``, ``"output"``.
    grid : tuple of int
        All numbers of guesses that were tried; if there are m, each was tested at β / m.
    side, adjacency : str or None, str
        As in :func:`oralib.audit_scores`; the side is None if guesses were given.
    canaries, included : int or None
        How many canaries there are, audited or not, and how many are in; None for counts alone.
    ties_drawn, seed : int, int or None
        Guesses that were drawn by lot among equal scores; the seed of that and of the split.
    ranking, seen : Ranking or None, Seen or None
        How well scores rank audited canaries; what the canaries saw, if they made the scores.
    problem, notes : str, tuple of str
        Why the audit is not valid and has no bounds, or empty; what to know before you believe it.

    Examples
    --------
    >>> from oralib import audit_counts
    >>> audit = audit_counts(Counts(190, 200, n=1000, r_fixed=True), delta=1e-5, claim=1.0)
    >>> round(audit.bound, 3), audit.rule, f"{audit.p_value():.1e}", audit.right_needed()
    (2.398, 'exact', '6.1e-05', 157)
    >>> audit.verdict(), audit.verdict(4.0), audit.verdict(8.0), audit.guesses_needed(8.0)
    ('refuted', 'not refuted', 'cannot test', 8933)
    """

    counts: Counts
    delta: float
    beta: float
    claim: float | None = None
    choice: Choice = "fixed"
    grid: tuple[int, ...] = ()
    side: Side | None = None
    adjacency: Adjacency = "add-remove"
    canaries: int | None = None
    included: int | None = None
    ties_drawn: int = 0
    seed: int | None = None
    ranking: Ranking | None = None
    seen: Seen | None = None
    problem: str = ""
    notes: tuple[str, ...] = ()

    @property
    def v(self) -> int:
        """Right guesses."""
        return int(self.counts.v)

    @property
    def r(self) -> int:
        """All guesses."""
        return int(self.counts.r)

    @property
    def n(self) -> int:
        """Audited canaries, guessed or not."""
        return self.counts.n

    @property
    def test_beta(self) -> float:
        """How often each test may fail: β, or β / m if m numbers of guesses were tried."""
        return self.beta / max(1, len(self.grid))

    @property
    def _test(self) -> dict[str, Any]:
        return {"delta": self.delta, "beta": self.test_beta}

    @property
    def rule(self) -> Rule:
        """The rule behind the bound, as :func:`oralib.valid_rule` names it."""
        return valid_rule(self.counts, self.delta)

    @cached_property
    def bound(self) -> float:
        """A lower bound on ε at this δ, which exceeds the true ε with probability at most β."""
        return nan if self.problem else self.bound_of(self.v, self.r, self.n)

    @cached_property
    def pure_bound(self) -> float:
        """The same for δ = 0."""
        return nan if self.problem else float(valid_lower_bound(self.counts, beta=self.test_beta))

    @cached_property
    def fdp_bound(self) -> float:
        """The same for a Gaussian trade-off curve; nan if not computed (see ``assumptions``)."""
        counts = self.counts
        plain = counts.feedback == "none" and counts.coins == "independent"
        if self.problem or not (plain and counts.r_fixed and self.delta > 0):
            return nan
        return float(epsilon_lower_bound_fdp(self.v, self.r, n=self.n, **self._test))

    @property
    def estimate(self) -> float:
        """The ε that the accuracy alone suggests, which is not a bound."""
        return nan if self.problem else float(epsilon_estimate(self.v, self.r))

    @property
    def accuracy(self) -> float:
        """The share of right guesses, v / r."""
        return self.v / self.r if self.r else nan

    @cached_property
    def best_bound(self) -> float:
        """What the audit would have shown if all its guesses had been right."""
        return max(self.bound_of(k, k, self.n) for k in self.grid or (self.r,))

    @property
    def coins_p_value(self) -> float | None:
        """How often fair coins are this uneven, by the exact two-sided test."""
        if self.canaries is None or self.included is None:
            return None
        fewer = min(self.included, self.canaries - self.included)
        return float(min(1.0, 2 * scipy.special.bdtr(fewer, self.canaries, 0.5)))

    @property
    def plausible_coins(self) -> bool:
        """Whether the coins may have been fair; if not, nothing has been shown."""
        return self.coins_p_value is None or self.coins_p_value >= UNFAIR

    @property
    def assumptions(self) -> dict[str, str]:
        """For each number in the report, what must hold for it to be valid."""
        return sentences.assumptions(self)

    def verdict(self, claim: float | None = None) -> str:
        """``"refuted"``, ``"not refuted"``, ``"cannot test"`` or ``"invalid"``.

        The claim is that of the audit unless another is given. The audit cannot test a claim if
        no outcome of it could have refuted the claim. It is invalid if there is a ``problem``.
        """
        claim = self._claim(claim)
        if self.problem:
            return "invalid"
        if self.bound > claim:
            return "refuted"
        return "not refuted" if self.best_bound > claim else "cannot test"

    @property
    def status(self) -> str:
        """The verdict, or ``"no claim"``; ``"unlike"`` if not refuted, but a check failed."""
        status = "invalid" if self.problem else "no claim"
        if self.claim is not None:
            status = self.verdict()
        unlike = self.seen is not None and not self.seen.as_stated
        return "unlike" if unlike and status not in ("refuted", "invalid") else status

    def p_value(self, claim: float | None = None) -> float | None:
        """The least β at which a claim would have been refuted; None if that takes too long."""
        claim = self._claim(claim)
        if self.problem or self.rule not in ("pure", "exact", "random r"):
            return None

        def excess(level: float) -> float:
            bound = valid_lower_bound(self.counts, beta=exp(level), delta=self.delta)
            return float(bound) - claim

        level = largest_passing(excess, -700.0, -1e-9, guess=log(self.beta), precision=1e-3)
        return min(1.0, exp(level + 1e-3) * self.beta / self.test_beta)

    def guesses_needed(self, claim: float | None = None) -> int | None:
        """How many guesses, all right, refute a claim in such an audit; None if no number does."""
        return guesses_needed(self.counts, self._claim(claim), **self._test)

    def right_needed(self, claim: float | None = None) -> int | None:
        """How many of its guesses must be right to refute a claim; None if even all are too few."""
        return right_needed(self.counts, self._claim(claim), **self._test)

    def bound_of(self, v: int, r: int, n: int) -> float:
        """The bound of other counts in an audit like this."""
        return float(valid_lower_bound(like(self.counts, v, r, n), **self._test))

    def as_dict(self) -> dict[str, Any]:
        """What report.json contains; numbers that are nan become None, and infinite ones 'inf'."""
        fields: dict[str, Any] = {"format": FORMAT, "claim": self.claim}
        verdict = None if self.claim is None else self.verdict()
        judged = verdict not in (None, "invalid")
        fields |= {"status": self.status, "refuted": verdict == "refuted" if judged else None}
        fields |= {"reasons": [] if self.seen is None else self.seen.reasons}
        if self.claim is not None:
            fields |= {"guesses_needed": self.guesses_needed(), "p_value": self.p_value()}
        names = "bound pure_bound fdp_bound estimate accuracy v r n delta beta test_beta rule"
        names += " choice grid side adjacency canaries included coins_p_value plausible_coins"
        names += " ties_drawn seed best_bound problem notes assumptions"
        fields |= {name: getattr(self, name) for name in names.split()}
        fields |= {"feedback": self.counts.feedback, "coins": self.counts.coins}
        fields |= {"r_in": self.counts.r_in}
        fields |= dict.fromkeys(Ranking._fields) if self.ranking is None else self.ranking._asdict()
        fields["seen"] = None if self.seen is None else asdict(self.seen)
        for name, value in fields.items():
            if isinstance(value, float) and not isfinite(value):
                fields[name] = None if isnan(value) else str(value)
            elif isinstance(value, tuple):
                fields[name] = list(value)
        return fields

    def rows(self, claim: float | None = None) -> list[tuple[str, str]]:
        """What was claimed and what was shown, in words, each with a label."""
        return sentences.rows(self if claim is None else replace(self, claim=self._claim(claim)))

    def report(self, claim: float | None = None) -> str:
        """What was claimed and what was shown, as a text."""
        return paragraphs(self.rows(claim))

    def __str__(self) -> str:
        return self.report()

    def _repr_html_(self) -> str:
        return sentences.table(self.rows())

    def _claim(self, claim: float | None) -> float:
        claim = self.claim if claim is None else claim
        if claim is None:
            raise ValueError("claim must be given, here or to the audit, got None")
        return arguments.real("claim", claim, 0)

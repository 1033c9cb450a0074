"""The plan of an audit: a claim, a design and a forecast, which together can audit."""

from dataclasses import dataclass, replace
from math import copysign, sqrt
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oralib import _check
from oralib._text import confidence, paragraphs, short
from oralib._types import WAYS
from oralib.accounting import certified_epsilon
from oralib.bounds import Counts, valid_lower_bound
from oralib.dpsgd import DpSgd, Dropping
from oralib.planning.designs import Claim, Design
from oralib.planning.file import AFTERWARDS, Saved
from oralib.scores import Check, ScoreAudit, Seen, audit_scores


@dataclass(frozen=True)
class Outcome:
    """What simulated audits of a training run with a bug show; the bug is "none" if it is honest.

    The mean number of right guesses, the mean bound, and the share of audits that refute the
    claim, each with its standard error.

    Examples
    --------
    >>> Outcome("none", 71.5, 3.3, 0.55, 0.14, 0.0, 0.0, trials=4).bound
    0.55
    """

    bug: str
    right: float
    right_se: float
    bound: float
    bound_se: float
    refuted: float
    refuted_se: float
    trials: int


@dataclass(frozen=True)
class Forecast:
    """What to expect of audits by a plan.

    Attributes
    ----------
    predicted : float
        The bound that the prediction expects of an honest training run.
    noise, refuted : float, float or None
        The share of the stated noise at which the plan is to refute the claim, and the share of
        simulated audits that do so there; 1 and None if it aims for the largest bound.
    outcomes : tuple of Outcome
        What to expect of an honest run and of bugs, by ``expected_outcomes``; empty if simulated
        audits would take too long.

    Examples
    --------
    >>> Forecast(predicted=0.98).outcomes
    ()
    """

    predicted: float
    noise: float = 1.0
    refuted: float | None = None
    outcomes: tuple[Outcome, ...] = ()

    @property
    def honest(self) -> Outcome | None:
        """What to expect of an honest training run, by simulated audits."""
        return next((outcome for outcome in self.outcomes if outcome.bug == "none"), None)


@dataclass(frozen=True)
class AuditPlan(Saved):
    """How to audit a training run, and what to expect; ``str()`` of it says what to do.

    Attributes
    ----------
    claim : Claim
        The ε and δ that are claimed, and β, how often the bound may fail.
    design : Design
        The training with all canaries, ``design.dpsgd``, with its noise as it is claimed; and how
        canaries are dropped and crowded, ``design.dropping``, None if they all stay active.
    guesses : int
        The number of guesses.
    forecast : Forecast
        What to expect.

    Examples
    --------
    >>> from oralib import plan_audit
    >>> plan = plan_audit(2.0, 1e-5, d=100, steps=20, sample_rate=0.1, trials=0)
    >>> plan.design.dpsgd.d, plan.claim.delta, plan.design.way
    (100, 1e-05, 'sum')
    >>> round(plan.best, 2)  # with every guess right
    4.19
    """

    claim: Claim
    design: Design
    guesses: int
    forecast: Forecast

    def audit(self, scores: ArrayLike, included: ArrayLike, seen: Seen | None = None) -> ScoreAudit:
        """The audit of a training run by this plan: all that it has fixed is taken from it.

        Parameters
        ----------
        scores, included : array
            The scores of the plan's canaries and their coins, ``Canaries.scores`` and
            ``Canaries.included``.
        seen : Seen or None
            What the canaries saw of the training, ``Canaries.seen``.
        """
        dpsgd = self.design.dpsgd
        if np.size(scores) != dpsgd.n or (seen is not None and seen.planned != dpsgd.steps):
            steps = "" if seen is None else f" of {seen.planned:,} steps"
            raise ValueError(
                f"scores must be those of the plan's {dpsgd.n:,} canaries and {dpsgd.steps:,} "
                f"steps, got {np.size(scores):,} scores{steps}"
            )
        audit = audit_scores(
            scores,
            included,
            delta=self.claim.delta,
            beta=self.claim.beta,
            claim=self.claim.epsilon,
            guesses=self.guesses,
            side="farthest",
            seen=seen,
        )
        if seen is not None:
            audit = replace(audit, seen=self._compared(audit.v, seen))
        return replace(audit, notes=(*self._notes(seen), *audit.notes))

    def _compared(self, v: int, seen: Seen) -> Seen:
        """What was seen, with its noise and the right guesses compared with what the plan says."""
        honest, claim, sigma = self.forecast.honest, self.claim, self.design.dpsgd.sigma
        if abs(seen.sigma / sigma - 1) > 0.01:
            run = claim.delta, seen.planned, seen.sample_rate
            certified = certified_epsilon(seen.sigma, *run, accountant="pld")
            if certified <= 1.02 * claim.epsilon:  # accountants differ a little
                return seen
            doubt = f"its σ = {seen.sigma:g} gives ε = {certified:.3g}, more than is claimed"
            return replace(seen, doubts=(*seen.doubts, doubt))
        if honest is None or seen.steps != seen.planned:
            return seen
        share = (honest.right + 1) / (self.guesses + 2)
        of_coins = self.guesses * share * (1 - share)  # simulated audits may all agree by chance
        variance = max(honest.trials * honest.right_se**2, of_coins)
        error = sqrt(variance * (1 + 1 / honest.trials))
        away = (v - honest.right) / error
        tail = max(float(scipy.special.stdtr(honest.trials - 1, -abs(away))), 1e-300)
        z = copysign(-float(scipy.special.ndtri(tail)), away)
        check = Check("guesses", v / honest.right, error / honest.right, z)
        return replace(seen, checks=(*seen.checks, check))

    def _notes(self, seen: Seen | None) -> list[str]:
        """Which plan it was, whether the training fits it, and which bugs it would have found."""
        notes = [f"claim, side and number of guesses were fixed in a plan, digest {self.digest}"]
        sigma = self.design.dpsgd.sigma
        if seen is None:
            notes.append("what the canaries saw of the training is missing")
        elif seen.sigma != sigma:
            notes.append(f"the training states σ = {seen.sigma:g}, and the plan {sigma:g}")
        outcomes = self.forecast.outcomes
        bugs = [f"{bug.bug} {bug.refuted:.0%}" for bug in outcomes if bug.bug != "none"]
        if bugs:
            when = "" if seen is None or seen.steps == seen.planned else ", with all planned steps"
            found = f"share of simulated audits by this plan{when} that refute the claim"
            notes.append(f"{found}, for each bug: {', '.join(bugs)}")
        return notes

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Self:
        design, forecast = dict(fields["design"]), dict(fields["forecast"])
        _check.one_of("way", design["way"], WAYS)
        design["dpsgd"] = DpSgd(**design["dpsgd"])
        if design["dropping"] is not None:
            design["dropping"] = Dropping(**design["dropping"])
        forecast["outcomes"] = tuple(Outcome(**outcome) for outcome in forecast["outcomes"])
        parts = {"design": Design(**design), "forecast": Forecast(**forecast)}
        return cls(**fields | parts | {"claim": Claim(**fields["claim"])})

    @property
    def best(self) -> float:
        """The bound if every guess is right: no audit by this plan can show more."""
        k, claim = self.guesses, self.claim
        counts = Counts(k, k, self.design.dpsgd.n, r_fixed=True)
        return float(valid_lower_bound(counts, beta=claim.beta, delta=claim.delta))

    def __str__(self) -> str:
        return self.text()

    def text(self, examples: int | None = None) -> str:
        """What to do and what to expect; with your number of examples, also what it costs."""
        rows = paragraphs(_rows(self, examples))
        script = _SCRIPT.format(*_BEGIN[self.design.way])
        return "\n".join([*_doubts(self), rows, script, *_outcomes(self)])


def _rows(plan: AuditPlan, examples: int | None) -> list[tuple[str, str]]:
    """What to do and what to expect, each with a label."""
    words = (
        "A coordinate is a weight that the audit adds, and whose noisy gradient it sees in each "
        "step. A canary is an example that the audit makes: its gradient is the clipping threshold "
        "on one coordinate, and 0 elsewhere."
    )
    claim, design, sigma = plan.claim, plan.design, plan.design.dpsgd.sigma
    claimed = f"({claim.epsilon:g}, {short(claim.delta)})-DP: noise multiplier {sigma:.4f}"
    valid = (
        f"with {confidence(claim.beta)} for any run that is (ε, δ)-DP, by the exact p-value: the "
        "number of guesses is fixed in advance"
    )
    guess = f"the {plan.guesses:,} with the scores farthest from 0, sums of log-likelihood ratios"
    return [
        ("words", words),
        ("claim", claimed),
        ("way in", _way_in(plan.design, examples)),
        *_canaries(design),
        ("guess", guess),
        ("expect", _expected(plan)),
        ("at best", f"a bound of {plan.best:.2f}, if every guess is right{_meaning(plan)}"),
        ("valid", valid),
    ]


def _way_in(design: Design, examples: int | None) -> str:
    """How the canaries come into the training, what that costs, and what they then cannot see."""
    n = design.dpsgd.n
    if design.way == "sum":
        return (
            "the clipped sum of gradients, just before the training's own noise: the training "
            "takes no longer. Bugs in sampling and clipping are not seen; --way examples sees them"
        )
    times = f"(N + {n:,})/N times as long, where N is the number of your own examples"
    if examples is not None:
        times = f"{design.growth(examples):.3g} times as long as with your {examples:,} alone"
    return (
        f"{n:,} examples among yours, so that sampling and clipping are tested, too. The training "
        f"takes {times}; SGD needs a learning rate as much larger, since canaries dilute the mean "
        "gradient"
    )


def _expected(plan: AuditPlan) -> str:
    honest, predicted = plan.forecast.honest, f"a bound of about {plan.forecast.predicted:.2f}"
    if honest is None:
        return f"{predicted} (predicted, not simulated), if the training is honest"
    simulated = f"{honest.bound:.3f} ± {honest.bound_se:.3f} ({honest.trials} simulated audits)"
    return f"{predicted} (predicted), or {simulated}, if the training is honest"


def _canaries(design: Design) -> list[tuple[str, str]]:
    """How many canaries there are, where, and how they are dropped and crowded."""
    dpsgd, dropping, s = design.dpsgd, design.dropping, design.dpsgd.per_coordinate
    many = f"{dpsgd.n:,}, {s} per coordinate, each included by a fair coin of its own"
    if (used := dpsgd.used_coordinates) < dpsgd.d:
        many += f"; {used:,} of {dpsgd.d:,} coordinates are used"
    rows = [("canaries", many)]
    if s > 1:
        evenly = ", as many on each coordinate as on any other" if dropping is None else ""
        rows += [("place", f"drawn again in each step, by public random numbers{evenly}")]
    if dropping is None:
        return rows
    active, steps = dropping.active(dpsgd), dpsgd.steps
    quarters = sorted({0, steps // 4, steps // 2, 3 * steps // 4, steps - 1})
    falls = ", ".join(f"{active[t]:,} in step {t + 1}" for t in quarters)
    shared = "; undecided canaries share coordinates with more others than promising ones"
    return [*rows, ("drop", f"those with scores nearest to 0; active: {falls}{shared}")]


def _doubts(plan: AuditPlan) -> list[str]:
    """That this plan cannot test the claim, if so, and the command for one that can."""
    bugs = [outcome.refuted for outcome in plan.forecast.outcomes if outcome.bug != "none"]
    claim, dpsgd, why = plan.claim, plan.design.dpsgd, f"at best it shows {plan.best:.2f}"
    if plan.best > claim.epsilon:
        if max(bugs, default=1.0) >= 0.5:
            return []
        why = "for none of the bugs below would most audits refute it"
    return [
        f"This plan cannot test a claim of {claim.epsilon:g}:",
        f"{why}. This looks for one that can:",
        "",
        f"oralib plan --aim refute --epsilon {claim.epsilon:g} --delta {short(claim.delta)} \\",
        f"    --steps {dpsgd.steps} --sample-rate {dpsgd.sample_rate:g} --sigma {dpsgd.sigma:g} "
        f"--way {plan.design.way}",
        "",
    ]


def _meaning(plan: AuditPlan) -> str:
    """What the best outcome would mean for the claim, and when to expect it."""
    epsilon, forecast = plan.claim.epsilon, plan.forecast
    if forecast.refuted is not None:
        return (
            f"; made to refute {epsilon:g} if the noise is {forecast.noise:g} of what is stated, "
            f"as {forecast.refuted:.0%} of simulated audits do"
        )
    able = "cannot refute" if plan.best <= epsilon else "would refute"
    return f", which {able} the claim of {epsilon:g}"


#: When and with what to begin the audit in a script, by the way in; and the script.
_BEGIN = {
    "sum": ("after make_private", "optimizer=optimizer"),
    "examples": ("before make_private", "model, data"),
}
_SCRIPT = f"""
With Opacus:

from oralib.canaries.opacus import OpacusAudit  # {{}}:
audit = OpacusAudit("plan.json", {{}}, seed=...)
audit.canaries.write_scores("scores.csv")  # after the training

In a loop of your own: oralib.Canaries.from_plan, see help(oralib.canaries).
{AFTERWARDS}"""


def _outcomes(plan: AuditPlan) -> list[str]:
    """The table of what to expect, if audits were simulated."""
    if not plan.forecast.outcomes:
        return []
    trials = plan.forecast.outcomes[0].trials
    lines = ["", f"What to expect, from {trials} simulated audits of each kind, ± standard error:"]
    lines += ["", f"{'bug':<24}{f'right of {plan.guesses}':>18}{'bound':>16}{'refuted':>16}"]
    for each in plan.forecast.outcomes:
        right = f"{each.right:.1f} ± {each.right_se:.1f}"
        bound = f"{each.bound:.2f} ± {each.bound_se:.2f}"
        refuted = f"{each.refuted:.2f} ± {each.refuted_se:.2f}"
        lines.append(f"{each.bug:<24}{right:>18}{bound:>16}{refuted:>16}")
    return lines

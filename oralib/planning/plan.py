"""The plan of an audit: a claim, a design and a forecast, which together can audit."""

from dataclasses import dataclass, replace
from math import copysign, sqrt
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oralib.bounds import Counts, valid_lower_bound
from oralib.dpsgd import DpSgd, Dropping
from oralib.dpsgd.setting import differ
from oralib.ground import arguments
from oralib.ground.text import confidence, paragraphs, short
from oralib.ground.types import WAYS
from oralib.planning.designs import Claim, Design
from oralib.planning.file import AFTERWARDS, Saved, table
from oralib.planning.measured import times_as_long
from oralib.scores import Check, ScoreAudit, Seen


@dataclass(frozen=True)
class Outcome:
    """What simulated audits of a training run with a bug show; an honest run has the bug "none".

    Right guesses, bound, and the share of audits that refute the claim: means and their errors.

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
    """What to expect of audits by a plan: the predicted bound, and simulated outcomes, if any.

    If the aim is to refute, ``noise`` is the assumed share of the stated noise, and ``refuted``
    the share of audits that then refute the claim.

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

    @property
    def bugs(self) -> list[Outcome]:
        """What to expect of the other training runs."""
        return [outcome for outcome in self.outcomes if outcome.bug != "none"]


@dataclass(frozen=True)
class AuditPlan(Saved):
    """How to audit a training run, and what to expect; ``str()`` of it says what to do.

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
        """Audit scores and coins by this plan; ``seen`` is what the canaries saw, if known."""
        dpsgd = self.design.dpsgd
        if seen is not None:
            arguments.instance("seen", seen, Seen, "Canaries(...).seen")
        if np.size(scores) != dpsgd.n or (seen is not None and seen.planned != dpsgd.steps):
            steps = "" if seen is None else f" of {seen.planned:,} steps"
            raise ValueError(
                f"scores must be those of the plan's {dpsgd.n:,} canaries and {dpsgd.steps:,} "
                f"steps, got {np.size(scores):,} scores{steps}"
            )
        audit, notes = self._audit(scores, included, side="farthest", seen=seen), []
        if seen is None:
            notes = ["what the canaries saw of the training is missing"]
        else:
            audit = replace(audit, seen=self._compared(audit.v, seen))
            if seen.sigma != dpsgd.sigma:
                notes = [f"the training states σ = {seen.sigma:g}, and the plan {dpsgd.sigma:g}"]
        if bugs := self.forecast.bugs:
            when = "" if seen is None or seen.steps == seen.planned else ", with all planned steps"
            found = f"simulated audits by this plan, {bugs[0].trials} for each bug{when}, refute"
            often = sorted(bugs, key=lambda bug: -bug.refuted)
            shares = ", ".join(f"{bug.refuted:.0%} with {bug.bug}" for bug in often)
            notes.append(f"{found} the claim this often: {shares}")
        return replace(audit, notes=(audit.notes[0], *notes, *audit.notes[1:]))

    def _compared(self, v: int, seen: Seen) -> Seen:
        """What was seen, with its noise and the right guesses compared with what the plan says."""
        honest, claim = self.forecast.honest, self.claim
        if differ(seen.sigma, self.design.dpsgd.sigma):
            epsilon = claim.exceeded(seen.sigma, seen.planned, seen.sample_rate)
            if epsilon is None:
                return seen
            doubt = f"its σ = {seen.sigma:g} gives ε = {epsilon:.3g}, more than is claimed"
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

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Self:
        design, forecast = fields["design"], fields["forecast"]
        arguments.one_of("way", design["way"], WAYS)
        design["dpsgd"] = DpSgd(**design["dpsgd"])
        if design["dropping"] is not None:
            design["dropping"] = Dropping(**design["dropping"])
        forecast["outcomes"] = tuple(Outcome(**outcome) for outcome in forecast["outcomes"])
        parts = {"design": Design(**design), "forecast": Forecast(**forecast)}
        return cls(**fields | parts)

    @property
    def best(self) -> float:
        """The bound if every guess is right: no audit by this plan can show more."""
        counts = Counts(self.guesses, self.guesses, self.design.dpsgd.n, r_fixed=True)
        return float(valid_lower_bound(counts, **self.claim.test))

    def text(self, examples: int | None = None) -> str:
        """What to do and what to expect; with your number of examples, also what it costs."""
        script = _SCRIPT.format(*_PARTS[self.design.way])
        return f"{_doubts(self)}{paragraphs(_rows(self, examples))}\n{script}{_outcomes(self)}"

    __str__ = text


_WORDS = (
    "A coordinate is a weight that the audit adds, and whose noisy gradient it sees in each step. "
    "A canary is an example that the audit makes: its gradient is the clipping threshold on one "
    "coordinate, and 0 elsewhere."
)
_WAYS_IN = {
    "sum": "the sum of clipped gradients, just before the training's own noise. Bugs in sampling "
    "and clipping show with --way examples only",
    "examples": "{:,} examples among yours, so that sampling and clipping are tested, too. The "
    "training has {}; SGD needs a learning rate as much larger, since canaries dilute the mean "
    "gradient",
}

#: What to write into the script of a training: when, and with what, by the way in.
_PARTS = {
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


def _rows(plan: AuditPlan, examples: int | None) -> list[tuple[str, str]]:
    """What to do and what to expect, each with a label."""
    claim, design, forecast, honest = plan.claim, plan.design, plan.forecast, plan.forecast.honest
    dpsgd, n, s = design.dpsgd, design.dpsgd.n, design.dpsgd.per_coordinate
    times = f"(N + {n:,})/N times as many examples, where N is the number of your own"
    if examples is not None:
        examples = arguments.integer("examples", examples, 1, 10**9)
        times = f"{design.growth(examples):.3g} times as many examples as your {examples:,}"
    claimed = f"({claim.epsilon:g}, {short(claim.delta)})-DP: noise multiplier {dpsgd.sigma:.4f}"
    many = f"{n:,}, {s} per coordinate, each included by a fair coin of its own"
    if (used := dpsgd.used_coordinates) < dpsgd.d:
        many += f"; {used:,} of {dpsgd.d:,} coordinates are used"
    rows = [("words", _WORDS), ("claim", claimed)]
    cost = "not known for this plan; measured on a GPU, for two networks with 50,000 examples, "
    cost += f"a step takes {times_as_long(design.way)}"
    rows += [("way in", _WAYS_IN[design.way].format(n, times)), ("time", cost), ("canaries", many)]
    if s > 1:
        evenly = ", as many on each coordinate as on any other" if design.dropping is None else ""
        rows += [("place", f"drawn again in each step, by public random numbers{evenly}")]
    if design.dropping is not None:
        active, steps = design.dropping.active(dpsgd), dpsgd.steps
        quarters = sorted({0, steps // 4, steps // 2, 3 * steps // 4, steps - 1})
        falls = ", ".join(f"{active[t]:,} in step {t + 1}" for t in quarters)
        shared = "undecided canaries share coordinates with more others than promising ones do"
        rows += [("drop", f"those with scores nearest to 0; active: {falls}; {shared}")]
    bound = f"a bound of about {forecast.predicted:.2f} (predicted, not simulated)"
    if honest is not None:
        simulated = f"{honest.bound:.3f} ± {honest.bound_se:.3f} ({honest.trials} simulated audits)"
        bound = f"{bound.replace(', not simulated', '')}, or {simulated}"
    able = "cannot" if plan.best <= claim.epsilon else "would"
    best = f", which {able} refute the claim of {claim.epsilon:g}"
    if forecast.refuted is not None:
        best = f"; made to refute {claim.epsilon:g} if the noise is {forecast.noise:g} of what is "
        best += f"stated, as {forecast.refuted:.0%} of simulated audits do"
    scores = "with scores farthest from 0 (a score is a sum of log-likelihood ratios)"
    valid = "for any run that is (ε, δ)-DP, by the exact p-value: the number of guesses is fixed"
    return [
        *rows,
        ("guess", f"the {plan.guesses:,} {scores}"),
        ("expect", f"{bound}, if the training is honest"),
        ("at best", f"a bound of {plan.best:.2f}, if every guess is right{best}"),
        ("valid", f"with {confidence(claim.beta)} {valid} in advance"),
    ]


def _doubts(plan: AuditPlan) -> str:
    """That this plan cannot test the claim, if so, and the command for one that can."""
    claim, dpsgd, why = plan.claim, plan.design.dpsgd, f"at best it shows {plan.best:.2f}"
    if plan.best > claim.epsilon:
        if max((bug.refuted for bug in plan.forecast.bugs), default=1.0) >= 0.5:
            return ""
        why = "for none of the bugs below would most audits refute it"
    run = f"--steps {dpsgd.steps} --sample-rate {dpsgd.sample_rate:g} --sigma {dpsgd.sigma:g}"
    return f"""This plan cannot test a claim of {claim.epsilon:g}:
{why}. This looks for one that can:

oralib plan --aim refute --epsilon {claim.epsilon:g} --delta {short(claim.delta)} \\
    {run} --way {plan.design.way}

"""


def _outcomes(plan: AuditPlan) -> str:
    """The table of what to expect, if audits were simulated."""
    if not (outcomes := plan.forecast.outcomes):
        return ""
    rows = [["bug", f"right of {plan.guesses}", "bound", "refuted"]]
    for each in outcomes:
        right = f"{each.right:.1f} ± {each.right_se:.1f}"
        bound = f"{each.bound:.2f} ± {each.bound_se:.2f}"
        rows.append([each.bug, right, bound, f"{each.refuted:.0%} ± {each.refuted_se:.0%}"])
    kinds = f"{outcomes[0].trials} simulated audits of each kind, ± standard error"
    return f"\n\nWhat to expect, from {kinds}:\n\n{table((24, 18, 16, 16), rows)}"

"""The plan of an audit: a claim, a design and a forecast, which together can audit."""

import json
import os
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from math import isnan, nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oralib import _check
from oralib._text import confidence, paragraphs, short
from oralib.bounds import Counts, valid_lower_bound
from oralib.dpsgd import DpSgd, Dropping
from oralib.planning.designs import Claim, Design
from oralib.scores import ScoreAudit, Seen, audit_scores

#: The format of plan.json.
FORMAT = 1


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
    bound, bound_se, trials : float, float, int
        The mean bound of simulated audits, its standard error, and how many there were; nan, nan
        and 0 if they would take too long.
    noise, refuted : float
        The share of the stated noise at which the plan is to refute the claim, and the share of
        simulated audits that do so there; 1 and nan if it aims for the largest bound.
    outcomes : tuple of Outcome
        What to expect of an honest run and of bugs, by ``expected_outcomes``; may be empty.

    Examples
    --------
    >>> Forecast(predicted=0.98).trials
    0
    """

    predicted: float
    bound: float = nan
    bound_se: float = nan
    trials: int = 0
    noise: float = 1.0
    refuted: float = nan
    outcomes: tuple[Outcome, ...] = ()


@dataclass(frozen=True)
class AuditPlan:
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
    >>> plan.design.dpsgd.d, plan.claim.delta, plan.forecast.trials
    (100, 1e-05, 0)
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

        Examples
        --------
        >>> from oralib import Canaries, plan_audit
        >>> plan = plan_audit(1.0, 1e-5, d=100, steps=1, sample_rate=1.0, canaries=100, trials=0)
        >>> canaries = Canaries.from_plan(plan, seed=1)
        >>> noise = np.random.default_rng(1).normal(scale=canaries.dpsgd.sigma, size=100)
        >>> canaries.observe(0, canaries.gradient(0, np.full(100, True)) + noise)
        >>> plan.audit(canaries.scores, canaries.included, canaries.seen).verdict()
        'not refuted'
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
        return replace(audit, notes=(*self._notes(seen), *audit.notes))

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
            found = f"so often did simulated audits by this plan{when} refute the claim"
            notes.append(f"{found}, had there been a bug: {', '.join(bugs)}")
        return notes

    @property
    def digest(self) -> str:
        """Twelve digits that change with whatever the plan fixes or forecasts."""
        return sha256(json.dumps(_without_nan(asdict(self))).encode()).hexdigest()[:12]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan into a JSON file, for ``oralib audit --plan``."""
        fields = {"format": FORMAT, **_without_nan(asdict(self)), "digest": self.digest}
        text = json.dumps(fields, indent=1, allow_nan=False)
        _check.path("path", path).write_text(f"{text}\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "AuditPlan":
        """The plan in a file by :meth:`save`; a ValueError if somebody has changed it."""
        try:
            fields = dict(json.loads(_check.path("path", path).read_text(encoding="utf-8")))
            if (number := fields.pop("format")) != FORMAT:
                raise ValueError(f"its format is {number!r}, and this oralib reads {FORMAT}")
            digest, design, forecast = (
                fields.pop(name) for name in ("digest", "design", "forecast")
            )
            dropping = design["dropping"]
            outcomes = tuple(Outcome(**outcome) for outcome in forecast.pop("outcomes"))
            numbers: dict[str, Any] = {
                name: nan if value is None else value for name, value in forecast.items()
            }
            plan = cls(
                claim=Claim(**fields.pop("claim")),
                design=Design(
                    DpSgd(**design["dpsgd"]), None if dropping is None else Dropping(**dropping)
                ),
                forecast=Forecast(**numbers, outcomes=outcomes),
                **fields,
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"path must be a file by AuditPlan.save, got {path}: {error}"
            ) from None
        if plan.digest != digest:
            raise ValueError(f"path must be a plan as it was saved, got {path}, which was changed")
        return plan

    @property
    def best(self) -> float:
        """The bound if every guess is right: no audit by this plan can show more."""
        k, claim = self.guesses, self.claim
        counts = Counts(k, k, self.design.dpsgd.n, r_fixed=True)
        return float(valid_lower_bound(counts, beta=claim.beta, delta=claim.delta))

    def __str__(self) -> str:
        return "\n".join([*_doubts(self), paragraphs(_rows(self)), "", *_commands(self)])


def _without_nan(fields: Any) -> Any:
    """The same with None for what was not simulated, which is nan: JSON does not have it."""
    if isinstance(fields, dict):
        return {name: _without_nan(value) for name, value in fields.items()}
    return None if isinstance(fields, float) and isnan(fields) else fields


def _rows(plan: AuditPlan) -> list[tuple[str, str]]:
    """What to do and what to expect, each with a label."""
    words = (
        "A coordinate is a weight of the model whose noisy gradient you see in each step; "
        "oralib.canaries adds such weights to a model. A canary is an example that you make: "
        "its gradient is the clipping threshold on one coordinate, and 0 elsewhere."
    )
    claim, forecast, sigma = plan.claim, plan.forecast, plan.design.dpsgd.sigma
    claimed = f"({claim.epsilon:g}, {short(claim.delta)})-DP: noise multiplier {sigma:.4f}"
    bound, seen = f"a bound of about {forecast.predicted:.2f} by prediction", "not simulated here"
    if forecast.trials:
        seen = f"{forecast.bound:.3f} ± {forecast.bound_se:.3f}, the mean of {forecast.trials} "
        seen += "simulated audits"
    valid = (
        f"with {confidence(claim.beta)} for any run that is (ε, δ)-DP, by the exact p-value: the "
        "number of guesses is fixed in advance"
    )
    guess = f"the {plan.guesses:,} with the scores farthest from 0, sums of log-likelihood ratios"
    return [
        ("words", words),
        ("claim", claimed),
        *_canaries(plan.design),
        ("guess", guess),
        ("expect", f"of an honest training run {bound}; {seen}"),
        ("at best", f"a bound of {plan.best:.2f}, if every guess is right{_meaning(plan)}"),
        ("valid", valid),
    ]


def _canaries(design: Design) -> list[tuple[str, str]]:
    """How many canaries there are, where, and how they are dropped and crowded."""
    dpsgd, dropping, s = design.dpsgd, design.dropping, design.dpsgd.per_coordinate
    many = f"{dpsgd.n:,}, {s} per coordinate, each included by a fair coin of its own"
    if (used := dpsgd.used_coordinates) < dpsgd.d:
        many += f"; {used:,} of {dpsgd.d:,} coordinates are used"
    rows = [("canaries", many)]
    if s > 1:
        evenly = ", as many on each coordinate as on any other" if dropping is None else ""
        rows.append(("place", f"drawn again in each step, by public random numbers{evenly}"))
    if dropping is None:
        return [*rows, ("drop", "none")]
    active, steps = dropping.active(dpsgd), dpsgd.steps
    quarters = sorted({0, steps // 4, steps // 2, 3 * steps // 4, steps - 1})
    falls = ", ".join(f"{active[t]:,} in step {t + 1}" for t in quarters)
    loads, second = dropping.loads(dpsgd), min(2, steps)
    most, least = loads[second - 1].max(), loads[second - 1].min()
    crowds = f"{most} on a coordinate in step {second}, against {least} of the most promising"
    if steps > second:
        crowds += f"; {loads[-1].max()} against {loads[-1].min()} in step {steps}"
    rows.append(("drop", f"those with scores nearest to 0; active: {falls}"))
    return [*rows, ("crowd", f"the undecided: {crowds}")]


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
        f"    --steps {dpsgd.steps} --sample-rate {dpsgd.sample_rate:g} --sigma {dpsgd.sigma:g}",
        "",
    ]


def _meaning(plan: AuditPlan) -> str:
    """What the best outcome would mean for the claim, and when to expect it."""
    epsilon, forecast = plan.claim.epsilon, plan.forecast
    if plan.best <= epsilon:
        return f", which cannot refute {epsilon:g}"
    if forecast.noise < 1:
        return (
            f"; made to refute {epsilon:g} if the noise is {forecast.noise:g} of what is stated, "
            f"as {forecast.refuted:.0%} of simulated audits do"
        )
    return f", more than the claimed {epsilon:g}"


def _commands(plan: AuditPlan) -> list[str]:
    """What to write into the script of the training, and what to call after it."""
    claim, dpsgd, dropping = plan.claim, plan.design.dpsgd, plan.design.dropping
    dropped = "" if dropping is None else f"\n    dropping={dropping!r},"
    hop = "\n    hop=False," if dpsgd.per_coordinate == 1 else ""
    beta = "" if claim.beta == 0.05 else f" --beta {short(claim.beta)}"
    options = f"--side farthest --guesses {plan.guesses} --delta {short(claim.delta)}{beta}"
    return [
        "In the script of the training:",
        "",
        "from oralib import DpSgd, Dropping",
        "from oralib.canaries import Canaries",
        "canaries = Canaries(",
        f"    {dpsgd!r},",
        f"    guesses={plan.guesses},{dropped}{hop}",
        "    seed=...,  # a number of your own, which nobody else knows",
        ")",
        "",
        "In each step canaries.places(step) says where they are, and canaries.observe(",
        "step, gradient) takes the noisy gradient; oralib.canaries.opacus does both for",
        "Opacus.",
        "Canaries join your batches, which dilutes the mean gradient: multiply the",
        f"learning rate of SGD by (N + {dpsgd.n})/N, N your examples.",
        'After the last step, canaries.write_scores("scores.csv"), and then:',
        "",
        f"oralib audit scores.csv {options} \\",
        f"    --claim {claim.epsilon:g}",
    ]

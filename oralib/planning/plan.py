"""The plan of an audit, and in words: what to do, what to expect, and the lines of code."""

import json
import os
from dataclasses import asdict, dataclass
from hashlib import sha256
from math import isnan, nan
from typing import TypeAlias

import numpy as np

from oralib import _check
from oralib._text import confidence, grades_in_words, paragraphs, short
from oralib.bounds import Counts, valid_lower_bound
from oralib.dpsgd import DpSgd, Dropping

#: Numbers of guesses and what a right one counts, the surest first.
Grades: TypeAlias = tuple[tuple[int, int], ...]

#: What is not simulated is nan, which JSON does not have.
_MAY_BE_NAN = ("bound", "bound_se", "refuted", "gain", "gain_se")


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
class AuditPlan:
    """How to audit a training run, and what to expect; ``str()`` of it says what to do.

    Attributes
    ----------
    dpsgd : DpSgd
        The training with all canaries, and its noise as it is claimed.
    epsilon, delta, beta : float
        The claim, and how often the bound may fail.
    k : int
        The number of guesses.
    dropping : Dropping or None
        How canaries are dropped and crowded; None if they all stay active.
    predicted : float
        The bound that the prediction expects of an honest training run.
    bound, bound_se, trials : float, float, int
        The mean bound of simulated audits, its standard error, and how many there were; nan, nan
        and 0 if they would take too long.
    noise, refuted : float
        The share of the stated noise at which the plan is to refute the claim, and the share of
        simulated audits that do so there; 1 and nan if it aims for the largest bound.
    grades, gain, gain_se : tuple of pairs, float, float
        Numbers of guesses and what a right one counts, the surest first, empty if all count alike;
        and what two grades add to the bound of the same simulated audits, nan if nobody asked.
    outcomes : tuple of Outcome
        What to expect of an honest run and of bugs, by ``expected_outcomes``; may be empty.

    Examples
    --------
    >>> from oralib import plan_audit
    >>> plan = plan_audit(2.0, 1e-5, d=100, steps=20, sample_rate=0.1, trials=0)
    >>> plan.dpsgd.d, plan.delta, plan.trials
    (100, 1e-05, 0)
    >>> round(plan.best, 2)  # with every guess right
    4.19
    """

    dpsgd: DpSgd
    epsilon: float
    delta: float
    beta: float
    k: int
    dropping: Dropping | None
    predicted: float
    bound: float
    bound_se: float
    trials: int
    noise: float = 1.0
    refuted: float = nan
    grades: Grades = ()
    gain: float = nan
    gain_se: float = nan
    outcomes: tuple[Outcome, ...] = ()

    @property
    def digest(self) -> str:
        """Twelve digits that change with whatever the plan fixes or foretells."""
        drop = None if self.dropping is None else asdict(self.dropping)
        fixed = asdict(self.dpsgd), drop, self.epsilon, self.delta, self.beta, self.k, *self.grades
        fixed += tuple(map(asdict, self.outcomes))
        return sha256(json.dumps(fixed).encode()).hexdigest()[:12]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan into a JSON file, for ``oralib audit --plan``."""
        fields = asdict(self) | {"digest": self.digest}
        fields |= {name: None for name in _MAY_BE_NAN if isnan(fields[name])}
        text = json.dumps(fields, indent=1, allow_nan=False)
        _check.path("path", path).write_text(f"{text}\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "AuditPlan":
        """The plan in a file by :meth:`save`; a ValueError if somebody has changed it."""
        try:
            fields = json.loads(_check.path("path", path).read_text(encoding="utf-8"))
            digest = fields.pop("digest")
            fields |= {name: nan for name in _MAY_BE_NAN if fields[name] is None}
            fields["grades"] = tuple(tuple(grade) for grade in fields["grades"])
            fields["dpsgd"] = DpSgd(**fields["dpsgd"])
            if fields["dropping"] is not None:
                fields["dropping"] = Dropping(**fields["dropping"])
            fields["outcomes"] = tuple(Outcome(**outcome) for outcome in fields["outcomes"])
            plan = cls(**fields)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"path must be a file by AuditPlan.save, got {path}: {error}"
            ) from None
        if plan.digest != digest:
            raise ValueError(f"path must be a plan as it was saved, got {path}, which was changed")
        return plan

    @property
    def best(self) -> float:
        """The bound if every guess is right: no audit by this plan can show more."""
        k = np.array([self.k])
        counts = Counts(k, k, self.dpsgd.n, r_fixed=True)
        return float(valid_lower_bound(counts, beta=self.beta, delta=self.delta)[0])

    def __str__(self) -> str:
        return "\n".join([*_doubts(self), paragraphs(_rows(self)), "", *_commands(self)])


def _rows(plan: AuditPlan) -> list[tuple[str, str]]:
    """What to do and what to expect, each with a label."""
    words = (
        "A coordinate is a weight of the model whose noisy gradient you see in each step; "
        "oralib.canaries adds such weights to a model. A canary is an example that you make: "
        "its gradient is the clipping threshold on one coordinate, and 0 elsewhere."
    )
    claim = f"({plan.epsilon:g}, {short(plan.delta)})-DP: noise multiplier {plan.dpsgd.sigma:.4f}"
    bound, seen = f"a bound of about {plan.predicted:.2f} by prediction", "not simulated here"
    if plan.trials:
        seen = f"{plan.bound:.3f} ± {plan.bound_se:.3f}, the mean of {plan.trials} simulated audits"
    rule, counted = "exact p-value: the number of guesses is", ", sums of log-likelihood ratios"
    if plan.grades:
        rule = "graded p-value: the numbers of guesses and what they count are"
        counted += f"; {grades_in_words(plan.grades)}"
        bound += " if all count alike"
    if not isnan(plan.gain):
        seen += f"; two grades add {plan.gain:.3f} ± {plan.gain_se:.3f} to equal guesses"
    valid = (
        f"with {confidence(plan.beta)} for any run that is (ε, δ)-DP, by the {rule} "
        "fixed in advance"
    )
    return [
        ("words", words),
        ("claim", claim),
        *_canaries(plan),
        ("guess", f"the {plan.k:,} with the scores farthest from 0{counted}"),
        ("expect", f"of an honest training run {bound}; {seen}"),
        ("at best", f"a bound of {plan.best:.2f}, if every guess is right{_meaning(plan)}"),
        ("valid", valid),
    ]


def _canaries(plan: AuditPlan) -> list[tuple[str, str]]:
    """How many canaries there are, where, and how they are dropped and crowded."""
    dpsgd, dropping, s = plan.dpsgd, plan.dropping, plan.dpsgd.per_coordinate
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
    bugs = [outcome.refuted for outcome in plan.outcomes if outcome.bug != "none"]
    why = f"at best it shows {plan.best:.2f}"
    if plan.best > plan.epsilon:
        if max(bugs, default=1.0) >= 0.5:
            return []
        why = "for none of the bugs below would most audits refute it"
    dpsgd = plan.dpsgd
    return [
        f"This plan cannot test a claim of {plan.epsilon:g}:",
        f"{why}. This looks for one that can:",
        "",
        f"oralib plan --aim refute --epsilon {plan.epsilon:g} --delta {short(plan.delta)} \\",
        f"    --steps {dpsgd.steps} --sample-rate {dpsgd.sample_rate:g} --sigma {dpsgd.sigma:g}",
        "",
    ]


def _meaning(plan: AuditPlan) -> str:
    """What the best outcome would mean for the claim, and when to expect it."""
    if plan.best <= plan.epsilon:
        return f", which cannot refute {plan.epsilon:g}"
    if plan.noise < 1:
        return (
            f"; made to refute {plan.epsilon:g} if the noise is {plan.noise:g} of what is stated, "
            f"as {plan.refuted:.0%} of simulated audits do"
        )
    return f", more than the claimed {plan.epsilon:g}"


def _commands(plan: AuditPlan) -> list[str]:
    """What to write into the script of the training, and what to call after it."""
    dropping = "" if plan.dropping is None else f"\n    dropping={plan.dropping!r},"
    hop = "\n    hop=False," if plan.dpsgd.per_coordinate == 1 else ""
    beta = "" if plan.beta == 0.05 else f" --beta {short(plan.beta)}"
    grades = ",".join(f"{number}:{weight}" for number, weight in plan.grades)
    guesses = f"--grades {grades}" if grades else f"--guesses {plan.k}"
    options = f"--side farthest {guesses} --delta {short(plan.delta)}{beta}"
    return [
        "In the script of the training:",
        "",
        "from oralib import DpSgd, Dropping",
        "from oralib.canaries import Canaries",
        "audit = Canaries(",
        f"    {plan.dpsgd!r},",
        f"    k={plan.k},{dropping}{hop}",
        "    seed=...,  # a number of your own, which nobody else knows",
        ")",
        "",
        "In each step audit.places(step) says where canaries are, and audit.observe(step,",
        "gradient) takes the noisy gradient; oralib.canaries.opacus does both for Opacus.",
        "Canaries join your batches, which dilutes the mean gradient: multiply the",
        f"learning rate of SGD by (N + {plan.dpsgd.n})/N, N your examples.",
        'After the last step, audit.write_scores("scores.csv"), and then:',
        "",
        f"oralib audit scores.csv {options} \\",
        f"    --claim {plan.epsilon:g}",
    ]

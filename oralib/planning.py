"""A plan for an audit of DP-SGD in one run: how many canaries, where, how many guesses.

The plan is made before the audit, from what is public about the training, so it costs no validity.
It is found by predicting many audits (:mod:`oralib.dpsgd.prediction`), a heuristic, and then tried
on simulated audits, which say what to expect.
"""

from dataclasses import dataclass
from math import sqrt
from textwrap import fill

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from oralib import _check
from oralib.bounds import Counts, valid_lower_bound
from oralib.dpsgd import DpSgd, Dropping, audit_hopping, noise_multiplier
from oralib.dpsgd.prediction import predicted_accuracy

__all__ = ["AuditPlan", "plan_audit"]

PER_COORDINATE = (1, 2, 4, 8, 16, 24, 32, 48, 64, 100, 150)
GUESSES = (50, 70, 100, 150, 200, 250, 300, 350, 400, 500, 600, 800, 1000, 1500, 2000, 3000, 5000)

#: The shape of the best schedule that we found in the paper's main setting.
SHAPE = {"until": 0.9, "bend": 1.65, "crowding": (3.0, 20.0)}

#: Noise that gradients may show, as shares of the stated one: guessers look for it before they score.
SEEN_NOISE = (1.0, 0.75, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02, 0.01, 2.0, 5.0, 20.0, 100.0)

#: Simulated audits move at most so many canaries in all, a matter of seconds.
_WORK = 2e8


@dataclass(frozen=True)
class AuditPlan:
    """How to audit a training, and what to expect.

    Attributes
    ----------
    dpsgd : the training with all canaries, and the noise that the accountant asks for.
    epsilon, delta, beta : the claim, and how often the bound may fail.
    k : the number of guesses.
    dropping : how canaries are dropped and crowded; None if they all stay active.
    predicted : the bound that the prediction expects.
    bound, bound_se : the mean bound of simulated audits and its standard error; nan if there are
        none, or if they would take too long.
    trials : the number of simulated audits.

    Examples
    --------
    >>> plan = plan_audit(2.0, 1e-5, d=100, steps=20, sample_rate=0.1, trials=0)
    >>> plan.dpsgd.d, plan.delta, plan.trials
    (100, 1e-05, 0)
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

    def __str__(self) -> str:
        return _report(self)


def plan_audit(
    epsilon: float,
    delta: float,
    *,
    d: int,
    steps: int,
    sample_rate: float,
    beta: float = 0.05,
    most: int | None = None,
    trials: int = 40,
    seed: int = 0,
) -> AuditPlan:
    """The best audit that we can plan for a training with an (ε, δ) claim.

    Parameters
    ----------
    epsilon, delta : the claim, which sets the noise.
    d, steps, sample_rate : the training, as in :class:`oralib.DpSgd`.
    beta : how often the bound may fail, in (0, 1).
    most : the largest number of canaries that can be used, from d on; by default 150 d.
    trials, seed : simulated audits, to say what to expect; with fewer than two there are none.

    Examples
    --------
    >>> plan = plan_audit(2.0, 1e-5, d=100, steps=20, sample_rate=0.1, trials=2)
    >>> plan.k <= plan.dpsgd.n
    True
    """
    epsilon = _check.real("epsilon", epsilon, 0, 1000, interval="(]")
    delta = _check.real("delta", delta, 0, 1, interval="()")
    d, beta = _check.integer("d", d, 1, 10**8), _check.real("beta", beta, 0, 1, interval="()")
    steps = _check.integer("steps", steps, 1, 10**6)
    sample_rate = _check.real("sample_rate", sample_rate, 1e-12, 1)
    most = _check.integer("most", 150 * d if most is None else most, d)
    trials, seed = _check.integer("trials", trials, 0, 10**6), _check.seed(seed)
    sigma = noise_multiplier(epsilon, delta, steps, sample_rate)
    best: tuple[float, DpSgd, int, Dropping | None] | None = None
    loads = [s for s in PER_COORDINATE if s * d <= most or s == 1]
    tried = [(s, dropping) for s in loads for dropping in _schedules(s)]
    for s, dropping in tqdm(tried, unit="plan", disable=None, leave=False, delay=2):
        dpsgd = DpSgd(s * d, d, steps, sample_rate, sigma)
        value, k = _best_k(dpsgd, dropping, delta, beta)
        if best is None or value > best[0]:
            best = value, dpsgd, k, dropping
    assert best is not None
    predicted, dpsgd, k, dropping = best
    moved = dpsgd.n * steps if dropping is None else float(dropping.active(dpsgd).sum())
    trials = min(trials, int(_WORK / moved))
    trials = trials if trials > 1 else 0
    bound = error = float("nan")
    if trials:
        counts = audit_hopping(dpsgd, k, dropping=dropping, trials=trials, seed=seed)
        bounds = valid_lower_bound(counts, beta=beta, delta=delta)
        bound, error = float(bounds.mean()), float(bounds.std(ddof=1)) / sqrt(trials)
    return AuditPlan(dpsgd, epsilon, delta, beta, k, dropping, predicted, bound, error, trials)


def _schedules(s: int) -> list[Dropping | None]:
    finals = [final for final in (1.0, 2.0, 4.0) if final < s]
    return [None, *(Dropping(final, **SHAPE) for final in finals)]  # type: ignore[arg-type]


def _best_k(
    dpsgd: DpSgd, dropping: Dropping | None, delta: float, beta: float
) -> tuple[float, int]:
    """The number of guesses with the largest predicted bound."""
    active = dpsgd.n if dropping is None else int(dropping.active(dpsgd)[-1])
    k = np.array([guesses for guesses in GUESSES if guesses <= active] or [active])
    right = predicted_accuracy(dpsgd, k, dropping) * k
    bounds = _bound_at(right, k, dpsgd.n, delta, beta)
    return float(bounds.max()), int(k[np.argmax(bounds)])


def _bound_at(
    right: NDArray[np.float64], k: NDArray[np.int64], n: int, delta: float, beta: float
) -> NDArray[np.float64]:
    """The exact bound between two whole numbers of right guesses."""
    floor = np.minimum(right.astype(np.int64), k - 1)
    low, high = (
        np.array(
            [
                valid_lower_bound(Counts(v, r, n, r_fixed=True), beta=beta, delta=delta)[0]
                for v, r in zip(floor + more, k, strict=True)
            ]
        )
        for more in (0, 1)
    )
    return low + (right - floor) * (high - low)


def _report(plan: AuditPlan) -> str:
    from oralib.tables import number  # here, because it needs pandas

    dpsgd, dropping, s = plan.dpsgd, plan.dropping, plan.dpsgd.per_coordinate
    delta = number(plan.delta) if plan.delta < 1e-3 else f"{plan.delta:g}"
    rows = [
        ("claim", f"({plan.epsilon:g}, {delta})-DP: noise multiplier {dpsgd.sigma:.4f}"),
        ("canaries", f"{dpsgd.n:,}, {s} per coordinate, each included by a fair coin of its own"),
    ]
    if s > 1:
        evenly = ", as many on each coordinate as on any other" if dropping is None else ""
        rows.append(("place", f"anew in each step, by public random numbers{evenly}"))
    if dropping is None:
        rows.append(("drop", "none"))
    else:
        active, steps = dropping.active(dpsgd), dpsgd.steps
        shown = sorted({0, steps // 4, steps // 2, 3 * steps // 4, steps - 1})
        falls = ", ".join(f"{active[t]:,} in step {t + 1}" for t in shown)
        loads, second = dropping.loads(dpsgd), min(2, steps)
        most, least = loads[second - 1].max(), loads[second - 1].min()
        crowds = f"{most} on a coordinate in step {second}, against {least} of the most promising"
        if steps > second:
            crowds += f"; {loads[-1].max()} against {loads[-1].min()} in step {steps}"
        rows += [
            ("drop", f"those with scores nearest to 0; active: {falls}"),
            ("crowd", f"the undecided: {crowds}"),
        ]
    if plan.trials:
        seen = f"{plan.bound:.3f} ± {plan.bound_se:.3f}, the mean of {plan.trials} simulated audits"
    else:
        seen = "not simulated here"
    confidence = f"{1 - plan.beta:g}" if plan.beta > 1e-4 else f"1 - {plan.beta:g}"
    rows += [
        ("guess", f"the {plan.k} with the scores farthest from 0, sums of log-likelihood ratios"),
        ("expect", f"a bound of about {plan.predicted:.2f} by prediction; {seen}"),
        (
            "valid",
            f"with confidence {confidence} for any training that is (ε, δ)-DP, by the exact "
            "p-value: the number of guesses is fixed in advance",
        ),
    ]
    return "\n".join(
        fill(text, 80, initial_indent=f"{label:<10}", subsequent_indent=" " * 10)
        for label, text in rows
    )

"""A plan for an audit of DP-SGD in one run: how many canaries, where, how many guesses.

The plan is made before the audit, from what is public about the training, so it costs no validity.
It is found by predicting many audits (:mod:`oralib.dpsgd.prediction`), a heuristic, and then tried
on simulated audits, which say what to expect of an honest training and of some with bugs.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, expm1, log1p, nan, sqrt
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray
from tqdm import tqdm

from oralib import _check
from oralib._rounding import first_largest
from oralib.accounting import certified_epsilon, noise_multiplier
from oralib.bounds import Counts, p_value, valid_lower_bound
from oralib.dpsgd import DpSgd, Dropping, simulate_hopping
from oralib.dpsgd.hopping import hopping_counts
from oralib.dpsgd.prediction import predicted_accuracy

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AuditPlan", "expected_outcomes", "plan_audit"]

PER_COORDINATE = (1, 2, 4, 8, 16, 24, 32, 48, 64, 100, 150)
GUESSES = (50, 70, 100, 150, 200, 250, 300, 350, 400, 500, 600, 800, 1000, 1500, 2000, 3000, 5000)

#: The shape of the best schedule that we found in the paper's main setting.
SHAPE = {"until": 0.9, "bend": 1.65, "crowding": (3.0, 20.0)}

#: What a plan can aim for: the largest bound, or refuting the claim if the noise is wrong.
AIMS = ("bound", "refute")

#: Noise that gradients may show, as shares of the stated noise: guessers estimate it, then score.
SEEN_NOISE = (1.0, 0.75, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02, 0.01, 2.0, 5.0, 20.0, 100.0)

#: A plan to refute is made for the first of these shares of the noise at which it can refute.
_LESS = (0.5, 0.35, 0.25, 0.15, 0.1, 0.05)

#: Numbers of guesses that can refute, as multiples of the least of them.
_MORE = (1.0, 1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 5.0)

#: What may be wrong with a training: its share of the stated noise, and the size of a canary's
#: gradient, in clipping thresholds.
BUGS = {
    "none": (1.0, 1.0),
    "half the noise": (0.5, 1.0),
    "a tenth of the noise": (0.1, 1.0),
    "no clipping": (1.0, 3.0),
}

#: Simulated audits move at most this many canaries in total, which takes seconds.
_WORK = 2e8

#: By default no more canaries than this are planned.
_MANY = 10**6


@dataclass(frozen=True)
class AuditPlan:
    """How to audit a training, and what to expect; ``str()`` of it says what to do.

    Attributes
    ----------
    dpsgd : the training with all canaries, and its noise as it is claimed.
    epsilon, delta, beta : the claim, and how often the bound may fail.
    k : the number of guesses.
    dropping : how canaries are dropped and crowded; None if they all stay active.
    predicted : the bound that the prediction expects of an honest training.
    bound, bound_se : the mean bound of simulated audits and its standard error; nan if there are
        none, or if they would take too long.
    trials : the number of simulated audits.
    noise : the share of the stated noise for which the plan is best: 1 for the largest bound, less
        if the aim is to refute.
    refuted : the share of simulated audits that refute the claim at that noise; nan for a bound.

    Examples
    --------
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

    @property
    def best(self) -> float:
        """The bound if every guess is right: no audit by this plan can show more."""
        k = np.array([self.k])
        counts = Counts(k, k, self.dpsgd.n, r_fixed=True)
        return float(valid_lower_bound(counts, beta=self.beta, delta=self.delta)[0])

    def __str__(self) -> str:
        return _report(self)


def plan_audit(
    epsilon: float | None,
    delta: float,
    *,
    d: int,
    steps: int,
    sample_rate: float,
    beta: float = 0.05,
    most: int | None = None,
    sigma: float | None = None,
    accountant: str = "rdp",
    aim: str = "bound",
    trials: int = 40,
    seed: int = 0,
) -> AuditPlan:
    """The best audit that we can plan for a training with an (ε, δ) claim.

    Parameters
    ----------
    epsilon, delta : the claim; without an ε it is what the accountant computes from the noise.
    d, steps, sample_rate : the training, as in :class:`oralib.DpSgd`.
    beta : how often the bound may fail, in (0, 1).
    most : the largest number of canaries that can be used; by default 150 d, at most a million. If
        it is less than d, some coordinates have none.
    sigma : the claimed noise multiplier; by default the accountant computes it from the claim.
    accountant : ``"rdp"`` or ``"pld"``, as in :func:`oralib.certified_epsilon`.
    aim : ``"bound"``, the largest bound for an honest training; or ``"refute"``: to refute the
        claim if the noise is half of what is stated, or the largest share below that at which half
        of the simulated audits refute it.
    trials, seed : simulated audits, to say what to expect; with fewer than two there are none.

    Examples
    --------
    >>> plan = plan_audit(2.0, 1e-5, d=100, steps=20, sample_rate=0.1, trials=2)
    >>> plan.k <= plan.dpsgd.n
    True
    """
    delta = _check.real("delta", delta, 0, 1, interval="()")
    d, beta = _check.integer("d", d, 1, 10**8), _check.real("beta", beta, 0, 1, interval="()")
    steps = _check.integer("steps", steps, 1, 10**6)
    sample_rate = _check.real("sample_rate", sample_rate, 1e-12, 1)
    most = _check.integer("most", min(150 * d, _MANY) if most is None else most, 1)
    trials, seed = _check.integer("trials", trials, 0, 10**6), _check.seed(seed)
    _check.one_of("accountant", accountant, ("rdp", "pld"))
    _check.one_of("aim", aim, AIMS)
    epsilon, sigma = _claimed(epsilon, delta, steps, sample_rate, sigma, accountant)
    trained = DpSgd(1, d, steps, sample_rate, sigma)
    tried = list(_designs(trained, most))
    if aim == "bound":
        noise, refuted = 1.0, nan
        shown = tqdm(tried, unit="plan", disable=None, leave=False, delay=2)
        found = (_best_k(dpsgd, dropping, delta, beta) for dpsgd, dropping in shown)
        _, dpsgd, k, dropping = max(found, key=lambda best: best[0])
    else:
        noise, refuted, dpsgd, k, dropping = _to_refute(tried, epsilon, delta, beta, seed)
    predicted = float(_predicted_bounds(dpsgd, dropping, np.array([k]), delta, beta)[0])
    trials = _affordable(dpsgd, dropping, trials)
    bound = error = nan
    if trials:
        counts = simulate_hopping(dpsgd, k, dropping=dropping, trials=trials, seed=seed)
        bound, error = _mean(valid_lower_bound(counts, beta=beta, delta=delta))
    return AuditPlan(
        *(dpsgd, epsilon, delta, beta, k, dropping, predicted, bound, error, trials, noise, refuted)
    )


def expected_outcomes(plan: AuditPlan, *, trials: int = 20, seed: int = 0) -> "pd.DataFrame":
    """What an audit with this plan would show for an honest training, and for some with bugs.

    This is simulated. The guesser sees from the gradients how much noise there is, as
    :class:`oralib.canaries.Canaries` does. Without clipping a canary's gradient is three times as
    large as with it.

    Parameters
    ----------
    plan : the plan.
    trials, seed : simulated audits of each kind, from two on; fewer if they would take too long.

    Returns
    -------
    A data frame by bug, with the mean number of right guesses, ``right``, the mean ``bound``, and
    how often the claim is ``refuted``, each with its standard error, ``_se``; and ``trials``.

    Examples
    --------
    >>> plan = plan_audit(1.0, 1e-5, d=500, steps=20, sample_rate=0.1, trials=0)
    >>> table = expected_outcomes(plan, trials=4)
    >>> honest, wrong = table.loc["none"], table.loc["a tenth of the noise"]
    >>> float(honest["refuted"]), bool(wrong["bound"] > honest["bound"])
    (0.0, True)
    """
    import pandas as pd

    _check.instance("plan", plan, AuditPlan, "plan_audit(8.0, 1e-5, ...)")
    trials = _check.integer("trials", trials, 2, 10**6)
    trials = max(2, _affordable(plan.dpsgd, plan.dropping, trials))
    rows, bugs = {}, dict(BUGS)
    if plan.noise not in [share for share, _ in bugs.values()]:
        bugs[f"{plan.noise:g} of the noise"] = plan.noise, 1.0
    for bug, (share, norm) in bugs.items():
        trained = _with_less(plan.dpsgd, share)
        (counts,) = hopping_counts(
            trained, [plan.k], dropping=plan.dropping, norm=norm, trials=trials, seed=seed
        )
        bounds = valid_lower_bound(counts, beta=plan.beta, delta=plan.delta)
        row = {"right": counts.v, "bound": bounds, "refuted": bounds > plan.epsilon}
        means = np.array([_mean(values) for values in row.values()]).T
        names = [*row, *(f"{name}_se" for name in row), "trials"]
        rows[bug] = dict(zip(names, [*means.flat, trials], strict=True))
    return pd.DataFrame(rows).T.astype({"trials": int})


def _claimed(
    epsilon: float | None,
    delta: float,
    steps: int,
    sample_rate: float,
    sigma: float | None,
    accountant: str,
) -> tuple[float, float]:
    """The ε and the noise multiplier of a claim in which one of them may be missing."""

    def excess(noise: float) -> float:
        assert epsilon is not None
        return certified_epsilon(DpSgd(1, 1, steps, sample_rate, noise), delta) - epsilon

    if epsilon is not None:
        epsilon = _check.real("epsilon", epsilon, 0, 1000, interval="(]")
    if sigma is None:
        if epsilon is None:
            raise ValueError("epsilon or sigma must be given, got neither")
        sigma = noise_multiplier(epsilon, delta, steps, sample_rate)
        if accountant == "pld":  # pld asks for a little less noise
            near = 1e-5 * sigma
            sigma = scipy.optimize.brentq(excess, 0.5 * sigma, 1.1 * sigma, xtol=near) + near
            sigma = ceil(sigma * 1e6) / 1e6
    else:
        of = DpSgd(1, 1, steps, sample_rate, sigma)
        sigma = of.sigma
        if epsilon is None:
            epsilon = certified_epsilon(of, delta, accountant=accountant)
    return epsilon, sigma


def _designs(trained: DpSgd, most: int) -> Iterator[tuple[DpSgd, Dropping | None]]:
    """Numbers of canaries, and how they are dropped."""
    d, own = trained.d, min(trained.d, most)
    yield replace(trained, n=own), None
    while own >= 2000:  # fewer coordinates, one canary on each
        own //= 2
        yield replace(trained, n=own), None
    for s in PER_COORDINATE:
        if 1 < s <= most / d:
            for final in (None, 1.0, 2.0, 4.0):
                if final is None or final < s:
                    how = None if final is None else Dropping(final, **SHAPE)  # type: ignore[arg-type]
                    yield replace(trained, n=s * d), how


def _best_k(
    dpsgd: DpSgd, dropping: Dropping | None, delta: float, beta: float
) -> tuple[float, DpSgd, int, Dropping | None]:
    """The number of guesses with the largest predicted bound."""
    active = _last(dpsgd, dropping)
    k = np.array([guesses for guesses in GUESSES if guesses <= active] or [active])
    bounds = _predicted_bounds(dpsgd, dropping, k, delta, beta)
    return float(bounds.max()), dpsgd, int(k[first_largest(bounds)]), dropping


def _last(dpsgd: DpSgd, dropping: Dropping | None) -> int:
    """The number of canaries that are active in the end."""
    return dpsgd.n if dropping is None else int(dropping.active(dpsgd)[-1])


def _predicted_bounds(
    dpsgd: DpSgd, dropping: Dropping | None, k: NDArray[np.int64], delta: float, beta: float
) -> NDArray[np.float64]:
    """The exact bounds between two whole numbers of right guesses."""
    right = predicted_accuracy(dpsgd, k, dropping) * k
    floor = np.minimum(right.astype(np.int64), k - 1)

    def bounds(right: NDArray[np.int64]) -> NDArray[np.float64]:
        each = (Counts(v, r, dpsgd.n, r_fixed=True) for v, r in zip(right, k, strict=True))
        return np.array([valid_lower_bound(one, beta=beta, delta=delta)[0] for one in each])

    low, high = bounds(floor), bounds(floor + 1)
    return low + (right - floor) * (high - low)


def _to_refute(
    tried: list[tuple[DpSgd, Dropping | None]], epsilon: float, delta: float, beta: float, seed: int
) -> tuple[float, float, DpSgd, int, Dropping | None]:
    """A design that refutes the claim if the noise is less than stated; how much less, how often.

    Designs are simulated in the order of their predicted margin: how many standard deviations the
    expected number of right guesses lies above the least one that refutes.
    """
    able, most = [], max(dpsgd.n for dpsgd, _ in tried)
    for dpsgd, dropping in tried:
        active = _last(dpsgd, dropping)
        least = _least_guesses(dpsgd.n, active, epsilon, delta, beta)
        if least is not None:
            k = np.unique([min(ceil(least * more), active) for more in _MORE])
            rights = [_least_right(r, dpsgd.n, epsilon, delta, beta) for r in k.tolist()]
            able.append((dpsgd, dropping, k, np.array(rights)))
    if not able:
        few = _least_guesses(10**7, 10**7, epsilon, 0.0, beta)
        raise ValueError(
            f"d and most must allow for more canaries, or beta be larger: refuting an epsilon of "
            f"{epsilon:g} takes at least {few or 10**7:,} right guesses, and {most:,} "
            "canaries are too few, or too many for this delta"
        )
    for noise in _LESS:
        margins = []
        for dpsgd, dropping, k, need in able:
            p = predicted_accuracy(_with_less(dpsgd, noise), k, dropping)
            margins.append(float(((k * p - need + 0.5) / np.sqrt(k * p * (1 - p) + 0.25)).max()))
        best = sorted(range(len(able)), key=lambda i: -margins[i])
        order = [able[i] for i in best if margins[i] > 0]
        quick = [design for design in order if _affordable(design[0], design[1], 2)] or order
        alone = [design for design in quick[3:] if design[0].per_coordinate == 1]
        for dpsgd, dropping, k, need in quick[:3] + alone[:1]:
            over = _simulated(dpsgd, dropping, k, noise, seed) - need[:, None]
            i = max(range(k.size), key=lambda i: ((over[i] >= 0).mean(), over[i].mean()))
            # Once more, on other trainings: the best of several may have been lucky.
            refuted = _simulated(dpsgd, dropping, k[i : i + 1], noise, seed) >= need[i]
            if refuted.mean() >= 0.5:
                return noise, float(refuted.mean()), dpsgd, int(k[i]), dropping
    of, _, k, _ = able[0]
    enough = ceil(2.5 * k[0] / -expm1(of.steps * log1p(-min(of.sample_rate, 0.999))))
    raise ValueError(
        f"d must be larger: no plan for {of.d:,} coordinates and at most {most:,} canaries was "
        f"seen to refute an epsilon of {epsilon:g}, even with {_LESS[-1]:g} of the stated noise. "
        f"It takes {k[0]:,} guesses, nearly all right; try d={max(enough, 2 * of.d)}, and most "
        "no smaller (oralib.canaries adds its own weights, as many as you like)"
    )


def _with_less(dpsgd: DpSgd, noise: float) -> DpSgd:
    return replace(dpsgd, sigma=max(dpsgd.sigma * noise, 1e-3))


def _simulated(
    dpsgd: DpSgd, dropping: Dropping | None, k: NDArray[np.int64], noise: float, seed: int
) -> NDArray[np.int64]:
    """Right guesses of a guesser that has learned the noise: a row for each k, in rising order."""
    ks, trials = k[::-1].tolist(), max(2, _affordable(dpsgd, dropping, 10))
    less = _with_less(dpsgd, noise)  # which is what this guesser believes too
    counts = hopping_counts(less, ks, dropping=dropping, trials=trials, seed=seed)
    return np.array([each.v for each in counts[::-1]])


def _least_guesses(n: int, most: int, epsilon: float, delta: float, beta: float) -> int | None:
    """The least number of guesses that can refute a claim if all are right; None above ``most``.

    More are not always better: for δ > 0 the p-value of few guesses may never be small.
    """

    def able(k: int) -> bool:
        return bool(p_value(k, k, epsilon, delta=delta, n=n, method="exact") < beta)

    tried = np.unique(np.geomspace(1, most, 200).astype(np.int64)).tolist()
    high = next((k for k in tried if able(k)), None)
    if high is None:
        return None
    low = max([k for k in tried if k < high], default=0) + 1
    return bisect_left(range(low, high), True, key=able) + low


def _least_right(k: int, n: int, epsilon: float, delta: float, beta: float) -> int:
    """The least number of right guesses among k that refutes a claim; k + 1 if none does."""
    return bisect_left(
        range(k + 1),
        True,
        key=lambda v: bool(p_value(v, k, epsilon, delta=delta, n=n, method="exact") < beta),
    )


def _affordable(dpsgd: DpSgd, dropping: Dropping | None, trials: int) -> int:
    """How many of these trials can be simulated in a short time; 0 rather than 1."""
    moved = dpsgd.n * dpsgd.steps if dropping is None else float(dropping.active(dpsgd).sum())
    trials = min(trials, int(_WORK / moved))
    return trials if trials > 1 else 0


def _mean(values: NDArray[Any]) -> tuple[float, float]:
    """The mean of some trials, and its standard error."""
    return float(values.mean()), float(values.std(ddof=1)) / sqrt(values.size)


def _report(plan: AuditPlan) -> str:
    dpsgd, dropping, s = plan.dpsgd, plan.dropping, plan.dpsgd.per_coordinate
    delta = f"{plan.delta:g}"
    used = dpsgd.used_coordinates
    coins = "each included by a fair coin of its own"
    if used < dpsgd.d:
        coins += f"; {used:,} of {dpsgd.d:,} coordinates are used"
    rows = [
        (
            "words",
            "A coordinate is a weight of the model whose noisy gradient you see in each step; "
            "oralib.canaries adds such weights to a model. A canary is an example that you make: "
            "its gradient is the clipping threshold on one coordinate, and 0 elsewhere.",
        ),
        ("claim", f"({plan.epsilon:g}, {delta})-DP: noise multiplier {dpsgd.sigma:.4f}"),
        ("canaries", f"{dpsgd.n:,}, {s} per coordinate, {coins}"),
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
    bound, seen = f"a bound of about {plan.predicted:.2f} by prediction", "not simulated here"
    if plan.trials:
        seen = f"{plan.bound:.3f} ± {plan.bound_se:.3f}, the mean of {plan.trials} simulated audits"
    confidence = f"{1 - plan.beta:g}" if plan.beta > 1e-4 else f"1 - {plan.beta:g}"
    rows += [
        ("guess", f"the {plan.k:,} with the scores farthest from 0, sums of log-likelihood ratios"),
        ("expect", f"of an honest training {bound}; {seen}"),
        ("at best", f"a bound of {plan.best:.2f}, if every guess is right{_meaning(plan)}"),
        (
            "valid",
            f"with confidence {confidence} for any training that is (ε, δ)-DP, by the exact "
            "p-value: the number of guesses is fixed in advance",
        ),
    ]
    told = [
        fill(text, 80, initial_indent=f"{label:<10}", subsequent_indent=" " * 10)
        for label, text in rows
    ]
    return "\n".join([*told, "", *_commands(plan)])


def _meaning(plan: AuditPlan) -> str:
    """What the best outcome would mean for the claim, and when to expect it."""
    if plan.best <= plan.epsilon:
        return f": this plan can never refute {plan.epsilon:g}; --aim refute looks for one that can"
    if plan.noise < 1:
        made = f"; made to refute {plan.epsilon:g} if the noise is {plan.noise:g} of what is stated"
        return f"{made}, as {plan.refuted:.0%} of simulated audits do"
    return f", more than the claimed {plan.epsilon:g}"


def _commands(plan: AuditPlan) -> list[str]:
    """What to write into the script of the training, and what to call after it."""
    dropping = "" if plan.dropping is None else f"\n    dropping={plan.dropping!r},"
    hop = "\n    hop=False," if plan.dpsgd.per_coordinate == 1 else ""
    sure = "" if plan.beta == 0.05 else f" --beta {plan.beta:g}"
    audited = f"--side farthest --guesses {plan.k} --delta {plan.delta:g}{sure}"
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
        f"learning rate of plain SGD by (N + {plan.dpsgd.n})/N, N your examples.",
        'After the last step, audit.write_scores("scores.csv"), and then:',
        "",
        f"oralib audit scores.csv {audited} \\",
        f"    --claim {plan.epsilon:g}",
    ]

"""The paper's experiments: one function per figure, each returning a small data frame.

Every point of a grid is played with a random stream of its own, so that adding a point changes
no other. The defaults are the paper's own parameters; where it gives none (the grids of the
x-axes, the five ε of Figures 7 and 8, the n of Figure 4) they are ours.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from math import inf, log, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from oralib import _check
from oralib.bounds import (
    Counts,
    epsilon_estimate,
    epsilon_lower_bound,
    valid_lower_bound,
    valid_rule,
)
from oralib.dpsgd import (
    DpSgd,
    audit,
    audit_hopping,
    audit_likelihood,
    audit_single_step,
    certified_epsilon,
    confidence,
    isolated_limit,
    noise_multiplier,
)
from oralib.dpsgd.likelihood import SEEN
from oralib.games import adaptive, one_run
from oralib.guessers import ThresholdGuesser
from oralib.laws import Law, isolated_law, isolated_threshold_law, mean_bound
from oralib.mechanisms import CountInSets, LocalLaplace
from oralib.methods import METHODS, Method, training

__all__ = [
    "FIGURES",
    "adaptive_count_in_sets",
    "adaptive_dpsgd",
    "best_bounds",
    "bound_map",
    "elements_by_epsilon",
    "elements_per_coordinate",
    "isolated_ceiling",
    "local_laplace",
    "summarise",
    "taken_guesses",
    "taken_guesses_by_epsilon",
]

ELEMENTS_PER_COORDINATE = (0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 16, 32, 64)
FRACTIONS_OF_GUESSES = (0.002, 0.004, 0.01, 0.02, 0.04, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0)
ISOLATED_SIZES = tuple(round(10 ** (third / 3)) for third in range(9, 28))


def summarise(
    counts: Counts | Mapping[str, Counts], *, beta: float = 0.05, delta: float = 0.0
) -> pd.DataFrame:
    """Mean bounds, estimation and efficacy of many trials, with standard errors: one row an audit.

    Parameters
    ----------
    counts : the counts of an audit, or of several by name; the names become the index.

    Returns
    -------
    A data frame with the columns

    bound, bound_se : mean of ε'_β(v, r) as in the paper, 0 for a trial without guesses, and its
        standard error. For δ > 0 it is proved only for a number of guesses fixed in advance.
    valid, valid_se : mean of :func:`oralib.valid_lower_bound`, the bound that is proved for the
        way in which the audit was set up; nan where none is known.
    estimation, estimation_se : mean of p_inv(v / r). It is inf if some trial has v = r, and nan
        if some trial has no guesses, or if one has v = r and another v = 0; ``all_right`` and
        ``no_guesses`` count these trials.
    efficacy, efficacy_se : mean of v / r; nan if some trial has no guesses.
    guesses : mean of r.
    trials : the number of trials.

    Examples
    --------
    >>> few, many = Counts([7, 8], [10, 10], n=100), Counts([70, 80], [100, 100], n=100)
    >>> summarise({"few": few, "many": many})[["bound", "efficacy"]].round(3)
          bound  efficacy
    few   0.000      0.75
    many  0.715      0.75
    """
    if isinstance(counts, Mapping):
        if not counts:
            raise ValueError("counts must have at least one entry, got counts={}")
        rows = [_summary(each, beta, delta) for each in counts.values()]
        return pd.DataFrame(rows, index=list(counts))
    return pd.DataFrame([_summary(counts, beta, delta)])


def _summary(counts: Counts, beta: float, delta: float) -> dict[str, Any]:
    _check.instance("counts", counts, Counts, "Counts(75, 100, n=1000)")
    bound = epsilon_lower_bound(counts.v, counts.r, beta=beta, delta=delta, n=counts.n)
    try:
        valid_rule(counts, delta)
    except ValueError:  # no bound is known for such an audit
        valid = np.full(counts.trials, np.nan)
    else:
        valid = valid_lower_bound(counts, beta=beta, delta=delta)
    estimation = epsilon_estimate(counts.v, counts.r)
    return {
        **_mean("bound", bound),
        **_mean("valid", valid),
        **_mean("estimation", estimation),
        **_mean("efficacy", counts.accuracy),
        "guesses": float(counts.r.mean()),
        "all_right": int(((counts.v == counts.r) & (counts.r > 0)).sum()),
        "no_guesses": int((counts.r == 0).sum()),
        "trials": counts.trials,
    }


def _mean(name: str, values: NDArray[np.float64]) -> dict[str, float]:
    if len(values) > 1 and np.isfinite(values).all():
        error = float(values.std(ddof=1)) / sqrt(len(values))
    else:
        error = float("nan")
    with np.errstate(invalid="ignore"):  # the mean of inf and -inf is nan
        return {name: float(values.mean()), f"{name}_se": error}


# -------------------------------------------------------------------- DP-SGD with k guesses


def taken_guesses(
    fractions: Iterable[float] = FRACTIONS_OF_GUESSES,
    *,
    epsilon: float = 2.0,
    delta: float = 1e-5,
    n: int = 5000,
    d: int = 1000,
    steps: int = 100,
    sample_rate: float = 0.1,
    beta: float = 0.05,
    trials: int = 200,
    seed: int = 0,
) -> pd.DataFrame:
    """Figures 1 and 5: DP-SGD against the fraction k/n of taken guesses, column ``x``."""
    _check_play(beta, trials, seed)
    shares = _grid("fractions", fractions, 0, 1, "(]")
    dpsgd = _training(epsilon, delta, n, d, steps, sample_rate)
    guesses = [max(1, round(share * dpsgd.n)) for share in shares]
    play = partial(audit, dpsgd, trials=trials, seed=seed)
    return _sweep(
        [({"x": k / dpsgd.n, "n": dpsgd.n, "k": k}, partial(play, k)) for k in guesses],
        beta,
        delta,
    )


def elements_per_coordinate(
    ratios: Iterable[float] = ELEMENTS_PER_COORDINATE,
    *,
    k: int = 100,
    epsilon: float = 2.0,
    delta: float = 1e-5,
    d: int = 1000,
    steps: int = 100,
    sample_rate: float = 0.1,
    beta: float = 0.05,
    trials: int = 200,
    seed: int = 0,
) -> pd.DataFrame:
    """Figures 2 and 6: DP-SGD against the number n/d of elements per coordinate, column ``x``.

    For many elements the bound falls for two reasons: they hide each other, and the correction
    for δ grows like 2nδ. In column ``valid``, by the exact p-value, most of the second loss is
    gone: with 64 elements per coordinate a fifth of the bound for δ = 0 is lost, not nine tenths.
    """
    _check_play(beta, trials, seed)
    sizes = _elements(ratios, d)
    k = _check.integer("k", k, 1, min(sizes))
    trainings = [_training(epsilon, delta, n, d, steps, sample_rate) for n in sizes]
    play = partial(audit, k=k, trials=trials, seed=seed)
    return _sweep(
        [({"x": t.n / t.d, "n": t.n, "k": k}, partial(play, t)) for t in trainings], beta, delta
    )


def taken_guesses_by_epsilon(
    fractions: Iterable[float] = FRACTIONS_OF_GUESSES,
    *,
    epsilons: Iterable[float] = EPSILONS,
    trials: int = 20,
    **setting: Any,
) -> pd.DataFrame:
    """Figure 7: as :func:`taken_guesses`, for several ε (column ``epsilon``)."""
    grid = _grid("fractions", fractions, 0, 1, "(]")
    return _by_epsilon(taken_guesses, epsilons, grid, trials=trials, **setting)


def elements_by_epsilon(
    ratios: Iterable[float] = ELEMENTS_PER_COORDINATE,
    *,
    epsilons: Iterable[float] = EPSILONS,
    trials: int = 20,
    **setting: Any,
) -> pd.DataFrame:
    """Figure 8: as :func:`elements_per_coordinate`, for several ε (column ``epsilon``)."""
    grid = _grid("ratios", ratios, 0, inf, "()")
    return _by_epsilon(elements_per_coordinate, epsilons, grid, trials=trials, **setting)


# ------------------------------------------------------------------- plain against adaptive


def adaptive_dpsgd(
    ratios: Iterable[float] = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 40, 80, 160),
    *,
    tau: float = 1.0,
    feedbacks: Iterable[str] = ("none", "one-way", "full"),
    epsilon: float = 2.0,
    delta: float = 1e-5,
    d: int = 1000,
    beta: float = 0.05,
    trials: int = 200,
    seed: int = 0,
) -> pd.DataFrame:
    """Figure 3: one full-batch step of DP-SGD, plain and adaptive, against n/d (column ``x``).

    Column ``feedback``: ``none`` is the paper's ORA, ``full`` its AORA, ``one-way`` reveals the
    coins of abstained elements only. Column ``bound`` is what the paper plots, with δ > 0 and a
    number of guesses that depends on the output, which the theorem behind it does not cover.
    Column ``valid`` is a bound that is proved for ``none`` and ``one-way``; for ``full`` and δ > 0
    none is known, and it is nan.
    """
    _check_play(beta, trials, seed)
    words = _words(feedbacks)
    trainings = [_training(epsilon, delta, n, d, 1, 1.0) for n in _elements(ratios, d)]
    play = partial(audit_single_step, tau=tau, trials=trials, seed=seed)
    return _sweep(
        [
            ({"feedback": word, "x": t.n / t.d, "n": t.n}, partial(play, t, feedback=word))
            for word in words
            for t in trainings
        ],
        beta,
        delta,
    )


def adaptive_count_in_sets(
    sizes: Iterable[int] = range(1, 11),
    *,
    sets: int = 100,
    tau: float = inf,
    feedbacks: Iterable[str] = ("none", "one-way", "full"),
    beta: float = 0.05,
    trials: int = 100,
    seed: int = 0,
) -> pd.DataFrame:
    """Figure 9: Count-in-Sets, plain and adaptive, against the size s of the sets (column ``x``).

    Column ``feedback`` as in :func:`adaptive_dpsgd`.
    """
    _check_play(beta, trials, seed)
    sets, guesser = _check.integer("sets", sets, 1), ThresholdGuesser(tau)
    words, s_values = _words(feedbacks), _row("sizes", _check.integers("sizes", _listed(sizes), 1))
    if not s_values:
        raise ValueError("sizes must have at least one entry, got sizes=[]")
    points = []
    for word in words:
        game: Any = one_run if word == "none" else partial(adaptive, feedback=word)
        for s in s_values:
            play = partial(game, CountInSets(s), guesser, sets * s, trials=trials, seed=seed)
            points.append(({"feedback": word, "x": s, "n": sets * s}, play))
    return _sweep(points, beta, 0.0)


_FEEDBACKS = ("none", "one-way", "full")


def local_laplace(
    epsilons: Iterable[float] = (0.5, 1, 2, 4, 8, 16),
    *,
    n: int = 10_000,
    beta: float = 0.05,
    trials: int = 200,
    seed: int = 0,
) -> pd.DataFrame:
    """Figure 4: Local Laplace without abstentions, against its ε (column ``x``)."""
    _check_play(beta, trials, seed)
    n = _check.integer("n", n, 1)
    mechanisms = [LocalLaplace(epsilon) for epsilon in _grid("epsilons", epsilons, 0, inf, "()")]
    play = partial(one_run, guesser=ThresholdGuesser(), n=n, trials=trials, seed=seed)
    return _sweep([({"x": m.epsilon, "n": n}, partial(play, m)) for m in mechanisms], beta, 0.0)


# ------------------------------------------------------------------------- beyond the paper


def best_bounds(
    methods: Iterable[str] = tuple(METHODS),
    *,
    epsilon: float = 2.0,
    delta: float = 1e-5,
    d: int = 1000,
    steps: int = 100,
    sample_rate: float = 0.1,
    beta: float = 0.05,
    trials: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """The valid bound of each way of auditing that we compare, a row per method.

    Columns ``bound`` and ``bound_se`` are the mean of :func:`oralib.valid_lower_bound` over the
    audits and its standard error, ``usual`` that of the paper's rule, ``above`` the share of audits
    whose bound exceeds ``certified``, the ε by a PLD accountant, and ``ceiling`` the mean bound of
    the best guesser of as many isolated elements. The choices of :data:`oralib.methods.METHODS`
    were made for the defaults.

    Examples
    --------
    >>> best_bounds(["paper"], trials=20)[["method", "n", "k", "rule"]]
      method     n    k   rule
    0  paper  8000  100  exact
    """
    _check_play(beta, trials, seed)
    names = [_check.one_of("methods", name, tuple(METHODS)) for name in _listed(methods)]
    if not names:
        raise ValueError("methods must have at least one entry, got methods=[]")
    d = _check.integer("d", d, max(_least_coordinates(METHODS[name]) for name in names), 10**6)
    sigma = noise_multiplier(epsilon, delta, steps, sample_rate)
    rows = []
    for name in tqdm(names, disable=None, leave=False):
        method = METHODS[name]
        dpsgd = training(method, d, steps, sample_rate, sigma)
        counts = method.play(dpsgd, method.guesses, trials=trials, seed=seed)
        row = _summary(counts, beta, delta)
        bounds = valid_lower_bound(counts, beta=beta, delta=delta)
        alone = DpSgd(counts.n, counts.n, steps, sample_rate, sigma)
        certified = certified_epsilon(alone, delta)
        rows.append(
            {
                "method": name,
                "words": method.words,
                "n": counts.n,
                "k": method.guesses,
                "feedback": counts.feedback,
                "rule": valid_rule(counts, delta),
                "bound": row["valid"],
                "bound_se": row["valid_se"],
                "usual": row["bound"],
                "usual_se": row["bound_se"],
                "estimation": row["estimation"],
                "efficacy": row["efficacy"],
                "ceiling": _best_guesses(alone, "steps", "exact", beta, delta)[1],
                "certified": certified,
                "above": float((bounds > certified).mean()),
                "trials": counts.trials,
            }
        )
    return pd.DataFrame(rows)


def _least_coordinates(method: Method) -> int:
    """As many coordinates have canaries enough in the end for all guesses of a method."""
    dropping = getattr(method.play, "keywords", {}).get("dropping")
    left = method.per_coordinate if dropping is None else int(dropping.final)
    return -(-method.guesses // left)


def bound_map(
    ratios: Iterable[float] = (1, 2, 4, 8, 16, 32, 64),
    guesses: Iterable[int] = (50, 100, 200, 400, 800),
    *,
    epsilons: Iterable[float] = (1.0, 2.0, 4.0, 8.0),
    methods: Iterable[str] = ("staying", "one-way", "hopping"),
    delta: float = 1e-5,
    d: int = 1000,
    steps: int = 100,
    sample_rate: float = 0.1,
    beta: float = 0.05,
    trials: int = 20,
    seed: int = 0,
) -> pd.DataFrame:
    """The mean valid bound over n/d (column ``x``) and k, for several ε and ways of auditing.

    Canaries stay and the guesser looks at sums; they stay and it looks at all steps, with one-way
    feedback; or they hop, and none is dropped.
    """
    _check_play(beta, trials, seed)
    words = [_check.one_of("methods", word, tuple(_MAPPED)) for word in _listed(methods)]
    sizes, levels = _elements(ratios, d), _grid("epsilons", epsilons, 0, 1000, "(]")
    numbers = _row("guesses", _check.integers("guesses", _listed(guesses), 1))
    if numbers and max(numbers) > min(sizes):
        raise ValueError(
            f"guesses must be at most n, the fewest elements, got guesses={max(numbers)} and "
            f"n={min(sizes)}"
        )
    if not words or not numbers:
        raise ValueError("methods and guesses must have at least one entry each")
    points = []
    for epsilon in levels:
        for n in sizes:
            dpsgd = _training(epsilon, delta, n, d, steps, sample_rate)
            for word in words:
                for k in numbers:
                    labels = {"epsilon": epsilon, "method": word, "x": n / d, "n": n, "k": k}
                    play = partial(_MAPPED[word], dpsgd, k, trials=trials, seed=seed)
                    points.append((labels, play))
    return _sweep(points, beta, delta)


_MAPPED: dict[str, Callable[..., Counts]] = {
    "staying": audit,
    "one-way": partial(audit_likelihood, sees="steps", feedback="one-way"),
    "hopping": audit_hopping,
}


# ---------------------------------------------------------------------- how much can be shown

#: How the ceiling turns counts into a bound: for k guesses, k the best one of a grid, without δ,
#: with the p-value of Steinke et al. and with the exact one; and for the best threshold.
RULES = ("plain", "steinke", "exact", "threshold")


def isolated_ceiling(
    sizes: Iterable[int] = ISOLATED_SIZES,
    *,
    sees: Iterable[str] = ("sum", "steps"),
    rules: Iterable[str] = ("plain", "steinke", "exact"),
    epsilon: float = 2.0,
    delta: float = 1e-5,
    steps: int = 100,
    sample_rate: float = 0.1,
    beta: float = 0.05,
) -> pd.DataFrame:
    """What the best guesser shows of DP-SGD with a coordinate for each element, against n.

    Nothing is simulated: means are integrals, see :mod:`oralib.dpsgd.isolated`.

    Parameters
    ----------
    sizes : the numbers of elements n, each with a coordinate of its own.
    sees : what the guesser looks at, the ``"sum"`` of all steps or the ``"steps"``, or both.
    rules : ``"plain"`` is the bound for δ = 0, which says nothing of (ε, δ)-DP; ``"steinke"`` and
        ``"exact"`` are for δ and k guesses; ``"threshold"`` is for δ and guesses wherever the
        privacy loss passes a threshold.

    Returns
    -------
    A data frame with the columns sees, rule and n,

    k : the best number of guesses, of a grid with steps of 5%; for a threshold, their mean.
    bound : the mean bound.
    limit : where it ends for ever more elements, :func:`oralib.dpsgd.isolated_limit`; nan for rules
        other than the exact one.
    certified : the ε that dp-accounting's PLD accountant certifies; that of its RDP accountant is
        ``epsilon``.
    """
    beta = _check.real("beta", beta, 0, 1, interval="()")
    listed = _row("sizes", _check.integers("sizes", _listed(sizes), 1))
    if not listed:
        raise ValueError("sizes must have at least one entry, got sizes=[]")
    words = {"sees": SEEN, "rules": RULES}
    chosen = {
        name: [_check.one_of(name, word, words[name]) for word in _listed(given)]
        for name, given in (("sees", sees), ("rules", rules))
    }
    for name, given in chosen.items():
        if not given:
            raise ValueError(f"{name} must have at least one entry, got {name}=[]")
    sigma = noise_multiplier(epsilon, delta, steps, sample_rate)
    rows = []
    points = [(seen, rule) for seen in chosen["sees"] for rule in chosen["rules"]]
    for n in tqdm(listed, disable=None, leave=False):
        dpsgd = DpSgd(n, n, steps, sample_rate, sigma)
        certified = certified_epsilon(dpsgd, delta)
        for seen, rule in points:
            k, bound = _best_guesses(dpsgd, seen, rule, beta, delta)
            limit = nan
            if rule == "exact":
                limit = isolated_limit(dpsgd, sees=seen, beta=beta, delta=delta)
            row = {"sees": seen, "rule": rule, "n": n, "k": k, "bound": bound}
            rows.append({**row, "limit": limit, "certified": certified})
    table = pd.DataFrame(rows)
    order = [(seen, rule) for seen, rule in points]
    keys = [order.index(pair) for pair in zip(table["sees"], table["rule"], strict=True)]
    return table.iloc[np.argsort(keys, kind="stable")].reset_index(drop=True)


def _best_guesses(
    dpsgd: DpSgd, seen: str, rule: str, beta: float, delta: float
) -> tuple[int, float]:
    """The best number of guesses on a grid, and its mean bound."""
    grid = np.unique(np.round(1.05 ** np.arange(0, log(dpsgd.n) / log(1.05) + 1)).astype(int))
    grid = grid[grid <= dpsgd.n]
    found: dict[int, float] = {}

    def mean(i: int) -> float:
        if i not in found:
            law = _isolated_law(dpsgd, int(grid[i]), seen, rule == "threshold")
            method = {"plain": "exact", "threshold": "split"}.get(rule, rule)
            paid = 0.0 if rule == "plain" else delta
            found[i] = mean_bound(law, beta=beta, delta=paid, method=method)
        return found[i]

    # Up the grid in long steps, until the bound has fallen well below its best; then around it.
    for i in range(0, len(grid), 8):
        if mean(i) < 0.9 * max(found.values()):
            break
    for stride in (4, 2, 1):
        top = max(found, key=lambda i: found[i])
        for i in (top - stride, top + stride):
            if 0 <= i < len(grid):
                mean(i)
    top = max(found, key=lambda i: found[i])
    return int(grid[top]), found[top]


@lru_cache(maxsize=1024)
def _isolated_law(dpsgd: DpSgd, guesses: int, seen: str, threshold: bool) -> Law:
    """So many guesses, or the threshold that so many pass on average; once for all rules."""
    if not threshold:
        return isolated_law(dpsgd, guesses, sees=seen, counts=80)
    tau = float(confidence(dpsgd, seen).level_of(guesses / dpsgd.n))
    return isolated_threshold_law(dpsgd, tau, sees=seen, counts=60)


#: The function that computes the data of each figure of the paper.
FIGURES: dict[int, Callable[..., pd.DataFrame]] = {
    1: taken_guesses,
    2: elements_per_coordinate,
    3: adaptive_dpsgd,
    4: local_laplace,
    5: taken_guesses,
    6: elements_per_coordinate,
    7: taken_guesses_by_epsilon,
    8: elements_by_epsilon,
    9: adaptive_count_in_sets,
}


# ---------------------------------------------------------------------------------- helpers


def _check_play(beta: float, trials: int, seed: int) -> None:
    """What every experiment takes, checked before any work."""
    _check.real("beta", beta, 0, 1, interval="()")
    _check.integer("trials", trials, 1)
    _check.seed(seed)


def _training(
    epsilon: float, delta: float, n: int, d: int, steps: int, sample_rate: float
) -> DpSgd:
    """The training that an RDP accountant finds (ε, δ)-DP."""
    DpSgd(n, d, steps, sample_rate)  # complains of a bad n before the accountant starts
    return DpSgd(n, d, steps, sample_rate, noise_multiplier(epsilon, delta, steps, sample_rate))


def _listed(values: Iterable[Any]) -> Any:
    """A grid as a list, or as the array that it is; one value is a grid of one point."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        return [values]
    return values if isinstance(values, np.ndarray) and values.ndim else list(values)


def _grid(
    name: str, values: Iterable[float], low: float, high: float, interval: str
) -> list[float]:
    """A grid as a list of numbers in an interval, with at least one point."""
    listed = _listed(values)
    if not len(listed):
        raise ValueError(f"{name} must have at least one entry, got {name}=[]")
    return _row(name, _check.reals(name, listed, low, high, interval=interval))


def _row(name: str, values: NDArray[Any]) -> list[Any]:
    """The entries of a grid, which has one axis."""
    if values.ndim != 1:
        raise ValueError(f"{name} must be a row of numbers, got shape {values.shape}")
    return values.tolist()


def _words(feedbacks: Iterable[str]) -> list[str]:
    """The kinds of feedback that are asked for, at least one."""
    words = [_check.one_of("feedbacks", word, _FEEDBACKS) for word in _listed(feedbacks)]
    if not words:
        raise ValueError("feedbacks must have at least one entry, got feedbacks=[]")
    return words


def _elements(ratios: Iterable[float], d: int) -> list[int]:
    """The numbers of elements n with these ratios n / d."""
    d = _check.integer("d", d, 1)
    return [max(1, round(ratio * d)) for ratio in _grid("ratios", ratios, 0, 1e12, "(]")]


def _sweep(
    points: Sequence[tuple[dict[str, Any], Callable[[], Counts]]], beta: float, delta: float
) -> pd.DataFrame:
    """Play every point and summarise it in a row, with a progress bar on a terminal."""
    return pd.DataFrame(
        [
            {**labels, **_summary(play(), beta, delta)}
            for labels, play in tqdm(points, disable=None, leave=False)
        ]
    )


def _by_epsilon(
    experiment: Callable[..., pd.DataFrame],
    epsilons: Iterable[float],
    grid: list[float],
    **setting: Any,
) -> pd.DataFrame:
    levels = _grid("epsilons", epsilons, 0, inf, "()")
    tables = {level: experiment(grid, epsilon=level, **setting) for level in levels}
    return pd.concat(tables, names=["epsilon"]).reset_index("epsilon").reset_index(drop=True)

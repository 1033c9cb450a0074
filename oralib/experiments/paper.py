"""The figures of the paper, one function each."""

from collections.abc import Callable, Iterable
from itertools import product
from math import inf
from typing import Any

import pandas as pd
from tqdm import tqdm

from oralib import _check
from oralib.accounting import noise_multiplier
from oralib.dpsgd import DpSgd, simulate_dpsgd, simulate_single_step
from oralib.experiments.points import elements_of, integers_of, reals_of, words_of
from oralib.experiments.summaries import summary
from oralib.games import adaptive, one_run
from oralib.guessers import ThresholdGuesser
from oralib.mechanisms import CountInSets, LocalLaplace

ELEMENTS_PER_COORDINATE = (0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 16, 32, 64)
FRACTIONS_OF_GUESSES = (0.002, 0.004, 0.01, 0.02, 0.04, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0)
#: What the paper reports in Figure 2: mean bound and standard error by elements per coordinate.
REPORTED = {1: (0.49, 0.01), 8: (0.62, 0.01)}
FEEDBACKS = ("none", "one-way", "full")


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
    """Figures 1 and 5: DP-SGD against the fraction k/n of taken guesses, column ``x``.

    Examples
    --------
    >>> table = taken_guesses([0.02, 0.2], trials=5)
    >>> table["x"].tolist()
    [0.02, 0.2]
    """
    sigma = noise_multiplier(epsilon, delta, steps, sample_rate)
    dpsgd = DpSgd(n, d, steps, sample_rate, sigma)
    rows = []
    for fraction in _with_bar(reals_of("fractions", fractions, 0, 1, "(]")):
        k = max(1, round(fraction * dpsgd.n))
        counts = simulate_dpsgd(dpsgd, k, trials=trials, seed=seed)
        rows.append({"x": k / dpsgd.n, "n": dpsgd.n, "k": k, **summary(counts, beta, delta)})
    return pd.DataFrame(rows)


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
    for δ grows like 2nδ. In column ``valid``, by the exact p-value, most of the latter is gone.

    Examples
    --------
    >>> table = elements_per_coordinate([1, 4], trials=50)
    >>> bool(table["bound"][1] > table["bound"][0])
    True
    """
    sigma = noise_multiplier(epsilon, delta, steps, sample_rate)
    trainings = [DpSgd(n, d, steps, sample_rate, sigma) for n in elements_of(ratios, d)]
    rows = []
    for dpsgd in _with_bar(trainings):
        counts = simulate_dpsgd(dpsgd, k, trials=trials, seed=seed)
        rows.append(
            {"x": dpsgd.n / dpsgd.d, "n": dpsgd.n, "k": k, **summary(counts, beta, delta)}
        )
    return pd.DataFrame(rows)


def taken_guesses_by_epsilon(
    fractions: Iterable[float] = FRACTIONS_OF_GUESSES,
    *,
    epsilons: Iterable[float] = EPSILONS,
    trials: int = 20,
    **setting: Any,
) -> pd.DataFrame:
    """Figure 7: as :func:`taken_guesses`, for several ε (column ``epsilon``).

    Examples
    --------
    >>> taken_guesses_by_epsilon([0.02], epsilons=[1.0, 4.0], trials=5)["epsilon"].tolist()
    [1.0, 4.0]
    """
    return _by_epsilon(taken_guesses, epsilons, fractions, trials=trials, **setting)


def elements_by_epsilon(
    ratios: Iterable[float] = ELEMENTS_PER_COORDINATE,
    *,
    epsilons: Iterable[float] = EPSILONS,
    trials: int = 20,
    **setting: Any,
) -> pd.DataFrame:
    """Figure 8: as :func:`elements_per_coordinate`, for several ε (column ``epsilon``).

    Examples
    --------
    >>> elements_by_epsilon([4], epsilons=[1.0, 4.0], trials=5)["epsilon"].tolist()
    [1.0, 4.0]
    """
    return _by_epsilon(elements_per_coordinate, epsilons, ratios, trials=trials, **setting)


def _by_epsilon(
    experiment: Callable[..., pd.DataFrame],
    epsilons: Iterable[float],
    grid: Iterable[float],
    **setting: Any,
) -> pd.DataFrame:
    """An experiment at several levels ε, one below the other."""
    levels = reals_of("epsilons", epsilons, 0, inf, "()")
    tables = {level: experiment(grid, epsilon=level, **setting) for level in levels}
    return pd.concat(tables, names=["epsilon"]).reset_index("epsilon").reset_index(drop=True)


def adaptive_dpsgd(
    ratios: Iterable[float] = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 40, 80, 160),
    *,
    tau: float = 1.0,
    feedbacks: Iterable[str] = FEEDBACKS,
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
    ``valid`` is proved for the audit; for ``full`` it is 0 where n δ / 2 is β or more.

    Examples
    --------
    >>> adaptive_dpsgd([4], trials=5)["feedback"].tolist()
    ['none', 'one-way', 'full']
    """
    sigma = noise_multiplier(epsilon, delta, 1, 1.0)
    trainings = [DpSgd(n, d, 1, 1.0, sigma) for n in elements_of(ratios, d)]
    points = list(product(words_of("feedbacks", feedbacks, FEEDBACKS), trainings))
    rows = []
    for word, dpsgd in _with_bar(points):
        counts = simulate_single_step(dpsgd, tau, feedback=word, trials=trials, seed=seed)
        point = {"feedback": word, "x": dpsgd.n / dpsgd.d, "n": dpsgd.n}
        rows.append({**point, **summary(counts, beta, delta)})
    return pd.DataFrame(rows)


def adaptive_count_in_sets(
    sizes: Iterable[int] = range(1, 11),
    *,
    sets: int = 100,
    tau: float = inf,
    feedbacks: Iterable[str] = FEEDBACKS,
    beta: float = 0.05,
    trials: int = 100,
    seed: int = 0,
) -> pd.DataFrame:
    """Figure 9: Count-in-Sets, plain and adaptive, against the size s of the sets (column ``x``).

    Column ``feedback`` as in :func:`adaptive_dpsgd`.

    Examples
    --------
    >>> adaptive_count_in_sets([2], trials=5)[["x", "feedback"]]
       x feedback
    0  2     none
    1  2  one-way
    2  2     full
    """
    sets, guesser = _check.integer("sets", sets, 1), ThresholdGuesser(tau)
    words = words_of("feedbacks", feedbacks, FEEDBACKS)
    rows = []
    for word, s in _with_bar(list(product(words, integers_of("sizes", sizes)))):
        mechanism, n = CountInSets(s), s * sets
        if word == "none":
            counts = one_run(mechanism, guesser, n, trials=trials, seed=seed)
        else:
            counts = adaptive(mechanism, guesser, n, feedback=word, trials=trials, seed=seed)
        rows.append({"feedback": word, "x": s, "n": n, **summary(counts, beta, 0.0)})
    return pd.DataFrame(rows)


def local_laplace(
    epsilons: Iterable[float] = (0.5, 1, 2, 4, 8, 16),
    *,
    n: int = 10_000,
    beta: float = 0.05,
    trials: int = 200,
    seed: int = 0,
) -> pd.DataFrame:
    """Figure 4: Local Laplace without abstentions, against its ε (column ``x``).

    Examples
    --------
    >>> table = local_laplace([2.0], trials=20)
    >>> bool(0 < table["bound"][0] < 2)
    True
    """
    rows = []
    for epsilon in _with_bar(reals_of("epsilons", epsilons, 0, inf, "()")):
        mechanism = LocalLaplace(epsilon)
        counts = one_run(mechanism, ThresholdGuesser(), n, trials=trials, seed=seed)
        rows.append({"x": epsilon, "n": counts.n, **summary(counts, beta, 0.0)})
    return pd.DataFrame(rows)


def _with_bar(points: list[Any]) -> Iterable[Any]:
    """The points of a grid, with a progress bar on a terminal."""
    return tqdm(points, disable=None, leave=False)

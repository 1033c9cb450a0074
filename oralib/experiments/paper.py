"""The figures of the paper, one function each."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from math import inf
from typing import Any

import pandas as pd

from oralib import _check
from oralib.dpsgd import simulate_dpsgd, simulate_single_step
from oralib.experiments import points
from oralib.games import adaptive, one_run
from oralib.guessers import ThresholdGuesser
from oralib.mechanisms import CountInSets, LocalLaplace

ELEMENTS_PER_COORDINATE = (0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 16, 32, 64)
FRACTIONS_OF_GUESSES = (0.002, 0.004, 0.01, 0.02, 0.04, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0)
#: What the paper reports in Figure 2: mean bound and standard error by elements per coordinate.
REPORTED = {1: (0.49, 0.01), 8: (0.62, 0.01)}
_FEEDBACKS = ("none", "one-way", "full")


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
    points.check_play(beta, trials, seed)
    shares = points.reals_of("fractions", fractions, 0, 1, "(]")
    dpsgd = points.training_for(epsilon, delta, n, d, steps, sample_rate)
    guesses = [max(1, round(share * dpsgd.n)) for share in shares]
    play = partial(simulate_dpsgd, dpsgd, trials=trials, seed=seed)
    played = [({"x": k / dpsgd.n, "n": dpsgd.n, "k": k}, partial(play, k)) for k in guesses]
    return points.sweep(played, beta, delta)


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
    points.check_play(beta, trials, seed)
    sizes = points.elements_of(ratios, d)
    k = _check.integer("k", k, 1, min(sizes))
    trainings = [points.training_for(epsilon, delta, n, d, steps, sample_rate) for n in sizes]
    play = partial(simulate_dpsgd, k=k, trials=trials, seed=seed)
    played = [({"x": t.n / t.d, "n": t.n, "k": k}, partial(play, t)) for t in trainings]
    return points.sweep(played, beta, delta)


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
    grid = points.reals_of("fractions", fractions, 0, 1, "(]")
    return points.by_epsilon(taken_guesses, epsilons, grid, trials=trials, **setting)


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
    grid = points.reals_of("ratios", ratios, 0, inf, "()")
    return points.by_epsilon(elements_per_coordinate, epsilons, grid, trials=trials, **setting)


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
    ``valid`` is proved for the audit; for ``full`` it is 0 where n δ / 2 is β or more.

    Examples
    --------
    >>> adaptive_dpsgd([4], trials=5)["feedback"].tolist()
    ['none', 'one-way', 'full']
    """
    points.check_play(beta, trials, seed)
    words = points.words_of("feedbacks", feedbacks, _FEEDBACKS)
    sizes = points.elements_of(ratios, d)
    trainings = [points.training_for(epsilon, delta, n, d, 1, 1.0) for n in sizes]
    play = partial(simulate_single_step, tau=tau, trials=trials, seed=seed)
    played = [
        ({"feedback": word, "x": t.n / t.d, "n": t.n}, partial(play, t, feedback=word))
        for word, t in product(words, trainings)
    ]
    return points.sweep(played, beta, delta)


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

    Examples
    --------
    >>> adaptive_count_in_sets([2], trials=5)[["x", "feedback"]]
       x feedback
    0  2     none
    1  2  one-way
    2  2     full
    """
    points.check_play(beta, trials, seed)
    sets, guesser = _check.integer("sets", sets, 1), ThresholdGuesser(tau)
    words = points.words_of("feedbacks", feedbacks, _FEEDBACKS)
    played = []
    for word, s in product(words, points.integers_of("sizes", sizes)):
        game: Any = one_run if word == "none" else partial(adaptive, feedback=word)
        play = partial(game, CountInSets(s), guesser, sets * s, trials=trials, seed=seed)
        played.append(({"feedback": word, "x": s, "n": sets * s}, play))
    return points.sweep(played, beta, 0.0)


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
    points.check_play(beta, trials, seed)
    n = _check.integer("n", n, 1)
    levels = points.reals_of("epsilons", epsilons, 0, inf, "()")
    play = partial(one_run, guesser=ThresholdGuesser(), n=n, trials=trials, seed=seed)
    played = [({"x": level, "n": n}, partial(play, LocalLaplace(level))) for level in levels]
    return points.sweep(played, beta, 0.0)


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

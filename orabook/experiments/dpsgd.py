"""Figures 1, 2 and 5 to 8: audits of DP-SGD, whose guesser sees the sum of all steps."""

from collections.abc import Callable, Iterable
from itertools import product
from math import inf
from typing import Any

import pandas as pd

from orabook.experiments.grids import elements_of, reals_of, with_bar
from orabook.experiments.summaries import summary
from orabook.laws import mean_bound, sums_law
from oralib import DpSgd, simulate_dpsgd
from oralib.bounds import Exact

__all__ = [
    "REPORTED",
    "elements_by_epsilon",
    "elements_per_coordinate",
    "exact_elements_by_epsilon",
    "taken_guesses",
    "taken_guesses_by_epsilon",
]

#: The numbers n/d of elements per coordinate in Figures 2, 6 and 8.
ELEMENTS_PER_COORDINATE = (0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 16, 32, 64)
#: The fractions k/n of Figures 1, 5 and 7.
FRACTIONS_OF_GUESSES = (0.002, 0.004, 0.01, 0.02, 0.04, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
#: The privacy levels of Figures 7 and 8.
EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0)
#: The mean bound and its standard error in Figure 2, as the paper reports them, by the ratio n/d.
REPORTED = {1: (0.49, 0.01), 8: (0.62, 0.01)}


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
    """Figures 1 and 5: DP-SGD against the fraction k/n of elements guessed, column ``x``.

    Parameters
    ----------
    fractions : iterable of float
        The fractions k/n.
    epsilon, delta : float
        The level at which the training is certified.
    n, d, steps, sample_rate
        The training, as in :class:`oralib.DpSgd`.
    beta : float
        The probability with which a bound may fail.
    trials, seed : int
        The number of audits at each point, and the seed of their random numbers.

    Examples
    --------
    >>> table = taken_guesses([0.02, 0.2], trials=5)
    >>> table["x"].tolist()
    [0.02, 0.2]
    """
    dpsgd = DpSgd.calibrated(epsilon, delta, n=n, d=d, steps=steps, sample_rate=sample_rate)
    # The interval "(]" is 0 < fraction <= 1.
    fractions = reals_of("fractions", fractions, 0, 1, "(]")
    numbers = dict.fromkeys(max(1, round(fraction * dpsgd.n)) for fraction in fractions)
    rows = []
    for k in with_bar(list(numbers)):
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

    The bound first rises with n/d, then falls, for two reasons: elements hide each other, and the
    correction for δ grows like 2nδ. Column ``valid`` uses the exact p-value, which avoids most of
    that correction.

    Parameters
    ----------
    ratios : iterable of float
        The ratios n/d.
    k : int
        The number of guesses.
    epsilon, delta, d, steps, sample_rate, beta, trials, seed
        As in :func:`taken_guesses`.

    Examples
    --------
    >>> table = elements_per_coordinate([1, 4], trials=50)
    >>> bool(table["bound"][1] > table["bound"][0])
    True
    """
    settings = [
        DpSgd.calibrated(epsilon, delta, n=n, d=d, steps=steps, sample_rate=sample_rate)
        for n in elements_of(ratios, d)
    ]
    rows = []
    for dpsgd in with_bar(settings):
        counts = simulate_dpsgd(dpsgd, k, trials=trials, seed=seed)
        rows.append({"x": dpsgd.n / dpsgd.d, "n": dpsgd.n, "k": k, **summary(counts, beta, delta)})
    return pd.DataFrame(rows)


def taken_guesses_by_epsilon(
    fractions: Iterable[float] = FRACTIONS_OF_GUESSES,
    *,
    epsilons: Iterable[float] = EPSILONS,
    trials: int = 20,
    **setting: Any,
) -> pd.DataFrame:
    """Figure 7: as :func:`taken_guesses`, for several ε (column ``epsilon``).

    Parameters
    ----------
    fractions : iterable of float
        The fractions k/n.
    epsilons : iterable of float
        The levels at which the training is certified.
    trials : int
        The number of audits at each point.
    **setting
        Further parameters of :func:`taken_guesses`.

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

    Parameters
    ----------
    ratios : iterable of float
        The ratios n/d.
    epsilons, trials
        As in :func:`taken_guesses_by_epsilon`.
    **setting
        Further parameters of :func:`elements_per_coordinate`.

    Examples
    --------
    >>> elements_by_epsilon([4], epsilons=[1.0, 4.0], trials=5)["epsilon"].tolist()
    [1.0, 4.0]
    """
    return _by_epsilon(elements_per_coordinate, epsilons, ratios, trials=trials, **setting)


def exact_elements_by_epsilon(
    ratios: Iterable[float] = ELEMENTS_PER_COORDINATE,
    *,
    k: int = 100,
    epsilons: Iterable[float] = EPSILONS,
    delta: float = 1e-5,
    d: int = 1000,
    steps: int = 100,
    sample_rate: float = 0.1,
) -> pd.DataFrame:
    """Figure 8 without simulation: the exact means of ``bound`` and ``valid``.

    Parameters
    ----------
    ratios : iterable of float
        The ratios n/d.
    k : int
        The number of guesses.
    epsilons : iterable of float
        The levels at which the training is certified.
    delta, d, steps, sample_rate
        As in :func:`taken_guesses`.

    Examples
    --------
    >>> exact_elements_by_epsilon([8], epsilons=[2.0])[["x", "bound", "valid"]].round(3)
         x  bound  valid
    0  8.0  0.605  0.622
    """
    rows = []
    points = product(reals_of("epsilons", epsilons, 0, inf, "()"), elements_of(ratios, d))
    for epsilon, n in with_bar(list(points)):
        dpsgd = DpSgd.calibrated(epsilon, delta, n=n, d=d, steps=steps, sample_rate=sample_rate)
        law = sums_law(dpsgd, k)
        rows.append(
            {
                "epsilon": epsilon,
                "x": n / d,
                "n": n,
                "k": k,
                "bound": mean_bound(law, delta=delta),
                "valid": mean_bound(law, delta=delta, rule=Exact()),
            }
        )
    return pd.DataFrame(rows)


def _by_epsilon(
    experiment: Callable[..., pd.DataFrame],
    epsilons: Iterable[float],
    grid: Iterable[float],
    **setting: Any,
) -> pd.DataFrame:
    """Repeat an experiment at several ε, one table below the other."""
    levels = reals_of("epsilons", epsilons, 0, inf, "()")
    tables = {epsilon: experiment(grid, epsilon=epsilon, **setting) for epsilon in levels}
    return pd.concat(tables, names=["epsilon"]).reset_index("epsilon").reset_index(drop=True)

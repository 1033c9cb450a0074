"""Grids of experiments: checked before any work, and played point by point."""

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from oralib import _check
from oralib.accounting import noise_multiplier
from oralib.bounds import Counts
from oralib.dpsgd import DpSgd
from oralib.experiments.summaries import summary


def check_play(beta: float, trials: int, seed: int) -> None:
    """Check what every experiment takes, before any work."""
    _check.real("beta", beta, 0, 1, interval="()")
    _check.integer("trials", trials, 1)
    _check.seed(seed)


def training_for(
    epsilon: float, delta: float, n: int, d: int, steps: int, sample_rate: float
) -> DpSgd:
    """The training that an RDP accountant finds (ε, δ)-DP."""
    DpSgd(n, d, steps, sample_rate)  # rejects a bad n before the accountant starts
    return DpSgd(n, d, steps, sample_rate, noise_multiplier(epsilon, delta, steps, sample_rate))


def reals_of(
    name: str, values: Iterable[float], low: float, high: float, interval: str
) -> list[float]:
    """A grid of numbers in an interval."""
    return _row(name, _check.reals(name, _listed(name, values), low, high, interval=interval))


def integers_of(name: str, values: Iterable[int]) -> list[int]:
    """A grid of integers that are at least 1."""
    return _row(name, _check.integers(name, _listed(name, values), 1))


def words_of(name: str, values: Iterable[str], allowed: Iterable[str]) -> list[str]:
    """A grid of some of the allowed words."""
    return [_check.one_of(name, word, tuple(allowed)) for word in _listed(name, values)]


def _listed(name: str, values: Any) -> Any:
    """A grid as a list, or as the array that it is; one value is a grid of one point."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        values = [values]
    listed: Any = np.atleast_1d(values) if isinstance(values, np.ndarray) else list(values)
    if not len(listed):
        raise ValueError(f"{name} must have at least one entry, got {name}=[]")
    return listed


def _row(name: str, values: NDArray[Any]) -> list[Any]:
    if values.ndim != 1:
        raise ValueError(f"{name} must be a row of numbers, got shape {values.shape}")
    return values.tolist()


def elements_of(ratios: Iterable[float], d: int) -> list[int]:
    """The numbers of elements n with these ratios n / d."""
    d = _check.integer("d", d, 1)
    return [max(1, round(ratio * d)) for ratio in reals_of("ratios", ratios, 0, 1e12, "(]")]


def sweep(
    points: Sequence[tuple[dict[str, Any], Callable[[], Counts]]], beta: float, delta: float
) -> pd.DataFrame:
    """Play every point and summarize it in a row, with a progress bar on a terminal."""
    played = tqdm(points, disable=None, leave=False)
    return pd.DataFrame([labels | summary(play(), beta, delta) for labels, play in played])


def by_epsilon(
    experiment: Callable[..., pd.DataFrame],
    epsilons: Iterable[float],
    grid: list[float],
    **setting: Any,
) -> pd.DataFrame:
    """An experiment at several levels ε, one below the other."""
    levels = reals_of("epsilons", epsilons, 0, inf, "()")
    tables = {level: experiment(grid, epsilon=level, **setting) for level in levels}
    return pd.concat(tables, names=["epsilon"]).reset_index("epsilon").reset_index(drop=True)

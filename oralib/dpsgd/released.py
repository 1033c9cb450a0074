"""Guesses from the weights of a training that was run, simulated or real.

The training releases weights w_0, ..., w_T. Their differences, undone by the learning rate, the
size of the batches and the clipping threshold, are noisy gradients y_1, ..., y_T: on each
coordinate the number of its canaries in the batch, plus normal noise of standard deviation σ. From
there on, a real training is treated like a simulated one.
"""

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oralib import _check
from oralib._jit import jit
from oralib.bounds import Counts
from oralib.dpsgd.likelihood import SEEN, count_right, likelihood_tables, log_odds, weigh
from oralib.dpsgd.ratios import interpolate, ratio_table
from oralib.dpsgd.training import DpSgd
from oralib.mechanisms import Array

#: Larger weights and gradients mean that the training has failed.
_LARGEST = 1e12


def noisy_gradients(
    weights: ArrayLike, *, learning_rate: float = 1.0, clip: float = 1.0, batch: float = 1.0
) -> NDArray[np.float64]:
    """The noisy gradients of a training, in units of the clipping threshold, a row for each step.

    Parameters
    ----------
    weights : the weights w_0, ..., w_T, a row for each; the first and the last are enough for the
        sum of all noisy gradients.
    learning_rate : how far a step of plain gradient descent goes.
    clip : the clipping threshold.
    batch : what sums of gradients were divided by: the expected size of a batch where an optimiser
        takes means, 1 where it takes sums.

    Examples
    --------
    >>> noisy_gradients([[0.0, 0.0], [-0.5, 0.0], [-1.0, 0.25]], learning_rate=0.5).tolist()
    [[1.0, -0.0], [1.0, -0.5]]
    """
    table = _check.reals("weights", weights, -_LARGEST, _LARGEST)
    if table.ndim != 2 or table.shape[0] < 2:
        raise ValueError(
            "weights must be a matrix with a row for each of two or more steps, "
            f"got shape {table.shape}"
        )
    if table.size and (table == table[0]).all():
        raise ValueError(
            "weights must change from step to step, as noise is added, got rows that are all the "
            "same: copy the weights after each step"
        )
    learning_rate = _check.real("learning_rate", learning_rate, 1e-12, 1e12)
    clip = _check.real("clip", clip, 1e-12, 1e12)
    batch = _check.real("batch", batch, 1e-12, 1e12)
    return -np.diff(table, axis=0) * (batch / (learning_rate * clip))


def canary_scores(
    dpsgd: DpSgd, gradients: ArrayLike, *, sees: str = "steps", places: ArrayLike | None = None
) -> NDArray[np.float64]:
    """What the noisy gradients say about each canary: the log-odds that it was included.

    For canaries that hop it is the sum of their log-likelihood ratios over the steps, as in
    :func:`simulate_hopping`; in each step the other canaries count as fresh coins.

    Parameters
    ----------
    dpsgd : the training as it was claimed to be.
    gradients : its noisy gradients, T rows and a column for each used coordinate; for the ``"sum"``
        also one row with their sum.
    sees : ``"sum"`` or ``"steps"``: what the scores are made of.
    places : None for canaries that stay, canary i on coordinate i % d. For canaries that hop, the
        coordinate of each in each step, T rows and n columns, or -1 if dropped; ``"steps"`` only.

    Examples
    --------
    >>> dpsgd = DpSgd(n=4, d=2, steps=3, sample_rate=0.5, sigma=0.5)
    >>> canary_scores(dpsgd, [[1, 0], [0, 0], [2, 1]]).round(2).tolist()
    [1.29, -0.28, 1.29, -0.28]
    """
    y = _observed(dpsgd, gradients, sees)
    if places is None:
        scores = all_log_odds(*_likelihoods(dpsgd, y, sees))
        return scores[np.arange(dpsgd.n) % dpsgd.used_coordinates]
    if sees != "steps":
        raise ValueError(f"sees must be 'steps' for canaries that hop, got sees={sees!r}")
    return _hopping_scores(dpsgd, y, check_places(dpsgd, places))


def audit_gradients(
    dpsgd: DpSgd,
    gradients: ArrayLike,
    included: ArrayLike,
    k: int,
    *,
    sees: str = "steps",
    feedback: str = "none",
) -> Counts:
    """The counts of one audit with k guesses: canaries that stay, the most likely guess.

    Parameters
    ----------
    dpsgd, gradients, sees : as for :func:`canary_scores`.
    included : the coins: which of the n canaries were in the training data.
    k : the number of guesses, fixed in advance.
    feedback : ``"none"``, or ``"one-way"``: the coins of elements are shown, the least promising
        first, until k are left, and those are guessed.

    Examples
    --------
    >>> from oralib import train
    >>> dpsgd, rng = DpSgd(n=1000, sigma=1.0), np.random.default_rng(1)
    >>> included = rng.random(1000) < 0.5
    >>> gradients = noisy_gradients(train(dpsgd, included, rng))
    >>> counts = audit_gradients(dpsgd, gradients, included, 100)
    >>> int(counts.v[0]), counts.r_fixed
    (91, True)
    """
    y = _observed(dpsgd, gradients, sees)
    k = _check.integer("k", k, 1, dpsgd.n)
    _check.one_of("feedback", feedback, ("none", "one-way"))
    coins = _check.coins("included", included, dpsgd.n)
    likelihood, factorials = _likelihoods(dpsgd, y, sees)
    rows = np.ascontiguousarray(coins.reshape(dpsgd.per_coordinate, dpsgd.used_coordinates).T)
    (v,) = count_right(likelihood, rows, np.array([k]), feedback == "one-way", factorials)
    how: Any = {"game": "observed training", "r_fixed": True, "feedback": feedback}
    return Counts(np.array([v]), np.array([k]), dpsgd.n, **how)


def check_places(dpsgd: DpSgd, places: ArrayLike) -> NDArray[np.int64]:
    """The coordinate of each canary in each step, -1 for none."""
    where = _check.integers("places", places, -1, dpsgd.used_coordinates - 1)
    if where.shape != (dpsgd.steps, dpsgd.n):
        raise ValueError(
            f"places must have shape ({dpsgd.steps}, {dpsgd.n}), a coordinate for each step and "
            f"canary, got shape {where.shape}"
        )
    return where


def check_steps(dpsgd: DpSgd, gradients: ArrayLike, *, or_sum: bool = False) -> NDArray[np.float64]:
    """Noisy gradients, with their shape and values checked."""
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    y = _check.reals("gradients", gradients, -_LARGEST, _LARGEST)
    rows = (dpsgd.steps, 1) if or_sum else (dpsgd.steps,)
    if y.ndim != 2 or y.shape[0] not in rows or y.shape[1] != dpsgd.used_coordinates:
        raise ValueError(
            f"gradients must have shape ({dpsgd.steps}, {dpsgd.used_coordinates}), a row for each "
            f"step and a column for each used coordinate, got shape {y.shape}"
        )
    return y


def _observed(dpsgd: DpSgd, gradients: ArrayLike, sees: str) -> NDArray[np.float64]:
    """What the guesser looks at; the sum is a single row."""
    _check.one_of("sees", sees, SEEN)
    y = check_steps(dpsgd, gradients, or_sum=sees == "sum")
    return y.sum(axis=0, keepdims=True) if sees == "sum" else y


def _likelihoods(dpsgd: DpSgd, y: NDArray[np.float64], sees: str) -> tuple[Any, Any]:
    """What the outputs say about the number of included canaries of each coordinate."""
    draws = dpsgd.steps if sees == "sum" else 1
    low, step, table, factorials = likelihood_tables(
        dpsgd.per_coordinate, draws, dpsgd.sample_rate, dpsgd.sigma * sqrt(draws)
    )
    return weigh_all(y, table, low, step), factorials


@jit
def weigh_all(y: Array, table: Array, low: float, step: float) -> Array:
    likelihood = np.zeros((y.shape[1], table.shape[0]))
    for t in range(y.shape[0]):
        for j in range(y.shape[1]):
            weigh(likelihood[j], table, low, step, y[t, j])
    return likelihood


@jit
def all_log_odds(likelihood: Array, factorials: Array) -> Array:
    odds = np.empty(likelihood.shape[0])
    for j in range(odds.size):
        odds[j] = log_odds(likelihood[j], likelihood.shape[1] - 1, np.int64(0), factorials)
    return odds


def _hopping_scores(
    dpsgd: DpSgd, y: NDArray[np.float64], places: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The sum over the steps of what a canary's coordinate says, given its load in that step."""
    scores = np.zeros(dpsgd.n)
    for t in range(dpsgd.steps):
        active = np.flatnonzero(places[t] >= 0)
        where = places[t, active]
        loads = np.bincount(where, minlength=dpsgd.used_coordinates)
        ratios = np.empty(dpsgd.used_coordinates)
        for load in np.unique(loads[loads > 0]).tolist():
            low, step, values, _ = ratio_table(load, dpsgd.sample_rate, dpsgd.sigma)
            here = loads == load
            ratios[here] = [interpolate(values, low, step, each) for each in y[t, here]]
        scores[active] += ratios[where]
    return scores

"""DP-SGD with Dirac canaries, step by step (Algorithm 3)."""

from math import inf, log1p

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib.dpsgd import DpSgd
from oralib.ground import arguments
from oralib.ground.jit import jit
from oralib.ground.types import Array

__all__ = ["run_dpsgd"]


def run_dpsgd(
    dpsgd: DpSgd,
    included: NDArray[np.bool_],
    rng: Generator,
    *,
    clip: float = 1.0,
    learning_rate: float = 1.0,
    gradient: float = 1.0,
) -> NDArray[np.float64]:
    """Run DP-SGD (Algorithm 3) on the included elements; return w_0, ..., w_T, one to a row.

    Before clipping, the gradient of element i is ``gradient`` in coordinate i % d, and 0 elsewhere.

    Parameters
    ----------
    dpsgd : DpSgd
        The training.
    included : array of bool
        The elements that take part.
    rng : numpy.random.Generator
        The source of batches and noise.
    clip : float
        The clipping threshold.
    learning_rate : float
        The factor of each step.
    gradient : float
        The gradient of an element on its coordinate, before clipping.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> weights = run_dpsgd(DpSgd(n=20, d=10, steps=5, sigma=1.0), rng.random(20) < 0.5, rng)
    >>> weights.shape
    (6, 10)
    """
    arguments.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000, sigma=1.0)")
    arguments.instance("rng", rng, Generator, "numpy.random.default_rng(1)")
    coins = arguments.coins("included", included, dpsgd.n)
    clip = arguments.real("clip", clip, 0, inf, interval="()")
    learning_rate = arguments.real("learning_rate", learning_rate, 0, inf, interval="()")
    gradient = arguments.real("gradient", gradient, 0, inf, interval="()")
    coordinates = np.flatnonzero(coins) % dpsgd.d
    return _train(
        coordinates,
        dpsgd.d,
        dpsgd.steps,
        dpsgd.sample_rate,
        dpsgd.sigma * clip,
        min(gradient, clip),
        learning_rate,
        rng,
    )


@jit
def _train(
    coordinates: Array,
    d: int,
    steps: int,
    sample_rate: float,
    deviation: float,
    clipped: float,
    learning_rate: float,
    rng: Generator,
) -> Array:
    """Simulate Algorithm 3; ``coordinates`` has one entry for each included element.

    In each step draw the normal noise of each coordinate, with the standard ``deviation``; draw
    the batch, and add the ``clipped`` gradient to the coordinate of each of its elements; move the
    weights by the noisy sums times the learning rate.
    """
    weights = np.zeros((steps + 1, d))
    hazard = -log1p(-sample_rate)  # inf for a full batch: every gap is 0
    noisy_sum = np.empty(d)
    for t in range(steps):
        for j in range(d):
            noisy_sum[j] = deviation * rng.standard_normal()
        # Each element joins the batch with probability sample_rate, so the gaps between members
        # are geometric: jump from member to member.
        i = np.floor(rng.standard_exponential() / hazard)
        while i < coordinates.size:
            noisy_sum[coordinates[int(i)]] += clipped
            i += 1 + np.floor(rng.standard_exponential() / hazard)
        for j in range(d):
            weights[t + 1, j] = weights[t, j] - learning_rate * noisy_sum[j]
    return weights

"""Are the released gradients what the stated mechanism would give?

A lower bound on ε claims a lot and so needs a lot of evidence. This test asks less: whether the
training is the stated one. It says nothing about its privacy. Given the coins, the noisy gradient
of a coordinate in a step has the mean q m and the variance σ² + q (1 - q) m, where m of its
canaries were included, and the steps are independent. Three statistics look at that:

- signal: do included canaries add what they should, q clipping thresholds a step?
- spread: is there as much noise as there should be?
- steps: do neighbouring steps depend on each other?

Each sums so many numbers that it is nearly standard normal if the training is the stated one.
"""

from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from oralib import _check
from oralib.dpsgd.released import checked_gradients
from oralib.dpsgd.setting import DpSgd


@dataclass(frozen=True)
class Conformity:
    """The three statistics of a training run.

    ``signal`` says how far the included canaries are from where they should be, ``spread`` how far
    the spread of the gradients is from that of the stated noise and sampling, and ``steps`` how far
    neighbouring steps depend on each other. ``gradient`` and ``noise`` are estimates: the size of
    the canaries' gradients and of the noise, as shares of the stated ones.

    Examples
    --------
    >>> round(Conformity(signal=0.3, spread=-3.5, steps=1.0).p_value, 5)
    0.0014
    """

    signal: float
    spread: float
    steps: float
    gradient: float = nan
    noise: float = nan

    @property
    def p_value(self) -> float:
        """The p-value of z, the largest of the three in size: 3 P[|Z| > z], at most 1."""
        largest = max(abs(z) for z in (self.signal, self.spread, self.steps))
        return float(min(1.0, 3 * 2 * scipy.stats.norm.sf(largest)))


def conformity(
    dpsgd: DpSgd, gradients: ArrayLike, included: ArrayLike, *, places: ArrayLike | None = None
) -> Conformity:
    """Compare the noisy gradients of a training run with what the stated training would give.

    Parameters
    ----------
    dpsgd : DpSgd
        The training run as it was stated.
    gradients : array
        Its noisy gradients, T rows and a column for each used coordinate.
    included : array
        The coins: which of the n canaries were in the training data.
    places : array or None
        None for canaries that stay, canary i on coordinate i % d. Otherwise the coordinate of each
        canary in each step, T rows and n columns, or -1 if it has been dropped.

    Examples
    --------
    Half the stated noise:

    >>> from oralib.dpsgd import run_dpsgd
    >>> stated, real = DpSgd(n=100, d=50, sigma=2.0), DpSgd(n=100, d=50, sigma=1.0)
    >>> rng = np.random.default_rng(1)
    >>> included = rng.random(100) < 0.5
    >>> gradients = -np.diff(run_dpsgd(real, included, rng), axis=0)
    >>> [conformity(x, gradients, included).p_value < 0.01 for x in (real, stated)]
    [False, True]
    """
    y = checked_gradients(dpsgd, gradients)
    coins = _check.coins("included", included, dpsgd.n)
    ones, q = _included(dpsgd, coins, places), dpsgd.sample_rate
    of_batch = q * (1 - q) * ones
    variance = dpsgd.sigma**2 + of_batch
    error = y - q * ones
    # The fourth moment of a normal number plus an independent binomial one, both centred.
    fourth = 3 * dpsgd.sigma**4 + 6 * dpsgd.sigma**2 * of_batch
    fourth = fourth + of_batch * (1 + (3 * ones - 6) * q * (1 - q))
    spread = np.broadcast_to(fourth - variance**2, y.shape)
    weight = np.broadcast_to(ones / variance, y.shape)
    steps = 0.0
    if dpsgd.steps > 1:
        scaled = error / np.sqrt(variance)
        steps = float((scaled[1:] * scaled[:-1]).sum() / np.sqrt(scaled[1:].size))
    amount = float((weight * ones).sum())
    size = float((weight * y).sum()) / (q * amount) if amount else 1.0
    rest = ((y - size * q * ones) ** 2 - size**2 * of_batch).mean()
    return Conformity(
        signal=float((weight * error).sum() / np.sqrt(amount)) if amount else 0.0,
        spread=float((error**2 - variance).sum() / np.sqrt(spread.sum())),
        steps=steps,
        gradient=size if amount else nan,
        noise=sqrt(max(float(rest), 0.0)) / dpsgd.sigma,
    )


def _included(
    dpsgd: DpSgd, coins: NDArray[np.bool_], places: ArrayLike | None
) -> NDArray[np.int64]:
    """How many included canaries each coordinate has: a row for each step, or one for all."""
    used = dpsgd.used_coordinates
    if places is None:
        return np.bincount(np.flatnonzero(coins) % used, minlength=used)[None, :]
    rows = _check.integers("places", places, -1, used - 1)
    if rows.shape != (dpsgd.steps, dpsgd.n):
        raise ValueError(
            f"places must have shape ({dpsgd.steps}, {dpsgd.n}), a coordinate for each step and "
            f"canary, got shape {rows.shape}"
        )
    return np.array([np.bincount(row[coins & (row >= 0)], minlength=used) for row in rows])

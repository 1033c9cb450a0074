"""Exact laws of audits of DP-SGD with a coordinate for each element."""

from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from orabook.studies.isolated import confidence
from oralib import DpSgd, _check
from oralib._binomial import log_pmfs
from oralib.laws import NEGLIGIBLE_PROBABILITY, Law, law_of, likely_counts


def isolated_law(dpsgd: DpSgd, k: int, *, sees: str = "steps", counts: int | None = None) -> Law:
    """DP-SGD with a coordinate for each element, and k guesses at those of largest \\|Λ\\|.

    No guesser with k guesses that sees no more than this has stochastically more right guesses;
    :mod:`orabook.studies.isolated` says why. :func:`oralib.dpsgd.simulate_likelihood` plays it.

    Parameters
    ----------
    dpsgd : DpSgd
        A training run with at most as many elements as coordinates.
    k : int
        The number of guesses.
    sees : str
        The ``"sum"`` of the noisy gradients of a coordinate, or all its ``"steps"``.
    counts : int or None
        If given, at most this many equally spaced values of v, each with the probability of its
        neighbours. For means of smooth functions of v a few dozen are as good as all of them.

    Examples
    --------
    >>> law = isolated_law(DpSgd(n=1000, sigma=2.4224), 100)
    >>> round(float(law.probability @ law.v), 2)
    70.91
    """
    elements = confidence(dpsgd, sees)  # which checks both
    k = _check.integer("k", k, 1, dpsgd.n)
    # The tail probability of the k-th largest, at the nodes of a Gaussian quadrature.
    counts = None if counts is None else _check.integer("counts", counts, 50)
    nodes, weights = _gauss(20 if k > 40 else 60)
    shape = (k, dpsgd.n - k + 1)
    share = np.where(
        nodes < 0,
        scipy.special.betaincinv(*shape, scipy.special.ndtr(nodes)),
        scipy.special.betainccinv(*shape, scipy.special.ndtr(-nodes)),
    )
    level = elements.level_of(share)
    right, wrong = elements.at(level)
    accuracy, last = right / (right + wrong), scipy.special.expit(level)
    v, stride = _thin_out(likely_counts(k, accuracy), counts)
    # Of the k - 1 others, v - 1 are right if the last one is, and otherwise v.
    others = [np.exp(log_pmfs(v - right, k - 1, accuracy[:, None])) for right in (0, 1)]
    probability = weights @ (others[0] * (1 - last)[:, None] + others[1] * last[:, None])
    return law_of(v, np.full(v.size, k), stride * probability, dpsgd.n)


@lru_cache(maxsize=4)
def _gauss(size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights for means over a standard normal variable."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(size)
    return nodes, weights / weights.sum()


def isolated_threshold_law(
    dpsgd: DpSgd, tau: float, *, sees: str = "steps", counts: int | None = None
) -> Law:
    """Like :func:`isolated_law`, but guessing wherever \\|Λ\\| exceeds tau.

    Elements are independent, so R is binomial, and so is V given R. ``counts`` thins out both.

    Examples
    --------
    >>> law = isolated_threshold_law(DpSgd(n=1000, sigma=2.4224), 1.0)
    >>> round(float(law.probability @ law.r), 2)
    21.54
    """
    elements = confidence(dpsgd, sees)  # which checks both
    tau = _check.real("tau", tau, 0, np.inf, interval="[)")
    right, wrong = (float(x) for x in elements.at(tau)) if tau <= elements.level[-1] else (0.0, 0.0)
    counts = None if counts is None else _check.integer("counts", counts, 50)
    share = min(right + wrong, 1.0)
    accuracy = right / share if share > 0 else 1.0
    parts = []
    taken, stride = _thin_out(likely_counts(dpsgd.n, share), counts)
    weights = stride * np.exp(log_pmfs(taken, dpsgd.n, share))
    for r, weight in zip(taken.tolist(), weights, strict=True):
        if weight > NEGLIGIBLE_PROBABILITY:
            v, stride = _thin_out(likely_counts(r, accuracy), counts)
            chances = weight * stride * np.exp(log_pmfs(v, r, accuracy))
            parts.append((v, np.full(v.size, r), chances))
    v, r, probability = (np.concatenate(column) for column in zip(*parts, strict=True))
    return law_of(v, r, probability, dpsgd.n)


def _thin_out(values: NDArray[np.int64], counts: int | None) -> tuple[NDArray[np.int64], int]:
    """Equally spaced values, about as many as ``counts`` or all of them, and their distance."""
    stride = 1 if counts is None else max(1, (values.size - 1) // counts)
    return values[::stride], stride

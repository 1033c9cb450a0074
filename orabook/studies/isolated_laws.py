"""The exact law of the best audit of DP-SGD with a coordinate for each element."""

from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from orabook.laws import Law, law_of, likely_counts
from orabook.studies.isolated import confidence
from oralib import DpSgd, _check
from oralib._binomial import log_pmfs


def isolated_law(dpsgd: DpSgd, k: int, *, sees: str = "steps", counts: int | None = None) -> Law:
    """DP-SGD with a coordinate for each element, and k guesses at those of largest |Λ|.

    No guesser with k guesses that sees no more than this has stochastically more right guesses;
    :mod:`orabook.studies.isolated` says why. :func:`oralib.dpsgd.simulate_likelihood` plays it.

    With ``counts`` there are about that many equally spaced values of v, each with the probability
    of its neighbours. For means of smooth functions of v a few dozen are as good as all of them.

    >>> law = isolated_law(DpSgd(n=1000, sigma=2.4224), 100)
    >>> round(float(law.probability @ law.v), 2)
    70.91
    """
    elements = confidence(dpsgd, sees)
    k = _check.integer("k", k, 1, dpsgd.n)
    # The tail probability of the k-th largest, at the nodes of a Gaussian quadrature.
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
    v = likely_counts(k, accuracy)
    stride = 1 if counts is None else max(1, (v.size - 1) // counts)
    v = v[::stride]
    # Of the k - 1 others, v - 1 are right if the last one is, and otherwise v.
    others = [np.exp(log_pmfs(v - right, k - 1, accuracy[:, None])) for right in (0, 1)]
    probability = weights @ (others[0] * (1 - last)[:, None] + others[1] * last[:, None])
    return law_of(v, np.full(v.size, k), np.minimum(stride * probability, 1.0), dpsgd.n)


@lru_cache(maxsize=4)
def _gauss(size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights for means over a standard normal variable."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(size)
    return nodes, weights / weights.sum()

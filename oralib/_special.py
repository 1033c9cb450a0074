"""Special functions, and probability laws from our own kernels instead of SciPy's."""

from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from oralib._binomial import log_pmf
from oralib._jit import jit

Array = NDArray[Any]


def expit(x: ArrayLike) -> Any:
    """The logistic function."""
    return scipy.special.expit(x)


def logit(x: ArrayLike) -> Any:
    """The inverse of the logistic function."""
    return scipy.special.logit(x)


def logsumexp(x: ArrayLike, **options: Any) -> Any:
    """log Σ exp(x), as in SciPy."""
    return scipy.special.logsumexp(x, **options)


def normal_cdf(x: ArrayLike) -> Any:
    """P[N <= x] for a standard normal N; P[N > x] is ``normal_cdf(-x)``."""
    return scipy.special.ndtr(x)


def binomial_log_pmf(k: ArrayLike, r: ArrayLike, q: ArrayLike) -> Array:
    """log P[Bin(r, q) = k] for arrays that broadcast together."""
    k, r, q = np.broadcast_arrays(
        np.asarray(k, dtype=np.int64), np.asarray(r, dtype=np.int64), np.asarray(q, dtype=float)
    )
    return _log_pmfs(k.flatten(), r.flatten(), q.flatten()).reshape(k.shape)


def binomial_pmf(k: ArrayLike, r: ArrayLike, q: ArrayLike) -> Array:
    """P[Bin(r, q) = k] for arrays that broadcast together."""
    with np.errstate(under="ignore"):
        return np.exp(binomial_log_pmf(k, r, q))


@jit
def _log_pmfs(k: Array, r: Array, q: Array) -> Array:
    out = np.empty(k.size)
    for i in range(k.size):
        if r[i] < 0:
            out[i] = np.nan
        else:
            out[i] = log_pmf(k[i], r[i], q[i], 1 - q[i])
    return out

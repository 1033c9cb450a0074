"""A ceiling of the mean bound of any audit with a fixed number of guesses, by a linear program.

Let p_v be the probability of v right guesses of k. For any placement, crowding and decoding, with
no or one-way feedback, and for every ε,

    Σ_v (v p_v - e^ε (k - v + 1) p_{v-1})₊ <= n D(ε),

with D the mean of D_in and D_out: the coin of each right guess could have fallen the other way. So
the mean bound is at most the largest value of Σ φ(v) p_v over all p that satisfy this at some ε.
"""

from collections.abc import Iterable

import numpy as np
import scipy
from numpy.typing import NDArray

from orabook.studies.isolated import confidence
from oralib import DpSgd
from oralib.bounds import Exact
from oralib.ground import arguments

__all__ = ["ceiling_of_means", "largest_mean"]

#: The ε of the conditions of :func:`ceiling_of_means`, by default.
EPSILONS = np.linspace(0.1, 2.0, 39)


def ceiling_of_means(
    dpsgd: DpSgd,
    k: int,
    *,
    delta: float,
    beta: float = 0.05,
    epsilons: Iterable[float] = tuple(EPSILONS),
    lowest: int = 0,
) -> float:
    """A mean bound that no audit of a training with k guesses at ``dpsgd.n`` elements exceeds.

    The bound is :class:`oralib.bounds.Exact`. Counts below ``lowest`` are
    taken together, which is faster and cannot make the ceiling lower. The value is that of a solver
    with its tolerance, for D with about five digits.

    >>> round(ceiling_of_means(DpSgd(n=1000, sigma=2.4224), 20, delta=1e-5), 3)
    0.354
    """
    k = arguments.integer("k", k, 1, dpsgd.n)
    grid = np.array([*epsilons])
    right, wrong = confidence(dpsgd).at(grid)
    leaks = dpsgd.n * (right - np.exp(grid) * wrong)
    v = np.arange(lowest, k + 1)
    counts = np.append(v, max(lowest - 1, 0))
    worth = Exact().lower_bound(counts, k, beta=beta, delta=delta, n=dpsgd.n)
    return largest_mean(worth, v, k, np.exp(grid), leaks)


def largest_mean(
    worth: NDArray[np.float64],
    v: NDArray[np.int64],
    k: int,
    growth: NDArray[np.float64],
    leaks: NDArray[np.float64],
) -> float:
    """The largest Σ worth p over laws p of the counts v, and of all others together, the last one.

    For each e^ε of ``growth`` the sum of v p_v - e^ε (k - v + 1) p_{v-1}, where positive, is at
    most that of ``leaks``.
    """
    places = np.arange(v.size - 1)
    blocks = []
    sums = []
    for factor in growth:
        rows = np.repeat(places, 2)
        columns = np.column_stack([places + 1, places]).ravel()
        values = np.column_stack([v[1:], -factor * (k - v[1:] + 1)]).ravel()
        shape = (places.size, v.size + 1)
        blocks.append(scipy.sparse.csr_array((values, (rows, columns)), shape=shape))
        sums.append(np.ones((1, places.size)))
    excess = scipy.sparse.vstack(blocks)
    size = excess.shape[0]
    none = scipy.sparse.csr_array((growth.size, v.size + 1))
    conditions = scipy.sparse.vstack(
        [
            scipy.sparse.hstack([excess, -scipy.sparse.eye_array(size)]),
            scipy.sparse.hstack([none, scipy.sparse.block_diag(sums)]),
        ]
    )
    program = scipy.optimize.linprog(
        -np.append(worth, np.zeros(size)),
        A_ub=conditions.tocsr(),
        b_ub=np.append(np.zeros(size), leaks),
        A_eq=np.append(np.ones(v.size + 1), np.zeros(size))[None, :],
        b_eq=[1.0],
    )
    if not program.success:
        raise RuntimeError(f"the linear program was not solved: {program.message}")
    return float(-program.fun)

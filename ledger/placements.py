"""Canaries that share coordinates with strangers: what the best placement of two steps reaches."""

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import optimize, stats

from oralib.dpsgd import DpSgd

Reals = NDArray[np.float64]


def step_law(load: int, dpsgd: DpSgd, cells: int) -> tuple[Reals, Reals]:
    """What one step adds to a score if only the cell of y is seen, and its law if excluded.

    Each of the others is in the batch with probability q/2. The cells are equally likely.
    """
    rate, others = dpsgd.sample_rate, np.arange(load)
    weight = stats.binom.pmf(others, load - 1, rate / 2)

    def below(y: Reals) -> Reals:
        return stats.norm.cdf(y[:, None], others, dpsgd.sigma) @ weight

    y = np.linspace(-9 * dpsgd.sigma, load + 9 * dpsgd.sigma, 20_001)
    law = (1 - rate / 2) * below(y) + rate / 2 * below(y - 1)
    edges = np.array([-np.inf, *np.interp(np.arange(1, cells) / cells, law, y), np.inf])
    excluded, in_batch = np.diff(below(edges)), np.diff(below(edges - 1))
    return np.log((1 - rate) + rate * in_batch / excluded), excluded


def best_of_two_steps(dpsgd: DpSgd, k: int, cells: int) -> float:
    """Right guesses of the best policy, by a program for how many canaries do what.

    In the first step they are put at each load, or dropped. What they have seen, as a cell,
    divides them into groups; each group is divided anew in the second step, and of each of the
    groups that then result some are guessed.
    """
    laws = {load: step_law(load, dpsgd, cells) for load in range(1, dpsgd.n + 1)}
    plays = [(0.0, np.zeros(1), np.ones(1)), *((1 / load, *law) for load, law in laws.items())]
    entries: list[tuple[int, int, float]] = []  # row, variable, coefficient
    limits, gains = [float(dpsgd.n), float(dpsgd.d), float(dpsgd.d), float(k)], []

    def variable(*rows: tuple[int, float], gain: float = 0.0) -> int:
        gains.append(gain)
        entries.extend((row, len(gains) - 1, value) for row, value in rows)
        return len(gains) - 1

    def group(parent: int, share: float) -> int:
        """A row for those who come from a variable."""
        limits.append(0.0)
        entries.append((len(limits) - 1, parent, -share))
        return len(limits) - 1

    for cost, ratio, mass in plays:
        first = variable((0, 1.0), (1, cost))
        for score, share in zip(ratio, mass * (1 + np.exp(ratio)) / 2, strict=True):
            seen = group(first, share)
            for more, ratio_2, mass_2 in plays:
                second = variable((seen, 1.0), (2, more))
                after = score + ratio_2
                shares = mass_2 * (1 + np.exp(after)) / (1 + np.exp(score))
                for end, part in zip(after, shares, strict=True):
                    last = group(second, part)
                    variable((last, 1.0), (3, 1.0), gain=1 / (1 + np.exp(-abs(end))))
    rows, columns, values = zip(*entries, strict=True)
    matrix = scipy.sparse.csr_matrix((values, (rows, columns)))
    return -optimize.linprog(-np.array(gains), A_ub=matrix, b_ub=limits, method="highs").fun

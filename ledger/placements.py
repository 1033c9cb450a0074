"""Canaries that share coordinates with strangers: the best placement of two steps, by a program."""

from functools import cache
from itertools import product

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import optimize, stats

from ledger.comparisons import at_most
from ledger.entries import explained, mutants, ours, remark
from ledger.findings import Cases, each
from ledger.mutants import replaced, varied
from orabook.studies.placement import placement_ceiling
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

    In the first step they are put at each load, or dropped. What they see, as a cell, divides
    them into groups; each group is divided anew in the second step, and so are those who are
    guessed in the end.
    """
    laws = ((1 / load, *step_law(load, dpsgd, cells)) for load in range(1, dpsgd.n + 1))
    plays = [(0.0, np.zeros(1), np.ones(1)), *laws]
    entries: list[tuple[int, int, float]] = []  # row, variable, coefficient
    limits, gains = [float(dpsgd.n), float(dpsgd.d), float(dpsgd.d), float(k)], []

    def variable(group: int, row: int, cost: float, gain: float = 0.0) -> int:
        gains.append(gain)
        entries.extend([(group, len(gains) - 1, 1.0), (row, len(gains) - 1, cost)])
        return len(gains) - 1

    def group(parent: int, share: float) -> int:
        limits.append(0.0)
        entries.append((len(limits) - 1, parent, -share))
        return len(limits) - 1

    for cost, ratio, mass in plays:
        first = variable(0, 1, cost)
        for score, share in zip(ratio, mass * (1 + np.exp(ratio)) / 2, strict=True):
            seen = group(first, share)
            for more, ratio_2, mass_2 in plays:
                second, after = variable(seen, 2, more), score + ratio_2
                shares = mass_2 * (1 + np.exp(after)) / (1 + np.exp(score))
                for end, part in zip(after, shares, strict=True):
                    variable(group(second, part), 3, 1.0, 1 / (1 + np.exp(-abs(end))))
    rows, columns, values = zip(*entries, strict=True)
    matrix = scipy.sparse.csr_matrix((values, (rows, columns)))
    return float(-optimize.linprog(-np.array(gains), A_ub=matrix, b_ub=limits).fun)


@cache
def _best_and_ceiling(n: int, d: int, k: int, rate: float, sigma: float) -> tuple[float, float]:
    dpsgd = DpSgd(n, d, 2, rate, sigma)
    return best_of_two_steps(dpsgd, k, 12), placement_ceiling(dpsgd, k)


def weighed_coins(noise: float) -> float:
    """Right guesses, at least: four coins, of which 3 and 4, then 2 and 4, then 1 to 3 are weighed.

    No two of the 16 outcomes have the same three sums, so all are right if no sum is misread.
    """
    places = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 0]])
    sums = {tuple(places @ coins) for coins in product((0, 1), repeat=4)}
    return 4 * (len(sums) == 16) * (1 - 2 * stats.norm.sf(0.5 / noise)) ** 3


@ours(108, "ours:placement-ceiling", "This book", "linear program")
@explained("how-much-can-one-run-show#thm-much-strangers")
@mutants(
    varied("factor", 1),
    replaced("rest", nothing=0.0),
    replaced("neighbours", who_meet_again="known"),
)
@remark("The best placement is that of two steps whose outputs are seen as one of twelve cells.")
@each(at_most)
def placements(factor: float = 1.0, rest: float = 0.005, neighbours: str = "strangers") -> Cases:
    """If the neighbours of a canary are drawn afresh in each step, independently of the past, no
    placement has more right guesses on average than the ceiling; the best one is within 0.5% of it.
    """
    for setting in (4, 1, 4, 1.0, 0.5), (4, 2, 3, 0.5, 0.2), (4, 2, 2, 0.5, 1.0):
        best, ceiling = _best_and_ceiling(*setting)
        yield f"n, d, k, q, σ = {setting}", best, factor * ceiling
        yield f"what the best lacks at {setting}", factor * ceiling - best, rest * ceiling
    if neighbours == "known":
        ceiling = placement_ceiling(DpSgd(4, 1, 3, 1.0, 0.1), 4)
        yield "four coins in three weighings", weighed_coins(0.1), factor * ceiling

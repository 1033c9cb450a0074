"""Canaries that share coordinates with strangers: the best placement, and who can do better."""

from functools import cache
from itertools import product

import numpy as np
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


@cache
def _best_and_ceiling(n: int, d: int, rate: float, sigma: float) -> tuple[float, float]:
    """Right guesses of all canaries in one step: a program for how many are put at each load."""
    dpsgd = DpSgd(n, d, 1, rate, sigma=sigma)
    laws = [step_law(load, dpsgd, 400) for load in range(1, n + 1)]
    right = [0.5, *(float(mass @ np.maximum(1, np.exp(ratio))) / 2 for ratio, mass in laws)]
    room = [np.ones(n + 1), np.append(0, 1 / np.arange(1, n + 1))]
    best = optimize.linprog(-np.array(right), A_ub=room, b_ub=[n, d])
    return -best.fun, placement_ceiling(dpsgd, n)


@ours("ours:placement-ceiling", "This book", "linear program")
@explained("how-much-can-one-run-show#prop-much-strangers")
@mutants(
    varied("factor", 1),
    replaced("rest", nothing=0.0),
    replaced("neighbours", who_meet_again="known"),
)
@remark("Programs for one step; the tests have one for two steps, with dropping and few guesses.")
@each(at_most)
def placements(factor: float = 1.0, rest: float = 0.005, neighbours: str = "strangers") -> Cases:
    """If the neighbours of a canary are drawn afresh in each step, independently of the past, no
    placement has more right guesses on average than the ceiling; the best one is within 0.5% of it.
    """
    for setting in (6, 2, 1.0, 0.3), (12, 3, 0.5, 1.0), (20, 1, 1.0, 2.0):
        best, ceiling = _best_and_ceiling(*setting)
        yield f"n, d, q, σ = {setting}", best, factor * ceiling
        yield f"what the best lacks at {setting}", factor * ceiling - best, rest * ceiling
    if neighbours == "known":
        # Coins 3 and 4, then 2 and 4, then 1 to 3: all outcomes differ by 1 in one of these sums.
        places = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 0]])
        sums = {tuple(places @ coins) for coins in product((0, 1), repeat=4)}
        right = 4 * (len(sums) == 16) * (1 - 2 * stats.norm.sf(0.5 / 0.1)) ** 3
        ceiling = placement_ceiling(DpSgd(4, 1, 3, 1.0, sigma=0.1), 4)
        yield "four coins in three weighings", right, factor * ceiling

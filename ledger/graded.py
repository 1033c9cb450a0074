"""What this book adds on graded guesses: right guesses that were surer count for more."""

from functools import cache
from itertools import permutations, product
from typing import Any

import numpy as np

from ledger.comparisons import at_most
from ledger.entries import explained, mutants, ours, remark
from ledger.exact_bound import best_table
from ledger.findings import Cases, each
from ledger.mutants import WEAKER, replaced, varied
from oralib.bounds import p


@cache
def _best(n: int, weights: tuple[int, ...], s: int, epsilon: float, delta: float) -> float:
    """max P[S >= s] over all (ε, δ)-DP mechanisms: their outputs are weights with signs, or 0."""
    signs = product((-1, 1), repeat=len(weights))
    guesses = [[*np.multiply(weights, sign).tolist(), *[0] * (n - len(weights))] for sign in signs]
    outputs = sorted({order for guess in guesses for order in permutations(guess)})

    def wins(o: Any, truth: Any) -> bool:
        return sum(max(0, a * b) for a, b in zip(o, truth, strict=True)) >= s

    return best_table(n, outputs, wins, epsilon, delta)


def _luck_and_leak(w: Any, s: int, q: float, width: int | None) -> tuple[float, float]:
    """P[W >= s] and the largest h, by sums over all outcomes; maybe with windows of one width."""
    outcomes = np.array(list(product((0, 1), repeat=w.size)))

    def chance(low: int, right: Any, w: Any) -> float:
        near = (outcomes @ w >= low) & (outcomes @ w < s)
        return float(np.where(outcomes, right, 1 - right)[near].prod(axis=1).sum())

    integrals = np.zeros((len(outcomes), w.size))
    for node, share in zip(*np.polynomial.legendre.leggauss(w.size), strict=True):
        for (i, x), j in product(enumerate(outcomes), range(w.size)):
            right = ((1 + node) * x + (1 - node) * q) / 2
            rest = np.where(np.arange(w.size) == j, 0, w)
            integrals[i, j] += share / 2 * chance(s - (width or w[j]), right, rest)
    return 1 - chance(0, np.full(w.size, q), w), (1 - q) * float(integrals.max())


@ours("ours:graded-guesses", "This book", "linear program")
@explained("how-much-can-one-run-show#thm-much-graded")
@mutants(varied("tail", 2, up=WEAKER), varied("leak", 2, up=WEAKER), replaced("width", one_point=1))
@remark("The linear program is over all tables. It reaches the bound, but not in the last case.")
@each(at_most, 1e-7)
def graded_guesses(tail: float = 1.0, leak: float = 1.0, width: int | None = None) -> Cases:
    """Let right guesses count w_j points, numbers and weights fixed in advance. Without feedback
    P[S ≥ s] ≤ P[W ≥ s] + nδ max h, with h = (1 − q) times the integral over a from 0 to 1 of
    P[s − w_j ≤ S_rest(a) < s], W the points of independent guesses with q = p(ε), and S_rest(a)
    those of the others, each drawn again with probability 1 − a.
    """
    for (n, weights, s), (epsilon, delta) in product(
        ((2, (2, 1), 1), (2, (2, 1), 2), (4, (2, 1), 2), (3, (3, 3, 2), 5), (3, (2, 1, 1), 3)),
        ((0.0, 0.03), (0.5, 0.02)),
    ):
        x, h = _luck_and_leak(np.array(weights), s, p(epsilon), width)
        limit, name = tail * x + leak * n * delta * h, f"n = {n}, weights {weights}, s = {s}"
        yield name, _best(n, weights, s, epsilon, delta), limit

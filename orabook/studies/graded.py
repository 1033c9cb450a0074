"""Graded guesses: right guesses that the guesser was surer of count for more.

**The audit.** Before it, the numbers of guesses r_1, r_2, ... of each grade are fixed, and their
weights w_1, w_2, ..., whole numbers. The guesser, which is told nothing, takes exactly these: its
r_1 surest guesses have the first grade, and so on. The statistic is S = Σ w_g v_g, where v_g of the
r_g guesses are right. With one grade it is the number of right guesses.

**The theorem.** Let W be S for independent guesses, each right with probability q = p(ε). For
every (ε, δ)-DP mechanism with n elements

    P[S >= s] <= P[W >= s] + n δ max h,   h_j(x) = (1 - q) ∫₀¹ P[s - w_j <= S_rest(a) < s] da.

Here x in {0, 1}^r says which guesses are right. S_rest(a) is S without guess j, after each other
entry of x was kept with probability a, and otherwise drawn again, right with probability q.

With one grade the right side is that of the exact p-value, which is attained. With several it need
not be.

**The largest h** is that of an x with s - w_j <= S_rest(1) < s. For if entries are drawn again at
rate 1, the integral is the mean time that S_rest spends there before guess j is drawn again, and
from elsewhere it has to get there first.

**The integrand** is a polynomial in a of degree r - 1, for which r / 2 nodes of Gauss and Legendre
are exact. For many guesses fewer are enough. As entries are right with probabilities that are
linear in a, the integrand is at most exp(q r (cosh t - 1)) on the ellipse |a| + |1 - a| = cosh t,
and m nodes err by at most 3 / (e^(2mt) (1 - e^(-2t))) times that, whatever t > 0 is.

**The bound** is an ε at which the right side for the observed S is at most β. It may be any such
ε: whether the right side rises with ε is not known, and does not matter. Of all ε' above the
true ε, take the one whose least s with a right side of at most β is the least. The bound exceeds ε
only if S reaches this s, and a mechanism that is (ε, δ)-DP is (ε', δ)-DP as well.
"""

from collections.abc import Sequence
from functools import cache, partial
from math import gcd, log, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oralib import _check
from oralib._binomial import log_pmfs, odds
from oralib._solve import largest_passing
from oralib.bounds import p
from oralib.dpsgd.prediction import predicted_accuracy
from oralib.planning import Claim, Design

Ints = NDArray[np.int64]

#: The largest h is looked for among so many vectors of right guesses at most.
MOST_STATES = 2_000_000
#: No bound is larger than this; and the precision of probabilities, for which they are raised.
LARGEST, PRECISION = 10.0, 1e-11


def epsilon_lower_bound_graded(
    v: ArrayLike,
    r: Sequence[int],
    weights: Sequence[int],
    *,
    n: int,
    delta: float,
    beta: float = 0.05,
) -> float:
    """A lower bound on ε from graded guesses, valid for every (ε, δ)-DP mechanism; at most 10.

    Parameters
    ----------
    v : array
        How many guesses of each grade were right.
    r : array
        How many were taken, fixed in advance, the surest first.
    weights : array
        What a right guess of each grade counts, whole numbers from 1 to 100, fixed in advance.
    n, delta, beta : int, float, float
        The number of elements, taken and abstained; the δ of (ε, δ)-DP, in [0, 1]; and how often
        the bound may fail, in (0, 1).

    Examples
    --------
    With equal weights it is the exact bound for the sum; weights pay if the surer ones are better.

    >>> known = dict(n=1000, delta=1e-5)
    >>> round(epsilon_lower_bound_graded([38, 35], [40, 60], [1, 1], **known), 3)
    0.607
    >>> round(epsilon_lower_bound_graded([38, 35], [40, 60], [3, 1], **known), 3)
    1.074
    """
    right, taken = _check.integers("v", v, 0).ravel(), _check.integers("r", r, 1).ravel()
    each = _check.integers("weights", weights, 1, 100).ravel()
    if not right.size == taken.size == each.size:
        raise ValueError(
            "v, r and weights must have an entry for each grade, "
            f"got {right.size}, {taken.size} and {each.size}"
        )
    _check.at_most("v", right, "r", taken)
    if np.prod(taken + 1.0) > MOST_STATES:
        got = f"r={taken.tolist()} guesses of each grade"
        raise ValueError(f"r must have at most {MOST_STATES} vectors of right guesses, got {got}")
    n = _check.integer("n", n, int(taken.sum()))
    beta, delta = _check.beta_and_delta(beta, delta)
    return graded_bound(int(right @ each), taken, each, n * delta, beta)


def graded_bound(s: int, r: Ints, weights: Ints, leaks: float, beta: float) -> float:
    """The bound for the sum s of the weights of right guesses; ``leaks`` is n δ."""

    @cache
    def excess(epsilon: float, leaks: float = leaks) -> float:
        return log(max(graded_p_value(s, r, weights, epsilon, leaks), 1e-300) / beta)

    if excess(0.0, 0.0) > 0:
        return 0.0
    alone = partial(excess, leaks=0.0)  # which takes no time
    most = largest_passing(alone, 0.0, LARGEST, guess=1.0, precision=1e-7)
    return largest_passing(excess, 0.0, most, guess=most - 0.05, precision=1e-7)


def graded_p_value(s: int, r: Ints, weights: Ints, epsilon: float, leaks: float) -> float:
    """At most how likely the sum of the weights of right guesses is s or more, with n δ = leaks."""
    law, (q, _) = np.ones(1), odds(epsilon)
    for taken, weight in zip(r.tolist(), weights.tolist(), strict=True):
        points = np.zeros(taken * weight + 1)
        points[::weight] = np.exp(log_pmfs(np.arange(taken + 1), taken, q))
        law = np.convolve(law, points)
    by_chance = float(law[s:].sum()) * (1 + PRECISION)
    return by_chance + leaks * largest_h(s, r, weights, q) if leaks > 0 else by_chance


def largest_h(s: int, r: Ints, weights: Ints, q: float) -> float:
    """What a leak can add at most; the laws of S_rest by Fourier transforms."""
    total, qr, m = int(r @ weights), q * int(r.sum()), np.arange(1, (int(r.sum()) + 1) // 2)
    t = np.arcsinh(2 * m / qr)  # where the error of m nodes is about the least
    error = 3 * np.exp(qr * (np.cosh(t) - 1) - 2 * m * t) / -np.expm1(-2 * t)
    nodes, shares = np.polynomial.legendre.leggauss(1 + int((error > PRECISION / 2).sum()))
    largest = 0.0
    for g, weight in enumerate(weights.tolist()):
        rest = r - (np.arange(r.size) == g)
        x = np.indices(rest + 1).reshape(r.size, -1)
        x = x[:, (weights @ x >= s - weight) & (weights @ x < s)].T
        integral = np.zeros(len(x))
        for node, share in zip(nodes.tolist(), shares.tolist(), strict=True):
            old, new = (1 + node) / 2, (1 - node) / 2  # the chances that an entry is as in x
            # With a short period other S pass for those near s, all unlikely: the safe side.
            away = new * abs(s - q * total) + 20 * int(weights.max())
            away += 10 * sqrt(min(0.25, new * q) * int(weights**2 @ r))
            period = min(total + 1, int(away))
            turns = np.arange(period // 2 + 1)
            unit = np.exp(2j * pi / period * weights[:, None] * turns) - 1
            right, wrong = 1 + (old + new * q) * unit, 1 + new * q * unit
            matters = rest @ np.log(np.maximum(abs(right), abs(wrong))) > -40
            turns, right, wrong = turns[matters], right[:, matters], wrong[:, matters]
            law = np.exp(x @ np.log(right / wrong) + rest @ np.log(wrong))
            law *= np.where((turns > 0) & (2 * turns < period), 2, 1)  # for the negative turns
            near = np.exp(-2j * pi / period * turns * np.arange(s - weight, s)[:, None]).sum(axis=0)
            integral += share / (2 * period) * (law * near).real.sum(axis=1)
        largest = max(largest, float(integral.max(initial=0.0)))
    return (1 - q) * (largest + PRECISION)


def find_grades(design: Design, guesses: int, claim: Claim) -> tuple[tuple[int, int], ...]:
    """Two grades in place of equal guesses: half as many of them, and 0.8 times as many.

    Guesses of accuracy a tell it best from q if their weights are about proportional to a - q; here
    q is the accuracy at the predicted bound, and a is predicted too.
    """
    predicted = float(design.bounds(np.array([guesses]), claim)[0])
    total = min(round(1.3 * guesses), design.active_at_the_end)
    ends = np.array([round(total / 2.6), total])
    right = ends * predicted_accuracy(design.dpsgd, ends, design.dropping)
    r, more = np.diff(ends, prepend=0), np.diff(right - ends * p(predicted), prepend=0)
    surer, other = np.maximum(more / r, 1e-9)
    weights = round(2 * min(max(surer / other, 1.0), 5.0)), 2
    return tuple((int(number), w // gcd(*weights)) for number, w in zip(r, weights, strict=True))

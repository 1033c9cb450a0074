"""Graded guesses: right guesses that the guesser was surer of count for more.

**The audit.** Before it, the numbers of guesses r_1, r_2, ... of each grade are fixed, and their
weights w_1, w_2, ..., whole numbers. The guesser, which is told nothing, takes exactly these: its
r_1 surest guesses have the first grade, and so on. The statistic is S = Σ w_g v_g, where v_g of the
r_g guesses are right. With one grade it is the number of right guesses.

**The theorem.** Let W be S for independent guesses, each right with probability q = p(ε). For
every (ε, δ)-DP mechanism with n elements

    P[S >= s] <= luck + n δ max h,    luck = P[W >= s],

where h_g(v) = (1 - q) (f(v) - f(v - 1 in g)), and f is the solution, up to a constant, of

    Σ_g v_g (1 - q) (f(v) - f(v - 1 in g)) - (r_g - v_g) q (f(v + 1 in g) - f(v))
        = 1[S(v) >= s] - luck.

*Proof.* Let x in {0, 1}^r say which guesses are right, x^j be x with entry j turned over, and
f(x) = f(v(x)). The left side is Σ_j h_j(x) (x_j - e^ε (1 - x_j)) with h_j(x) = (1 - q) times the
difference of f in entry j. So, for the joint law P of the output o and x,

    P[S >= s] - luck = Σ_o Σ_j Σ_{x: x_j = 1} h_j(x) (P(o, x) - e^ε P(o, x^j)).

Turning x_j over means turning over the coin of one element, so the positive parts of the brackets
add up to at most δ for each element, n δ in all. It remains to see that h_j >= 0. The left side is
-L f for the generator L of the chain that draws each entry anew at rate 1, right with probability
q. So f(x) is the integral over all times u of P[S(x at u) >= s] - luck, which rises with each
entry. ∎

With one grade the right side is that of the exact p-value, which is attained. With several it need
not be.

**The bound** is a level at which the right side for the observed S is at most β: levels are tried
from 0 on in steps of 0.5, and the crossing is looked for in the first step that has one. Nobody has
proved that the right side rises with ε, and nothing depends on it. Let s(ε') be the least s whose
right side at ε' is at most β. The bound exceeds the true ε only if S >= s(ε') for some ε' > ε, so
only if S reaches the least of these numbers, s(ε*). A mechanism that is (ε, δ)-DP is (ε*, δ)-DP as
well, so that this has probability at most β.
"""

from collections.abc import Sequence
from math import exp, log

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from oralib import _check

__all__ = ["epsilon_lower_bound_graded"]

#: The equations have an unknown for each possible vector of right guesses.
MOST_STATES = 200_000
#: Levels are looked for up to here, and between multiples of STEP.
LARGEST, STEP = 10.0, 0.5


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
    n : int
        The number of elements, taken and abstained.
    delta : float
        The δ of (ε, δ)-DP, in [0, 1].
    beta : float
        How often the bound may fail, in (0, 1).

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
        raise ValueError(
            f"r must have at most {MOST_STATES} vectors of right guesses, got r={taken.tolist()}"
        )
    n = _check.integer("n", n, int(taken.sum()))
    beta, delta = _check.level(beta, delta)
    s = int(right @ each)

    def excess(epsilon: float) -> float:
        luck, worth = graded_luck(s, taken, each, epsilon)
        return log(max(luck + n * delta * worth, 1e-300)) - log(beta)

    low = 0.0
    if s == 0 or excess(low) > 0:
        return 0.0
    while low < LARGEST and excess(low + STEP) <= 0:
        low += STEP
    if low >= LARGEST:
        return LARGEST
    return max(0.0, float(scipy.optimize.brentq(excess, low, low + STEP, xtol=1e-6)) - 1e-6)


def graded_luck(
    s: int, r: NDArray[np.int64], weights: NDArray[np.int64], epsilon: float
) -> tuple[float, float]:
    """P[W >= s], and the largest h: what a leak can add to it."""
    q = 1 / (1 + exp(-epsilon))
    shape = tuple(r + 1)
    total, law = np.zeros(shape), np.ones(shape)
    generator = scipy.sparse.csr_matrix((1, 1))
    for g, taken in enumerate(r.tolist()):
        v = np.arange(taken + 1)
        along = [-1 if axis == g else 1 for axis in range(r.size)]
        total = total + weights[g] * v.reshape(along)
        law = law * scipy.stats.binom.pmf(v, taken, q).reshape(along)
        up, down = (taken - v) * q, v * (1 - q)
        one = scipy.sparse.diags([down[1:], -(up + down), up[:-1]], [-1, 0, 1])
        generator = scipy.sparse.kronsum(one, generator)
    reached = (total >= s).ravel()
    luck = float(law.ravel() @ reached)
    # f is unique up to a constant: let it be 0 where the binomial law is largest.
    rest = np.delete(np.arange(law.size), law.argmax())
    solver = scipy.sparse.linalg.splu(
        generator.tocsc()[rest][:, rest],
        permc_spec="MMD_AT_PLUS_A",
        options={"SymmetricMode": True},
    )
    f = np.zeros(law.size)
    f[rest] = solver.solve(luck - reached[rest].astype(float))
    rises = [np.diff(f.reshape(shape), axis=g).max() for g in range(r.size)]
    return luck, (1 - q) * float(max(rises))

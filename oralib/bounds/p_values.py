"""The p-value of a hypothesis, for every audit that has a bound.

A hypothesis is an ε and two numbers, D_in and D_out: no event is more likely than e^ε times its
probability if one element changes sides, plus D_in if the element goes out or D_out if it comes in.
For (ε, δ)-DP both are δ. Its p-value is valid for any mechanism for which the hypothesis is true:
with probability at most α it is at most α, for every α.

The p-value must not depend on what came out. So b* and the right guesses that are taken away, where
the number of guesses is open, are computed from the plan of the audit alone: n, β, the hypothesis
and what was expected.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oralib.bounds import approximate
from oralib.bounds._arguments import for_distinct_rows, one_by_one
from oralib.bounds.anytime import free_to_stop_p_values
from oralib.bounds.balanced import balanced_p_value
from oralib.bounds.crossing import LARGEST_WALK
from oralib.bounds.valid import Counts, Expected, leaks, pilot_of, valid_rule
from oralib.ground import arguments
from oralib.ground.types import Array


def valid_p_value(
    counts: Counts,
    epsilon: float,
    *,
    delta: float = 0.0,
    beta: float = 0.05,
    expected: Expected = None,
) -> Any:
    """For each trial, a p-value of (ε, δ)-DP that is valid for the way the audit was set up.

    If the mechanism is (ε, δ)-DP, it is at most α with probability at most α, for every α. Where
    :func:`oralib.valid_lower_bound` exceeds ε, it is at most β, up to a certificate if guessing
    stops at will: then let one of the two decide, and say before which.

    Parameters
    ----------
    counts : Counts
        As in :func:`oralib.valid_lower_bound`.
    epsilon : float
        The ε of the hypothesis, at least 0.
    delta, expected
        As in :func:`oralib.valid_lower_bound`.
    beta : float
        What the audit was planned for, in (0, 1). It matters only if r was not fixed in advance.

    Examples
    --------
    >>> round(valid_p_value(Counts(112, 120, n=4000, r_fixed=True), 2.0, delta=1e-5), 4)
    0.044
    >>> round(valid_p_value(Counts(112, 120, n=4000, feedback="full"), 1.5, delta=1e-5), 4)
    0.0041
    """
    arguments.instance("counts", counts, Counts, "Counts(75, 100, n=1000)")
    epsilon = arguments.real("epsilon", epsilon, 0, interval="[)")
    beta, delta = arguments.beta_and_delta(beta, delta)
    values = p_values(counts, epsilon, delta, delta, beta=beta, expected=expected)
    return values if np.ndim(counts.v) else float(values[0])


def p_values(
    counts: Counts,
    epsilon: ArrayLike,
    d_in: ArrayLike,
    d_out: ArrayLike,
    *,
    beta: float,
    expected: Expected = None,
    planned: float | None = None,
) -> Array:
    """P-values for checked arguments: of many hypotheses, or for many counts.

    ``planned`` is what all elements may leak in the hypothesis that b* and the right guesses to
    take away were made for, if that is another one.
    """
    v, r, *hypothesis = np.broadcast_arrays(
        np.atleast_1d(counts.v), counts.r, *(np.asarray(x, float) for x in (epsilon, d_in, d_out))
    )
    columns = [column.flatten() for column in (v, r, *hypothesis)]
    v, r, each_epsilon, each_in, each_out = columns
    n, n_delta = counts.n, leaks(counts, each_in, each_out)
    rule = valid_rule(counts, 1.0 if n_delta.any() else 0.0)
    if rule == "balanced":
        r_in = counts.r_in or 0

        @one_by_one
        def balanced(v: int, r: int, epsilon: float, d_in: float, d_out: float) -> float:
            return balanced_p_value(v, r, n, epsilon, (d_in, d_out), r_in=r_in)

        return for_distinct_rows(balanced, *columns)
    of_plan = n_delta if planned is None else np.full(v.size, planned)
    if rule in ("anytime", "anytime certified"):
        if rule == "anytime certified":
            arguments.integer("n", n, 0, LARGEST_WALK)
        return free_to_stop_p_values(v, r, n, each_epsilon, n_delta, of_plan, beta)
    if rule == "any order" and r.size:
        arguments.integer("r", r[0], 0, LARGEST_WALK)
    number = approximate.EXACT if rule == "pure" else approximate.RULES.index(rule)
    least_b = np.zeros(v.size)
    if rule == "random r":
        sizes, betas = np.full(v.size, n), np.full(v.size, beta)
        least_b = approximate.planned_b(sizes, of_plan, betas, pilot_of(counts, expected))
    if v.size == 1:  # in plain Python, which needs no compiler
        row = (int(v[0]), int(r[0]), float(each_epsilon[0]), float(n_delta[0]))
        return np.array([min(approximate._p_value(*row, number, float(least_b[0]))[0], 1.0)])
    return np.asarray(approximate._p_values(v, r, each_epsilon, n_delta, number, least_b))

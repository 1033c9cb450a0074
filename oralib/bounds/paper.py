"""The paper's own functions: ε'_β(v, r), and the p-value behind it."""

from typing import Any

from numpy.typing import ArrayLike

from oralib.bounds.counts import Counts
from oralib.bounds.rule import Rule
from oralib.bounds.steinke import Steinke
from oralib.ground import arguments

__all__ = ["epsilon_lower_bound", "p_value"]

_STEINKE = Steinke()


def epsilon_lower_bound(
    v: ArrayLike | Counts,
    r: ArrayLike | None = None,
    *,
    beta: ArrayLike = 0.05,
    delta: ArrayLike = 0.0,
    n: ArrayLike | None = None,
    rule: Rule = _STEINKE,
) -> Any:
    """Return the paper's ε'_β(v, r), the largest ε whose :func:`p_value` is at most β, or 0.

    It exceeds the true privacy level with probability at most β. If δ > 0, or with full feedback,
    the number of guesses must be fixed in advance. For δ > 0 the paper's rule is valid for
    β <= 1/2, and :class:`oralib.bounds.Exact` is never worse there.

    Parameters
    ----------
    v : Counts, int or array
        The counts of an audit, or the number of right guesses, at most r.
    r : int or array
        The number of guesses; not given with Counts.
    beta : float or array
        How often the bound may fail, in (0, 1).
    delta : float or array
        The δ of (ε, δ)-DP, in [0, 1].
    n : int or array, optional
        The number of elements, guessed or not, at least r; needed if δ > 0.
    rule : Rule
        The rule of the bound, by default that of Steinke et al.; see :mod:`oralib.bounds`.

    Examples
    --------
    >>> from oralib.bounds import Exact
    >>> round(epsilon_lower_bound(75, 100), 6)
    0.702214
    >>> round(epsilon_lower_bound(75, 100, delta=1e-4, n=1000), 6)
    0.672985
    >>> round(epsilon_lower_bound(75, 100, delta=1e-4, n=1000, rule=Exact()), 6)
    0.695126
    """
    arguments.instance("rule", rule, Rule, "oralib.bounds.Exact()")
    return rule.lower_bound(v, r, n=n, delta=delta, beta=beta)


def p_value(
    v: ArrayLike | Counts,
    r: ArrayLike | None = None,
    epsilon: ArrayLike | None = None,
    *,
    delta: ArrayLike = 0.0,
    n: ArrayLike | None = None,
    beta: ArrayLike = 0.05,
    rule: Rule = _STEINKE,
) -> Any:
    """Return an upper limit on P[v or more of r guesses are right] if the mechanism is (ε, δ)-DP.

    For δ = 0 this is P[W >= v], W ~ Bin(r, p(ε)), valid with at most one-way feedback, or if r was
    fixed in advance. For δ > 0 the number of guesses r must be fixed in advance, and missing ones
    count as wrong. The paper's rule is proved where the p-value is at most 1/2.

    Parameters
    ----------
    v, r, delta, n, rule
        As for :func:`epsilon_lower_bound`.
    epsilon : float or array
        The hypothetical privacy level, >= 0.
    beta : float or array
        The β that the audit was planned for; the paper's rule does not look at it.

    Examples
    --------
    >>> from oralib.bounds import Exact
    >>> round(p_value(75, 100, 0.5, delta=1e-4, n=1000), 6)
    0.014587
    >>> round(p_value(75, 100, 0.5, delta=1e-4, n=1000, rule=Exact()), 6)
    0.007542
    """
    arguments.instance("rule", rule, Rule, "oralib.bounds.Exact()")
    if epsilon is None:
        raise TypeError("epsilon must be given, got epsilon=None")
    return rule.p_value(v, r, epsilon=epsilon, n=n, delta=delta, beta=beta)

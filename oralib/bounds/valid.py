"""Which bound is valid for an audit: it follows from how the audit was set up, not from its counts.

===================  ==================  =======================  =============================
feedback             number of guesses   ε-DP (δ = 0)             (ε, δ)-DP
===================  ==================  =======================  =============================
none, one-way, list  fixed in advance    ``Pure``                 ``Exact``
none, one-way        not fixed           ``Pure``                 ``RandomR``
full                 fixed in advance    ``Pure``                 ``AnyOrder``
full, list           not fixed           ``Anytime``              ``Certified``
"all others"         any                 no valid bound above 0   no valid bound above 0
===================  ==================  =======================  =============================

All of these are for independent fair coins. If exactly half of the elements were included, there is
a bound for a fixed number of guesses without feedback, :class:`oralib.bounds.Balanced`. Here
(ε, δ)-DP refers to adding or removing one element. If the claim is about replacing one record by
another, the elements must be pairs, of which a coin includes one.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oralib.bounds.any_order import AnyOrder
from oralib.bounds.anytime import Anytime
from oralib.bounds.balanced import Balanced
from oralib.bounds.certified import Certified
from oralib.bounds.counts import Counts, Expected, leaks
from oralib.bounds.exact import Exact
from oralib.bounds.pure import Pure
from oralib.bounds.random_r import RandomR, pilot_of
from oralib.bounds.rule import Audits, Rule
from oralib.ground import arguments
from oralib.ground.types import Array

__all__ = ["p_values", "valid_lower_bound", "valid_p_value", "valid_rule"]


def valid_rule(counts: Counts, delta: float = 0.0, *, expected: Expected = None) -> Rule:
    """Return the rule whose bound is proved for the way the audit was set up.

    The table above says which is for what. Where the library has none, it raises a ValueError.

    Parameters
    ----------
    counts : Counts
        The outcome of a game, or your own ``Counts(v, r, n, r_fixed=..., feedback=...)``.
    delta : float
        The δ of (ε, δ)-DP, in [0, 1].
    expected : Counts or int, optional
        For :class:`oralib.bounds.RandomR`, if that is the rule.

    Examples
    --------
    >>> valid_rule(Counts(75, 100, n=1000), delta=1e-5)
    RandomR(expected=None)
    >>> valid_rule(Counts(75, 100, n=1000, feedback="full"), delta=1e-5).name
    'certified anytime bound'
    """
    arguments.instance("counts", counts, Counts, "Counts(75, 100, n=1000)")
    delta = arguments.real("delta", delta, 0, 1)
    pilot_of(counts.n, expected)  # an error if nothing like this can be expected
    if counts.coins == "balanced":
        if counts.feedback != "none" or not counts.r_fixed:
            raise ValueError(
                "with balanced coins a bound is known only for a number of guesses fixed in "
                f"advance and no feedback, got {counts.r_fixed=} and {counts.feedback=}"
            )
        return Balanced()
    if counts.feedback == "all others":
        raise ValueError(
            "no bound is valid for a guesser who knows all other elements, "
            f"got counts of the game {counts.game!r}"
        )
    if counts.feedback in ("full", "list") and not counts.r_fixed:
        return Certified() if delta > 0 else Anytime()
    if delta == 0:
        return Pure()
    if not counts.r_fixed:
        return RandomR(expected)
    return AnyOrder() if counts.feedback == "full" else Exact()


def valid_lower_bound(
    counts: Counts, *, beta: float = 0.05, delta: float = 0.0, expected: Expected = None
) -> Any:
    """Return for each trial a lower bound on ε that is valid for the way the audit was set up.

    With probability at least 1 - β it does not exceed the ε of an (ε, δ)-DP mechanism. Where the
    library has no such bound, it raises a ValueError that says so. For scalar counts it is a float.

    Parameters
    ----------
    counts : Counts
        The outcome of a game, or your own ``Counts(v, r, n, r_fixed=..., feedback=...)``.
    beta : float
        How often the bound may fail, in (0, 1).
    delta : float
        The δ of (ε, δ)-DP, in [0, 1].
    expected : Counts or int, optional
        If r was not fixed in advance: the counts of a pilot run, or of trials of a simulation, or
        just the expected number of guesses; never the counts of the audit itself. The bound is
        valid whatever is expected, and large if the expectation comes true; by default it is made
        for 60 guesses.

    Examples
    --------
    >>> from oralib import LocalLaplace, ThresholdGuesser, one_run
    >>> counts = one_run(LocalLaplace(2.0), ThresholdGuesser(2.0), 1000, seed=1)
    >>> bool(valid_lower_bound(counts)[0] < 2.0)
    True
    """
    rule = valid_rule(counts, delta, expected=expected)
    return rule.lower_bound(counts, delta=delta, beta=beta)


def valid_p_value(
    counts: Counts,
    epsilon: float,
    *,
    delta: float = 0.0,
    beta: float = 0.05,
    expected: Expected = None,
) -> Any:
    """Return for each trial a p-value of (ε, δ)-DP that is valid for the way the audit was set up.

    If the mechanism is (ε, δ)-DP, it is at most α with probability at most α, for every α. Where
    :func:`oralib.valid_lower_bound` exceeds ε, it is at most β, up to a certificate if guessing
    stops at will: then let one of the two decide, and say before which.

    Parameters
    ----------
    counts : Counts
        The counts of an audit, as for :func:`oralib.valid_lower_bound`.
    epsilon : float
        The ε of the hypothesis, at least 0.
    delta, expected
        As for :func:`oralib.valid_lower_bound`.
    beta : float
        The β that the audit was planned for, in (0, 1). It matters only if r was not fixed in
        advance.

    Examples
    --------
    >>> round(valid_p_value(Counts(112, 120, n=4000, r_fixed=True), 2.0, delta=1e-5), 4)
    0.044
    >>> round(valid_p_value(Counts(112, 120, n=4000, feedback="full"), 1.5, delta=1e-5), 4)
    0.0041
    """
    rule = valid_rule(counts, delta, expected=expected)
    return rule.p_value(counts, epsilon=epsilon, delta=delta, beta=beta)


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
    """Return valid p-values of general hypotheses, for checked arguments that broadcast together.

    A hypothesis is an ε and two numbers, D_in and D_out: no event is more likely than e^ε times its
    probability if one element changes sides, plus D_in if the element goes out or D_out if it comes
    in. For (ε, δ)-DP both are δ. Its p-value is valid for any mechanism for which it is true.

    ``planned`` is what all elements may leak in the hypothesis that the audit was planned for, if
    this is another hypothesis. If the number of guesses is open, b and the number of right guesses
    to discount come from this plan alone, since they must not depend on the outcome.
    """
    columns = np.broadcast_arrays(
        np.atleast_1d(counts.v),
        counts.r,
        np.asarray(epsilon, float),
        np.asarray(d_in, float),
        np.asarray(d_out, float),
    )
    v, r, each_epsilon, each_in, each_out = (column.flatten() for column in columns)
    leak = leaks(counts, each_in, each_out)
    rule = valid_rule(counts, 1.0 if leak.any() else 0.0, expected=expected)
    audits = Audits(
        v=v,
        r=r,
        n=np.full(v.size, counts.n),
        d_in=each_in,
        d_out=each_out,
        leak=leak,
        beta=np.full(v.size, beta),
        planned=leak if planned is None else np.full(v.size, planned),
        r_in=counts.r_in,
    )
    rule.check(audits)
    return rule.p_values(audits, each_epsilon)

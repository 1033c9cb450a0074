"""The right guesses, or the guesses that are all right, that it takes to refute a claim."""

from bisect import bisect_left
from dataclasses import replace

from oralib.bounds.any_order import AnyOrder
from oralib.bounds.balanced import Balanced
from oralib.bounds.certified import Certified
from oralib.bounds.counts import Counts
from oralib.bounds.crossing import LARGEST_WALK
from oralib.bounds.valid import valid_lower_bound, valid_rule
from oralib.ground import arguments

__all__ = ["guesses_needed", "like", "right_needed"]

#: The largest number of guesses that :func:`guesses_needed` considers.
_LARGEST_R = 10**12


def like(counts: Counts, v: int, r: int, n: int) -> Counts:
    """Return other counts of an audit that was set up like this one."""
    r_in = counts.r_in
    if r_in is not None:  # half of them, or the same share, rounded up
        half = 0 <= 2 * r_in - counts.r <= 1
        r_in = -(-r // 2) if half else -(-r * r_in // max(counts.r, 1))
    return replace(counts, v=v, r=r, n=n, r_in=r_in)


def right_needed(counts: Counts, epsilon: float, *, delta: float, beta: float) -> int | None:
    """Return the right guesses of r that refute (ε, δ)-DP; None if even all are too few.

    Parameters
    ----------
    counts : Counts
        An audit, of which only r, n and the set-up matter.
    epsilon, delta : float
        The claim.
    beta : float
        How often a true claim may be refuted, in (0, 1).

    Examples
    --------
    >>> right_needed(Counts(0, 120, n=1000, r_fixed=True), 2.0, delta=1e-5, beta=0.05)
    112
    """
    arguments.instance("counts", counts, Counts, "Counts(0, 120, n=1000)")
    beta, delta = arguments.beta_and_delta(beta, delta)
    epsilon = arguments.real("epsilon", epsilon, 0)
    r = arguments.integer("r", counts.r)

    def enough(v: int) -> bool:
        other = like(counts, v, r, counts.n)
        return bool(valid_lower_bound(other, delta=delta, beta=beta) > epsilon)

    return bisect_left(range(r + 1), True, key=enough) if enough(r) else None


def guesses_needed(counts: Counts, epsilon: float, *, delta: float, beta: float) -> int | None:
    """Return the number of guesses, all right, that refute (ε, δ)-DP; None if no number does.

    There are n canaries, or as many as guesses if that is more.

    Parameters
    ----------
    counts, epsilon, delta, beta
        As for :func:`right_needed`.

    Examples
    --------
    >>> guesses_needed(Counts(0, 120, n=1000, r_fixed=True), 8.0, delta=1e-5, beta=0.05)
    8933
    """
    arguments.instance("counts", counts, Counts, "Counts(0, 120, n=1000)")
    beta, delta = arguments.beta_and_delta(beta, delta)
    epsilon = arguments.real("epsilon", epsilon, 0)
    n = counts.n
    rule = valid_rule(counts, delta)
    # Bounds that take longer, or for which n cannot grow with r.
    limit = _LARGEST_R
    if isinstance(rule, Certified | Balanced):
        limit = n
    elif isinstance(rule, AnyOrder):
        limit = LARGEST_WALK

    def enough(r: int) -> bool:
        other = like(counts, r, r, max(r, n))
        return bool(valid_lower_bound(other, delta=delta, beta=beta) > epsilon)

    if not limit or not enough(limit):
        return None
    return bisect_left(range(1, limit + 1), True, key=enough) + 1

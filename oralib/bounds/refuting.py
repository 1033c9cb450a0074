"""What it takes to refute a claim: how many right guesses, and how many guesses, all right."""

from bisect import bisect_left
from dataclasses import replace

from oralib.bounds.crossing import LARGEST_WALK
from oralib.bounds.valid import Counts, Rule, valid_lower_bound, valid_rule
from oralib.ground import arguments

#: The largest number of guesses that :func:`guesses_needed` considers.
_MOST_GUESSES = 10**12


def like(counts: Counts, v: int, r: int, n: int) -> Counts:
    """Other counts of an audit that was set up like this one."""
    r_in = counts.r_in
    if r_in is not None:  # half of them, or the same share, rounded up
        half = 0 <= 2 * r_in - counts.r <= 1
        r_in = -(-r // 2) if half else -(-r * r_in // max(counts.r, 1))
    return replace(counts, v=v, r=r, n=n, r_in=r_in)


def right_needed(counts: Counts, epsilon: float, *, delta: float, beta: float) -> int | None:
    """How many of r guesses must be right to refute (ε, δ)-DP; None if even all are too few.

    Only the r and n of the counts matter, and how the audit was set up.

    >>> right_needed(Counts(0, 120, n=1000, r_fixed=True), 2.0, delta=1e-5, beta=0.05)
    112
    """
    epsilon, r = arguments.real("epsilon", epsilon, 0), counts.r

    def enough(v: int) -> bool:
        found = like(counts, v, r, counts.n)
        return bool(valid_lower_bound(found, delta=delta, beta=beta) > epsilon)

    return bisect_left(range(r + 1), True, key=enough) if enough(r) else None


def guesses_needed(counts: Counts, epsilon: float, *, delta: float, beta: float) -> int | None:
    """How many guesses, all right, refute (ε, δ)-DP in such an audit; None if no number does.

    There are n canaries, or as many as guesses if that is more.

    >>> guesses_needed(Counts(0, 120, n=1000, r_fixed=True), 8.0, delta=1e-5, beta=0.05)
    8933
    """
    epsilon, n = arguments.real("epsilon", epsilon, 0), counts.n
    # Bounds that take longer, or for which n cannot grow with r.
    limits: dict[Rule, int] = {"anytime certified": n, "balanced": n, "any order": LARGEST_WALK}
    most = limits.get(valid_rule(counts, delta), _MOST_GUESSES)

    def enough(r: int) -> bool:
        found = like(counts, r, r, max(r, n))
        return bool(valid_lower_bound(found, delta=delta, beta=beta) > epsilon)

    if not most or not enough(most):
        return None
    return bisect_left(range(1, most + 1), True, key=enough) + 1

"""The two numbers of guesses of an audit: for the bound on ε, and for the test of what was stated.

Both follow from what is known before the audit, by formulas whose version is in each report
(``FORMULA`` in :mod:`oraudit.canaries.counted`). Nothing here sees a score.
"""

from bisect import bisect_left
from functools import lru_cache
from math import inf, sqrt

from oralib import Counts, Training, TrainingTest, valid_lower_bound
from oraudit.canaries.law import GuessSide, law_of_right

__all__ = ["POWER_SHARES", "guesses_for_bound", "guesses_for_claim", "guesses_for_training"]

#: The shares of the stated noise for which reports say how often an audit refutes it.
POWER_SHARES = (0.9, 0.8, 0.7, 0.6, 0.5)
#: The shares whose powers are summed to choose the number of guesses.
_CHOOSING_SHARES = (0.8, 0.7, 0.6, 0.5)
#: The numbers of guesses to try for a stated training, as multiples of √n.
_MULTIPLES = (2, 3, 4, 5, 6, 8, 12, 16)
#: The least gain in the sum of powers for which a larger number of guesses is taken.
_BETTER = 0.01
#: The number of guesses for a claim alone, as a multiple of √n.
_CLAIM_ROOTS = 2
#: That number must be at least this multiple of the least number that could refute the claim: with
#: fewer guesses a few wrong ones are too many.
_CLAIM_ROOM = 4


def guesses_for_bound(n: int) -> int:
    """Return the number of guesses for the bound on ε: 8 n^0.4, at most n.

    For canaries with a weight each, the mean bound is within 1.2% of the mean bound with the best
    number of guesses, in the median over 56 pairs (training, number of canaries).

    >>> guesses_for_bound(1000), guesses_for_bound(20)
    (127, 20)
    """
    return min(n, round(8 * n**0.4))


@lru_cache(maxsize=256)
def guesses_for_training(
    n: int, training: tuple[Training, ...], beta: float = 0.05, side: GuessSide = "both"
) -> int:
    """Return the number of guesses to test a stated training, from some multiples of √n.

    It has the largest sum of powers at 0.8, 0.7, 0.6 and 0.5 of the noise. If none of the multiples
    can refute the training, it is the smallest of them.

    >>> from oraudit.canaries.law import stretches
    >>> guesses_for_training(1000, stretches((2.422402, 0.1, 100)))
    158
    """
    candidates = sorted({min(n, round(multiple * sqrt(n))) for multiple in _MULTIPLES})
    best_number = candidates[0]
    best_power = -inf
    for k in candidates:
        need = TrainingTest(training, n=n, guesses=k, beta=beta, side=side).needed
        if need is None:
            continue
        laws = (law_of_right(training, n, k, share=x, side=side) for x in _CHOOSING_SHARES)
        power = sum(law.at_least(need) for law in laws)
        if power > best_power + _BETTER:
            best_power = power
            best_number = k
    return best_number


@lru_cache(maxsize=256)
def guesses_for_claim(
    n: int,
    claim: tuple[float, float],
    *,
    beta: float = 0.05,
    side: GuessSide = "both",
    balanced: bool = False,
) -> int:
    """Return the number of guesses to test a claimed (ε, δ) where no training is stated.

    This is 2 √n if it is at least four times the least number that could refute the claim, and else
    that least number, all of which must be right. It is n where no number of guesses could.

    >>> guesses_for_claim(1000, (2.0, 1e-5)), guesses_for_claim(20_000, (2.0, 1e-5))
    (24, 283)
    """
    epsilon, delta = claim

    def refute(r: int) -> bool:
        """Return whether r guesses refute the claim if all are right."""
        if balanced:
            r_in = r if side == "in" else (r + 1) // 2
            counts = Counts(r, r, n=n, r_fixed=True, coins="balanced", r_in=r_in)
        else:
            counts = Counts(r, r, n=n, r_fixed=True, side=side)
        return bool(valid_lower_bound(counts, beta=beta, delta=delta) > epsilon)

    # Of balanced coins only half are in, so at most n // 2 guesses of "in" can be right.
    largest = n // 2 if balanced and side == "in" else n
    if not largest or not refute(largest):
        return n
    smallest = bisect_left(range(1, largest + 1), True, key=refute) + 1
    roots = round(_CLAIM_ROOTS * sqrt(n))
    return roots if roots >= _CLAIM_ROOM * smallest else smallest

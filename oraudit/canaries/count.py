"""From scores, guesses or counts of one audit to its two statements.

All that could be chosen is fixed by a formula before scores are seen: how many canaries are guessed
(:mod:`oraudit.canaries.guesses`), and the ε' at which the stated training is tested
(:class:`oralib.TrainingTest`). Ties are broken by lots that do not depend on scores or coins.

Evidence that proves nothing is :class:`Unusable`: coins that can hardly have been fair, scores with
the wrong sign, canaries that are listed twice.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oralib.ground import arguments
from oralib.ground.streams import stream
from oraudit.canaries.columns import (
    Unusable,
    are_listed_twice,
    guesses_and_coins,
    scores_and_coins,
)
from oraudit.canaries.counted import Counted, Origin
from oraudit.canaries.evidence import check_coins, check_sign_of_guesses, check_sign_of_scores
from oraudit.canaries.guesses import guesses_for_bound
from oraudit.canaries.law import GuessSide
from oraudit.canaries.setup import Setup

__all__ = ["Unusable", "judge_guesses", "judge_right", "judge_scores"]

Bits: TypeAlias = NDArray[np.bool_]
Reals: TypeAlias = NDArray[np.float64]


def judge_scores(
    scores: ArrayLike,
    included: ArrayLike,
    setup: Setup,
    *,
    origin: Origin = "scores",
    share_of_norm: float | None = None,
    sees: str = "",
) -> Counted:
    """Judge the scores of canaries: the stated training, and ε.

    Parameters
    ----------
    scores : array
        A number for each canary, high if it seems to have been included.
    included : array
        The coins: True or False, 1 or 0, or 1 or -1.
    setup : Setup
        What was fixed before.
    origin : str
        ``"sum"`` if scores are log-likelihood ratios of canaries in the sum of the training.
    share_of_norm, sees
        As in :class:`Counted`.
    """
    values, bits = scores_and_coins(scores, included)
    arguments.one_of("origin", origin, ("sum", "scores"))
    from_sum = origin == "sum"
    check_coins(bits, setup.coins, trusted=from_sum)
    if not from_sum and are_listed_twice(values, bits):
        raise Unusable(
            "no score occurs only once, and equal scores have equal coins: each canary seems to be "
            "listed twice; list each once"
        )
    counting = setup
    by_distance = from_sum and setup.side == "both"
    if setup.in_pairs:
        values, bits = _matched_pairs(values, bits)
        counting = setup.of_pairs()
        by_distance = setup.side == "both"
    elif by_distance and setup.balanced:
        raise ValueError(
            "coins='balanced' needs a fixed number of guesses 'in', got origin='sum' and "
            "side='both', where signs of scores decide it"
        )
    n = bits.size
    right = _right_guesses(values, bits, setup.side, by_distance)
    for_bound = guesses_for_bound(n)
    for_test = counting.guesses_for_test(n)
    if not from_sum:
        guesses = max(for_bound, for_test or 0)
        check_sign_of_scores(int(right[guesses - 1]), guesses)
    bound = counting.bound(counting.plan(n, for_bound), int(right[for_bound - 1]))
    test = None
    if for_test is not None:
        test = counting.test(counting.plan(n, for_test), int(right[for_test - 1]))
    return setup.counted(n, bound, test, origin=origin, share_of_norm=share_of_norm, sees=sees)


def judge_guesses(
    guesses: ArrayLike, truth: ArrayLike, setup: Setup, *, planned: int | None = None
) -> Counted:
    """Judge guesses that somebody has made; nan is no guess, nor is 0 if guesses are 1 and -1.

    ``planned`` is the number of guesses that was fixed before the audit, of which missing ones
    count as wrong; without it the output may have decided it, and the bound allows for that.
    """
    right, taken, bits = guesses_and_coins(guesses, truth)
    says_in = taken & (right == bits)
    _check_no_pairs(setup)
    check_coins(bits, setup.coins, trusted=False)
    n = bits.size
    made = int(taken.sum())
    number = made
    if planned is not None:
        number = arguments.integer("planned", planned, made, n)
    if setup.side == "in" and (taken != says_in).any():
        raise ValueError("guesses must all say 'included' with side='in', got one that does not")
    if setup.balanced and planned != made:
        raise ValueError(
            "coins='balanced' needs a number of guesses that was fixed, and none missing, got "
            f"planned={planned} and {made} guesses"
        )
    v = int(right.sum())
    check_sign_of_guesses(v, made)
    plan = setup.plan(n, number, fixed=planned is not None, r_in=int(says_in.sum()))
    return setup.counted(n, setup.bound(plan, v), setup.test(plan, v))


def judge_right(right: int, guesses: int, canaries: int, setup: Setup) -> Counted:
    """Judge counts alone, of a number of guesses that was fixed before; missing ones are wrong."""
    n = arguments.integer("canaries", canaries, 1)
    number = arguments.integer("guesses", guesses, 1, n)
    v = arguments.integer("right", right, 0, number)
    _check_no_pairs(setup)
    plan = setup.plan(n, number)
    return setup.counted(n, setup.bound(plan, v), setup.test(plan, v))


def _check_no_pairs(setup: Setup) -> None:
    """Refuse pairs of balanced coins, which cannot be made after guesses."""
    if setup.in_pairs:
        raise ValueError(
            "adjacency='replace' needs scores where coins are balanced, to make pairs of them, "
            "got guesses or counts with coins='balanced'"
        )


def _right_guesses(
    values: Reals, bits: Bits, side: GuessSide, by_distance: bool
) -> NDArray[np.int64]:
    """Return the right ones of the first k guesses, k = 1, 2, ...; ties are broken by lots.

    Guesses ``by_distance`` are those farthest from 0, by their signs.
    """
    n = values.size
    lots = stream(0, "canaries", "lots").permutation(n)
    if by_distance:
        order = lots[np.argsort(-np.abs(values[lots]), kind="stable")]
        signs = np.where(values[order] == 0, np.arange(n) % 2 - 0.5, values[order])  # 0 is a tie
        return np.cumsum(bits[order] == (signs > 0))
    down = lots[np.argsort(-values[lots], kind="stable")]
    if side == "in":
        return np.cumsum(bits[down])
    # In turns the highest is guessed, the lowest, the second highest, ...
    right = np.empty(n, dtype=bool)
    right[0::2] = bits[down[: (n + 1) // 2]]
    right[1::2] = ~bits[down[::-1][: n // 2]]
    return np.cumsum(right)


def _matched_pairs(values: Reals, bits: Bits) -> tuple[Reals, Bits]:
    """Match each included canary by lot with one that was left out.

    A pair is put in an order by lot. Its score is the first one's minus the second one's, and its
    coin says whether the first was included: given the pairs, a fair coin for each.
    """
    draw = stream(0, "canaries", "pairs")
    left_out = draw.permutation(np.flatnonzero(~bits))
    included = np.flatnonzero(bits)
    first = draw.random(included.size) < 0.5
    return np.where(first, 1, -1) * (values[included] - values[left_out]), first

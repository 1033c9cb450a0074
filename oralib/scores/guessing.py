"""From scores to guesses: whose coins are guessed, how many, and how many guesses are right."""

from functools import partial
from typing import NamedTuple

import numpy as np

from oralib.bounds import epsilon_lower_bound, epsilon_lower_bound_random_r
from oralib.ground.streams import stream
from oralib.ground.types import Side
from oralib.scores.columns import Bits, Ints, Reals

#: Without a claim, the canaries that are set aside never choose fewer guesses than this: a handful
#: could show next to nothing, while 50, all right, show 2.78.
LEAST_GUESSES = 50

#: This many numbers of guesses are tried on the canaries that are set aside, or drawn.
POINTS = 100


def parts(n: int, share: float, seed: int) -> tuple[Ints, Ints]:
    """A random share of n canaries, and the others."""
    order, aside = stream(seed, "scores", "split").permutation(n), round(share * n)
    if not 0 < aside < n:
        got = f"split={share:g} of {n} canaries"
        raise ValueError(f"split must leave a canary on either side, got {got}")
    return order[:aside], order[aside:]


def matched_pairs(values: Reals, bits: Bits, seed: int) -> tuple[Reals, Bits]:
    """Each included canary is matched at random with one that was left out.

    A pair is put in a random order. Its score is the first one's minus the second one's, and its
    coin says whether the first was included: given the pairs, a fair coin for each.
    """
    draw = stream(seed, "scores", "pairs")
    ones, zeros = np.flatnonzero(bits), draw.permutation(np.flatnonzero(~bits))
    first = draw.random(ones.size) < 0.5
    return np.where(first, 1, -1) * (values[ones] - values[zeros]), first


def right_guesses(values: Reals, bits: Bits, side: Side, seed: int) -> Ints:
    """For k = 1, 2, ... how many of the first k guesses are right; ties are broken at random."""
    n = values.size
    shuffled = stream(seed, "scores", "lots").permutation(n)
    down = shuffled[np.argsort(values[shuffled], kind="stable")][::-1]
    if side == "included":
        return np.cumsum(bits[down])
    if side == "farthest":
        down = shuffled[np.argsort(-np.abs(values[shuffled]), kind="stable")]
        signs = np.where(values[down] == 0, np.arange(n) % 2 - 0.5, values[down])  # 0 is a tie too
        return np.cumsum(bits[down] == (signs > 0))
    right = np.empty(n, dtype=bool)  # the highest is guessed, the lowest, the second highest, ...
    right[0::2], right[1::2] = bits[down[: (n + 1) // 2]], ~bits[down[::-1][: n // 2]]
    return np.cumsum(right)


def ties_drawn(values: Reals, r: int, side: Side) -> int:
    """How many of r guesses were drawn by lot: a canary with the same score was not so guessed."""
    n, up = values.size, np.sort(np.abs(values) if side == "farthest" else values)
    high = (r + 1) // 2 if side == "both" else r
    low, tied = r - high, 0
    if 0 < high < n and up[n - high] == up[n - high - 1]:
        tied += int((up[n - high :] == up[n - high]).sum())
    if 0 < low < n and up[low - 1] == up[low]:
        tied += int((up[:low] == up[low]).sum())
    return tied


class Ranking(NamedTuple):
    """How well scores rank canaries. Neither number is a bound."""

    auroc: float
    tpr_at_1_percent: float  # included canaries above all but a hundredth of the others


def ranking(values: Reals, bits: Bits) -> Ranking | None:
    """How well scores rank canaries; None if these are all of one kind."""
    ones, zeros = np.sort(values[bits]), np.sort(values[~bits])
    if not ones.size or not zeros.size:
        return None
    below, not_above = (np.searchsorted(zeros, ones, side).mean() for side in ("left", "right"))
    cut = zeros[::-1][int(0.01 * zeros.size)]
    return Ranking(float((below + not_above) / (2 * zeros.size)), float((ones > cut).mean()))


def exact_bounds(right: Ints, k: Ints, test_beta: float, delta: float) -> Reals:
    """The bound for each number of guesses, each fixed in advance.

    One by one they need no kernel, which takes longer to load than a hundred bounds take.
    """
    bound = partial(epsilon_lower_bound, beta=test_beta, delta=delta, n=right.size, method="exact")
    return np.array(
        [bound(*count) for count in zip(right[k - 1].tolist(), k.tolist(), strict=True)]
    )


def best_number(
    right: Ints, n: int, delta: float, beta: float, claim: float | None
) -> tuple[int, str]:
    """The number of guesses among n canaries that looks best from a smaller sample, and why.

    The accuracy is taken to be a standard error lower than it was (Wilson's interval), so that a
    few lucky guesses do not win. With a claim, only numbers that could refute it are tried. This is
    a heuristic; the audit is valid whatever it says, as it does not know the n canaries.
    """
    k = spread_numbers(right.size)
    accuracy = right[k - 1] / k
    spread = np.sqrt(accuracy * (1 - accuracy) / k + 0.25 / k**2)
    careful = (accuracy + 0.5 / k - spread) / (1 + 1 / k)
    taken = np.clip(np.rint(k * (n / right.size)).astype(np.int64), 1, n)

    def promised(right: Reals) -> Reals:
        """One by one, as in exact_bounds."""
        bound = partial(epsilon_lower_bound_random_r, beta=beta, delta=delta, n=n)
        v = np.floor(right).astype(np.int64)
        return np.array([bound(*count) for count in zip(v.tolist(), taken.tolist(), strict=True)])

    excluded = taken < min(LEAST_GUESSES, n)
    why = f"; fewer than {LEAST_GUESSES} were not considered" if excluded.any() else ""
    if claim is not None:
        hopeless = promised(taken) <= claim
        if not hopeless.all():
            excluded = hopeless
            why = f"; so few that even all right could not refute ε = {claim:g} were left out"
    promises = np.where(excluded, -1.0, promised(careful * taken))
    # Where nothing can be shown, the number whose guesses look least like coins.
    best = np.lexsort(((accuracy - 0.5) * np.sqrt(k), promises))[-1]
    seen = f"on the {right.size:,} canaries set aside, {taken[best]:,} guesses looked best"
    return int(taken[best]), f"{seen}: they promised {promises[best]:.2f}{why}"


def spread_numbers(n: int) -> Ints:
    """Numbers from 1 to n, evenly spaced in the logarithm."""
    return np.unique(np.rint(np.geomspace(1, n, POINTS)).astype(np.int64))

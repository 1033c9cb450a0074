"""The parts that simulated audits with a fixed number of guesses share."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib.bounds import Counts
from oralib.dpsgd.setting import DpSgd
from oralib.ground import arguments
from oralib.ground.jit import jit
from oralib.ground.streams import play
from oralib.ground.types import Feedback

__all__ = ["ones_among", "play_audits"]


def play_audits(
    game: str,
    block: Callable[[NDArray[np.int64], int, Generator], NDArray[np.int64]],
    dpsgd: DpSgd,
    guesses: Sequence[int],
    limit: int,
    trials: int,
    seed: int,
    *key: object,
    feedback: Feedback = "none",
) -> list[Counts]:
    """Play a game, and return its counts for each of several falling numbers of guesses.

    ``block(ks, size, rng)`` plays ``size`` training runs and counts the right guesses: a row for
    each run and a column for each number of guesses, which is at most ``limit``. The random numbers
    also depend on ``key``.
    """
    ks = arguments.integers("guesses", guesses, 1)
    if ks.ndim != 1 or not ks.size or (np.diff(ks) >= 0).any():
        raise ValueError(f"guesses must be falling numbers, got {guesses=}")
    if ks[0] > limit:
        raise ValueError(f"guesses must lie in [1, {limit}], got guesses={ks[0]}")
    numbers = ks.tolist()

    def right_guesses(size: int, rng: Generator) -> tuple[NDArray[np.int64]]:
        return (block(ks, size, rng),)

    (rows,) = play(right_guesses, trials, seed, game, dpsgd, *numbers, *key)
    return [
        Counts(v, np.full(v.size, k), dpsgd.n, game, r_fixed=True, feedback=feedback)
        for v, k in zip(rows.T, numbers, strict=True)
    ]


@jit
def ones_among(draws: int, ones: int, size: int, rng: Generator) -> int:
    """Draw some of ``size`` elements, ``ones`` of them included; return how many of these."""
    drawn = 0
    for i in range(draws):
        drawn += rng.random() * (size - i) < ones - drawn
    return drawn

"""What simulated audits with a fixed number of guesses share."""

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


def play_audits(
    game: str,
    block: Callable[[NDArray[np.int64], int, Generator], NDArray[np.int64]],
    dpsgd: DpSgd,
    guesses: Sequence[int],
    most: int,
    trials: int,
    seed: int,
    *key: object,
    feedback: Feedback = "none",
) -> list[Counts]:
    """Counts of a game with a fixed number of guesses, for each of several falling numbers.

    ``block(ks, size, rng)`` plays ``size`` training runs and counts the right guesses: a row for
    each run and a column for each number of guesses. The random numbers also depend on ``key``.
    """
    ks = arguments.integers("guesses", guesses, 1)
    if ks.ndim != 1 or not ks.size or (np.diff(ks) >= 0).any():
        raise ValueError(f"guesses must be falling numbers, got {guesses=}")
    if ks[0] > most:
        raise ValueError(f"guesses must lie in [1, {most}], got guesses={ks[0]}")
    numbers = ks.tolist()
    rows = play(lambda *task: (block(ks, *task),), trials, seed, game, dpsgd, *numbers, *key)[0]
    return [
        Counts(v, np.full(v.size, k), dpsgd.n, game, r_fixed=True, feedback=feedback)
        for v, k in zip(rows.T, numbers, strict=True)
    ]


@jit
def ones_among(draws: int, ones: int, size: int, rng: Generator) -> int:
    """How many of ``draws`` elements are included, out of ``size`` of which ``ones`` are."""
    drawn = 0
    for i in range(draws):
        drawn += rng.random() * (size - i) < ones - drawn
    return drawn

"""Games that only claims need: full knowledge, played and exact, and the laws of some audits."""

from itertools import product

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from oralib import Channel, Counts, ThresholdGuesser
from oralib.games import (
    adaptive_law,
    check_base,
    check_players,
    guesses_at,
    law_of_guesses,
    one_run_law,
    play_game,
)
from oralib.ground.binomial import log_pmfs
from oralib.ground.rounding import log_ratio, snap
from oralib.ground.types import Feedback
from oralib.guessers import Guesser
from oralib.mechanisms import Mechanism, Signs

__all__ = [
    "Law",
    "classic_law",
    "classic_successes",
    "full_knowledge",
    "full_knowledge_law",
    "threshold_law",
]

Law = NDArray[np.float64]


def full_knowledge(
    mechanism: Mechanism, guesser: Guesser, n: int, *, trials: int = 1, seed: int
) -> Counts:
    """Guess each element knowing all others. Not a valid audit: no bound above 0 holds."""
    check_players(mechanism, guesser, n)

    def guess(signs: Signs, rng: Generator) -> Signs:
        output = mechanism.run(signs, rng)
        loss = [mechanism.conditional_loss(output, signs, i) for i in range(n)]
        return guesses_at(guesser, np.stack(loss, axis=-1), signs)

    game = ("full-knowledge", guess, n, trials, seed, mechanism, guesser)
    return play_game(*game, feedback="all others")


def full_knowledge_law(channel: Channel, guesser: Guesser) -> Law:
    """The exact law of :func:`full_knowledge`: entry [v, r] is P[V = v, R = r]."""
    return law_of_guesses(channel, guesses_at(guesser, channel.full_knowledge_loss))


def classic_law(
    channel: Channel, guesser: Guesser, rounds: int, *, base: ArrayLike = (-1,), index: int = 0
) -> Law:
    """The exact law of :func:`oralib.classic`; ``index`` is the element with the coin."""
    has_base = np.delete(channel.signs == check_base(base), index, axis=1).all(axis=1)
    rows = channel.table[:, has_base].T  # for the sign -1 at the index, and for 1
    guesses = guesses_at(guesser, log_ratio(*rows))
    right_chance = snap((rows[0] @ (guesses == -1) + rows[1] @ (guesses == 1)) / 2)
    guess_chance = snap((rows @ (guesses != 0)).mean())
    success = right_chance / guess_chance if guess_chance else 0.0
    v, r = np.indices((rounds + 1, rounds + 1))
    number = np.exp(log_pmfs(np.arange(rounds + 1), rounds, guess_chance))
    return snap(number * np.exp(log_pmfs(v, r, success)))


def classic_successes(table: Channel, threshold: float) -> list[tuple[float, float]]:
    """(success, chance of guessing) of classic auditing with a threshold at a share of ε(M).

    For each element and each value of the others, from one round of the exact law.
    """
    successes = []
    guesser = ThresholdGuesser(threshold * table.epsilon)
    for index, base in product(range(table.n), table.signs):
        if base[index] < 0:
            law = classic_law(table, guesser, 1, base=base, index=index)
            if law[:, 1].sum() > 0:
                successes.append((float(law[1, 1] / law[:, 1].sum()), float(law[:, 1].sum())))
    return successes


def threshold_law(table: Channel, tau: float, feedback: Feedback) -> Law:
    """The law of (V, R) of a guesser with a threshold."""
    if feedback == "none":
        return one_run_law(table, ThresholdGuesser(tau))
    return adaptive_law(table, ThresholdGuesser(tau), feedback=feedback)

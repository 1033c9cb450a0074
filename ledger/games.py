"""Games that only claims need: full knowledge, played and exact, and the law of classic audits."""

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from oralib import Channel, Counts
from oralib.games import check_base, check_players, guesses_at, law_of_guesses, play_game
from oralib.ground.binomial import log_pmfs
from oralib.ground.rounding import log_ratio, snap
from oralib.guessers import Guesser
from oralib.mechanisms import Mechanism, Signs

Law = NDArray[np.float64]


def full_knowledge(
    mechanism: Mechanism, guesser: Guesser, n: int, *, trials: int = 1, seed: int
) -> Counts:
    """Each element is guessed knowing all others. Not a valid audit: no bound above 0 holds."""
    check_players(mechanism, guesser, n)

    def guess(signs: Signs, rng: Generator) -> Signs:
        output = mechanism.run(signs, rng)
        loss = [mechanism.conditional_loss(output, signs, i) for i in range(n)]
        return guesses_at(guesser, np.stack(loss, axis=-1), signs)

    game = ("full-knowledge", guess, n, trials, seed, mechanism, guesser)
    return play_game(*game, feedback="all others")


def full_knowledge_law(channel: Channel, guesser: Guesser) -> Law:
    """Its exact law: entry [v, r] is P[V = v, R = r]."""
    return law_of_guesses(channel, guesses_at(guesser, channel.full_knowledge_loss))


def classic_law(
    channel: Channel, guesser: Guesser, rounds: int, *, base: ArrayLike = (-1,), index: int = 0
) -> Law:
    """The exact law of :func:`oralib.classic`; ``index`` is the element with the coin."""
    others = np.delete(channel.signs == check_base(base), index, axis=1).all(axis=1)
    given = channel.table[:, others].T  # for the sign -1 at the index, and for 1
    guesses = guesses_at(guesser, log_ratio(*given))
    right = snap((given[0] @ (guesses == -1) + given[1] @ (guesses == 1)) / 2)
    taken = snap((given @ (guesses != 0)).mean())
    v, r = np.indices((rounds + 1, rounds + 1))
    number = np.exp(log_pmfs(np.arange(rounds + 1), rounds, taken))
    return snap(number * np.exp(log_pmfs(v, r, right / taken if taken else 0.0)))

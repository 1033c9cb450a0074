"""The audits as games: a mechanism plays against a guesser, and the counts (v, r) come out.

Each game exists twice: played at random for many trials, and as the exact law of (V, R) that
follows from a table. A law is an array whose entry [v, r] is P[V = v, R = r].
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from oralib import _check
from oralib._random import BLOCK, play
from oralib.channel import Channel
from oralib.guessers import Guesser, ThresholdGuesser, TopGuesser
from oralib.mechanisms import Mechanism, Signs

__all__ = [
    "Counts",
    "adaptive",
    "adaptive_law",
    "classic",
    "full_knowledge",
    "full_knowledge_law",
    "one_run",
    "one_run_law",
]

#: What an adaptive guesser is told after each element: the sign of those it abstained from
#: (``"one-way"``), or of all (``"full"``, the paper's protocol).
FEEDBACK = ("one-way", "full")


@dataclass(frozen=True, eq=False)
class Counts:
    """The outcome of independent trials of an audit.

    Attributes
    ----------
    v, r : how many guesses were right, and how many were taken, one entry per trial.
    n : the number of elements, or of rounds of a classic audit.
    game : what was played.
    """

    v: NDArray[np.int64]
    r: NDArray[np.int64]
    n: int
    game: str

    @property
    def trials(self) -> int:
        """The number of trials."""
        return len(self.v)

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """v / r for each trial; nan where no guess was taken."""
        with np.errstate(invalid="ignore"):
            return self.v / self.r


# --------------------------------------------------------------------------- played at random


def one_run(
    mechanism: Mechanism, guesser: Guesser, n: int, *, trials: int = 1, seed: int
) -> Counts:
    """One-run auditing (Algorithm 1): n coins, one run, guesses from the output alone.

    Examples
    --------
    >>> from oralib import LocalRandomizedResponse, ThresholdGuesser, one_run
    >>> counts = one_run(LocalRandomizedResponse(1.0), ThresholdGuesser(), 1000, seed=1)
    >>> int(counts.r[0])
    1000
    """
    _check_players(mechanism, guesser, n)
    n = mechanism.check_size(n)

    def block(size: int, rng: Generator) -> tuple[Signs, Signs]:
        signs = _coins(rng, size, n)
        loss = mechanism.privacy_loss(mechanism.run(signs, rng), n)
        return _score(guesser.guess(loss), signs)

    return _counts("one-run", block, n, trials, seed, mechanism, guesser)


def classic(
    mechanism: Mechanism,
    guesser: Guesser,
    rounds: int,
    *,
    base: ArrayLike = (-1,),
    index: int = 0,
    trials: int = 1,
    seed: int,
) -> Counts:
    """Classic auditing (Algorithm 2): one coin and one run a round, all other elements fixed.

    Parameters
    ----------
    rounds : how many runs, each with one potential guess.
    base : the dataset around the coin, which replaces its element at ``index``.
    """
    rounds = _check.integer("rounds", rounds, 1)
    base = np.array(_check.integers("base", base, -1, 1), dtype=np.int8)
    if base.ndim != 1 or not base.all():
        raise ValueError(f"base must be a vector of signs -1 and 1, got base={base.tolist()}")
    _check_players(mechanism, guesser, rounds)
    try:
        mechanism.check_size(len(base))
    except ValueError as error:
        raise ValueError(f"base has a length that {mechanism!r} cannot take: {error}") from None
    index = _check.integer("index", index, 0, len(base) - 1)

    def block(size: int, rng: Generator) -> tuple[Signs, Signs]:
        signs = _coins(rng, size, rounds)
        datasets = np.tile(base, (size, rounds, 1))
        datasets[..., index] = signs
        output = mechanism.run(datasets, rng)
        return _score(guesser.guess(mechanism.conditional_loss(output, datasets, index)), signs)

    return _counts(
        "classic", block, rounds, trials, seed, mechanism, guesser, base.tobytes(), index
    )


def adaptive(
    mechanism: Mechanism,
    guesser: ThresholdGuesser,
    n: int,
    *,
    feedback: str = "one-way",
    trials: int = 1,
    seed: int,
) -> Counts:
    """Adaptive one-run auditing: elements are guessed in order, and signs are revealed on the way.

    Parameters
    ----------
    guesser : decides on each element by itself, from its loss given the signs revealed so far.
    feedback : ``"one-way"`` reveals the signs of abstained elements only, which keeps the bounds
        valid; ``"full"`` reveals every sign, as in the paper's Definition of AORA, and then the
        number of guesses may depend on earlier successes, which the bounds do not cover.
    """
    _check_players(mechanism, guesser, n)
    n = mechanism.check_size(n)
    _check.one_of("feedback", feedback, FEEDBACK)
    _check_decides_alone(guesser)

    def block(size: int, rng: Generator) -> tuple[Signs, Signs]:
        signs = _coins(rng, size, n)
        output = mechanism.run(signs, rng)
        known, guesses = np.zeros_like(signs), np.zeros_like(signs)
        for i in range(n):
            guesses[:, i] = guesser.guess(mechanism.conditional_loss(output, known, i))
            known[:, i] = _revealed(signs[:, i], guesses[:, i], feedback)
        return _score(guesses, signs)

    return _counts(f"adaptive, {feedback} feedback", block, n, trials, seed, mechanism, guesser)


def full_knowledge(
    mechanism: Mechanism, guesser: Guesser, n: int, *, trials: int = 1, seed: int
) -> Counts:
    """Full-knowledge auditing: each element is guessed knowing all others. Not a valid audit."""
    _check_players(mechanism, guesser, n)
    n = mechanism.check_size(n)

    def block(size: int, rng: Generator) -> tuple[Signs, Signs]:
        signs = _coins(rng, size, n)
        output = mechanism.run(signs, rng)
        loss = [mechanism.conditional_loss(output, signs, i) for i in range(n)]
        return _score(guesser.guess(np.stack(loss, axis=-1)), signs)

    return _counts("full-knowledge", block, n, trials, seed, mechanism, guesser)


def _counts(game: str, block: Any, n: int, trials: int, seed: int, *key: object) -> Counts:
    # A block of trials holds a few arrays with an entry for each element: keep it small.
    largest = max(1, min(BLOCK, 2**21 // n))

    def whole_block(size: int, rng: Generator) -> Any:
        # Always as many as fit, so that the first trials do not depend on how many are asked for.
        v, r = block(largest, rng)
        return v[:size], r[:size]

    v, r = play(whole_block, trials, seed, game, n, *key, largest=largest)
    return Counts(v, r, n, game)


def _coins(rng: Generator, *shape: int) -> Signs:
    return np.where(rng.random(shape) < 0.5, np.int8(-1), np.int8(1))


def _score(guesses: Signs, signs: Signs) -> tuple[Any, Any]:
    """(v, r): right and taken guesses along the last axis."""
    if (np.abs(guesses) > 1).any():
        raise ValueError("guesser must guess -1, 0 or 1, got another value from it")
    return (guesses == signs).sum(axis=-1), (guesses != 0).sum(axis=-1)


def _revealed(signs: Any, guesses: Any, feedback: str) -> Any:
    return signs if feedback == "full" else np.where(guesses == 0, signs, 0)


def _check_players(mechanism: Mechanism, guesser: Guesser, most: int) -> None:
    """The two must be able to play for at most so many guesses."""
    _check.instance("mechanism", mechanism, Mechanism, "Count()")
    if not hasattr(guesser, "guess") or isinstance(guesser, type):
        raise TypeError(f"guesser must be like TopGuesser(10), got guesser={guesser!r}")
    if isinstance(guesser, TopGuesser):
        _check.integer("k", guesser.k, 1, max(1, _check.integer("n", most, 1)))


def _check_decides_alone(guesser: object) -> None:
    if not isinstance(guesser, ThresholdGuesser):
        raise TypeError(
            "guesser must be a ThresholdGuesser, which decides on each element by itself, "
            f"got {guesser!r}"
        )


# ----------------------------------------------------------------------------------- exactly


def one_run_law(channel: Channel, guesser: Guesser) -> NDArray[np.float64]:
    """The exact law of (V, R) of one-run auditing.

    Examples
    --------
    >>> from oralib import Count, ThresholdGuesser, channel, one_run_law
    >>> law = one_run_law(channel(Count(), 2), ThresholdGuesser(float("inf")))
    >>> float(law[2, 2]), float(law[0, 0])
    (0.5, 0.5)
    """
    _check.instance("channel", channel, Channel, "channel(Count(), 4)")
    guesses = guesser.guess(channel.privacy_loss)
    return _law(channel, guesses[:, None, :])


def adaptive_law(
    channel: Channel, guesser: ThresholdGuesser, *, feedback: str = "one-way"
) -> NDArray[np.float64]:
    """The exact law of (V, R) of adaptive one-run auditing."""
    _check.instance("channel", channel, Channel, "channel(Count(), 4)")
    _check.one_of("feedback", feedback, FEEDBACK)
    _check_decides_alone(guesser)
    guesses = np.zeros((*channel.table.shape, channel.n), dtype=np.int8)
    for o, s in np.argwhere(channel.table > 0):
        known = np.zeros(channel.n, dtype=np.int8)
        for i in range(channel.n):
            loss = np.asarray(channel.conditional_loss(o, known, i))
            guesses[o, s, i] = guesser.guess(loss)
            known[i] = _revealed(channel.signs[s, i], guesses[o, s, i], feedback)
    return _law(channel, guesses)


def full_knowledge_law(channel: Channel, guesser: Guesser) -> NDArray[np.float64]:
    """The exact law of (V, R) of full-knowledge auditing."""
    _check.instance("channel", channel, Channel, "channel(Count(), 4)")
    return _law(channel, guesser.guess(channel.full_knowledge_loss))


def _law(channel: Channel, guesses: NDArray[np.int8]) -> NDArray[np.float64]:
    """Add up P[o, s] over the counts that ``guesses`` (outputs x datasets x n) lead to."""
    v, r = _score(guesses, channel.signs)
    law = np.zeros((channel.n + 1, channel.n + 1))
    probability = channel.table / channel.table.shape[1]
    np.add.at(law, tuple(np.broadcast_arrays(v, r)), probability)
    return law

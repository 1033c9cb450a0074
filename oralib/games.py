"""The audits as games: a mechanism plays against a guesser, and the counts (v, r) come out.

A game is played at random, or its exact law P[V = v, R = r] follows from a table.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from oralib.bounds import Counts
from oralib.channels import Channel
from oralib.ground import arguments
from oralib.ground.rounding import log_ratio, snap
from oralib.ground.streams import BLOCK, play
from oralib.ground.types import PLAYED, Feedback
from oralib.guessers import Guesser, ThresholdGuesser, TopGuesser, fixed_number
from oralib.mechanisms import Mechanism, Signs

__all__ = ["adaptive", "adaptive_law", "classic", "one_run", "one_run_law"]

#: The example in the error for a guesser that cannot play an adaptive audit.
_THRESHOLD = "ThresholdGuesser(1.0), which decides on each element by itself"


def one_run(
    mechanism: Mechanism, guesser: Guesser, n: int, *, trials: int = 1, seed: int
) -> Counts:
    """Play one-run auditing (Algorithm 1): n coins, one run, guesses from the output alone.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism that is audited.
    guesser : Guesser
        The guesser that plays against it.
    n : int
        The number of elements.
    trials : int
        The number of independent audits to play.
    seed : int
        The seed of their random numbers.

    Examples
    --------
    >>> from oralib import LocalRandomizedResponse, ThresholdGuesser, one_run
    >>> counts = one_run(LocalRandomizedResponse(1.0), ThresholdGuesser(), 1000, seed=1)
    >>> int(counts.r[0])
    1000
    """
    check_players(mechanism, guesser, n)
    n = mechanism.check_size(n)

    def guess(signs: Signs, rng: Generator) -> Signs:
        return guesses_at(guesser, mechanism.privacy_loss(mechanism.run(signs, rng), n), signs)

    return play_game("one-run", guess, n, trials, seed, mechanism, guesser)


def classic(
    mechanism: Mechanism,
    guesser: Guesser,
    rounds: int,
    *,
    base: ArrayLike = (-1,),
    trials: int = 1,
    seed: int,
) -> Counts:
    """Play classic auditing (Algorithm 2): a coin and a run per round, all other elements fixed.

    Parameters
    ----------
    mechanism, guesser, trials, seed
        As in :func:`one_run`.
    rounds : int
        The number of runs, each with one potential guess.
    base : array
        A dataset of signs; in each round the coin replaces the first of them.

    Examples
    --------
    >>> from oralib import LocalRandomizedResponse, ThresholdGuesser
    >>> counts = classic(LocalRandomizedResponse(1.0), ThresholdGuesser(), 1000, seed=1)
    >>> int(counts.r[0]), counts.game
    (1000, 'classic')
    """
    rounds = arguments.integer("rounds", rounds, 1)
    base = check_base(base)
    check_players(mechanism, guesser, rounds)
    try:
        mechanism.check_size(len(base))
    except ValueError as error:
        raise ValueError(f"base has a length that {mechanism!r} cannot take: {error}") from None

    def guess(signs: Signs, rng: Generator) -> Signs:
        datasets = np.tile(base, (*signs.shape, 1))
        datasets[..., 0] = signs
        output = mechanism.run(arguments.read_only(datasets), rng)
        return guesses_at(guesser, mechanism.conditional_loss(output, datasets, 0), signs)

    # The 0 is the place of the coin: it belongs to the name of the random stream.
    key = (base.tobytes(), 0)
    return play_game("classic", guess, rounds, trials, seed, mechanism, guesser, *key)


def adaptive(
    mechanism: Mechanism,
    guesser: ThresholdGuesser,
    n: int,
    *,
    feedback: Feedback = "one-way",
    guesses: int | None = None,
    trials: int = 1,
    seed: int,
) -> Counts:
    """Play adaptive one-run auditing: elements are guessed in order, signs revealed on the way.

    Parameters
    ----------
    mechanism, n, trials, seed
        As in :func:`one_run`.
    guesser : ThresholdGuesser
        Decides on each element by itself, from its loss given the signs revealed so far.
    feedback : str
        ``"one-way"`` reveals the signs of skipped elements only, which keeps the bounds valid;
        ``"full"`` reveals every sign, as the paper's AORA does. Then the number of guesses may
        depend on earlier successes, and ε'(v, r) is not a bound.
    guesses : int or None
        A number of guesses fixed in advance. Guessing ends there, and guesses that were not made
        count as wrong, so with full feedback the bounds for the feedback ``"list"`` are valid.

    Examples
    --------
    >>> from oralib import Xor, ThresholdGuesser
    >>> counts = adaptive(Xor(), ThresholdGuesser(float("inf")), 10, trials=5, seed=1)
    >>> counts.v.tolist()
    [1, 1, 1, 1, 1]
    """
    check_players(mechanism, guesser, n)
    n = mechanism.check_size(n)
    arguments.one_of("feedback", feedback, PLAYED[1:])
    arguments.instance("guesser", guesser, ThresholdGuesser, _THRESHOLD)
    limit = check_number(guesses, n)
    reveals_all = feedback == "full"

    def guess(signs: Signs, rng: Generator) -> Signs:
        """Go through the elements: weigh one, guess it or abstain, and reveal its sign or not."""
        output = mechanism.run(signs, rng)
        revealed = np.zeros_like(signs)
        guessed = np.zeros_like(signs)
        for i in range(n):
            loss = mechanism.conditional_loss(output, revealed, i)
            may_guess = np.count_nonzero(guessed, axis=1) < limit
            guessed[:, i] = np.where(may_guess, guesses_at(guesser, loss, signs[:, i]), 0)
            revealed[:, i] = np.where((guessed[:, i] == 0) | reveals_all, signs[:, i], 0)
        return guessed

    game = adaptive_game(feedback, guesses)
    if guesses is None:
        return play_game(game, guess, n, trials, seed, mechanism, guesser, feedback=feedback)
    # The number of guesses is also part of the name of the random stream.
    key = (limit,)
    return play_game(
        game, guess, n, trials, seed, mechanism, guesser, *key, feedback=feedback, number=limit
    )


def check_number(guesses: int | None, n: int) -> int:
    """Return the largest number of guesses that an adaptive audit of n elements may take."""
    return n if guesses is None else arguments.integer("guesses", guesses, 1, n)


def adaptive_game(feedback: Feedback, guesses: int | None) -> str:
    """Return the name of an adaptive audit."""
    budget = "" if guesses is None else ", fixed budget"
    return f"adaptive, {feedback} feedback{budget}"


def play_game(
    game: str,
    guess: Callable[[Signs, Generator], Signs],
    n: int,
    trials: int,
    seed: int,
    mechanism: Mechanism,
    guesser: Guesser,
    *key: object,
    feedback: Feedback = "none",
    number: int | None = None,
) -> Counts:
    """Play a game for many trials, in blocks.

    ``guess(signs, rng)`` runs the mechanism on the signs of n coins for each trial of a block, and
    returns a guess of each sign, 0 where it abstains. The game, its players and the rest of the key
    name the random stream.
    """
    fixed = fixed_number(guesser, n) if number is None else number
    # Trials of a block, which holds a few arrays with an entry for each element and trial.
    largest = max(1, min(BLOCK, 2**21 // n))

    def block(size: int, rng: Generator) -> tuple[Any, Any]:
        # A block plays the largest number of trials in any case, so that the first trials do not
        # depend on the number of trials that are requested.
        signs = np.where(rng.random((largest, n)) < 0.5, np.int8(-1), np.int8(1))
        # A mechanism must not change the signs by which guesses are judged.
        arguments.read_only(signs)
        guesses = guess(signs, rng)[:size]
        v = (guesses == signs[:size]).sum(axis=1)
        r = np.count_nonzero(guesses, axis=1)
        return v, r if number is None else np.full_like(r, number)

    # Players that keep their own working array or random numbers cannot use several threads.
    single_thread = not all(type(x).__module__.startswith("oralib.") for x in (mechanism, guesser))
    name = (game, n, mechanism, guesser, *key)
    v, r = play(block, trials, seed, *name, largest=largest, single_thread=single_thread)
    if fixed is not None and (r != fixed).any():
        raise ValueError(
            f"guesser must take the {fixed} guesses that its fixed_number promises, "
            f"got {r[r != fixed][0]} from {guesser!r}"
        )
    if feedback == "full" and fixed is not None:
        feedback = "list"  # the elements come in a fixed order
    return Counts(v, r, n, game, r_fixed=fixed is not None, feedback=feedback)


def guesses_at(guesser: Guesser, loss: Any, signs: Any = None) -> Signs:
    """Return the guesses at these losses, one for each sign: signs, or 0 for no guess."""
    loss = np.asarray(loss)
    if signs is not None and (loss.shape != signs.shape or loss.dtype.kind not in "iuf"):
        raise ValueError(
            "mechanism must give a loss for each element of each trial, numbers of shape "
            f"{signs.shape}, got {loss.dtype} of shape {loss.shape}"
        )
    guesses = np.asarray(guesser.guess(loss))
    if guesses.shape != loss.shape:
        raise ValueError(
            "guesser must make a guess, or none, for each loss, "
            f"got shape {guesses.shape} for losses of shape {loss.shape}"
        )
    if guesses.dtype == bool:  # is False no guess, or a guess of -1?
        raise ValueError("guesser must guess -1, 0 or 1, got True or False")
    if not ((guesses == 0) | (np.abs(guesses) == 1)).all():
        raise ValueError("guesser must guess -1, 0 or 1, got another value from it")
    return guesses


def check_players(mechanism: Mechanism, guesser: Guesser, n: int) -> None:
    """Check that the two can play a game of n coins."""
    arguments.instance("mechanism", mechanism, Mechanism, "Count()")
    arguments.instance("guesser", guesser, Guesser, "TopGuesser(10)")
    n = arguments.integer("n", n, 1)  # a user's own mechanism need not check it
    if isinstance(guesser, TopGuesser):
        arguments.integer("k", guesser.k, 1, n)


def check_base(base: ArrayLike) -> Signs:
    """Return the base of a classic audit as signs."""
    signs = np.array(arguments.integers("base", base, -1, 1), dtype=np.int8)
    if signs.ndim != 1 or not signs.size or not signs.all():
        raise ValueError(f"base must be a vector of signs -1 and 1, got base={signs.tolist()}")
    return signs


def one_run_law(channel: Channel, guesser: Guesser) -> NDArray[np.float64]:
    """Return the exact law of (V, R) of one-run auditing: entry [v, r] is P[V = v, R = r].

    Parameters
    ----------
    channel : Channel
        The table of the mechanism.
    guesser : Guesser
        The guesser that plays against it.

    Examples
    --------
    >>> from oralib import Count, ThresholdGuesser, channel
    >>> law = one_run_law(channel(Count(), 2), ThresholdGuesser(float("inf")))
    >>> float(law[2, 2]), float(law[0, 0])
    (0.5, 0.5)
    """
    arguments.instance("channel", channel, Channel, "channel(Count(), 4)")
    arguments.instance("guesser", guesser, Guesser, "TopGuesser(10)")
    return law_of_guesses(channel, guesses_at(guesser, channel.privacy_loss)[:, None, :])


def adaptive_law(
    channel: Channel,
    guesser: ThresholdGuesser,
    *,
    feedback: Feedback = "one-way",
    guesses: int | None = None,
) -> NDArray[np.float64]:
    """Return the exact law of (V, R) of adaptive one-run auditing.

    The parameters are those of :func:`adaptive`.

    Parameters
    ----------
    channel : Channel
        The table of the mechanism.
    guesser, feedback, guesses
        As in :func:`adaptive`.

    Examples
    --------
    >>> from oralib import Xor, ThresholdGuesser, channel
    >>> float(adaptive_law(channel(Xor(), 3), ThresholdGuesser(float("inf")))[1, 1])
    1.0
    """
    arguments.instance("channel", channel, Channel, "channel(Count(), 4)")
    arguments.one_of("feedback", feedback, PLAYED[1:])
    arguments.instance("guesser", guesser, ThresholdGuesser, _THRESHOLD)
    n = channel.n
    limit = check_number(guesses, n)
    guessed = np.zeros((*channel.table.shape, n), dtype=np.int8)
    # For each output and dataset, the elements whose signs are revealed, as the bits of a number.
    revealed = np.zeros(channel.table.shape, dtype=np.int64)
    for i in range(n):
        loss = np.empty(revealed.shape)
        for bits in np.unique(revealed).tolist():
            hidden_axes = tuple(j + 1 for j in range(n) if j != i and not bits >> j & 1)
            cube = channel.cube.sum(axis=hidden_axes, keepdims=True)
            minus, plus = np.split(cube, 2, axis=i + 1)
            ratio = np.broadcast_to(log_ratio(minus, plus), channel.cube.shape)
            loss = np.where(revealed == bits, ratio.reshape(loss.shape), loss)
        may_guess = np.count_nonzero(guessed, axis=2) < limit
        guessed[:, :, i] = np.where(may_guess, guesses_at(guesser, loss), 0)
        reveals = (guessed[:, :, i] == 0) | (feedback == "full")
        revealed |= reveals.astype(np.int64) << i
    law = law_of_guesses(channel, guessed)
    if guesses is not None:
        # Guesses that were not made count as wrong.
        law[:, limit] = law.sum(axis=1)
        law[:, :limit] = 0.0
    return law


def law_of_guesses(channel: Channel, guesses: NDArray[np.int8]) -> NDArray[np.float64]:
    """Return the law of the counts that ``guesses`` (outputs x datasets x n) lead to."""
    v = (guesses == channel.signs).sum(axis=-1)
    r = np.count_nonzero(guesses, axis=-1)
    law = np.zeros((channel.n + 1, channel.n + 1))
    probability = channel.table / channel.table.shape[1]
    np.add.at(law, tuple(np.broadcast_arrays(v, r)), probability)
    return snap(law)

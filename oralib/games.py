"""The audits as games: a mechanism plays against a guesser, and the counts (v, r) come out.

Each game exists twice: played at random for many trials, and as the exact law of (V, R) that
follows from a table. A law is an array whose entry [v, r] is P[V = v, R = r].
"""

from functools import cache
from typing import Any

import numpy as np
import scipy
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from oralib import _check, _special
from oralib._rounding import log_ratio, settled
from oralib._streams import BLOCK, play
from oralib.bounds import Counts, p
from oralib.channel import Channel
from oralib.guessers import Guesser, ThresholdGuesser, TopGuesser, fixed_number
from oralib.mechanisms import Mechanism, Signs

__all__ = [
    "adaptive",
    "adaptive_law",
    "best_mean",
    "classic",
    "classic_law",
    "full_knowledge",
    "full_knowledge_law",
    "one_run",
    "one_run_law",
    "stop_or_oppose_law",
]

#: What an adaptive guesser is told after each element: the sign of those it abstained from
#: (``"one-way"``), or of all (``"full"``, the paper's protocol).
FEEDBACK = ("one-way", "full")


# --------------------------------------------------------------------------- played at random


def one_run(
    mechanism: Mechanism, guesser: Guesser, n: int, *, trials: int = 1, seed: int
) -> Counts:
    """One-run auditing (Algorithm 1): n coins, one run, guesses from the output alone.

    Each of the n signs is a fair coin, the mechanism runs once on all of them, and the guesser gets
    nothing but the privacy losses of its output. V of the R guesses that it takes are right.

    Parameters
    ----------
    mechanism, guesser : who plays.
    n : the number of elements.
    trials, seed : how many independent audits, and with which random numbers.

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
        loss = _losses(mechanism.privacy_loss(mechanism.run(_view(signs), rng), n), signs)
        return _score(_guesses(guesser, loss), signs)

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

    The rounds are independent, so that V ~ Bin(R, q) given R, with q at most p(ε).

    Parameters
    ----------
    rounds : how many runs, each with one potential guess.
    base : the dataset around the coin, which replaces its element at ``index``.

    Examples
    --------
    >>> from oralib import LocalRandomizedResponse, ThresholdGuesser
    >>> counts = classic(LocalRandomizedResponse(1.0), ThresholdGuesser(), 1000, seed=1)
    >>> int(counts.r[0]), counts.game
    (1000, 'classic')
    """
    rounds = _check.integer("rounds", rounds, 1)
    base = _check_base(base)
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
        output = mechanism.run(_view(datasets), rng)
        loss = _losses(mechanism.conditional_loss(output, _view(datasets), index), signs)
        return _score(_guesses(guesser, loss), signs)

    return _counts(
        "classic", block, rounds, trials, seed, mechanism, guesser, base.tobytes(), index
    )


def adaptive(
    mechanism: Mechanism,
    guesser: ThresholdGuesser,
    n: int,
    *,
    feedback: str = "one-way",
    budget: int | None = None,
    trials: int = 1,
    seed: int,
) -> Counts:
    """Adaptive one-run auditing: elements are guessed in order, and signs are revealed on the way.

    Parameters
    ----------
    guesser : decides on each element by itself, from its loss given the signs revealed so far.
    feedback : ``"one-way"`` reveals the signs of abstained elements only, which keeps the bounds
        valid; ``"full"`` reveals every sign, as in the paper's definition of AORA, and then the
        number of guesses may depend on earlier successes, which the plain bound does not cover:
        the counts are ``unsafe``, and :func:`oralib.valid_lower_bound` takes another one.
    budget : a number of guesses fixed in advance. Guessing ends there, guesses that were not
        taken count as wrong, and r is the budget, which makes the bounds valid again: as the order
        is settled, the feedback of the counts is that about a ``"list"``.

    Examples
    --------
    >>> from oralib import Xor, ThresholdGuesser
    >>> counts = adaptive(Xor(), ThresholdGuesser(float("inf")), 10, trials=5, seed=1)
    >>> counts.v.tolist(), counts.unsafe
    ([1, 1, 1, 1, 1], False)
    """
    _check_players(mechanism, guesser, n)
    n = mechanism.check_size(n)
    _check.one_of("feedback", feedback, FEEDBACK)
    _check_decides_alone(guesser)
    most = check_budget(budget, n)

    def block(size: int, rng: Generator) -> tuple[Signs, Signs]:
        signs = _coins(rng, size, n)
        output = mechanism.run(_view(signs), rng)
        known, guesses = np.zeros_like(signs), np.zeros_like(signs)
        for i in range(n):
            loss = _losses(mechanism.conditional_loss(output, _view(known), i), signs[:, i])
            guess = _guesses(guesser, loss)
            guesses[:, i] = np.where((guesses != 0).sum(axis=1) < most, guess, 0)
            known[:, i] = _revealed(signs[:, i], guesses[:, i], feedback)
        v, r = _score(guesses, signs)
        return v, r if budget is None else np.full_like(r, most)

    key = () if budget is None else (most,)
    game = adaptive_game(feedback, budget)
    return _counts(
        *(game, block, n, trials, seed, mechanism, guesser, *key),
        feedback=feedback,
        budget=None if budget is None else most,
    )


def check_budget(budget: int | None, n: int) -> int:
    """The most guesses that an adaptive audit of n elements may take."""
    return n if budget is None else _check.integer("budget", budget, 1, n)


def adaptive_game(feedback: str, budget: int | None) -> str:
    """What an adaptive audit is called."""
    return f"adaptive, {feedback} feedback" + ("" if budget is None else ", fixed budget")


def in_order(feedback: str, r_fixed: bool) -> str:
    """The feedback of the counts of a game whose elements come in a settled order."""
    return "list" if feedback == "full" and r_fixed else feedback


def full_knowledge(
    mechanism: Mechanism, guesser: Guesser, n: int, *, trials: int = 1, seed: int
) -> Counts:
    """Full-knowledge auditing: each element is guessed knowing all others. Not a valid audit.

    Element i is guessed from ln P[o | s, s_i = -1] - ln P[o | s, s_i = 1] with all other signs
    known. As each sign is also used to guess the others, no bound above 0 is valid for its counts,
    for β below 1/2.

    Examples
    --------
    >>> from oralib import Xor, ThresholdGuesser
    >>> full_knowledge(Xor(), ThresholdGuesser(), 10, seed=1).accuracy.tolist()
    [1.0]
    """
    _check_players(mechanism, guesser, n)
    n = mechanism.check_size(n)

    def block(size: int, rng: Generator) -> tuple[Signs, Signs]:
        signs = _coins(rng, size, n)
        output = mechanism.run(_view(signs), rng)
        loss = [mechanism.conditional_loss(output, _view(signs), i) for i in range(n)]
        return _score(_guesses(guesser, _losses(np.stack(loss, axis=-1), signs)), signs)

    play = ("full-knowledge", block, n, trials, seed, mechanism, guesser)
    return _counts(*play, feedback="all others")


def _counts(
    game: str,
    block: Any,
    n: int,
    trials: int,
    seed: int,
    mechanism: Mechanism,
    guesser: Guesser,
    *key: object,
    feedback: str = "none",
    budget: int | None = None,
) -> Counts:
    n = _check.integer("n", n, 1)  # a mechanism of one's own need not have checked it
    # Known before anything is played: the counts themselves could not tell.
    r = fixed_number(guesser, n) if budget is None else budget
    # A block of trials holds a few arrays with an entry for each element: keep it small.
    largest = max(1, min(BLOCK, 2**21 // n))

    def whole_block(size: int, rng: Generator) -> Any:
        # Always as many as fit, so that the first trials do not depend on how many are asked for.
        v, r = block(largest, rng)
        return v[:size], r[:size]

    # What keeps a working array, or random numbers, of its own cannot play in several threads.
    alone = not all(type(x).__module__.startswith("oralib.") for x in (mechanism, guesser))
    named = (game, n, mechanism, guesser, *key)
    v, taken = play(whole_block, trials, seed, *named, largest=largest, alone=alone)
    if r is not None and (taken != r).any():
        raise ValueError(
            f"guesser must take the {r} guesses that its fixed_number promises, "
            f"got {taken[taken != r][0]} from {guesser!r}"
        )
    return Counts(v, taken, n, game, r is not None, in_order(feedback, r is not None))


def _coins(rng: Generator, *shape: int) -> Signs:
    return np.where(rng.random(shape) < 0.5, np.int8(-1), np.int8(1))


def _view(signs: Signs) -> Signs:
    """The same signs for a mechanism, which must not change those by which guesses are judged."""
    view = signs.view()
    view.flags.writeable = False
    return view


def _losses(loss: Any, signs: Signs) -> NDArray[np.float64]:
    """What a mechanism says of its output, a loss for each sign."""
    if np.ma.is_masked(loss):
        raise ValueError("mechanism must give a loss for each element, got masked entries")
    array = np.asarray(loss)
    if array.shape != signs.shape or array.dtype.kind not in "iuf":
        raise ValueError(
            "mechanism must give a loss for each element of each trial, numbers of shape "
            f"{signs.shape}, got {array.dtype} of shape {array.shape}"
        )
    return array


def _guesses(guesser: Guesser, loss: NDArray[np.float64]) -> Signs:
    """What is guessed at these losses: signs, or 0 for no guess."""
    given = guesser.guess(loss)
    if np.ma.is_masked(given):
        raise ValueError("guesser must guess -1, 0 or 1, got masked entries from it; 0 is no guess")
    guesses = np.asarray(given)
    if guesses.shape != loss.shape:
        raise ValueError(
            "guesser must make a guess, or none, for each loss, "
            f"got shape {guesses.shape} for losses of shape {loss.shape}"
        )
    good = guesses.dtype.kind in "iuf" and ((guesses == 0) | (np.abs(guesses) == 1)).all()
    if not good:  # truth values too: is False no guess, or a guess at -1?
        raise ValueError(
            "guesser must guess -1, 0 or 1, got "
            + ("True or False" if guesses.dtype == bool else "another value from it")
        )
    return guesses


def _score(guesses: Signs, signs: Signs) -> tuple[Any, Any]:
    """(v, r): right and taken guesses along the last axis."""
    return (guesses == signs).sum(axis=-1), (guesses != 0).sum(axis=-1)


def _revealed(signs: Any, guesses: Any, feedback: str) -> Any:
    return signs if feedback == "full" else np.where(guesses == 0, signs, 0)


def _check_players(mechanism: Mechanism, guesser: Guesser, most: int) -> None:
    """The two must be able to play for at most so many guesses."""
    _check.instance("mechanism", mechanism, Mechanism, "Count()")
    _check_guesser(guesser)
    if isinstance(guesser, TopGuesser):
        _check.integer("k", guesser.k, 1, max(1, _check.integer("n", most, 1)))


def _check_guesser(guesser: Guesser) -> None:
    if not hasattr(guesser, "guess") or isinstance(guesser, type):
        raise TypeError(f"guesser must be like TopGuesser(10), got guesser={guesser!r}")


def _check_base(base: ArrayLike) -> Signs:
    signs = np.array(_check.integers("base", base, -1, 1), dtype=np.int8)
    if signs.ndim != 1 or not signs.all():
        raise ValueError(f"base must be a vector of signs -1 and 1, got base={signs.tolist()}")
    return signs


def _check_decides_alone(guesser: object) -> None:
    if not isinstance(guesser, ThresholdGuesser):
        raise TypeError(
            "guesser must be a ThresholdGuesser, which decides on each element by itself, "
            f"got {guesser!r}"
        )


# ----------------------------------------------------------------------------------- exactly


def one_run_law(channel: Channel, guesser: Guesser) -> NDArray[np.float64]:
    """The exact law of (V, R) of one-run auditing.

    Entry [v, r] is P[V = v, R = r], shape (n + 1, n + 1), summed over all coins and outputs.

    Examples
    --------
    >>> from oralib import Count, ThresholdGuesser, channel, one_run_law
    >>> law = one_run_law(channel(Count(), 2), ThresholdGuesser(float("inf")))
    >>> float(law[2, 2]), float(law[0, 0])
    (0.5, 0.5)
    """
    _check.instance("channel", channel, Channel, "channel(Count(), 4)")
    _check_guesser(guesser)
    guesses = _guesses(guesser, channel.privacy_loss)
    return _law(channel, guesses[:, None, :])


def adaptive_law(
    channel: Channel,
    guesser: ThresholdGuesser,
    *,
    feedback: str = "one-way",
    budget: int | None = None,
) -> NDArray[np.float64]:
    """The exact law of (V, R) of adaptive one-run auditing; parameters as in :func:`adaptive`.

    Entry [v, r] is P[V = v, R = r].

    Examples
    --------
    >>> from oralib import Xor, ThresholdGuesser, channel
    >>> float(adaptive_law(channel(Xor(), 3), ThresholdGuesser(float("inf")))[1, 1])
    1.0
    """
    _check.instance("channel", channel, Channel, "channel(Count(), 4)")
    _check.one_of("feedback", feedback, FEEDBACK)
    _check_decides_alone(guesser)
    most, n = check_budget(budget, channel.n), channel.n
    cube = channel.table.reshape(-1, *[2] * n)
    guesses = np.zeros((*channel.table.shape, n), dtype=np.int8)
    told = np.zeros(channel.table.shape, dtype=np.int64)  # as bits: whose signs are revealed
    for i in range(n):
        loss = np.empty(channel.table.shape)
        for known in np.unique(told).tolist():
            hidden = tuple(j + 1 for j in range(n) if j != i and not known >> j & 1)
            minus, plus = np.split(cube.sum(axis=hidden, keepdims=True), 2, axis=i + 1)
            given = np.broadcast_to(log_ratio(minus, plus), cube.shape)
            loss = np.where(told == known, given.reshape(loss.shape), loss)
        taken = np.count_nonzero(guesses, axis=2)
        guesses[:, :, i] = np.where(taken < most, _guesses(guesser, loss), 0)
        told |= (_revealed(channel.signs[:, i], guesses[:, :, i], feedback) != 0) << i
    law = _law(channel, guesses)
    if budget is not None:
        law[:, most] = law.sum(axis=1)
        law[:, :most] = 0.0
    return law


def classic_law(
    channel: Channel, guesser: Guesser, rounds: int, *, base: ArrayLike = (-1,), index: int = 0
) -> NDArray[np.float64]:
    """The exact law of (V, R) of classic auditing; parameters as in :func:`classic`.

    The guesser must decide on each round by itself.

    Examples
    --------
    >>> from oralib import LocalRandomizedResponse, ThresholdGuesser, channel, classic_law
    >>> law = classic_law(channel(LocalRandomizedResponse(0.0), 1), ThresholdGuesser(), 2)
    >>> law[:, 2].round(2).tolist()
    [0.25, 0.5, 0.25]
    """
    _check.instance("channel", channel, Channel, "channel(Count(), 4)")
    _check_decides_alone(guesser)
    rounds = _check.integer("rounds", rounds, 1, 200)
    base = _check_base(base)
    if len(base) != channel.n:
        raise ValueError(f"base must have {channel.n} signs, got {len(base)}")
    index = _check.integer("index", index, 0, channel.n - 1)
    given = np.zeros((2, len(channel.table)))
    for place, sign in enumerate((-1, 1)):
        dataset = np.where(np.arange(channel.n) == index, sign, base)
        given[place] = channel.table[:, (channel.signs == dataset).all(axis=1)][:, 0]
    guesses = _guesses(guesser, log_ratio(*given))
    right = settled((given[0] @ (guesses == -1) + given[1] @ (guesses == 1)) / 2)
    taken = settled((given @ (guesses != 0)).mean())
    v, r = np.indices((rounds + 1, rounds + 1))
    number = _special.binomial_pmf(np.arange(rounds + 1), rounds, taken)
    return settled(number * _special.binomial_pmf(v, r, right / taken if taken else 0.0))


def full_knowledge_law(channel: Channel, guesser: Guesser) -> NDArray[np.float64]:
    """The exact law of (V, R) of full-knowledge auditing.

    Entry [v, r] is P[V = v, R = r].

    Examples
    --------
    >>> from oralib import Xor, ThresholdGuesser, channel
    >>> float(full_knowledge_law(channel(Xor(), 3), ThresholdGuesser())[3, 3])
    1.0
    """
    _check.instance("channel", channel, Channel, "channel(Count(), 4)")
    _check_guesser(guesser)
    return _law(channel, _guesses(guesser, channel.full_knowledge_loss))


def best_mean(channel: Channel, value: ArrayLike, *, feedback: str = "none") -> float:
    """The largest mean of value[V, R] of all guessers: every strategy there is, not only some rule.

    With feedback the guesser may take the elements in any order, and decide on each from all that
    it knows. Dynamic programming over everything it can know: for tables of at most 5 elements.

    Parameters
    ----------
    value : entry [v, r] is what v right of r taken guesses are worth, shape (n + 1, n + 1).
    feedback : ``"none"`` (plain one-run auditing), ``"one-way"`` or ``"full"``.

    Examples
    --------
    The best guesser of the exclusive or of two bits is right once, if it may see the other bit.

    >>> from oralib import Xor, best_mean, channel
    >>> right_alone = [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    >>> [best_mean(channel(Xor(), 2), right_alone, feedback=f) for f in ("none", "one-way")]
    [0.5, 1.0]
    """
    _check.instance("channel", channel, Channel, "channel(Count(), 4)")
    _check.one_of("feedback", feedback, ("none", *FEEDBACK))
    n, signs = _check.integer("n", channel.n, 1, 5), channel.signs
    if isinstance(value, np.ndarray) and value.dtype == bool:
        value = value.astype(float)  # truth values count as 0 and 1
    worth = _check.reals("value", value)
    if np.isinf(worth).any():
        raise ValueError("value must be finite, got an infinite entry")
    if worth.shape != (n + 1, n + 1):
        raise ValueError(f"value must have shape {(n + 1, n + 1)}, got shape {worth.shape}")
    joint = channel.table / len(signs)

    # What is known of an element: 0 nothing yet, ±1 its sign, which was revealed, ±2 that it was
    # guessed, 3 that it was passed over without any feedback. A state is worth, for each output,
    # the sum over the datasets that agree with it.
    @cache
    def best(state: tuple[int, ...], v: int, r: int) -> NDArray[np.float64]:
        if 0 not in state:
            entries = np.array(state)
            agrees = ((np.abs(entries) != 1) | (entries == signs)).all(axis=1)
            right = v + (2 * signs == entries).sum(axis=1)
            taken = r + (np.abs(entries) == 2).sum()
            return (joint * agrees) @ worth[right, taken]
        choices = []
        # Without feedback the order does not matter.
        unseen = [i for i, entry in enumerate(state) if entry == 0]
        for i in unseen[:1] if feedback == "none" else unseen:

            def then(entry: int, i: int = i, right: int = v, taken: int = r) -> Any:
                return best((*state[:i], entry, *state[i + 1 :]), right, taken)

            if feedback == "none":
                choices.append(then(3))
            else:
                choices.append(then(-1) + then(1))
            for guess in (-1, 1):
                if feedback == "full":
                    wrong = then(-guess, taken=r + 1)
                    choices.append(then(guess, right=v + 1, taken=r + 1) + wrong)
                else:
                    choices.append(then(2 * guess))
        return np.max(choices, axis=0)

    return float(settled(best((0,) * n, 0, 0).sum()))


def stop_or_oppose_law(epsilon: float, n: int, beta: float = 0.05) -> NDArray[np.float64]:
    """The law of (V, R) of an adaptive audit of randomized response that tosses a private coin.

    On heads it guesses what it sees and abstains for the rest once its bound exceeds ε. On tails
    it guesses the opposite of what it sees, everywhere. So V is stochastically dominated by
    Bin(R, p(ε)), and yet the bound fails too often: Lemma A.7 needs a correction.

    Parameters
    ----------
    epsilon : the level of randomized response.
    n : the number of elements.
    beta : the level of the bound.

    Examples
    --------
    At ε = 0 it stops as soon as five of five guesses are right.

    >>> from oralib.games import stop_or_oppose_law
    >>> float(stop_or_oppose_law(0.0, 6)[5, 5])
    0.015625
    """
    epsilon, n = _check.real("epsilon", epsilon, 0), _check.integer("n", n, 1, 5000)
    beta, success = _check.real("beta", beta, 0, 1, interval="()"), p(epsilon)
    law = np.zeros((n + 1, n + 1))
    law[:, n] = 0.5 * scipy.stats.binom.pmf(np.arange(n + 1), n, 1 - success)
    going = np.zeros(n + 1)  # P[v right so far, and not stopped]
    going[0] = 0.5
    for r in range(1, n + 1):
        going[1:] = going[1:] * (1 - success) + going[:-1] * success
        going[0] *= 1 - success
        v = np.arange(r + 1)
        # The bound exceeds ε where the tail of Bin(r, p(ε)) is below β, by more than rounding.
        ahead = (scipy.stats.binom.sf(v - 1, r, success) < beta * (1 - 1e-9)) | (r == n)
        law[v[ahead], r] += going[: r + 1][ahead]
        going[: r + 1][ahead] = 0.0
    return law


def _law(channel: Channel, guesses: NDArray[np.int8]) -> NDArray[np.float64]:
    """Add up P[o, s] over the counts that ``guesses`` (outputs x datasets x n) lead to."""
    v, r = _score(guesses, channel.signs)
    law = np.zeros((channel.n + 1, channel.n + 1))
    probability = channel.table / channel.table.shape[1]
    np.add.at(law, tuple(np.broadcast_arrays(v, r)), probability)
    return settled(law)

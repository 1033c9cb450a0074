"""All coins at once: canaries that hop meet again, and what one step shows helps in another.

The score of a canary takes its neighbours as strangers: each is in the batch with probability q/2.
But a guesser knows who they were, and other steps say something about their coins. Take a canary's
chance to be included, b, by all that its *other* coordinates have shown: then it is in the batch
with probability q b. With these chances in place of q/2 scores become sharper, and so do the
chances. This is belief propagation on the graph of canaries and coordinates. Its first round has
the scores of :func:`oralib.simulate_hopping`; it is exact where the graph has no cycles, and a
heuristic elsewhere. It is a guesser: whatever it computes, its right guesses can be counted.

No guesser does better on average than one that is told, for each canary, all the *other* coins.
"""

from typing import Any

import numpy as np
import pandas as pd
import scipy
from numpy.random import Generator
from numpy.typing import NDArray

from oralib import _check
from oralib._jit import jit
from oralib._streams import play
from oralib.dpsgd.training import DpSgd
from oralib.mechanisms import Array

Reals = NDArray[np.float64]
#: Rounds of belief propagation, and how much of a message is kept in each.
ROUNDS, KEPT = 30, 0.5


def hop(dpsgd: DpSgd, rng: Generator) -> tuple[NDArray[np.bool_], NDArray[np.int64], Reals]:
    """Coins; who is where, by step and coordinate; and the noisy gradient there.

    >>> coins, places, y = hop(DpSgd(n=6, d=2, steps=3), np.random.default_rng(1))
    >>> coins.shape, places.shape, y.shape
    ((6,), (3, 2, 3), (3, 2))
    """
    coins = rng.random(dpsgd.n) < 0.5
    places = np.array([rng.permutation(dpsgd.n) for _ in range(dpsgd.steps)])
    batch = coins[places] & (rng.random(places.shape) < dpsgd.sample_rate)
    shape = dpsgd.steps, dpsgd.used_coordinates, dpsgd.per_coordinate
    noise = dpsgd.sigma * rng.standard_normal(shape[:2])
    return coins, places.reshape(shape), batch.reshape(shape).sum(axis=2) + noise


def decode(dpsgd: DpSgd, places: NDArray[np.int64], y: Reals, rounds: int = ROUNDS) -> Reals:
    """Log-odds of each coin, by belief propagation.

    >>> dpsgd = DpSgd(n=4, d=2, steps=3, sample_rate=1, sigma=0.1)
    >>> coins, places, y = hop(dpsgd, np.random.default_rng(2))
    >>> ((decode(dpsgd, places, y) > 0) == coins).tolist()
    [True, True, True, True]
    """
    messages, kept = np.zeros(places.shape), 0.0
    for _ in range(rounds):
        chances = scipy.special.expit(_scores(places, messages)[places] - messages)
        new = _messages(y, dpsgd.sample_rate * chances, dpsgd.sample_rate, dpsgd.sigma)
        messages, kept = kept * messages + (1 - kept) * new, KEPT
    return _scores(places, messages)


def joint_decoding(dpsgd: DpSgd, k: int, *, trials: int, seed: int) -> pd.DataFrame:
    """Right guesses of k, on average with standard errors, by scores, decoded, and other coins known.

    All of them are made in the same training runs, at the canaries with log-odds farthest from 0.

    >>> dpsgd = DpSgd(n=40, d=4, steps=10, sample_rate=1, sigma=0.7)
    >>> table = joint_decoding(dpsgd, 36, trials=20, seed=1)
    >>> table.index.tolist(), table.right.is_monotonic_increasing
    (['scores', 'decoded', 'told'], True)
    """
    k, rate = _check.integer("k", k, 1, dpsgd.n), dpsgd.sample_rate

    def audit(rng: Generator) -> list[int]:
        coins, places, y = hop(dpsgd, rng)
        told = _messages(y, rate * coins[places], rate, dpsgd.sigma)
        ways = decode(dpsgd, places, y, 1), decode(dpsgd, places, y), _scores(places, told)
        taken = (np.argsort(-np.abs(odds), kind="stable")[:k] for odds in ways)
        return [((x > 0) == coins)[at].sum() for x, at in zip(ways, taken, strict=True)]

    def block(size: int, rng: Generator) -> tuple[NDArray[Any]]:
        return (np.array([audit(rng) for _ in range(size)]),)

    (right,) = play(block, trials, seed, "joint decoding", dpsgd, k, largest=1)
    means = {"right": right.mean(axis=0), "right_se": right.std(axis=0, ddof=1) / np.sqrt(trials)}
    return pd.DataFrame(means, index=["scores", "decoded", "told"])


def _scores(places: NDArray[np.int64], messages: Reals) -> Any:
    """The sum of what all steps say about each canary."""
    return np.bincount(places.ravel(), messages.ravel())


@jit
def _messages(y: Array, chances: Array, rate: float, sigma: float) -> Array:
    """What each coordinate says about each of its canaries, if the others are in by ``chances``."""
    out, load = np.empty(chances.shape), chances.shape[2]
    later, earlier = np.empty((load + 1, load + 2)), np.empty(load + 1)
    for t in range(y.shape[0]):
        for j in range(y.shape[1]):
            chance = chances[t, j]
            # later[i, c] is the density of y if c of the first i are in the batch.
            nearest = min(max(np.round(y[t, j]), 0.0), float(load))
            for c in range(load + 2):
                later[load, c] = np.exp(
                    ((y[t, j] - nearest) ** 2 - (y[t, j] - c) ** 2) / (2 * sigma**2)
                )
            for i in range(load - 1, 0, -1):
                for c in range(i + 2):
                    later[i, c] = (1 - chance[i]) * later[i + 1, c] + chance[i] * later[
                        i + 1, c + 1
                    ]
            earlier[:] = 0.0  # how likely c of the first i are in the batch
            earlier[0] = 1.0
            for i in range(load):
                without, with_it = 1e-300, 1e-300
                for c in range(i + 1):
                    without += earlier[c] * later[i + 1, c]
                    with_it += earlier[c] * later[i + 1, c + 1]
                out[t, j, i] = np.log((1 - rate) + rate * with_it / without)
                for c in range(i + 1, 0, -1):
                    earlier[c] = (1 - chance[i]) * earlier[c] + chance[i] * earlier[c - 1]
                earlier[0] *= 1 - chance[i]
    return out

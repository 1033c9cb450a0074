"""All coins at once: canaries that hop meet again, and what one step shows helps in another.

The score of a canary takes its neighbours as strangers: each is in the batch with probability q/2.
But the guesser knows who they were, and other steps say something about their coins. Let b be the
chance that a neighbour is included, by all that its *other* coordinates have shown. Then it is in
the batch with probability q b. With that in place of q/2 scores become sharper, and so do the
chances b: belief propagation, exact where the graph of canaries and coordinates has no cycles.

Let x be a canary's log-odds for somebody who is told all *other* coins. No guess is right with more
than p(|x|), so no decoding has more right guesses on average than the k largest p(|x|) together.
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
from oralib._types import Array
from oralib.dpsgd.setting import DpSgd

Reals = Array  # of doubles
Places = NDArray[np.int64]
#: How much of a message is kept in each round of belief propagation.
KEPT = (0.0, *[0.5] * 29)


def hop(dpsgd: DpSgd, rng: Generator) -> tuple[NDArray[np.bool_], Places, Reals]:
    """Coins; who is where, by step and coordinate; and the noisy gradient there."""
    coins = rng.random(dpsgd.n) < 0.5
    places = np.array([rng.permutation(dpsgd.n) for _ in range(dpsgd.steps)])
    places = places.reshape(dpsgd.steps, dpsgd.used_coordinates, dpsgd.per_coordinate)
    batch = coins[places] & (rng.random(places.shape) < dpsgd.sample_rate)
    return coins, places, rng.normal(batch.sum(axis=2), dpsgd.sigma)


def score(dpsgd: DpSgd, places: Places, y: Reals, chances: Reals) -> Reals:
    """Log-odds of each coin if each other one is included with its chance, fair or known."""
    odds, there = np.zeros(dpsgd.n), dpsgd.sample_rate * chances[places]
    for t, here in enumerate(places):
        odds[here] += _messages(y[t], there[t], dpsgd.sample_rate, dpsgd.sigma)
    return odds


def decode(dpsgd: DpSgd, places: Places, y: Reals) -> Reals:
    """Log-odds of each coin by belief propagation.

    >>> dpsgd = DpSgd(n=4, d=2, steps=3, sample_rate=1, sigma=0.1)
    >>> coins, places, y = hop(dpsgd, np.random.default_rng(2))
    >>> ((decode(dpsgd, places, y) > 0) == coins).tolist()
    [True, True, True, True]
    """
    rate, odds, messages = dpsgd.sample_rate, np.zeros(dpsgd.n), np.zeros(places.shape)
    for kept in KEPT:
        for t, here in enumerate(places):
            chances = scipy.special.expit(odds[here] - messages[t])
            says = _messages(y[t], rate * chances, rate, dpsgd.sigma)
            change = (1 - kept) * (says - messages[t])
            odds[here] += change
            messages[t] += change
    return odds


def joint_decoding(dpsgd: DpSgd, k: int, *, trials: int, seed: int) -> pd.DataFrame:
    """Right guesses of k on average, by scores and decoded, and what no way of decoding exceeds.

    That is ``told``. All are of the same training runs; ``gain`` is the difference to the scores.

    >>> dpsgd = DpSgd(n=40, d=4, steps=10, sample_rate=1, sigma=0.7)
    >>> joint_decoding(dpsgd, 36, trials=20, seed=1)["right"].is_monotonic_increasing
    True
    """
    k = _check.integer("k", k, 1, dpsgd.n)

    def audit(rng: Generator) -> Any:
        coins, places, y = hop(dpsgd, rng)
        chances = np.full(dpsgd.n, 0.5), coins.astype(float)
        alone, told = (score(dpsgd, places, y, each) for each in chances)
        ways = np.array([alone, decode(dpsgd, places, y)])
        taken = np.argsort(-np.abs(ways), axis=1, kind="stable")[:, :k]
        right = np.take_along_axis((ways > 0) == coins, taken, axis=1).sum(axis=1)
        return [*right, np.sort(scipy.special.expit(np.abs(told)))[-k:].sum()]

    def block(size: int, rng: Generator) -> tuple[Array]:
        return (np.array([audit(rng) for _ in range(size)]),)

    (right,) = play(block, trials, seed, "joint decoding", dpsgd, k, largest=1)
    table = pd.DataFrame(index=["scores", "decoded", "told"])
    for name, counts in ("right", right), ("gain", right - right[:, :1]):
        table[name] = counts.mean(axis=0)
        table[f"{name}_se"] = counts.std(axis=0, ddof=1) / np.sqrt(trials)
    return table


@jit
def _messages(y: Array, chances: Array, rate: float, sigma: float) -> Array:
    """What each coordinate says of each of its canaries, if others are in the batch by chance."""
    out, load = np.empty(chances.shape), chances.shape[1]
    later, earlier = np.empty((load + 1, load + 2)), np.empty(load + 1)
    for j in range(y.size):
        chance, nearest = chances[j], min(max(np.round(y[j]), 0.0), float(load))
        for c in range(load + 2):  # later[i, c] is the density of y if c of the first i are there
            later[load, c] = np.exp(((y[j] - nearest) ** 2 - (y[j] - c) ** 2) / (2 * sigma**2))
        for i in range(load - 1, 0, -1):
            for c in range(i + 2):
                later[i, c] = later[i + 1, c] + chance[i] * (later[i + 1, c + 1] - later[i + 1, c])
        earlier[:] = 0.0  # how likely c of the first i are there
        earlier[0] = 1.0
        for i in range(load):
            without, with_it = 1e-300, 1e-300
            for c in range(i + 1):
                without += earlier[c] * later[i + 1, c]
                with_it += earlier[c] * later[i + 1, c + 1]
            out[j, i] = np.log((1 - rate) + rate * with_it / without)
            for c in range(i + 1, 0, -1):
                earlier[c] += chance[i] * (earlier[c - 1] - earlier[c])
            earlier[0] *= 1 - chance[i]
    return out

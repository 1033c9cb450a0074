"""The audit of Section 6 as written: training step by step, guessing element by element."""

from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from oralib import _check
from oralib.bounds import Counts
from oralib.dpsgd import DpSgd, run_dpsgd
from oralib.dpsgd.play import play_audits


def simulate_training(
    dpsgd: DpSgd,
    k: int,
    *,
    trials: int = 1,
    seed: int,
    clip: float = 1.0,
    learning_rate: float = 1.0,
) -> Counts:
    """Like :func:`oralib.simulate_dpsgd`, which has the same law and is much faster.

    It is there to be read, and as a test.

    >>> counts = simulate_training(DpSgd(n=200, d=100, sigma=0.5), 20, trials=5, seed=1)
    >>> counts.r.tolist()
    [20, 20, 20, 20, 20]
    """
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    elements = dpsgd.d * np.arange(dpsgd.per_coordinate)
    run = partial(run_dpsgd, dpsgd, clip=clip, learning_rate=learning_rate, gradient=clip)

    def trial(ks: NDArray[np.int64], rng: Generator) -> list[int]:
        included = rng.random(dpsgd.n) < 0.5
        weights = run(included, rng)
        update = (weights[0] - weights[-1])[: dpsgd.used_coordinates] / learning_rate
        # The elements in ascending order of their coordinate's update.
        order = (np.argsort(update, kind="stable")[:, None] + elements).ravel()
        ends = [(order[dpsgd.n - (k - k // 2) :], order[: k // 2]) for k in ks.tolist()]
        return [int(included[high].sum() + (~included[low]).sum()) for high, low in ends]

    def block(ks: NDArray[np.int64], size: int, rng: Generator) -> NDArray[np.int64]:
        return np.array([trial(ks, rng) for _ in range(size)])

    key = dpsgd, [k], dpsgd.n, trials, seed, "step by step"
    return play_audits("one-run DP-SGD", block, *key)[0]

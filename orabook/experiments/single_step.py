"""The guesser with a threshold on one full-batch step, with or without feedback (Section 6.3)."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from orabook.laws import guess_distances
from oralib.bounds import Counts
from oralib.dpsgd.play import ones_among
from oralib.dpsgd.setting import DpSgd
from oralib.games import adaptive_game, check_number
from oralib.ground import arguments
from oralib.ground.jit import jit
from oralib.ground.streams import play
from oralib.ground.types import PLAYED, Array, Feedback

__all__ = ["simulate_single_step"]


def simulate_single_step(
    dpsgd: DpSgd,
    tau: float,
    *,
    feedback: Feedback = "none",
    guesses: int | None = None,
    trials: int = 1,
    seed: int,
) -> Counts:
    """Audit one full-batch step of DP-SGD, guessing where the absolute loss is at least tau.

    Parameters
    ----------
    dpsgd : DpSgd
        The training run, with steps=1 and sample_rate=1.
    tau : float
        The least absolute loss of an element that is guessed.
    feedback, guesses
        As in :func:`oralib.adaptive`; feedback shows coins of the same coordinate only.
    trials, seed : int
        The number of independent audits, and the seed of their random numbers.

    Examples
    --------
    >>> dpsgd = DpSgd(n=4000, steps=1, sample_rate=1.0, sigma=1.0)
    >>> counts = simulate_single_step(dpsgd, 1.0, trials=100, seed=1)
    >>> bool(abs(counts.accuracy.mean() - 0.8) < 0.02)
    True
    """
    arguments.one_of("feedback", feedback, PLAYED)
    is_fixed = guesses is not None
    is_one_run = feedback == "none"
    if is_fixed and is_one_run:
        raise ValueError(f"guesses needs feedback, got {guesses=} and feedback='none'")
    distances = guess_distances(dpsgd, tau, last=is_one_run)
    limit = check_number(guesses, dpsgd.n)

    def block(size: int, rng: Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        v, r = _audit_block(
            size,
            dpsgd.used_coordinates,
            dpsgd.sigma,
            distances,
            not is_one_run,
            feedback == "full",
            limit,
            rng,
        )
        # With a fixed number, guesses that were not made count as wrong, as in oralib.adaptive.
        return v, np.full_like(r, limit) if is_fixed else r

    game = "one-run DP-SGD" if is_one_run else f"{adaptive_game(feedback, guesses)}, DP-SGD"
    # What changes the game is also part of the name of the random stream.
    key = (float(tau), limit) if is_fixed else (float(tau),)
    v, r = play(block, trials, seed, game, dpsgd, *key)
    # A fixed order of the elements makes full feedback the kind "list".
    kind: Feedback = "list" if feedback == "full" and is_fixed else feedback
    return Counts(v, r, dpsgd.n, game, r_fixed=is_fixed, feedback=kind)


@jit
def _audit_block(
    trials: int,
    d: int,
    sigma: float,
    distances: Array,
    shows_abstained: bool,
    shows_guessed: bool,
    limit: int,
    rng: Generator,
) -> tuple[Array, Array]:
    """Count right guesses and guesses in each of several audits.

    For each coordinate toss the coins of its elements and add noise to their sum. Go through its
    elements: guess if the noisy count of the elements with unknown coins is far enough from its
    mean. If the coin of an element is shown, take it off that count. Stop at the limit of guesses.
    """
    s = distances.size - 1
    v = np.zeros(trials, dtype=np.int64)
    r = np.zeros(trials, dtype=np.int64)
    for trial in range(trials):
        for _ in range(d):
            if r[trial] == limit:
                break
            ones = rng.binomial(s, 0.5)
            noisy_count = ones + sigma * rng.standard_normal()
            for unknown in range(s, 0, -1):
                above = noisy_count - unknown / 2
                guessed = abs(above) >= distances[unknown] and r[trial] < limit
                if not (shows_guessed if guessed else shows_abstained):
                    # Nothing was learnt, so every remaining element of this coordinate gets the
                    # same decision: guess as many as the limit allows, or abstain on all.
                    if guessed:
                        added = min(unknown, limit - r[trial])
                        if added < unknown:
                            ones = ones_among(added, ones, unknown, rng)
                        r[trial] += added
                        v[trial] += ones if above > 0 else added - ones
                    break
                bit = int(rng.random() * unknown < ones)
                if guessed:
                    r[trial] += 1
                    v[trial] += bit == (above > 0)
                noisy_count -= bit
                ones -= bit
    return v, r

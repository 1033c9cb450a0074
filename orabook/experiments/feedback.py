"""Figures 3 and 9: audits with feedback, and without it for comparison."""

from collections.abc import Iterable
from itertools import product
from math import inf

import pandas as pd

from orabook.experiments.grids import elements_of, integers_of, with_bar, words_of
from orabook.experiments.single_step import simulate_single_step
from orabook.experiments.summaries import summary
from oralib import DpSgd
from oralib.games import adaptive, one_run
from oralib.ground import arguments
from oralib.ground.types import PLAYED
from oralib.guessers import ThresholdGuesser
from oralib.mechanisms import CountInSets

__all__ = ["LARGEST_CERTIFIED_N", "adaptive_count_in_sets", "adaptive_dpsgd"]

#: The most elements for which :func:`adaptive_dpsgd` computes the bound for full feedback.
LARGEST_CERTIFIED_N = 20_000


def adaptive_dpsgd(
    ratios: Iterable[float] = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 40, 80, 160),
    *,
    tau: float = 1.0,
    feedbacks: Iterable[str] = PLAYED,
    epsilon: float = 2.0,
    delta: float = 1e-5,
    d: int = 1000,
    beta: float = 0.05,
    trials: int = 200,
    seed: int = 0,
) -> pd.DataFrame:
    """Figure 3: one full-batch step of DP-SGD, with feedback or without, against n/d (``x``).

    Column ``feedback``: ``none`` is the paper's ORA, ``full`` its AORA, ``one-way`` reveals the
    coins of skipped elements only. Column ``bound`` is what the paper plots, with δ > 0 and a
    number of guesses that depends on the output, which the theorem behind it does not cover.
    ``valid`` is proved for the audit; for ``full`` it is the certified anytime bound, up to
    20,000 elements: with more, certificates take seconds, and nearly every audit needs its own.

    Parameters
    ----------
    ratios : iterable of float
        The ratios n/d.
    tau : float
        The least absolute loss of an element that is guessed.
    feedbacks : iterable of str
        The kinds of feedback to compare.
    epsilon, delta, d, beta, trials, seed
        As in :func:`taken_guesses`.

    Examples
    --------
    >>> adaptive_dpsgd([4], trials=5)["feedback"].tolist()
    ['none', 'one-way', 'full']
    """
    settings = [
        DpSgd.calibrated(epsilon, delta, n=n, d=d, steps=1, sample_rate=1.0)
        for n in elements_of(ratios, d)
    ]
    points = list(product(words_of("feedbacks", feedbacks, PLAYED), settings))
    rows = []
    for feedback, dpsgd in with_bar(points):
        counts = simulate_single_step(dpsgd, tau, feedback=feedback, trials=trials, seed=seed)
        point = {"feedback": feedback, "x": dpsgd.n / dpsgd.d, "n": dpsgd.n}
        proved = feedback != "full" or dpsgd.n <= LARGEST_CERTIFIED_N
        rows.append({**point, **summary(counts, beta, delta, proved=proved)})
    return pd.DataFrame(rows)


def adaptive_count_in_sets(
    sizes: Iterable[int] = range(1, 11),
    *,
    sets: int = 100,
    tau: float = inf,
    feedbacks: Iterable[str] = PLAYED,
    beta: float = 0.05,
    trials: int = 100,
    seed: int = 0,
) -> pd.DataFrame:
    """Figure 9: Count-in-Sets, with feedback or without, against the size s of the sets (``x``).

    Column ``feedback`` as in :func:`adaptive_dpsgd`.

    Parameters
    ----------
    sizes : iterable of int
        The sizes s of the sets.
    sets : int
        The number of sets.
    tau : float
        The least absolute loss of an element that is guessed.
    feedbacks : iterable of str
        The kinds of feedback to compare.
    beta, trials, seed
        As in :func:`taken_guesses`.

    Examples
    --------
    >>> adaptive_count_in_sets([2], trials=5)[["x", "feedback"]]
       x feedback
    0  2     none
    1  2  one-way
    2  2     full
    """
    sets = arguments.integer("sets", sets, 1)
    guesser = ThresholdGuesser(tau)
    feedback_kinds = words_of("feedbacks", feedbacks, PLAYED)
    points = list(product(feedback_kinds, integers_of("sizes", sizes, 1)))
    rows = []
    for feedback, s in with_bar(points):
        mechanism = CountInSets(s)
        n = s * sets
        if feedback == "none":
            counts = one_run(mechanism, guesser, n, trials=trials, seed=seed)
        else:
            counts = adaptive(mechanism, guesser, n, feedback=feedback, trials=trials, seed=seed)
        rows.append({"feedback": feedback, "x": s, "n": n, **summary(counts, beta, 0.0)})
    return pd.DataFrame(rows)

"""The power of the test of the stated training against too little noise, by how scores are made.

A score is a log-likelihood ratio, and so it assumes a size of the noise: the true one, which can be
estimated from the outputs, or the stated one. If there is less noise than was stated, scores that
assume the stated one are worse, and counts find much less.
"""

from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from orabook.laws import Law
from orabook.studies.ceiling import law_of_surest
from orabook.studies.isolated import Confidence
from orabook.studies.tails import Reals
from oralib import Counts, Training, TrainingTest
from oralib.bounds.refuting import right_needed

__all__ = ["Scores", "found_by_counts", "law_of_right"]

#: The size of the noise that scores assume.
Scores: TypeAlias = Literal["true noise", "stated noise"]
#: Points of the table of a score.
_TABLE_POINTS = 2**18
#: Points of y in a step.
_STEP_POINTS = 20_001
#: The smallest tail of a score that is kept, far above rounding errors.
_LEAST_TAIL = 1e-11


def found_by_counts(
    training: Training,
    designs: Iterable[tuple[int, int]],
    *,
    claim: tuple[float, float] = (2.0, 1e-5),
    shares: Iterable[float] = (1.0, 0.5),
    scores: Iterable[Scores] = ("true noise", "stated noise"),
    beta: float = 0.05,
) -> pd.DataFrame:
    """The right guesses of k that refute a claim, and the power of isolated canaries to give them.

    A row for each design (n, k), share of the stated noise, and way that ``scores`` are made.
    Columns ``needed_claim`` and ``found_claim`` are for the claim (ε, δ) alone, ``needed`` and
    ``found`` for the stated training, tested at ``epsilon``; ``mean`` is the mean number of right
    guesses.

    >>> table = found_by_counts(Training(2.422402, 0.1, 100), [(1000, 150)], shares=[0.5])
    >>> table[["scores", "needed_claim", "needed", "found"]].round(2).to_numpy().tolist()
    [['true noise', 139.0, 123.0, 0.95], ['stated noise', 139.0, 123.0, 0.24]]
    """
    rows = []
    for (n, k), share, kind in product(designs, shares, scores):
        test = TrainingTest(training, n=n, guesses=k, beta=beta)
        epsilon, delta = claim
        setup = Counts(0, k, n=n, r_fixed=True)
        needed_claim = right_needed(setup, epsilon, delta=delta, beta=beta)
        law = law_of_right(training, n, k, share=share, scores=kind)
        rows.append(
            {
                "n": n,
                "k": k,
                "share": share,
                "scores": kind,
                "mean": law.probability @ law.v,
                "needed_claim": np.nan if needed_claim is None else float(needed_claim),
                "found_claim": _power(law, needed_claim),
                "needed": np.nan if test.needed is None else float(test.needed),
                "found": _power(law, test.needed),
                "epsilon": test.epsilon,
            }
        )
    return pd.DataFrame(rows)


def law_of_right(
    training: Training, n: int, k: int, *, share: float = 1.0, scores: Scores = "true noise"
) -> Law:
    """The law of right guesses at the k of n isolated canaries whose scores are farthest from 0.

    The noise is ``share`` times what is stated.
    """
    assumed = share if scores == "true noise" else 1.0
    return law_of_surest(_confidence(training, share, assumed), n, k)


def _power(law: Law, needed: int | None) -> float:
    """The probability of the needed right guesses; 0 if no number of them refutes."""
    return 0.0 if needed is None else float(law.probability[law.v >= needed].sum())


@lru_cache(maxsize=32)
def _confidence(training: Training, share: float, assumed: float) -> Confidence:
    """Return the law of the size of a score that assumes one size of the noise, and has another."""
    grid, tails = _score_tails(training, share, assumed)
    level = np.linspace(0, min(grid[-1], -grid[0]), 20_000)
    above_in, above_out = (np.interp(level, grid, tail) for tail in tails)
    below_in, below_out = (1 - np.interp(-level, grid, tail) for tail in tails)
    right = (above_in + below_out) / 2
    wrong = (above_out + below_in) / 2
    is_exact = (right > _LEAST_TAIL) & (wrong > _LEAST_TAIL)
    end = is_exact.size if is_exact.all() else int(np.argmin(is_exact))
    places = slice(0, end, 8)
    return Confidence(level[places], np.log(right[places]), np.log(wrong[places]))


def _score_tails(training: Training, share: float, assumed: float) -> tuple[Reals, list[Reals]]:
    """Return a grid of scores, and there the tails of included and of excluded canaries' scores.

    The score is a sum over the steps: its law is a power of one step's law, by Fourier transform.
    """
    true_sigma = share * training.sigma
    assumed_sigma = assumed * training.sigma
    y = np.linspace(-9.5 * true_sigma, 1 + 9.5 * true_sigma, _STEP_POINTS)
    rate = training.sample_rate
    with np.errstate(divide="ignore"):  # at rate 1 no step is left out
        log_absent = np.log1p(-rate)
    log_present = np.log(rate) + (2 * y - 1) / (2 * assumed_sigma**2)
    score = np.logaddexp(log_absent, log_present)  # of one step
    noise = np.exp(-0.5 * (y / true_sigma) ** 2)
    moved = np.exp(-0.5 * ((y - 1.0) / true_sigma) ** 2)
    out = noise / noise.sum()
    laws = [(1 - rate) * out + rate * moved / moved.sum(), out]
    means = [training.steps * (law @ score) for law in laws]
    variances = [training.steps * (law @ score**2 - (law @ score) ** 2) for law in laws]
    spreads = [np.sqrt(variance) for variance in variances]
    low = min(mean - 14 * spread for mean, spread in zip(means, spreads, strict=True))
    high = max(mean + 14 * spread for mean, spread in zip(means, spreads, strict=True))
    width = (high - low) / _TABLE_POINTS
    place = score / width
    left = np.floor(place).astype(int)
    part = place - left
    first = int(np.floor(low / width))
    tails = []
    for law in laws:
        table = np.bincount(left % _TABLE_POINTS, law * (1 - part), _TABLE_POINTS)
        table += np.bincount((left + 1) % _TABLE_POINTS, law * part, _TABLE_POINTS)
        total = np.fft.irfft(np.fft.rfft(table) ** training.steps, _TABLE_POINTS)
        tails.append(np.cumsum(np.roll(total, -first)[::-1])[::-1])
    return (first + np.arange(_TABLE_POINTS) - 0.5) * width, tails

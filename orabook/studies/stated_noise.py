"""How often the test of the stated training finds too little noise, by how scores are made.

A score is a log-likelihood ratio, and so it assumes a size of the noise: the true one, which can be
estimated from what is seen, or the stated one. If there is less noise than was stated, scores that
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
from orabook.studies.isolated import Confidence, Reals
from oralib import Counts, Training, TrainingTest
from oralib.bounds.refuting import right_needed

#: Which size of the noise scores assume.
Scores: TypeAlias = Literal["true noise", "stated noise"]
#: Points of the tables of a score, and of y in a step.
_TABLE, _STEP = 2**18, 20_001
#: Tails are kept down to here, far above rounding errors.
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
    """How many right guesses of k refute a claim, and how often isolated canaries give them.

    A row for each design (n, k), share of the stated noise, and way that ``scores`` are made.
    Columns ``needed_claim`` and ``found_claim`` are for the claim (ε, δ) alone, ``needed`` and
    ``found`` for the stated training, tested at ``epsilon``; ``mean`` is the mean number of right
    guesses.

    >>> table = found_by_counts(Training(2.422402, 0.1, 100), [(1000, 150)], shares=[0.5])
    >>> table[["scores", "needed_claim", "needed", "found"]].round(2).to_numpy().tolist()
    [['true noise', 139.0, 123.0, 0.95], ['stated noise', 139.0, 123.0, 0.24]]
    """
    rows = []
    for (n, k), share, scored in product(designs, shares, scores):
        test = TrainingTest(training, n=n, guesses=k, beta=beta)
        epsilon, delta = claim
        setup = Counts(0, k, n=n, r_fixed=True)
        needed_claim = right_needed(setup, epsilon, delta=delta, beta=beta)
        law = law_of_right(training, n, k, share=share, scores=scored)
        row: dict[str, object] = {
            "n": n,
            "k": k,
            "share": share,
            "scores": scored,
            "mean": law.probability @ law.v,
        }
        row |= {"needed_claim": np.nan if needed_claim is None else float(needed_claim)}
        row |= {"found_claim": _reached(law, needed_claim)}
        row |= {"needed": np.nan if test.needed is None else float(test.needed)}
        row |= {"found": _reached(law, test.needed), "epsilon": test.epsilon}
        rows.append(row)
    return pd.DataFrame(rows)


def law_of_right(
    training: Training, n: int, k: int, *, share: float = 1.0, scores: Scores = "true noise"
) -> Law:
    """The law of right guesses at the k of n isolated canaries whose scores are farthest from 0.

    The noise is ``share`` times what is stated.
    """
    assumed = share if scores == "true noise" else 1.0
    return law_of_surest(_confidence(training, share, assumed), n, k)


def _reached(law: Law, needed: int | None) -> float:
    return 0.0 if needed is None else float(law.probability[law.v >= needed].sum())


@lru_cache(maxsize=32)
def _confidence(training: Training, share: float, assumed: float) -> Confidence:
    """The law of the size of a score that assumes some noise, where the true one is another."""
    grid, tails = _score_tails(training, share, assumed)
    level = np.linspace(0, min(grid[-1], -grid[0]), 20_000)
    above_in, above_out = (np.interp(level, grid, tail) for tail in tails)
    below_in, below_out = (1 - np.interp(-level, grid, tail) for tail in tails)
    right, wrong = (above_in + below_out) / 2, (above_out + below_in) / 2
    some = (right > _LEAST_TAIL) & (wrong > _LEAST_TAIL)
    kept = slice(0, int(np.argmin(some)) if not some.all() else some.size, 8)
    return Confidence(level[kept], np.log(right[kept]), np.log(wrong[kept]))


def _score_tails(training: Training, share: float, assumed: float) -> tuple[Reals, list[Reals]]:
    """Scores, and how often those of included and excluded canaries are larger.

    The score is a sum over the steps: its law is a power of that of one step, by Fourier transform.
    """
    true, told = share * training.sigma, assumed * training.sigma
    y = np.linspace(-9.5 * true, 1 + 9.5 * true, _STEP)
    rate = training.sample_rate
    with np.errstate(divide="ignore"):  # at rate 1 no step is left out
        absent = np.log1p(-rate)
    one = np.logaddexp(absent, np.log(rate) + (2 * y - 1) / (2 * told**2))
    noise, moved = (np.exp(-0.5 * ((y - at) / true) ** 2) for at in (0.0, 1.0))
    out = noise / noise.sum()
    laws = [(1 - rate) * out + rate * moved / moved.sum(), out]
    means = [training.steps * (law @ one) for law in laws]
    spreads = [np.sqrt(training.steps * (law @ one**2 - (law @ one) ** 2)) for law in laws]
    low = min(mean - 14 * spread for mean, spread in zip(means, spreads, strict=True))
    high = max(mean + 14 * spread for mean, spread in zip(means, spreads, strict=True))
    width = (high - low) / _TABLE
    place = one / width
    left = np.floor(place).astype(int)
    part = place - left
    first = int(np.floor(low / width))
    tails = []
    for law in laws:
        table = np.bincount(left % _TABLE, law * (1 - part), _TABLE)
        table += np.bincount((left + 1) % _TABLE, law * part, _TABLE)
        total = np.fft.irfft(np.fft.rfft(table) ** training.steps, _TABLE)
        tails.append(np.cumsum(np.roll(total, -first)[::-1])[::-1])
    return (first + np.arange(_TABLE) - 0.5) * width, tails

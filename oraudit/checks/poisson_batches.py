"""Batches are drawn by Poisson sampling, as the accountant was told.

Formulas: the dispersion of the sizes of batches, about 1; how many batches are as large as the
one before; and how many examples two batches in a row share. Limits: a χ² law with the kurtosis
of binomial numbers, a binomial law, and a gamma law. Whatever fails, the ε of the accountant is
not for these batches, and nobody can say on which side of it they are.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from oraudit.checks.levels import SHARE, chi_square_p
from oraudit.findings import Finding
from oraudit.records import Seen

NAME = "poisson-batches"

#: Three tests share what the check may spend.
_EACH = SHARE / 3

#: With fewer steps the dispersion says nothing.
FEWEST_STEPS = 8

#: Batches with a smaller variance are often as large as the one before.
LEAST_VARIANCE = 4

#: Sharing fewer examples than this is too rare for a gamma law.
FEWEST_SHARED = 30

#: With more equal inputs in a batch than this, fingerprints do not tell examples apart.
MOST_EQUAL = 0.01


def check(seen: Seen) -> list[Finding]:
    known = known_sizes(seen)
    if known is None or len(known[0]) < FEWEST_STEPS:
        return []
    sizes, rates, examples = known
    means = examples * rates
    variances = means * (1 - rates)
    if (variances <= 0).any():
        return []
    found = []
    dispersion, p = _dispersion(sizes, means, variances, rates)
    if p < _EACH:
        found.append(f"their sizes have dispersion {dispersion:.2f}, those of Poisson sampling 1")
    repeats, expected, p = _repeats(sizes, variances)
    if p < _EACH:
        found.append(f"{repeats} are as large as the one before, where {expected:.0f} would be")
    shared, p = _overlap(seen, rates, examples)
    if p < _EACH:
        found.append(f"two in a row share {shared:.2f} of the examples that Poisson batches do")
    if not found:
        return []
    text = f"the accountant's ε is not for these batches: {'; '.join(found)}"
    return [Finding(NAME, text, "side unknown", number=dispersion, limit=1.0)]


def known_sizes(
    seen: Seen,
) -> tuple[NDArray[np.int64], NDArray[np.float64], int] | None:
    """The sizes of all batches, their told rates and the number of examples, if all are known."""
    rates = seen.rates
    sizes = seen.batches.sizes
    if rates is None or seen.examples is None or None in sizes or len(sizes) < 2:
        return None
    return np.array(sizes, dtype=np.int64), rates, seen.examples


def _dispersion(
    sizes: NDArray[np.int64],
    means: NDArray[np.float64],
    variances: NDArray[np.float64],
    rates: NDArray[np.float64],
) -> tuple[float, float]:
    """The dispersion, and its p-value by a χ² law with the same variance."""
    steps = len(sizes)
    centre = sizes.mean() * means / means.mean()
    dispersion = float(((sizes - centre) ** 2 / variances).sum() / (steps - 1))
    kurtosis = float(((1 - 6 * rates * (1 - rates)) / variances).mean())
    degrees = 2 / (2 / (steps - 1) + kurtosis / steps)
    return dispersion, float(chi_square_p(dispersion * degrees, degrees))


def _repeats(sizes: NDArray[np.int64], variances: NDArray[np.float64]) -> tuple[int, float, float]:
    """How many batches are as large as the one before, the expected number, and the p-value."""
    pairs = len(sizes) - 1
    repeats = int((np.diff(sizes) == 0).sum())
    chance = 1 / (2 * np.sqrt(np.pi * variances.mean()))
    if (variances <= LEAST_VARIANCE).any():
        return repeats, pairs * chance, 1.0
    p = float(stats.binom.sf(repeats - 1, pairs, min(1.0, 1.2 * chance)))
    return repeats, pairs * chance, p


def _overlap(seen: Seen, rates: NDArray[np.float64], examples: int) -> tuple[float, float]:
    """What batches in a row share, as a share of what is expected, and the p-value."""
    prints = [each for each in seen.batches.fingerprints if each is not None]
    if len(prints) < seen.steps:
        return 1.0, 1.0
    unique = [np.unique(each) for each in prints]
    drawn = sum(map(len, prints))
    equal = drawn - sum(map(len, unique))
    if equal > MOST_EQUAL * drawn:
        return 1.0, 1.0
    shared = sum(len(np.intersect1d(a, b)) for a, b in pairwise(unique))
    pairs = rates[:-1] * rates[1:]
    expected = float(examples * pairs.sum())
    if expected < FEWEST_SHARED:
        return shared / max(expected, 1e-9), 1.0
    variance = float(examples * (pairs * (1 - pairs)).sum())
    # A pair of batches and the next one have a batch in common.
    triples = rates[:-2] * rates[1:-1] * rates[2:] * (1 - rates[1:-1])
    variance += float(2 * examples * triples.sum())
    shape = expected**2 / variance
    law = stats.gamma(shape, scale=variance / expected)
    p = float(min(1.0, 2 * min(law.cdf(shared), law.sf(shared))))
    return shared / expected, p

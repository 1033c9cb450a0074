"""Each example is in as many batches as any other, but for chance.

Formula: for each example the number of batches with it, less the mean; of these the sum of
squares. Limit: a shifted gamma law. Larger sums have two causes. Some examples have a larger rate
than the accountant was told: then successive batches share more examples, by a known formula, which
is checked. Or batches come again, which is the finding of another check.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from oraudit.checks import poisson_batches
from oraudit.checks.levels import SHARE
from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = ["check", "counts_p"]

NAME = "example-counts"
TESTS = 1

#: The fewest draws, all batches together, for which the sum of squares has a gamma law.
FEWEST_DRAWS = 500

#: The fewest examples for which it has.
FEWEST_EXAMPLES = 100

#: The largest share by which the sum of squares of Poisson counts with variance 1 is more skew than
#: χ².
SMALL_COUNTS = 0.6

#: The tolerance of what batches in a row share: in deviations, and as a share of the excess.
NEAR = 6
SLACK = 0.2

Reals = NDArray[np.float64]


def check(seen: Seen) -> list[Finding]:
    batches = poisson_batches.known_sizes(seen)
    prints = poisson_batches.known_prints(seen)
    if batches is None or prints is None:
        return []
    sizes, rates_told, examples = batches
    rates = poisson_batches.seen_rates(sizes, rates_told, examples)
    if not ((rates > 0) & (rates < 1)).all():
        return []
    drawn = int(sizes.sum())
    values, counts = np.unique(np.concatenate(prints), return_counts=True)
    if drawn < FEWEST_DRAWS or examples < FEWEST_EXAMPLES or len(values) > examples:
        return []
    # Examples with equal inputs look like one example that is drawn more often.
    if any(len(np.unique(batch)) < len(batch) for batch in prints):
        return []
    dispersion, p = counts_p(np.append(counts, np.zeros(examples - len(counts))), sizes)
    if p >= SHARE:
        return []
    if poisson_batches.same_batches(seen) or not _explains_sharing(seen, float(dispersion), rates):
        # What batches in a row share is the matter of another check.
        return []
    share = float(counts.max() / len(sizes))
    text = (
        f"some examples are drawn more often than others: their counts have dispersion "
        f"{float(dispersion):.2f}, those of equal rates 1; one is in {share:.2g} of the batches, "
        f"where the rate is {rates.mean():.2g}"
    )
    return [Finding(NAME, text, "less private", number=float(dispersion), limit=1.0)]


def _explains_sharing(seen: Seen, dispersion: float, rates: Reals) -> bool:
    """Return whether batches in a row share as much as rates with this dispersion make them."""
    shared = poisson_batches.shared_share(seen)
    if shared is None:
        return False
    examples = seen.examples or 0
    sizes = np.array(seen.batches.sizes, dtype=np.int64)
    expected, variance, _ = poisson_batches.shared_law(sizes, examples)
    excess = (dispersion - 1) * (1 - rates.mean()) / (rates.mean() * len(rates))
    error = NEAR * np.sqrt(variance) / expected + SLACK * excess
    return bool(abs(shared[0] - 1 - excess) <= error)


def counts_p(counts: ArrayLike, sizes: ArrayLike) -> tuple[Reals, Reals]:
    """Return the dispersion of how often examples were drawn, and the p-value that it is larger.

    Given the sizes of batches, the squares of counts are what all pairs of batches share, and these
    are pairwise independent hypergeometric numbers: mean and variance are exact. Along the last
    axis.
    """
    counts = np.asarray(counts, dtype=float)
    examples = counts.shape[-1]
    rates = np.asarray(sizes, dtype=float) / examples
    spread = rates * (1 - rates)
    # Over pairs of two different batches.
    variance = (2 * (spread.sum(-1) ** 2 - (spread**2).sum(-1))) * examples**2 / (examples - 1)
    mean = examples * spread.sum(-1)
    squares = ((counts - counts.mean(-1, keepdims=True)) ** 2).sum(-1)
    # The law of χ² has skewness 2 deviation / mean; small counts make it larger.
    skewness = 2 * np.sqrt(variance) / mean * (1 + SMALL_COUNTS / spread.sum(-1))
    shape = 4 / skewness**2
    deviations = (squares - mean) / np.sqrt(variance)
    return squares / mean, stats.gamma.sf(shape + np.sqrt(shape) * deviations, shape)

"""Batches are drawn by Poisson sampling, as the accountant was told.

Formulas: the dispersion of the sizes of batches, about 1; how many batches are as large as the
one before; and how many examples two batches in a row share. Limits: a χ² law and binomial
laws. If one of them fails, the ε of the accountant does not hold for these batches, and theirs may
be larger or smaller.

All formulas use the rate that is seen: the check batch_rate compares it with the told one.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from oraudit.checks.levels import SHARE, binomial_p, two_sided
from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = [
    "MOST_EQUAL",
    "SURELY",
    "check",
    "dispersion_p",
    "enough_for_dispersion",
    "enough_for_shared",
    "is_cut_from_list",
    "known_prints",
    "known_sizes",
    "repeats_p",
    "same_batches",
    "seen_rates",
    "shared_law",
    "shared_p",
    "shared_share",
]

NAME = "poisson-batches"
TESTS = 3

#: The fewest steps for a dispersion.
FEWEST_STEPS = 8

#: The smallest variance of a batch's size for a χ² law of the dispersion.
LEAST_VARIANCE = 10

#: The fewest examples, and the fewest expected to be shared, for a binomial law of the shared.
FEWEST_EXAMPLES = 50
FEWEST_SHARED = 20

#: With a larger share of equal inputs in batches, fingerprints do not tell examples apart.
MOST_EQUAL = 0.01

#: Chances as small as this are not counted among the tests.
SURELY = 1e-12

#: Batches are cut from a list if none of them share an example where SURELY_SHARED of them would be
#: shared, and SHARED_A_LIST more for each time that the list is shuffled: by chance with e^-30.
SURELY_SHARED = 30
SHARED_A_LIST = 3

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]


def check(seen: Seen) -> list[Finding]:
    batches = known_sizes(seen)
    if batches is None:
        return []
    sizes, rates_told, examples = batches
    rates = seen_rates(sizes, rates_told, examples)
    if not ((rates > 0) & (rates < 1)).all():
        return []
    number = None
    reasons = []
    if enough_for_dispersion(rates, examples):
        dispersion, p = dispersion_p(sizes, rates_told, examples)
        number = float(dispersion)
        if p < SHARE:
            reasons.append(f"their sizes have dispersion {number:.2f}, those of Poisson sampling 1")
        repeats, expected, p = repeats_p(sizes, rates, examples)
        if p < SHARE:
            reasons.append(
                f"{int(repeats)} are as large as the one before, where {float(expected):.0f} "
                "would be"
            )
    shared = shared_share(seen)
    if shared is not None and shared[1] < SHARE:
        reasons.append(
            f"two in a row share {shared[0]:.2f} of the examples that Poisson batches do"
        )
    repeated = same_batches(seen)
    if repeated:
        reasons.insert(0, f"{repeated} of {len(sizes)} hold the same examples as an earlier one")
    if not reasons:
        return []
    if is_cut_from_list(seen):
        reasons.insert(0, "they are cut from a shuffled list, not drawn by Poisson sampling")
    text = f"the accountant's ε is not for these batches: {'; '.join(reasons)}"
    return [Finding(NAME, text, "side unknown", number=number, limit=1.0)]


def known_sizes(seen: Seen) -> tuple[Integers, Reals, int] | None:
    """Return the sizes of all batches, their told rates and the number of examples, if known."""
    rates = seen.rates
    sizes = seen.batches.sizes
    if rates is None or seen.examples is None or None in sizes or len(sizes) < 2:
        return None
    return np.array(sizes, dtype=np.int64), rates, seen.examples


def seen_rates(sizes: Integers, rates_told: Reals, examples: int) -> Reals:
    """Return the told rates times one factor, so that they give the sizes that are seen."""
    total = sizes.sum(-1, keepdims=True)
    return rates_told * total / (examples * rates_told.sum())


# ------------------------------------------------------------------------------------------- sizes


def enough_for_dispersion(rates: Reals, examples: int) -> bool:
    """Return whether there are enough batches, and large enough ones."""
    return len(rates) >= FEWEST_STEPS and bool(
        (examples * rates * (1 - rates) >= LEAST_VARIANCE).all()
    )


def dispersion_p(sizes: Integers, rates_told: Reals, examples: int) -> tuple[Reals, Reals]:
    """Return the dispersion of sizes, along the last axis, and its p-value.

    Given their total, sizes have a law that does not depend on the rate. The variance of
    their dispersion is that of χ², less a small share, as the total is fixed.
    """
    rates = seen_rates(sizes, rates_told, examples)
    means = examples * rates
    squares = ((sizes - means) ** 2 / (means * (1 - rates))).sum(-1)
    degrees = sizes.shape[-1] - 1
    return squares / degrees, two_sided(
        stats.chi2.cdf(squares, degrees), stats.chi2.sf(squares, degrees)
    )


def repeats_p(sizes: Integers, rates: Reals, examples: int) -> tuple[Integers, Reals, Reals]:
    """Count batches that are as large as the one before; also expected number and p-value."""
    pairs = sizes.shape[-1] - 1
    repeats = (np.diff(sizes, axis=-1) == 0).sum(-1)
    variance = (examples * rates * (1 - rates)).mean(-1)
    chance = 1 / (2 * np.sqrt(np.pi * variance))
    p = stats.binom.sf(repeats - 1, pairs, np.minimum(1.0, 1.2 * chance))
    return repeats, pairs * chance, p


# --------------------------------------------------------------------------------------- examples


def shared_share(seen: Seen) -> tuple[float, float] | None:
    """Return the examples that successive batches share, over the expected number, and a p-value.

    None if the number is not known. Different examples with equal inputs look shared. Equal inputs
    in one batch show how many such examples there are, and their part is taken off.
    """
    batches = known_sizes(seen)
    prints = known_prints(seen)
    if batches is None or prints is None:
        return None
    sizes, rates_told, examples = batches
    rates = seen_rates(sizes, rates_told, examples)
    if not ((rates > 0) & (rates < 1)).all():
        return None
    counts = [dict(zip(*np.unique(batch, return_counts=True), strict=True)) for batch in prints]
    shared = sum(
        int(number) * int(later.get(value, 0))
        for earlier, later in pairwise(counts)
        for value, number in earlier.items()
    )
    twins = sum(int(n) * (int(n) - 1) // 2 for count in counts for n in count.values())
    expected, variance, third = shared_law(sizes, examples)
    twins_shared = 2 * twins * (len(counts) - 1) / len(counts)
    if not enough_for_shared(expected, variance, examples):
        return None
    p = shared_p(shared, expected, variance, third)
    if twins:
        # Their part is estimated from few examples, so the sum varies more than the binomial law.
        mean = expected + twins_shared
        law = stats.gamma(mean**2 / (variance + 4 * twins), scale=(variance + 4 * twins) / mean)
        p = two_sided(law.cdf(shared), law.sf(shared))
    return float((shared - twins_shared) / expected), float(p)


def shared_p(shared: ArrayLike, mean: Reals, variance: Reals, third: Reals) -> Reals:
    """Return the p-value of a number of shared examples, by the binomial and the normal law.

    It is the larger of the two: the true law reaches beyond the end of the binomial one, and the
    upper tail of the normal law is too light where few examples are shared.
    """
    deviations = np.maximum(np.abs(np.asarray(shared, dtype=float) - mean) - 0.5, 0) / np.sqrt(
        variance
    )
    return np.maximum(binomial_p(shared, mean, variance, third), 2 * stats.norm.sf(deviations))


def enough_for_shared(expected: Reals, variance: Reals, examples: int) -> NDArray[np.bool_]:
    """Return whether enough examples would be shared."""
    return (examples >= FEWEST_EXAMPLES) & (expected >= FEWEST_SHARED) & (variance > 0)


def known_prints(seen: Seen) -> list[NDArray[Any]] | None:
    """Return the fingerprints of all batches; None if they do not tell examples apart."""
    prints = [batch for batch in seen.batches.fingerprints if batch is not None]
    if len(prints) < seen.steps:
        return None
    drawn = sum(map(len, prints))
    equal = drawn - sum(len(np.unique(batch)) for batch in prints)
    return None if not drawn or equal > MOST_EQUAL * drawn else prints


def shared_law(sizes: Integers, examples: int) -> tuple[Reals, Reals, Reals]:
    """Return the first three cumulants of the number of examples that batches in a row share.

    Given their sizes, Poisson batches are any sets of these sizes. So what two of them share is a
    hypergeometric number, independent of what the next two share. Along the last axis.
    """
    first = sizes[..., :-1] / examples
    second = sizes[..., 1:] / examples
    means = examples * first * second
    variances = means * (1 - first) * (1 - second) * examples / max(examples - 1, 1)
    thirds = variances * (1 - 2 * first) * (1 - 2 * second) * examples / max(examples - 2, 1)
    return means.sum(-1), variances.sum(-1), thirds.sum(-1)


def same_batches(seen: Seen) -> int:
    """Count batches that hold the very examples of an earlier one; 0 if that may be chance."""
    batches = known_sizes(seen)
    prints = known_prints(seen)
    if batches is None or prints is None:
        return 0
    sizes, rates_told, examples = batches
    rate = seen_rates(sizes, rates_told, examples).max()
    chance = len(prints) ** 2 * np.exp(examples * np.log1p(-2 * rate * (1 - rate)))
    # Small batches may be equal by chance.
    if chance > SURELY:
        return 0
    return len(prints) - len({np.sort(batch).tobytes() for batch in prints})


def is_cut_from_list(seen: Seen) -> bool:
    """Return whether batches share no example until all examples were used, again and again."""
    batches = known_sizes(seen)
    prints = known_prints(seen)
    if batches is None or prints is None:
        return False
    sizes, rates_told, examples = batches
    rates = seen_rates(sizes, rates_told, examples)
    would_share = 0.0
    lists = 1
    used: set[int] = set()
    held = 0.0
    for fingerprints, rate in zip(prints, rates, strict=True):
        batch = set(fingerprints.tolist())
        if used & batch:
            lists += 1
            used = set()
            held = 0.0
        would_share += examples * held * rate
        used |= batch
        held += rate
    return would_share > SURELY_SHARED + SHARED_A_LIST * lists

"""Batches hold as many examples as the told rate says.

Formula: the examples of all batches, a binomial number. Limit: its exact two-sided p-value;
where the rate changes from step to step, a normal one.
"""

import numpy as np
from scipy import stats

from oraudit.checks.levels import SHARE
from oraudit.checks.poisson_batches import known_sizes
from oraudit.findings import Finding, Side
from oraudit.records import Seen

NAME = "batch-rate"


def check(seen: Seen) -> list[Finding]:
    known = known_sizes(seen)
    if known is None:
        return []
    sizes, rates, examples = known
    total = int(sizes.sum())
    if np.ptp(rates) == 0:
        trials = examples * len(sizes)
        lower = stats.binom.cdf(total, trials, rates[0])
        upper = stats.binom.sf(total - 1, trials, rates[0])
        p = float(2 * min(lower, upper))
    else:
        variance = (examples * rates * (1 - rates)).sum()
        p = float(2 * stats.norm.sf(abs(total - examples * rates.sum()) / np.sqrt(variance)))
    if p >= SHARE:
        return []
    held = total / (examples * len(sizes))
    told = float(rates.mean())
    side: Side = "less private" if held > told else "safer"
    text = f"batches hold {held:.3g} of the data; the accountant was told {told:.3g}"
    return [Finding(NAME, text, side, number=held, limit=told)]

"""Each training of a process has its own noise; one that goes on counts the earlier steps, too.

Formula: the correlation of each step's noise with each step's of an earlier training. Limit: its
exact law (Student's t), by Bonferroni. Exact: a training begins with the weights at the end of an
earlier one, whose steps its accountant was not told.
"""

import numpy as np
from scipy import stats

from oraudit.checks.levels import SHARE
from oraudit.checks.presence import NO_NOISE, present_noise
from oraudit.findings import Finding
from oraudit.records import Earlier, Seen

__all__ = ["check"]

NAME = "earlier-trainings"
TESTS = 1

#: The fewest numbers of a step: with fewer correlations tell nothing.
FEWEST_NUMBERS = 16


def check(seen: Seen) -> list[Finding]:
    findings = []
    told_steps = int(sum(event.number or 0 for event in seen.of_kind("earlier-steps")))
    for earlier in seen.earlier:
        if earlier.goes_on and told_steps < earlier.steps:
            text = (
                f"this training goes on from an earlier one, whose {earlier.steps} steps its "
                "accountant was not told"
            )
            findings.append(Finding(NAME, text, "less private", step=1, number=float(told_steps)))
        if (finding := _same_noise(seen, earlier)) is not None:
            findings.append(finding)
    return findings


def _same_noise(seen: Seen, earlier: Earlier) -> Finding | None:
    """Return a finding if a step's noise is that of an earlier training."""
    noise = present_noise(seen)
    if noise is None or not np.array_equal(noise.sizes, earlier.sizes):
        return None
    numbers = noise.sample.shape[1]
    steps = _whole(noise.sample)
    other_steps = _whole(earlier.sample)
    if numbers < FEWEST_NUMBERS or not len(steps) or not len(other_steps):
        return None
    correlations = _unit(noise.sample[steps]) @ _unit(earlier.sample[other_steps]).T
    place = np.unravel_index(np.abs(correlations).argmax(), correlations.shape)
    correlation = min(abs(float(correlations[place])), 1 - 1e-12)
    value = correlation * np.sqrt((numbers - 1) / (1 - correlation**2))
    p = 2 * stats.t.sf(value, numbers - 1) * correlations.size * max(len(seen.earlier), 1)
    if p >= SHARE:
        return None
    step = int(steps[place[0]]) + 1
    other = int(other_steps[place[1]]) + 1
    text = f"the noise of step {step} is that of step {other} of an earlier training"
    return Finding(NAME, text, "less private", step=step, number=correlation, limit=0.0)


def _whole(rows: np.ndarray) -> np.ndarray:
    """Return the steps with more noise than rounding makes where there is none."""
    sizes = np.sqrt((rows.astype(float) ** 2).mean(axis=1))
    return np.flatnonzero(np.isfinite(rows).all(axis=1) & (sizes > NO_NOISE))


def _unit(rows: np.ndarray) -> np.ndarray:
    """Return rows of length 1."""
    lengths = np.linalg.norm(rows.astype(float), axis=1, keepdims=True)
    return rows / np.maximum(lengths, 1e-30)

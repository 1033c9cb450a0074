"""How often the approximate tests of the witness accuse honest trainings.

    python tests/witness/calibrate.py --simulations 1e7 --together 10000 --processes 16

Each test whose law is approximate is simulated alone, at its real share of the level, in the
smallest settings that its check admits; then all of them together, at 5%. It needs NumPy, SciPy
and this repository, and ends with status 1 if there are more alarms than there may be.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[2]))

from oraudit import checks
from oraudit.checks import (
    example_counts,
    levels,
    noise_follows_sum,
    noise_law,
    noise_values,
    poisson_batches,
)
from oraudit.records import Record, Told

#: How many simulations are drawn at a time.
BLOCK = 2_000

#: Levels at which alarms are counted beside the real share, to see where a law is off.
COARSE = (1e-2, 1e-3, 1e-4, 1e-5)

#: The level of all tests together in whole trainings, and the largest share that may be accused.
TOGETHER = 0.05
MOST_TOGETHER = 0.055

#: More alarms than this have a probability of this at the expected number.
SURPRISE = 0.003

Draw = Callable[[np.random.Generator, int], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Setting:
    """A setting of one or more tests: ``draw`` returns the p-values of some simulations."""

    name: str
    draw: Draw


# -------------------------------------------------------------------------------------- each alone


def batches(rng, number, *, steps, examples, rate):
    """The sizes of batches, and what two in a row share, as far as the setting is admitted."""
    sizes = rng.binomial(examples, rate, size=(number, steps))
    told = np.full(steps, rate)
    found = {}
    if poisson_batches.enough_for_dispersion(told, examples):
        rates = poisson_batches.seen_rates(sizes, told, examples)
        _, found["dispersion"] = poisson_batches.dispersion_p(sizes, told, examples)
        _, _, found["repeats"] = poisson_batches.repeats_p(sizes, rates, examples)
    # Given their sizes, what two batches share is independent of what the next two share.
    shared = rng.hypergeometric(sizes[:, :-1], examples - sizes[:, :-1], sizes[:, 1:]).sum(1)
    law = poisson_batches.shared_law(sizes, examples)
    admitted = poisson_batches.enough_for_shared(*law[:2], examples)
    if admitted.any():
        p = np.ones(number)
        p[admitted] = poisson_batches.shared_p(shared[admitted], *(each[admitted] for each in law))
        found["shared"] = p
    return found


def counts(rng, number, *, steps, examples, rate):
    """How often examples are drawn."""
    drawn = rng.random((number, steps, examples), dtype=np.float32) < rate
    _, p = example_counts.counts_p(drawn.sum(1), drawn.sum(2))
    return {"counts": p}


def slopes(rng, number, *, steps, numbers):
    """The sum in the noise: steps with sums of very different sizes, and tensors of few numbers."""
    noise = rng.normal(size=(number, steps, numbers))
    sums = rng.normal(size=(steps, numbers)) * np.exp(2 * rng.normal(size=(steps, 1)))
    products = (noise * sums).sum(2)
    variances = (sums**2).sum(1) * (noise**2).mean(2)
    z = products.sum(1) / np.sqrt(variances.sum(1))
    return {"sum in noise": 2 * stats.norm.sf(np.abs(z))}


def law(rng, number, *, numbers):
    """The law of the noise, with a size that is estimated."""
    noise = rng.normal(size=(number, numbers))
    units = noise / np.sqrt((noise**2).mean(1, keepdims=True))
    cells = np.searchsorted(noise_law.EDGES, units)
    cells += np.arange(number)[:, None] * len(noise_law.PROBABILITIES)
    counts = np.bincount(cells.ravel(), minlength=number * len(noise_law.PROBABILITIES))
    small, large = noise_law.largest_p(np.abs(units).max(1), numbers)
    return {
        "cells": noise_law.cells_p(counts.reshape(number, -1)),
        "largest too small": small,
        "largest too large": large,
    }


def values(rng, number, *, numbers, cell):
    """Pairs of equal numbers in one step."""
    noise = rng.normal(size=(number, numbers))
    noise /= np.sqrt((noise**2).mean(1, keepdims=True))
    cells = np.sort(np.round(noise / cell), axis=1)
    pairs = (np.diff(cells, axis=1) == 0).sum(1)
    expected = noise_values.expected_pairs(numbers, cell)
    return {"equal values": stats.poisson.sf(pairs - 1, 2 * expected + 1)}


def follows(rng, number, *, pairs, numbers):
    """The size of the noise follows the sum, where it differs from step to step."""
    squares = rng.chisquare(numbers, size=(number, 2 * pairs))
    sums = np.exp(rng.normal(size=(number, 2 * pairs)))
    correlations = noise_follows_sum.rank_correlations(
        noise_follows_sum.changes(squares), noise_follows_sum.changes(sums)
    )
    return {"follows sum": noise_follows_sum.rank_p(correlations, pairs)}


def settings() -> Iterator[Setting]:
    """The smallest settings that the checks admit, and some larger ones."""
    for steps, examples, rate in (
        (8, 40, 0.5),
        (8, 112, 0.1),
        (8, 1100, 0.01),
        (100, 40, 0.5),
        (100, 112, 0.1),
        (2, 50, 0.5),
        (20, 50, 0.5),
        (12, 100, 0.1),
        (100, 1000, 0.01),
    ):
        draw = partial(batches, steps=steps, examples=examples, rate=rate)
        yield Setting(f"{steps} batches of {examples} examples, rate {rate}", draw)
    for steps, examples, rate in ((10, 100, 0.5), (50, 100, 0.1), (10, 500, 0.1)):
        draw = partial(counts, steps=steps, examples=examples, rate=rate)
        yield Setting(f"{examples} examples in {steps} batches, rate {rate}", draw)
    for steps, numbers in ((1, 4), (3, 8), (30, 2), (100, 1)):
        yield Setting(
            f"{steps} steps of {numbers} numbers", partial(slopes, steps=steps, numbers=numbers)
        )
    for numbers in (noise_law.FEWEST_NUMBERS, 1000):
        yield Setting(f"{numbers} numbers of noise", partial(law, numbers=numbers))
    for numbers, cell in ((10, 1e-6), (200, 1e-3), (1536, 1e-6)):
        yield Setting(
            f"{numbers} numbers in cells of {cell:g}", partial(values, numbers=numbers, cell=cell)
        )
    for pairs in (noise_follows_sum.FEWEST_PAIRS, 50):
        yield Setting(f"{pairs} pairs of steps", partial(follows, pairs=pairs, numbers=10))


def alone(setting: Setting, simulations: int, pool, seed: int) -> dict[str, list[int]]:
    """The numbers of simulations and of alarms at the share and at coarser levels."""
    block = min(BLOCK, max(int(2e7 / _numbers(setting)), 50))
    jobs = [
        (setting, block, np.random.SeedSequence([seed, place]))
        for place in range(-(-simulations // block))
    ]
    totals: dict[str, list[int]] = {}
    for alarms in pool.imap_unordered(_alarms, jobs, chunksize=max(len(jobs) // 200, 1)):
        for name, numbers in alarms.items():
            old = totals.get(name, [0] * len(numbers))
            totals[name] = [a + b for a, b in zip(old, numbers, strict=True)]
    return totals


def _numbers(setting: Setting) -> int:
    """Roughly how many random numbers a simulation draws."""
    given = setting.draw.keywords
    return int(
        given.get("steps", 1) * given.get("examples", 1) * given.get("numbers", 1)
        + given.get("pairs", 0) * 4
    )


def _alarms(job) -> dict[str, list[int]]:
    setting, number, seed = job
    found = setting.draw(np.random.Generator(np.random.SFC64(seed)), number)
    return {
        name: [len(p), *(int((p < level).sum()) for level in (*COARSE, levels.SHARE))]
        for name, p in found.items()
    }


# ------------------------------------------------------------------------------------ all together

#: Steps, examples, rate, sizes of tensors: of honest trainings.
TRAININGS = (
    (10, 200, 0.2, (40, 8)),
    (30, 100, 0.3, (7,)),
    (40, 600, 0.05, (100, 10, 30, 3)),
    (60, 300, 0.1, (20, 20, 1)),
    (25, 1500, 0.02, (900, 30, 300, 10)),
)


def together(simulations: int, pool, seed: int) -> dict[str, int]:
    """How many honest trainings each check accuses with all tests at 5%; "any" is the sum."""
    jobs = [np.random.SeedSequence([seed, 1_000_000 + place]) for place in range(simulations)]
    totals = {"any": 0}
    for names in pool.imap_unordered(_accused, jobs, chunksize=20):
        totals["any"] += bool(names)
        for name in names:
            totals[name] = totals.get(name, 0) + 1
    return totals


def _accused(seed) -> set[str]:
    rng = np.random.Generator(np.random.SFC64(seed))
    for check in checks.CHECKS:
        if hasattr(check, "SHARE"):
            check.SHARE = TOGETHER / levels.STATISTICAL
    return {finding.name for finding in checks.findings(honest(rng))}


def honest(rng: np.random.Generator):
    """What is seen of an honest training, with sums that depend on the noise before them."""
    steps, examples, rate, sizes = TRAININGS[rng.integers(len(TRAININGS))]
    record = Record(examples=examples, names=[str(place) for place in range(len(sizes))])
    sums = [rng.normal(size=size).astype(np.float32) for size in sizes]
    for _ in range(steps):
        chosen = np.flatnonzero(rng.random(examples) < rate)
        sums = [each * np.float32(0.9) + rng.normal(size=each.shape) for each in sums]
        noise = [rng.normal(size=each.shape) for each in sums]
        record.batches.add(len(chosen))
        record.batches.add_inputs(chosen[:, None])
        clipped = [each.astype(np.float32) for each in sums]
        noisy = [a + b.astype(np.float32) for a, b in zip(clipped, noise, strict=True)]
        record.end_step(clipped, noisy, Told(1.0, 1.0, rate))
        sums = [a - 0.3 * b for a, b in zip(sums, noise, strict=True)]
    return record.finished()


# ------------------------------------------------------------------------------------------- report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--simulations", type=float, default=2e5, help="of each test alone")
    parser.add_argument("--together", type=float, default=500, help="honest trainings at 5%%")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="a part of the name of a setting")
    asked = parser.parse_args()
    too_many = False
    print("test, setting: alarms (expected) in simulations; at", *(f"{x:g}" for x in COARSE))
    with Pool(asked.processes) as pool:
        for setting in settings():
            if asked.only not in setting.name:
                continue
            start = time.perf_counter()
            for name, row in alone(setting, int(asked.simulations), pool, asked.seed).items():
                number, *coarse, alarms = row
                expected = number * levels.SHARE
                most = stats.poisson.isf(SURPRISE, expected)
                too_many |= alarms > most
                print(
                    f"{name}, {setting.name}: {alarms} ({expected:.2g}) in {number:.3g}; of them",
                    *(
                        f"{one / number / level:.2f}"
                        for one, level in zip(coarse, COARSE, strict=True)
                    ),
                    "TOO MANY" if alarms > most else "",
                    flush=True,
                )
            print(f"    {time.perf_counter() - start:.0f} s", flush=True)
        if asked.together:
            totals = together(int(asked.together), pool, asked.seed)
            share = totals["any"] / int(asked.together)
            too_many |= share > MOST_TOGETHER
            print(f"all together at {TOGETHER:.0%}: {share:.2%} accused", totals)
    return int(too_many)


if __name__ == "__main__":
    sys.exit(main())

"""The small tables on which claims are tried, and what is computed from them once."""

from functools import cache
from math import log

import numpy as np
from numpy.typing import NDArray

from ledger.cases.counts import accuracy_values
from ledger.cases.worst_cases import best_mean
from orabook.studies.universe import SampledChannel
from oralib import Channel, channel, p
from oralib.mechanisms import (
    AllOrNothing,
    Count,
    CountInSets,
    DiscreteMechanism,
    LocalRandomizedResponse,
    NameAndShame,
    Xor,
    XorInPairs,
    XorRandomizedResponse,
    sign_vectors,
)

__all__ = [
    "LN3",
    "all_tables",
    "best_accuracy",
    "geometric_count",
    "graded_response",
    "private_tables",
    "random_table",
    "randomized_response",
    "sampled_tables",
    "shown_or_noisy",
    "uneven_response",
]

LN3 = log(3)


@cache
def all_tables() -> dict[str, Channel]:
    """Tables with every kind of gap, on at most four elements."""
    members: dict[str, tuple[DiscreteMechanism, tuple[int, ...]]] = {
        "LRR": (LocalRandomizedResponse(LN3), (1, 2, 3)),
        "NAS": (NameAndShame(), (2, 3, 4)),
        "AON": (AllOrNothing(0.25), (2, 3)),
        "XOR": (Xor(), (2, 3)),
        "XIP": (XorInPairs(), (2, 4)),
        "XRR": (XorRandomizedResponse(LN3), (2, 3)),
        "Count": (Count(), (1, 2, 3, 4)),
        "CIS_2": (CountInSets(2), (3, 4)),
    }
    tables = {
        f"{name} n={n}": channel(mechanism, n)
        for name, (mechanism, sizes) in members.items()
        for n in sizes
    }
    return {**tables, **private_tables(), **_mild_tables()}


@cache
def private_tables() -> dict[str, Channel]:
    """Tables with a finite privacy level."""
    return {
        "LRR_0 n=3": channel(LocalRandomizedResponse(0.0), 3),
        "LRR n=3": channel(LocalRandomizedResponse(LN3), 3),
        "XRR n=3": channel(XorRandomizedResponse(LN3), 3),
        "geometric count n=3": geometric_count(3, 1 / 3),
        "random n=2": random_table(2, 3, seed=1),
        "random n=3": random_table(3, 4, seed=2),
    }


@cache
def _mild_tables() -> dict[str, Channel]:
    """Random tables whose losses lie close together, and close to 0 on both sides."""
    return {f"mild {seed}": random_table(2, 12, seed=seed, least=0.8) for seed in range(10, 16)}


def geometric_count(n: int, ratio: float) -> Channel:
    """The number of ones plus geometric noise, kept between 0 and n; ε = ln(1 / ratio)."""
    ones = (sign_vectors(n) > 0).sum(axis=1)
    output = np.arange(n + 1)[:, None]
    distance = np.abs(output - ones)
    inner = ratio**distance * (1 - ratio) / (1 + ratio)
    return Channel(np.where((output == 0) | (output == n), ratio**distance / (1 + ratio), inner))


def random_table(n: int, outputs: int, seed: int, least: float = 0.3) -> Channel:
    """A table with random entries, none of them small."""
    weight = np.random.default_rng(seed).uniform(least, 1.0, (outputs, 2**n))
    return Channel(weight / weight.sum(axis=0))


def shown_or_noisy(truth: float = 0.75) -> Channel:
    """A table of four elements: either the first is shown, or randomized response of all.

    Both have chance 1/2. A guesser that takes what it is shown takes one guess or four.
    """
    signs = sign_vectors(4)
    first = np.stack([signs[:, 0] == sign for sign in (-1, 1)]).astype(float)
    return Channel(0.5 * np.concatenate([first, randomized_response(4, truth)]))


def randomized_response(n: int, truth: float) -> NDArray[np.float64]:
    """The table of randomized response that tells the truth with the given probability."""
    signs = sign_vectors(n)
    lies = (signs[:, None, :] != signs[None, :, :]).sum(axis=2)
    return truth ** (n - lies) * (1 - truth) ** lies


def graded_response(epsilons: tuple[float, ...], weights: tuple[float, ...]) -> Channel:
    """A table of one element: an output is an ε, drawn with the weights, and a response at it."""
    rows = []
    for epsilon, weight in zip(epsilons, weights, strict=True):
        likelihoods = np.array([p(epsilon), 1 - p(epsilon)])
        rows.append(weight * likelihoods)
        rows.append(weight * likelihoods[::-1])
    return Channel(np.array(rows))


@cache
def best_accuracy(name: str, k: int) -> float:
    """The best E[V/R] on one of all tables, over all guessers that take at least k guesses."""
    table = all_tables()[name]
    return best_mean(table, accuracy_values(table.n, k))


@cache
def sampled_tables() -> dict[str, SampledChannel]:
    """Random tables on universes of two and three values, with random laws of their elements."""
    rng = np.random.default_rng(31)
    tables = {}
    for size, n in ((2, 2), (3, 2), (2, 3)):
        weight = rng.uniform(0.2, 1.0, (4, *[size] * n))
        theta = rng.dirichlet(np.full(size, 2.0), n)
        tables[f"|X| = {size}, n = {n}"] = SampledChannel(weight / weight.sum(axis=0), theta)
    return tables


def uneven_response(truth: NDArray[np.float64]) -> Channel:
    """A table of three bits that are told independently.

    Row s of ``truth`` has the probabilities that the bits of dataset s are told truthfully.
    """
    signs = sign_vectors(3)
    is_true = signs[:, None, :] == signs[None, :, :]
    return Channel(np.where(is_true, truth[None], 1 - truth[None]).prod(axis=2), signs)

"""The small tables on which claims are tried, and what is computed from them once."""

from functools import cache
from math import log

import numpy as np
from numpy.typing import NDArray

from ledger.counts import accuracy_values, exceeds
from ledger.worst_cases import best_mean
from oralib import Channel, channel, p
from oralib.mechanisms import DiscreteMechanism, sign_vectors
from oralib.mechanisms.elements import AllOrNothing, LocalRandomizedResponse, NameAndShame
from oralib.mechanisms.sets import Count, CountInSets, Xor, XorInPairs, XorRandomizedResponse

LN3 = log(3)


@cache
def all_tables() -> dict[str, Channel]:
    """Every kind of gap, on at most four elements."""
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
    """Four elements: either the first is shown, or randomized response of all, with equal chance.

    A guesser that takes what it is shown takes one guess or four.
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
    """One element: an output is an ε, drawn with the weights, and a response at that ε."""
    rows = [
        weight * np.array([truth, 1 - truth])[::orientation]
        for epsilon, weight in zip(epsilons, weights, strict=True)
        for truth in [p(epsilon)]
        for orientation in (1, -1)
    ]
    return Channel(np.array(rows))


@cache
def best_accuracy(name: str, k: int) -> float:
    """The best E[V/R] on one of all tables, over all guessers that take at least k guesses."""
    table = all_tables()[name]
    return best_mean(table, accuracy_values(table.n, k))


@cache
def worst_failure(name: str, beta: float, feedback: str) -> float:
    """At worst, how often the bound for this β can exceed ε on a private table."""
    table = private_tables()[name]
    return best_mean(table, exceeds(table.n, table.epsilon, beta), feedback=feedback)

"""The small tables on which claims are tried."""

from functools import cache
from math import log

import numpy as np
from numpy.typing import NDArray

from oralib.channel import Channel, channel
from oralib.mechanisms import (
    AllOrNothing,
    Count,
    CountInSets,
    LocalRandomizedResponse,
    Mechanism,
    NameAndShame,
    Xor,
    XorInPairs,
    XorRandomizedResponse,
    sign_vectors,
)

LN3 = log(3)


@cache
def zoo() -> dict[str, Channel]:
    """Every kind of gap, on at most four elements."""
    members: dict[str, tuple[Mechanism, tuple[int, ...]]] = {
        "LRR": (LocalRandomizedResponse(LN3), (1, 2, 3)),
        "NAS": (NameAndShame(), (2, 3, 4)),
        "AON": (AllOrNothing(0.25), (2, 3)),
        "XOR": (Xor(), (2, 3)),
        "XIP": (XorInPairs(), (2, 4)),
        "XRR": (XorRandomizedResponse(LN3), (2, 3)),
        "Count": (Count(), (1, 2, 3, 4)),
        "CIS_2": (CountInSets(2), (4,)),
    }
    tables = {
        f"{name} n={n}": channel(mechanism, n)
        for name, (mechanism, sizes) in members.items()
        for n in sizes
    }
    return {**tables, **private()}


@cache
def private() -> dict[str, Channel]:
    """Tables with a finite privacy level."""
    return {
        "LRR_0 n=3": channel(LocalRandomizedResponse(0.0), 3),
        "LRR n=3": channel(LocalRandomizedResponse(LN3), 3),
        "XRR n=3": channel(XorRandomizedResponse(LN3), 3),
        "geometric count n=3": geometric_count(3, 1 / 3),
        "random n=2": random_table(2, 3, seed=1),
        "random n=3": random_table(3, 4, seed=2),
    }


def geometric_count(n: int, ratio: float) -> Channel:
    """The number of ones plus geometric noise, kept between 0 and n; ε = ln(1 / ratio)."""
    ones = (sign_vectors(n) > 0).sum(axis=1)
    output = np.arange(n + 1)[:, None]
    distance = np.abs(output - ones)
    inner = ratio**distance * (1 - ratio) / (1 + ratio)
    return Channel(np.where((output == 0) | (output == n), ratio**distance / (1 + ratio), inner))


def random_table(n: int, outputs: int, seed: int) -> Channel:
    """A table with random entries, none of them small."""
    weight = np.random.default_rng(seed).uniform(0.3, 1.0, (outputs, 2**n))
    return Channel(weight / weight.sum(axis=0))


def shown_or_noisy(truth: float = 0.75) -> Channel:
    """Four elements: either the first is shown, or randomized response of all, evenly.

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

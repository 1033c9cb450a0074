"""Guessers with full feedback on few elements: all their payoffs, and what δ can add to them."""

from functools import cache
from itertools import permutations, product
from typing import Any

import numpy as np
from scipy import optimize

__all__ = ["largest_gain_per_leak", "lead", "line_constants", "mean_of_walk", "payoffs"]

#: ``pays[r][v]`` is the payoff, a whole number, of a guesser that stops with v right of r guesses.
Payoffs = tuple[tuple[int, ...], ...]


def lead(*least: int, largest: int = 1) -> Payoffs:
    """Pay 1 for least[r] right of r guesses, and 1 for each right guess more, up to ``largest``."""
    return tuple(
        tuple(min(max(v - c + 1, 0), largest) for v in range(r + 1)) for r, c in enumerate(least)
    )


@cache
def payoffs(n: int, pays: Payoffs, in_order: bool) -> list[Any]:
    """The payoffs that a guesser with full feedback can have, an entry for each value of n coins.

    It may skip elements, is told the coins of all, and must stop after the last r of ``pays``.
    Guessers that differ only in names and signs of elements are listed once.
    """
    size = 2**n
    cube = np.arange(size)
    # The payoffs of a guesser are one whole number: its bit s + size * i is 1 if the payoff for the
    # coins s is larger than i.
    planes = range(max(map(max, pays)))
    coin_is_one = [
        sum(1 << s + size * i for i in planes for s in cube.tolist() if s >> j & 1)
        for j in range(n)
    ]

    @cache
    def reachable(unseen: tuple[int, ...], v: int, r: int) -> frozenset[int]:
        """All payoffs from v right of r guesses on, with these elements left."""
        numbers = {2 ** (size * pays[r][v]) - 1}  # it stops
        for i in unseen[:1] if in_order else unseen:
            rest = tuple(x for x in unseen if x != i)
            pairs = [*product(reachable(rest, v, r), repeat=2)]  # it skips element i
            if r + 1 < len(pays):
                after_right = reachable(rest, v + 1, r + 1)
                after_wrong = reachable(rest, v, r + 1)
                pairs += product(after_right, after_wrong)
                pairs += product(after_wrong, after_right)
            numbers |= {a & coin_is_one[i] | b & ~coin_is_one[i] for a, b in pairs}
        return frozenset(numbers)

    bits = cube[:, None] >> np.arange(n) & 1
    powers = 1 << np.arange(n)
    turns = np.array([(bits[:, o] ^ s) @ powers for o in permutations(range(n)) for s in bits])
    remaining = set(reachable(tuple(range(n)), 0, 0))
    listed = []
    while remaining:
        number = min(remaining)
        listed.append(sum(number >> cube + size * i & 1 for i in planes))
        turned = listed[-1][turns]
        as_numbers = sum((turned > i) @ (1 << cube + size * i) for i in planes)
        remaining -= set(as_numbers.tolist())
    return listed


@cache
def largest_gain_per_leak(wins: tuple[float, ...], luck: float, growth: float) -> float:
    """The largest (L·wins − luck |L|) / J(L), J(L) = Σ (L(s) − growth L(s^i))_+, over L ≥ 0."""
    size = len(wins)
    n = size.bit_length() - 1
    losses = [np.eye(size) - growth * np.eye(size)[np.arange(size) ^ 1 << i] for i in range(n)]
    zeros = np.zeros(size * n)
    sum_of_leaks = np.append(np.zeros(size), np.ones(size * n))
    matrix = np.vstack([np.hstack([np.vstack(losses), -np.eye(size * n)]), sum_of_leaks])
    program = optimize.linprog(
        np.append(luck - np.array(wins), zeros), matrix, np.append(zeros, 1.0)
    )
    return -program.fun if program.status == 0 else np.inf


def mean_of_walk(pays: Payoffs, q: float) -> float:
    """The mean of the largest payoff that a walk with success probability q ever meets."""

    @cache
    def mean(v: int, r: int, largest: int) -> float:
        largest = max(largest, pays[r][v])
        if r + 1 == len(pays):
            return largest
        return q * mean(v + 1, r + 1, largest) + (1 - q) * mean(v, r + 1, largest)

    return mean(0, 0, 0)


def line_constants(line: tuple[int, ...], q: float, weight: float = 1.0) -> tuple[float, float]:
    """(f, c) of right guesses that meet a line, by the definition; ``weight`` is for mutants."""

    @cache
    def after(t: int, u: int) -> tuple[float, float]:
        if u >= line[t] or t + 1 == len(line):
            return float(u >= line[t]), 0.0
        f1, c1 = after(t + 1, u + 1)
        f0, c0 = after(t + 1, u)
        gain = f1 - f0
        terms = [q * c1 + (1 - q) * c0, weight * (1 - q) * gain]
        if c1 > 0:
            terms.append((1 - f1 + (1 - q) * gain) / ((1 - f1) / c1 + 1))
            terms.append(c1 * (1 - (1 - q) * gain / f1))
        if c0 > 0:
            terms.append((f0 + q * gain) / (f0 / c0 + q / (1 - q)))
            terms.append(c0 * (1 - q * gain / (1 - f0)))
        return q * f1 + (1 - q) * f0, max(terms)

    return after(0, 0)

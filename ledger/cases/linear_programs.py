"""The private table with the largest mean worth, by linear programs."""

from collections.abc import Sequence
from itertools import product
from math import exp
from typing import Any

import numpy as np
from scipy import optimize, sparse

from ledger.machine.findings import Function

__all__ = ["largest_chance", "largest_worth", "maximum"]


def maximum(objective: Any, rows: Any, limits: Any, totals: Any) -> float:
    """The largest objective @ x over x >= 0 with rows @ x <= limits and each total 1."""
    totals = np.atleast_2d(totals)
    program = optimize.linprog(
        -np.asarray(objective, dtype=float),
        A_ub=sparse.csr_array(rows),
        b_ub=limits,
        A_eq=sparse.csr_array(totals),
        b_eq=np.ones(len(totals)),
        method="highs",
    )
    return -float(program.fun)


def largest_chance(
    n: int, outputs: list[Any], wins: Function, epsilon: float, delta: float
) -> float:
    """The largest chance of winning over all (ε, δ)-DP mechanisms with these outputs.

    A linear program over the tables themselves; ``wins(o, s)`` says whether output o wins for s.
    """
    return largest_worth(n, outputs, wins, [(epsilon, delta, delta)])


def largest_worth(
    n: int, outputs: list[Any], worth: Function, profile: Sequence[tuple[float, float, float]]
) -> float:
    """The largest mean worth over all mechanisms with these outputs and at most this profile.

    ``worth(o, s)`` is the worth of output o for dataset s, and the profile a list of
    (ε, D_in, D_out).
    """
    datasets = list(product((-1, 1), repeat=n))
    place = {(o, s): j for j, (o, s) in enumerate(product(outputs, datasets))}
    pairs = [(o, s, i) for o, s in place for i in range(n)]
    # The variables are the entries of the table, then an excess for each ε, entry and element. Its
    # row says that it is at least the difference. Then each ε, dataset and element has a row: the
    # sum of its excesses is at most D.
    size = len(place)
    excesses = len(profile) * len(pairs)
    sums = n * len(datasets)
    entries: list[tuple[float, int, int]] = []  # value, row, column
    for row, ((epsilon, _, _), (o, s, i)) in enumerate(product(profile, pairs)):
        flipped = (*s[:i], -s[i], *s[i + 1 :])
        sum_row = excesses + row // len(pairs) * sums + datasets.index(s) * n + i
        entries.append((1.0, row, place[o, s]))
        entries.append((-exp(epsilon), row, place[o, flipped]))
        entries.append((-1.0, row, size + row))
        entries.append((1.0, sum_row, size + row))
    values, rows, columns = map(np.array, zip(*entries, strict=True))
    worths = np.array([worth(o, s) for o, s in place])
    totals = np.zeros((len(datasets), size + excesses))
    totals[:, :size] = np.tile(np.eye(len(datasets)), len(outputs))
    leaks = [a if sign > 0 else b for _, a, b in profile for s in datasets for sign in s]
    return maximum(
        np.r_[worths / len(datasets), np.zeros(excesses)],
        sparse.coo_array((values, (rows, columns))),
        np.r_[np.zeros(excesses), leaks],
        totals,
    )

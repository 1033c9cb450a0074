"""What isolated elements would show: the ceiling, without simulation."""

from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from math import log

import numpy as np
import pandas as pd
from tqdm import tqdm

from orabook.laws import Law, mean_bound
from orabook.studies.isolated_laws import isolated_law
from oralib.dpsgd import DpSgd


def isolated_ceiling(
    sizes: Iterable[int],
    *,
    sees: Iterable[str] = ("sum", "steps"),
    rules: Iterable[str] = ("steinke", "exact"),
    epsilon: float = 2.0,
    delta: float = 1e-5,
    steps: int = 100,
    sample_rate: float = 0.1,
    beta: float = 0.05,
) -> pd.DataFrame:
    """What the best guesser shows about DP-SGD with a coordinate for each element, against n.

    Nothing is simulated: means are integrals, see :mod:`orabook.studies.isolated`. The guesser
    ``sees`` the ``"sum"`` of all steps or the ``"steps"``; ``rules`` are p-values of Steinke et al.
    and the exact ones. Column ``k`` is the best number of guesses, of a grid with steps of 5%, and
    ``bound`` its mean bound.

    >>> isolated_ceiling([1000], sees=["sum"], rules=["exact"]).round(3)
      sees   rule     n    k  bound
    0  sum  exact  1000  119  0.493
    """
    points = product(sees, rules, sizes)
    rows = []
    for seen, rule, n in tqdm(list(points), disable=None, leave=False):
        dpsgd = DpSgd.calibrated(epsilon, delta, n=n, d=n, steps=steps, sample_rate=sample_rate)
        k, bound = best_guesses(dpsgd, seen, rule, beta, delta)
        rows.append({"sees": seen, "rule": rule, "n": n, "k": k, "bound": bound})
    return pd.DataFrame(rows)


def best_guesses(
    dpsgd: DpSgd, seen: str, rule: str, beta: float, delta: float
) -> tuple[int, float]:
    """The best number of guesses on a grid, and its mean bound."""
    grid = np.unique(np.round(1.05 ** np.arange(0, log(dpsgd.n) / log(1.05) + 1)).astype(int))
    grid = grid[grid <= dpsgd.n]
    found: dict[int, float] = {}

    def mean(i: int) -> float:
        if i not in found:
            law = _isolated_law(dpsgd, int(grid[i]), seen)
            found[i] = mean_bound(law, beta=beta, delta=delta, method=rule)
        return found[i]

    # Go up the grid in long steps until the bound is well below its best; then search around that.
    for i in range(0, len(grid), 8):
        if mean(i) < 0.9 * max(found.values()):
            break
    for stride in (4, 2, 1):
        top = max(found, key=lambda i: found[i])
        for i in (top - stride, top + stride):
            if 0 <= i < len(grid):
                mean(i)
    top = max(found, key=lambda i: found[i])
    return int(grid[top]), found[top]


@lru_cache(maxsize=1024)
def _isolated_law(dpsgd: DpSgd, guesses: int, seen: str) -> Law:
    """Computed once for all rules."""
    return isolated_law(dpsgd, guesses, sees=seen, counts=80)

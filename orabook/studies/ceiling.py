"""What isolated elements would show: the ceiling, without simulation."""

from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from math import log, nan

import numpy as np
import pandas as pd
from tqdm import tqdm

from orabook.studies.isolated import confidence, isolated_limit
from orabook.studies.isolated_laws import isolated_law, isolated_threshold_law
from oralib import _check
from oralib._rounding import snap
from oralib.accounting import certified_epsilon, noise_multiplier
from oralib.bounds import epsilon_lower_bound_random_r, split_for
from oralib.dpsgd import DpSgd
from oralib.dpsgd.likelihood import VIEWS
from oralib.experiments import integers_of, words_of
from oralib.laws import Law, mean_bound

ISOLATED_SIZES = tuple(round(10 ** (third / 3)) for third in range(9, 28))

#: How the ceiling turns counts into a bound: for k guesses, k the best one of a grid, without δ,
#: with the p-value of Steinke et al. and with the exact one; and for the best threshold.
RULES = ("plain", "steinke", "exact", "threshold")


def isolated_ceiling(
    sizes: Iterable[int] = ISOLATED_SIZES,
    *,
    sees: Iterable[str] = ("sum", "steps"),
    rules: Iterable[str] = ("plain", "steinke", "exact"),
    epsilon: float = 2.0,
    delta: float = 1e-5,
    steps: int = 100,
    sample_rate: float = 0.1,
    beta: float = 0.05,
) -> pd.DataFrame:
    """What the best guesser shows about DP-SGD with a coordinate for each element, against n.

    Nothing is simulated: means are integrals, see :mod:`orabook.studies.isolated`.

    Parameters
    ----------
    sizes : list of int
        The numbers of elements n; each element has its own coordinate.
    sees : list of str
        What the guesser looks at, the ``"sum"`` of all steps or the ``"steps"``, or both.
    rules : list of str
        ``"plain"`` is the bound for δ = 0, which says nothing about (ε, δ)-DP; ``"steinke"`` and
        ``"exact"`` are for δ and k guesses; ``"threshold"`` is for δ and guesses wherever the
        privacy loss passes a threshold.

    Returns
    -------
    DataFrame
        A row for each point (``sees``, ``rule``, ``n``). ``k`` is the best number of guesses, of a
        grid with steps of 5% (for a threshold, their mean), ``bound`` the mean bound, ``limit`` its
        limit with more and more elements, :func:`isolated_limit` (nan for rules other than the
        exact one), and ``certified`` the ε that dp-accounting's PLD accountant certifies; its RDP
        accountant certifies ``epsilon``.

    Examples
    --------
    >>> table = isolated_ceiling([1000], sees=["sum"], rules=["exact"])
    >>> table[["n", "k", "bound"]].round(3)
          n    k  bound
    0  1000  119  0.493
    """
    beta = _check.real("beta", beta, 0, 1, interval="()")
    trained = integers_of("sizes", sizes)
    points = product(words_of("sees", sees, VIEWS), words_of("rules", rules, RULES), trained)
    sigma = noise_multiplier(epsilon, delta, steps, sample_rate)
    rows = []
    for seen, rule, n in tqdm(list(points), disable=None, leave=False):
        dpsgd = DpSgd(n, n, steps, sample_rate, sigma)
        k, bound = best_guesses(dpsgd, seen, rule, beta, delta)
        limits = rule == "exact"
        limit = isolated_limit(dpsgd, sees=seen, beta=beta, delta=delta) if limits else nan
        row = {"sees": seen, "rule": rule, "n": n, "k": k, "bound": bound, "limit": limit}
        rows.append({**row, "certified": certified_epsilon(dpsgd, delta)})
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
            law = _isolated_law(dpsgd, int(grid[i]), seen, rule == "threshold")
            if rule == "plain":
                found[i] = mean_bound(law, beta=beta, delta=0.0, method="exact")
            elif rule == "threshold":
                found[i] = mean_split_bound(law, beta, delta)
            else:
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


def mean_split_bound(law: Law, beta: float, delta: float) -> float:
    """The mean of the bound for any number of guesses, its share of β planned for the mean of R."""
    guesses = min(max(1, round(float(snap(law.probability @ law.r)))), law.n)
    split = split_for(law.n, delta, beta, guesses=guesses)
    level = {"beta": beta, "delta": delta, "n": law.n}
    return float(law.probability @ epsilon_lower_bound_random_r(law.v, law.r, split=split, **level))


@lru_cache(maxsize=1024)
def _isolated_law(dpsgd: DpSgd, guesses: int, seen: str, threshold: bool) -> Law:
    """This many guesses, or the threshold that this many pass on average; once for all rules."""
    if not threshold:
        return isolated_law(dpsgd, guesses, sees=seen, counts=80)
    tau = float(confidence(dpsgd, seen).level_of(guesses / dpsgd.n))
    return isolated_threshold_law(dpsgd, tau, sees=seen, counts=60)

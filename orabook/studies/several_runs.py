"""The largest bound that one run, or several runs, can show with power near 1.

Consider a mechanism that is this training in a share δ / D(ε) of its runs, and prints one fixed
text in all others: it is (ε, δ)-DP. A bound that is valid for this mechanism exceeds ε in at most a
share β D(ε) / δ of the training's own runs. So no bound of one run exceeds, in nearly every run,
the ε with D(ε) = δ / β. Isolated elements with guesses "in" reach this ε as n grows. For m runs the
condition is D(ε) = δ / β^(1/m).

The mean of a bound may be larger, as a bound may toss a coin and report any number on heads. If
bounds above the exact ε count as this ε, the mean is at most the integral of these shares.
"""

from collections.abc import Iterable
from math import inf, log
from typing import Any

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from orabook.studies.ceiling import best_guesses, isolated_law
from orabook.studies.isolated import confidence, isolated_limit
from oralib import DpSgd
from oralib.bounds import Exact
from oralib.ground.types import Said

__all__ = ["largest_capped_mean", "largest_limit", "limits_of_runs", "profile_of", "runs_or_pooled"]


def limits_of_runs(
    dpsgd: DpSgd,
    numbers: Iterable[float] = (1, 2, 3, 4, 10, inf),
    *,
    beta: float = 0.05,
    delta: float = 1e-5,
) -> pd.DataFrame:
    """The limit of nearly every audit of m runs, a row for each m of ``numbers``.

    Column ``beta`` is that of each run, β^(1/m); ``limit`` the ε with D(ε) = δ / β^(1/m).

    >>> limits_of_runs(DpSgd(n=1000, sigma=2.422402)).round(3).to_dict("list")["limit"]
    [1.426, 1.628, 1.692, 1.723, 1.779, 1.815]
    """
    rows = []
    for m in numbers:
        beta_of_run = beta ** (1 / m)
        limit = largest_limit(dpsgd, beta_of_run, delta)
        rows.append({"m": m, "beta": beta_of_run, "limit": limit})
    return pd.DataFrame(rows)


def largest_limit(dpsgd: DpSgd, beta: float, delta: float) -> float:
    """The ε with D(ε) = δ / β, for the larger of the two directions."""
    return max(isolated_limit(dpsgd, beta=beta, delta=delta, side=side) for side in ("in", "out"))


def profile_of(dpsgd: DpSgd, epsilon: Any) -> NDArray[np.float64]:
    """D(ε), the least δ of the training of an isolated element, for the larger direction."""
    profiles = []
    for side in ("in", "out"):
        right, wrong = confidence(dpsgd, side=side).at(epsilon)
        profiles.append(2 * (right - np.exp(epsilon) * wrong))
    return np.maximum(*profiles)


def largest_capped_mean(dpsgd: DpSgd, *, beta: float = 0.05, delta: float = 1e-5) -> float:
    """Return a mean that no valid bound of one run exceeds, if bounds are capped at the exact ε.

    >>> round(largest_capped_mean(DpSgd(n=1000, sigma=2.422402)), 3)
    1.554
    """
    start = largest_limit(dpsgd, beta, delta)
    exact = largest_limit(dpsgd, 1.0, delta)
    grid = np.linspace(start, exact, 2001)
    shares = np.minimum(1.0, beta * profile_of(dpsgd, grid) / delta)
    return start + float(scipy.integrate.trapezoid(shares, grid))


def runs_or_pooled(
    n: int,
    m: int,
    *,
    sigma: float,
    side: Said = "both",
    beta: float = 0.05,
    delta: float = 1e-5,
) -> dict[str, float]:
    """Compare m runs of n isolated elements each: the least of their bounds, or all as one run.

    Both means are for the paper's training of 100 steps, for scores that use its true noise, and
    for the best number of guesses.

    >>> runs_or_pooled(20_000, 2, sigma=2.422402)["pooled"] > 1.05
    True
    """
    run = DpSgd(n, n, sigma=sigma)
    together = DpSgd(m * n, m * n, sigma=sigma)
    beta_of_run = beta ** (1 / m)
    start, _ = best_guesses(run, "steps", Exact(), beta_of_run, delta, side)
    grid = np.unique(np.round(start * np.exp(np.linspace(-1, 1, 9) * log(4))).astype(int))
    means = [_mean_of_least(run, int(k), m, beta_of_run, delta, side) for k in grid if k < n / 4]
    pooled_k, pooled = best_guesses(together, "steps", Exact(), beta, delta, side)
    return {
        "n": n,
        "m": m,
        "k": int(grid[int(np.argmax(means))]),
        "least": max(means),
        "pooled_k": pooled_k,
        "pooled": pooled,
    }


def _mean_of_least(dpsgd: DpSgd, k: int, m: int, beta: float, delta: float, side: Said) -> float:
    """The mean of the least of m bounds at ``beta``, whose counts are independent."""
    law = isolated_law(dpsgd, k, counts=200, side=side)
    leak = delta if side == "both" else delta / 2
    bounds = Exact().lower_bound(law.v, law.r, beta=beta, delta=leak, n=dpsgd.n)
    all_reach = np.append(np.cumsum(law.probability[::-1])[::-1], 0.0) ** m
    return float(bounds @ (all_reach[:-1] - all_reach[1:]))

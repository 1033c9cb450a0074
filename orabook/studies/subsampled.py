"""The f-DP bound for the trade-off curves of DP-SGD itself, instead of Gaussian ones.

The parameter of the family is the noise multiplier σ, from 0.1 to 10^6; neighbours add or remove an
element. The privacy loss distributions come from dp-accounting and err safely. Counts must refute
the mean of D_in and D_out at each ε, by finitely many tangents: of fair coins half are in. The ε is
the optimistic estimate for a rejected σ, about 0.002 too low.
"""

from bisect import bisect_left
from functools import lru_cache
from math import exp, expm1, inf, log, log1p, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oralib.bounds.columns import flat_counts, float_if_single
from oralib.bounds.gaussian import LARGEST_R, largest_mus, reach
from oralib.ground import arguments

__all__ = ["epsilon_lower_bound_subsampled"]

#: Noise multipliers of the grid per factor e: on a grid, many counts share a few curves.
_SIGMAS_PER_E_FOLD = 2048


def epsilon_lower_bound_subsampled(
    v: ArrayLike,
    r: ArrayLike,
    *,
    n: ArrayLike,
    delta: ArrayLike,
    beta: ArrayLike = 0.05,
    steps: int = 100,
    sample_rate: float = 0.1,
) -> Any:
    """A lower bound on ε at δ for DP-SGD with this number of steps and sample rate.

    It holds as :class:`oralib.bounds.Gaussian` does, for such a training instead of a
    Gaussian mechanism. Each new count takes seconds. At δ = 0 the bound is 0 or inf; for
    0 < δ < 1e-15 it is the bound at about δ = 1e-15.

    >>> counts = dict(v=40, r=40, n=40, delta=1e-5)
    >>> round(epsilon_lower_bound_subsampled(**counts, steps=4, sample_rate=1.0), 1)
    6.3
    """
    n = arguments.integers("n", n)
    beta, delta = arguments.betas_and_deltas(beta, delta)
    steps = arguments.integer("steps", steps, 1, 10**5)
    rate = arguments.real("sample_rate", sample_rate, 1e-6, 1)
    shape, (v, r, n, delta, beta) = flat_counts(
        v, r, largest_r=LARGEST_R, n=n, delta=delta, beta=beta
    )
    bounds = np.zeros(v.size)
    for i in np.flatnonzero(largest_mus(v, r, n, beta) > 0):  # this family includes fair coins too
        sigma = _least_sigma(steps, rate, *(x[i].item() for x in (v, r, n, beta)))
        if sigma < inf:
            bounds[i] = _optimistic_epsilon(steps, rate, sigma, float(delta[i]))
    return float_if_single(bounds.reshape(shape))


@lru_cache(maxsize=1024)
def _least_sigma(steps: int, rate: float, v: int, r: int, n: int, beta: float) -> float:
    """The least noise multiplier of the grid that is rejected; inf if none is."""
    grid = range(round(log(0.1) * _SIGMAS_PER_E_FOLD) + 1, round(log(1e6) * _SIGMAS_PER_E_FOLD))

    def rejected(k: int) -> bool:
        return bool(
            reach(v, r, n, beta, 0.0, _tangents(steps, rate, exp(k / _SIGMAS_PER_E_FOLD))) > 0
        )

    place = bisect_left(grid, True, key=rejected)
    return exp(grid[place] / _SIGMAS_PER_E_FOLD) if place < len(grid) else inf


@lru_cache(maxsize=512)
def _tangents(steps: int, rate: float, sigma: float) -> NDArray[np.float64]:
    """Lines whose maximum is nowhere above g, by increasing slope.

    Of fair coins half are in. So for each ε >= 0 a guess that is right with probability x would be
    right with probability y if its coin had fallen the other way, where x <= e^ε y + D(ε) and, for
    the complements, 1 - y <= e^ε (1 - x) + D(ε), with D the mean of D_in and D_out.
    """
    interval = min(_step_spread(rate, sigma) / 16, 0.01)
    pld = _composed(steps, rate, sigma, interval, safe=True)
    largest = min(pld.get_epsilon_for_delta(1e-12), 600.0)
    epsilon = np.linspace(0, largest, 513)
    # Its public method has the larger of the two directions.
    directions = (pld._pmf_remove, pld._pmf_add)
    deltas = [np.asarray(law.get_delta_for_epsilon(epsilon)) for law in directions]
    delta = np.mean(deltas, axis=0) + 1e-14  # more than its rounding errors
    slopes = np.exp(epsilon)
    lower = np.column_stack([1 / slopes, -delta / slopes])[::-1]
    upper = np.column_stack([slopes, 1 - delta - slopes])
    return _hull(np.vstack([lower, upper]))


def _hull(lines: NDArray[np.float64]) -> NDArray[np.float64]:
    """Keep the lines (by increasing slope) that are the largest somewhere."""
    hull: list[tuple[float, float]] = []
    for slope, height in lines.tolist():
        if hull and hull[-1][0] == slope:
            height = max(height, hull.pop()[1])
        while len(hull) > 1:
            (s0, h0), (s1, h1) = hull[-2:]
            if (h0 - height) * (s1 - s0) > (h0 - h1) * (slope - s0):
                break
            hull.pop()
        hull.append((slope, height))
    return np.array(hull)


@lru_cache(maxsize=1024)
def _optimistic_epsilon(steps: int, rate: float, sigma: float, delta: float) -> float:
    """An ε that does not exceed the one at which training with ``sigma`` is (ε, δ)-DP."""
    if delta == 0:
        return inf
    loss = (1 + 20 * sigma) / (2 * sigma**2)  # the largest one, ten standard deviations out
    if rate < 1:
        loss = log1p(rate * expm1(min(loss, 700.0)))
    interval = min(max(0.004 / steps, loss / 1e5), _step_spread(rate, sigma) / 32, 0.01)
    pld = _composed(steps, rate, sigma, interval, safe=False)
    # The library moves up to 1e-15 of the tail to infinity, even where it should not.
    return float(pld.get_epsilon_for_delta(min(delta + 2e-15, 1.0)))


def _step_spread(rate: float, sigma: float) -> float:
    """The approximate standard deviation of the privacy loss of a step."""
    return rate * sqrt(expm1(min(1 / sigma**2, 100.0)))


def _composed(steps: int, rate: float, sigma: float, interval: float, *, safe: bool) -> Any:
    """The privacy loss distribution of a training, from dp-accounting, for adding and removing."""
    # Here, because it takes a second to import and few need it.
    from dp_accounting.pld import privacy_loss_distribution

    step = privacy_loss_distribution.from_gaussian_mechanism(
        sigma,
        sampling_prob=rate,
        value_discretization_interval=interval,
        pessimistic_estimate=safe,
        use_connect_dots=safe,
    )
    return step.self_compose(steps)

"""The f-DP bound for the trade-off curves of DP-SGD itself, instead of Gaussian ones."""

from dataclasses import dataclass
from functools import lru_cache
from math import exp, expm1, inf, log, log1p, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oralib import _check
from oralib.bounds.fdp import _largest_mus, _reach

Array = NDArray[Any]

#: Noise multipliers are tried on a grid, so that many counts share a few curves.
_PER_E_FOLD = 2048
_LEAST_SIGMA, _LARGEST_SIGMA = 0.1, 1e6


@dataclass(frozen=True)
class SubsampledGaussianCurve:
    """The trade-off curves of DP-SGD: Gaussian noise on Poisson-sampled batches, step after step.

    The parameter of the family is the noise multiplier σ, from 0.1 to 10^6; neighbours add or
    remove one element. The privacy loss distributions come from dp-accounting and err on the safe
    side. Counts must refute the pessimistic curve, the worse of adding and removing at each ε, as
    the maximum of finitely many of its tangents. The ε is the optimistic estimate for a rejected σ,
    up to 1/2048 above the critical one, about 0.002 too low.

    Parameters
    ----------
    steps : the number of steps, from 1 to 10^5.
    sample_rate : the probability that an element is in a batch, in [10^-6, 1].

    Examples
    --------
    >>> round(SubsampledGaussianCurve(steps=1, sample_rate=1.0).epsilon(1.0, 1e-5), 2)
    4.38
    """

    steps: int = 100
    sample_rate: float = 0.1

    def __post_init__(self) -> None:
        steps = _check.integer("steps", self.steps, 1, 10**5)
        rate = _check.real("sample_rate", self.sample_rate, 1e-6, 1)
        _check.store(self, steps=steps, sample_rate=rate)

    def epsilon(self, sigma: float, delta: float) -> float:
        """An ε that does not exceed the one at which training with ``sigma`` is (ε, δ)-DP.

        It is inf at δ = 0; for 0 < δ < 1e-15 it is the ε at about 1e-15.
        """
        sigma = _check.real("sigma", sigma, _LEAST_SIGMA, _LARGEST_SIGMA)
        return _optimistic_epsilon(self, sigma, _check.real("delta", delta, 0, 1))

    def _bounds(self, v: Array, r: Array, n: Array, delta: Array, beta: Array) -> Array:
        found = np.zeros(v.size)
        mus = _largest_mus(v, r, n, beta)
        for i in np.flatnonzero(mus > 0):  # this family includes fair coins too
            sigma = _least_sigma(self, *(x[i].item() for x in (v, r, n, beta, mus)))
            if sigma < inf:
                found[i] = _optimistic_epsilon(self, sigma, float(delta[i]))
        return found


@lru_cache(maxsize=1024)
def _least_sigma(
    curve: SubsampledGaussianCurve, v: int, r: int, n: int, beta: float, mu: float
) -> float:
    """The least noise multiplier of the grid that is rejected; inf if none is.

    ``mu`` is the largest μ whose Gaussian curve is rejected.
    """

    least = round(log(_LEAST_SIGMA) * _PER_E_FOLD) + 1
    most = round(log(_LARGEST_SIGMA) * _PER_E_FOLD) - 1
    # By the central limit theorem, the training is about as private as μ-GDP for this σ.
    ratio = (mu / curve.sample_rate) ** 2 / curve.steps
    k = min(max(round(-0.5 * log(log1p(ratio)) * _PER_E_FOLD), least), most)
    low, high = least - 1, most + 1  # low is not rejected, or not tried; high is rejected
    last: tuple[int, float] | None = None
    stride = 16
    while high - low > 1:
        value = float(_reach(v, r, n, beta, 0.0, _tangents(curve, exp(k / _PER_E_FOLD))))
        low, high = (low, k) if value > 0 else (k, high)
        step = None
        if last is not None and abs(value) < 1.5 and (value - last[1]) * (k - last[0]) > 0:
            step = round(-value * (k - last[0]) / (value - last[1]))
        last = k, value
        if step is None:
            step = -stride if value > 0 else stride
            stride *= 2
        # Move at least one point further, toward the root.
        step = min(step, -1) if value > 0 else max(step, 1)
        k = k + step if low < k + step < high else (low + high) // 2
    return exp(high / _PER_E_FOLD) if high <= most else inf


@lru_cache(maxsize=512)
def _tangents(curve: SubsampledGaussianCurve, sigma: float) -> NDArray[np.float64]:
    """Lines whose maximum is nowhere above g, by increasing slope.

    For each ε >= 0 an event of probability x has a probability y in the other world, with x <= e^ε
    y + δ(ε) and, for its complement, 1 - y <= e^ε (1 - x) + δ(ε).
    """
    spread = _step_spread(curve, sigma)
    pld = _composed(curve, sigma, min(spread / 16, 0.01), safe=True)
    most = min(pld.get_epsilon_for_delta(1e-12), 600.0)
    epsilon = np.linspace(0, most, 513)
    delta = np.asarray(pld.get_delta_for_epsilon(epsilon)) + 1e-14  # more than its rounding errors
    slopes = np.exp(epsilon)
    lower = np.column_stack([1 / slopes, -delta / slopes])[::-1]
    upper = np.column_stack([slopes, 1 - delta - slopes])
    return _hull(np.vstack([lower, upper]))


def _hull(lines: NDArray[np.float64]) -> NDArray[np.float64]:
    """Those of the lines (by increasing slope) that are the largest somewhere."""
    kept: list[tuple[float, float]] = []
    for slope, height in lines.tolist():
        if kept and kept[-1][0] == slope:
            height = max(height, kept.pop()[1])
        while len(kept) > 1:
            (s0, h0), (s1, h1) = kept[-2:]
            if (h0 - height) * (s1 - s0) > (h0 - h1) * (slope - s0):
                break
            kept.pop()
        kept.append((slope, height))
    return np.array(kept)


@lru_cache(maxsize=1024)
def _optimistic_epsilon(curve: SubsampledGaussianCurve, sigma: float, delta: float) -> float:
    if delta == 0:
        return inf
    most = (1 + 20 * sigma) / (2 * sigma**2)  # the largest loss, ten standard deviations out
    most = most if curve.sample_rate == 1 else log1p(curve.sample_rate * expm1(min(most, 700.0)))
    interval = min(max(0.004 / curve.steps, most / 1e5), _step_spread(curve, sigma) / 32, 0.01)
    pld = _composed(curve, sigma, interval, safe=False)
    # The library moves up to 1e-15 of the tail to infinity, even where it should not.
    return float(pld.get_epsilon_for_delta(min(delta + 2e-15, 1.0)))


def _step_spread(curve: SubsampledGaussianCurve, sigma: float) -> float:
    """The approximate standard deviation of the privacy loss of a step."""
    return curve.sample_rate * sqrt(expm1(min(1 / sigma**2, 100.0)))


def _composed(curve: SubsampledGaussianCurve, sigma: float, interval: float, safe: bool) -> Any:
    """The privacy loss distribution of a training, from dp-accounting, for adding and removing."""
    # Here, because it takes a second to import and few need it.
    from dp_accounting.pld import privacy_loss_distribution

    how: Any = {"pessimistic_estimate": safe, "use_connect_dots": safe}
    how |= {"sampling_prob": curve.sample_rate, "value_discretization_interval": interval}
    step = privacy_loss_distribution.from_gaussian_mechanism(sigma, **how)
    return step.self_compose(curve.steps)

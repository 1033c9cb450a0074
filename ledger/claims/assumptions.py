"""Bounds that assume more than differential privacy: their laws, and the limit of any rule."""

from functools import cache
from itertools import product
from math import comb, exp, log
from typing import Any

import numpy as np
from scipy import interpolate, special, stats

from ledger.machine.comparisons import at_most, equal
from ledger.machine.entries import explained, mutants, ours
from ledger.machine.findings import Cases, Finding, all_of, each
from ledger.machine.mutants import varied
from orabook.studies import common_size
from oralib.bounds import Gaussian, gaussian_epsilon, p

__all__ = ["independent_elements", "limit_of_any_rule", "one_size"]

#: Sizes of normal scores: midpoints of a rule of integration.
_STEP = 0.006
_SIZES = _STEP * (np.arange(1500) + 0.5)


@cache
def _two_surest(n: int, v: int, mu: float) -> tuple[float, Any]:
    """P[at least v of the two surest of n guesses are right], and P[a size is at most _SIZES]."""
    density = stats.norm.pdf(_SIZES - mu / 2) + stats.norm.pdf(_SIZES + mu / 2)
    below = special.ndtr(_SIZES - mu / 2) - special.ndtr(-_SIZES - mu / 2)
    success = p(mu * _SIZES)
    # The density of the two that are guessed: all others are smaller than both.
    guessed = np.outer(density, density) * np.minimum.outer(below, below) ** (n - 2)
    chance = np.outer(success, success) if v == 2 else 1 - np.outer(1 - success, 1 - success)
    return comb(n, 2) * float((guessed * chance).sum()) * _STEP**2, below


@ours("ours:independent-elements", "This book, after Xiang et al.", "quadrature")
@explained("F-theorems#prop-assume-independent")
@mutants(varied("mu_factor", 2), varied("more", 2))
def independent_elements(mu_factor: float = 1.0, more: float = 1.0) -> Finding:
    """Of the r most confident of n independent μ-GDP guesses at least v are right with probability
    at most E[P[Bin(r, q(C)) ≥ v]], C ~ Beta(r + 1, n − r): with Gaussian noise exactly that, and
    less if guesses are taken at random.
    """
    mu = 0.8
    surest = []
    at_random = []
    for n, v in product((3, 6), (1, 2)):
        mean, below = _two_surest(n, v, mu)
        share = stats.beta.ppf((np.arange(4000) + 0.5) / 4000, 2 + more, n - 2)
        threshold = np.interp(1 - share, below, _SIZES)
        ends = [stats.norm.sf(threshold + side * mu_factor * mu / 2) for side in (-1, 1)]
        stated = float(stats.binom.sf(v - 1, 2, ends[0] / sum(ends)).mean())
        surest.append((f"{v} of 2 right, n = {n}", mean, stated))
        random = float(stats.binom.sf(v - 1, 2, special.ndtr(mu / 2)))
        at_random.append((f"{v} of 2 at random, n = {n}", random, stated))
    return all_of(equal(surest, 2e-4), at_most(at_random))


@ours("ours:one-size", "This book", "quadrature")
@explained("F-theorems#prop-assume-size")
@mutants(varied("curve", 1), varied("slope", 1))
@each(equal, 1e-5)
def one_size(curve: float = 1.0, slope: float = 1.0) -> Cases:
    """If elements share one size T, and each sign is right with probability p(μT), then for each
    element, whatever the others are, the trade-off curve is that of N(μ/2, 1) against N(−μ/2, 1).
    """
    for mu, other, epsilon in product((0.5, 1.5), (-1, 1), (0.0, 0.4, 1.5)):
        density = stats.norm.pdf(_SIZES - mu / 2) + stats.norm.pdf(_SIZES + mu / 2)
        success = p(slope * mu * _SIZES)
        profile = 0.0
        # The signs of an element and of another one, whose coin is known.
        for sign, sign_of_other in product((-1, 1), repeat=2):
            if_in = success if sign == 1 else 1 - success
            if_out = success if sign == -1 else 1 - success
            weight = density * (success if sign_of_other == other else 1 - success)
            profile += (weight * np.maximum(if_in - exp(epsilon) * if_out, 0)).sum() * _STEP
        m = curve * mu
        upper = special.ndtr(m / 2 - epsilon / m)
        lower = special.ndtr(-m / 2 - epsilon / m)
        yield f"μ = {mu}, ε = {epsilon}", float(profile), float(upper - exp(epsilon) * lower)


@cache
def _limit(v: int, r: int, groups: int) -> tuple[float, Any, float]:
    """The ε at which groups reach v with probability 5%, log P for any ε, and the f-DP bound."""
    mu = np.linspace(0.2, 1.8, 33)
    epsilon = gaussian_epsilon(mu, 1e-5)
    logs = [log(common_size(value, groups).tail(v, r)) for value in mu]
    limit = float(interpolate.CubicSpline(logs, epsilon)(log(0.05)))
    fdp = Gaussian().lower_bound(v, r, n=groups * r, delta=1e-5, beta=0.05)
    return limit, interpolate.CubicSpline(epsilon, logs), float(fdp)


@ours("ours:limit-of-any-rule", "This book", "quadrature")
@explained("F-theorems#prop-assume-limit")
@mutants(varied("factor", 1))
@each(at_most)
def limit_of_any_rule(factor: float = 1.0) -> Cases:
    """A rule for v right of r guesses that is valid for all mechanisms that are exactly μ-GDP
    reports at most the ε of the μ at which n/r groups, with one size each, reach v with probability
    β: there a rule that reports 0.1% more is not valid, and one that reports 0.1% less is.
    """
    for v, r, groups in ((74, 100, 10), (17, 20, 1)):
        limit, log_tail, fdp = _limit(v, r, groups)
        above, below = np.exp(log_tail(factor * limit * np.array([1.001, 0.999])))
        yield f"{v} of {r}: 0.1% more", 0.05, float(above)
        yield f"{v} of {r}: 0.1% less", float(below), 0.05
        yield f"{v} of {r}: f-DP", fdp, factor * limit

"""Bounds that assume more than differential privacy: what holds, and what no rule can have."""

from itertools import product
from math import comb, exp
from typing import Any

import numpy as np
from scipy import optimize, special, stats

from ledger.comparisons import at_most, equal
from ledger.entries import explained, mutants, ours
from ledger.findings import Cases, Finding, all_of, each
from ledger.mutants import varied
from orabook.studies import common_size
from oralib.bounds import epsilon_lower_bound_fdp, gaussian_epsilon, p

DELTA, BETA = 1e-5, 0.05


@ours(109, "ours:independent-elements", "This book, after Xiang et al.", "quadrature")
@explained("what-an-assumption-buys#prop-assume-independent")
@mutants(varied("level", 2), varied("more", 2))
def independent_elements(level: float = 1.0, more: float = 1.0) -> Finding:
    """Of the r most confident of n independent μ-GDP guesses at least v are right with probability
    at most E[P[Bin(r, q(C)) ≥ v]], C ~ Beta(r + 1, n − r): with Gaussian noise exactly that, and
    less if guesses are taken at random.
    """
    mu, size = 0.8, np.linspace(0, 9, 1501)[1:] - 0.003
    density = stats.norm.pdf(size - mu / 2) + stats.norm.pdf(size + mu / 2)
    below = special.ndtr(size - mu / 2) - special.ndtr(-size - mu / 2)

    def stated(v: int, r: int, n: int) -> float:
        share = stats.beta.ppf((np.arange(4000) + 0.5) / 4000, r + more, n - r)
        threshold = np.interp(-share, *(below - 1, size)) if n > r else np.zeros(1)
        right, wrong = (stats.norm.sf(threshold + side * level * mu / 2) for side in (-1, 1))
        return float(stats.binom.sf(v - 1, r, right / (right + wrong)).mean())

    exact, less = [], []
    for n, v in product((3, 6), (1, 2)):
        # Two are taken, with sizes x and y, and all others are smaller than both.
        taken = np.outer(density, density) * np.minimum.outer(below, below) ** (n - 2)
        wrong = 1 - p(mu * size)
        chance = 1 - np.outer(wrong, wrong) if v == 1 else np.outer(1 - wrong, 1 - wrong)
        mean = comb(n, 2) * float((taken * chance).sum()) * (size[1] - size[0]) ** 2
        exact.append((f"{v} of 2 right, n = {n}", mean, stated(v, 2, n)))
        random = stats.binom.sf(v - 1, 2, stats.norm.cdf(mu / 2))
        less.append((f"{v} of 2 at random, n = {n}", random, stated(v, 2, n)))
    return all_of(equal(exact, 2e-4), at_most(less))


@ours(110, "ours:one-size", "This book", "quadrature")
@explained("what-an-assumption-buys#prop-assume-size")
@mutants(varied("curve", 1), varied("slope", 1))
@each(equal, 1e-6)
def one_size(curve: float = 1.0, slope: float = 1.0) -> Cases:
    """If elements share one size T, and each sign is right with probability p(μT), then for each
    element, whatever the others are, the trade-off curve is that of N(μ/2, 1) against N(−μ/2, 1).
    """
    edges, signs = np.linspace(0, 12, 6001), list(product((-1, 1), repeat=3))
    size = (edges[1:] + edges[:-1]) / 2
    for mu, others, epsilon in product((0.5, 1.5), ((-1, 1), (1, 1)), (0.0, 0.4, 1.5)):
        density = stats.norm.pdf(size - mu / 2) + stats.norm.pdf(size + mu / 2)
        right = p(slope * mu * size)

        def law(coins: tuple[int, ...], density: Any = density, right: Any = right) -> Any:
            chances = (
                [right if s == c else 1 - right for s, c in zip(o, coins, strict=True)]
                for o in signs
            )
            return np.array([density * np.prod(each, axis=0) for each in chances])

        one, other = law((1, *others)), law((-1, *others))
        profile = np.maximum(one - exp(epsilon) * other, 0).sum() * (edges[1] - edges[0])
        m = curve * mu
        gaussian = special.ndtr(m / 2 - epsilon / m) - exp(epsilon) * special.ndtr(
            -m / 2 - epsilon / m
        )
        yield f"μ = {mu}, ε = {epsilon}, others {others}", float(profile), float(gaussian)


@ours(111, "ours:limit-of-any-rule", "This book", "quadrature")
@explained("what-an-assumption-buys#prop-assume-limit")
@mutants(varied("factor", 1))
@each(at_most)
def limit_of_any_rule(factor: float = 1.0) -> Cases:
    """A rule for v right of r guesses that is valid for all mechanisms that are exactly μ-GDP
    reports at most the ε of the μ at which h = n/r groups, with one size each, reach v with
    probability β: a rule that reports 0.1% more is not valid there, one that reports 0.1% less is.
    """
    for v, r, groups in ((74, 100, 10), (17, 20, 1)):

        def reached(mu: float, v: int = v, r: int = r, groups: int = groups) -> float:
            return float(common_size(mu, groups).tail(v, r))

        limit = gaussian_epsilon(optimize.brentq(lambda mu: reached(mu) - BETA, 0.01, 9), DELTA)
        for more in (1.001, 0.999):
            level = more * factor * limit
            mu = optimize.brentq(
                lambda mu, level=level: gaussian_epsilon(mu, DELTA) - level, 0.01, 9
            )
            pair = (BETA, reached(mu)) if more > 1 else (reached(mu), BETA)
            yield f"{v} of {r}, {groups} groups, ε = {level:.3f}", *pair
        fdp = epsilon_lower_bound_fdp(v, r, n=groups * r, delta=DELTA, beta=BETA)
        yield f"f-DP, {v} of {r}", fdp, factor * limit

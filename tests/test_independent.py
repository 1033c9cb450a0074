"""The bound for independent scores against quadrature, simulated audits and exact laws."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import oralib
from oralib.bounds import independent

bound = oralib.bounds.Independent().lower_bound


# ----------------------------------------------------------------------------- the naive twins


def p_value(v, r, n, mu):
    """The library's own, at one μ."""
    return independent._independent_p_value(v, r, independent._shares_above(r, n), mu)


def right_by_bisection(c, mu):
    """How often a guess is right whose confidence is among the share c of the highest ones."""
    low, high = np.zeros_like(c), np.full_like(c, 40 + mu)
    for _ in range(80):
        t = (low + high) / 2
        above = stats.norm.sf(t - mu / 2) + stats.norm.sf(t + mu / 2) > c
        low, high = np.where(above, t, low), np.where(above, high, t)
    a, b = stats.norm.sf(low - mu / 2), stats.norm.sf(low + mu / 2)
    return a / (a + b)


def integral(v, r, n, mu):
    """By Gauss and Legendre's rule, piece by piece, over the level of the threshold."""
    if r == n:
        return stats.binom.sf(v - 1, r, right_by_bisection(np.ones(1), mu))[0]
    law = stats.beta(r + 1, n - r)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    total = 0.0
    for low, high in pairwise(law.ppf([1e-15, 1e-6, 0.01, 0.5, 0.99, 1 - 1e-6, 1 - 1e-13])):
        c = low + (high - low) * (nodes + 1) / 2
        tails = stats.binom.sf(v - 1, r, right_by_bisection(c, mu))
        total += (high - low) / 2 * (weights * law.pdf(c) * tails).sum()
    return total


@pytest.mark.parametrize(
    ("r", "n"), [(1, 1), (1, 2), (1, 10**6), (7, 8), (20, 300), (90, 90), (400, 401), (100, 10**5)]
)
@pytest.mark.parametrize("mu", [0.0, 0.4, 1.5, 5.0])
def test_p_value_by_quadrature(r, n, mu):
    for v in {r // 2 + 1, (3 * r + 3) // 4, r}:
        exact = integral(v, r, n, mu)
        assert p_value(v, r, n, mu) == pytest.approx(exact, rel=1e-8, abs=3e-15)


def played(mu, n, r, audits, seed):
    """Counts of audits as they are played: noise, signs, the r most confident guesses."""
    rng = np.random.default_rng(seed)
    # What points to the right coin is positive, whatever the coin.
    seen = mu / 2 + rng.standard_normal((audits, n))
    taken = np.argpartition(np.abs(seen), n - r, axis=1)[:, n - r :] if r < n else np.arange(n)
    return np.count_nonzero(np.take_along_axis(seen, np.broadcast_to(taken, (audits, r)), 1) > 0, 1)


@pytest.mark.parametrize(("n", "r"), [(12, 12), (30, 6), (200, 50)])
@pytest.mark.parametrize("mu", [0.3, 2.0])
def test_p_value_by_simulation(n, r, mu):
    audits = 20_000
    v = played(mu, n, r, audits, seed=n)
    for threshold in np.unique(np.quantile(v, [0.1, 0.5, 0.9]).astype(int)):
        p, share = p_value(threshold, r, n, mu), (v >= threshold).mean()
        assert abs(share - p) <= 4 * np.sqrt(p * (1 - p) / audits) + 1e-12


# ---------------------------------------------------------------------------------- coverage


def test_coverage_where_it_is_a_theorem():
    """All are guessed: V is binomial, and the failures are known exactly."""
    for n, mu, beta in product([1, 5, 100, 1000], [0.0, 0.5, 2.0], [0.05, 0.4]):
        v = np.arange(n + 1)
        over = bound(v, n, n=n, delta=1e-5, beta=beta) > oralib.bounds.gaussian_epsilon(mu, 1e-5)
        failures = stats.binom.pmf(v, n, stats.norm.cdf(mu / 2))[over].sum()
        assert failures <= beta
        if (n, mu, beta) == (1000, 0.5, 0.05):
            assert failures == pytest.approx(0.0476, abs=0.0001)


# ------------------------------------------------------------------------------- what it is


@given(st.integers(1, 300), st.integers(0, 3000), st.floats(1e-6, 0.5), st.floats(1e-9, 0.1))
def test_monotone_and_above_the_bounds_that_assume_less(r, others, beta, delta):
    n, some = r + others, np.unique(np.linspace(r // 2, r, 12).astype(int))
    found = bound(some, r, n=n, delta=delta, beta=beta)
    assert (np.diff(found) >= -1e-9 - 1e-7 * found[1:]).all()
    v = (3 * r + 3) // 4
    less = bound(v, r, n=n, delta=np.array([2.0, 1.0, 0.1]) * delta, beta=beta)
    assert (np.diff(less) >= 0).all()
    bold = bound(v, r, n=n, delta=delta, beta=np.array([0.1, 1.0, 1.5]) * beta)
    assert (np.diff(bold) >= -1e-9).all()
    fdp = oralib.bounds.Gaussian().lower_bound(some, r, n=n, delta=delta, beta=beta)
    assert (found >= fdp - 1e-9 - 1e-7 * fdp).all()


def test_edges():
    assert bound(0, 0, n=0, delta=1e-5) == bound(0, 0, n=10, delta=0.0) == 0
    assert (bound(np.arange(51), 100, n=1000, delta=[[1e-5], [0.0]], beta=0.99) == 0).all()
    assert bound([75, 52], 100, n=1000, delta=0.0).tolist() == [np.inf, 0]
    assert bound(75, 100, n=1000, delta=1.0) == 0
    assert bound(100, 100, n=100, delta=1e-5, beta=1e-20) == 0
    extreme = bound(
        [1, 1, 10**6, 10**6 - 1, 501_000, 10**8],
        [1, 1, 10**6, 10**6, 10**6, 10**8],
        n=[1, 2**53, 10**6, 2**53, 10**6 + 1, 10**8],
        delta=1e-5,
        beta=[[1e-12], [0.05], [1 - 1e-12]],
    )
    assert ((extreme >= 0) & (extreme < 1000)).all()

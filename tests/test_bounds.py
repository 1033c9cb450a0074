"""Bounds against published and 40-digit values, naive loops, and their own promises."""

from functools import partial
from itertools import product

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import binomial_tail, steinke_p_value
from scipy import special, stats

import oralib
from oralib import epsilon_estimate, epsilon_lower_bound, p, p_inv, p_value
from oralib.bounds import Exact, RandomR, Steinke, clopper_pearson_lower


def test_p_and_its_inverse():
    assert p(0) == 0.5
    assert p(np.inf) == 1
    assert p(-np.inf) == 0
    assert p_inv(1) == np.inf
    assert p_inv(0) == -np.inf
    assert p(np.log(3)) == pytest.approx(0.75, rel=1e-15)
    x = np.linspace(-30, 30, 61)
    np.testing.assert_allclose(p_inv(p(x)), x, rtol=1e-3)
    np.testing.assert_allclose(p_inv(p(x[:31])), x[:31], rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("delta", [0, 0.0, 1e-5, np.float64(0.01), 1])
def test_single_numbers_are_as_arrays(delta):
    sizes = (75, 100, 1000), (0, 0, 1), (np.int64(30), 30, np.int64(30)), (4, 9, 2**53)
    for (v, r, n), rule in product(sizes, (Steinke(), Exact())):
        how = {"delta": delta, "n": n, "rule": rule}
        one = epsilon_lower_bound(v, r, **how)
        assert type(one) is float
        assert one == epsilon_lower_bound([v], [r], **how)[0]
        assert p_value(v, r, 0.5, **how) == p_value([v], [r], 0.5, **how)[0]
    bound = partial(RandomR(expected=80).lower_bound, delta=delta, n=99)
    assert bound(70, 90) == bound([70], [90])[0]


def test_published_values():
    """Steinke et al., Appendix D, to 15 digits."""
    for n, r, v, delta, epsilon in (
        (1000, 100, 75, 1e-4, 0.67298466410742),
        (100_000, 1510, 1439, 1e-5, 2.67585100767862),
    ):
        assert epsilon_lower_bound(v, r, delta=delta, n=n) == pytest.approx(epsilon, rel=1e-11)


@pytest.mark.parametrize(
    ("v", "r", "epsilon", "delta", "n"),
    [
        (1, 1, 0.0, 0.01, 3),
        (5, 5, 1.0, 1e-3, 40),
        (75, 100, 0.5, 1e-4, 1000),
        (55, 100, 1.0, 1e-4, 200),
        (268, 268, 0.75, 1e-5, 20_000),
        (990, 1000, 6.0, 1e-7, 5000),
        # Windows far above the mode, with probabilities that are too small for a double.
        (1158, 1159, 0.0, 1e-5, 2_000_000),
        (1100, 1100, 0.0, 1e-6, 5000),
    ],
)
def test_p_values_to_ten_digits(v, r, epsilon, delta, n):
    exact = float(steinke_p_value(v, r, epsilon, delta, n))
    assert p_value(v, r, epsilon, delta=delta, n=n) == pytest.approx(exact, rel=1e-10)


def test_p_value_does_not_underflow():
    value = p_value(700_000, 1_000_000, 0.0, delta=1e-5, n=1_000_000)
    assert value == pytest.approx(9.914e-5, rel=1e-4)
    assert p_value(900, 1000, 0.0) == pytest.approx(float(binomial_tail(900, 1000, 0)), rel=1e-10)
    assert p_value(10**9, 10**9, 20.0) == pytest.approx(np.exp(-2.0611536), rel=1e-7)


@pytest.mark.parametrize(
    ("v", "r", "beta", "delta", "n"),
    [
        (7, 8, 0.05, 0.0, 8),
        (100, 100, 0.001, 0.0, 100),
        (1439, 1510, 0.05, 0.0, 1510),
        (5, 5, 0.3, 1e-3, 20),
        (73, 100, 0.05, 1e-5, 8000),
        (100, 100, 0.05, 1e-4, 100),
        (390, 400, 0.05, 1e-5, 1000),
    ],
)
def test_relative_error_of_the_bound_is_tiny(v, r, beta, delta, n):
    """The 40-digit p-value crosses β between (1 - 1e-9) and (1 + 1e-9) times the result."""
    bound = epsilon_lower_bound(v, r, beta=beta, delta=delta, n=n)
    assert bound > 0
    below, above = mp.mpf(bound) * (1 - mp.mpf(10) ** -9), mp.mpf(bound) * (1 + mp.mpf(10) ** -9)
    assert steinke_p_value(v, r, below, delta, n) < beta < steinke_p_value(v, r, above, delta, n)


counts = st.integers(1, 400).flatmap(
    lambda r: st.tuples(st.integers(0, r), st.just(r), st.integers(0, 3000))
)
levels = st.floats(1e-6, 0.999)
deltas = st.sampled_from([0.0, 1e-9, 1e-6, 1e-5, 1e-4, 1e-3, 0.05])


@given(counts, levels, deltas)
def test_never_overclaims(count, beta, delta):
    v, r, abstained = count
    bound = epsilon_lower_bound(v, r, beta=beta, delta=delta, n=r + abstained)
    assert np.isfinite(bound)
    if bound > 0:
        assert p_value(v, r, bound, delta=delta, n=r + abstained) <= beta
    # ... nor does it claim too little: a little above, the p-value exceeds β.
    above = bound * (1 + 1e-9) + 1e-9
    assert p_value(v, r, above, delta=delta, n=r + abstained) > beta


@given(counts, levels, deltas)
def test_monotone(count, beta, delta):
    v, r, abstained = count
    n = r + abstained + 1
    bound = epsilon_lower_bound(v, r, beta=beta, delta=delta, n=n)
    slack = 1e-12 + 1e-9 * bound
    if v < r:
        assert epsilon_lower_bound(v + 1, r, beta=beta, delta=delta, n=n) >= bound - slack
    assert epsilon_lower_bound(v, r + 1, beta=beta, delta=delta, n=n) <= bound + slack
    assert epsilon_lower_bound(v, r, beta=beta * 0.9, delta=delta, n=n) <= bound + slack
    assert epsilon_lower_bound(v, r, beta=beta, delta=min(1, 2 * delta), n=n) <= bound + slack
    assert epsilon_lower_bound(v, r, beta=beta, delta=delta, n=n + 10) <= bound + slack
    assert epsilon_lower_bound(v, r, beta=beta) >= bound - slack


@given(st.integers(1, 300), st.data(), deltas)
def test_p_value_rises_with_epsilon(r, data, delta):
    """So the set of rejected ε is an interval, and its end is the bound."""
    v = data.draw(st.integers(0, r))
    n = r + data.draw(st.integers(0, 3000))
    values = p_value(v, r, np.linspace(0, 12, 1001), delta=delta, n=n)
    assert (np.diff(values) >= -1e-12 * values[1:]).all()


@pytest.mark.parametrize("r", [1, 7, 30, 100, 1000])
def test_coverage_for_randomized_response(r):
    """V ~ Bin(r, p(ε)) when ε-randomized response is audited: an exact failure probability."""
    v = np.arange(r + 1)
    for epsilon, beta in product((0.0, 0.3, 1.0, 4.0), (0.001, 0.05, 0.3, 0.5, 0.9)):
        law = stats.binom.pmf(v, r, p(epsilon))
        fails = epsilon_lower_bound(v, r, beta=beta) > epsilon
        assert law[fails].sum() <= beta * (1 + 1e-9)
        # The bound is not wasteful either: one more failing count would be too many.
        if not fails.all():
            assert law[fails].sum() + law[np.flatnonzero(~fails)[-1]] > beta * (1 - 1e-9)


def test_broadcasting():
    v, r = np.array([[7], [8]]), np.array([8, 9, 10])
    bounds = epsilon_lower_bound(v, r, beta=0.1)
    assert bounds.shape == (2, 3)
    assert p_value(v, r, np.ones((4, 1, 1)), delta=[1e-5, 0, 1e-3], n=20).shape == (4, 2, 3)
    assert epsilon_lower_bound([], []).shape == (0,)


def test_no_guesses_no_claim():
    assert epsilon_lower_bound(0, 0) == 0
    assert epsilon_lower_bound(0, 0, delta=1e-5, n=10) == 0
    assert p_value(0, 0, 1.0) == 1
    assert clopper_pearson_lower(0, 0) == 0
    assert np.isnan(epsilon_estimate(0, 0))
    assert p_value(0, 5, 1.0, delta=0.1, n=5) == 1


def test_estimates():
    assert epsilon_estimate(3, 4) == pytest.approx(np.log(3), rel=1e-15)
    assert epsilon_estimate(4, 4) == np.inf
    assert epsilon_estimate(0, 4) == -np.inf
    assert epsilon_lower_bound(9.0, 10.0) == epsilon_lower_bound(9, 10)  # whole floats are counts
    column = np.array([70, 75], dtype=object)  # as pandas keeps one that once had something else
    assert (epsilon_lower_bound(column, 100) == epsilon_lower_bound([70, 75], 100)).all()


def test_no_nan_anywhere():
    rng = np.random.default_rng(7)
    r = (10 ** rng.uniform(0, 9, 4000)).astype(int)
    v = r - np.minimum(r, (r ** rng.uniform(-0.2, 1, 4000)).astype(int))
    beta = 10 ** rng.uniform(-200, -0.001, 4000)
    delta = np.where(rng.random(4000) < 0.5, 0.0, 10 ** rng.uniform(-12, -2, 4000))
    bounds = epsilon_lower_bound(v, r, beta=beta, delta=delta, n=2 * r)
    assert np.isfinite(bounds).all()
    claimed = bounds > 0
    values = p_value(v, r, bounds, delta=delta, n=2 * r)
    assert (values[claimed] <= beta[claimed]).all()
    above = p_value(v, r, bounds * (1 + 1e-8) + 1e-12, delta=delta, n=2 * r)
    assert (above >= beta).all()


@given(counts, st.floats(1e-6, 0.99))
def test_clopper_pearson_is_scipys(count, beta):
    v, r, _ = count
    expected = special.betaincinv(v, r - v + 1.0, beta) if v else 0.0
    assert clopper_pearson_lower(v, r, beta) == pytest.approx(expected, rel=1e-9)


def test_extreme_counts_end_soon():
    """Nothing hangs or loses digits: 10^9 guesses, ε of 20, β of 1e-300."""
    value = p_value(668187775, 999999999, 0.7, delta=8000 / 2 / 999999999, n=999999999)
    assert value == pytest.approx(0.714261799641, rel=1e-9)
    assert clopper_pearson_lower(9, 10, 1e-286) == pytest.approx(1.29154966501e-32, rel=3e-6)
    assert clopper_pearson_lower(1, 10**9, 0.5) == pytest.approx(0.693147180560e-9, rel=3e-6)
    every = -np.log(np.expm1(-np.log(0.05) / 10**9))
    assert epsilon_lower_bound(10**9, 10**9) == pytest.approx(every, rel=1e-13)
    assert epsilon_lower_bound(500_100_000, 10**9, delta=1e-12, n=10**9) > 0
    assert epsilon_lower_bound(1000, 1000, beta=1e-300) == pytest.approx(
        float(p_inv(1e-300 ** (1 / 1000))), rel=1e-9
    )
    assert epsilon_lower_bound(1, 1, beta=1 - 1e-12) == pytest.approx(np.log(1e12), rel=1e-4)
    assert oralib.epsilon_lower_bound(1, 2, beta=0.999999, delta=1.0, n=10**6) == 0


@pytest.mark.parametrize("rule", [Steinke(), Exact()])
def test_many_trials_are_as_each_of_them(rule):
    """Counts that repeat are computed once; what varies beside them is not mixed up."""
    rng = np.random.default_rng(1)
    r = rng.integers(0, 12, size=(40, 5))
    v = rng.binomial(r, 0.8)
    for delta, beta in product(
        (0.0, 1e-3, rng.choice([0, 1e-2], r.shape)), (0.05, rng.choice([0.05, 0.3], r.shape))
    ):
        together = epsilon_lower_bound(v, r, beta=beta, delta=delta, n=20, rule=rule)
        deltas, betas = np.broadcast_to(delta, r.shape), np.broadcast_to(beta, r.shape)
        for i in np.ndindex(r.shape):
            how = {"beta": betas[i].item(), "delta": deltas[i].item(), "n": 20, "rule": rule}
            assert together[i] == epsilon_lower_bound(int(v[i]), int(r[i]), **how)

"""The f-DP bound against a plain loop, a linear program, exact laws and the curves themselves."""

from functools import partial
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

import oralib
from orabook.studies import epsilon_lower_bound_subsampled, subsampled
from oralib.bounds import gaussian as gaussian_rule
from oralib.bounds import gaussian_epsilon

# ------------------------------------------------------------------------------ the naive twin


def ends_above(v, r, n, beta, g):
    """Straight from the derivation: no early end, all the way down to i = 0."""
    a, b = beta * v / n, beta * (r - v) / n
    for i in range(v - 1, -1, -1):
        new = max(b, g(min(a, 1.0)))
        a, b = a + (new - b) * i / (r - i), new
    return a + b > r / n


def gaussian(mu):
    return lambda x: float(stats.norm._cdf(stats.norm._ppf(x) - mu))


def delta_of(mu, epsilon):
    x = mu / 2 - epsilon / mu
    return float(stats.norm.cdf(x) - np.exp(epsilon) * stats.norm.cdf(x - mu))


def naive_bound(v, r, n, delta, beta):
    if 2 * v <= r or not ends_above(v, r, n, beta, gaussian(0.0)):
        return 0.0
    low, high = 0.0, 1.0
    while ends_above(v, r, n, beta, gaussian(high)):
        low, high = high, 2 * high
    for _ in range(45):
        middle = (low + high) / 2
        if ends_above(v, r, n, beta, gaussian(middle)):
            low = middle
        else:
            high = middle
    if delta_of(low, 0.0) <= delta:
        return 0.0
    return optimize.brentq(lambda e: delta_of(low, e) - delta, 0, 50 * (low + low**2), xtol=1e-12)


@pytest.mark.parametrize(("r", "n"), [(1, 1), (7, 7), (60, 90), (100, 10**7), (1000, 5000)])
@pytest.mark.parametrize(("delta", "beta"), [(1e-5, 0.05), (0.01, 0.3), (1e-9, 1e-4)])
def test_naive_twin(r, n, delta, beta):
    v = np.unique(np.linspace(r // 2, r, 4).astype(int))
    fast = oralib.bounds.Gaussian().lower_bound(v, r, n=n, delta=delta, beta=beta)
    slow = np.array([naive_bound(int(x), r, n, delta, beta) for x in v])
    np.testing.assert_allclose(fast, slow, rtol=1e-7, atol=1e-8)
    assert (fast <= slow + 1e-10).all()


# ----------------------------------------------------------- the recursion finds the worst law


def pure_lines(epsilon):
    return np.array([[np.exp(-epsilon), 0.0], [np.exp(epsilon), 1 - np.exp(epsilon)]])


def gaussian_lines(mu):
    """Tangents of the Gaussian curve, at many places."""
    z = np.linspace(-6, 6, 200)
    slope = stats.norm.pdf(z - mu) / stats.norm.pdf(z)
    return np.column_stack([slope, stats.norm.cdf(z - mu) - slope * stats.norm.cdf(z)])


def worst_probability(v, r, n, lines):
    """The largest P[V >= v] over all laws of V with b(i - 1) >= g(a(i)), by linear programming."""
    k = np.arange(r + 1)
    rows, limits = [], []
    for i in range(1, r + 1):
        a, b = np.where(k >= i, k, 0) / n, np.where(k >= i - 1, r - k, 0) / n
        rows += [slope * a - b for slope, _ in lines]
        limits += [-height for _, height in lines]
    # Weights of the size of counts: the solver's tolerances are absolute.
    done = optimize.linprog(
        -(k >= v).astype(float),
        A_ub=np.array(rows) * n,
        b_ub=np.array(limits) * n,
        A_eq=np.ones((1, r + 1)),
        b_eq=[1.0],
    )
    assert done.status == 0
    return -done.fun


@pytest.mark.parametrize(("r", "n"), [(5, 5), (8, 20), (12, 12)])
@pytest.mark.parametrize("lines", [pure_lines(0.4), pure_lines(0.0), gaussian_lines(0.3)])
def test_recursion_is_the_linear_program(r, n, lines):
    for v in range(r // 2 + 1, r + 1):
        worst = worst_probability(v, r, n, lines)
        assert gaussian_rule.reach(v, r, n, worst * (1 + 1e-4), 0.0, lines) > 0
        if worst < 1 - 1e-6:
            assert gaussian_rule.reach(v, r, n, worst * (1 - 1e-4), 0.0, lines) <= 0


@pytest.mark.parametrize("seed", range(6))
def test_every_mechanism_obeys_the_inequality(seed):
    """Random mechanisms on three elements, with random guessers that take a fixed number."""
    rng = np.random.default_rng(seed)
    n, outputs, r = 3, 4, 1 + seed % 3
    signs = np.array(list(product([-1, 1], repeat=n)))
    table = rng.dirichlet(np.full(outputs, 0.5), size=2**n)  # rows: datasets
    guesses = np.zeros((outputs, n), dtype=int)
    for row in guesses:
        row[rng.choice(n, r, replace=False)] = rng.choice([-1, 1], r)
    right = (guesses[None] == signs[:, None]).sum(axis=2)
    law = np.array([(table * (right == k)).sum() for k in range(r + 1)]) / 2**n
    k = np.arange(r + 1)
    pairs = [(s, s ^ (1 << j)) for s in range(2**n) for j in range(n)]
    for epsilon in np.linspace(0, 6, 25):
        delta = max(np.maximum(table[s] - np.exp(epsilon) * table[t], 0).sum() for s, t in pairs)
        for i in range(1, r + 1):
            a, b = (law * k * (k >= i)).sum() / n, (law * (r - k) * (k >= i - 1)).sum() / n
            assert a <= np.exp(epsilon) * b + delta + 1e-12
            assert 1 - b <= np.exp(epsilon) * (1 - a) + delta + 1e-12


# ---------------------------------------------------------------------------------- coverage


@pytest.mark.parametrize("n", [1, 2, 5, 20, 100])
def test_coverage_is_exact_for_gaussian_noise(n):
    """All are guessed: each guess is right with probability Φ(μ / 2), independently."""
    v = np.arange(n + 1)
    for mu, beta in product((0.0, 0.3, 1.0, 2.5), (0.05, 0.4)):
        truth = gaussian_epsilon(mu, 1e-5)
        over = oralib.bounds.Gaussian().lower_bound(v, n, n=n, delta=1e-5, beta=beta) > truth
        assert stats.binom.pmf(v, n, stats.norm.cdf(mu / 2))[over].sum() <= beta


# ---------------------------------------------------------------------------- Gaussian curves


@pytest.mark.parametrize("mu", [1e-8, 9e-6, 1.1e-5, 0.1, 1.0, 30.0, 73.31, 75.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1e-5, 0.3])
def test_epsilon_of_a_gaussian_curve(mu, delta):
    found = gaussian_epsilon(mu, delta)
    with mpmath.workdps(400):

        def exact(epsilon):
            x = mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu
            return mpmath.ncdf(x) - mpmath.exp(epsilon) * mpmath.ncdf(x - mu)

        if found == 0:
            assert exact(0) <= delta * (1 + 1e-9)
        else:
            assert exact(found) >= delta  # never too large
            assert exact(found * (1 + 1e-8)) < delta
    more = gaussian_epsilon(np.geomspace(max(mu, 1e-3), 1e6, 50), delta)
    assert (np.diff(more[more > 0]) > 0).all()


def test_quantiles():
    for x in (1e-289, 1e-30, 1e-3, 0.3, 0.5, 0.7, 1 - 1e-9):
        assert gaussian_rule.upper_quantile(x) == pytest.approx(
            stats.norm.isf(x), rel=1e-13, abs=1e-15
        )


# ------------------------------------------------------------------- curves of subsampled noise


@pytest.mark.parametrize(("rate", "sigma"), [(1.0, 1.0), (0.1, 1.0), (0.3, 4.0)])
def test_tangents_lie_below_the_curve_of_a_step(rate, sigma):
    """All tests between a step with the element and one without are thresholds, in closed form.

    A guess says "in" beyond one of them, and "out" below another; x is how often it is right, and y
    how often it would be right if the coin had fallen the other way.
    """
    lines = subsampled._tangents(1, rate, sigma)
    assert (np.diff(lines[:, 0]) > 0).all()
    t = 0.5 + np.linspace(-6, 6, 101) * sigma
    without = stats.norm.sf(t / sigma)
    within = (1 - rate) * without + rate * stats.norm.sf((t - 1) / sigma)
    x = np.add.outer(within, 1 - without) / 2
    y = np.add.outer(without, 1 - within) / 2
    below = np.max([slope * x + height for slope, height in lines], axis=0)
    gap = y - below
    assert gap.min() > -1e-12
    assert gap.min() < 1e-4  # somewhere they touch
    if rate == 1:  # both directions are alike
        assert np.diag(gap[:, ::-1]).max() < 1e-4


@pytest.mark.parametrize(("v", "r", "n"), [(75, 100, 1000), (40, 40, 40)])
def test_full_data_steps_are_gaussian_mechanisms(v, r, n):
    exact = oralib.bounds.Gaussian().lower_bound(v, r, n=n, delta=1e-5)
    found = epsilon_lower_bound_subsampled(v, r, n=n, delta=1e-5, steps=4, sample_rate=1.0)
    assert 0.99 * exact - 0.004 < found <= exact


def test_reported_epsilon_is_optimistic():
    from dp_accounting.pld import privacy_loss_distribution as pld

    step = pld.from_gaussian_mechanism(1.5, sampling_prob=0.1, value_discretization_interval=1e-3)
    upper = step.self_compose(100).get_epsilon_for_delta(1e-5)
    found = subsampled._optimistic_epsilon(100, 0.1, 1.5, 1e-5)
    assert upper - 0.01 < found < upper


def test_the_papers_setting():
    found = epsilon_lower_bound_subsampled([50, 75, 75], 100, n=1000, delta=1e-5)
    assert found[0] == 0
    assert found[1] == found[2] == pytest.approx(1.05, abs=0.01)
    # The noise whose ε that is: rejected, and one that is a little less not.
    sigma = subsampled._least_sigma(100, 0.1, 75, 100, 1000, 0.05)
    for noise, rejected in ((sigma, True), (sigma * 0.999, False)):
        lines = subsampled._tangents(100, 0.1, noise)
        assert (gaussian_rule.reach(75, 100, 1000, 0.05, 0.0, lines) > 0) == rejected


def test_subsampled_edges():
    bound = partial(epsilon_lower_bound_subsampled, steps=1, sample_rate=0.5)
    assert bound(90, 100, n=100, delta=0.0) == np.inf
    assert bound(50, 100, n=100, delta=0.0) == 0
    assert bound(0, 0, n=0, delta=0.1) == 0
    assert 0 < bound(90, 100, n=100, delta=1e-200) < np.inf


# ------------------------------------------------------------------------------------- edges


def test_no_evidence_no_claim():
    assert (gaussian_epsilon(0.0, 0.0), gaussian_epsilon(1e-9, 0.0)) == (0, np.inf)
    bound = oralib.bounds.Gaussian().lower_bound
    assert bound(0, 0, n=0, delta=1e-5) == 0
    assert bound(0, 0, n=10, delta=0.0) == 0
    for beta in (1e-9, 0.05, 0.99):
        assert (bound(np.arange(51), 100, n=1000, delta=[[1e-5], [0.0]], beta=beta) == 0).all()
    # Without δ any Gaussian noise is infinitely bad.
    assert bound([75, 52], 100, n=1000, delta=0.0).tolist() == [np.inf, 0]
    assert bound(75, 100, n=1000, delta=1.0) == 0


def test_extreme_counts():
    v = [1, 1, 1000, 10**6, 10**6 - 1, 501_000, 700_000]
    r = [1, 1, 1000, 10**6, 10**6, 10**6, 10**6]
    n = [1, 2**53, 1000, 10**6, 10**6, 10**6, 2**53]
    beta = np.array([5e-324, 1e-12, 0.05, 1 - 1e-12])[:, None]
    for delta in (5e-324, 1e-5, 1 - 1e-12):
        found = oralib.bounds.Gaussian().lower_bound(v, r, n=n, delta=delta, beta=beta)
        assert ((found >= 0) & (found < np.inf)).all()


@given(st.integers(1, 300), st.integers(0, 3000), st.floats(1e-6, 0.5), st.floats(1e-9, 0.1))
def test_monotone(r, others, beta, delta):
    def bound(v=r, n=r + others, delta=delta, beta=beta):
        return oralib.bounds.Gaussian().lower_bound(v, r, n=n, delta=delta, beta=beta)

    close = {"rtol": 1e-7, "atol": 1e-9}

    def rises(values):
        assert (np.diff(values) >= -close["atol"] - close["rtol"] * np.abs(values[1:])).all()

    rises(bound(v=np.arange(r + 1)))
    rises(bound(v=(3 * r + 3) // 4, n=np.array([5, 2, 1]) * (r + others)))
    rises(bound(delta=np.array([2.0, 1.0, 0.1]) * delta))
    rises(bound(beta=np.array([0.1, 1.0, 1.5]) * beta))


def test_more_guesses_do_not_help_beyond_the_edge():
    """A mechanism may be bad with probability β: then g(β v / n) = β (r - v) / n is the end."""
    r = 10 ** np.arange(2, 8)
    found = oralib.bounds.Gaussian().lower_bound(7 * r // 10, r, n=r, delta=1e-5)
    edge = stats.norm.ppf(0.05 * 0.7) - stats.norm.ppf(0.05 * 0.3)
    assert found[-1] == pytest.approx(gaussian_epsilon(edge, 1e-5), rel=1e-6)
    assert (np.diff(found) >= 0).all()

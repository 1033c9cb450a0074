"""Binomial kernels against 40-digit sums and SciPy."""

import numpy as np
import pytest
from oracles import binomial_pmf, binomial_tail
from scipy import stats

from oralib.ground import binomial

CASES = [
    *((k, 1000, 1.0) for k in (600, 731, 900, 1000)),
    (999, 1000, 8.0),
    *((k, 1_000_000, 0.0) for k in (500_000, 500_500, 515_000)),
    (999_990, 1_000_000, 10.0),
    (100, 100, 50.0),
    (815_769, 815_779, 11.0),
    (19_744_005, 37_580_416, 0.1),
]


@pytest.mark.parametrize(("k", "r", "epsilon"), CASES)
def test_pmf_and_tail_to_ten_digits(k, r, epsilon):
    law = r, *binomial.odds(epsilon)
    exact = float(binomial_pmf(k, r, epsilon)), float(binomial_tail(k, r, epsilon))
    assert binomial.pmf(k, *law) == pytest.approx(exact[0], rel=2e-11)
    assert binomial.tail(k, *law) == pytest.approx(exact[1], rel=2e-11)


@pytest.mark.parametrize("q", [0.0, 0.3, 1.0])
def test_no_trials_and_certain_ones(q):
    assert binomial.log_pmf(0, 0, q, 1 - q) == 0
    law = [binomial.pmf(k, 3, q, 1 - q) for k in range(4)]
    np.testing.assert_allclose(law, stats.binom.pmf(range(4), 3, q), atol=1e-15)


def test_a_billion_trials():
    r, k = 10**9, 500_300_000
    q, qc = binomial.odds(0.0)
    assert binomial.tail(k, r, q, qc) == pytest.approx(float(binomial_tail(k, r, 0)), rel=2e-11)
    # At the mean the continued fraction converges slowest.
    assert binomial.tail(r // 2, r, q, qc) == pytest.approx(
        0.5 + 0.5 / np.sqrt(np.pi * r / 2), rel=1e-9
    )


def test_whole_laws_against_scipy():
    for r in (1, 2, 3, 10, 57, 400):
        for epsilon in (-3.0, 0.0, 0.1, 1.0, 5.0):
            q, qc = binomial.odds(epsilon)
            k, close = np.arange(r + 1), {"rtol": 1e-11, "atol": 1e-300}
            pmf, tail = ([f(j, r, q, qc) for j in k] for f in (binomial.pmf, binomial.tail))
            np.testing.assert_allclose(pmf, stats.binom.pmf(k, r, q), **close)
            np.testing.assert_allclose(tail, stats.binom.sf(k - 1, r, q), **close)


def test_odds_keep_their_relative_precision():
    q, qc = binomial.odds(50.0)
    assert q == 1
    assert qc == pytest.approx(np.exp(-50), rel=1e-14)
    assert binomial.odds(-50.0) == (qc, q)
    assert binomial.odds(np.inf) == (1, 0)


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 6.0])
@pytest.mark.parametrize("r", [1, 5, 30, 1000])
def test_best_window_is_the_best_of_all(r, epsilon):
    q, qc = binomial.odds(epsilon)
    pmf = stats.binom.pmf(np.arange(r + 1), r, q)
    for v in np.unique(np.linspace(1, r, 40).astype(int)):
        means = np.cumsum(pmf[:v][::-1]) / np.arange(1, v + 1)
        start, mean = binomial.best_window(v, r, q, qc)
        assert mean == pytest.approx(means.max(), rel=2e-11, abs=1e-300)
        assert means[v - start - 1] == pytest.approx(means.max(), rel=2e-11, abs=1e-300)


def test_laws_of_arrays_are_those_of_scipy():
    k, r = np.indices((9, 8))
    for q in (0.0, 1e-300, 0.2, 0.5, 0.75, 1.0):
        expected = stats.binom.pmf(k, r, q)
        np.testing.assert_allclose(np.exp(binomial.log_pmfs(k, r, q)), expected, rtol=1e-12)
    assert np.isnan(binomial.log_pmfs(0, -1, 0.5))

"""Exact laws of large audits against known means, tables, and simulation."""

import numpy as np
import pytest
from scipy import special

import oralib
from orabook import laws
from orabook.experiments.single_step import simulate_single_step
from orabook.laws import count_in_sets_law, local_laplace_law, mean_bound, sums_law
from orabook.studies import single_step_law
from oralib import DpSgd, ThresholdGuesser, channel
from oralib.ground.binomial import log_pmfs


@pytest.mark.parametrize("feedback", ["none", "one-way", "full"])
@pytest.mark.parametrize(("s", "sets"), [(1, 3), (2, 2), (3, 2), (4, 1)])
def test_count_in_sets_law_is_the_tables(s, sets, feedback):
    table, guesser = channel(oralib.CountInSets(s), s * sets), ThresholdGuesser(np.inf)
    if feedback == "none":
        exact = oralib.games.one_run_law(table, guesser)
    else:
        exact = oralib.games.adaptive_law(table, guesser, feedback=feedback)
    law = count_in_sets_law(s, sets, feedback)
    dense = np.zeros_like(exact)
    np.add.at(dense, (law.v, law.r), law.probability)
    np.testing.assert_allclose(dense, exact, atol=1e-14)


def test_local_laplace():
    law = local_laplace_law(1.0, 500)
    assert law.probability.sum() == pytest.approx(1)
    assert law.probability @ law.v / 500 == pytest.approx(0.696734670143683)
    counts = oralib.one_run(oralib.LocalLaplace(1.0), ThresholdGuesser(), 500, trials=4000, seed=1)
    bounds = oralib.epsilon_lower_bound(counts.v, counts.r)
    assert bounds.mean() == pytest.approx(mean_bound(law), abs=4 * bounds.std() / 4000**0.5)


@pytest.mark.parametrize("s", [1, 3, 10])
def test_single_step(s):
    dpsgd = DpSgd(n=200 * s, d=200, steps=1, sample_rate=1.0, sigma=1.5)
    law = single_step_law(dpsgd, 1.0)
    assert law.probability.sum() == pytest.approx(1, abs=1e-10)
    counts = simulate_single_step(dpsgd, 1.0, trials=6000, seed=1)
    for value, mean in ((counts.v, law.probability @ law.v), (counts.r, law.probability @ law.r)):
        assert value.mean() == pytest.approx(mean, abs=4 * value.std() / 6000**0.5)
    bounds = oralib.epsilon_lower_bound(counts.v, counts.r, delta=1e-5, n=dpsgd.n)
    exact = mean_bound(law, delta=1e-5)
    assert bounds.mean() == pytest.approx(exact, abs=4 * bounds.std() / 6000**0.5)


def assert_the_same(law, r, probability):
    """The law has all outcomes that are not negligible, as they are."""
    kept = probability > 1e-15
    np.testing.assert_array_equal(law.r, r[kept])
    np.testing.assert_allclose(law.probability, probability[kept], rtol=1e-11)


@pytest.mark.parametrize(("s", "sets"), [(1, 7), (2, 100), (3, 1), (12, 85), (70, 33), (1200, 20)])
def test_count_in_sets_adds_up_the_sets(s, sets):
    one_set = 0.5 ** np.arange(s + 1)
    one_set[0], one_set[s] = 0.0, 2.0 ** (1 - s)
    probability = np.ones(1)
    for _ in range(sets):
        probability = np.convolve(probability, one_set)
    law = count_in_sets_law(s, sets, "full")
    assert_the_same(law, np.arange(probability.size), probability)
    whole = np.arange(sets + 1)
    law = count_in_sets_law(s, sets)
    assert_the_same(law, s * whole, np.exp(log_pmfs(whole, sets, 2.0 ** (1 - s))))


@pytest.mark.parametrize("n", [1, 50, 5000])
@pytest.mark.parametrize("epsilon", [1e-9, 2.0, 60.0])
def test_local_laplace_leaves_out_only_negligible_counts(epsilon, n):
    v = np.arange(n + 1)
    law = local_laplace_law(epsilon, n)
    probability = np.exp(log_pmfs(v, n, 1 - np.exp(-epsilon / 2) / 2))
    np.testing.assert_array_equal(law.v, v[probability > 1e-15])
    np.testing.assert_array_equal(law.probability, probability[probability > 1e-15])


def test_large_laws():
    law = local_laplace_law(1.0, 10**11)
    assert law.probability @ law.v == pytest.approx(10**11 * (1 - np.exp(-0.5) / 2), rel=1e-9)
    law = count_in_sets_law(10**6, 10**5, "full")
    assert law.probability @ law.r == pytest.approx(2 * 10**5, rel=1e-9)
    law = count_in_sets_law(2, 10**10)
    assert law.probability @ law.r == pytest.approx(10**10, rel=1e-9)
    step = DpSgd(n=50_000, d=1, steps=1, sample_rate=1.0, sigma=1.0)
    assert single_step_law(step, 1.0).probability.sum() == pytest.approx(1, abs=1e-9)


def test_an_audit_that_never_guesses():
    quiet = DpSgd(n=2000, d=1000, steps=1, sample_rate=1.0, sigma=100.0)
    with np.errstate(all="raise"):
        law = single_step_law(quiet, tau=1.0)
    assert (law.v, law.r, law.probability) == (0, 0, 1.0)


def test_a_law_of_ones_own():
    law = laws.Law([3, 4], [4, 4], [0.5, 0.5], 10)
    bounds = oralib.epsilon_lower_bound([3, 4], 4)
    assert mean_bound(law) == pytest.approx(bounds.mean(), rel=1e-12)


@pytest.mark.parametrize(
    ("n", "k"), [(40, 40), (100, 21), (300, 50), (900, 7), (900, 60), (300, 1)]
)
def test_sums_are_as_simulated(n, k):
    """Coordinates guessed whole and in part, one end alone, and with no coordinate in between."""
    dpsgd = DpSgd.calibrated(4.0, 1e-5, n=n, d=100)
    law = sums_law(dpsgd, k)
    assert law.probability.sum() == pytest.approx(1, abs=1e-9)
    v, trials = oralib.simulate_dpsgd(dpsgd, k, trials=20_000, seed=4).v, 20_000
    mean = law.probability @ law.v
    spread = (law.probability @ (law.v - mean) ** 2) ** 0.5
    assert v.mean() == pytest.approx(mean, abs=4.5 * spread / trials**0.5)
    assert v.std() == pytest.approx(spread, rel=0.03)
    assert (v >= mean + spread).mean() == pytest.approx(
        law.probability[law.v >= mean + spread].sum(), abs=4.5 * 0.5 / trials**0.5
    )


def test_sums_of_two_coordinates():
    """Two elements alone on their coordinates: guessed right if only the first is larger."""
    dpsgd = DpSgd(n=2, d=2, steps=1, sample_rate=1.0, sigma=2.0)
    right = float(special.ndtr(1 / (2.0 * 2**0.5)))
    law = sums_law(dpsgd, 2)
    # equal coins: one is right; different coins: both or none
    np.testing.assert_allclose(law.probability, [(1 - right) / 2, 0.5, right / 2], atol=2e-4)


def test_sums_guessed_from_both_ends_are_refused():
    with pytest.raises(ValueError, match="no coordinate is guessed from both ends, got guesses=3"):
        sums_law(DpSgd(n=3, d=1, sigma=1.0), 3)

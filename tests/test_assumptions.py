"""One audit under several assumptions, and how often its bounds fail where these are wrong."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

import oralib
from orabook import studies
from orabook.builder import data
from orabook.studies.assumptions import ASSUMPTIONS, bound_assuming, normal_bounds
from orabook.studies.overclaims import _leaking
from oralib.bounds import Exact, Gaussian, Independent

COUNTS = oralib.Counts(74, 100, n=1000, r_fixed=True)


def scores_of(mu, n, seed):
    rng = np.random.default_rng(seed)
    included = rng.random(n) < 0.5
    return rng.normal(np.where(included, mu, 0.0), 1.0), included


def test_stronger_assumptions_give_larger_bounds():
    scores, included = scores_of(0.5, 1000, seed=1)
    given = {"scores": scores, "included": included}
    found = {name: bound_assuming(name, COUNTS, delta=1e-5, **given) for name in ASSUMPTIONS}
    counts = {"n": 1000, "delta": 1e-5}
    assert found["dp"][0] == Exact().lower_bound(74, 100, **counts)
    assert found["gaussian"][0] == Gaussian().lower_bound(74, 100, **counts)
    assert found["independent"][0] == Independent().lower_bound(74, 100, **counts)
    assert list(ASSUMPTIONS.values()) == [words for _, words in found.values()]
    assert found["dp"][0] < found["gaussian"][0] < found["independent"][0]
    # For δ = 0, or a number of guesses that the output decided, any mechanism has a bound.
    assert bound_assuming("dp", oralib.Counts(74, 100, n=1000), delta=0.0)[0] > 0.6


def test_normal_scores_by_the_noncentral_law():
    scores, included = scores_of(1.0, 60, seed=2)
    t = stats.ttest_ind(scores[included], scores[~included]).statistic
    width = np.sqrt(1 / included.sum() + 1 / (~included).sum())
    limit = optimize.brentq(lambda x: stats.nct.sf(t, 58, x) - 0.05, -5, 20, xtol=1e-12)
    for scale, shift in [(1.0, 0.0), (0.01, 100.0)]:  # the units of scores do not matter
        given = {"scores": scale * scores + shift, "included": included}
        found, _ = bound_assuming("normal", COUNTS, delta=1e-5, **given)
        exact = oralib.bounds.gaussian_epsilon(limit * width, 1e-5)
        assert exact * (1 - 1e-5) < found < exact  # never above it
    for odd in ([1.0, 1.0, 1.0], [0.0, 1.0, 2.0]):
        assert bound_assuming("normal", COUNTS, delta=1e-5, scores=odd, included=[True] * 3)[0] == 0


def test_normal_scores_fail_as_often_as_they_may():
    rng, audits, n, mu = np.random.default_rng(3), 4000, 40, 0.5
    coins = rng.random((audits, n)) < 0.5
    scores = rng.normal(size=(audits, n)) + mu * coins
    sizes = coins.sum(axis=1), n - coins.sum(axis=1)
    means = [(scores * c).sum(axis=1) / k for c, k in zip((coins, ~coins), sizes, strict=True)]
    squares = ((scores - np.where(coins, means[0][:, None], means[1][:, None])) ** 2).sum(axis=1)
    found = normal_bounds(means[0] - means[1], squares, *sizes, delta=1e-5, beta=0.05)
    share = (found > oralib.bounds.gaussian_epsilon(mu, 1e-5)).mean()
    assert abs(share - 0.05) < 4 * np.sqrt(0.05 * 0.95 / audits)


@pytest.mark.parametrize("mu", [0.3, 0.5, 2.0])
def test_one_size_is_exactly_gaussian(mu):
    """The output says of an element what (|Y|, its sign) says: its δ at each ε is that of μ-GDP."""
    law = studies.common_size(mu)
    for epsilon in (0.0, 0.5, 2.0):
        delta = law.weights @ np.maximum(law.q - np.exp(epsilon) * (1 - law.q), 0)
        x = mu / 2 - epsilon / mu
        exact = stats.norm.cdf(x) - np.exp(epsilon) * stats.norm.cdf(x - mu)
        assert delta == pytest.approx(exact, abs=1e-6)


def test_laws_by_simulation():
    rng, audits = np.random.default_rng(4), 20_000
    size = np.abs(rng.normal(0.25, 1, audits))
    shared = rng.binomial(1000, oralib.p(0.5 * size))
    leaked = np.where(rng.random(audits) < 0.2, 50, 0)
    leaking = leaked + rng.binomial(100 - leaked, oralib.p(1.0))
    largest = np.abs(rng.normal(0.25, 1, (audits, 10))).max(axis=1)
    grouped = rng.binomial(100, oralib.p(0.5 * largest))
    for law, v, r in [
        (studies.common_size(0.5), shared, 1000),
        (studies.common_size(0.5, groups=10), grouped, 100),
        (_leaking(1.0, 1e-5, 10**6, 50), leaking, 100),
    ]:
        for threshold in np.quantile(v, [0.1, 0.5, 0.9, 0.99]).astype(int):
            exact = law.tail(threshold, r)
            assert abs((v >= threshold).mean() - exact) < 4 * np.sqrt(exact * (1 - exact) / audits)


def test_the_table_is_that_of_this_library():
    table = pd.read_csv(data.FOLDER / "overclaims.csv")
    again = studies.overclaims(trials=400)
    exact = ["n", "r", "truth", "steinke", "exact", "fdp", "independent"]
    pd.testing.assert_frame_equal(table[exact], again[exact], atol=2e-6)
    error = np.hypot(table["normal_se"], again["normal_se"])
    assert table["normal"].isna().tolist() == [False, True, *[False] * 5]
    assert not (np.abs(table["normal"] - again["normal"]) > 4 * error + 1e-9).any()
    # Theorems: what is proved never fails too often. The others do.
    assert (table[["steinke", "exact"]] <= 0.05).all(axis=None)
    assert (table["fdp"][:5] <= 0.05).all()
    assert table["independent"][0] <= 0.05
    assert table["independent"][1:].round(3).tolist() == [0.084, 0.125, 0.328, 0.426, 1.0, 0.191]
    assert table["fdp"][5:].round(3).tolist() == [0.997, 0.152]

"""Isolated elements: laws against closed forms, an accountant and simulation, and the ceiling."""

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from orabook import laws, studies
from orabook.studies import confidence, isolated, isolated_limit
from oralib import DpSgd, certified_epsilon
from oralib.bounds import Exact, Steinke
from oralib.dpsgd import simulate_likelihood
from oralib.ground.types import VIEWS

SIGMA = 2.422402
MAIN = DpSgd(1000, sigma=SIGMA)


def isolated_training(n, **setting):
    return DpSgd(n, n, **{"sigma": SIGMA, **setting})


# --------------------------------------------------------------------------- the law of |Λ|


@pytest.mark.parametrize(("steps", "sigma"), [(1, 0.8), (1, 2.149), (9, 4.0)])
def test_full_batches_have_a_normal_loss(steps, sigma):
    """Λ is normal with mean ± m and variance 2 m, m = T / (2 σ²)."""
    m = steps / (2 * sigma**2)
    level = np.linspace(0, 12 * np.sqrt(m), 30)
    sf = [stats.norm.sf(level, mean, np.sqrt(2 * m)) for mean in (m, -m)]
    for sees in VIEWS:
        law = confidence(DpSgd(5, 5, steps, 1.0, sigma=sigma), sees)
        right, wrong = law.at(level)
        np.testing.assert_allclose(right, sf[0], rtol=1e-7)
        np.testing.assert_allclose(wrong, sf[1], rtol=1e-7)


@pytest.mark.parametrize(("steps", "sigma"), [(4, 1.3), (30, 5.0)])
def test_contours_find_normal_tails(steps, sigma):
    """Trajectories of almost full batches, by the general way."""
    m = steps / (2 * sigma**2)
    level, logs = isolated._tails("steps", steps, 1 - 1e-13, sigma)
    sf = [stats.norm.logsf(level, mean, np.sqrt(2 * m)) for mean in (m, -m)]
    for found, expected in zip(logs, (sf[0], sf[1], sf[0], sf[1]), strict=True):
        # On the lower side the batch's last 1e-13 shows, far out.
        near = level < 6 * np.sqrt(m)
        np.testing.assert_allclose(found[near], expected[near], atol=1e-6)


@pytest.mark.parametrize("sees", VIEWS)
@pytest.mark.parametrize(
    "dpsgd", [MAIN, DpSgd(9, 9, 1000, 0.02, sigma=1.0), DpSgd(9, 9, 1, 0.2, sigma=1.0)]
)
def test_probabilities_are_whole_and_monotone(dpsgd, sees):
    law = confidence(dpsgd, sees)
    right, wrong = law.at(law.level)
    assert right[0] + wrong[0] == pytest.approx(1, abs=1e-9)
    assert (np.diff(law.log_right) < 0).all()
    assert (np.diff(law.log_wrong) < 0).all()
    # The density at a level has the odds of that level: d right / d wrong = exp(level).
    middle = (law.level[1:] + law.level[:-1]) / 2
    odds = np.log(np.diff(right) / np.diff(wrong))
    assert np.abs(odds - middle)[: len(odds) // 2].max() < 1e-3
    shares = np.array([0.9, 0.1, 1e-3, 1e-9])
    back = sum(law.at(law.level_of(shares)))
    np.testing.assert_allclose(back, shares, rtol=1e-9)


def test_trajectories_have_the_profile_of_an_accountant():
    """P1[Λ > ε] - e^ε P0[Λ > ε] is the δ of (ε, δ)-DP, which dp-accounting finds by other means."""
    import dp_accounting
    from dp_accounting import pld

    level, (above1, above0, _, _) = isolated._tails("steps", 100, 0.1, SIGMA)
    batch = dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(SIGMA))
    accountant = pld.PLDAccountant().compose(batch, 100)
    for epsilon in (0.5, 1.0, 1.815, 2.5, 4.0):
        one, other = (np.exp(np.interp(epsilon, level, logs)) for logs in (above1, above0))
        ours, theirs = one - np.exp(epsilon) * other, accountant.get_delta(epsilon)
        assert ours == pytest.approx(theirs, rel=0.01)
        assert ours < 1.0001 * theirs  # theirs errs on the safe side


@pytest.mark.parametrize("sees", VIEWS)
def test_laws_against_the_played_audit(sees):
    dpsgd = isolated_training(100)
    counts = simulate_likelihood(dpsgd, 20, sees=sees, trials=2000, seed=1)
    check(counts.v, studies.isolated_law(dpsgd, 20, sees=sees))


def check(values, law):
    """A chi-square test of values against a law, rare ones joined."""
    order = np.argsort(-law.probability)
    expected = law.probability[order] * len(values)
    observed = np.array([np.sum(values == x) for x in law.v[order]])
    common = expected > 10
    expected = np.append(expected[common], len(values) - expected[common].sum())
    observed = np.append(observed[common], len(values) - observed[common].sum())
    keep = expected > 1
    statistic = ((observed - expected)[keep] ** 2 / expected[keep]).sum()
    assert stats.chi2.sf(statistic, keep.sum() - 1) > 1e-4


# ------------------------------------------------------------------------------- the law of V


def test_all_guesses_are_binomial():
    dpsgd = isolated_training(30)
    law = studies.isolated_law(dpsgd, 30)
    right, _ = confidence(dpsgd).at(0.0)
    np.testing.assert_allclose(law.probability, stats.binom.pmf(law.v, 30, right), atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_one_guess_by_quadrature(n):
    """One full-batch step: the surest of n elements, its |Λ| integrated over its density."""
    sigma = 0.9
    m = 1 / (2 * sigma**2)

    def density(x):
        return stats.norm.pdf(x, m, np.sqrt(2 * m)) + stats.norm.pdf(-x, m, np.sqrt(2 * m))

    def right(x):
        below = stats.norm.cdf(x, m, np.sqrt(2 * m)) - stats.norm.cdf(-x, m, np.sqrt(2 * m))
        return n * below ** (n - 1) * density(x) * special.expit(x)

    expected = integrate.quad(right, 0, 20, epsabs=1e-12)[0]
    law = studies.isolated_law(DpSgd(n, n, 1, 1.0, sigma=sigma), 1)
    assert law.probability[law.v == 1][0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("n", "k"), [(10**4, 300), (10**6, 50_000)])
def test_some_counts_are_as_good_as_all(n, k):
    dpsgd = isolated_training(n)
    for rule, delta in ((Exact(), 0.0), (Steinke(), 1e-5), (Exact(), 1e-5)):
        all_of_them, some = (
            laws.mean_bound(studies.isolated_law(dpsgd, k, counts=counts), delta=delta, rule=rule)
            for counts in (None, 60)
        )
        assert some == pytest.approx(all_of_them, abs=2e-6)


# -------------------------------------------------------------------------------- the ceiling


def test_the_ceiling():
    """Against 60 simulated audits a point, played independently: means and standard errors."""
    played = {8000: (0.847, 0.017), 96_000: (1.146, 0.014)}
    table = studies.isolated_ceiling([*played, 10**9], sees=("steps",), rules=(Exact(), Steinke()))
    best = table[table["rule"] == Exact.name].set_index("n")
    for n, (mean, error) in played.items():
        assert best["bound"][n] == pytest.approx(mean, abs=3 * error)
    limit = isolated_limit(MAIN, delta=1e-5)
    assert best["bound"][10**9] == pytest.approx(limit, abs=1e-3)
    # At the limit the audit is that of δ / β, in the mean of both directions.
    at = {x: certified_epsilon(SIGMA, x * 1e-5, 100, 0.1, accountant="pld") for x in (1, 20, 40)}
    assert at[40] - 0.01 < limit < at[20] < at[1]
    assert (best["bound"] > table[table["rule"] == Steinke.name].set_index("n")["bound"]).all()


def test_the_best_k_is_the_best():
    """No k of a neighbourhood does better than what the search has found."""
    table = studies.isolated_ceiling((5000,), sees=("steps",), rules=(Exact(),))
    dpsgd = isolated_training(5000)
    others = [
        laws.mean_bound(studies.isolated_law(dpsgd, k), delta=1e-5, rule=Exact())
        for k in range(20, 800, 40)
    ]
    assert max(others) < table["bound"][0] + 0.003


@pytest.mark.parametrize(("steps", "sigma"), [(1, 0.05), (100, 1.0)])
@pytest.mark.parametrize("delta", [1e-5, 1e-12])
def test_limits_of_full_batches_have_a_closed_form(steps, sigma, delta):
    """Also where next to everything is shown: the profile of a Gaussian mechanism."""
    mu = steps**0.5 / sigma

    def excess(epsilon):
        one, other = (stats.norm.logsf(epsilon / mu + sign * mu / 2) for sign in (-1, 1))
        return np.exp(one) - np.exp(epsilon + other) - delta / 0.05

    expected = optimize.brentq(excess, 0, mu**2 + 40 * mu)
    found = isolated_limit(DpSgd(5, 5, steps, 1.0, sigma=sigma), delta=delta)
    assert found == pytest.approx(expected, rel=1e-9)

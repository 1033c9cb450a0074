"""The audit of DP-SGD in O(k): one law with the slower forms, tables against plain sums."""

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats
from test_dpsgd import SETTINGS, same_law

from oralib import DpSgd, experiments, simulate_dpsgd
from oralib.dpsgd import extremes

SIGMA = 2.422402

#: With k even and odd, one end only, all elements, both ends in one coordinate, borders in part.
MORE = [
    (DpSgd(n=1, d=3, steps=3, sample_rate=0.4, sigma=1.0), 1),
    (DpSgd(n=12, d=3, steps=20, sample_rate=0.3, sigma=1.0), 12),
    (DpSgd(n=12, d=2, steps=20, sample_rate=0.3, sigma=0.8), 9),
    (DpSgd(n=40, d=4, steps=4, sample_rate=1.0, sigma=1.2), 7),
    (DpSgd(n=500, sigma=SIGMA), 100),
    (DpSgd(n=1000, sigma=SIGMA), 101),
    (DpSgd(n=5000, sigma=SIGMA), 1000),
    (DpSgd(n=64_000, sigma=SIGMA), 7),
]


@pytest.mark.parametrize(("setting", "k"), SETTINGS + MORE)
def test_extremes_and_collapsed_have_one_law(setting, k):
    """And so do collapsed audits and those step by step, see the tests of these."""
    drawn = simulate_dpsgd(setting, k, trials=20_000, seed=1, method="extremes")
    trials = 20_000 if setting.n < 100 else 4000
    collapsed = simulate_dpsgd(setting, k, trials=trials, seed=2, method="collapsed")
    assert (drawn.r == k).all()
    assert drawn.r_fixed
    assert same_law(drawn.v, collapsed.v)


def test_the_comparison_can_fail():
    """It notices an audit whose two ends are drawn as if they did not know of each other."""
    setting = DpSgd(4, 4, steps=3, sample_rate=0.9, sigma=0.6)
    honest = simulate_dpsgd(setting, 4, trials=20_000, seed=1, method="extremes").v
    ends = [
        simulate_dpsgd(setting, 4, trials=20_000, seed=s, method="extremes").v // 2 for s in (2, 3)
    ]
    assert not same_law(honest, ends[0] + ends[1])


@pytest.mark.parametrize(("s", "k"), [(10**4, 6), (10**6, 40), (10**9, 41)])
def test_any_number_of_elements_against_binomials(s, k):
    """Few coordinates with many elements each: drawn straight from the definition."""
    d, steps, rate = 4, 100, 0.1
    sigma = 0.05 * np.sqrt(s)  # so much that the noise is seen
    rng = np.random.default_rng(1)
    trials = 20_000
    m = rng.binomial(s, 0.5, size=(trials, d))
    score = rng.binomial(m * steps, rate) + sigma * np.sqrt(steps) * rng.standard_normal(m.shape)
    order = np.argsort(score, axis=1)
    rows = np.arange(trials)
    lowest, highest = m[rows, order[:, 0]], m[rows, order[:, -1]]
    # Of the k/2 elements that are guessed, hypergeometrically many are included; m / s is so close
    # to 1/2 that a binomial differs by less than k² / s.
    high = rng.binomial(k - k // 2, highest / s)
    low = rng.binomial(k // 2, 1 - lowest / s)
    drawn = simulate_dpsgd(
        DpSgd(s * d, d, steps, rate, sigma), k, trials=trials, seed=2, method="extremes"
    )
    assert same_law(drawn.v, high + low)


def test_one_coordinate_tells_nothing():
    """Both ends are in it, whatever its score is: blind guesses."""
    counts = simulate_dpsgd(DpSgd(10**9, 1, sigma=100.0), 9, trials=20_000, seed=1)
    assert same_law(counts.v, np.random.default_rng(1).binomial(9, 0.5, 20_000))


# ------------------------------------------------------------------------------------- tables


def mixture(s, a, steps, rate):
    """P[J = j, N = total] for a of s elements, j in rows."""
    table = np.zeros((a + 1, s * steps + 1))
    for j in range(a + 1):
        for m in range(s - a + 1):
            weight = stats.binom.pmf(j, a, 0.5) * stats.binom.pmf(m, s - a, 0.5)
            total = np.arange((j + m) * steps + 1)
            table[j, total] += weight * stats.binom.pmf(total, (j + m) * steps, rate)
    return table


@pytest.mark.parametrize("y", [-35.0, -0.3, 0.0, 1.7, 41.0])
@pytest.mark.parametrize(
    ("s", "a", "steps", "rate", "sigma"),
    [(1, 1, 100, 0.1, SIGMA), (8, 2, 100, 0.1, SIGMA), (8, 8, 100, 0.1, SIGMA), (3, 2, 1, 1, 0.7)],
)
def test_tables_are_posteriors(s, a, steps, rate, sigma, y):
    """Against the sum over all counts N, at a quantile that a root finder finds."""
    law, noise = mixture(s, a, steps, rate), sigma * np.sqrt(steps)
    total, side = np.arange(law.shape[1]), np.sign(y) or 1

    def log_tail(x):
        log_weight = np.log(law.sum(axis=0))
        return special.logsumexp(log_weight + stats.norm.logsf(side * (x - total) / noise))

    with np.errstate(divide="ignore"):
        goal = -np.logaddexp(0, abs(y))
        x = optimize.brentq(
            lambda x: log_tail(x) - goal, -40 * noise, 40 * noise + total[-1], xtol=1e-12
        )
        logs = np.log(law) + stats.norm.logpdf(x, total, noise)
    posterior = np.exp(logs - logs.max()).sum(axis=1)
    expected = np.cumsum(posterior / posterior.sum())[:-1]
    score = extremes._Score(s, steps, rate, noise**2)
    on = extremes._contours(score, 50.0)
    assert extremes._scores_at(on, np.array([y]))[0][0] == pytest.approx(x, abs=1e-9 * noise)
    np.testing.assert_allclose(
        extremes._cumulative(on, np.array([y]), [a])[0][0], expected, atol=1e-11
    )


def test_tables_are_interpolated():
    """Between its rows a table errs by less than 1e-9: the kernel draws what the table says."""
    score = extremes._Score(8, 100, 0.1, 100 * SIGMA**2)
    start, step, rows, _ = extremes._tabulate(score, 8, 8, 0.0, 45.0)
    on = extremes._contours(score, 50.0)
    y = np.random.default_rng(1).uniform(0, 45, 300)
    expected = extremes._cumulative(on, y, [8])[0]
    place = (y - start) / step
    row, f = place.astype(int), place % 1
    nodes = np.arange(-2, 4)
    for i in range(300):
        weights = [
            np.prod([(f[i] - other) / (node - other) for other in nodes if other != node])
            for node in nodes
        ]
        value = weights @ rows[row[i] + nodes]
        np.testing.assert_allclose(value, expected[i], atol=1e-9)


@pytest.mark.parametrize("n", [10**4, 10**8, 10**12])
def test_mean_of_isolated_elements_by_quadrature(n):
    """One element a coordinate, one guess: accuracy of the highest of n scores, integrated."""
    total, noise = np.arange(101), 10 * SIGMA
    included = stats.binom.pmf(total, 100, 0.1)
    x = np.linspace(0, 15 * noise, 2001)
    density = stats.norm.pdf(x[:, None], total, noise) @ included
    tail = (stats.norm.sf(x, 0, noise) + stats.norm.sf(x[:, None], total, noise) @ included) / 2
    # The density of the highest score, where it is that of an included element.
    right = n * np.exp((n - 1) * np.log1p(-tail)) * density / 2
    counts = simulate_dpsgd(DpSgd(n, n, sigma=SIGMA), 1, trials=40_000, seed=1, method="extremes")
    expected = integrate.simpson(right, x=x)
    assert counts.v.mean() == pytest.approx(expected, abs=4 * counts.v.std() / 200)


# ----------------------------------------------------------------------------------- interface


def test_the_default_draws_extremes_only_of_many():
    small = DpSgd(8000, sigma=SIGMA)
    default = simulate_dpsgd(small, 100, trials=50, seed=1)
    np.testing.assert_array_equal(
        default.v, simulate_dpsgd(small, 100, trials=50, seed=1, method="collapsed").v
    )
    for large in (DpSgd(20_000, 20_000, sigma=SIGMA), DpSgd(10**6, sigma=SIGMA)):
        default = simulate_dpsgd(large, 100, trials=50, seed=1)
        np.testing.assert_array_equal(
            default.v, simulate_dpsgd(large, 100, trials=50, seed=1, method="extremes").v
        )


def test_little_noise_is_left_to_the_collapsed_form():
    setting = DpSgd(20_000, 20_000, steps=1, sample_rate=1.0, sigma=0.01)
    with pytest.raises(ValueError, match=r"sigma must be large enough .* got sigma=0.01"):
        simulate_dpsgd(setting, 10, seed=1, method="extremes")
    assert simulate_dpsgd(setting, 10, seed=1).v[0] == 10


def test_figure_2_out_to_a_trillion_elements():
    ratios = (1e3, 1e6, 1e9)
    table = experiments.elements_per_coordinate(ratios, trials=2000, seed=1)
    assert table["n"].tolist() == [10**6, 10**9, 10**12]
    # The score of the highest of 1000 coordinates is about 3.24 standard deviations up; included
    # are a share of 1/2 + 3.24 / (2 √s) ρ of its elements, ρ = 0.92 the correlation with m.
    lift = 3.2414 * 0.92 / (2 * np.sqrt(ratios))
    assert (np.abs(table["efficacy"] - 0.5 - lift) < 4 * table["efficacy_se"] + 0.02 * lift).all()

"""Canaries that hop: the fast game against a slow one, and why dropping costs no privacy."""

from functools import lru_cache

import numpy as np
import pytest
from scipy import optimize, stats
from test_dpsgd import same_law

from oralib import DpSgd, Dropping, simulate_hopping, valid_lower_bound
from oralib.dpsgd import hopping, ratios

# ------------------------------------------------------------------------------- schedules


def test_a_schedule_never_calls_back_a_canary():
    for dropping in (
        Dropping(3, 0.8),
        Dropping(4.4, 0.8, 1.4, (4, 11)),
        Dropping(1, 1, 3, (50, 2)),
        Dropping(2, 0.3, 0.3, (1, 30)),
    ):
        for size in ((96_000,), (70, 7, 9), (5, 9), (2, 1)):
            dpsgd = DpSgd(*size, sigma=1.0)
            active = dropping.active(dpsgd)
            assert active[0] == dpsgd.n
            assert (np.diff(active) <= 0).all()
            loads = dropping.loads(dpsgd)
            assert loads.min() >= 1
            assert (np.diff(loads, axis=1) >= 0).all() or dropping.crowding[0] == 1


def test_a_schedule_by_hand():
    """From 16 to 4 per coordinate, by the same factor in each of the first two steps of four."""
    dpsgd = DpSgd(n=160, d=10, steps=4, sigma=1.0)
    assert Dropping(4, 0.5).active(dpsgd).tolist() == [160, 80, 40, 40]
    # Twice as many on the most crowded coordinate as on the least crowded one, 8 on average.
    loads = Dropping(8, 0.25, crowding=(2, 2)).loads(dpsgd)[1]
    assert loads[-1] / loads[0] == pytest.approx(2, abs=0.2)
    assert loads.mean() == pytest.approx(8, abs=0.1)


@pytest.mark.parametrize("bend", [0.3, 1.0, 3.0])
def test_bend_is_of_dropping_not_of_crowding(bend):
    """Halfway the ratio of loads is the geometric mean of the first and the last, at any bend."""
    dpsgd = DpSgd(n=10**6, d=1000, steps=100, sigma=1.0)
    loads = Dropping(1000, bend=bend, crowding=(2, 32)).loads(dpsgd)
    assert loads[50, -1] / loads[50, 0] == pytest.approx(8, rel=0.02)
    active = Dropping(10, bend=bend, crowding=(2, 32)).active(dpsgd)
    assert active[50] / dpsgd.n == pytest.approx(0.01 ** (0.5**bend), rel=0.02)


# ------------------------------------------------------------------ scores: from first principles


def log_ratio(y, load, rate, sigma):
    """log P[y | included] / P[y | excluded], the others' batches summed out."""
    others = np.arange(load)
    weight = batch_law(load - 1, rate / 2)

    def density(x):
        return np.exp(-0.5 * ((np.asarray(x)[..., None] - others) / sigma) ** 2) @ weight

    return np.log((1 - rate) + rate * density(np.asarray(y) - 1) / density(y))


@lru_cache
def batch_law(others, rate):
    return stats.binom.pmf(np.arange(others + 1), others, rate)


@pytest.mark.parametrize(
    ("load", "rate", "sigma"), [(1, 0.1, 2.4), (2, 0.5, 0.7), (96, 0.1, 2.4), (30, 1.0, 3.0)]
)
def test_tables_are_the_log_likelihood_ratios(load, rate, sigma):
    low, step, values, _ = ratios.ratio_table(load, rate, sigma)
    y = low + step * np.arange(values.size)
    middle = np.abs(y - (load - 1) * rate / 2) < 5 * np.sqrt(sigma**2 + load * rate / 2)
    np.testing.assert_allclose(values[middle], log_ratio(y[middle], load, rate, sigma), atol=1e-9)


def naive(dpsgd, k, dropping, rng, place):
    """The audit as it is described, canary by canary, with NumPy and SciPy alone."""
    n, d, rate, sigma = dpsgd.n, dpsgd.d, dpsgd.sample_rate, dpsgd.sigma
    included = rng.random(n) < 0.5
    score, active = np.zeros(n), np.arange(n)
    loads = dropping.loads(dpsgd) if dropping else np.full((dpsgd.steps, 1), dpsgd.per_coordinate)
    bands = np.array_split(np.arange(d), loads.shape[1])
    assert len({len(band) for band in bands}) == 1
    for t in range(dpsgd.steps):
        if dropping and t:
            active = active[np.argsort(-np.abs(score[active]), kind="stable")]
            active = active[: loads[t] @ [len(band) for band in bands]]
        pairs = list(zip(loads[t], bands, strict=True))
        coordinate = np.concatenate([place(load, band, rng) for load, band in pairs])
        load = np.repeat(loads[t], [load * len(band) for load, band in pairs])
        batch = included[active] & (rng.random(active.size) < rate)
        y = np.bincount(coordinate[batch], minlength=d) + sigma * rng.standard_normal(d)
        for size in np.unique(load):
            there = load == size
            score[active[there]] += log_ratio(y[coordinate[there]], size, rate, sigma)
    taken = active[np.argsort(-np.abs(score[active]))[:k]]
    return int(((score[taken] > 0) == included[taken]).sum())


def turned_rows(load, band, rng):
    """As the library does: each row of a band is turned by an amount of its own."""
    return np.concatenate([np.roll(band, rng.integers(len(band))) for _ in range(load)])


def permutations(load, band, rng):
    """A fresh permutation of all canaries of a band."""
    return rng.permutation(np.repeat(band, load))


SMALL = DpSgd(n=80, d=10, steps=6, sample_rate=0.5, sigma=1.0)


@pytest.mark.parametrize(
    ("dpsgd", "k", "dropping", "place"),
    [
        (DpSgd(n=60, d=20, steps=5, sample_rate=0.4, sigma=0.7), 9, None, turned_rows),
        (DpSgd(n=80, d=20, steps=6, sample_rate=0.4, sigma=0.7), 7, Dropping(1, 0.8), turned_rows),
        (SMALL, 6, Dropping(3, 1, 1.5, (2, 6)), turned_rows),
        (SMALL, 6, Dropping(3, 1, 1.5, (2, 6)), permutations),
        (DpSgd(n=40, d=10, steps=3, sample_rate=1.0, sigma=1.5), 8, Dropping(2), turned_rows),
    ],
)
def test_the_same_law_as_the_naive_audit(dpsgd, k, dropping, place):
    """Turned rows are how the library places; that permutations do the same is seen, not proved."""
    rng = np.random.default_rng(3)
    slow = [naive(dpsgd, k, dropping, rng, place) for _ in range(150)]
    fast = simulate_hopping(dpsgd, k, dropping=dropping, trials=3000, seed=4)
    assert same_law(fast.v, np.array(slow))
    assert abs(fast.v.mean() - np.mean(slow)) < 4 * np.std(slow) / np.sqrt(150)


def one_training(dpsgd, dropping, seed):
    """The coins and scores of those who are active in the end."""
    canaries = hopping._hop(hopping._plan(dpsgd, dropping, 1.0), np.random.default_rng(seed))
    return canaries.coin, canaries.score


# ---------------------------------------------------------------------------------- validity


def hockey_stick(epsilon, one, other, weights):
    return float((weights * np.maximum(one - np.exp(epsilon) * other, 0)).sum())


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_dropping_by_past_outputs_costs_no_privacy(epsilon):
    """Two canaries on one coordinate, two steps, by quadrature over both outputs.

    The second step depends on the first output: it drops one canary, or the other, or none. The
    divergence between the worlds with and without the first canary stays below that of two steps
    of a lone canary that is never dropped; dropping the other one by this one's coin does not.
    """
    rate, sigma = 0.4, 0.9
    grid, step = np.linspace(-7, 9, 801, retstep=True)
    noise = stats.norm.pdf(grid[:, None], [0, 1, 2], sigma)

    def one_step(batch_law):  # probabilities of 0, 1, 2 canaries in the batch
        return noise @ np.asarray(batch_law)

    def law(first, second):
        """The density of both outputs, given who is in the training data."""

        def batch(*members):
            p = [1.0, 0.0, 0.0]
            for member in members:
                if member:
                    p = [p[0] * (1 - rate), p[1] * (1 - rate) + p[0] * rate, p[2] + p[1] * rate]
            return one_step(p)

        both, drop_first, drop_second = batch(first, second), batch(second), batch(first)
        later = np.where(
            (grid < 0.3)[:, None], drop_first, np.where((grid > 1.2)[:, None], drop_second, both)
        )
        return both[:, None] * later

    alone = one_step([1 - rate, rate, 0])
    nobody = one_step([1, 0, 0])
    allowed = max(
        hockey_stick(epsilon, np.outer(a, a), np.outer(b, b), step**2)
        for a, b in ((alone, nobody), (nobody, alone))
    )
    for second in (False, True):
        with_it, without = law(True, second), law(False, second)
        assert with_it.sum() * step**2 == pytest.approx(1, abs=1e-6)
        for a, b in ((with_it, without), (without, with_it)):
            assert hockey_stick(epsilon, a, b, step**2) <= allowed + 1e-9
    # The control: the second canary, included, is dropped in step two just if the first is not.
    both = one_step([(1 - rate) ** 2, 2 * rate * (1 - rate), rate**2])
    cheat = hockey_stick(epsilon, np.outer(both, both), np.outer(alone, nobody), step**2)
    assert cheat > allowed + 1e-3


def test_coverage_where_the_level_is_known():
    """Full batches: T steps are one Gaussian mechanism with mean √T / σ, whose ε(δ) is exact."""
    steps, sigma, delta = 4, 2.0, 1e-3
    mu = np.sqrt(steps) / sigma

    def gap(e):
        return stats.norm.cdf(mu / 2 - e / mu) - np.exp(e) * stats.norm.cdf(-mu / 2 - e / mu)

    epsilon = optimize.brentq(lambda e: gap(e) - delta, 0, 20)
    dpsgd = DpSgd(n=200, d=50, steps=steps, sample_rate=1.0, sigma=sigma)
    counts = simulate_hopping(dpsgd, 40, dropping=Dropping(1.5, 1, 1, (1, 3)), trials=2000, seed=7)
    failures = valid_lower_bound(counts, delta=delta) > epsilon
    assert failures.mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)
    # It is not vacuous: the audit sees a good part of the level.
    assert valid_lower_bound(counts, delta=delta).mean() > 0.2 * epsilon


def test_several_numbers_of_guesses_on_the_same_trainings():
    """Each has the counts that it would have alone, from the scores of the same training."""
    dpsgd = DpSgd(90, 30, 5, 0.3, sigma=0.8)
    plan, ks = hopping._plan(dpsgd, None, 1.0), np.array([60, 25, 4])
    (together,) = hopping._audits(plan, ks, 1, np.random.default_rng(3))
    included, scores = one_training(dpsgd, None, seed=3)
    order = np.argsort(-np.abs(scores))
    for k, right in zip(ks, together, strict=True):
        assert ((scores > 0) == included)[order[:k]].sum() == right
    for counts in hopping.hopping_counts(dpsgd, (60, 4), trials=400, seed=1):
        alone = simulate_hopping(dpsgd, int(counts.r[0]), trials=400, seed=2)
        assert same_law(counts.v, alone.v)
    with pytest.raises(ValueError, match=r"guesses must be falling numbers, got guesses=\(4, 60\)"):
        hopping.hopping_counts(dpsgd, (4, 60), seed=1)

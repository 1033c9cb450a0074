"""DP-SGD: both forms have one law, exact cases, kernels against the slow games."""

from math import erf

import numba
import numpy as np
import pytest
from scipy import stats
from test_games import check_law

import oralib
from benchmarks.reference import simulate_training
from orabook.experiments.single_step import simulate_single_step
from orabook.laws import guess_distances
from orabook.studies import run_dpsgd
from oralib import DpSgd, NoisyCountInSets, ThresholdGuesser, adaptive, one_run, simulate_dpsgd
from oralib.dpsgd import sums


def same_law(a, b, level=1e-4):
    """A two-sample chi-square test of v (or of r, or of a function of both)."""
    values = np.union1d(a, b)
    table = np.array([[np.sum(x == value) for value in values] for x in (a, b)])
    table = table[:, np.argsort(-table.sum(axis=0))]
    while table.shape[1] > 2 and table[:, -1].sum() < 20:  # join rare values
        table = np.column_stack([table[:, :-2], table[:, -2] + table[:, -1]])
    return table.shape[1] == 1 or stats.chi2_contingency(table).pvalue > level


# --------------------------------------------------------------------------- one law, twice

SETTINGS = [
    # fewer elements than coordinates, one each, several each; k even, odd, partial, all.
    (DpSgd(n=4, d=6, steps=3, sample_rate=0.4, sigma=0.7), 2),
    (DpSgd(n=6, d=6, steps=3, sample_rate=0.4, sigma=0.7), 3),
    (DpSgd(n=6, d=6, steps=1, sample_rate=1.0, sigma=0.7), 6),
    (DpSgd(n=18, d=6, steps=3, sample_rate=0.4, sigma=0.7), 1),
    (DpSgd(n=18, d=6, steps=3, sample_rate=0.4, sigma=0.7), 4),
    (DpSgd(n=18, d=6, steps=2, sample_rate=1.0, sigma=0.5), 7),
    (DpSgd(n=18, d=6, steps=3, sample_rate=0.4, sigma=0.7), 17),
    (DpSgd(n=15, d=5, steps=3, sample_rate=0.4, sigma=0.7), 15),
    (DpSgd(n=40, d=4, steps=5, sample_rate=0.2, sigma=0.9), 10),
    # one coordinate; both ends meet in one coordinate of three.
    (DpSgd(n=5, d=1, steps=3, sample_rate=0.4, sigma=1.0), 3),
    (DpSgd(n=12, d=3, steps=20, sample_rate=0.3, sigma=1.0), 11),
]


@pytest.mark.parametrize(("setting", "k"), SETTINGS)
def test_collapsed_and_step_by_step_have_one_law(setting, k):
    collapsed = simulate_dpsgd(setting, k, trials=20_000, seed=1)
    stepwise = simulate_training(setting, k, trials=5000, seed=2)
    assert (collapsed.r == k).all()
    assert (stepwise.r == k).all()
    assert same_law(collapsed.v, stepwise.v)


def test_the_comparison_of_laws_can_fail():
    a, b = SETTINGS[4][0], DpSgd(n=18, d=6, steps=3, sample_rate=0.4, sigma=1.0)
    assert not same_law(
        simulate_dpsgd(a, 4, trials=20_000, seed=1).v, simulate_dpsgd(b, 4, trials=20_000, seed=1).v
    )


def test_two_elements_exactly():
    """The higher is guessed 1 and the lower -1: right together if their order is.

    On one coordinate that they share it is drawn by lot, and noise does not matter.
    """
    alone = DpSgd(n=2, d=2, steps=1, sample_rate=1.0, sigma=0.8)
    shared = DpSgd(n=2, d=1, sigma=1.0)
    for setting, in_order in ((alone, 0.5 * (1 + erf(1 / (0.8 * 2)))), (shared, 0.5)):
        law = np.zeros((3, 3))
        law[:, 2] = [0.5 * (1 - in_order), 0.5, 0.5 * in_order]
        check_law(simulate_dpsgd(setting, 2, trials=20_000, seed=3), law)


def test_alias_table_is_the_joint_law():
    s, steps, rate = 4, 7, 0.3
    m, total, cut, alias = sums._coordinate_law(s, steps, rate)
    weight = np.zeros(len(m))
    np.add.at(weight, np.arange(len(m)), cut / len(m))
    np.add.at(weight, alias, (1 - cut) / len(m))
    expected = stats.binom.pmf(m, s, 0.5) * stats.binom.pmf(total, m * steps, rate)
    np.testing.assert_allclose(weight, expected, atol=1e-15)
    assert weight.sum() == pytest.approx(1, abs=1e-14)
    assert len(m) == sum(j * steps + 1 for j in range(s + 1))


def test_extreme_settings_start_soon():
    extreme = DpSgd(10**5, d=1000, steps=10**6, sigma=1.0)
    assert simulate_dpsgd(extreme, 100, trials=2, seed=1).n == 10**5


# ------------------------------------------------------------------------------ Algorithm 3


def naive_train(setting, included, rng, clip, learning_rate, gradient):
    """Algorithm 3 line by line, with dense gradient vectors."""
    weights = [np.zeros(setting.d)]
    for _ in range(setting.steps):
        total = np.zeros(setting.d)
        for i in np.flatnonzero(included):
            if rng.random() < setting.sample_rate:
                g = np.zeros(setting.d)
                g[i % setting.d] = gradient
                total += min(1.0, clip / np.linalg.norm(g)) * g
        total += rng.normal(0, setting.sigma * clip, setting.d)
        weights.append(weights[-1] - learning_rate * total)
    return np.array(weights)


@pytest.mark.parametrize(("rate", "gradient"), [(0.3, 0.5), (0.3, 7.0), (1.0, 2.0)])
def test_training_has_the_law_of_algorithm_3(rate, gradient):
    setting = DpSgd(n=6, d=3, steps=2, sample_rate=rate, sigma=0.4)
    included = np.array([True, True, False, True, False, False])
    clip, learning_rate = 2.0, 0.1
    runs = 2000
    how = {"clip": clip, "learning_rate": learning_rate, "gradient": gradient}
    fast, naive = (
        np.array(
            [run(setting, included, np.random.default_rng([seed, i]), **how) for i in range(runs)]
        )
        for seed, run in enumerate((run_dpsgd, naive_train))
    )
    assert fast.shape == naive.shape == (runs, 3, 3)
    assert (fast[:, 0] == 0).all()
    for t in (1, 2):
        for j in range(3):
            assert stats.ks_2samp(fast[:, t, j], naive[:, t, j]).pvalue > 1e-4
    # Coordinates are independent of each other, and so are steps.
    steps = np.diff(fast, axis=1).reshape(runs, -1)
    correlation = np.corrcoef(steps, rowvar=False) - np.eye(6)
    assert np.abs(correlation).max() < 5 / np.sqrt(runs)


@pytest.mark.parametrize(("clip", "learning_rate"), [(0.5, 8.0), (64.0, 0.25)])
def test_clipping_and_learning_rate_do_not_matter(clip, learning_rate):
    setting = DpSgd(n=12, d=4, steps=5, sample_rate=0.5, sigma=1.0)
    plain = simulate_training(setting, 4, trials=200, seed=1)
    scaled = simulate_training(
        setting, 4, trials=200, seed=1, clip=clip, learning_rate=learning_rate
    )
    np.testing.assert_array_equal(plain.v, scaled.v)


# -------------------------------------------------------------- one step, threshold guessers


@pytest.mark.parametrize("tau", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("sigma", [0.4, 2.149])
def test_guess_distances_are_where_the_loss_is_tau(sigma, tau):
    alone = [DpSgd(n=u, d=1, steps=1, sample_rate=1.0, sigma=sigma) for u in range(1, 13)]
    distance = guess_distances(alone[-1], tau)
    for u in range(1, 13):
        last = guess_distances(alone[u - 1], tau, last=True)[u]
        assert last == pytest.approx(distance[u], abs=1e-13)
        mechanism = NoisyCountInSets(u, sigma)
        for side in (-1, 1):
            output = np.array([u / 2 + side * distance[u]])
            assert mechanism.privacy_loss(output, u)[0] == pytest.approx(-side * tau, abs=1e-9)
    x = np.linspace(-8, 8, 400)[:, None]
    assert (np.diff(NoisyCountInSets(5, sigma).privacy_loss(x, 5)[:, 0]) < 0).all()


@pytest.mark.parametrize("feedback", ["none", "one-way", "full"])
@pytest.mark.parametrize(("s", "budget"), [(1, None), (4, None), (3, 1), (3, 4)])
def test_single_step_kernels_play_the_games(feedback, s, budget):
    """The fast kernels against the general games on NoisyCountInSets."""
    d, sigma, tau = 3, 0.9, 0.8
    setting = DpSgd(n=s * d, d=d, steps=1, sample_rate=1.0, sigma=sigma)
    mechanism, guesser = NoisyCountInSets(s, sigma), ThresholdGuesser(tau)
    if feedback == "none":  # where there is no budget
        fast = simulate_single_step(setting, tau, trials=20_000, seed=1)
        slow = one_run(mechanism, guesser, s * d, trials=3000, seed=2)
    else:
        play = dict(feedback=feedback, guesses=budget)
        fast = simulate_single_step(setting, tau, **play, trials=20_000, seed=1)
        slow = adaptive(mechanism, guesser, s * d, **play, trials=3000, seed=2)
        assert budget is None or (fast.r == budget).all()
    assert same_law(100 * fast.r + fast.v, 100 * slow.r + slow.v)


def test_plateaus_are_guessed_as_in_games():
    """With little noise the loss is exactly ln 3 wherever three of four elements agree."""
    setting = DpSgd(n=40, d=10, steps=1, sample_rate=1.0, sigma=0.05)
    fast = simulate_single_step(setting, np.log(3), trials=4000, seed=1)
    slow = one_run(NoisyCountInSets(4, 0.05), ThresholdGuesser(np.log(3)), 40, trials=4000, seed=1)
    assert same_law(fast.r, slow.r)
    assert fast.r.mean() == pytest.approx(40 * (1 - 6 / 16), abs=0.5)


# -------------------------------------------------------------------------------- threads


def test_any_number_of_threads_gives_the_same_numbers():
    setting = DpSgd(n=500, d=100, sigma=2.0)
    step = DpSgd(n=500, d=100, steps=1, sample_rate=1.0, sigma=2.0)
    before = numba.get_num_threads()
    results = []
    try:
        for threads in (1, before):
            numba.set_num_threads(threads)
            play = {"trials": 200, "seed": 7}
            collapsed, stepwise = (
                simulate_dpsgd(setting, 50, **play),
                simulate_training(setting, 50, **play),
            )
            full = simulate_single_step(step, 1.0, feedback="full", **play)
            plain = one_run(oralib.Count(), ThresholdGuesser(), 20, **play)
            results.append([counts.v for counts in (collapsed, stepwise, full, plain)])
    finally:
        numba.set_num_threads(before)
    for one, many in zip(*results, strict=True):
        np.testing.assert_array_equal(one, many)

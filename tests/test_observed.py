"""Guesses from released weights: scores against enumerations, counts against the simulated game."""

from itertools import product

import numpy as np
import pytest
from scipy import stats
from test_dpsgd import same_law

from oralib import DpSgd, audit_scores
from oralib.dpsgd import (
    audit_gradients,
    canary_scores,
    hopping_scores,
    noisy_gradients,
    run_dpsgd,
    simulate_likelihood,
)

SMALL = DpSgd(n=6, d=2, steps=3, sample_rate=0.3, sigma=0.8)


def observed(dpsgd, seed):
    """The coins and the noisy gradients of one simulated training."""
    rng = np.random.default_rng(seed)
    included = rng.random(dpsgd.n) < 0.5
    weights = run_dpsgd(dpsgd, included, rng, clip=2.0, learning_rate=0.1, gradient=5.0)
    return included, noisy_gradients(weights, learning_rate=0.1, clip=2.0)


def test_gradients_are_undone():
    weights = np.array([[1.0, 2.0], [0.5, 2.5], [0.5, 1.5]])
    found = noisy_gradients(weights, learning_rate=0.25, clip=2.0, batch=8.0)
    np.testing.assert_allclose(found, [[8.0, -8.0], [0.0, 16.0]])


@pytest.mark.parametrize("sees", ["sum", "steps"])
def test_scores_by_enumeration_of_all_coins(sees):
    """Log-odds of each canary, summing over the coins and batches of all on its coordinate."""
    _, y = observed(SMALL, 1)
    found = canary_scores(SMALL, y, sees=sees)
    rate, sigma, steps = SMALL.sample_rate, SMALL.sigma, SMALL.steps
    for j in range(2):
        odds = {True: 0.0, False: 0.0}
        for coins in product((False, True), repeat=3):
            ones = sum(coins)
            if sees == "sum":
                count = np.arange(ones * steps + 1)
                weight = stats.binom.pmf(count, ones * steps, rate)
                spread = sigma * np.sqrt(steps)
                odds[coins[0]] += weight @ stats.norm.pdf(y[:, j].sum(), count, spread)
            else:
                count = np.arange(ones + 1)
                weight = stats.binom.pmf(count, ones, rate)
                odds[coins[0]] += np.prod(
                    [weight @ stats.norm.pdf(x, count, sigma) for x in y[:, j]]
                )
        expected = np.log(odds[True] / odds[False])
        np.testing.assert_allclose(found[j::2], expected, atol=2e-4)


def test_a_sum_in_one_row_is_as_good():
    _, y = observed(SMALL, 2)
    rows, total = (canary_scores(SMALL, each, sees="sum") for each in (y, y.sum(0, keepdims=True)))
    np.testing.assert_allclose(rows, total)


def test_scores_of_canaries_that_hop_by_hand():
    """A sum over the steps of log-likelihood ratios, each by the load of its coordinate."""
    rng = np.random.default_rng(3)
    y = rng.normal(size=(3, 2)) + 1
    places = np.array([[0, 0, 1, 1, 0, 1], [1, 0, 1, 0, 1, 1], [0, -1, -1, 1, -1, 0]])
    found = canary_scores(SMALL, y, places=places)
    rate, sigma = SMALL.sample_rate, SMALL.sigma
    for canary in range(6):
        total = 0.0
        for t in range(3):
            j = places[t, canary]
            if j < 0:
                continue
            others = (places[t] == j).sum() - 1
            count = np.arange(others + 1)
            weight = stats.binom.pmf(count, others, rate / 2)
            without = weight @ stats.norm.pdf(y[t, j], count, sigma)
            within = weight @ stats.norm.pdf(y[t, j], count + 1, sigma)
            total += np.log(1 - rate + rate * within / without)
        assert found[canary] == pytest.approx(total, abs=2e-4)


def test_hopping_scores_are_those_of_the_simulation():
    """The law of the scores of included canaries, from trainings that are played one by one."""
    dpsgd = DpSgd(n=600, d=30, steps=20, sample_rate=0.2, sigma=1.0)
    rng = np.random.default_rng(4)
    mine, theirs = [], []
    for trial in range(30):
        included = rng.random(dpsgd.n) < 0.5
        places = np.array([rng.permutation(np.arange(600) % 30) for _ in range(dpsgd.steps)])
        y = dpsgd.sigma * rng.standard_normal((dpsgd.steps, 30))
        for t in range(dpsgd.steps):
            drawn = included & (rng.random(dpsgd.n) < dpsgd.sample_rate)
            y[t] += np.bincount(places[t, drawn], minlength=30)
        mine.append(canary_scores(dpsgd, y, places=places)[included])
        coins, scores, _ = hopping_scores(dpsgd, seed=trial)
        theirs.append(scores[coins])
    # Scores of one training depend on each other a little; a loose test of many.
    assert stats.ks_2samp(np.concatenate(mine), np.concatenate(theirs)).statistic < 0.03


@pytest.mark.parametrize("sees", ["sum", "steps"])
@pytest.mark.parametrize("feedback", ["none", "one-way"])
def test_counts_have_the_law_of_the_simulated_game(sees, feedback):
    dpsgd, k = DpSgd(n=60, d=20, steps=10, sample_rate=0.2, sigma=1.0), 12
    counts = [
        audit_gradients(dpsgd, *observed(dpsgd, seed)[::-1], k, sees=sees, feedback=feedback)
        for seed in range(1000)
    ]
    assert {(c.r_fixed, c.feedback, int(c.n)) for c in counts} == {(True, feedback, 60)}
    played = simulate_likelihood(dpsgd, k, sees=sees, feedback=feedback, trials=4000, seed=1)
    assert same_law(np.array([int(c.v[0]) for c in counts]), played.v)


def test_plain_guesses_are_those_of_the_scores():
    dpsgd = DpSgd(n=50, d=50, steps=5, sample_rate=0.5, sigma=1.0)
    included, y = observed(dpsgd, 5)
    scores = canary_scores(dpsgd, y)
    best = np.argsort(-np.abs(scores))[:10]
    right = ((scores[best] > 0) == included[best]).sum()
    assert audit_gradients(dpsgd, y, included, 10).v[0] == right


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y, _: noisy_gradients(y[:1]), "weights must be a matrix with a row for each"),
        (lambda y, _: noisy_gradients(0 * y + 1), "weights must change from step to step"),
        (lambda y, _: canary_scores(SMALL, y[:2]), r"gradients must have shape \(3, 2\)"),
        (lambda y, _: canary_scores(SMALL, y, places=[[0] * 6]), r"must have shape \(3, 6\)"),
        (lambda y, _: canary_scores(SMALL, y, places=[[2] * 6] * 3), r"places must lie in \[-1, 1"),
        (
            lambda y, _: canary_scores(SMALL, y, sees="sum", places=[[0]]),
            "sees must be 'steps' for",
        ),
        (lambda y, _: audit_gradients(SMALL, y, [True], 2), "included must be a boolean vector"),
        (
            lambda y, coins: audit_gradients(SMALL, y, coins, 2, feedback="full"),
            "one of none, one-way",
        ),
        (lambda y, _: canary_scores(DpSgd(4002, 2, 3), y), "n / d must be at most 1000"),
    ],
)
def test_bad_input(call, message):
    included, y = observed(SMALL, 1)
    with pytest.raises(ValueError, match=message):
        call(y, included)


class _OnGPU:
    dtype = "torch.bool"

    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()")


def test_coins_elsewhere_are_refused_with_the_reason():
    for call in (
        lambda: audit_gradients(DpSgd(n=4, d=4, steps=2), np.zeros((2, 4)), _OnGPU(), 2),
        lambda: audit_scores(np.arange(4.0), _OnGPU(), delta=0.0, guesses=2),
    ):
        with pytest.raises(TypeError, match=r"included must be .*Use Tensor.cpu\(\)"):
            call()

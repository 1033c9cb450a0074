"""Guesses from released weights: scores against enumerations, and against the simulated game."""

from itertools import product

import numpy as np
from scipy import stats
from test_dpsgd import same_law

from oralib import DpSgd
from oralib.dpsgd import canary_scores, noisy_gradients, run_dpsgd, simulate_likelihood

SMALL = DpSgd(n=6, d=2, steps=3, sample_rate=0.3, sigma=0.8)


def released(dpsgd, seed):
    """The coins and the noisy gradients of one simulated training run."""
    rng = np.random.default_rng(seed)
    included = rng.random(dpsgd.n) < 0.5
    weights = run_dpsgd(dpsgd, included, rng, clip=2.0, learning_rate=0.1, gradient=5.0)
    return included, noisy_gradients(weights, learning_rate=0.1, clip=2.0)


def right_guesses(dpsgd, gradients, included, k):
    """Of k guesses at the canaries with the scores farthest from 0."""
    scores = canary_scores(dpsgd, gradients)
    best = np.argsort(-np.abs(scores), kind="stable")[:k]
    return int(((scores[best] > 0) == included[best]).sum())


def test_gradients_are_undone():
    weights = np.array([[1.0, 2.0], [0.5, 2.5], [0.5, 1.5]])
    found = noisy_gradients(weights, learning_rate=0.25, clip=2.0, batch=8.0)
    np.testing.assert_allclose(found, [[8.0, -8.0], [0.0, 16.0]])


def test_scores_by_enumeration_of_all_coins():
    """Log-odds of each canary, summing over the coins and batches of all on its coordinate."""
    _, y = released(SMALL, 1)
    found = canary_scores(SMALL, y)
    for j in range(2):
        odds = {True: 0.0, False: 0.0}
        for coins in product((False, True), repeat=3):
            count = np.arange(sum(coins) + 1)
            weight = stats.binom.pmf(count, sum(coins), SMALL.sample_rate)
            steps = [weight @ stats.norm.pdf(x, count, SMALL.sigma) for x in y[:, j]]
            odds[coins[0]] += np.prod(steps)
        expected = np.log(odds[True] / odds[False])
        np.testing.assert_allclose(found[j::2], expected, atol=2e-4)


def test_guesses_by_scores_have_the_law_of_the_simulated_game():
    dpsgd, k = DpSgd(n=60, d=20, steps=10, sample_rate=0.2, sigma=1.0), 12
    runs = (released(dpsgd, seed) for seed in range(1000))
    v = np.array([right_guesses(dpsgd, y, included, k) for included, y in runs])
    assert same_law(v, simulate_likelihood(dpsgd, k, trials=4000, seed=1).v)

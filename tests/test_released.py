"""Guesses from released weights: scores against enumerations, and against the simulated game."""

from itertools import product

import numpy as np
import pytest
from scipy import stats
from test_dpsgd import same_law

from oralib import DpSgd, audit_scores, conformity
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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y: noisy_gradients(y[:1]), "weights must be a matrix with a row for each"),
        (lambda y: noisy_gradients(0 * y + 1), "weights must change from step to step"),
        (lambda y: canary_scores(SMALL, y[:2]), r"gradients must have shape \(3, 2\)"),
        (lambda y: canary_scores(DpSgd(4002, 2, 3), y), "n / d must be at most 1000"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(released(SMALL, 1)[1])


class _OnGPU:
    dtype = "torch.bool"

    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()")


def test_coins_elsewhere_are_refused_with_the_reason():
    for call in (
        lambda: conformity(DpSgd(n=4, d=4, steps=2), np.zeros((2, 4)), _OnGPU()),
        lambda: audit_scores(np.arange(4.0), _OnGPU(), delta=0.0, guesses=2),
    ):
        with pytest.raises(TypeError, match=r"included must be .*Use Tensor.cpu\(\)"):
            call()

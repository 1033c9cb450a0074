"""Bounds of canaries in a sum hold whatever is done to it; of those taken off, they do not."""

import numpy as np
import pytest

from oralib import Training
from oralib.dpsgd.claim import EPSILONS, Profile
from oraudit.canaries.count import judge_scores
from oraudit.canaries.live import Canaries
from oraudit.canaries.setup import Setup
from oraudit.records import Told

pytestmark = pytest.mark.slow

DELTA = 1e-5
SIGMA = 2.422402
RATE = 0.1
STEPS = 100
CANARIES = 1000
AUDITS = 200

#: More of 200 audits have a bound above the truth with probability .01, if each has with .05.
MOST_ABOVE = 16


def audit(kernel, seed, *, n=CANARIES, rate=RATE, steps=STEPS, sigma=SIGMA):
    """The canaries of a training in which a kernel makes the release of each sum, and the rng."""
    rng = np.random.default_rng(seed)
    canaries = Canaries(n, sizes=[n], seed=seed)
    for step in range(steps):
        data = rng.normal(scale=3.0, size=n)
        sums = [data.copy()]
        canaries.join(sums, 1.0, rate)
        canaries.score(canaries.look([kernel(sums[0], data, step, rng)]), sigma)
    return canaries


def noisy(x, _data, _step, rng):
    return x + SIGMA * rng.normal(size=len(x))


def sign(x, *rest):
    return np.sign(noisy(x, *rest))


def clamped(x, *rest):
    return np.clip(noisy(x, *rest), -2, 2)


def silent(x, data, step, rng):
    """Every second step releases its noise alone."""
    return noisy(x if step % 2 else np.zeros_like(x), data, step, rng)


def true_epsilon(steps):
    """The ε of the training at δ, which has ``steps`` steps that release something."""
    profile = Profile.of(Training(SIGMA, RATE, steps), EPSILONS)
    worst = np.maximum(profile.d_in, profile.d_out)
    return float(EPSILONS[np.argmax(worst <= DELTA)])


@pytest.mark.parametrize(
    ("kernel", "steps"), [(noisy, STEPS), (sign, STEPS), (clamped, STEPS), (silent, STEPS // 2)]
)
def test_bounds_hold_whatever_is_done_to_sums(kernel, steps):
    truth = true_epsilon(steps)
    told = [Told(1.0, SIGMA, RATE)] * STEPS
    found = [audit(kernel, seed).counted(told) for seed in range(AUDITS)]
    bounds = np.array([each.bound.epsilon for each in found])
    assert (bounds > truth).sum() <= MOST_ABOVE
    assert sum(each.test.refuted for each in found) <= MOST_ABOVE
    if kernel in (noisy, silent):  # which tells something, so that this can fail
        assert bounds.mean() > 0.05


def test_bounds_hold_where_nothing_is_to_spare():
    """Randomized response leaks exactly what (ε, 0)-DP permits, in each guess."""
    epsilon = 1.0
    above = 0
    near = 0
    for seed in range(AUDITS):
        rng = np.random.default_rng(seed)
        canaries = Canaries(CANARIES, sizes=[CANARIES], seed=seed)
        sums = [np.zeros(CANARIES)]
        canaries.join(sums, 1.0, 1.0)
        lies = rng.random(CANARIES) < 1 / (1 + np.exp(epsilon))
        answers = np.where((sums[0] != 0) != lies, 1.0, -1.0)
        bound = judge_scores(answers, canaries.coins.included, Setup(delta=0), origin="sum").bound
        above += bound.epsilon > epsilon
        near += bound.epsilon > epsilon / 3
    assert 2 <= above <= MOST_ABOVE
    assert near > AUDITS / 2


def test_canaries_that_are_taken_off_prove_too_much():
    """The sign of the noisy sum is private, but what is off its values then shows the coins.

    So this is not built: taking canaries off again uses their coins.
    """
    truth = true_epsilon(STEPS)
    above = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        canaries = Canaries(CANARIES, sizes=[CANARIES], seed=seed)
        shown = np.zeros(CANARIES)
        for _ in range(STEPS):
            sums = [np.zeros(CANARIES)]
            canaries.join(sums, 1.0, RATE)
            released = sign(sums[0], None, 0, rng) - sums[0]
            shown += np.abs(released) != 1
            canaries.score(canaries.look([released]), SIGMA)
        bound = judge_scores(shown, canaries.coins.included, Setup(), origin="sum").bound
        above += bound.epsilon > truth
    assert bound.epsilon == pytest.approx(3.73, abs=0.01)
    assert above > MOST_ABOVE


def test_honest_trainings_are_rarely_refuted():
    told = [Told(1.0, SIGMA, 0.3)] * 20
    audits = 2000
    short = [audit(noisy, seed, n=200, rate=0.3, steps=20) for seed in range(audits)]
    assert sum(each.counted(told).test.refuted for each in short) <= 0.05 * audits

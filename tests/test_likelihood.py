"""The most likely guess for canaries that stay, judged by enumeration and by a naive twin."""

from itertools import product

import numpy as np
import pytest
from scipy import special
from test_dpsgd import same_law
from test_hopping import batch_law

from oralib import DpSgd, simulate_dpsgd, valid_rule
from oralib.bounds import Exact
from oralib.dpsgd import likelihood, simulate_likelihood


def posterior(y, s, draws, rate, noise):
    """P[m | y] for one coordinate, y its steps (or its sum), straight from the definition."""
    log = np.log(batch_law(s, 0.5))
    for m in range(s + 1):
        z = (np.asarray(y)[:, None] - np.arange(m * draws + 1)) / noise
        log[m] += np.log(np.exp(-0.5 * z**2) @ batch_law(m * draws, rate)).sum()
    return special.softmax(log)


@pytest.mark.parametrize("rate", [0.3, 1.0])
@pytest.mark.parametrize("draws", [1, 6])
def test_tables_are_likelihoods(draws, rate):
    s, noise = 4, 0.8 * np.sqrt(draws)
    low, step, table, factorials = likelihood.likelihood_tables(s, draws, rate, noise)
    rng = np.random.default_rng(1)
    for m in range(s + 1):
        y = rng.binomial(m * draws, rate, 5) + noise * rng.standard_normal(5)
        place = (y - low) / step
        values = [sum(np.interp(place, np.arange(row.size), row)) for row in table]
        weight = values - factorials - factorials[::-1]
        np.testing.assert_allclose(
            special.softmax(weight), posterior(y, s, draws, rate, noise), atol=1e-4
        )
        log_odds = likelihood.log_odds(np.array(values), s, 0, factorials)
        mean = posterior(y, s, draws, rate, noise) @ np.arange(s + 1) / s
        assert log_odds == pytest.approx(special.logit(mean), abs=1e-3)


@pytest.mark.parametrize("gap", [10.0, 700.0, 1e3, 1e6])
def test_log_odds_beyond_what_an_exponential_can_hold(gap):
    """Of one element they are the difference of the two log-likelihoods; of two, nearly."""
    for sign in (-1, 1):
        one = likelihood.log_odds(np.array([0.0, sign * gap]), 1, 0, np.zeros(2))
        assert one == pytest.approx(sign * gap, rel=1e-12)
        levels = np.array([0.0, sign * gap, 2 * sign * gap])
        two = likelihood.log_odds(levels, 2, 0, special.gammaln(np.arange(3) + 1))
        assert two == pytest.approx(sign * gap, rel=1e-12)


def test_beliefs_after_a_coin_was_shown():
    """By enumeration of all coins: three elements, one coin shown."""
    like = np.log(np.array([0.1, 0.5, 0.3, 0.9]))
    factorials = special.gammaln(np.arange(4) + 1)
    for shown in (0, 1):
        chance = {0: 0.0, 1: 0.0}
        for coins in product((0, 1), repeat=3):
            if coins[0] == shown:
                chance[coins[1]] += np.exp(like[sum(coins)])
        expected = np.log(chance[1] / chance[0])
        assert likelihood.log_odds(like, 2, shown, factorials) == pytest.approx(expected)


def naive(dpsgd, k, sees, feedback, rng):
    s, d, steps = dpsgd.per_coordinate, dpsgd.used_coordinates, dpsgd.steps
    coins = rng.random((d, s)) < 0.5
    batches = coins[:, :, None] & (rng.random((d, s, steps)) < dpsgd.sample_rate)
    y = batches.sum(axis=1) + dpsgd.sigma * rng.standard_normal((d, steps))
    draws, noise = 1, dpsgd.sigma
    if sees == "sum":
        y, draws, noise = y.sum(axis=1, keepdims=True), steps, dpsgd.sigma * np.sqrt(steps)
    law = np.array([posterior(row, s, draws, dpsgd.sample_rate, noise) for row in y])
    law /= batch_law(s, 0.5)  # the likelihood of m
    shown = np.zeros((d, s), dtype=bool)

    def belief(j):
        unknown, seen = int((~shown[j]).sum()), int(coins[j][shown[j]].sum())
        m = np.arange(unknown + 1)
        weight = special.binom(unknown, m) * law[j][seen : seen + unknown + 1]
        return weight @ m / weight.sum() / unknown - 0.5

    beliefs = np.array([belief(j) for j in range(d)])
    while feedback == "one-way" and (~shown).sum() > k:
        j = int(np.argmin(np.where(shown.all(axis=1), np.inf, np.abs(beliefs))))
        shown[j, np.argmin(shown[j])] = True
        if not shown[j].all():
            beliefs[j] = belief(j)
    places = [(-abs(beliefs[j]), rng.random(), j, i) for j, i in np.argwhere(~shown)]
    if feedback == "none":  # elements of a coordinate are alike: take whole ones first
        places = [(a, j, b, i) for a, b, j, i in places]
        places = sorted(places)[:k]
        return sum((beliefs[j] > 0) == coins[j, i] for _, j, _, i in places)
    return sum((beliefs[j] > 0) == coins[j, i] for _, _, j, i in places)


@pytest.mark.parametrize("sees", ["sum", "steps"])
@pytest.mark.parametrize("feedback", ["none", "one-way"])
@pytest.mark.parametrize(("s", "k"), [(1, 3), (3, 5)])
def test_the_same_law_as_the_naive_audit(sees, feedback, s, k):
    dpsgd = DpSgd(n=6 * s, d=6, steps=4, sample_rate=0.4, sigma=0.6)
    rng = np.random.default_rng(2)
    slow = np.array([naive(dpsgd, k, sees, feedback, rng) for _ in range(400)])
    fast = simulate_likelihood(dpsgd, k, sees=sees, feedback=feedback, trials=6000, seed=3)
    assert same_law(fast.v, slow)


@pytest.mark.parametrize("sees", ["sum", "steps"])
def test_full_batches(sees):
    """The sum is all that there is to know, and its guesser is that of the paper."""
    dpsgd = DpSgd(n=200, d=100, steps=3, sample_rate=1.0, sigma=2.0)
    _, _, table, _ = likelihood.likelihood_tables(2, 1, 1.0, 2.0)
    assert np.isfinite(table).all()
    counts = simulate_likelihood(dpsgd, 20, sees=sees, trials=4000, seed=1)
    plain = simulate_dpsgd(dpsgd, 20, trials=4000, seed=1)
    assert counts.v.mean() == pytest.approx(plain.v.mean(), abs=0.3)


@pytest.mark.parametrize("feedback", ["none", "one-way"])
def test_several_numbers_of_guesses_on_the_same_trainings(feedback):
    """Each has the counts that it would have alone, on the same random numbers."""
    s, steps, rate, sigma = 3, 5, 0.3, 0.8
    tables = likelihood.likelihood_tables(s, 1, rate, sigma)

    def right(*guesses):
        rng = np.random.Generator(np.random.SFC64(7))
        training = 30, 1, steps, rate, sigma
        one_way = feedback == "one-way"
        return likelihood._audit_block(20, *training, tables, np.array(guesses), one_way, rng)

    together = right(60, 25, 4)
    for place, k in enumerate((60, 25, 4)):
        assert (together[:, [place]] == right(k)).all()
    dpsgd = DpSgd(90, 30, steps, rate, sigma=sigma)
    play = dict(sees="steps", feedback=feedback, trials=3, seed=1)
    several = likelihood.likelihood_counts(dpsgd, (60, 4), **play)
    assert [counts.r.tolist() for counts in several] == [[60] * 3, [4] * 3]
    assert {valid_rule(counts, 1e-5) for counts in several} == {Exact()}
    with pytest.raises(ValueError, match="guesses must be falling numbers"):
        likelihood.likelihood_counts(dpsgd, (4, 60), **play)

"""Games: exact laws against walks in fractions, and played games against exact laws."""

from fractions import Fraction
from functools import partial
from itertools import product
from types import SimpleNamespace

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from test_channel import random_channel
from zoo import LN3, SMALL, ZOO

from ledger.cases.games import classic_law, full_knowledge, full_knowledge_law
from ledger.cases.worst_cases import best_mean
from oralib import (
    Channel,
    Count,
    CountInSets,
    LocalLaplace,
    LocalRandomizedResponse,
    NameAndShame,
    ThresholdGuesser,
    TopGuesser,
    XorRandomizedResponse,
    adaptive,
    channel,
    classic,
    epsilon_lower_bound,
    one_run,
    p,
)
from oralib.games import adaptive_law, one_run_law

#: tau and e^tau as a fraction (None for infinity).
THRESHOLDS = [(0.0, Fraction(1)), (LN3, Fraction(3)), (np.inf, None)]

EXACT = {"none": one_run_law, "all": full_knowledge_law}
EXACT |= {word: partial(adaptive_law, feedback=word) for word in ("one-way", "full")}
PLAYED = {"none": one_run, "all": full_knowledge}
PLAYED |= {word: partial(adaptive, feedback=word) for word in ("one-way", "full")}


@pytest.mark.parametrize(("name", "n"), SMALL)
def test_exact_law_is_the_walk_through_all_cases(name, n):
    mechanism, definition, _, _ = ZOO[name]
    exact, table = oracles.table(definition, n), channel(mechanism, n)
    for feedback, (tau, threshold) in product(EXACT, THRESHOLDS):
        law = EXACT[feedback](table, ThresholdGuesser(tau))
        naive = oracles.law_of_counts(exact, threshold, feedback)
        assert law.sum() == pytest.approx(1)
        for v in range(n + 1):
            for r in range(n + 1):
                assert law[v, r] == pytest.approx(float(naive.get((v, r), 0)), abs=1e-12)


def check_law(counts, law):
    """A chi-square test; cells that are expected less than five times are put together."""
    observed = np.zeros_like(law)
    np.add.at(observed, (counts.v, counts.r), 1)
    assert observed[law < 1e-15].sum() == 0
    expected = law * counts.trials
    rare = (expected < 5) & (law > 0)
    pairs = list(zip(observed[expected >= 5], expected[expected >= 5], strict=True))
    pairs += [(observed[rare].sum(), expected[rare].sum())] if rare.any() else []
    if len(pairs) > 1:  # else all trials are in the one possible cell
        statistic = sum((o - e) ** 2 / e for o, e in pairs)
        assert stats.chi2.sf(statistic, len(pairs) - 1) > 1e-4


@pytest.mark.parametrize(("name", "n"), {name: n for name, n in SMALL if n >= 3}.items())
def test_played_games_have_the_exact_law(name, n):
    mechanism = ZOO[name][0]
    for feedback, (tau, _) in product(PLAYED, THRESHOLDS):
        guesser = ThresholdGuesser(tau)
        counts = PLAYED[feedback](mechanism, guesser, n, trials=4000, seed=11)
        assert counts.trials == 4000
        assert counts.n == n
        check_law(counts, EXACT[feedback](channel(mechanism, n), guesser))


def test_top_guesser_has_the_exact_law():
    for k in (1, 3, 6):
        mechanism = CountInSets(3)
        counts = one_run(mechanism, TopGuesser(k), 6, trials=4000, seed=12)
        assert (counts.r == k).all()
        check_law(counts, one_run_law(channel(mechanism, 6), TopGuesser(k)))


def test_efficacy_of_the_exact_law_is_optimal():
    for name, n in SMALL:
        table = channel(ZOO[name][0], n)
        for k in range(1, n + 1):
            law = one_run_law(table, TopGuesser(k))
            efficacy = law.sum(axis=1) @ np.arange(n + 1) / k
            assert efficacy == pytest.approx(table.optimal_efficacy(k))


def failure_probability(law, beta, epsilon):
    v, r = np.indices(law.shape)
    v = np.minimum(v, r)  # cells above the diagonal are empty
    return law[epsilon_lower_bound(v, r, beta=beta) > epsilon * (1 + 1e-9) + 1e-9].sum()


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 6), st.integers(0, 2**32), st.just(0.0)),
    st.sampled_from([0.0, 0.2, 0.3, 0.5]),
)
def test_audits_are_valid_except_with_unlimited_feedback(parameters, tau):
    """Pr[ε' > ε(M)] <= β, exactly, for random mechanisms of known ε and any β."""
    table, guesser = random_channel(*parameters), ThresholdGuesser(tau)
    laws = [one_run_law(table, guesser), adaptive_law(table, guesser, feedback="one-way")]
    for budget in range(1, table.n + 1):
        laws.append(adaptive_law(table, guesser, feedback="full", guesses=budget))
    for law, beta in product(laws, (0.05, 0.3, 0.5, 0.55, 0.65, 0.7, 0.9)):
        assert failure_probability(law, beta, table.epsilon) <= beta * (1 + 1e-9)


def test_full_knowledge_is_not_valid():
    """XRR: all guesses are right together, with probability p(ε), or wrong together."""
    counts = full_knowledge(XorRandomizedResponse(LN3), ThresholdGuesser(), 20, trials=2000, seed=3)
    assert set(counts.v.tolist()) == {0, 20}
    fails = epsilon_lower_bound(counts.v, counts.r) > LN3
    assert fails.mean() == pytest.approx(0.75, abs=0.04)
    law = full_knowledge_law(channel(XorRandomizedResponse(LN3), 11), ThresholdGuesser())
    assert failure_probability(law, 0.05, LN3) == pytest.approx(0.75)


def test_local_laplace_counts_are_binomial():
    """Without abstentions the efficacy is 1 - exp(-ε/2) / 2; with tau = ε it is p(ε)."""
    for epsilon in (0.5, 2.0):
        counts = one_run(LocalLaplace(epsilon), ThresholdGuesser(), 20, trials=5000, seed=5)
        law = np.zeros((21, 21))
        law[:, 20] = stats.binom.pmf(np.arange(21), 20, 1 - np.exp(-epsilon / 2) / 2)
        check_law(counts, law)
        counts = one_run(LocalLaplace(epsilon), ThresholdGuesser(epsilon), 20, trials=5000, seed=6)
        # An element is saturated, |o| >= 1, with this probability, and then right with p(ε).
        saturated = (1 + np.exp(-epsilon)) / 2
        r = np.arange(21)
        law = stats.binom.pmf(r, 20, saturated) * stats.binom.pmf(r[:, None], r, p(epsilon))
        check_law(counts, law)


def test_classic_on_randomized_response():
    """Each round is a Bernoulli trial with probability p(ε), also where one run sees nothing."""
    law = np.zeros((31, 31))
    law[:, 30] = stats.binom.pmf(np.arange(31), 30, 0.75)
    for base, tau in product([(-1,), (1, -1, 1)], [0.0, LN3]):
        play = {"base": base, "trials": 4000, "seed": 9}
        check_law(classic(LocalRandomizedResponse(LN3), ThresholdGuesser(tau), 30, **play), law)
    mechanism, base = XorRandomizedResponse(LN3), np.array([1, -1, -1, 1])
    counts = classic(mechanism, ThresholdGuesser(), 30, base=base, trials=4000, seed=10)
    check_law(counts, law)
    blind = one_run(mechanism, ThresholdGuesser(), 30, trials=500, seed=10)
    assert blind.accuracy.mean() == pytest.approx(0.5, abs=0.02)


def test_classic_abstains_on_uninformative_rounds():
    guesser = ThresholdGuesser(np.inf)
    counts = classic(NameAndShame(), guesser, 40, base=[1] * 4, trials=2000, seed=2)
    assert (counts.v == counts.r).all()
    assert counts.r.mean() == pytest.approx(10, abs=0.3)


def test_seed_and_trials():
    for mechanism in (Count(), LocalRandomizedResponse(1.0)):
        play = {"mechanism": mechanism, "guesser": ThresholdGuesser(), "n": 9}
        counts, again = (one_run(**play, trials=100, seed=1).v for _ in range(2))
        np.testing.assert_array_equal(counts, again)
        np.testing.assert_array_equal(counts[:37], one_run(**play, trials=37, seed=1).v)
        assert (counts != one_run(**play, trials=100, seed=2).v).any()


def test_equal_arguments_give_equal_numbers():
    """Whatever type they come in: streams are keyed by converted values."""
    reference = one_run(LocalRandomizedResponse(1.0), ThresholdGuesser(0.0), 50, seed=1).v
    for one in (1, np.float64(1), np.int64(1), np.float32(1)):
        same = one_run(LocalRandomizedResponse(one), ThresholdGuesser(0), np.int64(50), seed=1)
        assert same.v == reference


def test_own_mechanisms_and_guessers_are_reproducible():
    class Open(LocalRandomizedResponse):
        """A class of somebody else's, without a repr of its own."""

        __repr__ = object.__repr__

    class Yes:
        def guess(self, loss):
            return np.ones(np.shape(loss), dtype=np.int8)

    first, second = (one_run(Open(1.0), Yes(), 100, trials=5, seed=3).v for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_what_is_no_guess_is_not_counted():
    """Is False a guess, or none? Nobody should have to know what a game makes of it."""
    for guess, message in (
        (lambda loss: loss < 0, "-1, 0 or 1, got True or False"),
        (lambda loss: np.where(loss > 0, -1.0, np.nan), "-1, 0 or 1, got another value"),
        (lambda loss: np.full(loss.shape, 2), "-1, 0 or 1, got another value"),
        (lambda loss: np.ones(loss.shape[-1]), r"guess, or none, for each loss, got shape \(3,\)"),
    ):
        odd = SimpleNamespace(guess=guess)
        for play in (
            lambda odd: one_run(Count(), odd, 3, trials=2, seed=1),
            lambda odd: classic(Count(), odd, 3, base=(-1, 1, 1), trials=2, seed=1),
            lambda odd: full_knowledge_law(channel(Count(), 3), odd),
        ):
            with pytest.raises(ValueError, match=message):
                play(odd)


class Careless(LocalRandomizedResponse):
    """Randomized response that turns its input, as somebody might write it."""

    def run(self, signs, rng):
        signs[rng.random(signs.shape) > p(self.epsilon)] *= -1
        return signs


def test_a_mechanism_that_works_in_place_is_refused():
    """Otherwise guesses would be judged by what it publishes, and all of them be right."""
    for play in (one_run, adaptive, full_knowledge, classic):
        with pytest.raises(ValueError, match="read-only"):
            play(Careless(1.0), ThresholdGuesser(), 100, seed=1)


def test_own_classes_may_keep_arrays():
    """They play in one thread, whatever Numba is set to use."""

    class Scratch:
        buffer = None

        def guess(self, loss):
            if self.buffer is None or self.buffer.shape != loss.shape:
                self.buffer = np.empty(loss.shape)
            np.sign(loss, out=self.buffer)
            np.negative(self.buffer, out=self.buffer)
            return self.buffer

    play = dict(n=2000, trials=400, seed=1)
    expected = one_run(LocalLaplace(2.0), ThresholdGuesser(), **play).accuracy
    found = one_run(LocalLaplace(2.0), Scratch(), **play).accuracy
    assert found.mean() == pytest.approx(expected.mean(), abs=4 * expected.std() / 400**0.5)


def test_rounding_breaks_no_ties():
    """Losses that are equal, or zero, in theory differ by 1e-16 in a table."""
    for epsilon, n in ((2.2, 7), (0.7, 5), (1.0, 6)):
        blind = one_run_law(channel(XorRandomizedResponse(epsilon), n), ThresholdGuesser())
        coins = stats.binom.pmf(np.arange(n + 1), n, 0.5)
        np.testing.assert_allclose(blind[:, n], coins, atol=1e-12)
        for k in (1, n - 1):
            law = full_knowledge_law(channel(LocalRandomizedResponse(epsilon), n), TopGuesser(k))
            expected = stats.binom.pmf(np.arange(k + 1), k, p(epsilon))
            np.testing.assert_allclose(law[: k + 1, k], expected, atol=1e-12)


# -------------------------------------------------------------------------- budgets and marks


def test_missing_guesses_of_a_budget_are_wrong():
    guesser, table = ThresholdGuesser(np.log(2)), channel(Count(), 4)
    for feedback, budget in product(("one-way", "full"), (1, 2, 4)):
        play = {"feedback": feedback, "guesses": budget}
        law = adaptive_law(table, guesser, **play)
        assert law.sum() == pytest.approx(1)
        assert law[:, budget].sum() == pytest.approx(1)
        check_law(adaptive(Count(), guesser, 4, **play, trials=4000, seed=21), law)
        free = adaptive_law(table, guesser, feedback=feedback)
        if budget == 4:
            np.testing.assert_allclose(law[:, 4], free.sum(axis=1), atol=1e-12)


# ------------------------------------------------------------------- the best of all guessers


def accuracy(n, least):
    v, r = np.indices((n + 1, n + 1))
    return np.where((r >= least) & (v <= r), v / np.maximum(r, 1), -1e3)


def test_best_plain_guesser_is_found_by_trying_all():
    for name, n in ((name, n) for name, n in SMALL if n <= 3):
        mechanism, definition, _, _ = ZOO[name]
        exact, table = oracles.table(definition, n), channel(mechanism, n)
        for k in range(1, n + 1):
            best = best_mean(table, accuracy(n, k))
            assert best == pytest.approx(float(oracles.best_efficacy(exact, k)), abs=1e-12)


def naive_best(exact, value, n, feedback):
    """The best guesser in fractions: every decision tried at every state of knowledge."""

    def told(o, i, known, guesses):
        return sum(best(o, {**known, i: sign}, guesses) for sign in (-1, 1))

    def guessed(o, i, known, guesses):
        return told(o, i, known, guesses) if feedback == "full" else best(o, known, guesses)

    def best(o, known, guesses):
        left = [i for i in range(n) if i not in known and i not in guesses]
        if not left:
            total = Fraction(0)
            for s, law in exact.items():
                if all(s[i] == sign for i, sign in known.items()):
                    v = sum(s[i] == sign for i, sign in guesses.items())
                    total += law.get(o, Fraction(0)) * value[v][len(guesses)]
            return total
        return max(
            option
            for i in left
            for option in (
                told(o, i, known, guesses),
                *(guessed(o, i, known, {**guesses, i: sign}) for sign in (-1, 1)),
            )
        )

    return sum(best(o, {}, {}) for o in oracles.outputs(exact)) / 2**n


@pytest.mark.parametrize(("name", "n"), [("LRR", 2), ("XOR", 2), ("XRR", 3), ("Count", 3)])
def test_best_guesser_with_feedback_by_trying_all(name, n):
    mechanism, definition, _, _ = ZOO[name]
    exact, table = oracles.table(definition, n), channel(mechanism, n)
    rng = np.random.default_rng(4)
    for feedback in ("one-way", "full", "one-way", "full"):
        value = rng.integers(-3, 7, (n + 1, n + 1))
        naive = naive_best(exact, value.tolist(), n, feedback)
        assert best_mean(table, value, feedback=feedback) == pytest.approx(float(naive), abs=1e-12)


# ------------------------------------------------------------------- classic audits, exactly


def test_classic_law_is_what_is_played():
    played = ((XorRandomizedResponse(1.0), (1, -1, 1)), (Count(), (1, 1)))
    for (mechanism, base), tau in product(played, (0.0, 0.5, 1.0)):
        guesser, play = ThresholdGuesser(tau), {"rounds": 4, "base": base}
        law = classic_law(channel(mechanism, len(base)), guesser, **play)
        assert law.sum() == pytest.approx(1)
        check_law(classic(mechanism, guesser, **play, trials=20_000, seed=1), law)


def test_classic_law_of_another_element():
    """Turn the elements of a table, and the coin moves along."""
    table, guesser = random_channel(3, 5, 1, 0.0), ThresholdGuesser(0.2)
    turned = Channel(np.moveaxis(table.cube, 3, 1).reshape(table.table.shape))
    last = classic_law(table, guesser, 2, base=(-1, 1, 1), index=2)
    assert np.allclose(last, classic_law(turned, guesser, 2, base=(1, -1, 1)))
    assert not np.allclose(last, classic_law(table, guesser, 2, base=(-1, 1, 1)))


def test_classic_law_by_words():
    """Two rounds on a table with an output that is not guessed."""
    table = Channel(np.array([[0.6, 0.1], [0.3, 0.3], [0.1, 0.6]]))
    law = classic_law(table, ThresholdGuesser(1.0), 2)
    right, wrong, silent = 0.6, 0.1, 0.3
    expected = silent**2, 2 * right * silent, 2 * right * wrong, right**2
    assert law[[0, 1, 1, 2], [0, 1, 2, 2]] == pytest.approx(expected)

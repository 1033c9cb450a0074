"""Which bound is valid: from how an audit was set up, never from how its counts happen to look."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.reference import simulate_training
from ledger.cases.games import full_knowledge
from ledger.cases.worst_cases import best_mean
from orabook import experiments
from orabook.experiments.single_step import simulate_single_step
from orabook.studies import feedback_at_its_best
from oralib import (
    Channel,
    Count,
    Counts,
    DpSgd,
    Dropping,
    LocalLaplace,
    LocalRandomizedResponse,
    ThresholdGuesser,
    TopGuesser,
    XorInPairs,
    XorRandomizedResponse,
    adaptive,
    channel,
    classic,
    epsilon_lower_bound,
    one_run,
    simulate_dpsgd,
    simulate_hopping,
    valid_lower_bound,
    valid_rule,
)
from oralib.bounds import AnyOrder, Anytime, Certified, Exact, Pure, RandomR
from oralib.bounds.random_r import planned_b
from oralib.dpsgd import simulate_likelihood

LAPLACE, ALL, SOME = LocalLaplace(2.0), ThresholdGuesser(), ThresholdGuesser(2.0)
STEP = DpSgd(40, 20, 1, 1.0, sigma=2.0)
GAME = {"trials": 3, "seed": 1}
ONE_WAY, FULL = {"feedback": "one-way", **GAME}, {"feedback": "full", **GAME}

# A game, whether its number of guesses is fixed in advance, and its feedback.
GAMES = {
    "all": (lambda: one_run(LAPLACE, ALL, 30, **GAME), True, "none"),
    "threshold": (lambda: one_run(LAPLACE, SOME, 30, **GAME), False, "none"),
    "top": (lambda: one_run(LAPLACE, TopGuesser(5), 30, **GAME), True, "none"),
    "classic, all": (lambda: classic(LAPLACE, ALL, 30, **GAME), True, "none"),
    "classic, threshold": (lambda: classic(LAPLACE, SOME, 30, **GAME), False, "none"),
    "one-way": (lambda: adaptive(Count(), SOME, 6, **GAME), False, "one-way"),
    "one-way, budget": (lambda: adaptive(Count(), SOME, 6, guesses=2, **GAME), True, "one-way"),
    "full": (lambda: adaptive(Count(), SOME, 6, **FULL), False, "full"),
    "full, all": (lambda: adaptive(Count(), ALL, 6, **FULL), True, "list"),
    "full, budget": (lambda: adaptive(Count(), SOME, 6, guesses=2, **FULL), True, "list"),
    "all others": (lambda: full_knowledge(Count(), SOME, 6, **GAME), False, "all others"),
    "DP-SGD": (lambda: simulate_dpsgd(STEP, 10, **GAME), True, "none"),
    "DP-SGD by steps": (lambda: simulate_training(STEP, 10, **GAME), True, "none"),
    "hopping": (lambda: simulate_hopping(STEP, 5, dropping=Dropping(1), **GAME), True, "none"),
    "likelihood": (lambda: simulate_likelihood(STEP, 5, **GAME), True, "none"),
    "likelihood, one-way": (lambda: simulate_likelihood(STEP, 5, **ONE_WAY), True, "one-way"),
    "threshold, DP-SGD": (lambda: simulate_single_step(STEP, 0.5, **GAME), False, "none"),
    "one-way, DP-SGD": (lambda: simulate_single_step(STEP, 0.5, **ONE_WAY), False, "one-way"),
    "budget, DP-SGD": (lambda: simulate_single_step(STEP, 0.5, guesses=4, **FULL), True, "list"),
}


@pytest.mark.parametrize("name", GAMES)
def test_games_say_how_they_were_set_up(name):
    play, fixed, feedback = GAMES[name]
    counts = play()
    assert counts.r_fixed is fixed
    assert counts.feedback == feedback


@pytest.mark.parametrize("feedback", ["none", "one-way"])
def test_plain_and_one_way_audits(feedback):
    v, r = np.array([75, 80]), np.array([100, 100])
    audit = {"beta": 0.1, "delta": 1e-5}
    exact = Exact().lower_bound(v, r, n=2000, **audit)
    by_output = RandomR().lower_bound(v, r, n=2000, **audit)
    for fixed, rule, due in ((True, Exact(), exact), (False, RandomR(), by_output)):
        counts = Counts(v, r, 2000, r_fixed=fixed, feedback=feedback)
        assert (valid_lower_bound(counts, beta=0.1) == epsilon_lower_bound(v, r, beta=0.1)).all()
        assert (valid_lower_bound(counts, **audit) == due).all()
        assert valid_rule(counts, 1e-5) == rule


@pytest.mark.parametrize("beta", [0.05, 0.4, 0.9])
def test_full_feedback(beta):
    """There are rules, whether the number is fixed or open."""
    watched = Counts([731, 990], [1000, 1000], 1000, feedback="full")
    listed = Counts([731, 990], [1000, 1000], 1000, feedback="list")  # it may stop while ahead
    fixed = {
        word: Counts([731, 990], [1000, 1000], 1000, feedback=word, r_fixed=True)
        for word in ("full", "list")
    }
    for delta in (0.0, 1e-9, 1e-5, 9e-5, 1e-3):
        bounds = valid_lower_bound(watched, beta=beta, delta=delta)
        anytime = Anytime().lower_bound(watched.v, watched.r, beta=beta)
        assert (bounds == (np.round(bounds, 3) if delta else anytime)).all()
        assert ((anytime - 0.13 <= bounds) & (bounds <= anytime)).all()
        assert (valid_lower_bound(listed, beta=beta, delta=delta) == bounds).all()
        for counts in (watched, listed):
            assert valid_rule(counts, delta) == (Certified() if delta else Anytime())
        for word, rule in (("full", AnyOrder()), ("list", Exact())):
            claim = {"beta": beta, "delta": delta, "n": 1000}
            due = rule.lower_bound(watched.v, watched.r, **claim)
            assert (valid_lower_bound(fixed[word], beta=beta, delta=delta) == due).all()
            assert valid_rule(fixed[word], delta) == (rule if delta else Pure())
    assert (valid_lower_bound(watched, beta=beta, delta=1.0) == 0).all()  # every mechanism is that


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(
    ("mechanism", "n", "delta"),
    [
        (LocalRandomizedResponse(0.2), 2, 0.05),
        (LocalRandomizedResponse(0.1), 3, 0.02),
        (XorRandomizedResponse(0.3), 3, 0.1),
    ],
)
def test_full_feedback_with_delta_is_valid(mechanism, n, delta, fixed):
    """Dynamic programming over all adaptive guessers of tables that leak all with probability δ."""
    noisy = (1 - delta) * channel(mechanism, n).table
    table = Channel(np.vstack([delta * np.eye(2**n), noisy]))
    epsilon = mechanism.epsilon
    assert table.delta(epsilon) == pytest.approx(delta)
    v, r = np.indices((n + 1, n + 1))
    most = 0.0
    for beta in np.linspace(0.15, 0.9, 6):
        for k in range(1, n + 1) if fixed else [n]:
            # With a budget, missing guesses count as wrong, and there are no more than k.
            taken = np.full_like(r, k) if fixed else r
            right = np.minimum(v, taken).ravel()
            counts = Counts(right, taken.ravel(), n, feedback="full", r_fixed=fixed)
            bound = valid_lower_bound(counts, beta=beta, delta=delta).reshape(v.shape)
            fails = (bound > epsilon + 1e-9) & (v <= r) & (r <= k)
            worst = best_mean(table, fails, feedback="full")
            assert worst <= beta + 1e-12
            most = max(most, worst / beta)
    assert most > (0.8 if fixed else 0.3)  # guessers do come near what is allowed


def test_full_knowledge_has_no_bound():
    counts = full_knowledge(Count(), SOME, 6, **GAME)
    for delta in (0.0, 1e-5):
        with pytest.raises(ValueError, match="knows all other elements"):
            valid_lower_bound(counts, delta=delta)
        assert np.isnan(experiments.summarise(counts, delta=delta)["valid"][0])


@pytest.mark.parametrize(("expected", "beta"), [(None, 0.05), (60, 0.05), (400, 0.05), (400, 0.01)])
def test_the_least_b_follows_its_plan(expected, beta):
    """B of the least count of half of the guesses that rejects ε = 0, within limits."""
    r = (expected or 60) // 2
    tails = stats.binom.sf(np.arange(r), r, 0.5)
    v = int(np.argmax(tails <= beta)) + 1
    due = v * stats.binom.pmf(v, r, 0.5) / tails[v - 1]
    budget = np.array([0.0, 0.001, 0.2, 10.0])
    least, most = budget / ((0.8 if expected else 0.6) * beta), budget / (0.1 * beta)
    found = np.array([planned_b(20_000, leak, beta, expected) for leak in budget])
    assert found == pytest.approx(np.clip(due, least, most))
    assert least[2] < found[2] == pytest.approx(due)
    counts = Counts(160, 210, 20_000)
    audit = {"beta": beta, "delta": 1e-5}
    by_rule = RandomR(expected).lower_bound(160, 210, n=20_000, **audit)
    assert valid_lower_bound(counts, expected=expected, **audit) == by_rule


def test_feedback_is_judged_by_fresh_audits():
    dpsgd, game = DpSgd(2000, 500, 1, 1.0, sigma=2.0), {"trials": 40, "seed": 5}
    table = feedback_at_its_best([dpsgd], beta=0.05, delta=1e-5, **game).set_index("feedback")
    free, fixed = table.loc["full, free to stop"], table.loc["full, number fixed"]
    for row, budget in ((free, {}), (fixed, {"guesses": int(fixed["k"])})):
        counts = simulate_single_step(dpsgd, row["tau"], feedback="full", **budget, **game)
        assert row["valid"] == valid_lower_bound(counts, delta=1e-5).mean() != row["pilot"]
    pilot = simulate_single_step(dpsgd, fixed["tau"], feedback="full", trials=40, seed=6)
    assert 0.02 <= (pilot.r < fixed["k"]).mean() <= 0.1
    assert fixed["any_order"] < fixed["valid"]


def test_trials_whose_numbers_coincide_are_not_fixed():
    """Xor-in-Pairs: with one-way feedback all trials take n / 2 guesses."""
    counts = adaptive(XorInPairs(), ThresholdGuesser(np.inf), 60, trials=20, seed=1)
    assert (counts.r == 30).all()
    assert not counts.r_fixed
    assert valid_rule(counts, 1e-5) == RandomR()
    row = experiments.summarise(counts, delta=1e-5).iloc[0]
    due = RandomR().lower_bound(30, 30, delta=1e-5, n=60)
    assert row["valid"] == pytest.approx(due, rel=1e-12)


class TwoAtMost:
    """Promises two guesses and takes one in some trials."""

    def guess(self, loss):
        return np.where(np.arange(loss.shape[-1]) < 2, np.sign(loss), 0).astype(np.int8)

    def fixed_number(self, n):
        return 2


def test_a_promise_that_is_not_kept():
    with pytest.raises(ValueError, match="must take the 2 guesses that its fixed_number promises"):
        one_run(Count(), TwoAtMost(), 4, trials=50, seed=1)

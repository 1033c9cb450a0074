"""Which bound is valid: from how an audit was set up, never from how its counts happen to look."""

import numpy as np
import pytest
from scipy import stats

from ledger.worst_cases import best_mean
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
    epsilon_lower_bound_anytime,
    epsilon_lower_bound_random_r,
    experiments,
    one_run,
    p,
    simulate_dpsgd,
    simulate_hopping,
    valid_lower_bound,
    valid_rule,
)
from oralib.bounds import split_for
from oralib.dpsgd import simulate_likelihood, simulate_single_step, simulate_training
from oralib.games import full_knowledge

LAPLACE, ALL, SOME = LocalLaplace(2.0), ThresholdGuesser(), ThresholdGuesser(2.0)
STEP = DpSgd(40, 20, 1, 1.0, sigma=2.0)
GAME = {"trials": 3, "seed": 1}

# A game, whether its number of guesses is fixed in advance, and its feedback.
GAMES = {
    "all": (lambda: one_run(LAPLACE, ALL, 30, **GAME), True, "none"),
    "threshold": (lambda: one_run(LAPLACE, SOME, 30, **GAME), False, "none"),
    "top": (lambda: one_run(LAPLACE, TopGuesser(5), 30, **GAME), True, "none"),
    "classic, all": (lambda: classic(LAPLACE, ALL, 30, **GAME), True, "none"),
    "classic, threshold": (lambda: classic(LAPLACE, SOME, 30, **GAME), False, "none"),
    "one-way": (lambda: adaptive(Count(), SOME, 6, **GAME), False, "one-way"),
    "one-way, budget": (lambda: adaptive(Count(), SOME, 6, budget=2, **GAME), True, "one-way"),
    "full": (lambda: adaptive(Count(), SOME, 6, feedback="full", **GAME), False, "full"),
    "full, all": (lambda: adaptive(Count(), ALL, 6, feedback="full", **GAME), True, "list"),
    "full, budget": (
        lambda: adaptive(Count(), SOME, 6, feedback="full", budget=2, **GAME),
        True,
        "list",
    ),
    "all others": (lambda: full_knowledge(Count(), SOME, 6, **GAME), False, "all others"),
    "DP-SGD": (lambda: simulate_dpsgd(STEP, 10, **GAME), True, "none"),
    "DP-SGD by steps": (lambda: simulate_training(STEP, 10, **GAME), True, "none"),
    "hopping": (lambda: simulate_hopping(STEP, 5, dropping=Dropping(1), **GAME), True, "none"),
    "likelihood": (lambda: simulate_likelihood(STEP, 5, **GAME), True, "none"),
    "likelihood, one-way": (
        lambda: simulate_likelihood(STEP, 5, feedback="one-way", **GAME),
        True,
        "one-way",
    ),
    "DP-SGD, threshold": (lambda: simulate_single_step(STEP, 0.5, **GAME), False, "none"),
    "DP-SGD, one-way": (
        lambda: simulate_single_step(STEP, 0.5, feedback="one-way", **GAME),
        False,
        "one-way",
    ),
    "DP-SGD, budget": (
        lambda: simulate_single_step(STEP, 0.5, feedback="full", budget=4, **GAME),
        True,
        "list",
    ),
}


@pytest.mark.parametrize("name", GAMES)
def test_games_say_how_they_were_set_up(name):
    play, fixed, feedback = GAMES[name]
    counts = play()
    assert counts.r_fixed is fixed
    assert counts.feedback == feedback
    assert counts.unsafe == (feedback == "all others" or (feedback == "full" and not fixed))


@pytest.mark.parametrize("feedback", ["none", "one-way"])
def test_plain_and_one_way_audits(feedback):
    v, r = np.array([75, 80]), np.array([100, 100])
    audit = {"beta": 0.1, "delta": 1e-5}
    exact = epsilon_lower_bound(v, r, n=2000, method="exact", **audit)
    split = epsilon_lower_bound_random_r(v, r, n=2000, split=0.1, **audit)
    for fixed, rule, due in ((True, "exact", exact), (False, "split", split)):
        counts = Counts(v, r, 2000, r_fixed=fixed, feedback=feedback)
        assert (valid_lower_bound(counts, beta=0.1) == epsilon_lower_bound(v, r, beta=0.1)).all()
        assert (valid_lower_bound(counts, **audit) == due).all()
        assert valid_rule(counts, 1e-5) == rule


@pytest.mark.parametrize("beta", [0.05, 0.4, 0.9])
def test_full_feedback(beta):
    """Right guesses and level are lowered if the number is open; if not, there are rules."""
    watched = Counts([731, 990], [1000, 1000], 1000, feedback="full")
    listed = Counts([731, 990], [1000, 1000], 1000, feedback="list")  # it may stop while ahead
    fixed = {
        word: Counts([731, 990], [1000, 1000], 1000, feedback=word, r_fixed=True)
        for word in ("full", "list")
    }
    for delta in (0.0, 1e-9, 1e-5, 9e-5, 1e-3):
        least = 500 * delta / beta
        window = max(1, int(np.ceil(least + min(np.sqrt(least), 2))))
        level = beta - 500 * delta / window
        anytime = epsilon_lower_bound_anytime(watched.v - window + 1, watched.r, beta=level)
        assert (valid_lower_bound(watched, beta=beta, delta=delta) == anytime).all()
        assert (valid_lower_bound(listed, beta=beta, delta=delta) == anytime).all()
        assert watched.unsafe
        assert listed.unsafe
        for counts in (watched, listed):
            assert valid_rule(counts, delta) == ("anytime lowered" if delta else "anytime")
        for word, method in (("full", "any order"), ("list", "exact")):
            claim = {"beta": beta, "delta": delta, "n": 1000}
            due = epsilon_lower_bound(watched.v, watched.r, method=method, **claim)
            assert (valid_lower_bound(fixed[word], beta=beta, delta=delta) == due).all()
            assert valid_rule(fixed[word], delta) == (method if delta else "pure")
    assert (valid_lower_bound(watched, beta=beta, delta=1.0) == 0).all()  # every mechanism is that


#: Right and taken guesses of a guesser that was free to stop, and its bound at n δ = 1, β = 0.05.
STOPPED = [(270, 350, 0.618), (462, 600, 0.769), (1439, 1510, 2.472)]


@pytest.mark.parametrize(("v", "r", "bound"), STOPPED)
def test_the_window_of_the_lowered_bound_is_near_the_best(v, r, bound):
    """Of all windows ℓ that could have been fixed in advance; once n δ / 2 >= β, ℓ = 1 shows 0."""
    counts, windows = Counts(v, r, n=10_000, feedback="full"), np.arange(1, 200)
    for budget in (0.003, 0.03, 0.1, 0.3, 1.0, 3.0):
        level = 0.05 - budget / (2 * windows)
        known = level > 0
        each = epsilon_lower_bound_anytime(v - windows[known] + 1, r, beta=level[known])
        found = valid_lower_bound(counts, delta=budget / 10_000)[0]
        assert each.max() - 0.004 <= found <= each.max()
        if budget == 1.0:
            assert found == pytest.approx(bound, abs=1e-3)
            assert not known[:10].any()


@pytest.mark.parametrize("fixed", [True, False])
def test_full_feedback_with_leaks_is_covered(fixed):
    """Simulated: elements are given away with probability δ; these are guessed first.

    All others are randomized response. A guesser who is free to stop does so once it has won.
    """
    n, delta, epsilon, beta, trials = 60, 0.06, 1.0, 0.05, 20_000
    rng = np.random.default_rng(3)
    given = rng.binomial(n, delta, size=(trials, 1))
    v = ((np.arange(n) < given) | (rng.random((trials, n)) < p(epsilon))).cumsum(axis=1)
    failures = []
    for claim in (delta, 0.0):
        fails = np.zeros(trials, dtype=bool)
        for r in [n] if fixed else range(1, n + 1):
            counts = Counts(np.arange(r + 1), [r] * (r + 1), n, r_fixed=fixed, feedback="full")
            fails |= (valid_lower_bound(counts, beta=beta, delta=claim) > epsilon)[v[:, r - 1]]
        failures.append(fails.mean())
    slack = 3 * np.sqrt(beta * (1 - beta) / trials)
    assert failures[0] <= beta
    assert failures[1] > beta + slack  # as if there were no leaks


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(
    ("mechanism", "n", "delta"),
    [
        (LocalRandomizedResponse(0.2), 2, 0.05),
        (LocalRandomizedResponse(0.1), 3, 0.02),
        (XorRandomizedResponse(0.3), 3, 0.1),
    ],
)
def test_full_feedback_with_delta_is_valid_for_every_guesser(mechanism, n, delta, fixed):
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


def test_full_feedback_with_delta_is_not_valid_at_the_whole_level():
    """What the lower level is for: at level β the plain bound of one guess fails too often."""
    n, delta, epsilon = 1, 0.1, 0.3
    truth = delta + (1 - delta) * p(epsilon)
    table = Channel(np.array([[truth, 1 - truth], [1 - truth, truth]]))
    assert table.delta(epsilon) <= delta + 1e-12
    beta = p(epsilon) + 0.001
    counts = Counts(1, 1, n, feedback="full", r_fixed=True)
    assert epsilon_lower_bound(1, 1, beta=beta) > epsilon
    assert best_mean(table, np.array([[0, 0], [0, 1.0]]), feedback="full") > beta
    assert valid_lower_bound(counts, beta=beta, delta=delta)[0] <= epsilon


def test_full_knowledge_has_no_bound():
    counts = full_knowledge(Count(), ALL, 4, seed=1)
    for delta in (0.0, 1e-5):
        with pytest.raises(ValueError, match="knows all other elements"):
            valid_lower_bound(counts, delta=delta)


def test_the_split_can_be_chosen():
    counts = Counts(160, 210, 10_000)
    for split in (0.05, 0.2):
        due = epsilon_lower_bound_random_r(160, 210, delta=1e-5, n=10_000, split=split)
        assert valid_lower_bound(counts, delta=1e-5, split=split)[0] == due
    for beta in (0.05, 0.01):
        share = split_for(10_000, 1e-5, beta)
        due = epsilon_lower_bound_random_r(160, 210, beta=beta, delta=1e-5, n=10_000, split=share)
        assert valid_lower_bound(counts, beta=beta, delta=1e-5)[0] == due


def test_planned_share_is_what_its_words_say():
    """n δ / (β B), B of the least count of half of the guesses that rejects ε = 0."""
    for guesses, beta in ((60, 0.05), (400, 0.05), (400, 0.01)):
        r = guesses // 2
        tails = stats.binom.sf(np.arange(r), r, 0.5)
        v = int(np.argmax(tails <= beta)) + 1
        b = v * stats.binom.pmf(v, r, 0.5) / tails[v - 1]
        share = split_for(20_000, 1e-5, beta, guesses)
        assert share == pytest.approx(0.2 / (beta * b))
    assert split_for(20_000, 1e-5) == pytest.approx(split_for(20_000, 1e-5, guesses=60))
    assert (split_for(100, 1e-5), split_for(10**6, 1e-5)) == (0.1, 0.6)
    assert (split_for(100, 1e-5, guesses=60), split_for(10**6, 1e-5, guesses=60)) == (0.1, 0.8)
    assert split_for(0, 1e-5) == split_for(1, 0.0) == 0.1
    assert split_for(10, 0.5, guesses=2) == 0.8  # too few guesses to reject anything


@pytest.mark.parametrize(("budget", "beta"), [(0.01, 0.05), (0.2, 0.05), (0.1, 0.01)])
@pytest.mark.parametrize(("r", "accuracy"), [(60, 0.75), (100, 0.9), (400, 0.75)])
def test_planned_share_is_near_the_best(budget, beta, r, accuracy):
    """Where the number of guesses is r, give or take thirty per cent."""
    n = 100_000
    audit = {"beta": beta, "delta": budget / n, "n": n}

    def mean(share):
        values = []
        for taken in (r * 7 // 10, r, r * 13 // 10):
            v = np.arange(taken + 1)
            bound = epsilon_lower_bound_random_r(v, taken, split=share, **audit)
            values.append(stats.binom.pmf(v, taken, accuracy) @ bound)
        return np.mean(values)

    best = max(mean(share) for share in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9))
    assert mean(split_for(n, budget / n, beta)) >= 0.85 * best
    assert mean(split_for(n, budget / n, beta, guesses=r)) >= 0.88 * best


def test_kinds_of_feedback_are_judged_by_other_audits_than_those_that_chose():
    dpsgd, game = DpSgd(2000, 500, 1, 1.0, sigma=2.0), {"trials": 40, "seed": 5}
    table = feedback_at_its_best([dpsgd], beta=0.05, delta=1e-5, **game).set_index("feedback")
    free, fixed = table.loc["full, free to stop"], table.loc["full, number fixed"]
    for row, budget in ((free, {}), (fixed, {"budget": int(fixed["k"])})):
        counts = simulate_single_step(dpsgd, row["tau"], feedback="full", **budget, **game)
        assert row["valid"] == valid_lower_bound(counts, delta=1e-5).mean() != row["pilot"]
    pilot = simulate_single_step(dpsgd, fixed["tau"], feedback="full", trials=40, seed=6)
    assert 0.02 <= (pilot.r < fixed["k"]).mean() <= 0.1
    assert fixed["any_order"] < fixed["valid"]


# ------------------------------------------------------------- not from how the data happen to look


def test_experiments_with_one_trial_show_the_bound_for_random_r():
    table = experiments.adaptive_dpsgd((20,), feedbacks=("none",), trials=1, seed=3)
    assert round(table["valid"][0], 3) == 0.761  # not 0.793, which needs a number fixed in advance


def test_trials_whose_numbers_coincide_are_not_fixed():
    """Xor-in-Pairs: with one-way feedback all trials take n / 2 guesses."""
    counts = adaptive(XorInPairs(), ThresholdGuesser(np.inf), 60, trials=20, seed=1)
    assert (counts.r == 30).all()
    assert not counts.r_fixed
    assert valid_rule(counts, 1e-5) == "split"
    row = experiments.summarise(counts, delta=1e-5).iloc[0]
    due = epsilon_lower_bound_random_r(30, 30, delta=1e-5, n=60, split=split_for(60, 1e-5))
    assert row["valid"] == pytest.approx(due)
    assert row["valid"] < epsilon_lower_bound(30, 30, delta=1e-5, n=60, method="exact")


def test_summaries_have_nan_where_no_bound_is_known():
    counts = full_knowledge(Count(), SOME, 6, **GAME)
    assert np.isnan(experiments.summarise(counts, delta=1e-5)["valid"][0])
    assert np.isnan(experiments.summarise(counts)["valid"][0])


class TwoAtMost:
    """Promises two guesses and takes one in some trials."""

    def guess(self, loss):
        return np.where(np.arange(loss.shape[-1]) < 2, np.sign(loss), 0).astype(np.int8)

    def fixed_number(self, n):
        return 2


def test_a_promise_that_is_not_kept():
    with pytest.raises(ValueError, match="must take the 2 guesses that its fixed_number promises"):
        one_run(Count(), TwoAtMost(), 4, trials=50, seed=1)


def test_balanced_coins_are_not_covered():
    """One of two elements is included: both responses speak about one coin."""
    counts = Counts(75, 100, 1000, r_fixed=True, coins="balanced")
    for delta in (0.0, 1e-5):
        with pytest.raises(ValueError, match="a fair coin of its own, got coins='balanced'"):
            valid_lower_bound(counts, delta=delta)

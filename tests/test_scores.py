"""Audits of a training by its scores, compared with naive twins, other software and the truth."""

import contextlib
import io
import json
import math
import re
import subprocess
import sys
from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import oralib
from ledger import worst_cases
from oralib import Counts, audit_counts, audit_guesses, audit_scores, valid_lower_bound
from oralib.__main__ import main
from oralib.ground.streams import stream
from oralib.ground.text import rounded_down
from oralib.scores import UNFAIR
from oralib.scores.guessing import exact_bounds, right_guesses, spread_numbers, ties_drawn


def gaussian(n=2000, shift=1.0, seed=1):
    rng = np.random.default_rng(seed)
    included = rng.random(n) < 0.5
    return rng.normal(size=n) + shift * included, included


# ------------------------------------------------------------------------------ naive twins


def naive_counts(scores, included, k, side):
    """Right guesses of k, by sorting pairs; no two scores may be equal."""
    pairs = sorted(zip(scores, included, strict=True), reverse=True)
    if side == "farthest":
        far = sorted(pairs, key=lambda pair: -abs(pair[0]))[:k]
        return sum((score > 0) == coin for score, coin in far)
    high = k if side == "included" else math.ceil(k / 2)
    low = k - high
    top, bottom = pairs[:high], pairs[len(pairs) - low :]
    return sum(bool(coin) for _, coin in top) + sum(not coin for _, coin in bottom)


def kinds_of_audits():
    """One audit of every kind, with the counts and the level that its bound is due for."""
    scores, coins = gaussian(400)
    half, given = np.arange(400) % 2 == 0, {"delta": 1e-5, "beta": 0.1}
    kinds = {"guesses": {"guesses": 60}, "grid": {"grid": (20, 60)}, "split": {"split": 0.25}}
    for name, how in kinds.items():
        yield name, audit_scores(scores, coins, **given, **how), {"r_fixed": name != "split"}
    balanced = {"guesses": 60, "coins": "balanced"}
    for side, r_in in (("both", 30), ("included", 60)):
        audit = audit_scores(scores + half, half, side=side, **given, **balanced)
        yield side, audit, {"r_fixed": True, "coins": "balanced", "r_in": r_in}
    pairs = audit_scores(scores + half, half, adjacency="replace", **given, **balanced)
    yield "pairs", pairs, {"r_fixed": True}
    guessed = np.where(np.abs(scores) > 1, scores > 0, np.nan)
    yield "made", audit_guesses(guessed, coins, **given), {}
    for fixed, feedback in product((True, False), ("none", "one-way", "list", "full")):
        how = {"r_fixed": fixed, "feedback": feedback}
        yield f"{how}", audit_counts(Counts(80, 100, n=400, **how), **given), how


def test_an_audit_means_its_counts():
    """Its bound, its best bound and what it takes to refute are those of its counts, set up so."""
    for name, audit, how in kinds_of_audits():
        r, n, level = audit.r, audit.n, {"beta": 0.05 if name == "grid" else 0.1, "delta": 1e-5}
        due = [valid_lower_bound(Counts(v, r, n, **how), **level) for v in range(r + 1)]
        assert 0 < audit.bound == due[audit.v] == audit.bound_of(audit.v, r, n), name
        p = audit.p_value(audit.bound)  # of a claim that is just not refuted
        assert 0.1 <= p <= 0.100101 if p is not None else audit.rule not in ("pure", "exact"), name
        assert audit.right_needed(audit.bound) == due.index(min(b for b in due if b > audit.bound))
        if needed := audit.guesses_needed(audit.bound):
            assert audit.bound_of(needed, needed, n) > audit.bound, name
            assert audit.bound_of(needed - 1, needed - 1, n) <= audit.bound, name
        assert needed or name == "included"  # as not all n of balanced coins are heads
        most = max(audit.grid, default=r)
        assert audit.best_bound == valid_lower_bound(Counts(most, most, n, **how), **level), name
        said, even = " ".join(str(audit).split()), f"even {most} right of {most} would show"
        assert f"{even} {rounded_down(audit.best_bound)}" in said
        assert f"needs an ε of at least {rounded_down(audit.pure_bound)}" in said
        plain = how.get("r_fixed") and how.get("feedback", "none") == "none" and "coins" not in how
        assert math.isnan(audit.fdp_bound) != plain, name
        assert ("δ costs" in said) == (audit.bound < audit.pure_bound - 0.05)
        assert ("for each pair a fair coin of its own" in said) == (name == "pairs")
        half = f"the {math.ceil(r / 2)} with the highest scores as included, the {r // 2} with"
        assert (half in said) == (audit.side == "both")
        assert audit.verdict(0.99 * audit.bound) == "refuted"
        assert audit.verdict(audit.bound) == "not refuted"
        assert audit.verdict(audit.best_bound) == "cannot test"


@pytest.mark.parametrize("side", ["both", "included", "farthest"])
def test_guesses_are_those_of_a_naive_count(side):
    scores, included = gaussian(301)
    for k in (1, 2, 7, 100, 301):
        audit = audit_scores(scores, included, delta=1e-5, guesses=k, side=side)
        v = naive_counts(scores, included, k, side)
        assert (audit.v, audit.r, audit.n, audit.ties_drawn, audit.notes) == (v, k, 301, 0, ())
        counts = Counts(v, k, n=301, r_fixed=True)
        assert audit.bound == valid_lower_bound(counts, delta=1e-5)
        assert audit.pure_bound == oralib.epsilon_lower_bound(v, k)
        assert audit.fdp_bound == oralib.epsilon_lower_bound_fdp(v, k, n=301, delta=1e-5)
        assert audit.accuracy == v / k
        assert audit.estimate == oralib.epsilon_estimate(v, k)


@pytest.mark.parametrize("side", ["both", "included"])
def test_a_grid_is_the_best_of_its_numbers_at_the_corrected_level(side):
    scores, included = gaussian()
    grid = (400, 30, 100, 1999)
    audit = audit_scores(scores, included, delta=1e-6, grid=grid, side=side)
    how = {"delta": 1e-6, "beta": 0.05 / 4, "side": side}
    each = [audit_scores(scores, included, guesses=k, **how) for k in grid]
    best = max(each, key=lambda one: one.bound)
    assert best.bound > 0
    same = ("bound", "pure_bound", "fdp_bound", "v", "r", "accuracy")
    assert all(getattr(audit, name) == getattr(best, name) for name in same)
    assert (audit.test_beta, audit.beta, audit.grid) == (0.05 / 4, 0.05, (30, 100, 400, 1999))
    alone = audit_scores(scores, included, delta=1e-6, grid=[400], side=side)
    assert alone.bound == audit_scores(scores, included, delta=1e-6, guesses=400, side=side).bound


def test_a_split_audits_only_the_others():
    scores, included = gaussian()
    audit = audit_scores(scores, included, delta=1e-5, split=0.25, seed=3)
    assert (audit.n, audit.canaries, audit.choice, audit.rule) == (1500, 2000, "split", "random r")
    counts = Counts(audit.v, audit.r, n=1500)  # whose number of guesses is left to the output
    assert audit.bound == valid_lower_bound(counts, delta=1e-5) > 0
    assert math.isnan(audit.fdp_bound)  # which needs a fixed number
    default = audit_scores(scores, included, delta=1e-5)
    assert default == audit_scores(scores, included, delta=1e-5, split=0.2, seed=0)


def test_a_few_lucky_guesses_on_the_share_set_aside_do_not_win():
    """There the first 14 guesses are right, but no more than 93 of the first hundred."""
    order = stream(1, "scores", "split").permutation(500)
    aside, rest = order[:100], order[100:]
    included = np.zeros(500, dtype=bool)
    included[aside] = ~np.isin(np.arange(100), np.arange(14, 98, 12))
    included[rest] = np.arange(400) < 180  # so that coins and guesses look like fair ones
    scores = np.empty(500)
    scores[aside], scores[rest] = -np.arange(100.0), -np.arange(400.0)
    audit = audit_scores(scores, included, delta=0.0, split=0.2, side="included", seed=1)
    assert audit.r > 200


def test_only_the_order_of_scores_matters():
    scores, included = gaussian()
    for arguments in ({"guesses": 201}, {"split": 0.3}, {"grid": (10, 300)}):
        first = audit_scores(scores, included, delta=1e-5, **arguments)
        assert first == audit_scores(scores**3 * 1e30, included, delta=1e-5, **arguments)
        assert first == audit_scores(scores.tolist(), 2 * included - 1, delta=1e-5, **arguments)
        as_series = pd.Series(scores), pd.Series(included, index=range(5000, 7000))
        assert first == audit_scores(*as_series, delta=1e-5, **arguments)
    # Turned around, all guesses are the opposite, and as often right.
    back = audit_scores(-scores, ~included, delta=1e-5, guesses=200)
    assert back.v == audit_scores(scores, included, delta=1e-5, guesses=200).v


# --------------------------------------------------------------------------------- equal scores


def test_equal_scores_are_drawn_by_lot_and_not_by_the_order_of_the_file():
    """All included canaries come first in the file; a stable sort would know them."""
    included = np.arange(1000) < 501
    scores = np.where(np.arange(1000) % 10 == 0, -1.0, 0.0)  # 900 are equal
    right = []
    for seed in range(200):
        audit = audit_scores(scores, included, delta=0.0, guesses=100, side="included", seed=seed)
        assert audit.ties_drawn == 100
        assert "100 of the 100 guesses were drawn by lot" in str(audit).replace("\n          ", " ")
        right.append(audit.v)
    error = np.sqrt(100 * 0.25 / 200)
    assert abs(np.mean(right) - 50) < 4 * error
    assert np.std(right) > 3  # and they differ from seed to seed
    again = audit_scores(scores, included, delta=0.0, guesses=100, side="included", seed=199)
    assert again.v == right[-1]


def test_lots_are_counted():
    """Among equal scores some were guessed so, and some were not: those that were are counted."""
    rng = np.random.default_rng(1)
    for k, side in product(range(1, 9), ("both", "included", "farthest")):
        for scores in rng.integers(-2, 3, size=(20, 8)).astype(float):
            up = np.sort(abs(scores) if side == "farthest" else scores)
            high = math.ceil(k / 2) if side == "both" else k
            taken = [Counter(part) for part in (up[8 - high :], up[: k - high])]
            lots = [m for part in taken for x, m in part.items() if m < (up == x).sum()]
            assert ties_drawn(scores, k, side) == sum(lots)


# ------------------------------------------------------------------------- against other software


def corners(points):
    """The points on the upper hull of a rising curve, those between others left out."""
    kept = []
    for x, y in points:
        while len(kept) > 1:
            (x0, y0), (x1, y1) = kept[-2:]
            if (y1 - y0) * (x - x1) > (y - y1) * (x1 - x0):
                break
            kept.pop()
        kept.append((x, y))
    return np.array(kept)


@pytest.mark.parametrize(
    ("shift", "reported"), [(0.0, 0.0), (1.0, 1.13346), (2.0, 2.311945), (4.0, 4.395568)]
)
def test_against_jax_privacy(shift, reported):
    """Scores at normal quantiles, only "included", δ = 1e-6, corrected over thresholds.

    ``CanaryScoreAuditor.epsilon_one_run(0.05, 1e-6)`` tries thresholds at the corners of the hull
    of the counts, divides the level by their number, and takes the p-value of Steinke et al. With
    the same numbers of guesses and the same p-value we get its numbers. Our p-value is the exact
    one, so that our bound is larger, and the corners, which are found by the coins, are no grid
    that could be declared in advance: a declared one does at least as well here.
    """
    quantiles = stats.norm.ppf((np.arange(10_000) + 0.5) / 10_000)
    scores, included = np.r_[quantiles + shift, quantiles], np.arange(20_000) < 10_000
    thresholds = np.r_[np.unique(scores), np.inf]
    below = (np.searchsorted(quantiles + move, thresholds) for move in (shift, 0.0))
    hull = corners(zip(*below, strict=True))
    v = 10_000 - hull[:, 0]
    k = v + 10_000 - hull[:, 1]
    v, k = v[k > 0], k[k > 0]
    setup = {"delta": 1e-6, "n": 20_000}
    theirs = oralib.epsilon_lower_bound(v, k, beta=0.05 / len(hull), **setup).max()
    assert theirs == pytest.approx(reported, abs=2e-6)

    same = {"delta": 1e-6, "side": "included", "coins": "independent"}
    ours = audit_scores(scores, included, grid=k.tolist(), **same)
    if shift == 0:
        assert ours.bound == 0.0 == audit_scores(scores, included, guesses=1000, **same).bound
        return
    # It is the exact bound at these numbers of guesses, and between theirs and the uncorrected one.
    exact = oralib.epsilon_lower_bound(v, k, beta=0.05 / len(k), method="exact", **setup)
    alone = oralib.epsilon_lower_bound(v, k, beta=0.05, method="exact", **setup).max()
    assert ours.bound == exact.max()
    assert reported < ours.bound < alone
    declared = audit_scores(scores, included, grid=(100, 300, 1000, 5000), **same)
    assert declared.bound > ours.bound


# ------------------------------------------------------------------------------------- coverage


def randomized_response(rng, n, epsilon, levels):
    """Coins, and scores by which an ε-DP mechanism tells them: some are equal if levels are few."""
    included = rng.random(n) < 0.5
    told = included ^ (rng.random(n) < 1 - oralib.p(epsilon))
    noise = (rng.integers(levels, size=n) + 0.5) / levels  # it depends on nothing
    return told + noise, included


REPETITIONS, EPSILON = 200, 1.0

#: This many failures or more are seen once in ten thousand times if β = 0.05 is kept.
TOO_MANY = int(stats.binom.isf(1e-4, REPETITIONS, 0.05))


@pytest.mark.parametrize("side", ["both", "included", "farthest"])
@pytest.mark.parametrize(
    ("arguments", "delta"),
    [
        ({"guesses": 60}, 1e-5),
        ({"split": 0.2}, 0.0),
        ({"split": 0.2, "claim": 0.9}, 1e-5),
        ({"grid": (20, 60, 150, 300)}, 1e-5),
    ],
    ids=lambda value: str(value).replace(" ", ""),
)
@pytest.mark.filterwarnings("ignore")  # fair coins are odd once in 1000 times
def test_coverage(arguments, delta, side):
    """The bound exceeds the true ε no more often than in 5 of 100 audits."""
    rng = np.random.default_rng(7)
    failures = pure = 0
    for seed in range(REPETITIONS):
        scores, included = randomized_response(rng, 400, EPSILON, (1, 10**6)[seed % 2])
        scores -= side == "farthest"  # so that the sign is what was told
        how = {"delta": delta, "side": side, "seed": seed, "coins": "independent"}
        audit = audit_scores(scores, included, **how, **arguments)
        failures += audit.bound > EPSILON
        pure += audit.pure_bound > EPSILON
        assert audit.problem or audit.bound <= audit.pure_bound
    assert failures <= pure < TOO_MANY
    if "guesses" in arguments:
        assert pure > 1  # the test sees bounds that are close to the truth


@pytest.mark.filterwarnings("ignore")
def test_coverage_of_the_worst_mechanism():
    """Its guesses are right as often as (ε, δ)-DP allows: the bound fails just as often as it may.

    The bound for δ = 0, of which the report says that it is for ε-DP alone, fails more often.
    """
    n, r, level, delta = 400, 80, 0.5, 2e-3
    every = Counts(np.arange(r + 1), np.full(r + 1, r), n=n, r_fixed=True)
    least = int(np.argmax(valid_lower_bound(every, delta=delta) > level))
    expected = oralib.p_value(least, r, level, delta=delta, n=n, method="exact")
    assert 0.03 < expected <= 0.05
    mechanism = worst_cases.ExtremalResponse(level, delta, least, r)
    rng = np.random.default_rng(3)
    failures = pure = 0
    for _ in range(REPETITIONS):
        signs = rng.choice([-1, 1], size=n)
        how = {"delta": delta, "guesses": r, "coins": "independent"}
        audit = audit_guesses(mechanism.run(signs, rng), signs, **how)
        failures += audit.bound > level
        pure += audit.pure_bound > level
    error = math.sqrt(expected * (1 - expected) * REPETITIONS)
    assert abs(failures - expected * REPETITIONS) < 4 * error
    assert pure > failures


def test_the_uncorrected_maximum_would_fail():
    """What is not offered: the largest of all bounds that are only to look at."""
    rng = np.random.default_rng(7)
    failures = 0
    for seed in range(REPETITIONS):
        scores, included = randomized_response(rng, 400, EPSILON, 10**6)
        right, k = right_guesses(scores, included, "both", seed), spread_numbers(400)
        failures += exact_bounds(right, k, 0.05, 1e-5).max() > EPSILON
    assert failures > TOO_MANY


# ------------------------------------------------------------------------------ guesses and counts


HOW = {"delta": 1e-5, "coins": "independent"}  # of which just half may be heads


def test_guesses_in_either_spelling():
    truth = np.array([1, 0, 1, 1, 0, 0, 1, 0] * 50)
    guessed = np.array([1, 0, 1, np.nan, 0, 1, np.nan, 0] * 50)
    first = audit_guesses(guessed, truth, guesses=300, **HOW)
    assert (first.v, first.r, first.n, first.choice) == (250, 300, 400, "fixed")
    assert first.bound == valid_lower_bound(Counts(250, 300, n=400, r_fixed=True), delta=1e-5)
    signs, said = np.where(truth == 1, 1, -1), np.where(guessed == 0, -1, np.nan_to_num(guessed))
    assert audit_guesses(said, signs, guesses=300, **HOW) == first
    objects = [None if np.isnan(g) else bool(g) for g in guessed]
    assert audit_guesses(objects, truth == 1, guesses=300, **HOW) == first
    missing = audit_guesses(guessed, truth, guesses=320, **HOW)
    assert (missing.v, missing.r) == (250, 320)
    assert missing.notes[-1].startswith("20 of the 320 guesses are missing")
    left = audit_guesses(guessed, truth, **HOW)
    assert (left.choice, left.rule) == ("output", "random r")
    assert left.bound == valid_lower_bound(Counts(250, 300, n=400), delta=1e-5) < first.bound


def test_counts_keep_their_set_up():
    audit = audit_counts(Counts(75, 100, n=1000, r_fixed=True), delta=1e-4)
    assert audit.bound == pytest.approx(0.695126, abs=1e-6)
    assert audit.canaries is None
    watched = audit_counts(Counts(75, 100, n=100, feedback="full"), delta=0.0)
    assert watched.rule == "anytime"
    assert math.isnan(watched.fdp_bound)
    assert "stronger" not in str(watched)
    assert "of canaries that the guesser was done with" in watched.assumptions["bound"]
    spent = audit_counts(Counts(90, 100, n=1000, feedback="full"), delta=1e-2)
    assert (spent.rule, spent.bound) == ("anytime certified", 0)
    told = audit_counts(Counts(90, 100, n=1000, feedback="one-way"), delta=1e-5)
    assert "that the guesser had given up" in told.assumptions["bound"]
    assert "the guesser determined the number" in " ".join(str(told).split())
    assert audit_counts(Counts(0, 0, n=10), delta=0.0).bound == 0
    for wrong, message in (
        (Counts([1, 2], [3, 3], n=5), "counts must be those of one audit"),
        (Counts(1, 3, n=6, coins="balanced", r_in=2), "balanced coins"),
        (Counts(1, 3, n=5, feedback="all others"), "all other elements"),
    ):
        with pytest.raises(ValueError, match=message):
            audit_counts(wrong, delta=0.0)


# -------------------------------------------------------------------------------- what is odd


SCORES, COINS = [0.1, 0.9, 0.3, 0.7], [0, 1, 0, 1]


def test_impossible_audits():
    for scores, included, arguments, message in (
        ([0.1, np.nan, 0.3, 0.7], COINS, {}, "scores must lie in .*nan at index 1"),
        ([0.5] * 4, COINS, {}, "scores must differ"),
        (SCORES, COINS[:3], {}, "scores and included must have one entry"),
        ([SCORES], [COINS], {}, "scores must be a list"),
        (SCORES, [1, 1, 1, 1], {}, "included must have canaries of both kinds.*all included"),
        (SCORES, [-1, -1, -1, -1], {}, "included must have canaries of both kinds.*left out"),
        (SCORES, [0, 1, 2, 1], {}, "included must be True or False.*included=2.0 at index 2"),
        (SCORES, [0, 1, -1, 1], {}, "included must be 1 or -1, since .*at index 0"),
        (SCORES, [0, 1, np.nan, 1], {}, "included must be"),
        (SCORES, COINS, {"guesses": 5}, r"guesses must lie in \[1, 4\]"),
        (SCORES, COINS, {"split": 0.01}, "split must leave a canary"),
        (SCORES, COINS, {"grid": np.array([], dtype=int)}, "grid must hold numbers of guesses"),
        (SCORES, COINS, {"grid": (2, 5)}, "grid must lie in"),
        (SCORES, COINS, {"grid": (2,), "guesses": 2}, "one of guesses, split and grid"),
        (SCORES, COINS, {"coins": "balanced"}, "coins='balanced'"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            audit_scores(scores, included, **{"delta": 0.1, **arguments})
    for guessed, truth, arguments, message in (
        ([np.nan] * 4, COINS, {}, "guessed must hold a guess"),
        ([1, -1, 0, 1], COINS, {}, "guessed must be 1, 0, or nan.*-1.0 at index 1"),
        ([1, 2, 0, 1], [1, -1, 1, -1], {}, "guessed must be 1, -1, or 0 or nan.*2.0 at index 1"),
        ([1, 0, 1], COINS, {}, "guessed and truth must have one entry"),
        ([1, 0, 1, 0], COINS, {"guesses": 3}, "guesses must be at least 4, as this many are given"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            audit_guesses(guessed, truth, **{"delta": 0.1, **arguments})


def test_coins_that_are_not_fair(tmp_path):
    scores = np.arange(1000.0)
    for included in (400, 600):
        with pytest.warns(UserWarning, match=f"{included} of 1000 canaries were included"):
            audit = audit_scores(scores, scores < included, delta=1e-5, guesses=100)
        expected = stats.binomtest(included, 1000).pvalue
        assert audit.coins_p_value == pytest.approx(expected, rel=1e-9)
        assert audit.coins_p_value < UNFAIR
        labels = [line[:10].strip() for line in audit.report(0.1).splitlines()]
        assert labels[:2] == ["claim", "invalid"]
        assert not {"pure", "f-DP", "stronger"} & set(labels)
        assert audit.verdict(0.1) == "invalid"
        assert "shown     nothing" in str(audit)
        path = written(tmp_path / "scores.csv", scores, scores < included)
        status, out, err = run(path, "--delta", 1e-5, "--claim", 0.1, "--guesses", 100)
        assert status == 2
        assert "cannot be judged" in out
        assert err.startswith(f"error: {included} of 1000 canaries were included")
    odd = audit_scores(scores, np.arange(1000) > 460, delta=1e-5, guesses=100)
    assert UNFAIR < odd.coins_p_value < 0.05  # which happens
    assert (odd.problem, odd.notes) == ("", ())


def test_a_bound_of_zero_has_its_reason():
    included = np.arange(400) % 2 == 1
    included[0] = True
    scores = np.where(np.arange(400) < 210, included, ~included) + np.arange(400) / 1000
    luck = audit_scores(scores, included, delta=0.0, guesses=400)
    assert 200 < luck.v < 215
    assert "coins alone do as well" in str(luck)
    scores, included = gaussian(400, shift=3.0)
    for v in (49, 50, 51):
        blind = " ".join(str(audit_counts(Counts(v, 100, n=400), delta=0.0)).split())
        assert ("no more than half the guesses are right" in blind) == (v <= 50)
    away = " ".join(str(audit_scores(scores, included, delta=0.01, guesses=20)).split())
    assert "may reveal n δ = 4 canaries outright" in away


# ----------------------------------------------------------------------------- the command line


def written(path, scores, included):
    """A file of scores."""
    pd.DataFrame({"score": scores, "included": included}).to_csv(path, index=False)
    return path


def run(*arguments):
    """Exit status, output and errors of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(["audit", *map(str, arguments)])
        except SystemExit as end:  # argparse
            status = end.code
    return status, out.getvalue(), err.getvalue()


@pytest.fixture
def scores_csv(tmp_path):
    return written(tmp_path / "scores.csv", *gaussian(1000, shift=2.0))


@pytest.fixture
def guesses_csv(tmp_path):
    path = tmp_path / "guesses.csv"
    path.write_text("truth,guess\n1,\n" + "1,1\n0,0\n1,\n0,1\n" * 50)
    return path


def test_a_report_for_people(scores_csv):
    status, out, err = run(scores_csv, "--delta", 1e-5, "--guesses", 200, "--claim", 1)
    assert (status, err) == (1, "")
    labels = "claim canaries guesses right shown verdict power f-DP assumed"
    for label in labels.split():
        assert f"\n{label} " in f"\n{out}"
    words = " ".join(out.split())
    assert re.search(r"the claim of ε = 1 is refuted: ε is at least \d.* 95% confidence", words)
    assert max(map(len, out.splitlines())) <= 80
    assert run(scores_csv, "--delta", 1e-5, "--guesses", 200, "--claim", 4)[0] == 0
    assert run(scores_csv, "--delta", 1e-5, "--guesses", 200)[0] == 0


def test_the_command_line_is_the_function(scores_csv):
    frame = pd.read_csv(scores_csv)
    for options in (
        {"guesses": 200},
        {"split": 0.3, "seed": 5},
        {"grid": (50, 100, 200), "side": "included"},
        {"beta": 0.01},
    ):
        audit = audit_scores(frame["score"], frame["included"], delta=1e-5, **options)
        words = [str(scores_csv), "--delta", "1e-5", "--json"]
        for name, value in options.items():
            word = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words += [f"--{name}", word]
        status, out, _ = run(*words)
        said = json.loads(out)
        assert status == 0
        assert said["refuted"] is None
        expected = json.loads(json.dumps(audit.as_dict()))
        assert {name: said[name] for name in expected} == expected


def test_guesses_on_the_command_line(guesses_csv):
    said = json.loads(run(guesses_csv, "--delta", 0.0, "--guesses", 150, "--json")[1])
    assert (said["v"], said["r"], said["n"], said["choice"]) == (100, 150, 201, "fixed")
    said = json.loads(run(guesses_csv, "--delta", 0.0, "--json")[1])
    assert (said["v"], said["r"], said["choice"]) == (100, 150, "output")
    guesses_csv.write_text("truth,guess\n1,\n" + "1,1\n-1,-1\n1,0\n-1,\n" * 50)
    said = json.loads(run(guesses_csv, "--delta", 0.0, "--json")[1])
    assert (said["v"], said["r"], said["n"]) == (100, 100, 201)
    status, _, err = run(guesses_csv, "--delta", 0.0, "--split", 0.2)
    assert status == 2
    assert "--split is for scores" in err


def test_a_folder_with_the_report_and_a_figure(scores_csv, tmp_path):
    out = tmp_path / "new" / "audit"
    words = (scores_csv, "--delta", 1e-5, "--grid", "50,100,400", "--claim", 4, "--out", out)
    status, said, _ = run(*words)
    assert status == 0
    assert str(out) in said
    names = ["figure.png", "report.html", "report.json", "report.txt"]
    assert sorted(path.name for path in out.iterdir()) == names
    assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")
    report = json.loads((out / "report.json").read_text())
    assert (report["refuted"], report["grid"]) == (False, [50, 100, 400])
    for wrong, message in (
        (out, "exists; give another folder"),
        (scores_csv, "exists; give another folder"),
        (scores_csv / "x", "File exists"),
    ):
        status, _, err = run(scores_csv, "--delta", 1e-5, "--out", wrong)
        assert (status, message in err) == (2, True)


def test_guesses_have_a_figure_too(guesses_csv, tmp_path):
    for guesses in ((), ("--guesses", 150), ("--beta", 1e-300)):
        out = tmp_path / f"audit {guesses}"
        status, _, err = run(guesses_csv, "--delta", 1e-5, *guesses, "--claim", 0.1, "--out", out)
        assert status == (3 if "--beta" in guesses else 1), err
        assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_audits_need_no_extra(scores_csv, tmp_path):
    """A plain install, without matplotlib and without anything that runs of chapters need."""
    words = ["audit", str(scores_csv), "--delta", "1e-5", "--out", str(tmp_path / "out")]
    hidden = ("papermill", "nbformat", "ipykernel", "dask", "distributed", "yaml", "pyarrow")
    code = (
        f"import sys\nsys.modules.update(dict.fromkeys({(*hidden, 'matplotlib')}))\n"
        f"from oralib.__main__ import main\nsys.exit(main({words}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "The report has no picture: matplotlib is not installed.\n"
    names = ["report.html", "report.json", "report.txt"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    assert "<img" not in (tmp_path / "out" / "report.html").read_text()


def test_a_clone_that_is_not_installed_has_a_version():
    code = (
        "from importlib import metadata\n"
        "def missing(name): raise metadata.PackageNotFoundError(name)\n"
        "metadata.version = missing\n"
        "import oralib; print(oralib.__version__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("unknown\n", "")


def test_impossible_options_are_named(scores_csv, tmp_path):
    for option, word, message in (
        ("--claim", "inf", "claim must lie in [0, inf), got claim=inf"),
        ("--guesses", "1001", "guesses must lie in [1, 1000]"),
        ("--seed", "-1", "seed must be at least 0"),
        ("--grid", "50,,100", "--grid: must be whole numbers with commas between them"),
        ("--grid", "", "--grid: must be whole numbers with commas between them"),
        ("--delta", "x", "--delta"),
    ):
        status, out, err = run(scores_csv, "--delta", 1e-5, option, word)
        assert (status, out) == (2, "")
        assert message in err
    assert run(scores_csv)[0] == 2
    assert run(scores_csv, "--delta", 1e-5, "--guesses", 1, "--split", 0.5)[0] == 2
    for path, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "missing.csv", "cannot be read: No such file"),
    ):
        status, _, err = run(path, "--delta", 1e-5)
        assert (status, err.count("\n")) == (2, 1)
        assert message in err


def test_neither_confidence_nor_accuracy_is_rounded_to_certainty():
    counts = Counts(50, 50, n=50, r_fixed=True)
    for beta, said in ((0.05, "95% confidence"), (1e-9, "confidence 1 - 1e-9")):
        text = " ".join(audit_counts(counts, delta=0.0, beta=beta).report(0.1).split())
        assert text.count(said) == 2
    for v, words in ((199_999, "99.99%"), (200_000, "100%"), (0, "0%"), (150_002, "75%")):
        counts = Counts(v, 200_000, n=200_000, r_fixed=True)
        assert f"{v:,} of 200,000, or {words}" in str(audit_counts(counts, delta=0.0))


def test_columns_of_pandas_in_another_order_are_refused():
    """As after sort_values: who were included would be matched with scores of others."""
    included = pd.Series([1, 0, 1, 1, 0, 0] * 20, index=[f"canary {i}" for i in range(120)])
    included.iloc[1] = 1
    scores = included + np.arange(120) / 1000
    audit = audit_scores(scores, included, delta=0.0, guesses=50)
    assert audit.v == 50
    assert audit_scores(scores.to_numpy(), included, delta=0.0, guesses=50).v == 50
    with pytest.raises(ValueError, match=r"scores and included must have the same index, got Ind"):
        audit_scores(scores.sort_values(), included, delta=0.0, guesses=50)
    with pytest.raises(ValueError, match="guessed and truth must have the same index"):
        audit_guesses(included.sort_values(), included, delta=0.0)


def test_truth_values_are_not_signs():
    """0 is no guess where truth is 1 or -1: half of the guesses would be lost in silence."""
    truth, nan = np.array([1, -1] * 100), float("nan")
    for guessed in (
        *(truth > 0, (truth > 0).tolist(), (truth > 0).astype(object)),
        [True, False, nan, nan] * 50,  # in an array they would become 1, 0 and nan
    ):
        with pytest.raises(ValueError, match=r"must be 1, -1, or 0 or nan .* True or False"):
            audit_guesses(guessed, truth, delta=0.0)
        assert audit_guesses(guessed, truth > 0, **HOW).r in (100, 200)

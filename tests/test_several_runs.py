"""What one run can show, and several: a mixture that limits all bounds, powers of β, a ceiling."""

from math import exp, inf

import numpy as np
import pytest
from scipy import stats

from orabook.studies import confidence, isolated_law, isolated_limit
from orabook.studies.ceiling import best_guesses
from orabook.studies.ceiling_of_means import ceiling_of_means, largest_mean
from orabook.studies.several_runs import (
    largest_capped_mean,
    limits_of_runs,
    profile_of,
    runs_or_pooled,
)
from oralib import (
    Counts,
    DpSgd,
    lower_bound_of_runs,
    p,
    p_value_of_runs,
    valid_lower_bound,
    valid_p_value,
)
from oralib.bounds import Exact

SIGMA = 2.422402
RUNS = Counts([310, 305, 300], 350, n=100_000, r_fixed=True)


def isolated(n):
    return DpSgd(n, n, sigma=SIGMA)


# ------------------------------------------------------------------------------ the mixture M′

# M′ is the training M in a share w of its runs, and otherwise prints one text, whatever the data.
# With w = δ / D(ε) it is (ε, δ)-DP. Its counts are those of M, or of fair coins.


def share(epsilon, delta):
    """The largest w for which M′ is (ε, δ)-DP."""
    leaks = []
    for side in ("in", "out"):
        right, wrong = confidence(isolated(9), side=side).at(epsilon)
        leaks.append(2 * float(right - np.exp(epsilon) * wrong))
    return min(1.0, delta / max(leaks))


def failures(bounds, law, coin, epsilon, delta):
    """How often the bound of M′ exceeds ε, with the laws of v of M and of coins."""
    w = share(epsilon, delta)
    return w * law[bounds > epsilon].sum() + (1 - w) * coin[bounds > epsilon].sum()


LARGE = 10**8


@pytest.mark.parametrize("side", ["both", "in", "out"])
def test_bounds_of_many_canaries_hold_for_mixtures(side):
    """Near the limit of nearly every run, where the largest part of β is used."""
    k, _ = best_guesses(isolated(LARGE), "steps", Exact(), 0.05, 1e-5, side)
    law = isolated_law(isolated(LARGE), k, side=side)
    coin = stats.binom.pmf(law.v, k, 0.5)
    counts = Counts(law.v, law.r, n=LARGE, r_fixed=True, side=side)
    bounds = valid_lower_bound(counts, delta=1e-5)
    limit = isolated_limit(isolated(9), delta=1e-5, side=side)
    grid = limit + np.linspace(-0.1, 0.1, 9)
    found = [failures(bounds, law.probability, coin, epsilon, 1e-5) for epsilon in grid]
    assert max(found) <= 0.05
    assert side != "in" or max(found) > 0.03  # nearly all of β is used


def test_bounds_without_delta_fail_for_the_mixture():
    """So these tests can find what is not valid for every mechanism."""
    law = isolated_law(isolated(LARGE), 400)
    bounds = valid_lower_bound(Counts(law.v, law.r, n=LARGE, r_fixed=True))
    coin = stats.binom.pmf(law.v, 400, 0.5)
    assert failures(bounds, law.probability, coin, 1.6, 1e-5) > 0.15


SET_UPS = [
    {"feedback": feedback, "r_fixed": r_fixed, "side": side}
    for feedback in ("none", "one-way", "list", "full")
    for r_fixed in (True, False)
    for side in ("both", "in")
]


@pytest.mark.parametrize("set_up", SET_UPS, ids=lambda set_up: "-".join(map(str, set_up.values())))
def test_no_rule_fails_for_the_mixture(set_up):
    n, k, delta = 2000, 150, 1e-3
    law = isolated_law(isolated(n), k, side=set_up["side"])
    v = np.arange(k + 1)
    probability = np.zeros(k + 1)
    probability[law.v] = law.probability
    counts = Counts(v, np.full(k + 1, k), n=n, **set_up)
    bounds = valid_lower_bound(counts, delta=delta, expected=Counts(120, 150, n=n))
    assert bounds.max() > 0.5
    coin = stats.binom.pmf(v, k, 0.5)
    for epsilon in (0.1, 0.3, 0.5, 0.8):
        assert failures(bounds, probability, coin, epsilon, delta) <= 0.05


def test_the_mixture_with_balanced_coins():
    """Randomized response of 60 elements, of which a few are guessed as it says."""
    n, k_in, k_out, level, delta = 60, 8, 6, 2.5, 0.01
    half, q = n // 2, p(level)
    law, k = np.zeros(k_in + k_out + 1), k_in + k_out
    for a in range(half + 1):  # of those that are in, a are printed so; of the others b
        for b in range(half + 1):
            chance = stats.binom.pmf(a, half, q) * stats.binom.pmf(b, half, 1 - q)
            if chance > 1e-9 and k_in <= a + b <= n - k_out:
                right_in = stats.hypergeom.pmf(range(k_in + 1), a + b, a, k_in)
                right_out = stats.hypergeom.pmf(range(k_out + 1), n - a - b, half - b, k_out)
                law += chance * np.convolve(right_in, right_out)
    # Some elements that were named before: as many of the others are out as of these are in.
    coin = np.zeros(k + 1)
    for a in range(k_in + 1):
        out = stats.hypergeom.pmf(range(k_out + 1), n - k_in, half - (k_in - a), k_out)
        coin[a : a + k_out + 1] += stats.hypergeom.pmf(a, n, half, k_in) * out
    assert law.sum() == pytest.approx(1, abs=1e-5)
    assert coin.sum() == pytest.approx(1)
    counts = Counts(range(k + 1), [k] * (k + 1), n, r_fixed=True, coins="balanced", r_in=k_in)
    for beta in (0.05, 0.2):
        bounds = valid_lower_bound(counts, delta=delta, beta=beta)
        for epsilon in (0.0, 0.2, 0.5, 1.0):
            w = min(1.0, delta / (q - exp(epsilon) * (1 - q)))
            fails = bounds > epsilon
            assert w * law[fails].sum() + (1 - w) * coin[fails].sum() <= beta


# --------------------------------------------------------------------------------- several runs


def test_the_least_of_several_bounds():
    each = valid_lower_bound(RUNS, delta=1e-5, beta=0.05 ** (1 / 3))
    assert each == pytest.approx([1.969038, 1.839384, 1.721082], abs=1e-6)
    assert lower_bound_of_runs(RUNS, delta=1e-5) == each.min()
    assert p_value_of_runs(RUNS, 1.7, delta=1e-5) == pytest.approx(0.031972, abs=1e-6)
    # Where the bound is ε the p-value is β.
    assert p_value_of_runs(RUNS, each.min(), delta=1e-5) == pytest.approx(0.05, rel=1e-6)
    parts = [Counts(v, 350, n=100_000, r_fixed=True) for v in (310, 305, 300)]
    assert lower_bound_of_runs(parts, delta=1e-5) == each.min()
    assert lower_bound_of_runs(parts[:1], delta=1e-5) == valid_lower_bound(parts[0], delta=1e-5)
    assert p_value_of_runs(parts[0], 1.0) == valid_p_value(parts[0], 1.0)


def test_runs_that_have_no_common_bound():
    stopped = Counts([70, 80], 100, n=1000, feedback="full")
    assert lower_bound_of_runs(stopped, delta=1e-5) > 0.3
    three = [stopped, Counts(75, 100, n=1000, r_fixed=True)]
    for function in (lower_bound_of_runs, lambda runs, **how: p_value_of_runs(runs, 1.0, **how)):
        for delta in (0.0, 1e-5):
            with pytest.raises(ValueError, match=r"at most 1/e .* got m=3 runs and beta=0.05"):
                function(three, delta=delta)
        with pytest.raises(ValueError, match="at least one run, got none"):
            function([])
        with pytest.raises(TypeError, match="runs must be like"):
            function([75, 100])
        with pytest.raises(TypeError, match="runs must be Counts or a list of Counts, got runs=75"):
            function(75)
    fixed = [Counts(75, 100, n=1000, r_fixed=True, feedback="full")] * 12
    assert lower_bound_of_runs(fixed, delta=1e-5) > 0.8


def test_limits_of_nearly_every_run():
    table = limits_of_runs(isolated(9), (1, 2, 3, 4, 10, inf))
    due = [1.425919, 1.628034, 1.691803, 1.723099, 1.778505, 1.814815]
    assert table["limit"].tolist() == pytest.approx(due, abs=2e-6)
    # Many canaries reach it, and both sides end before.
    bound = best_guesses(isolated(10**9), "steps", Exact(), 0.05, 1e-5, "in")[1]
    assert bound == pytest.approx(due[0], abs=5e-3)
    assert isolated_limit(isolated(9), delta=1e-5) == pytest.approx(1.353, abs=1e-3)


def test_the_largest_mean_up_to_the_exact_epsilon():
    """By one that is summed on a fine grid; and the bound of many canaries keeps it."""
    found = largest_capped_mean(isolated(9))
    assert found == pytest.approx(1.5536, abs=1e-4)
    grid = np.arange(20_000) / 1e4
    shares = np.minimum(1.0, 0.05 * profile_of(isolated(9), grid) / 1e-5)
    exact = limits_of_runs(isolated(9), [inf])["limit"].item()
    assert found == pytest.approx(shares[grid < exact].sum() / 1e4, abs=1e-3)
    assert profile_of(isolated(9), 1.3) == pytest.approx(4.759028e-4, rel=1e-5)
    assert largest_capped_mean(isolated(9), delta=0.5) == 0.0


def test_best_bounds_of_one_side():
    """They pay from about 300,000 canaries on."""
    for n, both, one in ((10**5, 1.168, 1.149), (8 * 10**5, 1.339, 1.367), (10**6, 1.348, 1.383)):
        for side, due in (("both", both), ("in", one)):
            found = best_guesses(isolated(n), "steps", Exact(), 0.05, 1e-5, side)[1]
            assert found == pytest.approx(due, abs=2e-3)


def test_several_runs_or_one_of_all():
    for n, side, least, pooled in (
        *((100_000, "both", 1.227, 1.239), (800_000, "both", 1.430, 1.357)),
        (800_000, "in", 1.442, 1.410),
    ):
        found = runs_or_pooled(n, 2, sigma=SIGMA, side=side)
        assert found["least"] == pytest.approx(least, abs=2e-3)
        assert found["pooled"] == pytest.approx(pooled, abs=4e-3)


# ---------------------------------------------------------------------------- a ceiling of means


def test_the_ceiling_of_mean_bounds():
    dpsgd = isolated(8000)
    found = ceiling_of_means(dpsgd, 200, delta=1e-5)
    assert found == pytest.approx(0.85797, abs=1e-5)
    # What isolated canaries reach is below; and counts together only raise it.
    assert best_guesses(dpsgd, "steps", Exact(), 0.05, 1e-5)[1] < found
    assert found <= ceiling_of_means(dpsgd, 200, delta=1e-5, lowest=120) < found + 1e-3


def test_ceilings_of_few_guesses():
    """Of one guess by hand; of two by all laws on a fine grid."""
    growth, leak = np.array([1.0, 2.0]), np.array([0.3, 0.1])
    found = largest_mean(np.array([0.0, 1.0, 0.0]), np.arange(2), 1, growth, leak)
    assert found == pytest.approx(min((growth + leak) / (1 + growth)))
    worth = np.array([0.0, 0.4, 1.0])
    steps = np.arange(401) / 400
    one, two = np.meshgrid(steps, steps, indexing="ij")
    none = 1 - one - two
    allowed = none >= 0
    for e, most in zip(growth, leak, strict=True):
        excess = np.maximum(one - 2 * e * none, 0) + np.maximum(2 * two - e * one, 0)
        allowed &= excess <= most
    best = (worth[1] * one + worth[2] * two)[allowed].max()
    found = largest_mean(np.append(worth, 0.0), np.arange(3), 2, growth, leak)
    assert best <= found + 1e-9 < best + 0.01

"""One p-value for every audit: linear programs over all mechanisms, and numbers known otherwise."""

from itertools import product
from math import exp

import numpy as np
import pytest
from scipy import optimize, sparse
from test_any_order import naive, strategies
from test_balanced import worst as worst_of_balanced
from test_full_feedback import edges

from oralib import Counts, Training, valid_lower_bound, valid_p_value
from oralib.bounds import Anytime
from oralib.bounds.random_r import planned_b
from oralib.bounds.valid import p_values
from oralib.dpsgd.claim import Profile

BETA = 0.3
#: ε, D_in and D_out: both directions alike, and one far larger than the other.
HYPOTHESES = [(0.0, 0.05, 0.05), (0.0, 0.12, 0.01), (0.7, 0.01, 0.1), (0.7, 0.0, 0.0)]


def all_counts(n, fixed, **set_up):
    """Counts that may come out, one by one, with r = ``fixed`` or any r."""
    for r in range(n + 1) if fixed is None else [fixed]:
        for v in range(r + 1):
            yield Counts(v, r, n=n, r_fixed=fixed is not None, **set_up)


def p_value_of(counts, hypothesis):
    pilot = Counts(2, 2, n=3)
    return float(p_values(counts, *hypothesis, beta=BETA, expected=pilot)[0])


def by_level(n, fixed, hypothesis, **set_up):
    """For each attained p-value below 1, which counts (v, r) have no larger one."""
    found = {(c.v, c.r): p_value_of(c, hypothesis) for c in all_counts(n, fixed, **set_up)}
    for level in sorted({p for p in found.values() if p < 1}):
        yield level, {counts for counts, p in found.items() if p <= level}


# ------------------------------------------------------------------------------- without feedback


def most_often(n, wins, hypothesis, fixed, side):
    """max P[(V, R) wins] over all mechanisms that print guesses and satisfy the hypothesis.

    The mechanism is a table P[guesses | coins]; its excesses over each neighbour come after it.
    """
    epsilon, d_in, d_out = hypothesis
    said = {"both": (-1, 0, 1), "in": (0, 1), "out": (-1, 0)}[side]
    printed = [g for g in product(said, repeat=n) if fixed is None or np.abs(g).sum() == fixed]
    coins = list(product((-1, 1), repeat=n))
    place = {x: j for j, x in enumerate(product(printed, coins))}
    size = len(place)
    # Only where the guess at i is right can an excess help to win.
    flips = [(g, s, i) for g, s in place for i in range(n)]
    rows, columns, values = [], [], []
    budgets = sparse.lil_array((n * len(coins), len(flips)))
    for row, (g, s, i) in enumerate(flips):
        other = (*s[:i], -s[i], *s[i + 1 :])
        rows += [row, row]
        columns += [place[g, s], place[g, other]]
        values += [1.0, -exp(epsilon)]
        budgets[coins.index(s) * n + i, row] = 1
    excess = sparse.csr_array((values, (rows, columns)), shape=(len(flips), size))
    limits = [d_in if s[i] == 1 else d_out for s in coins for i in range(n)]
    right = [int(sum(a == b for a, b in zip(g, s, strict=True))) for g, s in place]
    taken = [int(np.abs(g).sum()) for g, _ in place]
    worth = [(v, r) in wins for v, r in zip(right, taken, strict=True)]
    laws = sparse.csr_array(
        (np.ones(size), ([coins.index(s) for _, s in place], range(size))),
        shape=(len(coins), size),
    )
    program = optimize.linprog(
        -np.append(worth, np.zeros(len(flips))) / len(coins),
        A_ub=sparse.block_array(
            [[excess, -sparse.eye_array(len(flips))], [None, budgets]], format="csr"
        ),
        b_ub=np.append(np.zeros(len(flips)), limits),
        A_eq=sparse.hstack([laws, sparse.csr_array((len(coins), len(flips)))]),
        b_eq=np.ones(len(coins)),
    )
    assert program.success
    return -program.fun


@pytest.mark.parametrize("side", ["both", "in", "out"])
@pytest.mark.parametrize("fixed", [2, 3, None])
def test_no_mechanism_is_accused_more_often(fixed, side):
    """At every attained level; and for a fixed number some mechanism comes near."""
    nearest = 0.0
    for hypothesis in HYPOTHESES:
        for level, wins in by_level(3, fixed, hypothesis, side=side):
            worst = most_often(3, wins, hypothesis, fixed, side)
            assert worst <= level + 1e-8
            nearest = max(nearest, worst / level)
    assert nearest > 0.95


def test_a_side_decided_by_output_is_refused():
    """If all guesses agree but either way, half of δ is not enough."""
    hypothesis = (0.0, 0.05, 0.05)
    p = p_value_of(Counts(1, 1, n=1, r_fixed=True, side="in"), hypothesis)
    assert p == pytest.approx(0.5125)
    assert most_often(1, {(1, 1)}, hypothesis, 1, "in") < p
    assert most_often(1, {(1, 1)}, hypothesis, 1, "both") == pytest.approx(0.525)


# ---------------------------------------------------------------------------------- full feedback


def worst_leak(n, line, growth, side):
    """The largest c for which a guesser wins with f + c · (what right guesses may leak), exactly.

    As ``best_constants`` of test_any_order, for guesses of one side, whose leaks are those of coins
    on that side. By duality it is the reciprocal of the value of a flow.
    """
    sets = strategies(n, line) if side == "both" else one_sided(n, line, side)
    f, _ = naive(line, growth)
    start, end = edges(n)
    coin = np.repeat(np.arange(n), 2**n)
    is_in = start >> coin & 1 == 1
    kept = {"both": is_in | ~is_in, "in": is_in, "out": ~is_in}[side]
    start, end, row = start[kept], end[kept], np.arange(kept.sum())
    flow = sparse.csr_array(
        (np.repeat([-1.0, growth], row.size), (np.r_[start, end], np.tile(row, 2))),
        shape=(2**n, row.size),
    )
    worst = 0.0
    for chosen in sets:
        due = np.array([float(chosen >> s & 1) - f for s in range(2**n)])[:, None]
        program = optimize.linprog(
            np.append(np.zeros(row.size), -1.0),
            sparse.hstack([flow, sparse.csr_array(due)]),
            np.zeros(2**n),
            bounds=np.c_[np.zeros(row.size + 1), np.append(np.ones(row.size), np.inf)],
        )
        assert program.success
        worst = max(worst, 1 / program.x[-1])
    return f, worst


def one_sided(n, line, side):
    """As ``strategies``: the winning sets of all who may skip, and guess on one side only."""
    points = [[s for s in range(2**n) if (s >> i & 1) == b] for i in range(n) for b in (0, 1)]
    halves = np.array([sum(1 << s for s in half) for half in points], dtype=object).reshape(n, 2)
    said = int(side == "in")

    def won(unseen, r, v):
        if v >= line[r]:
            return {2**2**n - 1}
        if r + 1 == len(line) or not unseen:
            return {0}
        found = set()
        for i in unseen:
            rest = tuple(x for x in unseen if x != i)
            same, other = halves[i][said], halves[i][1 - said]
            right, wrong = won(rest, r + 1, v + 1), won(rest, r + 1, v)
            found |= {a & same | b & other for a, b in product(right, wrong)}
            skipped = won(rest, r, v)
            found |= {a & same | b & other for a, b in product(skipped, skipped)}
        return found

    return won(tuple(range(n)), 0, 0) - {0}


@pytest.mark.parametrize("side", ["both", "in", "out"])
@pytest.mark.parametrize(
    ("n", "fixed"),
    [(2, 2), (2, None), (3, None), *(pytest.param(3, k, marks=pytest.mark.slow) for k in (2, 3))],
)
def test_no_guesser_with_feedback_is_accused_more_often(n, fixed, side):
    """Every guesser of up to three elements in any order, at every attained level."""
    for hypothesis in HYPOTHESES[:3] if n == 2 else HYPOTHESES[1:2]:
        epsilon, d_in, d_out = hypothesis
        together = n * {"both": d_in + d_out, "in": d_in, "out": d_out}[side] / 2
        for level, wins in by_level(n, fixed, hypothesis, side=side, feedback="full"):
            if fixed is None:
                least = [
                    min((v for v in range(r + 1) if (v, r) in wins), default=r + 1)
                    for r in range(n + 1)
                ]
            else:
                least = [min(v for v, _ in wins)] * (fixed + 1)
            if least[0] > 0:
                f, c = worst_leak(n, tuple(least), exp(epsilon), side)
                assert f + c * together <= level + 1e-8


def test_the_p_value_of_a_stop_at_will():
    """Without δ the level itself, which is β where the bound is ε."""
    for v, r in ((40, 50), (12, 12), (75, 100)):
        bound = Anytime().lower_bound(v, r, beta=0.05)
        counts = Counts(v, r, n=200, feedback="full")
        assert valid_p_value(counts, bound) == pytest.approx(0.05, rel=1e-6)
    # With δ it is about β where the certified bound is ε; it does not know that bound's margins.
    for v, r, delta in ((160, 210, 1e-5), (73, 100, 9e-5), (40, 40, 3e-4)):
        counts = Counts(v, r, n=1000, feedback="full")
        bound = valid_lower_bound(counts, delta=delta)
        assert 0.5 * 0.05 < valid_p_value(counts, bound, delta=delta) <= 0.05


# --------------------------------------------------------------------------------- balanced coins


def balanced_p_value(v, r, n, epsilon, deltas, r_in):
    counts = Counts(v, r, n=n, r_fixed=True, coins="balanced", r_in=r_in)
    return p_values(counts, epsilon, *deltas, beta=BETA)[0]


def test_balanced_coins_have_two_directions():
    """Linear programs over all mechanisms; the mean of the two numbers would be false."""
    for n, r_in, r in ((4, 2, 3), (4, 3, 3), (4, 0, 2), (6, 2, 4)):
        for epsilon, deltas in product((0.0, 0.5), ((0.1, 0.0), (0.0, 0.1), (0.05, 0.02))):
            for v in range(1, r + 1):
                limit = balanced_p_value(v, r, n, epsilon, deltas, r_in)
                assert worst_of_balanced(v, r, n, epsilon, deltas, r_in) <= limit + 1e-7
    # It prints 100 of the 5,000 that are in with probability 1/20: an element with 1/1000.
    n, truth = 10_000, 0.05
    assert truth * 100 / 5000 == pytest.approx(0.001)
    one_way = balanced_p_value(100, 100, n, 1.0, (0.001, 0.0), 100)
    both_ways = balanced_p_value(100, 100, n, 1.0, (0.0005, 0.0005), 100)
    assert one_way == pytest.approx(0.0515, abs=1e-4)
    assert one_way > truth > both_ways == pytest.approx(0.0257, abs=1e-4)


# --------------------------------------------------------------------------------- known numbers


def fixed(v, r, n, **set_up):
    return Counts(v, r, n=n, r_fixed=True, **set_up)


def test_known_p_values():
    one = {"side": "in"}
    due = [(fixed(73, 100, 64_000, **one), 0.5, 0.025625)]
    due += [(fixed(270, 350, 100_000, **one), 0.95, 0.026026)]
    for counts, epsilon, p in due:
        assert valid_p_value(counts, epsilon, delta=1e-5) == pytest.approx(p, abs=1e-6)
    for r_in, p in ((40, 0.053247), (80, 0.027656)):
        balanced = fixed(60, 80, 500, coins="balanced", r_in=r_in)
        found = p_values(balanced, 0.47, 2e-4, 5e-5, beta=0.05)[0]
        assert found == pytest.approx(p, abs=1e-6)
    stated = Profile.of(Training(2.422402, 0.1, 100), [1.2])
    for v, p in ((104, 0.048893), (103, 0.056992)):
        found = p_values(fixed(v, 120, 4000), 1.2, stated.d_in, stated.d_out, beta=0.05)[0]
        assert found == pytest.approx(p, abs=1e-5)


def test_known_bounds_of_one_side():
    """Both numbers are those of the integral over all mechanisms; ``out`` is as large as ``in``."""
    for v, r, n, bound in (
        *((73, 100, 64_000, 0.583049), (203, 268, 20_000, 0.895418)),
        (270, 350, 100_000, 0.992502),
    ):
        for side in ("in", "out"):
            counts = fixed(v, r, n, side=side)
            assert valid_lower_bound(counts, delta=1e-5) == pytest.approx(bound, abs=1e-6)
    for v, r, budget, both, one in (
        *((160, 210, 0.1, 0.882406, 0.885414), (270, 350, 1.0, 0.962440, 0.982888)),
    ):
        for side, bound in (("both", both), ("in", one)):
            counts = fixed(v, r, 100_000, side=side, feedback="full")
            found = valid_lower_bound(counts, delta=budget / 100_000)
            assert found == pytest.approx(bound, abs=1e-6)


@pytest.mark.parametrize("feedback", ["none", "full"])
@pytest.mark.parametrize("r_fixed", [True, False])
def test_one_side_is_half_of_delta(feedback, r_fixed):
    """In every rule for independent coins."""
    set_up = {"n": 2000, "feedback": feedback, "r_fixed": r_fixed}
    one, both = Counts(160, 200, side="in", **set_up), Counts(160, 200, **set_up)
    bound = valid_lower_bound(one, delta=1e-3)
    assert bound == valid_lower_bound(both, delta=5e-4) > valid_lower_bound(both, delta=1e-3)
    p = valid_p_value(one, 0.7, delta=1e-3)
    assert p == valid_p_value(both, 0.7, delta=5e-4) <= valid_p_value(both, 0.7, delta=1e-3)


def test_p_values_and_bounds_agree():
    """Where the bound is ε the p-value is β, in each rule without certificates."""
    audits = [fixed(75, 100, 1000), Counts(75, 100, n=1000, side="out")]
    audits += [fixed(75, 100, 1000, feedback="full"), Counts(75, 100, n=1000, feedback="one-way")]
    audits += [fixed(75, 100, 1000, coins="balanced", r_in=30)]
    for counts, delta in product(audits, (0.0, 1e-4)):
        bound = valid_lower_bound(counts, delta=delta)
        assert valid_p_value(counts, bound, delta=delta) == pytest.approx(0.05, rel=1e-6)
    trials = Counts([70, 75], [100, 90], n=1000)
    assert valid_p_value(trials, 0.5, delta=1e-4).shape == (2,)


def test_the_plan_decides_what_is_taken_away():
    """Another hypothesis at the same point is tested with the b* of the plan, or its discounts."""
    counts, pilot = Counts(104, 120, n=4000), Counts(100, 118, n=4000)
    how = {"beta": 0.05, "expected": pilot}
    own = p_values(counts, 1.2, 1e-4, 1e-4, **how)[0]
    planned = p_values(counts, 1.2, 1e-4, 1e-4, planned=0.4, **how)[0]
    assert own == p_values(counts, 1.2, 1e-4, 1e-4, planned=4000 * 1e-4, **how)[0]
    assert p_values(counts, 1.2, 1e-4, 1e-4, planned=0.01, **how)[0] != planned
    # And it is the same for all levels: the printed number once depended on β through b*.
    small = Counts(9, 12, n=12)
    p = valid_p_value(small, 0.0, delta=0.025, beta=0.05)
    assert p != valid_p_value(small, 0.0, delta=0.025, beta=0.5)


def test_counts_of_a_pilot_are_a_good_plan():
    """Better than their number alone, in the mean over designs; and another n is scaled."""
    rng, means = np.random.default_rng(1), {"default": [], "number": [], "counts": []}
    for budget, r, accuracy in product((1e-3, 0.03, 0.3), (60, 400), (0.75, 0.9)):
        made = rng.poisson(r, 101)
        right = rng.binomial(made, accuracy)
        pilot = Counts(right[0], made[0], n=1000)
        audits = Counts(right[1:], made[1:], n=1000)
        plans = {"default": None, "number": int(pilot.r), "counts": pilot}
        for name, expected in plans.items():
            bounds = valid_lower_bound(audits, delta=budget / 1000, expected=expected)
            means[name].append(bounds.mean())
    assert np.mean(means["counts"]) > np.mean(means["number"]) > np.mean(means["default"])
    half = Counts(pilot.v // 2, pilot.r // 2, n=500)
    found = [valid_lower_bound(audits, delta=1e-5, expected=x).mean() for x in (half, pilot)]
    assert found[0] == pytest.approx(found[1], abs=0.02)
    nothing = Counts(0, 0, n=10)
    assert valid_lower_bound(audits, delta=1e-5, expected=nothing).mean() > 0
    assert 0 < planned_b(1000, 0.3, 0.05, Counts(300, 400, n=1000)) < 400


def test_sides_and_pilots_that_cannot_be():
    for make, message in (
        (lambda: Counts(1, 2, n=4, side="up"), "side must be one of both, in, out"),
        (
            lambda: Counts(1, 2, n=4, side="in", coins="balanced", r_in=2, r_fixed=True),
            "side is for independent coins; give r_in instead",
        ),
        (lambda: valid_p_value(75, 1.0), "counts must be like"),
        (lambda: valid_p_value(Counts(1, 2, n=4), -1.0), "epsilon must lie in"),
        (lambda: valid_p_value(Counts(1, 2, n=4), 1.0, delta=0.1, expected=9), "expected must"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            make()

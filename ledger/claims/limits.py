"""The book's own claims: the limit of one run, one side, the stated training, ceilings of means."""

from collections.abc import Sequence
from functools import cache, partial
from itertools import combinations, product
from math import comb, e, exp
from typing import Any

import numpy as np
import scipy
from scipy import optimize, stats

from ledger.cases.linear_programs import largest_worth
from ledger.cases.small_channels import random_table
from ledger.machine.comparisons import at_most, equal
from ledger.machine.entries import explained, mutants, ours, remark
from ledger.machine.findings import Cases, Finding, all_of, each
from ledger.machine.mutants import WEAKER, replaced, varied
from orabook.studies import isolated_law, largest_capped_mean, limits_of_runs, profile_of
from orabook.studies.ceiling_of_means import largest_mean
from oralib import Channel, Counts, DpSgd, lower_bound_of_runs, p, p_value, valid_lower_bound
from oralib.bounds import Exact
from oralib.bounds.valid import p_values

__all__ = ["ceiling_of_means", "limit_of_one_run", "one_side", "stated_training"]

#: The paper's main setting with a coordinate for each of ten million canaries.
_ISOLATED = DpSgd(10**7, 10**7, sigma=2.422402)

#: The number of guesses "in" for which the mean bound of these canaries is largest.
_BEST_GUESSES = 9629


# ---------------------------------------------------------------------------- the limit of one run


@cache
def _of_isolated_canaries() -> tuple[Any, Any]:
    """The law of the bound of one run with 10 million canaries, in which all guesses say "in"."""
    law = isolated_law(_ISOLATED, _BEST_GUESSES, side="in")
    counts = Counts(law.v, law.r, n=_ISOLATED.n, r_fixed=True, side="in")
    return law.probability, valid_lower_bound(counts, delta=1e-5)


@cache
def _mixed(weight: float) -> list[tuple[str, float, float]]:
    """Triples: a name, the δ of a mixture of a table and a fixed text, and the δ it should have."""
    cases = []
    for seed, (epsilon, delta) in enumerate(product((0.0, 0.4, 1.0), (0.01, 0.05))):
        table = random_table(2, 4, seed, least=0.01)
        share = weight * min(1.0, delta / table.delta(epsilon))
        text = np.full((1, table.table.shape[1]), 1 - share)
        mixture = Channel(np.vstack([share * table.table, text]))
        cases.append((f"a mixture at ε = {epsilon}", mixture.delta(epsilon), delta))
    return cases


@ours("ours:limit-of-one-run", "This book")
@explained("F-theorems#thm-much-limit")
@mutants(
    varied("share", up=WEAKER),
    varied("power", up=WEAKER),
    replaced("counted", in_full="in full"),
)
@remark(
    "The bound that is counted in full ignores the data and reports a million with probability β. "
    "It is valid, and the theorem holds for it, but its mean is large."
)
def limit_of_one_run(
    weight: float = 1.0,
    share: float = 1.0,
    power: float = 1.0,
    counted: str = "up to the exact ε",
) -> Finding:
    """A mechanism that runs a training with probability δ/D(ε), and otherwise prints a fixed text,
    is (ε, δ)-DP. So a bound of m runs that is valid for all such mechanisms exceeds ε with
    probability at most β max(1, D(ε)/δ)^m on the training itself. For one run the mean bound,
    capped at the exact ε, is at most the integral of this probability over ε.
    """

    def cases() -> Cases:
        probability, bounds = _of_isolated_canaries()
        for epsilon in np.linspace(1.3, 1.6, 13):
            limit = share * 0.05 * max(1.0, float(profile_of(_ISOLATED, epsilon)) / 1e-5) ** power
            share_above = float(probability[bounds > epsilon].sum())
            yield f"isolated canaries, ε = {epsilon:g}", share_above, limit
        # All coins are published, so D is 1 at every ε, and all 60 guesses are right. These counts
        # are certain, so the chance is 0 or 1; β is set so that the bound is just 0.3.
        delta = 0.1
        n = 60
        p_value_of_run = float(p_value(n, n, 0.3, delta=delta, n=n, rule=Exact()))
        for m in (1, 2, 3):
            runs = Counts([n] * m, n, n=n, r_fixed=True)
            beta = p_value_of_run**m * (1 + 1e-9)
            bound = lower_bound_of_runs(runs, delta=delta, beta=beta)
            chance_to_exceed = float(bound > 0.299)
            limit = share * beta / delta ** (m * power)
            yield f"published coins, {m} runs", chance_to_exceed, limit
        # A bound that ignores the data and reports a million with probability β.
        yield "a million on a coin", 0.05, share * 0.05
        # The limit of m runs tends to the exact ε as m grows.
        exact = limits_of_runs(_ISOLATED, [np.inf])["limit"].item()
        largest = largest_capped_mean(_ISOLATED)
        reported = {"isolated canaries": probability @ np.minimum(bounds, exact)}
        coin_reports = exact if counted == "up to the exact ε" else 1e6
        reported["a million on a coin"] = 0.05 * coin_reports
        for name, mean in reported.items():
            yield f"{name}, on average", float(mean), largest

    return all_of(equal(_mixed(weight), 1e-9), at_most(cases(), 1e-6))


# -------------------------------------------------------------------------------------- one side


def _p_value(v: int, r: int, epsilon: float, leaks: float) -> float:
    """1 - (1 - f)(1 - leaks / B)+ with W ~ Bin(r, p(ε)), f = P[W >= v] and B = v P[W = v] / f."""
    f = float(stats.binom.sf(v - 1, r, p(epsilon)))
    b = v * float(stats.binom.pmf(v, r, p(epsilon))) / f
    return 1 - (1 - f) * max(0.0, 1 - leaks / b)


def _outputs(n: int, r: int, signs: Sequence[int]) -> list[Any]:
    """All outputs of n guesses with r signs among these; each makes exactly r guesses."""
    outputs = []
    for places, guesses in product(combinations(range(n), r), [*product(signs, repeat=r)]):
        output = [0] * n
        for i, guess in zip(places, guesses, strict=True):
            output[i] = guess
        outputs.append(tuple(output))
    return outputs


def _wins(v: int, balanced: bool, o: Any, s: Any) -> float:
    """1 if at least v guesses are right; for balanced coins divided by P[balanced], else 0, so that
    its mean is conditional on them.
    """
    is_reached = sum(a * b > 0 for a, b in zip(o, s, strict=True)) >= v
    if not balanced:
        return float(is_reached)
    n = len(s)
    return float(is_reached and sum(s) == 0) * 2**n / comb(n, n // 2)


@cache
def _best_on_one_side(
    setting: tuple[int, int, int], epsilon: float, delta: float, fixed: str, coins: str
) -> float:
    """max P[V >= v] over the (ε, δ)-DP mechanisms with all guesses "in", or all on one side."""
    n, r, v = setting
    outputs = _outputs(n, r, (1,))
    if fixed == "read off the output":
        outputs += [tuple(-x for x in o) for o in outputs]
    wins = partial(_wins, v, coins == "balanced")
    return largest_worth(n, outputs, wins, [(epsilon, delta, delta)])


@ours("ours:one-side", "This book", "linear program")
@explained("F-theorems#prop-much-side")
@mutants(
    varied("leak", up=WEAKER),
    replaced("fixed", read_off_the_output="read off the output"),
    replaced("coins", balanced="balanced"),
)
@remark("The linear program is over all tables. It reaches the p-value at r = 1 and ε = 0.")
@each(at_most, 1e-7)
def one_side(
    leak: float = 1.0, fixed: str = "before the audit", coins: str = "independent"
) -> Cases:
    """If it is fixed before the audit that all guesses say "in", the exact p-value for independent
    coins is valid with nδ/2 in place of nδ; not if the side is read off the output, and not for
    balanced coins.
    """
    settings = (2, 1, 1), (2, 2, 2), (3, 1, 1), (3, 2, 2), (4, 2, 2), (1, 1, 1)
    for (n, r, v), (epsilon, delta) in product(settings, ((0.0, 0.04), (0.6, 0.05))):
        if coins == "balanced" and n % 2:
            continue
        largest = _best_on_one_side((n, r, v), epsilon, delta, fixed, coins)
        limit = _p_value(v, r, epsilon, leak * n * delta / 2)
        yield f"n = {n}, r = {r}, v = {v}, ε = {epsilon}", largest, limit


# ---------------------------------------------------------------------------- the stated training


@cache
def _best_with_profile(n: int, r: int, v: int, epsilon: float, a: float, b: float) -> float:
    """max P[V >= v] over all mechanisms with D_in(ε) = a and D_out(ε) = b."""
    return largest_worth(n, _outputs(n, r, (-1, 1)), partial(_wins, v, False), [(epsilon, a, b)])


def _log_comb(size: Any, chosen: int) -> Any:
    """The logarithm of the number of subsets with so many elements; -inf if there are none."""
    gammaln = scipy.special.gammaln
    with np.errstate(invalid="ignore"):
        value = gammaln(size + 1) - gammaln(chosen + 1) - gammaln(np.maximum(size - chosen, 0) + 1)
    return np.where(size < chosen, -np.inf, value)


@cache
def _some_that_are_in() -> tuple[float, float, float]:
    """The leaks of a mechanism that prints 100 of the elements that are in, or a fixed text.

    If m elements are in, it prints each set of 100 of them with probability
    h(m) = share / C(max(m, 1000) - 1, 99). So from m = 1000 on each element that is in is printed
    with probability ``share``, whatever m is. Below 1000 h is constant: for m < 157 it would fall
    by more than a factor e from m to m + 1, and D_out would not be 0.

    Returned are D_in and D_out at ε = 1, and the probability that it prints elements if 5,000 of
    10,000 are in.
    """
    n = 10_000
    k = 100
    share = 1e-3
    m = np.arange(n + 1)
    log_h = np.log(share) - _log_comb(np.maximum(m, 1000) - 1, k - 1)
    p_prints = np.exp(log_h + _log_comb(m, k))
    # One more element is in: sets with it, sets without it, and the text.
    with_it = np.exp(log_h[1:] + _log_comb(m[:-1], k - 1))
    without_it = p_prints[:-1]
    log_ratio = log_h[1:] - log_h[:-1]
    text_in = 1 - p_prints[1:]
    text_out = 1 - p_prints[:-1]
    d_in = with_it + without_it * np.maximum(np.exp(log_ratio) - e, 0)
    d_in += np.maximum(text_in - e * text_out, 0)
    d_out = without_it * np.maximum(1 - e * np.exp(log_ratio), 0)
    d_out += np.maximum(text_out - e * text_in, 0)
    return float(d_in.max()), float(d_out.max()), float(p_prints[n // 2])


@cache
def _chance(points: tuple[tuple[float, float], ...], n: int, winning: frozenset[Any]) -> float:
    """The largest chance of the counts (v, r) in ``winning`` if the output decides r.

    It is over all laws p(v, w) of v right and w wrong guesses of n elements. For each point (ε, nD)
    all elements together leak at most nD: Σ (v p(v, w) - e^ε (w + 1) p(v - 1, w + 1))₊ <= nD.
    """
    pairs = [(v, w) for v in range(n + 1) for w in range(n + 1 - v)]
    place = {pair: i for i, pair in enumerate(pairs)}
    some_right = [(v, w) for v, w in pairs if v > 0]
    # The variables are p(v, w), then an excess for each point and each pair with a right guess.
    differences = np.zeros((len(points), len(some_right), len(pairs)))
    for number, (epsilon, _) in enumerate(points):
        for row, (v, w) in enumerate(some_right):
            differences[number, row, place[v, w]] = v
            differences[number, row, place[v - 1, w + 1]] = -exp(epsilon) * (w + 1)
    excesses = len(points) * len(some_right)
    # An excess is at least its difference, and those of each point sum to at most nD.
    each_excess = np.hstack([differences.reshape(excesses, len(pairs)), -np.eye(excesses)])
    sums = np.kron(np.eye(len(points)), np.ones(len(some_right)))
    each_sum = np.hstack([np.zeros((len(points), len(pairs))), sums])
    limits = np.r_[np.zeros(excesses), [leaks for _, leaks in points]]
    wins = np.r_[[(v, v + w) in winning for v, w in pairs], np.zeros(excesses)]
    total = np.r_[np.ones(len(pairs)), np.zeros(excesses)]
    program = optimize.linprog(
        -wins, A_ub=np.vstack([each_excess, each_sum]), b_ub=limits, A_eq=total[None], b_eq=[1.0]
    )
    return -float(program.fun)


def _random_r_p_value(v: int, r: int, epsilon: float, leaks: float) -> float:
    """The p-value of the random-r bound with b* = 0, from its definition."""
    f = min(float(stats.binom.sf(v - 1, r, p(epsilon))), 1 - 1e-16)
    return 1 - (1 - f) * max(0.0, 1 - leaks * np.log(p(epsilon)) / np.log(f))


@ours("ours:stated-training", "This book", "linear program")
@explained("F-theorems#thm-much-stated")
@mutants(
    varied("leak", up=WEAKER),
    replaced("balanced", by_the_mean="by the mean"),
    replaced("chosen", afterwards="after the output"),
)
@remark("The linear programs are over all tables, or all laws of right and wrong guesses.")
@each(at_most, 1e-7)
def stated_training(
    leak: float = 1.0, balanced: str = "by the side", chosen: str = "before the audit"
) -> Cases:
    """A mechanism with D_in(ε') ≤ a and D_out(ε') ≤ b keeps the exact p-value for independent coins
    with n(a + b)/2 in place of nδ. For balanced coins the p-value takes a for flips of included
    elements and b for flips of excluded ones, not the mean of a and b. If the output decides how
    many guesses are made, ε' and b* must be chosen before the output is seen.
    """
    for (n, r, v), (epsilon, a, b) in product(
        ((2, 1, 1), (2, 2, 2), (3, 2, 2), (3, 3, 2)),
        ((0.0, 0.03, 0.03), (0.5, 0.04, 0.04), (0.0, 0.06, 0.01), (0.5, 0.01, 0.06)),
    ):
        limit = _p_value(v, r, epsilon, leak * n * (a + b) / 2)
        name = f"n = {n}, r = {r}, v = {v}, D_in = {a} and D_out = {b} at ε = {epsilon}"
        yield name, _best_with_profile(n, r, v, epsilon, a, b), limit
    d_in, d_out, p_prints = _some_that_are_in()
    yield "what 100 printed elements leak if in", d_in, 1e-3
    yield "what elements leak if out", d_out, 0.0
    counts = Counts(100, 100, 10_000, r_fixed=True, coins="balanced", r_in=100)
    sides = (d_in, d_out) if balanced == "by the side" else ((d_in + d_out) / 2,) * 2
    value = float(p_values(counts, 1.0, *sides, beta=0.05)[0])
    yield "100 of 100 printed, balanced", p_prints, value
    points = ((0.04, 0.86), (0.26, 0.73))
    n = 15
    if chosen == "after the output":
        pairs = ((6, 6), (11, 15))
        # For each output the smaller of two p-values, which is chosen when the output is known.
        best = [min(_p_value(*pair, *point) for point in points) for pair in pairs]
        yield "6 of 6, or 11 of 15", _chance(points, n, frozenset(pairs)), max(best)
    for point, level in product(points, (0.16, 0.25)):
        pairs_of_all_r = ((v, r) for r in range(1, n + 1) for v in range(1, r + 1))
        rejected = frozenset(x for x in pairs_of_all_r if _random_r_p_value(*x, *point) <= level)
        yield f"p ≤ {level} at ε' = {point[0]}", _chance(points, n, rejected), level


# ------------------------------------------------------------------------------ a ceiling of means


@cache
def _best_mean_of(
    n: int, k: int, worth: tuple[float, ...], profile: tuple[tuple[float, float, float], ...]
) -> float:
    """The largest mean of worth[V] over all mechanisms with this profile and k guesses."""

    def value(o: Any, s: Any) -> float:
        return worth[sum(a * b > 0 for a, b in zip(o, s, strict=True))]

    return largest_worth(n, _outputs(n, k, (-1, 1)), value, profile)


@ours("ours:ceiling-of-means", "This book", "linear program")
@explained("F-theorems#thm-much-means")
@remark(
    "Both values are linear programs: one over all tables, the other over the laws of the count. "
    "They agree where D_in = D_out and no count is worth less than a smaller one."
)
def ceiling_of_means(leak: float = 1.0) -> Finding:
    """For k guesses fixed in advance and worths that rise with the right ones, the largest mean
    worth of all mechanisms with D_in = D_out = D at some ε equals the largest over all laws p with
    Σ (v p_v − e^ε (k − v + 1) p_(v−1))₊ ≤ nD(ε). If D_in ≠ D_out, it is at most the value for
    (D_in + D_out)/2.
    """

    def cases(equal_sides: bool) -> Cases:
        for n, k, worth in (
            (2, 1, (0.0, 1.0)),
            (2, 2, (0.0, 0.3, 1.0)),
            (3, 2, (0.0, 0.8, 1.0)),
            (3, 3, (0.0, 0.1, 0.5, 1.0)),
        ):
            shapes = ((0.0, 0.2), (0.5, 0.08), (1.2, 0.02))
            profile = tuple((x, d, d if equal_sides else d / 4) for x, d in shapes)
            growth = np.exp([x for x, _, _ in profile])
            leaks = np.array([leak * n * (a + b) / 2 for _, a, b in profile])
            # All counts are listed, so the place of all others, the last one, is worth the least.
            worths = np.r_[worth, worth[0]]
            over_laws = largest_mean(worths, np.arange(k + 1), k, growth, leaks)
            yield f"n = {n}, k = {k}", _best_mean_of(n, k, worth, profile), over_laws

    return all_of(equal(cases(True), 1e-6), at_most(cases(False), 1e-7))

"""What this book adds on feedback: how full feedback fails, and that one-way feedback is plain."""

from collections.abc import Iterable
from functools import cache
from itertools import permutations, product
from typing import Any

import numpy as np
from scipy import optimize, stats

from ledger.adaptive import muting_failure
from ledger.comparisons import at_most, equal
from ledger.counts import exceeds
from ledger.entries import explained, mutants, ours, remark
from ledger.findings import Cases, Finding, Function, all_of, each
from ledger.mutants import WEAKER, replaced, varied
from ledger.small_channels import LN3, private_tables, random_table, worst_failure
from ledger.worst_cases import ExtremalResponse, best_mean
from oralib.bounds import adaptive_failure_probability
from oralib.channel import Channel, channel
from oralib.mechanisms import LocalRandomizedResponse, sign_vectors


@cache
def _worst_failure_of_response(epsilon: float, n: int, beta: float) -> float:
    """The worst failure over all guessers of randomized response with full feedback."""
    table = channel(LocalRandomizedResponse(epsilon), n)
    return best_mean(table, exceeds(n, epsilon, beta), feedback="full")


@ours(84, "ours:worst-case-of-full-feedback", "This book")
@explained("valid-adaptive-auditing#thm-valid-worst")
@mutants(varied("factor"), replaced("factor", no_more_than_β=None))
def worst_case_of_full_feedback(factor: float | None = 1.0) -> Finding:
    """With full feedback the bound of an ε-DP mechanism exceeds ε with probability at most W_n, the
    chance that the bound of independent guesses of accuracy p(ε) ever does so within n of them;
    randomized response attains it.
    """

    def worst(epsilon: float, n: int, beta: float) -> float:
        if factor is None:
            return beta
        return factor * adaptive_failure_probability(epsilon, n, beta)

    limits = (
        (f"{name}, β = {beta}", worst_failure(name, beta, "full"), worst(t.epsilon, t.n, beta))
        for (name, t), beta in product(private_tables().items(), (0.3, 0.55, 0.65))
    )
    attained = (
        (f"LRR_{e}, n = {n}, β = {beta}", _worst_failure_of_response(e, n, beta), worst(e, n, beta))
        for e, n, beta in ((0.5, 4, 0.65), (0.0, 3, 0.55), (0.2, 4, 0.4))
    )
    return all_of(at_most(limits), equal(attained))


@ours(85, "ours:anytime-bound", "This book")
@explained("valid-adaptive-auditing#thm-valid-anytime")
@mutants(varied("level", down=WEAKER), replaced("level", twice_the_level=2.0))
@remark(
    "After 10,000 guesses 8% to 22% of β is unused here; after 200,000, at ε = 3.5 and β = 0.35, "
    "only 3%, so a level 3% larger is refuted there. At small ε even long audits leave much of β "
    "unused."
)
@each(at_most)
def anytime_bound_is_valid(level: float = 1.0) -> Cases:
    """The mixture bound exceeds ε with probability at most β, even if guessing stops as soon as it
    exceeds ε.
    """
    short = [(epsilon, beta, 10_000) for epsilon in (0.0, 1.0, 3.0) for beta in (0.05, 0.3)]
    for epsilon, beta, n in (*short, (3.5, 0.35, 200_000)):
        tried_beta = min(0.9, level * beta)
        worst = adaptive_failure_probability(epsilon, n, tried_beta, bound="anytime")
        yield f"ε = {epsilon:g}, β = {beta}, n = {n}", worst, beta


@ours(95, "ours:one-threshold-fails", "This book")
@explained("valid-adaptive-auditing#prop-valid-muting")
@mutants(replaced("feedback", none="none"))
def one_threshold_fails(
    level: float = 0.0175, failure: float = 0.1304, feedback: str = "full"
) -> Finding:
    """Full feedback fails for the paper's own guessers too, with a fixed order and one threshold:
    on a response that mutes itself, nine elements, ε = 0.0175, a 90% bound fails with probability
    0.1304.
    """
    epsilon, fails = muting_failure(feedback)
    return equal([("level", epsilon, level), ("failure", fails, failure)], 5e-5)


@cache
def _tables_with_delta() -> dict[str, tuple[Channel, float, float]]:
    """Small tables, an ε, and their δ at that ε."""
    tables = {
        "extremal n=3": (channel(ExtremalResponse(0.5, 0.05, 2, 3), 3), 0.5),
        "random n=2": (random_table(2, 3, seed=1), 0.2),
        "random n=3": (random_table(3, 4, seed=2), 0.2),
        "LRR n=3": (channel(LocalRandomizedResponse(LN3), 3), 0.5),
    }
    return {
        name: (table, epsilon, table.delta(epsilon)) for name, (table, epsilon) in tables.items()
    }


def _success_law(table: Channel, decide: Function, feedback: str) -> dict[tuple[int, ...], float]:
    """The law of X = T S for a guesser that decides from the output and the revealed signs."""
    law: dict[tuple[int, ...], float] = {}
    for o, s in product(range(len(table.table)), range(2**table.n)):
        revealed: tuple[int, ...] = ()
        success: tuple[int, ...] = ()
        for i in range(table.n):
            guess = decide(o, i, revealed)
            sign = int(table.signs[s, i])
            revealed += (sign if guess == 0 or feedback == "full" else 0,)
            success += (guess * sign,)
        weight = table.table[o, s] / 2**table.n
        law[success] = law.get(success, 0.0) + weight
    return law


def _plain_mechanism(law: dict[tuple[int, ...], float], n: int) -> Channel:
    """The mechanism that prints s X: guessing what it prints has the success vector X."""
    outputs = np.array(list(product((-1, 0, 1), repeat=n)))
    rows = [[law.get(tuple(o * s), 0.0) for s in sign_vectors(n).astype(int)] for o in outputs]
    return Channel(np.array(rows))


def _guessers(count: int, seed: int) -> Iterable[Function]:
    """One that repeats the output of three signs, and random ones."""
    yield lambda o, i, revealed: int(sign_vectors(3)[o % 8, i])
    for j in range(count):
        rng = np.random.default_rng((seed, j))
        memory: dict[Any, int] = {}

        def decide(o: int, i: int, revealed: Any, rng: Any = rng, memory: Any = memory) -> int:
            key = (o, i, revealed)
            return int(memory.setdefault(key, int(rng.integers(-1, 2))))

        yield decide


@ours(86, "ours:one-way-is-plain", "This book")
@explained("valid-adaptive-auditing#thm-valid-laws")
@mutants(replaced("feedback", full="full"), varied("factor", up=WEAKER))
@each(at_most)
def one_way_is_plain(feedback: str = "one-way", factor: float = 1.0) -> Cases:
    """Over all (ε, δ)-DP mechanisms together, one-way feedback can do no more than no feedback:
    whatever law the successes have, a plain audit of some mechanism with the same (ε, δ), perhaps a
    different one, has it too.
    """
    for name, (table, epsilon, delta) in _tables_with_delta().items():
        for j, decide in enumerate(_guessers(12, 17)):
            law = _success_law(table, decide, feedback)
            plain = _plain_mechanism(law, table.n)
            yield f"{name}, guesser {j}: δ", plain.delta(epsilon), factor * delta


# ------------------------------------------------------------- full feedback and δ: linear programs


@cache
def _winning_sets(n: int, rejects: tuple[tuple[bool, ...], ...], in_order: bool) -> list[Any]:
    """On which coins a guesser with full feedback can win, up to names and signs of elements.

    ``rejects[r][v]`` says whether it wins if it stops with v right of r guesses; after the last r
    it must stop. It may skip elements, and is told the coins of all.
    """
    cube = np.arange(2**n)
    ones = [sum(1 << s for s in range(2**n) if s >> i & 1) for i in range(n)]

    @cache
    def won(unseen: tuple[int, ...], v: int, r: int) -> frozenset[int]:
        sets = {2**2**n - 1 if rejects[r][v] else 0}
        for i in unseen[:1] if in_order else unseen:
            rest = tuple(x for x in unseen if x != i)
            pairs = [*product(won(rest, v, r), repeat=2)]
            if r + 1 < len(rejects):
                right, wrong = won(rest, v + 1, r + 1), won(rest, v, r + 1)
                pairs += [*product(right, wrong), *product(wrong, right)]
            sets |= {a & ones[i] | b & ~ones[i] for a, b in pairs}
        return frozenset(sets)

    bits = cube[:, None] >> np.arange(n) & 1
    powers = 1 << np.arange(n)
    turns = np.array([(bits[:, o] ^ s) @ powers for o in permutations(range(n)) for s in bits])
    remaining, sets = set(won(tuple(range(n)), 0, 0)), []
    while remaining:
        sets.append(min(remaining) >> cube & 1)
        remaining -= {*(sets[-1][turns] @ (1 << cube)).tolist()}
    return sets


def _most_per_leak(wins: Any, luck: float, growth: float) -> float:
    """The largest (L(wins) − luck |L|) / J(L), J(L) = Σ (L(s) − growth L(s^i))_+, over L ≥ 0."""
    size, n = len(wins), len(wins).bit_length() - 1
    losses = [np.eye(size) - growth * np.eye(size)[np.arange(size) ^ 1 << i] for i in range(n)]
    zeros, all_leaks = np.zeros(size * n), np.append(np.zeros(size), np.ones(size * n))
    matrix = np.vstack([np.hstack([np.vstack(losses), -np.eye(size * n)]), all_leaks])
    program = optimize.linprog(np.append(luck - wins, zeros), matrix, np.append(zeros, 1.0))
    return -program.fun if program.status == 0 else np.inf


def _crossing(rejects: tuple[tuple[bool, ...], ...], q: float) -> float:
    """How likely a walk with success probability q at each step ever meets the rule."""

    @cache
    def meets(v: int, r: int) -> float:
        if rejects[r][v] or r + 1 == len(rejects):
            return float(rejects[r][v])
        return q * meets(v + 1, r + 1) + (1 - q) * meets(v, r + 1)

    return meets(0, 0)


def _thresholds_as_rule(*least: int) -> tuple[tuple[bool, ...], ...]:
    """Reject with at least this many right of 0, 1, 2, ... guesses."""
    return tuple(tuple(v >= c for v in range(r + 1)) for r, c in enumerate(least))


@ours(100, "ours:full-feedback-and-delta", "This book", "linear program")
@explained("valid-adaptive-auditing#prop-valid-delta")
@mutants(varied("factor", up=WEAKER), replaced("luck", at_the_last_guess="last"))
@each(at_most, 1e-7)
def full_feedback_and_delta(factor: float = 1.0, luck: str = "ever") -> Cases:
    """With full feedback on n elements of an (ε, δ)-DP mechanism, a rule rejects with probability
    at most n δ (1 − p(ε)) above the chance that independent guesses of accuracy p(ε) ever meet it.
    """
    for least, growth in product(((1, 1, 2, 2), (1, 1, 3, 3), (1, 2, 2, 3)), (1.0, 1.5, 4.0)):
        rule, q = _thresholds_as_rule(*least), growth / (1 + growth)
        last = tuple((False,) * (r + 1) for r in range(3)) + rule[3:]
        chance = _crossing(rule if luck == "ever" else last, q)
        for j, wins in enumerate(_winning_sets(3, rule, False)):
            name = f"rule {least[1:]}, e^ε = {growth:g}, guesser {j}"
            yield name, _most_per_leak(wins, chance, growth), factor * (1 - q)


@ours(101, "ours:settled-order", "This book", "linear program")
@explained("valid-adaptive-auditing#thm-valid-order")
@mutants(varied("factor", up=WEAKER), replaced("missing", not_counted="not counted"))
@each(at_most, 1e-7)
def settled_order(factor: float = 1.0, missing: str = "wrong") -> Cases:
    """With full feedback, an order settled before the first guess and at most k guesses, missing
    ones counted as wrong, no (ε, δ)-DP mechanism makes v right guesses more likely than the exact
    p-value of (v, k), even if the guesser may skip elements.
    """
    for (n, k, v), growth in product(((3, 1, 1), (3, 2, 1), (3, 2, 2), (4, 3, 2)), (1.0, 2.0)):
        q = growth / (1 + growth)
        luck = float(stats.binom.sf(v - 1, k, q))
        most = luck * (1 - luck) / (v * stats.binom.pmf(v, k, q))
        # If missing guesses did not count, it could stop with all of fewer guesses right.
        fewer = [v if missing == "wrong" else min(v, max(r, 1)) for r in range(k)]
        for j, wins in enumerate(_winning_sets(n, _thresholds_as_rule(*fewer, v), True)):
            name = f"{v} of {k}, n = {n}, e^ε = {growth:g}, guesser {j}"
            yield name, _most_per_leak(wins, luck, growth), factor * most

"""Validity, asymptotic validity and tightness: the paper's Section 3 and Appendix A."""

from collections.abc import Callable, Sequence
from itertools import product
from math import exp, inf, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from oralib.bounds import clopper_pearson_lower, epsilon_estimate, epsilon_lower_bound, p
from oralib.channel import Channel, channel
from oralib.claims.ledger import (
    CLOSED,
    COUNTEREXAMPLE,
    EXACT,
    Finding,
    at_most,
    binomial_counts,
    claim,
    equal,
    exceeds,
    failure,
    same_answers,
    tends,
)
from oralib.claims.tables import LN3, private
from oralib.games import best_mean, one_run_law
from oralib.guessers import ThresholdGuesser
from oralib.mechanisms import LocalRandomizedResponse

Function = Callable[..., Any]
Law = NDArray[np.float64]


def _chance(q: float, r: int, event: Function) -> float:
    """P[event(V)] for V ~ Bin(r, q)."""
    v, weight = binomial_counts(r, q)
    return float(weight @ np.asarray(event(v), dtype=float))


#: Strategies as (level of the mechanism, limit of the accuracy): each guess succeeds with that
#: probability, independently, and all n elements are guessed or a constant share of them.
_STRATEGIES = {
    "LRR_2": (2.0, p(2.0)),
    "Local Laplace, certain guesses": (2.0, p(2.0)),
    "Local Laplace, all guesses": (2.0, 1 - exp(-1) / 2),
    "XOR": (inf, 0.5),
    "CIS_1": (inf, 1.0),
}


@claim(
    24,
    "lem:ora-efficacy-and-tightness",
    "Lemmas 3.3, A.4 and A.17",
    "With unlimited guesses, the bounds approach ε(M) if and only if the efficacy approaches "
    "p(ε(M)).",
    CLOSED,
    "03-problem-setting#lem-problem-main",
    stated=lambda level, accuracy: abs(accuracy - p(level)) < 1e-9,
    broken=lambda level, accuracy: accuracy > 0.5,
)
def tight_if_accurate(criterion: Function) -> Finding:
    answers = {}
    for name, (level, accuracy) in _STRATEGIES.items():
        goal = min(level - 0.1, 9.0)
        near = _chance(accuracy, 10**5, lambda v, goal=goal: epsilon_lower_bound(v, 10**5) >= goal)
        answers[name] = (bool(criterion(level, accuracy)), near > 0.99)
    return same_answers(answers)


def _joint(entries: Sequence[tuple[int, int, float]]) -> Law:
    """A law of (V, R) from (v, r, probability)."""
    most = max(r for _, r, _ in entries)
    law = np.zeros((most + 1, most + 1))
    for v, r, probability in entries:
        law[v, r] += probability
    return law


def _binomial_law(sizes: dict[int, float], success: float) -> Law:
    return _joint(
        [
            (v, r, share * weight)
            for r, share in sizes.items()
            for v, weight in enumerate(stats.binom.pmf(np.arange(r + 1), r, success))
        ]
    )


#: Joint laws of (V, R), to be held against guesses that are right half of the time.
_LAWS = {
    "fair guesses": _binomial_law({10: 0.5, 60: 0.5}, 0.5),
    "poor guesses": _binomial_law({5: 0.3, 40: 0.7}, 0.4),
    "right with 10, wrong with 60": _joint([(10, 10, 0.5), (0, 60, 0.5)]),
    "all right or none": _joint([(20, 20, 0.5), (0, 20, 0.5)]),
}


def _upper_tail(law: Law) -> Law:
    """P[V >= v, R = r]."""
    return law[::-1].cumsum(axis=0)[::-1]


def _fair_law(law: Law) -> Law:
    """The law with the same R and fair guesses."""
    return _binomial_law({r: share for r, share in enumerate(law.sum(axis=0)) if share > 0}, 0.5)


def _dominated(law: Law) -> bool:
    fair = _upper_tail(_fair_law(law)).sum(axis=1)
    return bool((_upper_tail(law).sum(axis=1) <= fair + 1e-12).all())


def _dominated_given_r(law: Law) -> bool:
    return bool((_upper_tail(law) <= _upper_tail(_fair_law(law)) + 1e-12).all())


def _fair_on_average(law: Law) -> bool:
    v, r = np.indices(law.shape)
    return bool(((law * v).sum(axis=0) <= (law * r).sum(axis=0) / 2 + 1e-12).all())


@claim(
    30,
    "lem:condition-for-validity",
    "Lemma A.7",
    "If V is stochastically dominated by Bin(R, p(ε)), the bound is valid.",
    COUNTEREXAMPLE,
    "corrections#lem-corr-valid",
    stated=_dominated,
    broken=_fair_on_average,
    corrected=_dominated_given_r,
    correction="Dominance is needed given each value of R, not only on the whole.",
)
def condition_for_validity(condition: Function) -> Finding:
    met = {name: law for name, law in _LAWS.items() if condition(law)}
    return at_most((name, failure(law, 0.0, 0.05), 0.05) for name, law in met.items())


def _classic_strategies(table: Channel, threshold: float) -> list[tuple[float, float]]:
    """(success, chance to guess) of guessing one element where its loss, given the others, is
    at least so large a part of ε(M), for each element and each value of the others."""
    found = []
    cube = table.table.reshape(-1, *[2] * table.n)
    for axis in range(1, table.n + 1):
        minus, plus = np.moveaxis(cube, axis, 0).reshape(2, len(cube), -1)
        taken = np.abs(np.log(minus / plus)) >= threshold * table.epsilon - 1e-12
        chance = (np.where(taken, minus + plus, 0) / 2).sum(axis=0)
        right = (np.where(taken, np.maximum(minus, plus), 0) / 2).sum(axis=0)
        found += [(float(a / b), float(b)) for a, b in zip(right, chance, strict=True) if b > 0]
    return found


@claim(
    31,
    "prop:classic-auditing-is-valid",
    "Proposition A.8",
    "Classic auditing is valid: its bound exceeds ε(M) with probability at most β.",
    EXACT,
    "A-guessing-based-auditing#prop-guess-classic-valid",
    stated=1.0,
    broken=0.5,
)
def classic_is_valid(share: float) -> Finding:
    def cases() -> Any:
        for name, table in private().items():
            best = max(success for success, _ in _classic_strategies(table, 0.0))
            best = max(best, *(success for success, _ in _classic_strategies(table, 1.0)))
            for r in (5, 20, 60):
                law = _binomial_law({r: 1.0}, best)
                yield f"{name}, r = {r}", failure(law, table.epsilon, 0.05), share * 0.05

    return at_most(cases())


@claim(
    32,
    "prop:one-run-auditing-is-valid",
    "Proposition A.9",
    "One-run auditing is valid, whatever the guesser.",
    EXACT,
    "A-guessing-based-auditing#prop-guess-one-run-valid",
    stated="none",
    broken="full",
)
def one_run_is_valid(feedback: str) -> Finding:
    def cases() -> Any:
        for (name, table), beta in product(private().items(), (0.1, 0.3, 0.55, 0.65, 0.8)):
            value = exceeds(table.n, table.epsilon, beta)
            yield f"{name}, β = {beta}", best_mean(table, value, feedback=feedback), beta

    return at_most(cases())


@claim(
    33,
    "lem:convergence-of-clopper-pearson-lower",
    "Lemma A.10",
    "The Clopper-Pearson limit differs from v/r by at most the square root of ln(1/β) / 2r.",
    CLOSED,
    "A-guessing-based-auditing#lem-guess-convergence",
    stated=lambda beta: beta,
    broken=lambda beta: min(beta, 1 - beta) ** 0.25,
    corrected=lambda beta: min(beta, 1 - beta),
    correction="With min(β, 1 - β) in place of β; for β <= 1/2 that is the same.",
)
def limit_is_near_the_accuracy(level: Function) -> Finding:
    def cases() -> Any:
        for r, beta in product((1, 2, 3, 10, 40), (0.01, 0.05, 0.5, 0.9, 0.99)):
            v = np.arange(r + 1)
            gap = np.abs(v / r - clopper_pearson_lower(v, r, beta)).max()
            yield f"r = {r}, β = {beta}", float(gap), sqrt(-log(level(beta)) / (2 * r))

    return at_most(cases())


@claim(
    34,
    "lem:convergence-of-clopper-pearson-lower-for-random-variables",
    "Lemma A.11",
    "If the number of guesses tends to infinity, the Clopper-Pearson limit at a fixed level tends "
    "to the accuracy.",
    CLOSED,
    "A-guessing-based-auditing#lem-guess-convergence",
    stated=lambda r: 0.05,
    broken=lambda r: 10.0 ** (-r / 50),
)
def limit_follows_the_accuracy(level: Function) -> Finding:
    def mean_gap(r: int) -> float:
        v, weight = binomial_counts(r, 0.8)
        return float(weight @ np.abs(v / r - clopper_pearson_lower(v, r, level(r))))

    return tends([mean_gap(r) for r in (10**2, 10**3, 10**4)], 0.0, 0.01)


@claim(
    35,
    "lem:privacy-estimations-and-bounds",
    "Lemma A.12",
    "If the number of guesses tends to infinity, estimation minus bound tends to 0.",
    COUNTEREXAMPLE,
    "corrections#lem-corr-estimates",
    stated=(lambda r: r - 1, lambda r: r, lambda r: r // 4, lambda r: r * 3 // 5),
    broken=(lambda r: r - 1,),
    corrected=(lambda r: r // 2, lambda r: r * 3 // 5, lambda r: r * 99 // 100),
    correction="If the accuracy stays between 1/2 and some 1 - η; near 1 the gap in nats can "
    "stay, or be infinite, and below 1/2 the bound is 0.",
)
def gap_vanishes(sequences: Sequence[Function]) -> Finding:
    findings = []
    for right in sequences:
        sizes = (10**3, 10**5, 10**7)
        gaps = [epsilon_estimate(right(r), r) - epsilon_lower_bound(right(r), r) for r in sizes]
        findings.append(tends(gaps, 0.0, 0.02))
    bad = [finding for finding in findings if not finding.holds]
    return bad[0] if bad else findings[-1]


def _level_kept(q: float, limit: float, bound: Function) -> bool:
    return _chance(q, 10**6, lambda v: bound(v, 10**6) <= limit) > 0.999


@claim(
    36,
    "prop:asymptotic-validity-estimations-and-bounds",
    "Proposition A.13",
    "With unlimited guesses, estimations stay below ε(M) + a in the limit if and only if bounds "
    "do.",
    CLOSED,
    "A-guessing-based-auditing#prop-guess-asymptotic",
    stated=0.0,
    broken=0.5,
)
def estimations_and_bounds_stay_below(shift: float) -> Finding:
    return same_answers(
        {
            f"accuracy {q:.3g}": (
                _level_kept(q, 1.1 + shift, epsilon_lower_bound),
                _level_kept(q, 1.1, epsilon_estimate),
            )
            for q in (0.5, 0.7, p(1.0), 0.78, 0.8)
        }
    )


@claim(
    37,
    "prop:validity-implies-asymptotic-validity",
    "Proposition A.14",
    "A valid auditor is asymptotically valid.",
    COUNTEREXAMPLE,
    "A-guessing-based-auditing#prop-guess-asymptotic",
    stated=lambda n: 1,
    broken=lambda n: 3,
    corrected=lambda n: n,
    correction="If the number of guesses tends to infinity; one guess of LRR_1 is right with "
    "probability p(1) for every n, and its estimation is then infinite.",
)
def valid_in_the_limit(guesses: Function) -> Finding:
    chance = [
        _chance(p(1.0), guesses(n), lambda v, n=n: epsilon_estimate(v, guesses(n)) > 1.1)
        for n in (10**2, 10**4, 10**6)
    ]
    return tends(chance, 0.0, 1e-3)


@claim(
    38,
    "prop:characterization-of-asymptotic-tightness-of-valid-auditors",
    "Proposition A.15",
    "A valid auditor is asymptotically tight if and only if, with unlimited guesses, its bounds "
    "at every level tend to ε(M).",
    CLOSED,
    "A-guessing-based-auditing#prop-guess-tight",
    stated=lambda n: n,
    broken=lambda n: 10,
)
def bounds_tend_to_the_level(guesses: Function) -> Finding:
    answers = {}
    for q, beta in product((0.6, p(1.0)), (1e-6, 0.05, 0.5)):
        r = guesses(10**6)

        def close(v: Any, r: int = r, beta: float = beta) -> Any:
            return np.abs(epsilon_lower_bound(v, r, beta=beta) - 1) < 0.05

        reached = _chance(q, 10**6, lambda v: epsilon_estimate(v, 10**6) >= 0.95) > 0.999
        answers[f"accuracy {q:.3g}, β = {beta:g}"] = (_chance(q, r, close) > 0.999, reached)
    return same_answers(answers)


#: Laws on [0, 1] for a parameter n: {value: probability}. The level is 0.6.
_SEQUENCES: dict[str, tuple[Function, bool]] = {
    "rarely far below": (lambda n: {0.6: 1 - 1 / n, 0.0: 1 / n}, True),
    "often far below": (lambda n: {0.6: 0.5, 0.1: 0.5}, True),
    "a little above": (lambda n: {0.6 + 1 / n: 1.0}, True),
    "on both sides": (lambda n: {0.9: 0.5, 0.3: 0.5}, False),
}


@claim(
    39,
    "lem:lower-boundedness-sandwich",
    "Lemma A.16",
    "Bounded variables that stay below a level in the limit reach it in probability if and only "
    "if their means do.",
    EXACT,
    "A-guessing-based-auditing#lem-guess-sandwich",
    stated=True,
    broken=False,
)
def sandwich(stays_below: bool) -> Finding:
    answers = {}
    for name, (law, below) in _SEQUENCES.items():
        if below or not stays_below:
            values = law(10**6)
            mean = sum(value * weight for value, weight in values.items())
            reach = sum(weight for value, weight in values.items() if value >= 0.59)
            answers[name] = (abs(mean - 0.6) < 1e-3, reach > 0.999)
    return same_answers(answers)


@claim(
    40,
    "lem:classic-auditing-is-tight",
    "Lemma A.18",
    "Classic auditing is asymptotically tight: guessing only where the loss is ε(M) succeeds with "
    "probability p(ε(M)), and happens with positive probability.",
    EXACT,
    "A-guessing-based-auditing#lem-guess-classic-tight",
    stated=1.0,
    broken=0.0,
)
def classic_is_tight(threshold: float) -> Finding:
    def cases() -> Any:
        for name, table in private().items():
            best = max(success for success, _ in _classic_strategies(table, threshold))
            yield name, best, p(table.epsilon)

    return equal(cases())


@claim(
    41,
    "prop:ora-is-tight-for-local-randomized-response",
    "Proposition B.1",
    "Guessing the output of LRR_ε has efficacy p(ε) for every n, so ORA is tight for it.",
    EXACT,
    "B-gaps-in-detail#prop-gapsb-lrr",
    stated=1,
    broken=-1,
)
def randomized_response_is_tight(orientation: int) -> Finding:
    def cases() -> Any:
        for epsilon, n in product((0.0, 1.0, LN3), (1, 2, 4)):
            table = channel(LocalRandomizedResponse(epsilon), n)
            assert table.outputs is not None
            right = (orientation * table.outputs[:, None, :] == table.signs[None]).mean(axis=2)
            yield (
                f"ε = {epsilon:.3g}, n = {n}",
                float((table.table * right).mean() * len(right)),
                (p(epsilon)),
            )
            law = one_run_law(table, ThresholdGuesser())
            yield f"n = {n}", float(law.sum(axis=1) @ np.arange(n + 1) / n), p(epsilon)

    return equal(cases())

"""Bounds and estimates with more and more guesses: the paper's Section 3 and Appendix A."""

from collections.abc import Sequence
from functools import cache
from itertools import product
from math import inf, log
from typing import Any

import numpy as np

from ledger.cases.games import classic_successes
from ledger.cases.laplace import laplace_success
from ledger.cases.many_guesses import bounds_tend, chance_above, likely_counts, success_of_all
from ledger.cases.small_channels import LN3, graded_response, private_tables
from ledger.machine.comparisons import at_most, equal, first_least, same_answers, tends, vanish
from ledger.machine.entries import correction, explained, mutants, remark, statement
from ledger.machine.findings import Cases, Finding, Function, all_of, each
from ledger.machine.mutants import WEAKER, replaced, shifted, varied
from oralib import ThresholdGuesser, TopGuesser, channel, epsilon_estimate, epsilon_lower_bound, p
from oralib.bounds import clopper_pearson_lower
from oralib.games import one_run_law
from oralib.mechanisms import LocalRandomizedResponse, NameAndShame

__all__ = [
    "bound_is_below_estimate",
    "bounds_tend_to_the_level",
    "classic_is_tight",
    "estimates_and_bounds_stay_below",
    "gap_vanishes",
    "limit_follows_the_accuracy",
    "limit_is_near_the_accuracy",
    "randomized_response_is_tight",
    "sandwich",
    "tight_if_accurate",
    "valid_in_the_limit",
]


@cache
def _strategies() -> dict[str, tuple[float, float, bool]]:
    """(ε of the mechanism, limit of the accuracy, unlimited guesses?) of strategies.

    Successes are independent and the accuracy tends to the success probability.
    """
    strategies = {}
    for epsilon in (0.5, 2.0):
        response = channel(LocalRandomizedResponse(epsilon), 1)
        strategies[f"LRR_{epsilon:g}"] = (response.epsilon, success_of_all(response), True)
        for part in (0.0, 0.5, 0.8, 1.0):
            success, _ = laplace_success(epsilon, part * epsilon)
            strategies[f"LLP_{epsilon:g}, τ = {part:g}ε"] = (epsilon, success, True)
    # Two values of ε that differ by one percent: guessing at both, or only at the higher one.
    graded = graded_response((1.0, 0.99), (0.5, 0.5))
    strategies["graded, all"] = (graded.epsilon, graded.optimal_efficacy(), True)
    strategies["graded, higher"] = (graded.epsilon, float(graded.guess_accuracy.max()), True)
    shame = channel(NameAndShame(), 4)
    one = one_run_law(shame, TopGuesser(1))
    strategies["NAS, one guess"] = (shame.epsilon, float(one[1, 1]), False)
    return strategies


@statement("lem:ora-efficacy-and-tightness", "Lemmas 3.3, A.4 and A.17", "closed form")
@mutants(replaced("tolerance", three_per_cent=0.03), replaced("unlimited", not_asked_for=False))
@remark(
    "Lemma A.4 holds as we read it. It says 'auditor with unlimited guesses', which the paper "
    "defines for strategies only. We read that the strategy whose efficacy tends to the limit has "
    "them, as in Lemma 3.3. If any strategy might have them, one guess of Name and Shame would be "
    "a counterexample."
)
def tight_if_accurate(
    privacy_level: float = 1.0, tolerance: float = 0.0, unlimited: bool = True
) -> Finding:
    """Bounds approach ε(M) if and only if the efficacy approaches p(ε(M)), with unlimited
    guesses.
    """
    answers = {}
    for name, (epsilon, accuracy, is_unlimited) in _strategies().items():
        distance = abs(accuracy - p(privacy_level * epsilon))
        claimed = distance <= tolerance + 1e-9 and (is_unlimited or not unlimited)
        if is_unlimited:
            tight = bounds_tend(accuracy, epsilon).holds
        else:  # always one right guess of one
            tight = epsilon_lower_bound(1, 1) >= epsilon
        answers[name] = (claimed, bool(tight))
    return same_answers(answers)


@statement("lem:convergence-of-clopper-pearson-lower", "Lemma A.10", "closed form")
@correction(
    "With min(β, 1 − β) in place of β; for β ≤ 1/2 that is the same.", argument="min(β, 1 − β)"
)
@mutants(
    varied("two", 1, down=WEAKER),
    varied("power", 1, down="weaker up to 1, and no distance is larger than that"),
    replaced("argument", fourth_root="min(β, 1 − β)^(1/4)"),
)
@remark(
    "Where β is as small as a double allows, the inequality is an equality to 0.7% in the "
    "constant 2; smaller changes cannot be seen."
)
def limit_is_near_the_accuracy(
    argument: str = "β", two: float = 2.0, power: float = 0.5
) -> Finding:
    """The Clopper-Pearson limit differs from v/r by at most the square root of ln(1/β) / 2r."""
    log_of: dict[str, Function] = {
        "β": lambda b: -log(b),
        "min(β, 1 − β)": lambda b: -log(min(b, 1 - b)),
        "min(β, 1 − β)^(1/4)": lambda b: -log(min(b, 1 - b)) / 4,
    }

    def cases() -> Any:
        for r, beta in product((1, 2, 3, 10, 40), (0.01, 0.05, 0.5, 0.9, 0.99)):
            v = np.arange(r + 1)
            gap = np.abs(v / r - clopper_pearson_lower(v, r, beta)).max()
            limit = (log_of[argument](beta) / (two * r)) ** power
            yield f"r = {r}, β = {beta}", float(gap), limit
        for r in (10**6, 10**8):  # where the inequality is almost an equality
            gap = abs(0.5 - clopper_pearson_lower(r // 2, r, 1e-280))
            limit = (log_of[argument](1e-280) / (two * r)) ** power
            yield f"r = {r}, β = 1e-280", float(gap), limit

    return at_most(cases())


@cache
def _largest_gap(r: int, beta: float) -> float:
    """The largest |accuracy − limit| of all v, whatever their law is."""
    v = np.unique(np.linspace(0, r, 2001).astype(np.int64))
    return float(np.abs(v / r - clopper_pearson_lower(v, r, beta)).max())


#: Rules for the number of guesses, from a c that grows.
_NUMBERS_OF_GUESSES: dict[str, Function] = {
    "tends to infinity": lambda c: c,
    "ten for ever": lambda c: 10,
    "often ten": lambda c: (10, c),  # with probability one half each
}


@statement(
    "lem:convergence-of-clopper-pearson-lower-for-random-variables", "Lemma A.11", "closed form"
)
@mutants(
    shifted("limit", 0.03),
    replaced("guesses", ten_for_ever="ten for ever", often_ten="often ten"),
    replaced("beta_is", falling_with_r="falling with r"),
)
def limit_follows_the_accuracy(
    limit: float = 0.0, guesses: str = "tends to infinity", beta_is: str = "fixed"
) -> Finding:
    """If the number of guesses tends to infinity in probability, the Clopper-Pearson limit at a
    fixed β tends to the accuracy in probability.
    """
    findings = []
    for beta in (0.01, 0.05, 0.5, 0.95):
        values = []
        for c in (10**2, 10**4, 10**6):
            sizes = np.atleast_1d(_NUMBERS_OF_GUESSES[guesses](c)).tolist()
            betas = [beta if beta_is == "fixed" else max(10.0 ** (-r / 50), 1e-290) for r in sizes]
            # With probability one half each: the larger one has to vanish.
            values.append(max(_largest_gap(r, b) for r, b in zip(sizes, betas, strict=True)))
        findings.append(tends(values, limit, 0.005))
    return all_of(*findings)


#: Rules for the number of right guesses, from the number of guesses.
_SEQUENCES_OF_RIGHT_GUESSES: dict[str, Function] = {
    "1/2": lambda r: r // 2,
    "0.6": lambda r: r * 3 // 5,
    "0.99": lambda r: r * 99 // 100,
    "0.4999": lambda r: r * 4999 // 10_000,
    "1/4": lambda r: r // 4,
    "one wrong": lambda r: r - 1,
    "all right": lambda r: r,
}

#: The rules whose accuracy stays away from 1 and is not below 1/2.
_ACCURACIES_INSIDE = ("1/2", "0.6", "0.99")


@statement("lem:privacy-estimations-and-bounds", "Lemma A.12", "counterexample")
@correction(
    "If the accuracy stays between 1/2 and some 1 − η; near 1 the gap in nats can persist, or be "
    "infinite, and below 1/2 the estimate is negative, which no bound is.",
    accuracies=_ACCURACIES_INSIDE,
)
@mutants(
    replaced(
        "accuracies",
        also_a_little_below_one_half=(*_ACCURACIES_INSIDE, "0.4999"),
        one_wrong_guess=(*_ACCURACIES_INSIDE, "one wrong"),
        all_right=(*_ACCURACIES_INSIDE, "all right"),
    ),
    shifted("limit", 0.0002),
)
def gap_vanishes(
    accuracies: Sequence[str] = tuple(_SEQUENCES_OF_RIGHT_GUESSES), limit: float = 0.0
) -> Finding:
    """If the number of guesses tends to infinity, estimate minus bound tends to 0."""
    findings = []
    for name in accuracies:
        gaps = []
        for r in (10**3, 10**7, 10**11):
            v = _SEQUENCES_OF_RIGHT_GUESSES[name](r)
            gaps.append(epsilon_estimate(v, r) - epsilon_lower_bound(v, r))
        finding = tends(gaps, limit, 0.0001)
        findings.append(Finding(finding.holds, f"for accuracy {name}, {finding.evidence}"))
    bad = [finding for finding in findings if not finding.holds]
    return bad[0] if bad else findings[-1]


#: An accuracy p(x) is tried for each of these x, which lie around ε(M) + a = 1.1.
_EPSILONS_AROUND_1_1 = (0.0, 1.0, 1.07, 1.085, 1.095, 1.105, 1.115, 1.13, 1.3)


#: Numbers of guesses that do not grow, by name.
_FOR_EVER: dict[str, Any] = {f"{r} for ever": r for r in (1, 100, 300, 500, 1000, 2000, 10_000)}


def _stays_below(success: float, threshold: float, bound: Function, r: int) -> bool:
    """True if the bound, which grows with v, is above the threshold in at most 0.1% of audits."""
    return bool(bound(likely_counts(success, r)[1], r) <= threshold)


@statement("prop:asymptotic-validity-estimations-and-bounds", "Proposition A.13", "closed form")
@mutants(
    varied("privacy_level", 1),
    replaced("guesses", **_FOR_EVER),
)
def estimates_and_bounds_stay_below(privacy_level: float = 1.0, guesses: int = 10**8) -> Finding:
    """With unlimited guesses, estimates stay below ε(M) + a in the limit for every a > 0 if and
    only if bounds do.
    """
    # In the limit both are the x of the accuracy p(x), so both stay below 1.1 where x does.
    rules = {
        "bounds": (epsilon_lower_bound, 1.1 * privacy_level),
        "estimates": (epsilon_estimate, 1.1),
    }
    return same_answers(
        {
            f"{name} at accuracy p({x:g})": (_stays_below(p(x), limit, rule, guesses), x < 1.1)
            for name, (rule, limit) in rules.items()
            for x in _EPSILONS_AROUND_1_1
        }
    )


@statement("prop:validity-implies-asymptotic-validity", "Proposition A.14", "counterexample")
@correction(
    "If the number of guesses tends to infinity; one guess on LRR_1 is right with probability "
    "p(1) for every n, and its estimate is then infinite.",
    guesses=None,
)
@mutants(
    replaced("guesses", three_for_ever=3, a_thousand_for_ever=1000),
    varied("privacy_level", 1, up=WEAKER),
)
def valid_in_the_limit(guesses: int | None = 1, privacy_level: float = 1.0) -> Finding:
    """A valid auditor is asymptotically valid."""
    success = success_of_all(channel(LocalRandomizedResponse(1.0), 1))
    chances = [
        chance_above(success, privacy_level + 0.002, guesses or n) for n in (10**4, 10**6, 10**8)
    ]
    return vanish(chances)


@statement(
    "prop:characterization-of-asymptotic-tightness-of-valid-auditors",
    "Proposition A.15",
    "closed form",
)
@mutants(
    varied("privacy_level", 1),
    replaced("guesses", ten_for_ever=10),
    replaced("auditors", also_one_that_is_always_wrong="any that is valid"),
)
@remark(
    "At ε(M) = 0 the coins of a guessing game are independent of its guesses, so half of them "
    "come out right. An auditor that plays no guessing game could always be wrong: its bounds "
    "would be 0 but its estimates negative, so for arbitrary valid auditors ε(M) > 0 is "
    "needed."
)
def bounds_tend_to_the_level(
    privacy_level: float = 1.0, guesses: int = 10**10, auditors: str = "guessing games"
) -> Finding:
    """A valid auditor is asymptotically tight if and only if, with unlimited guesses, its bounds at
    every β tend to ε(M).
    """
    # (ε(M), limit of the accuracy); at ε(M) = 0 it is 1/2, whatever is guessed.
    limits = [(1.0, p(x)) for x in (0.6, 0.97, 0.99, 0.995, 1.0)] + [(0.0, 0.5)]
    if auditors != "guessing games":
        limits.append((0.0, 0.0))
    answers = {}
    for (epsilon, accuracy), beta in product(limits, (1e-6, 0.05, 0.5)):
        bounds = epsilon_lower_bound(likely_counts(accuracy, guesses), guesses, beta=beta)
        lowest = epsilon_estimate(likely_counts(accuracy, 10**10)[0], 10**10)
        answers[f"ε(M) = {epsilon:g}, accuracy {accuracy:.4g}, β = {beta:g}"] = (
            bool((np.abs(bounds - privacy_level * epsilon) < 0.002).all()),
            bool(lowest >= epsilon - 0.002),
        )
    return same_answers(answers)


#: Laws on [0, 1] for a parameter n: ({value: probability}, does it stay below 0.6 in the limit?).
_SEQUENCES: dict[str, tuple[Function, bool]] = {
    "constant": (lambda n: {0.6: 1.0}, True),
    "rarely far below": (lambda n: {0.6: 1 - 1 / n, 0.0: 1 / n}, True),
    "3% far below": (lambda n: {0.6: 0.97, 0.0: 0.03}, True),
    "a little below": (lambda n: {0.597: 1.0}, True),
    "often far below": (lambda n: {0.6: 0.5, 0.1: 0.5}, True),
    "less and less above": (lambda n: {0.6 + 1 / n: 1.0}, True),
    "on both sides": (lambda n: {0.9: 0.5, 0.3: 0.5}, False),
    "a little on both sides": (lambda n: {0.603: 0.5, 0.597: 0.5}, False),
}


@statement("lem:lower-boundedness-sandwich", "Lemma A.16")
@mutants(replaced("stays_below", not_asked_for=False), varied("mean", 1), varied("reached", 1))
def sandwich(stays_below: bool = True, mean: float = 1.0, reached: float = 1.0) -> Finding:
    """Bounded variables that stay below a number in the limit tend to it in probability if and only
    if their means do.
    """
    answers = {}
    for name, (law, below) in _SEQUENCES.items():
        if below or not stays_below:
            values = law(10**9)
            average = sum(value * weight for value, weight in values.items())
            goal = 0.6 * reached - 1e-3
            reach = sum(weight for value, weight in values.items() if value >= goal)
            answers[name] = (abs(average - 0.6 * mean) < 1e-6, reach > 0.999)
    return same_answers(answers)


@statement("lem:classic-auditing-is-tight", "Lemma A.18")
@mutants(varied("threshold", 1), varied("privacy_level", 1))
@each(equal)
def classic_is_tight(threshold: float = 1.0, privacy_level: float = 1.0) -> Cases:
    """Classic auditing is asymptotically tight: guessing only where the loss is ε(M), if that has a
    positive probability, succeeds with probability p(ε(M)).
    """
    tables = {**private_tables(), "graded": graded_response((1.0, 0.995), (0.5, 0.5))}
    for name, table in tables.items():
        successes = classic_successes(table, threshold)
        yield f"{name}, guesses", float(bool(successes)), 1.0
        # Of all bases and indices the worst one is meant.
        yield name, max((s for s, _ in successes), default=inf), p(privacy_level * table.epsilon)


@statement("prop:ora-is-tight-for-local-randomized-response", "Proposition B.1")
@mutants(replaced("orientation", pairs_the_other_way_round=-1))
def randomized_response_is_tight(orientation: int = 1, privacy_level: float = 1.0) -> Finding:
    """Guessing the output of LRR_ε has efficacy p(ε) for every n, so ORA is tight for it."""

    def cases() -> Any:
        for epsilon, n in product((0.5, 1.0, LN3), (1, 2, 4)):
            table = channel(LocalRandomizedResponse(epsilon), n)
            assert table.outputs is not None
            accuracy = (orientation * table.outputs[:, None, :] == table.signs[None]).mean(axis=2)
            name = f"ε = {epsilon:.3g}, n = {n}"
            yield name, float((table.table * accuracy).sum() / 2**n), p(privacy_level * epsilon)
            law = one_run_law(table, ThresholdGuesser())
            yield name, float(law.sum(axis=1) @ np.arange(n + 1) / n), p(privacy_level * epsilon)

    tight = bounds_tend(success_of_all(channel(LocalRandomizedResponse(1.0), 1)), privacy_level)
    return all_of(equal(cases()), tight)


@statement("text:bound-below-estimation", "Section 3", "counterexample")
@explained("03-problem-setting#prop-problem-below")
@correction(
    "If β ≤ 1/2 and at least half the guesses are right.", largest_beta=0.5, least_accuracy=0.5
)
@mutants(varied("largest_beta", down=WEAKER), varied("least_accuracy", up=WEAKER))
@each(at_most)
def bound_is_below_estimate(largest_beta: float = 0.99, least_accuracy: float = 0.0) -> Cases:
    """'The lower bound on the privacy level is a lower bound on the privacy estimation with the
    required confidence interval', read as an inequality for all counts.
    """
    for r in (1, 2, 5, 20, 101, 1000, 10**6):
        v = np.unique(np.linspace(1, r, 200).astype(np.int64))
        v = np.union1d(v, [r // 2] if r > 1 else [])
        v = v[v >= least_accuracy * r]
        for beta in (0.01, 0.05, 0.5, largest_beta):
            if beta <= largest_beta:
                bound = epsilon_lower_bound(v, r, beta=beta)
                estimate = epsilon_estimate(v, r)
                worst = first_least(estimate - bound)
                yield f"({v[worst]}, {r}), β = {beta:g}", bound[worst], estimate[worst]

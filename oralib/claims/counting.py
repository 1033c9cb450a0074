"""Counting queries and Count-in-Sets: the paper's Section 6.1 and Appendix D."""

from collections.abc import Callable
from itertools import product
from math import comb, exp, log, log2, sqrt
from typing import Any

import numpy as np
from scipy import special, stats

from oralib.channel import Channel, channel
from oralib.claims.ledger import (
    COUNTEREXAMPLE,
    EXACT,
    Finding,
    at_most,
    claim,
    equal,
    same_answers,
)
from oralib.claims.tables import LN3, geometric_count
from oralib.mechanisms import Count, LocalRandomizedResponse, sign_vectors

Function = Callable[..., Any]


@claim(
    57,
    "lem:bound-of-the-mad-of-a-binomial",
    "Lemma D.1",
    "The mean absolute deviation of Bin(n, p) is at most the square root of n p (1 - p).",
    EXACT,
    "D-dp-sgd-in-detail#lem-detail-mad",
    stated=1.0,
    broken=0.75,
)
def mean_absolute_deviation(factor: float) -> Finding:
    def cases() -> Any:
        for n, q in product((1, 2, 5, 20, 200), (0.1, 0.5, 0.9)):
            v = np.arange(n + 1)
            deviation = stats.binom.pmf(v, n, q) @ np.abs(v - n * q)
            yield f"n = {n}, p = {q}", float(deviation), factor * sqrt(n * q * (1 - q))

    return at_most(cases())


@claim(
    58,
    "prop:ora-efficacy-for-count-approaches-half",
    "Proposition D.2",
    "The best efficacy for Count is at most 1/2 + 1/(2√n), for any number of guesses.",
    EXACT,
    "D-dp-sgd-in-detail#prop-detail-count",
    stated=0.5,
    broken=0.25,
)
def efficacy_of_count(factor: float) -> Finding:
    def cases() -> Any:
        for n in range(1, 11):
            for k in (1, n):
                best = channel(Count(), n).optimal_efficacy(k)
                exact = 0.5 + comb(n - 1, n // 2) / 2**n
                yield f"n = {n}, k = {k}, formula", abs(best - exact), 1e-12
                yield f"n = {n}, k = {k}", best, 0.5 + factor / sqrt(n)
        for n in (100, 1000):
            yield f"n = {n}", 0.5 + comb(n - 1, n // 2) / 2**n, 0.5 + factor / sqrt(n)

    return at_most(cases())


def _post_processed_count(n: int, seed: int) -> Channel:
    """A random table that depends on the number of ones alone."""
    ones = (sign_vectors(n) > 0).sum(axis=1)
    rows = np.random.default_rng(seed).dirichlet(np.ones(5), n + 1)
    return Channel(rows[ones].T)


@claim(
    59,
    "cor:symmetric-algorithms",
    "Corollary D.3",
    "No symmetric algorithm has a larger efficacy than Count, so all tend to 1/2.",
    EXACT,
    "D-dp-sgd-in-detail#cor-detail-symmetric",
    stated=lambda n: (geometric_count(n, 1 / 3), _post_processed_count(n, 7)),
    broken=lambda n: (channel(LocalRandomizedResponse(LN3), n),),
)
def symmetric_algorithms(tables: Function) -> Finding:
    def cases() -> Any:
        for n, k in ((2, 1), (4, 2), (6, 3), (6, 6)):
            for table in tables(n):
                best = channel(Count(), n).optimal_efficacy(k)
                yield f"n = {n}, k = {k}", table.optimal_efficacy(k), best

    return at_most(cases())


@claim(
    60,
    "lemma:privacy-loss-of-count",
    "Lemma D.4",
    "The loss of Count is at least a where the output is at least n (e^a - 1)/(2 (e^a + 1)) away "
    "from its mean.",
    EXACT,
    "D-dp-sgd-in-detail#lem-detail-loss",
    stated=2.0,
    broken=1.0,
)
def loss_of_count(divisor: float) -> Finding:
    def cases() -> Any:
        for n, a in product(range(1, 13), (0.05, 0.4, 1.0, 2.5, 7.0)):
            loss = np.abs(channel(Count(), n).privacy_loss[:, 0])
            far = np.abs(np.arange(n + 1) - n / 2) >= n * (exp(a) - 1) / (divisor * (exp(a) + 1))
            weight = stats.binom.pmf(np.arange(n + 1), n, 0.5)
            yield f"n = {n}, a = {a}", float(weight @ (loss >= a)), float(weight @ far)

    return equal(cases())


def _log2_exposed_sets(log2_n: float, s: int, a: float) -> float:
    """log2 of the expected number of sets of size s, of 2^log2_n elements, with a loss >= a."""
    far = np.arange(int(np.floor(s / (1 + exp(a)) + 1e-9)) + 1)
    log_binomial = special.gammaln(s + 1) - special.gammaln(far + 1) - special.gammaln(s - far + 1)
    return float(log2_n - log2(s) + special.logsumexp(log_binomial) / log(2) + 1 - s)


#: Sizes of sets: name, s as a function of log2 n, limit of s / log2 n.
_SIZES: dict[str, tuple[Function, float]] = {
    "s = sqrt(log2 n)": (lambda x: round(sqrt(x)), 0.0),
    "s = log2(n) / 2": (lambda x: round(x / 2), 0.5),
    "s = log2 n": (lambda x: round(x), 1.0),
    "s = 1.25 log2 n": (lambda x: round(1.25 * x), 1.25),
    "s = 2 log2 n": (lambda x: round(2 * x), 2.0),
}


@claim(
    61,
    "prop:condition-for-tightness-of-ora-for-count-in-sets",
    "Proposition D.5 and Section 6.1",
    "ORA is tight for Count-in-Sets if and only if s(n) = o(log n).",
    COUNTEREXAMPLE,
    "corrections#thm-corr-cis",
    stated=lambda share: share == 0,
    broken=lambda share: share <= 1.5,
    corrected=lambda share: share <= 1,
    correction="If and only if limsup s(n) / log2 n <= 1; o(log n) suffices and is not needed.",
)
def tight_sizes_of_sets(criterion: Function) -> Finding:
    answers = {}
    for name, (size, share) in _SIZES.items():
        # Tight if for each level a the number of exposed sets tends to infinity. The larger the
        # level the later it grows: at log2 n = 20,000 and 200,000 it does, or falls, up to 5.
        grows = all(
            _log2_exposed_sets(200_000, size(200_000), a)
            > _log2_exposed_sets(20_000, size(20_000), a)
            for a in (1.0, 3.0, 5.0)
        )
        answers[name] = (bool(criterion(share)), grows)
    return same_answers(answers)

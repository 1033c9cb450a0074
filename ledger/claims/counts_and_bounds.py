"""From counts to ε: the bound, validity, efficacy and tightness, as the paper defines them."""

from functools import cache
from itertools import product
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from ledger.cases.counts import critical_betas
from ledger.cases.games import full_knowledge_law
from ledger.cases.many_guesses import bounds_tend, chance_above, success_of_all
from ledger.cases.small_channels import LN3, randomized_response, shown_or_noisy
from ledger.machine.comparisons import at_most, equal, same_answers, vanish
from ledger.machine.entries import definition, explained, mutants
from ledger.machine.findings import Cases, Finding, Function, all_of, each
from ledger.machine.mutants import WEAKER, replaced, shifted, varied
from oralib import Channel, ThresholdGuesser, channel
from oralib.bounds import clopper_pearson_lower, epsilon_estimate, epsilon_lower_bound, p, p_inv
from oralib.games import one_run_law
from oralib.mechanisms import LocalRandomizedResponse, XorRandomizedResponse

__all__ = [
    "bound_is_a_beta_quantile",
    "bound_rarely_exceeds",
    "bounds_approach_the_level",
    "clopper_pearson_covers",
    "dominance",
    "efficacy",
    "estimates_rarely_exceed",
    "estimates_reach",
    "logistic",
]


@definition("eq:lower-bound", "Section 2", "closed form")
@explained("02-preliminaries#prop-prelim-closed")
@mutants(shifted("first", 0.03))
@each(equal, 1e-6)
def bound_is_a_beta_quantile(
    first: float = 0.0, second: float = 1.0, failure_probability: float = 1.0
) -> Cases:
    """The bound of v right of r guesses, the largest ε with P[Bin(r, p(ε)) ≥ v] ≤ β, is the logit
    of the β-quantile of Beta(v, r − v + 1), or 0 if that is negative or v = 0.
    """
    for r, beta in product((1, 5, 10, 100), (0.01, 0.05, 0.3)):
        for v in {1, (r + 1) // 2, r - r // 10, r}:
            q = optimize.brentq(
                lambda q, v=v, r=r, beta=beta: stats.binom.sf(v - 1, r, q) - beta, 0, 1
            )
            quantile = special.betaincinv(v + first, r - v + second, failure_probability * beta)
            closed = max(0.0, float(special.logit(quantile)))
            yield f"({v}, {r})", closed, max(0.0, float(special.logit(q)))
            yield f"({v}, {r})", closed, epsilon_lower_bound(v, r, beta=beta)


@definition("eq:logistic", "Section 2", "closed form")
@explained("02-preliminaries#ch-prelim")
@each(equal)
def logistic(rate: float = 1.0, inverse_rate: float = 1.0) -> Cases:
    """p(ε) = e^ε / (e^ε + 1) is how often randomized response of privacy level ε tells the truth,
    and the logit inverts it.
    """
    for epsilon in (0.1, 1.0, 2.0, 4.0):
        q = 1 / (1 + exp(-rate * epsilon))
        yield f"ε = {epsilon}", Channel(randomized_response(2, q)).epsilon, epsilon
        yield f"ε = {epsilon}", q, p(epsilon)
        yield f"ε = {epsilon}", np.log(q / (1 - q)) / inverse_rate, p_inv(q)


@definition("def:ora-asymptotic-tightness", "Definition 3.1", "closed form")
@mutants(replaced("mechanism", at_97_per_cent_of_ε=lambda e: LocalRandomizedResponse(0.97 * e)))
def bounds_approach_the_level(
    privacy_level: float = 1.0, mechanism: Function = LocalRandomizedResponse
) -> Finding:
    """ORA is asymptotically tight if with more and more guesses the bounds of some guesser tend to
    ε(M) in probability, at every β. The example is guessing the output of randomized response.
    """
    findings = []
    for epsilon in (0.5, 1.0, 2.0):
        success = success_of_all(channel(mechanism(epsilon), 1))
        findings.append(bounds_tend(success, privacy_level * epsilon))
    return all_of(*findings)


@definition("def:ora-efficacy", "Definition 3.2")
@mutants(replaced("functional", ratio_of_means="ratio of means"))
def efficacy(power: float = 1.0, functional: str = "mean of ratios") -> Finding:
    """The efficacy is the mean of V/R over coins and outputs (not the ratio of the means)."""
    table = shown_or_noisy()
    law = one_run_law(table, ThresholdGuesser(LN3))
    v, r = np.nonzero(law)
    weight = law[v, r]
    ratio = weight @ (v / r) ** power
    value = ratio if functional == "mean of ratios" else (weight @ v) / (weight @ r)
    # As the definition says: over every output and dataset.
    guesses = ThresholdGuesser(LN3).guess(table.privacy_loss)
    is_right = guesses[:, None, :] == table.signs[None]
    accuracy = is_right.sum(axis=2) / np.abs(guesses).sum(axis=1)[:, None]
    return equal([("shown or noisy", float(value), float((table.table * accuracy).sum() / 16))])


@definition("def:validity", "Definition A.1")
@mutants(
    varied("failure_probability", 1, down=WEAKER),
    replaced("bound", estimate=lambda v, r, beta: epsilon_estimate(v, r)),
)
@each(at_most)
def bound_rarely_exceeds(
    failure_probability: float = 1.0, bound: Function = epsilon_lower_bound
) -> Cases:
    """A valid auditor's bound exceeds the privacy level with probability at most β; the bound ε'
    meets this for randomized response, the estimate does not.
    """
    for epsilon, n in product((0.0, 0.5, 1.0, 2.0), (1, 7, 20, 60)):
        v = np.arange(n + 1)
        weight = stats.binom.pmf(v, n, p(epsilon))
        for beta in critical_betas(n, p(epsilon)):
            bounds = bound(v, n, beta=min(failure_probability * beta, 0.999))
            fails = weight @ (bounds > epsilon * (1 + 1e-9) + 1e-9)
            yield f"ε = {epsilon}, n = {n}", float(fails), beta


#: The a of definitions A.2 and A.3, in nats: as their limits are for every a > 0, a small one.
_SLACK = 0.002

#: The numbers of guesses for which these limits are computed.
_NUMBERS = (10**2, 10**4, 10**6, 10**8)


@definition("def:asymptotic-validity", "Definition A.2")
@mutants(
    varied("privacy_level", 1, up=WEAKER), replaced("audit", all_others_known="all others known")
)
def estimates_rarely_exceed(privacy_level: float = 1.0, audit: str = "one run") -> Finding:
    """Asymptotic validity: estimates exceed ε(M) + a with vanishing probability. As row 37
    requires, we assume unlimited guesses. One-run auditing of LRR_1 has this property; knowing all
    others (XRR_1) does not.
    """
    if audit == "one run":
        success = success_of_all(channel(LocalRandomizedResponse(1.0), 1))
        return vanish([chance_above(success, privacy_level + _SLACK, r) for r in _NUMBERS])
    chances = []
    for n in (2, 4, 6):
        law = full_knowledge_law(channel(XorRandomizedResponse(1.0), n), ThresholdGuesser())
        v, r = np.nonzero(law)
        chances.append(float(law[v, r] @ (epsilon_estimate(v, r) > privacy_level + _SLACK)))
    return vanish(chances)


@definition("def:asymptotic-tightness", "Definition A.3", "closed form")
@mutants(
    varied("privacy_level", 1, down=WEAKER),
    replaced("mechanism", at_97_per_cent_of_ε=lambda e: LocalRandomizedResponse(0.97 * e)),
)
def estimates_reach(
    privacy_level: float = 1.0, mechanism: Function = LocalRandomizedResponse
) -> Finding:
    """Asymptotic tightness: estimates reach ε(M) − a with probability tending to 1, as they do on
    randomized response, where every guess succeeds with probability p(ε).
    """
    success = success_of_all(channel(mechanism(1.0), 1))
    return vanish([1 - chance_above(success, privacy_level - _SLACK, r) for r in _NUMBERS])


@definition("def:clopper-pearson-lower", "Definition A.5")
@mutants(replaced("count", one_more=1))
@each(equal, 1e-7)
def clopper_pearson_covers(failure_probability: float = 1.0, count: int = 0) -> Cases:
    """The Clopper-Pearson lower limit is the largest q with P[Bin(r, q) ≥ v] ≤ β, for v ≥ 1: there
    the tail is β.
    """
    for r, beta in product((1, 5, 20, 60), (0.01, 0.05, 0.3, 0.9)):
        v = np.arange(1, r + 1)
        limit = clopper_pearson_lower(v, r, beta)
        tails = stats.binom.sf(v - 1 + count, r, limit)
        yield f"r = {r}, β = {beta}", float(np.abs(tails - failure_probability * beta).max()), 0.0


@cache
def _pairs_of_laws() -> list[tuple[NDArray[Any], NDArray[Any], bool]]:
    """Pairs of laws, on the edge of dominance, and whether they can be coupled X <= Y."""
    rng = np.random.default_rng(3)
    pairs = []
    for _ in range(60):
        y = rng.dirichlet([3.0, 3.0, 3.0, 3.0])
        x = y.copy()
        # A few percent of one mass moves down, and perhaps a bit of another moves up.
        for direction in rng.choice([-1, 1], size=2, p=[0.7, 0.3]):
            start = int(rng.integers(1, 4) if direction < 0 else rng.integers(0, 3))
            amount = x[start] * rng.uniform(0.0, 0.02)
            x[start] -= amount
            x[start + direction] += amount
        pairs.append((x, y, _can_be_coupled(x, y)))
    return pairs


def _can_be_coupled(x: NDArray[Any], y: NDArray[Any]) -> bool:
    """True if some joint law with these margins has X <= Y: the least P[X > Y] is 0."""
    size = len(x)
    above = np.tril(np.ones((size, size)), -1).ravel()  # entries with X > Y
    rows = np.vstack([np.kron(np.eye(size), np.ones(size)), np.kron(np.ones(size), np.eye(size))])
    program = optimize.linprog(above, A_eq=rows, b_eq=np.r_[x, y], method="highs")
    return bool(program.fun < 1e-9)


@definition("def:stochastic-dominance", "Definition A.6")
@mutants(replaced("relation", larger_mean="means", largest_value_only="last tail"))
def dominance(factor: float = 1.0, relation: str = "all tails") -> Finding:
    """X is dominated by Y if P[X > t] ≤ P[Y > t] for all t: then, and only then, the two can be
    coupled with X ≤ Y.
    """
    answers = {}
    for j, (x, y, coupled) in enumerate(_pairs_of_laws()):
        tails_x = x[::-1].cumsum()[::-1][1:]
        tails_y = y[::-1].cumsum()[::-1][1:]
        if relation == "all tails":
            claimed = bool((tails_x <= factor * tails_y + 1e-12).all())
        elif relation == "means":
            claimed = bool(tails_x.sum() <= tails_y.sum())
        else:
            claimed = bool(tails_x[-1] <= tails_y[-1] + 1e-12)
        answers[f"pair {j}"] = (claimed, coupled)
    return same_answers(answers)

"""The three gaps and their examples: the paper's Section 4 and Appendix B."""

from functools import cache
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ledger.cases.counts import accuracy_values, binomial_counts, chance
from ledger.cases.families import SIZE, families
from ledger.cases.small_channels import all_tables, sampled_tables
from ledger.cases.worst_cases import best_mean
from ledger.machine.comparisons import at_most, equal, same_answers, tends
from ledger.machine.entries import explained, mutants, remark, statement
from ledger.machine.findings import Finding, all_of
from ledger.machine.mutants import WEAKER, replaced, shifted, varied
from orabook.studies.universe import SampledChannel
from oralib import Channel, ThresholdGuesser, TopGuesser, channel, epsilon_lower_bound, p
from oralib.games import one_run_law
from oralib.mechanisms import AllOrNothing, NameAndShame, Xor

__all__ = [
    "all_or_nothing",
    "all_or_nothing_is_not_tight",
    "each_gap_has_its_example",
    "name_and_shame",
    "name_and_shame_is_not_tight",
    "sampling_adds_privacy",
    "xor",
    "xor_is_not_tight",
]


def _strict_inequalities(table: Channel) -> tuple[bool, ...]:
    """True for each strict inequality of the chain from the efficacy to p(ε)."""
    chain = [table.ae_ac_ddp, table.ac_ddp, p(table.ddp), p(table.epsilon)]
    return tuple(bool(b - a > 1e-9) for a, b in pairwise(chain))


@statement("sec:the-gap", "Section 4")
@explained("04-the-gaps#ch-gaps")
@mutants(
    replaced(
        "examples",
        first_two_exchanged=("AON", "NAS", "XOR"),
        last_two_exchanged=("NAS", "XOR", "AON"),
        count_for_interference=("NAS", "AON", "Count"),
    )
)
def each_gap_has_its_example(examples: tuple[str, ...] = ("NAS", "AON", "XOR")) -> Finding:
    """Three gaps: few exposed elements (NAS), rare bad outputs (AON), interference (XOR); each
    example makes its own inequality of the chain strict, and no other.
    """
    answers = {}
    for place, name in enumerate(examples):
        strict = _strict_inequalities(all_tables()[f"{name} n=3"])
        answers[f"{name}: inequality {place + 1}"] = (True, strict == tuple(np.eye(3)[place] == 1))
    return same_answers(answers)


@cache
def _best_of(mechanism: Any, n: int, k: int) -> float:
    return best_mean(channel(mechanism, n), accuracy_values(n, k))


@statement("prop:ora-efficacy-for-nas", "Proposition B.3")
def name_and_shame(base: float = 0.5, gain: float = 0.5, power: float = 1.0) -> Finding:
    """With unlimited guesses the efficacy for Name and Shame tends to 1/2: with k guesses it is 1/2
    + 1/(2k), where the output names its owner.
    """
    return equal(
        (f"n = {n}, k = {k}", base + gain / k**power, _best_of(NameAndShame(), n, k))
        for n in (2, 3, 4, 5)
        for k in range(1, n + 1)
    )


@cache
def _shame_structure() -> Finding:
    """Find from the tables that of k guesses one is certain and the others are fair."""
    v = np.arange(7)
    return equal(
        (f"n = 6, k = {k}", float(np.abs(law - stats.binom.pmf(v - 1, k - 1, 0.5)).max()), 0.0)
        for k in range(1, 7)
        for law in [one_run_law(channel(NameAndShame(), 6), TopGuesser(k))[:, k]]
    )


@cache
def _one_sure_guess(k: int) -> float:
    """The mean bound of k guesses, one of them right for certain and the others fair."""
    v, weight = binomial_counts(k - 1, 0.5)
    return float(weight @ epsilon_lower_bound(v + 1, k))


@statement("cor:ora-is-not-tight-for-nas", "Corollary B.4", "closed form")
@mutants(shifted("limit", 0.03), replaced("guesses", one_for_ever="one for ever"))
def name_and_shame_is_not_tight(
    efficacy: float = 0.5, limit: float = 0.0, guesses: str = "unlimited"
) -> Finding:
    """ORA is not tight for Name and Shame: with unlimited guesses its efficacy tends to 1/2 and its
    mean bound to 0, while the privacy level is infinite.
    """
    sizes = (10**2, 10**4, 10**6) if guesses == "unlimited" else (1, 1, 1)
    ks = (10, 10**3, 10**5) if guesses == "unlimited" else (1, 1, 1)
    family = families()["1 named"]
    return all_of(
        _shame_structure(),
        tends([family.efficacy(SIZE, k) for k in ks], efficacy, 1e-3),
        tends([_one_sure_guess(k) for k in sizes], limit, 0.005),
    )


def _efficacy_where_certain(mechanism: Any, n: int) -> float:
    """E[V/R given R > 0] of the guesser that guesses only when it is certain."""
    law = one_run_law(channel(mechanism, n), ThresholdGuesser(np.inf))[:, 1:]
    v, r = np.indices(law.shape)
    return float((law * v / (r + 1)).sum() / law.sum())


@statement("prop:ora-efficacy-for-aon", "Proposition B.6")
@mutants(replaced("silent_audits", dropped="dropped"))
def all_or_nothing(
    base: float = 0.5, slope: float = 0.5, silent_audits: str = "not allowed"
) -> Finding:
    """All or Nothing has efficacy (1 + p)/2, for any number of guesses."""

    def best(q: float, n: int, k: int) -> float:
        if silent_audits == "dropped":  # at least as good as this: it guesses all n, or none
            return _efficacy_where_certain(AllOrNothing(q), n)
        return _best_of(AllOrNothing(q), n, k)

    return equal(
        (f"p = {q}, n = {n}, k = {k}", base + slope * q, best(q, n, k))
        for q, n in product((0.1, 0.25, 0.7), (1, 2, 3))
        for k in range(1, n + 1)
    )


@statement("cor:ora-is-not-tight-for-aon", "Corollary B.7", "closed form")
def all_or_nothing_is_not_tight(factor: float = 1.0) -> Finding:
    """ORA is not tight for All or Nothing: the bound grows without limit only with probability p <
    1.
    """

    def structure() -> Any:
        for q in (0.25, 0.89):
            law = one_run_law(channel(AllOrNothing(q), 5), ThresholdGuesser())[:, 5]
            mixed = q * (np.arange(6) == 5) + (1 - q) * stats.binom.pmf(np.arange(6), 5, 0.5)
            yield f"p = {q}", float(np.abs(law - mixed).max()), 0.0

    def reaches(q: float, n: int) -> float:
        return q + (1 - q) * chance(0.5, n, lambda v: epsilon_lower_bound(v, n) >= 3)

    limits = (
        tends([reaches(q, n) for n in (100, 1000, 10**4)], factor * q, 1e-6)
        for q in (0.1, 0.25, 0.89, 0.97)
    )
    return all_of(equal(structure()), *limits)


@statement("prop:ora-efficacy-for-xor", "Proposition B.9")
@mutants(replaced("least", from_one_bit_on=1))
def xor(least: int = 2, efficacy: float = 0.5) -> Finding:
    """XOR of n ≥ 2 bits has efficacy 1/2, for any number of guesses."""
    return equal(
        (f"n = {n}, k = {k}", _best_of(Xor(), n, k), efficacy)
        for n in range(least, 6)
        for k in range(1, n + 1)
    )


def _matching_the_parity(n: int) -> tuple[Channel, NDArray[Any]]:
    """XOR, and guesses with the parity of its output: they are right or wrong together."""
    table = channel(Xor(), n)
    ones = np.ones(n, dtype=int)
    assert table.outputs is not None
    one_minus = np.where(np.arange(n) == 0, -1, 1)
    # The sign vector of all ones has the parity of one of the two outputs.
    of_ones = int(np.argmax(table.table[:, (table.signs == 1).all(axis=1)][:, 0]))
    return table, np.stack([ones if o == of_ones else one_minus for o in range(2)])


def _success_laws(n: int) -> dict[str, NDArray[Any]]:
    """The joint laws of the n successes of guessers of XOR, an axis for each success."""
    table, matching = _matching_the_parity(n)
    laws = {}
    for name, guesses in (
        ("always 1", np.ones((2, n), dtype=int)),
        ("matching the parity", matching),
    ):
        law = np.zeros((2,) * n)
        for o, s in product(range(2), range(2**n)):
            law[tuple((guesses[o] == table.signs[s]).astype(int))] += table.table[o, s] / 2**n
        laws[name] = law
    return laws


@statement("cor:ora-is-not-tight-for-xor", "Corollary B.10", "closed form")
@mutants(
    varied("success", 1),
    replaced("left_out", none_so_that_all_are_independent=0),
    shifted("limit", 0.03),
)
@remark(
    "Not all n are independent: three guesses with the parity of the output are all right with "
    "probability 1/4, and otherwise exactly one is. The last part is for one sure guess and n − 1 "
    "fair ones, which is more than XOR allows."
)
def xor_is_not_tight(success: float = 0.5, left_out: int = 1, limit: float = 0.0) -> Finding:
    """ORA is not tight for XOR: each guess is right with probability 1/2, any n − 1 of them
    independently, and with unlimited guesses the mean bound tends to 0.
    """

    def structure() -> Any:
        for n in (2, 3, 4):
            for name, law in _success_laws(n).items():
                for out in combinations(range(n), left_out):
                    joint = law.sum(axis=out)
                    v = np.indices(joint.shape).sum(axis=0)
                    r = n - left_out
                    product_law = success**v * (1 - success) ** (r - v)
                    apart = float(np.abs(joint - product_law).max())
                    yield f"n = {n}, {name}, all but {left_out}", apart, 0.0

    means = [_one_sure_guess(n) for n in (10**2, 10**4, 10**6)]
    return all_of(equal(structure()), tends(means, limit, 0.005))


@cache
def _sampled_levels() -> list[tuple[str, float, float]]:
    """(name, DDP, ε) of small tables, of which each element is 1 with some probability."""
    return [
        (f"{name}, coins {q}", sampled.ddp, sampled.epsilon)
        for name, table in all_tables().items()
        for q in (0.5, 0.8, 0.99)
        for sampled in [SampledChannel.of(table, [1 - q, q])]
    ]


@statement("text:sampling-adds-privacy", "Appendix B, closing remark")
@explained("B-gaps-in-detail#prop-gapsb-sampling")
@mutants(varied("factor", up=WEAKER))
@remark(
    "The privacy level of the sampled parity of n coins with bias b has the closed form 2 "
    "artanh(|b|^(n−1)), times 1; the second constant varies this 1."
)
def sampling_adds_privacy(factor: float = 1.0, parity: float = 1.0) -> Finding:
    """Sampling the dataset is a further layer of privacy: for each element the sampled mechanism
    has at most the privacy level of the mechanism, and it may have less.
    """

    def limits() -> Any:
        for name, ddp, epsilon in _sampled_levels():
            yield name, p(ddp), p(factor * epsilon)
        for sampled in sampled_tables().values():
            yield "random", sampled.ddp, factor * sampled.epsilon

    def closed_forms() -> Any:
        for n, q in product((2, 3, 4), (0.6, 0.9, 0.99)):
            sampled = SampledChannel.of(channel(Xor(), n), [1 - q, q])
            closed = 2 * np.arctanh(abs(2 * q - 1) ** (n - 1))
            yield f"XOR, n = {n}, coins {q}", sampled.ddp, parity * float(closed)

    return all_of(at_most(limits()), equal(closed_forms()))

"""When one-run auditing is tight: the paper's Section 5.2 and Appendices C.2, C.3 and C.5."""

from collections.abc import Sequence
from functools import cache, reduce
from itertools import product
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from ledger.cases.families import SIZE, families
from ledger.cases.games import classic_law
from ledger.cases.laplace import laplace_by_quadrature, laplace_success
from ledger.cases.many_guesses import bounds_tend
from ledger.cases.small_channels import (
    LN3,
    graded_response,
    random_table,
    randomized_response,
    uneven_response,
)
from ledger.machine.comparisons import at_most, equal, same_answers
from ledger.machine.entries import correction, explained, mutants, remark, statement
from ledger.machine.findings import Cases, Finding, all_of, each
from ledger.machine.mutants import WEAKER, replaced, varied
from orabook.studies.success import probably_approximately_rr, success_given_others
from oralib import Channel, ThresholdGuesser, channel, epsilon_lower_bound, p, p_inv
from oralib.games import one_run_law
from oralib.mechanisms import (
    AllOrNothing,
    CountInSets,
    LocalRandomizedResponse,
    NameAndShame,
    Xor,
    XorRandomizedResponse,
    sign_vectors,
)

__all__ = [
    "approaches_randomized_response",
    "bounds_approach_the_efficacy",
    "local_algorithms_are_tight",
    "one_run_simulates_classic",
    "perfect_if_some_function_exists",
    "perfect_only_for_randomized_response",
    "shares_decide",
    "tight_if_many_are_exposed",
]


@cache
def _families_are_the_mechanisms() -> Finding:
    """Find whether families of few elements have the efficacies of the mechanisms' tables."""
    members: dict[str, tuple[Any, int]] = {
        "LRR_1": (LocalRandomizedResponse(1.0), 3),
        "XOR": (Xor(), 3),
        "AON, p = 0.25": (AllOrNothing(0.25), 3),
        "1 named": (NameAndShame(), 4),
        "CIS_2": (CountInSets(2), 6),
    }
    return equal(
        (f"{name}, k = {k}", families()[name].efficacy(n, k), channel(m, n).optimal_efficacy(k))
        for name, (m, n) in members.items()
        for k in range(1, n + 1)
    )


@cache
def _tight_families() -> dict[str, bool]:
    """True if E*_K tends to p(ε) for every K: then it does so for some K that grows with n."""
    return {
        name: all(
            abs(family.efficacy(SIZE, k) - p(family.epsilon)) < 1e-12
            for k in (1, 10, 100, 10**3, 2 * 10**4)
        )
        for name, family in families().items()
    }


#: Values of a below ε(M), as shares of it.
_SHARES_OF_EPSILON = (0.5, 0.9, 0.97, 0.99, 0.999)


@statement(
    "thm:condition-for-tightness-of-ora-with-abstentions", "Theorems 5.3 and C.11", "closed form"
)
@mutants(
    replaced(
        "numbers",
        at_least_one=(1,),
        at_least_two=(2,),
        at_least_30=(30,),
        at_least_500=(500,),
        at_least_1000=(1000,),
        at_least_5001=(5001,),
        at_least_9999=(9999,),
    ),
    replaced(
        "shares", up_to_97_per_cent_of_ε=(0.5, 0.9, 0.97), ε_and_more=(*_SHARES_OF_EPSILON, 1.03)
    ),
    varied("certainty", 1e-6),
    replaced("sense", in_mean="in mean"),
)
@remark("Tried with up to 10,000 exposed elements; the effect of a larger constant cannot be seen.")
def tight_if_many_are_exposed(
    numbers: Sequence[int] = (1, 10, 100, 1000, 10_000),
    shares: Sequence[float] = _SHARES_OF_EPSILON,
    certainty: float = 1.0,
    sense: str = "in probability",
) -> Finding:
    """ORA is tight if and only if, for every a < ε(M), the number of elements with a loss of at
    least a tends to infinity in probability.
    """
    answers = {}
    for name, family in families().items():
        # No output has a loss above ε; below an infinite ε we try some finite losses.
        finite = np.isfinite(family.epsilon)
        losses = [x * family.epsilon for x in shares] if finite else [1.0, 5.0, 30.0]
        if sense == "in mean":
            claimed = all(family.mean_number(SIZE, a) >= max(numbers) for a in losses)
        else:
            chances = [family.at_least(SIZE, a, m) for a in losses for m in numbers]
            claimed = bool(min(chances) >= certainty - 1e-12)
        answers[name] = (claimed, _tight_families()[name])
    return all_of(_families_are_the_mechanisms(), same_answers(answers))


@cache
def _local_parts() -> dict[str, Channel]:
    """Sub-algorithms of local algorithms, as tables of one element."""
    return {
        "LRR": channel(LocalRandomizedResponse(LN3), 1),
        "graded": graded_response((1.5, 1.48, 0.2), (0.1, 0.3, 0.6)),
        "random": random_table(1, 6, seed=8),
    }


@statement("theorem:ora-is-tight-for-local-algorithms", "Corollary 5.4", "closed form")
def local_algorithms_are_tight(tau: float = 1.0, privacy_level: float = 1.0) -> Finding:
    """ORA is tight for local algorithms: guesses where the loss is ε, if that has a positive
    probability, are right with probability p(ε), and there are more and more of them.
    """
    findings = []
    for table in _local_parts().values():
        is_guessed = np.abs(table.privacy_loss[:, 0]) >= tau * table.epsilon * (1 - 1e-12)
        chance = float(table.probability[is_guessed].sum())
        right_chance = float((table.probability * table.guess_accuracy[:, 0])[is_guessed].sum())
        findings.append(Finding(chance > 0, f"an element is guessed with probability {chance:.3g}"))
        if chance > 0:
            findings.append(bounds_tend(right_chance / chance, privacy_level * table.epsilon))
    for epsilon in (0.5, 2.0):  # Local Laplace, where no output has a loss above ε
        success, chance = laplace_success(epsilon, tau * epsilon) if tau <= 1 else (0.5, 0.0)
        findings.append(
            Finding(chance > 0, f"an element of LLP is guessed with probability {chance:.3g}")
        )
        findings.append(bounds_tend(success, privacy_level * epsilon))
    return all_of(*findings)


@cache
def _mechanisms_with_guessers() -> list[tuple[float, bool, float]]:
    """(ε, is the mechanism with its guesser LRR_ε?, efficacy) of all guessers of small tables."""
    signs = sign_vectors(2)
    accuracy = (signs[:, None, :] == signs[None]).mean(axis=2)
    rows = []
    for epsilon in (0.0, 0.5, LN3, 2.0):
        response = randomized_response(2, p(epsilon))
        parity = channel(XorRandomizedResponse(epsilon), 2)
        for table in (response, parity.table):
            for guesser in product(range(4), repeat=len(table)):
                composed = np.zeros((4, 4))
                np.add.at(composed, list(guesser), table)
                is_response = bool(np.allclose(composed, response, atol=1e-9))
                rows.append((epsilon, is_response, float((composed * accuracy).sum() / 4)))
    return rows


@statement("lem:perfect-efficacy-iff-lrr", "Lemma C.7")
@correction("For ε(M) > 0; at ε(M) = 0 every guesser has efficacy 1/2.", least=0.5)
@mutants(varied("privacy_level", 1), replaced("least", from_0_on=0.0))
@remark("Tried with every guesser of two elements, on randomized response and on the parity.")
def perfect_only_for_randomized_response(least: float = 0.0, privacy_level: float = 1.0) -> Finding:
    """A guesser has efficacy p(ε(M)) if and only if mechanism and guesser together are LRR_ε(M)."""
    rows = [row for row in _mechanisms_with_guessers() if row[0] >= least]
    for epsilon, is_response, efficacy in rows:
        perfect = abs(efficacy - p(privacy_level * epsilon)) < 1e-9
        if perfect != is_response:
            contradiction = "perfect but not LRR" if perfect else "LRR but not perfect"
            return Finding(False, f"for ε = {epsilon:.4g} a guesser is {contradiction}")
    return Finding(True, f"true of all {len(rows)} guessers")


@cache
def _tables_to_post_process() -> dict[str, Channel]:
    """Tables of two elements, some of which a function turns into randomized response."""
    tables = {"one output": Channel(np.ones((1, 4)))}
    for epsilon in (0.0, 0.5, LN3):
        response = randomized_response(2, p(epsilon))
        tables[f"LRR_{epsilon:.3g}"] = Channel(response)
        tables[f"LRR_{epsilon:.3g}, split and turned"] = Channel(
            np.vstack([0.3 * response[::-1], 0.7 * response[::-1]])
        )
        tables[f"XRR_{epsilon:.3g}"] = channel(XorRandomizedResponse(epsilon), 2)
    unequal = [randomized_response(1, p(epsilon)) for epsilon in (1.0, 0.99)]
    tables["LRR of 1 and 0.99"] = Channel(_product(unequal))
    tables["random"] = random_table(2, 4, seed=5)
    return tables


@cache
def _some_function_makes_response(name: str, own_coins: bool) -> bool:
    """True if a function of a table's output, with or without its own coins, is LRR_ε(M)."""
    table = _tables_to_post_process()[name]
    goal = randomized_response(2, p(table.epsilon))
    outputs = len(table.table)
    values = len(goal)
    if not own_coins:
        # All functions at once: what each output becomes, one function per row.
        chosen = np.indices((values,) * outputs).reshape(outputs, -1).T
        tables = np.eye(values)[:, chosen] @ table.table
        return bool((np.abs(tables - goal[:, None]).max(axis=(0, 2)) < 1e-9).any())
    # The function is a matrix F of probabilities: F @ table = goal, each column adds up to 1.
    rows = np.vstack(
        [np.kron(np.eye(values), table.table.T), np.kron(np.ones((1, values)), np.eye(outputs))]
    )
    limits = np.r_[goal.ravel(), np.ones(outputs)]
    program = optimize.linprog(np.zeros(values * outputs), A_eq=rows, b_eq=limits, method="highs")
    return bool(program.status == 0)


@statement(
    "prop:ora-has-perfect-efficacy-iff-local-randomized-response",
    "Proposition C.8",
    "linear program",
)
@mutants(varied("privacy_level", 1), replaced("own_coins", none=False))
@remark(
    "This holds for all ε(M): at 0, where every guesser has efficacy 1/2, fresh coins are LRR_0."
)
def perfect_if_some_function_exists(privacy_level: float = 1.0, own_coins: bool = True) -> Finding:
    """The best efficacy is p(ε(M)) if and only if some function of the output, which may toss its
    own coins, turns the mechanism into LRR_ε(M).
    """
    answers = {}
    for name, table in _tables_to_post_process().items():
        perfect = abs(table.optimal_efficacy() - p(privacy_level * table.epsilon)) < 1e-9
        answers[name] = (perfect, _some_function_makes_response(name, own_coins))
    return same_answers(answers)


def _by_others(index: int, good: float, bad: float, bad_values: int) -> NDArray[Any]:
    """The truthfulness of one bit: bad at ``bad_values`` of the four values of the two others."""
    value_of_others = np.delete(sign_vectors(3) > 0, index, axis=1) @ np.array([2, 1])
    return np.where(value_of_others < bad_values, bad, good)


@statement("lem:approaches-perfect-efficacy-iff-mostly-probably-approximately-rr", "Lemma C.9")
@mutants(varied("lower", down=WEAKER), varied("upper", down=WEAKER))
@remark(
    "At ε = ∞, where no table is excluded, tables made for this attain the first inequality and "
    "approach the second."
)
@each(at_most, slack=1e-7)
def shares_decide(lower: float = 1.0, upper: float = 1.0) -> Cases:
    """If a share m of the indices is (p, a)-probably approximately RR, the efficacy is at least m p
    (P − a) with P = p(ε); if it is at most that share, at most P − (1 − m)(1 − p) a. So the
    efficacy tends to P if and only if the algorithm approaches LRR.
    """
    for epsilon, a in ((inf, 0.0), (inf, 0.25)):
        top = p(epsilon)
        # Two of three indices are good, for three of four values of the others.
        truth = [_by_others(i, top - a, 0.0, 1) for i in (0, 1)] + [np.zeros(8)]
        table = uneven_response(np.column_stack(truth))
        share = float(probably_approximately_rr(table, epsilon, 0.75, a).mean())
        success = float(success_given_others(table).mean())
        yield f"lower, P = {top:.3g}", lower * share * 0.75 * (top - a), success
        # One of three indices is not good, for exactly two of four values of the others.
        truth = [np.full(8, top), np.full(8, top), _by_others(2, top, top - 0.2, 2)]
        table = uneven_response(np.column_stack(truth))
        values = 0.5 + 1e-9
        gap = 0.2 - 1e-9
        share = float(probably_approximately_rr(table, epsilon, values, gap).mean())
        success = float(success_given_others(table).mean())
        limit = top - upper * (1 - share) * (1 - values) * gap
        yield f"upper, P = {top:.3g}", success, limit


#: Shares of indices that are coins, in the limit; the others are randomized response.
_COINS = {"n^(-1/2)": 0.0, "none": 0.0, "1%": 0.01, "2%": 0.02, "half": 0.5, "all": 1.0}


def _product(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The table of independent parts."""
    return reduce(lambda one, other: np.kron(one, other), parts)


@statement("thm:condition-for-tightness-without-abstentions", "Theorem C.10", "closed form")
@mutants(varied("share", 0.1), replaced("share", more_than_half=0.51))
@remark("Tried on algorithms that are randomized response in some indices and coins in others.")
def approaches_randomized_response(share: float = 1.0) -> Finding:
    """Without abstentions ORA is tight if and only if the algorithm, after some post-processing,
    approaches LRR: in a share of indices that tends to 1.
    """
    response = randomized_response(1, p(1.0))
    coin = np.full((2, 2), 0.5)

    def structure() -> Any:
        for coins in (0, 1, 2, 4):
            table = Channel(_product([response] * (4 - coins) + [coin] * coins), sign_vectors(4))
            yield f"{coins} coins of 4", table.optimal_efficacy(), p(1.0) - coins / 4 * (p(1) - 0.5)
            good = float(probably_approximately_rr(table, 1.0, 1.0, 1e-9).mean())
            yield f"{coins} coins of 4, share", good, 1 - coins / 4

    answers = {}
    for name, coins in (*_COINS.items(), ("half of what the share leaves", (1 - share) / 2)):
        efficacy = p(1.0) - coins * (p(1.0) - 0.5)
        answers[f"coins: {name}"] = (1 - coins >= share - 1e-12, abs(efficacy - p(1.0)) < 1e-9)
    return all_of(equal(structure()), same_answers(answers))


@statement("lem:bounds-approach-efficacy-for-local-algorithms", "Lemma C.14", "closed form")
@correction(
    "For β in (0, 1), and an efficacy below 1; at β = 0 every bound is 0, and at efficacy 1 every "
    "bound is finite although the privacy level is infinite.",
    betas=(1e-6, 0.05, 0.5, 0.9),
    perfect=False,
)
@mutants(replaced("betas", with_0=(0.0, 0.05)), replaced("perfect", efficacy_1_too=True))
def bounds_approach_the_efficacy(
    betas: Sequence[float] = (0.0, 0.05, 0.5, 0.9), perfect: bool = True, privacy_level: float = 1.0
) -> Finding:
    """For local algorithms and every β in [0, 1), the bounds without abstentions tend to p^-1(E)
    for the efficacy E.
    """
    findings = []
    successes = [table.optimal_efficacy() for table in _local_parts().values()]
    for success in (*successes, laplace_by_quadrature(2.0)):
        goal = privacy_level * p_inv(success)
        if 0.0 in betas:
            # No q > 0 has P[Bin(r, q) >= v] <= 0, so the bound at β = 0 is that of the empty set.
            findings.append(
                Finding(goal == 0, f"for β = 0 the bound is 0 for every n, not {goal:.4g}")
            )
        findings.append(bounds_tend(success, goal, [beta for beta in betas if beta > 0]))
    if perfect:
        r = 10**12
        gap = p_inv(1.0) - epsilon_lower_bound(r, r)
        far = f"for efficacy 1 and r = {r:g} the bound is still {gap} away from its limit"
        findings.append(Finding(bool(gap < 1), far))
    return all_of(*findings)


@statement("text:one-run-simulates-classic", "Section 5.2, before Corollary 5.4")
@explained("05-efficacy#paper-corollary-5-4")
@mutants(replaced("rounds", one_more=1), replaced("local", elements_that_mix=False))
@each(equal)
def one_run_simulates_classic(rounds: int = 0, local: bool = True) -> Cases:
    """One-run auditing of a local algorithm simulates classic auditing of its sub-algorithm: the
    counts have the same law.
    """
    for name, part in _local_parts().items():
        for n, tau in product((1, 2, 3), (0.0, 0.5, 1.0)):
            guesser = ThresholdGuesser(tau * part.epsilon)
            table = Channel(_product([part.table] * n))
            if not local:  # half the time the first element's part stands for all
                first = np.repeat(part.table, 2 ** (n - 1), axis=1)
                table = Channel(np.vstack([0.5 * table.table, 0.5 * first]))
            of_one_run = np.pad(one_run_law(table, guesser), (0, rounds))
            of_rounds = classic_law(part, guesser, n + rounds)
            yield f"{name}, n = {n}", float(np.abs(of_one_run - of_rounds).max()), 0.0

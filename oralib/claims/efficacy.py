"""Gaps, optimal efficacy and tightness: the paper's Sections 4 and 5, Appendices B and C."""

from collections.abc import Callable, Iterable
from itertools import pairwise, product
from math import exp, inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, special, stats

from oralib.bounds import epsilon_lower_bound, p, p_inv
from oralib.channel import Channel, channel
from oralib.claims.ledger import (
    CLOSED,
    EXACT,
    MONTE_CARLO,
    QUADRATURE,
    Finding,
    accuracy_values,
    at_most,
    binomial_counts,
    claim,
    equal,
    mean_bound,
    near,
    same_answers,
    tends,
)
from oralib.claims.tables import LN3, randomized_response, shown_or_noisy, zoo
from oralib.experiments import local_laplace
from oralib.games import best_mean, one_run, one_run_law
from oralib.guessers import ThresholdGuesser
from oralib.laws import local_laplace_law
from oralib.laws import mean_bound as mean_bound_of_law
from oralib.mechanisms import (
    AllOrNothing,
    LocalLaplace,
    NameAndShame,
    Xor,
    sign_vectors,
)

Function = Callable[..., Any]


def _steps(table: Channel) -> tuple[bool, bool, bool]:
    """Which steps of the chain from the efficacy to p(ε) are strict."""
    chain = [table.ae_ac_ddp, table.ac_ddp, p(table.ddp), p(table.epsilon)]
    return tuple(bool(b - a > 1e-9) for a, b in pairwise(chain))  # type: ignore[return-value]


@claim(
    25,
    "sec:the-gaps",
    "Section 4",
    "Three gaps: few exposed elements (NAS), rare bad outputs (AON), interference (XOR); each "
    "example loses at its own step of the chain and at no other.",
    EXACT,
    "04-the-gaps#ch-gaps",
    stated=("NAS", "AON", "XOR"),
    broken=("AON", "NAS", "XOR"),
)
def each_gap_has_its_example(examples: tuple[str, str, str]) -> Finding:
    answers = {}
    for place, name in enumerate(examples):
        strict = _steps(zoo()[f"{name} n=3"])
        answers[f"{name} at step {place + 1}"] = (True, strict == tuple(np.eye(3)[place] == 1))
    return same_answers(answers)


@claim(
    26,
    "thm:optimal-efficacy-without-abstentions",
    "Theorems 5.1 and C.1",
    "Without abstentions the best efficacy is AE-AC-DDP, which is at most AC-DDP, p(DDP), p(DP).",
    EXACT,
    "05-efficacy#thm-eff-all",
    stated="ae_ac_ddp",
    broken="ac_ddp",
)
def best_efficacy_of_all(notion: str) -> Finding:
    def cases() -> Any:
        for name, table in zoo().items():
            yield name, getattr(table, notion), best_mean(table, accuracy_values(table.n, table.n))
            chain = [table.ae_ac_ddp, table.ac_ddp, p(table.ddp), p(table.epsilon)]
            yield name, float(min(np.diff(chain).min(), 0.0)), 0.0

    return equal(cases())


def _at_least_kth(loss: NDArray[Any], k: int) -> NDArray[Any]:
    """Guess every element whose loss is at least the k-th largest."""
    size = np.abs(loss)
    least = np.sort(size, axis=1)[:, loss.shape[1] - k, None]
    return np.where(size >= least, np.where(loss > 0, -1, 1), 0)


def _exactly_k(loss: NDArray[Any], k: int, largest: bool = True) -> NDArray[Any]:
    """Guess k elements with the largest (or smallest) losses, the first among equals."""
    order = np.argsort(-np.abs(loss) if largest else np.abs(loss), axis=1, kind="stable")
    chosen = np.zeros(loss.shape, dtype=bool)
    np.put_along_axis(chosen, order[:, :k], True, axis=1)
    return np.where(chosen, np.where(loss > 0, -1, 1), 0)


@claim(
    27,
    "thm:optimal-efficacy-with-abstentions",
    "Theorems 5.2 and C.5",
    "With k guesses the best efficacy is AE-AC-DDP of the k largest losses, reached by guessing "
    "where the loss is at least the k-th largest.",
    EXACT,
    "corrections#prop-corr-ties",
    stated=_at_least_kth,
    broken=lambda loss, k: _exactly_k(loss, k, largest=False),
    corrected=_exactly_k,
    correction="Reached by guessing exactly k of them: where losses are tied, as always in NAS, "
    "the threshold takes more than k and does worse.",
)
def best_efficacy_of_k(guess: Function) -> Finding:
    def cases() -> Any:
        for name, table in zoo().items():
            # Without rounding errors, so that ties are ties.
            loss = np.nan_to_num(table.privacy_loss, posinf=1e3, neginf=-1e3).round(9)
            for k in range(1, table.n + 1):
                guesses = guess(loss, k)
                right = (guesses[:, None, :] == table.signs[None]).sum(axis=2)
                accuracy = right / np.abs(guesses).sum(axis=1)[:, None]
                mean = float((table.table * accuracy).sum() / table.table.shape[1])
                best = best_mean(table, accuracy_values(table.n, k))
                yield f"{name}, k = {k}", mean, best
                yield f"{name}, k = {k}", table.optimal_efficacy(k), best

    return equal(cases())


#: At a million elements: level, chance of at least m exposed ones, best efficacy of 1000 guesses.
_FAMILIES: dict[str, tuple[float, Function, float]] = {
    "LRR_1": (1.0, lambda m: 1.0, p(1.0)),
    "NAS": (inf, lambda m: float(m <= 1), 0.5 + 0.5 / 1000),
    "AON": (inf, lambda m: 0.25, 0.625),
    "XOR": (inf, lambda m: 0.0, 0.5),
    "CIS_2": (inf, lambda m: float(stats.binom.sf((m - 1) // 2, 500_000, 0.5)), 1.0),
}


@claim(
    28,
    "thm:condition-for-tightness-of-ora-with-abstentions",
    "Theorems 5.3 and C.11",
    "ORA is tight if and only if the number of elements with a loss near ε(M) tends to infinity "
    "in probability.",
    CLOSED,
    "05-efficacy#thm-eff-tight",
    stated=1000,
    broken=1,
)
def tight_if_many_are_exposed(exposed: int) -> Finding:
    return same_answers(
        {
            name: (chance(exposed) > 0.99, abs(efficacy - p(level)) < 0.01)
            for name, (level, chance, efficacy) in _FAMILIES.items()
        }
    )


@claim(
    29,
    "cor:ora-is-tight-for-local-algorithms",
    "Corollary 5.4",
    "ORA is tight for local algorithms: on Local Laplace, guessing where the loss is ε.",
    MONTE_CARLO,
    "05-efficacy#cor-eff-local",
    stated=2.0,
    broken=0.0,
)
def local_laplace_is_tight(tau: float) -> Finding:
    means = []
    for n in (10**2, 10**3, 10**4, 10**5):
        counts = one_run(LocalLaplace(2.0), ThresholdGuesser(tau), n, trials=40, seed=1)
        means.append(float(np.mean(epsilon_lower_bound(counts.v, counts.r))))
    return tends(means, 2.0, 0.05)


def _pairs() -> Iterable[tuple[NDArray[Any], NDArray[Any]]]:
    rng = np.random.default_rng(6)
    return (rng.dirichlet(np.ones(6), 2) for _ in range(50))  # type: ignore[misc]


@claim(
    42,
    "lem:log-likelihood-ratio-and-total-variation-distance",
    "Lemma C.3",
    "The mean of p(|ℓ|) under P plus that under Q is 1 plus their total variation distance.",
    EXACT,
    "C-efficacy-in-detail#lem-effc-identities",
    stated=lambda distance: 1 + distance,
    broken=lambda distance: 1 + 2 * distance,
)
def accuracy_and_distance(formula: Function) -> Finding:
    def cases() -> Any:
        for index, (one, other) in enumerate(_pairs()):
            accuracy = special.expit(np.abs(np.log(one / other)))
            distance = np.abs(one - other).sum() / 2
            yield f"pair {index}", float((one + other) @ accuracy), formula(float(distance))

    return equal(cases())


@claim(
    43,
    "prop:optimal-efficacy-and-total-variation-distance",
    "Proposition C.4",
    "The best efficacy without abstentions is 1/2 plus half the mean total variation distance.",
    EXACT,
    "C-efficacy-in-detail#prop-effc-tv",
    stated=0.5,
    broken=0.25,
)
def efficacy_is_total_variation(factor: float) -> Finding:
    return equal(
        (
            name,
            0.5 + factor * float(table.total_variation.mean()),
            best_mean(table, accuracy_values(table.n, table.n)),
        )
        for name, table in zoo().items()
    )


@claim(
    44,
    "lem:efficacy-is-mean-of-success-probabilities",
    "Lemma C.6",
    "Without abstentions, the efficacy is the mean over elements of the success probability.",
    EXACT,
    "C-efficacy-in-detail#lem-effc-mean",
    stated=0.0,
    broken=LN3,
)
def efficacy_is_mean_success(tau: float) -> Finding:
    def cases() -> Any:
        for name, table in {**zoo(), "shown or noisy": shown_or_noisy()}.items():
            guesses = ThresholdGuesser(tau).guess(table.privacy_loss)
            law = one_run_law(table, ThresholdGuesser(tau))
            v, r = np.nonzero(law)
            mean = float(law[v, r] @ (v / np.maximum(r, 1)))
            right = (guesses[:, None, :] == table.signs[None]).astype(float)
            success = (table.table[:, :, None] * right).sum(axis=(0, 1)) / table.table.shape[1]
            yield name, mean, float(success.mean())

    return equal(cases())


@claim(
    45,
    "lem:perfect-efficacy-iff-lrr",
    "Lemma C.7 and Proposition C.8",
    "A guesser has efficacy p(ε(M)) if and only if mechanism and guesser together are LRR_ε(M).",
    EXACT,
    "C-efficacy-in-detail#thm-effc-perfect",
    stated=((0.0, LN3), p),
    broken=((LN3,), lambda epsilon: 0.5),
    corrected=((LN3, 2.0), p),
    correction="For ε(M) > 0; at ε(M) = 0 every guesser has efficacy 1/2. (The proposition that "
    "follows from it, on the existence of a guesser, is right for all ε.)",
)
def perfect_only_for_randomized_response(setting: tuple[tuple[float, ...], Function]) -> Finding:
    levels, target = setting
    signs = sign_vectors(2)
    for epsilon in levels:
        table = randomized_response(2, p(epsilon))
        # Every way to turn an output into guesses of both elements.
        for guesser in product(range(4), repeat=4):
            composed = np.zeros((4, 4))
            np.add.at(composed, list(guesser), table)
            right = (signs[:, None, :] == signs[None]).mean(axis=2)
            perfect = abs((composed * right).sum() / 4 - target(epsilon)) < 1e-9
            if perfect != bool(np.allclose(composed, table)):
                words = "perfect, and not LRR" if perfect else "LRR, and not perfect"
                return Finding(False, f"ε = {epsilon:.4g}, guesser {guesser}: {words}")
    return Finding(True, f"{256 * len(levels)} guessers agree")


@claim(
    46,
    "prop:ora-efficacy-for-nas",
    "Proposition B.3",
    "Name and Shame with k guesses has efficacy 1/2 + 1/(2k), which tends to 1/2 with k.",
    EXACT,
    "B-gaps-in-detail#prop-gapsb-nas",
    stated=lambda n, k: 0.5 + 0.5 / k,
    broken=lambda n, k: 0.5 + 0.5 / n,
)
def name_and_shame(formula: Function) -> Finding:
    def cases() -> Any:
        for n in (2, 3, 4, 5):
            for k in range(1, n + 1):
                best = best_mean(channel(NameAndShame(), n), accuracy_values(n, k))
                yield f"n = {n}, k = {k}", formula(n, k), best

    return equal(cases())


@claim(
    47,
    "cor:ora-is-not-tight-for-nas",
    "Corollary B.4",
    "ORA is not tight for Name and Shame: its mean bound does not grow with the number of guesses.",
    CLOSED,
    "B-gaps-in-detail#cor-gapsb-nas",
    stated=0.5,
    broken=1.0,
)
def name_and_shame_is_not_tight(other_success: float) -> Finding:
    def mean(k: int) -> float:
        v, weight = binomial_counts(k - 1, other_success)
        return float(weight @ epsilon_lower_bound(v + 1, k))

    return at_most((f"k = {k}", mean(k), 1.0) for k in (1, 2, 5, 10, 100, 10**4, 10**6))


@claim(
    48,
    "prop:ora-efficacy-for-aon",
    "Proposition B.6",
    "All or Nothing has efficacy (1 + p)/2, for any number of guesses.",
    EXACT,
    "B-gaps-in-detail#prop-gapsb-aon",
    stated=lambda chance: (1 + chance) / 2,
    broken=lambda chance: 0.5 + chance**2,
)
def all_or_nothing(formula: Function) -> Finding:
    def cases() -> Any:
        for chance, n in product((0.1, 0.25, 0.7), (1, 2, 3)):
            for k in range(1, n + 1):
                best = best_mean(channel(AllOrNothing(chance), n), accuracy_values(n, k))
                yield f"p = {chance}, n = {n}, k = {k}", formula(chance), best

    return equal(cases())


@claim(
    49,
    "cor:ora-is-not-tight-for-aon",
    "Corollary B.7",
    "ORA is not tight for All or Nothing: the bound is large only if the data are released.",
    CLOSED,
    "B-gaps-in-detail#cor-gapsb-aon",
    stated=0.25,
    broken=1.0,
)
def all_or_nothing_is_not_tight(chance: float) -> Finding:
    def reaches(n: int) -> float:
        v, weight = binomial_counts(n, 0.5)
        return chance + (1 - chance) * float(weight @ (epsilon_lower_bound(v, n) >= 3))

    return at_most((f"chance of a bound of 3, n = {n}", reaches(n), 0.9) for n in (10**2, 10**5))


@claim(
    50,
    "prop:ora-efficacy-for-xor",
    "Proposition B.9",
    "XOR of n >= 2 bits has efficacy 1/2, for any number of guesses.",
    EXACT,
    "B-gaps-in-detail#prop-gapsb-xor",
    stated=(2, 3, 4, 5),
    broken=(1, 2, 3),
)
def xor(sizes: tuple[int, ...]) -> Finding:
    return equal(
        (f"n = {n}, k = {k}", best_mean(channel(Xor(), n), accuracy_values(n, k)), 0.5)
        for n in sizes
        for k in range(1, n + 1)
    )


@claim(
    51,
    "cor:ora-is-not-tight-for-xor",
    "Corollary B.10",
    "ORA is not tight for XOR: every guess is right with probability 1/2, and the bound is 0 but "
    "for rare luck.",
    CLOSED,
    "B-gaps-in-detail#cor-gapsb-xor",
    stated=0.5,
    broken=p(1.0),
)
def xor_is_not_tight(success: float) -> Finding:
    return at_most((f"n = {n}", mean_bound(n, success), 0.05) for n in (10, 10**3, 10**5))


@claim(
    52,
    "lem:approaches-perfect-efficacy-iff-mostly-probably-approximately-rr",
    "Lemma C.9",
    "An algorithm close to RR in most indices has efficacy close to p(ε): with shares "
    "m = p = √((P - δ)/(P - 3δ/4)) and a = δ/2, m p (P - a) is at least P - δ.",
    CLOSED,
    "C-efficacy-in-detail#thm-effc-approach",
    stated=0.75,
    broken=0.25,
)
def shares_suffice(part: float) -> Finding:
    def cases() -> Any:
        for level, delta in product((0.5, 0.75, 0.9, 1.0), (0.01, 0.1, 0.3)):
            share = sqrt((level - delta) / (level - part * delta))
            name = f"P = {level}, δ = {delta}"
            yield name, level - delta, share * share * (level - delta / 2)

    return at_most(cases(), slack=1e-12)


@claim(
    53,
    "thm:condition-for-tightness-without-abstentions",
    "Theorem C.10",
    "Without abstentions ORA is tight if and only if the algorithm approaches LRR, in a share of "
    "indices that tends to 1.",
    CLOSED,
    "C-efficacy-in-detail#thm-effc-approach",
    stated=0.999,
    broken=0.4,
)
def approaches_randomized_response(share: float) -> Finding:
    # LRR_1, but the first indices are coins: a vanishing share of them, or half of them.
    answers = {}
    for name, coins in {"n^(-1/2) coins": 1e-4, "half coins": 0.5, "no coins": 0.0}.items():
        efficacy = (1 - coins) * p(1.0) + coins / 2
        answers[name] = (1 - coins >= share, abs(efficacy - p(1.0)) < 1e-3)
    return same_answers(answers)


@claim(
    54,
    "prop:local-laplace-efficacy-without-abstentions",
    "Proposition C.13",
    "Local Laplace without abstentions has efficacy 1 - exp(-ε/2)/2.",
    QUADRATURE,
    "C-efficacy-in-detail#prop-effc-laplace",
    stated=lambda epsilon: 1 - exp(-epsilon / 2) / 2,
    broken=lambda epsilon: 1 - exp(-epsilon) / 2,
)
def local_laplace_efficacy(formula: Function) -> Finding:
    def cases() -> Any:
        for epsilon in (0.1, 1.0, 2.0, 8.0):

            def larger(x: float, scale: float = 2 / epsilon) -> float:
                return max(stats.laplace.pdf(x, s, scale) for s in (-1, 1)) / 2

            mass = integrate.quad(larger, 0, 1)[0] + integrate.quad(larger, 1, inf)[0]
            yield f"ε = {epsilon}", formula(epsilon), 2 * mass

    return equal(cases(), 1e-7)


@claim(
    55,
    "fig:results-of-ora-for-local-laplace",
    "Figure 4",
    "The bounds of ORA of Local Laplace without abstentions stay below ε, at the level of its "
    "efficacy.",
    MONTE_CARLO,
    "C-efficacy-in-detail#fig-effc-laplace",
    stated=lambda epsilon, n: mean_bound_of_law(local_laplace_law(epsilon, n)),
    broken=lambda epsilon, n: mean_bound(n, p(epsilon)),
)
def figure_of_local_laplace(curve: Function) -> Finding:
    table = local_laplace((1.0, 2.0, 4.0), n=2000, trials=200, seed=1)
    return near(
        (f"ε = {row['x']:g}", row["bound"], row["bound_se"], curve(row["x"], 2000))
        for row in table.rows()
    )


@claim(
    56,
    "lem:bounds-approach-efficacy-for-local-algorithms",
    "Lemma C.14",
    "For local algorithms and every β in [0, 1), the bounds without abstentions tend to the level "
    "p^-1(E) of the efficacy.",
    CLOSED,
    "C-efficacy-in-detail#lem-effc-bounds",
    stated=((0.0, 0.05), lambda q: p_inv(q)),
    broken=((0.05,), lambda q: 2.0),
    corrected=((0.05, 0.5), lambda q: p_inv(q)),
    correction="For β in (0, 1), and an efficacy below 1; at β = 0 every bound is 0.",
)
def bounds_approach_the_efficacy(setting: tuple[tuple[float, ...], Function]) -> Finding:
    levels, limit = setting
    success = 1 - exp(-1) / 2  # of Local Laplace at ε = 2
    finding = Finding(False, "no level")
    for beta in levels:
        # No q > 0 has P[Bin(r, q) >= v] <= 0, so the bound at β = 0 is that of the empty set.
        means = [mean_bound(n, success, beta) if beta else 0.0 for n in (10**2, 10**4, 10**6)]
        finding = tends(means, limit(success), 0.02)
        if not finding.holds:
            return Finding(False, f"β = {beta:g}: {finding.evidence}")
    return finding

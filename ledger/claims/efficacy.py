"""The best efficacy, by its theorems and for Local Laplace: Section 5.1 and Appendices C.1, C.4."""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from math import exp
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from ledger.cases.counts import mean_bound
from ledger.cases.laplace import laplace_by_quadrature
from ledger.cases.many_guesses import bounds_tend
from ledger.cases.small_channels import LN3, all_tables, best_accuracy, shown_or_noisy
from ledger.machine.comparisons import at_most, equal, near
from ledger.machine.entries import correction, explained, mutants, remark, statement
from ledger.machine.findings import Cases, Finding, Function, all_of, each
from ledger.machine.mutants import WEAKER, replaced, varied
from orabook.experiments import local_laplace
from orabook.studies.success import after_guesses, success_given_others
from oralib.bounds import p, p_inv
from oralib.games import one_run_law
from oralib.guessers import ThresholdGuesser

__all__ = [
    "accuracy_and_distance",
    "best_efficacy_of_all",
    "best_efficacy_of_k",
    "efficacy_is_mean_success",
    "efficacy_is_total_variation",
    "figure_of_local_laplace",
    "local_laplace_efficacy",
    "optimal_guesser_of_k",
]


def _chain(name: str, lowest: float, factors: Sequence[float]) -> Any:
    """The steps of Theorem 5.1 or 5.2 as cases for at_most, each limit times a factor."""
    table = all_tables()[name]
    values = [lowest, table.ac_ddp, p(table.ddp), p(table.epsilon)]
    for step, (low, high) in enumerate(pairwise(values)):
        yield f"{name}, inequality {step + 1}", low, factors[step] * high


@statement("thm:optimal-efficacy-without-abstentions", "Theorems 5.1 and C.1")
@mutants(varied("first", up=WEAKER), varied("second", up=WEAKER), varied("third", up=WEAKER))
def best_efficacy_of_all(
    rate: float = 1.0, first: float = 1.0, second: float = 1.0, third: float = 1.0
) -> Finding:
    """Without abstentions the best efficacy is AE-AC-DDP, which is at most AC-DDP, p(DDP),
    p(DP).
    """

    def equalities() -> Any:
        for name, table in all_tables().items():
            accuracy = special.expit(rate * np.abs(table.privacy_loss)).mean(axis=1)
            yield name, float(table.probability @ accuracy), best_accuracy(name, table.n)
            yield name, table.ae_ac_ddp, best_accuracy(name, table.n)

    steps = (
        step
        for name, table in all_tables().items()
        for step in _chain(name, table.ae_ac_ddp, (first, second, third))
    )
    return all_of(equal(equalities()), at_most(steps))


def _at_least_kth(loss: NDArray[Any], k: int) -> NDArray[Any]:
    """Guess every element whose loss is at least the k-th largest."""
    size = np.abs(loss)
    kth = np.sort(size, axis=1)[:, loss.shape[1] - k, None]
    return np.where(size >= kth, np.where(loss > 0, -1, 1), 0)


def _exactly(k: int, loss: NDArray[Any], order: NDArray[Any]) -> NDArray[Any]:
    """Guess the first k elements in an order, given by the largest entries."""
    chosen = np.zeros(loss.shape, dtype=bool)
    ranked = np.argsort(-order, axis=1, kind="stable")
    np.put_along_axis(chosen, ranked[:, :k], True, axis=1)
    return np.where(chosen, np.where(loss > 0, -1, 1), 0)


#: Guesses from the losses and k, by the rule that chooses the elements.
_RULES: dict[str, Function] = {
    "all that reach the k-th": _at_least_kth,
    "exactly k": lambda loss, k: _exactly(k, loss, np.abs(loss)),
    "exactly k, the least": lambda loss, k: _exactly(k, loss, -np.abs(loss)),
    "exactly k, the first": lambda loss, k: _exactly(k, loss, np.zeros(loss.shape)),
    "one more than k": lambda loss, k: _exactly(min(k + 1, loss.shape[1]), loss, np.abs(loss)),
}


@statement("thm:optimal-efficacy-with-abstentions", "Theorems 5.2 and C.5")
@mutants(replaced("more", one_more=1, one_less=-1), varied("first", up=WEAKER))
def best_efficacy_of_k(rate: float = 1.0, more: int = 0, first: float = 1.0) -> Finding:
    """The best efficacy with at least k guesses is AE-AC-DDP of the k largest losses, which is at
    most AC-DDP, p(DDP), p(DP).
    """

    def equalities() -> Any:
        for name, table in all_tables().items():
            ranked = np.sort(special.expit(rate * np.abs(table.privacy_loss)), axis=1)
            for k in range(1, table.n + 1):
                best = best_accuracy(name, k)
                r = min(max(k + more, 1), table.n)
                notion = float(table.probability @ ranked[:, table.n - r :].mean(axis=1))
                yield f"{name}, k = {k}", notion, best
                yield f"{name}, k = {k}", table.optimal_efficacy(k), best

    steps = (
        step
        for name, table in all_tables().items()
        for k in range(1, table.n + 1)
        for step in _chain(name, table.optimal_efficacy(k), (first, 1.0, 1.0))
    )
    return all_of(equal(equalities()), at_most(steps))


@statement("text:threshold-guesser", "Section 5.1, before Theorem 5.2")
@explained("05-efficacy#paper-theorem-5-2")
@correction(
    "Guess exactly k elements, with ties broken in any way. Where the k-th loss and the next are "
    "tied, as in NAS for 2 ≤ k < n, the threshold takes more than k and may do worse.",
    guess="exactly k",
)
@mutants(
    replaced(
        "guess",
        the_least="exactly k, the least",
        the_first_k="exactly k, the first",
        one_more="one more than k",
    )
)
@each(equal)
def optimal_guesser_of_k(guess: str = "all that reach the k-th") -> Cases:
    """With at least k guesses, the guesser that sets its threshold to the k-th largest loss is
    optimal.
    """
    for name, table in all_tables().items():
        # Without rounding errors, so that ties are ties.
        loss = np.nan_to_num(table.privacy_loss, posinf=1e3, neginf=-1e3).round(9)
        for k in range(1, table.n + 1):
            guesses = _RULES[guess](loss, k)
            v = (guesses[:, None, :] == table.signs[None]).sum(axis=2)
            accuracy = v / np.abs(guesses).sum(axis=1)[:, None]
            mean = float((table.table * accuracy).sum() / table.table.shape[1])
            yield f"{name}, k = {k}", mean, best_accuracy(name, k)


def _pairs() -> list[NDArray[Any]]:
    rng = np.random.default_rng(6)
    return [rng.dirichlet(np.ones(6), 2) for _ in range(50)]


@statement("lem:log-likelihood-ratio-and-total-variation-distance", "Lemma C.3")
@each(equal)
def accuracy_and_distance(rate: float = 1.0, one: float = 1.0, distance: float = 1.0) -> Cases:
    """p(|ℓ|) is max{P, Q} / (P + Q), and its mean under P plus its mean under Q is 1 plus their
    total variation distance.
    """
    for index, (a, b) in enumerate(_pairs()):
        accuracy = special.expit(rate * np.abs(np.log(a / b)))
        identity = np.maximum(a, b) / (a + b)
        yield f"pair {index}", float(np.abs(accuracy - identity).max()), 0.0
        sum_of_means = one + distance * float(np.abs(a - b).sum() / 2)
        yield f"pair {index}", float((a + b) @ identity), sum_of_means


@statement("prop:optimal-efficacy-and-total-variation-distance", "Proposition C.4")
def efficacy_is_total_variation(base: float = 0.5, factor: float = 0.5) -> Finding:
    """The best efficacy without abstentions is 1/2 plus half the mean total variation distance."""
    return equal(
        (name, base + factor * float(table.total_variation.mean()), best_accuracy(name, table.n))
        for name, table in all_tables().items()
    )


@statement("lem:efficacy-is-mean-of-success-probabilities", "Lemma C.6")
@mutants(replaced("tau", with_abstentions=LN3))
@remark(
    "The lemma itself does not say that the guesser never abstains; its section says so before "
    "the lemma, and so does its proof."
)
@each(equal)
def efficacy_is_mean_success(tau: float = 0.0, factor: float = 1.0) -> Cases:
    """Without abstentions, the efficacy is the mean over elements of the success probability given
    the others.
    """
    for name, table in {**all_tables(), "shown or noisy": shown_or_noisy()}.items():
        guesses = ThresholdGuesser(tau).guess(table.privacy_loss)
        law = one_run_law(table, ThresholdGuesser(tau))
        v, r = np.nonzero(law)
        mean = float(law[v, r] @ (v / np.maximum(r, 1)))
        if tau == 0:
            success = success_given_others(after_guesses(table, guesses)).mean(axis=0)
        else:
            is_right = (guesses[:, None, :] == table.signs[None]).astype(float)
            success = np.einsum("os,osi->i", table.table, is_right) / 2**table.n
        yield name, mean, factor * float(success.mean())


@statement("prop:local-laplace-efficacy-without-abstentions", "Proposition C.13", "quadrature")
@each(equal, 1e-7)
def local_laplace_efficacy(half: float = 0.5, rate: float = 0.5) -> Cases:
    """Local Laplace without abstentions has efficacy 1 − exp(−ε/2)/2."""
    for epsilon in (0.1, 1.0, 2.0, 8.0):
        closed = 1 - half * exp(-rate * epsilon)
        yield f"ε = {epsilon}", closed, laplace_by_quadrature(epsilon)


@cache
def _figure_4() -> pd.DataFrame:
    return local_laplace((1.0, 2.0, 4.0, 8.0), n=10_000, trials=200, seed=1)


@statement("fig:results-of-ora-for-local-laplace", "Figure 4", "Monte Carlo")
@explained("C-efficacy-in-detail#fig-effc-laplace")
@mutants(replaced("side", above="above"))
def figure_of_local_laplace(privacy_level: float = 1.0, side: str = "below") -> Finding:
    """For Local Laplace without abstentions, the bounds of ORA stay below ε: they tend to p^-1(E)
    for its efficacy E.
    """
    rows = _figure_4().to_dict("records")
    means = []
    limits = []
    for row in rows:
        success = p(privacy_level * p_inv(laplace_by_quadrature(row["x"])))
        mean = mean_bound(10_000, success)
        means.append((f"ε = {row['x']:g}", row["bound"], row["bound_se"], mean))
        limits.append(bounds_tend(laplace_by_quadrature(row["x"]), p_inv(success)))
    below = all(row["bound"] < row["x"] for row in rows)
    return all_of(
        near(means), Finding(below == (side == "below"), "all mean bounds are below ε"), *limits[:1]
    )

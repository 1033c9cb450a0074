"""Differential privacy, distributional losses and distances, straight from their definitions."""

from functools import cache
from itertools import product
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ledger.cases.small_channels import (
    LN3,
    all_tables,
    best_accuracy,
    sampled_tables,
    uneven_response,
)
from ledger.machine.comparisons import equal
from ledger.machine.entries import correction, definition, explained, mutants, statement
from ledger.machine.findings import Cases, Finding, each
from ledger.machine.mutants import replaced, shifted
from orabook.studies.success import probably_approximately_rr
from oralib import Channel, channel, p
from oralib.mechanisms import Count, LocalRandomizedResponse, XorRandomizedResponse, sign_vectors

__all__ = [
    "distances",
    "general_loss",
    "likelihood_guess",
    "privacy_level",
    "probably_approximately",
    "relaxations",
    "spoilt_response",
]


@definition("def:differential-privacy", "Definition 2.1")
@mutants(replaced("differences", two=2, none=0))
@each(equal)
def privacy_level(differences: int = 1, factor: float = 1.0) -> Cases:
    """The privacy level is the largest log-ratio of output probabilities over datasets that differ
    in one element.
    """
    for mechanism in (LocalRandomizedResponse(LN3), XorRandomizedResponse(LN3), Count()):
        table = channel(mechanism, 3)
        differ = (table.signs[:, None] != table.signs[None]).sum(axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(table.table[:, :, None] / table.table[:, None, :])
        largest = np.nanmax(np.where(differ <= differences, ratio, -inf))
        yield repr(mechanism), factor * float(largest), mechanism.epsilon
        yield repr(mechanism), factor * float(largest), table.epsilon


def _mean_success(table: Channel, guesses: NDArray[Any]) -> float:
    """Efficacy of guesses (outputs x n) that never abstain."""
    accuracy = (guesses[:, None, :] == table.signs[None]).mean(axis=2)
    return float((table.table * accuracy).sum() / table.table.shape[1])


@statement("eq:maximum-likelihood-guesser", "Section 5")
@explained("05-efficacy#paper-section-5-guesser")
@correction(
    "It is minus that sign: the loss ln P[o | −1] / P[o | 1] is positive where −1 is the likelier "
    "value.",
    sign=-1,
)
@mutants(replaced("sign", not_looking=0), shifted("threshold", 0.03))
@each(equal)
def likelihood_guess(sign: int = 1, threshold: float = 0.0) -> Cases:
    """The best guess of an element is the sign of its distributional privacy loss."""
    for name, table in all_tables().items():
        loss = table.privacy_loss - threshold
        guesses = sign * np.sign(np.where(np.abs(loss) < 1e-12, 0.0, loss))
        guesses[guesses == 0] = 1  # a tie, or a guesser that does not look
        yield name, _mean_success(table, guesses), best_accuracy(name, table.n)


def _from_definition(table: NDArray[Any], theta: NDArray[Any], rate: float) -> dict[str, float]:
    """DDP and its averages, from sums over all datasets, loop by loop."""
    n, size = theta.shape
    datasets = list(product(range(size), repeat=n))
    weight = {d: float(np.prod([theta[i, x] for i, x in enumerate(d)])) for d in datasets}
    outputs = range(len(table))
    ddp = 0.0
    ac_ddp = 0.0
    ae_ac_ddp = 0.0
    for o in outputs:
        probability = sum(weight[d] * table[(o, *d)] for d in datasets)
        accuracy = []
        for i in range(n):
            likelihoods = [
                sum(weight[d] * table[(o, *d)] for d in datasets if d[i] == x) / theta[i, x]
                for x in range(size)
                if theta[i, x] > 0
            ]
            loss = np.log(max(likelihoods) / min(likelihoods))
            ddp = max(ddp, loss)
            accuracy.append(1 / (1 + np.exp(-rate * loss)))
        ac_ddp += probability * max(accuracy)
        ae_ac_ddp += probability * float(np.mean(accuracy))
    return {"DDP": rate * ddp, "AC-DDP": ac_ddp, "AE-AC-DDP": ae_ac_ddp}


@definition("eq:ddp-levels", "Section 5")
@explained("05-efficacy#paper-section-5-relaxations")
@mutants(replaced("order", best_of_means="best of means"))
@each(equal)
def relaxations(rate: float = 1.0, order: str = "mean of best") -> Cases:
    """DDP is the largest distributional loss, AC-DDP averages the best element's accuracy over
    outputs, AE-AC-DDP all elements' accuracy, for any product distribution. With fair coins the
    last two are what the best guesser achieves with one guess and with n guesses.
    """
    for name, sampled in sampled_tables().items():
        expected = _from_definition(sampled.table, sampled.theta, rate)
        yield f"{name}, DDP", expected["DDP"], sampled.ddp
        yield f"{name}, AC-DDP", expected["AC-DDP"], sampled.ac_ddp
        yield f"{name}, AE-AC-DDP", expected["AE-AC-DDP"], sampled.ae_ac_ddp()
    for name, table in all_tables().items():
        accuracy = special.expit(rate * np.abs(table.privacy_loss))
        ac = (
            float(table.probability @ accuracy.max(axis=1))
            if order == "mean of best"
            else float((table.probability @ accuracy).max())
        )
        yield name, ac, best_accuracy(name, 1)
        yield name, ac, table.ac_ddp
        yield name, float(table.probability @ accuracy.mean(axis=1)), table.ae_ac_ddp
        yield name, table.ae_ac_ddp, best_accuracy(name, table.n)


@definition("eq:distributional-privacy-loss", "Section 5")
@explained("05-efficacy#paper-section-5-general")
@mutants(replaced("others", uniform="uniform", likeliest="likeliest"))
@each(equal)
def general_loss(factor: float = 1.0, others: str = "drawn from Θ") -> Cases:
    """The distributional privacy loss for a product distribution Θ and values x, y of an element:
    the log-ratio of the output's probabilities given each of them, the others drawn from Θ.
    """
    for sampled in sampled_tables().values():
        n, size = sampled.theta.shape
        theta = sampled.theta.copy()
        if others == "uniform":
            theta[:] = 1 / size
        if others == "likeliest":
            theta = (theta == theta.max(axis=1, keepdims=True)).astype(float)
        for i, o in product(range(n), range(len(sampled.table))):
            likelihoods = np.zeros(size)
            for d in product(range(size), repeat=n):
                rest = [theta[j, d[j]] for j in range(n) if j != i]
                likelihoods[d[i]] += sampled.table[(o, *d)] * float(np.prod(rest))
            loss = factor * (np.log(likelihoods[:, None]) - np.log(likelihoods[None, :]))
            of_library = sampled.privacy_loss[o, i]
            yield f"|X| = {size}, n = {n}", float(np.abs(loss - of_library).max()), 0.0


@definition("def:max-divergence-total-variation-distance", "Definition C.2")
def distances(divergence: float = 1.0, half: float = 0.5) -> Finding:
    """The max-divergence, the largest ln P(x)/Q(x), is the largest ln P(A)/Q(A) over events A; the
    total variation distance, half the sum of |P(x) − Q(x)|, is the largest P(A) − Q(A).
    """
    rng = np.random.default_rng(4)
    events = np.array(list(product((0, 1), repeat=5)))[1:]

    def cases() -> Any:
        for pair in range(50):
            one, other = rng.dirichlet(np.ones(5), 2)
            distance = half * np.abs(one - other).sum()
            yield f"pair {pair}", float(distance), float((events @ (one - other)).max())
            largest = divergence * np.log(one / other).max()
            events_largest = np.log((events @ one) / (events @ other)).max()
            yield f"pair {pair}", float(largest), float(events_largest)

    return equal(cases())


def spoilt_response(epsilon: float) -> Channel:
    """Randomized response on three bits, but the first gives a coin where the others are both -1.

    The first bit is told with privacy level ε, and the others with less: as they also decide about
    the coin, the whole has privacy level ε again.
    """
    signs = sign_vectors(3)
    truth = np.full((8, 3), p(epsilon - np.log(0.5 / p(-epsilon))))
    truth[:, 0] = np.where((signs[:, 1:] == -1).all(axis=1), 0.5, p(epsilon))
    return uneven_response(truth)


#: The values of p and a that are tried.
_GRID = np.linspace(0, 1, 401)


@cache
def _largest_share(a: float) -> float:
    """The largest p for which the first bit is (p, a)-probably approximately RR."""
    table = spoilt_response(LN3)
    return float(max(q for q in _GRID if probably_approximately_rr(table, LN3, q, a)[0]))


@cache
def _least_gap(index: int) -> float:
    """The least a for which this bit is (1, a)-probably approximately RR."""
    table = spoilt_response(LN3)
    return float(min(a for a in _GRID if probably_approximately_rr(table, LN3, 1.0, a)[index]))


@definition("def:probably-approximately-randomized-response", "Section C.3")
@explained("C-efficacy-in-detail#paper-section-c-3-probably")
def probably_approximately(share: float = 0.75, gap: float = 0.25, others: float = 0.15) -> Finding:
    """An ε-DP algorithm is (p, a)-probably approximately RR_ε in an index if for a share of at
    least p of the values of the others success is at least p(ε) − a.
    """
    # At three of four values of the others the first bit has its response; at one it is a coin.
    table = spoilt_response(LN3)
    # From the definition: the success in the first bit, given the two others.
    success = [
        float(np.mean([table.table[(table.signs[:, 0] == s[0]), j].sum() for j, s in pair]))
        for pair in (
            [(j, s) for j, s in enumerate(table.signs) if tuple(s[1:]) == values]
            for values in product((-1, 1), repeat=2)
        )
    ]
    from_definition = float(np.mean(np.array(success) >= p(LN3) - 0.1))
    return equal(
        [
            ("largest share at a = 0.1", _largest_share(0.1), share),
            ("by words", from_definition, share),
            ("least a for all values of the others", _least_gap(0), gap),
            ("least a in the second index", _least_gap(1), others),
            ("privacy level of the table", table.epsilon, LN3),
        ]
    )

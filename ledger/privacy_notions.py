"""Differential privacy, distributional losses and distances, straight from their definitions."""

from functools import cache
from itertools import product
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ledger.entries import (
    Cases,
    Finding,
    definition,
    each,
    equal,
    replaced,
    shifted,
    statement,
    varied,
)
from ledger.small_channels import LN3, best_accuracy, zoo
from orabook.studies.success import probably_approximately_rr
from orabook.studies.universe import SampledChannel
from oralib.bounds import p
from oralib.channel import Channel, channel
from oralib.mechanisms import Count, LocalRandomizedResponse, XorRandomizedResponse, sign_vectors


@definition(
    1,
    "def:differential-privacy",
    "Definition 2.1",
    "The privacy level is the largest log-ratio of output probabilities over datasets that "
    "differ in one element.",
    stated={"differences": 1, "factor": 1.0},
    mutants=[replaced("differences", two=2, none=0), varied("factor")],
)
@each(equal)
def privacy_level(differences: int, factor: float) -> Cases:
    for mechanism in (LocalRandomizedResponse(LN3), XorRandomizedResponse(LN3), Count()):
        table = channel(mechanism, 3)
        differ = (table.signs[:, None] != table.signs[None]).sum(axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(table.table[:, :, None] / table.table[:, None, :])
        level = np.nanmax(np.where(differ <= differences, ratio, -inf))
        yield repr(mechanism), factor * float(level), mechanism.epsilon
        yield repr(mechanism), factor * float(level), table.epsilon


def _mean_success(table: Channel, guesses: NDArray[Any]) -> float:
    """Efficacy of guesses (outputs x n) that never abstain."""
    right = (guesses[:, None, :] == table.signs[None]).mean(axis=2)
    return float((table.table * right).sum() / table.table.shape[1])


@statement(
    8,
    "eq:maximum-likelihood-guesser",
    "Section 5",
    "The best guess of an element is the sign of its distributional privacy loss.",
    explained="05-efficacy#paper-section-5-guesser",
    stated={"sign": 1, "border": 0.0},
    corrected={"sign": -1},
    correction="It is minus that sign: the loss ln P[o | −1] / P[o | 1] is positive where −1 is "
    "the likelier value.",
    mutants=[replaced("sign", not_looking=0), shifted("border", 0.03)],
)
@each(equal)
def likelihood_guess(sign: int, border: float) -> Cases:
    for name, table in zoo().items():
        loss = table.privacy_loss - border
        guesses = sign * np.sign(np.where(np.abs(loss) < 1e-12, 0.0, loss))
        guesses[guesses == 0] = 1  # a tie, or a guesser that does not look
        yield name, _mean_success(table, guesses), best_accuracy(name, table.n)


def _by_words(table: NDArray[Any], theta: NDArray[Any], rate: float) -> dict[str, float]:
    """DDP and its averages, from sums over all datasets, loop by loop."""
    n, size = theta.shape
    datasets = list(product(range(size), repeat=n))
    weight = {d: float(np.prod([theta[i, x] for i, x in enumerate(d)])) for d in datasets}
    outputs = range(len(table))
    ddp, ac, ae = 0.0, 0.0, 0.0
    for o in outputs:
        seen = sum(weight[d] * table[(o, *d)] for d in datasets)
        accuracy = []
        for i in range(n):
            given = [
                sum(weight[d] * table[(o, *d)] for d in datasets if d[i] == x) / theta[i, x]
                for x in range(size)
                if theta[i, x] > 0
            ]
            loss = np.log(max(given) / min(given))
            ddp = max(ddp, loss)
            accuracy.append(1 / (1 + np.exp(-rate * loss)))
        ac += seen * max(accuracy)
        ae += seen * float(np.mean(accuracy))
    return {"DDP": rate * ddp, "AC-DDP": ac, "AE-AC-DDP": ae}


@cache
def sampled_tables() -> dict[str, SampledChannel]:
    """Random tables on universes of two and three values, with random laws of their elements."""
    rng = np.random.default_rng(31)
    found = {}
    for size, n in ((2, 2), (3, 2), (2, 3)):
        weight = rng.uniform(0.2, 1.0, (4, *[size] * n))
        theta = rng.dirichlet(np.full(size, 2.0), n)
        found[f"|X| = {size}, n = {n}"] = SampledChannel(weight / weight.sum(axis=0), theta)
    return found


@definition(
    9,
    "eq:ddp-levels",
    "Section 5",
    "DDP is the largest distributional loss, AC-DDP averages the best element's accuracy over "
    "outputs, AE-AC-DDP all elements' accuracy, for any product distribution. With fair coins the "
    "last two are what the best guesser achieves with one guess and with n guesses.",
    explained="05-efficacy#paper-section-5-relaxations",
    stated={"rate": 1.0, "order": "mean of best"},
    mutants=[varied("rate"), replaced("order", best_of_means="best of means")],
)
@each(equal)
def relaxations(rate: float, order: str) -> Cases:
    for name, sampled in sampled_tables().items():
        words = _by_words(sampled.table, sampled.theta, rate)
        yield f"{name}, DDP", words["DDP"], sampled.ddp
        yield f"{name}, AC-DDP", words["AC-DDP"], sampled.ac_ddp
        yield f"{name}, AE-AC-DDP", words["AE-AC-DDP"], sampled.ae_ac_ddp()
    for name, table in zoo().items():
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


@definition(
    75,
    "eq:distributional-privacy-loss",
    "Section 5",
    "The distributional privacy loss for a product distribution Θ and values x, y of an element: "
    "the log-ratio of the output's probabilities given each of them, the others drawn from Θ.",
    explained="05-efficacy#paper-section-5-general",
    stated={"factor": 1.0, "others": "drawn from Θ"},
    mutants=[varied("factor"), replaced("others", uniform="uniform", likeliest="likeliest")],
)
@each(equal)
def general_loss(factor: float, others: str) -> Cases:
    for sampled in sampled_tables().values():
        n, size = sampled.theta.shape
        theta = sampled.theta.copy()
        if others == "uniform":
            theta[:] = 1 / size
        if others == "likeliest":
            theta = (theta == theta.max(axis=1, keepdims=True)).astype(float)
        for i, o in product(range(n), range(len(sampled.table))):
            given = np.zeros(size)
            for d in product(range(size), repeat=n):
                rest = [theta[j, d[j]] for j in range(n) if j != i]
                given[d[i]] += sampled.table[(o, *d)] * float(np.prod(rest))
            loss = factor * (np.log(given[:, None]) - np.log(given[None, :]))
            own = sampled.privacy_loss[o, i]
            yield f"|X| = {size}, n = {n}", float(np.abs(loss - own).max()), 0.0


@definition(
    19,
    "def:max-divergence-total-variation-distance",
    "Definition C.2",
    "The max-divergence, the largest ln P(x)/Q(x), is the largest ln P(A)/Q(A) over events A; the "
    "total variation distance, half the sum of |P(x) − Q(x)|, is the largest P(A) − Q(A).",
    stated={"divergence": 1.0, "half": 0.5},
    mutants=[varied("divergence"), varied("half")],
)
def distances(divergence: float, half: float) -> Finding:
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


def spoilt_response(level: float) -> Channel:
    """Randomized response on three bits, but the first gives a coin where the others are both -1.

    The first bit has the level, and the others what is left of it: as they also decide about the
    coin, the whole has the level again.
    """
    signs = sign_vectors(3)
    truth = np.full((8, 3), p(level - np.log(0.5 / p(-level))))
    truth[:, 0] = np.where((signs[:, 1:] == -1).all(axis=1), 0.5, p(level))
    right = signs[:, None, :] == signs[None, :, :]
    return Channel(np.where(right, truth[None], 1 - truth[None]).prod(axis=2), signs)


@definition(
    20,
    "def:probably-approximately-randomized-response",
    "Section C.3",
    "An ε-DP algorithm is (p, a)-probably approximately RR_ε in an index if for a share of at "
    "least p of the values of the others success is at least p(ε) − a.",
    explained="C-efficacy-in-detail#paper-section-c-3-probably",
    stated={"share": 0.75, "gap": 0.25, "others": 0.15},
    mutants=[varied("share"), varied("gap"), varied("others")],
)
def probably_approximately(share: float, gap: float, others: float) -> Finding:
    # At three of four values of the others the first bit has its response; at one it is a coin.
    table = spoilt_response(LN3)

    def largest_share(a: float) -> float:
        found = [
            q for q in np.linspace(0, 1, 401) if probably_approximately_rr(table, LN3, q, a)[0]
        ]
        return float(max(found))

    def least_gap(q: float, index: int = 0) -> float:
        kept = (
            a for a in np.linspace(0, 1, 401) if probably_approximately_rr(table, LN3, q, a)[index]
        )
        return float(min(kept))

    # From the definition: the success in the first bit, given the two others.
    success = [
        float(np.mean([table.table[(table.signs[:, 0] == s[0]), j].sum() for j, s in pair]))
        for pair in (
            [(j, s) for j, s in enumerate(table.signs) if tuple(s[1:]) == others]
            for others in product((-1, 1), repeat=2)
        )
    ]
    by_words = float(np.mean(np.array(success) >= p(LN3) - 0.1))
    return equal(
        [
            ("largest share at a = 0.1", largest_share(0.1), share),
            ("by words", by_words, share),
            ("least a for all values of the others", least_gap(1.0), gap),
            ("least a in the second index", least_gap(1.0, 1), others),
            ("level of the table", table.epsilon, LN3),
        ]
    )

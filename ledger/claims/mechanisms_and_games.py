"""The paper's mechanisms and algorithms: each from its definition, and from the library."""

from functools import cache
from itertools import product
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ledger.cases.games import classic_law, full_knowledge, full_knowledge_law
from ledger.cases.small_channels import LN3, randomized_response
from ledger.machine.comparisons import equal, fits, near
from ledger.machine.entries import definition, explained, mutants, remark
from ledger.machine.findings import Cases, Finding, Function, all_of, each
from ledger.machine.mutants import replaced
from orabook.studies import run_dpsgd
from oralib import Channel, Counts, DpSgd, ThresholdGuesser, channel, classic, one_run, p
from oralib.games import adaptive_law
from oralib.ground.types import Feedback
from oralib.mechanisms import (
    AllOrNothing,
    Count,
    CountInSets,
    DiscreteMechanism,
    LocalLaplace,
    LocalRandomizedResponse,
    NameAndShame,
    Xor,
    XorInPairs,
    XorRandomizedResponse,
    sign_vectors,
)

__all__ = [
    "adaptive_law_by_definition",
    "all_or_none",
    "classic_counts",
    "count_in_sets",
    "elements_are_revealed",
    "level_of_randomized_response",
    "levels_of_the_examples",
    "noisy_steps",
    "one_run_counts",
    "table_is_a_product",
]

#: The local mechanism of Definition 4.1's example.
_RESPONSE = LocalRandomizedResponse(LN3)


@definition("def:local-algorithms", "Definition 4.1")
@mutants(
    replaced("together", in_3_per_cent_of_all_runs=0.03),
    replaced("mechanism", name_and_shame=NameAndShame(), count_in_pairs=CountInSets(2)),
)
@remark("The first variant flips all elements together in a few percent of all runs.")
def table_is_a_product(together: float = 0.0, mechanism: DiscreteMechanism = _RESPONSE) -> Finding:
    """A local algorithm treats each element by itself and all alike, as randomized response does:
    its table is a product of equal factors.
    """
    table = channel(mechanism, 2)
    single = channel(mechanism, 1)
    rows = {tuple(np.atleast_1d(o)): row for o, row in zip(table.outputs, table.table, strict=True)}  # type: ignore[arg-type]
    # The factors: the rows of the table of one element.
    one_element = np.asarray(single.outputs)
    factor_rows = {int(o[0]): row for o, row in zip(one_element, single.table, strict=True)}

    def cases() -> Any:
        for o, row in rows.items():
            for j, s in enumerate(table.signs):
                opposite = tuple(-int(x) for x in o)
                flipped = rows[opposite][j] if opposite in rows else 0.0
                mixed = (1 - together) * row[j] + together * flipped
                # A mechanism that is not local may have other outputs, or not one per element.
                entries = [factor_rows.get(int(x)) for x in o]
                factors = [
                    0.0 if entry is None else entry[int(b > 0)]
                    for entry, b in zip(entries, s, strict=False)
                ]
                yield f"o = {o}", float(np.prod(factors)), float(mixed)

    return equal(cases())


@definition("def:local-randomized-response", "Definition 4.2")
@each(equal)
def level_of_randomized_response(rate: float = 1.0) -> Cases:
    """LRR_ε tells the truth with probability p(ε) on each element, and its privacy level is ε."""
    for epsilon, n in product((0.5, 1.0, 2.0), (1, 3)):
        table = randomized_response(n, p(rate * epsilon))
        yield f"level, ε = {epsilon}, n = {n}", Channel(table).epsilon, epsilon
        of_library = channel(LocalRandomizedResponse(epsilon), n).table
        yield f"table, ε = {epsilon}, n = {n}", float(np.abs(of_library - table).max()), 0.0


@definition("def:count-in-sets", "Definition 6.1")
@mutants(
    replaced("s", one=1, three=3),
    replaced("start", one_later=1),
    replaced("last", left_out="left out"),
)
@each(equal)
def count_in_sets(s: int = 2, start: int = 0, last: str = "smaller") -> Cases:
    """Count-in-Sets releases the number of ones in each set of s neighbouring elements; the last
    set is smaller if s does not divide n.
    """
    for n in (4, 5, 6):
        signs = sign_vectors(n)
        output = CountInSets(2).run(signs, np.random.default_rng(0))
        for row, signed in zip(output, signs, strict=True):
            bits = np.roll((signed > 0).astype(int), -start)
            sets = [bits[i : i + s] for i in range(0, n, s)]
            if last == "left out":
                sets = [members for members in sets if len(members) == s]
            counts = [int(members.sum()) for members in sets]
            yield f"sets, n = {n}", float(len(counts)), float(len(row))
            # Where the numbers of sets differ, the line above has said so.
            for by_definition, of_library in zip(counts, row, strict=False):
                yield f"count, n = {n}", float(by_definition), float(of_library)


class _AlwaysOne:
    """A guesser that says 1 everywhere, so that the coins themselves are counted."""

    def guess(self, loss: NDArray[Any]) -> NDArray[np.int8]:
        return np.ones(np.shape(loss), dtype=np.int8)

    def __repr__(self) -> str:
        return "_AlwaysOne()"


#: The guessers that play one-run auditing of Count.
_PLAYERS: dict[str, Any] = {"always 1": _AlwaysOne(), "threshold": ThresholdGuesser(LN3)}


@cache
def _one_run_of_count(guesser: str) -> Counts:
    return one_run(Count(), _PLAYERS[guesser], 4, trials=50_000, seed=1)


@definition("alg:one-run-auditing-auditor", "Algorithm 1", "Monte Carlo")
@explained("02-preliminaries#paper-algorithm-1")
@mutants(replaced("feedback", full="full"))
def one_run_counts(coin: float = 0.5, feedback: Feedback = "none") -> Finding:
    """The one-run auditor flips n fair coins, runs M once, and counts how many guesses a guesser
    that sees only the output makes, and how many are right.
    """
    table = channel(Count(), 4)
    ones = (table.signs > 0).sum(axis=1)
    weight = coin**ones * (1 - coin) ** (4 - ones)
    findings = []
    for name, guesser in _PLAYERS.items():
        law = np.zeros((5, 5))
        guesses = guesser.guess(table.privacy_loss)
        for o, s in product(range(len(table.table)), range(16)):
            v = int((guesses[o] == table.signs[s]).sum())
            law[v, int(np.abs(guesses[o]).sum())] += table.table[o, s] * weight[s]
        if feedback != "none" and isinstance(guesser, ThresholdGuesser):
            law = adaptive_law(table, guesser, feedback=feedback)
        findings.append(fits(_one_run_of_count(name), law))
    return all_of(*findings)


@cache
def _classic_runs() -> Counts:
    game: dict[str, Any] = {"base": (-1, 1, 1), "trials": 20_000, "seed": 1}
    return classic(XorRandomizedResponse(LN3), ThresholdGuesser(), 10, **game)


@definition("alg:classic-auditor", "Algorithm 2", "Monte Carlo")
@explained("A-guessing-based-auditing#paper-algorithm-2")
def classic_counts(success: float = 0.75) -> Finding:
    """The classic auditor flips one coin per run and knows the rest, so its successes on XRR are
    independent, each with probability p(ε).
    """
    law = np.zeros((11, 11))
    law[:, 10] = stats.binom.pmf(np.arange(11), 10, success)
    table = channel(XorRandomizedResponse(LN3), 3)
    exact = classic_law(table, ThresholdGuesser(), 10, base=(-1, 1, 1))
    return all_of(
        fits(_classic_runs(), law),
        equal([("the law from the table", float(np.abs(law - exact).max()), 0.0)]),
    )


#: Mechanisms without a finite ε, and numbers of elements to try them with.
_NOT_PRIVATE: dict[str, tuple[Any, int]] = {
    "NAS": (NameAndShame(), 3),
    "AON": (AllOrNothing(0.25), 3),
    "XOR": (Xor(), 3),
    "XIP": (XorInPairs(), 4),
    "Count": (Count(), 4),
}


@definition("def:mechanisms", "Definitions B.2, B.5, B.8, C.12, E.1, E.6, Section D.2")
@mutants(replaced("others", ε_30=30.0))
@each(equal)
def levels_of_the_examples(xrr: float = 1.0, laplace: float = 1.0, others: float = inf) -> Cases:
    """Of the examples, XRR_ε and Local Laplace have privacy level ε, and NAS, AON, XOR, XIP and
    Count have no finite one.
    """
    for name, (mechanism, n) in _NOT_PRIVATE.items():
        yield name, channel(mechanism, n).epsilon, others
    for epsilon in (0.5, LN3, 2.0):
        table = channel(XorRandomizedResponse(epsilon), 3)
        yield f"XRR, ε = {epsilon:.3g}", table.epsilon, xrr * epsilon
        x = np.linspace(-5, 5, 1001)
        density = [stats.laplace.logpdf(x, s, 2 / epsilon) for s in (-1, 1)]
        largest = float(np.abs(density[0] - density[1]).max())
        yield f"LLP from densities, ε = {epsilon:.3g}", largest, laplace * epsilon
        largest_loss = np.abs(LocalLaplace(epsilon).privacy_loss(x, 1)).max()
        yield f"LLP from losses, ε = {epsilon:.3g}", float(largest_loss), epsilon


@cache
def _steps_of_training() -> tuple[float, float, int]:
    """The mean, variance and number of steps of coordinates that two elements share."""
    dpsgd = DpSgd(n=4000, d=2000, steps=1000, sample_rate=0.3, sigma=1.7)
    included = np.ones(4000, dtype=bool)
    rng = np.random.default_rng(5)
    weights = run_dpsgd(dpsgd, included, rng, clip=2.0, learning_rate=0.1, gradient=5.0)
    step = -np.diff(weights, axis=0).ravel()
    return float(step.mean()), float(step.var(ddof=1)), step.size


@definition("alg:dp-sgd", "Algorithm 3", "Monte Carlo")
@explained("D-dp-sgd-in-detail#paper-algorithm-3")
def noisy_steps(
    rate: float = 0.3, sigma: float = 1.7, clip: float = 2.0, learning_rate: float = 0.1
) -> Finding:
    """A step of DP-SGD subtracts the learning rate times the sum of the batch's clipped gradients
    plus noise of standard deviation σ times the clipping threshold.
    """
    average, spread, size = _steps_of_training()
    scale = learning_rate * clip
    variance = scale**2 * (2 * rate * (1 - rate) + sigma**2)
    error = float(np.sqrt(variance / size))
    mean = ("mean of a step", average, error, 2 * rate * scale)
    return near([mean, ("its variance", spread, spread * float(np.sqrt(2 / size)), variance)])


@definition("def:full-knowledge-ora", "Section E.1")
@explained("E-adaptive-auditing#paper-section-e-1-full-knowledge")
@mutants(replaced("together", independently=0.97))
@each(equal)
def all_or_none(truth: float = 0.75, together: float = 1.0) -> Cases:
    """Full-knowledge ORA guesses each element knowing all others; on XRR all guesses are then right
    together, with probability p(ε), or wrong together.
    """
    for n in (2, 3, 4):
        v = np.arange(n + 1)
        jointly = np.where(v == n, truth, np.where(v == 0, 1 - truth, 0.0))
        law = together * jointly + (1 - together) * stats.binom.pmf(v, n, truth)
        table = channel(XorRandomizedResponse(LN3), n)
        exact = full_knowledge_law(table, ThresholdGuesser())[:, n]
        for k in v:
            yield f"n = {n}, v = {k}", float(law[k]), float(exact[k])
    played = full_knowledge(XorRandomizedResponse(LN3), ThresholdGuesser(), 6, trials=50, seed=1)
    yield "played", float(np.isin(played.v, (0, 6)).mean()), together


#: From a guess to whether the element is revealed after it.
_IS_REVEALED: dict[str, Function] = {
    "all": lambda guess: True,
    "abstained only": lambda guess: guess == 0,
    "guessed only": lambda guess: guess != 0,
    "none": lambda guess: False,
}


def adaptive_law_by_definition(table: Channel, tau: float, revealed: str) -> NDArray[np.float64]:
    """The law of (V, R) of a guesser with a threshold, path by path.

    What becomes known to the guesser is ``"all"`` (full feedback), ``"abstained only"`` (one-way
    feedback), ``"guessed only"`` or ``"none"``.
    """
    law = np.zeros((table.n + 1, table.n + 1))
    for o, s in np.argwhere(table.table > 0):
        known_signs = np.zeros(table.n, dtype=np.int8)
        v = 0
        r = 0
        for i, sign in enumerate(table.signs[s]):
            loss = table.conditional_loss(o, known_signs, i)
            likelier = -1 if loss > 0 else 1
            guess = 0 if abs(loss) < tau - 1e-12 else likelier
            r += abs(guess)
            v += int(guess == sign)
            known_signs[i] = sign if _IS_REVEALED[revealed](guess) else 0
        law[v, r] += table.table[o, s] / 2**table.n
    return law


@definition("def:adaptive-ora", "Definition E.3")
@mutants(
    replaced("revealed", abstained_only="abstained only", guessed_only="guessed only", none="none")
)
@each(equal)
def elements_are_revealed(revealed: str = "all") -> Cases:
    """AORA lets the guesser see the true values of the elements that it has dealt with, including
    those it abstained on.
    """
    for mechanism, n, tau in ((XorInPairs(), 4, inf), (Count(), 4, 0.5), (Count(), 3, 0.6)):
        table = channel(mechanism, n)
        law = adaptive_law(table, ThresholdGuesser(tau), feedback="full")
        by_definition = adaptive_law_by_definition(table, tau, revealed)
        yield f"{mechanism}, n = {n}", float(np.abs(law - by_definition).max()), 0.0

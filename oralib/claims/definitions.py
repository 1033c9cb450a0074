"""The paper's definitions and algorithms: each is computed by its words, and by the library."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from math import exp, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from oralib.bounds import (
    Counts,
    clopper_pearson_lower,
    epsilon_estimate,
    epsilon_lower_bound,
    p,
    p_inv,
)
from oralib.channel import Channel, channel
from oralib.claims.ledger import (
    CLOSED,
    DEFINITION,
    EXACT,
    MONTE_CARLO,
    STATEMENT,
    WEAKER,
    Finding,
    all_of,
    at_most,
    chance,
    claim,
    critical_levels,
    equal,
    fits,
    near,
    replaced,
    same_answers,
    shifted,
    tends,
    towards,
    varied,
)
from oralib.claims.tables import (
    LN3,
    best_accuracy,
    randomized_response,
    shown_or_noisy,
    zoo,
)
from oralib.dpsgd import DpSgd, train
from oralib.games import (
    adaptive_law,
    classic,
    classic_law,
    full_knowledge,
    full_knowledge_law,
    one_run,
    one_run_law,
)
from oralib.guessers import ThresholdGuesser
from oralib.mechanisms import (
    AllOrNothing,
    Count,
    CountInSets,
    LocalLaplace,
    LocalRandomizedResponse,
    NameAndShame,
    Xor,
    XorInPairs,
    XorRandomizedResponse,
    sign_vectors,
)
from oralib.universe import SampledChannel

Function = Callable[..., Any]


@claim(
    1,
    "def:differential-privacy",
    DEFINITION,
    "Definition 2.1",
    "The privacy level is the largest log-ratio of output probabilities over datasets that "
    "differ in one element.",
    EXACT,
    "02-preliminaries#def-prelim-dp",
    stated={"differences": 1, "factor": 1.0},
    mutants=[replaced("differences", two=2, none=0), varied("factor")],
)
def privacy_level(differences: int, factor: float) -> Finding:
    def cases() -> Any:
        for mechanism in (LocalRandomizedResponse(LN3), XorRandomizedResponse(LN3), Count()):
            table = channel(mechanism, 3)
            differ = (table.signs[:, None] != table.signs[None]).sum(axis=2)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.log(table.table[:, :, None] / table.table[:, None, :])
            level = np.nanmax(np.where(differ <= differences, ratio, -inf))
            yield repr(mechanism), factor * float(level), mechanism.epsilon
            yield repr(mechanism), factor * float(level), table.epsilon

    return equal(cases())


@claim(
    2,
    "eq:lower-bound",
    DEFINITION,
    "Section 2",
    "The bound of v right of r guesses, the largest ε with P[Bin(r, p(ε)) ≥ v] ≤ β, is the "
    "logit of the β-quantile of Beta(v, r − v + 1), or 0 if that is negative.",
    CLOSED,
    "02-preliminaries#prop-prelim-closed",
    stated={"first": 0.0, "second": 1.0, "level": 1.0},
    mutants=[shifted("first", 0.03), varied("second"), varied("level")],
)
def bound_is_a_beta_quantile(first: float, second: float, level: float) -> Finding:
    def cases() -> Any:
        for r, beta in product((1, 5, 10, 100), (0.01, 0.05, 0.3)):
            for v in {1, (r + 1) // 2, r - r // 10, r}:
                q = optimize.brentq(
                    lambda q, v=v, r=r, beta=beta: stats.binom.sf(v - 1, r, q) - beta, 0, 1
                )
                quantile = special.betaincinv(v + first, r - v + second, level * beta)
                closed = max(0.0, float(special.logit(quantile)))
                yield f"({v}, {r})", closed, max(0.0, float(special.logit(q)))
                yield f"({v}, {r})", closed, epsilon_lower_bound(v, r, beta=beta)

    return equal(cases(), 1e-6)


@claim(
    3,
    "eq:logistic",
    DEFINITION,
    "Section 2",
    "p(ε) = e^ε / (e^ε + 1) is how often randomized response of level ε tells the truth, and "
    "the logit inverts it.",
    CLOSED,
    "02-preliminaries#ch-prelim",
    stated={"rate": 1.0, "inverse_rate": 1.0},
    mutants=[varied("rate"), varied("inverse_rate")],
)
def logistic(rate: float, inverse_rate: float) -> Finding:
    def cases() -> Any:
        for epsilon in (0.1, 1.0, 2.0, 4.0):
            q = 1 / (1 + exp(-rate * epsilon))
            yield f"ε = {epsilon}", Channel(randomized_response(2, q)).epsilon, epsilon
            yield f"ε = {epsilon}", q, p(epsilon)
            yield f"ε = {epsilon}", np.log(q / (1 - q)) / inverse_rate, p_inv(q)

    return equal(cases())


def success_of_all(table: Channel) -> float:
    """How often the better guess of the one element of a table is right."""
    assert table.n == 1
    return table.optimal_efficacy()


def almost_all(success: float, r: int) -> NDArray[np.int64]:
    """Between which counts V ~ Bin(r, success) lies with probability above 0.999, r large."""
    spread = 3.5 * np.sqrt(r * success * (1 - success))
    return np.clip(np.round(r * success + np.array([-spread, spread])), 0, r).astype(np.int64)


def _bound_range(success: float, r: int, beta: float) -> tuple[float, float]:
    """Between which values the bound of r such guesses lies with probability above 0.999."""
    low, high = epsilon_lower_bound(almost_all(success, r), r, beta=beta)
    return float(low), float(high)


def bounds_tend(
    success: float, level: float, betas: Sequence[float] = (0.01, 0.05, 0.5)
) -> Finding:
    """At every β the bounds of ever more guesses of this quality tend to a level in probability.

    They are computed, up to a million million guesses: there all but one in a thousand are within
    1e-4 of the level.
    """
    return all_of(
        *(
            tends(
                [_bound_range(success, r, beta)[end] for r in (10**6, 10**9, 10**12)], level, 1e-4
            )
            for beta in betas
            for end in (0, 1)
        )
    )


@claim(
    4,
    "def:ora-asymptotic-tightness",
    DEFINITION,
    "Definition 3.1",
    "ORA is asymptotically tight if with ever more guesses the bounds of some guesser tend to "
    "ε(M) in probability, at every β: guessing the output of randomized response is the example.",
    CLOSED,
    "03-problem-setting#def-problem-tight",
    stated={"level": 1.0, "mechanism": LocalRandomizedResponse},
    mutants=[
        varied("level"),
        replaced("mechanism", at_97_per_cent_of_ε=lambda e: LocalRandomizedResponse(0.97 * e)),
    ],
)
def bounds_approach_the_level(level: float, mechanism: Function) -> Finding:
    return all_of(
        *(bounds_tend(success_of_all(channel(mechanism(e), 1)), level * e) for e in (0.5, 1.0, 2.0))
    )


@claim(
    5,
    "def:ora-efficacy",
    DEFINITION,
    "Definition 3.2",
    "The efficacy is the mean of V/R over coins and outputs (not the ratio of the means).",
    EXACT,
    "03-problem-setting#def-problem-efficacy",
    stated={"power": 1.0, "functional": "mean of ratios"},
    mutants=[varied("power"), replaced("functional", ratio_of_means="ratio of means")],
)
def efficacy(power: float, functional: str) -> Finding:
    table = shown_or_noisy()
    law = one_run_law(table, ThresholdGuesser(LN3))
    v, r = np.nonzero(law)
    weight = law[v, r]
    ratio = weight @ (v / r) ** power
    value = ratio if functional == "mean of ratios" else (weight @ v) / (weight @ r)
    # By the words of the definition: over every output and dataset.
    guesses = ThresholdGuesser(LN3).guess(table.privacy_loss)
    right = guesses[:, None, :] == table.signs[None]
    accuracy = right.sum(axis=2) / np.abs(guesses).sum(axis=1)[:, None]
    return equal([("shown or noisy", float(value), float((table.table * accuracy).sum() / 16))])


@claim(
    6,
    "def:local-algorithms",
    DEFINITION,
    "Definition 4.1",
    "A local algorithm treats each element by itself, as randomized response does: its table is "
    "a product.",
    EXACT,
    "04-the-gaps#def-gaps-local",
    stated={"together": 0.0, "mechanism": LocalRandomizedResponse(LN3)},
    mutants=[
        replaced("together", in_3_per_cent_of_all_runs=0.03),
        replaced("mechanism", name_and_shame=NameAndShame(), count_in_pairs=CountInSets(2)),
    ],
    remark="The first variant flips all elements together in a few per cent of all runs.",
)
def table_is_a_product(together: float, mechanism: Any) -> Finding:
    table, single = channel(mechanism, 2), channel(mechanism, 1)
    rows = {tuple(np.atleast_1d(o)): row for o, row in zip(table.outputs, table.table, strict=True)}  # type: ignore[arg-type]
    part = {int(o[0]): row for o, row in zip(np.asarray(single.outputs), single.table, strict=True)}

    def cases() -> Any:
        for o, row in rows.items():
            for j, s in enumerate(table.signs):
                opposite = tuple(-int(x) for x in o)
                flipped = rows[opposite][j] if opposite in rows else 0.0
                mixed = (1 - together) * row[j] + together * flipped
                known = [part.get(int(x)) for x in o]
                factors = [
                    0.0 if entry is None else entry[int(b > 0)]
                    for entry, b in zip(known, s, strict=False)
                ]
                yield f"o = {o}", float(np.prod(factors)), float(mixed)

    return equal(cases())


@claim(
    7,
    "def:local-randomized-response",
    DEFINITION,
    "Definition 4.2",
    "LRR_ε tells the truth with probability p(ε) on each element, and its privacy level is ε.",
    EXACT,
    "04-the-gaps#def-gaps-lrr",
    stated={"rate": 1.0},
    mutants=[varied("rate")],
)
def level_of_randomized_response(rate: float) -> Finding:
    def cases() -> Any:
        for epsilon, n in product((0.5, 1.0, 2.0), (1, 3)):
            table = randomized_response(n, p(rate * epsilon))
            yield f"ε = {epsilon}, n = {n}", Channel(table).epsilon, epsilon
            own = channel(LocalRandomizedResponse(epsilon), n).table
            yield f"ε = {epsilon}, n = {n}", float(np.abs(own - table).max()), 0.0

    return equal(cases())


def _mean_success(table: Channel, guesses: NDArray[Any]) -> float:
    """Efficacy of guesses (outputs x n) that never abstain."""
    right = (guesses[:, None, :] == table.signs[None]).mean(axis=2)
    return float((table.table * right).sum() / table.table.shape[1])


@claim(
    8,
    "eq:maximum-likelihood-guesser",
    STATEMENT,
    "Section 5",
    "The best guess of an element is the sign of its distributional privacy loss.",
    EXACT,
    "corrections#prop-corr-sign",
    stated={"sign": 1, "border": 0.0},
    corrected={"sign": -1},
    correction="It is minus that sign: the loss ln P[o | −1] / P[o | 1] is positive where −1 is "
    "the likelier value.",
    mutants=[replaced("sign", not_looking=0), shifted("border", 0.03)],
)
def likelihood_guess(sign: int, border: float) -> Finding:
    def cases() -> Any:
        for name, table in zoo().items():
            loss = table.privacy_loss - border
            guesses = sign * np.sign(np.where(np.abs(loss) < 1e-12, 0.0, loss))
            guesses[guesses == 0] = 1  # a tie, or a guesser that does not look
            yield name, _mean_success(table, guesses), best_accuracy(name, table.n)

    return equal(cases())


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


@claim(
    9,
    "eq:ddp-levels",
    DEFINITION,
    "Section 5",
    "DDP is the largest distributional loss, AC-DDP averages the best element's accuracy over "
    "outputs, AE-AC-DDP all elements' accuracy, for any product distribution; with fair coins the "
    "last two are what the best guesser with one guess, and with n, achieves.",
    EXACT,
    "05-efficacy#def-eff-notions",
    stated={"rate": 1.0, "order": "mean of best"},
    mutants=[varied("rate"), replaced("order", best_of_means="best of means")],
)
def relaxations(rate: float, order: str) -> Finding:
    def cases() -> Any:
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

    return equal(cases())


@claim(
    10,
    "def:count-in-sets",
    DEFINITION,
    "Definition 6.1",
    "Count-in-Sets releases the number of ones in each set of s neighbouring elements; the last "
    "set is smaller if s does not divide n.",
    EXACT,
    "06-dp-sgd#def-dpsgd-cis",
    stated={"s": 2, "start": 0, "last": "smaller"},
    mutants=[
        replaced("s", one=1, three=3),
        replaced("start", one_later=1),
        replaced("last", left_out="left out"),
    ],
)
def count_in_sets(s: int, start: int, last: str) -> Finding:
    def cases() -> Any:
        for n in (4, 5, 6):
            signs = sign_vectors(n)
            output = CountInSets(2).run(signs, np.random.default_rng(0))
            for row, signed in zip(output, signs, strict=True):
                bits = np.roll((signed > 0).astype(int), -start)
                sets = [bits[i : i + s] for i in range(0, n, s)]
                if last == "left out":
                    sets = [one for one in sets if len(one) == s]
                counts = [int(one.sum()) for one in sets]
                yield f"n = {n}", float(len(counts)), float(len(row))
                for a, b in zip(counts, row, strict=False):
                    yield f"n = {n}", float(a), float(b)

    return equal(cases())


class _AlwaysOne:
    """Guesses 1 everywhere, so that the coins themselves are counted."""

    def guess(self, loss: NDArray[Any]) -> NDArray[np.int8]:
        return np.ones(np.shape(loss), dtype=np.int8)

    def __repr__(self) -> str:
        return "_AlwaysOne()"


_PLAYERS: dict[str, Any] = {"always 1": _AlwaysOne(), "threshold": ThresholdGuesser(LN3)}


@cache
def _played_count(guesser: str) -> Counts:
    return one_run(Count(), _PLAYERS[guesser], 4, trials=50_000, seed=1)


@claim(
    11,
    "alg:one-run-auditing-auditor",
    DEFINITION,
    "Algorithm 1",
    "The one-run auditor flips n fair coins, runs M once, and counts right and taken guesses of a "
    "guesser that sees the output alone.",
    MONTE_CARLO,
    "A-guessing-based-auditing#alg-guess-one-run",
    stated={"coin": 0.5, "feedback": "none"},
    mutants=[varied("coin"), replaced("feedback", full="full")],
)
def one_run_counts(coin: float, feedback: str) -> Finding:
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
        findings.append(fits(_played_count(name), law))
    return all_of(*findings)


@cache
def _played_classic() -> Counts:
    game: dict[str, Any] = {"base": (-1, 1, 1), "trials": 20_000, "seed": 1}
    return classic(XorRandomizedResponse(LN3), ThresholdGuesser(), 10, **game)


@claim(
    12,
    "alg:classic-auditor",
    DEFINITION,
    "Algorithm 2",
    "The classic auditor flips one coin a run and knows the rest, so its successes on XRR are "
    "independent with probability p(ε).",
    MONTE_CARLO,
    "A-guessing-based-auditing#alg-guess-classic",
    stated={"success": 0.75},
    mutants=[varied("success")],
)
def classic_counts(success: float) -> Finding:
    law = np.zeros((11, 11))
    law[:, 10] = stats.binom.pmf(np.arange(11), 10, success)
    table = channel(XorRandomizedResponse(LN3), 3)
    exact = classic_law(table, ThresholdGuesser(), 10, base=(-1, 1, 1))
    return all_of(
        fits(_played_classic(), law),
        equal([("the law from the table", float(np.abs(law - exact).max()), 0.0)]),
    )


@claim(
    13,
    "def:validity",
    DEFINITION,
    "Definition A.1",
    "A valid auditor's bound exceeds the privacy level with probability at most β; the bound ε' "
    "does so for randomized response, the estimation does not.",
    EXACT,
    "A-guessing-based-auditing#def-guess-valid",
    stated={"level": 1.0, "bound": epsilon_lower_bound},
    mutants=[
        varied("level", down=WEAKER),
        replaced("bound", estimation=lambda v, r, beta: epsilon_estimate(v, r)),
    ],
)
def bound_rarely_exceeds(level: float, bound: Function) -> Finding:
    def cases() -> Any:
        for epsilon, n in product((0.0, 0.5, 1.0, 2.0), (1, 7, 20, 60)):
            v = np.arange(n + 1)
            weight = stats.binom.pmf(v, n, p(epsilon))
            for beta in critical_levels(n, p(epsilon)):
                found = bound(v, n, beta=min(level * beta, 0.999))
                fails = weight @ (found > epsilon * (1 + 1e-9) + 1e-9)
                yield f"ε = {epsilon}, n = {n}", float(fails), beta

    return at_most(cases())


#: How much may be missing in the limits of definitions A.2 and A.3, in nats.
_SLACK = 0.01


def above(success: float, level: float, r: int) -> float:
    """P[estimation of r guesses of this quality > level]."""
    return chance(success, r, lambda v: epsilon_estimate(v, r) > level)


@claim(
    14,
    "def:asymptotic-validity",
    DEFINITION,
    "Definition A.2",
    "Asymptotic validity: estimations exceed ε(M) + a with vanishing probability. One-run "
    "auditing of LRR_1 has it; knowing all other elements (XRR_1) does not.",
    EXACT,
    "A-guessing-based-auditing#def-guess-asymptotic",
    stated={"level": 1.0, "audit": "one run"},
    mutants=[varied("level", up=WEAKER), replaced("audit", all_others_known="all others known")],
)
def estimations_rarely_exceed(level: float, audit: str) -> Finding:
    if audit == "one run":
        success = success_of_all(channel(LocalRandomizedResponse(1.0), 1))
        found = [above(success, level + _SLACK, r) for r in (10**2, 10**4, 10**6, 10**8)]
        return Finding(*_tends_to_zero(found))
    found = []
    for n in (2, 4, 6):
        law = full_knowledge_law(channel(XorRandomizedResponse(1.0), n), ThresholdGuesser())
        v, r = np.nonzero(law)
        found.append(float(law[v, r] @ (epsilon_estimate(v, r) > level + _SLACK)))
    return Finding(*_tends_to_zero(found))


def _tends_to_zero(values: list[float]) -> tuple[bool, str]:
    """The last of some probabilities is small; the first ones may rise before they fall."""
    return values[-1] < 1e-3, towards(values, 0.0)


@claim(
    15,
    "def:asymptotic-tightness",
    DEFINITION,
    "Definition A.3",
    "Asymptotic tightness: estimations reach ε(M) − a with probability tending to 1, as they do "
    "on randomized response, where every guess succeeds with probability p(ε).",
    CLOSED,
    "A-guessing-based-auditing#def-guess-asymptotic",
    stated={"level": 1.0, "mechanism": LocalRandomizedResponse},
    mutants=[
        varied("level", down=WEAKER),
        replaced("mechanism", at_97_per_cent_of_ε=lambda e: LocalRandomizedResponse(0.97 * e)),
    ],
)
def estimations_reach(level: float, mechanism: Function) -> Finding:
    success = success_of_all(channel(mechanism(1.0), 1))
    found = [1 - above(success, level - _SLACK, r) for r in (10**2, 10**4, 10**6, 10**8)]
    return Finding(*_tends_to_zero(found))


@claim(
    16,
    "def:clopper-pearson-lower",
    DEFINITION,
    "Definition A.5",
    "The Clopper-Pearson lower limit is the largest q with P[Bin(r, q) ≥ v] ≤ β: there the tail "
    "is β.",
    EXACT,
    "A-guessing-based-auditing#def-guess-cp",
    stated={"level": 1.0, "count": 0},
    mutants=[varied("level"), replaced("count", one_more=1)],
)
def clopper_pearson_covers(level: float, count: int) -> Finding:
    def cases() -> Any:
        for r, beta in product((1, 5, 20, 60), (0.01, 0.05, 0.3, 0.9)):
            v = np.arange(1, r + 1)
            limit = clopper_pearson_lower(v, r, beta)
            tails = stats.binom.sf(v - 1 + count, r, limit)
            yield f"r = {r}, β = {beta}", float(np.abs(tails - level * beta).max()), 0.0

    return equal(cases(), 1e-7)


@cache
def _pairs_of_laws() -> list[tuple[NDArray[Any], NDArray[Any], bool]]:
    """Pairs of laws, close to the border of dominance, and whether they can be coupled X <= Y."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(60):
        y = rng.dirichlet([3.0, 3.0, 3.0, 3.0])
        x = y.copy()
        # A few per cent of a mass go down, and perhaps a bit of another goes up.
        for direction in rng.choice([-1, 1], size=2, p=[0.7, 0.3]):
            start = int(rng.integers(1, 4) if direction < 0 else rng.integers(0, 3))
            amount = x[start] * rng.uniform(0.0, 0.02)
            x[start] -= amount
            x[start + direction] += amount
        found.append((x, y, _can_be_coupled(x, y)))
    return found


def _can_be_coupled(x: NDArray[Any], y: NDArray[Any]) -> bool:
    """Whether some joint law with these margins has X <= Y: the least P[X > Y] is 0."""
    size = len(x)
    above = np.tril(np.ones((size, size)), -1).ravel()  # entries with X > Y
    rows = np.vstack([np.kron(np.eye(size), np.ones(size)), np.kron(np.ones(size), np.eye(size))])
    found = optimize.linprog(above, A_eq=rows, b_eq=np.r_[x, y], method="highs")
    return bool(found.fun < 1e-9)


@claim(
    17,
    "def:stochastic-dominance",
    DEFINITION,
    "Definition A.6",
    "X is dominated by Y if P[X > t] ≤ P[Y > t] for all t: then, and only then, the two can be "
    "coupled with X ≤ Y.",
    EXACT,
    "A-guessing-based-auditing#def-guess-dominance",
    stated={"factor": 1.0, "relation": "all tails"},
    mutants=[
        varied("factor"),
        replaced("relation", larger_mean="means", largest_value_only="last tail"),
    ],
)
def dominance(factor: float, relation: str) -> Finding:
    answers = {}
    for j, (x, y, coupled) in enumerate(_pairs_of_laws()):
        tails_x, tails_y = x[::-1].cumsum()[::-1][1:], y[::-1].cumsum()[::-1][1:]
        if relation == "all tails":
            claimed = bool((tails_x <= factor * tails_y + 1e-12).all())
        elif relation == "means":
            claimed = bool(tails_x.sum() <= tails_y.sum())
        else:
            claimed = bool(tails_x[-1] <= tails_y[-1] + 1e-12)
        answers[f"pair {j}"] = (claimed, coupled)
    return same_answers(answers)


_LEVELS: dict[str, tuple[Any, int]] = {
    "NAS": (NameAndShame(), 3),
    "AON": (AllOrNothing(0.25), 3),
    "XOR": (Xor(), 3),
    "XIP": (XorInPairs(), 4),
    "Count": (Count(), 4),
}


@claim(
    18,
    "def:mechanisms",
    DEFINITION,
    "Definitions B.2, B.5, B.8, C.12, E.1, E.6, Section D.2",
    "Of the examples, XRR_ε and Local Laplace have privacy level ε, and NAS, AON, XOR, XIP and "
    "Count have none.",
    EXACT,
    "04-the-gaps#def-gaps-nas",
    stated={"xrr": 1.0, "laplace": 1.0, "others": inf},
    mutants=[varied("xrr"), varied("laplace"), replaced("others", ε_30=30.0)],
)
def levels_of_the_examples(xrr: float, laplace: float, others: float) -> Finding:
    def cases() -> Any:
        for name, (mechanism, n) in _LEVELS.items():
            yield name, channel(mechanism, n).epsilon, others
        for epsilon in (0.5, LN3, 2.0):
            table = channel(XorRandomizedResponse(epsilon), 3)
            yield f"XRR, ε = {epsilon:.3g}", table.epsilon, xrr * epsilon
            x = np.linspace(-5, 5, 1001)
            density = [stats.laplace.logpdf(x, s, 2 / epsilon) for s in (-1, 1)]
            largest = float(np.abs(density[0] - density[1]).max())
            yield f"LLP, ε = {epsilon:.3g}", largest, laplace * epsilon
            own = np.abs(LocalLaplace(epsilon).privacy_loss(x, 1)).max()
            yield f"LLP, ε = {epsilon:.3g}", float(own), epsilon

    return equal(cases())


@claim(
    19,
    "def:max-divergence-total-variation-distance",
    DEFINITION,
    "Definition C.2",
    "The max-divergence, the largest ln P(x)/Q(x), is the largest ln P(A)/Q(A) over events A; the "
    "total variation distance, half the sum of |P(x) − Q(x)|, is the largest P(A) − Q(A).",
    EXACT,
    "C-efficacy-in-detail#def-effc-distances",
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
    """Response of three bits; of the first a coin where the two others are both -1.

    The first bit has the level, and the others as much as is left of it: as they also decide on
    the coin, the whole has the level again.
    """
    signs = sign_vectors(3)
    truth = np.full((8, 3), p(level - np.log(0.5 / p(-level))))
    truth[:, 0] = np.where((signs[:, 1:] == -1).all(axis=1), 0.5, p(level))
    right = signs[:, None, :] == signs[None, :, :]
    return Channel(np.where(right, truth[None], 1 - truth[None]).prod(axis=2), signs)


@claim(
    20,
    "def:probably-approximately-randomized-response",
    DEFINITION,
    "Section C.3",
    "An ε-DP algorithm is (p, a)-probably approximately RR_ε in an index if for a share of at "
    "least p of the values of the others success is at least p(ε) − a.",
    EXACT,
    "C-efficacy-in-detail#def-effc-parr",
    stated={"share": 0.75, "gap": 0.25, "others": 0.15},
    mutants=[varied("share"), varied("gap"), varied("others")],
)
def probably_approximately(share: float, gap: float, others: float) -> Finding:
    # Three of four values of the others leave the first bit its response; at one it is a coin.
    table = spoilt_response(LN3)

    def largest_share(a: float) -> float:
        found = [q for q in np.linspace(0, 1, 401) if table.probably_approximately_rr(LN3, q, a)[0]]
        return float(max(found))

    def least_gap(q: float, index: int = 0) -> float:
        kept = (
            a for a in np.linspace(0, 1, 401) if table.probably_approximately_rr(LN3, q, a)[index]
        )
        return float(min(kept))

    # By words: the success in the first bit, given the two others.
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


@cache
def _training() -> NDArray[np.float64]:
    dpsgd = DpSgd(n=4000, d=2000, steps=200, sample_rate=0.3, sigma=1.7)
    included, rng = np.ones(4000, dtype=bool), np.random.default_rng(5)
    weights = train(dpsgd, included, rng, clip=2.0, learning_rate=0.1, gradient=5.0)
    return -np.diff(weights, axis=0).ravel()


@claim(
    21,
    "alg:dp-sgd",
    DEFINITION,
    "Algorithm 3",
    "A step of DP-SGD subtracts the learning rate times the sum of the batch's clipped gradients "
    "plus noise of standard deviation σ times the clipping threshold.",
    MONTE_CARLO,
    "D-dp-sgd-in-detail#alg-detail-dpsgd",
    stated={"rate": 0.3, "sigma": 1.7, "clip": 2.0, "learning_rate": 0.1},
    mutants=[varied("rate"), varied("sigma"), varied("clip"), varied("learning_rate")],
)
def noisy_steps(rate: float, sigma: float, clip: float, learning_rate: float) -> Finding:
    step = _training()  # two elements a coordinate, their gradients of size 5 clipped
    unit = learning_rate * clip
    variance = unit**2 * (2 * rate * (1 - rate) + sigma**2)
    spread, size = float(step.var(ddof=1)), step.size
    return near(
        [
            (
                "mean of a step",
                float(step.mean()),
                float(np.sqrt(variance / size)),
                2 * rate * unit,
            ),
            ("its variance", spread, spread * float(np.sqrt(2 / size)), variance),
        ]
    )


@claim(
    22,
    "def:full-knowledge-ora",
    DEFINITION,
    "Section E.1",
    "Full-knowledge ORA guesses each element knowing all others; on XRR all guesses are then "
    "right together, with probability p(ε), or wrong together.",
    EXACT,
    "E-adaptive-auditing#prop-adapt-full",
    stated={"truth": 0.75, "together": 1.0},
    mutants=[varied("truth"), replaced("together", independently=0.97)],
)
def all_or_none(truth: float, together: float) -> Finding:
    def cases() -> Any:
        for n in (2, 3, 4):
            v = np.arange(n + 1)
            jointly = np.where(v == n, truth, np.where(v == 0, 1 - truth, 0.0))
            law = together * jointly + (1 - together) * stats.binom.pmf(v, n, truth)
            table = channel(XorRandomizedResponse(LN3), n)
            exact = full_knowledge_law(table, ThresholdGuesser())[:, n]
            for k in v:
                yield f"n = {n}, v = {k}", float(law[k]), float(exact[k])
        played = full_knowledge(
            XorRandomizedResponse(LN3), ThresholdGuesser(), 6, trials=50, seed=1
        )
        yield "played", float(np.isin(played.v, (0, 6)).mean()), together

    return equal(cases())


def _adaptive_by_words(table: Channel, tau: float, revealed: str) -> NDArray[np.float64]:
    """The law of (V, R) of a guesser with a threshold, from the words of the definition."""
    law = np.zeros((table.n + 1, table.n + 1))
    for o, s in product(range(len(table.table)), range(2**table.n)):
        if table.table[o, s] == 0:
            continue
        known, v, r = np.zeros(table.n, dtype=np.int8), 0, 0
        for i in range(table.n):
            loss = table.conditional_loss(o, known, i)
            guess = 0 if abs(loss) < tau - 1e-12 else (-1 if loss > 0 else 1)
            r, v = r + abs(guess), v + int(guess == table.signs[s, i])
            told = {
                "all": True,
                "abstained only": guess == 0,
                "guessed only": guess != 0,
                "none": False,
            }
            known[i] = table.signs[s, i] if told[revealed] else 0
        law[v, r] += table.table[o, s] / 2**table.n
    return law


@claim(
    23,
    "def:adaptive-ora",
    DEFINITION,
    "Definition E.3",
    "AORA lets the guesser see the true values of the elements that it is done with, also of "
    "those it abstained from.",
    EXACT,
    "E-adaptive-auditing#def-adapt-aora",
    stated={"revealed": "all"},
    mutants=[
        replaced(
            "revealed",
            abstained_only="abstained only",
            guessed_only="guessed only",
            none="none",
        )
    ],
)
def elements_are_revealed(revealed: str) -> Finding:
    def cases() -> Any:
        for mechanism, n, tau in ((XorInPairs(), 4, inf), (Count(), 4, 0.5), (Count(), 3, 0.6)):
            table = channel(mechanism, n)
            law = adaptive_law(table, ThresholdGuesser(tau), feedback="full")
            words = _adaptive_by_words(table, tau, revealed)
            yield f"{mechanism}, n = {n}", float(np.abs(law - words).max()), 0.0

    return equal(cases())

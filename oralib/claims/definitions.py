"""The paper's definitions and algorithms: each is computed by its words, and by the library."""

from collections.abc import Callable
from itertools import product
from math import exp, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from oralib.bounds import clopper_pearson_lower, epsilon_estimate, epsilon_lower_bound, p
from oralib.channel import Channel, channel
from oralib.claims.ledger import (
    CLOSED,
    EXACT,
    MONTE_CARLO,
    Finding,
    accuracy_values,
    at_most,
    binomial_counts,
    claim,
    equal,
    fits,
    mean_bound,
    near,
    same_answers,
    tends,
)
from oralib.claims.tables import LN3, randomized_response, shown_or_noisy, zoo
from oralib.dpsgd import DpSgd, train
from oralib.games import (
    adaptive_law,
    best_mean,
    classic,
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

Function = Callable[..., Any]


@claim(
    1,
    "def:differential-privacy",
    "Definition 2.1",
    "The privacy level is the largest log-ratio of output probabilities over datasets that "
    "differ in one element.",
    EXACT,
    "02-preliminaries#def-prelim-dp",
    stated=1,
    broken=2,
)
def privacy_level(most_differences: int) -> Finding:
    def cases() -> Any:
        for mechanism in (LocalRandomizedResponse(LN3), XorRandomizedResponse(LN3), Count()):
            table = channel(mechanism, 3)
            differ = (table.signs[:, None] != table.signs[None]).sum(axis=2)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.log(table.table[:, :, None] / table.table[:, None, :])
            allowed = (differ > 0) & (differ <= most_differences)
            level = np.nanmax(np.where(allowed, ratio, -inf))
            yield repr(mechanism), float(level), mechanism.epsilon

    return equal(cases())


@claim(
    2,
    "eq:lower-bound",
    "Section 2",
    "The bound of v right of r guesses, the largest ε with P[Bin(r, p(ε)) >= v] <= β, is the "
    "logit of the β-quantile of Beta(v, r - v + 1), or 0 if that is negative.",
    CLOSED,
    "02-preliminaries#prop-prelim-closed",
    stated=lambda v, r: (v, r - v + 1),
    broken=lambda v, r: (v + 1, max(r - v, 1)),
)
def bound_is_a_beta_quantile(parameters: Function) -> Finding:
    def cases() -> Any:
        for r, beta in product((1, 5, 10, 100), (0.01, 0.05, 0.3)):
            for v in {1, (r + 1) // 2, r - r // 10, r}:
                q = optimize.brentq(
                    lambda q, v=v, r=r, beta=beta: stats.binom.sf(v - 1, r, q) - beta, 0, 1
                )
                quantile = special.betaincinv(*parameters(v, r), beta)
                closed = max(0.0, float(special.logit(quantile)))
                yield f"({v}, {r})", closed, max(0.0, float(special.logit(q)))
                yield f"({v}, {r})", closed, epsilon_lower_bound(v, r, beta=beta)

    return equal(cases(), 1e-6)


@claim(
    3,
    "eq:logistic",
    "Section 2",
    "p(ε) = e^ε / (e^ε + 1) is how often randomized response of level ε tells the truth, and "
    "the logit inverts it.",
    CLOSED,
    "02-preliminaries#ch-prelim",
    stated=(special.expit, special.logit),
    broken=(stats.norm.cdf, stats.norm.ppf),
)
def logistic(pair: tuple[Function, Function]) -> Finding:
    truth, inverse = pair

    def cases() -> Any:
        for epsilon in (0.1, 1.0, 2.0, 4.0):
            q = float(truth(epsilon))
            yield f"ε = {epsilon}", Channel(randomized_response(2, q)).epsilon, epsilon
            yield f"ε = {epsilon}", float(inverse(q)), epsilon

    return equal(cases())


@claim(
    4,
    "def:ora-asymptotic-tightness",
    "Definition 3.1",
    "ORA is tight where the bounds of some guesser approach ε(M): randomized response is the "
    "example, every guess right with probability p(ε).",
    CLOSED,
    "03-problem-setting#def-problem-tight",
    stated=p(1.0),
    broken=1 - exp(-0.5) / 2,
)
def bounds_approach_the_level(success: float) -> Finding:
    return tends([mean_bound(r, success) for r in (10**2, 10**3, 10**4, 10**5)], 1.0, 0.03)


@claim(
    5,
    "def:ora-efficacy",
    "Definition 3.2",
    "The efficacy is the mean of V/R over coins and outputs (not the ratio of the means).",
    EXACT,
    "03-problem-setting#def-problem-efficacy",
    stated=lambda weight, v, r: weight @ (v / r),
    broken=lambda weight, v, r: (weight @ v) / (weight @ r),
)
def efficacy(functional: Function) -> Finding:
    table = shown_or_noisy()
    law = one_run_law(table, ThresholdGuesser(LN3))
    v, r = np.nonzero(law)
    value = functional(law[v, r], v, r)
    # By the words of the definition: over every output and dataset.
    guesses = ThresholdGuesser(LN3).guess(table.privacy_loss)
    right = guesses[:, None, :] == table.signs[None]
    accuracy = right.sum(axis=2) / np.abs(guesses).sum(axis=1)[:, None]
    return equal([("shown or noisy", float(value), float((table.table * accuracy).sum() / 16))])


@claim(
    6,
    "def:local-algorithms",
    "Definition 4.1",
    "A local algorithm treats each element by itself, as randomized response does: its table is "
    "a product.",
    EXACT,
    "04-the-gaps#def-gaps-local",
    stated=LocalRandomizedResponse(LN3),
    broken=NameAndShame(),
)
def table_is_a_product(mechanism: Any) -> Finding:
    table, single = channel(mechanism, 3), channel(mechanism, 1)
    part = {int(o[0]): row for o, row in zip(np.asarray(single.outputs), single.table, strict=True)}

    def cases() -> Any:
        for o, row in zip(np.asarray(table.outputs), table.table, strict=True):
            for s, probability in zip(table.signs, row, strict=True):
                factors = [part.get(int(a), [0, 0])[int(b > 0)] for a, b in zip(o, s, strict=True)]
                yield f"o = {o.tolist()}", float(np.prod(factors)), float(probability)

    return equal(cases())


@claim(
    7,
    "def:local-randomized-response",
    "Definition 4.2",
    "LRR_ε tells the truth with probability p(ε) on each element, and its privacy level is ε.",
    EXACT,
    "04-the-gaps#def-gaps-lrr",
    stated=p,
    broken=lambda epsilon: 1 - exp(-epsilon) / 2,
)
def level_of_randomized_response(truth: Function) -> Finding:
    def cases() -> Any:
        for epsilon, n in product((0.5, 1.0, 2.0), (1, 3)):
            table = Channel(randomized_response(n, truth(epsilon)))
            yield f"ε = {epsilon}, n = {n}", table.epsilon, epsilon

    return equal(cases())


def _mean_success(table: Channel, guesses: NDArray[Any]) -> float:
    """Efficacy of guesses (outputs x n) that never abstain."""
    right = (guesses[:, None, :] == table.signs[None]).mean(axis=2)
    return float((table.table * right).sum() / table.table.shape[1])


@claim(
    8,
    "eq:maximum-likelihood-guesser",
    "Section 5",
    "The best guess of an element is the sign of its distributional privacy loss.",
    EXACT,
    "corrections#prop-corr-sign",
    stated=1,
    broken=0,
    corrected=-1,
    correction="It is minus that sign: the loss ln P[o | -1] / P[o | 1] is positive where -1 is "
    "the likelier value.",
)
def likelihood_guess(sign: int) -> Finding:
    def cases() -> Any:
        for name, table in zoo().items():
            loss = np.where(np.abs(table.privacy_loss) < 1e-12, 0.0, table.privacy_loss)
            guesses = sign * np.sign(loss)
            guesses[guesses == 0] = 1  # a tie, or a guesser that does not look
            best = best_mean(table, accuracy_values(table.n, table.n))
            yield name, _mean_success(table, guesses), best

    return equal(cases())


@claim(
    9,
    "eq:ddp-levels",
    "Section 5",
    "AC-DDP averages the best element's accuracy over outputs, AE-AC-DDP all elements' accuracy: "
    "what the best guesser with one guess, and with n, achieves.",
    EXACT,
    "05-efficacy#def-eff-notions",
    stated=lambda weight, accuracy: weight @ accuracy.max(axis=1),
    broken=lambda weight, accuracy: (weight @ accuracy).max(),
)
def relaxations(average_of_best: Function) -> Finding:
    def cases() -> Any:
        for name, table in zoo().items():
            ac = float(average_of_best(table.probability, table.guess_accuracy))
            yield name, ac, best_mean(table, accuracy_values(table.n, 1))
            yield name, ac, table.ac_ddp
            all_elements = best_mean(table, accuracy_values(table.n, table.n))
            yield name, table.ae_ac_ddp, all_elements

    return equal(cases())


@claim(
    10,
    "def:count-in-sets",
    "Definition 6.1",
    "Count-in-Sets releases the number of ones in each set of s neighbouring elements.",
    EXACT,
    "06-dp-sgd#def-dpsgd-cis",
    stated=lambda bits: bits.reshape(-1, 2).sum(axis=1),
    broken=lambda bits: bits.reshape(-1, 2).sum(axis=1).cumsum(),
)
def count_in_sets(release: Function) -> Finding:
    signs = sign_vectors(6)
    output = CountInSets(2).run(signs, np.random.default_rng(0))
    return equal(
        (f"s = {s.tolist()}", float(a), float(b))
        for s, row in zip(signs, output, strict=True)
        for a, b in zip(release((s > 0).astype(int)), row, strict=True)
    )


@claim(
    11,
    "alg:one-run-auditing-auditor",
    "Algorithm 1",
    "The one-run auditor flips n coins, runs M once and counts right and taken guesses.",
    MONTE_CARLO,
    "A-guessing-based-auditing#alg-guess-one-run",
    stated="none",
    broken="full",
)
def one_run_counts(feedback: str) -> Finding:
    table, guesser = channel(Count(), 4), ThresholdGuesser(LN3)
    law = (
        one_run_law(table, guesser)
        if feedback == "none"
        else adaptive_law(table, guesser, feedback=feedback)
    )
    return fits(one_run(Count(), guesser, 4, trials=10_000, seed=1), law)


@claim(
    12,
    "alg:classic-auditor",
    "Algorithm 2",
    "The classic auditor flips one coin a run and knows the rest, so its successes on XRR are "
    "independent with probability p(ε).",
    MONTE_CARLO,
    "A-guessing-based-auditing#alg-guess-classic",
    stated=0.75,
    broken=0.5,
)
def classic_counts(success: float) -> Finding:
    counts = classic(
        XorRandomizedResponse(LN3),
        ThresholdGuesser(),
        10,
        base=(-1, 1, 1),
        trials=10_000,
        seed=1,
    )
    law = np.zeros((11, 11))
    law[:, 10] = stats.binom.pmf(np.arange(11), 10, success)
    return fits(counts, law)


@claim(
    13,
    "def:validity",
    "Definition A.1",
    "A valid bound exceeds the privacy level with probability at most β; the bound ε' does so for "
    "randomized response, the estimation does not.",
    EXACT,
    "A-guessing-based-auditing#def-guess-valid",
    stated=epsilon_lower_bound,
    broken=lambda v, r, beta: epsilon_estimate(v, r),
)
def bound_rarely_exceeds(bound: Function) -> Finding:
    def cases() -> Any:
        for epsilon, n, beta in product((0.0, 0.5, 1.0, 2.0), (1, 7, 20, 60), (0.05, 0.3)):
            v = np.arange(n + 1)
            weight = stats.binom.pmf(v, n, p(epsilon))
            fails = weight @ (bound(v, n, beta=beta) > epsilon * (1 + 1e-9) + 1e-9)
            yield f"ε = {epsilon}, n = {n}", float(fails), beta

    return at_most(cases())


def _chance_above(q: float, epsilon: float, r: int, bound: Function = epsilon_estimate) -> float:
    """P[bound(V, r) > ε], V ~ Bin(r, q)."""
    v, weight = binomial_counts(r, q)
    return float(weight @ (bound(v, r) > epsilon))


@claim(
    14,
    "def:asymptotic-validity",
    "Definition A.2",
    "Asymptotic validity: estimations exceed ε(M) + a with vanishing probability. One-run "
    "auditing of LRR_1 has it; knowing all other elements (XRR_1) does not.",
    CLOSED,
    "A-guessing-based-auditing#def-guess-asymptotic",
    stated=lambda r: _chance_above(p(1.0), 1.1, r),
    broken=lambda r: p(1.0),
)
def estimations_rarely_exceed(chance: Function) -> Finding:
    return tends([chance(r) for r in (10**2, 10**4, 10**6)], 0.0, 1e-3)


@claim(
    15,
    "def:asymptotic-tightness",
    "Definition A.3",
    "Asymptotic tightness: estimations reach ε(M) - a with probability tending to 1, as they do "
    "where every guess succeeds with probability p(ε).",
    CLOSED,
    "A-guessing-based-auditing#def-guess-asymptotic",
    stated=p(1.0),
    broken=1 - exp(-0.5) / 2,
)
def estimations_reach(success: float) -> Finding:
    return tends([_chance_above(success, 0.95, r) for r in (10**2, 10**4, 10**6)], 1.0, 1e-3)


@claim(
    16,
    "def:clopper-pearson-lower",
    "Definition A.5",
    "The Clopper-Pearson lower limit at level β exceeds the success probability with probability "
    "at most β.",
    EXACT,
    "A-guessing-based-auditing#def-guess-cp",
    stated=lambda beta: beta,
    broken=lambda beta: 1 - beta,
)
def clopper_pearson_covers(level: Function) -> Finding:
    def cases() -> Any:
        for r, q, beta in product((1, 5, 20, 60), (0.1, 0.5, 0.8, 0.97), (0.05, 0.3)):
            v = np.arange(r + 1)
            limit = clopper_pearson_lower(v, r, level(beta))
            fails = stats.binom.pmf(v, r, q) @ (limit > q * (1 + 1e-12))
            yield f"r = {r}, q = {q}", float(fails), beta

    return at_most(cases())


@claim(
    17,
    "def:stochastic-dominance",
    "Definition A.6",
    "X is dominated by Y if P[X > t] <= P[Y > t] for all t: then, and only then, the two can be "
    "coupled with X <= Y.",
    EXACT,
    "A-guessing-based-auditing#def-guess-dominance",
    stated=lambda x, y: bool((x[::-1].cumsum() <= y[::-1].cumsum() + 1e-12).all()),
    broken=lambda x, y: bool(np.arange(4) @ x <= np.arange(4) @ y),
)
def dominance(relation: Function) -> Finding:
    rng = np.random.default_rng(3)
    level = np.linspace(0.0005, 0.9995, 1000)
    answers = {}
    for pair in range(100):
        x, y = rng.dirichlet([3, 2, 1, 1]), rng.dirichlet([1, 1, 2, 3])
        coupled = np.searchsorted(x.cumsum(), level) <= np.searchsorted(y.cumsum(), level)
        answers[f"pair {pair}"] = (relation(x, y), bool(coupled.all()))
    finding = same_answers(answers)
    return (
        finding if not finding.holds else Finding(True, f"right for {len(answers)} pairs of laws")
    )


_LEVELS: dict[str, tuple[Any, int, float]] = {
    "NAS": (NameAndShame(), 3, inf),
    "AON": (AllOrNothing(0.25), 3, inf),
    "XOR": (Xor(), 3, inf),
    "XIP": (XorInPairs(), 4, inf),
    "Count": (Count(), 4, inf),
    "XRR": (XorRandomizedResponse(LN3), 3, LN3),
}


@claim(
    18,
    "def:mechanisms",
    "Definitions B.2, B.5, B.8, C.12, E.1, E.6, Section D.2",
    "Of the examples, XRR_ε and Local Laplace have privacy level ε, and NAS, AON, XOR, XIP and "
    "Count have none.",
    EXACT,
    "04-the-gaps#def-gaps-nas",
    stated=_LEVELS,
    broken={**_LEVELS, "XOR": (Xor(), 3, 0.0)},
)
def levels_of_the_examples(levels: dict[str, tuple[Any, int, float]]) -> Finding:
    def cases() -> Any:
        for name, (mechanism, n, level) in levels.items():
            yield name, channel(mechanism, n).epsilon, level
        loss = LocalLaplace(2.0).privacy_loss(np.linspace(-5, 5, 1001), 1)
        yield "LLP", float(np.abs(loss).max()), 2.0

    return equal(cases())


@claim(
    19,
    "def:max-divergence-total-variation-distance",
    "Definition C.2",
    "The total variation distance, half the sum of |P(x) - Q(x)|, is the largest difference "
    "P(A) - Q(A) over events A.",
    EXACT,
    "C-efficacy-in-detail#def-effc-distances",
    stated=0.5,
    broken=1.0,
)
def total_variation(factor: float) -> Finding:
    rng = np.random.default_rng(4)
    events = np.array(list(product((0, 1), repeat=5)))

    def cases() -> Any:
        for pair in range(50):
            one, other = rng.dirichlet(np.ones(5), 2)
            distance = factor * np.abs(one - other).sum()
            yield f"pair {pair}", float(distance), float((events @ (one - other)).max())

    return equal(cases())


@claim(
    20,
    "def:probably-approximately-randomized-response",
    "Section C.3",
    "(p, a)-probably approximately RR_ε in an index: given the others, success is at least "
    "p(ε) - a for a share p of their values.",
    EXACT,
    "C-efficacy-in-detail#def-effc-approach",
    stated=0.75,
    broken=0.8,
)
def probably_approximately(share: float) -> Finding:
    # Randomized response on the first of three bits, but a coin where the others are both -1.
    others = sign_vectors(2)
    truth = np.where((others == -1).all(axis=1), 0.5, p(LN3))
    found = float((truth >= p(LN3) - 0.01).mean())
    return at_most([("share of the others' values", share, found)])


@claim(
    21,
    "alg:dp-sgd",
    "Algorithm 3",
    "A step of DP-SGD subtracts the sum of the batch's clipped gradients plus noise of standard "
    "deviation σ times the clipping threshold.",
    MONTE_CARLO,
    "D-dp-sgd-in-detail#alg-detail-dpsgd",
    stated=(0.3, 1.7),
    broken=(0.3, 2.2),
)
def noisy_steps(setting: tuple[float, float]) -> Finding:
    rate, sigma = setting
    dpsgd, rng = DpSgd(n=400, d=200, steps=50, sample_rate=0.3, sigma=1.7), np.random.default_rng(5)
    weights = train(dpsgd, np.ones(400, dtype=bool), rng, clip=2.0, gradient=5.0)
    step = -np.diff(weights, axis=0).ravel() / 2.0
    size = step.size
    variance = 2 * rate * (1 - rate) + sigma**2
    spread = float(step.var(ddof=1))
    return near(
        [
            ("mean of a step", float(step.mean()), float(np.sqrt(variance / size)), 2 * rate),
            ("its variance", spread, spread * float(np.sqrt(2 / size)), variance),
        ]
    )


@claim(
    22,
    "def:full-knowledge-ora",
    "Section E.1",
    "Full-knowledge ORA guesses each element knowing all others; on XRR all guesses are then "
    "right together, or wrong together.",
    EXACT,
    "E-adaptive-auditing#prop-adapt-full",
    stated=lambda n: np.r_[0.25, np.zeros(n - 1), 0.75],
    broken=lambda n: stats.binom.pmf(np.arange(n + 1), n, 0.75),
)
def all_or_none(law: Function) -> Finding:
    def cases() -> Any:
        for n in (2, 3, 4):
            played = full_knowledge_law(channel(XorRandomizedResponse(LN3), n), ThresholdGuesser())
            for v, probability in enumerate(law(n)):
                yield f"n = {n}, v = {v}", float(probability), float(played[v, n])

    return equal(cases())


@claim(
    23,
    "def:adaptive-ora",
    "Definition E.3",
    "AORA lets the guesser see the true values of the elements that it is done with, also of "
    "those it abstained from: on XIP it then knows every second element.",
    EXACT,
    "E-adaptive-auditing#def-adapt-aora",
    stated="full",
    broken="none",
)
def second_elements_are_known(feedback: str) -> Finding:
    guesser = ThresholdGuesser(inf)

    def cases() -> Any:
        for n in (2, 4):
            table = channel(XorInPairs(), n)
            law = (
                one_run_law(table, guesser)
                if feedback == "none"
                else adaptive_law(table, guesser, feedback=feedback)
            )
            yield f"n = {n}", float(law[n // 2, n // 2]), 1.0

    return equal(cases())

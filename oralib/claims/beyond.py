"""What this book adds to the paper: its own theorems, in the same ledger and by the same rules."""

from collections.abc import Callable, Iterable
from functools import cache
from itertools import combinations, product
from math import exp, log2
from typing import Any

import numpy as np
from scipy import optimize, sparse, special, stats

from oralib.bounds import (
    adaptive_failure_probability,
    p,
    p_value,
    worst_case_rejection,
)
from oralib.channel import Channel, channel
from oralib.claims.adaptive import muting_failure
from oralib.claims.ledger import (
    CLOSED,
    EXACT,
    LINEAR_PROGRAM,
    OURS,
    WEAKER,
    Finding,
    all_of,
    at_most,
    claim,
    equal,
    exceeds,
    replaced,
    tends,
    varied,
)
from oralib.claims.tables import LN3, private, random_table, worst_failure
from oralib.games import best_mean, one_run_law
from oralib.guessers import TopGuesser
from oralib.mechanisms import (
    CountInSets,
    ExtremalResponse,
    LocalRandomizedResponse,
    sign_vectors,
)
from oralib.universe import SampledChannel

Function = Callable[..., Any]


# ----------------------------------------------------------------------------- full feedback


@cache
def _attained(epsilon: float, n: int, beta: float) -> float:
    """The worst failure of all guessers of randomized response with full feedback."""
    table = channel(LocalRandomizedResponse(epsilon), n)
    return best_mean(table, exceeds(n, epsilon, beta), feedback="full")


@claim(
    84,
    "ours:worst-case-of-full-feedback",
    OURS,
    "This book",
    "With full feedback the bound of an ε-DP mechanism exceeds ε with probability at most W_n, the "
    "chance that the bound of independent guesses of accuracy p(ε) ever does so within n of them; "
    "randomized response attains it.",
    EXACT,
    "valid-adaptive-auditing#thm-valid-worst",
    stated={"factor": 1.0},
    mutants=[varied("factor"), replaced("factor", no_more_than_β=None)],
)
def worst_case_of_full_feedback(factor: float | None) -> Finding:
    def worst(epsilon: float, n: int, beta: float) -> float:
        if factor is None:
            return beta
        return factor * adaptive_failure_probability(epsilon, n, beta)

    limits = (
        (f"{name}, β = {beta}", worst_failure(name, beta, "full"), worst(t.epsilon, t.n, beta))
        for (name, t), beta in product(private().items(), (0.3, 0.55, 0.65))
    )
    attained = (
        (f"LRR_{e}, n = {n}, β = {beta}", _attained(e, n, beta), worst(e, n, beta))
        for e, n, beta in ((0.5, 4, 0.65), (0.0, 3, 0.55), (0.2, 4, 0.4))
    )
    return all_of(at_most(limits), equal(attained))


@claim(
    85,
    "ours:anytime-bound",
    OURS,
    "This book",
    "The mixture bound exceeds ε with probability at most β even if guessing stops as soon as it "
    "does.",
    EXACT,
    "valid-adaptive-auditing#thm-valid-anytime",
    stated={"level": 1.0},
    mutants=[
        varied("level", down=WEAKER),
        replaced("level", twice_the_level=2.0),
    ],
    remark="After 10,000 guesses 8% to 22% of β are unused here; after 200,000, at ε = 3.5 and "
    "β = 0.35, only 3%, so that there a level 3% larger is refuted. At small ε even long audits "
    "leave much.",
)
def anytime_bound_is_valid(level: float) -> Finding:
    def cases() -> Any:
        short = [(epsilon, beta, 10_000) for epsilon in (0.0, 1.0, 3.0) for beta in (0.05, 0.3)]
        for epsilon, beta, n in (*short, (3.5, 0.35, 200_000)):
            spent = min(0.9, level * beta)
            worst = adaptive_failure_probability(epsilon, n, spent, bound="anytime")
            yield f"ε = {epsilon:g}, β = {beta}, n = {n}", worst, beta

    return at_most(cases())


@claim(
    95,
    "ours:one-threshold-fails",
    OURS,
    "This book",
    "Full feedback fails for the paper's own guessers too, with a fixed order and one threshold: "
    "on a response that mutes itself, nine elements, ε = 0.0175, a 90% bound fails with "
    "probability 0.1304.",
    EXACT,
    "valid-adaptive-auditing#prop-valid-muting",
    stated={"level": 0.0175, "failure": 0.1304, "feedback": "full"},
    mutants=[varied("level"), varied("failure"), replaced("feedback", none="none")],
)
def one_threshold_fails(level: float, failure: float, feedback: str) -> Finding:
    epsilon, fails = muting_failure(feedback)
    return equal([("level", epsilon, level), ("failure", fails, failure)], 5e-5)


# ------------------------------------------------------------------- one-way feedback is plain


@cache
def _with_delta() -> dict[str, tuple[Channel, float, float]]:
    """Small tables, an ε, and their δ at that ε."""
    tables = {
        "extremal n=3": (channel(ExtremalResponse(0.5, 0.05, 2, 3), 3), 0.5),
        "random n=2": (random_table(2, 3, seed=1), 0.2),
        "random n=3": (random_table(3, 4, seed=2), 0.2),
        "LRR n=3": (channel(LocalRandomizedResponse(LN3), 3), 0.5),
    }
    return {name: (table, level, table.delta(level)) for name, (table, level) in tables.items()}


def _success_law(table: Channel, decide: Function, feedback: str) -> dict[tuple[int, ...], float]:
    """The law of X = T S of a guesser that decides from the output and the signs it was told."""
    law: dict[tuple[int, ...], float] = {}
    for o, s in product(range(len(table.table)), range(2**table.n)):
        told: tuple[int, ...] = ()
        success: tuple[int, ...] = ()
        for i in range(table.n):
            guess = decide(o, i, told)
            sign = int(table.signs[s, i])
            told += (sign if guess == 0 or feedback == "full" else 0,)
            success += (guess * sign,)
        weight = table.table[o, s] / 2**table.n
        law[success] = law.get(success, 0.0) + weight
    return law


def _plain_mechanism(law: dict[tuple[int, ...], float], n: int) -> Channel:
    """The mechanism that prints s X: guessing what it prints has the success vector X."""
    outputs = np.array(list(product((-1, 0, 1), repeat=n)))
    rows = [[law.get(tuple(o * s), 0.0) for s in sign_vectors(n).astype(int)] for o in outputs]
    return Channel(np.array(rows))


def _guessers(count: int, seed: int) -> Iterable[Function]:
    """One that repeats the output of three signs, and random ones."""
    yield lambda o, i, told: int(sign_vectors(3)[o % 8, i])
    for j in range(count):
        rng = np.random.default_rng((seed, j))
        memory: dict[Any, int] = {}

        def decide(o: int, i: int, told: Any, rng: Any = rng, memory: Any = memory) -> int:
            key = (o, i, told)
            return int(memory.setdefault(key, int(rng.integers(-1, 2))))

        yield decide


@claim(
    86,
    "ours:one-way-is-plain",
    OURS,
    "This book",
    "Over all (ε, δ)-DP mechanisms together, one-way feedback can do no more than no feedback: "
    "whatever law the successes have, a plain audit of some mechanism, perhaps another one, with "
    "the same (ε, δ) has it too.",
    EXACT,
    "valid-adaptive-auditing#thm-valid-laws",
    stated={"feedback": "one-way", "factor": 1.0},
    mutants=[replaced("feedback", full="full"), varied("factor", up=WEAKER)],
)
def one_way_is_plain(feedback: str, factor: float) -> Finding:
    def cases() -> Any:
        for name, (table, epsilon, delta) in _with_delta().items():
            for j, decide in enumerate(_guessers(12, 17)):
                law = _success_law(table, decide, feedback)
                plain = _plain_mechanism(law, table.n)
                yield f"{name}, guesser {j}: δ", plain.delta(epsilon), factor * delta

    return at_most(cases())


# --------------------------------------------------------------------------- the exact p-value


def _maximum(objective: Any, rows: Any, limits: Any, totals: Any) -> float:
    """The largest objective @ x over x >= 0 with rows @ x <= limits and each total 1."""
    totals = np.atleast_2d(totals)
    found = optimize.linprog(
        -np.asarray(objective, dtype=float),
        A_ub=sparse.csr_array(rows),
        b_ub=limits,
        A_eq=sparse.csr_array(totals),
        b_eq=np.ones(len(totals)),
        method="highs",
    )
    return -float(found.fun)


@cache
def _best_mechanism(n: int, r: int, v: int, epsilon: float, delta: float) -> float:
    """max P[V >= v] over all (ε, δ)-DP mechanisms whose guesser takes exactly r guesses.

    The output may be taken to be the guesses: what else a mechanism prints can be dropped.
    """
    outputs = [o for o in product((-1, 0, 1), repeat=n) if sum(map(abs, o)) == r]

    def wins(o: Any, s: Any) -> bool:
        return sum(a == b for a, b in zip(o, s, strict=True)) >= v

    return _best_table(n, outputs, wins, epsilon, delta)


def _best_table(n: int, outputs: list[Any], wins: Function, epsilon: float, delta: float) -> float:
    """The largest chance to win of all (ε, δ)-DP mechanisms with these outputs.

    A linear program over the tables themselves; ``wins(o, s)`` says whether output o wins for s.
    """
    datasets = list(product((-1, 1), repeat=n))
    place = {(o, s): j for j, (o, s) in enumerate(product(outputs, datasets))}
    size, pairs = len(place), [(o, s, i) for o, s in place for i in range(n)]
    rows = sparse.lil_array((len(pairs) + n * len(datasets), size + len(pairs)))
    for row, (o, s, i) in enumerate(pairs):
        flipped = (*s[:i], -s[i], *s[i + 1 :])
        rows[row, place[o, s]] = 1.0
        rows[row, place[o, flipped]] = -exp(epsilon)
        rows[row, size + row] = -1.0
        budget = len(pairs) + datasets.index(s) * n + i
        rows[budget, size + row] = 1.0
    right = [wins(o, s) for o, s in place]
    totals = np.zeros((len(datasets), size + len(pairs)))
    for (_, s), j in place.items():
        totals[datasets.index(s), j] = 1.0
    return _maximum(
        np.r_[np.array(right) / len(datasets), np.zeros(len(pairs))],
        rows,
        np.r_[np.zeros(len(pairs)), np.full(n * len(datasets), delta)],
        totals,
    )


def _formula(
    v: int, r: int, epsilon: float, budget: float, tail: float = 1.0, price: float = 1.0
) -> float:
    """1 - (1 - luck)(1 - nδ/price)+ by its words, with factors to vary its parts."""
    law = stats.binom(r, p(epsilon))
    f = law.sf(v - 1)
    b = v * law.pmf(v) / f
    return float(1 - (1 - min(1.0, tail * f)) * max(0.0, 1 - price * budget / b))


def _cases_of_fixed_r() -> list[tuple[int, int, int, float, float]]:
    rng = np.random.default_rng(8)
    found = []
    for n, r in ((1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (3, 2), (3, 3), (4, 2)):
        v = int(rng.integers(1, r + 1))
        found.append((n, r, v, float(rng.uniform(0, 1.5)), float(rng.uniform(0.01, 0.1))))
    return found


@claim(
    87,
    "ours:exact-p-value",
    OURS,
    "This book",
    "For r guesses fixed in advance, the largest P[V ≥ v] of all (ε, δ)-DP mechanisms and plain "
    "or one-way guessers is 1 − (1 − luck) max(0, 1 − nδ/price), with luck = P[W ≥ v] and "
    "price = v P[W = v] / P[W ≥ v] for W ~ Bin(r, p(ε)).",
    LINEAR_PROGRAM,
    "exact-bound#thm-exact-fixed",
    stated={"tail": 1.0, "price": 1.0},
    mutants=[varied("tail"), varied("price")],
    remark="The linear program runs over all tables of up to four elements, not over a class of "
    "laws.",
)
def exact_p_value(tail: float, price: float) -> Finding:
    def cases() -> Any:
        for n, r, v, epsilon, delta in _cases_of_fixed_r():
            value = _formula(v, r, epsilon, n * delta, tail, price)
            name = f"n = {n}, v = {v}, r = {r}"
            yield name, value, _best_mechanism(n, r, v, epsilon, delta)
        for v, r, epsilon, delta, n in ((75, 100, 0.5, 1e-4, 1000), (8, 10, 0.0, 0.01, 40)):
            own = p_value(v, r, epsilon, delta=delta, n=n, method="exact")
            yield f"({v}, {r})", _formula(v, r, epsilon, n * delta, tail, price), own

    return equal(cases(), 1e-6)


@cache
def _best_told(thresholds: tuple[int, ...], epsilon: float, delta: float, stops: bool) -> float:
    """max P[V >= c_R] with full feedback about a list that the output decides.

    The output may be taken to be the list and, for each that may have been told, the next guess.
    With ``stops`` the guesser may end before the list does.
    """
    n = len(thresholds)
    lists = [a for r in range(1, n + 1) for a in combinations(range(n), r)]
    outputs = [(a, t) for a in lists for t in product((-1, 1), repeat=2 ** len(a) - 1)]

    def wins(o: Any, s: Any) -> bool:
        elements, guesses = o
        place = right = 0
        good = []
        for r, i in enumerate(elements, start=1):
            right += guesses[place] == s[i]
            place = 2 * place + (1 if s[i] < 0 else 2)
            good.append(right >= thresholds[r - 1])
        return any(good) if stops else good[-1]

    return _best_table(n, outputs, wins, epsilon, delta)


@claim(
    99,
    "ours:list-is-plain",
    OURS,
    "This book",
    "If the guesser goes through a list of elements that the output has settled, to its end, full "
    "feedback can do no more than none: the largest P[V ≥ c_R] is that of plain guessers, "
    "1 − (1 − luck) max(0, 1 − nδ/price) with the largest luck and the least price of all "
    "lengths.",
    LINEAR_PROGRAM,
    "exact-bound#thm-exact-told",
    stated={"tail": 1.0, "price": 1.0, "stops": False},
    mutants=[varied("tail"), varied("price"), *replaced("stops", before_the_end=True)],
    remark="The linear program runs over all tables of up to three elements, all sets of them "
    "as lists, and all guesses that use what was told.",
)
def list_is_plain(tail: float, price: float, stops: bool) -> Finding:
    def cases() -> Any:
        for c, epsilon, delta in (
            ((1, 2), 0.7, 0.05),
            ((9, 1), 0.0, 0.1),
            ((9, 9, 2), 0.5, 0.03),
            ((9, 9, 3), 1.0, 0.02),
            ((1, 2, 2), 0.0, 0.02),
            ((1, 2, 3), 0.3, 0.05),
        ):
            n = len(c)
            lucks, prices = [], []
            for r, v in enumerate(c, start=1):
                if v <= r:
                    law = stats.binom(r, p(epsilon))
                    lucks.append(law.sf(v - 1))
                    prices.append(v * law.pmf(v) / law.sf(v - 1))
            bought = max(0.0, 1 - price * n * delta / min(prices))
            value = 1 - (1 - min(1.0, tail * max(lucks))) * bought
            name = f"c = {', '.join(str(v) if v < 9 else 'never' for v in c)}"
            yield name, value, _best_told(c, epsilon, delta, stops)

    return equal(cases(), 1e-6)


@claim(
    88,
    "ours:extremal-response",
    OURS,
    "This book",
    "A mechanism attains the exact p-value, and has exactly δ where nδ is at most the price.",
    EXACT,
    "exact-bound#thm-exact-fixed",
    stated={"tail": 1.0, "delta": 1.0},
    mutants=[varied("tail"), varied("delta")],
)
def exact_p_value_is_attained(tail: float, delta: float) -> Finding:
    def cases() -> Any:
        for level, leak, v, r, n in (
            (0.0, 0.05, 1, 3, 3),
            (0.5, 0.05, 2, 3, 4),
            (1.0, 0.02, 3, 3, 3),
        ):
            table = channel(ExtremalResponse(level, leak, v, r), n)
            name = f"v = {v}, r = {r}, n = {n}"
            yield f"{name}, δ", table.delta(level), delta * leak
            reached = float(one_run_law(table, TopGuesser(r))[v:].sum())
            yield f"{name}, tail", reached, _formula(v, r, level, n * leak, tail)

    return equal(cases())


@claim(
    89,
    "ours:steinke-for-small-tails",
    OURS,
    "This book, on Steinke et al.",
    "For r fixed in advance the p-value of Steinke et al., f + 2nδα, is at least the exact one "
    "wherever f ≤ p(ε), so it is a theorem there; not for all v.",
    EXACT,
    "exact-bound#prop-exact-usual",
    stated={"two": 2.0, "border": 1.0},
    mutants=[
        varied("two", up=WEAKER, down="whether 1 would do in place of 2 is an open question"),
        varied("border", down=WEAKER),
        replaced("border", all_v=10.0),
    ],
)
def steinke_where_the_tail_is_small(two: float, border: float) -> Finding:
    def cases() -> Any:
        for r, epsilon, delta in product((1, 3, 10, 40), (0.0, 0.5, 2.0, 4.0), (0.05, 0.01, 1e-5)):
            v = np.arange(1, r + 1)
            exact = p_value(v, r, epsilon, delta=delta, n=r, method="exact")
            law = stats.binom(r, p(epsilon))
            for k in v:
                f, i = law.sf(k - 1), np.arange(1, k + 1)
                alpha = ((law.cdf(k - 1) - law.cdf(k - 1 - i)) / i).max()
                if f <= border * p(epsilon):
                    usual = min(1.0, f + two * r * delta * alpha)
                    yield f"v = {k}, r = {r}, ε = {epsilon}", float(exact[k - 1]), usual

    return at_most(cases())


# ------------------------------------------------------------------ a random number of guesses


def _best_of_all_laws(reward: Function, n: int, epsilon: float, delta: float) -> float:
    """max E[reward(V, R)] over all laws on {-1, 0, 1}^n with excess δ for each element."""
    points = list(product((-1, 0, 1), repeat=n))
    place = {x: j for j, x in enumerate(points)}
    taken = [(j, i) for j, x in enumerate(points) for i in range(n) if x[i]]
    rows = np.zeros((len(taken) + n, len(points) + len(taken)))
    for row, (j, i) in enumerate(taken):
        x = points[j]
        rows[row, j] += 1
        rows[row, place[(*x[:i], -x[i], *x[i + 1 :])]] -= exp(epsilon)
        rows[row, len(points) + row] = -1
        rows[len(taken) + i, len(points) + row] = 1
    worth = [reward(x.count(1), n - x.count(0)) for x in points]
    return _maximum(
        np.r_[worth, np.zeros(len(taken))],
        rows,
        np.r_[np.zeros(len(taken)), np.full(n, delta)],
        np.r_[np.ones(len(points)), np.zeros(len(taken))],
    )


@cache
def _worst_of_thresholds(c: tuple[int, ...], epsilon: float, delta: float) -> float:
    """max P[V >= c_R], by a linear program over all laws of success vectors."""

    def reward(v: int, r: int) -> float:
        return float(r > 0 and v >= c[r - 1])

    return _best_of_all_laws(reward, len(c), epsilon, delta)


def _random_thresholds() -> list[tuple[tuple[int, ...], float, float]]:
    rng = np.random.default_rng(9)
    drawn = [tuple(int(rng.integers(1, r + 2)) for r in range(1, 4)) for _ in range(6)]
    # In the last one 3 of 4 has the largest tail, and 2 of 2 the least B.
    return [
        (c, float(rng.uniform(0, 0.2)), float(10 ** rng.uniform(-3, -1)))
        for c in (*drawn, (2, 2, 4, 3))
    ]


@claim(
    90,
    "ours:random-number-of-guesses",
    OURS,
    "This book",
    "For a random number of plain or one-way guesses, the worst case of a rule V ≥ c_R takes the "
    "largest luck and the least price over all r, which may be those of different r.",
    LINEAR_PROGRAM,
    "exact-bound#thm-exact-random",
    stated={"tail": 1.0, "price": 1.0, "joined": True},
    mutants=[varied("tail"), varied("price"), replaced("joined", the_worst_r_alone=False)],
)
def random_number_of_guesses(tail: float, price: float, joined: bool) -> Finding:
    def formula(c: tuple[int, ...], epsilon: float, budget: float) -> float:
        laws = [(k, r, stats.binom(r, p(epsilon))) for r, k in enumerate(c, start=1) if k <= r]
        f = [float(law.sf(k - 1)) for k, _, law in laws]
        b = [k * float(law.pmf(k)) / x for (k, _, law), x in zip(laws, f, strict=True)]
        if joined:
            f, b = [max(f)] if f else [], [min(b)] if b else []
        return max(
            (
                1 - (1 - min(1.0, tail * x)) * max(0.0, 1 - price * budget / y)
                for x, y in zip(f, b, strict=True)
            ),
            default=0.0,
        )

    def cases() -> Any:
        for c, epsilon, delta in _random_thresholds():
            value = formula(c, epsilon, len(c) * delta)
            yield f"thresholds {c}", value, _worst_of_thresholds(c, epsilon, delta)
            own = worst_case_rejection(c, epsilon, delta=delta, n=len(c))
            yield f"thresholds {c}", own, _worst_of_thresholds(c, epsilon, delta)

    return equal(cases(), 1e-6)


def _split_value(v: Any, r: int, epsilon: float, delta: float, n: int) -> Any:
    """The p-value behind epsilon_lower_bound_random_r with split = 0.1, by its words."""
    law, k = stats.binom(r, p(epsilon)), np.maximum(v, 1)
    f = law.sf(k - 1)
    ratio = np.exp(np.minimum(law.logsf(k - 1) - law.logpmf(k), 700.0))  # far below the mode
    x = n * delta * ratio / k
    return np.where(v == 0, 1.0, np.maximum(f / (1 - 0.1 * (1 - f)), x / 0.1))


_RULES: dict[str, Function] = {
    "usual": lambda v, r, epsilon, delta, n: p_value(v, r, epsilon, delta=delta, n=n),
    "exact": lambda v, r, epsilon, delta, n: p_value(
        v, r, epsilon, delta=delta, n=n, method="exact"
    ),
    "split": _split_value,
}


def _thresholds(rule: str, epsilon: float, delta: float, n: int, beta: float) -> tuple[int, ...]:
    """For each r the least v with a p-value of at most β."""
    found = []
    for r in range(1, n + 1):
        rejected = np.asarray(_RULES[rule](np.arange(r + 1), r, epsilon, delta, n)) <= beta
        found.append(int(np.argmax(np.append(rejected, True))))
    return tuple(found)


#: ε, δ, n, how many true signs are printed now and then, and how many responses otherwise.
_ADVERSARIES = (
    (0.0, 1e-4, 1000, 7, 953),
    (1.0, 1e-4, 1000, 14, 977),
    (1.0, 1e-5, 5000, 12, 4839),
    (0.0, 4.63e-5, 1000, 9, 784),
)


@cache
def _played_failure(rule: str, beta: float, setting: tuple[float, float, int, int, int]) -> float:
    """How often a rule at level β rejects the true ε of a mechanism of two faces.

    With probability nδ/k it prints k random elements truly, each of them with probability δ; else
    ε-randomized response of the first r1. It is (ε, δ)-DP, and no formula of ours is needed to
    see how often the p-value of what is printed is at most β.
    """
    epsilon, delta, n, k, r1 = setting
    value = _RULES[rule]
    shown = n * delta / k
    v = np.arange(r1 + 1)
    rejected = np.asarray(value(v, r1, epsilon, delta, n)) <= beta
    luck = float(stats.binom.pmf(v, r1, p(epsilon)) @ rejected)
    bought = float(value(np.array([k]), k, epsilon, delta, n)[0] <= beta)
    return shown * bought + (1 - shown) * luck


@cache
def _mechanism_of_two_faces_is_private() -> Finding:
    """On four elements, from its table: with k = 2 and r1 = 3 it has just the δ that is meant."""
    signs, n, k, epsilon, delta = sign_vectors(4), 4, 2, 0.3, 0.02
    rows, weights = [], []
    shown = n * delta / k
    for a, b in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)):
        for x, y in product((-1, 1), repeat=2):
            rows.append((signs[:, a] == x) & (signs[:, b] == y))
            weights.append(shown / 6)
    truth = [(signs[:, :3] == o).sum(axis=1) for o in sign_vectors(3)]
    noisy = [(1 - shown) * p(epsilon) ** t * p(-epsilon) ** (3 - t) for t in truth]
    table = np.vstack([np.array(rows) * np.array(weights)[:, None], np.array(noisy)])
    return at_most([("δ", Channel(table).delta(epsilon), delta)])


@claim(
    91,
    "ours:random-r-needs-another-rule",
    OURS,
    "This book",
    "When the number of guesses depends on the output, neither the p-value of Steinke et al. nor "
    "the exact one is valid in general; max(luck / (1 − λ(1 − luck)), nδ / (λ price)) is, with λ "
    "fixed before, for plain and one-way guessers.",
    LINEAR_PROGRAM,
    "exact-bound#thm-exact-split",
    stated={"rule": "split", "level": 1.0},
    mutants=[
        replaced("rule", usual="usual", exact="exact"),
        varied("level", down=WEAKER),
        replaced("level", a_fifth_more=1.2),
    ],
)
def random_r_needs_another_rule(rule: str, level: float) -> Finding:
    def cases() -> Any:
        for setting in _ADVERSARIES:
            epsilon, delta, n, *_ = setting
            name = f"two faces, ε = {epsilon}, δ = {delta:g}, n = {n}"
            yield name, _played_failure(rule, round(0.05 * level, 12), setting), 0.05
        for n, epsilon, delta, beta in product((3, 4), (0.0, 0.3), (0.02, 0.05), (0.3, 0.4, 0.65)):
            c = _thresholds(rule, epsilon, delta, n, beta * level)
            yield f"all laws, n = {n}", _worst_of_thresholds(c, epsilon, delta), beta

    return all_of(_mechanism_of_two_faces_is_private(), at_most(cases(), 1e-7))


@claim(
    92,
    "ours:bounded-damage",
    OURS,
    "This book, on Steinke et al.",
    "Used at a random number of plain or one-way guesses, a bound of Steinke et al. at level "
    "β ≤ 1/2 fails with probability at most (2 − p(ε)) β, and it can fail with more than β.",
    LINEAR_PROGRAM,
    "exact-bound#prop-exact-usual",
    stated={"two": 2.0, "one": 1.0},
    mutants=[
        varied("two", up=WEAKER),
        varied("one", down=WEAKER),
        replaced("two", no_damage=1.0),
    ],
    remark="How much damage is possible at a given ε is not known; where p(ε) is nearly 1, even a "
    "fixed number of guesses comes near the bound.",
)
def damage_is_bounded(two: float, one: float) -> Finding:
    def cases() -> Any:
        # In the last one randomized response leaves next to nothing of β, and δ plays no part.
        for setting in (*_ADVERSARIES, (4.0, 1e-12, 3000, 1, 2257)):
            epsilon, delta, n, *_ = setting
            limit = 0.05 * (two - one * p(epsilon)) if two > 1 else 0.05
            name = f"two faces, ε = {epsilon}, δ = {delta:g}, n = {n}"
            yield name, _played_failure("usual", 0.05, setting), limit
        for n, epsilon, delta, beta in product((3, 4), (0.0, 0.3), (0.02, 0.05), (0.3, 0.4, 0.5)):
            c = _thresholds("usual", epsilon, delta, n, beta)
            limit = beta * (two - one * p(epsilon)) if two > 1 else beta
            yield f"all laws, n = {n}", _worst_of_thresholds(c, epsilon, delta), limit

    return at_most(cases(), 1e-7)


@cache
def _budget_cases() -> list[tuple[int, int, float, float, float]]:
    rng, found = np.random.default_rng(11), []
    for _ in range(8):
        k = int(rng.integers(1, 4))
        v = int(rng.integers(1, k + 1))
        epsilon, delta = float(rng.uniform(0, 1.5)), float(10 ** rng.uniform(-3, -1))

        def reward(a: int, r: int, v: int = v, k: int = k) -> float:
            return float(a >= v and r <= k)

        found.append((v, k, epsilon, delta, _best_of_all_laws(reward, 3, epsilon, delta)))
    return found


@claim(
    93,
    "ours:fixed-budget",
    OURS,
    "This book",
    "With at most k plain or one-way guesses, missing ones counted as wrong, the exact p-value of "
    "(v, k) is the worst case again.",
    LINEAR_PROGRAM,
    "exact-bound#prop-exact-budget",
    stated={"tail": 1.0, "price": 1.0, "size": "k"},
    mutants=[varied("tail"), varied("price"), replaced("size", one_less="k − 1")],
)
def fixed_budget(tail: float, price: float, size: str) -> Finding:
    def cases() -> Any:
        for v, k, epsilon, delta, found in _budget_cases():
            r = k if size == "k" else max(v, k - 1)
            value = _formula(v, r, epsilon, 3 * delta, tail, price)
            yield f"v = {v}, k = {k}", value, found

    return equal(cases(), 1e-6)


# ------------------------------------------------------------------------------ Count-in-Sets


@claim(
    94,
    "ours:equal-pairs",
    OURS,
    "This book",
    "Pairs of two equal elements change the picture: with one live pair in each set of "
    "Count-in-Sets the live ones are given away, E*_2 = 1 at n = 4, s = 2, against 7/8 with "
    "different elements in every pair.",
    EXACT,
    "D-dp-sgd-in-detail#prop-detail-equal",
    stated={"equal_allowed": 1.0, "different": 0.875},
    mutants=[varied("equal_allowed"), varied("different")],
)
def equal_pairs(equal_allowed: float, different: float) -> Finding:
    def cases() -> Any:
        for s, sets in ((2, 2), (3, 2), (2, 3)):
            counts = SampledChannel.of(channel(CountInSets(s), s * sets))
            live = [(0, 1) if i % s == 0 else (0, 0) for i in range(s * sets)]
            best = counts.restricted(live).optimal_efficacy(sets)
            yield f"s = {s}, one live pair a set", best, equal_allowed
        yield "n = 4, s = 2", channel(CountInSets(2), 4).optimal_efficacy(2), different

    return equal(cases())


@cache
def _median_best_set(c: float, log2_n: float) -> float:
    """The accuracy that the best set reaches with probability 1/2, at s = c log2 n."""
    s = round(c * log2_n)
    rare = np.arange(s // 2 + 1)
    log_weight = special.gammaln(s + 1) - special.gammaln(rare + 1) - special.gammaln(s - rare + 1)
    log_tail = np.logaddexp.accumulate(log_weight) / np.log(2) - s + 1
    expected = log2_n - log2(s) + log_tail  # log2 of the number of sets that are so extreme
    return float(1 - rare[np.searchsorted(expected, log2(np.log(2)))] / s)


@claim(
    98,
    "ours:beyond-the-border",
    OURS,
    "This book",
    "For sets of c log2 n elements, c > 1, all of one size, the best efficacy of few guesses tends "
    "to 1 − h⁻¹(1 − 1/c), h the binary entropy.",
    CLOSED,
    "D-dp-sgd-in-detail#prop-detail-beyond",
    stated={"one": 1.0, "reciprocal": 1.0},
    mutants=[varied("one"), varied("reciprocal")],
)
def beyond_the_border(one: float, reciprocal: float) -> Finding:
    findings = []
    for c in (1.5, 2.0, 4.0):
        goal = min(one - reciprocal / c, 1.0)

        def excess(x: float, goal: float = goal) -> float:
            entropy = special.entr(x) + special.entr(1 - x)
            return float(entropy / np.log(2) - goal)

        limit = 1 - optimize.brentq(excess, 1e-12, 0.5)
        values = [_median_best_set(c, x) for x in (10**3, 10**4, 10**5)]
        findings.append(tends(values, limit, 0.002))
    return all_of(*findings)

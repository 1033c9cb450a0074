"""Deliberately naive re-implementations: definitions spelled out in loops, fractions and digits."""

from fractions import Fraction
from functools import cache
from itertools import product

import mpmath as mp
from scipy import stats

# ------------------------------------------------------------------------------- the bounds

mp.mp.dps = 40


def binomial_pmf(k, r, epsilon):
    """P[Bin(r, p(epsilon)) = k] to 40 digits."""
    q = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
    return mp.binomial(r, k) * q**k * (1 - q) ** (r - k)


def _exp_log_pmf(k, r, q):
    """P[Bin(r, q) = k] by logarithms, for large r."""
    log_ways = mp.loggamma(r + 1) - mp.loggamma(k + 1) - mp.loggamma(r - k + 1)
    return mp.exp(log_ways + k * mp.log(q) + (r - k) * mp.log(1 - q))


@cache
def binomial_tail(k, r, epsilon):
    """P[Bin(r, p(epsilon)) >= k] to about 40 digits: the terms from the largest down."""
    if k <= 0:
        return mp.mpf(1)
    q = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
    if k <= r * q:
        return 1 - binomial_tail(r - k + 1, r, -mp.mpf(epsilon))
    odds, first = q / (1 - q), _exp_log_pmf(k, r, q)
    term = total = mp.mpf(1)
    while k < r and term > total * mp.mpf(10) ** -30:
        term *= odds * (r - k) / (k + 1)
        total += term
        k += 1
    return first * total


def steinke_p_value(v, r, epsilon, delta, n):
    """The p-value of Steinke et al. to about 40 digits, by the loop over i."""
    mass, best = mp.mpf(0), mp.mpf(0)
    for i in range(1, v + 1):
        mass += binomial_pmf(v - i, r, epsilon)
        best = max(best, mass / i)
    return min(binomial_tail(v, r, epsilon) + 2 * n * mp.mpf(delta) * best, mp.mpf(1))


def exact_p_value(v, r, epsilon, delta, n):
    """The exact (ε, δ) p-value to about 30 digits, by its formula."""
    q = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
    f = binomial_tail(v, r, epsilon)
    x = n * mp.mpf(delta) * f / (v * _exp_log_pmf(v, r, q))
    return 1 - (1 - f) * max(0, 1 - x) if x > f else f + min(x, 1) * (1 - f)


# ------------------------------------------------- mechanisms as {dataset: {output: Fraction}}


def table(mechanism, n):
    """P[output | s] in fractions, from the paper's definition of the mechanism."""
    return {s: mechanism(s) for s in product((-1, 1), repeat=n)}


def bits(s):
    return [1 if sign == 1 else 0 for sign in s]


def randomized_response(truth):
    def run(s):
        out = {}
        for o in product((-1, 1), repeat=len(s)):
            probability = Fraction(1)
            for a, b in zip(o, s, strict=True):
                probability *= truth if a == b else 1 - truth
            out[o] = probability
        return out

    return run


def name_and_shame(s):
    out = {}
    for i, sign in enumerate(s):
        out[(i, sign)] = Fraction(1, len(s))
    return out


def all_or_nothing(p):
    return lambda s: {s: p, None: 1 - p}


def xor(s):
    return {sum(bits(s)) % 2: Fraction(1)}


def xor_in_pairs(s):
    b = bits(s)
    return {tuple(b[i] ^ b[i + 1] for i in range(0, len(b), 2)): Fraction(1)}


def xor_randomized_response(truth):
    def run(s):
        x = sum(bits(s)) % 2
        return {x: truth, 1 - x: 1 - truth}

    return run


def count(s):
    return {sum(bits(s)): Fraction(1)}


def count_in_sets(size):
    def run(s):
        b = bits(s)
        return {tuple(sum(b[i : i + size]) for i in range(0, len(b), size)): Fraction(1)}

    return run


# ------------------------- continuous mechanisms: dataset -> the law of each entry of the output


def local_laplace(epsilon):
    return lambda s: [stats.laplace(loc=sign, scale=2 / epsilon) for sign in s]


def noisy_count_in_sets(size, sigma):
    def laws(s):
        b = bits(s)
        return [stats.norm(sum(b[i : i + size]), sigma) for i in range(0, len(b), size)]

    return laws


# ------------------------------------------------------------- guessers: losses -> guesses


def likelier_sign(loss):
    """-1 if the loss points to it, else 1; nine digits, as rounding errors point to nothing."""
    return -1 if round(loss, 9) > 0 else 1


def threshold_guesses(losses, tau):
    """A guess wherever the loss has at least the size tau."""
    guesses = []
    for loss in losses:
        enough = round(abs(loss), 9) >= round(tau, 9)
        guesses.append(likelier_sign(loss) if enough else 0)
    return guesses


def top_guesses(losses, k):
    """k times a guess where the loss is largest of those that are left, the first if equal."""
    guesses = [0] * len(losses)
    for _ in range(k):
        left = [i for i, guess in enumerate(guesses) if guess == 0]
        largest = max(round(abs(losses[i]), 9) for i in left)
        first = next(i for i in left if round(abs(losses[i]), 9) == largest)
        guesses[first] = likelier_sign(losses[first])
    return guesses


# ---------------------------------------------------------------------- what a table says


def outputs(table):
    return {o for law in table.values() for o, p in law.items() if p > 0}


def joint(table, o, known, index, sign):
    """P[O = o, known signs, S_index = sign], up to the constant 2^-n."""
    total = Fraction(0)
    for s, law in table.items():
        if s[index] == sign and all(s[j] == value for j, value in known.items() if j != index):
            total += law.get(o, Fraction(0))
    return total


def likelihood_ratio(table, o, known, index):
    """P[o, known | S_i = -1] / P[o, known | S_i = 1]; None stands for infinity."""
    minus, plus = (joint(table, o, known, index, sign) for sign in (-1, 1))
    return minus / plus if plus else None


def best_efficacy(table, k):
    """max E[V/R] over all guessers that take at least k guesses: every guess vector is tried."""
    n = len(next(iter(table)))
    total = Fraction(0)
    for o in outputs(table):
        total += max(
            sum(
                table[s].get(o, Fraction(0))
                * Fraction(sum(a == b for a, b in zip(t, s, strict=True)), r)
                for s in table
            )
            for t in product((-1, 0, 1), repeat=n)
            for r in [sum(map(abs, t))]
            if r >= k
        )
    return total / 2**n


def threshold_guess(ratio, threshold):
    """A guess from a likelihood ratio minus / plus; ``threshold`` is e^tau, None for infinity."""
    size = None if ratio is None or ratio == 0 else max(ratio, 1 / ratio)
    if size is not None and (threshold is None or size < threshold):
        return 0
    return -1 if ratio is None or ratio > 1 else 1


def law_of_counts(table, threshold, feedback):
    """The law {(v, r): Fraction} of the threshold guesser, by walking through every (o, s).

    feedback: "none", "one-way", "full", or "all" (every other sign is known from the start).
    """
    n = len(next(iter(table)))
    law = {}
    for s in table:
        for o, probability in table[s].items():
            known = dict(enumerate(s)) if feedback == "all" else {}
            v = r = 0
            for i in range(n):
                guess = threshold_guess(likelihood_ratio(table, o, known, i), threshold)
                v += guess == s[i]
                r += guess != 0
                if feedback == "full" or (feedback == "one-way" and guess == 0):
                    known[i] = s[i]
            law[v, r] = law.get((v, r), Fraction(0)) + probability / 2**n
    return {key: p for key, p in law.items() if p}

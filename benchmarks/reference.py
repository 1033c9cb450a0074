"""Plain implementations, as a researcher would write them with NumPy and SciPy.

They are correct (tests compare them with oralib) and make sensible use of vectorisation. Those
whose names end with ``_twin`` have our algorithm; what they lack is a compiler.
"""

from functools import partial
from math import ceil, exp, floor, inf, log, sqrt

import dp_accounting
import numpy as np
from dp_accounting import rdp
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import optimize, special, stats

from orabook.studies import run_dpsgd
from oralib import DpSgd
from oralib.bounds import Counts
from oralib.dpsgd.play import play_audits
from oralib.ground import arguments


def p_value_vectorised(v, r, epsilon, delta, n):
    """The p-value of Steinke et al., all windows at once."""
    q = 1 / (1 + np.exp(-epsilon))
    tail = stats.binom.sf(v - 1, r, q)
    windows = np.cumsum(stats.binom.pmf(np.arange(v - 1, -1, -1), r, q))
    return min(1.0, tail + 2 * n * delta * np.max(windows / np.arange(1, v + 1)))


def p_value_loop(v, r, epsilon, delta, n):
    """The p-value of Steinke et al. by a loop over the windows."""
    q = 1 / (1 + np.exp(-epsilon))
    mass = best = 0.0
    for i in range(1, v + 1):
        mass += stats.binom.pmf(v - i, r, q)
        best = max(best, mass / i)
    return min(1.0, stats.binom.sf(v - 1, r, q) + 2 * n * delta * best)


def epsilon_lower_bound(v, r, delta, n, beta=0.05, p_value=p_value_vectorised):
    """The largest ε whose p-value is at most beta, by doubling and 40 bisections."""
    if p_value(v, r, 0.0, delta, n) > beta:
        return 0.0
    low = 0.0
    high = 1.0
    while p_value(v, r, high, delta, n) <= beta:
        low = high
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        if p_value(v, r, middle, delta, n) <= beta:
            low = middle
        else:
            high = middle
    return low


def epsilon_lower_bound_brentq(v, r, delta, n, beta=0.05):
    """The largest ε whose p-value is at most beta, by SciPy's root finder."""

    def excess(epsilon):
        return p_value_vectorised(v, r, epsilon, delta, n) - beta

    if excess(0.0) > 0:
        return 0.0
    high = 1.0
    while excess(high) <= 0:
        high *= 2
    return optimize.brentq(excess, 0.0 if high == 1 else high / 2, high, xtol=1e-10)


def log_pmf(k, r, q):
    """log P[Bin(r, q) = k]."""
    choose = special.gammaln(r + 1) - special.gammaln(k + 1) - special.gammaln(r - k + 1)
    return choose + special.xlogy(k, q) + special.xlog1py(r - k, -q)


def best_window(v, r, q):
    """(start, mean) of the window [start, v) with the largest mean probability, by bisection."""
    beyond = special.bdtrc(v - 1, r, q)

    def grows(start):
        mean = (special.bdtrc(start - 1, r, q) - beyond) / (v - start)
        return exp(log_pmf(start - 1, r, q)) > mean

    high = min(v - 1, floor((r + 1) * q) + 1)
    low = max(high - 1, 0)
    step = int(sqrt(r * q * (1 - q))) + 1
    while low > 0 and grows(low):
        high = low
        low = max(low - step, 0)
        step *= 2
    while high - low > 1:
        middle = (low + high) // 2
        if grows(middle):
            high = middle
        else:
            low = middle
    below = special.bdtrc(low - 1, r, q) if low > 0 else 1.0
    return low, (below - beyond) / (v - low)


def p_value_twin(v, r, epsilon, delta, n):
    """The p-value of Steinke et al. and its derivative, from its best window alone."""
    q = special.expit(epsilon)
    start, mean = best_window(v, r, q)
    slope = v * exp(log_pmf(v, r, q))
    of_start = start * exp(log_pmf(start, r, q)) - slope
    slope = (1 - q) * (slope + 2 * n * delta / (v - start) * of_start)
    return special.bdtrc(v - 1, r, q) + 2 * n * delta * mean, slope


def epsilon_lower_bound_twin(v, r, delta, n, beta=0.05):
    """The largest ε whose p-value is at most beta, by Newton's method inside a bracket."""
    if v == 0 or p_value_twin(v, r, 0.0, delta, n)[0] > beta:
        return 0.0
    low = 0.0
    high = -log(np.expm1(-log(beta) / r)) + 1e-9
    x = log((v + 0.5) / (r - v + 0.5)) - 1.6 * sqrt(1 / (v + 0.5) + 1 / (r - v + 0.5))
    for _ in range(100):
        if not low < x < high:
            x = (low + high) / 2
        value, slope = p_value_twin(v, r, x, delta, n)
        if value > beta:
            high = x
        else:
            low = x
        step = value * log(beta / value) / slope if value > 0 and slope > 0 else inf
        x += step
        if abs(step) < 1e-12 * (1 + abs(x)):
            break
    return x


def rejects_gdp(v, r, n, beta, mu):
    """The excess of the recursion of f-DP over r / n at its end, for the curve of mu-GDP."""
    a = beta * v / n
    b = beta * (r - v) / n
    for i in range(v - 1, -1, -1):
        required = special.ndtr(special.ndtri(a) - mu)
        if required <= b:
            break
        a = min(1.0, a + (required - b) * i / (r - i))
        b = required
    return a + b - r / n


def epsilon_lower_bound_fdp(v, r, n, delta, beta=0.05):
    """The epsilon at delta of the largest mu that is rejected, by two calls of brentq."""
    if rejects_gdp(v, r, n, beta, 0.0) <= 0:
        return 0.0
    high = 1.0
    while rejects_gdp(v, r, n, beta, high) > 0:
        high *= 2
    mu = optimize.brentq(lambda mu: rejects_gdp(v, r, n, beta, mu), 0, high, xtol=1e-7)

    def delta_of(epsilon):
        x = mu / 2 - epsilon / mu
        return special.ndtr(x) - np.exp(epsilon) * special.ndtr(x - mu)

    if delta_of(0.0) <= delta:
        return 0.0
    return optimize.brentq(lambda epsilon: delta_of(epsilon) - delta, 0, 20 * mu + mu**2)


def simulate_dpsgd(dpsgd, k, trials, seed):
    """Audit DP-SGD with Dirac canaries, drawing each batch; v of k guesses for each trial."""
    rng = np.random.default_rng(seed)
    coordinate = np.arange(dpsgd.n) % dpsgd.d
    v = np.empty(trials, dtype=int)
    for trial in range(trials):
        included = rng.random(dpsgd.n) < 0.5
        update = np.zeros(dpsgd.d)
        for _ in range(dpsgd.steps):
            batch = included & (rng.random(dpsgd.n) < dpsgd.sample_rate)
            update += np.bincount(coordinate[batch], minlength=dpsgd.d)
            update += dpsgd.sigma * rng.standard_normal(dpsgd.d)
        order = np.argsort(update[coordinate])
        v[trial] = included[order[-(k - k // 2) :]].sum() + (~included[order[: k // 2]]).sum()
    return v


def simulate_sums(dpsgd, k, trials, seed):
    """Audit DP-SGD from the law of each coordinate's sum, all trials at once; d must divide n."""
    rng = np.random.default_rng(seed)
    d = dpsgd.d
    s = dpsgd.n // d
    included = rng.binomial(s, 0.5, size=(trials, d))
    noise = dpsgd.sigma * np.sqrt(dpsgd.steps) * rng.standard_normal((trials, d))
    sums = rng.binomial(included * dpsgd.steps, dpsgd.sample_rate) + noise
    ascending = np.take_along_axis(included, np.argsort(sums, axis=1), axis=1)
    v = 0
    # At the low end elements are guessed to be out, at the high end to be in.
    for rightly, guesses in (s - ascending, k // 2), (ascending[:, ::-1], k - k // 2):
        # All elements of some coordinates are guessed, and the rest on one more.
        whole, rest = divmod(guesses, s)
        of_last = rng.hypergeometric(rightly[:, whole], s - rightly[:, whole], rest)
        v += rightly[:, :whole].sum(axis=1) + of_last
    return v


def simulate_hopping(dpsgd, k, trials, seed):
    """Audit canaries that hop, with array operations; v of k guesses for each trial."""
    rng = np.random.default_rng(seed)
    d = dpsgd.d
    s = dpsgd.per_coordinate
    rate = dpsgd.sample_rate
    # The sum of the other canaries of a coordinate.
    sums = np.arange(s)
    weight = stats.binom.pmf(sums, s - 1, rate / 2)

    def density(y):
        return np.exp(-0.5 * ((y[:, None] - sums) / dpsgd.sigma) ** 2) @ weight

    places = np.repeat(np.arange(d), s)
    v = np.empty(trials, dtype=int)
    for trial in range(trials):
        included = rng.random(dpsgd.n) < 0.5
        score = np.zeros(dpsgd.n)
        for _ in range(dpsgd.steps):
            coordinate = rng.permutation(places)
            batch = included & (rng.random(dpsgd.n) < rate)
            noise = dpsgd.sigma * rng.standard_normal(d)
            y = np.bincount(coordinate[batch], minlength=d) + noise
            score += np.log((1 - rate) + rate * density(y - 1) / density(y))[coordinate]
        surest = np.argpartition(-np.abs(score), k - 1)[:k]
        v[trial] = ((score[surest] > 0) == included[surest]).sum()
    return v


def adaptive_failure_probability(epsilon, n, beta):
    """The chance that the walk of right guesses meets the line, one array operation a step."""
    q = 1 / (1 + np.exp(-epsilon))
    inside = np.ones(1)
    met = 0.0
    for r in range(1, n + 1):
        inside = np.append(inside * (1 - q), 0) + np.append(0, inside * q)
        over = stats.binom.sf(np.arange(r + 1) - 1, r, q) < beta
        met += inside[over].sum()
        inside[over] = 0
    return met


def adaptive_failure_probability_twin(epsilon, n, beta):
    """The same chance, with the line found once, and the walk cut off there.

    Places that the walk hardly reaches are left out.
    """
    q = 1 / (1 + np.exp(-epsilon))
    line = stats.binom.isf(beta, np.arange(n + 1), q).astype(int) + 1
    line[stats.binom.sf(line - 1, np.arange(n + 1), q) >= beta] += 1
    inside = np.ones(1)  # the chances of v = low, low + 1, ...
    low = 0
    met = 0.0
    for r in range(1, n + 1):
        moved = np.empty(inside.size + 1)
        moved[:-1] = (1 - q) * inside
        moved[-1] = 0.0
        moved[1:] += q * inside
        below_line = max(line[r] - low, 0)
        if below_line < moved.size:
            met += moved[below_line:].sum()
            moved = moved[:below_line]
        skipped = int(np.argmax(moved >= 1e-25)) if moved.size else 0
        inside = moved[skipped:]
        low += skipped
    return met


def noise_multiplier(epsilon, delta, steps, sample_rate):
    """The calibration of dp-accounting, rounded up to six decimals."""

    def training(sigma):
        batch = dp_accounting.PoissonSampledDpEvent(
            sample_rate, dp_accounting.GaussianDpEvent(sigma)
        )
        return dp_accounting.SelfComposedDpEvent(batch, steps)

    sigma = dp_accounting.calibrate_dp_mechanism(
        rdp.RdpAccountant, training, epsilon, delta, tol=1e-9
    )
    return ceil(sigma * 1e6) / 1e6


def simulate_training(
    dpsgd: DpSgd,
    k: int,
    *,
    trials: int = 1,
    seed: int,
    clip: float = 1.0,
    learning_rate: float = 1.0,
) -> Counts:
    """Audit DP-SGD step by step, to be read and as a test.

    :func:`oralib.simulate_dpsgd` has the same law and is much faster.
    """
    arguments.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    elements = dpsgd.d * np.arange(dpsgd.per_coordinate)
    run = partial(run_dpsgd, dpsgd, clip=clip, learning_rate=learning_rate, gradient=clip)

    def trial(ks: NDArray[np.int64], rng: Generator) -> list[int]:
        included = rng.random(dpsgd.n) < 0.5
        weights = run(included, rng)
        update = (weights[0] - weights[-1])[: dpsgd.used_coordinates] / learning_rate
        # The elements in ascending order of their coordinate's update.
        order = (np.argsort(update, kind="stable")[:, None] + elements).ravel()
        ends = [(order[dpsgd.n - (k - k // 2) :], order[: k // 2]) for k in ks.tolist()]
        return [int(included[high].sum() + (~included[low]).sum()) for high, low in ends]

    def block(ks: NDArray[np.int64], size: int, rng: Generator) -> NDArray[np.int64]:
        return np.array([trial(ks, rng) for _ in range(size)])

    key = dpsgd, [k], dpsgd.n, trials, seed, "step by step"
    return play_audits("one-run DP-SGD", block, *key)[0]

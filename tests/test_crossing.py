"""How often right guesses meet a line with full feedback: f + c n δ by a naive recursion.

From it, the bound for any order and the certified one for guessers who are free to stop.
"""

from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest

from oralib import (
    Counts,
    epsilon_lower_bound,
    epsilon_lower_bound_anytime,
    p,
    p_value,
    valid_lower_bound,
)
from oralib.bounds import anytime
from oralib.bounds.crossing import crossing_constants


def naive(line, growth):
    """(f, c) from the last guess back, in fractions or floats, by all terms of the theorem."""
    q, after = growth / (1 + growth), {}
    for t in reversed(range(len(line))):
        for u in range(t + 1):
            if u >= line[t] or t + 1 == len(line):
                after[t, u] = (1, 0, 0) if u >= line[t] else (0, 1, 0)
                continue
            (f1, g1, c1), (f0, g0, c0) = after[t + 1, u + 1], after[t + 1, u]
            gain = f1 - f0 if f1 < 0.5 else g0 - g1
            terms = [q * c1 + (1 - q) * c0, (1 - q) * gain]
            if c1 > 0:
                terms += [(g1 + (1 - q) * gain) / (g1 / c1 + 1), c1 / (1 + c1)]
                terms.append(c1 * (1 - (1 - q) * gain / f1))
            if c0 > 0:
                terms += [(f0 + q * gain) / (f0 / c0 + growth), c0 / (1 + growth * c0)]
                terms.append(c0 * (1 - q * gain / g0))
            after[t, u] = q * f1 + (1 - q) * f0, q * g1 + (1 - q) * g0, max(terms)
    return after[0, 0][0], after[0, 0][2]


def test_lines_that_rise_and_fall():
    rng = np.random.default_rng(1)
    for n, epsilon in product((1, 2, 7, 25, 60), (0.0, 0.4, 1.5, 4.0)):
        rises = (np.arange(n + 1) * p(epsilon) + 1).astype(int)
        for line in (rises + 2, rises + rng.integers(0, 4, n + 1), np.full(n + 1, n // 2 + 1)):
            due = naive(line.tolist(), np.exp(epsilon))
            np.testing.assert_allclose(crossing_constants(line, epsilon), due, rtol=1e-11)


# ------------------------------------------------------------------------------------ any order

#: Right, taken, n δ, and the bound at β = 0.05.
BOUNDS = [(73, 100, 0.05, 0.6013), (73, 100, 0.3, 0.5683), (73, 100, 1, 0.4469)]
BOUNDS += [(95, 100, 0.5, 2.1303), (95, 100, 1, 2.0824), (1439, 1510, 1, 2.7993)]
BOUNDS += [(270, 350, 0.3, 0.9906), (270, 350, 1, 0.9624), (270, 350, 8, 0.2042)]
BOUNDS += [(462, 600, 1, 1.0219)]


@pytest.mark.parametrize(("v", "k", "budget", "bound"), BOUNDS)
def test_bounds_for_any_order(v, k, budget, bound):
    claim = {"delta": budget / 10_000, "n": 10_000}
    found = epsilon_lower_bound(v, k, method="any order", **claim)
    assert found == pytest.approx(bound, abs=1e-4)
    assert found < epsilon_lower_bound(v, k, method="exact", **claim)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 17, 60])
def test_the_p_value_for_any_order(k):
    """Exactly the recursion; at both ends the exact p-value, and never below it."""
    for v, epsilon in product({1, 2, k // 2, (3 * k) // 4, k - 1, k} - {0}, (0.0, 0.7, 3.0)):
        v, q, claim = min(v, k), p(epsilon), {"delta": 0.01, "n": 3 * k}
        f, c = naive([v] * (k + 1), np.exp(epsilon))
        found = p_value(v, k, epsilon, method="any order", **claim)
        assert found == pytest.approx(min(1, f + 0.03 * k * c), abs=1e-12)
        exact = p_value(v, k, epsilon, method="exact", **claim)
        assert found == pytest.approx(exact, rel=1e-12) if v in (1, k) else found >= exact
        assert k == 1 or c <= (1 - q**2) / 2 * (1 + 1e-12)


@pytest.mark.parametrize(("v", "epsilon"), [(330, 0.0), (462, 1.0), (570, 2.6)])
def test_shortcuts_of_long_audits_hardly_matter(v, epsilon):
    """Walks that are far behind are put back, those far ahead count as having met the line."""
    f, c = naive([v] * 601, np.exp(epsilon))
    for budget in (1e-3, 0.3, 1.0):
        found = p_value(v, 600, epsilon, delta=budget / 600, n=600, method="any order")
        assert -1e-13 <= found - (f + c * budget) <= 1e-8


def test_the_p_value_for_any_order_rises():
    """The proof does not need it, the search for the bound does."""
    rng, grid = np.random.default_rng(3), np.linspace(0, 6, 601)
    for _ in range(20):
        k = int(rng.integers(3, 120))
        v, beta = int(rng.integers(k // 2, k + 1)), 10 ** rng.uniform(-4, -0.4)
        claim = {"n": k, "delta": beta * 10 ** rng.uniform(-2, 2) / k, "method": "any order"}
        found = p_value(v, k, grid, **claim)
        assert (np.diff(found)[found[1:] < 0.5] >= -1e-12).all()
        refuted = grid[found <= beta]
        bound = epsilon_lower_bound(v, k, beta=beta, **claim)
        assert bound == pytest.approx(refuted[-1] if refuted.size else 0, abs=0.0101)


# --------------------------------------------------------------------------------- free to stop

#: Right, taken, elements, n δ, and the certified bound at β = 0.05.
STOPPED = [(160, 210, 1000, 0.01, 0.692), (40, 40, 1000, 0.3, 1.363)]
STOPPED += [(73, 100, 10_000, 0.09, 0.356), (95, 100, 10_000, 0.1, 1.855)]
STOPPED += [(95, 100, 10_000, 1, 1.194), (270, 350, 10_000, 1, 0.837)]
STOPPED += [(1439, 1510, 10_000, 1, 2.659), (4000, 5000, 10_000, 8, 1.242)]

#: Elements, n δ, thousandths of ε, the line at 10, 50 and 100, f, c.
CERTIFICATES = [(100, 0.1, 500, [11, 41, 77], 0.0177457514, 0.0665139194)]
CERTIFICATES += [(1000, 0.3, 1000, [14, 46, 86], 0.0199143101, 0.0326695230)]
CERTIFICATES += [(1000, 1.0, 0, [20, 45, 72], 0.0054680304, 0.0284151991)]
CERTIFICATES += [(10_000, 1.0, 837, [21, 53, 90], 0.0117531631, 0.0173376638)]


@pytest.mark.parametrize(("v", "r", "n", "budget", "bound"), STOPPED)
def test_certified_bounds(v, r, n, budget, bound):
    counts = Counts(v, r, n, feedback="full")
    assert valid_lower_bound(counts, delta=budget / n) == bound
    assert bound < epsilon_lower_bound_anytime(v, r)
    f, c = anytime.certificate(round(1000 * bound), n, budget, 0.05)  # its own, not that of ten
    assert f + c * budget <= 0.05


def least_right(n, n_delta, beta, epsilon):
    """The line of a bound ε, from bounds of all counts with fewer right guesses and less of β."""
    ratio, level = n_delta / beta, beta - min(n_delta / 4, beta / 20)
    last, first = np.ceil(ratio**2 / 5 + 10 * ratio), max(0, np.ceil(ratio / 2 - 0.25))
    line = []
    for t in range(n + 1):
        reached = epsilon_lower_bound_anytime(np.arange(t + 1), t, beta=level) >= epsilon - 1e-9
        least = t + 1 if not reached.any() or epsilon == 0 == t else int(reached.argmax())
        line.append(least + int(np.ceil(round(first * max(0, 1 - t / last), 9))))
    return line


@pytest.mark.parametrize(("n", "budget", "thousandths", "places", "f", "c"), CERTIFICATES)
def test_certificates(n, budget, thousandths, places, f, c):
    if thousandths:
        line = least_right(100, budget, 0.05, thousandths / 1000)
        assert [line[t] for t in (10, 50, 100)] == places
    found = anytime.certificate(thousandths, n, budget, 0.05)
    np.testing.assert_allclose(found, (f, c), rtol=0, atol=1e-10)


def test_a_certificate_in_fractions():
    line = least_right(12, 0.1, 0.2, log(2))
    assert line == [1, 2, 3, 4, 5, 6, 7, 7, 8, 9, 10, 11, 12]
    due = naive(line, Fraction(2))
    assert due == (Fraction(128, 2187), Fraction(2059, 15309))
    found = crossing_constants(np.array(line), log(2))
    np.testing.assert_allclose(found, [float(x) for x in due], rtol=1e-13)


def test_trials_share_certificates():
    """One for each ten thousandths, however many trials; if it fails, one for each value."""
    n, v = 500, np.arange(60, 101)
    counts = Counts(np.repeat(v, 50), np.full(50 * v.size, 100), n, feedback="full")
    anytime.certificate.cache_clear()
    bounds = valid_lower_bound(counts, delta=0.1 / n)
    values = np.unique(np.round(1000 * bounds[bounds > 0]).astype(int))
    assert len(values) > 20
    assert anytime.certificate.cache_info().misses == len({*(values // 10)})
    f, c = np.transpose([anytime.certificate(int(s), n, 0.1, 0.05) for s in values])
    assert (f + 0.1 * c <= 0.05).all()


def test_without_a_certificate_the_bound_is_smaller(monkeypatch):
    counts = Counts(75, 100, 200, feedback="full")
    due = round(1000 * valid_lower_bound(counts, delta=1e-4))
    fails = lambda first, n, n_delta, beta, last: (float(last > due - 3), 0.0)  # noqa: E731
    monkeypatch.setattr(anytime, "certificate", fails)
    assert valid_lower_bound(counts, delta=1e-4) == (due - 3) / 1000


@pytest.mark.parametrize(("budget", "epsilon"), [(0.1, 0.5), (0.3, 1.0), (1.0, 0.2)])
def test_a_mechanism_that_nearly_attains_it(budget, epsilon):
    """With probability n δ / j it gives j random elements away, which are guessed first.

    All others are randomized response. The guesser stops once the bound exceeds ε.
    """
    n, q = 200, p(epsilon)
    v, r = np.indices((n + 1, n + 1))
    counts = Counts(np.minimum(v, r).ravel(), r.ravel(), n, feedback="full")
    bounds = valid_lower_bound(counts, delta=budget / n).reshape(v.shape)
    met = (bounds > epsilon - 5e-4) & (v <= r)  # a little below: bounds of ε count as failures
    after = met[:, n].astype(float)
    ahead = np.empty(n + 1)  # the chance to fail after j right guesses of j
    for t in reversed(range(n + 1)):
        if t < n:
            after[:-1] = q * after[1:] + (1 - q) * after[:-1]
        after[met[:, t]] = 1
        ahead[t] = after[t]
    j = np.arange(1, n)
    worst = (ahead[0] + budget / j * (ahead[1:-1] - ahead[0]))[budget <= j].max()
    f, c = anytime.certificate(round(1000 * epsilon), n, budget, 0.05)
    assert ahead[0] == pytest.approx(f, rel=1e-9)
    assert 0.97 * (f + c * budget) <= worst <= f + c * budget + 1e-12
    assert f + c * budget <= 0.05

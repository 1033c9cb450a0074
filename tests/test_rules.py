"""All rules of bounds are alike: a name, a bound and a p-value, for counts or plain numbers.

Every rule has a row in the table of expected numbers, which a twin from its definition judges.
"""

import importlib
import inspect
import pkgutil
import re
from dataclasses import is_dataclass
from itertools import product
from math import ceil, comb, exp, log

import numpy as np
import pytest
from oracles import steinke_p_value
from scipy import optimize, stats
from test_any_order import naive
from test_anytime import e_value
from test_fdp import delta_of, ends_above
from test_fdp import gaussian as gaussian_curve
from test_independent import integral

from oralib import Counts, bounds, valid_rule
from oralib.bounds import (
    AnyOrder,
    Anytime,
    Balanced,
    Certified,
    Exact,
    Gaussian,
    Independent,
    Pure,
    RandomR,
    Rule,
    Steinke,
)
from oralib.bounds.random_r import planned_b
from oralib.ground.types import FEEDBACKS

#: How often the bounds of the table may fail.
BETA = 0.05

# ---------------------------------------------------- twins: p-values from the rules' definitions


def tail_of(v, r, epsilon):
    """P[W >= v], W ~ Bin(r, p(ε))."""
    return float(stats.binom.sf(v - 1, r, 1 / (1 + exp(-epsilon))))


def pure_twin(v, r, n, epsilon, delta):
    return tail_of(v, r, epsilon)


def steinke_twin(v, r, n, epsilon, delta):
    return float(steinke_p_value(v, r, epsilon, delta, n))


def with_leak(f, leak, price):
    return 1 - (1 - f) * max(0.0, 1 - leak / price)


def price_of(v, r, epsilon):
    """B = v P[W = v] / P[W >= v]."""
    q = 1 / (1 + exp(-epsilon))
    return v * float(stats.binom.pmf(v, r, q)) / tail_of(v, r, epsilon)


def exact_twin(v, r, n, epsilon, delta):
    return with_leak(tail_of(v, r, epsilon), n * delta, price_of(v, r, epsilon))


def random_r_twin(v, r, n, epsilon, delta):
    least = planned_b(n, n * delta, BETA)
    if price_of(v, r, epsilon) < least:
        return 1.0
    f = tail_of(v, r, epsilon)
    q = 1 / (1 + exp(-epsilon))
    return with_leak(f, n * delta, max(least, log(f) / log(q)))


def any_order_twin(v, r, n, epsilon, delta):
    f, c = naive([v] * (r + 1), exp(epsilon))
    return f + c * n * delta


def anytime_twin(v, r, n, epsilon, delta):
    return float(1 / e_value(v, r, epsilon))


def certified_twin(v, r, n, epsilon, delta):
    """Take right guesses away, as the chapter says, and let the walk meet the line of the level."""
    ratio = n * delta / BETA
    first = max(0, ceil(ratio / 2 - 0.25))
    last = ceil(ratio**2 / 5 + 10 * ratio)
    taken = [ceil(first * max(0, last - t) / last) for t in range(n + 1)]
    significant = e_value(v - taken[r], r, epsilon) * (1 - 1e-9)
    line = [1]
    for t in range(1, n + 1):
        u = line[-1]  # one more guess moves the line up by 0 or 1
        reached = u <= t and u / (t + 1) > 1 / (1 + exp(-epsilon))
        line.append(u if reached and e_value(u, t, epsilon) >= significant else u + 1)
    shifted = [u + a for u, a in zip(line, taken, strict=True)]
    f, c = naive(shifted, exp(epsilon))
    return f + c * n * delta


def balanced_twin(v, r, n, epsilon, delta, r_in=50):
    """Flip right guesses in proportion, and add up what each flip may leak, at the worst."""
    sizes = (r_in, r - r_in)
    splits = [(a, v - a) for a in range(v + 1) if a <= sizes[0] and v - a <= sizes[1]]
    fewest = [min(split[side] for split in splits) for side in (0, 1)]
    costs = dict.fromkeys(splits, 1.0)
    flipped = [0, 0]
    included = n // 2
    leaks = 0.0
    limits = [1.0]
    while True:
        side = int(flipped[0] * sizes[1] > flipped[1] * sizes[0])
        if flipped[side] >= fewest[side]:
            return min(limits)
        ways = comb(n, included) / comb(n, n // 2)
        exposed = n - included if side else included
        growth = exp(sum(flipped) * epsilon)
        worst = max(cost / (split[side] - flipped[side]) for split, cost in costs.items())
        leaks += delta * growth * exposed * worst * ways
        for split in costs:
            x = split[side] - flipped[side]
            costs[split] *= (sizes[side] - x + 1) / x
        flipped[side] += 1
        included += 1 if side else -1
        ways = comb(n, included) / comb(n, n // 2)
        limits.append(exp(sum(flipped) * epsilon) * max(costs.values()) * ways + leaks)


def mu_at(epsilon, delta):
    return optimize.brentq(lambda mu: delta_of(mu, epsilon) - delta, 1e-6, 20, xtol=1e-14)


def gaussian_twin(v, r, n, epsilon, delta):
    """The least β at which the plain recursion rejects the curve."""
    curve = gaussian_curve(mu_at(epsilon, delta))
    low = log(tail_of(v, r, 0.0))
    high = 0.0
    for _ in range(50):
        middle = (low + high) / 2
        if ends_above(v, r, n, exp(middle), curve):
            high = middle
        else:
            low = middle
    return exp(high)


def independent_twin(v, r, n, epsilon, delta):
    return float(integral(v, r, n, mu_at(epsilon, delta)))


# ------------------------------------------------------------------- the table of expected numbers

#: Of each rule: an audit, its bound, an ε with its p-value, and the twin.
TABLE = {
    Pure(): ((75, 100, 1000, 0.0), 0.702214, (0.5, 0.004805), pure_twin),
    Steinke(): ((75, 100, 1000, 1e-4), 0.672985, (0.5, 0.014587), steinke_twin),
    Exact(): ((75, 100, 1000, 1e-4), 0.695126, (0.5, 0.007542), exact_twin),
    AnyOrder(): ((75, 100, 1000, 1e-4), 0.690088, (0.5, 0.008533), any_order_twin),
    RandomR(): ((75, 100, 1000, 1e-4), 0.683131, (0.5, 0.013584), random_r_twin),
    Anytime(): ((75, 100, 1000, 0.0), 0.454513, (0.4, 0.023443), anytime_twin),
    Certified(): ((40, 44, 60, 5e-4), 1.061, (1.0, 0.016409), certified_twin),
    Balanced(50): ((75, 100, 1000, 1e-5), 0.537102, (0.5, 0.032205), balanced_twin),
    Gaussian(): ((75, 100, 1000, 1e-5), 1.005916, (0.9, 0.029104), gaussian_twin),
    Independent(): ((74, 100, 1000, 1e-5), 1.192579, (1.1, 0.031136), independent_twin),
}
RULES = [pytest.param(rule, id=type(rule).__name__) for rule in TABLE]


def test_every_rule_has_a_row():
    modules = [f"oralib.bounds.{module.name}" for module in pkgutil.iter_modules(bounds.__path__)]
    classes = {
        thing
        for module in map(importlib.import_module, modules)
        for thing in vars(module).values()
        if inspect.isclass(thing) and issubclass(thing, Rule) and thing is not Rule
    }
    assert {type(rule) for rule in TABLE} == classes
    names = {rule.__name__ for rule in classes}
    assert names <= set(bounds.__all__)
    assert names <= set(re.findall(r"^    (\w+)  ", bounds.__doc__, re.MULTILINE))


@pytest.mark.parametrize("rule", RULES)
def test_expected_numbers(rule):
    (v, r, n, delta), bound, (epsilon, p_value), _ = TABLE[rule]
    found = rule.lower_bound(v, r, n=n, delta=delta, beta=BETA)
    assert found == pytest.approx(bound, abs=1e-6)
    found = rule.p_value(v, r, epsilon=epsilon, n=n, delta=delta, beta=BETA)
    assert found == pytest.approx(p_value, abs=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_p_values_are_those_of_the_twins(rule):
    (v, r, n, delta), _, (epsilon, _), twin = TABLE[rule]
    for level in (epsilon, 0.8 * epsilon, 1.1 * epsilon):
        found = rule.p_value(v, r, epsilon=level, n=n, delta=delta, beta=BETA)
        assert found == pytest.approx(twin(v, r, n, level, delta), rel=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_p_values_elsewhere_are_those_of_the_twins(rule):
    """At other counts than that of the row: few guesses, and all of them right."""
    (v, r, n, delta), _, (epsilon, _), twin = TABLE[rule]
    for right, guesses in ((v // 2, r // 2), (r // 2, r // 2), (r, r)):
        if isinstance(rule, Balanced) and guesses != r:
            continue  # its twin is for as many guesses "included" as the row has
        found = rule.p_value(right, guesses, epsilon=epsilon, n=n, delta=delta, beta=BETA)
        assert found == pytest.approx(twin(right, guesses, n, epsilon, delta), rel=1e-6)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("beta", [0.2, 0.01])
def test_bounds_and_p_values_agree_at_other_levels(rule, beta):
    """The p-value of a reported bound is at most β, whatever β is, and the bound is finite."""
    (v, r, n, delta), _, _, _ = TABLE[rule]
    for right in (v, r):
        bound = rule.lower_bound(right, r, n=n, delta=delta, beta=beta)
        assert np.isfinite(bound)
        if bound > 0:
            just_below = bound * (1 - 1e-9)
            p_value = rule.p_value(right, r, epsilon=just_below, n=n, delta=delta, beta=beta)
            assert p_value <= beta * (1 + 1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_set_ups_without_a_bound_are_refused(rule):
    """Nobody may know all other elements, and balanced coins have a rule of their own."""
    for delta in (0.0, 1e-5):
        for r_fixed in (True, False):
            told = Counts(75, 100, n=1000, r_fixed=r_fixed, feedback="all others")
            assert not rule.proved_for(told, delta)
        balanced = Counts(75, 100, n=1000, r_fixed=True, coins="balanced", r_in=50)
        assert rule.proved_for(balanced, delta) == isinstance(rule, Balanced)


@pytest.mark.parametrize("rule", RULES)
def test_rules_are_frozen(rule):
    with pytest.raises(AttributeError):
        rule.name = "another name"


@pytest.mark.parametrize("rule", RULES)
def test_bounds_are_where_the_twins_reach_beta(rule):
    """Only the certified bound is a multiple of 0.001, with a margin."""
    (v, r, n, delta), bound, _, twin = TABLE[rule]
    if isinstance(rule, Certified):
        assert bound == round(bound, 3)
        assert twin(v, r, n, bound, delta) <= BETA
    else:
        assert twin(v, r, n, bound - 1e-6, delta) < BETA < twin(v, r, n, bound + 1e-6, delta)


# ------------------------------------------------------------------------------- one look for all


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_looks_like_the_others(rule):
    kind = type(rule)
    assert is_dataclass(kind)
    assert kind.__dataclass_params__.frozen
    assert kind.lower_bound is Rule.lower_bound
    assert kind.p_value is Rule.p_value
    assert kind.__doc__.count(f"{kind.__name__}(") >= 2  # an example of each method
    assert "lower_bound" in kind.__doc__
    assert "p_value" in kind.__doc__
    assert "proved" in kind.__doc__
    assert kind.name
    assert len({other.name for other in TABLE}) == len(TABLE)


def test_both_methods_have_the_same_arguments():
    bound, p_value = (
        list(inspect.signature(method).parameters) for method in (Rule.lower_bound, Rule.p_value)
    )
    assert bound == ["self", "v", "r", "n", "delta", "beta"]
    assert p_value == ["self", "v", "r", "epsilon", "n", "delta", "beta"]


# ---------------------------------------------------------------------------- counts and numbers


def set_ups():
    """Counts of 75 right of 100 guesses, set up in every way."""
    for feedback, r_fixed in product(FEEDBACKS, (True, False)):
        yield Counts(75, 100, n=1000, feedback=feedback, r_fixed=r_fixed)
        yield Counts(75, 100, n=1000, feedback=feedback, r_fixed=r_fixed, coins="balanced", r_in=50)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_counts_give_what_numbers_give(rule, delta):
    """And counts of an audit for which a rule is not proved are refused, with the valid rule."""
    proved = 0
    for counts in set_ups():
        if rule.proved_for(counts, delta):
            proved += 1
            numbers = {"n": 1000, "delta": delta}
            due = rule.lower_bound(75, 100, **numbers)
            assert rule.lower_bound(counts, delta=delta) == due
            trials = Counts(
                [75, 75],
                100,
                n=1000,
                feedback=counts.feedback,
                r_fixed=counts.r_fixed,
                coins=counts.coins,
                r_in=counts.r_in,
            )
            assert rule.lower_bound(trials, delta=delta).tolist() == [due, due]
            due = rule.p_value(75, 100, epsilon=0.4, **numbers)
            assert rule.p_value(counts, epsilon=0.4, delta=delta) == due
            continue
        message = f"the {rule.name} is not proved for this audit"
        for method, claim in ((rule.lower_bound, {}), (rule.p_value, {"epsilon": 0.4})):
            with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
                method(counts, delta=delta, **claim)
    assert proved > 0 or (delta > 0 and isinstance(rule, Pure | Anytime))


def test_the_valid_rule_is_proved():
    """And no other rule for any mechanism is larger there, but by what it is rounded down."""
    for counts, delta in product(set_ups(), (0.0, 1e-5)):
        try:
            rule = valid_rule(counts, delta)
        except ValueError:
            continue
        assert rule.proved_for(counts, delta)
        bound = rule.lower_bound(counts, delta=delta)
        for other in TABLE:
            assumes_more = isinstance(other, Gaussian | Independent)
            if other.proved_for(counts, delta) and not assumes_more:
                assert other.lower_bound(counts, delta=delta) <= bound + 1e-12, (other, counts)


def test_shapes_of_arguments_broadcast():
    v = np.array([[60], [75]])
    for rule in TABLE:
        delta = 0.0 if isinstance(rule, Pure | Anytime) else 1e-5
        given = {"n": 1000, "delta": delta, "beta": [0.01, 0.05, 0.2]}
        table = rule.lower_bound(v, 100, **given)
        assert table.shape == (2, 3)
        assert table[1, 1] == rule.lower_bound(75, 100, n=1000, delta=delta)
        levels = rule.p_value(v, 100, epsilon=[0.0, 0.4], n=1000, delta=delta)
        assert levels.shape == (2, 2)
        assert levels[1, 1] == rule.p_value(75, 100, epsilon=0.4, n=1000, delta=delta)
        assert rule.p_value(75, 100, epsilon=np.inf, n=1000, delta=delta) == 1
        assert rule.p_value(0, 100, epsilon=0.4, n=1000, delta=delta) == 1
        assert rule.lower_bound(0, 100, n=1000, delta=delta) == 0

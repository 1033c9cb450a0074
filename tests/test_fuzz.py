"""The whole public interface with odd arguments: a right number, or a clear error.

Each argument of each public function is replaced, one at a time, by things that people pass by
mistake. What comes back is either a result, or a ValueError or TypeError whose message names the
argument (or what it was checked against). Nothing hangs, nothing warns, no other exception escapes.
"""

import inspect
import re
from itertools import product

import numpy as np
import pytest
from test_reference import entries, lookup

import oralib
from orabook import experiments, laws
from orabook.experiments import single_step
from orabook.studies import assumptions, simulated_training
from oralib import bounds, dpsgd, games, guessers, mechanisms
from oralib.bounds import refuting

TABLE = oralib.channel(oralib.Count(), 2)
LRR = oralib.LocalRandomizedResponse(1.0)
ALL = oralib.ThresholdGuesser()
STEP = oralib.DpSgd(4, 2, 1, 1.0, sigma=1.0)
ISOLATED = oralib.DpSgd(4, 4, 2, 0.5, sigma=1.0)
RNG = np.random.default_rng(1)

ODD = {
    "nan": np.nan,
    "inf": np.inf,
    "negative": -1,
    "half": 0.5,
    "more than one": 1.5,
    "some": 75.0,
    "million": 10**6,
    "million real": 1e6,
    "huge": 2**60,
    "huge real": 1e300,
    "tiny": 5e-324,
    "zero": 0,
    "text": "x",
    "none": None,
    "truth": True,
    "empty list": [],
    "ragged": [[1, 2], [3]],
    "mixed": [1, "a"],
    "dictionary": {},
    "class": oralib.Count,
    "function": len,
    "complex": 1 + 2j,
    "matrix": np.ones((3, 3)),
    "row of nans": np.array([np.nan, 1.0]),
    "objects": np.array([object(), 1], dtype=object),
    "masked": np.ma.masked_array([1, 2], mask=[False, True]),
    "generator": (x for x in ()),
}

#: A call that works, for every public name of the reference: from names of arguments to values.
CALLS = {
    "AllOrNothing": {"p": 0.5},
    "Channel": {"table": [[0.5, 0.25], [0.5, 0.75]], "outputs": None},
    "Count": {},
    "CountInSets": {"s": 2},
    "Counts": {
        **{"v": 5, "r": 9, "n": 20, "game": "mine", "r_fixed": True, "feedback": "none"},
        **{"coins": "independent", "r_in": None, "side": "both"},
    },
    "DpSgd": {"n": 4, "d": 2, "steps": 3, "sample_rate": 0.5, "sigma": 1.0},
    "Dropping": {"final": 2.0, "until": 0.5, "bend": 1.0, "crowding": (1.0, 2.0)},
    "LocalLaplace": {"epsilon": 1.0},
    "LocalRandomizedResponse": {"epsilon": 1.0},
    "NameAndShame": {},
    "Profile": {"epsilon": [0.5, 1.0], "d_in": [0.2, 0.1], "d_out": [0.1, 0.05]},
    "NoisyCountInSets": {"s": 2, "sigma": 1.0},
    "ThresholdGuesser": {"tau": 1.0},
    "TopGuesser": {"k": 1},
    "Training": {"sigma": 1.0, "sample_rate": 0.1, "steps": 3},
    "TrainingTest": {
        **{"claim": oralib.Training(1.0, 0.1, 3), "n": 20, "guesses": 5, "beta": 0.1},
        **{"side": "in", "feedback": "none", "coins": "independent", "r_in": None, "expected": 5},
    },
    "Xor": {},
    "XorInPairs": {},
    "XorRandomizedResponse": {"epsilon": 1.0},
    "adaptive": {
        **{"mechanism": oralib.Count(), "guesser": ALL, "n": 3, "feedback": "full", "guesses": 2},
        **{"trials": 2, "seed": 1},
    },
    "adaptive_failure_probability": {"epsilon": 1.0, "n": 5, "beta": 0.1, "rule": bounds.Pure()},
    "certified_epsilon": {
        **{"sigma": 1.0, "delta": 1e-5, "steps": 1, "sample_rate": 1.0, "accountant": "rdp"},
    },
    "channel": {"mechanism": oralib.Count(), "n": 2},
    "classic": {
        **{"mechanism": LRR, "guesser": ALL, "rounds": 3, "base": (-1,)},
        **{"trials": 2, "seed": 1},
    },
    "epsilon_estimate": {"v": 5, "r": 9},
    "epsilon_lower_bound": {
        **{"v": 5, "r": 9, "beta": 0.1, "delta": 0.01, "n": 20, "rule": bounds.Exact()},
    },
    "lower_bound_of_runs": {
        **{"runs": [oralib.Counts(5, 9, n=20)], "beta": 0.1, "delta": 0.01, "expected": 7},
    },
    "noise_multiplier": {
        **{"epsilon": 2.0, "delta": 1e-5, "steps": 1, "sample_rate": 1.0, "accountant": "rdp"},
    },
    "one_run": {"mechanism": LRR, "guesser": ALL, "n": 2, "trials": 2, "seed": 1},
    "p": {"epsilon": 1.0},
    "p_inv": {"accuracy": 0.7},
    "p_value": {
        **{"v": 5, "r": 9, "epsilon": 0.5, "delta": 0.01, "n": 20, "beta": 0.1},
        **{"rule": bounds.Exact()},
    },
    "p_value_of_runs": {
        **{"runs": oralib.Counts([5, 6], 9, n=20), "epsilon": 0.5, "beta": 0.1, "delta": 0.01},
        **{"expected": 7},
    },
    "simulate_dpsgd": {"dpsgd": STEP, "guesses": 2, "trials": 2, "seed": 1},
    "simulate_hopping": {
        **{"dpsgd": STEP, "guesses": 2, "dropping": oralib.Dropping(1.0), "trials": 2, "seed": 1},
    },
    "valid_lower_bound": {
        **{"counts": oralib.Counts(5, 9, n=20), "beta": 0.1, "delta": 0.01, "expected": 7},
    },
    "valid_p_value": {
        **{"counts": oralib.Counts(5, 9, n=20), "epsilon": 0.5, "beta": 0.1, "delta": 0.01},
        **{"expected": 7},
    },
    "valid_rule": {"counts": oralib.Counts(5, 9, n=20), "delta": 0.01, "expected": 7},
}

ASSUMPTIONS = {
    "bound_assuming": {
        **{"assumption": "normal", "counts": oralib.Counts(2, 2, n=4, r_fixed=True)},
        **{
            "delta": 0.01,
            "beta": 0.1,
            "scores": [1.0, 2.5, 4.0, 3.0],
            "included": [False, False, True, True],
        },
    },
}

REFUTING = {
    "guesses_needed": {
        **{"counts": oralib.Counts(0, 9, n=20, r_fixed=True), "epsilon": 0.5, "delta": 0.01},
        **{"beta": 0.1},
    },
    "right_needed": {
        **{"counts": oralib.Counts(0, 9, n=20, r_fixed=True), "epsilon": 0.5, "delta": 0.01},
        **{"beta": 0.1},
    },
}

BOUNDS = {
    **{name: {} for name in ("AnyOrder", "Anytime", "Certified", "Exact", "Gaussian")},
    **{name: {} for name in ("Independent", "Pure", "Steinke")},
    "Balanced": {"r_in": 4},
    "RandomR": {"expected": 7},
    "clopper_pearson_lower": {"v": 5, "r": 9, "beta": 0.1},
    "gaussian_epsilon": {"mu": 1.0, "delta": 0.01},
}

_COUNTS = {"v": 8, "r": 9, "n": 20, "beta": 0.1}
_CLAIM = {"delta": 0.01, **_COUNTS}

#: Calls of the two methods of every rule.
RULES = {
    bounds.AnyOrder(): _CLAIM,
    bounds.Anytime(): {"delta": 0.0, **_COUNTS},
    bounds.Balanced(4): _CLAIM,
    bounds.Certified(): _CLAIM,
    bounds.Exact(): _CLAIM,
    bounds.Gaussian(): _CLAIM,
    bounds.Independent(): _CLAIM,
    bounds.Pure(): {"delta": 0.0, **_COUNTS},
    bounds.RandomR(7): _CLAIM,
    bounds.Steinke(): _CLAIM,
}

DPSGD = {
    "simulate_likelihood": {
        **{"dpsgd": STEP, "guesses": 2, "sees": "sum", "feedback": "one-way"},
        **{"trials": 2, "seed": 1},
    },
}

SINGLE_STEP = {
    "simulate_single_step": {
        **{"dpsgd": STEP, "tau": 1.0, "feedback": "full", "guesses": 1, "trials": 2, "seed": 1},
    },
}

TRAINING = {
    "run_dpsgd": {
        **{"dpsgd": STEP, "included": np.ones(4, dtype=bool), "rng": RNG, "clip": 1.0},
        **{"learning_rate": 1.0, "gradient": 1.0},
    },
}

MECHANISMS = {"sign_vectors": {"n": 2}}

GUESSERS = {"fixed_number": {"guesser": ALL, "n": 2}}

GAMES = {
    "adaptive_law": {"channel": TABLE, "guesser": ALL, "feedback": "full", "guesses": 1},
    "one_run_law": {"channel": TABLE, "guesser": ALL},
}

LAWS = {
    "count_in_sets_law": {"s": 2, "sets": 3, "feedback": "full"},
    "local_laplace_law": {"epsilon": 1.0, "n": 5},
    "sums_law": {"dpsgd": STEP, "guesses": 2},
    "mean_bound": {
        **{"law": laws.count_in_sets_law(2, 3), "beta": 0.1, "delta": 0.01, "rule": bounds.Exact()},
    },
}

_SMALL = {"delta": 1e-5, "d": 10, "steps": 1, "sample_rate": 1.0, "beta": 0.1, "trials": 2}

EXPERIMENTS = {
    "adaptive_count_in_sets": {
        **{"sizes": (2,), "sets": 3, "tau": np.inf, "feedbacks": ("full",), "beta": 0.1},
        **{"trials": 2, "seed": 1},
    },
    "adaptive_dpsgd": {
        **{"ratios": (1,), "tau": 1.0, "feedbacks": ("none",), "epsilon": 2.0, "delta": 1e-5},
        **{"d": 10, "beta": 0.1, "trials": 2, "seed": 1},
    },
    "elements_by_epsilon": {"ratios": (1,), "epsilons": (2.0,), "k": 2, **_SMALL, "seed": 1},
    "elements_per_coordinate": {"ratios": (1,), "k": 2, "epsilon": 2.0, **_SMALL, "seed": 1},
    "exact_elements_by_epsilon": {
        **{"ratios": (1,), "k": 2, "epsilons": (2.0,), "delta": 1e-5, "d": 10, "steps": 1},
        **{"sample_rate": 1.0},
    },
    "improvement_ladder": {"trials": 2, "seed": 1},
    "local_laplace": {"epsilons": (1.0,), "n": 10, "beta": 0.1, "trials": 2, "seed": 1},
    "summarise": {"counts": oralib.Counts([5, 6], [9, 9], n=20), "beta": 0.1, "delta": 0.01},
    "taken_guesses": {"fractions": (0.5,), "n": 20, "epsilon": 2.0, **_SMALL, "seed": 1},
    "taken_guesses_by_epsilon": {
        **{"fractions": (0.5,), "epsilons": (2.0,), "n": 20, **_SMALL, "seed": 1},
    },
}

HOMES = {
    oralib: CALLS,
    bounds: BOUNDS,
    dpsgd: DPSGD,
    single_step: SINGLE_STEP,
    simulated_training: TRAINING,
    games: GAMES,
    laws: LAWS,
    experiments: EXPERIMENTS,
    mechanisms: MECHANISMS,
    guessers: GUESSERS,
    assumptions: ASSUMPTIONS,
    refuting: REFUTING,
}

#: What functions return, and nobody builds; protocols, and the base of all rules.
NOT_CALLED = {
    "DiscreteMechanism",
    "Guesser",
    "Law",
    "Mechanism",
    "Rule",
    "Signs",
    "TrainingVerdict",
}

#: Of these no more are tried, which is much work and no mistake.
WORK = dict.fromkeys(("n", "d", "steps", "rounds", "sets", "sizes", "ratios"), 100) | {"trials": 2}

#: An argument that is passed on is named as its taker names it.
ALSO = {
    "fractions": "guesses|n",
    "ratios": "guesses|n|d",
    "k": "guesses",
    "epsilons": "epsilon",
    "base": "sign",
    "theta": "row",
    "line": "sequence",
    "table": "column",
    "scores": "included",
}


def test_every_public_name_is_called():
    for home, calls in HOMES.items():
        elsewhere = NOT_CALLED if home is oralib else NOT_CALLED | set(oralib.__all__)
        names = {name for name in home.__all__ if callable(getattr(home, name))}
        assert set(calls) <= names - elsewhere
        for name, arguments in calls.items():
            parameters = inspect.signature(getattr(home, name)).parameters
            allowed = set(parameters) - {"setting"}
            tried = set(arguments)
            assert allowed == (tried & allowed if "setting" in parameters else tried), name


def test_every_name_of_the_reference_is_called():
    """Names of `oraudit` have tests of their own: they take trainings, not numbers."""
    names = [name for name in entries() if not name.startswith("oraudit.")]
    assert len(names) > 60
    called = [getattr(home, name) for home, calls in HOMES.items() for name in calls]
    for name in names:
        thing = lookup(name)
        if name.rpartition(".")[2] not in NOT_CALLED:
            assert any(thing is other for other in called), name


@pytest.mark.parametrize("home", HOMES, ids=lambda home: home.__name__)
def test_the_calls_themselves_work(home):
    for name, arguments in HOMES[home].items():
        getattr(home, name)(**arguments)


def numbers_of(result):
    """All numbers in a result."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, float | int | np.ndarray):
        return np.asarray(result, dtype=float).ravel()
    return np.zeros(0)


#: Where nan is an answer: no guesses, no accuracy; and in summaries, where the words say so.
NAN_IS_AN_ANSWER = {"epsilon_estimate", "summarise"}

#: What takes long at each call.
SLOW = ("noise_multiplier",)


@pytest.mark.parametrize(
    ("home", "name"),
    [
        pytest.param(home, name, marks=[pytest.mark.slow] if name in SLOW else [])
        for home, calls in HOMES.items()
        for name in calls
    ],
)
def test_odd_arguments(home, name):
    check_odd_arguments(name, getattr(home, name), HOMES[home][name])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("method", ["lower_bound", "p_value"])
def test_odd_arguments_of_rules(rule, method):
    arguments = RULES[rule] if method == "lower_bound" else {"epsilon": 0.5, **RULES[rule]}
    check_odd_arguments(method, getattr(rule, method), arguments)


def test_every_rule_is_called():
    assert {type(rule) for rule in RULES} == set(bounds.Rule.__subclasses__())


def check_odd_arguments(name, function, arguments):
    for argument, (odd, value) in product(arguments, ODD.items()):
        if isinstance(value, float | int) and WORK.get(argument, np.inf) < value < 2**60:
            continue
        try:
            result = function(**{**arguments, argument: value})
        except (ValueError, TypeError) as error:
            said = str(error)
            named = rf"\b({argument}|arguments|{ALSO.get(argument, argument)})"
            assert re.search(named, said), (argument, odd, said)
        else:
            if name not in NAN_IS_AN_ANSWER:
                assert not np.isnan(numbers_of(result)).any(), (argument, odd, result)


@pytest.mark.parametrize(
    "name", [name for name in CALLS if name in {*mechanisms.__all__, *guessers.__all__}]
)
def test_mechanisms_and_guessers_check_their_fields(name):
    """A word, nan or nothing in place of a number is refused when they are made."""
    kind = getattr(oralib, name)
    for argument in CALLS[name]:
        for odd in ("x", np.nan, None):
            with pytest.raises((ValueError, TypeError), match=argument):
                kind(**{**CALLS[name], argument: odd})

"""Each mechanism and each guesser beside its definition, spelled out in oracles; at e^ε = 3.

A mechanism or guesser that is added to the library is added to one of the three tables here, and
tests/test_mechanisms.py or tests/test_guessers.py compares it with its definition.
"""

from fractions import Fraction
from functools import partial
from math import inf, log

import oracles

import oralib

LN3 = log(3)
THREE_QUARTERS, QUARTER = Fraction(3, 4), Fraction(1, 4)


def _shown(o):
    """The output vector of Name-and-Shame as (index, sign)."""
    (index,) = [i for i, entry in enumerate(o) if entry]
    return index, o[index]


def _single(o):
    return o[0]


#: The discrete mechanisms.
#: name: (mechanism, definition in fractions, sizes n, from our output to the definition's)
ZOO = {
    "LRR": (
        oralib.LocalRandomizedResponse(LN3),
        oracles.randomized_response(THREE_QUARTERS),
        (1, 2, 3, 4),
        tuple,
    ),
    "NAS": (oralib.NameAndShame(), oracles.name_and_shame, (1, 2, 3, 4), _shown),
    "AON": (
        oralib.AllOrNothing(0.25),
        oracles.all_or_nothing(QUARTER),
        (1, 2, 3),
        lambda o: tuple(o) if any(o) else None,
    ),
    "XOR": (oralib.Xor(), oracles.xor, (1, 2, 3, 4), _single),
    "XIP": (oralib.XorInPairs(), oracles.xor_in_pairs, (2, 4), tuple),
    "XRR": (
        oralib.XorRandomizedResponse(LN3),
        oracles.xor_randomized_response(THREE_QUARTERS),
        (1, 2, 3, 4),
        _single,
    ),
    "Count": (oralib.Count(), oracles.count, (1, 2, 3, 4), _single),
    "CIS_2": (oralib.CountInSets(2), oracles.count_in_sets(2), (1, 2, 3, 4), tuple),
    "CIS_3": (oralib.CountInSets(3), oracles.count_in_sets(3), (2, 3, 4, 6), tuple),
}

#: (name, n) for every member of the zoo.
MEMBERS = [(name, n) for name, entry in ZOO.items() for n in entry[2]]
SMALL = [(name, n) for name, n in MEMBERS if n <= 4]

#: The continuous mechanisms.
#: name: (mechanism, from a dataset to the laws of the independent entries of its output, sizes n)
CONTINUOUS = {
    "LLP_0.3": (oralib.LocalLaplace(0.3), oracles.local_laplace(0.3), (1, 3)),
    "LLP_1": (oralib.LocalLaplace(1.0), oracles.local_laplace(1.0), (1, 3)),
    "LLP_4": (oralib.LocalLaplace(4.0), oracles.local_laplace(4.0), (1, 3)),
    "NCIS_2": (oralib.NoisyCountInSets(2, 1.7), oracles.noisy_count_in_sets(2, 1.7), (2, 3, 4)),
    "NCIS_3": (oralib.NoisyCountInSets(3, 0.8), oracles.noisy_count_in_sets(3, 0.8), (2, 3, 5)),
}

#: The guessers.
#: name: (guesser, definition: from a list of losses to a list of guesses, the least n)
GUESSERS = {
    "all": (oralib.ThresholdGuesser(), partial(oracles.threshold_guesses, tau=0), 1),
    "half": (oralib.ThresholdGuesser(0.5), partial(oracles.threshold_guesses, tau=0.5), 1),
    "ln 3": (oralib.ThresholdGuesser(LN3), partial(oracles.threshold_guesses, tau=LN3), 1),
    "certain": (oralib.ThresholdGuesser(inf), partial(oracles.threshold_guesses, tau=inf), 1),
    "best": (oralib.TopGuesser(1), partial(oracles.top_guesses, k=1), 1),
    "two best": (oralib.TopGuesser(2), partial(oracles.top_guesses, k=2), 2),
    "three best": (oralib.TopGuesser(3), partial(oracles.top_guesses, k=3), 3),
}

"""Each discrete mechanism beside its definition in fractions (see oracles), at e^ε = 3."""

from fractions import Fraction
from math import log

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


#: name: (mechanism, definition, sizes n, from the library's output to the definition's)
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

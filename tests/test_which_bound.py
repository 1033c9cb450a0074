"""The table of valid bounds against the library."""

from itertools import product

import pytest

import oralib
from orabook import which_bound
from oralib._types import FEEDBACKS


def test_every_audit_is_in_exactly_one_row_with_the_bound_of_the_library():
    rows = which_bound.table().to_numpy().tolist()
    for feedback, r_fixed, (place, delta) in product(
        FEEDBACKS, (True, False), ((2, 0.0), (3, 1e-5), (3, 1.0))
    ):
        [row] = [
            row
            for row in rows
            if which_bound.TOLD[feedback] in row[0].replace(" or ", ", ").split(", ")
            and which_bound.NUMBER[r_fixed] in row[1].split(" or ")
        ]
        counts = oralib.Counts(75, 100, n=1000, r_fixed=r_fixed, feedback=feedback)
        if row[place] == "no valid bound exists":
            with pytest.raises(ValueError, match="no bound is valid"):
                oralib.valid_rule(counts, delta)
        else:
            assert which_bound.NAMES[oralib.valid_rule(counts, delta)] == row[place]


def test_without_a_fair_coin_for_each_element_there_is_no_bound():
    for feedback, r_fixed in product(FEEDBACKS, (True, False)):
        set_up = {"r_fixed": r_fixed, "feedback": feedback, "coins": "balanced"}
        with pytest.raises(ValueError, match="none of our bounds is valid"):
            oralib.valid_rule(oralib.Counts(75, 100, n=1000, **set_up))


def test_the_lowered_bound_is_as_the_page_says():
    """The anytime bound of v - ℓ + 1 right guesses, computed with β - n δ / (2 ℓ)."""
    counts = oralib.Counts(75, 100, n=1000, feedback="full")
    for delta in (1e-5, 1e-4):
        window = anytime_window(1000, delta, 0.05)
        level = 0.05 - 1000 * delta / (2 * window)
        bound = oralib.epsilon_lower_bound_anytime(75 - window + 1, 100, beta=level)
        assert oralib.valid_rule(counts, delta) == "anytime lowered"
        assert oralib.valid_lower_bound(counts, delta=delta)[0] == bound > 0

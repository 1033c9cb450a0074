"""The table of valid bounds against the library."""

from itertools import product

import pytest

import oralib
from orabook import which_bound
from oralib.ground.types import FEEDBACKS


def test_every_audit_is_in_one_row():
    rows = which_bound.table().to_numpy().tolist()
    for feedback, r_fixed, (place, delta) in product(
        FEEDBACKS, (True, False), ((2, 0.0), (3, 1e-5), (3, 1.0))
    ):
        [row] = [
            row
            for row in rows
            if which_bound.FEEDBACK_NAMES[feedback] in row[0].replace(" or ", ", ").split(", ")
            and which_bound.NUMBER_NAMES[r_fixed] in row[1].split(" or ")
        ]
        counts = oralib.Counts(75, 100, n=1000, r_fixed=r_fixed, feedback=feedback)
        if row[place] == "no valid bound above 0":
            with pytest.raises(ValueError, match="no bound is valid"):
                oralib.valid_rule(counts, delta)
        else:
            assert oralib.valid_rule(counts, delta).name == row[place]


def test_balanced_coins_bound_fixed_numbers_without_feedback():
    for feedback, r_fixed in product(FEEDBACKS, (True, False)):
        set_up = {"r_fixed": r_fixed, "feedback": feedback, "coins": "balanced", "r_in": 50}
        counts = oralib.Counts(75, 100, n=1000, **set_up)
        if r_fixed and feedback == "none":
            assert oralib.valid_rule(counts).name == "balanced bound"
        else:
            with pytest.raises(ValueError, match="with balanced coins a bound is known only for"):
                oralib.valid_rule(counts)

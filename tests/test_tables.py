"""Tables for people: the right digits, errors beside their numbers, words to the left."""

import numpy as np
import pandas as pd
import pytest

from orabook.tables import number, show


def test_numbers_as_in_a_book():
    for value, text in (
        (0.6254, "0.625"),
        (-0.0004, "−4 · 10⁻⁴"),
        (-0.00051, "−0.001"),
        (0.0, "0.000"),
        (-0.0, "0.000"),
        (1e-5, "10⁻⁵"),
        (3.14e8, "3.1 · 10⁸"),
        (np.int64(-7), "−7"),
        (-(10**3), "−1,000"),
        (float("nan"), "–"),
        (float("-inf"), "−∞"),
        (np.True_, "yes"),
        (False, "no"),
        ("one-way", "one-way"),
    ):
        assert number(value) == text


FRAME = pd.DataFrame(
    {"way": ["a", "b<"], "bound": [0.5, np.nan], "bound_se": [0.012, np.nan], "n": [1, 2]},
    index=["first", "second"],
)


def test_a_table_in_columns():
    shown = show(FRAME, index="audit")
    assert "b&lt;" in shown._repr_html_()
    assert str(shown).splitlines() == [
        "audit   way     mean bound  n",
        "first   a    0.500 ± 0.012  1",
        "second  b<               –  2",
    ]


def test_a_table_of_some_columns():
    shown = show(FRAME, {"n": "elements", "bound": "ε′", "bound_se": "s.e."}, digits={"bound": 1})
    assert shown.heads == ("elements", "ε′", "s.e.")
    assert shown.rows[0] == ("1", "0.5 ± 0.01", "0.012")
    assert show(FRAME, ["n", "bound"]).heads == ("n", "mean bound")


def test_errors_name_the_argument():
    for call, message in (
        (lambda: show(FRAME, {"x": "x"}), "columns must be among way, bound, .*, n, got 'x'"),
        (lambda: show([1, 2]), "frame must be a data frame"),
        (lambda: show(FRAME, "n"), "columns must be like .* got columns='n'"),
        (lambda: show(FRAME, digits=-1), r"digits must lie in \[0, 30\], got digits=-1"),
        (lambda: show(FRAME, digits={"bound": "two"}), "digits must be an integer"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call()


def test_frames_as_pandas_makes_them():
    """Numbers for names, several names for one column, and values that are missing."""
    plain = show(pd.DataFrame(np.eye(2)), digits=np.int64(1))
    assert str(plain).splitlines() == ["  0    1", "1.0  0.0", "0.0  1.0"]
    assert '<th scope="col" class="number">1</th>' in plain._repr_html_()
    names = pd.MultiIndex.from_tuples([("a", 1)])
    assert "('a', 1)" in str(show(pd.DataFrame([[1]], columns=names)))
    some = pd.array([0.5, None], dtype="Float64")
    assert show(pd.DataFrame({"x": some, "x_se": some})).rows == (("0.500 ± 0.500",), ("<NA>",))

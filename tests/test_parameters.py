"""Parameters of chapters: values, types, ranges and unknown names."""

import pytest

from oralib.parameters import PARAMETERS, at_most, check


def test_values_are_converted():
    assert check({"epsilon": 2, "trials": 1e4, "seed": 0}, "epsilon", "trials", "seed") == (
        2.0,
        10_000,
        0,
    )
    assert check({"epsilons": [1, 2.5]}, "epsilons") == [1.0, 2.5]
    assert check({"sizes": (1, 2.0)}, "sizes") == [1, 2]
    assert check({"tau": 1}, "tau") == 1.0


def test_a_chapter_may_take_less():
    assert check({"n": 11, "p": 0.5}, "n", "p", n=(2, 11)) == (11, 0.5)
    for n in (1, 12):
        with pytest.raises(ValueError, match=rf"n must lie in \[2, 11\] in this .*, got n={n}"):
            check({"n": n, "p": 0.5}, "n", "p", n=(2, 11))
    with pytest.raises(ValueError, match=r"sizes must lie in \[1, 4\] in this chapter"):
        check({"sizes": [1, 5]}, "sizes", sizes=(1, 4))


def test_a_parameter_too_large_for_the_others():
    at_most("k", 4, "the fewest elements", 4)
    with pytest.raises(ValueError, match="k must be at most the fewest elements, got k=5 and the"):
        at_most("k", 5, "the fewest elements", 4)


def test_what_a_notebook_defines_is_no_parameter():
    namespace = {"epsilon": 1.0, "In": [], "Out": {}, "_i1": "x", "np": pytest, "f": check}
    assert check(namespace, "epsilon") == 1.0


@pytest.mark.parametrize(
    ("namespace", "error", "message"),
    [
        ({"epsilon": 1.0, "trials": 5, "epslion": 2}, ValueError, "did you mean epsilon?"),
        ({"epsilon": 1.0, "trials": 5, "k": 2}, ValueError, "k is not a parameter of this chap"),
        ({"epsilon": "2", "trials": 5, "x": None}, ValueError, "x is not a parameter"),
        ({"epsilon": "two", "trials": 5}, TypeError, "epsilon must be a number, got epsilon='two'"),
        ({"epsilon": None, "trials": 5}, TypeError, "epsilon must be a number"),
        (
            {"epsilon": 0, "trials": 5},
            ValueError,
            r"epsilon must lie in \[0.1, 30\], got epsilon=0",
        ),
        ({"epsilon": 1.0, "trials": 1.5}, ValueError, "trials must be an integer, got trials=1.5"),
        ({"epsilon": 1.0, "trials": "1e4"}, TypeError, "trials must be an integer"),
        ({"epsilon": 1.0, "trials": 1}, ValueError, r"trials must lie in \[2, "),
    ],
)
def test_bad_parameters(namespace, error, message):
    with pytest.raises(error, match=message):
        check(namespace, "epsilon", "trials")


@pytest.mark.parametrize("value", [[], 3, "abc", [1, "x"], [0]])
def test_bad_lists(value):
    with pytest.raises((TypeError, ValueError), match="epsilons must"):
        check({"epsilons": value}, "epsilons")


def test_every_parameter_has_a_meaning():
    assert all(parameter.meaning for parameter in PARAMETERS.values())

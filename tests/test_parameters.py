"""Parameters of chapters: values, types, ranges and unknown names."""

from pathlib import Path

import pytest

from orabook import parameters, place
from orabook.parameters import at_most, check


def checked(values, *names, **limits):
    """The values after the check of a chapter with these parameters."""
    namespace = {"__annotations__": dict.fromkeys(names or values), **values}
    check(namespace, **limits)
    return [namespace[name] for name in values if name in (names or values)]


def test_values_are_converted():
    assert checked({"epsilon": 2, "trials": 1e4, "seed": 0}) == [2.0, 10_000, 0]
    assert checked({"epsilons": [1, 2.5]}) == [[1.0, 2.5]]
    assert checked({"sizes": (1, 2.0)}) == [[1, 2]]
    assert checked({"tau": 1}) == [1.0]


def test_declarations_of_a_notebook_are_found():
    space = {}
    exec("epsilon: float = 2\ntrials: int = 10", space)  # as a kernel executes a cell
    exec("trials = 20.0", space)  # as papermill puts in a value
    check(space)
    assert (space["epsilon"], space["trials"]) == (2.0, 20)
    assert isinstance(space["trials"], int)


def test_a_chapter_may_take_less():
    assert checked({"n": 11, "p": 0.5}, n=(2, 11)) == [11, 0.5]
    for n in (1, 12):
        with pytest.raises(ValueError, match=rf"n must lie in \[2, 11\] in this .*, got n={n}"):
            checked({"n": n, "p": 0.5}, n=(2, 11))
    with pytest.raises(ValueError, match=r"sizes must lie in \[1, 4\] in this chapter"):
        checked({"sizes": [1, 5]}, sizes=(1, 4))


def test_a_parameter_too_large_for_the_others():
    at_most("k", 4, "the fewest elements", 4)
    with pytest.raises(ValueError, match="k must be at most the fewest elements, got k=5 and the"):
        at_most("k", 5, "the fewest elements", 4)


def test_what_a_notebook_defines_is_no_parameter():
    namespace = {"epsilon": 1.0, "In": [], "Out": {}, "_i1": "x", "np": pytest, "f": check}
    assert checked(namespace, "epsilon") == [1.0]


def test_bad_parameters():
    fine = {"epsilon": 1.0, "trials": 5}
    for changed, error, message in (
        ({"epslion": 2}, ValueError, "did you mean epsilon?"),
        ({"k": 2}, ValueError, "k is not a parameter of this chapter"),
        ({"x": None}, ValueError, "x is not a parameter"),
        ({"epsilon": "two"}, TypeError, "epsilon must be a number, got epsilon='two'"),
        ({"epsilon": None}, TypeError, "epsilon must be a number"),
        ({"epsilon": 0}, ValueError, r"epsilon must lie in \[0.1, 30\], got epsilon=0"),
        ({"trials": 1.5}, ValueError, "trials must be an integer, got trials=1.5"),
        ({"trials": "1e4"}, TypeError, "trials must be an integer"),
        ({"trials": 1}, ValueError, r"trials must lie in \[2, "),
    ):
        with pytest.raises(error, match=message):
            checked({**fine, **changed}, "epsilon", "trials")
    for value in ([], 3, "abc", [1, "x"], [0]):
        with pytest.raises((TypeError, ValueError), match="epsilons must"):
            checked({"epsilons": value})


def test_names_that_it_does_not_know_are_named():
    space = {"__annotations__": {"learning_rate": float}, "learning_rate": 0.1}
    with pytest.raises(ValueError, match="learning_rate is not among the parameters"):
        parameters.check(space)


def test_a_chapter_that_runs_again_in_the_same_kernel():
    """Its own variables are no parameters; a changed one is checked again."""
    space = {"__annotations__": {"epsilon": float}, "epsilon": 2}
    check(space)
    space |= {"bound": 0.6, "epsilon": 4}
    check(space)
    assert space["epsilon"] == 4.0
    space["epsilon"] = -1
    with pytest.raises(ValueError, match="epsilon must lie in"):
        check(space)


def test_files_of_the_book_are_found_where_the_package_is_installed(tmp_path, monkeypatch):
    assert place.book_file("data/explorer.csv").is_file()
    monkeypatch.setattr(place, "ROOT", tmp_path / "site")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is no data/a.csv of the book beside .* in"):
        place.book_file("data/a.csv")
    for home in (Path(), Path("book")):
        (home / "data").mkdir(parents=True)
        (home / "data" / "a.csv").touch()
        assert place.book_file("data/a.csv") == home / "data" / "a.csv"
        (home / "data" / "a.csv").unlink()

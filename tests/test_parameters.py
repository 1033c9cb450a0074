"""Parameters of chapters: values, types, ranges and unknown names."""

import ast
import re
from pathlib import Path

import nbformat
import pytest
import reruns

from orabook import figures, place, prose, runs, tables
from orabook.extensions import stored_outputs
from orabook.parameters import at_most, check, evenly


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


def test_a_chapter_may_take_less():
    assert checked({"n": 11, "p": 0.5}, n=(2, 11)) == [11, 0.5]
    for n in (1, 12):
        with pytest.raises(ValueError, match=rf"n must lie in \[2, 11\] in this .*, got n={n}"):
            checked({"n": n, "p": 0.5}, n=(2, 11))
    with pytest.raises(ValueError, match=r"sizes must lie in \[1, 4\] in this chapter"):
        checked({"sizes": [1, 5]}, sizes=(1, 4))


def test_a_parameter_too_large_for_the_others():
    at_most("k", 4, "d / 10", 4)
    said = "k must be at most d / 10 = 4, got k=5; add -p k=4"
    with pytest.raises(ValueError, match=said):
        at_most("k", 5, "d / 10", 4)


def test_elements_that_coordinates_cannot_share_evenly():
    for n, d, per in [
        (1, 4, 1),
        (3, 4, 1),
        (8, 4, 1),
        (0.001, 10, 10),
        (0.75, 10, 10),
        (3, 10, 10),
    ]:
        evenly("n", n, d, per=per)
    for value, per, said in [
        (2500, 1, "got n=2500: n=2500 elements with d=1000; add -p n=2000 or -p n=3000"),
        (2.5, 1000, "got n=2.5: n=2500 elements with d=1000; add -p n=2 or -p n=3"),
        ([1, 2.5], 1000, "got n=2.5: n=2500 elements with d=1000; give 2 or 3 instead"),
    ]:
        with pytest.raises(ValueError, match=f"n must give every coordinate .*{said}"):
            evenly("n", value, 1000, per=per)


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
    for value in ([], 3, "abc"):
        with pytest.raises(TypeError, match="epsilons must be a list"):
            checked({"epsilons": value})
    for value in ([1, "x"], [2, 0]):
        with pytest.raises((TypeError, ValueError), match=r"epsilons\[1\] must"):
            checked({"epsilons": value})


def test_a_chapter_runs_twice_in_one_kernel():
    """Its own variables are no parameters; a changed one is checked again."""
    space = {"__annotations__": {"epsilon": float}, "epsilon": 2}
    check(space)
    space |= {"bound": 0.6, "epsilon": 4}
    check(space)
    assert space["epsilon"] == 4.0
    space["epsilon"] = -1
    with pytest.raises(ValueError, match="epsilon must lie in"):
        check(space)


def test_an_installed_package_finds_the_books_files(tmp_path, monkeypatch):
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


#: The least work that the parameters of a chapter allow: the smallest sizes, with the others at an
#: end of their ranges; and some values between, after a space.
SMALLEST = {
    "01-introduction": {"trials": 2, "epsilon": 30, "beta": 0.999},
    "02-preliminaries": {"trials": 2, "k": 1, "epsilon": 0.1, "beta": 1e-9, "delta": 1e-12},
    "03-problem-setting": {"trials": 2, "p": 0.999},
    "04-the-gaps": {"n": 2, "p": 0.001, "epsilon": 0.1},
    "05-efficacy": {"trials": 2, "n": 1, "d": 1, "steps": 1, "delta": 1e-12, "beta": 1e-9},
    "06-dp-sgd": {"trials": 2, "k": 1, "d": 1, "steps": 1, "ratios": [0.001], "beta": 0.999},
    "07-conclusions": {"trials": 2, "n": 2, "epsilon": 0.1, "beta": 1e-9},
    "A-guessing-based-auditing": {"trials": 2, "n": 2, "epsilon": 30, "beta": 0.999},
    "B-gaps-in-detail": {"trials": 2, "n": 2, "p": 0.001, "epsilon": 0.1, "beta": 1e-9},
    "C-efficacy-in-detail": {"trials": 2, "n": 1, "p": 0.999, "epsilons": [0.1], "beta": 1e-9},
    "D-dp-sgd-in-detail": {"trials": 2, "n": 1, "d": 1, "k": 1, "epsilons": [0.1], "delta": 1e-12},
    "E-adaptive-auditing": {"trials": 2, "n": 1, "sets": 1, "sizes": [1], "beta": 1e-9},
    "09-exact-bound": {"n": 200, "beta": 0.5},
    "questions": {"trials": 100, "n": 20, "k": 20, "epsilon": 0.1, "delta": 0.5, "beta": 1e-9},
    "running": {"trials": 2, "k": 1, "d": 1, "steps": 1, "ratio": 0.001, "delta": 0.5},
    "10-feedback": {"trials": 2, "n": 1, "d": 1, "beta": 1e-9},
    "11-what-an-assumption-buys": {"n": 20, "k": 10, "delta": 1e-9, "beta": 0.001},
    "08-how-much-can-one-run-show": {"trials": 2, "steps": 50, "d": 20, "beta": 0.05},
    "auditing-a-real-training": {"n": 100, "beta": 0.025},
    "06-dp-sgd between": {"trials": 2, "ratios": [2, 5], "beta": 0.05},
    "07-conclusions large": {"trials": 2, "epsilon": 30, "beta": 1e-9},
    "08-how-much-can-one-run-show large": {
        **{"trials": 2, "steps": 20, "d": 10},
        **{"epsilon": 10, "delta": 0.1, "sample_rate": 1},
    },
    "C-efficacy-in-detail large": {"trials": 2, "epsilon": 30, "beta": 0.05},
}


def played(chapter, given):
    """Run the cells of a chapter: a generator that stops after each of them.

    Numbers in prose are computed and pictures drawn, as in a notebook.
    """
    for cell, _, seen in reruns.played(chapter, given):
        for source, shown in seen:
            if isinstance(shown, figures.Picture):
                shown.draw_without_rendering()
            elif isinstance(shown, tables.Shown):
                shown._repr_html_()
            elif cell.cell_type != "code":
                assert not re.search(r"\bnan\b", shown), (source, shown)
        yield cell


@pytest.mark.slow
@pytest.mark.parametrize("chapter", SMALLEST)
@pytest.mark.filterwarnings("ignore")  # such as those about means of nothing
def test_chapters_run_at_their_smallest_sizes(chapter):
    """Where every bound is 0 a chapter has less to say, and no error."""
    name = chapter.partition(" ")[0]
    if missing := stored_outputs.missing(place.BOOK / f"{name}.ipynb"):
        pytest.skip(f"needs {', '.join(missing)}")
    assert len(list(played(name, SMALLEST[chapter]))) > 3


#: What keeps its value there, besides seeds; the leak's chapter has only such parameters.
KEPT = """03-problem-setting beta epsilon, 05-efficacy epsilon p, E-adaptive-auditing epsilon,
06-dp-sgd delta epsilon sample_rate tau, running beta epsilon sample_rate, 09-exact-bound delta,
auditing-a-real-training delta epsilon, 12-a-leak-that-one-run-cannot-see beta trials,
10-feedback epsilon epsilons ratios"""


def test_chapter_parameters_have_smallest_values():
    kept = {chapter: {*names} for chapter, *names in map(str.split, KEPT.split(","))}
    for path in place.BOOK.glob("*.ipynb"):
        cells = nbformat.read(path, 4).cells
        (asked,) = [c.source for c in cells if "parameters" in c.metadata.get("tags", [])] or [""]
        small = (given for name, given in SMALLEST.items() if name.split()[0] == path.stem)
        left = set(re.findall(r"^(\w+): ", asked, re.MULTILINE)).difference({"seed"}, *small)
        assert left == kept.pop(path.stem, set()), path.stem
    assert not kept


def names_read(source):
    """The names that a piece of Python reads, other than in a check like `parameters.at_most`."""
    statements = ast.parse(source).body
    read = [part for part in statements if not ast.unparse(part).startswith("parameters.")]
    nodes = [node for part in read for node in ast.walk(part) if isinstance(node, ast.Name)]
    return {node.id for node in nodes if isinstance(node.ctx, ast.Load)}


CHAPTERS = sorted(place.BOOK.glob("*.ipynb"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_parameter_of_a_chapter_is_read(path):
    """Code or a number of the prose reads it; that it is checked is not enough."""
    cells = nbformat.read(path, 4).cells
    tagged = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    if not tagged:
        return
    read = set()
    for cell in cells:
        if cell.cell_type == "markdown":
            read = read.union(*map(names_read, prose.expressions(cell.source)))
        elif cell is not tagged[0]:
            read |= names_read(cell.source)
    declared = re.findall(r"^(\w+): ", tagged[0].source, re.MULTILINE)
    assert declared
    unread = [name for name in declared if name not in read]
    assert not unread, f"nothing in {path.stem} reads {unread}"


def test_most_chapters_have_parameters():
    """So that the test above does not pass since it finds none."""
    texts = [path.read_text() for path in CHAPTERS]
    assert sum('"parameters"' in text for text in texts) > 15


@pytest.mark.parametrize(
    ("chapter", "given", "message"),
    [
        ("04-the-gaps", {"n": 1}, r"n must lie in \[2, 11\] in this chapter, got n=1"),
        ("04-the-gaps", {"epsilom": 3}, "epsilom is not a parameter of .*epsilon"),
        ("B-gaps-in-detail", {"n": 12}, r"n must lie in \[2, 11\] in this chapter"),
        ("10-feedback", {"ratios": [2, 2]}, "ratios must hold no number twice"),
        ("05-efficacy", {"n": 1001}, "; add -p n=1000 or -p n=2000"),
        ("06-dp-sgd", {"ratios": [1, 2.5]}, "got ratios=2.5: .*; give 2 or 3 instead"),
        (
            "06-dp-sgd",
            {"d": 200},
            "k must be at most d times the smallest ratio = 20.*; add -p k=20",
        ),
        ("D-dp-sgd-in-detail", {"k": 101}, "k must be at most d / 10 = 100, got k=101"),
        ("09-exact-bound", {"n": 199}, r"n must lie in \[200"),
        ("08-how-much-can-one-run-show", {"steps": 19}, r"steps must lie in \[20, 1000\]"),
        ("08-how-much-can-one-run-show", {"d": 9}, r"d must lie in \[10, 10000\]"),
        ("questions", {"n": 100}, "k must be at most n = 100, got k=200"),
        ("running", {"ratio": 0.01}, "k must be at most ratio times d = 10, got k=100"),
        ("10-feedback", {"ratios": [201]}, r"ratios must lie in \[1, 200\]"),
        (
            "11-what-an-assumption-buys",
            {"n": 50},
            "k must be at most n = 50, got k=100; add -p k=50",
        ),
    ],
)
def test_set_up_refuses_what_chapters_cannot_take(chapter, given, message):
    """By the cell that checks the parameters, before any work, and before a kernel starts."""
    cells = played(chapter, given)
    while "parameters" not in next(cells).metadata.get("tags", []):
        pass
    with pytest.raises(ValueError, match=message):
        next(cells)
    with pytest.raises(ValueError, match=message):
        runs.check_parameters(runs.find_chapter(chapter), given)

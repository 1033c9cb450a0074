"""Figures: every function draws, in the house style, without touching the caller's settings."""

from functools import cache
from io import StringIO

import matplotlib
import numpy as np
import pandas as pd
import pytest
from test_drawings import contrast

import oralib
from orabook import drawings, experiments, figures
from orabook.figures.data import data_in
from orabook.figures.draw import looks
from orabook.figures.style import BLUE, LOOKS


@cache
def levels():
    return experiments.elements_by_epsilon((1, 2), epsilons=(1, 2), trials=10, seed=1)


PICTURES = {
    "gap_chain": lambda: figures.gap_chain({"XOR": oralib.channel(oralib.Xor(), 3)}, k=[2]),
    "lines": lambda: figures.lines(
        {"a": ([1, 10, 1e5], [1, np.inf, 2]), "b": ([1, 2], [1, 2], [0.1, np.nan])},
        "x",
        "y",
        points={"b": ([1, 2], [1, 2], [0.1, 0.2]), "c": ([1, 2], [2, 1])},
        references={"one": 1, "two": 2},
        log_x=True,
        log_y=True,
        ylim=(0.5, 3),
    ),
    "dashed": lambda: figures.lines(
        figures.curves_of(levels(), "n", "bound", by="epsilon"),
        "n",
        "mean bound",
        dashed=("exact bound", figures.curves_of(levels(), "n", "valid", by="epsilon")),
    ),
    "stacked": lambda: figures.stacked(
        {"y": {"a": ([1, 2], [1, 2])}, "z": {"b": ([1, 2], [5, 6], [1, 1]), "a": ([1, 2], [5, 6])}},
        "x",
        points={"z": {"b": ([1, 2], [5, 6], [1, 1])}},
        references={"y": {"one": 1}},
        log_x=True,
    ),
    "mass": lambda: figures.mass({"a": ([0, 1], [0.5, 0.5]), "b": ([0, 1], [0.1, 0.9])}, "v"),
    "heatmap": lambda: figures.heatmap(
        {name: [[1, np.nan], [2, 3]] for name in "pqr"}, [1, 2], [5, 9], "x", "y", "z"
    ),
    "ranking": lambda: figures.ranking(
        {"one": (1.0, 0.1), "two": (2.0, np.nan)},
        "x",
        groups={"few": ["one"], "many": ["two"]},
        others={"more": {"one": 1.5}},
        references={"a": 1, "b": 2},
    ),
    "swept": lambda: figures.swept(levels(), ["epsilon", "n"], "bound"),
    "dots": lambda: figures.dots(
        {"left": {"one": "bba", "two": "aba"}, "right": {"one": "aaa", "two": "bbb"}},
        {"a": figures.RED, "b": figures.GREY},
    ),
    "tiles": lambda: figures.tiles(
        {"one": [("1", "good"), ("2", "bad")], "two": [("3", "good")]},
        {"good": figures.GREEN, "bad": figures.RED},
    ),
    "outputs": lambda: figures.outputs(oralib.channel(oralib.NameAndShame(), 2)),
}


def test_pictures_look_well_and_carry_their_numbers():
    every = {name for name in figures.__all__ if name.islower()} - {"curves_of"}
    assert set(PICTURES) == every | {"dashed"}
    before = dict(matplotlib.rcParams)
    for name, draw in PICTURES.items():
        picture = draw()
        png, size = picture._repr_png_()
        assert dict(matplotlib.rcParams) == before
        assert int.from_bytes(png[16:20]) == 2 * size["width"]  # sharp on screens of today
        assert picture.get_facecolor() == (1, 1, 1, 1)  # opaque: readable on a dark page
        assert any(axes.get_ylabel() or axes.get_yticklabels() for axes in picture.axes)
        labelled = any(axes.get_xlabel() or axes.get_xticklabels() for axes in picture.axes)
        assert labelled or name == "tiles"  # which say themselves what they are
        if name in ("stacked", "heatmap"):  # the same picture is the same file
            assert draw()._repr_png_()[0] == png
        table = picture.table()
        if name == "tiles":  # words alone, like a drawing
            assert table.empty
            assert drawings.one_run_game().table().empty
            assert data_in(png) is None
            continue
        assert len(table) >= 4
        told = pd.read_csv(StringIO(data_in(png)))
        assert list(told) == list(table)
        for column in table.select_dtypes(float):
            np.testing.assert_allclose(told[column], table[column], rtol=1e-5)


def rows(picture, **which):
    """Rows of the table of a picture, those with the given entries, without what is empty."""
    table = picture.table()
    for column, entry in which.items():
        table = table[table[column] == entry].drop(columns=column)
    return [[x for x in row if x == x] for row in table.to_numpy().tolist()]  # no nan


def test_numbers_of_curves():
    picture = PICTURES["lines"]()
    assert rows(picture, series="a") == [[1, 1], [1e5, 2]]  # what is not finite is not drawn
    assert rows(picture, series="b") == [[1, 1, 0.9, 1.1], [2, 2, 2, 2]]
    assert rows(picture, series="b (simulated)") == [[1, 1, 0.9, 1.1], [2, 2, 1.8, 2.2]]
    assert rows(picture, series="one") == [[1]]
    assert list(picture.table()) == ["series", "x", "y", "low", "high"]


def test_numbers_of_panels_and_of_shared_legends():
    picture = PICTURES["stacked"]()
    assert rows(picture, panel="z", series="b") == [[1, 5, 4, 6], [2, 6, 5, 7]]
    shown = [row[:2] for row in rows(PICTURES["dashed"](), series="ε = 2, exact bound")]
    np.testing.assert_allclose(shown, levels().query("epsilon == 2")[["n", "valid"]])


def test_numbers_of_dots():
    """They are counted, and the picture itself says what one dot is."""
    picture = PICTURES["dots"]()
    assert list(picture.table()) == ["panel", "series", "training runs", "y"]
    assert rows(picture, panel="left", y="two") == [["a", 2], ["b", 1]]


def test_numbers_of_bars_and_cells():
    channel = oralib.channel(oralib.NameAndShame(), 4)
    picture = figures.gap_chain({"shame": channel}, k=[4])
    best = rows(picture, series="the best guesser")
    assert best == [[pytest.approx(channel.optimal_efficacy(4)), "shame"]]
    assert rows(PICTURES["mass"](), series="b") == [[0, 0.1], [1, 0.9]]
    cells = [[1, 5, 1], [2, 5], [1, 9, 2], [2, 9, 3]]
    assert rows(PICTURES["heatmap"](), panel="q") == cells
    grouped = PICTURES["ranking"]()
    assert rows(grouped, series="few") == [[1, "one", 0.8, 1.2]]
    assert rows(grouped, series="many") == [[2, "two"]]
    plain = figures.ranking({"one": (1.0, 0.1), "two": (2.0, 0.1)}, "x")
    assert rows(plain, series="mean bound, ± 2 s.e.")[0] == [1, "one", 0.8, 1.2]


TABLE = pd.DataFrame({"kind": [*"babac"], "x": [1, 1, 2, 2, 1], "guesses": range(5, 10)})
TABLE["bound"], TABLE["bound_se"] = [0.1, 0.2, 0.3, 0.4, np.nan], np.arange(1, 6) / 100
TABLE["trials"] = 800


def listed(curves):
    return {label: [list(part) for part in curve] for label, curve in curves.items()}


def test_curves_of_a_table():
    """A curve for each column, or for each value of another; errors where the table has them."""
    columns = listed(figures.curves_of(TABLE[:2], "x", ["bound", "guesses"]))
    assert columns == {
        "mean bound": [[1, 1], [0.1, 0.2], [0.01, 0.02]],
        "mean number of guesses": [[1, 1], [5, 6]],
    }
    by_kind = listed(figures.curves_of(TABLE, "x", "bound", by="kind"))
    assert by_kind == {  # in the order of the table, without what has no bound
        "kind = b": [[1, 2], [0.1, 0.3], [0.01, 0.03]],
        "kind = a": [[1, 2], [0.2, 0.4], [0.02, 0.04]],
    }
    labels = {"a": "ours", "b": "theirs"}
    chosen = figures.curves_of(TABLE, "x", "guesses", by="kind", labels=labels)
    assert listed(chosen) == {"ours": [[1, 2], [6, 8]], "theirs": [[1, 2], [5, 7]]}


def test_bands_of_another_number_of_audits():
    """Twice the error of a mean of 200 audits; here it is of 800."""
    curves = figures.curves_of(TABLE[:2], "x", "bound", audits=200)
    np.testing.assert_allclose(curves["mean bound"][2], [0.04, 0.08])


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="table must have the columns n, bound, rule, got x"):
        figures.curves_of(pd.DataFrame({"x": [1.0]}), "n", "bound", by="rule")
    with pytest.raises(ValueError, match="table must have the columns trials, got"):
        figures.curves_of(TABLE.drop(columns="trials"), "x", "bound", audits=200)
    with pytest.raises(TypeError, match="table must be a data frame, got a list"):
        figures.curves_of([1, 2], "x", "y")
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(1,\)"):
        figures.lines({"a": ([1, 2], [1])}, "x", "y")


def test_axes_without_anything_to_show_can_be_drawn():
    """As in a chapter with so few audits that there is no bound."""
    nothing = {"a": ([1, 2], [np.nan, np.nan])}
    figures.lines(nothing, "x", "y", log_x=True, log_y=True).draw_without_rendering()
    figures.lines({"a": ([1, 2], [0, 0])}, "x", "y", log_y=True).draw_without_rendering()
    figures.stacked({"y": nothing}, "x", log_x=True).draw_without_rendering()


def test_a_meaning_has_one_look_everywhere():
    for kind in LOOKS.values():
        alone = {name: looks([name])[name] for name in kind}
        others = ["a", "b"]
        for together in ([*kind, *others], [*others, *reversed(kind)]):
            found = looks(together)
            assert alone.items() <= found.items()
            assert len({colour for colour, _, _ in found.values()}) == len(found)
    assert looks(["exact bound (ours)", "ε = 10"])["exact bound (ours)"] == (BLUE, "-", "o")
    assert looks(["ε = 10", "ε = 1"])["ε = 10"][0] != looks(["ε = 1"])["ε = 1"][0]  # no beginning
    for kind in ("bound", "feedback"):  # also in the dark, where pale colours become dark
        assert all(contrast(colour, "white") > 3 for colour, _ in LOOKS[kind].values())
    fixed, free = looks(["full feedback, r fixed", "full feedback, r free"]).values()
    assert fixed[0] == free[0]
    assert fixed[1] != free[1]


def test_levels_keep_their_dashes_in_any_order():
    for order in (("certified ε", "exact ε of it", "a"), ("a", "exact ε of it", "certified ε")):
        levels = dict.fromkeys(order, 1.0)
        lines = figures.lines({}, "x", "y", references=levels).axes[0].lines
        dashes = {line.get_label(): line.get_linestyle() for line in lines}
        assert dashes == {"certified ε": "--", "exact ε of it": ":", "a": "-."}


def test_text_on_a_colour_can_be_read():
    for colour in figures.CYCLE:
        assert contrast(colour, figures.style.ink_on(colour)) >= 4.5


def test_points_have_own_bands_and_whole_numbers():
    twice = figures.lines({"a": ([1, 1, 2], [1, 2, 3], [0.1, 0.2, 0.3])}, "x", "y").table()
    assert np.allclose(twice["high"], [1.1, 2.2, 3.3])
    picture = figures.lines({"a": ([1, 1048576], [1 / 3, 2])}, "n", "y")
    assert data_in(picture._repr_png_()[0]).split()[1:] == ["a,1,0.333333", "a,1048576,2"]


def test_numbers_of_things_have_whole_ticks():
    for xlabel, whole in (("number of bits", True), ("ε", False)):
        axes = figures.lines({"a": ([0, 1, 2], [0, 1, 2])}, xlabel, "y").axes[0]
        assert all(tick.is_integer() for tick in axes.get_xticks()) == whole


def test_wide_sweeps_have_a_logarithmic_axis():
    for k, scale in (
        ([1, 10, 30], "log"),
        ([1, 10, 29], "linear"),
        ([0, 10, 30], "linear"),
        ([1, 30], "linear"),
    ):
        picture = figures.swept(pd.DataFrame({"k": k, "bound": k}), ["k"])
        assert picture.axes[0].get_xscale() == scale


def test_a_sweep_of_numbers_has_curves_or_map():
    plane = pd.DataFrame({"k": [1, 2] * 6, "n": np.repeat(range(6), 2), "bound": range(12)})
    assert figures.swept(plane, ["k", "n"]).axes[0].images
    few = figures.swept(plane[:4][::-1], ["k", "n"])
    assert figures.swept(pd.DataFrame({"law": ["a", "b"], "b": [1, 2]}), ["law"]) is None
    assert rows(few, series="n = 0") == [[1, 0], [2, 1]]  # in the order of k
    assert figures.swept(plane.assign(bound=np.nan), ["k", "n"]) is None
    assert figures.swept(plane.assign(bound="many"), ["k", "n"]) is None


def test_a_legend_with_long_labels_has_one_column():
    """So that no label is cut off."""
    for label, columns in (("short", 2), ("a label of many words " * 2, 1)):
        picture = figures.ranking({"row": (1.0, 0.1)}, "ε", references={label: 1.2, "other": 1.4})
        (legend,) = picture.legends
        assert legend._ncols == columns
        picture.draw_without_rendering()
        assert legend.get_window_extent().width < picture.bbox.width

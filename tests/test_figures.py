"""Figures: every function draws, in the house style, without touching the caller's settings."""

from functools import cache
from io import StringIO

import matplotlib
import numpy as np
import pandas as pd
import pytest
from test_drawings import luminance

import oralib
from orabook import drawings, figures, studies
from orabook.figures.data import data_in
from oralib import experiments

SMALL = {"trials": 10, "seed": 1}


@cache
def sweep():
    return experiments.elements_per_coordinate((0.5, 1, 2), **SMALL)


@cache
def levels():
    return experiments.elements_by_epsilon((1, 2), epsilons=(1, 2), **SMALL)


@cache
def feedbacks():
    return experiments.adaptive_count_in_sets((1, 2), sets=5, **SMALL)


PICTURES = {
    "tradeoff": lambda: figures.tradeoff(
        sweep(),
        "n/d",
        epsilon=2,
        quoted={1: (0.49, 0.01)},
        curves={"δ = 0": ([0.5, 1, 2], [0.3, 0.4, 0.5])},
    ),
    "efficacy": lambda: figures.efficacy(sweep(), "n/d", epsilon=2),
    "by_epsilon": lambda: figures.by_epsilon(levels(), "n", "n", exact="exact bound"),
    "adaptive": lambda: figures.adaptive(
        feedbacks(), "s", epsilon=4, exact={"none": ([1, 2], [1.0, 0.5])}, log_x=True
    ),
    "score_audit": lambda: figures.score_audit(
        *([1, 10, 100], [0.0, 0.5, 0.8]), shown=(10, 0.3), tried=(10, 50), claim=1.0
    ),
    "guess_audit": lambda: figures.guess_audit(
        *([0.01, 0.1], [0.2, 0.4]), shown=(0.05, 0.3), right=(60, 80), estimate=1.1, claim=1.0
    ),
    "ceiling": lambda: figures.ceiling(
        studies.isolated_ceiling((100, 1000), rules=("exact", "plain")), epsilon=2
    ),
    "gap_chain": lambda: figures.gap_chain({"XOR": oralib.channel(oralib.Xor(), 3)}, k=2),
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
    "stacked": lambda: figures.stacked(
        {"y": {"a": ([1, 2], [1, 2])}, "z": {"b": ([1, 2], [5, 6], [1, 1]), "a": ([1, 2], [5, 6])}},
        "x",
        points={"z": {"b": ([1, 2], [5, 6], [1, 1])}},
        references={"y": {"one": 1}},
        log_x=True,
    ),
    "quantiles": lambda: figures.quantiles(np.arange(50), np.arange(60) * 0.9, "first", "second"),
    "mass": lambda: figures.mass({"a": ([0, 1], [0.5, 0.5]), "b": ([0, 1], [0.1, 0.9])}, "v"),
    "law": lambda: figures.law(
        {"Count": oralib.games.one_run_law(oralib.channel(oralib.Count(), 3), oralib.TopGuesser(2))}
    ),
    "heatmap": lambda: figures.heatmap([[1, np.nan], [2, 3]], [1, 2], [5, 9], "x", "y", "z"),
    "maps": lambda: figures.maps(
        {(a, b): [[1, np.nan], [2, 3]] for a in "xy" for b in "pqr"}, [1, 2], [5, 9], "x", "y"
    ),
    "ranking": lambda: figures.ranking(
        {"one": (1.0, 0.1), "two": (2.0, np.nan)},
        "x",
        others={"more": {"one": 1.5}},
        references={"a": 1, "b": 2},
    ),
    "swept": lambda: figures.swept(levels(), ["epsilon", "n"], "bound"),
    "tiles": lambda: figures.tiles(
        {"one": [("1", "good"), ("2", "bad")], "two": [("3", "good")]},
        {"good": figures.GREEN, "bad": figures.RED},
    ),
    "outputs": lambda: figures.outputs(oralib.channel(oralib.NameAndShame(), 2)),
}


def test_every_function_is_drawn():
    assert set(PICTURES) == {name for name in figures.__all__ if name.islower()}


def test_pictures_look_well_and_carry_their_numbers():
    before = dict(matplotlib.rcParams)
    for name, draw in PICTURES.items():
        picture = draw()
        png, size = picture._repr_png_()
        assert dict(matplotlib.rcParams) == before
        assert int.from_bytes(png[16:20]) == 2 * size["width"]  # sharp on screens of today
        assert len(png) < 100_000
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


def test_numbers_of_panels_and_of_curves_that_share_an_entry_of_the_legend():
    picture = PICTURES["stacked"]()
    assert rows(picture, panel="z", series="b") == [[1, 5, 4, 6], [2, 6, 5, 7]]
    shown = rows(PICTURES["by_epsilon"](), series="ε = 2, exact bound")
    np.testing.assert_allclose(shown, levels().query("epsilon == 2")[["n", "valid"]])


def test_numbers_of_bars_and_cells():
    channel = oralib.channel(oralib.NameAndShame(), 4)
    picture = figures.gap_chain({"shame": channel}, k=4)
    best = rows(picture, series="the best guesser")
    assert best == [[pytest.approx(channel.optimal_efficacy(4)), "shame"]]
    assert rows(PICTURES["mass"](), series="b") == [[0, 0.1], [1, 0.9]]
    cells = [[1, 5, 1], [2, 5], [1, 9, 2], [2, 9, 3]]
    assert rows(PICTURES["heatmap"]()) == cells
    assert rows(PICTURES["maps"](), panel="y, q") == cells
    values = rows(PICTURES["ranking"](), series="mean valid bound, ± 2 s.e.")
    assert values == [[1, "one", 0.8, 1.2], [2, "two"]]


def test_frames_that_lack_a_column_are_refused():
    for draw, missing in (
        (lambda table: figures.tradeoff(table, "n/d", epsilon=2.0), "bound, bound_se"),
        (lambda table: figures.efficacy(table, "k/n", epsilon=2.0), "efficacy, efficacy_se"),
        (lambda table: figures.by_epsilon(table, "x", "n/d"), "epsilon, bound"),
        (lambda table: figures.adaptive(table, "s"), "feedback, bound"),
        (lambda table: figures.ceiling(table, epsilon=2.0), "sees, rule"),
    ):
        with pytest.raises(ValueError, match=f"table must have the columns {missing}.*, got x"):
            draw(pd.DataFrame({"x": [1.0]}))
        with pytest.raises(TypeError, match="table must be a data frame"):
            draw([1, 2])


def test_feedback_without_a_bound_is_left_out():
    table = feedbacks().copy()
    table.loc[table["feedback"] == "full", "bound"] = float("nan")
    picture = figures.adaptive(table, "s", labels={"one-way": "ours"})
    shown = [text.get_text() for text in picture.legends[0].get_texts()]
    assert shown == ["no feedback (ORA)", "ours"]


def test_a_label_is_in_the_legend_once():
    def labels(picture):
        return sorted(text.get_text() for text in picture.legends[0].get_texts())

    assert labels(PICTURES["stacked"]()) == ["a", "b", "b (simulated)", "one"]
    curves = {"a": ([1, 2], [1, 2]), "b": ([1, 2], [2, 1])}
    points = {name: (*curve, [0.1, 0.1]) for name, curve in curves.items()}
    picture = figures.lines(curves, "x", "y", points=points)
    assert labels(picture) == ["a", "b", "simulated, ± one s.e."]


def test_rows_of_the_chain_may_differ_in_their_number_of_guesses():
    shame = oralib.channel(oralib.NameAndShame(), 4)
    picture = figures.gap_chain({"one": shame, "four": shame}, k=[1, 4])
    ends = {text.get_text() for text in picture.axes[0].texts}
    assert ends == {"1.00", "0.625"}
    label = figures.gap_chain({"one": shame}, k=2).axes[0].get_xlabel()
    assert figures.gap_chain({"one": shame}, k=np.int64(2)).axes[0].get_xlabel() == label
    with pytest.raises(ValueError, match=r"k must be .* one for each of 2 rows, got k=\[1\]"):
        figures.gap_chain({"one": shame, "four": shame}, k=[1])


def test_bands_of_another_number_of_audits():
    thin, wide = (
        figures.tradeoff(sweep(), "n/d", epsilon=2, audits=audits).table().eval("high - low")
        for audits in (None, 1)
    )
    assert np.nanmax(wide) > 1.5 * np.nanmax(thin)


def test_text_on_a_colour_can_be_read():
    for colour in figures.CYCLE:
        low, high = sorted([luminance(colour), luminance(figures.style.ink_on(colour))])
        assert (high + 0.05) / (low + 0.05) >= 4.5


def test_outputs_are_named():
    for outputs, labels in (
        (None, ["0", "1"]),
        (["a", "b"], ["a", "b"]),
        ([-7, 3], ["-7", "3"]),
        ([[-1, 1], [0, 0]], ["−\u2009+", "0\u20090"]),
        ([[0, 2], [1, 1]], ["0 2", "1 1"]),
    ):
        channel = oralib.Channel(np.full((2, 4), 0.5), outputs=outputs)
        axes = figures.outputs(channel).axes[0]
        assert [label.get_text() for label in axes.get_yticklabels()] == labels


def test_ticks_that_are_too_small_for_a_number_have_no_label():
    picture = figures.lines({"a": ([1e-300, 1e-2], [1, 2])}, "x", "y", log_x=True)
    labels = picture.axes[0].xaxis.get_major_formatter()
    powers = ["", "$10^{-7}$", r"$2 \cdot 10^{-2}$", "$10^{3}$"]
    assert [labels(x, 0) for x in (0.0, 1e-7, 0.02, 1000)] == powers
    assert len(picture._repr_png_()[0]) > 1000


def test_ticks_of_an_axis_have_one_style():
    curve = {"a": ([100, 100_000], [0.02, 2])}
    axes = figures.lines(curve, "x", "y", log_x=True, log_y=True).axes[0]
    along, up = axes.xaxis.get_major_formatter(), axes.yaxis.get_major_formatter()
    assert [along(x, 0) for x in (100, 1000, 10_000, 100_000)] == [
        *("100", "1000", "10,000", "100,000")
    ]
    assert [up(y, 0) for y in (0.02, 0.1, 1)] == ["0.02", "0.1", "1"]


def test_more_curves_than_colours_are_all_drawn_and_differ():
    many = pd.concat([levels().assign(epsilon=float(x)) for x in range(1, 11)])
    drawn = figures.by_epsilon(many, "n", "elements").axes[0].lines
    looks = {(line.get_color(), line.get_marker()) for line in drawn}
    assert len(drawn) == len(looks) == 10
    curves = {f"curve {i}": ([1, 2], [i, i]) for i in range(20)}
    drawn = figures.lines(curves, "x", "y").axes[0].lines
    looks = {(line.get_color(), str(line._unscaled_dash_pattern)) for line in drawn}
    assert len(drawn) == len(looks) == len(curves)
    drawn = figures.tradeoff(sweep(), "n/d", epsilon=2, curves=curves).axes[0].lines
    assert set(curves) <= {line.get_label() for line in drawn}
    kinds = {f"kind {i}": {"ours": 1.0} for i in range(12)}
    levels_ = {f"line {i}": float(i) for i in range(5)}
    picture = figures.ranking({"ours": (1.0, 0.1)}, "bound", others=kinds, references=levels_)
    assert {*kinds, *levels_} <= {line.get_label() for line in picture.axes[0].lines}


def test_points_at_one_x_have_bands_of_their_own_and_whole_numbers_are_carried_whole():
    twice = figures.lines({"a": ([1, 1, 2], [1, 2, 3], [0.1, 0.2, 0.3])}, "x", "y").table()
    assert np.allclose(twice["high"], [1.1, 2.2, 3.3])
    picture = figures.lines({"a": ([1, 1048576], [1 / 3, 2])}, "n", "y")
    assert data_in(picture._repr_png_()[0]).split()[1:] == ["a,1,0.333333", "a,1048576,2"]


def test_what_cannot_be_drawn_is_refused():
    side = (("a", "p"), ("b", "q"))
    for refused, draw in {
        r"of shape \(3, 1\).* \(1, 2\)": lambda: figures.heatmap([[1, 2]], [1], [1, 2, 3], *"xyz"),
        "not all nan, got": lambda: figures.heatmap([[np.nan] * 2], [1, 2], [1], *"xyz"),
        "finite or nan": lambda: figures.heatmap([[1, np.inf]], [1, 2], [1], *"xyz"),
        r"of shape \(1, 2\)": lambda: figures.maps({side[0]: [[1]]}, [1, 2], [1], *"xy"),
        r"none for \[\('a', 'q'\)": lambda: figures.maps({x: [[1]] for x in side}, [1], [1], *"xy"),
        r"shapes \(2,\) and \(1,\)": lambda: figures.lines({"a": ([1, 2], [1])}, "x", "y"),
        "groups": lambda: figures.tiles({}, {}),
        "colours": lambda: figures.tiles({"row": [("1", "holds")]}, {}),
        "values": lambda: figures.ranking({}, "x"),
        "others": lambda: figures.ranking({"a": (1, 0)}, "x", others={"more": {"b": 1}}),
        "panels": lambda: figures.stacked({}, "x"),
        "channels": lambda: figures.gap_chain({}),
        "laws": lambda: figures.mass({}, "x"),
        "laws must": lambda: figures.law({}),
        "second": lambda: figures.quantiles([1], [np.nan], "x", "y"),
        "steps": lambda: figures.quantiles([1], [1], "x", "y", steps=0),
    }.items():
        with pytest.raises(ValueError, match=refused):
            draw()
    for name, draw in {
        "channels": lambda: figures.gap_chain(oralib.channel(oralib.Count(), 3)),
        "laws": lambda: figures.mass(([0, 1], [0.5, 0.5]), "v"),
    }.items():
        with pytest.raises(TypeError, match=f"{name} must map names"):
            draw()


def test_labels_say_what_is_shown():
    for steps, words in ({}, "1% to 99%"), ({"steps": 9}, "10% to 90%"):
        picture = figures.quantiles(range(100), range(100), "x", "y", **steps)
        assert picture.legends[0].get_texts()[1].get_text() == f"quantiles, {words}"
    picture = figures.heatmap([[1, 2], [3, 4]], [1_000_001, 1_000_002], [0.1, 0.3], "n", "k", "b")
    assert set(picture.table()["n"]) == {1_000_001, 1_000_002}

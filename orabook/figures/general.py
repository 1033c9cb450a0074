"""Pictures of any numbers: curves, panels of them, rankings, maps, dots and tiles."""

from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from orabook.figures import draw
from orabook.figures.data import note, note_cells
from orabook.figures.style import GREY, RED, Curve, Picture, in_house_style, ink_on
from orabook.tables import HEADS
from oralib.ground.rounding import first_largest


def curves_of(
    table: pd.DataFrame,
    x: str,
    y: str | Sequence[str],
    *,
    by: str | None = None,
    labels: Mapping[Any, str] | None = None,
    audits: int | None = None,
) -> dict[str, Curve]:
    """Columns of a table as curves for :func:`lines`; those without a finite value are left out.

    There is a curve for each column of ``y``, or for a single one and each value of the column
    ``by``. ``labels`` say what to call the columns, or the values, of which only these are drawn.
    The standard error of a column is in the column of the same name with ``_se`` after it, if there
    is one; with a number of ``audits`` it is twice that of the mean of so many.
    """
    columns = [y] if isinstance(y, str) else list(y)
    _check_columns(table, x, *columns, *([by] if by else []), *(["trials"] if audits else []))
    if by:
        values = labels or {value: _setting(by, value) for value in table[by].unique()}
        parts = [(label, table[table[by] == value], y) for value, label in values.items()]
    else:
        words = HEADS | dict(labels or {})
        parts = [(words.get(column, column), table, column) for column in columns]
    curves = {}
    for label, rows, column in parts:
        curve = [rows[x], rows[column]]
        if f"{column}_se" in rows:
            factor = 1.0 if audits is None else 2 * np.sqrt(rows["trials"] / audits)
            curve.append(factor * rows[f"{column}_se"])
        if np.isfinite(rows[column]).any():
            curves[label] = tuple(curve)
    return curves


def _setting(name: str, value: Any) -> str:
    return f"{HEADS.get(name, name)} = " + (f"{value:g}" if isinstance(value, Real) else value)


def _check_columns(table: pd.DataFrame, *names: str) -> None:
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"table must be a data frame, got a {type(table).__name__}")
    missing = [name for name in names if name not in table.columns]
    if missing:
        have = ", ".join(map(str, table.columns))
        raise ValueError(f"table must have the columns {', '.join(missing)}, got {have}")


@in_house_style
def lines(
    curves: Mapping[str, Curve],
    xlabel: str,
    ylabel: str,
    *,
    dashed: tuple[str, Mapping[str, Curve]] | None = None,
    points: Mapping[str, Curve] | None = None,
    references: Mapping[str, float] | None = None,
    log_x: bool = False,
    log_y: bool = False,
    ylim: tuple[float | None, float | None] | None = None,
) -> Picture:
    """Curves, which are exact or have a band of one standard error, and simulated points.

    Curves are {label: (x, y)}, or with the standard error of y: :func:`curves_of` makes them of a
    table. Points with the label of a curve have its colour, and ``references``, {label: y}, are
    levels. ``dashed`` is what further curves are called, and the curves by the labels of the
    others. They are dashed in the colours of these, which are then solid, with markers.
    """
    _, axes = draw.picture()
    _draw(axes, curves, points or {}, references, dashed=dashed)
    if log_y:
        draw.log_y(axes)
    axes.set_ylim(ylim)
    return draw.finish(axes, xlabel, ylabel, log_x=log_x)


@in_house_style
def stacked(
    panels: Mapping[str, Mapping[str, Curve]],
    xlabel: str,
    *,
    points: Mapping[str, Mapping[str, Curve]] | None = None,
    references: Mapping[str, Mapping[str, float]] | None = None,
    log_x: bool = False,
) -> Picture:
    """Panels above each other with one x-axis, for quantities that differ: {y-label: curves}.

    A label has the same colour in all panels. Curves, ``points`` and ``references`` are those of
    :func:`lines`, by the y-label of their panel.
    """
    picture, axes = draw.picture(rows=len(panels), height=1.0 + 2.2 * len(panels), sharex=True)
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    for panel, (ylabel, curves) in zip(np.atleast_1d(axes), panels.items(), strict=True):
        of_panel, levels = (points or {}).get(ylabel, {}), (references or {}).get(ylabel)
        _draw(panel, curves, of_panel, levels, names)
        draw.labels(panel, xlabel, ylabel, log_x)
        panel.locator_params(axis="y", nbins=5)  # else ticks change once labels have their room
        panel.label_outer()
    draw.legend(picture)
    return picture


def _draw(
    axes: Axes,
    curves: Mapping[str, Curve],
    points: Mapping[str, Curve],
    references: Mapping[str, float] | None,
    names: Sequence[str] | None = None,
    dashed: tuple[str, Mapping[str, Curve]] | None = None,
) -> None:
    """Curves and points, each in the look of its label among the names."""
    looks = draw.looks(dict.fromkeys([*(names or ()), *curves, *points]))
    draw.references(axes, references)
    for label, curve in curves.items():
        colour, dashes, marker = looks[label]
        style = {"marker": marker} if dashed else {"linestyle": dashes}
        draw.curve(axes, *curve, label=label, color=colour, **style)
    if dashed:
        kind, others = dashed
        for label, curve in others.items():
            style = draw.DASHED | {"color": looks[label][0]}
            draw.curve(axes, *curve, series=f"{label}, {kind}", **style)
        axes.plot([], [], label=kind, **draw.DASHED)
    of_curves = [label for label in points if label in curves]
    several = len(of_curves) > 1  # which have one entry in the legend
    for label, curve in points.items():
        colour, _, marker = looks[label]
        series = f"{label} (simulated)" if label in curves else label
        shown = None if several and label in curves else series
        draw.points(axes, *curve, label=shown, series=series, color=colour, marker=marker)
    if several:
        draw.points(axes, [], [], [], label="simulated, ± one s.e.", color="black")


@in_house_style
def ranking(
    values: Mapping[str, tuple[float, float]],
    xlabel: str,
    *,
    groups: Mapping[str, Collection[str]] | None = None,
    others: Mapping[str, Mapping[str, float]] | None = None,
    references: Mapping[str, float] | None = None,
) -> Picture:
    """One value with its standard error per row, {row: (value, error)}, the first row on top.

    ``groups``, {label: rows}, follow each other and have a colour each, with a line between them.
    ``others``, {label: {row: value}}, are further values of the same rows, and ``references``,
    {label: x}, levels to draw as dashed lines.
    """
    _, axes = draw.picture(width=5.4, height=1.3 + 0.45 * len(values))
    places = {row: -place for place, row in enumerate(values)}
    draw.references(axes, references, upright=True)
    if groups is None:
        groups = {"mean bound, ± 2 s.e.": list(values)}
    looks = draw.looks([*groups, *(others or {})])
    for other, extra in (others or {}).items():
        colour, _, marker = looks[other]
        style: Any = {"color": colour, "marker": marker, "markerfacecolor": "white", "label": other}
        axes.plot(list(extra.values()), [places[row] for row in extra], linestyle="none", **style)
        note(axes, series=other, x=list(extra.values()), y=list(extra))
    above: Any = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center"}
    above["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}  # over lines
    for label, rows in groups.items():
        colour, _, marker = looks[label]
        heights = [places[row] for row in rows]
        x, error = np.array([values[row] for row in rows], dtype=float).T
        axes.errorbar(x, heights, xerr=2 * error, fmt=marker, color=colour, capsize=3, label=label)
        note(axes, series=label, x=x, y=list(rows), low=x - 2 * error, high=x + 2 * error)
        for value, height in zip(x, heights, strict=True):
            axes.annotate(f"{value:.2f}", (value, height), color=colour, **above)
        if min(heights) > -len(values) + 1:
            axes.axhline(min(heights) - 0.35, color=GREY, linewidth=0.8)
    axes.set_yticks(list(places.values()), list(places))
    axes.grid(visible=False, axis="y")
    axes.set(xlim=(0, None), ylim=(-len(values) + 0.4, 0.75))
    return draw.finish(axes, xlabel, "", spare=2)


@in_house_style
def heatmap(
    maps: Mapping[str, ArrayLike],
    columns: Sequence[float],
    rows: Sequence[float],
    xlabel: str,
    ylabel: str,
    label: str,
) -> Picture:
    """Maps of numbers over two parameters, {title: values}, side by side with one scale.

    The first row of the values is at the bottom; nan is an empty cell. The largest number of each
    map is marked. A single map shows all its numbers, several maps only these.
    """
    tables = [np.asarray(values, dtype=float) for values in maps.values()]
    width, height, alone = 7.0, 2.65, len(tables) == 1
    if alone:
        width, height = max(5.0, 1.8 + 0.52 * len(columns)), 1.4 + 0.42 * len(rows)
    picture, axes = draw.picture(len(tables), width=width, height=height, squeeze=False)
    scale = np.nanmin(tables), np.nanmax(tables)
    for panel, title, values in zip(axes[0], maps, tables, strict=True):
        look: Any = {"origin": "lower", "cmap": "viridis", "aspect": "auto"}
        image = panel.imshow(values, vmin=scale[0], vmax=scale[1], **look)
        panel.set_title(title)
        panel.set_xticks(range(len(columns)), [f"{x:.12g}" for x in columns])
        panel.set_yticks(range(len(rows)), [f"{y:.12g}" for y in rows])
        panel.grid(visible=False)
        note_cells(panel, columns, rows, values)
        best = np.unravel_index(first_largest(values), values.shape)
        mark: Any = {"fill": False, "edgecolor": RED, "linewidth": 2}
        panel.add_patch(Rectangle((best[1] - 0.5, best[0] - 0.5), 1, 1, **mark))
        for place in map(tuple, np.argwhere(np.isfinite(values)) if alone else [best]):
            colour = "white" if values[place] < np.mean(scale) else "black"
            weight = "bold" if alone and place == best else "normal"
            draw.write(panel, place, f"{values[place]:.2f}", colour, fontweight=weight)
        draw.labels(panel, xlabel, ylabel)
        panel.label_outer()
    picture.colorbar(image, ax=list(axes[0]), label=label)
    return picture


@in_house_style
def tiles(groups: Mapping[str, Sequence[tuple[str, str]]], colours: Mapping[str, str]) -> Picture:
    """Rows of small tiles, {row: [(text, kind), ...]}, coloured by kind; ``colours`` is the key."""
    picture, axes = draw.picture(width=7.0, height=0.9 + 0.42 * len(groups))
    for place, row in enumerate(groups.values()):
        for x, (text, kind) in enumerate(row):
            axes.add_patch(Rectangle((x, place), 0.92, 0.86, color=colours[kind], linewidth=0))
            draw.write(axes, (place + 0.43, x + 0.46), text, ink_on(colours[kind]), fontsize=11.5)
    axes.set(xlim=(-0.1, max(map(len, groups.values()))), ylim=(len(groups), -0.1), xticks=[])
    axes.set_yticks(np.arange(len(groups)) + 0.43, list(groups))
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    handles = [Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    picture.legend(handles, list(colours), loc="outside upper center", ncols=len(colours))
    return picture


@in_house_style
def dots(panels: Mapping[str, Mapping[str, Sequence[str]]], colours: Mapping[str, str]) -> Picture:
    """A dot for each run, {panel: {row: [kind, ...]}}, filled by kind; the last kind is hollow."""
    rows, kinds = list(next(iter(panels.values()))), list(colours)
    height = 1.3 + 0.31 * len(rows)
    picture, axes = draw.picture(len(panels), height=height, sharey=True, squeeze=False)
    for panel, (title, runs) in zip(axes[0], panels.items(), strict=True):
        for y, row in enumerate(rows):
            for x, kind in enumerate(sorted(runs[row], key=kinds.index), start=1):
                face = "white" if kind == kinds[-1] else colours[kind]
                look: Any = {"color": colours[kind], "markerfacecolor": face, "markersize": 7}
                panel.plot(x, y, "o", **look)
            note(panel, series=kinds, x=[list(runs[row]).count(kind) for kind in kinds], y=row)
        panel.set(title=title, xticks=[1, len(runs[row])], ylim=(len(rows) - 0.4, -0.6))
        panel.grid(visible=False, axis="x")
        draw.labels(panel, "training runs", "")
    axes[0][0].set_yticks(range(len(rows)), rows)
    faces = [*list(colours.values())[:-1], "white"]
    marks = [
        Line2D([], [], marker="o", linestyle="none", color=colour, markerfacecolor=face)
        for colour, face in zip(colours.values(), faces, strict=True)
    ]
    picture.legend(marks, kinds, loc="outside upper center", ncols=len(kinds), columnspacing=1.0)
    return picture


def swept(table: pd.DataFrame, axes: Sequence[str], result: str = "") -> Picture | None:
    """Curves of a result against the first parameter that is a number, or a map over two.

    There is a curve for each setting of the other parameters; a map if these are more than five
    and all of one parameter. None if there is no number to draw, or too many parameters vary.
    ``axes`` are the columns that are parameters, and ``result`` is by default the first other one
    that holds numbers.
    """
    numbers = [name for name in table if pd.api.types.is_numeric_dtype(table[name])]
    results = [name for name in numbers if name not in axes]
    result = result or next(iter(results), "")
    varying = [name for name in axes if table[name].map(str).nunique() > 1]
    x = next((name for name in varying if name in numbers), None)
    if result not in results or x is None or not np.isfinite(table[result]).any():
        return None
    others = [name for name in varying if name != x]
    curve_of_row = pd.Series(result, table.index)
    if others:
        settings = table[others].astype(str).agg(", ".join, axis=1)
        curve_of_row = f"{', '.join(others)} = " + settings
    labels = {label: label for label in curve_of_row.unique()}
    if len(labels) <= 5:
        by_x = table.assign(_curve=curve_of_row).sort_values(x)
        curves = curves_of(by_x, x, result, by="_curve", labels=labels)
        values = np.unique(table[x])
        wide = len(values) > 2 and values[0] > 0 and values[-1] >= 30 * values[0]
        return lines(curves, x, result, log_x=wide)
    if len(others) > 1 or others[0] not in numbers:
        return None
    plane = table.pivot(index=others[0], columns=x, values=result)
    return heatmap(
        {"": plane.to_numpy()}, list(plane.columns), list(plane.index), x, others[0], result
    )

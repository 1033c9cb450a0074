"""Curves over one axis, from the columns of a table, in one panel or in several."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from orabook.figures import draw
from orabook.figures.style import Curve, Picture, in_house_style
from orabook.tables import HEADS

__all__ = ["curves_of", "lines", "stacked"]


def curves_of(
    table: pd.DataFrame,
    x: str,
    y: str | Sequence[str],
    *,
    by: str | None = None,
    labels: Mapping[Any, str] | None = None,
    audits: int | None = None,
) -> dict[str, Curve]:
    """Make curves for :func:`lines` of columns of a table, where they have a finite value.

    There is a curve for each column of ``y``, or for a single one and each value of the column
    ``by``. ``labels`` are the names of the columns, or of the values that are drawn. The
    standard error of a column is in the column of the same name with ``_se`` after it, if there is
    one; with a number of ``audits`` the band is two standard errors of a mean of that many audits.
    """
    columns = [y] if isinstance(y, str) else list(y)
    needed_columns = [x, *columns]
    if by:
        needed_columns.append(by)
    if audits:
        needed_columns.append("trials")
    _check_columns(table, needed_columns)
    if by:
        values = labels or {value: _setting(by, value) for value in table[by].unique()}
        parts = [(label, table[table[by] == value], y) for value, label in values.items()]
    else:
        names = HEADS | dict(labels or {})
        parts = [(names.get(column, column), table, column) for column in columns]
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
    text = f"{value:g}" if isinstance(value, Real) else value
    return f"{HEADS.get(name, name)} = {text}"


def _check_columns(table: pd.DataFrame, names: Sequence[str]) -> None:
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"table must be a data frame, got a {type(table).__name__}")
    missing = [name for name in names if name not in table.columns]
    if missing:
        available = ", ".join(map(str, table.columns))
        raise ValueError(f"table must have the columns {', '.join(missing)}, got {available}")


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
    """Draw curves, which are exact or have a band of one standard error, and simulated points.

    Curves are {label: (x, y)}, or with the standard error of y: :func:`curves_of` makes them of a
    table. Points with the label of a curve have its colour, and ``references``, {label: y}, are
    levels. ``dashed`` is the name of further curves, and these by the labels of the others. They
    are dashed in the colours of the others, which are then solid, with markers.
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
    """Draw panels above each other with one x-axis, for different quantities: {y-label: curves}.

    A label has the same colour in all panels. Curves, ``points`` and ``references`` are those of
    :func:`lines`, by the y-label of their panel.
    """
    picture, axes = draw.picture(rows=len(panels), height=1.0 + 2.2 * len(panels), sharex=True)
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    for panel, (ylabel, curves) in zip(np.atleast_1d(axes), panels.items(), strict=True):
        points_here = (points or {}).get(ylabel, {})
        levels = (references or {}).get(ylabel)
        _draw(panel, curves, points_here, levels, names)
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
    """Draw curves and points, each in the look of its label among the names."""
    looks = draw.looks(dict.fromkeys([*(names or ()), *curves, *points]))
    draw.references(axes, references)
    for label, curve in curves.items():
        colour, dashes, marker = looks[label]
        style = {"marker": marker} if dashed else {"linestyle": dashes}
        draw.curve(axes, *curve, label=label, color=colour, **style)
    if dashed:
        kind, dashed_curves = dashed
        for label, curve in dashed_curves.items():
            style = draw.DASHED | {"color": looks[label][0]}
            draw.curve(axes, *curve, series=f"{label}, {kind}", **style)
        axes.plot([], [], label=kind, **draw.DASHED)
    share_an_entry = sum(label in curves for label in points) > 1  # of the legend
    for label, curve in points.items():
        colour, _, marker = looks[label]
        series = f"{label} (simulated)" if label in curves else label
        entry = None if share_an_entry and label in curves else series
        draw.points(axes, *curve, label=entry, series=series, color=colour, marker=marker)
    if share_an_entry:
        draw.points(axes, [], [], [], label="simulated, ± one s.e.", color="black")

"""Pictures of any numbers: curves, panels of them, quantiles, bars, maps and tiles."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray

from orabook.figures import draw
from orabook.figures.data import note, note_cells
from orabook.figures.style import BLUE, RED, Curve, Picture, in_house_style, ink_on, require_some
from oralib import _check
from oralib._rounding import first_largest


@in_house_style
def lines(
    curves: Mapping[str, Curve],
    xlabel: str,
    ylabel: str,
    *,
    points: Mapping[str, Curve] | None = None,
    references: Mapping[str, float] | None = None,
    log_x: bool = False,
    log_y: bool = False,
    ylim: tuple[float, float] | None = None,
) -> Picture:
    """Curves, which are exact or have a band of one standard error, and simulated points.

    Parameters
    ----------
    curves : {label: (x, y)}, or with the standard error of y.
    points : {label: (x, y, standard error)}; one with the label of a curve has its colour.
    references : levels to draw as dashed lines, {label: y}.

    Examples
    --------
    >>> picture = lines({"p(ε)": ([0, 1, 2], [0.5, 0.73, 0.88])}, "ε", "accuracy")
    """
    _, axes = draw.picture()
    _draw(axes, curves, points or {}, references)
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

    ``points`` and ``references`` are as in :func:`lines`, by the y-label of their panel; a label
    has the same colour in all panels.

    Examples
    --------
    >>> x = [1, 2, 4]
    >>> panels = {"bound": {"ours": (x, [0.4, 0.6, 0.5])}, "guesses": {"ours": (x, x)}}
    >>> picture = stacked(panels, "n")
    """
    require_some("panels", panels, "panel")
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
) -> None:
    """Curves and points, each in the style of the place of its label among the names."""
    order = list(dict.fromkeys([*(names or ()), *curves, *points]))
    draw.references(axes, references)
    for label, curve in curves.items():
        colour, dashes, _ = draw.look(order.index(label))
        draw.curve(axes, *curve, label=label, color=colour, linestyle=dashes)
    of_curves = [label for label in points if label in curves]
    several = len(of_curves) > 1  # which have one entry in the legend
    for label, curve in points.items():
        colour, _, marker = draw.look(order.index(label))
        series = f"{label} (simulated)" if label in curves else label
        shown = None if several and label in curves else series
        draw.points(axes, *curve, label=shown, series=series, color=colour, marker=marker)
    if several:
        draw.points(axes, [], [], [], label="simulated, ± one s.e.", color="black")


@in_house_style
def quantiles(
    first: ArrayLike, second: ArrayLike, xlabel: str, ylabel: str, *, steps: int = 99
) -> Picture:
    """Quantiles of one sample against those of another: equal laws lie on the diagonal.

    Examples
    --------
    >>> picture = quantiles(range(100), range(100), "one sample", "another")
    """
    levels = np.linspace(0, 1, _check.integer("steps", steps, 1) + 2)[1:-1]
    x = np.quantile(_check.reals("first", first, interval="()"), levels)
    y = np.quantile(_check.reals("second", second, interval="()"), levels)
    _, axes = draw.picture(width=5.0, height=4.6)
    ends = [min(x[0], y[0]), max(x[-1], y[-1])]
    draw.curve(axes, ends, ends, label="equal laws", **draw.DASHED)
    label = f"quantiles, {100 * levels[0]:.3g}% to {100 * levels[-1]:.3g}%"
    draw.curve(axes, x, y, color=BLUE, marker="o", linestyle="none", markersize=4, label=label)
    axes.set_aspect("equal")
    return draw.finish(axes, xlabel, ylabel)


@in_house_style
def ranking(
    values: Mapping[str, tuple[float, float]],
    xlabel: str,
    *,
    others: Mapping[str, Mapping[str, float]] | None = None,
    references: Mapping[str, float] | None = None,
) -> Picture:
    """One value with its standard error per row, {row: (value, error)}, the first row on top.

    Parameters
    ----------
    others : further values of the same rows, drawn smaller: {label: {row: value}}.
    references : levels to draw as dashed lines, {label: x}.

    Examples
    --------
    >>> picture = ranking({"ours": (1.2, 0.1), "theirs": (0.9, 0.1)}, "mean bound")
    """
    require_some("values", values, "row")
    for label, extra in (others or {}).items():
        if unknown := [row for row in extra if row not in values]:
            raise ValueError(f"others must have rows of values, got {unknown[0]!r} in {label!r}")
    _, axes = draw.picture(width=7.0, height=1.3 + 0.45 * len(values))
    places = {row: -place for place, row in enumerate(values)}
    draw.references(axes, references, upright=True)
    for place, (label, extra) in enumerate((others or {}).items(), start=1):
        colour, _, marker = draw.look(place)
        style: Any = {"color": colour, "marker": marker, "markerfacecolor": "white", "label": label}
        axes.plot(list(extra.values()), [places[row] for row in extra], linestyle="none", **style)
        note(axes, series=label, x=list(extra.values()), y=list(extra))
    label, heights = "mean valid bound, ± 2 s.e.", list(places.values())
    x, error = np.array(list(values.values()), dtype=float).T
    axes.errorbar(x, heights, xerr=2 * error, fmt="o", color=BLUE, capsize=3, label=label)
    note(axes, series=label, x=x, y=list(values), low=x - 2 * error, high=x + 2 * error)
    above: Any = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center", "color": BLUE}
    for value, height in zip(x, heights, strict=True):
        axes.annotate(f"{value:.2f}", (value, height), **above)
    axes.set_yticks(heights, list(places))
    axes.grid(visible=False, axis="y")
    axes.set(xlim=(0, None), ylim=(-len(values) + 0.4, 0.75))
    return draw.finish(axes, xlabel, "", spare=2)


@in_house_style
def heatmap(
    values: ArrayLike,
    columns: Sequence[float],
    rows: Sequence[float],
    xlabel: str,
    ylabel: str,
    label: str,
) -> Picture:
    """A map of numbers over two parameters, the first row at the bottom; the largest is marked.

    Examples
    --------
    >>> picture = heatmap([[1, 2], [3, 4]], [1, 8], [50, 100], "n/d", "guesses", "bound")
    """
    shown = _mapped(values, columns, rows)
    picture, axes = draw.picture(
        width=max(5.0, 1.8 + 0.52 * len(columns)), height=1.4 + 0.42 * len(rows)
    )
    image, best = _draw_map(axes, shown, columns, rows)
    middle = (np.nanmin(shown) + np.nanmax(shown)) / 2
    for place in map(tuple, np.argwhere(np.isfinite(shown))):
        weight = "bold" if place == best else "normal"
        colour = "white" if shown[place] < middle else "black"
        draw.write(axes, place, f"{shown[place]:.2f}", colour, fontweight=weight)
    draw.labels(axes, xlabel, ylabel)
    picture.colorbar(image, ax=axes, label=label)
    return picture


def _draw_map(
    axes: Axes, shown: NDArray[Any], columns: Sequence[float], rows: Sequence[float], **scale: Any
) -> tuple[Any, tuple[Any, ...]]:
    """Draw a map with a mark around its largest number; the image, and where this is."""
    image = axes.imshow(shown, origin="lower", cmap="viridis", aspect="auto", **scale)
    axes.set_xticks(range(len(columns)), [f"{x:.12g}" for x in columns])
    axes.set_yticks(range(len(rows)), [f"{y:.12g}" for y in rows])
    axes.grid(visible=False)
    best = np.unravel_index(first_largest(shown), shown.shape)
    corner = best[1] - 0.5, best[0] - 0.5
    axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=RED, linewidth=2))
    note_cells(axes, columns, rows, shown)
    return image, best


def _mapped(values: ArrayLike, columns: Sequence[float], rows: Sequence[float]) -> NDArray[Any]:
    """A map of numbers, of which each has a column and a row and at least one is finite."""
    shown = np.asarray(values, dtype=float)
    shape = (len(rows), len(columns))
    if shown.shape != shape or not np.isfinite(shown).any() or np.isinf(shown).any():
        raise ValueError(
            f"values must be numbers of shape {shape} (rows, columns), finite or nan, and not all "
            f"nan, got values={shown} of shape {shown.shape}"
        )
    return shown


@in_house_style
def maps(
    panels: Mapping[tuple[str, str], ArrayLike],
    columns: Sequence[float],
    rows: Sequence[float],
    xlabel: str,
    ylabel: str,
    label: str = "",
) -> Picture:
    """Small maps, {(title of its row, title of its column): values}, with one scale for each row.

    The largest value of a map is marked and written; the first row of values is at the bottom. The
    label is that of the scales.

    Examples
    --------
    >>> panels = {("ε = 1", "plain"): [[1, 2], [3, 4]]}
    >>> picture = maps(panels, [1, 8], [50, 100], "n/d", "guesses", "mean bound")
    """
    down = list(dict.fromkeys(name for name, _ in panels))
    across = list(dict.fromkeys(name for _, name in panels))
    missing = [(row, name) for row in down for name in across if (row, name) not in panels]
    if missing or not panels:
        raise ValueError(f"panels must have a map for each row and column, got none for {missing}")
    picture, axes = draw.picture(
        len(across), rows=len(down), width=7.0, height=0.9 + 1.75 * len(down), squeeze=False
    )
    for i, row in enumerate(down):
        shown = {name: _mapped(panels[row, name], columns, rows) for name in across}
        top = max(np.nanmax(values) for values in shown.values())
        floor = min(0.0, *(np.nanmin(values) for values in shown.values()))
        for j, name in enumerate(across):
            panel, values = axes[i, j], shown[name]
            panel.set_gid(f"{row}, {name}")
            image, best = _draw_map(panel, values, columns, rows, vmin=floor, vmax=top)
            colour = "black" if values[best] > (floor + top) / 2 else "white"
            draw.write(panel, best, f"{values[best]:.2f}", colour, fontsize=8.5)
            panel.set_title("" if i else name)
            draw.labels(panel, xlabel, f"{row}\n{ylabel}" if row else ylabel)
            panel.label_outer()
        picture.colorbar(image, ax=list(axes[i]), label=label)
    return picture


@in_house_style
def tiles(groups: Mapping[str, Sequence[tuple[str, str]]], colours: Mapping[str, str]) -> Picture:
    """Rows of small tiles, {row: [(text, kind), ...]}, coloured by kind; ``colours`` is the key.

    Examples
    --------
    >>> rows = {"gaps": [("1", "holds"), ("2", "fails")]}
    >>> picture = tiles(rows, {"holds": "#009E73", "fails": "#D55E00"})
    """
    require_some("groups", groups, "row")
    if unknown := {kind for row in groups.values() for _, kind in row} - set(colours):
        raise ValueError(f"colours must have every kind, got none for {sorted(unknown)}")
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

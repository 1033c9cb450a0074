"""Maps: numbers over two parameters, and tiles with short texts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray

from orabook.figures import draw
from orabook.figures.data import note_cells
from orabook.figures.style import RED, Picture, in_house_style, ink_on
from oralib.ground.rounding import first_largest

__all__ = ["heatmap", "tiles"]


@in_house_style
def heatmap(
    maps: Mapping[str, ArrayLike],
    columns: Sequence[float],
    rows: Sequence[float],
    xlabel: str,
    ylabel: str,
    label: str,
) -> Picture:
    """Draw maps of numbers over two parameters, {title: values}, side by side with one scale.

    The first row of the values is at the bottom; nan is an empty cell. The largest number of each
    map is marked. A single map shows all its numbers, several maps only these.
    """
    tables = [np.asarray(values, dtype=float) for values in maps.values()]
    is_alone = len(tables) == 1
    width = max(5.0, 1.8 + 0.52 * len(columns)) if is_alone else 7.0
    height = 1.4 + 0.42 * len(rows) if is_alone else 2.65
    picture, axes = draw.picture(len(tables), width=width, height=height, squeeze=False)
    scale = (np.nanmin(tables), np.nanmax(tables))
    for panel, title, values in zip(axes[0], maps, tables, strict=True):
        look: Any = {"origin": "lower", "cmap": "viridis", "aspect": "auto"}
        image = panel.imshow(values, vmin=scale[0], vmax=scale[1], **look)
        panel.set_title(title)
        panel.set_xticks(range(len(columns)), [f"{x:.12g}" for x in columns])
        panel.set_yticks(range(len(rows)), [f"{y:.12g}" for y in rows])
        panel.grid(visible=False)
        note_cells(panel, columns, rows, values)
        _write_numbers(panel, values, np.mean(scale), is_alone)
        draw.labels(panel, xlabel, ylabel)
        panel.label_outer()
    picture.colorbar(image, ax=list(axes[0]), label=label)
    return picture


def _write_numbers(panel: Axes, values: NDArray[Any], middle: float, is_alone: bool) -> None:
    """Mark the largest number of a map and write it, with all others if the map is alone."""
    row, column = np.unravel_index(first_largest(values), values.shape)
    mark: Any = {"fill": False, "edgecolor": RED, "linewidth": 2}
    panel.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **mark))
    cells = np.argwhere(np.isfinite(values)) if is_alone else [(row, column)]
    for cell in map(tuple, cells):
        colour = "white" if values[cell] < middle else "black"
        weight = "bold" if is_alone and cell == (row, column) else "normal"
        draw.write(panel, cell, f"{values[cell]:.2f}", colour, fontweight=weight)


@in_house_style
def tiles(groups: Mapping[str, Sequence[tuple[str, str]]], colours: Mapping[str, str]) -> Picture:
    """Draw rows of small tiles, {row: [(text, kind), ...]}, with a colour for each kind."""
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

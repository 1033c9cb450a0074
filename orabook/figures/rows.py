"""Pictures with a row for each of several things: values with errors, and dots for runs."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from orabook.figures import draw
from orabook.figures.data import note
from orabook.figures.style import GREY, Picture, in_house_style

__all__ = ["dots", "ranking"]


@in_house_style
def ranking(
    values: Mapping[str, tuple[float, float]],
    xlabel: str,
    *,
    groups: Mapping[str, Collection[str]] | None = None,
    others: Mapping[str, Mapping[str, float]] | None = None,
    references: Mapping[str, float] | None = None,
) -> Picture:
    """Draw a value with its standard error in each row, {row: (value, error)}, from the top down.

    ``groups``, {label: rows}, follow each other and have a colour each, with a line between them.
    ``others``, {label: {row: value}}, are further values of the same rows, and ``references``,
    {label: x}, levels to draw as dashed lines.
    """
    _, axes = draw.picture(width=5.4, height=1.3 + 0.45 * len(values))
    places = {row: -place for place, row in enumerate(values)}
    draw.references(axes, references, upright=True)
    if groups is None:
        groups = {"mean bound, ± 2 s.e.": list(values)}
    further = others or {}
    looks = draw.looks([*groups, *further])
    for label, value_of in further.items():
        colour, _, marker = looks[label]
        style: Any = {"color": colour, "marker": marker, "markerfacecolor": "white", "label": label}
        x = list(value_of.values())
        axes.plot(x, [places[row] for row in value_of], linestyle="none", **style)
        note(axes, series=label, x=x, y=list(value_of))
    above: Any = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center"}
    above["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}  # over lines
    for label, rows in groups.items():
        colour, _, marker = looks[label]
        heights = [places[row] for row in rows]
        means, error = np.array([values[row] for row in rows], dtype=float).T
        bars: Any = {"xerr": 2 * error, "fmt": marker, "color": colour, "capsize": 3}
        axes.errorbar(means, heights, label=label, **bars)
        low = means - 2 * error
        high = means + 2 * error
        note(axes, series=label, x=means, y=list(rows), low=low, high=high)
        for value, height in zip(means, heights, strict=True):
            axes.annotate(f"{value:.2f}", (value, height), color=colour, **above)
        if min(heights) > -len(values) + 1:
            axes.axhline(min(heights) - 0.35, color=GREY, linewidth=0.8)
    axes.set_yticks(list(places.values()), list(places))
    axes.grid(visible=False, axis="y")
    axes.set(xlim=(0, None), ylim=(-len(values) + 0.4, 0.75))
    return draw.finish(axes, xlabel, "", spare=2)


@in_house_style
def dots(panels: Mapping[str, Mapping[str, Sequence[str]]], colours: Mapping[str, str]) -> Picture:
    """Draw a dot for each run, {panel: {row: [kind, ...]}}, filled by kind; the last is hollow."""
    rows = list(next(iter(panels.values())))
    run_kinds = list(colours)
    faces = {**colours, run_kinds[-1]: "white"}
    height = 1.3 + 0.31 * len(rows)
    picture, axes = draw.picture(len(panels), height=height, sharey=True, squeeze=False)
    for panel, (title, runs) in zip(axes[0], panels.items(), strict=True):
        for y, row in enumerate(rows):
            for x, kind in enumerate(sorted(runs[row], key=run_kinds.index), start=1):
                look: Any = {"color": colours[kind], "markerfacecolor": faces[kind]}
                panel.plot(x, y, "o", markersize=7, **look)
            numbers = [list(runs[row]).count(kind) for kind in run_kinds]
            note(panel, series=run_kinds, x=numbers, y=row)
        panel.set(title=title, xticks=[1, len(runs[row])], ylim=(len(rows) - 0.4, -0.6))
        panel.grid(visible=False, axis="x")
        draw.labels(panel, "training runs", "")
    axes[0][0].set_yticks(range(len(rows)), rows)
    marks = [
        Line2D([], [], marker="o", linestyle="none", color=colour, markerfacecolor=faces[kind])
        for kind, colour in colours.items()
    ]
    picture.legend(
        marks, run_kinds, loc="outside upper center", ncols=len(run_kinds), columnspacing=1.0
    )
    return picture

"""The parts that pictures are drawn of: axes, labels, legends, curves, points and lines."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import cycle, product
from typing import Any

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from orabook.figures.data import note
from orabook.figures.style import CYCLE, DASHES, LOOKS, REFERENCES, Picture

__all__ = [
    "DASHED",
    "curve",
    "finish",
    "labels",
    "legend",
    "log_y",
    "looks",
    "picture",
    "points",
    "references",
    "write",
]

MARKERS = "osD^v<>"

#: The style of a line of reference.
DASHED: Any = {"color": "black", "linestyle": "--", "linewidth": 1.2}


def picture(
    columns: int = 1, *, rows: int = 1, width: float = 7.0, height: float = 4.0, **options: Any
) -> tuple[Picture, Any]:
    picture = Picture(figsize=(width, height), layout="constrained")
    return picture, picture.subplots(rows, columns, **options)


def labels(axes: Axes, xlabel: str, ylabel: str, log_x: bool = False) -> None:
    if log_x and np.isfinite(axes.dataLim.minposx):  # there is something to show
        axes.set_xscale("log")
        _log_ticks(axes.xaxis, *axes.get_xlim(), room=2000)
    elif isinstance(axes.xaxis.get_major_locator(), ticker.AutoLocator):
        if axes.get_xlim()[1] > 1e4:
            axes.xaxis.set_major_formatter("{x:,.0f}")
        if xlabel.startswith("number of"):  # no ticks between whole numbers
            axes.locator_params(axis="x", integer=True)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)


def log_y(axes: Axes) -> None:
    """Make the y-axis logarithmic, with the ticks of a logarithmic x-axis."""
    if np.isfinite(axes.dataLim.minposy):
        axes.set_yscale("log")
        _log_ticks(axes.yaxis, *axes.get_ylim(), room=200)


def _log_ticks(axis: Any, low: float, high: float, room: float) -> None:
    """Put as many labels on a logarithmic axis as there is room for, all in one style."""
    longest = room if high < 1e5 else 30  # long labels need more room
    has_room = high < longest * low
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if has_room else (1,)))
    axis.set_major_formatter(_Ticks())
    axis.set_minor_formatter(ticker.NullFormatter())


class _Ticks(ticker.Formatter):
    """1000 and 10,000 as they are; powers of ten where an axis goes below 0.001 or far above."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        if x <= 0:  # the place of a tick that is too small for a double
            return ""
        low, high = sorted(self.axis.get_view_interval())  # type: ignore[union-attr]
        if low >= 5e-4 and high < 2e6:
            return f"{x:,.0f}" if x >= 1e4 else f"{x:g}"
        power = int(np.floor(np.log10(x) + 1e-9))
        first = round(x / 10.0**power)
        return f"$10^{{{power}}}$" if first == 1 else f"${first} \\cdot 10^{{{power}}}$"


def looks(labels: Iterable[str]) -> dict[str, tuple[str, Any, str]]:
    """Choose colour, dashes and marker of each series of a picture.

    Series of the table ``LOOKS`` look the same in every picture; others have none of the colours of
    the kinds that are there. Where a colour comes back, dashes and marker differ.

    >>> looks(["one-way feedback, 10 runs", "all guessed"])
    {'one-way feedback, 10 runs': ('#6A3D9A', '--', 'o'), 'all guessed': ('#0072B2', '-', 'o')}
    """
    names = list(labels)
    fixed: dict[str, tuple[str, Any]] = {}  # the looks of the table
    reserved: set[str] = set()  # colours
    for label, kind in product(names, LOOKS.values()):
        look = _look_of(label, kind)
        if look:
            fixed[label] = look
            reserved |= {colour for colour, _ in kind.values()}
    free = cycle([colour for colour in CYCLE if colour not in reserved] or CYCLE)
    chosen = {}
    turns = Counter[str]()  # how many series have a colour already
    for label in names:
        colour = fixed[label][0] if label in fixed else next(free)
        place = CYCLE.index(colour)
        turn = turns[colour]
        dashes = DASHES.index(fixed[label][1]) if label in fixed else place
        marker = MARKERS[(place + turn) % len(MARKERS)]
        chosen[label] = colour, DASHES[(dashes + turn) % len(DASHES)], marker
        turns[colour] += 1
    return chosen


def _look_of(label: str, looks: Mapping[str, Any]) -> Any:
    """The look of the name that a label is, or with which it begins; else None."""
    for name, look in looks.items():
        if f"{label} ".startswith((f"{name} ", f"{name},")):
            return look
    return None


def references(axes: Axes, levels: Mapping[str, float] | None, upright: bool = False) -> None:
    """Draw reference lines across the axes, each with its own dashes."""
    fixed = {label: _look_of(label, REFERENCES) for label in levels or {}}
    free = cycle([dashes for dashes in DASHES[1:] if dashes not in fixed.values()])
    for label, value in (levels or {}).items():
        entry = f"{label}, {value:.4g}" if upright else label
        look = DASHED | {"label": entry, "linestyle": fixed[label] or next(free)}
        if upright:
            axes.axvline(value, **look)
            note(axes, series=label, x=[value])
        else:
            axes.axhline(value, **look)
            note(axes, series=label, y=[value])


def finish(axes: Axes, xlabel: str, ylabel: str, log_x: bool = False, **options: int) -> Picture:
    """Put labels and a legend on the picture of these axes, and return it."""
    labels(axes, xlabel, ylabel, log_x)
    picture: Any = axes.figure
    legend(picture, **options)
    return picture


def legend(picture: Picture, columns: int = 2, *, spare: int = 4) -> None:
    """Put one legend above all panels, each label once; a row beyond ``spare`` adds height.

    It has one column if it would be wider than the picture.
    """
    handles: dict[str, Any] = {}
    for axes in picture.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        entries: Any = {"handles": list(handles.values()), "labels": list(handles)}
        drawn = picture.legend(**entries, loc="outside upper center", ncols=columns)
        if drawn.get_window_extent().width > picture.bbox.width:
            drawn.remove()
            columns = 1
            picture.legend(**entries, loc="outside upper center", ncols=columns)
    rows = -(-len(handles) // columns)
    picture.set_figheight(picture.get_figheight() + 0.25 * max(rows - spare, 0))  # in inches


def curve(axes: Axes, *curve: ArrayLike, series: str = "", **style: Any) -> None:
    """Draw a curve with a band of one standard error, where its values are finite."""
    x, y, *error = (np.asarray(part, dtype=float) for part in curve)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"x and y of a curve must match, got shapes {x.shape} and {y.shape}")
    is_finite = np.isfinite(y)
    (line,) = axes.plot(x[is_finite], y[is_finite], **style)
    columns = {"x": x[is_finite], "y": y[is_finite]}
    if error:
        spread = np.where(np.isfinite(error[0]), error[0], 0.0)
        low = (y - spread)[is_finite]
        high = (y + spread)[is_finite]
        band: Any = {"color": line.get_color(), "linewidth": 0, "alpha": 0.25}
        axes.fill_between(x[is_finite], low, high, **band)
        columns |= {"low": low, "high": high}
    note(axes, series=series or style["label"], **columns)


def points(axes: Axes, *curve: ArrayLike, series: str = "", **style: Any) -> None:
    """Draw simulated values with bars of one standard error, and no line between them."""
    look = {"fmt": style.pop("marker", "o"), "capsize": 3, "linestyle": "none"} | style
    x, y, *error = (np.asarray(part, dtype=float) for part in curve)
    axes.errorbar(x, y, error[0] if error else None, **look)
    ends = {"low": y - error[0], "high": y + error[0]} if error else {}
    note(axes, series=series or style["label"], x=x, y=y, **ends)


def write(axes: Axes, cell: Any, text: str, colour: str, **style: Any) -> None:
    """Write a text in the middle of a cell, which is (row, column)."""
    look: Any = {"ha": "center", "va": "center", "fontsize": 9.5} | style
    row, column = cell
    axes.text(column, row, text, color=colour, **look)

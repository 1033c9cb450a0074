"""The style of the house: colours, the kind of figure that a notebook shows, axes and legends.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; the background is
opaque, so that axes stay readable on a dark page.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from io import BytesIO
from itertools import cycle
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from PIL import Image

from oralib.figures.data import Note, note, table_of, with_data

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PINK, GREY = "#56B4E9", "#CC79A7", "#555555"
CYCLE = (BLUE, RED, GREEN, ORANGE, PINK, SKY, GREY)
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
MARKERS = "osD^v<>"

#: A curve: x and y, or x, y and the standard error of y.
Curve = tuple[ArrayLike, ArrayLike] | tuple[ArrayLike, ArrayLike, ArrayLike]

STYLE: Any = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelsize": 12,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 12,
    "figure.facecolor": "white",
    "font.size": 11.5,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "lines.linewidth": 1.9,
    "lines.markersize": 5,
    "savefig.facecolor": "white",
    "text.usetex": False,
}

#: How a line of reference is drawn.
DASHED: Any = {"color": "black", "linestyle": "--", "linewidth": 1.2}

#: Dots an inch in the file and on the page: screens of today show more than one dot a pixel.
_DOTS, _SHOWN = 200, 100


class Picture(Figure):
    """A Matplotlib figure that belongs to nobody but its caller, and that a notebook shows as PNG.

    Examples
    --------
    >>> Picture(figsize=(6, 2)).get_size_inches().tolist()
    [6.0, 2.0]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.notes: list[Note] = []

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        buffer = BytesIO()
        with matplotlib.rc_context(STYLE):
            self.savefig(buffer, format="png", dpi=_DOTS)
        image = Image.open(buffer).convert("RGB")
        # A drawing has few colours; a palette of them takes a third of the room.
        small = with_data(image.quantize(128, dither=Image.Dither.NONE), self.table())
        width, height = (pixels * _SHOWN // _DOTS for pixels in image.size)
        return small, {"width": width, "height": height}

    def table(self) -> pd.DataFrame:
        """The numbers that it shows, a row for each; the PNG of a notebook carries them, too."""
        return table_of(self.notes)


def in_house_style(draw: Callable[..., Picture]) -> Callable[..., Picture]:
    """Draw with the settings of the house, whatever those of the caller are."""

    @wraps(draw)
    def styled(*args: Any, **kwargs: Any) -> Picture:
        with matplotlib.rc_context(STYLE):
            return draw(*args, **kwargs)

    return styled


def new_picture(
    columns: int = 1, *, rows: int = 1, width: float = 7.0, height: float = 4.0, **options: Any
) -> tuple[Picture, Any]:
    picture = Picture(figsize=(width, height), layout="constrained")
    return picture, picture.subplots(rows, columns, **options)


def label_axes(axes: Axes, xlabel: str, ylabel: str, log_x: bool = False) -> None:
    if log_x:
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        subs = (1, 2, 5) if high < 2000 * low else (1,)  # as many labels as there is room for
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=subs))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(_plain))
        axes.xaxis.set_minor_formatter(ticker.NullFormatter())
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)


def _plain(x: float, place: int) -> str:
    """1000 as it is, and 1e-05 as a power of ten."""
    if 1e-3 <= x < 1e5:
        return f"{x:g}"
    if x <= 0:  # the place of a tick that is too small for a double
        return ""
    power = round(np.log10(x))
    return f"$10^{{{power}}}$" if np.isclose(x, 10.0**power) else ""


def look(place: int) -> tuple[str, Any, str]:
    """Colour, dashes and marker of a curve: colours that come back have other dashes and markers.

    >>> look(0), look(7)
    (('#0072B2', '-', 'o'), ('#0072B2', '--', 's'))
    """
    turned = place + place // len(CYCLE)
    return CYCLE[place % len(CYCLE)], DASHES[turned % len(DASHES)], MARKERS[turned % len(MARKERS)]


def require_some(name: str, given: Mapping[Any, Any], what: str) -> None:
    """There is something to draw, by name."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} must map names to what is drawn, got {name}={given!r}")
    if not given:
        raise ValueError(f"{name} must have at least one {what}, got {given!r}")


def draw_level(axes: Axes, series: str, level: float, upright: bool = False, **style: Any) -> None:
    """A line across the axes."""
    (axes.axvline if upright else axes.axhline)(level, **DASHED | {"label": series} | style)
    note(axes, series=series, **{"x" if upright else "y": [level]})


def draw_references(axes: Axes, levels: Mapping[str, float] | None, **style: Any) -> None:
    """Reference lines, each with dashes of its own."""
    kinds = cycle(("--", ":", "-.", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1))))
    for dashes, (label, level) in zip(kinds, (levels or {}).items(), strict=False):
        draw_level(axes, label, level, linestyle=dashes, **style)


def finish(
    axes: Axes, xlabel: str, ylabel: str, *, log_x: bool = False, columns: int = 2
) -> Picture:
    """The picture of these axes, with labels and a legend."""
    label_axes(axes, xlabel, ylabel, log_x)
    picture: Any = axes.figure
    draw_legend(picture, columns)
    return picture


def draw_legend(picture: Picture, columns: int = 2, *, spare: int = 4) -> None:
    """Above the axes; each label once. There is room for ``spare`` rows, and it grows for more."""
    found: dict[str, Any] = {}
    for axes in picture.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        picture.legend(list(found.values()), list(found), loc="outside upper center", ncols=columns)
    rows = -(-len(found) // columns)
    picture.set_figheight(picture.get_figheight() + 0.25 * max(rows - spare, 0))  # in inches


def draw_curve(axes: Axes, *curve: ArrayLike, series: str = "", **style: Any) -> None:
    """A curve with a band of one standard error; points without a finite value are left out."""
    x, y, *error = (np.asarray(part, dtype=float) for part in curve)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"x and y of a curve must be as long, got shapes {x.shape} and {y.shape}")
    shown = np.isfinite(y)
    (line,) = axes.plot(x[shown], y[shown], **style)
    columns = {"x": x[shown], "y": y[shown]}
    if error:
        spread = np.where(np.isfinite(error[0]), error[0], 0.0)
        low, high = (y - spread)[shown], (y + spread)[shown]
        band: Any = {"color": line.get_color(), "linewidth": 0, "alpha": 0.25}
        axes.fill_between(x[shown], low, high, **band)
        columns |= {"low": low, "high": high}
    note(axes, series=series or style["label"], **columns)


def draw_points(axes: Axes, *curve: ArrayLike, series: str = "", **style: Any) -> None:
    """Simulated values with bars of one standard error, and no line between them."""
    look = {"fmt": style.pop("marker", "o"), "capsize": 3, "linestyle": "none"} | style
    x, y, *error = (np.asarray(part, dtype=float) for part in curve)
    axes.errorbar(x, y, error[0] if error else None, **look)
    ends = {"low": y - error[0], "high": y + error[0]} if error else {}
    note(axes, series=series or style["label"], x=x, y=y, **ends)


def write(axes: Axes, cell: Any, words: str, colour: str, **style: Any) -> None:
    """Words in the middle of a cell, which is (row, column)."""
    look: Any = {"ha": "center", "va": "center", "fontsize": 9.5} | style
    axes.text(cell[1], cell[0], words, color=colour, **look)


def ink_on(colour: str) -> str:
    """Black or white, whichever is easier to read on a colour."""
    parts = np.array(matplotlib.colors.to_rgb(colour))
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    return "black" if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) else "white"

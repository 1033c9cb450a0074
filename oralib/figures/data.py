"""The numbers of a picture as a table, read back from what was drawn.

Every picture carries its table with it: a notebook's PNG has it in a text chunk of its own, so
that a page can offer it beside the figure and a saved file keeps it.
"""

from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator
from PIL import Image, PngImagePlugin

#: The name of the text chunk.
CHUNK = "oralib:data"

COLUMNS = ("panel", "series", "x", "y", "low", "high", "value")

Row = dict[str, Any]


def table_of(picture: Figure) -> pd.DataFrame:
    """What a picture shows, a row for every point, bar or cell; empty for a drawing.

    The columns of the two axes have the names of these. ``low`` and ``high`` are the ends of a
    band or of error bars, ``value`` is that of a cell of a map.

    Examples
    --------
    >>> from oralib import figures
    >>> picture = figures.lines({"a": ([1, 2], [3, 4], [0.5, 0.5])}, "n", "bound")
    >>> table_of(picture)
      series    n  bound  low  high
    0      a  1.0    3.0  2.5   3.5
    1      a  2.0    4.0  3.5   4.5
    """
    panels = [axes for axes in picture.axes if axes.axison and axes.get_label() != "<colorbar>"]
    rows = []
    for axes in panels:
        panel = axes.get_gid() or axes.get_title() or (axes.get_ylabel() if len(panels) > 1 else "")
        rows += [{"panel": " ".join(panel.split()), **row} for row in _rows(axes)]
    table = pd.DataFrame(rows, columns=COLUMNS)
    table = table.drop(columns=[name for name in COLUMNS if not table[name].map(_is_said).any()])
    for name, labels in (
        ("x", {axes.get_xlabel() for axes in panels} - {""}),
        ("y", {axes.get_ylabel() for axes in panels} - {""}),
    ):
        if len(labels) == 1:
            table = table.rename(columns={name: labels.pop()})
    return table


def with_data(image: Image.Image, picture: Figure) -> bytes:
    """The PNG of an image that carries the table of a picture."""
    chunks, buffer = PngImagePlugin.PngInfo(), BytesIO()
    table = table_of(picture)
    if len(table):
        text = table.map(_rounded).to_csv(index=False, lineterminator="\n")
        chunks.add_itxt(CHUNK, text, zip=True)
    image.save(buffer, "PNG", optimize=True, pnginfo=chunks)
    return buffer.getvalue()


def band_of(line: Line2D) -> str:
    """What the band around a curve is called, so that its numbers are found again."""
    return f"band of {line.get_gid() or line.get_label()}"


def data_in(png: bytes) -> str | None:
    """The table that a PNG carries, as CSV; None if it has none."""
    with Image.open(BytesIO(png)) as image:
        text = getattr(image, "text", {}).get(CHUNK)
    return None if text is None else str(text)


def _rounded(entry: Any) -> Any:
    """Six digits, but whole numbers whole."""
    if not isinstance(entry, float) or not np.isfinite(entry):
        return entry
    return f"{entry:.0f}" if entry == np.round(entry) and abs(entry) < 1e15 else f"{entry:.6g}"


def _is_said(entry: Any) -> bool:
    return entry != "" and not pd.isna(entry)


def _rows(axes: Axes) -> Iterator[Row]:
    drawn: set[Any] = set()  # lines that belong to error bars
    for container in axes.containers:
        if isinstance(container, ErrorbarContainer):
            drawn.update([container.lines[0], *container.lines[1]])
            yield from _points(axes, container)
        elif isinstance(container, BarContainer):
            yield from _bars(axes, container)
    bands = {band.get_gid(): band for band in axes.collections if isinstance(band, PolyCollection)}
    for line in axes.lines:
        if line not in drawn:
            yield from _curve(axes, line, bands)
    for image in axes.images:
        values = np.ma.filled(np.ma.asarray(image.get_array()).astype(float), np.nan)
        for (j, i), value in np.ndenumerate(values):
            yield {"x": _name(axes.xaxis, i), "y": _name(axes.yaxis, j), "value": value}


def _curve(axes: Axes, line: Line2D, bands: Mapping[Any, PolyCollection]) -> Iterator[Row]:
    series = _said(line, line.get_label())
    if series is None:  # a line that helps to see
        return
    x, y = (np.atleast_1d(np.asarray(z, dtype=float)) for z in line.get_data())
    if line.get_transform() is axes.get_yaxis_transform(which="grid"):  # a level
        yield {"series": series, "y": y[0]}
        return
    if line.get_transform() is axes.get_xaxis_transform(which="grid"):
        yield {"series": series, "x": x[0]}
        return
    lows, highs = _ends(bands.get(band_of(line)), len(x))
    for a, b, low, high in zip(x, y, lows, highs, strict=True):
        yield _row(axes, series, a, b, low, high)


def _ends(band: PolyCollection | None, points: int) -> tuple[Any, Any]:
    """The lower and upper ends of a band; nan if there is none.

    Its outline is a first corner, the lower ends from left to right, a last corner, and the upper
    ends back.
    """
    if band is None or not points:
        return (np.full(points, np.nan),) * 2
    (path,) = band.get_paths()
    y = np.asarray(path.vertices)[:, 1]
    return y[1 : points + 1], y[points + 2 : 2 * points + 2][::-1]


def _points(axes: Axes, container: ErrorbarContainer) -> Iterator[Row]:
    line, _, bars = container.lines
    series = _said(line, container.get_label())
    if series is None:
        return
    x, y = (np.atleast_1d(np.asarray(z, dtype=float)) for z in line.get_data())
    ends = np.full((len(x), 2), np.nan)
    along = 0 if container.has_xerr else 1
    for collection in bars:
        segments = collection.get_segments()
        ends = np.array([s[:, along] if len(s) else [np.nan, np.nan] for s in segments])
    for a, b, (low, high) in zip(x, y, ends.reshape(-1, 2), strict=True):
        yield _row(axes, series, a, b, low, high)


def _bars(axes: Axes, container: BarContainer) -> Iterator[Row]:
    """Upright bars stand for whole numbers, beside each other; lying ones end in the next."""
    for bar in container.patches:
        if container.orientation == "vertical":
            x, y = np.round(bar.get_x() + bar.get_width() / 2) + 0.0, bar.get_height()
        else:
            x, y = bar.get_x() + bar.get_width(), bar.get_y() + bar.get_height() / 2
        yield _row(axes, str(container.get_label()).removeprefix("_"), x, y, np.nan, np.nan)


def _row(axes: Axes, series: str, x: float, y: float, low: float, high: float) -> Row:
    where = {"x": _name(axes.xaxis, x), "y": _name(axes.yaxis, y)}
    return {"series": series, **where, "low": low, "high": high}


def _name(axis: Any, place: float) -> Any:
    """The word at a place of an axis that has words instead of numbers."""
    if not isinstance(axis.get_major_locator(), FixedLocator):
        return float(place)
    word = axis.get_major_formatter()(place).replace("\n", "")
    try:
        return float(word)
    except ValueError:
        return word or float(place)


def _said(artist: Any, label: Any) -> str | None:
    """What a curve is called: in the legend, or by its gid if it has no entry of its own there."""
    own = artist.get_gid() or str(label)
    return None if own == "None" or own.startswith("_") else own

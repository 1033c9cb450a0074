"""The numbers of a picture as a table, which its PNG carries in a text chunk.

So a page can offer them with the figure, and a saved file keeps them.
"""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray
from PIL import Image, PngImagePlugin

__all__ = ["Note", "data_in", "note", "note_cells", "table_of", "with_data"]

#: The name of the text chunk.
CHUNK = "oralib:data"

#: The columns of a table: ``low`` and ``high`` are the ends of a band or of error bars, ``value``
#: is the number of a cell.
COLUMNS = ("panel", "series", "x", "y", "low", "high", "value")

#: Axes, and a row for every point, bar or cell that is drawn on them.
Note = tuple[Axes, list[dict[str, Any]]]


def note(axes: Axes, **columns: Any) -> None:
    """Note what is drawn on axes of a picture: at least one column must be a sequence."""
    axes.figure.notes.append((axes, pd.DataFrame(columns).to_dict("records")))  # type: ignore


def note_cells(
    axes: Axes, columns: Sequence[Any], rows: Sequence[Any], values: NDArray[Any]
) -> None:
    """Note a map of numbers, whose columns and rows have these names."""
    x, y = np.meshgrid(np.asarray(columns), np.asarray(rows))
    note(axes, x=x.ravel(), y=y.ravel(), value=values.ravel())


def table_of(notes: Sequence[Note]) -> pd.DataFrame:
    """All notes of a picture as one table, whose columns have the names of the axes."""
    panels = dict.fromkeys(axes for axes, _ in notes)
    rows = [{"panel": _name(axes, len(panels)), **row} for axes, noted in notes for row in noted]
    table = pd.DataFrame(rows, columns=COLUMNS).replace("", np.nan).dropna(axis=1, how="all")
    for column in "xy":
        labels = {getattr(axes, f"get_{column}label")() for axes in panels} - {""}
        if len(labels) == 1:
            table = table.rename(columns={column: labels.pop()})
    return table


def _name(axes: Axes, panels: int) -> str:
    """The name of a panel; a picture with one panel need not have a name for it."""
    y_label = axes.get_ylabel() if panels > 1 else ""
    name = axes.get_gid() or axes.get_title() or y_label
    return " ".join(name.split())


def with_data(image: Image.Image, table: pd.DataFrame) -> bytes:
    """The PNG of an image that carries a table."""
    chunks = PngImagePlugin.PngInfo()
    buffer = BytesIO()
    if len(table):
        chunks.add_itxt(CHUNK, table.map(_six_digits).to_csv(index=False), zip=True)
    image.save(buffer, "PNG", optimize=True, pnginfo=chunks)
    return buffer.getvalue()


def data_in(png: bytes) -> str | None:
    """The table that a PNG carries, as CSV; None if it has none."""
    with Image.open(BytesIO(png)) as image:
        text = getattr(image, "text", {}).get(CHUNK)
    return None if text is None else str(text)


def _six_digits(entry: Any) -> Any:
    """Write a number as a program reads it: six digits, but whole numbers in full."""
    if not isinstance(entry, float) or not np.isfinite(entry):
        return entry
    is_whole = entry == np.round(entry) and abs(entry) < 1e15
    return f"{entry:.0f}" if is_whole else f"{entry:.6g}"

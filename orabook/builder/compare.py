"""Comparisons of a chapter with its committed outputs that nbval leaves out.

nbval compares texts and tables. This module compares pictures, by their pixels and by the tables
in them, and the numbers in prose, which are in no output. ``conftest.py`` calls :func:`check_cell`.
"""

from base64 import b64decode
from io import BytesIO, StringIO
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from scipy import ndimage

from orabook.extensions.stored_outputs import NUMBERS
from orabook.figures.data import data_in
from orabook.prose import evaluate, expressions, text_of

__all__ = [
    "below",
    "check_cell",
    "evaluate_in",
    "numbers_differ",
    "pictures",
    "pictures_differ",
    "pixels_differ",
    "tables_differ",
]

#: The largest differences between numbers in tables of pictures: processors differ in last bits.
RELATIVE = 1e-3
ABSOLUTE = 1e-6
#: The largest difference between pixels, of 255: a picture has 128 colours of its own.
SHADES = 40


def check_cell(item: Any) -> None:
    """Raise nbval's error if a picture of a cell, or a number in prose below it, is another."""
    differences = []
    if item.options["check"] and item.cell.execution_count is not None:
        differences += pictures_differ(pictures(item.cell.outputs), pictures(item.test_outputs))
    file = item.parent
    stored = file.nb.metadata.get(NUMBERS)
    if stored is not None and "papermill" not in file.nb.metadata:  # with its own parameters
        asked = below(file.nb.cells, item.cell_num)
        now = evaluate_in(file.kernel, asked) if asked else {}
        differences += numbers_differ(stored, now)
    if differences:
        item.raise_cell_error("What a reader sees is not what is committed", "\n".join(differences))


def pictures(outputs: list[Any]) -> list[bytes]:
    """The PNG files among the outputs of a cell."""
    contents = [output.get("data", {}) for output in outputs]
    return [b64decode(content["image/png"]) for content in contents if "image/png" in content]


def pictures_differ(committed: list[bytes], now: list[bytes]) -> list[str]:
    """The differences between pictures of a cell, a line for each."""
    if len(committed) != len(now):
        return [f"{len(committed)} pictures are committed, and {len(now)} are drawn"]
    lines = []
    for before, after in zip(committed, now, strict=True):
        if before != after:
            lines += [tables_differ(before, after), pixels_differ(before, after)]
    return [line for line in lines if line]


def tables_differ(committed: bytes, now: bytes) -> str:
    """Return the first place where the tables of two pictures differ, or an empty string."""
    before = _table(committed)
    after = _table(now)
    if list(before) != list(after):
        return f"the picture's columns {list(before)} are now {list(after)}"
    if len(before) != len(after):
        return f"the picture's table has {len(before)} rows, and now {len(after)}"
    for column in before:
        old = before[column]
        new = after[column]
        is_equal = (old == new) | (old.isna() & new.isna())
        if all(pd.api.types.is_numeric_dtype(entries) for entries in (old, new)):
            is_equal |= np.isclose(new.astype(float), old.astype(float), RELATIVE, ABSOLUTE)
        if not is_equal.all():
            first = is_equal.idxmin()
            row = before.loc[first].drop(column).dropna().to_dict()
            return (
                f"{column}, at {row}: {old[first]} is now {new[first]}; "
                f"{(~is_equal).sum()} of {len(is_equal)} entries differ"
            )
    return ""


def _table(png: bytes) -> pd.DataFrame:
    """The table of a picture; a drawing has none."""
    text = data_in(png)
    if not text:
        return pd.DataFrame()
    return pd.read_csv(StringIO(text), keep_default_na=False, na_values="")


def pixels_differ(committed: bytes, now: bytes) -> str:
    """Return the part of a picture that is off by more than a pixel, or an empty string."""
    before = _colours(committed)
    after = _colours(now)
    if before.shape != after.shape:
        return f"the picture's height, width and colours {before.shape} are now {after.shape}"
    is_different = (_outside(before, after) | _outside(after, before)).any(axis=2)
    if not is_different.any():
        return ""
    rows = is_different.any(axis=1).nonzero()[0]
    columns = is_different.any(axis=0).nonzero()[0]
    height, width = is_different.shape
    return (
        f"the picture looks different: {is_different.sum()} pixels between "
        f"{columns[0]} and {columns[-1]} of {width} from the left, "
        f"{rows[0]} and {rows[-1]} of {height} from the top"
    )


def _colours(png: bytes) -> Any:
    return np.asarray(Image.open(BytesIO(png)).convert("RGB"))


def _outside(picture: Any, other: Any) -> Any:
    """Tell which pixels are unlike all of another picture that are next to them."""
    around = (3, 3, 1)
    low = ndimage.minimum_filter(other, around).astype(np.int16)
    high = ndimage.maximum_filter(other, around).astype(np.int16)
    shades = picture.astype(np.int16)
    return (shades < low - SHADES) | (shades > high + SHADES)


def numbers_differ(committed: dict[str, str], now: dict[str, Any]) -> list[str]:
    """The differences between numbers in prose, a line for each expression."""
    lines = []
    for expression, result in now.items():
        text = text_of(result)
        before = committed.get(expression)
        if text != before:
            old = "nothing" if before is None else before
            lines.append(f"{{eval}}`{expression}` is now {text}, committed as {old}")
    return lines


def below(cells: list[Any], number: int) -> list[str]:
    """The expressions in prose between a code cell, counted from 0, and the next one.

    Expressions above the first code cell count as below it.
    """
    in_prose = []
    code_cells = 0
    for cell in cells:
        code_cells += cell.cell_type == "code"
        above = max(code_cells - 1, 0)  # the code cell above this one
        if cell.cell_type == "markdown" and above == number:
            in_prose += expressions(cell.source)
    return list(dict.fromkeys(in_prose))


def evaluate_in(kernel: Any, asked: list[str]) -> dict[str, Any]:
    """The values of expressions in the kernel of nbval."""

    def reply(message: str) -> Any:
        while True:
            answer = kernel.get_message("shell", timeout=60)
            if answer["parent_header"].get("msg_id") == message:
                return answer

    return evaluate(SimpleNamespace(kc=kernel.kc, wait_for_reply=reply), asked)

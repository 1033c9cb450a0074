"""What nbval leaves out when it compares a chapter with its committed outputs.

It compares texts and tables. Here are the pictures, which must show and tell the same, and the
numbers in prose, which are in no output. ``conftest.py`` calls :func:`check_cell`.
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

#: How much a number in the table of a picture may differ: processors differ in the last bits.
RELATIVE, ABSOLUTE = 1e-3, 1e-6
#: How much a pixel may differ, of 255: a picture has 128 colours of its own.
SHADES = 40


def check_cell(item: Any) -> None:
    """Raise nbval's error if a picture of a cell, or a number in prose below it, is another."""
    found = []
    if item.options["check"] and item.cell.execution_count is not None:
        found += pictures_differ(pictures(item.cell.outputs), pictures(item.test_outputs))
    file = item.parent
    stored = file.nb.metadata.get(NUMBERS)
    if stored is not None and "papermill" not in file.nb.metadata:  # with its own parameters
        asked = below(file.nb.cells, item.cell_num)
        found += numbers_differ(stored, evaluate_in(file.kernel, asked) if asked else {})
    if found:
        item.raise_cell_error("What a reader sees is not what is committed", "\n".join(found))


def pictures(outputs: list[Any]) -> list[bytes]:
    """The PNG files among the outputs of a cell."""
    shown = [output.get("data", {}) for output in outputs]
    return [b64decode(data["image/png"]) for data in shown if "image/png" in data]


def pictures_differ(committed: list[bytes], now: list[bytes]) -> list[str]:
    """What is different in the pictures of a cell, a line for each."""
    if len(committed) != len(now):
        return [f"{len(committed)} pictures are committed, and {len(now)} are drawn"]
    others = [pair for pair in zip(committed, now, strict=True) if pair[0] != pair[1]]
    return [
        line for pair in others for line in (tables_differ(*pair), pixels_differ(*pair)) if line
    ]


def tables_differ(committed: bytes, now: bytes) -> str:
    """The first place where the tables of two pictures differ; empty if they tell the same."""
    before, after = (_table(png) for png in (committed, now))
    if list(before) != list(after):
        return f"the picture's columns {list(before)} are now {list(after)}"
    if len(before) != len(after):
        return f"the picture's table has {len(before)} rows, and now {len(after)}"
    for column in before:
        one, other = before[column], after[column]
        same = (one == other) | (one.isna() & other.isna())
        if all(pd.api.types.is_numeric_dtype(entries) for entries in (one, other)):
            same |= np.isclose(other.astype(float), one.astype(float), RELATIVE, ABSOLUTE)
        if not same.all():
            first = same.idxmin()
            where = before.loc[first].drop(column).dropna().to_dict()
            some = f"{(~same).sum()} of {len(same)} entries differ"
            return f"{column}, at {where}: {one[first]} is now {other[first]}; {some}"
    return ""


def _table(png: bytes) -> pd.DataFrame:
    """The table of a picture; a drawing has none."""
    text = data_in(png)
    return (
        pd.read_csv(StringIO(text), keep_default_na=False, na_values="") if text else pd.DataFrame()
    )


def pixels_differ(committed: bytes, now: bytes) -> str:
    """Where two pictures look different; empty if nothing has moved by more than a pixel."""
    images = (Image.open(BytesIO(png)).convert("RGB") for png in (committed, now))
    one, other = (np.asarray(image) for image in images)
    if one.shape != other.shape:
        return f"the picture's height, width and colours {one.shape} are now {other.shape}"
    off = (_outside(one, other) | _outside(other, one)).any(axis=2)
    if not off.any():
        return ""
    down, across = off.any(axis=1).nonzero()[0], off.any(axis=0).nonzero()[0]
    return (
        f"the picture looks different: {off.sum()} pixels between {across[0]} and {across[-1]} of "
        f"{off.shape[1]} from the left, {down[0]} and {down[-1]} of {off.shape[0]} from the top"
    )


def _outside(one: Any, other: Any) -> Any:
    """The pixels unlike all of another picture that are next to them."""
    around = (3, 3, 1)
    low, high = ndimage.minimum_filter(other, around), ndimage.maximum_filter(other, around)
    shades = one.astype(np.int16)
    return (shades < low.astype(np.int16) - SHADES) | (shades > high.astype(np.int16) + SHADES)


def numbers_differ(committed: dict[str, str], now: dict[str, Any]) -> list[str]:
    """What is different in numbers in prose, a line for each expression."""
    shown = {expression: text_of(result) for expression, result in now.items()}
    return [
        f"{{eval}}`{expression}` is now {text}, committed as {committed.get(expression, 'nothing')}"
        for expression, text in shown.items()
        if committed.get(expression) != text
    ]


def below(cells: list[Any], number: int) -> list[str]:
    """The expressions in prose between a code cell, counted from 0, and the next one.

    What is above the first code cell is asked after it.
    """
    found, code = [], -1
    for cell in cells:
        code += cell.cell_type == "code"
        if cell.cell_type == "markdown" and max(code, 0) == number:
            found += expressions(cell.source)
    return list(dict.fromkeys(found))


def evaluate_in(kernel: Any, asked: list[str]) -> dict[str, Any]:
    """The values of expressions in the kernel of nbval."""

    def reply(message: str) -> Any:
        while True:
            answer = kernel.get_message("shell", timeout=60)
            if answer["parent_header"].get("msg_id") == message:
                return answer

    return evaluate(SimpleNamespace(kc=kernel.kc, wait_for_reply=reply), asked)

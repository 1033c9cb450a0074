"""Data frames as readable tables: heads in words, sensible digits, numbers with their errors.

A data frame shows all digits, and the last ones differ between machines. A chapter shows a few
rounded columns instead::

    tables.show(table, {"x": "elements per coordinate", "bound": "mean bound"})
"""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from math import floor, isfinite, isinf, isnan, log10
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

from oralib.ground import arguments
from oralib.ground.rounding import snap

__all__ = ["HEADS", "Shown", "number", "show"]

#: The default heads of the experiments' columns.
HEADS = {
    "epsilon": "ε",
    "delta": "δ",
    "beta": "β",
    "trials": "audits",
    "bound": "mean bound",
    "valid": "mean valid bound",
    "estimation": "mean estimate",
    "efficacy": "mean accuracy",
    "guesses": "mean number of guesses",
    "all_right": "audits with all guesses right",
    "no_guesses": "audits without guesses",
}

_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def number(value: Any, digits: int = 3) -> str:
    """Write a number, or a word, as in a book.

    Integers are printed in full, with commas, other numbers with ``digits`` digits after the
    point, and very small or large ones as a power of ten.

    >>> number(0.62549), number(-2), number(3200), number(1e-5), number(float("inf"))
    ('0.625', '−2', '3,200', '10⁻⁵', '∞')
    """
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if not isinstance(value, Real):
        return str(value)
    if isinstance(value, Integral):
        whole = int(value)  # may be larger than any float
        return f"{whole:,}".replace("-", "−")
    real = float(snap(float(value)))
    if isnan(real):
        return "–"
    elif isinf(real):
        text = "∞" if real > 0 else "-∞"
    elif real and (abs(real) < 0.5 * 10.0**-digits or abs(real) >= 1e7):
        text = _power_of_ten(real)
    else:
        text = f"{round(real, digits) + 0.0:.{digits}f}"  # without the sign of -0.0
    return text.replace("-", "−")


def _power_of_ten(value: float) -> str:
    """Write 1e-05 as 10⁻⁵, and 3.14e-05 as 3.1 · 10⁻⁵."""
    mantissa, _, exponent = f"{value:.17e}".partition("e")  # the smallest have no 10.0**power
    factor = round(float(mantissa), 1)
    power = int(exponent)
    if abs(factor) == 10:
        factor /= 10
        power += 1
    tens = f"10{str(power).translate(_SUPERSCRIPTS)}"
    if abs(factor) == 1:
        return tens if factor > 0 else f"-{tens}"
    return f"{factor:g} · {tens}"


@dataclass(frozen=True)
class Shown:
    """A table of strings, which a notebook shows as HTML and a terminal in columns."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_word: tuple[bool, ...]  # of each column; the others are numbers

    def __str__(self) -> str:
        lines = [self.heads, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(self._line(cells, widths) for cells in lines)

    def _line(self, cells: tuple[str, ...], widths: list[int]) -> str:
        columns = zip(cells, widths, self.is_word, strict=True)
        padded = [
            cell.ljust(width) if is_word else cell.rjust(width) for cell, width, is_word in columns
        ]
        return "  ".join(padded).rstrip()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        classes = ["word" if is_word else "number" for is_word in self.is_word]

        def row(texts: tuple[str, ...], tag: str, scope: str = "") -> str:
            cells = [
                f'<{tag}{scope} class="{name}">{escape(text)}</{tag}>'
                for text, name in zip(texts, classes, strict=True)
            ]
            return f"<tr>{''.join(cells)}</tr>"

        head = row(self.heads, "th", ' scope="col"')
        rows = "\n".join(row(texts, "td") for texts in self.rows)
        body = f"<thead>\n{head}\n</thead>\n<tbody>\n{rows}\n</tbody>"
        return f'<table class="house">\n{body}\n</table>'


def show(
    frame: pd.DataFrame,
    columns: Mapping[str, str] | list[str] | None = None,
    *,
    digits: int | Mapping[str, int] = 3,
    index: str | None = None,
) -> Shown:
    """Show columns of a data frame as a readable table.

    ``columns`` are the columns in their order, with their heads; by default all. In a list they
    keep their names, or have those of ``HEADS``. A standard error, in the column of the same name
    with ``_se`` after it, follows its number. ``digits`` are those after the point. With a
    head for it, the index is shown as well.

    >>> frame = pd.DataFrame({"x": [1, 8], "bound": [0.4861, 0.6053], "bound_se": [0.002, 0.0021]})
    >>> show(frame, {"x": "elements per coordinate", "bound": "mean bound"})
    elements per coordinate     mean bound
                          1  0.486 ± 0.002
                          8  0.605 ± 0.002
    """
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"frame must be a data frame, got frame={frame!r}")
    if columns is not None and not isinstance(columns, list):
        arguments.instance("columns", columns, Mapping, '{"n": "elements"}')
    if not isinstance(digits, Mapping):
        digits = dict.fromkeys(frame.columns, digits)
    digits_of = {name: arguments.integer("digits", entry, 0, 30) for name, entry in digits.items()}
    errors = {f"{name}_se" for name in frame.columns}
    names = columns or [name for name in frame if name not in errors]
    head_of = names if isinstance(names, Mapping) else {x: HEADS.get(x, x) for x in names}
    for name in head_of:
        if name not in frame.columns:
            available = ", ".join(map(str, frame.columns))
            raise ValueError(f"columns must be among {available}, got {name!r}")
    heads: list[str] = []
    texts: list[list[str]] = []
    is_word: list[bool] = []
    if index is not None:
        heads.append(str(index))
        texts.append([number(entry) for entry in frame.index])
        is_word.append(not all(isinstance(entry, Real) for entry in frame.index))
    for name, head in head_of.items():
        heads.append(str(head))
        texts.append(_texts_of_column(frame, name, digits_of.get(name, 3)))
        is_word.append(not pd.api.types.is_numeric_dtype(frame[name]))
    return Shown(tuple(heads), tuple(zip(*texts, strict=True)), tuple(is_word))


def _texts_of_column(frame: pd.DataFrame, name: str, digits: int) -> list[str]:
    has_errors = f"{name}_se" in frame.columns
    errors = frame[f"{name}_se"] if has_errors else [None] * len(frame)
    pairs = zip(frame[name].tolist(), errors, strict=True)
    return [_with_error(value, error, digits) for value, error in pairs]


def _with_error(value: Any, error: Any, digits: int) -> str:
    text = number(value, digits)
    if not isinstance(error, float | int) or not isfinite(error):
        return text
    if 1e-12 < error < 0.5 * 10.0**-digits:  # show the first digit that is neither 0 nor rounding
        digits = -floor(log10(error))
    return f"{text} ± {error:.{digits}f}"

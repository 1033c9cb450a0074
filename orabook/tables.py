"""Data frames as readable tables: heads in words, sensible digits, errors beside their numbers.

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

__all__ = ["Shown", "number", "show"]

#: The default heads of the experiments' columns.
HEADS = {"epsilon": "ε", "delta": "δ", "beta": "β", "trials": "audits"}
HEADS |= {"bound": "mean bound", "valid": "mean valid bound", "estimation": "mean estimate"}
HEADS |= {"efficacy": "mean accuracy", "guesses": "mean number of guesses"}
HEADS |= {"all_right": "audits with all guesses right", "no_guesses": "audits without guesses"}

_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def number(value: Any, digits: int = 3) -> str:
    """A number, or a word, as it is printed in a book.

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
    """1e-05 as 10⁻⁵, and 3.14e-05 as 3.1 · 10⁻⁵."""
    first, _, power_word = f"{value:.17e}".partition("e")  # the smallest have no 10.0**power
    factor, power = round(float(first), 1), int(power_word)
    if abs(factor) == 10:
        power, factor = power + 1, factor / 10
    tens = f"10{str(power).translate(_SUPERSCRIPTS)}"
    if abs(factor) == 1:
        return tens if factor > 0 else f"-{tens}"
    return f"{factor:g} · {tens}"


@dataclass(frozen=True)
class Shown:
    """A table of strings, which a notebook shows as HTML and a terminal in columns."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[bool, ...]

    def __str__(self) -> str:
        lines = [self.heads, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if word else cell.rjust(width)
                for cell, width, word in zip(line, widths, self.words, strict=True)
            ).rstrip()
            for line in lines
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        kinds = ["word" if word else "number" for word in self.words]

        def row(texts: tuple[str, ...], tag: str, scope: str = "") -> str:
            pairs = zip(texts, kinds, strict=True)
            cells = (f'<{tag}{scope} class="{kind}">{escape(x)}</{tag}>' for x, kind in pairs)
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
    """Some columns of a data frame as a readable table.

    ``columns`` says in which order, and what to call them; by default all. In a list they
    keep their names, or have those of ``HEADS``. A standard error, in the column of the same name
    with ``_se`` after it, stands beside its number. ``digits`` are those after the point. With a
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
    given = digits if isinstance(digits, Mapping) else dict.fromkeys(frame.columns, digits)
    by_column = {name: arguments.integer("digits", many, 0, 30) for name, many in given.items()}
    errors = {f"{name}_se" for name in frame.columns}
    names = columns or [name for name in frame if name not in errors]
    chosen = names if isinstance(names, Mapping) else {x: HEADS.get(x, x) for x in names}
    for name in chosen:
        if name not in frame.columns:
            have = ", ".join(map(str, frame.columns))
            raise ValueError(f"columns must be among {have}, got {name!r}")
    texts, words = [], []
    if index is not None:
        texts.append([number(entry) for entry in frame.index])
        words.append(not all(isinstance(entry, Real) for entry in frame.index))
    for name in chosen:
        beside = f"{name}_se" in frame.columns
        error = frame[f"{name}_se"] if beside else [None] * len(frame)
        pairs = zip(frame[name].tolist(), error, strict=True)
        texts.append([_with_error(*pair, by_column.get(name, 3)) for pair in pairs])
        words.append(not pd.api.types.is_numeric_dtype(frame[name]))
    heads = tuple(map(str, (*([index] if index is not None else []), *chosen.values())))
    return Shown(heads, tuple(zip(*texts, strict=True)), tuple(words))


def _with_error(value: Any, error: Any, digits: int) -> str:
    text = number(value, digits)
    if not isinstance(error, float | int) or not isfinite(error):
        return text
    if 1e-12 < error < 0.5 * 10.0**-digits:  # show the first digit that is neither 0 nor rounding
        digits = -floor(log10(error))
    return f"{text} ± {error:.{digits}f}"

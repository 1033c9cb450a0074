"""Files of scores or guesses: every cell is understood, or an error names its line and column.

A file is CSV, in UTF-8, with a header, cells between commas, semicolons or tabs, and one line per
canary; or Parquet. Its columns are found by name, in any order, and further ones are ignored:

- ``score`` and ``included``, or
- ``guess`` and ``truth``,
- and, if there is one, ``id``, in which no name may occur twice.

Coins (``included``, ``truth``) are 1 or 0, true or false, yes or no, in capitals or not; or, in the
whole column, 1 or -1. A guess is written as the coins are, and no guess is an empty cell. Where
coins are 1 or -1, 0 is no guess as well; where they are 1 or 0, it says "left out".

The module csv reads it and not pandas, which takes short lines, odd words and missing cells for
something.
"""

import csv
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from io import BytesIO, StringIO
from math import isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Larger files are refused: some thirty million canaries.
LARGEST_FILE = 10**9

PAIRS = (("score", "included"), ("guess", "truth"))

COINS = {
    **{"1": 1.0, "1.0": 1.0, "true": 1.0, "yes": 1.0, "+1": 1.0},
    **{"0": 0.0, "0.0": 0.0, "false": 0.0, "no": 0.0, "-1": -1.0, "-1.0": -1.0},
}

#: A guess in words, until it is known how coins are written.
_NO = -2.0


@dataclass(frozen=True)
class ScoreFile:
    """The columns of a file, and a digest of its bytes.

    Attributes
    ----------
    kind : ``"score"`` or ``"guess"``.
    values : scores, or guesses with nan for none.
    coins : 1.0 or 0.0, or 1.0 or -1.0.
    digest : the SHA-256 digest of the file.
    """

    kind: str
    values: NDArray[np.float64]
    coins: NDArray[np.float64]
    digest: str


class _Bad(ValueError):
    """A cell that cannot be understood; whoever reads it knows where it is."""


def read_scores(path: Path) -> ScoreFile:
    """The scores or guesses in a CSV or Parquet file; a ValueError says what is wrong with it."""
    content = _content(path)
    digest = sha256(content).hexdigest()
    if content[:4] == b"PAR1":
        return _columns(path, "row", *_parquet(path, content), digest)
    return _columns(path, "line", *_csv(path, content), digest)


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder; give a file") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(content) > LARGEST_FILE:
        raise ValueError(f"{path} has more than {LARGEST_FILE:,} bytes; give a smaller file")
    if not content.strip():
        raise ValueError(f"{path} is empty; {_wanted()}")
    return content


def _wanted() -> str:
    return "its first line must name the columns, score and included, or guess and truth"


#: The rows of a file: the line of each, and its cells.
Rows = Iterator[tuple[int, Sequence[Any]]]

NUMBERS = (int, float, np.bool_, np.integer, np.floating)


def _csv(path: Path, content: bytes) -> tuple[list[str], Rows]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}, line {line}: byte {error.start + 1} of the file is no text in UTF-8; "
            "give a CSV file in UTF-8, or a Parquet file"
        ) from None
    wrong = []
    for delimiter in ",;\t":
        reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
        rows = _lines(path, reader)
        try:
            header = [cell.strip() for cell in next(rows, (1, [""]))[1]]
        except ValueError as error:  # quotes that make no sense with this delimiter
            wrong.append(error)
            continue
        if _pairs_in(header):
            return header, rows
        wrong.append(ValueError(f"{path}, line 1: {_wanted()}, got {_listed(header)}"))
    raise wrong[0]


def _lines(path: Path, reader: Any) -> Rows:
    """Lines that are not empty, each with as many cells as the first."""
    width = None
    try:
        for row in reader:
            if not row:
                continue
            width = len(row) if width is None else width
            if len(row) != width:
                raise ValueError(
                    f"{path}, line {reader.line_num}: {len(row)} cells, "
                    f"but the first line has {width}"
                )
            yield reader.line_num, row
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from None


def _parquet(path: Path, content: bytes) -> tuple[list[str], Rows]:
    if find_spec("pyarrow") is None:
        raise ValueError(f"{path} is a Parquet file, which needs a package: pip install pyarrow")
    import pandas as pd

    try:
        frame = pd.read_parquet(BytesIO(content), engine="pyarrow")
    except MemoryError:
        raise
    except Exception as error:  # what pyarrow raises has many names
        said = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} is no Parquet file that can be read: {said}") from None
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index(allow_duplicates=True)  # pandas may have kept id there
    header = [str(name).strip() for name in frame.columns]
    if not _pairs_in(header):
        raise ValueError(f"{path}: {_wanted()}, got {_listed(header)}")
    known = {name for pair in PAIRS for name in (*pair, "id")}
    places = [place for place, name in enumerate(header) if name.lower() in known]
    kept = [frame.iloc[:, place].astype(object) for place in places]
    columns = [column.where(column.notna(), None).tolist() for column in kept]
    return [header[place] for place in places], enumerate(zip(*columns, strict=True), 1)


def _pairs_in(header: Sequence[str]) -> list[tuple[str, str]]:
    names = {name.lower() for name in header}
    return [pair for pair in PAIRS if names.issuperset(pair)]


def _columns(path: Path, unit: str, header: list[str], rows: Rows, digest: str) -> ScoreFile:
    lower = [name.lower() for name in header]
    pair, *further = _pairs_in(header)
    if further:
        raise ValueError(f"{path} has scores and guesses; give a file with one of them")
    for name in (*pair, "id"):
        if lower.count(name) > 1:
            raise ValueError(f"{path}: the column {name} occurs twice")
    first, second = (lower.index(name) for name in pair)
    named = lower.index("id") if "id" in lower else None
    read = _score if pair[0] == "score" else _guess
    lines, values, coins = array("q"), array("d"), array("d")
    seen: dict[str, int] = {}
    line, place = 0, first
    try:
        for line, row in rows:
            place = first
            values.append(read(row[first]))
            place = second
            coins.append(_coin(row[second]))
            lines.append(line)
            if named is not None:
                place, name = named, str(row[named]).strip()
                if name in seen:
                    raise _Bad(f"{_quoted(name)} occurs twice, first in {unit} {seen[name]}")
                seen[name] = line
        place = second
        if not lines:
            raise ValueError(f"{path} has no canaries: there is nothing below the names")
        for at, error in _conflicts(pair, np.array(values), np.array(coins)):
            line, place = lines[at], lower.index(error[0])
            raise _Bad(error[1])
        found = np.array(values)
        if pair[0] == "guess":
            found[found == _NO] = 0.0
    except _Bad as error:
        raise ValueError(f"{path}, {unit} {line}, column {header[place]}: {error}") from None
    return ScoreFile(pair[0], found, np.array(coins), digest)


def _conflicts(
    pair: tuple[str, str], values: NDArray[np.float64], coins: NDArray[np.float64]
) -> Iterator[tuple[int, tuple[str, str]]]:
    """Cells that are fine alone and not beside the others: where, in which column, and why."""
    signs, zeros = np.flatnonzero(coins == -1), np.flatnonzero(coins == 0)
    if signs.size and zeros.size:
        at = int(max(signs[0], zeros[0]))
        yield at, (pair[1], f"{coins[at]:g} in a column with both 0 and -1; write 1 and 0 only")
    if pair[0] == "guess" and not signs.size and (values == -1).any():
        yield (
            int(np.argmax(values == -1)),
            ("guess", "-1, while truth is 1 or 0; write 0 for left out, and nothing for no guess"),
        )
    if pair[0] == "guess" and signs.size and (values == _NO).any():
        yield (
            int(np.argmax(values == _NO)),
            (
                "guess",
                "false or no, while truth is 1 or -1; write -1 for left out, and nothing for "
                "no guess",
            ),
        )


# ------------------------------------------------------------------------------------------- cells


def _score(cell: Any) -> float:
    if isinstance(cell, str):
        try:
            number = float(cell)
        except ValueError:
            number = None
        if number is None or "_" in cell:
            if not cell.strip():
                raise _Bad("a score is missing")
            comma = ", with a point and not a comma" if "," in cell else ""
            raise _Bad(f"{_quoted(cell)} is no number; write one like -1.5e-3{comma}")
    elif cell is None:
        raise _Bad("a score is missing")
    elif isinstance(cell, NUMBERS) and not isinstance(cell, bool | np.bool_):
        number = float(cell)
    else:
        raise _Bad(f"{_quoted(cell)} is no number")
    if not isfinite(number):
        raise _Bad(f"{_quoted(cell)} is not finite; only the order of scores matters, so give one")
    return number


def _coin(cell: Any) -> float:
    if isinstance(cell, str):
        number = COINS.get(cell)
        if number is None:
            number = COINS.get(cell.strip().lower())
    else:
        is_number = isinstance(cell, NUMBERS)
        number = float(cell) if is_number and cell in (1, 0, -1) else None
    if number is None:
        what = "a missing coin" if cell is None or cell == "" else _quoted(cell)
        raise _Bad(f"{what} is neither 1 nor 0 (nor true, false, yes, no, nor -1 for 0)")
    return number


def _guess(cell: Any) -> float:
    """A guess as a coin, or nan for an empty cell; the words false and no are neither yet."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return nan
    try:
        number = _coin(cell)
    except _Bad as error:
        raise _Bad(f"{error}; an empty cell is no guess") from None
    is_word = cell.strip().isalpha() if isinstance(cell, str) else isinstance(cell, bool | np.bool_)
    return _NO if number == 0 and is_word else number


def _quoted(cell: Any) -> str:
    word = repr(cell)
    return word if len(word) <= 60 else f"{word[:57]}..."


def _listed(header: Sequence[str]) -> str:
    return ", ".join(map(_quoted, header[:8])) + (", ..." if len(header) > 8 else "")

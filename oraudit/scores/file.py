"""Files of scores or guesses that nobody vouches for: cells are understood, or an error says why.

A file is CSV in UTF-8 with cells between commas, semicolons or tabs, gzipped or not; or Parquet.
Columns are found by their names, in any order: ``score`` and ``included``, or ``guess`` and
``truth``, and ``id`` if there is one, in which no name may occur twice. Others are ignored. Nothing
of a file is ever run, and limits hold before memory is taken: a file of a hostile stranger costs
seconds, not the machine.
"""

import csv
import gzip
import re
import stat
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from io import BytesIO, TextIOWrapper
from math import isfinite, nan
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oralib.ground import arguments

__all__ = ["ScoreFile", "UnusableFile", "read_scores"]

#: The most bytes of a file, and of what a gzipped or Parquet file unpacks to.
MOST_BYTES = 128 * 2**20
#: The most canaries. A training with one on each weight has at most some hundred thousand.
MOST_ROWS = 2_000_000
MOST_COLUMNS = 1_000
#: In characters.
LONGEST_LINE = 100_000
LONGEST_CELL = 1_000

PAIRS = (("score", "included"), ("guess", "truth"))
KNOWN = ("id", *PAIRS[0], *PAIRS[1])

#: How coins and guesses are written, beside other spellings of these numbers, such as 1.00e+00.
WORDS = {"1": 1.0, "true": 1.0, "yes": 1.0, "0": 0.0, "false": 0.0, "no": 0.0, "-1": -1.0}
COINS = (1.0, 0.0, -1.0)

#: How a score is written: not nan or inf, no underscores, no comma.
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)

_AS_CSV = "save it as CSV in UTF-8, with the names of its columns"
_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

#: What files of other kinds begin with.
_OTHERS = {
    b"PK\x03\x04": "an Excel or zip file",
    b"\xd0\xcf\x11\xe0": "an Excel file",
    b"\x93NUMPY": "a NumPy file",
    b"\x80\x02": "a pickle, which is never read, as that runs what is in it",
    b"\x80\x03": "a pickle, which is never read, as that runs what is in it",
    b"\x80\x04": "a pickle, which is never read, as that runs what is in it",
    b"\x80\x05": "a pickle, which is never read, as that runs what is in it",
    b"\x89HDF": "an HDF5 file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ": "an xz file",
    b"\x28\xb5\x2f\xfd": "a Zstandard file",
    b"{": "a JSON file",
    b"[": "a JSON file",
}


class UnusableFile(ValueError):
    """A file that cannot be used as evidence; the message names the file, its line and column."""


class _Wrong(Exception):
    """What is wrong with a file, in words without its name, and the line if it is known."""

    def __init__(self, words: str, *, place: str = "") -> None:
        super().__init__(words)
        self.place = place


@dataclass(frozen=True)
class ScoreFile:
    """The columns of a file.

    Attributes
    ----------
    kind
        ``"score"`` or ``"guess"``.
    values
        Scores; or guesses: 1 for included, 0 for left out, NaN for no guess.
    coins
        Whether each canary was included.
    digest
        The SHA-256 of the file as it lies there, gzipped or not.
    """

    kind: Literal["score", "guess"]
    values: NDArray[np.float64]
    coins: NDArray[np.bool_]
    digest: str


def read_scores(path: Path) -> ScoreFile:
    """Read the scores or guesses in a file; raise :class:`UnusableFile` with what is wrong."""
    try:
        content = _bytes_of(path)
        digest = sha256(content).hexdigest()
        content = _unpacked(content)
        columns = _parquet(content) if content.startswith(b"PAR1") else _csv(content)
        return columns.finished(digest)
    except _Wrong as wrong:
        where = f"{path}, {wrong.place}:" if wrong.place else f"{path}"
        raise UnusableFile(f"{where} {wrong}") from None


# ----------------------------------------------------------------------------------------- bytes


def _bytes_of(path: Path) -> bytes:
    """Return the bytes of an ordinary file that is not too large."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise _Wrong("is a folder; give a file")
        if not stat.S_ISREG(mode):  # reading a named pipe or a device may never end
            raise _Wrong("is a pipe or a device; give an ordinary file")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise _Wrong(f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a null byte in the path
        raise _Wrong(f"cannot be read: {error}") from None
    if len(content) > MOST_BYTES:
        raise _Wrong(f"has more than {MOST_BYTES:,} bytes, the most that are read")
    return content


def _unpacked(content: bytes) -> bytes:
    """Return what is in a gzipped file, never more than the limit; or the bytes as they are."""
    if content.startswith(_GZIP):
        try:
            content = gzip.GzipFile(fileobj=BytesIO(content)).read(MOST_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise _Wrong(f"is a damaged gzip file: {_one_line(error)}") from None
        if len(content) > MOST_BYTES:
            raise _Wrong(f"unpacks to more than {MOST_BYTES:,} bytes, the most that are read")
        if content.startswith(_GZIP):
            raise _Wrong("is gzipped twice; unpack it once")
    start = content[:100].lstrip()
    for beginning, kind in _OTHERS.items():
        if start.startswith(beginning):
            raise _Wrong(f"is {kind}; {_AS_CSV}")
    return content


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


# ------------------------------------------------------------------------------------------- CSV


def _csv(content: bytes) -> "_Columns":
    """Read the lines of a CSV file, one after the other."""
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise _Wrong(f"this is not UTF-8 text; {_AS_CSV}", place=f"line {line}") from None
    content = content.removeprefix(_BYTE_ORDER_MARK)
    if not content.strip():
        raise _Wrong("is empty: it must have a line with the names of columns, and one per canary")
    lines = _Lines(TextIOWrapper(BytesIO(content), encoding="utf-8", newline=""))
    names, mark = _header(lines)
    columns = _Columns(names, "line")
    reader = csv.reader(lines, delimiter=mark, strict=True)
    first = lines.number + 1
    try:
        for cells in reader:
            if lines.number > first:
                raise _Wrong(
                    "a quoted cell spans several lines; leave it out", place=f"line {first}"
                )
            if len(cells) == len(names):
                columns.add(lines.number, cells)
            elif any(cell.strip() for cell in cells):
                raise _Wrong(
                    f"it must have {_count(len(names), 'cell')}, one for each name of a column, "
                    f"got {len(cells)}",
                    place=f"line {first}",
                )
            first = lines.number + 1
    except csv.Error as error:
        raise _Wrong(_one_line(error), place=f"line {first}") from None
    return columns


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class _Lines:
    """The lines of a text, none of them longer than the limit; ``number`` is that of the last."""

    def __init__(self, text: TextIOWrapper) -> None:
        self._text = text
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._text.readline(LONGEST_LINE + 1)
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) > LONGEST_LINE:
            raise _Wrong(
                f"it has more than {LONGEST_LINE:,} characters, the most that are read",
                place=f"line {self.number}",
            )
        return line


def _header(lines: _Lines) -> tuple[list[str], str]:
    """Return the names of the columns, in small letters, and the mark between cells.

    Empty lines and comments may stand above them; the last comment may hold them, as
    ``numpy.savetxt`` writes it.
    """
    comment = ""
    for line in lines:
        first = line.strip()
        if first.startswith("#"):
            comment = first
            named = _named(first.lstrip("# "))
            if named is not None:
                return named
        elif first:
            named = _named(line.strip("\r\n"))
            if named is not None:
                return named
            names = _split(line.strip("\r\n"), ",")
            where = "the line above the first canary" if comment else "its first line"
            raise _Wrong(_unnamed(where, names))
    raise _Wrong("has comments only: it must have a line with the names of columns")


def _named(line: str) -> tuple[list[str], str] | None:
    """Return the names in a line if they are those of columns that are known."""
    for mark in ",;\t":
        names = _split(line, mark)
        if _pairs(names):
            return _checked(names), mark
    return None


def _split(line: str, mark: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=mark))
    except (csv.Error, StopIteration):
        return [line]


def _pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the pairs of columns that are there."""
    lower = {name.strip().lower() for name in names}
    return [pair for pair in PAIRS if lower.issuperset(pair)]


def _unnamed(where: str, names: list[str]) -> str:
    got = ", ".join(map(arguments.shown, names[:8])) + (", ..." if len(names) > 8 else "")
    return (
        f"has no names of columns: {where} must name score and included, or guess and truth, "
        f"got {got}"
    )


def _checked(names: list[str]) -> list[str]:
    """Return names in small letters; one pair of columns must be there, each column once."""
    if len(names) > MOST_COLUMNS:
        raise _Wrong(f"has {len(names):,} columns; at most {MOST_COLUMNS:,} are read")
    pairs = _pairs(names)
    if not pairs:
        raise _Wrong(_unnamed("it", names))
    if len(pairs) > 1:
        raise _Wrong("has scores and guesses; give a file with one of them")
    lower = [name.strip().lower() for name in names]
    for name in KNOWN:
        if lower.count(name) > 1:
            raise _Wrong(f"names the column {name} twice; each column must have a name of its own")
    return lower


# --------------------------------------------------------------------------------------- Parquet


def _parquet(content: bytes) -> "_Columns":
    """Read the columns of a Parquet file that are known, a part of its rows at a time."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise _Wrong("is a Parquet file, which needs a package: pip install pyarrow") from None

    def from_arrow(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:  # it raises errors of many kinds
            raise _Wrong(f"is not a readable Parquet file: {_one_line(error)}") from None

    file = from_arrow(lambda: parquet.ParquetFile(BytesIO(content)))
    about = file.metadata
    if about.num_rows > MOST_ROWS:
        raise _Wrong(_too_many_rows())
    size = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    if size > MOST_BYTES:
        raise _Wrong(f"unpacks to more than {MOST_BYTES:,} bytes, the most that are read")
    written = from_arrow(lambda: list(file.schema_arrow.names))
    names = _checked(written)
    known = [name for name, lower in zip(written, names, strict=True) if lower in KNOWN]
    columns = _Columns([name.strip().lower() for name in known], "row")
    row = 0
    batches = from_arrow(lambda: file.iter_batches(batch_size=1_000, columns=known))
    while (batch := from_arrow(lambda: next(batches, None))) is not None:
        for cells in zip(*from_arrow(batch.to_pydict).values(), strict=True):
            row += 1
            columns.add(row, ["" if cell is None else str(cell) for cell in cells])
    return columns


def _too_many_rows() -> str:
    return f"has more than {MOST_ROWS:,} canaries, the most that are read"


# ----------------------------------------------------------------------------------------- cells


def _understood(cell: str) -> float | None:
    """Return what a cell says of a coin or a guess; None if that is unclear."""
    word = cell.strip().lower()
    known = WORDS.get(word)
    if known is None and (number := _number(word)) in COINS:
        return number
    return known


def _number(word: str) -> float:
    """Return the number that a word is, or NaN."""
    return float(word) if len(word) <= LONGEST_CELL and _NUMBER.fullmatch(word) else nan


@dataclass
class _Columns:
    """Understands the rows of a table, one after the other."""

    names: list[str]
    row_name: str
    values: "array[float]" = field(default_factory=lambda: array("d"))
    coins: "array[float]" = field(default_factory=lambda: array("d"))

    def __post_init__(self) -> None:
        ((kind, coin),) = _pairs(self.names)
        self.kind: Literal["score", "guess"] = "score" if kind == "score" else "guess"
        self.coin = coin
        self._value_place = self.names.index(kind)
        self._coin_place = self.names.index(coin)
        self._id_place = self.names.index("id") if "id" in self.names else None
        self._ids: set[str] = set()
        #: Where words occur first that are wrong beside others, by column and number.
        self._first: dict[tuple[str, float | str], tuple[int, str]] = {}

    def add(self, line: int, cells: list[str]) -> None:
        """Take a row, unless all its cells are empty, as spreadsheets leave some."""
        coin_cell = cells[self._coin_place]
        value_cell = cells[self._value_place]
        if not coin_cell and not any(cell.strip() for cell in cells):
            return
        if len(self.coins) == MOST_ROWS:
            raise _Wrong(_too_many_rows())
        if self._id_place is not None:
            name = cells[self._id_place].strip()
            if len(name) > LONGEST_CELL:
                raise self._refused(line, "id", name, f"has more than {LONGEST_CELL:,} characters")
            if name in self._ids:
                raise self._refused(line, "id", name, "occurs twice, but a canary has one coin")
            self._ids.add(name)
        coin = _understood(coin_cell)
        if coin is None:
            why = "is neither 1 nor 0 (nor true, false, yes, no; nor 1 and -1)"
            raise self._refused(line, self.coin, coin_cell, why)
        self._first.setdefault((self.coin, coin), (line, coin_cell))
        score = self.kind == "score"
        self.values.append(
            self._score(line, value_cell) if score else self._guess(line, value_cell)
        )
        self.coins.append(coin)

    def _score(self, line: int, cell: str) -> float:
        number = _number(cell.strip())
        if not isfinite(number):
            why = "is not a finite number like -1.5e-3, with a point and not a comma"
            raise self._refused(line, "score", cell, why)
        return number

    def _guess(self, line: int, cell: str) -> float:
        word = cell.strip().lower()
        number = _understood(cell) if word else nan
        if number is None:
            why = "is neither 1 nor 0; an empty cell is no guess"
            raise self._refused(line, "guess", cell, why)
        self._first.setdefault(("guess", number), (line, cell))
        if word in ("false", "no"):
            self._first.setdefault(("guess", "word"), (line, cell))
        return number

    def _refused(self, line: int, column: str, cell: str, why: str) -> _Wrong:
        place = f"{self.row_name} {line}, column {column}"
        return _Wrong(f"{arguments.shown(cell)} {why}", place=place)

    def _refuse_first(self, column: str, number: float | str, why: str) -> None:
        if (column, number) in self._first:
            line, cell = self._first[column, number]
            raise self._refused(line, column, cell, why)

    def finished(self, digest: str) -> ScoreFile:
        """Return the columns of all rows."""
        if not self.coins:
            raise _Wrong("has no canaries: there is nothing below the names of the columns")
        signs = (self.coin, -1.0) in self._first
        values = np.array(self.values)
        if signs:
            self._refuse_first(self.coin, 0.0, "stands beside a -1; write 1 and 0 only")
        if self.kind == "guess" and signs:
            # Where truth is 1 or -1, 0 means no guess, so false and no would mean that, too.
            why = "while truth is 1 or -1; write -1 for left out, and nothing for no guess"
            self._refuse_first("guess", "word", why)
            values[values == 0] = nan
            values[values == -1] = 0
        elif self.kind == "guess":
            why = "while truth is 1 or 0; write 0 for left out, and nothing for no guess"
            self._refuse_first("guess", -1.0, why)
        if self.kind == "guess" and np.isnan(values).all():
            none = "0 and empty cells are none where truth is -1"
            none = none if signs else "all cells of the column guess are empty"
            raise _Wrong(f"has no guesses: {none}")
        return ScoreFile(self.kind, values, np.array(self.coins) == 1, digest)

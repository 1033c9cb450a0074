"""Tables in CSV: UTF-8, with cells between commas, semicolons or tabs."""

import csv
from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path

from oraudit.scores import limits
from oraudit.scores.names import checked, pairs, shown
from oraudit.scores.rows import Rows
from oraudit.scores.unusable import AS_CSV, UnusableFile, one_line

__all__ = ["read_csv"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_csv(path: Path, content: bytes) -> Rows:
    """Read the lines of a CSV file, one after the other."""
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UnusableFile(f"{path}, line {line}: this is not UTF-8 text; {AS_CSV}") from None
    content = content.removeprefix(_BYTE_ORDER_MARK)
    if not content.strip():
        raise UnusableFile(
            f"{path} is empty: it must have a line with the names of columns, and one per canary"
        )
    lines = _Lines(path, TextIOWrapper(BytesIO(content), encoding="utf-8", newline=""))
    names, mark = _header(path, lines)
    rows = Rows(path, names, "line")
    reader = csv.reader(lines, delimiter=mark, strict=True)
    first = lines.number + 1
    try:
        for cells in reader:
            if lines.number > first:
                raise UnusableFile(
                    f"{path}, line {first}: a quoted cell spans several lines; leave it out"
                )
            if len(cells) == len(names):
                rows.add(lines.number, cells)
            elif any(cell.strip() for cell in cells):
                raise UnusableFile(
                    f"{path}, line {first}: it must have {len(names)} cells, one for each name of "
                    f"a column, got {len(cells)}"
                )
            first = lines.number + 1
    except csv.Error as error:
        raise UnusableFile(f"{path}, line {first}: {one_line(error)}") from None
    return rows


class _Lines:
    """The lines of a text, none of them longer than the limit; ``number`` is that of the last."""

    def __init__(self, path: Path, text: TextIOWrapper) -> None:
        self._path = path
        self._text = text
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._text.readline(limits.LONGEST_LINE + 1)
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) > limits.LONGEST_LINE:
            raise UnusableFile(
                f"{self._path}, line {self.number}: it has more than {limits.LONGEST_LINE:,} "
                "characters, the most that are read"
            )
        return line


def _header(path: Path, lines: _Lines) -> tuple[list[str], str]:
    """Return the names of the columns, in small letters, and the mark between cells.

    Empty lines and comments may stand above them; the last comment may hold them, as
    ``numpy.savetxt`` writes it.
    """
    commented = False
    for line in lines:
        text = line.strip()
        if text.startswith("#"):
            commented = True
            header = _names_and_mark(path, text.lstrip("# "))
            if header is not None:
                return header
        elif text:
            header = _names_and_mark(path, line.strip("\r\n"))
            if header is not None:
                return header
            cells = shown(_split(line.strip("\r\n"), ","))
            if commented:
                raise UnusableFile(
                    f"{path} has no names of columns: the line above the first canary must name "
                    f"score and included, or guess and truth, got {cells}"
                )
            raise UnusableFile(
                f"{path} has no names of columns: its first line must name score and included, or "
                f"guess and truth, got {cells}"
            )
    raise UnusableFile(f"{path} has comments only: it must have a line with the names of columns")


def _names_and_mark(path: Path, line: str) -> tuple[list[str], str] | None:
    """Return the names in a line if they are those of columns that are known."""
    for mark in ",;\t":
        names = _split(line, mark)
        if pairs(names):
            return checked(path, names), mark
    return None


def _split(line: str, mark: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=mark))
    except (csv.Error, StopIteration):
        return [line]

"""Files of scores or guesses: every cell is understood, or an error names its line and column.

A file is CSV, in UTF-8, with cells between commas, semicolons or tabs, gzipped or not; or Parquet.
Its columns are found by name, in any order, and others are ignored. ``oralib audit --help`` says
which there are, and how coins and guesses are written; no name may occur twice in ``id``.
"""

import csv
import gzip
import re
import zlib
from codecs import BOM_UTF8
from hashlib import sha256
from io import BytesIO
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oralib.ground import arguments
from oralib.scores.columns import ScoreFile
from oralib.scores.seen import Seen

PAIRS = (("score", "included"), ("guess", "truth"))
KNOWN = {"id", *PAIRS[0], *PAIRS[1]}

COINS = dict.fromkeys(("1", "1.0", "+1", "true", "yes"), 1.0)
COINS |= dict.fromkeys(("0", "0.0", "false", "no"), 0.0) | {"-1": -1.0, "-1.0": -1.0}

#: How a number is written: not nan or inf, no underscores, no comma.
_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*")

#: What makes pandas round correctly; since 3.1 it always does.
_IS_EXACT = [int(part) for part in pd.__version__.split(".")[:2]] >= [3, 1]
_EXACT = {} if _IS_EXACT else {"float_precision": "round_trip"}

#: What files of other kinds begin with.
_OTHERS = dict.fromkeys((b"PK\x03\x04", b"\xd0\xcf\x11\xe0"), "an Excel file")
_OTHERS |= dict.fromkeys((b"{", b"["), "a JSON file")


def read_scores(path: Path) -> ScoreFile:
    """The scores or guesses in a CSV or Parquet file; a ValueError says what is wrong with it."""
    try:
        content = path.read_bytes()
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder; give a file") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from None
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is a damaged gzip file: {error}") from None
    for start, kind in _OTHERS.items():
        if content.lstrip().startswith(start):
            raise ValueError(f"{path} is {kind}; save it as CSV, with the names of its columns")
    try:
        read = _columns(_parquet(content)) if content[:4] == b"PAR1" else _csv(content)
        return read._replace(digest=sha256(content).hexdigest())
    except ValueError as error:
        raise ValueError(f"{path}{error}") from None


def _csv(content: bytes) -> ScoreFile:
    """What a CSV file has; if canaries of ours wrote it, their comment is above the names."""
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line, why = content[: error.start].count(b"\n") + 1, "this is not UTF-8 text"
        raise ValueError(f", line {line}: {why}; save it as CSV in UTF-8") from None
    text = content.removeprefix(BOM_UTF8)
    if not text.strip():
        raise ValueError(" is empty: it must have a line with names of columns and one per canary")
    text = text.lstrip(b"\r\n")
    above, seen = 1, Seen.of_comment(_first_line(text))
    if seen is not None:
        above, text = 2, text.split(b"\n", 1)[-1]
    first = _first_line(text)
    headers = {mark: next(csv.reader([first], delimiter=mark)) for mark in ",;\t"}
    mark = next((mark for mark, names in headers.items() if _pairs(names)), ",")
    names = _checked_names(headers[mark])
    try:
        return _columns(_plain(text, mark, names), seen)
    except ValueError:  # read it again, with care, to see what is wrong or unusual
        return _columns(_careful(text, mark, names, above), seen)


def _first_line(text: bytes) -> str:
    return next(re.finditer(rb"[^\r\n]*", text)).group().decode()


def _table(text: bytes, mark: str, **how: Any) -> pd.DataFrame:
    """All lines; without a header, as pandas renames names that occur twice, or makes an index."""
    plain: dict[str, Any] = {"header": None, "na_filter": False, "skip_blank_lines": False}
    return pd.read_csv(BytesIO(text), sep=mark, **plain, **how)


def _plain(text: bytes, mark: str, names: list[str]) -> pd.DataFrame:
    """A table with numbers as scores and words as other cells; a ValueError if it may be odd.

    This is several times as fast as to make a word of every cell. The numbers are those that Python
    reads: pandas rounds correctly, but before 3.1 only if it is asked to.
    """
    body = text[len(_first_line(text).encode()) :].strip(b"\r\n")
    if not body or b'"' in body or b"\0" in body:
        raise ValueError
    kinds = {i: np.float64 if name == "score" else object for i, name in enumerate(names)}
    table = _table(body, mark, dtype=kinds, **_EXACT)
    table.columns = pd.Index(names)  # a ValueError if there are more, or fewer
    if "score" in table:
        scores = table["score"]
        # Where pandas sees nothing but words such as true, it takes them for 1 and 0.
        words = any(letter in body for letter in b"tTfF") and scores.isin((0, 1)).any()
        if words or not np.isfinite(scores).all():
            raise ValueError
    return table


def _careful(text: bytes, mark: str, names: list[str], above: int) -> pd.DataFrame:
    """All cells as words, in a table indexed by line."""
    try:
        table = _table(text, mark, dtype=object)
    except ValueError as error:
        raise ValueError(f": {str(error).split('C error: ')[-1].strip()}") from None
    text = text.rstrip(b"\r\n")
    lines = text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n") + 1
    if len(table.iloc[:lines]) < lines:  # a quote that is not closed swallows the lines below it
        raise ValueError(" has a quoted cell that spans several lines; leave such cells out")
    table.columns, table.index = names, pd.RangeIndex(above, len(table) + above, name="line")
    if (table[names[0]] == "").any():
        table = table[(table != "").any(axis=1)]
    return table.iloc[1:]


def _parquet(content: bytes) -> pd.DataFrame:
    """All cells as words, as from a CSV file, in a table indexed by row."""
    try:
        table = pd.read_parquet(BytesIO(content), engine="pyarrow")
    except ImportError:
        raise ValueError(" is a Parquet file, which needs a package: pip install pyarrow") from None
    except Exception as error:  # pyarrow raises many kinds of errors
        why = " ".join(str(error).split())[:200]
        raise ValueError(f" is not a readable Parquet file: {why}") from None
    if any(name is not None for name in table.index.names):
        table = table.reset_index(allow_duplicates=True)  # pandas may have kept id there
    table.columns = _checked_names([str(name) for name in table.columns])
    table = table.loc[:, table.columns.isin(KNOWN)]
    table = table.astype(object).where(table.notna(), "").map(str)
    table.index = pd.RangeIndex(1, len(table) + 1, name="row")
    return table


def _pairs(names: list[str]) -> list[tuple[str, str]]:
    """Which pairs of columns are there."""
    return [pair for pair in PAIRS if {name.strip().lower() for name in names}.issuperset(pair)]


def _checked_names(names: list[str]) -> list[str]:
    """Names in small letters; one pair of columns must be there, and each of them once."""
    pairs = _pairs(names)
    if not pairs:
        got = ", ".join(map(arguments.shown, names[:8])) + (", ..." if len(names) > 8 else "")
        needed = "the columns, score and included, or guess and truth"
        raise ValueError(f": its first line must name {needed}, got {got}")
    if len(pairs) > 1:
        raise ValueError(" has scores and guesses; give a file with one of them")
    lower = [name.strip().lower() for name in names]
    if twice := [name for name in sorted(KNOWN) if lower.count(name) > 1]:
        raise ValueError(f": the column {twice[0]} occurs twice")
    return lower


def _columns(table: pd.DataFrame, seen: Seen | None = None) -> ScoreFile:
    """What a table has."""
    (kind, coin_name), *_ = _pairs(list(table.columns))
    if not len(table):
        raise ValueError(" has no canaries: there is nothing below the column names")
    if "id" in table:
        names = table["id"].map(str.strip)
        _refuse(names, names.duplicated(), "occurs twice, but a canary has one coin")
    coins = _understood(table[coin_name])
    _refuse(table[coin_name], coins.isna(), "is neither 1 nor 0 (nor true, false, yes, no)")
    signs = bool((coins == -1).any())
    if signs:
        _refuse(table[coin_name], coins == 0, "beside a -1; write 1 and 0 only")
    cells = table[kind]
    if kind == "score" and cells.dtype == np.float64:
        values = cells
    elif kind == "score":
        values = cells.map(lambda cell: float(cell) if _NUMBER.fullmatch(cell) else nan)
        why = "is not a finite number like -1.5e-3, with a point and not a comma"
        _refuse(cells, ~np.isfinite(values), why)
    else:
        words = cells.astype("category").map(lambda cell: cell.strip().lower())
        values = _understood(cells)
        unknown = values.isna() & (words != "")
        _refuse(cells, unknown, "is neither 1 nor 0; an empty cell is no guess")
        # Where truth is 1 or -1, 0 means no guess, so false and no would mean that too.
        bad = words.isin(["false", "no"]) if signs else values == -1
        low = "-1" if signs else "0"
        why = f"while truth is 1 or {low}; write {low} for left out, and nothing for no guess"
        _refuse(cells, bad, why)
    return ScoreFile(kind, values.to_numpy(dtype=float), coins.to_numpy(dtype=float), "", seen)


def _understood(cells: pd.Series) -> pd.Series:
    """What each cell says of a coin or a guess, nan if that is unclear; each spelling once."""
    known = cells.astype("category").map(lambda cell: COINS.get(cell.strip().lower(), nan))
    return known.astype(float)


def _refuse(cells: pd.Series, bad: pd.Series, why: str) -> None:
    """An error about the first of the bad cells, if there is one."""
    if bad.any():
        line, cell = bad.idxmax(), arguments.shown(cells[bad.idxmax()])
        raise ValueError(f", {cells.index.name} {line}, column {cells.name}: {cell} {why}")

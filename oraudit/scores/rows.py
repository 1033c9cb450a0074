"""The rows of a table of canaries: each cell is understood, or an error says where and why not."""

import re
from array import array
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from oralib.ground import arguments
from oraudit.scores import limits
from oraudit.scores.names import pairs
from oraudit.scores.unusable import UnusableFile

__all__ = ["Rows", "ScoreFile"]

#: The words for coins and guesses; other spellings of the numbers, such as 1.00e+00, are read, too.
WORDS = {"1": 1.0, "true": 1.0, "yes": 1.0, "0": 0.0, "false": 0.0, "no": 0.0, "-1": -1.0}

#: The numbers for coins and guesses.
COINS = (1.0, 0.0, -1.0)

#: The spelling of a score: not nan or inf, no underscores, no comma.
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


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


class Rows:
    """The rows of a table, which come one after the other.

    Parameters
    ----------
    path
        The file, for errors.
    names
        The names of the columns, in small letters.
    row_name
        The name of a row, for errors: "line" or "row".
    """

    def __init__(self, path: Path, names: list[str], row_name: str) -> None:
        ((kind, coin),) = pairs(names)
        self.kind: Literal["score", "guess"] = "score" if kind == "score" else "guess"
        self._path = path
        self._row_name = row_name
        self._coin = coin
        self._value_place = names.index(kind)
        self._coin_place = names.index(coin)
        self._id_place = names.index("id") if "id" in names else None
        self._values = array("d")
        self._coins = array("d")
        self._ids: set[str] = set()
        # The place and the text of the first cell with each word that does not go with others.
        self._first_minus: tuple[str, str] | None = None
        self._first_zero: tuple[str, str] | None = None
        self._first_minus_guess: tuple[str, str] | None = None
        self._first_word_guess: tuple[str, str] | None = None

    def add(self, row: int, cells: list[str]) -> None:
        """Take a row, unless all its cells are empty, as spreadsheets leave some."""
        coin_cell = cells[self._coin_place]
        value_cell = cells[self._value_place]
        if not coin_cell and not any(cell.strip() for cell in cells):
            return
        if len(self._coins) == limits.MOST_ROWS:
            raise UnusableFile(
                f"{self._path} has more than {limits.MOST_ROWS:,} canaries, the most that are read"
            )
        if self._id_place is not None:
            self._add_id(row, cells[self._id_place].strip())
        coin = _understood(coin_cell)
        if coin is None:
            raise UnusableFile(
                f"{self._place(row, self._coin)}: {arguments.shown(coin_cell)} is neither 1 nor 0 "
                "(nor true, false, yes, no; nor 1 and -1)"
            )
        if coin == -1 and self._first_minus is None:
            self._first_minus = (self._place(row, self._coin), coin_cell)
        elif coin == 0 and self._first_zero is None:
            self._first_zero = (self._place(row, self._coin), coin_cell)
        is_score = self.kind == "score"
        self._values.append(
            self._score(row, value_cell) if is_score else self._guess(row, value_cell)
        )
        self._coins.append(coin)

    def _add_id(self, row: int, name: str) -> None:
        if len(name) > limits.LONGEST_CELL:
            raise UnusableFile(
                f"{self._place(row, 'id')}: {arguments.shown(name)} has more than "
                f"{limits.LONGEST_CELL:,} characters"
            )
        if name in self._ids:
            raise UnusableFile(
                f"{self._place(row, 'id')}: {arguments.shown(name)} occurs twice, but a canary "
                "has one coin"
            )
        self._ids.add(name)

    def _score(self, row: int, cell: str) -> float:
        number = _number(cell.strip())
        if not isfinite(number):
            raise UnusableFile(
                f"{self._place(row, 'score')}: {arguments.shown(cell)} is not a finite number like "
                "-1.5e-3, with a point and not a comma"
            )
        return number

    def _guess(self, row: int, cell: str) -> float:
        word = cell.strip().lower()
        number = _understood(cell) if word else nan
        if number is None:
            raise UnusableFile(
                f"{self._place(row, 'guess')}: {arguments.shown(cell)} is neither 1 nor 0; an "
                "empty cell is no guess"
            )
        if number == -1 and self._first_minus_guess is None:
            self._first_minus_guess = (self._place(row, "guess"), cell)
        if word in ("false", "no") and self._first_word_guess is None:
            self._first_word_guess = (self._place(row, "guess"), cell)
        return number

    def _place(self, row: int, column: str) -> str:
        return f"{self._path}, {self._row_name} {row}, column {column}"

    def finished(self, digest: str) -> ScoreFile:
        """Return the columns of all rows."""
        if not self._coins:
            raise UnusableFile(
                f"{self._path} has no canaries: there is nothing below the names of the columns"
            )
        values = np.array(self._values)
        signs = self._first_minus is not None
        if signs and self._first_zero is not None:
            place, cell = self._first_zero
            raise UnusableFile(
                f"{place}: {arguments.shown(cell)} and -1 are in one column; write 1 and 0 only"
            )
        if self.kind == "guess":
            values = self._guesses_by_signs(values) if signs else self._guesses_by_truth(values)
        return ScoreFile(self.kind, values, np.array(self._coins) == 1, digest)

    def _guesses_by_signs(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return guesses where truth is 1 or -1, and 0 means no guess."""
        if self._first_word_guess is not None:  # which would mean no guess, too
            place, cell = self._first_word_guess
            raise UnusableFile(
                f"{place}: {arguments.shown(cell)} while truth is 1 or -1; write -1 for left out, "
                "and nothing for no guess"
            )
        guesses = np.where(values == 0, nan, np.where(values == -1, 0.0, values))
        if np.isnan(guesses).all():
            raise UnusableFile(
                f"{self._path} has no guesses: 0 and empty cells are none where truth is -1"
            )
        return guesses

    def _guesses_by_truth(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return guesses where truth is 1 or 0."""
        if self._first_minus_guess is not None:
            place, cell = self._first_minus_guess
            raise UnusableFile(
                f"{place}: {arguments.shown(cell)} while truth is 1 or 0; write 0 for left out, "
                "and nothing for no guess"
            )
        if np.isnan(values).all():
            raise UnusableFile(
                f"{self._path} has no guesses: all cells of the column guess are empty"
            )
        return values


def _understood(cell: str) -> float | None:
    """Return what a cell says of a coin or a guess; None if that is unclear."""
    word = cell.strip().lower()
    if word in WORDS:
        return WORDS[word]
    number = _number(word)
    return number if number in COINS else None


def _number(word: str) -> float:
    """Return the number that a word is, or NaN."""
    if len(word) > limits.LONGEST_CELL or not _NUMBER.fullmatch(word):
        return nan
    return float(word)

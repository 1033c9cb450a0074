"""The numbers that each rank tells the others in each step, and the place of each of them.

A rank tells two things. First, numbers of its sums before and after the noise, and at its canaries,
which are added up or gathered. Second, a row of whole numbers. It begins with the size of the
rank's part of the batch and the number of fingerprints of examples, which stand at the end of the
row. Between them are real numbers: :data:`BEFORE`, :data:`AFTER`, :data:`LOOK`, and :data:`HEARD`
numbers of the rank's noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from oraudit.records.around import NAMES

__all__ = ["AFTER", "BEFORE", "HEARD", "LOOK", "Layout"]

#: The number of values of its own noise that each rank tells the others.
HEARD = 32

#: The numbers that are known once a step's gradient is used, and are told in the next step.
AFTER = ("factor", "off", "kept", "rest", "felt", "noisiness", "clean", "numbers")

#: The numbers that are known before the gradient is used.
BEFORE = tuple(name for name in NAMES if name not in AFTER)

#: The fields of a look at clipping that each rank tells the others.
LOOK = ("error", "tolerance", "largest")

#: The place of the first real number in a row, after two counts.
_FIRST_REAL = 2


@dataclass(frozen=True)
class Layout:
    """The places of the numbers that each rank tells.

    Attributes
    ----------
    looked
        For each rank, how many numbers of each tensor are looked at.
    room
        The most fingerprints of examples in a row.
    """

    looked: Sequence[Sequence[int]]
    room: int

    @property
    def half(self) -> int:
        """The numbers that each rank tells of the sum before the noise, and again after it."""
        return max(sum(counts) for counts in self.looked)

    @property
    def length(self) -> int:
        """The length of a row."""
        return _FIRST_REAL + len(BEFORE) + len(AFTER) + len(LOOK) + HEARD + self.room

    @property
    def _first_fingerprint(self) -> int:
        return self.length - self.room

    def sums(
        self, before: torch.Tensor, after: torch.Tensor, riding: torch.Tensor | None, most: int
    ) -> torch.Tensor:
        """Return what a rank tells of its sums and canaries; no rank has more than ``most``."""
        numbers = torch.zeros(2 * self.half + most, device=before.device)
        numbers[: len(before)] = before
        numbers[self.half : self.half + len(after)] = after
        if riding is not None:
            first = 2 * self.half
            numbers[first : first + len(riding)] = riding
        return numbers

    def row(
        self,
        size: int | None,
        fingerprints: torch.Tensor | None,
        around: torch.Tensor,
        noise: torch.Tensor,
    ) -> torch.Tensor:
        """Return a rank's row, -1 for what is not known; too many fingerprints are left out."""
        if fingerprints is not None and len(fingerprints) > self.room:
            fingerprints = None
        row = torch.full((self.length,), -1, device=around.device)
        row[0] = -1 if size is None else size
        row[1] = -1 if fingerprints is None else len(fingerprints)
        heard = torch.cat([noise, noise.new_full((HEARD - len(noise),), torch.nan)])
        reals = torch.cat([around, heard])
        row[_FIRST_REAL : _FIRST_REAL + len(reals)] = reals.view(torch.int64)
        if fingerprints is not None:
            row[self._first_fingerprint :][: len(fingerprints)] = fingerprints
        return row

    def sizes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return each rank's part of the batch in each step; -1 where that is not known."""
        return rows[:, :, 0]

    def reals(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the real numbers of rows, by step and rank."""
        return rows[:, :, _FIRST_REAL : self._first_fingerprint].copy().view(np.float64)

    def fingerprints(self, rows: NDArray[np.int64]) -> list[list[Any]]:
        """Return the fingerprints of examples by step and rank; None where they are not known."""
        return [
            [row[self._first_fingerprint :][: row[1]] if row[1] >= 0 else None for row in step]
            for step in rows
        ]

"""What is kept of the batches: their sizes, and a fingerprint of each example.

Fingerprints tell which examples come again. They are random sums of an input's numbers: equal
for equal inputs, and as good as never equal for others. No example can be recovered from them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oraudit.records.arrays import rows

__all__ = ["BatchRecord", "Batches", "fingerprints"]


@dataclass(frozen=True)
class Batches:
    """The batches of all steps.

    Attributes
    ----------
    sizes
        How many examples each step had; None where that is not known.
    fingerprints
        Of the examples of each step; None if no inputs were given.
    """

    sizes: tuple[int | None, ...]
    fingerprints: tuple[NDArray[np.float64] | None, ...]


class BatchRecord:
    """Collects the parts of a step's batch, as memory may hold only some of it at a time."""

    def __init__(self) -> None:
        self._sizes: list[int | None] = []
        self._all: list[NDArray[np.float64] | None] = []
        self._size: int | None = None
        self._parts: list[NDArray[np.float64]] = []

    def add(self, size: int) -> None:
        """Note that the step under way has this many more examples."""
        self._size = size + (self._size or 0)

    def add_inputs(self, inputs: Any) -> None:
        """Note which examples the step under way has more."""
        self._parts.append(fingerprints(inputs))

    def end_step(self) -> None:
        self._sizes.append(self._size)
        self._all.append(np.concatenate(self._parts) if self._parts else None)
        self._size = None
        self._parts = []

    def finished(self) -> Batches:
        return Batches(tuple(self._sizes), tuple(self._all))


def fingerprints(inputs: Any) -> NDArray[np.float64]:
    """A number for each example of a batch.

    >>> a, b, c = fingerprints([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]])
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    if hasattr(inputs, "detach"):
        inputs = inputs.detach().cpu()
    table = rows(np.asarray(inputs, dtype=float))
    weights = np.random.default_rng(7).uniform(0.5, 1.5, size=table.shape[1])
    return np.round((table * weights).sum(axis=1), 6)

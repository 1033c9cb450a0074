"""The batches of a training, of which sizes and a fingerprint of each example are kept.

Fingerprints tell which examples come again. They are random sums of the bits of an input: equal
for equal inputs, and as good as never equal for others. No example can be recovered from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oraudit.records.arrays import here, namespace, rows

__all__ = ["BatchRecord", "Batches", "fingerprints"]

#: The most numbers of an input that its fingerprint is made of, evenly spread.
MOST_NUMBERS = 512


@dataclass(frozen=True)
class Batches:
    """The batches of all steps.

    Attributes
    ----------
    sizes
        The number of examples of each step; None where that is not known.
    fingerprints
        For each step, one number for each example; None if the inputs do not match the examples.
    """

    sizes: tuple[int | None, ...]
    fingerprints: tuple[NDArray[np.int64] | None, ...]


class BatchRecord:
    """Collects the parts of a step's batch, as memory may hold only some of it at a time.

    ``comparable`` is set to False if an example may have other inputs when it comes again, as with
    random augmentation: then fingerprints tell nothing.
    """

    def __init__(self) -> None:
        self._sizes: list[int | None] = []
        self._all: list[list[Any] | None] = []
        self._size: int | None = None
        self._parts: list[Any] = []
        self.comparable = True

    def add(self, size: int) -> None:
        """Note ``size`` more examples of the step under way."""
        self._size = size + (self._size or 0)

    def add_inputs(self, inputs: Any) -> None:
        """Note the inputs of more examples of the step under way."""
        self._parts.append(fingerprints(inputs))

    @property
    def size(self) -> int | None:
        """The number of examples that the step under way has so far."""
        return self._size

    @property
    def inputs(self) -> list[Any] | None:
        """The fingerprints of the step under way; None if there is not one for each example."""
        complete = sum(len(part) for part in self._parts) == self._size
        return list(self._parts) if complete else None

    def end_step(self) -> None:
        """Close the batch of the step under way."""
        self._sizes.append(self._size)
        self._all.append(self.inputs)
        self.forget_step()

    def forget_step(self) -> None:
        """Forget the batch of the step under way, whose end was not seen."""
        self._size = None
        self._parts = []

    def finished(self) -> Batches:
        """Return the batches of all steps."""
        sizes = tuple(self._sizes)
        prints = tuple(_joined(parts) for parts in self._all)
        return Batches(sizes, prints if self.comparable else (None,) * len(sizes))

    def state(self) -> dict[str, Any]:
        """Return all that is kept, as numbers and arrays of NumPy."""
        prints = [_joined(parts) for parts in self._all]
        return {"sizes": list(self._sizes), "fingerprints": prints}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state` has returned."""
        self._sizes = list(state["sizes"])
        self._all = [None if prints is None else [prints] for prints in state["fingerprints"]]


def fingerprints(inputs: Any) -> Any:
    """Return a number for each example of a batch, on the batch's device.

    >>> a, b, c = fingerprints(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    xp = namespace(inputs)
    inputs = np.asarray(inputs) if xp is np else inputs.detach()
    table = rows(inputs)
    table = table[:, :: max(-(-table.shape[1] // MOST_NUMBERS), 1)]
    if xp is np:
        bits = np.ascontiguousarray(table, dtype=np.float64).view(np.int64)
        return (bits * _weights(bits.shape[1])).sum(axis=1)
    if table.device.type == "mps":  # which has no numbers of double precision
        table = table.cpu()
    weights = _weights_on(table.device, table.shape[1])
    bits = table.double().view(xp.int64)
    # Sums of integers do not depend on the order in which a device adds.
    return bits @ weights if bits.is_cpu else (bits * weights).sum(1)


@lru_cache(maxsize=16)
def _weights(number: int) -> NDArray[np.int64]:
    return np.random.default_rng(7).integers(-(2**62), 2**62, number) * 2 + 1


@lru_cache(maxsize=8)
def _weights_on(device: Any, number: int) -> Any:
    """Return the weights on a device; they are cached, as the host waits for each transfer."""
    import torch

    return torch.from_numpy(_weights(number)).to(device)


def _joined(parts: list[Any] | None) -> NDArray[np.int64] | None:
    if parts is None:
        return None
    return np.concatenate([np.zeros(0, dtype=np.int64), *map(here, parts)])

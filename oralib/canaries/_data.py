"""Examples and canaries in one training run: their batches, and the gradients of canaries.

Nothing here needs PyTorch; :mod:`oralib.canaries._torch` does the rest of a training with Opacus.
"""

from math import ceil
from typing import Any

import numpy as np

from oralib.canaries.loop import Canaries
from oralib.dpsgd.setting import differ
from oralib.ground.types import Array


def batch_size(examples: int, sample_rate: float) -> int | None:
    """The size of a batch at this rate, or None if the rate is not 1 over an integer."""
    batches = round(1 / sample_rate)
    return None if differ(batches * sample_rate, 1) else ceil(examples / batches)


def gradients_in(
    canaries: Canaries, who: Array, push: float, loss_is_mean: bool
) -> tuple[Array, Array]:
    """The coordinate of each example of a batch and the derivative of its loss there.

    ``who`` is the number of each canary, and -1 for an example of the user, whose derivative is 0
    as is that of a canary that is not included, or was dropped.
    """
    where = canaries.places(canaries.step)[who]
    pushed = (who >= 0) & canaries.included[who] & (where >= 0)
    return np.maximum(where, 0), push * pushed / (who.size if loss_is_mean else 1)


class CanaryData:
    """Examples, and after them n canaries, as ``OpacusAudit`` says."""

    def __init__(self, data: Any, n: int) -> None:
        self.data, self.n, self.filler = data, n, _entries(data[0])

    def __len__(self) -> int:
        return len(self.data) + self.n

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        if index >= len(self.data):
            return (*self.filler, index - len(self.data))
        return (*_entries(self.data[index]), -1)


def _entries(example: Any) -> tuple[Any, ...]:
    return tuple(example) if isinstance(example, tuple | list) else (example,)

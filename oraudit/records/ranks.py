"""The ranks of a distributed training: what each of its processes had a part in by itself."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ranks"]


@dataclass(frozen=True)
class Ranks:
    """The numbers of each of W ranks in each of T steps.

    Attributes
    ----------
    sizes
        The number of examples in each rank's part of the batch, T x W; -1 where it is not known.
    noise
        A few numbers of the noise that each rank adds, in units of the told deviation, T x W x H;
        NaN where a rank has fewer.
    twice
        The number of examples of each step on two ranks or more, T; -1 where it is not known.
    shared
        True if all ranks have the same weights, so that their noises add up; otherwise each has
        weights of its own, and noise for them.
    """

    sizes: NDArray[np.int64]
    noise: NDArray[np.float64]
    twice: NDArray[np.int64]
    shared: bool

    @property
    def number(self) -> int:
        """The number of ranks."""
        return self.sizes.shape[1]

"""What is kept of the processes of a distributed training, the ranks, beside their joined sums."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ranks"]


@dataclass(frozen=True)
class Ranks:
    """Numbers of each of W ranks in each of T steps.

    Attributes
    ----------
    sizes
        How many examples each rank's part of the batch had, T x W; -1 where that is not known.
    noise
        A few numbers of the noise that each rank adds, in units of the told deviation, T x W x H;
        NaN where a rank has fewer.
    twice
        How many examples of each step are on two ranks or more, T; -1 where that is not known.
    shared
        Whether all ranks have the same weights, so that their noises add up; otherwise each has
        weights of its own, and noise for them.
    """

    sizes: NDArray[np.int64]
    noise: NDArray[np.float64]
    twice: NDArray[np.int64]
    shared: bool

    @property
    def number(self) -> int:
        """How many ranks there are."""
        return self.sizes.shape[1]

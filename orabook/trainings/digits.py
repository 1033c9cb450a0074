"""Handwritten digits."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from oralib.ground.extras import needed

__all__ = ["CLASSES", "DIGITS", "LARGEST_SEED", "PIXELS", "digits"]

#: The numbers of classes, of pixels of a digit, and of digits.
CLASSES = 10
PIXELS = 64
DIGITS = 1797

#: The largest seed of a training: PyTorch is seeded with up to twice that and one more, and accepts
#: no larger seeds.
LARGEST_SEED = 2**62


@lru_cache(maxsize=1)
def digits() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The pixels of 1797 handwritten digits, between 0 and 1, and which digits they are."""
    with needed("scikit-learn"):
        from sklearn.datasets import load_digits
    pixels, labels = load_digits(return_X_y=True)
    return pixels / 16, labels

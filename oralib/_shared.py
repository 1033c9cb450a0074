"""Results that are computed once and then given to all who ask."""

from typing import TypeVar

import numpy as np

T = TypeVar("T")


def read_only(result: T) -> T:
    """An array, or a tuple of arrays, that nobody can change in place for those who ask later."""
    for part in result if isinstance(result, tuple) else (result,):
        if isinstance(part, np.ndarray):
            part.flags.writeable = False
    return result

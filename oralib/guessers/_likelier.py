"""The guess that all maximum-likelihood guessers make, if they make one."""

import numpy as np
from numpy.typing import NDArray

from oralib.ground.rounding import ROUNDING
from oralib.ground.types import Array


def likelier_signs(loss: Array) -> NDArray[np.int8]:
    """Return the likelier value of each sign, given its loss; 1 if both are equally likely."""
    return np.where(np.asarray(loss) > ROUNDING, np.int8(-1), np.int8(1))

"""Tables of the tails of Λ, the log-likelihood ratio of an isolated element."""

from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

__all__ = ["TAIL_DEPTH", "Reals", "Side", "on_one_grid"]

Reals = NDArray[Any]  # of doubles

#: Levels of |Λ| on one side of 0, from 0 up, and the logarithms of two tails there. The first tail
#: is for the dataset that the sign of Λ speaks for (included above 0, excluded below), the second
#: for the other dataset.
Side: TypeAlias = tuple[Reals, Reals, Reals]

#: Tails are tabulated down to exp(-TAIL_DEPTH).
TAIL_DEPTH = 80.0


def on_one_grid(above: Side, below: Side) -> tuple[Reals, list[Reals]]:
    """The four logarithms of tails on one grid of levels, those above 0 first.

    Excluded elements are seldom surer than some level, so the lower tails end before the others.
    """
    tails = []
    reach = above[0][above[1] > -TAIL_DEPTH][-1]
    level = reach * np.linspace(0, 1, 2000) ** 1.2
    for levels, *logs in (above, below):
        levels = np.concatenate([[0.0], levels[1:]])  # where Λ is 0 up to rounding
        is_increasing = np.concatenate([[True], np.diff(levels) > 1e-9])
        is_node = is_increasing & (logs[0] > -6 * TAIL_DEPTH)
        nodes = levels[is_node]
        for log_tail in logs:
            spline = scipy.interpolate.CubicSpline(nodes, log_tail[is_node])
            is_inside = level <= nodes[-1]
            values = np.full(level.size, -np.inf)
            values[is_inside] = spline(level[is_inside])
            tails.append(values)
    return level, tails

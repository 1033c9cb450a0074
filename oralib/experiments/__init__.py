"""The paper's figures, recomputed: audits repeated over grids. Each returns a data frame.

- :mod:`~oralib.experiments.paper`: one function per figure of the paper;
- :mod:`~oralib.experiments.summaries`: mean bounds of many trials;
- :mod:`~oralib.experiments.points`: grids, checked before any work.

Every point of a grid has its own random stream, so adding a point changes no other. The
defaults are the paper's own parameters; where it has none (grids, the n of Figure 4) they are ours.
"""

from oralib.experiments.paper import (
    adaptive_count_in_sets,
    adaptive_dpsgd,
    elements_by_epsilon,
    elements_per_coordinate,
    local_laplace,
    taken_guesses,
    taken_guesses_by_epsilon,
)
from oralib.experiments.summaries import summarise

__all__ = [
    "adaptive_count_in_sets",
    "adaptive_dpsgd",
    "elements_by_epsilon",
    "elements_per_coordinate",
    "local_laplace",
    "summarise",
    "taken_guesses",
    "taken_guesses_by_epsilon",
]

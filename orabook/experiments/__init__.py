"""The paper's figures, recomputed: audits repeated over grids, one function for each figure.

Each returns a data frame with a row for each point of its grid. Every point has its own random
stream, so adding a point changes no other. The defaults are the paper's own parameters, or ours
where the paper has none (grids, the n of Figure 4). :func:`summarise` turns any counts into rows
like these. :func:`improvement_ladder` leads from an audit of DP-SGD in the paper to ours.
"""

from orabook.experiments.dpsgd import (
    REPORTED,
    elements_by_epsilon,
    elements_per_coordinate,
    exact_elements_by_epsilon,
    taken_guesses,
    taken_guesses_by_epsilon,
)
from orabook.experiments.feedback import (
    LARGEST_CERTIFIED_N,
    adaptive_count_in_sets,
    adaptive_dpsgd,
)
from orabook.experiments.ladder import improvement_ladder
from orabook.experiments.laplace import local_laplace
from orabook.experiments.summaries import summarise

__all__ = [
    "LARGEST_CERTIFIED_N",
    "REPORTED",
    "adaptive_count_in_sets",
    "adaptive_dpsgd",
    "elements_by_epsilon",
    "elements_per_coordinate",
    "exact_elements_by_epsilon",
    "improvement_ladder",
    "local_laplace",
    "summarise",
    "taken_guesses",
    "taken_guesses_by_epsilon",
]

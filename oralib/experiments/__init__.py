"""Audits repeated over grids: each function returns a small data frame.

- :mod:`~oralib.experiments.summaries`: mean bounds of many trials;
- :mod:`~oralib.experiments.points`: grids, checked and played point by point;
- :mod:`~oralib.experiments.paper`: one function per figure of the paper;
- :mod:`~oralib.experiments.comparisons`: ways of auditing side by side;
- :mod:`~oralib.experiments.ceiling`: what isolated elements would show;
- :mod:`~oralib.experiments.assumptions`: how often bounds fail where their assumptions do.

Every point of a grid has its own random stream, so adding a point changes no other. The
defaults are the paper's own parameters; where it has none (grids, the n of Figure 4) they are ours.
"""

from oralib.experiments.assumptions import common_size, overclaims
from oralib.experiments.ceiling import isolated_ceiling
from oralib.experiments.comparisons import best_bounds, bound_map
from oralib.experiments.paper import (
    FIGURES,
    adaptive_count_in_sets,
    adaptive_dpsgd,
    elements_by_epsilon,
    elements_per_coordinate,
    local_laplace,
    taken_guesses,
    taken_guesses_by_epsilon,
)
from oralib.experiments.summaries import summarise

__all__ = ["FIGURES", "adaptive_count_in_sets", "adaptive_dpsgd", "best_bounds", "bound_map"]
__all__ += ["common_size", "overclaims"]
__all__ += ["elements_by_epsilon", "elements_per_coordinate", "isolated_ceiling", "local_laplace"]
__all__ += ["summarise", "taken_guesses", "taken_guesses_by_epsilon"]

"""What one chapter beyond the paper computes, or a table of ``book/data``.

- :mod:`~orabook.studies.isolated`, :mod:`~orabook.studies.isolated_laws`,
  :mod:`~orabook.studies.ceiling`: canaries that never meet, and what they would show;
- :mod:`~orabook.studies.placement`: the ceiling of all placements of canaries on d coordinates;
- :mod:`~orabook.studies.methods`, :mod:`~orabook.studies.comparisons`: ways of auditing
  DP-SGD, side by side;
- :mod:`~orabook.studies.subsampled`: the f-DP bound for the trade-off curves of DP-SGD itself;
- :mod:`~orabook.studies.overclaims`: how often bounds fail where their assumptions do;
- :mod:`~orabook.studies.universe`: the paper's privacy notions for any product distribution;
- :mod:`~orabook.studies.counterexamples`: a guesser and a mechanism that break the usual bound.
"""

from orabook.studies.ceiling import isolated_ceiling
from orabook.studies.comparisons import best_bounds, bound_map
from orabook.studies.counterexamples import SelfMutingResponse, stop_or_oppose_law
from orabook.studies.isolated import Confidence, confidence, isolated_limit
from orabook.studies.isolated_laws import isolated_law, isolated_threshold_law
from orabook.studies.overclaims import common_size, overclaims
from orabook.studies.placement import placement_ceiling
from orabook.studies.subsampled import epsilon_lower_bound_subsampled
from orabook.studies.universe import SampledChannel

__all__ = [
    "Confidence",
    "SampledChannel",
    "SelfMutingResponse",
    "best_bounds",
    "bound_map",
    "common_size",
    "confidence",
    "epsilon_lower_bound_subsampled",
    "isolated_ceiling",
    "isolated_law",
    "isolated_limit",
    "isolated_threshold_law",
    "overclaims",
    "placement_ceiling",
    "stop_or_oppose_law",
]

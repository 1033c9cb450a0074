"""What one chapter computes, or a table of ``book/data``.

- :mod:`~orabook.studies.training`: the paper's audit of DP-SGD, training step by step;
- :mod:`~orabook.studies.isolated`, :mod:`~orabook.studies.isolated_laws`,
  :mod:`~orabook.studies.ceiling`: canaries that never meet, and what they would show;
- :mod:`~orabook.studies.single_step`: the exact law of one step of DP-SGD;
- :mod:`~orabook.studies.placement`: the ceiling of all placements of canaries among strangers;
- :mod:`~orabook.studies.decoding`: canaries that meet again, and all coins decoded at once;
- :mod:`~orabook.studies.methods`, :mod:`~orabook.studies.comparisons`: ways of auditing
  DP-SGD, side by side;
- :mod:`~orabook.studies.feedback`: kinds of feedback, side by side, each with its valid bound;
- :mod:`~orabook.studies.subsampled`: the f-DP bound for the trade-off curves of DP-SGD itself;
- :mod:`~orabook.studies.overclaims`: how often bounds fail where their assumptions do;
- :mod:`~orabook.studies.success`: how often guesses are right given all other elements;
- :mod:`~orabook.studies.universe`: the paper's privacy notions for any product distribution;
- :mod:`~orabook.studies.counterexamples`: a guesser and a mechanism that break the bound ε'(v, r).
"""

from orabook.studies.ceiling import isolated_ceiling
from orabook.studies.comparisons import best_bounds, bound_map
from orabook.studies.counterexamples import SelfMutingResponse, stop_or_oppose_law
from orabook.studies.decoding import joint_decoding
from orabook.studies.feedback import feedback_at_its_best
from orabook.studies.isolated import Confidence, confidence, isolated_limit
from orabook.studies.isolated_laws import isolated_law
from orabook.studies.overclaims import common_size, overclaims
from orabook.studies.placement import placement_ceiling
from orabook.studies.single_step import single_step_law
from orabook.studies.subsampled import epsilon_lower_bound_subsampled
from orabook.studies.success import after_guesses, probably_approximately_rr, success_given_others
from orabook.studies.training import simulate_training
from orabook.studies.universe import SampledChannel

__all__ = ["Confidence", "SampledChannel", "SelfMutingResponse", "after_guesses", "best_bounds"]
__all__ += ["bound_map", "common_size", "confidence", "epsilon_lower_bound_subsampled"]
__all__ += ["feedback_at_its_best", "isolated_ceiling", "isolated_law", "isolated_limit"]
__all__ += ["joint_decoding", "overclaims", "placement_ceiling", "probably_approximately_rr"]
__all__ += ["simulate_training", "single_step_law", "stop_or_oppose_law", "success_given_others"]

"""Computations of single chapters, and of tables of ``book/data``, a file for each subject."""

from orabook.laws import single_step_law
from orabook.studies.ceiling import isolated_ceiling, isolated_law
from orabook.studies.ceiling_of_means import ceiling_of_means
from orabook.studies.counterexamples import SelfMutingResponse, stop_or_oppose_law
from orabook.studies.counts_power import counts_power
from orabook.studies.feedback import feedback_at_its_best
from orabook.studies.isolated import Confidence, confidence, isolated_limit
from orabook.studies.methods import best_bounds, bound_map
from orabook.studies.overclaims import common_size, overclaims
from orabook.studies.published import audits_like_published, best_threshold_bounds
from orabook.studies.several_runs import (
    largest_capped_mean,
    limits_of_runs,
    profile_of,
    runs_or_pooled,
)
from orabook.studies.simulated_training import run_dpsgd
from orabook.studies.stated_noise import found_by_counts
from orabook.studies.subsampled import epsilon_lower_bound_subsampled
from orabook.studies.success import after_guesses, probably_approximately_rr, success_given_others
from orabook.studies.universe import SampledChannel

__all__ = [
    "Confidence",
    "SampledChannel",
    "SelfMutingResponse",
    "after_guesses",
    "audits_like_published",
    "best_bounds",
    "best_threshold_bounds",
    "bound_map",
    "ceiling_of_means",
    "common_size",
    "confidence",
    "counts_power",
    "epsilon_lower_bound_subsampled",
    "feedback_at_its_best",
    "found_by_counts",
    "isolated_ceiling",
    "isolated_law",
    "isolated_limit",
    "largest_capped_mean",
    "limits_of_runs",
    "overclaims",
    "probably_approximately_rr",
    "profile_of",
    "run_dpsgd",
    "runs_or_pooled",
    "single_step_law",
    "stop_or_oppose_law",
    "success_given_others",
]

"""From counts to ε: v right guesses out of r give a lower bound on the privacy level."""

from oralib.bounds.anytime import adaptive_failure_probability, epsilon_lower_bound_anytime
from oralib.bounds.approximate import (
    clopper_pearson_lower,
    epsilon_lower_bound,
    epsilon_lower_bound_random_r,
    p_value,
)
from oralib.bounds.fdp import epsilon_lower_bound_fdp, gaussian_epsilon
from oralib.bounds.independent import epsilon_lower_bound_independent
from oralib.bounds.logistic import epsilon_estimate, p, p_inv
from oralib.bounds.p_values import valid_p_value
from oralib.bounds.runs import lower_bound_of_runs, p_value_of_runs
from oralib.bounds.valid import Counts, valid_lower_bound, valid_rule

__all__ = ["Counts", "adaptive_failure_probability", "clopper_pearson_lower", "epsilon_estimate"]
__all__ += ["epsilon_lower_bound", "epsilon_lower_bound_anytime", "epsilon_lower_bound_fdp"]
__all__ += ["epsilon_lower_bound_independent", "epsilon_lower_bound_random_r", "gaussian_epsilon"]
__all__ += ["lower_bound_of_runs", "p_value_of_runs", "valid_p_value"]
__all__ += ["p", "p_inv", "p_value", "valid_lower_bound", "valid_rule"]

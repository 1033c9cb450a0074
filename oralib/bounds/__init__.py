"""From counts to ε: v right of r taken guesses give a lower bound on the privacy level.

- :mod:`~oralib.bounds.logistic`: accuracies and privacy levels;
- :mod:`~oralib.bounds.approximate`: bounds for ε-DP and (ε, δ)-DP, r fixed in advance or not;
- :mod:`~oralib.bounds.anytime`: bounds that hold whenever guessing stops;
- :mod:`~oralib.bounds.crossing`: what full feedback can gain from δ > 0;
- :mod:`~oralib.bounds.balanced`: a bound if exactly half of the elements were included;
- :mod:`~oralib.bounds.fdp`: a bound for mechanisms with the trade-off curve of Gaussian noise;
- :mod:`~oralib.bounds.independent`: a bound for the same mechanisms if the scores are independent;
- :mod:`~oralib.bounds.valid`: which of them is valid for an audit, from how it was set up;
- :mod:`~oralib.bounds.refuting`: how many right guesses refute a claim;
- :mod:`~oralib.bounds.assumptions`: the same audit under one assumption after another.
"""

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
from oralib.bounds.valid import Counts, valid_lower_bound, valid_rule

__all__ = ["Counts", "adaptive_failure_probability", "clopper_pearson_lower", "epsilon_estimate"]
__all__ += ["epsilon_lower_bound", "epsilon_lower_bound_anytime", "epsilon_lower_bound_fdp"]
__all__ += ["epsilon_lower_bound_independent", "epsilon_lower_bound_random_r", "gaussian_epsilon"]
__all__ += ["p", "p_inv", "p_value", "valid_lower_bound", "valid_rule"]

"""From counts to ε: v right guesses out of r give a lower bound on the privacy level.

Each rule is an object with a bound and a p-value, and all are used alike:

>>> Exact().lower_bound(75, 100, n=1000, delta=1e-4) < Pure().lower_bound(75, 100)
True

A rule is proved for some audits; :func:`valid_rule` finds the one for yours::

    Pure         for δ = 0: r fixed in advance, or no feedback
    Anytime      for δ = 0: any feedback, and any reason to stop
    Exact        r fixed in advance; no feedback, or a list
    Steinke      the same, as in the paper; never larger
    AnyOrder     r fixed in advance, and any feedback
    RandomR      r not fixed, and no feedback
    Certified    any feedback, and any reason to stop
    Balanced     exactly half of the elements were included
    Gaussian     only for the trade-off curves of Gaussian noise
    Independent  only for independent scores with such curves

None of them holds for a guesser who knows all other elements. One-way feedback is as none.
"""

from oralib.bounds.any_order import AnyOrder
from oralib.bounds.anytime import Anytime
from oralib.bounds.balanced import Balanced
from oralib.bounds.certified import Certified
from oralib.bounds.counts import Counts
from oralib.bounds.exact import Exact
from oralib.bounds.gaussian import Gaussian, gaussian_epsilon
from oralib.bounds.independent import Independent
from oralib.bounds.logistic import epsilon_estimate, p, p_inv
from oralib.bounds.paper import epsilon_lower_bound, p_value
from oralib.bounds.pure import Pure, clopper_pearson_lower
from oralib.bounds.random_r import RandomR
from oralib.bounds.rule import Rule
from oralib.bounds.runs import lower_bound_of_runs, p_value_of_runs
from oralib.bounds.steinke import Steinke
from oralib.bounds.stopping import adaptive_failure_probability
from oralib.bounds.valid import valid_lower_bound, valid_p_value, valid_rule

# Counts, and the bound that is valid for them.
__all__ = ["Counts", "valid_lower_bound", "valid_p_value", "valid_rule"]
__all__ += ["lower_bound_of_runs", "p_value_of_runs"]
# Rules.
__all__ += ["AnyOrder", "Anytime", "Certified", "Exact", "Pure", "RandomR", "Rule", "Steinke"]
__all__ += ["Balanced", "Gaussian", "Independent"]
# The paper's functions, and what goes with them.
__all__ += ["epsilon_estimate", "epsilon_lower_bound", "p", "p_inv", "p_value"]
__all__ += ["adaptive_failure_probability", "clopper_pearson_lower", "gaussian_epsilon"]

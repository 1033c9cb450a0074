"""One-run auditing of differential privacy: the objects of the paper, and valid bounds on ε.

**To play the paper's audits**: a *mechanism* plays a *game* with a *guesser*, which yields *counts*
(v, r); a *bound* turns counts into ε. For small n a mechanism is a table, its *channel*, from which
everything can be computed exactly.
:func:`simulate_dpsgd` and :func:`simulate_hopping` simulate audits of DP-SGD.

Audits of real trainings are the other package, :mod:`oraudit`.

>>> import oralib
>>> mechanism = oralib.LocalRandomizedResponse(epsilon=1.0)
>>> counts = oralib.one_run(mechanism, oralib.ThresholdGuesser(), n=1000, seed=1)
>>> bool(oralib.valid_lower_bound(counts)[0] < 1.0)
True
"""

from importlib.metadata import PackageNotFoundError, version

from oralib.bounds import (
    Counts,
    adaptive_failure_probability,
    epsilon_estimate,
    epsilon_lower_bound,
    lower_bound_of_runs,
    p,
    p_inv,
    p_value,
    p_value_of_runs,
    valid_lower_bound,
    valid_p_value,
    valid_rule,
)
from oralib.channels import Channel, channel
from oralib.dpsgd import DpSgd, Dropping, simulate_dpsgd, simulate_hopping
from oralib.dpsgd.accounting import certified_epsilon, noise_multiplier
from oralib.dpsgd.claim import Profile, Training
from oralib.dpsgd.claim_test import TrainingTest, TrainingVerdict
from oralib.games import adaptive, classic, one_run
from oralib.guessers import ThresholdGuesser, TopGuesser
from oralib.mechanisms import (
    AllOrNothing,
    Count,
    CountInSets,
    LocalLaplace,
    LocalRandomizedResponse,
    NameAndShame,
    NoisyCountInSets,
    Xor,
    XorInPairs,
    XorRandomizedResponse,
)

# Accountants.
__all__ = ["certified_epsilon", "noise_multiplier"]
# From counts to ε: the bound that is valid for an audit, and the rules, as oralib.bounds.Exact().
__all__ += ["Counts", "valid_lower_bound", "valid_p_value", "valid_rule"]
__all__ += ["lower_bound_of_runs", "p_value_of_runs"]
# The paper's bound, and what goes with it.
__all__ += ["epsilon_estimate", "epsilon_lower_bound", "p", "p_inv", "p_value"]
__all__ += ["adaptive_failure_probability"]
# Is it the stated training?
__all__ += ["Profile", "Training", "TrainingTest", "TrainingVerdict"]
# Mechanisms of the paper.
__all__ += ["AllOrNothing", "Count", "CountInSets", "LocalLaplace", "LocalRandomizedResponse"]
__all__ += ["NameAndShame", "NoisyCountInSets", "Xor", "XorInPairs", "XorRandomizedResponse"]
# The exact side, games and their guessers.
__all__ += [
    "Channel",
    "ThresholdGuesser",
    "TopGuesser",
    "adaptive",
    "channel",
    "classic",
    "one_run",
]
# Simulated audits of DP-SGD.
__all__ += ["DpSgd", "Dropping", "simulate_dpsgd", "simulate_hopping"]

try:
    __version__ = version("oralib")
except PackageNotFoundError:  # a clone on PYTHONPATH
    __version__ = "unknown"

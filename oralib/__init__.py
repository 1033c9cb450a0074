"""One-run auditing of differential privacy: the paper's objects, exact or fast.

Data flow one way. A *mechanism* plays a *game* with a *guesser*, which yields *counts* (v, r); a
*bound* turns counts into ε; an *experiment* repeats that over a grid. For small n a mechanism is a
table, its *channel*, from which everything can be computed exactly.

>>> import oralib
>>> mechanism = oralib.LocalRandomizedResponse(epsilon=1.0)
>>> counts = oralib.one_run(mechanism, oralib.ThresholdGuesser(), n=1000, seed=1)
>>> bool(oralib.valid_lower_bound(counts)[0] < 1.0)
True
"""

# ruff: noqa: F401 (imported here so that others can import it from here)

from importlib import import_module
from types import FunctionType
from typing import Any

from oralib.accounting import certified_epsilon, noise_multiplier
from oralib.bounds import (
    Counts,
    GaussianCurve,
    SubsampledGaussianCurve,
    adaptive_failure_probability,
    clopper_pearson_lower,
    epsilon_estimate,
    epsilon_lower_bound,
    epsilon_lower_bound_anytime,
    epsilon_lower_bound_fdp,
    epsilon_lower_bound_graded,
    epsilon_lower_bound_independent,
    epsilon_lower_bound_random_r,
    p,
    p_inv,
    p_value,
    split_for,
    valid_lower_bound,
    valid_rule,
    worst_case_rejection,
)
from oralib.channel import Channel, channel
from oralib.dpsgd import (
    DpSgd,
    Dropping,
    audit,
    audit_gradients,
    audit_hopping,
    audit_likelihood,
    audit_single_step,
    audit_training,
    canary_scores,
    conformity,
    hopping_scores,
    isolated_limit,
    noisy_gradients,
    placed_ceiling,
    train,
)
from oralib.games import (
    adaptive,
    adaptive_law,
    best_mean,
    classic,
    classic_law,
    full_knowledge,
    full_knowledge_law,
    one_run,
    one_run_law,
)
from oralib.guessers import ThresholdGuesser, TopGuesser
from oralib.mechanisms import (
    AllOrNothing,
    Count,
    CountInSets,
    ExtremalResponse,
    LocalLaplace,
    LocalRandomizedResponse,
    NameAndShame,
    NoisyCountInSets,
    SelfMutingResponse,
    Xor,
    XorInPairs,
    XorRandomizedResponse,
    sign_vectors,
)
from oralib.planning import plan_audit
from oralib.scores import audit_counts, audit_guesses, audit_scores
from oralib.universe import SampledChannel

_LATER = (
    *("drawings", "experiments", "figures", "laws", "methods", "parameters", "results"),
    *("canaries", "runs", "tables", "trainings"),
)

#: Every function and class that is imported above, and the experiments, which are imported later.
__all__ = [name for name, thing in globals().items() if isinstance(thing, FunctionType | type)]
__all__ = sorted({*__all__, "experiments"} - {"Any", "FunctionType", "import_module"})


def __getattr__(name: str) -> Any:
    """Import ``oralib.figures`` and the like on first use: they need more packages."""
    if name in _LATER:
        return import_module(f"oralib.{name}")
    if name == "__version__":
        metadata = import_module("importlib.metadata")
        try:
            return metadata.version("oralib")
        except metadata.PackageNotFoundError:  # a clone on PYTHONPATH
            return "unknown"
    raise AttributeError(f"module 'oralib' has no attribute {name!r}")

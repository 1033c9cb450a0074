"""One-run auditing of differential privacy: the objects of the paper, and valid bounds on ε.

A *mechanism* plays a *game* with a *guesser*, which yields *counts* (v, r); a *bound* turns counts
into ε. For small n a mechanism is a table, its *channel*, from which everything can be computed
exactly. Audits of real trainings are another package, :mod:`oraudit`.

>>> import oralib
>>> mechanism = oralib.LocalRandomizedResponse(epsilon=1.0)
>>> counts = oralib.one_run(mechanism, oralib.ThresholdGuesser(), n=1000, seed=1)
>>> bool(oralib.valid_lower_bound(counts)[0] < 1.0)
True

Mechanisms, more in :mod:`oralib.mechanisms`::

    LocalRandomizedResponse  each sign, flipped with probability 1 - p(ε)
    LocalLaplace             each sign with Laplace noise
    NameAndShame             the sign of one element
    AllOrNothing             all signs with probability p, else nothing
    Xor                      the parity of all bits
    XorInPairs               the parity of each pair of bits
    XorRandomizedResponse    the parity of all bits by randomized response
    Count                    the number of ones
    CountInSets              the number of ones in each set of s elements
    NoisyCountInSets         the same with Gaussian noise

Tables, guessers and games, more in :mod:`oralib.games`::

    channel, Channel  the table P[output | dataset], and the privacy notions of the paper
    ThresholdGuesser  guesses every element whose loss is large enough
    TopGuesser        guesses the k elements with the largest losses
    one_run           one-run auditing (Algorithm 1)
    classic           classic auditing (Algorithm 2)
    adaptive          one-run auditing with feedback

From counts to ε; the rules, such as ``oralib.bounds.Exact()``, are in :mod:`oralib.bounds`::

    Counts                        v right guesses of r, and how the audit was set up
    valid_lower_bound             the bound on ε that is valid for these counts
    valid_p_value                 the p-value of (ε, δ)-DP that is valid for them
    valid_rule                    the rule that both apply
    lower_bound_of_runs           one bound from several runs
    p_value_of_runs               one p-value from several runs
    epsilon_lower_bound           the paper's bound, r fixed in advance
    p_value                       the paper's p-value of (ε, δ)-DP
    epsilon_estimate              ε by the share of right guesses, no bound
    p, p_inv                      from ε to an accuracy, and back
    adaptive_failure_probability  how often a bound fails if guessing stops at will

Simulated audits of DP-SGD, and the claim of a training, more in :mod:`oralib.dpsgd`::

    DpSgd                            a training run on Dirac canaries
    simulate_dpsgd                   its audit by sums, as in the paper
    simulate_hopping                 its audit with canaries that hop
    Dropping                         the schedule by which hopping canaries are dropped
    noise_multiplier                 the noise that an (ε, δ) claim needs
    certified_epsilon                the ε that an accountant certifies
    Training                         a stated training: noise, rate and steps
    Profile                          what the claim of a training allows at all ε at once
    TrainingTest, TrainingVerdict    is it the stated training? a test by counts
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
from oralib.dpsgd import (
    DpSgd,
    Dropping,
    Profile,
    Training,
    TrainingTest,
    TrainingVerdict,
    certified_epsilon,
    noise_multiplier,
    simulate_dpsgd,
    simulate_hopping,
)
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

# Mechanisms.
__all__ = ["AllOrNothing", "Count", "CountInSets", "LocalLaplace", "LocalRandomizedResponse"]
__all__ += ["NameAndShame", "NoisyCountInSets", "Xor", "XorInPairs", "XorRandomizedResponse"]
# Tables, guessers and games.
__all__ += ["Channel", "ThresholdGuesser", "TopGuesser", "adaptive", "channel", "classic"]
__all__ += ["one_run"]
# From counts to ε: the bound that is valid for an audit, and the rules, as oralib.bounds.Exact().
__all__ += ["Counts", "valid_lower_bound", "valid_p_value", "valid_rule"]
__all__ += ["lower_bound_of_runs", "p_value_of_runs"]
# The paper's bound, and what goes with it.
__all__ += ["epsilon_estimate", "epsilon_lower_bound", "p", "p_inv", "p_value"]
__all__ += ["adaptive_failure_probability"]
# Simulated audits of DP-SGD, and the claim of a training.
__all__ += ["DpSgd", "Dropping", "Profile", "Training", "TrainingTest", "TrainingVerdict"]
__all__ += ["certified_epsilon", "noise_multiplier", "simulate_dpsgd", "simulate_hopping"]

try:
    __version__ = version("oralib")
except PackageNotFoundError:  # a clone on PYTHONPATH
    __version__ = "unknown"

"""DP-SGD with Dirac canaries, audited in one run: white box, gradient canaries (Section 6).

Each of the n elements is a gradient that is zero except on one coordinate. The auditor's coins
decide which elements are included, the model trains on them alone, and the auditor sees all its
weights. With n <= d every element has its own coordinate; with n > d each coordinate has n / d.

Every function ``simulate_...`` plays ``trials`` independent audits of the training run ``dpsgd``,
with the random numbers of ``seed``; the number of ``guesses`` is fixed in advance.
"""

from oralib.dpsgd.accounting import certified_epsilon, noise_multiplier
from oralib.dpsgd.claim import Profile, Training
from oralib.dpsgd.hopping import simulate_hopping
from oralib.dpsgd.judging import TrainingTest, TrainingVerdict
from oralib.dpsgd.likelihood import simulate_likelihood
from oralib.dpsgd.setting import DpSgd, Dropping
from oralib.dpsgd.sums import simulate_dpsgd

# The training run, and its audits.
__all__ = ["DpSgd", "Dropping", "simulate_dpsgd", "simulate_hopping", "simulate_likelihood"]
# Accountants.
__all__ += ["certified_epsilon", "noise_multiplier"]
# The claim of a training, and its test by counts.
__all__ += ["Profile", "Training", "TrainingTest", "TrainingVerdict"]

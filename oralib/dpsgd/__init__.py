"""DP-SGD with Dirac canaries, audited in one run: white box, gradient canaries (Section 6).

Each of the n elements is a gradient that is zero except on one coordinate. The auditor's coins
decide which elements are included, the model trains on them alone, and the auditor sees all its
weights. With n <= d every element has its own coordinate; with n > d each coordinate has n / d
elements.

- :mod:`~oralib.dpsgd.training`: the training step by step, and its audit as written;
- :mod:`~oralib.dpsgd.sums`: the same audit, but drawing only what its guesser looks at;
- :mod:`~oralib.dpsgd.extremes`: the same, but drawing only the coordinates that are guessed, in
  O(k);
- :mod:`~oralib.dpsgd.isolated`: elements with their own coordinates, and how sure a guess can be;
- :mod:`~oralib.dpsgd.single_step`: one full-batch step, with and without feedback;
- :mod:`~oralib.dpsgd.likelihood`: the most likely guess, from the sum or from all steps;
- :mod:`~oralib.dpsgd.hopping`: canaries that change their coordinates, or are dropped;
- :mod:`~oralib.dpsgd.placed`: the ceiling of all such placements;
- :mod:`~oralib.dpsgd.observed`: guesses from the weights of a training that was actually run;
- :mod:`~oralib.dpsgd.conformity`: whether that training looks like the stated one.
"""

from oralib.accounting import certified_epsilon, noise_multiplier
from oralib.dpsgd.conformity import Conformity, conformity
from oralib.dpsgd.hopping import Dropping, audit_hopping, hopping_scores
from oralib.dpsgd.isolated import Confidence, confidence, isolated_limit
from oralib.dpsgd.likelihood import audit_likelihood
from oralib.dpsgd.observed import audit_gradients, canary_scores, noisy_gradients
from oralib.dpsgd.placed import placed_ceiling
from oralib.dpsgd.single_step import audit_single_step, guess_distances
from oralib.dpsgd.sums import audit
from oralib.dpsgd.training import DpSgd, audit_training, train

__all__ = ["Confidence", "Conformity", "DpSgd", "Dropping", "audit", "audit_gradients"]
__all__ += ["audit_hopping", "audit_likelihood", "audit_single_step", "audit_training"]
__all__ += ["canary_scores", "certified_epsilon", "confidence", "conformity", "guess_distances"]
__all__ += ["hopping_scores", "isolated_limit", "noise_multiplier", "noisy_gradients"]
__all__ += ["placed_ceiling", "train"]

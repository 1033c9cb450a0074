"""Canaries for your own training loop: coins, places, scores, and a file for ``oralib audit``.

A *canary* is an example made for the audit. Its gradient is the clipping threshold on one
*coordinate*, a weight whose noisy gradient the auditor sees, and 0 elsewhere. A separate fair coin
decides whether each canary is included. In each step the loop adds the gradients of the
canaries that are included and in the batch, and passes the noisy gradient to ``observe``:

>>> import numpy as np
>>> from oralib import DpSgd
>>> rng = np.random.default_rng(1)
>>> training = DpSgd(n=400, d=100, steps=50, sample_rate=0.2, sigma=1.0)
>>> canaries = Canaries(training, guesses=40, seed=7)
>>> for step in range(50):
...     sampled = rng.random(400) < 0.2
...     gradient = canaries.gradient(step, sampled)  # of the canaries alone, in clipping thresholds
...     canaries.observe(step, gradient + rng.normal(scale=1.0, size=100))
>>> float(canaries.counts().accuracy)
0.925

Where a canary is, and whether it is dropped, follows from public random numbers and from what was
observed before, never from a coin. So the training with canaries is as private as its accountant
says, and the bound from the guesses is valid for any training run: see :mod:`oralib.dpsgd.hopping`.

With PyTorch and Opacus, ``oralib.canaries.opacus.OpacusAudit`` adds the coordinates to your model
and the canaries to your data. If the training shows nothing but its last model,
:func:`mislabelled` makes canaries out of your examples.
"""

from oralib.canaries import opacus
from oralib.canaries.blackbox import Mislabelled, mislabelled
from oralib.canaries.loop import Canaries

__all__ = ["Canaries", "Mislabelled", "mislabelled", "opacus"]

"""Real trainings: DP-SGD on scikit-learn's handwritten digits, with canaries and planted bugs.

Most are by Opacus on PyTorch and need ``make torch``. Bugs are put into what Opacus has made;
everything else of its sampler, clipping and noise is as it comes.
"""

from orabook.trainings.leak import release_noise

__all__ = ["release_noise"]

"""Real trainings: DP-SGD on scikit-learn's handwritten digits, with canaries and planted bugs.

Most are by Opacus on PyTorch and need ``make torch``. Bugs are put into what Opacus has made;
everything else of its sampler, clipping and noise is as it comes.
"""

import os

from orabook.trainings.leak import release_noise

# With vector instructions of a processor, PyTorch would draw other normal numbers than without.
os.environ.setdefault("ATEN_CPU_CAPABILITY", "default")
__all__ = ["release_noise"]

"""The number of ones in each set of elements, with Gaussian noise."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy
from numpy.random import Generator

from oralib.ground import arguments
from oralib.ground.binomial import log_pmfs
from oralib.ground.types import Array
from oralib.mechanisms._per_set import PerSet

__all__ = ["NoisyCountInSets"]


@dataclass(frozen=True)
class NoisyCountInSets(PerSet):
    """Count-in-Sets with Gaussian noise of standard deviation sigma on each count.

    This is one full-batch step of DP-SGD with s Dirac canaries per coordinate.

    Attributes
    ----------
    s : int
        The size of a set.
    sigma : float
        The standard deviation of the noise.

    Examples
    --------
    >>> from oralib import ThresholdGuesser, one_run
    >>> counts = one_run(NoisyCountInSets(4, sigma=1.0), ThresholdGuesser(1.0), 1000, seed=1)
    >>> int(counts.r[0])
    240
    """

    epsilon: ClassVar[float] = np.inf
    s: int
    sigma: float

    def __post_init__(self) -> None:
        s = arguments.integer("s", self.s, 1)
        sigma = arguments.real("sigma", self.sigma, 1e-3, 1e6)
        arguments.store(self, s=s, sigma=sigma)

    def _set_size(self, n: int) -> int:
        return self.s

    def _release(self, ones: Array, rng: Generator) -> Array:
        return ones + self.sigma * rng.standard_normal(ones.shape)

    def _loss(self, entry: Array, unknown: Array, known_ones: Array) -> Array:
        unknown_part = np.asarray(entry - known_ones)
        without = self._log_density(unknown_part, unknown)
        return without - self._log_density(unknown_part - 1, unknown)

    def _log_density(self, entry: Array, unknown: Array) -> Array:
        """Return the log density, up to a constant, of the noisy count of unknown others."""
        ones = np.arange(self.s)
        log_weight = log_pmfs(ones, np.asarray(unknown)[..., None] - 1, 0.5)
        exponent = (entry[..., None] - ones) ** 2 / (2 * self.sigma**2)
        return scipy.special.logsumexp(log_weight - exponent, axis=-1)

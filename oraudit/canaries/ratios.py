"""The scores of canaries in a sum: log-likelihood ratios of being in the data, added step by step.

A canary is seen in a step as y = sign · (noisy - a) / C at its weight, where a is the data's
clipped sum. The step adds log(1 - q + q exp((2y - 1) / 2s²)) to its score. Here s is the noise that
is seen, by the running mean of the median |y|. Any score is valid; but one that assumes the stated
noise would find little if the noise is another one.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oraudit.canaries.places import to_device
from oraudit.records.arrays import namespace

__all__ = ["Ratios"]

#: The median of the absolute value of a standard normal number.
NORMAL_MEDIAN = 0.6744897501960817

#: The least noise that scores assume, as a share of the told noise.
LEAST_SHARE = 0.01

#: The most canaries from which the median is taken: a GPU takes long for more.
MEDIAN_OF = 8192


class Ratios:
    """The log-likelihood ratios of n canaries; they stay on the device of the training.

    Parameters
    ----------
    signs
        The signs of the canaries' gradients.

    Attributes
    ----------
    steps
        The number of steps so far.
    least
        The sum over steps of log(1 - q), which is a part of every ratio and not in ``above``.
    above
        The ratios above ``least``.
    share
        The sum over steps of the noise that was seen, as a share of the told one.
    """

    def __init__(self, signs: NDArray[np.float32]) -> None:
        self.steps = 0
        self.least = 0.0
        self.above: Any = np.zeros(len(signs))
        self.share: Any = 0.0
        self._signs = signs
        self._signs_there: Any = None

    def add(self, seen: Any, sizes: Any, rate: float, scale: float) -> None:
        """Add a step.

        Parameters
        ----------
        seen
            The noisy sums minus the data's sums, in C, at the canaries' weights.
        sizes
            The sizes of the canaries in C; None if all are 1.
        rate
            The probability of a canary to be in the batch.
        scale
            The told deviation of the noise, in C.
        """
        self.steps += 1
        if namespace(seen) is np:
            self._add_arrays(seen, sizes, rate, scale)
        else:
            self._add_tensors(seen, sizes, rate, scale)

    def _add_arrays(self, seen: Any, sizes: Any, rate: float, scale: float) -> None:
        y = np.nan_to_num(self._signs * seen.astype(float), posinf=0, neginf=0)
        sample = np.abs(y[:: self._median_step])
        middle = (len(sample) - 1) // 2
        self.share += float(np.partition(sample, middle)[middle]) / (NORMAL_MEDIAN * scale)
        noise = max(self.share / self.steps, LEAST_SHARE) * scale
        ratio = y - 0.5 if sizes is None else sizes * (y - sizes / 2)
        odds, absent = _log_odds(rate)
        # log(1 - q + q exp(x)) = log(1 - q) + log(1 + exp(x + log(q / (1 - q))))
        x = ratio / noise**2
        self.above += x if odds is None else np.logaddexp(0, x + odds)
        self.least += absent

    def _add_tensors(self, seen: Any, sizes: Any, rate: float, scale: float) -> None:
        """Add a step as :meth:`_add_arrays` does, in few calls that do not wait for the device."""
        import torch

        with torch.no_grad():
            signs = self.signs_like(seen)
            y = torch.nan_to_num(seen.float() * signs, posinf=0, neginf=0)
            median = y[:: self._median_step].abs().median()
            self.share.add_(median, alpha=1 / (NORMAL_MEDIAN * scale))
            noise = (self.share * (scale / self.steps)).clamp_(min=LEAST_SHARE * scale)
            if sizes is None:
                ratio = y.sub_(0.5)
            else:
                size = to_device(np.float32(sizes), seen.device)
                ratio = size * (y - size / 2)
            odds, absent = _log_odds(rate)
            x = ratio.mul_(noise.pow_(-2))
            self.above += x if odds is None else torch.nn.functional.softplus(x + odds, 1, 30)
            self.least += absent

    @property
    def _median_step(self) -> int:
        return -(-len(self._signs) // MEDIAN_OF)

    def signs_like(self, array: Any) -> Any:
        """Return the signs on the device of an array or tensor, and move all ratios to it."""
        if namespace(array) is np:
            return self._signs
        import torch

        device = array.device
        if self._signs_there is None or self._signs_there.device != device:
            kind = torch.float32 if device.type == "mps" else torch.float64
            self._signs_there = torch.from_numpy(self._signs).to(device)
            self.above = torch.as_tensor(self.above, dtype=kind, device=device).clone()
            self.share = torch.as_tensor(self.share, dtype=torch.float32, device=device).clone()
        return self._signs_there

    def above_least(self) -> NDArray[np.float64]:
        """Return the ratios above ``least``, on the host."""
        above = self.above
        return np.asarray(above if namespace(above) is np else above.cpu().numpy(), dtype=float)


def _log_odds(rate: float) -> tuple[float | None, float]:
    """Return the logarithms of q / (1 - q) and of 1 - q; None and 0 for q = 1."""
    if rate >= 1:
        return None, 0.0
    return math.log(rate) - math.log1p(-rate), math.log1p(-rate)

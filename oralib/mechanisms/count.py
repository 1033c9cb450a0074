"""The number of ones in the whole dataset."""

from dataclasses import dataclass

from oralib.mechanisms._per_set import Counting

__all__ = ["Count"]


@dataclass(frozen=True)
class Count(Counting):
    """The number o of ones in the whole dataset, with losses ℓ_i(o) = ln((n - o) / o).

    >>> from oralib import channel
    >>> channel(Count(), n=4).privacy_loss[:, 0].round(3).tolist()
    [inf, 1.099, 0.0, -1.099, -inf]
    """

"""The coins of canaries, all from one seed: whether each is in the data, its sign, and its batches.

They are drawn on the host, by generators of their own: the training's random state is untouched,
and the numbers are the same on every device. A step's coins depend on the seed and the number of
the step alone, so a resumed audit goes on where it stood.
"""

import secrets

import numpy as np
from numpy.typing import NDArray

__all__ = ["SECRET_BITS", "Coins"]

#: The length of a seed from the operating system in bits: nobody can guess it.
SECRET_BITS = 128

#: The part of the key that keeps these streams apart from others of the same seed.
KEY = "canaries in a sum"


class Coins:
    """The coins of n canaries.

    Parameters
    ----------
    n
        The number of canaries.
    seed
        A whole number; None for one from the operating system.

    Attributes
    ----------
    included
        Whether each canary is in the data: fair coins.
    signs
        The sign of each canary's gradient, 1 or -1.
    """

    def __init__(self, n: int, seed: int | None = None) -> None:
        # Imported here, so that a training without canaries need not load oralib.
        from oralib.ground.streams import stream

        self._stream = stream
        self.seed = secrets.randbits(SECRET_BITS) if seed is None else int(seed)
        self.included: NDArray[np.bool_] = stream(self.seed, KEY, "included").random(n) < 0.5
        self.signs: NDArray[np.float32] = np.where(
            stream(self.seed, KEY, "signs").random(n) < 0.5, np.float32(-1), np.float32(1)
        )
        self._members = np.flatnonzero(self.included)

    def batch(self, step: int, rate: float) -> NDArray[np.int64]:
        """Draw the included canaries that are in the batch of a step, each with this probability.

        The gaps between them are geometric, so there are as many draws as canaries in the batch.
        """
        if rate >= 1:
            return self._members
        rng = self._stream(self.seed, KEY, "batch", step)
        room = len(self._members)
        mean = room * rate
        places = rng.geometric(rate, int(mean + 4 * mean**0.5) + 4).cumsum()
        while places[-1] <= room:
            further = rng.geometric(rate, len(places)).cumsum()
            places = np.concatenate([places, places[-1] + further])
        return self._members[places[places <= room] - 1]

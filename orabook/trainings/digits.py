"""A linear model that learns handwritten digits, with canaries among them."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oralib import _check
from oralib._extra import needed
from oralib.dpsgd import DpSgd, noisy_gradients

#: The bugs that can be planted: each is the claimed training with one thing wrong.
TRAINING_BUGS = (
    "half the noise",
    "a quarter of the noise",
    "no clipping for a tenth",
    "noise reused",
    "shuffled batches",
)

CLASSES, PIXELS, DIGITS = 10, 64, 1797
LEARNING_RATE, CLIP = 2.0, 1.0

#: PyTorch is seeded with up to twice this and one more, and accepts no larger seeds.
LARGEST_SEED = 2**62


@dataclass(frozen=True, eq=False)
class Training:
    """What a training has released: all its weights, and what Opacus divides gradients by.

    Row t of the weights is w_t; those of the first feature come first.
    """

    dpsgd: DpSgd
    weights: NDArray[np.float64]
    batch: float

    @property
    def gradients(self) -> NDArray[np.float64]:
        """The noisy gradients of the canaries' coordinates, in units of the clipping threshold."""
        columns = PIXELS * CLASSES + np.arange(self.dpsgd.used_coordinates)
        units = {"learning_rate": LEARNING_RATE, "clip": CLIP, "batch": self.batch}
        return noisy_gradients(self.weights[:, columns], **units)


@lru_cache(maxsize=1)
def digits() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The pixels of 1797 handwritten digits, between 0 and 1, and which digits they are."""
    with needed("scikit-learn"):
        from sklearn.datasets import load_digits
    pixels, labels = load_digits(return_X_y=True)
    return pixels / 16, labels


def train_digits(
    dpsgd: DpSgd, included: ArrayLike, *, seed: int, bug: str | None = None
) -> Training:
    """Train a linear model on the digits and the included canaries, with Opacus.

    The canaries use weights of features that are 0 for all digits. Opacus takes the sample rate
    from the number of batches, into which the examples must be cut evenly. ``bug`` is one of
    :data:`TRAINING_BUGS`.
    """
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000, sigma=1.0)")
    coins = _check.coins("included", included, dpsgd.n)
    seed = _check.integer("seed", seed, 0, LARGEST_SEED)
    if bug is not None:
        _check.one_of("bug", bug, TRAINING_BUGS)
    batches = round(1 / dpsgd.sample_rate)
    if abs(batches * dpsgd.sample_rate - 1) > 1e-9:
        raise ValueError(
            f"sample_rate must be 1 over an integer, got sample_rate={dpsgd.sample_rate:g}"
        )
    examples = DIGITS + dpsgd.n
    loaded = ceil(examples / ceil(examples / batches))
    if loaded != batches:  # Opacus would train with a sample rate other than the claimed one
        raise ValueError(
            f"sample_rate must be 1 over a number of batches into which {examples} examples can be "
            f"cut, {DIGITS} digits and n={dpsgd.n}, got sample_rate=1/{batches} (nearest: "
            f"1/{loaded})"
        )
    with needed("torch", "opacus"):
        from orabook.trainings import _opacus

    used = dpsgd.used_coordinates
    of_canaries = PIXELS * CLASSES + np.arange(dpsgd.n) % used
    data = _opacus.Examples(*digits(), coins, of_canaries, features=PIXELS + -(-used // CLASSES))
    weights, batch = _opacus.train(data, dpsgd.steps, batches, dpsgd.sigma, bug, seed)
    return Training(dpsgd, weights, batch)

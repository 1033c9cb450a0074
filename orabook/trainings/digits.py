"""A linear model that learns handwritten digits, with canaries among them."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

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

#: PyTorch is seeded with up to twice this and one more, and accepts no larger seeds.
LARGEST_SEED = 2**62


@dataclass(frozen=True, eq=False)
class Training:
    """What a training has released, and how it was set up.

    Attributes
    ----------
    dpsgd : DpSgd
        The training as it is claimed to be.
    weights : array
        The weights w_0, ..., w_T, a row for each; those of the first feature come first.
    columns : array
        The weights that the canaries use, one for each coordinate of ``dpsgd``.
    learning_rate, clip : float
        As Opacus was given them.
    batch : float
        What Opacus divides sums of gradients by.

    Examples
    --------
    >>> weights = np.array([[0.0, 0.0], [-0.5, 0.0]])
    >>> dpsgd = DpSgd(n=2, d=2, steps=1, sample_rate=0.1)
    >>> Training(dpsgd, weights, np.array([0, 1]), 0.5, 1.0, 1.0).gradients.tolist()
    [[1.0, -0.0]]
    """

    dpsgd: DpSgd
    weights: NDArray[np.float64]
    columns: NDArray[np.int64]
    learning_rate: float
    clip: float
    batch: float

    @property
    def gradients(self) -> NDArray[np.float64]:
        """The noisy gradients of the canaries' coordinates, in units of the clipping threshold."""
        units = {"learning_rate": self.learning_rate, "clip": self.clip, "batch": self.batch}
        return noisy_gradients(self.weights[:, self.columns], **units)

    @property
    def expected_from_digits(self) -> NDArray[np.float64]:
        """What the digits add to these gradients on average, from the weights before each step.

        An auditor who knows the digits subtracts it. What remains is the randomness of their
        batches.
        """
        pixels, labels = digits()
        wanted = np.eye(CLASSES)[labels]
        table = np.empty((self.dpsgd.steps, self.columns.size))
        for t, weights in enumerate(self.weights[:-1]):
            error = special.softmax(pixels @ self._of_pixels(weights), axis=1) - wanted
            norm = np.linalg.norm(pixels, axis=1) * np.linalg.norm(error, axis=1)
            error *= np.minimum(1, self.clip / np.maximum(norm, 1e-300))[:, None]
            total = np.zeros(weights.size)
            total[: PIXELS * CLASSES] = (pixels.T @ error).ravel()
            table[t] = total[self.columns]
        return table * (self.dpsgd.sample_rate / self.clip)

    @property
    def accuracy(self) -> float:
        """The share of the digits that the last weights recognize."""
        pixels, labels = digits()
        outputs = pixels @ self._of_pixels(self.weights[-1])
        return float((outputs.argmax(axis=1) == labels).mean())

    @staticmethod
    def _of_pixels(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        return weights[: PIXELS * CLASSES].reshape(PIXELS, CLASSES)


@lru_cache(maxsize=1)
def digits() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The pixels of 1797 handwritten digits, between 0 and 1, and which digits they are."""
    with needed("scikit-learn"):
        from sklearn.datasets import load_digits
    pixels, labels = load_digits(return_X_y=True)
    return pixels / 16, labels


def train_digits(
    dpsgd: DpSgd,
    included: ArrayLike,
    *,
    seed: int,
    among_digits: bool = False,
    bug: str | None = None,
    learning_rate: float = 2.0,
    clip: float = 1.0,
) -> Training:
    """Train a linear model on the digits and the included canaries, with Opacus.

    Parameters
    ----------
    dpsgd : DpSgd
        The canaries, the steps, the sample rate and the noise that are claimed. Opacus takes the
        sample rate from the number of batches, into which the examples must be cut evenly.
    included : array
        Which of the n canaries are in the training data.
    seed : int
        For the batches, for the noise, and for the weights of canaries among the digits.
    among_digits : bool
        Whether the canaries use weights that the digits use as well, at most 640 of them, or
        weights of features that are 0 for all digits.
    bug : str or None
        One of :data:`TRAINING_BUGS` to plant.
    learning_rate, clip : float
        The learning rate, and the norm to which the gradient of each example is clipped.

    Examples
    --------
    With PyTorch and Opacus, in some seconds:

    >>> dpsgd = DpSgd(n=100, d=100, steps=10)
    >>> included = np.random.default_rng(1).random(100) < 0.5
    >>> training = train_digits(dpsgd, included, seed=1)  # doctest: +SKIP
    >>> training.gradients.shape  # doctest: +SKIP
    (10, 100)
    """
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    coins = _check.coins("included", included, dpsgd.n)
    seed = _check.integer("seed", seed, 0, LARGEST_SEED)
    among_digits = _check.truth("among_digits", among_digits)
    if bug is not None:
        _check.one_of("bug", bug, TRAINING_BUGS)
    learning_rate = _check.real("learning_rate", learning_rate, 1e-6, 1e3)
    clip = _check.real("clip", clip, 1e-6, 1e6)
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
    used = dpsgd.used_coordinates
    if among_digits and used > PIXELS * CLASSES:
        raise ValueError(
            f"d must be at most {PIXELS * CLASSES}, the weights of the digits, got d={used}"
        )
    with needed("torch", "opacus"):
        from orabook.trainings import _opacus

    if among_digits:
        drawn = np.random.default_rng(seed).permutation(PIXELS * CLASSES)[:used]
        features, columns = PIXELS, np.sort(drawn)
    else:
        features = PIXELS + -(-used // CLASSES)
        columns = PIXELS * CLASSES + np.arange(used)
    of_canaries = columns[np.arange(dpsgd.n) % used]
    data = _opacus.Examples(*digits(), clip * coins, of_canaries, features)
    weights, batch = _opacus.train(
        data, dpsgd.steps, batches, dpsgd.sigma, learning_rate, clip, bug, seed
    )
    return Training(dpsgd, weights, columns, learning_rate, clip, batch)

"""DP-SGD in NumPy, with bugs that can be planted, under audit with canaries."""

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from orabook.trainings.digits import CLASSES, DIGITS, PIXELS, digits
from oraudit import Audit, Result

__all__ = ["BUGS", "SAMPLE_RATE", "STEPS", "batch", "clipped_sum", "gradients_of", "train"]

Reals = NDArray[np.float64]

#: The number of random features in addition to the pixels: each canary needs a weight.
FEATURES = 64
#: A training: the probability that an example is in a batch, and the number of steps.
SAMPLE_RATE = 0.1
STEPS = 100
LEARNING_RATE = 0.01

#: The bugs of noise: the share of it that is left.
NOISE = {
    "0.5 of the noise": 0.5,
    "0.8 of the noise": 0.8,
    "0.9 of the noise": 0.9,
    "noise / √batch": (SAMPLE_RATE * DIGITS) ** -0.5,
}
CLIPPING = ("no clipping", "batch clipped as a whole", "each layer clipped alone")
SAMPLING = ("half the data in each batch", "drawn with replacement", "shuffled")
SAME_NOISE = "same noise in each step"

#: All bugs, those of noise first.
BUGS = (*NOISE, SAME_NOISE, *CLIPPING, *SAMPLING)


def train(bug: str, sigma: float, canaries: int, seed: int) -> Result:
    """Train with a bug, or with ``"none"``, and return the result of the audit."""
    rng = np.random.default_rng(seed)
    pixels, labels = digits()
    inputs = np.hstack([pixels, np.tanh(pixels @ rng.normal(size=(PIXELS, FEATURES)))])
    weights = {"weight": np.zeros((PIXELS + FEATURES, CLASSES)), "bias": np.zeros(CLASSES)}
    stated: Any = {"clip": 1.0, "rate": SAMPLE_RATE}
    audit = Audit(
        examples=DIGITS,
        accountant=[(sigma, SAMPLE_RATE, STEPS)],
        canaries=canaries,
        seed=seed,
    )
    for step in range(STEPS):
        rows = batch(bug, step, rng)
        gradients = gradients_of(weights, inputs[rows], labels[rows])
        sums = audit.ride(clipped_sum(bug, gradients), **stated)
        noise = np.random.default_rng(1) if bug == SAME_NOISE else rng
        share = NOISE.get(bug, 1.0)
        noisy = {
            name: clipped + share * sigma * noise.normal(size=clipped.shape)
            for name, clipped in sums.items()
        }
        audit.step(
            clipped=sums,
            noisy=noisy,
            sigma=sigma,
            per_example=gradients,
            inputs=inputs[rows],
            weights=weights,
            **stated,
        )
        weights = {name: old - LEARNING_RATE * noisy[name] for name, old in weights.items()}
    return audit.result()


def batch(bug: str, step: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The examples of a step."""
    size = round(SAMPLE_RATE * DIGITS)
    if bug == "drawn with replacement":
        return rng.integers(DIGITS, size=size)
    if bug == "shuffled":
        epoch, place = divmod(step, round(1 / SAMPLE_RATE))
        order = np.random.default_rng([epoch, 7]).permutation(DIGITS)
        return np.sort(np.array_split(order, round(1 / SAMPLE_RATE))[place])
    drawn = rng.random(DIGITS) < SAMPLE_RATE
    if bug == "half the data in each batch":
        drawn[DIGITS // 2 :] = True
    return np.flatnonzero(drawn)


def gradients_of(weights: dict[str, Reals], inputs: Reals, labels: Any) -> dict[str, Reals]:
    """Each example's gradient of the loss of a linear model."""
    chances = scipy.special.softmax(inputs @ weights["weight"] + weights["bias"], axis=1)
    errors = chances - np.eye(CLASSES)[labels]
    return {"weight": inputs[:, :, None] * errors[:, None, :], "bias": errors}


def clipped_sum(bug: str, gradients: dict[str, Reals]) -> dict[str, Reals]:
    """The sum of the gradients, each clipped to norm 1 unless a bug is in the way."""
    norms = {
        name: np.sqrt((layer**2).sum(axis=tuple(range(1, layer.ndim))))
        for name, layer in gradients.items()
    }
    together = np.sqrt(sum(norm**2 for norm in norms.values()))
    factors = {name: 1 / np.maximum(together, 1) for name in norms}
    if bug == "each layer clipped alone":
        factors = {name: 1 / np.maximum(norm, 1) for name, norm in norms.items()}
    if bug in ("no clipping", "batch clipped as a whole"):
        factors = {name: np.ones_like(norm) for name, norm in norms.items()}
    sums = {name: np.tensordot(factors[name], layer, axes=1) for name, layer in gradients.items()}
    if bug == "batch clipped as a whole":
        size = np.sqrt(sum((layer**2).sum() for layer in sums.values()))
        sums = {name: layer / max(size, 1) for name, layer in sums.items()}
    return sums

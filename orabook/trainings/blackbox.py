"""Trainings that show only their last model, and ways to score their canaries by it.

DP-SGD in NumPy: a network with one hidden layer learns handwritten digits, some with wrong labels.
The gradient of an example is a product of two vectors in each layer, so none is ever written out.
"""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray
from tqdm import tqdm

from orabook.trainings.digits import DIGITS, digits
from oralib import audit_scores, noise_multiplier
from oralib.canaries import mislabelled

Array = NDArray[Any]
#: For each layer what goes into it, and the gradient of what comes out, a row for each example.
Layers = list[tuple[Array, Array]]

CANARIES, GUESSES, CLAIM, DELTA = 501, 100, 8.0, 1e-5
STEPS, SAMPLE_RATE, HIDDEN, LEARNING_RATE = 1000, 0.1, 256, 1.0

#: The clipping threshold of each kind of training, and its share of the stated noise.
KINDS = {"honest": (1.0, 1.0), "without noise": (1.0, 0.0), "without privacy": (np.inf, 0.0)}


def passed(weights: list[Array], inputs: Array, labels: Array) -> tuple[Array, Layers]:
    """The loss of each example, and what its gradient is made of."""
    hidden = np.maximum(inputs @ weights[0], 0)
    logs = scipy.special.log_softmax(hidden @ weights[1], axis=1)
    error = np.exp(logs) - np.eye(10, dtype=logs.dtype)[labels]
    back = (error @ weights[1].T) * (hidden > 0)
    return -logs[np.arange(len(labels)), labels], [(inputs, back), (hidden, error)]


def norms(layers: Layers) -> Array:
    """The norm of each example's gradient."""
    return np.sqrt(sum((x**2).sum(axis=1) * (e**2).sum(axis=1) for x, e in layers))


def train(first: list[Array], inputs: Array, labels: Array, clip: float, sigma: float, seed: int) -> list[Array]:
    """The last model of DP-SGD with Poisson sampling, from the first."""
    rng, weights = np.random.default_rng(seed), [weight.copy() for weight in first]
    rate = np.float32(LEARNING_RATE / (SAMPLE_RATE * DIGITS))
    for _ in range(STEPS):
        batch = rng.random(len(labels)) < SAMPLE_RATE
        _, layers = passed(weights, inputs[batch], labels[batch])
        kept = np.minimum(1, clip / np.maximum(norms(layers), 1e-9))[:, None]
        for weight, (x, e) in zip(weights, layers, strict=True):
            noise = rng.standard_normal(weight.shape, dtype=np.float32) * np.float32(sigma)
            weight -= rate * (x.T @ (kept * e) + noise)
    return weights


def scores(first: list[Array], last: list[Array], reference: list[Array], inputs: Array, labels: Array) -> dict[str, Array]:
    """Ways to score canaries, high for those that seem to be included."""
    loss, layers = passed(last, inputs, labels)
    usual, _ = passed(reference, inputs, labels)
    _, begun = passed(first, inputs, labels)

    def along(origin: list[Array]) -> Array:
        """How far the weights went down the canary's first gradient since then."""
        went = [there - here for there, here in zip(last, origin, strict=True)]
        return -sum(((x @ w) * e).sum(axis=1) for (x, e), w in zip(begun, went, strict=True))

    return {
        "loss": -loss,
        "loss against a reference": usual - loss,
        "gradient norm": -norms(layers),
        "alignment": along(first),
        "alignment against a reference": along(reference),
    }


def black_box(runs: int = 20) -> pd.DataFrame:
    """Audit trainings of each kind by each score: a row for each, with v of 100 right and a bound.

    The reference was trained by the auditor, as stated but without noise, and without the canaries.
    """
    pixels, labels = digits()
    sigma = noise_multiplier(CLAIM, DELTA, STEPS, SAMPLE_RATE)
    rows = []
    for run in tqdm(range(runs), disable=None, leave=False):
        ...
    return pd.DataFrame(rows)

"""Trainings that show only their last model, and ways to score their canaries by it.

DP-SGD in NumPy: a network with one hidden layer learns handwritten digits, some with wrong labels.
"""

from typing import Any

import numpy as np
import pandas as pd
import scipy
from tqdm import tqdm

from orabook.trainings.digits import CLASSES, DIGITS, PIXELS, digits
from oralib import Training, noise_multiplier
from oralib.ground.types import Array
from oraudit.canaries.count import judge_scores
from oraudit.canaries.mislabelled import mislabelled
from oraudit.canaries.setup import Setup

__all__ = ["black_box", "losses_and_gradients", "norms", "scores", "train"]

#: The canaries of a training, and the stated ε and δ.
CANARIES = 501
CLAIM = 2.0
DELTA = 1e-5
#: A training, and the hidden units of its network.
STEPS = 1000
SAMPLE_RATE = 0.1
LEARNING_RATE = 2.0
HIDDEN = 256

#: The clipping threshold of each kind of training, and its share of the stated noise.
KINDS = {"honest": (1.0, 1.0), "without noise": (1.0, 0.0), "without privacy": (np.inf, 0.0)}


def losses_and_gradients(
    weights: list[Array], inputs: Array, labels: Array
) -> tuple[Array, list[Any]]:
    """The loss of each example, and each layer's gradient as two vectors whose outer product it is.

    The two vectors are the layer's input and the gradient of the loss by the layer's output.
    """
    hidden = np.maximum(inputs @ weights[0], 0)
    logs = scipy.special.log_softmax(hidden @ weights[1], axis=1)
    error = np.exp(logs) - np.eye(CLASSES, dtype=logs.dtype)[labels]
    back = (error @ weights[1].T) * (hidden > 0)
    return -logs[np.arange(len(labels)), labels], [(inputs, back), (hidden, error)]


def norms(layers: list[Any]) -> Array:
    """The norm of each example's gradient."""
    return np.sqrt(np.sum([(x**2).sum(axis=1) * (e**2).sum(axis=1) for x, e in layers], axis=0))


def train(first: list[Array], data: tuple[Array, Array], kind: str, rng: Any) -> list[Array]:
    """The weights at the end of a training with Poisson sampling."""
    inputs, labels = data
    clip, share = KINDS[kind]
    weights = [weight.copy() for weight in first]
    sigma = share * noise_multiplier(CLAIM, DELTA, STEPS, SAMPLE_RATE)
    for _ in range(STEPS):
        batch = rng.random(len(labels)) < SAMPLE_RATE
        _, layers = losses_and_gradients(weights, inputs[batch], labels[batch])
        factors = np.minimum(1, clip / np.maximum(norms(layers), 1e-9))[:, None]
        for weight, (x, e) in zip(weights, layers, strict=True):
            noise = 0.0
            if sigma:
                noise = sigma * clip * rng.standard_normal(weight.shape, dtype=np.float32)
            weight -= LEARNING_RATE / (SAMPLE_RATE * DIGITS) * (x.T @ (factors * e) + noise)
    return weights


def scores(models: list[list[Array]], inputs: Array, labels: Array) -> dict[str, Array]:
    """Scores by the first, the last and a reference model, high where a canary seems included."""
    first, last, reference = models
    _, gradient_at_first = losses_and_gradients(first, inputs, labels)
    loss, gradient_at_last = losses_and_gradients(last, inputs, labels)
    reference_loss, _ = losses_and_gradients(reference, inputs, labels)

    def along(origin: list[Array]) -> Array:
        """How far the weights moved from ``origin`` down each canary's gradient.

        It is the inner product of the way with the gradient of each canary at the first model.
        """
        layers = zip(gradient_at_first, origin, last, strict=True)
        return sum(((x @ (before - after)) * e).sum(axis=1) for (x, e), before, after in layers)

    return {
        "loss": -loss,
        "loss against a reference": reference_loss - loss,
        "gradient norm": -norms(gradient_at_last),
        "alignment": along(first),
        "alignment against a reference": along(reference),
    }


def black_box(runs: int = 20) -> pd.DataFrame:
    """A row for each training and score, with right guesses; a reference sees no canary."""
    stated = Training(noise_multiplier(CLAIM, DELTA, STEPS, SAMPLE_RATE), SAMPLE_RATE, STEPS)
    pixels, labels = digits()
    pixels = pixels.astype(np.float32)
    rows = []
    for run in tqdm(range(runs), disable=None, leave=False):
        rng = np.random.default_rng(run)
        canaries = mislabelled(labels, CANARIES, seed=run)
        shapes = (PIXELS, HIDDEN), (HIDDEN, CLASSES)
        first = [rng.normal(scale=m**-0.5, size=(m, o)).astype(np.float32) for m, o in shapes]
        without_canaries = np.delete(np.arange(DIGITS), canaries.rows)
        reference_data = (pixels[without_canaries], labels[without_canaries])
        reference = train(first, reference_data, "without noise", rng)
        used, taught = canaries.training_set(labels)
        for kind in KINDS:
            last = train(first, (pixels[used], taught), kind, rng)
            by_name = scores([first, last, reference], pixels[canaries.rows], canaries.labels)
            for name, values in by_name.items():
                setup = Setup(training=stated, delta=DELTA)
                counted = judge_scores(values, canaries.included, setup)
                test = counted.test
                assert test is not None  # as a training is stated
                rows.append(
                    {
                        "kind": kind,
                        "score": name,
                        "run": run,
                        "right": test.right,
                        "guesses": test.guesses,
                        "need": test.need,
                        "refuted": test.refuted,
                        "bound": counted.bound.epsilon,
                    }
                )
    return pd.DataFrame(rows)

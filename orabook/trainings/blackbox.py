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

CANARIES, CLAIM, DELTA = 501, 2.0, 1e-5
STEPS, SAMPLE_RATE, HIDDEN, LEARNING_RATE = 1000, 0.1, 256, 2.0

#: The clipping threshold of each kind of training, and its share of the stated noise.
KINDS = {"honest": (1.0, 1.0), "without noise": (1.0, 0.0), "without privacy": (np.inf, 0.0)}


def passed(weights: list[Array], inputs: Array, labels: Array) -> tuple[Array, list[Any]]:
    """The loss of each example, and the two vectors of its gradient in each layer."""
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
    (inputs, labels), (clip, share), weights = data, KINDS[kind], [each.copy() for each in first]
    sigma = share * noise_multiplier(CLAIM, DELTA, STEPS, SAMPLE_RATE)
    for _ in range(STEPS):
        batch = rng.random(len(labels)) < SAMPLE_RATE
        _, layers = passed(weights, inputs[batch], labels[batch])
        kept = np.minimum(1, clip / np.maximum(norms(layers), 1e-9))[:, None]
        for weight, (x, e) in zip(weights, layers, strict=True):
            noise = sigma * rng.standard_normal(weight.shape, dtype=np.float32) if sigma else 0
            weight -= LEARNING_RATE / (SAMPLE_RATE * DIGITS) * (x.T @ (kept * e) + noise)
    return weights


def scores(models: list[list[Array]], inputs: Array, labels: Array) -> dict[str, Array]:
    """Scores by the first, the last and a reference model, high for what seems to be included."""
    (_, start), (loss, end), (usual, _) = (passed(model, inputs, labels) for model in models)

    def along(origin: list[Array]) -> Array:  # how far weights went against its first gradient
        layers = zip(start, origin, models[1], strict=True)
        return sum(((x @ (before - after)) * e).sum(axis=1) for (x, e), before, after in layers)

    return {
        "loss": -loss,
        "loss against a reference": usual - loss,
        "gradient norm": -norms(end),
        "alignment": along(models[0]),
        "alignment against a reference": along(models[2]),
    }


def black_box(runs: int = 20) -> pd.DataFrame:
    """A row for each training and score, with right guesses; a reference sees no canary."""
    stated = Training(noise_multiplier(CLAIM, DELTA, STEPS, SAMPLE_RATE), SAMPLE_RATE, STEPS)
    pixels, labels, rows = digits()[0].astype(np.float32), digits()[1], []
    for run in tqdm(range(runs), disable=None, leave=False):
        rng, canaries = np.random.default_rng(run), mislabelled(labels, CANARIES, seed=run)
        shapes = (PIXELS, HIDDEN), (HIDDEN, CLASSES)
        first = [rng.normal(scale=m**-0.5, size=(m, o)).astype(np.float32) for m, o in shapes]
        others = np.delete(np.arange(DIGITS), canaries.rows)
        reference = train(first, (pixels[others], labels[others]), "without noise", rng)
        kept, taught = canaries.training_set(labels)
        for kind in KINDS:
            last = train(first, (pixels[kept], taught), kind, rng)
            found = scores([first, last, reference], pixels[canaries.rows], canaries.labels)
            for score, values in found.items():
                setup = Setup(training=stated, delta=DELTA)
                counted = judge_scores(values, canaries.included, setup)
                test = counted.test
                assert test is not None  # as a training is stated
                row = {"kind": kind, "score": score, "run": run, "right": test.right}
                row |= {"guesses": test.guesses, "need": test.need, "refuted": test.refuted}
                rows.append(row | {"bound": counted.bound.epsilon})
    return pd.DataFrame(rows)

"""Train with TensorFlow Privacy and write the scores of its canaries to a file: ``make tf-scores``.

TensorFlow Privacy 0.9.0 asks for NumPy 1 and oralib for NumPy 2, so this script has an environment
of its own (``requirements-tf.txt``) and does without oralib. The chapter *Scores from Opacus,
jax_privacy and TF-Privacy* has the same task, canaries and coins; it shows lines of this script and
reads its file. Beside it lies another file that says how it was made.
"""

import argparse
import hashlib
import json
from importlib.metadata import version
from math import inf
from pathlib import Path

import numpy as np
import pandas as pd
import tensorflow as tf
from sklearn.datasets import load_digits
from tensorflow import keras
from tensorflow_privacy import DPKerasSGDOptimizer

N, STEPS, SAMPLE_RATE, LEARNING_RATE, CLIP = 2000, 100, 0.1, 2.0, 1.0
#: The size of every batch: about 280 are drawn, and the others do not count.
PADDED = 512
CRITERION = keras.losses.SparseCategoricalCrossentropy(
    from_logits=True,
    reduction="none",  # the loss of each example: a mean could not be clipped
)


def task(seed):
    """Digits and canaries, what they should be taken for, and who is in the training data."""
    rng = np.random.default_rng(seed)
    pixels, labels = load_digits(return_X_y=True)
    directions = rng.normal(size=(N, 1000))
    directions *= 3 / np.linalg.norm(directions, axis=1, keepdims=True)
    inputs = np.zeros((len(labels) + N, 64 + 1000), dtype=np.float32)
    inputs[: len(labels), :64] = pixels / 16
    inputs[len(labels) :, 64:] = directions
    wanted = np.append(labels, rng.integers(10, size=N))
    present = np.append(np.ones(len(labels), dtype=bool), rng.random(N) < 0.5)
    return inputs, wanted, present


def train(inputs, wanted, present, sigma, seed):
    """The linear model after its last step."""
    layer = keras.layers.Dense(10, use_bias=False, kernel_initializer="zeros")
    model = keras.Sequential([layer])
    optimizer = DPKerasSGDOptimizer(
        l2_norm_clip=CLIP,
        noise_multiplier=sigma,
        num_microbatches=PADDED,  # each example is clipped by itself
        # Sums are divided by PADDED; this makes it SAMPLE_RATE * len(inputs).
        learning_rate=LEARNING_RATE * PADDED / (SAMPLE_RATE * len(inputs)),
    )
    model.compile(optimizer, loss=CRITERION)
    rng, people = np.random.default_rng(seed), np.flatnonzero(present)
    for _ in range(STEPS):
        drawn = people[rng.random(len(people)) < SAMPLE_RATE]
        batch = np.pad(drawn, (0, PADDED - len(drawn)))
        there = (np.arange(PADDED) < len(drawn)).astype(np.float32)
        x, y = inputs[batch], wanted[batch]
        model.train_on_batch(x, y, sample_weight=there)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--sigma", type=float, required=True, help="the noise multiplier")
    parser.add_argument("--seed", type=int, default=33, help="of all random numbers")
    parser.add_argument("--out", type=Path, required=True, help="the file, with the ending csv")
    options = parser.parse_args()
    if not 0 < options.sigma < inf:
        parser.error(f"--sigma must be above 0 and finite, got {options.sigma:g}")
    if not 0 <= options.seed < 2**32 - 1:
        parser.error(f"--seed must be from 0 to 2^32 - 2, got {options.seed}")
    if options.out.suffix != ".csv":
        parser.error(f"--out must end with .csv, got {options.out}")

    tf.config.set_visible_devices([], "GPU")
    tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(options.seed)  # of the noise
    inputs, wanted, present = task(options.seed)
    model = train(inputs, wanted, present, options.sigma, options.seed + 1)

    canaries, secrets, included = inputs[-N:], wanted[-N:], present[-N:]
    losses = CRITERION(secrets, model(canaries)).numpy()
    table = pd.DataFrame({"score": -losses, "included": included})
    table.to_csv(options.out, index=False, float_format="%.6f")

    found = model(inputs[:-N]).numpy().argmax(axis=1)
    made = {
        "tensorflow": version("tensorflow"),
        "tensorflow_privacy": version("tensorflow-privacy"),
        "sigma": options.sigma,
        "seed": options.seed,
        "n": N,
        "steps": STEPS,
        "sample_rate": SAMPLE_RATE,
        "accuracy": round(float((found == wanted[:-N]).mean()), 6),
        "script": hashlib.sha256(Path(__file__).read_bytes()).hexdigest(),
    }
    options.out.with_suffix(".json").write_text(json.dumps(made, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""Opacus divides by a number that depends on the number of examples, which is private.

In ``make_private`` the expected size of a batch is the number of examples divided by the number of
batches, rounded down. With a mean loss, the default, every released gradient is divided by it, and
so is its noise. So the noise reveals something about the number of examples.
"""

import numpy as np
from numpy.typing import NDArray

from orabook.trainings.digits import LARGEST_SEED
from oralib.ground import arguments
from oralib.ground.extras import needed

__all__ = ["expected_batch", "release_noise"]


def expected_batch(examples: int, batch_size: int) -> int:
    """The number by which Opacus 1.6.0 divides gradients, for these sizes of data and batch.

    >>> [expected_batch(examples, 10) for examples in (100, 101, 109, 110, 111)]
    [10, 9, 9, 10, 9]
    """
    examples = arguments.integer("examples", examples, 1)
    batches = -(-examples // arguments.integer("batch_size", batch_size, 1))
    # Opacus asks its own loader for the number of batches. The loader keeps only the sample rate,
    # one over that number, and computes it back with rounding: 1 / (1 / 93) is less than 93.
    batches = int(1 / (1 / batches))
    return int(examples * (1 / batches))


def release_noise(
    examples: int,
    *,
    weights: int = 20_000,
    batch_size: int = 10,
    steps: int = 1,
    ghost: bool = False,
    seed: int,
) -> NDArray[np.float64]:
    """Train with Opacus on a number of examples that are all zero, and release the weights.

    Gradients of this linear model are zero, so its weights are the sum of the noise of all steps,
    divided by :func:`expected_batch`. Ghost clipping needs so little memory that a model may have a
    million weights.
    """
    examples = arguments.integer("examples", examples, 1, 10**7)
    weights = arguments.integer("weights", weights, 1, 10**8)
    batch_size = arguments.integer("batch_size", batch_size, 1, examples)
    steps = arguments.integer("steps", steps, 1, 10**6)
    seed = arguments.integer("seed", seed, 0, LARGEST_SEED)
    with needed("torch", "opacus"):
        from orabook.trainings import _opacus
    return _opacus.release_noise(examples, weights, batch_size, steps, seed, ghost)

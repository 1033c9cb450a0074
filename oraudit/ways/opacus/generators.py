"""The generators of random numbers, left as they were by whatever an audit draws from them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

__all__ = ["seed_of", "untouched"]


@contextmanager
def untouched() -> Iterator[None]:
    """Leave the generators of Python, NumPy and PyTorch on the processor as they were."""
    python = random.getstate()
    numpy = np.random.get_state()  # noqa: NPY002
    pytorch = torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        torch.set_rng_state(pytorch)


def seed_of(generator: Any, device: torch.device) -> int | None:
    """Return the seed of a generator, or of the device's own one; None where there is none."""
    if generator is None:
        if device.type == "cpu":
            generator = torch.default_generator
        elif device.type == "cuda":
            generator = torch.cuda.default_generators[device.index or 0]
    try:
        return int(generator.initial_seed())
    except (AttributeError, RuntimeError):
        return None

"""The test whether the inputs of a model can be told apart by their fingerprints.

They can if an example always has the same input, the one of the data set. After random
augmentation, or another change in the training, an example that comes again has another
fingerprint; and if inputs have few values, many examples share a fingerprint. In both cases the
audit does not compare examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils import _pytree as pytree

from oraudit.records.batches import fingerprints
from oraudit.ways.opacus.generators import untouched

__all__ = ["are_examples"]

#: The examples of the data set that are looked for among the inputs.
TRIES = 32

#: The most distinct inputs that may be examples, as a share of the number of examples.
MOST_DISTINCT = 1.02

#: The largest share of equal inputs in a batch with which they tell examples apart.
MOST_EQUAL = 0.01

#: The smallest share of the expected examples among the inputs, if inputs do not change.
LEAST_FOUND = 0.8


def are_examples(
    prints: Sequence[NDArray[np.int64] | None], rates: Sequence[float], dataset: Any
) -> bool:
    """Return whether fingerprints of inputs, batch by batch, belong to examples of a data set."""
    batches = [batch for batch in prints if batch is not None]
    if not batches or len(batches) < len(prints):
        return False
    inputs = set(np.concatenate(batches).tolist())
    examples = len(dataset)
    counts = np.concatenate([np.unique(batch, return_counts=True)[1] for batch in batches])
    # If each input is in its batch twice, say, the training repeats examples: divide by that.
    counts = counts // max(int(np.gcd.reduce(counts)), 1)
    if (counts - 1).sum() > MOST_EQUAL * counts.sum() or len(inputs) > MOST_DISTINCT * examples:
        return False
    places = np.unique(np.linspace(0, examples - 1, TRIES).astype(int))
    with untouched():
        try:
            hits = sum(not inputs.isdisjoint(_prints_of(dataset[int(place)])) for place in places)
        except Exception:
            # A data set that cannot be asked for an example.
            return False
    share = 1 - float(np.prod(1 - np.asarray(rates)))
    spread = np.sqrt(len(places) * share * (1 - share))
    return hits >= LEAST_FOUND * len(places) * share - 3 * spread and hits > 0


def _prints_of(example: Any) -> list[int]:
    """Return the fingerprints of all arrays of an example."""
    numbers = []
    for leaf in pytree.tree_leaves(example):
        if isinstance(leaf, torch.Tensor) and leaf.numel():
            numbers += fingerprints(leaf[None]).tolist()
        elif isinstance(leaf, np.ndarray) and leaf.size:
            numbers += fingerprints(torch.from_numpy(leaf)[None]).tolist()
    return numbers

"""Whether the inputs that a model is given can be told apart by their fingerprints.

They can if they are the data set's own, each time the same. With random augmentation, or where the
training changes them, an example that comes again has another fingerprint, and where inputs have
few values, many examples have the same: then nothing is said.
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

#: How many examples of the data set are looked for among the inputs.
TRIES = 32

#: More distinct inputs than this share of the number of examples are no examples.
MOST_DISTINCT = 1.02

#: With a larger share of equal inputs in a batch, they do not tell examples apart.
MOST_EQUAL = 0.01

#: A smaller share of the expected examples found among the inputs shows that inputs change.
LEAST_FOUND = 0.8


def are_examples(
    prints: Sequence[NDArray[np.int64] | None], rates: Sequence[float], dataset: Any
) -> bool:
    """Whether the inputs with these fingerprints, batch by batch, are those of a data set."""
    known = [each for each in prints if each is not None]
    if not known or len(known) < len(prints):
        return False
    seen = set(np.concatenate(known).tolist())
    examples = len(dataset)
    counts = np.concatenate([np.unique(each, return_counts=True)[1] for each in known])
    # Where each is in its batch twice, say, that is no accident of their values.
    counts = counts // max(int(np.gcd.reduce(counts)), 1)
    if (counts - 1).sum() > MOST_EQUAL * counts.sum() or len(seen) > MOST_DISTINCT * examples:
        return False
    places = np.unique(np.linspace(0, examples - 1, TRIES).astype(int))
    with untouched():
        try:
            found = sum(not seen.isdisjoint(_prints_of(dataset[int(place)])) for place in places)
        except Exception:
            # A data set that cannot be asked for an example.
            return False
    share = 1 - float(np.prod(1 - np.asarray(rates)))
    spread = np.sqrt(len(places) * share * (1 - share))
    return found >= LEAST_FOUND * len(places) * share - 3 * spread and found > 0


def _prints_of(example: Any) -> list[int]:
    """The fingerprints of all arrays of an example."""
    found = []
    for leaf in pytree.tree_leaves(example):
        if isinstance(leaf, torch.Tensor) and leaf.numel():
            found += fingerprints(leaf[None]).tolist()
        elif isinstance(leaf, np.ndarray) and leaf.size:
            found += fingerprints(torch.from_numpy(leaf)[None]).tolist()
    return found

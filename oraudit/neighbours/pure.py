"""The neighbour test of a pure function: JAX, and loops of one's own.

>>> import numpy as np
>>> def step(state, batch, released=None):
...     if released is None:
...         norms = np.linalg.norm(batch, axis=1, keepdims=True)
...         released = (batch * np.minimum(1, 1 / np.maximum(norms, 1e-12))).sum(0)
...     return released, state - 0.1 * released
>>> batch = np.random.default_rng(1).normal(size=(30, 4))
>>> neighbours_of(step, np.zeros(4), batch, clip=1.0, scale=1.0).status
'passed'
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oraudit.neighbours.compare import NeighbourResult, Outcome, Release, Variant, compare
from oraudit.records.arrays import leaves

__all__ = ["neighbours_of"]


def neighbours_of(
    step: Callable[..., tuple[Any, Any]],
    state: Any,
    batch: Any,
    *,
    clip: float,
    scale: float,
    tries: int = 60,
) -> NeighbourResult:
    """Test a step that is a function of a state and a batch, without its noise.

    Parameters
    ----------
    step
        ``step(state, batch)`` returns what is released, before the noise, and the new state; and
        ``step(state, batch, released)`` does the same with this release in place of its own. Random
        numbers of the step must be the same each time, and of each example its own.
    state
        Whatever the step needs and changes: arrays, alone or in lists and dictionaries.
    batch
        The examples, along the first axis of each array.
    clip
        C, in the units of the sum.
    scale
        What the sum is divided by before it is released: 1 if it is a sum.
    tries
        The most examples to take out in turn.
    """
    size = len(leaves(batch)[0])
    return compare(_PureTrial(step, state, batch), size, clip=clip, scale=scale, tries=tries)


class _PureTrial:
    def __init__(self, step: Callable[..., tuple[Any, Any]], state: Any, batch: Any) -> None:
        self._step = step
        self._state = state
        self._batch = batch
        self.names: Sequence[str] = ()

    def run(self, variant: Variant) -> Outcome:
        batch = _mapped(
            self._batch, lambda array: _altered(np.asarray(array)[variant.keep], variant.factor)
        )
        state = copy.deepcopy(self._state)
        if variant.instead is None:
            released, state = self._step(state, batch)
            self._form = released
        else:
            released, state = self._step(state, batch, _in_form(self._form, variant.instead[0]))
        arrays = [np.asarray(each, dtype=float) for each in leaves(released)]
        self.names = [str(place) for place in range(len(arrays))]
        left = {f"state {place}": np.asarray(each) for place, each in enumerate(leaves(state))}
        return Outcome([arrays], left)

    def explained(self, name: str) -> str:
        return ""


def _altered(array: NDArray[Any], factor: float | None) -> NDArray[Any]:
    if factor is None or array.dtype.kind != "f":
        return array
    array = array.copy()
    array[0] = array[0] * factor
    return array


def _mapped(tree: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(tree, Mapping):
        return {key: _mapped(value, change) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(_mapped(value, change) for value in tree)
    return change(tree)


def _in_form(form: Any, arrays: Release) -> Any:
    """The arrays of a release in the nested structure that the step returns them in."""
    rest = iter(arrays)

    def filled(tree: Any) -> Any:
        if isinstance(tree, Mapping):
            found = {key: filled(tree[key]) for key in sorted(tree)}
            return {key: found[key] for key in tree}
        if isinstance(tree, list | tuple):
            return type(tree)(filled(value) for value in tree)
        return next(rest)

    return filled(form)

"""The neighbour test of a pure function: JAX, and loops of one's own."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oraudit.neighbour_test.compare import NeighbourResult, Outcome, Release, Variant, compare
from oraudit.records.arrays import leaves, namespace

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
        ``step(state, batch)`` returns the release, before the noise, and the new state; and
        ``step(state, batch, released)`` does the same with this release in place of its own. Its
        random numbers must be the same each time, and an example must keep its own when another
        one is taken out. ``released`` has the kind and precision of the release that the step
        returned.
    state
        Whatever the step needs and changes: arrays, alone or in lists and dictionaries.
    batch
        The examples, along the first axis of each array.
    clip
        C, in the units of the sum.
    scale
        The divisor of the sum before it is released: 1 if the sum is released.
    tries
        The most examples to take out in turn.

    Examples
    --------
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
    size = len(leaves(batch)[0])
    return compare(_PureTrial(step, state, batch), size, clip=clip, scale=scale, tries=tries)


class _PureTrial:
    def __init__(self, step: Callable[..., tuple[Any, Any]], state: Any, batch: Any) -> None:
        self._step = step
        self._state = state
        self._batch = batch
        self.names: Sequence[str] = ()
        #: A release as the step returned it, whose structure other releases are put into.
        self._form: Any = None

    def run(self, variant: Variant) -> Outcome:
        def varied(array: Any) -> Any:
            return _altered(_chosen(array, variant.keep), variant.factor)

        batch = _mapped(self._batch, varied)
        state = copy.deepcopy(self._state)
        if variant.instead is None:
            released, state = self._step(state, batch)
            self._form = released
        else:
            # The test calls the step without a release first, so the form is known.
            released, state = self._step(state, batch, _in_form(self._form, variant.instead[0]))
        arrays = [_numbers(leaf) for leaf in leaves(released)]
        self.names = _places(released)
        places = zip(_places(state), leaves(state), strict=True)
        return Outcome([arrays], {f"state{place}": _numbers(leaf) for place, leaf in places})

    def explained(self, name: str) -> str:
        return ""


def _chosen(array: Any, keep: NDArray[np.int64]) -> Any:
    """Return some of the examples, in an array of the step's own kind."""
    return array[keep] if hasattr(array, "dtype") else np.asarray(array)[keep]


def _altered(array: Any, factor: float | None) -> Any:
    """Return the array with its first example times the factor, if it is floating-point."""
    if factor is None or _numbers(array[:0]).dtype.kind != "f":
        return array
    # A factor for each example, with axes of length 1 to multiply the others.
    axes = [1] * (array.ndim - 1)
    factors = np.ones((len(array), *axes))
    factors[0] = factor
    return array * _like(factors, array)


def _numbers(array: Any) -> NDArray[Any]:
    """Return an array of NumPy, in double precision if it is floating-point."""
    if namespace(array) is not np:
        array = array.cpu()
        array = (array.double() if array.is_floating_point() else array).numpy()
    real = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
    return np.asarray(array, dtype=float) if real else np.asarray(array)


def _like(numbers: NDArray[np.float64], array: Any) -> Any:
    """Return numbers in an array of the library and precision of another array."""
    if namespace(array) is not np:
        return array.new_tensor(numbers)
    if not hasattr(array, "dtype"):
        return numbers
    if hasattr(array, "__array_namespace__"):  # of JAX, too
        return array.__array_namespace__().asarray(numbers, dtype=array.dtype)
    return np.asarray(numbers, dtype=array.dtype)


def _mapped(tree: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(tree, Mapping):
        return {key: _mapped(value, change) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return _sequence_like(tree, [_mapped(value, change) for value in tree])
    return change(tree)


def _sequence_like(example: Any, values: list[Any]) -> Any:
    """Return values in a list or tuple of the type of another one, which may be a NamedTuple."""
    kind = type(example)
    return kind(*values) if hasattr(example, "_fields") else kind(values)


def _in_form(form: Any, arrays: Release) -> Any:
    """Return the arrays of a release in the nested structure that the step returns them in."""
    rest = iter(array for array in arrays if array is not None)

    def filled(tree: Any) -> Any:
        if isinstance(tree, Mapping):
            # In the order of leaves(), which sorts keys; then in the step's own order.
            filled_by_key = {key: filled(tree[key]) for key in sorted(tree)}
            return {key: filled_by_key[key] for key in tree}
        if isinstance(tree, list | tuple):
            return _sequence_like(tree, [filled(value) for value in tree])
        return _like(next(rest), tree)

    return filled(form)


def _places(tree: Any, before: str = "") -> list[str]:
    """Return the place of each array in a nested structure, as one writes it: ["mean"][0]."""
    if isinstance(tree, Mapping):
        branches = [(f"[{key!r}]", tree[key]) for key in sorted(tree)]
    elif isinstance(tree, list | tuple):
        branches = [(f"[{number}]", branch) for number, branch in enumerate(tree)]
    else:
        return [before]
    return [place for key, branch in branches for place in _places(branch, f"{before}{key}")]

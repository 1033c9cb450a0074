"""The arrays that a loop gives to an audit, alone or in nested lists and dictionaries."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from oraudit.records.arrays import leaves, namespace

__all__ = ["arrays", "branches", "filled", "rows"]


def branches(tree: Any) -> dict[str, Any]:
    """Return the arrays of a nested structure by their names, in the order of ``leaves``.

    >>> branches({"b": 1.0, "a": {"x": 2.0, "w": [3.0]}})
    {'a.w.0': 3.0, 'a.x': 2.0, 'b': 1.0}
    """
    leaves_by_name: dict[str, Any] = {}
    _walk(tree, "", leaves_by_name)
    return leaves_by_name


def _walk(tree: Any, path: str, leaves_by_name: dict[str, Any]) -> None:
    if isinstance(tree, Mapping):
        for key in sorted(tree):
            _walk(tree[key], f"{path}.{key}" if path else str(key), leaves_by_name)
    elif isinstance(tree, list | tuple):
        for place, branch in enumerate(tree):
            _walk(branch, f"{path}.{place}" if path else str(place), leaves_by_name)
    else:
        leaves_by_name[path or "0"] = tree


def filled(tree: Any, arrays: Sequence[Any]) -> Any:
    """Return the structure with other arrays, which are in the order of :func:`branches`.

    >>> filled({"b": 1.0, "a": (2.0, [3.0])}, [10, 20, 30])
    {'b': 30, 'a': (10, [20])}
    """
    return _filled(tree, iter(arrays))


def _filled(tree: Any, arrays: Iterator[Any]) -> Any:
    if isinstance(tree, Mapping):
        branches_by_key = {key: _filled(tree[key], arrays) for key in sorted(tree)}
        ordered = {key: branches_by_key[key] for key in tree}
        return ordered if type(tree) is dict else type(tree)(ordered)  # type: ignore[call-arg]
    if isinstance(tree, list | tuple):
        parts = [_filled(branch, arrays) for branch in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return next(arrays)


def arrays(argument: str, tree: Any, shapes: Mapping[str, tuple[int, ...]]) -> list[Any]:
    """Return the arrays of an argument, which must have these names and shapes.

    JAX's become arrays of NumPy; PyTorch's stay where they are.
    """
    leaves_by_name = branches(tree)
    if leaves_by_name.keys() != shapes.keys():
        names = _few(list(leaves_by_name))
        raise ValueError(
            f"{argument} has the arrays {names}; it must have those of clipped in the first step, "
            f"{_few(list(shapes))}"
        )
    checked = []
    for name, leaf in leaves_by_name.items():
        if namespace(leaf) is np:
            array = np.asarray(leaf)
        else:
            array = leaf.detach() if leaf.requires_grad else leaf
        if array.shape != shapes[name]:
            raise ValueError(
                f"{argument} has the shape {tuple(array.shape)} at {name!r}; it must be "
                f"{shapes[name]}"
            )
        if not _is_real(array):
            raise ValueError(
                f"{argument} has the type {array.dtype} at {name!r}; it must be float16, float32, "
                "float64 or, in PyTorch, bfloat16"
            )
        checked.append(array)
    return checked


def _is_real(array: Any) -> bool:
    if namespace(array) is np:
        return bool(array.dtype.kind == "f")
    return bool(array.is_floating_point())


def _few(names: Sequence[str]) -> str:
    first = ", ".join(map(repr, names[:5]))
    return f"{first} and {len(names) - 5} more" if len(names) > 5 else first or "none"


def rows(tree: Any) -> Any:
    """Return the examples of a batch as the rows of one array, whatever structure they have."""
    parts = leaves(tree)
    if len(parts) == 1:
        return parts[0]
    flat = [part.reshape(len(part), math.prod(part.shape[1:])) for part in parts]
    return namespace(flat[0]).concatenate(flat, 1)

"""Arrays of NumPy, PyTorch and JAX in one form, so that what is measured is written once."""

import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["here", "leaves", "namespace", "rows"]


def namespace(array: Any) -> ModuleType:
    """Return the module whose functions take this array: PyTorch for its tensors, otherwise NumPy.

    >>> namespace(np.ones(2)).__name__
    'numpy'
    """
    if type(array).__module__.partition(".")[0] == "torch":
        import torch

        return torch
    return np


def here(array: Any) -> NDArray[Any]:
    """Return an array of any device as one of NumPy, in the memory of this process.

    >>> here(np.ones(2))
    array([1., 1.])
    """
    return np.asarray(array.detach().cpu() if hasattr(array, "detach") else array)


def rows(array: Any) -> Any:
    """Return the array as a table, a row for each place of its first axis; there may be none.

    >>> rows(np.ones((0, 2, 3))).shape
    (0, 6)
    """
    return array.reshape(len(array), math.prod(array.shape[1:]))


def leaves(tree: Any) -> list[Any]:
    """Return the arrays of a nested structure in a fixed order; those of JAX become NumPy's.

    >>> leaves({"b": np.ones(2), "a": [1.0, 2.0]})
    [array(1.), array(2.), array([1., 1.])]
    """
    if isinstance(tree, Mapping):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, list | tuple):
        return [leaf for branch in tree for leaf in leaves(branch)]
    if namespace(tree) is np:
        return [np.asarray(tree)]
    return [tree.detach()]

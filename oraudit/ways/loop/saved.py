"""The saved state of an audit of a loop: checks of the record and of all its other parts."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oraudit.records.saved import check_canaries, check_record
from oraudit.records.values import (
    check_fields,
    check_steps,
    damaged,
    number,
    reals,
    rows,
    whole,
    words,
)

__all__ = ["COMPARISON_FIELDS", "GIVEN", "check_content"]

#: The parts of a saved state.
_PARTS = ("record", "shapes", "moves", "buffers", "given", "canaries")

#: The fields of the comparison of a move of the weights with the noise of a step.
COMPARISON_FIELDS = ("felt", "noisiness", "clean", "numbers")

#: The arguments of a step whose presence is counted.
GIVEN = ("inputs", "weights", "buffers", "rate", "per_example", "batch")


def check_content(content: Mapping[str, Any], n_canaries: int) -> None:
    """Raise ValueError unless an audit of a loop with ``n_canaries`` can have saved ``content``."""
    check_fields("the state", content, _PARTS)
    shapes = content["shapes"]
    steps = check_record(content["record"], _names_in(shapes))
    _check_shapes(shapes, content["record"]["noise"]["sizes"])
    _check_moves(content["moves"], steps)
    _check_buffers(content["buffers"], steps)
    _check_given(content["given"], steps)
    weights = sum(map(math.prod, shapes.values()))
    # Canaries are placed in the first step, so before it they are None.
    if steps or content["canaries"] is not None:
        check_canaries(content["canaries"], n_canaries, weights, steps)


def _names_in(shapes: Any) -> list[str]:
    if not isinstance(shapes, Mapping):
        raise damaged("shapes", "a dictionary", shapes)
    return list(shapes)


def _check_shapes(shapes: Mapping[str, Any], sizes: Sequence[int]) -> None:
    """Raise ValueError for shapes of tensors whose element counts differ from the noise's."""
    for name, shape in shapes.items():
        for length in rows(f"the shape of {name}", shape, 0, 64):
            whole(f"the shape of {name}", length, 0, 2**48)
    products = [math.prod(shape) for shape in shapes.values()]
    # Before the first step no noise is known, and it has no sizes.
    if list(sizes) not in (products, []):
        raise damaged("shapes", f"of tensors with {list(sizes)} numbers", products)


def _check_given(given: Any, steps: int) -> None:
    """Raise ValueError unless ``given`` can count the arguments of ``steps`` steps."""
    # The first step makes a count for each argument; before it there are none.
    if given or steps:
        check_fields("given", given, GIVEN)
    elif not isinstance(given, Mapping):
        raise damaged("given", "a dictionary", given)
    for name, times in given.items():
        whole(f"the steps that {name} was given in", times, 0, steps)


def _check_moves(state: Any, steps: int) -> None:
    """Raise ValueError unless ``state`` could come from ``steps`` steps and one under way."""
    check_fields("moves", state, ("steps", "rows", "precision", "felt"))
    times = check_steps("the steps of moves", state["steps"], steps + 1)
    for row in rows("the products of moves", state["rows"], times):
        reals("each of the products of moves", row, (4, 4))
        reals("each square of moves", np.diag(row), low=0)
    number("the precision of moves", state["precision"], 0, 1)
    for row in rows("the comparisons of moves with the noise", state["felt"], 0, steps + 1):
        part = "the comparison of a move with the noise"
        step, own_step, step_before = rows(part, row, 3)
        whole(f"the step of {part}", step, 1, steps + 1)
        for comparison in (own_step, step_before):
            check_fields(part, comparison, COMPARISON_FIELDS)
            for name, value in comparison.items():
                number(f"the {name} of {part}", value, or_nan=True)


def _check_buffers(state: Any, steps: int) -> None:
    """Raise ValueError unless ``state`` could come from ``steps`` steps and one under way."""
    check_fields("buffers", state, ("names", "steps", "rows"))
    names = words("the names of buffers", state["names"])
    times = check_steps("the steps of buffers", state["steps"], steps + 1)
    # Of each buffer a sum and a sum of squares.
    for row in rows("the sums of buffers", state["rows"], times):
        reals("each of the sums of buffers", row, (2 * len(names),))

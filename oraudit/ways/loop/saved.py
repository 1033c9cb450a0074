"""The saved state of an audit of a loop: what must be in it beside the record."""

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

__all__ = ["FELT", "GIVEN", "check_content"]

#: The parts of a saved state.
PARTS = ("record", "shapes", "moves", "buffers", "given", "canaries")

#: The numbers that are kept of a move of the weights, beside the noise.
FELT = ("felt", "noisiness", "clean", "numbers")

#: The arguments of a step whose presence is counted.
GIVEN = ("inputs", "weights", "buffers", "rate", "per_example", "batch")


def check_content(content: Mapping[str, Any], canaries: int) -> None:
    """Refuse what no audit of a loop with so many canaries has saved."""
    check_fields("the state", content, PARTS)
    shapes = content["shapes"]
    steps = check_record(content["record"], _names_in(shapes))
    _check_shapes(shapes, content["record"]["noise"]["sizes"])
    _check_moves(content["moves"], steps)
    _check_buffers(content["buffers"], steps)
    _check_given(content["given"], steps)
    weights = sum(map(math.prod, shapes.values()))
    if steps or content["canaries"] is not None:
        check_canaries(content["canaries"], canaries, weights, steps)


def _names_in(shapes: Any) -> list[str]:
    if not isinstance(shapes, Mapping):
        raise damaged("shapes", "a dictionary", shapes)
    return list(shapes)


def _check_shapes(shapes: Mapping[str, Any], sizes: Sequence[int]) -> None:
    """Refuse shapes of tensors that have other numbers than their noise."""
    for name, shape in shapes.items():
        for length in rows(f"the shape of {name}", shape, 0, 64):
            whole(f"the shape of {name}", length, 0, 2**48)
    products = [math.prod(shape) for shape in shapes.values()]
    if list(sizes) not in (products, []):
        raise damaged("shapes", f"of tensors with {list(sizes)} numbers", products)


def _check_given(given: Any, steps: int) -> None:
    """Refuse counts of given arguments that no training with so many steps has."""
    if given or steps:
        check_fields("given", given, GIVEN)
    elif not isinstance(given, Mapping):
        raise damaged("given", "a dictionary", given)
    for name, times in given.items():
        whole(f"the steps that {name} was given in", times, 0, steps)


def _check_moves(state: Any, steps: int) -> None:
    """Refuse moves that no weights make in so many steps and the one under way."""
    check_fields("moves", state, ("steps", "rows", "precision", "felt"))
    times = check_steps("the steps of moves", state["steps"], steps + 1)
    for row in rows("the products of moves", state["rows"], times):
        reals("each of the products of moves", row, (4, 4))
        reals("each square of moves", np.diag(row), low=0)
    number("the precision of moves", state["precision"], 0, 1)
    for felt in rows("what moves felt", state["felt"], 0, steps + 1):
        step, *moves = rows("each of what moves felt", felt, 3)
        whole("the step of what moves felt", step, 1, steps + 1)
        for move in moves:
            check_fields("what a move felt", move, FELT)
            for name, value in move.items():
                number(f"the {name} of a move", value, or_nan=True)


def _check_buffers(state: Any, steps: int) -> None:
    """Refuse what no buffers leave in so many steps and the one under way."""
    check_fields("buffers", state, ("names", "steps", "rows"))
    names = words("the names of buffers", state["names"])
    times = check_steps("the steps of buffers", state["steps"], steps + 1)
    for row in rows("the sums of buffers", state["rows"], times):
        reals("each of the sums of buffers", row, (2 * len(names),))

"""The saved state of an audit with Opacus: what must be in it, and tensors in place of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from oraudit.records.saved import check_canaries, check_causes, check_event, check_record
from oraudit.records.values import (
    MOST_STEPS,
    check_fields,
    damaged,
    reals,
    rows,
    whole,
)

__all__ = ["RANK_PARTS", "check_content", "check_ranks", "with_arrays", "with_tensors"]

#: The parts of the state of each audit, and those that ranks of a distributed training add.
PARTS = ("record", "account", "moved", "canaries")
RANK_PARTS = ("rows", "heard")


def with_tensors(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state that ``torch.load`` takes safely: with tensors in place of arrays."""
    return dict(pytree.tree_map(_as_tensor, state))


def with_arrays(state: Any) -> Any:
    """Return a state with arrays of NumPy in place of tensors."""
    return pytree.tree_map(_as_array, state)


def _as_tensor(leaf: Any) -> Any:
    return torch.from_numpy(np.asarray(leaf)) if isinstance(leaf, np.ndarray | np.generic) else leaf


def _as_array(leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    try:
        return leaf.detach().cpu().numpy()
    except (TypeError, RuntimeError):  # a kind of tensor that no audit saves
        raise damaged("a tensor", "one of numbers that NumPy has", leaf.dtype) from None


# A state may be saved within a step, when ``steps`` are finished: the step under way is steps + 1.
# As ranks meet in each step, another rank is at most one step ahead, in steps + 2.


def check_content(
    content: Mapping[str, Any], names: Sequence[str], canary_count: int, weight_count: int
) -> int:
    """Check what an audit of tensors with these names has saved; return its number of steps.

    ``canary_count`` and ``weight_count`` are the numbers of canaries, and of the weights of the
    model; both are 0 without canaries.
    """
    check_fields("the state", content, PARTS)
    steps = check_record(content["record"], names)
    _check_account(content["account"])
    check_canaries(content["canaries"], canary_count, weight_count, steps)
    # (step, norms before, norms after) of each gap between private steps
    for gap in rows("moved", content["moved"], 0, MOST_STEPS):
        step, before, after = rows("each of moved", gap, 3)
        whole("the step of moved", step, 1, steps + 1)
        reals("the norms before a move", before, (len(names),))
        reals("the norms after a move", after, (len(names),))
    return steps


def _check_account(account: Any) -> None:
    if account is None:
        return
    check_fields("the account", account, ("told", "earlier", "last"))
    whole("the told steps of the account", account["told"], 0)
    for name in ("earlier", "last"):
        if account[name] is not None:
            whole(f"the {name} of the account", account[name], 0)


def check_ranks(content: Mapping[str, Any], steps: int, shape: tuple[int, int]) -> None:
    """Check the parts that ranks add in ``steps`` finished steps: tables, and messages.

    The tables are one array (ranks, numbers told) for each step, all of this ``shape``.
    """
    check_fields("the state", content, (*PARTS, *RANK_PARTS))
    for table in rows("the tables of ranks", content["rows"], steps, steps + 2):
        if getattr(table, "shape", None) != shape:
            saved_shape = getattr(table, "shape", table)
            raise ValueError(
                f"the state is of other ranks or batches: its tables have {saved_shape}"
            )
        reals("each of the tables of ranks", table, kinds="i")
    for messages in rows("heard", content["heard"], shape[0]):
        for message in rows("the messages of a rank", messages, 0, MOST_STEPS):
            _check_message(message, steps)


def _check_message(message: Any, steps: int) -> None:
    check_fields("a message", message, ("events", "causes", "step"))
    whole("the step of a message", message["step"], 1, steps + 2)
    for event in rows("events heard", message["events"], 0, MOST_STEPS):
        check_event("an event heard", event, steps + 1)
    for causes in rows("causes heard", message["causes"], 0, MOST_STEPS):
        check_causes("causes heard", causes)

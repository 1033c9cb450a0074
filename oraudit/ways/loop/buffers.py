"""The buffers of a model, such as running means, which no private step may change."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oraudit.records.arrays import here, namespace

__all__ = ["Buffers"]


class Buffers:
    """Notes whether buffers change, which they must not; integers are counters, and may change."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._steps: list[int] = []
        self._rows: list[Any] = []

    def note(self, step: int, names: Sequence[str], buffers: Sequence[Any]) -> None:
        """Note the buffers of a step."""
        real = {
            name: array
            for name, array in zip(names, buffers, strict=True)
            if (array.dtype.kind == "f" if namespace(array) is np else array.is_floating_point())
        }
        if not self._names:
            self._names = list(real)
        if list(real) != self._names:
            raise ValueError(
                f"buffers has the arrays {', '.join(real) or 'none'}; it must have those of the "
                f"first step, {', '.join(self._names)}"
            )
        if real:
            xp = namespace(next(iter(real.values())))
            prints = [number for array in real.values() for number in _print(array)]
            self._steps.append(step)
            self._rows.append(xp.stack(prints))

    def changes(self) -> list[tuple[str, int]]:
        """Return the names of buffers that changed, each with the first step that shows it."""
        if not self._rows:
            return []
        table = np.array([here(row) for row in self._rows], dtype=float)
        table = table.reshape(len(table), len(self._names), -1)
        unchanged = ((table == table[0]) | (np.isnan(table) & np.isnan(table[0]))).all(2)
        return [
            (name, self._steps[int(column.argmin())])
            for name, column in zip(self._names, unchanged.T, strict=True)
            if not column.all()
        ]

    def state(self) -> dict[str, Any]:
        """Return all that is kept."""
        rows = [here(row) for row in self._rows]
        return {"names": list(self._names), "steps": list(self._steps), "rows": rows}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state` has returned."""
        self._names = list(state["names"])
        self._steps = list(state["steps"])
        self._rows = list(state["rows"])


def _print(array: Any) -> list[Any]:
    """Return two numbers that practically always differ between two arrays."""
    flat = array.reshape(-1)
    precise = flat.astype(float) if namespace(flat) is np else flat.double()
    return [precise.sum(), (precise * precise).sum()]

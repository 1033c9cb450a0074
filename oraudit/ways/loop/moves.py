"""The moves of weights from one step to the next.

Plain gradient descent moves the weights by a multiple of the noisy sum. If no move is such a
multiple, the optimizer uses momentum, Adam or weight decay. If some moves are multiples and others
are not, something other than the private step made the others. Moves and sums are compared on a
sample of the weights, on the device where the arrays are.

Weights of low precision are rounded in each step, by more than some moves. A difference that
rounding may explain accuses nobody. But it does not show a multiple, as any optimizer makes some
moves smaller than the rounding. So a move is called something else only if it is far less like a
multiple than the moves that may be multiples.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oraudit.records.around import move_numbers
from oraudit.records.arrays import here, namespace

__all__ = ["Moved", "Moves", "due"]

#: The share of a move by which rounding of the noisy sum may make it differ from a multiple; the
#: rounding of the weights comes on top.
ROUNDING = 1e-4

#: The fewest moves by multiples of the noisy sum that show that all moves ought to be multiples.
FEWEST_PLAIN = 3

#: For each move, take the share of it that is left when the nearest multiple of the noisy sum is
#: taken off. Something other than the private step made a move whose share exceeds FAR times the
#: median share of the moves that may be multiples.
FAR = 5


@dataclass(frozen=True)
class Moved:
    """The moves of the weights.

    Attributes
    ----------
    factors
        The multiple of the noisy sum by which each of T steps moved the weights; NaN if unknown.
    outside
        The steps before or in which something other than the private step moved the weights.
    unlike
        The reason why moves cannot be compared with multiples; "" if they can.
    comparisons
        For some steps, the comparison of a move with the noise of the step, as
        :func:`~oraudit.records.around.move_numbers` returns it.
    """

    factors: NDArray[np.float64]
    outside: tuple[int, ...] = ()
    unlike: str = ""
    comparisons: Mapping[int, Mapping[str, float]] = field(default_factory=dict)


class Moves:
    """Compares the move of the weights in each step with this noisy sum and the one before."""

    def __init__(self) -> None:
        self._precision = 0.0
        self._last: tuple[int, Any, Any] | None = None
        self._steps: list[int] = []
        self._rows: list[Any] = []
        self._clean: tuple[int, Any] | None = None
        # Step, comparison with the noise of this step, comparison with that of the step before.
        self._comparisons: list[tuple[int, dict[str, Any], dict[str, Any]]] = []

    def note(
        self,
        step: int,
        weights: Any,
        clipped: Any,
        noise: Any,
        precision: float,
        tensors: Sequence[slice] = (),
    ) -> None:
        """Note the weights of a step, either always before they are moved or always after it.

        Weights, clipped sum and noise are samples of the same places; ``precision`` is that of the
        weights, and ``tensors`` are their parts of a sample.
        """
        xp = namespace(weights)
        self._precision = precision
        push = clipped + noise
        push = push.astype(weights.dtype) if xp is np else push.to(weights)
        if self._last is not None and self._last[0] == step - 1:
            _, before, earlier_push = self._last
            self._rows.append(_products(weights, weights - before, push, earlier_push))
            self._steps.append(step)
            if due(step):
                self._compare(step, weights - before, push, earlier_push, clipped, tensors)
        clean = clipped.astype(weights.dtype) if xp is np else clipped.to(weights)
        self._clean = (step, clean) if due(step + 1) else None
        self._last = step, weights, push

    def _compare(
        self,
        step: int,
        move: Any,
        push: Any,
        earlier_push: Any,
        clipped: Any,
        tensors: Sequence[slice],
    ) -> None:
        """Compare a move with the noise of its own step and of the step before."""
        if self._clean is None or self._clean[0] != step - 1:
            return
        earlier = self._clean[1]
        clean = clipped.astype(move.dtype) if namespace(move) is np else clipped.to(move)
        own_step = move_numbers(move, clean, push - clean, tensors)
        step_before = move_numbers(move, earlier, earlier_push - earlier, tensors)
        self._comparisons.append((step, own_step, step_before))

    def finished(self, steps: int) -> Moved:
        """Return the moves of a training with ``steps`` steps."""
        return replace(self._moved(steps), comparisons=self._likelier_comparisons())

    def _likelier_comparisons(self) -> dict[int, dict[str, float]]:
        """Return the comparisons of moves with their own steps, or with the steps before.

        Weights may be noted before or after they are moved; the noise of the right steps explains
        more of the moves.
        """
        comparisons = self._comparisons_here()
        own_steps = {step: numbers for step, numbers, _ in comparisons}
        steps_before = {step - 1: numbers for step, _, numbers in comparisons}

        def explained(by_step: Mapping[int, Mapping[str, float]]) -> float:
            """Return how far moves follow the noise, or the sum, of these steps."""
            return sum(abs(numbers["felt"]) + 1 - numbers["clean"] for numbers in by_step.values())

        return own_steps if explained(own_steps) >= explained(steps_before) else steps_before

    def _comparisons_here(self) -> list[tuple[int, dict[str, float], dict[str, float]]]:
        """Return the comparisons as numbers of Python, from wherever the arrays are."""

        def floats(numbers: Mapping[str, Any]) -> dict[str, float]:
            return {name: float(number) for name, number in numbers.items()}

        return [
            (step, floats(own_step), floats(step_before))
            for step, own_step, step_before in self._comparisons
        ]

    def _moved(self, steps: int) -> Moved:
        factors = np.full(steps, np.nan)
        if not self._rows:
            return Moved(factors, unlike="fewer than two steps had them")
        products = np.array([here(row) for row in self._rows], dtype=float)
        size = np.sqrt(products[:, 1, 1])
        if not size.any():
            return Moved(factors, unlike="they never moved")
        allowed = ROUNDING * size + 4 * self._precision * np.sqrt(products[:, 0, 0])
        multiples, left = _left(products, 2)
        earlier, earlier_left = _left(products, 3)
        after_the_step = _likeness(left, allowed, size) >= _likeness(earlier_left, allowed, size)
        if not after_the_step:
            multiples = earlier
            left = earlier_left
        fits = left <= allowed
        plain = fits & (size > 0)
        if plain.sum() < FEWEST_PLAIN:
            return Moved(
                factors,
                unlike="they do not move by multiples of the noisy sums: as by momentum, Adam or "
                "decay, or by gradients without noise",
            )
        far = FAR * float(np.median(left[plain] / size[plain]))
        if far >= 1:
            return Moved(
                factors, unlike="rounding hides whether their moves are multiples of the noisy sums"
            )
        numbers = np.array(self._steps)
        places = numbers - 1 if after_the_step else numbers - 2
        factors[places[fits]] = multiples[fits]
        return Moved(factors, outside=tuple(numbers[~fits & (left > far * size)].tolist()))

    def state(self) -> dict[str, Any]:
        """Return all that is kept, but for the weights themselves."""
        return {
            "steps": list(self._steps),
            "rows": [here(row) for row in self._rows],
            "precision": self._precision,
            "felt": self._comparisons_here(),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state` has returned."""
        self._steps = list(state["steps"])
        self._rows = list(state["rows"])
        self._precision = state["precision"]
        self._comparisons = list(state["felt"])


def due(step: int) -> bool:
    """Return whether to compare a move with the noise: in the first 10 steps, then in each 20th."""
    return step <= 10 or step % 20 == 0


def _products(now: Any, move: Any, push: Any, earlier_push: Any) -> Any:
    """Return the 4 x 4 products of these arrays, in double precision, as multiples cancel."""
    xp = namespace(now)
    rows = xp.stack([now, move, push, earlier_push])
    rows = rows.astype(float) if xp is np else rows.double()
    return rows @ rows.T


def _left(products: NDArray[np.float64], push: int) -> tuple[NDArray[np.float64], ...]:
    """Return the factor of the noisy sum nearest to each move, and the size of what is left.

    The noisy sum is column ``push`` of the products.
    """
    squares = products[:, push, push]
    # Without noise and data nothing is released, and nothing may move.
    factors = products[:, 1, push] / np.where(squares > 0, squares, 1.0)
    left = products[:, 1, 1] - factors**2 * squares
    return factors, np.sqrt(np.maximum(left, 0.0))


def _likeness(
    left: NDArray[np.float64], allowed: NDArray[np.float64], size: NDArray[np.float64]
) -> tuple[int, float]:
    """Return the number of moves that may be multiples, and minus the sum of the shares left.

    The second number decides where rounding lets all moves be multiples.
    """
    moved = size > 0
    return int((left <= allowed).sum()), -float((left[moved] / size[moved]).sum())

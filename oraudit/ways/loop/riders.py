"""The canaries of a loop of one's own, which ride on its clipped sums, once in each step."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oraudit.canaries.live import Canaries, contiguous_copy
from oraudit.records import Told
from oraudit.ways.loop.trees import filled

if TYPE_CHECKING:
    from oraudit.canaries.counted import Counted

__all__ = ["Riders"]

#: The number of first steps in which the sums are compared with those that :meth:`ride` returned.
CHECKED = 3


class Riders:
    """The canaries of a loop, which are made when it shows its first sums.

    Parameters
    ----------
    n
        The number of canaries; none if 0.
    seed
        The seed of all coins; None for one from the operating system.
    """

    def __init__(self, n: int, seed: int | None) -> None:
        self.n = n
        self._seed = seed
        self._canaries: Canaries | None = None
        self._told: tuple[Any, float] | None = None
        if n:
            self.n = Canaries(n, sizes=[n], seed=seed).n  # this checks n and seed

    def ride(self, tree: Any, sums: Sequence[Any], clips: Any, rate: float | None) -> Any:
        """Return the tree with canaries in its arrays, which are ``sums``."""
        if rate is None:
            raise ValueError("rate is None; it must be a number in (0, 1]")
        if self._told is not None:
            raise ValueError("audit.ride was called again; it must be once before each audit.step")
        canaries = self._made([math.prod(tensor.shape) for tensor in sums])
        ridden = [contiguous_copy(tensor) for tensor in sums]
        canaries.join(ridden, clips, rate)
        self._told = (clips, rate)
        return filled(tree, ridden)

    def check(self, sums: Sequence[Any], clips: Any, rate: float | None) -> None:
        """Raise ValueError unless :meth:`ride` was called for this step, with its arguments."""
        if not self.n:
            return
        if self._told is None:
            raise ValueError(
                f"no canary rides on this step; with canaries={self.n} each step needs "
                "sums = audit.ride(sums, clip=..., rate=...) before its noise"
            )
        ridden_clips, ridden_rate = self._told
        if clips != ridden_clips:
            raise ValueError(f"clip is {clips!r}; it must be {ridden_clips!r}, as in audit.ride")
        if rate != ridden_rate:
            raise ValueError(f"rate is {rate!r}; it must be {ridden_rate!r}, as in audit.ride")
        assert self._canaries is not None
        if self._canaries.steps < CHECKED and not self._canaries.are_joined(sums):
            raise ValueError("clipped has no canaries in it; it must be what audit.ride returned")

    def without(self, sums: Sequence[Any]) -> list[Any]:
        """Return the sums of the data alone."""
        return list(sums) if self._canaries is None else self._canaries.restore(sums)

    def note(self, noisy: Sequence[Any], sigma: float) -> None:
        """Score the step, after its noise."""
        if self._canaries is not None:
            self._canaries.score(self._canaries.look(noisy), sigma)
            self._told = None

    def counted(self, told: Sequence[Told], claim: tuple[float, float] | None) -> "Counted | None":
        """Return the counts of the canaries' scores; None if there are no canaries."""
        return None if self._canaries is None else self._canaries.counted(told, claim=claim)

    @property
    def unusable(self) -> str:
        """The reason why there are no counts; "" if there are some."""
        return "" if self._canaries is None else self._canaries.unusable

    def state(self) -> dict[str, Any] | None:
        """Return the state that a resumed audit needs."""
        if self._told is not None:
            raise ValueError("audit.ride has no audit.step yet; save the state after the step")
        return None if self._canaries is None else self._canaries.state()

    def load(self, state: Mapping[str, Any] | None, shapes: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state` has returned."""
        saved = 0 if state is None else state["n"]
        if saved != self.n and shapes:
            raise ValueError(
                f"the state is of {saved} canaries; it must be of {self.n}, as this audit"
            )
        if state is not None:
            self._made([math.prod(shape) for shape in shapes.values()]).load(state)

    def _made(self, sizes: Sequence[int]) -> Canaries:
        if self._canaries is None:
            self._canaries = Canaries(self.n, sizes=sizes, seed=self._seed)
        return self._canaries

"""What is kept of the noise of each step: a few sums for each tensor, and a sample.

The noise of a step is what was added to the clipped sum, noisy minus clipped. Everything is in
units of the standard deviation that the accountant was told, so if all is well the noise
consists of independent standard normal numbers. They stay where the tensors are until the
training has ended: nothing waits for a device.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oraudit.records.arrays import namespace

__all__ = ["SAMPLE", "Noise", "NoiseRecord", "step_numbers"]

#: The most numbers of one step that are kept, evenly spread: 6 kB as single-precision numbers.
SAMPLE = 1536

#: The most numbers that are kept of the beginnings of tensors, 2 kB a step; and of one tensor.
HEADS = 512
HEAD = 64

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Noise:
    """The noise of T steps on K tensors, as numbers that tests can read.

    Attributes
    ----------
    sizes
        How many numbers each tensor has, K of them.
    squares
        Sum of squares of the noise in each step and tensor, T x K.
    products
        Sum of noise times clipped sum, T x K.
    sums
        Sum of squares of the clipped sum, T x K.
    largest
        The largest absolute number of the noise, T x K.
    sample
        Numbers of the noise at places that stay the same, T x at most ``SAMPLE``.
    owners
        The tensor of each place of the sample.
    heads
        The first numbers of each tensor, T x K x at most ``HEAD``; NaN beyond its end. Two tensors
        that get the same noise have the same beginning, whatever their sizes.
    rounding
        How far rounding may have moved a number of the sample in each step, T.
    """

    sizes: NDArray[np.int64]
    squares: Reals
    products: Reals
    sums: Reals
    largest: Reals
    sample: NDArray[np.float32]
    owners: NDArray[np.int64]
    heads: NDArray[np.float32]
    rounding: Reals

    @property
    def steps(self) -> int:
        return len(self.squares)

    @property
    def share(self) -> float:
        """The size of all noise as a share of what was told: the root of the mean square."""
        return float(np.sqrt(self.squares.sum() / (self.sizes.sum() * self.steps)))

    def rescaled(self, factors: Reals) -> "Noise":
        """The noise in other units: each step's numbers times a factor of its own."""
        row = np.asarray(factors, dtype=float)[:, None]
        return replace(
            self,
            squares=self.squares * row**2,
            products=self.products * row**2,
            sums=self.sums * row**2,
            largest=self.largest * row,
            sample=(self.sample * row).astype(np.float32),
            heads=(self.heads * row[:, :, None]).astype(np.float32),
            rounding=self.rounding * row[:, 0],
        )


class NoiseRecord:
    """Keeps a few numbers of each step's noise, where its tensors are."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._places: list[slice] = []
        self._head = HEAD
        self._kept: list[tuple[Any, ...]] = []

    def add(self, clipped: Sequence[Any], noisy: Sequence[Any], deviation: float) -> None:
        """Note a step: the sum before and after the noise, and the told deviation of the noise."""
        if not self._sizes:
            self._arrange([int(np.prod(each.shape)) for each in clipped])
        unit = deviation if deviation > 0 else 1.0
        self._kept.append(_measure(clipped)(clipped, noisy, unit, self._places, self._head))

    def rescale_last(self, factor: float) -> None:
        """Change the unit of the step that was noted last: it is ``1 / factor`` times as large."""
        squares, products, sums, largest, *numbers = self._kept[-1]
        squared = [each * factor**2 for each in (squares, products, sums)]
        self._kept[-1] = (*squared, *(each * factor for each in (largest, *numbers)))

    def state(self) -> dict[str, Any]:
        """All that is kept, as arrays of NumPy."""
        return {
            "sizes": list(self._sizes),
            "kept": [[_local(number) for number in step] for step in self._kept],
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state` has returned."""
        if state["sizes"]:
            self._arrange([int(size) for size in state["sizes"]])
        self._kept = [tuple(step) for step in state["kept"]]

    def _arrange(self, sizes: list[int]) -> None:
        self._sizes = sizes
        self._places = _places(sizes)
        self._head = min(HEAD, max(HEADS // len(sizes), 1))

    def finished(self, steps: int | None = None) -> Noise:
        """All steps together, or the first ones, in the memory of this process."""
        kept = self._kept[:steps]
        columns = [np.stack([_local(step[i]) for step in kept]) for i in range(7)]
        squares, products, sums, largest, sample, rounding, beginnings = columns
        lengths = [min(size, self._head) for size in self._sizes]
        heads = np.full((len(kept), len(lengths), self._head), np.nan, np.float32)
        ends = np.cumsum(lengths)
        for tensor, (end, length) in enumerate(zip(ends, lengths, strict=True)):
            heads[:, tensor, :length] = beginnings[:, end - length : end]
        counts = [
            len(range(size)[places]) for size, places in zip(self._sizes, self._places, strict=True)
        ]
        return Noise(
            sizes=np.array(self._sizes),
            squares=squares.astype(float),
            products=products.astype(float),
            sums=sums.astype(float),
            largest=largest.astype(float),
            sample=sample.astype(np.float32),
            owners=np.repeat(np.arange(len(counts)), counts),
            heads=heads,
            rounding=rounding.astype(float),
        )

    def __len__(self) -> int:
        return len(self._kept)


def step_numbers(
    clipped: Sequence[Any], noisy: Sequence[Any], unit: float, places: Sequence[slice], head: int
) -> tuple[Any, ...]:
    """The numbers that are kept of a step, in units of its told deviation.

    They are those of :class:`Noise`, for one step: squares, products, sums, largest, sample,
    rounding and heads, the latter in a row. ``places`` are those of the sample in each tensor.
    """
    xp = namespace(clipped[0])
    squares = []
    products = []
    sums = []
    largest = []
    sample = []
    heads = []
    magnitude = []
    for before, after, where in zip(clipped, noisy, places, strict=True):
        before = _precise(before.reshape(-1))
        noise = (_precise(after.reshape(-1)) - before) / unit
        before = before / unit
        squares.append(_dot(noise, noise))
        products.append(_dot(noise, before))
        sums.append(_dot(before, before))
        largest.append(abs(noise).max() if len(noise) else xp.zeros(()))
        heads.append(noise[:head])
        part = noise[where]
        sample.append(part)
        magnitude.append(abs(before[where]) + abs(part))
    rounding = xp.finfo(clipped[0].dtype).eps * xp.concatenate(magnitude).max()
    numbers = [xp.stack(each) for each in (squares, products, sums, largest)]
    kept = [_single(xp.concatenate(each)) for each in (sample, heads)]
    return (*numbers, kept[0], rounding, kept[1])


def _measure(clipped: Sequence[Any]) -> Callable[..., tuple[Any, ...]]:
    """The way to measure a step: PyTorch has a fast one, for tensors that are alike."""
    if namespace(clipped[0]) is np:
        return step_numbers
    from oraudit.records import torch_noise

    return torch_noise.step_numbers if torch_noise.alike(clipped) else step_numbers


def _precise(array: Any) -> Any:
    """The array in single precision, if its own is lower."""
    return array if namespace(array).finfo(array.dtype).bits >= 32 else _single(array)


def _single(array: Any) -> Any:
    return array.astype(np.float32) if namespace(array) is np else array.float()


def _places(sizes: Sequence[int]) -> list[slice]:
    """Where the sample of each tensor is taken: evenly, each tensor an equal share at the most."""
    room = max(SAMPLE // len(sizes), 1)
    return [slice(0, None, max(-(-size // room), 1)) for size in sizes]


def _dot(left: Any, right: Any) -> Any:
    xp = namespace(left)
    if xp is np:
        return np.dot(left.astype(float), right.astype(float))
    return xp.dot(left, right)


def _local(array: Any) -> NDArray[Any]:
    return array if namespace(array) is np else array.detach().cpu().numpy()

"""The noise of each step, of which a few sums for each tensor and a sample are kept.

The noise of a step is what was added to the clipped sum, noisy minus clipped. Everything is in
units of the standard deviation that the accountant was told, so the noise of an honest training
consists of independent standard normal numbers. What is kept stays on the tensors' device until the
training has ended: nothing waits for a device.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oraudit.records.arrays import here, namespace

__all__ = ["SAMPLE", "Noise", "NoiseRecord", "kept_sizes", "step_numbers"]

#: The most numbers of one step that are kept, evenly spread: 6 kB as single-precision numbers.
SAMPLE = 1536

#: The most numbers of one step that are kept of the beginnings of tensors, 2 kB.
HEADS = 512

#: The most numbers that are kept of the beginning of one tensor.
HEAD = 64

#: The steps that are measured before the numbers of all of them are summed up in one call.
TOGETHER = 16

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Noise:
    """The noise of T steps on K tensors, as numbers that tests can read.

    Attributes
    ----------
    sizes
        The number of weights in each tensor, K.
    squares
        The sum of squares of the noise in each step and tensor, T x K.
    products
        The sum of noise times clipped sum, T x K.
    sums
        The sum of squares of the clipped sum, T x K.
    largest
        The largest absolute number of the noise, T x K.
    sample
        The numbers of the noise at places that stay the same, T x at most ``SAMPLE``.
    owners
        The tensor of each place of the sample.
    heads
        The first numbers of each tensor, T x K x at most ``HEAD``; NaN beyond its end. Two tensors
        that get the same noise have the same beginning, whatever their sizes.
    rounding
        The largest move of a number of the sample by rounding in each step, T.
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
        """Return the noise in other units: each step's numbers times a factor of its own."""
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
    """Keeps a few numbers of each step's noise, on the device of its tensors."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._places: list[slice] = []
        self._head = HEAD
        self._units: list[float] = []
        self._kept: list[tuple[Any, ...]] = []
        self._bench: Any = None
        self._measured: list[Any] = []
        self._last: list[Any] = []

    def add(self, clipped: Sequence[Any], noisy: Sequence[Any], deviation: float) -> None:
        """Note a step: the sum before and after the noise, and the told deviation of the noise."""
        if not self._sizes:
            self._arrange([int(np.prod(tensor.shape)) for tensor in clipped])
        bench = self._bench_for(clipped, noisy)
        if bench is None:
            self._finish()
            numbers, *self._last = step_numbers(clipped, noisy, self._places, self._head)
            self._kept.append(numbers)
        else:
            measured, *self._last = bench.measure(clipped, noisy)
            self._measured.append(measured)
            if len(self._measured) == TOGETHER:
                self._finish()
        self._units.append(deviation if deviation > 0 else 1.0)

    def _bench_for(self, clipped: Sequence[Any], noisy: Sequence[Any]) -> Any:
        """Return a bench, which measures tensors of PyTorch of one kind fast; None for others."""
        if namespace(clipped[0]) is np:
            return None
        if self._bench is None:
            from oraudit.records import torch_noise

            if not torch_noise.alike(clipped):
                return None
            self._bench = torch_noise.Bench(clipped, self._places, self._head)
        return self._bench if self._bench.fits(clipped) and self._bench.fits(noisy) else None

    def rescale_last(self, deviation: float) -> None:
        """Change the told deviation of the step that was noted last."""
        self._units[-1] = deviation if deviation > 0 else 1.0

    def last(self) -> tuple[Any, Any]:
        """Return the samples of the last step: of the clipped sum, and of the noise."""
        clipped, noise = self._last
        return clipped, noise

    def _finish(self) -> None:
        """Keep what was measured of the last steps."""
        if self._measured:
            self._kept += self._bench.finish(self._measured)
            self._measured = []

    def parts(self) -> list[slice]:
        """Return the part of each tensor in a sample."""
        pairs = zip(self._sizes, self._places, strict=True)
        ends = np.cumsum([0, *(len(range(size)[places]) for size, places in pairs)]).tolist()
        return [slice(start, end) for start, end in pairwise(ends)]

    def sampled(self, tensors: Sequence[Any]) -> Any:
        """Return the numbers of other tensors at the places of the sample."""
        if self._bench is not None and self._bench.fits(tensors):
            return self._bench.sample(tensors)
        parts = [tensor.reshape(-1)[s] for tensor, s in zip(tensors, self._places, strict=True)]
        return namespace(parts[0]).concatenate([_precise(part) for part in parts])

    def state(self) -> dict[str, Any]:
        """Return all that is kept, as arrays of NumPy."""
        self._finish()
        return {
            "sizes": list(self._sizes),
            "units": list(self._units),
            "kept": [[here(number) for number in step] for step in self._kept],
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state` has returned."""
        if state["sizes"]:
            self._arrange([int(size) for size in state["sizes"]])
        self._units = [float(deviation) for deviation in state["units"]]
        self._kept = [tuple(step) for step in state["kept"]]

    def _arrange(self, sizes: list[int]) -> None:
        self._sizes = sizes
        self._places = _places(sizes)
        self._head = _head(sizes)

    def finished(self, steps: int | None = None) -> Noise:
        """Return all steps together, or the first ones, in the memory of this process."""
        self._finish()
        rows = self._kept[:steps]
        columns = [np.stack([here(row[i]) for row in rows]).astype(float) for i in range(7)]
        deviation = np.array(self._units[:steps])[:, None]
        squares, products, sums = (column / deviation**2 for column in columns[:3])
        largest, sample, rounding, beginnings = (column / deviation for column in columns[3:])
        lengths = [min(size, self._head) for size in self._sizes]
        heads = np.full((len(rows), len(lengths), self._head), np.nan, np.float32)
        ends = np.cumsum(lengths)
        for tensor, (end, length) in enumerate(zip(ends, lengths, strict=True)):
            heads[:, tensor, :length] = beginnings[:, end - length : end]
        counts = [
            len(range(size)[places]) for size, places in zip(self._sizes, self._places, strict=True)
        ]
        return Noise(
            sizes=np.array(self._sizes),
            squares=squares,
            products=products,
            sums=sums,
            largest=largest,
            sample=sample.astype(np.float32),
            owners=np.repeat(np.arange(len(counts)), counts),
            heads=heads,
            rounding=rounding[:, 0],
        )

    def __len__(self) -> int:
        return len(self._units)


def step_numbers(
    clipped: Sequence[Any], noisy: Sequence[Any], places: Sequence[slice], head: int
) -> tuple[tuple[Any, ...], Any, Any]:
    """Return the numbers that are kept of a step, and samples of the clipped sum and the noise.

    The numbers are the fields of :class:`Noise` for one step, before they are divided by its unit:
    squares, products, sums, largest, sample, rounding, and all heads in one row. ``places`` has the
    places of the sample in each tensor.
    """
    xp = namespace(clipped[0])
    squares = []
    products = []
    sums = []
    largest = []
    sample = []
    beneath = []
    heads = []
    for before, after, places_of_tensor in zip(clipped, noisy, places, strict=True):
        before = _precise(before.reshape(-1))
        noise = _precise(after.reshape(-1)) - before
        squares.append(_dot(noise, noise))
        products.append(_dot(noise, before))
        sums.append(_dot(before, before))
        largest.append(abs(noise).max() if len(noise) else xp.zeros(()))
        heads.append(noise[:head])
        sample.append(noise[places_of_tensor])
        beneath.append(before[places_of_tensor])
    numbers = [xp.stack(column) for column in (squares, products, sums, largest)]
    noise_sample = xp.concatenate(sample)
    sum_sample = xp.concatenate(beneath)
    magnitude = (abs(sum_sample) + abs(noise_sample)).max().reshape(1)
    rounding = xp.finfo(clipped[0].dtype).eps * magnitude
    numbers += [_single(noise_sample), rounding, _single(xp.concatenate(heads))]
    return tuple(numbers), sum_sample, noise_sample


def _precise(array: Any) -> Any:
    """Return the array in single precision, if its own is lower."""
    return array if namespace(array).finfo(array.dtype).bits >= 32 else _single(array)


def _single(array: Any) -> Any:
    return array.astype(np.float32) if namespace(array) is np else array.float()


def _places(sizes: Sequence[int]) -> list[slice]:
    """Return the places of the sample in each tensor, evenly spread, with equal room for each."""
    room = max(SAMPLE // len(sizes), 1)
    return [slice(0, None, max(-(-size // room), 1)) for size in sizes]


def _head(sizes: Sequence[int]) -> int:
    """Return how many numbers of the beginning of each tensor are kept."""
    return min(HEAD, max(HEADS // len(sizes), 1))


def kept_sizes(sizes: Sequence[int]) -> tuple[int, int]:
    """Return how many numbers the sample of a step has, and how many all heads.

    >>> kept_sizes([10_000, 100])
    (815, 128)
    """
    sampled = sum(
        len(range(size)[places]) for size, places in zip(sizes, _places(sizes), strict=True)
    )
    return sampled, sum(min(size, _head(sizes)) for size in sizes)


def _dot(left: Any, right: Any) -> Any:
    xp = namespace(left)
    if xp is np:
        return np.dot(left.astype(float), right.astype(float))
    return xp.dot(left, right)

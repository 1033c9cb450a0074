"""The numbers around the chain of a step: its clip, its scale and its learning rate.

None of these may follow the batch. So numbers of the batch that they could follow are kept for each
step, too. A number that the audit could not see is NaN.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oraudit.records.arrays import namespace

__all__ = ["LEAST_NOISE", "NAMES", "Around", "AroundRecord", "move_numbers"]

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Around:
    """The numbers of each of T steps.

    Attributes
    ----------
    clip, sigma, rate
        The norm that gradients are clipped at, the optimizer's noise multiplier, and its learning
        rate.
    factor
        The multiple of the noisy sum that comes nearest to the used gradient, with which the
        optimizer steps.
    off
        The distance of the used gradient from any multiple of the noisy sum: one minus the cosine
        of the two.
    kept
        The noise in the used gradient, as a share of the noise that belongs to the clipped sum in
        it: 1 if the noisy sum is used as it is, 0 if the noise was taken off.
    rest
        The part of the used gradient that is neither clipped sum nor noise, as a share of its norm.
    felt
        The correlation of the weights' move with the noise, at the steps where moves are kept.
    noisiness
        The correlation of the noisy sum with the noise at these steps.
    clean
        One minus the absolute cosine of the weights' move and the clipped sum at these steps.
    numbers
        The size of the sample from which these three are computed.
    size
        The number of examples in the batch.
    raw
        The norm of the batch's gradient before clipping.
    mean, median, middle, largest
        The statistics of the norms of the examples' gradients. For an even number of them the
        median is the lower of the two in the middle, and ``middle`` is their mean.
    nearest
        The distance of the clip from the nearest of these norms, as a share of the clip.
    """

    clip: Reals
    sigma: Reals
    rate: Reals
    factor: Reals
    off: Reals
    kept: Reals
    rest: Reals
    felt: Reals
    noisiness: Reals
    clean: Reals
    numbers: Reals
    size: Reals
    raw: Reals
    mean: Reals
    median: Reals
    middle: Reals
    largest: Reals
    nearest: Reals


NAMES = tuple(field.name for field in fields(Around))


#: The smallest correlation of the noisy sum with its noise at which a move without noise shows.
LEAST_NOISE = 0.1

#: The fewest numbers of a tensor in a sample: with fewer its move may be like its clipped sum by
#: chance.
FEWEST_OF_A_TENSOR = 32


def move_numbers(
    move: Any, clipped: Any, noise: Any, tensors: Sequence[slice] = ()
) -> dict[str, Any]:
    """Compare a move of weights with the clipped sum and the noise of its step.

    One tensor of many may move without noise. So ``clean`` is computed for each tensor, too, scaled
    by how noisy the tensor is compared with all, and the smallest one is returned.

    >>> noise = np.array([1.0, 0.0])
    >>> kept = move_numbers(np.array([0.0, -2.0]), np.array([0.0, 1.0]), noise)
    >>> float(kept["felt"]), float(kept["clean"])
    (0.0, 0.0)
    """
    noisiness = _cosine(clipped + noise, noise)
    clean = [1 - abs(_cosine(move, clipped))]
    for part in tensors:
        if part.stop - part.start >= FEWEST_OF_A_TENSOR:
            noisy = _cosine(clipped[part] + noise[part], noise[part])
            alone = 1 - abs(_cosine(move[part], clipped[part]))
            clean.append(_known(alone * (noisiness / noisy) ** 2, noisy > LEAST_NOISE))
    return {
        "felt": _cosine(move, noise),
        "noisiness": noisiness,
        "clean": namespace(move).stack(clean).min(),
        "numbers": len(move),
    }


def _known(number: Any, known: Any) -> Any:
    """Return the number if it is known and not NaN, else infinity, on the device that it is on."""
    xp = namespace(number)
    return xp.where(known & (number == number), number, xp.full_like(number, np.inf))


def _cosine(one: Any, other: Any) -> Any:
    xp = namespace(one)
    with np.errstate(invalid="ignore"):
        return xp.dot(one, other) / (xp.dot(one, one) * xp.dot(other, other)) ** 0.5


class AroundRecord:
    """Collects the numbers of the step under way, where its tensors are."""

    def __init__(self) -> None:
        self._now: dict[str, Any] = {}
        self._steps: list[dict[str, Any]] = []

    def note(self, **numbers: Any) -> None:
        """Note numbers of the step under way; numbers on a device stay there."""
        self._now.update(numbers)

    def note_norms(self, norms: Any, clip: float) -> None:
        """Note what is kept of the norms of the examples' gradients."""
        if not len(norms):
            return
        xp = namespace(norms)
        ordered = xp.sort(norms)
        if xp is not np:
            ordered = ordered[0]
        half = len(norms) // 2
        below = ordered[(len(norms) - 1) // 2]
        self.note(
            mean=norms.mean(),
            median=below,
            middle=(below + ordered[half]) / 2,
            largest=ordered[-1],
            nearest=abs(norms / clip - 1).min(),
        )

    @property
    def now(self) -> dict[str, Any]:
        """The numbers that were noted of the step under way."""
        return dict(self._now)

    @property
    def last(self) -> dict[str, float]:
        """The numbers of the step that has ended last."""
        return _numbers(self._steps[-1]) if self._steps else {}

    def note_used(self, used: Any, clipped: Any, noise: Any) -> None:
        """Note a sample of the gradient that the optimizer steps with, and what it is made of."""
        rows = namespace(used).stack([used, clipped, noise])
        rows = rows.astype(float) if namespace(used) is np else rows.double()
        self.note(products=rows @ rows.T)

    def end_step(self) -> None:
        """Close the step under way."""
        self._steps.append(self._now)
        self._now = {}

    def finished(self) -> Around:
        """Return the numbers of all steps, a column each."""
        steps = [_numbers(step) for step in self._steps]
        columns = {name: np.array([step.get(name, np.nan) for step in steps]) for name in NAMES}
        return Around(**columns)

    def state(self) -> list[dict[str, float]]:
        """Return all that is kept, as numbers."""
        return [_numbers(step) for step in self._steps]

    def load(self, state: list[dict[str, float]]) -> None:
        """Go on from what :meth:`state` has returned."""
        self._steps = [dict(step) for step in state]


def _numbers(step: dict[str, Any]) -> dict[str, float]:
    """Return the numbers of a step, in the memory of this process."""
    numbers = {name: float(number) for name, number in step.items() if name != "products"}
    if "products" in step:
        numbers |= _parts(np.asarray(step["products"].tolist()))
    return numbers


def _parts(products: NDArray[np.float64]) -> dict[str, float]:
    """Decompose the used gradient into clipped sum and noise.

    ``products`` has the inner products of the used gradient, the clipped sum and the noise.
    """
    used, clipped, noise = products
    product = used[1] + used[2]
    squares = clipped[1] + 2 * clipped[2] + noise[2]
    # Least squares: the multiples of clipped sum and noise that come nearest to the used gradient.
    determinant = clipped[1] * noise[2] - clipped[2] ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        of_clipped = (used[1] * noise[2] - used[2] * clipped[2]) / determinant
        of_noise = (used[2] * clipped[1] - used[1] * clipped[2]) / determinant
        rest = used[0] - of_clipped * used[1] - of_noise * used[2]
        return {
            "factor": float(product / squares),
            "off": float(1 - product / np.sqrt(squares * used[0])),
            # Single-precision numbers that cancel leave a rounding error, which is rounded to 0.
            "kept": float(np.round(of_noise / of_clipped, 7)),
            "rest": float(np.sqrt(np.maximum(rest, 0) / used[0])),
        }

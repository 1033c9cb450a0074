"""The noise has the size that the accountant was told: in all steps and tensors, and in each.

Formula: sums of squares of (noisy - clipped) / (σ C), which are χ² with as many degrees of
freedom as there are numbers. Limit: the exact two-sided p-value, by Bonferroni over steps,
tensors, and their pairs.

The finding names the first of these parts that explains all differences: some steps, some tensors,
all noise, or one step of one tensor. More noise than told is safer only if all of it is independent
and normal, and too large by one factor: other things in the noise make its squares larger, too.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from oraudit.checks import noise_follows_sum, noise_law, noise_reuse, noise_values, sum_in_noise
from oraudit.checks.levels import SHARE, chi_square_p, smallest_p
from oraudit.checks.presence import NO_NOISE
from oraudit.findings import Finding, Side
from oraudit.records import Seen

__all__ = ["NAME", "Sizes", "check", "shares_by_step", "sizes_of"]

NAME = "noise-size"
TESTS = 4
EXPLAINED_BY = (noise_follows_sum.NAME, sum_in_noise.NAME)

Reals = NDArray[np.float64]
Part = NDArray[np.bool_] | slice


@dataclass(frozen=True)
class Sizes:
    """The sums of squares of the noise, and its numbers of entries, where noise was told.

    Attributes
    ----------
    squares, numbers
        A row for each step, a column for each tensor.
    steps
        The number of each row's step, counting from 1.
    """

    squares: Reals
    numbers: NDArray[np.int64]
    steps: NDArray[np.int64]

    def part(self, rows: Part = slice(None), columns: Part = slice(None)) -> "Sizes":
        """Return some of the steps, or some of the tensors."""
        squares = self.squares[rows][:, columns]
        return Sizes(squares, self.numbers[rows][:, columns], self.steps[rows])

    @property
    def share(self) -> float:
        """The size of the noise as a share of what was told."""
        return float(np.sqrt(self.squares.sum() / self.numbers.sum()))

    def by(self, axis: int) -> tuple[Reals, Reals]:
        """Return the share, and the p-value, of each tensor (axis 0) or step (axis 1)."""
        squares = self.squares.sum(axis)
        numbers = self.numbers.sum(axis)
        return np.sqrt(squares / numbers), chi_square_p(squares, numbers)

    def fits(self) -> bool:
        """Return whether the noise has the told size: in all, by step, by tensor, and by pair."""
        together = float(chi_square_p(self.squares.sum(), self.numbers.sum()))
        parts = (self.by(0)[1], self.by(1)[1], chi_square_p(self.squares, self.numbers))
        return together >= SHARE and all(smallest_p(p) >= SHARE for p in parts)

    def alike(self) -> bool:
        """Return whether one factor on the told size explains all of the noise."""
        scale = max(self.share, NO_NOISE) ** 2
        return Sizes(self.squares / scale, self.numbers, self.steps).fits()


def check(seen: Seen) -> list[Finding]:
    sizes = sizes_of(seen)
    if sizes is None or sizes.fits():
        return []
    if sizes.share < NO_NOISE:
        return [_finding(sizes, "", "less private")]
    return [_in_steps(sizes) or _in_tensors(seen, sizes) or _overall(seen, sizes)]


def sizes_of(seen: Seen) -> Sizes | None:
    """Return the sizes of noise to compare with what was told; None if there are none."""
    noise = seen.noise
    if noise is None:
        return None
    rows = (seen.sigmas > 0) & np.isfinite(noise.squares).all(1)
    columns = noise.sizes > 0
    squares = noise.squares[rows][:, columns]
    if not squares.size:
        return None
    numbers = np.broadcast_to(noise.sizes[columns], squares.shape)
    return Sizes(squares, numbers, np.flatnonzero(rows) + 1)


def shares_by_step(seen: Seen) -> Reals:
    """Return the share of the told noise in each step: 1 where it is as told."""
    shares = np.ones(seen.steps)
    sizes = sizes_of(seen)
    if sizes is None or sizes.fits():
        return shares
    by_step, p = sizes.by(1)
    is_off = p * len(p) < SHARE
    if _in_steps(sizes):
        part = sizes.part(rows=is_off)
        shares[part.steps - 1] = part.share if part.alike() else by_step[is_off]
        return shares
    by_tensor, p = sizes.by(0)
    # The whole gradient of an example may lie in the tensor with the least noise.
    partial = _tensors_off(sizes) is not None
    shares[sizes.steps - 1] = by_tensor.min() if partial else sizes.share
    return shares


def _in_steps(sizes: Sizes) -> Finding | None:
    """Return a finding if some steps are off, and the others are as told."""
    shares, p = sizes.by(1)
    is_off = p * len(p) < SHARE
    if is_off.all() or not is_off.any() or not sizes.part(rows=~is_off).fits():
        return None
    first = int(sizes.steps[is_off][0])
    place = f"{is_off.sum()} of {len(is_off)} steps, first {first}"
    side: Side = "less private" if (shares[is_off] < 1).any() else "side unknown"
    return _finding(sizes.part(rows=is_off), place, side, shares[is_off], step=first)


def _tensors_off(sizes: Sizes) -> NDArray[np.bool_] | None:
    """Return the tensors that are off, if the others are as told."""
    _, p = sizes.by(0)
    is_off = p * len(p) < SHARE
    if is_off.all() or not is_off.any() or not sizes.part(columns=~is_off).fits():
        return None
    return is_off


def _in_tensors(seen: Seen, sizes: Sizes) -> Finding | None:
    """Return a finding if some tensors are off, and the others are as told."""
    is_off = _tensors_off(sizes)
    if is_off is None:
        return None
    assert seen.noise is not None
    names = [name for name, size in zip(seen.names, seen.noise.sizes, strict=True) if size]
    shares, _ = sizes.by(0)
    further = f" and {is_off.sum() - 1} more" if is_off.sum() > 1 else ""
    place = f"tensor {names[int(np.argmax(is_off))]}{further}"
    side: Side = "less private" if (shares[is_off] < 1).any() else "side unknown"
    return _finding(sizes.part(columns=is_off), place, side, shares[is_off])


def _overall(seen: Seen, sizes: Sizes) -> Finding:
    """Return the finding for noise that is off in other parts than some steps or some tensors."""
    normal = not noise_law.check(seen)
    if sizes.alike():
        side: Side = "less private"
        if sizes.share > 1:
            causes = (sum_in_noise, noise_follows_sum, noise_reuse, noise_values)
            side = "side unknown"
            if normal and not any(cause.check(seen) for cause in causes):
                side = "safer"
        return _finding(sizes, "", side, normal=normal)
    pairs = np.sqrt(sizes.squares / sizes.numbers)
    p_pairs = chi_square_p(sizes.squares, sizes.numbers)
    by_tensor, p_tensors = sizes.by(0)
    by_step, p_steps = sizes.by(1)
    all_p = [p_tensors * len(p_tensors), p_steps * len(p_steps), p_pairs.ravel() * p_pairs.size]
    all_shares = [by_tensor, by_step, pairs.ravel()]
    shares = np.concatenate(all_shares)
    is_off = np.concatenate(all_p) < SHARE
    lower = stats.chi2.cdf(sizes.squares.sum(), sizes.numbers.sum())
    is_less = (is_off & (shares < 1)).any() or lower < SHARE
    side = "less private" if is_less else "side unknown"
    if not is_off[: len(by_tensor) + len(by_step)].any() and is_off.any():
        row, column = divmod(int(p_pairs.argmin()), p_pairs.shape[1])
        step = int(sizes.steps[row])
        place = f"step {step}, tensor {seen.names[column]}"
        pair = sizes.part(rows=slice(row, row + 1), columns=slice(column, column + 1))
        return _finding(pair, place, side, step=step)
    parts = by_tensor if is_off[: len(by_tensor)].any() else by_step
    return _finding(sizes, "", side, parts, normal=normal)


def _finding(
    sizes: Sizes,
    place: str,
    side: Side,
    shares: Reals | None = None,
    *,
    step: int | None = None,
    normal: bool = True,
) -> Finding:
    """Return the finding on a part of the noise, or with "" for its place on all noise."""
    share = sizes.share
    size = f"{share:.3g}"
    if shares is not None and share >= NO_NOISE and not sizes.alike():
        size = f"{shares.min():.3g} to {shares.max():.3g}"
    text = f"the noise is {size} of what the accountant was told"
    if share < NO_NOISE:
        text = "no noise"
    if place:
        text = f"{place}: {text}"
    if not normal:
        text = f"{text}, and not normal"
    error = share / np.sqrt(2 * sizes.numbers.sum())
    return Finding(NAME, text, side, step=step, number=share, error=error, limit=1.0)

"""The noise has the size that the accountant was told: in all steps and tensors, and in each.

Formula: sums of squares of (noisy - clipped) / (σ C), which are χ² with as many degrees of
freedom as there are numbers. Limit: the exact two-sided p-value, below the share of this check,
by Bonferroni over steps, tensors, their pairs, and all together.

The first name that explains the rest is given: some steps, some tensors, all noise, or one pair.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oraudit.checks.levels import SHARE, chi_square_p, smallest_p
from oraudit.findings import Finding, Side
from oraudit.records import Seen

NAME = "noise-size"

#: Four ways to look at the same numbers share what the check may spend.
_EACH = SHARE / 4

#: Below this share of the told size there is no noise; what is left is rounding.
NO_NOISE = 1e-4


def check(seen: Seen) -> list[Finding]:
    noise = seen.noise
    if noise is None or not (seen.sigmas > 0).all():
        return []
    squares = noise.squares
    degrees = np.broadcast_to(noise.sizes, squares.shape)
    by_step = chi_square_p(squares.sum(1), degrees.sum(1))
    by_tensor = chi_square_p(squares.sum(0), degrees.sum(0))
    by_pair = chi_square_p(squares, degrees)
    together = float(chi_square_p(squares.sum(), degrees.sum()))

    odd_steps = by_step * len(by_step) < _EACH
    if odd_steps.any() and _rest_is_fine(squares[~odd_steps], degrees[~odd_steps]):
        share = _share(squares[odd_steps], degrees[odd_steps])
        first = int(np.argmax(odd_steps)) + 1
        where = f"{odd_steps.sum()} of {seen.steps} steps, first {first}: "
        return [_finding(where, share, step=first)]
    odd_tensors = by_tensor * len(by_tensor) < _EACH
    if odd_tensors.any() and _rest_is_fine(squares[:, ~odd_tensors], degrees[:, ~odd_tensors]):
        tensor = int(np.argmax(odd_tensors))
        others = f" and {odd_tensors.sum() - 1} more" if odd_tensors.sum() > 1 else ""
        share = _share(squares[:, odd_tensors], degrees[:, odd_tensors])
        return [_finding(f"tensor {seen.names[tensor]}{others}: ", share)]
    if together < _EACH or odd_steps.any() or odd_tensors.any():
        return [_finding("", noise.share)]
    if smallest_p(by_pair) < _EACH:
        step, pair_tensor = divmod(int(by_pair.argmin()), by_pair.shape[1])
        share = _share(squares[step, pair_tensor], degrees[step, pair_tensor])
        where = f"step {step + 1}, tensor {seen.names[pair_tensor]}: "
        return [_finding(where, share, step=step + 1)]
    return []


def _rest_is_fine(squares: NDArray[np.float64], degrees: NDArray[np.int64]) -> bool:
    """Whether the other steps or tensors, of which there must be some, have the told size."""
    return squares.size > 0 and float(chi_square_p(squares.sum(), degrees.sum())) >= _EACH


def _share(squares: ArrayLike, degrees: ArrayLike) -> float:
    return float(np.sqrt(np.sum(squares) / np.sum(degrees)))


def _finding(where: str, share: float, step: int | None = None) -> Finding:
    side: Side = "less private" if share < 1 else "safer"
    words = (
        "no noise"
        if share < NO_NOISE
        else f"the noise is {share:.3g} of what the accountant was told"
    )
    return Finding(NAME, where + words, side, step=step, number=share, limit=1.0)

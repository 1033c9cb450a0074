"""The case of a clipped sum that is off, and the guesses that may explain it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oraudit.records.arrays import namespace, rows
from oraudit.records.factors import (
    Reals,
    by_tensor,
    capped,
    doubles,
    lengths,
    like,
    norms_of,
    precise,
)

__all__ = ["Case", "Guess"]

#: The most numbers of each gradient that a guess is tried on before it is tried on all.
SAMPLE = 1024


@dataclass(frozen=True)
class Guess:
    """The factors that examples are multiplied by, if a hypothesis is true.

    Attributes
    ----------
    text
        The hypothesis, as the report says it; ``{names[2]}`` stands for the third tensor's name.
    factors
        A factor for each example, or for each example and tensor.
    alone
        True if the factor of an example depends on that example alone. Otherwise the example also
        changes what others add, so its own part bounds nothing.
    gradients
        The gradients that are multiplied, if they are not the examples' own.
    sensitivity
        The largest move of the sum by one example, in C, if it is more than what the example adds.
    """

    text: str
    factors: Reals
    alone: bool = True
    gradients: Sequence[Any] | None = None
    sensitivity: float = 0.0


@dataclass(frozen=True)
class Case:
    """The gradients of a step's examples, and what was added to the sum for them.

    Norms are numbers of NumPy in double precision. Guesses are made of them, and are tried on a
    sample of the numbers first, so that a large model takes time only where a guess is right.
    """

    gradients: Sequence[Any]
    added: Sequence[Any]
    clip: float | Sequence[float]
    tolerance: float

    @cached_property
    def norms(self) -> Reals:
        """The norm of each example's gradient in each tensor."""
        return norms_of(self.gradients)

    @cached_property
    def norm(self) -> Reals:
        """The norm of each example's gradient."""
        return np.linalg.norm(self.norms, axis=1)

    @property
    def flat(self) -> bool:
        """True if all tensors are clipped together."""
        return isinstance(self.clip, int | float)

    @property
    def bound(self) -> float:
        """C, the largest norm that an example may add."""
        return float(np.linalg.norm(self.clip))

    @property
    def finite(self) -> bool:
        distance = sum(float((precise(total) ** 2).sum()) for total in self.added)
        return bool(np.isfinite(self.norms).all() and np.isfinite(distance))

    def honest(self, scale: float = 1.0) -> Reals:
        """Return the factors of each example and tensor that clip at C, or at a multiple of it."""
        if self.flat:
            return by_tensor(capped(self.norm, scale * self.bound), self.norms)
        return capped(self.norms, scale * np.array(self.clip, dtype=float))

    @cached_property
    def sample(self) -> tuple[Reals, Reals, NDArray[np.int64]]:
        """The sample: columns of the gradients, the same places of the sum, and their tensors."""
        room = max(SAMPLE // len(self.gradients), 8)
        columns = []
        sums = []
        for gradient, total in zip(self.gradients, self.added, strict=True):
            table = rows(gradient)
            step = max(-(-table.shape[1] // room), 1)
            columns.append(doubles(table[:, ::step]))
            sums.append(doubles(total.reshape(-1)[::step]))
        owners = np.repeat(np.arange(len(sums)), [len(part) for part in sums])
        return np.concatenate(columns, axis=1), np.concatenate(sums), owners

    @property
    def numbers(self) -> int:
        """The size of the sample of a gradient."""
        return len(self.sample[1])

    def sampled(self, factors: Reals) -> Reals:
        """Return the part of the sum in the sample that these factors give."""
        columns, _, owners = self.sample
        if factors.ndim == 1:
            return factors @ columns
        return np.einsum("ij,ij->j", factors[:, owners], columns)

    @property
    def seen(self) -> Reals:
        """The part of the sum in the sample that was seen."""
        return self.sample[1]

    def fitted(self, model: Reals, target: Reals) -> float:
        """Return the factor with which ``model`` comes nearest to ``target``."""
        square = float(model @ model)
        return float(model @ target) / square if square > 0 else 0.0

    def misses(self, factors: Reals) -> float:
        """Return the distance between the sampled sum and the prediction, over the norms added."""
        total = float(lengths(factors, self.norms).sum())
        return float(np.linalg.norm(self.sampled(factors) - self.seen)) / max(total, 1e-300)

    def is_explained_by(self, guess: Guess) -> bool:
        """Return whether the guess gives the sum that was seen, up to rounding."""
        if guess.gradients is not None:
            return replace(self, gradients=guess.gradients).is_explained_by(
                replace(guess, gradients=None)
            )
        allowed = self.tolerance * float(lengths(guess.factors, self.norms).sum())
        if np.linalg.norm(self.sampled(guess.factors) - self.seen) > 1.01 * allowed:
            return False
        factors = by_tensor(guess.factors, self.norms)
        distance = 0.0
        for column, gradient, total in zip(factors.T, self.gradients, self.added, strict=True):
            table = precise(gradient)
            wanted = namespace(table).einsum("i,i...", like(column, table), table)
            distance += float(((wanted - total) ** 2).sum())
        return distance**0.5 <= allowed

    def sensitivity(self, guess: Guess) -> float | None:
        """Return how far one example moves the sum, in C; None if others might move it further."""
        norms = self.norms if guess.gradients is None else norms_of(guess.gradients)
        largest = float(lengths(guess.factors, norms).max(initial=0.0)) / self.bound
        largest = max(largest, guess.sensitivity)
        bounded = guess.alone and bool((guess.factors >= 0).all())
        return largest if bounded or largest > 1 + self.tolerance else None

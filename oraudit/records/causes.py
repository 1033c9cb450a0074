"""What explains a clipped sum that is off: hypotheses, each of which says what the sum would be.

A hypothesis is a small function that guesses a factor for each example, or for each example and
tensor. A guess is a cause only if the gradients times its factors add up to the very sum that was
seen, up to rounding. What several hypotheses explain at one step, other steps tell apart.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from oraudit.records.arrays import namespace, rows

__all__ = ["HYPOTHESES", "SMALL", "Case", "Guess", "explain"]

#: Added to a norm before C is divided by it, as Opacus does.
SMALL = 1e-6

#: The most numbers of each gradient that a guess is tried on before it is tried on all.
SAMPLE = 1024

#: The numbers γ of automatic clipping that are tried, beside 0.
GAMMAS = (1e-6, 1e-4, 1e-3, 0.01, 0.1, 1.0)

#: The sizes of groups whose means may be clipped.
GROUPS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 50, 64)

#: With more examples than this, no factor is fitted to each.
MOST_FITTED = 1000

#: Gradients are too much alike to find their factors where products of them are so small a share.
ALIKE = 1e-10

Reals = NDArray[np.floating]


@dataclass(frozen=True)
class Guess:
    """What an example is multiplied by, if a hypothesis is true.

    Attributes
    ----------
    words
        The hypothesis, as the report says it; ``{names[2]}`` stands for the third tensor's name.
    factors
        A factor for each example, or for each example and tensor.
    alone
        Whether the factor of an example depends on nothing but the example. Otherwise the other
        examples change with it, and what it adds bounds nothing.
    gradients
        What is multiplied, if it is not the gradients themselves.
    sensitivity
        How far one example moves the sum, in C, if this is more than what it adds.
    """

    words: str
    factors: Reals
    alone: bool = True
    gradients: Sequence[Any] | None = None
    sensitivity: float = 0.0


def explain(
    gradients: Sequence[Any],
    added: Sequence[Any],
    clip: float | Sequence[float],
    tolerance: float,
) -> dict[str, float | None]:
    """The causes that explain a sum exactly, with the sensitivity in C that each of them gives.

    A sensitivity is None if it may be more than what the examples of this batch add. ``clip`` is C,
    or its part for each tensor; then C is the norm of these parts.

    >>> explain([np.array([[3.0, 4.0], [0.6, 0.0]])], [np.array([3.6, 4.0])], 1.0, 1e-4)
    {'no example is clipped': 5.0, ...}
    """
    case = Case(gradients, added, clip, tolerance)
    if not case.finite:
        return {"gradients of examples, or their sum, are not finite (NaN or infinite)": None}
    causes: dict[str, float | None] = {}
    for hypothesis in HYPOTHESES:
        for guess in hypothesis(case):
            if guess.words not in causes and case.is_explained_by(guess):
                causes[guess.words] = case.sensitivity(guess)
    return causes


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
        return _norms(self.gradients)

    @cached_property
    def norm(self) -> Reals:
        """The norm of each example's gradient."""
        return np.linalg.norm(self.norms, axis=1)

    @property
    def flat(self) -> bool:
        """Whether all tensors are clipped together."""
        return isinstance(self.clip, int | float)

    @property
    def bound(self) -> float:
        """C, the largest norm that an example may add."""
        return float(np.linalg.norm(self.clip))

    @property
    def finite(self) -> bool:
        distance = sum(float((_wide(each) ** 2).sum()) for each in self.added)
        return bool(np.isfinite(self.norms).all() and np.isfinite(distance))

    def honest(self, scale: float = 1.0) -> Reals:
        """The factors of each example and tensor that clip at C, or at a multiple of it."""
        if self.flat:
            return _spread(_cap(self.norm, scale * self.bound), self.norms)
        return _cap(self.norms, scale * np.array(self.clip, dtype=float))

    @cached_property
    def _sample(self) -> tuple[Reals, Reals, NDArray[np.int64]]:
        """Numbers of the gradients, of the sum, and the tensor of each."""
        room = max(SAMPLE // len(self.gradients), 8)
        columns = []
        sums = []
        for gradient, total in zip(self.gradients, self.added, strict=True):
            table = rows(gradient)
            step = max(-(-table.shape[1] // room), 1)
            columns.append(_local(table[:, ::step]))
            sums.append(_local(total.reshape(-1)[::step]))
        owners = np.repeat(np.arange(len(sums)), [len(each) for each in sums])
        return np.concatenate(columns, axis=1), np.concatenate(sums), owners

    @property
    def numbers(self) -> int:
        """How many numbers of a gradient are in the sample."""
        return len(self._sample[1])

    def sampled(self, factors: Reals) -> Reals:
        """The part of the sum in the sample that these factors give."""
        columns, _, owners = self._sample
        if factors.ndim == 1:
            return factors @ columns
        return np.einsum("ij,ij->j", factors[:, owners], columns)

    @property
    def seen(self) -> Reals:
        """The part of the sum in the sample that was seen."""
        return self._sample[1]

    def fitted(self, model: Reals, target: Reals) -> float:
        """The multiple of a part of the sum that comes nearest to another one."""
        square = float(model @ model)
        return float(model @ target) / square if square > 0 else 0.0

    def misses(self, factors: Reals) -> float:
        """How far the sampled sum is from these factors', as a share of what examples add."""
        total = float(_lengths(factors, self.norms).sum())
        return float(np.linalg.norm(self.sampled(factors) - self.seen)) / max(total, 1e-300)

    def is_explained_by(self, guess: Guess) -> bool:
        """Whether the guess gives the sum that was seen, up to rounding."""
        if guess.gradients is not None:
            return replace(self, gradients=guess.gradients).is_explained_by(
                replace(guess, gradients=None)
            )
        allowed = self.tolerance * float(_lengths(guess.factors, self.norms).sum())
        if np.linalg.norm(self.sampled(guess.factors) - self.seen) > 1.01 * allowed:
            return False
        factors = _spread(guess.factors, self.norms)
        distance = 0.0
        for column, gradient, total in zip(factors.T, self.gradients, self.added, strict=True):
            table = _wide(gradient)
            wanted = namespace(table).einsum("i,i...", _like(column, table), table)
            distance += float(((wanted - total) ** 2).sum())
        return distance**0.5 <= allowed

    def sensitivity(self, guess: Guess) -> float | None:
        """How far one example moves the sum, in C; None if that may be more than what is seen."""
        norms = self.norms if guess.gradients is None else _norms(guess.gradients)
        most = float(_lengths(guess.factors, norms).max(initial=0.0)) / self.bound
        most = max(most, guess.sensitivity)
        bounded = guess.alone and bool((guess.factors >= 0).all())
        return most if bounded or most > 1 + self.tolerance else None


# ------------------------------------------------------------------------------------- hypotheses


def none_clipped(case: Case) -> Iterator[Guess]:
    """Gradients are added as they are."""
    yield Guess("no example is clipped", np.ones(len(case.norm)))


def other_parts(case: Case) -> Iterator[Guess]:
    """Each tensor is clipped by itself, or all together, and C is not meant so."""
    if not case.flat:
        factors = _cap(case.norm, case.bound)
        yield Guess("all tensors are clipped together at C, not each at its part", factors)
    if case.norms.shape[1] > 1:
        factors = _cap(case.norms, case.bound)
        yield Guess("each tensor is clipped at C by itself", factors)


def tensor_left_out(case: Case) -> Iterator[Guess]:
    """One tensor is left out of the norm, or is not clipped."""
    for tensor in range(case.norms.shape[1]):
        yield from _left_out(case, [tensor], f"tensor {{names[{tensor}]}} is")


def kind_left_out(case: Case) -> Iterator[Guess]:
    """All vectors or all matrices are left out of the norm, or are not clipped."""
    vectors = [k for k, gradient in enumerate(case.gradients) if gradient.ndim <= 2]
    matrices = [k for k, gradient in enumerate(case.gradients) if gradient.ndim > 2]
    yield from _left_out(case, vectors, "all vectors (biases) are")
    yield from _left_out(case, matrices, "all matrices are")


def _left_out(case: Case, left: list[int], words: str) -> Iterator[Guess]:
    tensors = case.norms.shape[1]
    if not 0 < len(left) < tensors:
        return
    kept = [k for k in range(tensors) if k not in left]
    unscaled = case.honest()
    unscaled[:, left] = 1.0
    if case.flat:
        factors = _cap(np.linalg.norm(case.norms[:, kept], axis=1), case.bound)
        yield Guess(f"{words} left out of the norm", factors)
        apart = _spread(factors, case.norms)
        apart[:, left] = 1.0
        yield Guess(f"{words} not clipped", apart)
    yield Guess(f"{words} not clipped", unscaled)


def other_norms(case: Case) -> Iterator[Guess]:
    """The norm is another one than the Euclidean norm of the whole gradient."""
    if not case.flat:
        return
    each = case.norms.sum(1)
    if case.norms.shape[1] > 1:
        yield Guess("the norm is the sum of the tensors' norms", _cap(each, case.bound))
        yield Guess("the norm is the largest of the tensors'", _cap(case.norms.max(1), case.bound))
    yield Guess("the norm is squared", _cap(case.norm**2, case.bound))
    scaled = case.norm / max(len(case.norm), 1)
    words = "norms are those of gradients over the batch's size, not of gradients"
    yield Guess(words, _cap(scaled, case.bound), alone=False)
    sizes = [abs(_rows(gradient)) for gradient in case.gradients]
    largest = np.stack([_local(namespace(size).amax(size, 1)) for size in sizes]).max(0)
    total = np.stack([_local(size.sum(1)) for size in sizes]).sum(0)
    yield Guess("the largest number is clipped at C, not the norm", _cap(largest, case.bound))
    yield Guess("the norm is the sum of absolute numbers", _cap(total, case.bound))


def automatic(case: Case) -> Iterator[Guess]:
    """Gradients are made of norm nearly C, large and small ones."""
    if not case.flat:
        return
    positive = np.maximum(case.norm, 1e-300)
    yield Guess("automatic clipping, C / norm", case.bound / positive)
    for gamma in GAMMAS:
        yield Guess(f"automatic clipping, C / (norm + {gamma:g})", case.bound / (positive + gamma))


def coarse_norms(case: Case) -> Iterator[Guess]:
    """Norms are computed in half precision."""
    if not case.flat:
        return
    for kind in ("fp16", "bf16"):
        coarse = [_rounded(_rows(gradient), kind) for gradient in case.gradients]
        parts = np.stack([_local((each**2).sum(1)) for each in coarse], axis=1)
        by_tensor = _rounded(np.sqrt(parts).astype(np.float32), kind)
        stacked = np.sqrt((by_tensor.astype(float) ** 2).sum(1))
        for norms in (stacked, np.sqrt(parts.sum(1)), case.norm):
            rounded = _rounded(norms.astype(np.float32), kind).astype(float)
            yield Guess(f"norms are computed in {kind}", _cap(rounded, case.bound))


def means_clipped(case: Case) -> Iterator[Guess]:
    """Means of a few examples are clipped; with another example, one may turn round."""
    examples = len(case.norm)
    if not case.flat:
        return
    for size in (group for group in GROUPS if group <= examples):
        groups = np.arange(examples) // size
        # A row for each group, with a 1 at each of its examples.
        members = (groups == np.arange(groups[-1] + 1)[:, None]).astype(float)
        sums = [_like(members, _rows(each)) @ _rows(each) for each in case.gradients]
        norms = np.linalg.norm(_norms(sums), axis=1)
        counts = members.sum(1)
        words = f"means of {size} examples are clipped, not examples"
        for divisors in (np.full(len(counts), float(size)), counts):
            factors = (_cap(norms / divisors, case.bound) / divisors)[groups]
            yield Guess(words, factors, alone=False, sensitivity=2.0)


def numbers_clamped(case: Case) -> Iterator[Guess]:
    """Each number of a gradient is clamped."""
    if not case.flat:
        return
    clamped = [namespace(g).clip(_wide(g), -case.bound, case.bound) for g in case.gradients]
    ones = np.ones(len(case.norm))
    yield Guess("each number is clamped at C, not the norm clipped", ones, gradients=clamped)


def largest_norm(case: Case) -> Iterator[Guess]:
    """All gradients are scaled by the largest norm of the batch."""
    most = case.norm.max(initial=0.0)
    if most <= 0:
        return
    factors = np.full(len(case.norm), case.bound / most)
    words = (
        "all examples are scaled by C over the batch's largest norm, which depends on the others"
    )
    yield Guess(words, factors, alone=False)


def batch_clipped(case: Case) -> Iterator[Guess]:
    """The sum or the mean is clipped as a whole."""
    ones = np.ones(len(case.norm))
    share = case.fitted(case.sampled(ones), case.seen)
    factors = share * ones
    size = sum(float((_wide(each) ** 2).sum()) for each in case.added) ** 0.5
    for count in (1, len(case.norm)):
        if abs(size / case.bound / max(count, 1) - 1) < 10 * case.tolerance:
            yield Guess("the batch is clipped as a whole, not each example", factors, alone=False)
    words = "all examples get the same factor: none is clipped by itself"
    yield Guess(words, factors, alone=False)


def raw_sum_added(case: Case) -> Iterator[Guess]:
    """The gradient before clipping is in the sum, too."""
    honest = case.honest()
    raw = case.sampled(np.ones(len(case.norm)))
    share = case.fitted(raw, case.seen - case.sampled(honest))
    words = "a multiple of the raw, unclipped sum is added to the clipped one"
    yield Guess(words, honest + share)


def constant_factor(case: Case) -> Iterator[Guess]:
    """The clipped sum is multiplied by a number."""
    honest = case.honest()
    share = case.fitted(case.sampled(honest), case.seen)
    examples = len(case.norm)
    if abs(share * examples - 1) < 10 * case.tolerance:
        words = "the clipped sum is divided by the batch's own size, which is private"
        yield Guess(words, honest / examples, alone=False)
    # A remainder of rounding is 0.
    share = share if abs(share) > case.tolerance else 0.0
    yield Guess(f"the clipped sum is multiplied by {share:.3g}", share * honest)


def another_clip(case: Case) -> Iterator[Guess]:
    """Gradients are clipped at another norm than C."""
    logarithms = np.linspace(-7, 7, 57)
    misses = [case.misses(case.honest(np.exp(x))) for x in logarithms]
    place = int(np.argmin(misses))
    low = logarithms[max(place - 1, 0)]
    high = logarithms[min(place + 1, len(logarithms) - 1)]
    best = minimize_scalar(
        lambda x: case.misses(case.honest(np.exp(x))),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-7},
    )
    factors = case.honest(np.exp(best.x))
    if (factors < 1).any():
        yield Guess(f"examples are clipped at {np.exp(best.x):.3g} C", factors)


def own_factors(case: Case) -> Iterator[Guess]:
    """Each example has a factor, which least squares find; what it depends on is not known."""
    examples = len(case.norm)
    if not 0 < examples <= min(MOST_FITTED, case.numbers // 2):
        return
    columns, seen, _ = case._sample
    products = columns @ columns.T
    sizes = np.linalg.eigvalsh(products)
    if sizes[0] > ALIKE * sizes[-1]:
        factors = np.linalg.solve(products, columns @ seen)
        yield Guess("some examples have another factor than C / norm", factors, alone=False)


#: All hypotheses; of several that explain all steps, the first is named.
HYPOTHESES: tuple[Callable[[Case], Iterator[Guess]], ...] = (
    none_clipped,
    other_parts,
    tensor_left_out,
    kind_left_out,
    other_norms,
    automatic,
    coarse_norms,
    means_clipped,
    numbers_clamped,
    largest_norm,
    constant_factor,
    batch_clipped,
    another_clip,
    raw_sum_added,
    own_factors,
)


# ------------------------------------------------------------------------------------------ arrays


def _cap(norms: Reals, clip: float | Reals) -> Reals:
    """The factors that leave at most ``clip`` of these norms."""
    return np.minimum(1.0, clip / (norms + SMALL))


def _spread(factors: Reals, norms: Reals) -> Reals:
    """Factors for each example and tensor."""
    return np.array(
        np.broadcast_to(factors if factors.ndim == 2 else factors[:, None], norms.shape)
    )


def _lengths(factors: Reals, norms: Reals) -> Reals:
    """The norm of what each example adds."""
    return np.linalg.norm(_spread(factors, norms) * norms, axis=1)


def _norms(gradients: Sequence[Any]) -> Reals:
    return np.stack([_local((_rows(each) ** 2).sum(1)) ** 0.5 for each in gradients], axis=1)


def _rows(gradient: Any) -> Any:
    return rows(_wide(gradient))


def _wide(array: Any) -> Any:
    """The array, in single precision at least."""
    if namespace(array) is np:
        return array if array.dtype.itemsize >= 4 else array.astype(np.float32)
    return array if array.element_size() >= 4 else array.float()


def _like(factors: Reals, gradient: Any) -> Any:
    """Factors with the precision, and in the place, of gradients."""
    if namespace(gradient) is np:
        return factors.astype(gradient.dtype)
    return namespace(gradient).as_tensor(factors).to(gradient)


def _local(array: Any) -> Reals:
    if namespace(array) is np:
        return array.astype(float)
    return array.detach().double().cpu().numpy()


def _rounded(array: Any, kind: str) -> Any:
    """The numbers as half precision has them, in single precision again."""
    xp = namespace(array)
    if xp is not np:
        return array.to(xp.float16 if kind == "fp16" else xp.bfloat16).float()
    if kind == "fp16":
        with np.errstate(over="ignore"):
            return array.astype(np.float16).astype(np.float32)
    bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    even = (bits >> np.uint32(16)) & np.uint32(1)
    return ((bits + np.uint32(0x7FFF) + even) & np.uint32(0xFFFF0000)).view(np.float32)

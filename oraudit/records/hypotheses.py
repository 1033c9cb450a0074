"""The hypotheses about a clipped sum that is off: each one predicts the sum.

A hypothesis is a small function that guesses a factor for each example, or for each example and
tensor. The prediction is the sum of the gradients times their factors.
"""

from collections.abc import Callable, Iterator

import numpy as np
from scipy.optimize import minimize_scalar

from oraudit.records.arrays import namespace
from oraudit.records.case import Case, Guess
from oraudit.records.factors import (
    by_tensor,
    capped,
    doubles,
    half_precision,
    like,
    norms_of,
    precise,
    precise_rows,
)

__all__ = [
    "HYPOTHESES",
    "another_clip",
    "automatic",
    "batch_clipped",
    "coarse_norms",
    "constant_factor",
    "kind_left_out",
    "largest_norm",
    "means_clipped",
    "none_clipped",
    "numbers_clamped",
    "other_norms",
    "other_parts",
    "own_factors",
    "raw_sum_added",
    "tensor_left_out",
]

#: The numbers γ of automatic clipping to try besides 0.
GAMMAS = (1e-6, 1e-4, 1e-3, 0.01, 0.1, 1.0)

#: The sizes of groups whose means may be clipped.
GROUPS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 50, 64)

#: The most examples for which a factor is fitted to each.
MOST_FITTED = 1000

#: If the smallest eigenvalue of the matrix of products of gradients, as a share of the largest, is
#: below this share, gradients are too alike to fit factors.
ALIKE = 1e-10


def none_clipped(case: Case) -> Iterator[Guess]:
    """Guess that gradients are added as they are."""
    yield Guess("no example is clipped", np.ones(len(case.norm)))


def other_parts(case: Case) -> Iterator[Guess]:
    """Guess that tensors are clipped together, or each by itself, although C says the other."""
    if not case.flat:
        factors = capped(case.norm, case.bound)
        yield Guess("all tensors are clipped together at C, not each at its part", factors)
    if case.norms.shape[1] > 1:
        factors = capped(case.norms, case.bound)
        yield Guess("each tensor is clipped at C by itself", factors)


def tensor_left_out(case: Case) -> Iterator[Guess]:
    """Guess that one tensor is left out of the norm, or is not clipped."""
    for tensor in range(case.norms.shape[1]):
        yield from _left_out(case, [tensor], f"tensor {{names[{tensor}]}} is")


def kind_left_out(case: Case) -> Iterator[Guess]:
    """Guess that all vectors or matrices are left out of the norm, or are not clipped."""
    # Axis 0 is the example: a vector's gradients have 2 axes, a matrix's 3.
    vectors = [k for k, gradient in enumerate(case.gradients) if gradient.ndim <= 2]
    matrices = [k for k, gradient in enumerate(case.gradients) if gradient.ndim > 2]
    yield from _left_out(case, vectors, "all vectors (biases) are")
    yield from _left_out(case, matrices, "all matrices are")


def _left_out(case: Case, left: list[int], subject: str) -> Iterator[Guess]:
    tensors = case.norms.shape[1]
    if not 0 < len(left) < tensors:
        return
    clipped = [k for k in range(tensors) if k not in left]
    # The tensors left are not clipped; the norm of the others includes them, or it does not.
    unclipped_norm_of_all = case.honest()
    unclipped_norm_of_all[:, left] = 1.0
    if case.flat:
        factors = capped(np.linalg.norm(case.norms[:, clipped], axis=1), case.bound)
        yield Guess(f"{subject} left out of the norm", factors)
        unclipped_norm_of_rest = by_tensor(factors, case.norms)
        unclipped_norm_of_rest[:, left] = 1.0
        yield Guess(f"{subject} not clipped", unclipped_norm_of_rest)
    yield Guess(f"{subject} not clipped", unclipped_norm_of_all)


def other_norms(case: Case) -> Iterator[Guess]:
    """Guess that the norm is another one than the Euclidean norm of the whole gradient."""
    if not case.flat:
        return
    sum_of_norms = case.norms.sum(1)
    if case.norms.shape[1] > 1:
        yield Guess("the norm is the sum of the tensors' norms", capped(sum_of_norms, case.bound))
        yield Guess(
            "the norm is the largest of the tensors'", capped(case.norms.max(1), case.bound)
        )
    yield Guess("the norm is squared", capped(case.norm**2, case.bound))
    scaled = case.norm / max(len(case.norm), 1)
    text = "norms are those of gradients over the batch's size, not of gradients"
    yield Guess(text, capped(scaled, case.bound), alone=False)
    absolute = [abs(precise_rows(gradient)) for gradient in case.gradients]
    largest = np.stack([doubles(namespace(table).amax(table, 1)) for table in absolute]).max(0)
    total = np.stack([doubles(table.sum(1)) for table in absolute]).sum(0)
    yield Guess("the largest number is clipped at C, not the norm", capped(largest, case.bound))
    yield Guess("the norm is the sum of absolute numbers", capped(total, case.bound))


def automatic(case: Case) -> Iterator[Guess]:
    """Guess that every gradient, large or small, is scaled to a norm of about C."""
    if not case.flat:
        return
    positive = np.maximum(case.norm, 1e-300)
    yield Guess("automatic clipping, C / norm", case.bound / positive)
    for gamma in GAMMAS:
        yield Guess(f"automatic clipping, C / (norm + {gamma:g})", case.bound / (positive + gamma))


def coarse_norms(case: Case) -> Iterator[Guess]:
    """Guess that norms are computed in half precision."""
    if not case.flat:
        return
    for kind in ("fp16", "bf16"):
        coarse = [half_precision(precise_rows(gradient), kind) for gradient in case.gradients]
        parts = np.stack([doubles((part**2).sum(1)) for part in coarse], axis=1)
        norms_by_tensor = half_precision(np.sqrt(parts).astype(np.float32), kind)
        stacked = np.sqrt((norms_by_tensor.astype(float) ** 2).sum(1))
        # Half precision by tensor and again for all, for squares of all, or for the norm only.
        for norms in (stacked, np.sqrt(parts.sum(1)), case.norm):
            rounded = half_precision(norms.astype(np.float32), kind).astype(float)
            yield Guess(f"norms are computed in {kind}", capped(rounded, case.bound))


def means_clipped(case: Case) -> Iterator[Guess]:
    """Guess that means of a few examples are clipped.

    One example may reverse a mean, so the sum moves by up to 2 C.
    """
    examples = len(case.norm)
    if not case.flat:
        return
    for size in (group for group in GROUPS if group <= examples):
        groups = np.arange(examples) // size
        # A row for each group, with a 1 at each of its examples.
        members = (groups == np.arange(groups[-1] + 1)[:, None]).astype(float)
        sums = [
            like(members, precise_rows(gradient)) @ precise_rows(gradient)
            for gradient in case.gradients
        ]
        norms = np.linalg.norm(norms_of(sums), axis=1)
        counts = members.sum(1)
        text = f"means of {size} examples are clipped, not examples"
        # The last group may be smaller: its mean is over the full size, or over its own.
        for divisors in (np.full(len(counts), float(size)), counts):
            factors = (capped(norms / divisors, case.bound) / divisors)[groups]
            yield Guess(text, factors, alone=False, sensitivity=2.0)


def numbers_clamped(case: Case) -> Iterator[Guess]:
    """Guess that each number of a gradient is clamped."""
    if not case.flat:
        return
    clamped = [namespace(g).clip(precise(g), -case.bound, case.bound) for g in case.gradients]
    ones = np.ones(len(case.norm))
    yield Guess("each number is clamped at C, not the norm clipped", ones, gradients=clamped)


def largest_norm(case: Case) -> Iterator[Guess]:
    """Guess that all gradients are scaled by the largest norm of the batch."""
    largest = case.norm.max(initial=0.0)
    if largest <= 0:
        return
    factors = np.full(len(case.norm), case.bound / largest)
    text = "all examples are scaled by C over the batch's largest norm, which depends on the others"
    yield Guess(text, factors, alone=False)


def batch_clipped(case: Case) -> Iterator[Guess]:
    """Guess that the sum or the mean is clipped as a whole."""
    ones = np.ones(len(case.norm))
    share = case.fitted(case.sampled(ones), case.seen)
    factors = share * ones
    norm = sum(float((precise(total) ** 2).sum()) for total in case.added) ** 0.5
    # The sum has norm C if it was clipped, n C if the mean was.
    for count in (1, len(case.norm)):
        if abs(norm / case.bound / max(count, 1) - 1) < 10 * case.tolerance:
            yield Guess("the batch is clipped as a whole, not each example", factors, alone=False)
    text = "all examples get the same factor: none is clipped by itself"
    yield Guess(text, factors, alone=False)


def raw_sum_added(case: Case) -> Iterator[Guess]:
    """Guess that a multiple of the unclipped gradients is in the sum, too."""
    honest = case.honest()
    raw = case.sampled(np.ones(len(case.norm)))
    share = case.fitted(raw, case.seen - case.sampled(honest))
    text = "a multiple of the raw, unclipped sum is added to the clipped one"
    yield Guess(text, honest + share)


def constant_factor(case: Case) -> Iterator[Guess]:
    """Guess that the clipped sum is multiplied by a number."""
    honest = case.honest()
    share = case.fitted(case.sampled(honest), case.seen)
    examples = len(case.norm)
    if abs(share * examples - 1) < 10 * case.tolerance:
        text = "the clipped sum is divided by the batch's own size, which is private"
        yield Guess(text, honest / examples, alone=False)
    # A share within rounding counts as 0.
    share = share if abs(share) > case.tolerance else 0.0
    yield Guess(f"the clipped sum is multiplied by {share:.3g}", share * honest)


def another_clip(case: Case) -> Iterator[Guess]:
    """Guess that gradients are clipped at another norm than C."""
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
    """Guess a factor for each example by least squares, whatever it depends on."""
    examples = len(case.norm)
    if not 0 < examples <= min(MOST_FITTED, case.numbers // 2):
        return
    columns, target, _ = case.sample
    products = columns @ columns.T
    eigenvalues = np.linalg.eigvalsh(products)
    if eigenvalues[0] > ALIKE * eigenvalues[-1]:
        factors = np.linalg.solve(products, columns @ target)
        yield Guess("some examples have another factor than C / norm", factors, alone=False)


#: All hypotheses; if several explain all steps, the report names the first.
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

"""A design that refutes a claim if a training run has less noise than stated."""

from math import ceil, expm1, log1p
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oralib.bounds import Counts
from oralib.bounds.refuting import guesses_needed, right_needed
from oralib.dpsgd import DpSgd
from oralib.dpsgd.hopping import hopping_counts
from oralib.planning.designs import Claim, Design

#: A plan to refute is made for the first of these shares of the noise at which it can refute.
NOISE_SHARES = (0.5, 0.35, 0.25, 0.15, 0.1, 0.05)

#: Numbers of guesses to try, as multiples of the least number that can refute.
MULTIPLES = (1.0, 1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 5.0)


class NoRefutationError(ValueError):
    """No plan was seen to refute the claim."""


class _Candidate(NamedTuple):
    """A design, numbers of guesses, and how many of them must be right to refute the claim."""

    design: Design
    k: NDArray[np.int64]
    need: NDArray[np.int64]


def find_refutation(
    designs: list[Design], claim: Claim, seed: int
) -> tuple[Design, int, float, float]:
    """The first design that is seen to refute the claim, at as much noise as possible.

    With it come the number of guesses, the share of the stated noise, and the share of simulated
    audits that refute the claim.
    """
    candidates = _candidates(designs, claim)
    for noise in NOISE_SHARES:
        for candidate in _most_promising(candidates, noise):
            k, refuted = _simulated(candidate, noise, seed)
            if refuted >= 0.5:
                return candidate.design, k, noise, refuted
    dpsgd, least = candidates[0].design.dpsgd, candidates[0].k[0]
    most = max(design.dpsgd.n for design in designs)
    enough = max(coordinates_to_refute(dpsgd, claim), 2 * dpsgd.d)
    raise NoRefutationError(
        f"no plan for {dpsgd.d:,} coordinates and at most {most:,} canaries was seen to refute an "
        f"epsilon of {claim.epsilon:g}, even with {NOISE_SHARES[-1]:g} of the stated noise. It "
        f"takes {least:,} guesses, nearly all right; try d={enough}, and at least as many canaries"
    )


def coordinates_to_refute(training: DpSgd, claim: Claim) -> int:
    """How many coordinates to begin with: five for each guess that it takes, all right.

    Only canaries that come into a batch count. Half as many refuted a claim of 8 if there was very
    little noise, but never if clipping was missing.
    """
    least = _least_guesses(claim)
    seen = -expm1(training.steps * log1p(-min(training.sample_rate, 0.999)))
    unit = 10 ** max(len(str(int(5 * least / seen))) - 2, 0)
    return ceil(5 * least / seen / unit) * unit


def _least_guesses(claim: Claim) -> int:
    """The least number of guesses that can refute a claim at δ = 0: less than at any other δ."""
    any_audit = Counts(1, 1, 1, r_fixed=True)
    return guesses_needed(any_audit, claim.epsilon, delta=0.0, beta=claim.beta) or 10**7


def _candidates(designs: list[Design], claim: Claim) -> list[_Candidate]:
    """The designs in which some number of guesses, all right, refutes the claim."""
    candidates, test = [], {"delta": claim.delta, "beta": claim.beta}
    for design in designs:
        n, active = design.dpsgd.n, design.active_at_the_end
        least = guesses_needed(Counts(1, 1, n, r_fixed=True), claim.epsilon, **test)
        if least is not None and least <= active:
            k = np.unique([min(ceil(least * multiple), active) for multiple in MULTIPLES])
            fixed = [Counts(r, r, n, r_fixed=True) for r in k.tolist()]
            need = np.array([right_needed(counts, claim.epsilon, **test) for counts in fixed])
            candidates.append(_Candidate(design, k, need))
    if not candidates:
        few = _least_guesses(claim)
        most = max(design.dpsgd.n for design in designs)
        raise NoRefutationError(
            f"refuting an epsilon of {claim.epsilon:g} takes at least {few:,} right guesses, and "
            f"{most:,} canaries are too few, or too many for a delta of {claim.delta:g}"
        )
    return candidates


def _most_promising(candidates: list[_Candidate], noise: float) -> list[_Candidate]:
    """The few candidates that are worth simulating, which takes seconds for each.

    First come the three with the largest predicted margin, in standard deviations, above the least
    number of right guesses that refutes. The prediction is too kind to canaries that share a
    coordinate, so one more in which they do not is tried.
    """
    margins = [
        float(design.with_noise(noise).margins(k, need).max()) for design, k, need in candidates
    ]
    order = sorted(range(len(candidates)), key=lambda i: -margins[i])
    able = [candidates[i] for i in order if margins[i] > 0]
    quick = [candidate for candidate in able if candidate.design.affordable(2)] or able
    alone = [candidate for candidate in quick[3:] if candidate.design.dpsgd.per_coordinate == 1]
    return quick[:3] + alone[:1]


def _simulated(candidate: _Candidate, noise: float, seed: int) -> tuple[int, float]:
    """The best number of guesses of a candidate, and how often it refutes the claim."""
    design = candidate.design.with_noise(noise)  # which the guesser has learned from the gradients
    options: dict[str, Any] = {"dropping": design.dropping, "trials": max(2, design.affordable(10))}
    counts = hopping_counts(design.dpsgd, candidate.k[::-1].tolist(), **options, seed=seed)
    spare = np.array([each.v for each in counts[::-1]]) - candidate.need[:, None]
    i = max(range(len(spare)), key=lambda i: ((spare[i] >= 0).mean(), spare[i].mean()))
    k = int(candidate.k[i])
    # The best of several may have been lucky, so another seed says how often it refutes.
    (again,) = hopping_counts(design.dpsgd, [k], **options, seed=seed + 1)
    return k, float((again.v >= candidate.need[i]).mean())

"""Test the stated training by counts: is it the one that was claimed, with its noise?

The training that was stated has D_in and D_out at every ε (:mod:`oralib.dpsgd.claim`), and each
point is a consequence of the claim. The test looks at the one point ε' where the fewest right
guesses are enough. It is chosen before the audit, from the number of canaries and guesses alone.

Its result is of another kind than a bound. A bound is a number: *any* mechanism with these counts
has an ε that is at least the bound. The test has a :class:`TrainingVerdict`: *this* training is not
the one that was stated, and may still have the stated ε at one δ. Each of the two fails with
probability β at most, so one of them with up to 2β.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, floor, log10, sqrt

import numpy as np

from oralib.bounds import Counts
from oralib.bounds.counts import Expected, leaks
from oralib.bounds.random_r import pilot_of
from oralib.bounds.valid import p_values, valid_rule
from oralib.dpsgd.claim import Profile, Stretches, coarse_profile, stretches_of
from oralib.ground import arguments
from oralib.ground.types import Array, Coins, Feedback, Said

__all__ = ["TrainingTest", "TrainingVerdict"]

#: The range of :attr:`TrainingVerdict.noise`, in units of the stated noise.
_SMALLEST_NOISE = 1 / 64
_LARGEST_NOISE = 64.0
#: The factor between neighbouring answers for the noise.
_STEP = 1.01


@dataclass(frozen=True)
class TrainingVerdict:
    """The verdict of counts on the stated training, and on nothing else.

    As a string it is a sentence.

    Attributes
    ----------
    v, r : int
        The numbers of right guesses and of all guesses.
    needed : int or None
        The least number of right guesses that refutes the stated training; None if even all are
        too few, or if the number of guesses was not fixed.
    epsilon, p_value : float
        The ε' that was tested, and the p-value there.
    refuted : bool
        Whether the p-value is at most β.
    noise : float or None
        An upper limit for the noise in units of the stated noise, if rate, steps and clipping were
        as stated; None if nothing is known, or if the claim is a profile. It is below 1 only if the
        training is refuted, and both together fail with probability at most β.
    beta : float
        The probability with which the verdict may fail.

    Examples
    --------
    >>> from oralib import Training
    >>> test = TrainingTest(Training(2.422402, 0.1, 100), n=4000, guesses=120)
    >>> verdict = test.judge(Counts(99, 120, n=4000, r_fixed=True))
    >>> verdict.refuted, verdict.needed, round(verdict.noise, 2)
    (False, 104, 1.18)
    """

    v: int
    r: int
    needed: int | None
    epsilon: float
    p_value: float
    refuted: bool
    noise: float | None
    beta: float

    def __str__(self) -> str:
        result = "is refuted" if self.refuted else "is not refuted"
        limit = "" if self.needed is None else f", {self.needed} refute it"
        noise = ""
        if self.noise is not None:
            noise = (
                f"Its noise is at most {_rounded_up(self.noise)} times what was stated, if its "
                "rate, steps and clipping are as stated. "
            )
        return (
            f"The stated training {result}: {self.v} of {self.r} guesses are right{limit} "
            f"(p ≤ {_rounded_up(self.p_value)} at ε' = {self.epsilon:g}). {noise}"
            f"This fails with probability at most {self.beta:g}; together with a bound on ε at "
            f"such a β, one of the two fails with up to {2 * self.beta:g}."
        )


@dataclass(frozen=True, eq=False)
class TrainingTest:
    """A test of a stated training, fixed before the audit; its counts come later.

    Attributes
    ----------
    claim : Training, sequence of Training, or Profile
        The statement: a training, its stretches, or D_in and D_out at some ε. A claim that is only
        one (ε, δ) says less: for that :func:`oralib.valid_lower_bound` is the test.
    n : int
        The number of canaries, each with a coin of its own, or balanced.
    guesses : int or None
        The number of guesses; missing ones count as wrong. None if the output decides it.
    beta : float
        The probability with which an honest training may be refuted, in (0, 1).
    side, feedback, coins, r_in : str, str, str, int or None
        The set-up of the audit, as in :class:`oralib.Counts`.
    expected : Counts or int or None
        The expected counts if the output decides the number of guesses, as in
        :func:`oralib.valid_lower_bound`.

    Examples
    --------
    >>> from oralib import Training
    >>> stated = Training(sigma=2.422402, sample_rate=0.1, steps=100)
    >>> test = TrainingTest(stated, n=4000, guesses=120)
    >>> test.needed, round(test.epsilon, 3)
    (104, 1.3)
    >>> TrainingTest(stated, n=4000, guesses=120, side="in").needed
    103
    """

    claim: Stretches | Profile
    n: int
    guesses: int | None = None
    beta: float = 0.05
    side: Said = "both"
    feedback: Feedback = "none"
    coins: Coins = "independent"
    r_in: int | None = None
    expected: Expected = None

    def __post_init__(self) -> None:
        if not isinstance(self.claim, Profile):
            stretches_of(self.claim, "claim")
        beta, _ = arguments.beta_and_delta(self.beta)
        n = arguments.integer("n", self.n, 1)
        guesses = self.guesses
        if guesses is not None:
            guesses = arguments.integer("guesses", guesses, 1, n)
        elif self.expected is None:
            raise ValueError("expected must be given if guesses is None, got expected=None")
        arguments.store(self, beta=beta, n=n, guesses=guesses)
        design = self._counts(0)
        valid_rule(design, 1.0)  # an error if the library has none
        pilot_of(design.n, self.expected)

    @cached_property
    def profile(self) -> Profile:
        """D_in and D_out of the claim, at the ε of which one is chosen."""
        return self.claim if isinstance(self.claim, Profile) else Profile.of(self.claim)

    @property
    def epsilon(self) -> float:
        """The ε' that is tested: where the fewest right guesses are enough."""
        return float(self.profile.epsilon[self._point[1]])

    @property
    def d_in(self) -> float:
        """D_in of the claim at this ε'."""
        return float(self.profile.d_in[self._point[1]])

    @property
    def d_out(self) -> float:
        """D_out of the claim at this ε'."""
        return float(self.profile.d_out[self._point[1]])

    @property
    def needed(self) -> int | None:
        """The fewest right guesses that refute the claim; None if all are too few, or r is open."""
        return None if self.guesses is None else self._point[0]

    def p_value(self, counts: Counts) -> float:
        """Return the p-value of the claim at ε', for the counts of the audit."""
        self._check(counts)
        point = self.epsilon, self.d_in, self.d_out
        return float(p_values(counts, *point, beta=self.beta, expected=self.expected)[0])

    def judge(self, counts: Counts) -> TrainingVerdict:
        """Return the verdict of the audit's counts on the claim.

        For the noise of a training some more profiles are computed, which takes seconds.
        """
        p_value = self.p_value(counts)
        v = int(np.squeeze(counts.v))
        if self.guesses is None:
            refuted = p_value <= self.beta
        else:
            refuted = self.needed is not None and v >= self.needed
        return TrainingVerdict(
            v=v,
            r=int(np.squeeze(counts.r)),
            needed=self.needed,
            epsilon=self.epsilon,
            p_value=p_value,
            refuted=refuted,
            noise=None if isinstance(self.claim, Profile) else self._noise(counts, refuted),
            beta=self.beta,
        )

    @cached_property
    def _point(self) -> tuple[int | None, int]:
        """The least number of right guesses that refutes, and the index of ε' in the profile.

        If the number of guesses is open, ε' is the best one for the expected number.
        """
        if self.guesses is None:
            pilot = pilot_of(self.n, self.expected)
            r = max(1, pilot[1] if isinstance(pilot, tuple) else pilot or 1)
            design = Counts(0, r, n=self.n, r_fixed=True, side=self.side)
        else:
            r = self.guesses
            design = self._counts(r)

        def p_values_of(v: int) -> Array:
            return self._p_values(replace(design, v=v), self.profile)

        def refutes(v: int) -> bool:
            return bool(p_values_of(v).min() <= self.beta)

        fewest = bisect_left(range(r + 1), True, key=refutes)
        index = int(np.argmin(p_values_of(min(fewest, r))))
        return fewest if fewest <= r else None, index

    def _p_values(self, counts: Counts, profile: Profile) -> Array:
        """Return the p-value at each point of a profile, for a number of guesses that was fixed."""
        return p_values(counts, profile.epsilon, profile.d_in, profile.d_out, beta=self.beta)

    def _noise(self, counts: Counts, refuted: bool) -> float | None:
        """Return the least share of the noise that is refuted, on a grid; None if none is.

        A mechanism with more noise has smaller D_in and D_out, so counts that refute a share of the
        noise refute all larger shares, at the same ε'. If the number of guesses is open, ε', b* and
        the right guesses to discount are those of the plan for all shares.
        """
        if isinstance(self.claim, Profile):
            return None
        stretches = stretches_of(self.claim)

        def refuted_at_planned_point(share: float) -> bool:
            profile = coarse_profile(stretches, share, (self.epsilon,))
            values = p_values(
                counts,
                float(profile.epsilon[0]),
                float(profile.d_in[0]),
                float(profile.d_out[0]),
                beta=self.beta,
                expected=self.expected,
                planned=leaks(counts, self.d_in, self.d_out),
            )
            return bool(values[0] <= self.beta)

        def refuted_at_any_point(share: float) -> bool:
            profile = coarse_profile(stretches, share, tuple(self.profile.epsilon.tolist()))
            return bool(self._p_values(counts, profile).min() <= self.beta)

        def share_is_refuted(share: float) -> bool:
            if share == 1:
                return refuted
            if self.guesses is None:
                return refuted_at_planned_point(share)
            return refuted_at_any_point(share)

        return _least_passing(share_is_refuted)

    def _counts(self, r: int) -> Counts:
        """Return the counts of an audit as planned with no right guesses."""
        return Counts(
            0,
            self.guesses or r,
            n=self.n,
            r_fixed=self.guesses is not None,
            side=self.side,
            feedback=self.feedback,
            coins=self.coins,
            r_in=self.r_in,
        )

    def _check(self, counts: Counts) -> None:
        arguments.instance("counts", counts, Counts, "Counts(75, 100, n=1000, r_fixed=True)")
        if counts.trials != 1:
            raise ValueError(f"counts must be those of one audit, got {counts.trials} audits")
        planned = self._counts(int(np.squeeze(counts.r)))
        for name in ("n", "r_fixed", "r", "side", "feedback", "coins", "r_in"):
            expected = getattr(planned, name)
            actual = np.squeeze(getattr(counts, name)).item()
            if actual != expected:
                raise ValueError(
                    f"counts must be as planned, with {name}={expected!r}, got {actual!r}"
                )


def _least_passing(passes: Callable[[float], bool]) -> float | None:
    """Return the least number that passes, at most 1% too large; None if none up to 64 does."""
    high = 1.0
    factor = 2.0
    if passes(high):
        while high > _SMALLEST_NOISE and passes(high / factor):
            high /= factor
        if high <= _SMALLEST_NOISE:
            return high
    else:
        high *= factor
        while not passes(high):
            if high >= _LARGEST_NOISE:
                return None
            high *= factor
    low = high / factor
    while high / low > _STEP:
        middle = sqrt(low * high)
        if passes(middle):
            high = middle
        else:
            low = middle
    return high


def _rounded_up(number: float) -> str:
    """Return two digits that are not below a positive number."""
    number = max(number, 1e-290)
    step = 10.0 ** (floor(log10(number)) - 1)
    return f"{ceil(number / step) * step:.2g}"

"""Test the stated training by counts: is it the one that was claimed, with its noise?

The training that was stated has D_in and D_out at every ε (:mod:`oralib.dpsgd.claim`), and each point
is a consequence of the claim. The test looks at the one point ε' where the fewest right guesses are
enough. It is chosen before the audit, from the number of canaries and guesses alone.

What it says is of another kind than a bound: a bound says that *any* mechanism with such counts has
ε of at least so much; the test says that *this* training is not the one that was stated, which may
still have its ε at one δ. A bound is a number, and what is said here a :class:`TrainingVerdict`.
Each of the two fails with probability β at most, so one of them with up to 2β.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt

import numpy as np

from oralib.bounds import Counts
from oralib.bounds.counts import Expected, leaks
from oralib.bounds.random_r import pilot_of
from oralib.bounds.valid import p_values, valid_rule
from oralib.dpsgd.claim import Profile, Stretches, coarse_profile, stretches_of
from oralib.ground import arguments
from oralib.ground.text import rounded_up
from oralib.ground.types import Array, Coins, Feedback, Said

#: How many times the stated noise, at most and at least, is told.
_LEAST_NOISE, _LARGEST_NOISE = 1 / 64, 64.0
#: Neighbouring answers for the noise differ by less than this factor.
_STEP = 1.01


@dataclass(frozen=True)
class TrainingVerdict:
    """What counts say of the stated training, and of nothing else; ``str()`` of it is a sentence.

    Attributes
    ----------
    v, r : int
        Right guesses, and all guesses.
    needed : int or None
        How many right guesses refute the stated training; None if even all are too few, or if the
        number of guesses was not fixed.
    epsilon, p_value : float
        The ε' that was tested, and the p-value there.
    refuted : bool
        Whether the p-value is at most β.
    noise : float or None
        The noise is at most so many times what was stated, if rate, steps and clipping were as
        stated; None if nothing is known, or if the claim is a profile. It is below 1 only if the
        training is refuted, and the two together fail with probability β at most.
    beta : float
        How often this may fail.

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
        found = f"{self.v} of {self.r} guesses are right"
        enough = "" if self.needed is None else f", {self.needed} refute it"
        result = "is refuted" if self.refuted else "is not refuted"
        p = f"p ≤ {rounded_up(self.p_value)} at ε' = {self.epsilon:g}"
        noise = ""
        if self.noise is not None:
            noise = (
                f" Its noise is at most {rounded_up(self.noise)} times what was stated, if its "
                "rate, steps and clipping are as stated."
            )
        return (
            f"The stated training {result}: {found}{enough} ({p}).{noise} This fails with "
            f"probability at most {self.beta:g}; together with a bound on ε at such a β, one of "
            f"the two fails with up to {2 * self.beta:g}."
        )


@dataclass(frozen=True, eq=False)
class TrainingTest:
    """A test of a stated training, fixed before the audit; its counts come later.

    Attributes
    ----------
    claim : Training, sequence of Training, or Profile
        What was stated: a training, its stretches, or D_in and D_out at some ε. A claim that is
        only one (ε, δ) says less: for that :func:`oralib.valid_lower_bound` is the test.
    n : int
        The number of canaries, each with a coin of its own, or balanced.
    guesses : int or None
        How many guesses there will be; missing ones count as wrong. None if the output decides.
    beta : float
        How often an honest training may be refuted, in (0, 1).
    side, feedback, coins, r_in : str, str, str, int or None
        As in :class:`oralib.Counts`.
    expected : Counts or int or None
        If the output decides the number of guesses: what is expected, as in
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
        valid_rule(design, 1.0)  # an error if there is none
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
        """How many right guesses refute the claim; None if even all are too few, or r is open."""
        return None if self.guesses is None else self._point[0]

    def p_value(self, counts: Counts) -> float:
        """The p-value of the claim at ε', for the counts of the audit."""
        self._check(counts)
        point = self.epsilon, self.d_in, self.d_out
        return float(p_values(counts, *point, beta=self.beta, expected=self.expected)[0])

    def judge(self, counts: Counts) -> TrainingVerdict:
        """What the counts of the audit say of the claim.

        For the noise of a training some more profiles are computed, which takes seconds.
        """
        p_value, v = self.p_value(counts), int(np.squeeze(counts.v))
        refuted = p_value <= self.beta
        if self.guesses is not None:
            refuted = self.needed is not None and v >= self.needed
        point = self.needed, self.epsilon, p_value, refuted
        noise = None if isinstance(self.claim, Profile) else self._noise(counts, refuted)
        return TrainingVerdict(v, int(np.squeeze(counts.r)), *point, noise, self.beta)

    @cached_property
    def _point(self) -> tuple[int | None, int]:
        """How many right guesses are needed, and the place of ε' among those of the profile.

        If the number of guesses is open, the place is the best for as many as are expected.
        """
        r = self.guesses or 1
        design = self._counts(r)
        if self.guesses is None:
            pilot = pilot_of(design.n, self.expected)
            r = max(1, pilot[1] if isinstance(pilot, tuple) else pilot or 1)
            design = Counts(0, r, n=self.n, r_fixed=True, side=self.side)

        def values(v: int) -> Array:
            return self._values(replace(design, v=v), self.profile)

        needed = bisect_left(range(r + 1), True, key=lambda v: bool(values(v).min() <= self.beta))
        return needed if needed <= r else None, int(np.argmin(values(min(needed, r))))

    def _values(self, counts: Counts, profile: Profile) -> Array:
        """The p-value at each point of a profile, for a number of guesses that was fixed."""
        return p_values(counts, profile.epsilon, profile.d_in, profile.d_out, beta=self.beta)

    def _noise(self, counts: Counts, refuted: bool) -> float | None:
        """The least share of the noise that is refuted, on a grid; None if none is.

        A mechanism with more noise has smaller D_in and D_out, so whatever refutes a share of the
        noise refutes all larger ones, at the same ε'. If the number of guesses is open, this is
        the planned one; and b* and what is taken away are those of the plan for all shares.
        """
        if isinstance(self.claim, Profile):
            return None
        stretches = stretches_of(self.claim)
        if self.guesses is None:
            planned = leaks(counts, self.d_in, self.d_out)
            epsilons: tuple[float, ...] = (self.epsilon,)
        else:
            epsilons = tuple(self.profile.epsilon.tolist())

        def too_much(share: float) -> bool:
            if share == 1:
                return refuted
            profile = coarse_profile(stretches, share, epsilons)
            if self.guesses is not None:
                return bool(self._values(counts, profile).min() <= self.beta)
            how = {"beta": self.beta, "expected": self.expected, "planned": planned}
            point = float(profile.epsilon[0]), float(profile.d_in[0]), float(profile.d_out[0])
            return bool(p_values(counts, *point, **how)[0] <= self.beta)

        return _least_passing(too_much)

    def _counts(self, r: int) -> Counts:
        """No right guesses, in an audit as planned."""
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
            due, got = getattr(planned, name), np.squeeze(getattr(counts, name)).item()
            if got != due:
                raise ValueError(f"counts must be as planned, with {name}={due!r}, got {got!r}")


def _least_passing(passes: Callable[[float], bool]) -> float | None:
    """The least number that passes, a hundredth too large at most; None if none does up to 64."""
    high, factor = 1.0, 2.0
    if passes(high):
        while high > _LEAST_NOISE and passes(high / factor):
            high /= factor
        if high <= _LEAST_NOISE:
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
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high

"""Designs of an audit: how many canaries, how they are dropped, and what each would show."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from oralib.accounting import certified_epsilon
from oralib.bounds import Counts, epsilon_lower_bound
from oralib.bounds.refuting import right_needed
from oralib.dpsgd import DpSgd, Dropping
from oralib.dpsgd.prediction import predicted_accuracy
from oralib.ground.types import Way

#: Canaries per coordinate of designs in which they hop.
PER_COORDINATE = (2, 4, 8, 16, 24, 32, 48, 64, 100, 150)

#: Simulated audits move at most this many canaries in total, which takes seconds.
_MOVES = 4e8


@dataclass(frozen=True)
class Claim:
    """A claim of (ε, δ)-DP, and how often an audit may refute it wrongly.

    Examples
    --------
    >>> Claim(epsilon=2.0, delta=1e-5, beta=0.05).epsilon
    2.0
    """

    epsilon: float
    delta: float
    beta: float

    @property
    def test(self) -> dict[str, Any]:
        """What the bounds need to know about it."""
        return {"delta": self.delta, "beta": self.beta}

    def exceeded(self, sigma: float, steps: int, sample_rate: float) -> float | None:
        """The ε of a training with this noise, if it is more than is claimed."""
        # Accountants differ a little, so the tightest that we have judges, with some room.
        epsilon = certified_epsilon(sigma, self.delta, steps, sample_rate, accountant="pld")
        return epsilon if epsilon > 1.02 * self.epsilon else None


@dataclass(frozen=True)
class Design:
    """A training run with canaries, how they are dropped (None if not), and how they enter it.

    Examples
    --------
    >>> Design(DpSgd(n=400, d=100, sigma=1.0), Dropping(final=2)).active_at_the_end
    200
    """

    dpsgd: DpSgd
    dropping: Dropping | None
    way: Way = "sum"

    @property
    def active_at_the_end(self) -> int:
        """The number of canaries that have not been dropped when the training ends."""
        return self.dpsgd.n if self.dropping is None else int(self.dropping.active(self.dpsgd)[-1])

    def affordable(self, trials: int) -> int:
        """How many of these trials can be simulated in a short time: 0, or at least 2."""
        dpsgd, dropping = self.dpsgd, self.dropping
        moves = dpsgd.n * dpsgd.steps if dropping is None else float(dropping.active(dpsgd).sum())
        trials = min(trials, int(_MOVES / moves))
        return trials if trials > 1 else 0

    def with_noise(self, share: float) -> "Design":
        """The same design with this share of the stated noise."""
        sigma = max(self.dpsgd.sigma * share, 1e-3)
        return replace(self, dpsgd=replace(self.dpsgd, sigma=sigma))

    def growth(self, examples: int) -> float:
        """How many times as many examples a training run has with the canaries."""
        return 1.0 if self.way == "sum" else 1 + self.dpsgd.n / examples

    def margins(self, guesses: NDArray[np.int64], need: NDArray[np.int64]) -> NDArray[np.float64]:
        """By how many standard deviations right guesses exceed what is needed, as predicted."""
        p = predicted_accuracy(self.dpsgd, guesses, self.dropping)
        return np.asarray((guesses * p - need + 0.5) / np.sqrt(guesses * p * (1 - p) + 0.25))

    def refuting(self, guesses: int, claim: Claim) -> float:
        """The predicted share of audits with so many guesses that refute the claim."""
        counts = Counts(0, guesses, self.dpsgd.n, r_fixed=True)
        need = right_needed(counts, claim.epsilon, **claim.test)
        if need is None:
            return 0.0
        return float(scipy.special.ndtr(self.margins(np.array([guesses]), np.array([need])))[0])

    def bounds(self, guesses: NDArray[np.int64], claim: Claim) -> NDArray[np.float64]:
        """The predicted bounds, interpolated between whole numbers of right guesses."""
        right = predicted_accuracy(self.dpsgd, guesses, self.dropping) * guesses
        floor = np.minimum(right.astype(np.int64), guesses - 1)
        how: dict[str, Any] = {**claim.test, "n": self.dpsgd.n, "method": "exact"}
        low, high = (np.asarray(epsilon_lower_bound(v, guesses, **how)) for v in (floor, floor + 1))
        return low + (right - floor) * (high - low)


def designs(training: DpSgd, canaries: int, way: Way) -> Iterator[Design]:
    """Designs with at most this many canaries: one on each coordinate or on fewer, or several."""
    alone = min(training.d, canaries)
    yield Design(replace(training, n=alone), None, way)
    while alone >= 2000:
        alone //= 2
        yield Design(replace(training, n=alone), None, way)
    for s in (s for s in PER_COORDINATE if s * training.d <= canaries):
        crowd = replace(training, n=s * training.d)
        yield Design(crowd, None, way)
        for final in (final for final in (1.0, 2.0, 4.0) if final < s):
            # The shape of the best schedule that we found in the paper's main setting.
            yield Design(crowd, Dropping(final, 0.9, 1.65, (3.0, 20.0)), way)

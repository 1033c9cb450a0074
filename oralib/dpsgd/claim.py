"""The claim of a training: what each example may show, at all ε at once.

An accountant certifies a whole training, not one δ. For add or remove one example, Poisson-sampled
batches and division by the expected size of a batch, it follows for every ε that no event is more
likely with an example than e^ε times its probability without it, plus D_in(ε); and the other way
round, plus D_out(ε). Accountants call the two directions "remove" and "add". They differ by far:
at ε = 1.3 D_out is a quarter of D_in, for a training with ε = 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import expm1, sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oralib.dpsgd.accounting import SIGMA_RANGE, coarseness, event, quiet_accountant
from oralib.ground import arguments
from oralib.ground.types import ACCOUNTANTS, Accountant

__all__ = ["Profile", "Stretches", "Training", "coarse_profile", "stretches_of"]

#: The default ε of :meth:`Profile.of`: denser where claims are usual.
EPSILONS = np.concatenate(
    [np.arange(160) / 40, 4 + np.arange(80) / 10, 12 + np.arange(57) / 2]  # up to 40
)
#: Added to D_in and D_out: more than the rounding errors of an accountant.
_MARGIN = 1e-13
#: Points of a table for the spread of a step's loss: D is too large by about 1 in 30,000.
_FINENESS = 128
#: The same for :func:`coarse_profile`: D is too large by about 1 in 500.
_COARSE_FINENESS = 16


@dataclass(frozen=True)
class Training:
    """A stated training by DP-SGD, or a stretch of one: noise, rate and steps.

    A training whose noise or rate changes is a list of such stretches.

    Attributes
    ----------
    sigma : float
        The noise multiplier.
    sample_rate : float
        The probability of an example to be in a batch, each by itself.
    steps : int
        The number of batches.

    Examples
    --------
    >>> Training(sigma=2.4224, sample_rate=0.1, steps=100).with_noise(0.5)
    Training(sigma=1.2112, sample_rate=0.1, steps=100)
    """

    sigma: float
    sample_rate: float
    steps: int

    def __post_init__(self) -> None:
        arguments.store(
            self,
            sigma=arguments.real("sigma", self.sigma, *SIGMA_RANGE),
            sample_rate=arguments.real("sample_rate", self.sample_rate, 1e-12, 1),
            steps=arguments.integer("steps", self.steps, 1),
        )

    def with_noise(self, share: float) -> "Training":
        """Return the same training with ``share`` times the noise."""
        return replace(self, sigma=share * self.sigma)


#: A training, or its stretches.
Stretches: TypeAlias = Training | Sequence[Training]


@dataclass(frozen=True, eq=False)
class Profile:
    """The numbers that a claim allows at some ε: D_in and D_out, or upper limits for them.

    Attributes
    ----------
    epsilon : array
        The ε, at least 0.
    d_in, d_out : array
        For each ε the largest P[A | in] - e^ε P[A | out] of all events A, and the largest
        P[A | out] - e^ε P[A | in]. A claim that is δ as a function of ε has twice the same, which
        is the default.

    Examples
    --------
    >>> claim = Profile.of(Training(2.422402, 0.1, 100), [1.0, 1.3])
    >>> claim.d_in.round(6).tolist(), claim.d_out.round(6).tolist()
    ([0.003042, 0.000476], [0.001456, 0.000113])
    """

    epsilon: Any
    d_in: Any
    d_out: Any = None

    def __post_init__(self) -> None:
        d_in = np.atleast_1d(arguments.reals("d_in", self.d_in, 0, 1))
        d_out = d_in
        if self.d_out is not None:
            d_out = np.atleast_1d(arguments.reals("d_out", self.d_out, 0, 1))
        epsilon = arguments.reals("epsilon", self.epsilon, 0, np.inf, interval="[)")
        epsilon = np.atleast_1d(epsilon)
        if not epsilon.shape == d_in.shape == d_out.shape or epsilon.ndim != 1:
            raise ValueError(
                "epsilon, d_in and d_out must be lists of one length, "
                f"got d_in {d_in.shape}, d_out {d_out.shape}, epsilon {epsilon.shape}"
            )
        arguments.read_only((epsilon, d_in, d_out))
        arguments.store(self, epsilon=epsilon, d_in=d_in, d_out=d_out)

    @staticmethod
    def of(
        training: Stretches, epsilons: Any = EPSILONS, *, accountant: Accountant = "pld"
    ) -> "Profile":
        """Return the profile of a training, by an accountant that errs on the safe side.

        Parameters
        ----------
        training : Training or sequence of Training
            The stated training, or its stretches, each with a noise and a rate of its own.
        epsilons : array
            The ε at which D_in and D_out are computed.
        accountant : str
            ``"pld"``, nearly exact; or ``"rdp"``, if only Rényi divergences are claimed: then both
            numbers are the δ that follows from them.
        """
        arguments.one_of("accountant", accountant, ACCOUNTANTS)
        stretches = stretches_of(training)
        grid = np.atleast_1d(arguments.reals("epsilons", epsilons, 0, np.inf, interval="[)"))
        return _profile(stretches, tuple(grid.tolist()), accountant)


def stretches_of(training: Stretches, name: str = "training") -> tuple[Training, ...]:
    """Return the stretches of a training, checked; ``name`` is for messages."""
    parts = tuple(training) if isinstance(training, list | tuple) else (training,)
    for part in parts:
        arguments.instance(name, part, Training, "Training(2.4224, 0.1, 100), or a list of such")
    if not parts:
        raise ValueError(f"{name} must have at least one stretch, got none")
    return parts


@lru_cache(maxsize=256)
def _profile(
    stretches: tuple[Training, ...], epsilons: tuple[float, ...], accountant: Accountant
) -> Profile:
    grid = np.array(epsilons)
    if accountant == "rdp":
        d_in, d_out = _by_rdp(stretches, grid)
    else:
        d_in, d_out = _by_pld(stretches, grid, _FINENESS)
    return _on_the_safe_side(grid, d_in, d_out)


@lru_cache(maxsize=256)
def coarse_profile(
    stretches: tuple[Training, ...], share: float, epsilons: tuple[float, ...]
) -> Profile:
    """Return the profile with ``share`` times the noise, by wider cells than :meth:`Profile.of`.

    It takes less time, and its numbers are a little larger.
    """
    grid = np.array(epsilons)
    parts = tuple(part.with_noise(share) for part in stretches)
    d_in, d_out = _by_pld(parts, grid, _COARSE_FINENESS)
    return _on_the_safe_side(grid, d_in, d_out)


def _on_the_safe_side(
    epsilon: NDArray[np.float64], d_in: NDArray[np.float64], d_out: NDArray[np.float64]
) -> Profile:
    return Profile(epsilon, np.clip(d_in + _MARGIN, 0, 1), np.clip(d_out + _MARGIN, 0, 1))


def _by_pld(
    stretches: tuple[Training, ...], epsilon: NDArray[np.float64], fineness: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (D_in, D_out) from the laws of the privacy loss, rounded to the safe side."""
    from dp_accounting.pld import privacy_loss_distribution

    parts = [
        # Full batches are one step with less noise.
        Training(part.sigma / sqrt(part.steps), 1.0, 1) if part.sample_rate == 1 else part
        for part in stretches
    ]
    interval = min(_interval(part, fineness) for part in parts)
    laws = [
        privacy_loss_distribution.from_gaussian_mechanism(
            part.sigma,
            sampling_prob=part.sample_rate,
            value_discretization_interval=interval,
            pessimistic_estimate=True,
            use_connect_dots=True,
        ).self_compose(part.steps)
        for part in parts
    ]
    total = laws[0]
    for law in laws[1:]:
        total = total.compose(law)
    ascending, place = np.unique(epsilon, return_inverse=True)
    # The public method of the law of both returns the larger one of the two.
    d_in = np.asarray(total._pmf_remove.get_delta_for_epsilon(ascending))[place]
    d_out = np.asarray(total._pmf_add.get_delta_for_epsilon(ascending))[place]
    return d_in, d_out


def _interval(part: Training, fineness: int) -> float:
    """Return the distance of the losses in a table: the spread of a step's loss over fineness."""
    spread = part.sample_rate * sqrt(expm1(min(1 / part.sigma**2, 100.0)))
    distance = min(max(spread / fineness, 1e-5), 0.01)
    return coarseness(part.sigma, part.sample_rate, part.steps) * distance


def _by_rdp(
    stretches: tuple[Training, ...], epsilon: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the δ of Rényi divergences, for both directions."""
    from dp_accounting import rdp

    with quiet_accountant():
        accountant = rdp.RdpAccountant()
        for part in stretches:
            accountant.compose(event(part.sigma, part.steps, part.sample_rate))
        delta = np.array([accountant.get_delta(x) for x in epsilon.tolist()])
    return delta, delta

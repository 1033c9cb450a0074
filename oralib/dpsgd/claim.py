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

from oralib.dpsgd import accounting
from oralib.ground import arguments
from oralib.ground.types import ACCOUNTANTS, Accountant

#: The ε of a profile, if no others are given: denser where claims are usual.
EPSILONS = np.concatenate(
    [np.arange(160) / 40, 4 + np.arange(80) / 10, 12 + np.arange(57) / 2]  # up to 40
)
#: More than the rounding errors of an accountant.
_MARGIN = 1e-13


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
            sigma=arguments.real("sigma", self.sigma, *accounting.SIGMA_RANGE),
            sample_rate=arguments.real("sample_rate", self.sample_rate, 1e-12, 1),
            steps=arguments.integer("steps", self.steps, 1),
        )

    def with_noise(self, share: float) -> "Training":
        """The same training with so many times the noise."""
        return replace(self, sigma=share * self.sigma)


#: A training, or its stretches.
Stretches: TypeAlias = Training | Sequence[Training]


@dataclass(frozen=True, eq=False)
class Profile:
    """What a claim allows at some ε: D_in and D_out, or upper limits for them.

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
        both = {"d_in": self.d_in, "d_out": self.d_in if self.d_out is None else self.d_out}
        arrays = {name: np.atleast_1d(arguments.reals(name, x, 0, 1)) for name, x in both.items()}
        arrays["epsilon"] = np.atleast_1d(
            arguments.reals("epsilon", self.epsilon, 0, np.inf, interval="[)")
        )
        if len({array.shape for array in arrays.values()}) > 1 or arrays["epsilon"].ndim != 1:
            got = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
            raise ValueError(f"epsilon, d_in and d_out must be lists of one length, got {got}")
        for array in arrays.values():
            arguments.read_only(array)
        arguments.store(self, **arrays)

    @staticmethod
    def of(
        training: Stretches, epsilons: Any = EPSILONS, *, accountant: Accountant = "pld"
    ) -> "Profile":
        """The profile of a training, by an accountant that errs on the safe side.

        Parameters
        ----------
        training : Training or sequence of Training
            What was stated; stretches of a training may have another noise or rate each.
        epsilons : array
            Where D_in and D_out are computed.
        accountant : str
            ``"pld"``, nearly exact; or ``"rdp"``, if only Rényi divergences are claimed: then both
            numbers are the δ that follows from them.
        """
        arguments.one_of("accountant", accountant, ACCOUNTANTS)
        stretches = stretches_of(training)
        grid = np.atleast_1d(arguments.reals("epsilons", epsilons, 0, np.inf, interval="[)"))
        return _profile(stretches, tuple(grid.tolist()), accountant)


def stretches_of(training: Stretches, name: str = "training") -> tuple[Training, ...]:
    """The stretches of a training, checked; ``name`` is for messages."""
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
    both = _by_rdp(stretches, grid) if accountant == "rdp" else _by_pld(stretches, grid, 128)
    return _on_the_safe_side(grid, both)


@lru_cache(maxsize=256)
def coarse_profile(
    stretches: tuple[Training, ...], share: float, epsilons: tuple[float, ...]
) -> Profile:
    """The profile with so many times the noise, a little larger than :meth:`Profile.of`."""
    grid = np.array(epsilons)
    parts = tuple(part.with_noise(share) for part in stretches)
    return _on_the_safe_side(grid, _by_pld(parts, grid, 16))


def _on_the_safe_side(epsilon: NDArray[np.float64], both: list[NDArray[np.float64]]) -> Profile:
    return Profile(epsilon, *(np.clip(each + _MARGIN, 0, 1) for each in both))


def _by_pld(
    stretches: tuple[Training, ...], epsilon: NDArray[np.float64], fineness: int
) -> list[NDArray[np.float64]]:
    """(D_in, D_out) from the laws of the privacy loss, rounded to the safe side."""
    from dp_accounting.pld import privacy_loss_distribution

    plain = [
        # Full batches are one step with less noise.
        Training(part.sigma / sqrt(part.steps), 1.0, 1) if part.sample_rate == 1 else part
        for part in stretches
    ]
    interval = min(_interval(part, fineness) for part in plain)
    laws = [
        privacy_loss_distribution.from_gaussian_mechanism(
            part.sigma,
            sampling_prob=part.sample_rate,
            value_discretization_interval=interval,
            pessimistic_estimate=True,
            use_connect_dots=True,
        ).self_compose(part.steps)
        for part in plain
    ]
    total = laws[0]
    for law in laws[1:]:
        total = total.compose(law)
    # Its public method has the larger of the two.
    directions = (total._pmf_remove, total._pmf_add)
    up, place = np.unique(epsilon, return_inverse=True)
    return [np.asarray(law.get_delta_for_epsilon(up))[place] for law in directions]


def _interval(part: Training, fineness: int) -> float:
    """The distance of the losses in a table: what those of a step differ by, divided by this.

    At a 128th D is too large by about 1 in 30,000, at a 16th by 1 in 500.
    """
    spread = part.sample_rate * sqrt(expm1(min(1 / part.sigma**2, 100.0)))
    coarseness = accounting.coarseness(part.sigma, part.sample_rate, part.steps)
    return coarseness * min(max(spread / fineness, 1e-5), 0.01)


def _by_rdp(
    stretches: tuple[Training, ...], epsilon: NDArray[np.float64]
) -> list[NDArray[np.float64]]:
    """The δ of Rényi divergences, for both directions."""
    from dp_accounting import rdp

    with accounting.quiet_accountant():
        spent = rdp.RdpAccountant()
        for part in stretches:
            spent.compose(accounting.event(part.sigma, part.steps, part.sample_rate))
        delta = np.array([spent.get_delta(x) for x in epsilon.tolist()])
    return [delta, delta]

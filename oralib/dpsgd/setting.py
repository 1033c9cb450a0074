"""The training: a run of DP-SGD on Dirac canaries, and which of them are dropped."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from oralib.dpsgd.accounting import SIGMA_RANGE, noise_multiplier
from oralib.ground import arguments
from oralib.ground.types import Accountant

__all__ = ["DpSgd", "Dropping", "loads_and_widths", "stages"]

#: Bands of coordinates, of equal width, for :attr:`Dropping.crowding`.
BANDS = 10
#: The most stages of a training: canaries are dropped between stages, and a training with more
#: steps has several to a stage.
STAGES = 1000
#: The most steps of a training whose loads :func:`loads_and_widths` keeps in memory.
MOST_STEPS = 10**6


@dataclass(frozen=True)
class DpSgd:
    """A training run of DP-SGD on n Dirac canaries in d dimensions.

    In each step the gradients in the batch, each of norm 1 in units of the clipping threshold, are
    added up, and each coordinate gets normal noise. Element i has its gradient on coordinate i % d.

    Attributes
    ----------
    n : int
        The number of elements: at most d, or a multiple of d.
    d : int
        The number of coordinates of the model.
    steps : int
        The number of steps, T.
    sample_rate : float
        The probability that an included element is in the batch of a step, in (0, 1].
    sigma : float
        The noise multiplier: the noise's standard deviation over the clipping threshold.

    Examples
    --------
    >>> dpsgd = DpSgd(n=4000, sigma=2.4224)
    >>> dpsgd.per_coordinate, dpsgd.used_coordinates
    (4, 1000)
    """

    n: int
    d: int = 1000
    steps: int = 100
    sample_rate: float = 0.1
    sigma: float = field(kw_only=True)

    def __post_init__(self) -> None:
        n = arguments.integer("n", self.n, 1)
        d = arguments.integer("d", self.d, 1)
        if n > d:
            arguments.multiple("n", n, d, "d, if n exceeds it")
        steps = arguments.integer("steps", self.steps, 1)
        rate = arguments.real("sample_rate", self.sample_rate, 0, 1, interval="(]")
        sigma = arguments.real("sigma", self.sigma, *SIGMA_RANGE)
        arguments.store(self, n=n, d=d, steps=steps, sample_rate=rate, sigma=sigma)

    @classmethod
    def calibrated(
        cls, epsilon: float, delta: float, *, accountant: Accountant = "rdp", **setting: Any
    ) -> Self:
        """Return a training run with the noise of an (ε, δ) claim, by an accountant.

        The noise is that of :func:`oralib.noise_multiplier`.

        >>> DpSgd.calibrated(2.0, 1e-5, n=4000)
        DpSgd(n=4000, d=1000, steps=100, sample_rate=0.1, sigma=2.422402)
        """
        run = cls(**setting, sigma=1.0)
        noise = noise_multiplier(epsilon, delta, run.steps, run.sample_rate, accountant=accountant)
        return replace(run, sigma=noise)

    @property
    def per_coordinate(self) -> int:
        """The number of elements that share a coordinate."""
        return max(1, self.n // self.d)

    @property
    def used_coordinates(self) -> int:
        """The number of coordinates that elements use."""
        return min(self.n, self.d)


@dataclass(frozen=True)
class Dropping:
    """The schedule by which canaries are dropped, and how unevenly they share the coordinates.

    Attributes
    ----------
    final : float
        The target number of active canaries per coordinate in the end, at least 1.
    until : float
        The share of the training after which no more are dropped, in (0, 1].
    bend : float
        The shape of the fall, in [0.1, 10]. With 1 the number of active canaries falls by the same
        factor in each step; above 1 it falls slowly at first.
    crowding : pair of float
        The target ratio between the most and the least crowded coordinates, early and at the end,
        each at least 1; in between it changes geometrically. The most promising canaries, by the
        size of their scores, have the least crowded coordinates.

    Examples
    --------
    >>> Dropping(final=3, until=0.8).active(DpSgd(n=96_000, sigma=1.0))[[0, 40, 99]].tolist()
    [96000, 17000, 3000]
    """

    final: float = 1.0
    until: float = 1.0
    bend: float = 1.0
    crowding: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        crowding = arguments.reals("crowding", self.crowding, 1, 1e3)
        if crowding.shape != (2,):
            raise ValueError(
                f"crowding must be two numbers, first and last, got crowding={self.crowding!r}"
            )
        arguments.store(
            self,
            final=arguments.real("final", self.final, 1, 1e9),
            until=arguments.real("until", self.until, 0, 1, interval="(]"),
            bend=arguments.real("bend", self.bend, 0.1, 10),
            crowding=(float(crowding[0]), float(crowding[1])),
        )

    def loads(self, dpsgd: DpSgd) -> NDArray[np.int64]:
        """Return how many canaries share a coordinate: a row per step, a column per band.

        Canaries are divided into bands by the size of their scores, the most promising ones first;
        in the first step all loads are equal.
        """
        return loads_and_widths(dpsgd, self)[0]

    def active(self, dpsgd: DpSgd) -> NDArray[np.int64]:
        """Return the number of active canaries in each step."""
        loads, widths = loads_and_widths(dpsgd, self)
        return loads @ widths


def loads_and_widths(
    dpsgd: DpSgd, dropping: Dropping | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the canaries per coordinate, of each step and band, and the width of each band."""
    arguments.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000, sigma=1.0)")
    if dpsgd.steps > MOST_STEPS:
        raise ValueError(f"steps must be at most {MOST_STEPS}, got steps={dpsgd.steps}")
    if dropping is None:
        loads = np.full((dpsgd.steps, 1), dpsgd.per_coordinate)
        return loads, np.array([dpsgd.used_coordinates])
    arguments.instance("dropping", dropping, Dropping, "Dropping(final=3)")
    bands = min(BANDS, dpsgd.used_coordinates)
    widths = np.diff(np.arange(bands + 1) * dpsgd.used_coordinates // bands)
    s = dpsgd.per_coordinate
    starts = stages(dpsgd)
    loads = np.full((starts.size, bands), s)
    first, last = dropping.crowding
    for stage, t in enumerate(starts.tolist()[1:], start=1):
        fall = min(1.0, t / (dropping.until * dpsgd.steps)) ** dropping.bend
        mean = s * (min(dropping.final, s) / s) ** fall
        shape = (first * (last / first) ** (t / dpsgd.steps)) ** np.linspace(0, 1, bands)
        load = np.maximum(1, np.rint(mean * shape * widths.sum() / (shape @ widths)))
        # Rounding must not bring back canaries that were dropped.
        while load @ widths > loads[stage - 1] @ widths:
            load[np.argmax(load)] -= 1
        loads[stage] = load
    return np.repeat(loads, np.diff(starts, append=dpsgd.steps), axis=0), widths


def stages(dpsgd: DpSgd) -> NDArray[np.int64]:
    """Return the first step of each stage of a training run."""
    count = min(dpsgd.steps, STAGES)
    return np.arange(count) * dpsgd.steps // count

"""Canaries in the clipped sum of a training that runs, and their scores.

A canary is an example whose gradient is ±C on one weight of the model's own. It has a fair coin,
which says whether it is in the data, and a coin in each step, which says whether it is in the
batch. The canaries of a batch join the clipped sum before the noise, and stay in it.

What the guesser sees of a canary in a step is y = sign · (noisy - a) / C at its weight. There a is
the data's clipped sum, copied before canaries join. If it were computed later, by subtracting the
canaries, it would depend on their secret coins, and the bound would not be valid.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oraudit.canaries.coins import Coins
from oraudit.canaries.places import Places, contiguous_copy, spread, to_device
from oraudit.canaries.ratios import Ratios
from oraudit.records import Told
from oraudit.records.arrays import namespace

if TYPE_CHECKING:
    from oralib import Training
    from oraudit.canaries.counted import Counted

__all__ = ["Canaries", "TooMany", "contiguous_copy", "spread"]

#: The scores of canaries, in words for the report.
SEES = "the noisy sum at one weight for each canary, and the noise that is seen there"

#: The same where each tensor is clipped by itself.
SEES_SMALLER = (
    f"{SEES}; each has the clip of its tensor, which is less than that of all, so powers are less, "
    "too"
)


class TooMany(ValueError):
    """More canaries than weights."""


class Canaries:
    """Canaries in the sums of one training.

    In each step call :meth:`join` before the noise, :meth:`look` after it, and :meth:`score`. None
    of them waits for a device.

    Parameters
    ----------
    n
        The number of canaries, at most one for each weight.
    sizes
        The numbers of weights of all tensors.
    seed
        The seed of all coins; None for one from the operating system.
    own
        The numbers of the first tensor in this process and of the one after the last; None if all
        tensors are in this process.

    Attributes
    ----------
    unusable
        The reason why :meth:`counted` has returned None; empty otherwise.
    """

    def __init__(
        self,
        n: int,
        *,
        sizes: Sequence[int],
        seed: int | None = None,
        own: tuple[int, int] | None = None,
    ) -> None:
        self.n = _whole("canaries", n, 1)
        if seed is not None:
            seed = _whole("seed", seed, 0)
        self.weights = sum(sizes)
        if self.n > self.weights:
            raise TooMany(
                f"canaries is {self.n}; it must be at most {self.weights}, the number of weights "
                "that are trained: each canary has one of its own"
            )
        self.coins = Coins(self.n, seed)
        self.places = Places(self.n, sizes, (0, len(sizes)) if own is None else own)
        self._ratios = Ratios(self.coins.signs)
        self._rates: list[float] = []
        self._sigmas: list[float] = []
        # True while every canary has a gradient of norm C, not of its own tensor's clip.
        self._whole = True
        # Of the step under way: the data's sums at the canaries' weights; the canaries in this
        # process that joined; and the clip, the sizes of canaries, the rate and the divisor.
        self._before: Any = None
        self._here = np.zeros(0, np.int64)
        self._joined: tuple[float, Any, float, float] | None = None
        self._judged: dict[Any, Counted] = {}
        self.unusable = ""

    @property
    def steps(self) -> int:
        """The number of steps that have been scored."""
        return self._ratios.steps

    # ------------------------------------------------------------------------------------- a step

    def join(
        self,
        tensors: Sequence[Any],
        clip: float | Sequence[float],
        rate: float,
        *,
        divisor: float = 1.0,
        adds: bool = True,
    ) -> None:
        """Add the canaries in this step's batch to the clipped sums, in place.

        Parameters
        ----------
        tensors
            The clipped sums.
        clip
            The norm that gradients are clipped at, or one for each tensor.
        rate
            The probability of each canary to be in the batch.
        divisor
            The divisor of the sums, if they are averages over processes.
        adds
            False if another process adds the same canaries to the sum of all.
        """
        sizes = None
        if isinstance(clip, int | float):
            together = float(clip)
        else:
            together = math.hypot(*clip)
            sizes = np.repeat(np.asarray(clip, dtype=float) / together, self.places.counts)
        self._before = self.places.take(tensors)
        self._joined = (together, sizes, float(rate), float(divisor))
        chosen = self.coins.batch(self.steps + 1, rate)
        here = self.places.own
        first, last = np.searchsorted(chosen, [here.start, here.stop])
        self._here = chosen[first:last] - here.start
        if adds and len(self._here):
            self.places.add(tensors, self._row(tensors, together / divisor, sizes))

    def restore(self, tensors: Sequence[Any]) -> list[Any]:
        """Copy the sums as they were before canaries joined this step, to look at clipping.

        The copies do not enter a score.
        """
        return self.places.with_row(tensors, self._before)

    def are_joined(self, tensors: Sequence[Any]) -> bool:
        """Return whether canaries have joined these sums; this waits for the device."""
        if not len(self._here):
            return True
        moves = self.places.take(tensors) - self._before
        along_signs = moves[self._here] * self._signs_here(tensors)[self._here]
        return bool((along_signs > 0).sum() > len(self._here) / 2)

    def look(self, noisy: Sequence[Any]) -> Any:
        """Return the noisy sums minus the data's sums, in C, at the canaries of this process."""
        assert self._joined is not None
        clip, _, _, divisor = self._joined
        return (self.places.take(noisy) - self._before) * (divisor / clip)

    def score(self, seen: Any, sigma: float) -> None:
        """Add this step to the scores.

        Parameters
        ----------
        seen
            The results of :meth:`look` of all processes, joined.
        sigma
            The told deviation of the noise, in C.
        """
        assert self._joined is not None
        _, sizes, rate, _ = self._joined
        self._ratios.add(seen, sizes, rate, sigma if sigma > 0 else 1.0)
        self._rates.append(rate)
        self._sigmas.append(float(sigma))
        self._whole = self._whole and sizes is None
        self._before = None
        self._joined = None

    def _row(self, tensors: Sequence[Any], clip: float, sizes: Any) -> Any:
        """Return for each canary of this process the number that it adds to the sums."""
        signs = self._signs_here(tensors)
        if namespace(tensors[0]) is np:
            row = np.zeros(len(signs))
            row[self._here] = clip * signs[self._here]
            return row if sizes is None else sizes * row
        chosen = to_device(self._here, signs.device)
        row = signs.new_zeros(len(signs))
        row.index_copy_(0, chosen, signs.index_select(0, chosen) * clip)
        return row if sizes is None else row * to_device(np.float32(sizes), signs.device)

    def _signs_here(self, tensors: Sequence[Any]) -> Any:
        """Return the signs of the canaries of this process, on the device of the tensors."""
        return self._ratios.signs_like(tensors[0])[self.places.own]

    # ------------------------------------------------------------------------------------- result

    def scores(self) -> NDArray[np.float64]:
        """Return the scores so far, high for a canary that seems to be in the data."""
        return self._ratios.above_least() + self._ratios.least

    def too_often(self, told: Sequence[Told]) -> bool:
        """Return whether canaries were drawn at a larger rate than the accountant was told."""
        return any(
            step.rate is not None and rate > step.rate * (1 + 1e-9)
            for rate, step in zip(self._rates, told, strict=False)
        )

    def counted(
        self, told: Sequence[Told], *, claim: tuple[float, float] | None = None, beta: float = 0.05
    ) -> "Counted | None":
        """Judge the scores; None if they show nothing, and :attr:`unusable` says why.

        Parameters
        ----------
        told
            What the accountant was told of each step.
        claim
            The (ε, δ) that the training is said to have.
        beta
            The probability with which each of the two statements may fail.
        """
        from oraudit.canaries.count import judge_scores
        from oraudit.canaries.setup import Setup

        self.unusable = ""
        if not self.steps:
            return None
        if self.too_often(told):
            self.unusable = "drawn at a larger rate than the accountant was told"
            return None
        if self.coins.included.all() or not self.coins.included.any():
            self.unusable = f"the coins of all {self.n} canaries are alike: take more canaries"
            return None
        key = (self.steps, tuple(told), claim, beta)
        if key in self._judged:
            return self._judged[key]
        try:
            counted = judge_scores(
                self.scores(),
                self.coins.included,
                Setup(self.stretches(told), claim, beta, coins="independent"),
                origin="sum",
                share_of_norm=self.share_of_norm(),
                sees=SEES if self._whole else SEES_SMALLER,
            )
        except ValueError as reason:  # unusable evidence, or noise beyond what accountants know
            self.unusable = str(reason)
            return None
        if counted.test is not None and not self._whole:
            # The power is computed for gradients of norm C; these canaries have smaller ones.
            counted = replace(counted, test=replace(counted.test, power={}))
        self._judged = {key: counted}
        return counted

    def stretches(self, told: Sequence[Told]) -> "tuple[Training, ...] | None":
        """Return the stated training; None if a step had no noise, which states nothing."""
        from oralib import Training

        steps = [(step.sigma, step.rate) for step in told]
        # A step that has its noise belongs to the training before the accountant is told of it.
        steps += list(zip(self._sigmas, self._rates, strict=True))[len(steps) :]
        stretches: list[Training] = []
        for (sigma, rate), drawn in zip(steps, self._rates, strict=False):
            if not sigma > 0:
                return None
            rate = drawn if rate is None else rate
            last = stretches[-1] if stretches else None
            if last is not None and (last.sigma, last.sample_rate) == (sigma, rate):
                stretches[-1] = Training(sigma, rate, last.steps + 1)
            else:
                stretches.append(Training(sigma, rate, 1))
        return tuple(stretches)

    def share_of_norm(self) -> float | None:
        """Return the size of the canaries as a share of the noise, both as root mean squares."""
        noise = self.weights * sum(sigma**2 for sigma in self._sigmas)
        return math.sqrt(self.n * sum(self._rates) / 2 / noise) if noise > 0 else None

    # ------------------------------------------------------------------------------------ resumed

    def state(self) -> dict[str, Any]:
        """Return all that a resumed audit needs, the secret seed included."""
        return {
            "n": self.n,
            "weights": self.weights,
            "seed": str(self.coins.seed),
            "scores": self.scores() - self._ratios.least,
            "least": self._ratios.least,
            "share": float(self._ratios.share),
            "steps": self.steps,
            "rates": list(self._rates),
            "sigmas": list(self._sigmas),
            "whole": self._whole,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state` has returned."""
        if (state["n"], state["weights"]) != (self.n, self.weights):
            raise ValueError(
                f"the state is of {state['n']} canaries on {state['weights']} weights; it must be "
                f"of {self.n} on {self.weights}, as this audit"
            )
        self.coins = Coins(self.n, int(state["seed"]))
        self._ratios = Ratios(self.coins.signs)
        self._ratios.above = np.array(state["scores"], dtype=float)
        self._ratios.least = float(state["least"])
        self._ratios.share = float(state["share"])
        self._ratios.steps = int(state["steps"])
        self._rates = [float(rate) for rate in state["rates"]]
        self._sigmas = [float(sigma) for sigma in state["sigmas"]]
        self._whole = bool(state["whole"])
        self._judged = {}


def _whole(argument: str, value: Any, smallest: int) -> int:
    """Return a whole number that is large enough."""
    try:
        fine = float(value).is_integer() and value >= smallest and not isinstance(value, bool)
    except (TypeError, ValueError, OverflowError):
        fine = isinstance(value, int) and value >= smallest
    if not fine:
        raise ValueError(f"{argument} is {value!r}; it must be a whole number >= {smallest}")
    return int(value)

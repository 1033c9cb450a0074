"""Canaries in the clipped sum of a training that runs, and their scores.

A canary is an example whose gradient is ±C on one weight of the model's own. It has a fair coin,
which says whether it is in the data, and a coin in each step, which says whether it is in the
batch. What is in the batch joins the clipped sum before the noise, and stays in it.

What the guesser sees of a canary in a step is y = sign · (noisy - a) / C at its weight. There a is
the data's clipped sum, taken before canaries join: were it found by taking canaries off again, it
would depend on their secret coins, and the bound would not hold. The score is the log-likelihood
ratio of being in the data, Σ log(1 - q + q exp((2y - 1) / 2s²)), with the noise s that is seen: the
running mean of the median |y|. Any score is valid; one with the stated noise finds little, if the
noise is another one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oraudit.canaries.coins import Coins
from oraudit.records import Told
from oraudit.records.arrays import namespace

if TYPE_CHECKING:
    from oralib import Training
    from oraudit.canaries.counted import Counted

__all__ = ["Canaries", "TooMany", "lying", "spread"]

#: The median of the absolute value of a standard normal number.
NORMAL_MEDIAN = 0.6744897501960817

#: The noise that is seen is at least this share of the told one.
LEAST_SHARE = 0.01

#: The most canaries whose median says how large the noise is: a GPU takes long for more.
MEDIAN_OF = 8192

#: How scores are made, for the report.
SEES = "the noisy sum at one weight for each canary, and the noise that is seen there"

#: What is added to that where each tensor is clipped by itself.
SMALLER = "each has the clip of its tensor, which is less than that of all, so powers are less, too"


class TooMany(ValueError):
    """More canaries than weights."""


class Canaries:
    """Canaries in the sums of one training.

    In each step call :meth:`join` before the noise, :meth:`look` after it, and :meth:`score`. None
    of them waits for a device.

    Parameters
    ----------
    n
        How many canaries there are, at most one for each weight.
    sizes
        How many weights each tensor has.
    seed
        The seed of all coins; None for one from the operating system.
    own
        The first of the tensors that are here, and the one after the last, where other processes
        have the others; None if all are here.

    Attributes
    ----------
    unusable
        Why :meth:`counted` has returned nothing; empty otherwise.
    """

    def __init__(
        self,
        n: int,
        *,
        sizes: Sequence[int],
        seed: int | None = None,
        own: tuple[int, int] | None = None,
    ) -> None:
        self.n = _whole("canaries", n)
        if seed is not None:
            seed = _whole("seed", seed)
        self.weights = sum(sizes)
        if self.n > self.weights:
            raise TooMany(
                f"canaries is {self.n}; it must be at most {self.weights}, the number of weights "
                "that are trained: each canary has one of its own"
            )
        self.coins = Coins(self.n, seed)
        counts = spread(self.n, sizes)
        first, last = (0, len(sizes)) if own is None else own
        begin = sum(counts[:first])
        self._own = slice(begin, begin + sum(counts[first:last]))
        self._counts = counts[first:last]
        self._places = [
            _strided(size, count)
            for size, count in zip(sizes[first:last], self._counts, strict=True)
        ]
        self._signs: Any = None
        self._scores: Any = np.zeros(self.n)
        # The sum over steps of log(1 - q), which all scores have.
        self._least = 0.0
        self._share: Any = 0.0
        self._steps = 0
        self._rates: list[float] = []
        self._sigmas: list[float] = []
        self._whole = True
        self._before: Any = None
        self._here = np.zeros(0, np.int64)
        self._joined: tuple[float, Any, float, float] | None = None
        self._found: dict[Any, Counted] = {}
        self.unusable = ""

    @property
    def steps(self) -> int:
        """How many steps have been scored."""
        return self._steps

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
            What the sums are divided by, if they are averages over processes.
        adds
            False where another process adds the same canaries to the sum of all.
        """
        together = float(clip) if isinstance(clip, int | float) else math.hypot(*clip)
        shares = None if isinstance(clip, int | float) else self._shares(clip, together)
        self._before = self.take(tensors)
        self._joined = together, shares, float(rate), float(divisor)
        chosen = self.coins.batch(self._steps + 1, rate)
        first, last = np.searchsorted(chosen, [self._own.start, self._own.stop])
        self._here = chosen[first:last] - self._own.start
        if adds and len(self._here):
            self._add(tensors, together / divisor, shares)

    def take(self, tensors: Sequence[Any]) -> Any:
        """The numbers of tensors at the canaries' weights, in a row; a copy."""
        return self._together(self._views(tensors), tensors)

    def _views(self, tensors: Sequence[Any]) -> list[Any]:
        """The numbers of each tensor at the canaries' weights; in place where they lie in a row."""
        xp = namespace(tensors[0])
        views = []
        for each, places, count in zip(tensors, self._places, self._counts, strict=True):
            if places is None:
                continue
            if xp is not np and each.is_contiguous():  # one call of PyTorch instead of two
                views.append(each.as_strided((count,), (places.step,), each.storage_offset()))
            else:
                views.append(each.reshape(-1)[places])
        return views

    def _together(self, views: list[Any], tensors: Sequence[Any]) -> Any:
        xp = namespace(tensors[0])
        if not views:
            return np.zeros(0) if xp is np else tensors[0].new_zeros(0).float()
        row = xp.concatenate(views)
        if row.dtype.itemsize >= 4:
            return row
        return row.astype(np.float32) if xp is np else row.float()

    def restore(self, tensors: Sequence[Any]) -> list[Any]:
        """Copies of the sums as they were before canaries joined this step: for looks at clipping.

        Nothing of this enters a score.
        """
        copies = [lying(each) for each in tensors]
        views = self._views(copies)
        for view, piece in zip(views, self._pieces(self._before), strict=True):
            view[:] = piece
        return copies

    def _pieces(self, row: Any) -> Sequence[Any]:
        """The parts of a row that belong to the tensors with canaries."""
        counts = [count for count in self._counts if count]
        if namespace(row) is np:
            return np.split(row, np.cumsum(counts)[:-1]) if counts else []
        pieces: Sequence[Any] = row.split(counts)
        return pieces

    def holds(self, tensors: Sequence[Any]) -> bool:
        """Whether these are the sums that canaries have joined; it waits for the device."""
        if not len(self._here):
            return True
        moved = (self.take(tensors) - self._before)[self._here] * self._signed(tensors)[self._here]
        return bool((moved > 0).sum() > len(self._here) / 2)

    def look(self, noisy: Sequence[Any]) -> Any:
        """What is seen of the canaries here: the noisy sums minus those of the data, in C."""
        assert self._joined is not None
        together, _, _, divisor = self._joined
        return (self.take(noisy) - self._before) * (divisor / together)

    def score(self, seen: Any, sigma: float) -> None:
        """Add this step to the scores.

        Parameters
        ----------
        seen
            What :meth:`look` has returned, of all processes.
        sigma
            The told deviation of the noise, in C.
        """
        assert self._joined is not None
        _, shares, rate, _ = self._joined
        scale = sigma if sigma > 0 else 1.0
        self._steps += 1
        if namespace(seen) is np:
            self._score_arrays(seen, shares, rate, scale)
        else:
            self._score_tensors(seen, shares, rate, scale)
        self._rates.append(rate)
        self._sigmas.append(float(sigma))
        self._whole = self._whole and shares is None
        self._before = None
        self._joined = None

    def _score_arrays(self, seen: Any, shares: Any, rate: float, scale: float) -> None:
        y = np.nan_to_num(self.coins.signs * seen.astype(float), posinf=0, neginf=0)
        some = np.abs(y[:: self._median_step])
        middle = (len(some) - 1) // 2
        self._share += float(np.partition(some, middle)[middle]) / (NORMAL_MEDIAN * scale)
        noise = max(self._share / self._steps, LEAST_SHARE) * scale
        ratio = y - 0.5 if shares is None else shares * (y - shares / 2)
        odds, least = _odds(rate)
        # log(1 - q + q exp(x)) = log(1 - q) + log(1 + exp(x + log(q / (1 - q))))
        x = ratio / noise**2
        self._scores += x if odds is None else np.logaddexp(0, x + odds)
        self._least += least

    def _score_tensors(self, seen: Any, shares: Any, rate: float, scale: float) -> None:
        """Do the same in few calls, none of which waits for the device."""
        import torch

        with torch.no_grad():
            self._arrive(seen.device)
            y = torch.nan_to_num(seen.float() * self._signs, posinf=0, neginf=0)
            median = y[:: self._median_step].abs().median()
            self._share.add_(median, alpha=1 / (NORMAL_MEDIAN * scale))
            noise = (self._share * (scale / self._steps)).clamp_(min=LEAST_SHARE * scale)
            if shares is None:
                ratio = y.sub_(0.5)
            else:
                size = _sent(np.float32(shares), seen.device)
                ratio = size * (y - size / 2)
            odds, least = _odds(rate)
            x = ratio.mul_(noise.pow_(-2))
            self._scores += x if odds is None else torch.nn.functional.softplus(x + odds, 1, 30)
            self._least += least

    @property
    def _median_step(self) -> int:
        return -(-self.n // MEDIAN_OF)

    def _arrive(self, device: Any) -> None:
        """Take what stays between steps to the device of the training."""
        import torch

        if isinstance(self._signs, torch.Tensor) and self._signs.device == device:
            return
        kind = torch.float32 if device.type == "mps" else torch.float64
        self._signs = torch.from_numpy(self.coins.signs).to(device)
        self._scores = torch.as_tensor(self._scores, dtype=kind, device=device).clone()
        self._share = torch.as_tensor(self._share, dtype=torch.float32, device=device).clone()

    def _add(self, tensors: Sequence[Any], size: float, shares: Any) -> None:
        """Add the canaries of this batch to the sums."""
        xp = namespace(tensors[0])
        row = self._row(tensors, size, shares)
        if xp is np:
            for view, piece in zip(self._views(tensors), self._pieces(row), strict=True):
                view += piece.astype(view.dtype)
            return
        with xp.no_grad():
            rows = [each if each.is_contiguous() else each.contiguous() for each in tensors]
            xp._foreach_add_(self._views(rows), self._pieces(row))
            for each, copy in zip(tensors, rows, strict=True):
                if copy is not each:
                    each.copy_(copy)

    def _row(self, tensors: Sequence[Any], size: float, shares: Any) -> Any:
        """What the canaries here add to the sums, a number for each."""
        xp = namespace(tensors[0])
        signs = self._signed(tensors)
        count = len(signs)
        if xp is np:
            row = np.zeros(count)
            row[self._here] = size * signs[self._here]
            return row if shares is None else shares * row
        places = _sent(self._here, signs.device)
        row = signs.new_zeros(count)
        row.index_copy_(0, places, signs.index_select(0, places) * size)
        return row if shares is None else row * _sent(np.float32(shares), signs.device)

    def _signed(self, tensors: Sequence[Any]) -> Any:
        """The signs of the canaries here, where the tensors are."""
        if namespace(tensors[0]) is np:
            return self.coins.signs[self._own]
        self._arrive(tensors[0].device)
        return self._signs[self._own]

    def _shares(self, clips: Sequence[float], together: float) -> Any:
        """How large each canary is, as a share of what all tensors together may add."""
        return np.repeat(np.asarray(clips, dtype=float) / together, self._counts)

    # ------------------------------------------------------------------------------------- result

    def scores(self) -> NDArray[np.float64]:
        """The scores so far, high for a canary that seems to be in the data."""
        found = self._scores
        found = found if namespace(found) is np else found.cpu().numpy()
        return np.asarray(found, dtype=float) + self._least

    def too_often(self, told: Sequence[Told]) -> bool:
        """Whether canaries were drawn at a larger rate than the accountant was told."""
        pairs = zip(self._rates, told, strict=False)
        return any(each.rate is not None and rate > each.rate * (1 + 1e-9) for rate, each in pairs)

    def counted(
        self, told: Sequence[Told], *, claim: tuple[float, float] | None = None, beta: float = 0.05
    ) -> "Counted | None":
        """What the scores say; None if nothing, and :attr:`unusable` says why.

        Parameters
        ----------
        told
            What the accountant was told of each step.
        claim
            The (ε, δ) that the training is said to have.
        beta
            How often each of the two statements may fail.
        """
        from oraudit.canaries.count import judge_scores
        from oraudit.canaries.setup import Setup

        self.unusable = ""
        if not self._steps:
            return None
        if self.too_often(told):
            self.unusable = "drawn at a larger rate than the accountant was told"
            return None
        if self.coins.included.all() or not self.coins.included.any():
            self.unusable = f"the coins of all {self.n} canaries are alike: take more canaries"
            return None
        key = self._steps, tuple(told), claim, beta
        if key in self._found:
            return self._found[key]
        try:
            counted = judge_scores(
                self.scores(),
                self.coins.included,
                Setup(self.stretches(told), claim, beta, coins="independent"),
                origin="sum",
                share_of_norm=self.share_of_norm(),
                sees=SEES if self._whole else f"{SEES}; {SMALLER}",
            )
        except ValueError as reason:  # unusable evidence, or noise beyond what accountants know
            self.unusable = str(reason)
            return None
        if counted.test is not None and not self._whole:
            # The law of right guesses is that of canaries with a gradient of C.
            counted = replace(counted, test=replace(counted.test, power={}))
        self._found = {key: counted}
        return counted

    def stretches(self, told: Sequence[Told]) -> "tuple[Training, ...] | None":
        """The stated training; None if a step had no noise, which states nothing."""
        from oralib import Training

        steps = [(each.sigma, each.rate) for each in told]
        # A step that has its noise and was not told yet is one of the training.
        steps += list(zip(self._sigmas, self._rates, strict=True))[len(steps) :]
        found: list[Training] = []
        for (sigma, rate), drawn in zip(steps, self._rates, strict=False):
            if not sigma > 0:
                return None
            rate = drawn if rate is None else rate
            last = found[-1] if found else None
            if last is not None and (last.sigma, last.sample_rate) == (sigma, rate):
                found[-1] = Training(sigma, rate, last.steps + 1)
            else:
                found.append(Training(sigma, rate, 1))
        return tuple(found)

    def share_of_norm(self) -> float | None:
        """How large the canaries are beside the noise: the roots of their mean squares."""
        noise = self.weights * sum(sigma**2 for sigma in self._sigmas)
        return math.sqrt(self.n * sum(self._rates) / 2 / noise) if noise > 0 else None

    # ------------------------------------------------------------------------------------ resumed

    def state(self) -> dict[str, Any]:
        """All that a resumed audit needs, the secret seed included."""
        share = self._share
        return {
            "n": self.n,
            "weights": self.weights,
            "seed": str(self.coins.seed),
            "scores": self.scores() - self._least,
            "least": self._least,
            "share": float(share),
            "steps": self._steps,
            "rates": list(self._rates),
            "sigmas": list(self._sigmas),
            "whole": self._whole,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state` has returned."""
        theirs = state["n"], state["weights"]
        if theirs != (self.n, self.weights):
            raise ValueError(
                f"the state is of {theirs[0]} canaries on {theirs[1]} weights; it must be of "
                f"{self.n} on {self.weights}, as this audit"
            )
        self.coins = Coins(self.n, int(state["seed"]))
        self._signs = None
        self._scores = np.array(state["scores"], dtype=float)
        self._least = float(state["least"])
        self._share = float(state["share"])
        self._steps = int(state["steps"])
        self._rates = [float(rate) for rate in state["rates"]]
        self._sigmas = [float(sigma) for sigma in state["sigmas"]]
        self._whole = bool(state["whole"])
        self._found = {}


def spread(n: int, sizes: Sequence[int]) -> list[int]:
    """How many of n canaries each tensor has, by its share of all weights.

    >>> spread(5, [10, 1, 89])
    [0, 0, 5]
    >>> spread(100, [10, 1, 89])
    [10, 1, 89]
    """
    ends = np.cumsum([0, *sizes], dtype=object)
    return [int(each) for each in np.diff(ends * n // ends[-1])]


def _strided(size: int, count: int) -> slice | None:
    """So many places of a tensor, evenly spread."""
    if not count:
        return None
    stride = size // count
    return slice(0, count * stride, stride)


def _odds(rate: float) -> tuple[float | None, float]:
    """The logarithms of q / (1 - q), which is None for q = 1, and of 1 - q, which is then 0."""
    if rate >= 1:
        return None, 0.0
    return math.log(rate) - math.log1p(-rate), math.log1p(-rate)


def lying(array: Any) -> Any:
    """A copy whose numbers lie in a row."""
    if namespace(array) is np:
        return np.array(array, order="C")
    import torch

    return array.clone(memory_format=torch.contiguous_format)


def _sent(numbers: Any, device: Any) -> Any:
    """Numbers of the host on a device, without waiting for it."""
    import torch

    here = torch.from_numpy(numbers)
    if device.type == "cuda":
        return here.pin_memory().to(device, non_blocking=True)
    return here.to(device)


def _whole(argument: str, value: Any) -> int:
    """A whole number that is large enough for its argument."""
    least = 1 if argument == "canaries" else 0
    try:
        fine = float(value).is_integer() and value >= least and not isinstance(value, bool)
    except (TypeError, ValueError, OverflowError):
        fine = isinstance(value, int) and value >= least
    if not fine:
        raise ValueError(f"{argument} is {value!r}; it must be a whole number >= {least}")
    return int(value)

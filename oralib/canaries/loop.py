"""Where canaries are in each step of training, and what the noisy gradients say about them."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any
from warnings import warn
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oralib.bounds import Counts
from oralib.canaries._rows import Active, batch_at, by_promise, included_at, spots
from oralib.canaries.look import Look
from oralib.dpsgd import DpSgd, Dropping
from oralib.dpsgd.likelihood import beliefs, likelihood_tables, log_likelihoods
from oralib.dpsgd.ratios import log_mixtures, log_ratios, log_weights
from oralib.dpsgd.setting import loads_and_widths
from oralib.ground import arguments
from oralib.ground.streams import stream
from oralib.ground.types import WAYS, Array, Way
from oralib.planning import AuditPlan
from oralib.scores.seen import Seen

__all__ = ["Canaries", "write_scores"]

#: Noise that gradients may show, as shares of the stated one: canaries estimate it, then score.
SEEN_NOISE = (1.0, 0.75, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02, 0.01, 2.0, 5.0, 20.0, 100.0)

#: The noise is learned from this many coordinates of each step at most.
_NOISE_COORDINATES = 250

#: How much likelier, in nats, another noise must be before it is taken to be the training's.
_NOISE_EVIDENCE = 20.0

#: Gradients are not believed to have less noise than this, in clipping thresholds.
_LEAST_NOISE = 1e-3

#: What is saved, beside dpsgd and dropping: arguments and the step; arrays that steps change.
_SETTING = ("guesses", "seed", "hop", "public_seed", "way", "software", "step")
_ARRAYS = ("_fit", "_likelihood", "sums", "last", *Active._fields)

Where = str | os.PathLike[str]


class Canaries:
    """The canaries of one training run: which are included, where they are, and their scores.

    Parameters
    ----------
    dpsgd : DpSgd
        The canaries, the steps, the sample rate and the noise as they are claimed.
    guesses : int
        The number of guesses, fixed in advance.
    seed : int
        The seed of the coins. Keep it, and hide it from all code that takes part in the training.
    dropping : Dropping or None
        How canaries are dropped and crowded; None if they all stay active.
    hop : bool
        Whether canaries change their coordinates in each step. If not, canary i stays on coordinate
        i % d, and none may be dropped.
    public_seed : int
        The seed of the public random numbers that place the canaries.
    way : str
        How they enter the training: ``"sum"``, in the sum of its clipped gradients, just before
        its noise; or ``"examples"``, as examples among its data. The report says which.

    Attributes
    ----------
    included : array
        The coins, one per canary.
    step : int
        The step that is to be observed next; the first is 0.
    software : str
        The software of the training, for the report.

    Examples
    --------
    >>> canaries = Canaries(DpSgd(n=4, d=2, steps=2, sample_rate=1.0, sigma=0.3), guesses=2, seed=4)
    >>> canaries.included.tolist(), canaries.places(0).tolist()
    ([False, False, True, True], [0, 1, 1, 0])
    >>> canaries.observe(0, [2.0, 0.1])
    >>> canaries.step, canaries.guessed().tolist()
    (1, [1, 0, 0, 1])
    """

    def __init__(
        self,
        dpsgd: DpSgd,
        guesses: int,
        *,
        seed: int,
        dropping: Dropping | None = None,
        hop: bool = True,
        public_seed: int = 0,
        way: Way = "sum",
        software: str = "",
    ) -> None:
        self._loads, self._widths = loads_and_widths(dpsgd, dropping)
        self.dropping, self.hop = dropping, arguments.truth("hop", hop)
        if dropping is not None and not hop:
            raise ValueError(f"dropping must be None for canaries that stay, got {dropping=}")
        most = int(self._loads[-1] @ self._widths)
        self.guesses = arguments.integer("guesses", guesses, 1, most)
        self.seed, self.public_seed = (
            arguments.seed(seed),
            arguments.seed(public_seed, "public_seed"),
        )
        arguments.one_of("way", way, WAYS)
        arguments.instance("software", software, str, "'JAX 0.10'")
        self.way, self.software = way, software
        coins = stream(self.seed, "canaries", "coins").random(dpsgd.n) < 0.5
        self.included = arguments.read_only(coins)
        self.step = 0
        self._active = Active(np.arange(dpsgd.n, dtype=np.int32), np.zeros(dpsgd.n), coins)
        self._where = -1, np.zeros(0, dtype=np.int64)  # a step, and where canaries are in it
        self._fit = np.zeros(len(SEEN_NOISE))  # log-likelihoods of the gradients by their noise
        self._warned = False  # that the noise is not as stated
        # Of canaries that share a coordinate for ever: log-likelihoods of how many are included.
        s, shared = dpsgd.per_coordinate, not hop and dpsgd.per_coordinate > 1
        self._likelihood = np.zeros((dpsgd.used_coordinates, s + 1) if shared else 0)
        self._look = Look(dpsgd)

    @classmethod
    def from_plan(cls, plan: AuditPlan, *, seed: int, public_seed: int = 0) -> "Canaries":
        """The canaries of a plan by :func:`oralib.plan_audit`."""
        arguments.instance("plan", plan, AuditPlan, "plan_audit(8.0, 1e-5, ...)")
        how: dict[str, Any] = {"dropping": plan.design.dropping, "way": plan.design.way}
        how |= {"hop": plan.design.dpsgd.per_coordinate > 1, "public_seed": public_seed}
        return cls(plan.design.dpsgd, plan.guesses, seed=seed, **how)

    @property
    def dpsgd(self) -> DpSgd:
        """The training as stated."""
        return self._look.dpsgd

    @property
    def scores(self) -> NDArray[np.float64]:
        """Evidence that each canary is included, a log-likelihood ratio; 0 once it is dropped."""
        scores = np.zeros(self.dpsgd.n)
        scores[self._active.who] = self._active.score
        return scores

    def places(self, step: int) -> NDArray[np.int64]:
        """The coordinate of each canary in this step, -1 for one that has been dropped."""
        where = np.full(self.dpsgd.n, -1)
        where[self._active.who] = self._where_in(step)
        return where

    def gradient(self, step: int, sampled: ArrayLike | None = None) -> NDArray[np.float64]:
        """The sum of the canaries' clipped gradients, in clipping thresholds, by coordinate.

        Parameters
        ----------
        step : int
            The next step. In steps beyond those planned the gradient is 0.
        sampled : array or None
            Which canaries are in the batch, if they are examples of your training; those left out
            by their coins add 0. By default they are sampled here, at the stated rate.
        """
        d, (who, _, coin) = self.dpsgd.used_coordinates, self._active
        if self._now(step) >= self.dpsgd.steps:
            return np.zeros(d)
        where = self._where_in(step)
        if sampled is None:
            batches = stream(self.seed, "canaries", "batches", step)
            return np.asarray(batch_at(where, coin, self.dpsgd.sample_rate, d, batches))
        batch = arguments.coins("sampled", sampled, self.dpsgd.n)
        return np.asarray(included_at(where, coin & batch[who], d)).astype(float)

    def observe(
        self, step: int, gradient: ArrayLike, *, clip: float = 1.0, batch: float = 1.0
    ) -> None:
        """Score the canaries by the noisy gradient of a step, and place them for the next step.

        Parameters
        ----------
        step : int
            Steps are 0, 1, ..., each observed once. A step beyond those planned breaks the claim.
        gradient : array
            The noisy gradient, a number for each coordinate (not the change of the weights, which
            has the opposite sign). If your own data use these weights too, subtract what they
            add on average.
        clip : float
            The clipping threshold.
        batch : float
            What the sum of gradients was divided by: the expected size of a batch where a loss is a
            mean, 1 where it is a sum.
        """
        dpsgd = self.dpsgd
        unit = arguments.real("batch", batch, 1e-12, 1e12) / arguments.real(
            "clip", clip, 1e-12, 1e12
        )
        y = (
            arguments.reals("gradient", gradient, -1e12, 1e12) * unit
        )  # beyond, a training has failed
        if y.shape != (dpsgd.used_coordinates,):
            each = f"each of {dpsgd.used_coordinates} coordinates"
            raise ValueError(f"gradient must have a number for {each}, got shape {y.shape}")
        if self._now(step) >= dpsgd.steps:
            if step == dpsgd.steps:
                why = "more steps than claimed break the claim; the canaries do not score them"
                warn(f"step {step + 1} of {dpsgd.steps} planned ones: {why}", stacklevel=2)
            self.step += 1
            return
        where, (_, score, coin) = self._where_in(step), self._active
        parts = np.split(y, np.cumsum(self._widths)[:-1])
        bands = list(zip(parts, self._loads[step].tolist(), strict=True))
        self._learn_noise(bands)
        self._look.add(y, included_at(where, coin, y.size))
        sigma = max(dpsgd.sigma * min(self.noise_seen, 1.0), _LEAST_NOISE)
        if self._likelihood.size:
            tables = likelihood_tables(dpsgd.per_coordinate, 1, dpsgd.sample_rate, sigma)
            self._likelihood += log_likelihoods(y[None], tables)
            belief = beliefs(self._likelihood, tables.factorials)
            score[:] = np.tile(belief, dpsgd.per_coordinate)
        else:
            ratios = [log_ratios(part, load, dpsgd.sample_rate, sigma) for part, load in bands]
            score += np.concatenate(ratios)[where]
        self.step += 1
        if self.step < dpsgd.steps:
            wanted = int(self._loads[self.step] @ self._widths)
            if wanted < score.size or self._widths.size > 1:
                self._active = by_promise(self._active, wanted)

    def guessed(self) -> NDArray[np.int64]:
        """The guess for each canary: 1 for included, -1 for left out, 0 for no guess.

        The active canaries with scores farthest from 0 are guessed; among equals, the first.
        """
        who, score, _ = self._active
        order = np.argsort(-np.abs(score), kind="stable")[: self.guesses]
        guess = np.zeros(self.dpsgd.n, dtype=np.int64)
        guess[who[order]] = np.where(score[order] > 0, 1, -1)
        return guess

    def counts(self) -> Counts:
        """How many of the guesses are right, for :func:`oralib.audit_counts`."""
        right = int((self.guessed() == np.where(self.included, 1, -1)).sum())
        return Counts(right, self.guesses, self.dpsgd.n, "canaries", r_fixed=True)

    def write_scores(self, path: Where) -> None:
        """Write a file with the columns id, score, included, for ``oralib audit``.

        Its first line, a comment, says what the canaries saw of the training.
        Since dropped canaries have the score 0, ``--side farthest --guesses K`` makes the same
        guesses as :meth:`guessed`, unless scores are equal.
        """
        if self.step == 0:
            raise ValueError("there are no scores yet: observe has not been called")
        if self.step < self.dpsgd.steps:
            only = f"only {self.step} of {self.dpsgd.steps} planned steps were observed"
            warn(f"{only}: the scores know less than the plan expects", stacklevel=2)
        write_scores(path, range(self.dpsgd.n), self.scores, self.included, self.seen)

    def save(self, path: Where) -> None:
        """Write everything needed to resume, with the coins; replaces an earlier file atomically.

        Save it whenever you save the model, so that both are of the same step.
        """
        target = arguments.path("path", path)
        partial = target.with_name(f"{target.name}.partial")
        setting = {name: getattr(self, name) for name in _SETTING}
        dropping = None if self.dropping is None else asdict(self.dropping)
        setting |= {"dpsgd": asdict(self.dpsgd), "dropping": dropping}
        arrays = self._fit, self._likelihood, self._look.sums, self._look.last, *self._active
        named: dict[str, Any] = dict(zip(_ARRAYS, arrays, strict=True))
        with partial.open("wb") as file:
            np.savez(file, setting=json.dumps(setting), **named)
        partial.replace(target)

    @classmethod
    def load(cls, path: Where) -> "Canaries":
        """The canaries in a file that :meth:`save` wrote."""
        source = arguments.path("path", path)
        try:
            with source.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                setting = json.loads(str(file["setting"]))
                fit, likelihood, sums, last, *active = (file[name] for name in _ARRAYS)
            if setting["dropping"] is not None:
                setting["dropping"] = Dropping(**setting["dropping"])
            step = setting.pop("step")
            canaries = cls(DpSgd(**setting.pop("dpsgd")), **setting)
        except (ValueError, KeyError, EOFError, TypeError, BadZipFile) as error:
            why = "it is cut off, or another program wrote it"
            raise ValueError(f"path must be a file from save, got {path}: {why}") from error
        canaries.step, canaries._active = step, Active(*active)
        canaries._fit, canaries._likelihood = fit, likelihood
        canaries._look.sums, canaries._look.last = sums, last
        return canaries

    @property
    def noise_seen(self) -> float:
        """The noise that the gradients show, as a share of the stated noise.

        It is 1.0 unless they clearly show otherwise; no coin is used. If it is less, scores use it:
        if they assumed the stated noise when only a tenth was added, no canary would look included.
        """
        best = int(np.argmax(self._fit))
        evidence = self._fit[best] - self._fit[SEEN_NOISE.index(1.0)]
        return SEEN_NOISE[best] if evidence > _NOISE_EVIDENCE else 1.0

    @property
    def seen(self) -> Seen:
        """What they saw of the training so far, for :func:`oralib.audit_scores`."""
        dpsgd = self.dpsgd
        stated = dpsgd.sigma, dpsgd.sample_rate, self.step, dpsgd.steps
        return Seen(self.way, *stated, self._look.checks(), self.software)

    def expect_noise(self, sigma: float) -> None:
        """Replace the stated noise multiplier, before the first step."""
        self._look = Look(replace(self.dpsgd, sigma=sigma))

    def _now(self, step: int) -> int:
        step = arguments.integer("step", step)
        if step != self.step:
            raise ValueError(f"step must be {self.step}, the next one, got step={step}")
        return step

    def _where_in(self, step: int) -> NDArray[np.int64]:
        """The coordinates of the active canaries in this step, by public random numbers."""
        if self._now(step) >= self.dpsgd.steps:
            raise ValueError(f"step must be less than {self.dpsgd.steps}, as planned, got {step=}")
        if self._where[0] != step:
            loads, widths = self._loads[step], self._widths
            turns = np.zeros(loads.sum(), dtype=np.int64)
            if self.hop:
                rng = stream(self.public_seed, "canaries", "places", step)
                each = zip(loads.tolist(), widths.tolist(), strict=True)
                turns = np.concatenate([rng.integers(0, width, load) for load, width in each])
            self._where = step, spots(loads, widths, turns)
        return self._where[1]

    def _learn_noise(self, bands: list[tuple[NDArray[np.float64], int]]) -> None:
        """Weigh each noise by some of the gradients; warn once if the stated one does not fit."""
        noise = np.maximum(self.dpsgd.sigma * np.array(SEEN_NOISE), _LEAST_NOISE)
        for y, load in bands:
            some = y[: _NOISE_COORDINATES // len(bands)]
            first, weight = log_weights(load, self.dpsgd.sample_rate / 2)
            self._fit += log_mixtures(some, first, weight, noise) - some.size * np.log(noise)
        if self.noise_seen != 1 and not self._warned:
            self._warned = True
            seen = f"{self.noise_seen:g} of the stated noise, sigma={self.dpsgd.sigma:g}"
            why = "either the noise is wrong, or clip and batch are not those of the training"
            warn(f"the noisy gradients look like those with {seen}: {why}", stacklevel=3)


def write_scores(
    path: Where, ids: Iterable[int], scores: Array, included: Array, seen: Seen | None = None
) -> None:
    """A file for ``oralib audit``: a line for each canary, below what they saw of the training."""
    rows = zip(ids, scores.tolist(), included.tolist(), strict=True)
    lines = [f"{name},{score!r},{int(coin)}\n" for name, score, coin in rows]
    comment = "" if seen is None else seen.comment()
    arguments.path("path", path).write_text(f"{comment}id,score,included\n{''.join(lines)}")

"""Where canaries are in each step of training, and what the noisy gradients say about them."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any
from warnings import warn
from zipfile import BadZipFile

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from oralib import _check
from oralib._streams import stream
from oralib._types import Array
from oralib.bounds import Counts
from oralib.dpsgd import DpSgd, Dropping
from oralib.dpsgd.hopping import by_promise
from oralib.dpsgd.likelihood import beliefs, likelihood_tables, log_likelihoods
from oralib.dpsgd.ratios import log_ratios, log_weights
from oralib.dpsgd.released import LARGEST_GRADIENT
from oralib.dpsgd.setting import loads_and_widths
from oralib.planning import AuditPlan
from oralib.scores.seen import Seen

__all__ = ["Canaries", "write_scores"]

#: Noise that gradients may show, as shares of the stated one: canaries estimate it, then score.
SEEN_NOISE = (1.0, 0.75, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02, 0.01, 2.0, 5.0, 20.0, 100.0)

#: The noise is learned from this many coordinates of each step at most.
_NOISE_COORDINATES = 1000

#: How much likelier, in nats, another noise must be before it is taken to be the training's.
_NOISE_EVIDENCE = 20.0

#: Gradients are not believed to have less noise than this, in clipping thresholds.
_LEAST_NOISE = 1e-3

#: What the canaries were made with, beside dpsgd and dropping; and the step.
_SETTING_FIELDS = ("k", "seed", "hop", "public_seed", "keep", "step")

#: What changes from step to step, beside the step.
_STATE_FIELDS = ("scores", "_who", "_fit", "_likelihood", "_gradients", "_places")

Where = str | os.PathLike[str]


class Canaries:
    """The canaries of one training: who is included, where they are, and how they look so far.

    Memory is that of a few numbers per canary and coordinate, whatever the number of steps is,
    unless ``keep`` asks for all steps.

    Parameters
    ----------
    dpsgd : DpSgd
        The canaries, the steps, the sample rate and the noise as they are claimed.
    k : int
        The number of guesses, fixed in advance.
    seed : int
        The seed of the coins. Keep it, and secret from all that acts during the training.
    dropping : Dropping or None
        How canaries are dropped and crowded; None if they all stay active.
    hop : bool
        Whether canaries change their coordinates in each step. If not, canary i stays on coordinate
        i % d, and none may be dropped.
    public_seed : int
        The seed of the public random numbers that place the canaries.
    keep : bool
        Whether to keep all noisy gradients and places, for :meth:`write_released`.

    Attributes
    ----------
    included : array
        The coins, one per canary.
    scores : array
        The evidence that each canary is included, a log-likelihood ratio; 0 once it is dropped.
    step : int
        The step that is to be observed next; the first is 0.
    noise_seen : float
        The noise that the gradients show, as a share of the stated one: 1.0 unless they clearly
        show another. If it is less, scores use it: with the stated noise, a run with a tenth of
        that noise would look as if no canary were included.

    Examples
    --------
    >>> audit = Canaries(DpSgd(n=4, d=2, steps=2, sample_rate=1.0, sigma=0.3), k=2, seed=4)
    >>> audit.included.tolist(), audit.places(0).tolist()
    ([False, False, True, True], [0, 1, 1, 0])
    >>> audit.observe(0, [2.0, 0.1])
    >>> audit.step, audit.guesses().tolist()
    (1, [1, 0, 0, 1])
    """

    def __init__(
        self,
        dpsgd: DpSgd,
        k: int,
        *,
        seed: int,
        dropping: Dropping | None = None,
        hop: bool = True,
        public_seed: int = 0,
        keep: bool = False,
    ) -> None:
        self._loads, self._widths = loads_and_widths(dpsgd, dropping)
        self.dpsgd, self.dropping = dpsgd, dropping
        self.hop = _check.truth("hop", hop)
        if dropping is not None and not hop:
            raise ValueError(f"dropping must be None for canaries that stay, got {dropping=}")
        self.k = _check.integer("k", k, 1, int(self._loads[-1] @ self._widths))
        self.seed, self.public_seed = _check.seed(seed), _check.seed(public_seed, "public_seed")
        coins = stream(self.seed, "canaries", "coins").random(dpsgd.n) < 0.5
        self.included = _check.read_only(coins)
        self.scores = np.zeros(dpsgd.n)
        self.step = 0
        self._who = np.arange(dpsgd.n)  # those that are active, in the order of their places
        self._fit = np.zeros(len(SEEN_NOISE))  # log-likelihoods of the gradients by their noise
        self._warned = False  # that the noise is not as stated
        # Of canaries that share a coordinate for ever: log-likelihoods of how many are included.
        s, shared = dpsgd.per_coordinate, not hop and dpsgd.per_coordinate > 1
        self._likelihood = np.zeros((dpsgd.used_coordinates, s + 1) if shared else 0)
        self.keep = _check.truth("keep", keep)
        steps = dpsgd.steps if keep else 0
        self._gradients = np.zeros((steps, dpsgd.used_coordinates))
        self._places = np.zeros((steps, dpsgd.n), dtype=np.int32)

    @classmethod
    def from_plan(
        cls, plan: AuditPlan, *, seed: int, public_seed: int = 0, keep: bool = False
    ) -> "Canaries":
        """The canaries of a plan by :func:`oralib.plan_audit`."""
        _check.instance("plan", plan, AuditPlan, "plan_audit(8.0, 1e-5, ...)")
        dpsgd, hop = plan.dpsgd, plan.dpsgd.per_coordinate > 1
        options: dict[str, Any] = {"dropping": plan.dropping, "hop": hop, "keep": keep}
        return cls(dpsgd, plan.k, seed=seed, public_seed=public_seed, **options)

    def places(self, step: int) -> NDArray[np.int64]:
        """The coordinate of each canary in this step, -1 for one that has been dropped."""
        step = self._now(step)
        where = np.full(self.dpsgd.n, -1)
        if not self.hop:
            return np.arange(self.dpsgd.n) % self.dpsgd.used_coordinates
        rng = stream(self.public_seed, "canaries", "places", step)
        done = first = 0
        for load, width in zip(self._loads[step].tolist(), self._widths.tolist(), strict=True):
            turn = rng.integers(0, width, load)[:, None]
            spots = first + (np.arange(width) + turn) % width
            where[self._who[done : done + load * width]] = spots.ravel()
            done, first = done + load * width, first + width
        return where

    def gradient(self, step: int, sampled: ArrayLike) -> NDArray[np.float64]:
        """The sum of the canaries' clipped gradients, in clipping thresholds, by coordinate.

        ``sampled`` says which canaries are in the batch; those left out by their coins add 0.
        """
        where = self.places(step)
        batch = _check.coins("sampled", sampled, self.dpsgd.n) & self.included & (where >= 0)
        return np.bincount(where[batch], minlength=self.dpsgd.used_coordinates).astype(float)

    def observe(
        self, step: int, gradient: ArrayLike, *, clip: float = 1.0, batch: float = 1.0
    ) -> None:
        """Take in the noisy gradient of a step, and decide who is where in the next one.

        Parameters
        ----------
        step : int
            The steps are 0, 1, ..., each once.
        gradient : array
            The noisy gradient, a number for each coordinate (so not the change of the weights,
            which has the other sign). If your own data use these weights too, subtract what they
            add on average.
        clip : float
            The clipping threshold.
        batch : float
            What the sum of gradients was divided by: the expected size of a batch where a loss is a
            mean, 1 where it is a sum.
        """
        dpsgd, step = self.dpsgd, self._now(step)
        unit = _check.real("batch", batch, 1e-12, 1e12) / _check.real("clip", clip, 1e-12, 1e12)
        y = _check.reals("gradient", gradient, -LARGEST_GRADIENT, LARGEST_GRADIENT) * unit
        if y.shape != (dpsgd.used_coordinates,):
            raise ValueError(
                f"gradient must have a number for each of {dpsgd.used_coordinates} coordinates, "
                f"got shape {y.shape}"
            )
        where = self.places(step)
        if self.keep:
            self._gradients[step], self._places[step] = y, where
        loads = np.repeat(self._loads[step], self._widths)
        self._learn_noise(y[:_NOISE_COORDINATES], loads[:_NOISE_COORDINATES])
        sigma = max(dpsgd.sigma * min(self.noise_seen, 1.0), _LEAST_NOISE)
        if self._likelihood.size:
            tables = likelihood_tables(dpsgd.per_coordinate, 1, dpsgd.sample_rate, sigma)
            self._likelihood += log_likelihoods(y[None], tables)
            self.scores[:] = beliefs(self._likelihood, tables.factorials)[where]
        else:
            ratios = log_ratios(y, loads, dpsgd.sample_rate, sigma)
            self.scores[self._who] += ratios[where[self._who]]
        self.step += 1
        if self.step < dpsgd.steps:
            self._arrange()

    def guesses(self, k: int | None = None) -> NDArray[np.int64]:
        """For each canary 1 for included, -1 for left out, 0 for no guess.

        It guesses the k active canaries with the scores farthest from 0, the first of equal ones.
        By default k is the number that was fixed in advance.
        """
        k = self.k if k is None else _check.integer("k", k, 1, self._who.size)
        best = self._who[np.argsort(-np.abs(self.scores[self._who]), kind="stable")[:k]]
        guess = np.zeros(self.dpsgd.n, dtype=np.int64)
        guess[best] = np.where(self.scores[best] > 0, 1, -1)
        return guess

    def counts(self, k: int | None = None) -> Counts:
        """How many of the guesses are right, for :func:`oralib.audit_counts`."""
        guess = self.guesses(k)
        right = (guess == np.where(self.included, 1, -1)).sum()
        r = np.array([np.count_nonzero(guess)])
        return Counts(np.array([right]), r, self.dpsgd.n, "canaries", r_fixed=True)

    def write_scores(self, path: Where) -> None:
        """Write a file with the columns id, score, included, for ``oralib audit``.

        Its first line, a comment, says what the canaries saw of the training.

        ``--side farthest --guesses K`` makes the same guesses as :meth:`guesses` does, since the
        score of a canary that was dropped is 0.
        """
        if self.step == 0:
            raise ValueError("there are no scores yet: observe has not been called")
        if self.step < self.dpsgd.steps:
            warn(
                f"only {self.step} of {self.dpsgd.steps} planned steps were observed: the scores "
                "know less than the plan expects",
                stacklevel=2,
            )
        write_scores(path, range(self.dpsgd.n), self.scores, self.included, self.seen)

    def write_released(self, path: Where) -> None:
        """Write a file for ``oralib conformity``: noisy gradients, coins and places, step by step.

        The canaries must have been made with ``keep=True``.
        """
        if not self.keep:
            raise ValueError("nothing was kept: make the canaries with keep=True")
        if self.step == 0:
            raise ValueError("there are no gradients yet: observe has not been called")
        gradients, places = self._gradients[: self.step], self._places[: self.step]
        with _check.path("path", path).open("wb") as file:
            np.savez(file, gradients=gradients, included=self.included, places=places)

    def save(self, path: Where) -> None:
        """Write everything needed to resume, with the coins; an earlier file is replaced at once.

        Save it whenever you save the model, so that both are of the same step.
        """
        target = _check.path("path", path)
        partial = target.with_name(f"{target.name}.partial")
        setting = {name: getattr(self, name) for name in _SETTING_FIELDS}
        setting["dpsgd"] = asdict(self.dpsgd)
        setting["dropping"] = None if self.dropping is None else asdict(self.dropping)
        state: dict[str, Any] = {name: getattr(self, name) for name in _STATE_FIELDS}
        with partial.open("wb") as file:
            np.savez(file, setting=json.dumps(setting), **state)
        partial.replace(target)

    @classmethod
    def load(cls, path: Where) -> "Canaries":
        """The canaries of a file by :meth:`save`."""
        source = _check.path("path", path)
        try:
            with source.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                setting = json.loads(str(file["setting"]))
                state = {name: file[name] for name in _STATE_FIELDS}
        except (ValueError, KeyError, EOFError, TypeError, BadZipFile) as error:
            why = "it is cut off, or another program wrote it"
            raise ValueError(f"path must be a file by save, got {path}: {why}") from error
        if setting["dropping"] is not None:
            setting["dropping"] = Dropping(**setting["dropping"])
        step = setting.pop("step")
        canaries = cls(DpSgd(**setting.pop("dpsgd")), **setting)
        _check.store(canaries, step=step, **state)
        return canaries

    @property
    def noise_seen(self) -> float:
        share, evidence = self._likeliest_noise()
        return share if evidence > _NOISE_EVIDENCE else 1.0

    @property
    def seen(self) -> Seen:
        """What they saw of the training so far, for :func:`oralib.audit_scores`."""
        return Seen(self.noise_seen, self.dpsgd.sigma, self.step, self.dpsgd.steps)

    def _likeliest_noise(self) -> tuple[float, float]:
        """The noise that fits best, as a share of the stated one, and how much better it fits."""
        best = int(np.argmax(self._fit))
        return SEEN_NOISE[best], self._fit[best] - self._fit[SEEN_NOISE.index(1.0)]

    def _now(self, step: int) -> int:
        step, steps = _check.integer("step", step), self.dpsgd.steps
        if self.step == steps:
            raise ValueError(
                f"step must be less than {steps}, as planned, got step={step}: write_scores first"
            )
        if step != self.step:
            raise ValueError(f"step must be {self.step}, the next one, got step={step}")
        return step

    def _learn_noise(self, y: NDArray[np.float64], loads: NDArray[np.int64]) -> None:
        """Weigh each noise by these gradients; warn once if the stated noise does not fit."""
        noise = np.maximum(self.dpsgd.sigma * np.array(SEEN_NOISE), _LEAST_NOISE)
        for load in np.unique(loads).tolist():
            first, weight = log_weights(load, self.dpsgd.sample_rate / 2)
            away = y[loads == load][:, None, None] - first - np.arange(weight.size)
            logs = weight - 0.5 * (away / noise[:, None]) ** 2
            self._fit += scipy.special.logsumexp(logs, axis=2).sum(axis=0)
        self._fit -= y.size * np.log(noise)
        share, evidence = self._likeliest_noise()
        if evidence > _NOISE_EVIDENCE and not self._warned:
            self._warned = True
            warn(
                f"the noisy gradients look like those with {share:g} of the stated noise, "
                f"sigma={self.dpsgd.sigma:g}: either the noise is wrong, or clip and batch are not "
                "those of the training",
                stacklevel=3,
            )

    def _arrange(self) -> None:
        """Who is active in the next step, in the order of their promise."""
        wanted = int(self._loads[self.step] @ self._widths)
        if wanted < self._who.size or self._widths.size > 1:
            order = self._who[by_promise(self.scores[self._who])]
            self._who, dropped = order[:wanted], order[wanted:]
            self.scores[dropped] = 0.0


def write_scores(
    path: Where, ids: Iterable[int], scores: Array, included: Array, seen: Seen | None = None
) -> None:
    """A file for ``oralib audit``: a line for each canary, below what they saw of the training."""
    rows = zip(ids, scores.tolist(), included.tolist(), strict=True)
    lines = [f"{name},{score!r},{int(coin)}\n" for name, score, coin in rows]
    comment = "" if seen is None else seen.comment()
    _check.path("path", path).write_text(f"{comment}id,score,included\n{''.join(lines)}")

"""The steps of a private optimizer: an audit looks at each of them, and writes into a record.

A step is a chain of calls: gradients are clipped and summed, canaries join the sum, noise is added,
the wrapped optimizer moves the weights, and the accountant is told. The methods here stand in this
order.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.modules.module import register_module_forward_hook
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils import _pytree as pytree

from oraudit.canaries.live import Canaries, TooMany
from oraudit.records import Look, Record, Told
from oraudit.records.around import move_numbers
from oraudit.records.clipping import (
    example_norms,
    is_looked_at,
    joined_norms,
    look_at,
    tensor_norms,
)
from oraudit.report import NotAsTold, alarms
from oraudit.ways.opacus.accountant import Account, accountant_of
from oraudit.ways.opacus.chain import Chain, Looks
from oraudit.ways.opacus.fingerprints import prints
from oraudit.ways.opacus.generators import seed_of
from oraudit.ways.opacus.harmless import harmless
from oraudit.ways.opacus.hooks import remove_hooks, weak_hook
from oraudit.ways.opacus.independent_gradients import IndependentGradients, due
from oraudit.ways.opacus.model import (
    cloned,
    detached,
    example_count,
    parameter_names,
    unwrapped,
)
from oraudit.ways.opacus.refused import CannotAttach
from oraudit.ways.opacus.rules import Rules
from oraudit.ways.opacus.weights import Weights

__all__ = ["NoisySum", "WatchedSteps"]


@dataclass(frozen=True)
class NoisySum:
    """A step whose noise was added, before the optimizer has used it."""

    clip: float
    sigma: float


class WatchedSteps:
    """The steps of a private optimizer of Opacus, as they are seen and recorded.

    Parameters
    ----------
    optimizer, model, loader
        The parts that ``make_private`` has returned; the latter two may be None.
    canaries, seed
        The number of canaries, and the seed of their coins.
    claim
        The (ε, δ) that the training is said to have.
    """

    #: The class that computes gradients independently of the library.
    _gradients_class: type[IndependentGradients] = IndependentGradients

    def __init__(
        self,
        optimizer: Any,
        model: Any = None,
        loader: Any = None,
        *,
        canaries: int = 0,
        seed: int | None = None,
        claim: tuple[float, float] | None = None,
    ) -> None:
        self._optimizer = optimizer
        self._params = list(optimizer.params)
        self._model = model
        self._inner = unwrapped(model)
        self._loader = loader
        self._ghost = hasattr(optimizer, "accumulate")
        self._numbers = sum(p.numel() for p in self._params)
        accountant, self._rate = accountant_of(optimizer.step_hook)
        self._canaries = self._made_canaries(canaries, seed) if canaries else None
        self._account = None if accountant is None else Account(accountant)
        examples = None if loader is None else len(loader.dataset)
        self._record = Record(examples=examples, claim=claim)
        self._record.names = parameter_names(optimizer, self._inner)
        self._weights = Weights(self._params, self._inner, self._record)
        self._rules = self._made_rules()

        # Of the step under way.
        self._parts = 0
        self._noisy: NoisySum | None = None
        self._gradients: list[Any] = []
        self._weights_before: torch.Tensor | None = None
        self._depth = 0
        # Of all steps so far.
        self._over = False
        self._stepped = 0
        self._resumed = 0
        self._seed: int | None = None
        self._sums_stay: bool | None = None
        self._settings: tuple[float, ...] | None = None
        self._varies = False
        self._rates: set[float] = set()
        self._alarmed_events = 0
        self._alarmed_kinds: set[str] = set()

    # ------------------------------------------------------------------------------- hooks

    def _stand_around(self) -> None:
        """Stand around the chain of each step, and at the hooks of the wrapped optimizer."""
        self._chain = Chain(self._optimizer, self._looks_at_chain())
        self._chain.stand()
        wrapped = self._optimizer.original_optimizer
        self._handles = [
            wrapped.register_step_pre_hook(weak_hook(self._before_step)),
            wrapped.register_step_post_hook(weak_hook(self._after_step)),
            register_optimizer_step_post_hook(weak_hook(self._after_other_step)),
        ]
        if self._inner is not None:
            hook = register_module_forward_hook(weak_hook(self._after_forward), with_kwargs=True)
            self._handles.append(hook)
        # Hooks of the whole process go when the audit goes.
        weakref.finalize(self, remove_hooks, self._handles)

    def _looks_at_chain(self) -> dict[str, Looks]:
        """Return what looks at each method of the chain before and after it."""
        looks: dict[str, Looks] = {
            "add_noise": (self._before_noise, self._after_noise),
            "zero_grad": (self._before_zero_grad, self._after_zero_grad),
        }
        if self._ghost:
            looks["accumulate"] = (self._before_accumulating, self._after_accumulating)
        else:
            looks["clip_and_accumulate"] = (self._before_clipping, self._after_clipping)
        return looks

    def _warn(self) -> None:
        """Warn of exact events at the step that shows them, of each kind once."""
        events = self._record.events
        new = events[self._alarmed_events :]
        self._alarmed_events = len(events)
        for event in new:
            if event.kind not in self._alarmed_kinds:
                self._alarmed_kinds.add(event.kind)
                for alarm in alarms(event, self._record.told):
                    warnings.warn(f"step {event.step}: {alarm}", NotAsTold, stacklevel=3)

    # ------------------------------------------------------------------------------- forward passes

    def _after_forward(self, module: Any, args: Any, kwargs: Any, output: Any) -> None:
        if module is not self._inner or module is None or torch.compiler.is_compiling():
            return
        if not module.training or not torch.is_grad_enabled():
            return
        if torch._C._functorch.peek_interpreter_stack() is None:
            self._note_forward(args, kwargs, output)

    @harmless
    def _note_forward(self, args: Any, kwargs: Any, output: Any) -> None:
        """Note the examples that the model is given; keep the pass for independent gradients."""
        self._chain.stand()
        leaves = pytree.tree_leaves((args, kwargs))
        inputs = next((leaf for leaf in leaves if isinstance(leaf, torch.Tensor)), None)
        axis = 0 if getattr(self._model, "batch_first", True) else 1
        self._close_unused()
        if inputs is not None and inputs.ndim > axis:
            self._record.batches.add_inputs(inputs.movedim(axis, 0))
        if self._is_due():
            assert self._rules.gradients is not None
            self._rules.gradients.capture(args, kwargs, output)

    def _made_rules(self) -> Rules:
        """Return the checks of the layers' rules against independent gradients."""
        if self._inner is None:
            return Rules(None, self._record, "the model was not given")
        first = getattr(self._model, "batch_first", True)
        mean = self._optimizer.loss_reduction == "mean"
        gradients = self._gradients_class(
            self._inner, self._params, batch_axis=0 if first else 1, mean=mean
        )
        return Rules(gradients, self._record)

    def _is_due(self) -> bool:
        """Return whether gradients are computed independently in this step."""
        return self._rules.gradients is not None and due(self._record.step)

    # ------------------------------------------------------------------------------- clipping

    @harmless
    def _before_clipping(self) -> Any:
        self._note_batch(example_count(self._params[0].grad_sample))
        self._note_raw()
        if not (is_looked_at(self._record.step, self._numbers) or self._is_due()):
            return None
        gradients = self._optimizer.grad_samples
        if not len(gradients[0]):
            return None
        return gradients, [cloned(p.summed_grad) for p in self._params]

    @harmless
    def _after_clipping(self, kept: Any) -> None:
        if kept is None:
            self._rules.clear()
            return
        gradients, sums_before = kept
        added = [
            p.summed_grad if before is None else p.summed_grad - before
            for p, before in zip(self._params, sums_before, strict=True)
        ]
        clips = getattr(self._optimizer, "max_grad_norms", None)
        norms = tensor_norms(gradients)
        self._note_look(gradients, added, self._clip() if clips is None else list(clips), norms)
        if clips is None and self._parts == 1:
            self._record.around.note_norms(joined_norms(norms), self._clip())
        if self._is_due():
            self._rules.check_gradients(gradients)
        self._rules.clear()

    @harmless
    def _before_accumulating(self) -> None:
        """Look at the sum of clipped gradients that ghost clipping's backward pass has left."""
        tensors = [p._norm_sample for p in self._params if hasattr(p, "_norm_sample")]
        if tensors:
            self._note_batch(len(tensors[0]))
            norms = example_norms([tensor.reshape(-1, 1) for tensor in tensors])
            if self._parts == 1:
                self._record.around.note_norms(norms, self._clip())
            self._check_ghost(norms)
        self._rules.clear()

    def _after_accumulating(self, _kept: Any) -> None:
        """Do nothing: all was seen before the call."""

    def _check_ghost(self, norms: Any) -> None:
        """Compare ghost clipping's sum, and its norms, with independent gradients."""
        computed = self._rules.compute(len(norms)) if self._is_due() else None
        if computed is None:
            return
        self._rules.check_norms(computed, norms)
        if computed.whole:
            self._note_look(computed.gradients, [p.grad for p in self._params], self._clip())

    def _note_look(self, gradients: Any, added: Any, clip: Any, norms: Any = None) -> None:
        look: Look = look_at(self._record.step, gradients, added, clip, norms)
        self._record.looks.append(look)

    def _note_batch(self, size: int) -> None:
        """Note a batch, or a part of it, of some examples."""
        self._close_unused()
        self._parts += 1
        if not self._fills_empty():
            self._record.batches.add(size)

    def _fills_empty(self) -> bool:
        """Return whether the loader puts a random example into empty batches: they have no size."""
        return bool(getattr(getattr(self._loader, "collate_fn", None), "rand_on_empty", False))

    def _note_raw(self) -> None:
        """Note the norm of the batch's gradient, which the backward pass leaves in ``p.grad``.

        It matters only if C, the noise or the learning rate change: they may follow it.
        """
        settings = (self._clip(), float(self._optimizer.noise_multiplier), self._learning_rate())
        self._varies = self._varies or self._settings not in (None, settings)
        self._settings = settings
        if not self._varies:
            return
        gradients = [p.grad for p in self._params if p.grad is not None]
        if self._parts == 1 and gradients:
            self._record.around.note(raw=torch.linalg.vector_norm(prints(gradients)))

    # ------------------------------------------------------------------------------- noise

    @harmless
    def _before_noise(self) -> Any:
        self._close_unused()
        if not self._parts:
            name = "accumulate" if self._ghost else "clip_and_accumulate"
            self._record.see("replaced", name)
        self._see_seed()
        self._see_clips()
        if not self._weights.begun:
            self._weights.begin()
        forgotten = 0 if self._account is None else self._account.open()
        if forgotten:
            self._record.see("accountant-forgot", number=forgotten)
        self._ride()
        return self._kept_sums()

    def _summed(self) -> list[torch.Tensor]:
        """Return the clipped sums."""
        return detached([p.summed_grad for p in self._params])

    def _kept_sums(self) -> Any:
        """Return the clipped sums, copies of them and their versions, until the noise is added."""
        sums = self._summed()
        # Noise may be added in place. Once it was seen to leave the sums alone, none is copied.
        copies = sums if self._sums_stay else [tensor.clone() for tensor in sums]
        return sums, copies, [tensor._version for tensor in sums]

    @harmless
    def _after_noise(self, kept: Any) -> None:
        if kept is None:
            return
        sums, clipped, versions = kept
        if self._sums_stay is None:
            self._sums_stay = all(map(torch.equal, sums, clipped))
        elif self._sums_stay and [tensor._version for tensor in sums] != versions:
            raise RuntimeError("the clipped sum was changed while the noise was added")
        noisy = detached([p.grad for p in self._params])
        if self._sums_stay and noisy[0].data_ptr() == sums[0].data_ptr():
            raise RuntimeError("the noise was added to the clipped sum itself")
        clip = self._clip()
        sigma = float(self._optimizer.noise_multiplier)
        self._record.noise.add(clipped, noisy, self._effective(sigma) * clip)
        self._noisy = NoisySum(clip, sigma)
        if self._canaries is not None:
            self._canaries.score(self._canaries.look(noisy), self._effective(sigma))

    def _see_seed(self) -> None:
        """Note the seed of the noise's generator, where it is another one than before."""
        seed = seed_of(self._optimizer.generator, self._params[0].device)
        resumed = self._seed is None and self._resumed
        if seed is not None and seed != self._seed and not resumed:
            self._record.see("seeded", number=seed)
        self._seed = seed

    def _see_clips(self) -> None:
        """Note where examples are clipped at another norm than the noise is made for."""
        clips = getattr(self._optimizer, "max_grad_norms", None)
        clip = None
        if clips is not None:
            clip = sum(float(part) ** 2 for part in clips) ** 0.5
        elif self._ghost:
            clip = getattr(self._model, "max_grad_norm", None)
        if clip is not None and abs(float(clip) / self._clip() - 1) > 1e-4:
            self._record.see("apart-clip", number=float(clip) / self._clip())

    def _clip(self) -> float:
        return float(self._optimizer.max_grad_norm)

    def _effective(self, sigma: float) -> float:
        """Return the noise multiplier of gradients; adaptive clipping spends a part on a count."""
        deviation = getattr(self._optimizer, "unclipped_num_std", None)
        if hasattr(self._optimizer, "_adjusted_noise_multiplier"):
            # The deviation that Opacus adds to the count with ghost clipping.
            deviation = (self._record.batches.size or 0) / 20
        if not deviation or sigma <= 0 or sigma >= 2 * deviation:
            return sigma
        return float((sigma**-2 - (2 * deviation) ** -2) ** -0.5)

    # ------------------------------------------------------------------------------- the move

    @harmless
    def _before_step(self, _optimizer: Any, _args: Any, _kwargs: Any) -> None:
        """Look at the weights before the wrapped optimizer moves them."""
        self._depth += 1
        if self._depth > 1:
            return
        self._weights.before_step()
        if self._noisy is None:
            self._see_step_without_noise()
            return
        self._stepped += 1
        self._gradients = [p.grad for p in self._params]
        if due(self._record.step):
            self._weights_before = self._sampled(self._params)

    def _see_step_without_noise(self) -> None:
        if self._chain.is_outermost("add_noise"):
            self._record.see("plain-step")
        else:
            self._record.see("replaced", "add_noise")
            self._record.batches.forget_step()
            self._parts = 0

    @harmless
    def _after_step(self, _optimizer: Any, _args: Any, _kwargs: Any) -> None:
        self._depth -= 1
        if self._depth > 0:
            return
        self._weights.after_step()
        self._chain.stand()
        if self._noisy is not None:
            # Close now: later hooks may change gradients. If one was cleared, use the one kept.
            pairs = zip(self._params, self._gradients, strict=True)
            self._close([before if p.grad is None else p.grad for p, before in pairs])
        self._weights.survey()

    @harmless
    def _after_other_step(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        """Look at what any optimizer of this process has moved."""
        if optimizer is not self._optimizer.original_optimizer:
            self._weights.after_other_step(optimizer)

    @harmless
    def _before_zero_grad(self) -> None:
        rows = getattr(self._params[0], "grad_sample", None)
        rows = rows[-1] if isinstance(rows, list) and rows else rows
        unused = isinstance(rows, torch.Tensor) and not hasattr(rows, "_processed")
        if unused and not self._ghost and self._record.told:
            self._record.see("thrown-away")

    @harmless
    def _after_zero_grad(self, _kept: Any) -> None:
        self._chain.stand()

    # ------------------------------------------------------------------------------- the end

    def _close_unused(self) -> None:
        """Close a step that the accountant was told and no optimizer used: a new batch begins."""
        if self._noisy is not None:
            self._close(None)

    def _close(self, used: list[Any] | None) -> None:
        """Close the step that is under way; ``used`` is what the optimizer steps with."""
        noisy = self._noisy
        assert noisy is not None
        self._noisy = None
        told_step = self._told_of(noisy)
        around = self._record.around
        around.note(clip=noisy.clip, sigma=noisy.sigma, rate=self._learning_rate())
        if self._record.batches.size is not None:
            around.note(size=self._record.batches.size)
        if used is not None and all(gradient is not None for gradient in used):
            around.note_used(self._sampled(used), *self._last())
        if used is not None and self._weights_before is not None:
            move = self._sampled(self._params) - self._weights_before
            around.note(**move_numbers(move, *self._last()))
        self._weights_before = None
        self._gradients = []
        self._parts = 0
        self._record.close_step(told_step)

    def _told_of(self, noisy: NoisySum) -> Told:
        """Return what the accountant was told of a step, or would be."""
        entry = None if self._account is None else self._account.close()
        if entry is None:
            return Told(noisy.clip, noisy.sigma, self._rate)
        sigma, rate = entry
        if sigma > 0 and abs(sigma / noisy.sigma - 1 if noisy.sigma else 1) > 1e-6:
            self._record.see("sigma-told", f"{noisy.sigma:.4g}", sigma)
            self._record.noise.rescale_last(self._effective(sigma) * noisy.clip)
        return Told(noisy.clip, sigma, rate)

    def _sampled(self, tensors: Sequence[Any]) -> torch.Tensor:
        """Return the numbers of tensors at the places of the noise's sample."""
        sampled: torch.Tensor = self._record.noise.sampled(detached(tensors))
        return sampled

    def _last(self) -> tuple[Any, Any]:
        """Return the clipped sum and the noise of the last step at the places of the sample."""
        return self._record.noise.last()

    def _learning_rate(self) -> float:
        rate = float(self._optimizer.param_groups[0].get("lr", np.nan))
        if len(self._rates) < 2:
            self._rates.add(rate)
        return rate

    # ------------------------------------------------------------------------------- canaries

    def _made_canaries(self, n: int, seed: int | None) -> Canaries:
        """Return the canaries of this training; refuse those that cannot be."""
        if self._told_rate() is None:
            raise CannotAttach(
                "canaries need the rate of batches, and neither the optimizer's step hook nor the "
                "loader has one: attach what PrivacyEngine.make_private has returned"
            )
        try:
            return self._placed_canaries(n, seed)
        except TooMany as reason:
            raise CannotAttach(str(reason)) from None

    def _placed_canaries(self, n: int, seed: int | None) -> Canaries:
        """Return canaries on the weights of this training."""
        return Canaries(n, sizes=[p.numel() for p in self._params], seed=seed)

    def _told_rate(self) -> float | None:
        """Return the rate of one pass over a batch, which the accountant is told."""
        return getattr(self._loader, "sample_rate", None) if self._rate is None else self._rate

    def _ride(self, **options: Any) -> None:
        """Let the canaries of this step's batch, if there are any, join the clipped sums."""
        if self._canaries is None:
            return
        rate = self._told_rate()
        assert rate is not None
        clips = getattr(self._optimizer, "max_grad_norms", None)
        clip = self._clip() if clips is None else [float(part) for part in clips]
        rate = min(rate * self._optimizer.accumulated_iterations, 1.0)
        self._canaries.join(self._summed(), clip, rate, **options)

"""Opacus: an audit stands around the private optimizer and sees each step of it.

>>> audit = attach(optimizer, model, loader)  # doctest: +SKIP
>>> train(model, optimizer, loader)  # doctest: +SKIP
>>> audit.result().check()  # doctest: +SKIP

An optimizer of Opacus clips and sums (``clip_and_accumulate``; with ghost clipping the backward
pass clips, and ``accumulate`` sums), adds noise (``add_noise``), tells the accountant (its step
hook), and lets the optimizer that it wraps move the weights. The audit looks between these calls
and at the hooks of that optimizer. It changes none of their results, draws no random number, and
:meth:`OpacusAudit.detach` takes it off. An error of its own never reaches the training.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import numpy as np
import torch
from opacus.optimizers import DPOptimizer
from torch.nn.modules.module import register_module_forward_hook
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils import _pytree as pytree

from oraudit.canaries.counted import Counted
from oraudit.canaries.live import Canaries, TooMany
from oraudit.records import Batches, Earlier, Event, Look, Record, Seen, Told, saved
from oraudit.records.around import move_numbers
from oraudit.records.clipping import (
    example_norms,
    is_looked_at,
    joined_norms,
    look_at,
    tensor_norms,
)
from oraudit.report import NotAsTold, Result, alarms, judge
from oraudit.ways.accountant import Account, accountant_of
from oraudit.ways.beside import Beside, NotMade, due
from oraudit.ways.fingerprints import Watched, changed, local, prints
from oraudit.ways.generators import seed_of
from oraudit.ways.inputs import are_examples

__all__ = ["CannotAttach", "OpacusAudit", "attach"]

#: How many examples' gradients are made beside to hold the layers' rules against them.
RULE_EXAMPLES = 16

#: How far a layer's rule may be off by rounding, as a share of the gradient.
RULE_ROUNDING = 0.01

#: How often, after the first five steps, parameters are looked for that joined the model.
SURVEY_EVERY = 10

#: Optimizers that private ones wrap, and their audits: their steps are private ones.
_WRAPPED: weakref.WeakKeyDictionary[torch.optim.Optimizer, weakref.ref[OpacusAudit]]
_WRAPPED = weakref.WeakKeyDictionary()


class CannotAttach(TypeError):
    """Why an optimizer cannot be audited."""


def attach(
    optimizer: Any,
    model: Any = None,
    loader: Any = None,
    *,
    canaries: int = 0,
    seed: int | None = None,
    claim: tuple[float, float] | None = None,
    allow: Sequence[str] = (),
) -> OpacusAudit:
    """Audit the training of an optimizer that ``PrivacyEngine.make_private`` has returned.

    >>> model, optimizer, loader = engine.make_private(...)  # doctest: +SKIP
    >>> audit = attach(optimizer, model, loader)  # before the first step  # doctest: +SKIP
    >>> train(model, optimizer, loader)  # as it is  # doctest: +SKIP
    >>> result = audit.result()  # now or earlier: the training may go on  # doctest: +SKIP
    >>> print(result)  # the report  # doctest: +SKIP
    >>> result.status  # "passed", "failed" or "cannot tell"  # doctest: +SKIP
    'passed'
    >>> result.check()  # returns only if it passed: the line of a test  # doctest: +SKIP

    Parameters
    ----------
    optimizer
        The private optimizer.
    model, loader
        What ``make_private`` has returned beside it. Without the model, buffers and weights of no
        private optimizer are not looked at; without the loader, the rate is not.
    canaries
        How many canaries join the clipped sum and stay in it, for a lower bound on ε and a test of
        the stated training; at most one for each weight that is trained.
    seed
        The seed of the canaries' coins, which nobody may know before the audit; None for one from
        the operating system.
    claim
        The (ε, δ) that the training is said to have.
    allow
        Names of findings that are post-processing and meant.

    Returns
    -------
    OpacusAudit
        ``audit.result()`` is the :class:`~oraudit.Result`: print it, or call its ``.check()``,
        which raises AssertionError with the report unless the audit passed. ``audit.detach()``
        takes the audit off the optimizer, and ``audit.state_dict()`` is for a checkpoint.
    """
    from oraudit.ways.kinds import audit  # which is made of what is here

    return audit(optimizer, model, loader, canaries=canaries, seed=seed, claim=claim, allow=allow)


@dataclass(frozen=True)
class _Noisy:
    """A step whose noise was added, before the optimizer has used it."""

    clip: float
    sigma: float


def _harmless(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let no error of the audit reach the training: the audit ends, and its report says so."""

    @wraps(method)
    def looked(self: OpacusAudit, *args: Any, **kwargs: Any) -> Any:
        if self._over:
            return None
        try:
            found = method(self, *args, **kwargs)
        except Exception as error:
            self._over = True
            self._record.see("unwatched", f"{type(error).__name__}: {error}")
            return None
        self._warn()
        return found

    return looked


class OpacusAudit:
    """An audit that stands around a private optimizer of Opacus; made by :func:`attach`."""

    #: What makes gradients beside.
    _maker: type[Beside] = Beside

    def __init__(
        self,
        optimizer: Any,
        model: Any = None,
        loader: Any = None,
        *,
        canaries: int = 0,
        seed: int | None = None,
        claim: tuple[float, float] | None = None,
        allow: Sequence[str] = (),
        earlier: Sequence[OpacusAudit] | None = None,
    ) -> None:
        _check_kind(optimizer)
        self._optimizer = optimizer
        self._params = list(optimizer.params)
        self._loader = loader
        accountant, self._rate = accountant_of(optimizer.step_hook)
        self._canaries = self._made_canaries(canaries, seed) if canaries else None
        wrapped = optimizer.original_optimizer
        if wrapped in _WRAPPED and (former := _WRAPPED[wrapped]()) is not None:
            # make_private was called again: the training of the former audit has ended.
            former.detach()
        _WRAPPED[wrapped] = weakref.ref(self)
        self._model = model
        self._inner = _inner(model)
        self._allow = tuple(allow)
        self._earlier = None if earlier is None else list(earlier)
        self._ghost = hasattr(optimizer, "accumulate")
        examples = None if loader is None else len(loader.dataset)
        self._record = Record(examples=examples, claim=claim)
        self._record.names = _names(optimizer, self._inner)
        self._account = None if accountant is None else Account(accountant)
        self._numbers = sum(p.numel() for p in self._params)
        self._own = {id(p) for p in self._params}
        self._others = Watched()
        self._buffers = Watched()
        self._unmade = "the model was not given"
        self._beside = self._make_beside()
        self._made = 0

        self._comparable = False
        self._over = False
        self._ended: Seen | None = None
        self._depth = 0
        self._parts = 0
        self._stepped = 0
        self._resumed = 0
        self._seed: int | None = None
        self._noisy: _Noisy | None = None
        self._given: list[Any] = []
        self._weights: torch.Tensor | None = None
        self._sums_stay: bool | None = None
        self._settings: tuple[float, ...] | None = None
        self._varies = False
        self._rates: set[float] = set()
        self._first: torch.Tensor | None = None
        self._after: torch.Tensor | None = None
        self._next: torch.Tensor | None = None
        self._moved: list[tuple[int, Any, Any]] = []
        self._exposed: set[str] = set()
        self._told_of = 0
        self._kinds_told: set[str] = set()
        self._stand_around()

    # ------------------------------------------------------------------- on the chain and off it

    def _stand_around(self) -> None:
        self._chain: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
            "clip_and_accumulate": (self._before_clipping, self._after_clipping),
            "add_noise": (self._before_noise, self._after_noise),
            "zero_grad": (self._before_zero_grad, self._after_zero_grad),
        }
        if self._ghost:
            del self._chain["clip_and_accumulate"]
            self._chain["accumulate"] = (self._before_accumulating, self._after_accumulating)
        self._outermost: dict[str, Any] = {}
        self._within: dict[str, Any] = {}
        self._running: set[str] = set()
        self._stand_outermost()
        wrapped = self._optimizer.original_optimizer
        self._handles = [
            wrapped.register_step_pre_hook(_weak(self._before_step)),
            wrapped.register_step_post_hook(_weak(self._after_step)),
            register_optimizer_step_post_hook(_weak(self._after_other_step)),
        ]
        if self._inner is not None:
            hook = register_module_forward_hook(_weak(self._after_forward), with_kwargs=True)
            self._handles.append(hook)
        # Hooks of the whole process go when the audit goes.
        weakref.finalize(self, _remove, self._handles)

    def _is_outermost(self, name: str) -> bool:
        """Whether a method of the optimizer is the audit's own."""
        return self._optimizer.__dict__.get(name) is self._outermost.get(name, self)

    def _stand_outermost(self) -> None:
        """Stand around the methods of the optimizer, also around what replaced one of them."""
        for name in self._chain:
            if not self._is_outermost(name):
                self._within[name] = self._optimizer.__dict__.get(name)
                self._outermost[name] = self._around(name, getattr(self._optimizer, name))
                setattr(self._optimizer, name, self._outermost[name])

    def _around(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method, with a look before and after it, unless that is within another look."""
        before, after = self._chain[name]

        @wraps(method)
        def looked(*args: Any, **kwargs: Any) -> Any:
            if name in self._running or self._ended is not None:
                return method(*args, **kwargs)
            self._running.add(name)
            try:
                found = before()
                result = method(*args, **kwargs)
                after(found)
            finally:
                self._running.discard(name)
            return result

        return looked

    def detach(self) -> None:
        """Take the audit off: the optimizer is as it was. The result stays."""
        if self._ended is not None:
            return
        try:
            self._ended = self._seen()
        except Exception as error:
            # The training may be on its way out with an error of its own.
            self._record.see("unwatched", f"{type(error).__name__}: {error}")
            told = tuple(self._record.told)
            nothing = Batches((None,) * len(told), (None,) * len(told))
            events = tuple(self._record.events)
            self._ended = Seen(self._record.names, told, None, (), nothing, events, None, None)
        _remove(self._handles)
        _WRAPPED.pop(self._optimizer.original_optimizer, None)
        for name, own in self._within.items():
            if not self._is_outermost(name):
                continue
            if own is None:
                delattr(self._optimizer, name)
            else:
                setattr(self._optimizer, name, own)

    # ------------------------------------------------------------------------ the chain of a step

    @_harmless
    def _before_clipping(self) -> Any:
        optimizer = self._optimizer
        self._note_batch(_rows(self._params[0].grad_sample))
        self._note_raw()
        if not self._looks():
            return None
        gradients = optimizer.grad_samples
        if not len(gradients[0]):
            return None
        return gradients, [_copy(p.summed_grad) for p in self._params]

    @_harmless
    def _after_clipping(self, old: Any) -> None:
        if old is None:
            self._beside_clear()
            return
        gradients, before = old
        added = [
            p.summed_grad if sum_ is None else p.summed_grad - sum_
            for p, sum_ in zip(self._params, before, strict=True)
        ]
        clips = getattr(self._optimizer, "max_grad_norms", None)
        norms = tensor_norms(gradients)
        self._note_look(gradients, added, self._clip() if clips is None else list(clips), norms)
        if clips is None and self._parts == 1:
            self._record.around.note_norms(joined_norms(norms), self._clip())
        self._hold_rules(gradients)
        self._beside_clear()

    @_harmless
    def _before_accumulating(self) -> None:
        """With ghost clipping the sum of clipped gradients is what the backward pass has left."""
        norms = [p._norm_sample for p in self._params if hasattr(p, "_norm_sample")]
        if norms:
            self._note_batch(len(norms[0]))
            together = example_norms([each.reshape(-1, 1) for each in norms])
            if self._parts == 1:
                self._record.around.note_norms(together, self._clip())
            self._hold_ghost(together)
        self._beside_clear()

    def _after_accumulating(self, _found: Any) -> None:
        """Nothing is left to look at."""

    @_harmless
    def _before_noise(self) -> Any:
        self._close_unused()
        if not self._parts:
            name = "accumulate" if self._ghost else "clip_and_accumulate"
            self._record.see("replaced", name)
        self._see_seed()
        self._see_clips()
        if self._first is None:
            self._begin()
        if self._account is not None and (lost := self._account.open()):
            self._record.see("accountant-forgot", number=lost)
        self._ride()
        return self._clipped()

    def _summed(self) -> list[torch.Tensor]:
        """The clipped sums."""
        return _alone([p.summed_grad for p in self._params])

    def _clipped(self) -> Any:
        """What is kept of the clipped sums until the noise is added."""
        sums = self._summed()
        # What adds noise may do it in place; once it was seen to leave sums alone, none is copied.
        copies = sums if self._sums_stay else [each.clone() for each in sums]
        return sums, copies, [each._version for each in sums]

    @_harmless
    def _after_noise(self, found: Any) -> None:
        if found is None:
            return
        sums, clipped, versions = found
        if self._sums_stay is None:
            self._sums_stay = all(map(torch.equal, sums, clipped))
        elif self._sums_stay and [each._version for each in sums] != versions:
            raise RuntimeError("the clipped sum was changed while the noise was added")
        noisy = _alone([p.grad for p in self._params])
        if self._sums_stay and noisy[0].data_ptr() == sums[0].data_ptr():
            raise RuntimeError("the noise was added to the clipped sum itself")
        clip = self._clip()
        sigma = float(self._optimizer.noise_multiplier)
        self._record.noise.add(clipped, noisy, self._effective(sigma) * clip)
        self._noisy = _Noisy(clip, sigma)
        if self._canaries is not None:
            self._canaries.score(self._canaries.look(noisy), self._effective(sigma))

    @_harmless
    def _before_step(self, _optimizer: Any, _args: Any, _kwargs: Any) -> None:
        """The wrapped optimizer is about to move the weights."""
        self._depth += 1
        if self._depth > 1:
            return
        now = prints(self._params)
        before = self._after if self._next is None else self._next
        self._next = None
        if before is not None:
            self._moved.append((self._record.step, before, now))
        if self._noisy is None:
            if self._is_outermost("add_noise"):
                self._record.see("plain-step")
            else:
                self._record.see("replaced", "add_noise")
                self._record.batches.forget_step()
                self._parts = 0
            return
        self._stepped += 1
        self._given = [p.grad for p in self._params]
        if due(self._record.step):
            self._weights = self._sampled(self._params)

    @_harmless
    def _after_step(self, _optimizer: Any, _args: Any, _kwargs: Any) -> None:
        self._depth -= 1
        if self._depth > 0:
            return
        self._after = prints(self._params)
        self._stand_outermost()
        if self._noisy is not None:
            # Now, as other hooks may come after the audit's; an optimizer may have cleared them.
            pairs = zip(self._params, self._given, strict=True)
            self._close([given if p.grad is None else p.grad for p, given in pairs])
        if self._record.step <= 5 or self._record.step % SURVEY_EVERY == 0:
            self._survey()

    def _close(self, used: list[Any] | None) -> None:
        """Close the step that is under way; ``used`` is what the optimizer steps with."""
        noisy = self._noisy
        assert noisy is not None
        self._noisy = None
        sigma = noisy.sigma
        rate = self._rate
        told = None if self._account is None else self._account.close()
        if told is not None:
            sigma, rate = told
            if sigma > 0 and abs(sigma / noisy.sigma - 1 if noisy.sigma else 1) > 1e-6:
                self._record.see("sigma-told", f"{noisy.sigma:.4g}", sigma)
                self._record.noise.rescale_last(self._effective(sigma) * noisy.clip)
        around = self._record.around
        around.note(clip=noisy.clip, sigma=noisy.sigma, rate=self._learning_rate())
        if self._record.batches.size is not None:
            around.note(size=self._record.batches.size)
        if used is not None and all(each is not None for each in used):
            around.note_used(self._sampled(used), *self._last())
        if used is not None and self._weights is not None:
            move = self._sampled(self._params) - self._weights
            around.note(**move_numbers(move, *self._last()))
        self._weights = None
        self._given = []
        self._parts = 0
        self._record.close_step(Told(noisy.clip, sigma, rate))

    def _sampled(self, tensors: Sequence[Any]) -> torch.Tensor:
        """Numbers of some tensors, one for each weight, at the places of the noise's sample."""
        sampled: torch.Tensor = self._record.noise.sampled(_alone(tensors))
        return sampled

    def _last(self) -> tuple[Any, Any]:
        """The clipped sum and the noise of the last step at these places."""
        return self._record.noise.last()

    def _warn(self) -> None:
        """Tell what is exact at the step that shows it, each kind once."""
        events = self._record.events
        new = events[self._told_of :]
        self._told_of = len(events)
        for event in new:
            if event.kind not in self._kinds_told:
                self._kinds_told.add(event.kind)
                for words in alarms(event, self._record.told):
                    warnings.warn(f"step {event.step}: {words}", NotAsTold, stacklevel=3)

    # ------------------------------------------------------------------ what is seen on the way

    def _clip(self) -> float:
        return float(self._optimizer.max_grad_norm)

    def _effective(self, sigma: float) -> float:
        """The multiplier of the gradients' noise: adaptive clipping spends a part on a count."""
        counted = getattr(self._optimizer, "unclipped_num_std", None)
        if hasattr(self._optimizer, "_adjusted_noise_multiplier"):
            # The deviation that Opacus adds to the count with ghost clipping.
            counted = (self._record.batches.size or 0) / 20
        if not counted or sigma <= 0 or sigma >= 2 * counted:
            return sigma
        return float((sigma**-2 - (2 * counted) ** -2) ** -0.5)

    def _looks(self) -> bool:
        return is_looked_at(self._record.step, self._numbers) or self._is_due()

    def _learning_rate(self) -> float:
        rate = float(self._optimizer.param_groups[0].get("lr", np.nan))
        if len(self._rates) < 2:
            self._rates.add(rate)
        return rate

    def _close_unused(self) -> None:
        """Close a step that the accountant was told and no optimizer used: a new batch begins."""
        if self._noisy is not None:
            self._close(None)

    def _note_batch(self, size: int) -> None:
        self._close_unused()
        self._parts += 1
        if not self._fills_empty():
            self._record.batches.add(size)

    def _fills_empty(self) -> bool:
        """Whether the loader puts a random example into empty batches, which has no size then."""
        return bool(getattr(getattr(self._loader, "collate_fn", None), "rand_on_empty", False))

    def _note_raw(self) -> None:
        """Note the norm of the batch's gradient, which the backward pass leaves beside the rows.

        It matters only where C, the noise or the learning rate change: they may follow it.
        """
        now = (self._clip(), float(self._optimizer.noise_multiplier), self._learning_rate())
        self._varies = self._varies or self._settings not in (None, now)
        self._settings = now
        if not self._varies:
            return
        gradients = [p.grad for p in self._params if p.grad is not None]
        if self._parts == 1 and gradients:
            self._record.around.note(raw=torch.linalg.vector_norm(prints(gradients)))

    def _note_look(self, gradients: Any, added: Any, clip: Any, norms: Any = None) -> None:
        look: Look = look_at(self._record.step, gradients, added, clip, norms)
        self._record.looks.append(look)

    def _see_seed(self) -> None:
        seed = seed_of(self._optimizer.generator, self._params[0].device)
        resumed = self._seed is None and self._resumed
        if seed is not None and seed != self._seed and not resumed:
            self._record.see("seeded", number=seed)
        self._seed = seed

    def _see_clips(self) -> None:
        """Whether examples are clipped at the norm that the noise is made for."""
        clips = getattr(self._optimizer, "max_grad_norms", None)
        at = None
        if clips is not None:
            at = sum(float(each) ** 2 for each in clips) ** 0.5
        elif self._ghost:
            at = getattr(self._model, "max_grad_norm", None)
        if at is not None and abs(float(at) / self._clip() - 1) > 1e-4:
            self._record.see("apart-clip", number=float(at) / self._clip())

    @_harmless
    def _before_zero_grad(self) -> None:
        rows = getattr(self._params[0], "grad_sample", None)
        rows = rows[-1] if isinstance(rows, list) and rows else rows
        unused = isinstance(rows, torch.Tensor) and not hasattr(rows, "_processed")
        if unused and not self._ghost and self._record.told:
            self._record.see("thrown-away")

    @_harmless
    def _after_zero_grad(self, _found: Any) -> None:
        self._stand_outermost()

    # ---------------------------------------------------------------- weights, beside the chain

    def _begin(self) -> None:
        """Watch from the first private step on: before it, checkpoints are loaded."""
        self._first = prints(self._params)
        if self._inner is None:
            return
        named = self._inner.named_parameters()
        self._others.add({k: p for k, p in named if id(p) not in self._own}, 0)
        floats = {k: b for k, b in self._inner.named_buffers() if b.is_floating_point()}
        self._buffers.add(floats, 0)

    def _survey(self) -> None:
        """Look for parameters that joined the model."""
        if self._inner is None:
            return
        named = self._inner.named_parameters()
        late = {k: p for k, p in named if id(p) not in self._own and k not in self._others}
        self._others.add(late, self._record.step)

    @_harmless
    def _after_other_step(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        """Some optimizer of this process has moved weights."""
        if optimizer is self._optimizer.original_optimizer:
            return
        groups = optimizer.param_groups
        moved = {id(p) for group in groups for p in group["params"] if p.grad is not None}
        if moved & self._own:
            if optimizer not in _WRAPPED:
                self._record.see("plain-step")
            if self._after is not None:
                self._next = prints(self._params)
        if optimizer in _WRAPPED:
            return
        if self._inner is None or self._first is None:
            return
        for name, parameter in self._inner.named_parameters():
            if id(parameter) in moved - self._own and name not in self._exposed:
                self._exposed.add(name)
                known = name in self._others
                self._record.see("unprivate-parameter" if known else "late-parameter", name)

    def _changes(self) -> list[Event]:
        """What has changed that ought not to have, by the end."""
        step = self._record.step
        moves = list(self._moved)
        before = self._after if self._next is None else self._next
        if before is not None:
            moves.append((step, before, prints(self._params)))
        events = []
        for moved_at, earlier, later in moves:
            moved = changed(earlier, later)
            if moved.any():
                name = self._record.names[int(moved.argmax())]
                events.append(Event("outside-step", moved_at, name))
        if self._inner is None or self._first is None:
            return events
        parameters = dict(self._inner.named_parameters())
        for name, joined in self._others.changes(parameters):
            if name in self._exposed or hasattr(parameters[name], "summed_grad"):
                continue
            if joined:
                events.append(Event("late-parameter", joined, name))
            else:
                events.append(Event("unprivate-parameter", None, name))
        for name, parameter in parameters.items():
            new = id(parameter) not in self._own and name not in self._others
            if new and parameter.grad is not None and name not in self._exposed:
                events.append(Event("late-parameter", None, name))
        buffers = dict(self._inner.named_buffers())
        events += [
            Event("buffer-changed", None, name) for name, _ in self._buffers.changes(buffers)
        ]
        return events

    # ----------------------------------------------------------------- gradients made beside

    def _make_beside(self) -> Beside | None:
        if self._inner is None:
            return None
        first = getattr(self._model, "batch_first", True)
        mean = self._optimizer.loss_reduction == "mean"
        return self._maker(self._inner, self._params, batch_axis=0 if first else 1, mean=mean)

    def _is_due(self) -> bool:
        return self._beside is not None and due(self._record.step)

    def _beside_clear(self) -> None:
        if self._beside is not None:
            self._beside.clear()

    def _after_forward(self, module: Any, args: Any, kwargs: Any, output: Any) -> None:
        if module is not self._inner or module is None or torch.compiler.is_compiling():
            return
        if not module.training or not torch.is_grad_enabled():
            return
        if torch._C._functorch.peek_interpreter_stack() is None:
            self._note_forward(args, kwargs, output)

    @_harmless
    def _note_forward(self, args: Any, kwargs: Any, output: Any) -> None:
        self._stand_outermost()
        leaves = pytree.tree_leaves((args, kwargs))
        inputs = next((leaf for leaf in leaves if isinstance(leaf, torch.Tensor)), None)
        axis = 0 if getattr(self._model, "batch_first", True) else 1
        self._close_unused()
        if inputs is not None and inputs.ndim > axis:
            self._record.batches.add_inputs(inputs.movedim(axis, 0))
        if self._is_due():
            assert self._beside is not None
            self._beside.capture(args, kwargs, output)

    def _make(self, size: int, most: int | None) -> Any:
        """Gradients made beside, of a batch of this size, where they are due and can be made."""
        if not self._is_due():
            return None
        assert self._beside is not None
        try:
            made = self._beside.make(most)
        except NotMade as reason:
            self._unmade = str(reason)
            return None
        if made.size != size:
            self._unmade = f"the model's output has {made.size} rows, the batch {size} examples"
            return None
        self._made += 1
        return made

    def _hold_rules(self, gradients: Any) -> None:
        """Hold the gradients that are clipped against those made beside."""
        made = self._make(len(gradients[0]), RULE_EXAMPLES)
        if made is None:
            return
        if made.mixed > RULE_ROUNDING:
            self._record.see("examples-mix", number=made.mixed)
            return
        total = float(prints(made.gradients).norm())
        for name, theirs, ours in zip(self._record.names, gradients, made.gradients, strict=True):
            size = max(float(ours.norm()), RULE_ROUNDING * total)
            apart = float((theirs[made.rows] - ours).norm()) / size if size else 0.0
            if not apart <= RULE_ROUNDING:  # NaN, too
                self._record.see("layer-rule", name, apart)

    def _hold_ghost(self, norms: Any) -> None:
        """Hold the sum that ghost clipping has left, and its norms, against gradients."""
        made = self._make(len(norms), None)
        if made is None:
            return
        if made.mixed > RULE_ROUNDING:
            self._record.see("examples-mix", number=made.mixed)
            return
        self._hold_norms(made, norms)
        if made.whole:
            self._note_look(made.gradients, [p.grad for p in self._params], self._clip())

    def _hold_norms(self, made: Any, norms: Any) -> None:
        """Hold the norms that ghost clipping takes for examples against those of gradients."""
        real = example_norms(made.gradients)
        ratio = real / norms[made.rows].clamp(min=1e-12)
        worst = float(ratio[(ratio - 1).abs().argmax()])
        if abs(worst - 1) > RULE_ROUNDING and float(real.max()) > 0:
            self._record.see("ghost-norm", number=worst)

    # ---------------------------------------------------------------------------------- canaries

    def _made_canaries(self, n: int, seed: int | None) -> Canaries:
        """The canaries of this training."""
        if self._told_rate() is None:
            raise CannotAttach(
                "canaries need the rate of batches, and neither the optimizer's step hook nor the "
                "loader has one: attach what PrivacyEngine.make_private has returned"
            )
        try:
            return self._place(n, seed)
        except TooMany as reason:
            raise CannotAttach(str(reason)) from None

    def _place(self, n: int, seed: int | None) -> Canaries:
        """Canaries on the weights of this training."""
        return Canaries(n, sizes=[p.numel() for p in self._params], seed=seed)

    def _told_rate(self) -> float | None:
        """The rate of one pass over a batch, which the accountant is told."""
        return getattr(self._loader, "sample_rate", None) if self._rate is None else self._rate

    def _ride(self, **options: Any) -> None:
        """Let the canaries of this step's batch, if there are any, join the clipped sums."""
        if self._canaries is None:
            return
        rate = self._told_rate()
        assert rate is not None
        clips = getattr(self._optimizer, "max_grad_norms", None)
        clip = self._clip() if clips is None else [float(each) for each in clips]
        rate = min(rate * self._optimizer.accumulated_iterations, 1.0)
        self._canaries.join(self._summed(), clip, rate, **options)

    def _counted(self) -> Counted | None:
        if self._canaries is None:
            return None
        return self._canaries.counted(self._record.told, claim=self._record.claim)

    # ------------------------------------------------------------------------------------- result

    def result(self) -> Result:
        """The result so far; the training may go on."""
        seen = self._seen() if self._ended is None else self._ended
        counts = self._counted()
        return judge(seen, counts=counts, unlooked=self._unlooked(), allow=self._allow)

    def _seen(self) -> Seen:
        events = self._changes() + self._chain_events()
        batches = self._record.batches
        if self._loader is not None and self._record.told:
            rates = [told.rate or 0.0 for told in self._record.told]
            known = batches.finished().fingerprints
            batches.comparable = are_examples(known, rates, self._loader.dataset)
            self._comparable = batches.comparable
        seen = self._record.finished()
        batches.comparable = True
        earlier = [each.as_earlier(self) for each in self._earlier or ()]
        return replace(
            seen,
            events=(*seen.events, *events),
            earlier=[each for each in earlier if each is not None],
        )

    def _chain_events(self) -> list[Event]:
        """Whether the chain is still the one that is watched, and what the accountant was told."""
        events = []
        steps = len(self._record.told)
        if self._stepped + self._resumed != steps and steps:
            text = f"the optimizer stepped {self._stepped} times in {steps} private steps"
            events.append(Event("unwatched", None, text))
        if self._account is not None and steps:
            events.append(Event("accountant-told", None, "", self._account.all_told(steps)))
            if self._account.earlier:
                events.append(Event("earlier-steps", None, "", self._account.earlier))
        return events

    def _unlooked(self) -> list[str]:
        unlooked = []
        if self._canaries is not None and self._canaries.unusable:
            unlooked.append(f"counts ({self._canaries.unusable})")
        earlier = 0 if self._account is None else (self._account.earlier or 0)
        if earlier:
            unlooked.append(f"the {earlier} steps that the accountant knew before")
        if self._account is None:
            unlooked.append("the accountant (none was found in the optimizer's step hook)")
        if self._loader is None:
            unlooked.append("the rate and the batches (attach was not given the loader)")
        elif self._fills_empty():
            unlooked.append("the batches (rand_on_empty puts random examples into empty ones)")
        elif self._record.told and not self._comparable:
            unlooked.append("which examples are in a batch (inputs do not tell them apart)")
        if len(self._rates) > 1:
            unlooked.append("what decides the learning rate")
        if self._earlier is None:
            unlooked.append("other trainings of this process")
        elif others := sum(self._spends_apart(each) for each in self._earlier):
            also = "another" if others == 1 else f"{others} others"
            unlooked.append(f"what this training and {also} on its data spend together")
        if self._inner is None:
            unlooked.append("buffers and weights of no private optimizer (no model was given)")
        if self._record.told and not self._made:
            what = "ghost clipping" if self._ghost else "the layers' rules"
            unlooked.append(f"{what}, and whether examples depend on each other ({self._unmade})")
        return unlooked

    # --------------------------------------------------------------------- other trainings, resumed

    def as_earlier(self, later: OpacusAudit) -> Earlier | None:
        """This training, as one that came before another in the same process."""
        seen = self._seen() if self._ended is None else self._ended
        if seen.noise is None or later._first is None:
            return None
        end = self._after
        same = (
            end is not None
            and len(end) == len(later._first)
            and not changed(end, later._first).any()
        )
        return Earlier(seen.steps, seen.noise.sizes, seen.noise.sample, same)

    def _spends_apart(self, other: OpacusAudit) -> bool:
        """Whether another training has the same data and another accountant."""
        mine = None if self._account is None else self._account.accountant
        theirs = None if other._account is None else other._account.accountant
        data = None if self._loader is None else self._loader.dataset
        same = data is not None and other._loader is not None and other._loader.dataset is data
        return same and mine is not theirs

    #: The kind of audit that a saved state is of.
    _saved_as = "OpacusAudit"

    def state_dict(self) -> dict[str, Any]:
        """What was seen so far, for the training's own checkpoint; ``torch.save`` takes it."""
        state = saved.sealed(self._saved_as, pytree.tree_map(_as_array, self._content()))
        return dict(pytree.tree_map(_as_tensor, state))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from an audit of an earlier process, whose training is resumed.

        Raises ValueError, before anything is used, for a state that is not as it was saved.
        """
        content = saved.opened(self._saved_as, pytree.tree_map(_as_array, state))
        self._check(content)
        self._take(content)

    def _content(self) -> dict[str, Any]:
        """All that is saved, in lists, numbers, words and arrays."""
        return {
            "record": self._record.state(),
            "account": None if self._account is None else self._account.state(),
            "moved": [(step, local(each), local(other)) for step, each, other in self._moved],
            "canaries": None if self._canaries is None else self._canaries.state(),
        }

    def _check(self, content: Mapping[str, Any]) -> int:
        """Refuse what no audit of this model can have saved; return how many steps it had."""
        saved.check_fields("the state", content, ("record", "account", "moved", "canaries"))
        steps = saved.check_record(content["record"], self._record.names)
        if content["account"] is not None:
            saved.check_fields("the account", content["account"], ("told", "earlier", "last"))
            saved.whole("the told steps of the account", content["account"]["told"], 0)
            for name in ("earlier", "last"):
                if content["account"][name] is not None:
                    saved.whole(f"the {name} of the account", content["account"][name], 0)
        canaries = (0, 0) if self._canaries is None else (self._canaries.n, self._canaries.weights)
        saved.check_canaries(content["canaries"], *canaries, steps)
        for moved in saved.rows("moved", content["moved"], 0, saved.MOST_STEPS):
            step, before, after = saved.rows("each of moved", moved, 3)
            saved.whole("the step of moved", step, 1, steps + 1)
            saved.reals("the norms before a move", before, (len(self._record.names),))
            saved.reals("the norms after a move", after, (len(self._record.names),))
        return steps

    def _take(self, content: Mapping[str, Any]) -> None:
        """Go on from what was checked."""
        self._record.load(content["record"])
        if self._canaries is not None:
            self._canaries.load(content["canaries"])
        self._resumed = len(self._record.told)
        self._told_of = len(self._record.events)
        self._moved = [(step, each, other) for step, each, other in content["moved"]]
        if self._account is not None and content["account"] is not None:
            self._account.load(content["account"])


def _check_kind(optimizer: Any) -> None:
    """Refuse by name what cannot be audited."""
    kind = type(optimizer).__name__
    if not isinstance(optimizer, DPOptimizer):
        raise CannotAttach(
            f"optimizer is {kind}, not an optimizer of opacus.optimizers: give what "
            "PrivacyEngine.make_private has returned"
        )
    wrapped = optimizer.original_optimizer
    if not hasattr(wrapped, "_optimizer_step_pre_hooks"):  # as that of Accelerate, which is a shell
        raise CannotAttach(
            f"optimizer is made of {type(wrapped).__name__}, whose steps have no hooks: give "
            "PrivacyEngine.make_private the optimizer itself, before another library wraps it"
        )


def _weak(method: Any) -> Callable[..., None]:
    """A hook that does not keep its audit alive."""
    reference = weakref.WeakMethod(method)

    def hook(*args: Any) -> None:
        if (looked := reference()) is not None:
            looked(*args)

    return hook


def _remove(handles: Sequence[Any]) -> None:
    for handle in handles:
        handle.remove()


def _inner(model: Any) -> torch.nn.Module | None:
    """The model without what ``torch.compile`` and Opacus wrap it in."""
    model = getattr(model, "_orig_mod", model)
    model = getattr(model, "_module", model)
    return getattr(model, "_orig_mod", model)


def _names(optimizer: Any, inner: Any) -> list[str]:
    known = {}
    if inner is not None:
        known = {id(p): name for name, p in inner.named_parameters()}
    return [known.get(id(p), str(place)) for place, p in enumerate(optimizer.params)]


def _rows(grad_sample: Any) -> int:
    """The number of examples whose gradients a parameter holds, of one batch or of several."""
    if isinstance(grad_sample, list):
        return sum(len(each) for each in grad_sample)
    return len(grad_sample)


def _alone(tensors: Sequence[Any]) -> list[Any]:
    """The tensors without the graph that some may come from."""
    return [each.detach() if each.requires_grad else each for each in tensors]


def _copy(tensor: Any) -> Any:
    return None if tensor is None else tensor.clone()


def _as_tensor(leaf: Any) -> Any:
    return torch.from_numpy(np.asarray(leaf)) if isinstance(leaf, np.ndarray | np.generic) else leaf


def _as_array(leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    try:
        return leaf.detach().cpu().numpy()
    except (TypeError, RuntimeError):  # which no audit saves
        raise saved.damaged("a tensor", "one of numbers that NumPy has", leaf.dtype) from None

"""Opacus: an audit stands around the private optimizer and sees each step of it.

>>> audit = attach(optimizer, model, loader)  # doctest: +SKIP
>>> train(model, optimizer, loader)  # doctest: +SKIP
>>> audit.result().check()  # doctest: +SKIP

An optimizer of Opacus clips and sums (``clip_and_accumulate``), adds noise (``add_noise``),
tells the accountant (its step hook), and lets the optimizer that it wraps move the weights. The
audit looks between these calls. It changes none of their results, and :meth:`OpacusAudit.detach`
takes it off.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import torch

from oraudit.records import Record, Told
from oraudit.records.clipping import look_at
from oraudit.report import Result, judge

__all__ = ["OpacusAudit", "attach"]

#: Below this number of weights every step's clipping is looked at, above it every twentieth.
SMALL_MODEL = 200_000
LOOK_EVERY = 20


def attach(
    optimizer: Any,
    model: Any = None,
    loader: Any = None,
    *,
    claim: tuple[float, float] | None = None,
    allow: Sequence[str] = (),
) -> "OpacusAudit":
    """Audit the training of an optimizer that ``PrivacyEngine.make_private`` has returned.

    Parameters
    ----------
    optimizer
        The private optimizer.
    model, loader
        What ``make_private`` has returned beside it. Without the model, buffers and weights of no
        private optimizer are not looked at; without the loader, the rate is not.
    claim
        The (ε, δ) that the training is said to have.
    allow
        Names of findings that are post-processing and meant.
    """
    return OpacusAudit(optimizer, model, loader, claim=claim, allow=allow)


class OpacusAudit:
    """An audit that stands around a private optimizer of Opacus; made by :func:`attach`."""

    def __init__(
        self,
        optimizer: Any,
        model: Any,
        loader: Any,
        *,
        claim: tuple[float, float] | None,
        allow: Sequence[str],
    ) -> None:
        self._optimizer = optimizer
        self._allow = tuple(allow)
        examples = None if loader is None else len(loader.dataset)
        self._record = Record(examples=examples, claim=claim)
        self._record.names = _names(optimizer, model)
        self._accountant, self._rate = _accountant_of(optimizer.step_hook)
        self._pending: tuple[list[torch.Tensor], list[torch.Tensor], float] | None = None
        self._numbers = sum(p.numel() for p in optimizer.params)
        self._originals = {
            "clip_and_accumulate": optimizer.clip_and_accumulate,
            "add_noise": optimizer.add_noise,
            "step_hook": optimizer.step_hook,
        }
        self._stand_around()

    # ------------------------------------------------------------------------ the chain of a step

    def _stand_around(self) -> None:
        self._optimizer.clip_and_accumulate = self._clip_and_accumulate
        self._optimizer.add_noise = self._add_noise
        self._optimizer.attach_step_hook(self._step_hook)

    def detach(self) -> None:
        """Take the audit off: the optimizer is as it was."""
        self._optimizer.attach_step_hook(self._originals["step_hook"])
        del self._optimizer.clip_and_accumulate
        del self._optimizer.add_noise

    def _clip_and_accumulate(self) -> None:
        optimizer = self._optimizer
        gradients = optimizer.grad_samples
        self._record.batches.add(len(gradients[0]))
        if not self._looks():
            self._originals["clip_and_accumulate"]()
            return
        before = [_copy(p.summed_grad) for p in optimizer.params]
        self._originals["clip_and_accumulate"]()
        added = [
            p.summed_grad if old is None else p.summed_grad - old
            for p, old in zip(optimizer.params, before, strict=True)
        ]
        look = look_at(self._record.step, gradients, added, float(optimizer.max_grad_norm))
        self._record.looks.append(look)

    def _add_noise(self) -> None:
        optimizer = self._optimizer
        clipped = [p.summed_grad.detach().clone() for p in optimizer.params]
        clip = float(optimizer.max_grad_norm)
        self._originals["add_noise"]()
        noisy = [p.grad.detach().clone() for p in optimizer.params]
        self._pending = clipped, noisy, clip

    def _step_hook(self, optimizer: Any) -> None:
        if self._originals["step_hook"] is not None:
            self._originals["step_hook"](optimizer)
        if self._pending is None:
            self._record.see("replaced", "add_noise")
            return
        clipped, noisy, clip = self._pending
        self._pending = None
        sigma = float(optimizer.noise_multiplier)
        rate = self._rate
        if self._accountant is not None:
            sigma, rate, _ = self._accountant.history[-1]
        self._record.end_step(clipped, noisy, Told(clip, float(sigma), rate))

    def _looks(self) -> bool:
        return self._numbers < SMALL_MODEL or self._record.step % LOOK_EVERY == 1

    # ------------------------------------------------------------------------------------- result

    def result(self) -> Result:
        """The result so far; the training may go on."""
        unlooked = []
        if self._record.examples is None:
            unlooked.append("the rate (attach was not given the loader)")
        return judge(self._record.finished(), unlooked=unlooked, allow=self._allow)


def _accountant_of(hook: Any) -> tuple[Any, float | None]:
    """The accountant and the rate that a step hook of Opacus was made with."""
    if not inspect.isfunction(hook):
        return None, None
    made_with = inspect.getclosurevars(hook).nonlocals
    accountant = made_with.get("self")
    if not hasattr(accountant, "history"):
        return None, None
    return accountant, made_with.get("sample_rate")


def _names(optimizer: Any, model: Any) -> list[str]:
    known = {}
    if model is not None:
        known = {id(p): name.replace("_module.", "") for name, p in model.named_parameters()}
    return [known.get(id(p), str(place)) for place, p in enumerate(optimizer.params)]


def _copy(tensor: Any) -> Any:
    return None if tensor is None else tensor.clone()

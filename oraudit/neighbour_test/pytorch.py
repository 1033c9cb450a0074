"""The neighbour test of a training step in PyTorch, with an optimizer of Opacus or another one."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from oraudit.neighbour_test.compare import NeighbourResult, Outcome, Release, Variant, compare
from oraudit.neighbour_test.random_numbers import FixedRandomNumbers

__all__ = ["neighbours", "schedulers"]

#: The attributes that adaptive clipping counts, or that follow the count.
_COUNTED = ("max_grad_norm", "sample_size", "unclipped_num")

#: The attribute that sets the size of the noise in an optimizer of Opacus.
_NOISE = "noise_multiplier"


def neighbours(
    step: Callable[..., Any],
    model: torch.nn.Module,
    optimizer: Any,
    batch: Sequence[torch.Tensor],
    *,
    clip: float | None = None,
    scale: float | None = None,
    tries: int = 60,
    progress: bool = False,
) -> NeighbourResult:
    """Compare a training step on a batch with the same step without one example, noise off.

    Parameters
    ----------
    step
        ``step(*batch)`` does one whole step: gradients, clipping, the optimizer's step, and
        whatever else the training does in a step.
    model, optimizer
        The model that the step trains, and the private optimizer. Both are as before afterwards.
    batch
        Tensors with the examples along their first axis.
    clip
        The norm C that gradients are clipped at, by default what the private optimizer has now.
    scale
        The divisor of the sum of gradients: the expected size of a batch, or 1 for a sum. By
        default that of the private optimizer: Opacus rounds the expected size down, and
        batches must not be accumulated.
    tries
        The most examples to take out in turn.
    progress
        Whether a terminal shows a progress bar.

    Examples
    --------
    >>> def step(inputs, labels):  # doctest: +SKIP
    ...     optimizer.zero_grad()
    ...     criterion(model(inputs), labels).backward()
    ...     optimizer.step()
    >>> neighbours(step, model, optimizer, batch).check()  # doctest: +SKIP
    """
    if clip is None:
        clip = float(optimizer.max_grad_norm)
    if scale is None:
        scale = _scale_of(optimizer)
    trial = _TorchTrial(step, model, optimizer, tuple(batch))
    with trial.prepared():
        return compare(trial, len(batch[0]), clip=clip, scale=scale, tries=tries, progress=progress)


def _scale_of(optimizer: Any) -> float:
    """Return what an optimizer of Opacus divides the sum of gradients by."""
    reduction = getattr(optimizer, "loss_reduction", None)
    if reduction == "sum":
        return 1.0
    if reduction != "mean" or optimizer.expected_batch_size is None:
        raise ValueError(
            "scale is None; it must be given, as this optimizer does not say what it divides by"
        )
    return float(optimizer.expected_batch_size)


class _TorchTrial:
    """Does the step from the same state each time, and keeps the gradients that it releases."""

    def __init__(
        self,
        step: Callable[..., Any],
        model: torch.nn.Module,
        optimizer: Any,
        batch: tuple[torch.Tensor, ...],
    ) -> None:
        self._step = step
        self._model = model
        self._private = optimizer
        self._optimizer = getattr(optimizer, "original_optimizer", optimizer)
        self._batch = batch
        self._parameters = [p for group in self._optimizer.param_groups for p in group["params"]]
        names = {id(p): name.replace("_module.", "") for name, p in model.named_parameters()}
        self.names = [names.get(id(p), str(place)) for place, p in enumerate(self._parameters)]
        self._releases: list[Release] = []
        self._instead: Sequence[Release] | None = None

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Switch the noise off and hook the optimizer; afterwards everything is as it was."""
        self._state = _State(self._model, self._private)
        handle = self._optimizer.register_step_pre_hook(self._before_step)
        try:
            yield
        finally:
            handle.remove()
            self._state.restore()

    def run(self, variant: Variant) -> Outcome:
        self._state.restore()
        if hasattr(self._private, _NOISE):
            self._private.noise_multiplier = 0.0
        self._releases = []
        self._instead = variant.instead
        places = torch.as_tensor(variant.keep)
        examples = [
            _altered(tensor[places.to(tensor.device)], variant.factor) for tensor in self._batch
        ]
        torch.manual_seed(0)
        with FixedRandomNumbers(len(self._batch[0]), variant.keep.tolist()):
            self._step(*examples)
        return Outcome(self._releases, self._left())

    def explained(self, name: str) -> str:
        deviation = getattr(self._private, "unclipped_num_std", 0)
        if deviation and any(counted in name for counted in _COUNTED):
            return f"it follows a count with noise of its own, of deviation {deviation:g}"
        return ""

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        turn = len(self._releases)
        self._releases.append([_array(p.grad) for p in self._parameters])
        if self._instead is None or turn >= len(self._instead):
            return
        for p, values in zip(self._parameters, self._instead[turn], strict=True):
            p.grad = None if values is None else torch.as_tensor(values).to(p)

    def _left(self) -> dict[str, Any]:
        """Return all that a step leaves behind, by name."""
        left = {}
        for name, tensor in self._model.state_dict().items():
            left[f"the weight or buffer {name.replace('_module.', '')}"] = _array(tensor)
        state = self._optimizer.state_dict()
        for place, entries in state["state"].items():
            for name, value in entries.items():
                left[f"the optimizer's {name} of tensor {self.names[place]}"] = _array(value)
        for place, group in enumerate(state["param_groups"]):
            for name, value in group.items():
                if name != "params":
                    left[f"the optimizer's {name} (group {place})"] = value
        for schedule in self._state.schedulers:
            for name, value in schedule.state_dict().items():
                if isinstance(value, int | float):
                    left[f"the scheduler's {name}"] = value
        for name, value in _plain_attributes(self._private).items():
            left[f"the private optimizer's {name}"] = value
        return left


class _State:
    """The state that a step may change: model, both optimizers, and random number generators."""

    def __init__(self, model: torch.nn.Module, private: Any) -> None:
        self._model = model
        self._private = private
        self._optimizer = getattr(private, "original_optimizer", private)
        self._weights = copy.deepcopy(model.state_dict())
        self._training = {module: module.training for module in model.modules()}
        self._gradients = [(p, p.grad) for p in model.parameters()]
        self._inner = copy.deepcopy(self._optimizer.state_dict())
        self._attributes = _plain_attributes(private)
        self.schedulers = schedulers(private)
        self._schedules = [copy.deepcopy(schedule.state_dict()) for schedule in self.schedulers]
        self._global = torch.get_rng_state()
        generator = getattr(private, "generator", None)
        self._generator = None if generator is None else generator.get_state()

    def restore(self) -> None:
        self._model.load_state_dict(self._weights)
        for module, training in self._training.items():
            module.training = training
        for p, gradient in self._gradients:
            p.grad = gradient
            for left in ("grad_sample", "summed_grad"):
                if hasattr(p, left):
                    setattr(p, left, None)
        self._optimizer.load_state_dict(copy.deepcopy(self._inner))
        for name, value in self._attributes.items():
            setattr(self._private, name, copy.deepcopy(value))
        for schedule, state in zip(self.schedulers, self._schedules, strict=True):
            schedule.load_state_dict(copy.deepcopy(state))
        torch.set_rng_state(self._global)
        if self._generator is not None:
            self._private.generator.set_state(self._generator)


def schedulers(private: Any) -> list[Any]:
    """Return the schedulers of an optimizer or of the one inside it: no optimizer lists them."""
    optimizers = {id(private), id(getattr(private, "original_optimizer", private))}
    classes = (torch.optim.lr_scheduler.LRScheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
    return [
        candidate
        for candidate in gc.get_objects()
        if issubclass(type(candidate), classes)
        and id(getattr(candidate, "optimizer", None)) in optimizers
    ]


def _plain_attributes(private: Any) -> dict[str, Any]:
    """Return the private optimizer's own numbers, words and lists of them."""
    if not hasattr(private, "original_optimizer"):
        return {}
    plain = (int, float, bool, str, type(None), list, torch.Tensor)
    return {
        name: copy.deepcopy(value)
        for name, value in vars(private).items()
        if isinstance(value, plain) and name != "defaults"
    }


def _altered(examples: torch.Tensor, factor: float | None) -> torch.Tensor:
    """Return the examples, the first times a factor; labels and other whole numbers stay."""
    if factor is None or not examples.dtype.is_floating_point:
        return examples
    examples = examples.clone()
    examples[0] = examples[0] * factor
    return examples


def _array(value: Any) -> Any:
    """Return a tensor as an array of double precision, and anything else as it is."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().double().numpy().copy()
    return value

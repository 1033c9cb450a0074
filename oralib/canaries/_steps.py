"""What an audit does in each step of an optimizer by Opacus; nothing here needs PyTorch."""

from collections.abc import Callable
from inspect import getclosurevars
from math import sqrt
from typing import Any, NamedTuple

from oralib.canaries.loop import Canaries
from oralib.dpsgd.setting import differ
from oralib.ground.types import Array


class Weight(NamedTuple):
    """A tensor of weights that only canaries use, and how its numbers go in and come out."""

    tensor: Any
    like: Callable[[Array], Any]
    array: Callable[[Any], Array]


def divisor(optimizer: Any) -> float:
    """By what Opacus divides the noisy sum of a step."""
    if optimizer.loss_reduction != "mean":
        return 1.0
    return float(optimizer.expected_batch_size * optimizer.accumulated_iterations)


def observe(optimizer: Any, canaries: Canaries, weights: list[Weight]) -> None:
    """Show what the noisy gradients of one or two tensors say together, with the noise of one."""
    gradient = sum(weight.array(weight.tensor.grad) for weight in weights) / sqrt(len(weights))
    clip = float(optimizer.max_grad_norm)
    canaries.observe(canaries.step, gradient, clip=clip, batch=divisor(optimizer))


def show_gradients(optimizer: Any, canaries: Canaries, weights: list[Weight]) -> None:
    """Show the noisy gradient of each step to canaries that are examples."""
    before = optimizer.step_hook

    def hook(stepping: Any) -> None:
        if before is not None:  # the accountant of the privacy engine
            before(stepping)
        observe(stepping, canaries, weights)

    optimizer.attach_step_hook(hook)


class InTheSum:
    """Canaries whose gradients join the sums of clipped gradients, just before Opacus's noise.

    Their weight is among those of the optimizer only while noise is added and the sum is divided,
    so that neither clipping nor the optimizer's own step, state or schedules know about it.
    """

    def __init__(self, optimizer: Any, canaries: Canaries, weight: Weight) -> None:
        self.optimizer, self.canaries, self.weight = optimizer, canaries, weight
        self.pre_step, self.add_noise = optimizer.pre_step, optimizer.add_noise
        optimizer.pre_step, optimizer.add_noise = self._step, self._noise
        # What the accountant of the privacy engine is told; None if there is no accountant.
        told = getclosurevars(hook).nonlocals if callable(hook := optimizer.step_hook) else {}
        self.rate = told.get("sample_rate")

    def _step(self, closure: Callable[[], float] | None = None) -> Any:
        group, tensor = self.optimizer.param_groups[-1]["params"], self.weight.tensor
        try:
            done = self.pre_step(closure)
            if tensor.grad is not None:
                observe(self.optimizer, self.canaries, [self.weight])
        finally:
            if group and group[-1] is tensor:
                group.pop()
            tensor.grad = None
        return done

    def _noise(self) -> None:
        optimizer, canaries, tensor = self.optimizer, self.canaries, self.weight.tensor
        self._check_rate()
        added = canaries.gradient(canaries.step) * float(optimizer.max_grad_norm)
        tensor.summed_grad = self.weight.like(added)
        # Opacus counts the batches of a step by the gradients of each weight.
        tensor.grad_sample = getattr(optimizer.params[0], "grad_sample", None)
        optimizer.param_groups[-1]["params"].append(tensor)
        self.add_noise()

    def _check_rate(self) -> None:
        """Canaries are sampled at the rate of the plan, so the training must have it, too."""
        planned = self.canaries.dpsgd.sample_rate
        if self.rate is not None and self.canaries.step == 0:
            rate = self.rate * self.optimizer.accumulated_iterations
            if differ(rate, planned):
                told = f"its accountant is told {rate:g}: plan with --sample-rate {rate:g}"
                must = f"the training must sample at the rate of the plan, {planned:g}"
                raise ValueError(f"{must}, and {told}")

"""The parts of :mod:`oralib.canaries.opacus` that need PyTorch and Opacus."""

from collections.abc import Callable
from inspect import getclosurevars
from math import sqrt
from typing import Any, cast

from oralib._extra import needed
from oralib._types import Way
from oralib.canaries._data import CanaryData, batch_size, differ, divisor, gradients_in
from oralib.canaries.loop import Canaries

with needed("torch", "opacus"):
    import opacus
    import torch
    from opacus import optimizers
    from opacus.data_loader import DPDataLoader
    from torch import Tensor, nn
    from torch.utils.data import DataLoader

#: The software of a training, for its report.
SOFTWARE = f"Opacus {opacus.__version__}, PyTorch {torch.__version__}"

#: The optimizers that can be audited, by the way of the canaries into the training.
OPTIMIZERS: dict[Way, tuple[str, ...]] = {
    "sum": ("DPOptimizer", "DPOptimizerFastGradientClipping", "DPPerLayerOptimizer"),
    "examples": ("DPOptimizer",),
}


def checked_optimizer(optimizer: Any, way: Way) -> float:
    """The noise multiplier of an optimizer that can be audited in this way, and is not yet."""
    if type(optimizer) not in [getattr(optimizers, name) for name in OPTIMIZERS[way]]:
        names = f"{', '.join(OPTIMIZERS[way])}, for canaries with way={way!r}"
        got = type(optimizer).__name__
        raise TypeError(f"optimizer must be one that make_private returns, {names}, got {got}")
    audited = vars(optimizer).setdefault("_audited", set())
    if way in audited:
        raise ValueError(f"optimizer is audited already by canaries with way={way!r}")
    audited.add(way)
    return float(optimizer.noise_multiplier)


def show_gradients(optimizer: Any, canaries: Canaries, weights: list[Tensor]) -> None:
    """Show the noisy gradient of each step to canaries that are examples."""
    before = optimizer.step_hook

    def hook(stepping: Any) -> None:
        if before is not None:  # the accountant of the privacy engine
            before(stepping)
        _observe(stepping, canaries, weights)

    optimizer.attach_step_hook(hook)


def _observe(optimizer: Any, canaries: Canaries, weights: list[Tensor]) -> None:
    """Show what the noisy gradients of one or two tensors say together, with the noise of one."""
    each = [w.grad.detach().double().flatten() for w in weights if w.grad is not None]
    gradient = (sum(each) / sqrt(len(weights))).cpu().numpy()
    clip = float(optimizer.max_grad_norm)
    canaries.observe(canaries.step, gradient, clip=clip, batch=divisor(optimizer))


class InTheSum:
    """Canaries whose gradients join the sums of clipped gradients, just before Opacus's noise.

    Their weight is among those of the optimizer only while noise is added and the sum is divided,
    so that neither clipping nor the optimizer's own step, state or schedules know about it.
    """

    def __init__(self, optimizer: Any, canaries: Canaries) -> None:
        like = optimizer.params[0]
        zeros = torch.zeros(canaries.dpsgd.used_coordinates, dtype=like.dtype, device=like.device)
        self.optimizer, self.canaries, self.weight = optimizer, canaries, nn.Parameter(zeros)
        self.pre_step, self.add_noise = optimizer.pre_step, optimizer.add_noise
        optimizer.pre_step, optimizer.add_noise = self._step, self._noise
        # What the accountant of the privacy engine is told; None if there is no accountant.
        told = getclosurevars(hook).nonlocals if callable(hook := optimizer.step_hook) else {}
        self.rate = told.get("sample_rate")

    def _step(self, closure: Callable[[], float] | None = None) -> Any:
        group = self.optimizer.param_groups[-1]["params"]
        try:
            done = self.pre_step(closure)
            if self.weight.grad is not None:
                _observe(self.optimizer, self.canaries, [self.weight])
        finally:
            if group and group[-1] is self.weight:
                group.pop()
            self.weight.grad = None
        return done

    def _noise(self) -> None:
        optimizer, canaries, weight = self.optimizer, self.canaries, self.weight
        self._check_rate()
        added = torch.from_numpy(canaries.gradient(canaries.step)) * optimizer.max_grad_norm
        weight.summed_grad = added.to(weight)
        # Opacus counts the batches of a step by the gradients of each weight.
        weight.grad_sample = getattr(optimizer.params[0], "grad_sample", None)
        optimizer.param_groups[-1]["params"].append(weight)
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


def loader_of(data: CanaryData, sample_rate: float) -> Any:
    """Batches of the data at this rate."""
    size = batch_size(len(data), sample_rate)
    if size is None:  # Opacus would make the rate 1 over an integer
        return DPDataLoader(cast(Any, data), sample_rate=sample_rate)
    return DataLoader(cast(Any, data), batch_size=size)


class WithCanaries(nn.Module):
    """A model with weights for the canaries, as ``OpacusAudit`` says."""

    def __init__(self, model: nn.Module, canaries: Canaries) -> None:
        super().__init__()
        self.model, self.canaries = model, canaries
        # In two tensors, each with half of a canary's gradient: together they are clipped to one
        # threshold, but to more by a training that gives each tensor a threshold of its own.
        halves = [nn.Embedding(canaries.dpsgd.used_coordinates, 1) for _ in range(2)]
        self.coordinates = nn.ModuleList(halves)
        for half in halves:
            nn.init.zeros_(half.weight)
        self.push: float | None = None  # the size of a canary's gradient
        self.loss_is_mean = True  # whether the loss is a mean over the batch

    def forward(self, inputs: Any, who: Tensor | None = None) -> Tensor:
        if who is None:
            return self.model(inputs)
        if self.push is None:
            raise ValueError("attach(model, optimizer, loader) must come before the first step")
        outputs = self.model(inputs)
        if not isinstance(outputs, Tensor):
            raise TypeError(f"model must return a tensor, got {type(outputs).__name__}")
        number = torch.as_tensor(who, dtype=torch.long, device="cpu").numpy()
        where, size = gradients_in(self.canaries, number, self.push, self.loss_is_mean)
        place = torch.from_numpy(where).to(outputs.device)
        first, second = self.coordinates
        at = first(place) + second(place)
        is_canary = torch.from_numpy(number >= 0).to(outputs.device)
        return _Gradients.apply(outputs, at, is_canary, torch.from_numpy(size).to(at))


class _Gradients(torch.autograd.Function):
    """Identity forwards; backwards a canary adds only ``size``, and only to its own coordinate."""

    @staticmethod
    def forward(ctx: Any, outputs: Tensor, at: Tensor, is_canary: Tensor, size: Tensor) -> Tensor:
        ctx.save_for_backward(is_canary, size)
        return outputs.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        is_canary, size = ctx.saved_tensors
        own = gradient.masked_fill(is_canary.view(-1, *[1] * (gradient.dim() - 1)), 0.0)
        return own, size[:, None], None, None

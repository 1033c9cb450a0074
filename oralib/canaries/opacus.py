"""Canaries in a training with PyTorch and Opacus: ten more lines in your script.

The canaries get their own weights, which are added to your model and used by nothing else. Your
data come first, then the canaries as further examples, which Opacus's sampler draws like all
others. The gradient of an included canary is three clipping thresholds on its weight and 0
elsewhere, whatever the loss is, so that Opacus clips it to one. The gradient of any other canary is
0; it stays in the data, so that the number of examples does not depend on the coins.

>>> from oralib.canaries import Canaries, opacus  # doctest: +SKIP
>>> audit = Canaries.from_plan(plan, seed=1)  # doctest: +SKIP
>>> model = opacus.WithCanaries(model, audit)  # doctest: +SKIP
>>> data = opacus.CanaryData(data, audit)  # doctest: +SKIP
>>> loader = DataLoader(data, batch_size=opacus.batch_size(data, audit))  # doctest: +SKIP
>>> ...  # optimizer = ..., model, optimizer, loader = engine.make_private(...)  # doctest: +SKIP
>>> opacus.attach(model, optimizer, loader)  # doctest: +SKIP
>>> for inputs, labels, who in loader:  # doctest: +SKIP
...     optimizer.zero_grad()
...     loss(model(inputs, who), labels).backward()
...     optimizer.step()
>>> audit.write_scores("scores.csv")  # doctest: +SKIP

The training must have as many steps as the plan. Nothing inside Opacus is changed: sampling,
clipping and noise are all audited. Any optimizer will do, since the audit reads noisy gradients,
not weights. Ghost clipping and clipping by layers are not supported.
"""

from math import ceil
from typing import Any
from warnings import warn

from oralib import _check
from oralib._extra import needed
from oralib.canaries.loop import Canaries

with needed("torch", "opacus"):
    import torch
    from opacus.data_loader import DPDataLoader
    from opacus.optimizers import DPOptimizer
    from torch import Tensor, nn
    from torch.utils.data import Dataset

__all__ = ["CanaryData", "WithCanaries", "attach", "batch_size"]

#: The size of a canary's gradient before clipping, in clipping thresholds.
SIZE = 3.0


class WithCanaries(nn.Module):
    """Your model, with weights for the canaries.

    It takes two inputs: the input of your model, which must return a tensor with a row for each
    example, and for each example the number of its canary, -1 for your own examples. Without the
    second input, as for predictions, it is just your model.
    """

    def __init__(self, model: nn.Module, canaries: Canaries) -> None:
        super().__init__()
        _check.instance("canaries", canaries, Canaries, "Canaries.from_plan(plan, seed=1)")
        self.model, self.canaries = model, canaries
        self.coordinates = nn.Embedding(canaries.dpsgd.used_coordinates, 1)
        nn.init.zeros_(self.coordinates.weight)
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
        number = torch.as_tensor(who, dtype=torch.long, device="cpu")
        canaries = self.canaries
        where = torch.from_numpy(canaries.places(canaries.step))[number.clamp(min=0)]
        included = (number >= 0) & torch.from_numpy(canaries.included)[number.clamp(min=0)]
        size = (
            self.push
            * (included & (where >= 0))
            / (max(len(number), 1) if self.loss_is_mean else 1)
        )
        at = self.coordinates(where.clamp(min=0).to(outputs.device))
        is_canary = (number >= 0).to(outputs.device)
        return _Gradients.apply(outputs, at, is_canary, size.to(outputs.device, at.dtype))


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


class CanaryData(Dataset[Any]):
    """Your examples, and after them the canaries, each with one more entry: which canary it is.

    It is -1 for your own examples, which are tuples such as an input and a label. The other entries
    of a canary are copied from your first example and do not matter.

    Canaries join your batches, which dilutes the mean gradient: multiply the learning rate of plain
    SGD by ``len(CanaryData(...)) / len(data)``, or you train more slowly than without canaries.
    """

    def __init__(self, data: Any, canaries: Canaries) -> None:
        _check.instance("canaries", canaries, Canaries, "Canaries.from_plan(plan, seed=1)")
        self.data, self.n, self.filler = data, canaries.dpsgd.n, _entries(data[0])

    def __len__(self) -> int:
        return len(self.data) + self.n

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        if index >= len(self.data):
            return (*self.filler, index - len(self.data))
        return (*_entries(self.data[index]), -1)


def _entries(example: Any) -> tuple[Any, ...]:
    return tuple(example) if isinstance(example, tuple | list) else (example,)


def batch_size(data: CanaryData, canaries: Canaries) -> int:
    """The size of batches for which Opacus samples at the rate of the plan.

    Opacus samples at 1 over the number of batches, so the rate must be 1 over an integer. Batches
    are larger than without canaries, and so is the number that divides their sum of gradients.
    """
    return ceil(len(data) / round(1 / canaries.dpsgd.sample_rate))


def attach(model: Any, optimizer: Any, loader: Any) -> None:
    """Show each noisy gradient to the canaries.

    All three arguments are those that ``make_private`` returned.
    """
    ours = [module for module in model.modules() if isinstance(module, WithCanaries)]
    if len(ours) != 1:
        raise ValueError(f"model must contain one WithCanaries, got {len(ours)}")
    if type(optimizer) is not DPOptimizer:
        raise TypeError(
            "optimizer must be a DPOptimizer by make_private with grad_sample_mode='hooks' and "
            f"clipping='flat', got {type(optimizer).__name__}"
        )
    (module,) = ours
    canaries, weight = module.canaries, module.coordinates.weight
    stated = canaries.dpsgd.sample_rate
    rate = getattr(loader, "sample_rate", 1 / len(loader))
    if abs(rate / stated - 1) > 0.01:
        raise ValueError(
            f"loader must sample at the rate of the plan, {stated:g}, got {rate:g}: choose its "
            "batch_size by batch_size(data, canaries)"
        )
    if not isinstance(loader, DPDataLoader):
        raise ValueError(
            "loader must draw Poisson samples, as the claim assumes: use the one that make_private "
            f"returns, with poisson_sampling=True, got {type(loader).__name__}"
        )
    noise = float(optimizer.noise_multiplier)
    if abs(noise / canaries.dpsgd.sigma - 1) > 0.01:
        warn(
            f"optimizer adds noise with multiplier {noise:g}, but the plan is for "
            f"{canaries.dpsgd.sigma:g}: plan with --sigma {noise:g}, or sigma={noise:g}",
            stacklevel=2,
        )
    module.push = SIZE * float(optimizer.max_grad_norm)
    module.loss_is_mean = optimizer.loss_reduction == "mean"
    before = optimizer.step_hook

    def hook(stepping: Any) -> None:
        if before is not None:  # the accountant of the privacy engine
            before(stepping)
        batch = stepping.expected_batch_size * stepping.accumulated_iterations
        canaries.observe(
            canaries.step,
            weight.grad.detach().double().cpu().numpy()[:, 0],
            clip=float(stepping.max_grad_norm),
            batch=batch if module.loss_is_mean else 1.0,
        )

    optimizer.attach_step_hook(hook)

"""The parts of :mod:`oralib.canaries.opacus` that need PyTorch and Opacus."""

from typing import Any, cast

from oralib.canaries._data import CanaryData, batch_size, gradients_in
from oralib.canaries._steps import Weight
from oralib.canaries.loop import Canaries
from oralib.ground.extras import needed
from oralib.ground.types import Way

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


def weight_of(tensor: nn.Parameter) -> Weight:
    """How numbers go into this tensor, and come out of one like it."""
    return Weight(
        tensor,
        lambda array: torch.from_numpy(array).to(tensor),
        lambda gradient: gradient.detach().double().flatten().cpu().numpy(),
    )


def new_weight(optimizer: Any, size: int) -> Weight:
    """A weight of this size, like those of the optimizer."""
    like = optimizer.params[0]
    return weight_of(nn.Parameter(torch.zeros(size, dtype=like.dtype, device=like.device)))


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

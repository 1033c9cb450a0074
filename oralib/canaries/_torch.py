"""The parts of :mod:`oralib.canaries.opacus` that need PyTorch and Opacus."""

from typing import Any

from oralib._extra import needed
from oralib.canaries.loop import Canaries

with needed("torch", "opacus"):
    import torch
    from opacus.data_loader import DPDataLoader
    from opacus.optimizers import DPOptimizer
    from torch import Tensor, nn
    from torch.utils.data import DataLoader, Dataset

__all__ = ["CanaryData", "DPDataLoader", "DPOptimizer", "DataLoader", "WithCanaries"]


class WithCanaries(nn.Module):
    """A model with weights for the canaries, as ``OpacusAudit`` says."""

    def __init__(self, model: nn.Module, canaries: Canaries) -> None:
        super().__init__()
        self.model, self.canaries = model, canaries
        self.included = torch.tensor(canaries.included)
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
        included = (number >= 0) & self.included[number.clamp(min=0)]
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
    """Examples, and after them n canaries, as ``OpacusAudit`` says."""

    def __init__(self, data: Any, n: int) -> None:
        self.data, self.n, self.filler = data, n, _entries(data[0])

    def __len__(self) -> int:
        return len(self.data) + self.n

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        if index >= len(self.data):
            return (*self.filler, index - len(self.data))
        return (*_entries(self.data[index]), -1)


def _entries(example: Any) -> tuple[Any, ...]:
    return tuple(example) if isinstance(example, tuple | list) else (example,)

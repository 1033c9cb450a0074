"""The trainings of this folder with PyTorch and Opacus, which this module needs."""

import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from math import isqrt
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from opacus import PrivacyEngine
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from orabook.trainings.digits import CLIP, LEARNING_RATE, digits
from oralib.canaries import Canaries
from oralib.canaries.opacus import OpacusAudit
from oralib.planning import AuditPlan

#: The size of a canary's gradient before clipping, in clipping thresholds.
CANARY = 3.0

#: Inputs, labels or canaries' outputs, sizes of canaries (nan for digits), and numbers of examples.
Batch = tuple[Tensor, Tensor, Tensor, Tensor]


class Examples(Dataset[Any]):
    """The digits, and after them the canaries; those that are left out have size 0."""

    def __init__(
        self,
        pixels: NDArray[np.float64],
        labels: NDArray[np.int64],
        included: NDArray[np.bool_],
        columns: NDArray[np.int64],
        features: int,
    ) -> None:
        self.digits = torch.zeros(len(pixels), features)
        self.digits[:, : pixels.shape[1]] = torch.from_numpy(pixels)
        self.labels = torch.from_numpy(labels)
        self.classes = int(labels.max()) + 1
        self.sizes = torch.from_numpy(CANARY * CLIP * included.astype(np.float32))
        self.columns = torch.from_numpy(columns)
        self.drawn = torch.zeros(0, dtype=torch.long)  # the examples in the batch of this step

    def __len__(self) -> int:
        return len(self.labels) + len(self.sizes)

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(part[0] for part in self.__getitems__([index]))

    def __getitems__(self, indices: Sequence[int]) -> Batch:
        index = torch.as_tensor(indices, dtype=torch.long)
        canary = (index - len(self.labels)).clamp(min=0)
        is_digit = index < len(self.labels)
        column = self.columns[canary]
        inputs = nn.functional.one_hot(column // self.classes, self.digits.shape[1]).float()
        inputs[is_digit] = self.digits[index[is_digit]]
        wanted = column % self.classes
        wanted[is_digit] = self.labels[index[is_digit]]
        sizes = self.sizes[canary]
        sizes[is_digit] = torch.nan
        return inputs, wanted, sizes, index


def loss(outputs: Tensor, wanted: Tensor, sizes: Tensor) -> Tensor:
    """The usual loss for digits, and for canaries their size times the wanted output."""
    usual = nn.functional.cross_entropy(outputs, wanted, reduction="none")
    linear = sizes.nan_to_num(0.0) * outputs.gather(1, wanted[:, None])[:, 0]
    return torch.where(sizes.isnan(), usual, linear).mean()


@torch.random.fork_rng(devices=[])  # the caller's random numbers are left alone
def train(
    data: Examples, steps: int, batches: int, sigma: float, bug: str | None, seed: int
) -> tuple[NDArray[np.float64], float]:
    """The weights before the first step, zeros, and after each; what Opacus divides sums by."""
    model = nn.Linear(data.digits.shape[1], data.classes, bias=False)
    nn.init.zeros_(model.weight)
    noise = torch.Generator().manual_seed(2 * seed)
    shuffled = bug == "shuffled batches"
    with warnings.catch_warnings():
        # Warnings about random numbers that are not for production, and about PyTorch's hooks.
        warnings.simplefilter("ignore")
        order = torch.Generator().manual_seed(2 * seed + 1)
        how: Any = {"shuffle": shuffled, "collate_fn": lambda batch: batch, "generator": order}
        loader = DataLoader(data, batch_size=-(-len(data) // batches), **how)
        how = {"max_grad_norm": CLIP, "noise_generator": noise, "poisson_sampling": not shuffled}
        noise_multiplier = sigma * NOISE.get(bug, 1.0)
        private, optimizer, loader = make_private(
            model, loader, LEARNING_RATE, noise_multiplier, **how
        )
        if bug == "no clipping for a tenth":
            optimizer.attach_step_hook(
                lambda made: add_what_clipping_removed(made, data.drawn % 10 == 0)
            )
        weights = [model.weight.detach().clone()]
        for inputs, wanted, sizes, drawn in islice(epochs_of(loader), steps):
            data.drawn = drawn
            if bug == "noise reused":
                noise.manual_seed(2 * seed)
            optimizer.zero_grad()
            loss(private(inputs), wanted, sizes).backward()
            optimizer.step()
            weights.append(model.weight.detach().clone())
    table = torch.stack(weights).double().transpose(1, 2).flatten(1)
    return table.numpy(), float(optimizer.expected_batch_size)


#: What a planted bug does to the noise.
NOISE: dict[str | None, float] = {"half the noise": 0.5, "a quarter of the noise": 0.25}


def make_private(
    model: nn.Module, loader: Any, learning_rate: float, sigma: float, **options: Any
) -> tuple[Any, ...]:
    """Model, optimizer, with ghost clipping the loss, and loader as Opacus makes them."""
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    options |= {"module": model, "optimizer": optimizer, "data_loader": loader}
    made = PrivacyEngine(accountant="rdp").make_private(noise_multiplier=sigma, **options)
    return tuple(made)


@torch.random.fork_rng(devices=[])
def release_noise(
    examples: int, weights: int, batch_size: int, steps: int, seed: int, ghost: bool
) -> NDArray[np.float64]:
    """The weights after a training on examples that are all zero: nothing but noise, σ = 1."""
    # As many inputs as outputs, or nearly: a batch is then small compared with the weights.
    outputs = max(size for size in range(1, isqrt(weights) + 1) if weights % size == 0)
    model = nn.Linear(weights // outputs, outputs, bias=False)
    nn.init.zeros_(model.weight)
    inputs, labels = torch.zeros(1, weights // outputs), torch.zeros(1, dtype=torch.long)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        noise, order = (torch.Generator().manual_seed(2 * seed + i) for i in (0, 1))
        data = TensorDataset(inputs.expand(examples, -1), labels.expand(examples))
        given = DataLoader(data, batch_size=batch_size, generator=order)
        how: Any = {"max_grad_norm": 1.0, "noise_generator": noise}
        how["grad_sample_mode"] = "ghost" if ghost else "hooks"
        private, optimizer, *with_ghosts, loader = make_private(model, given, 1.0, 1.0, **how)
        (loss_of,) = with_ghosts or [nn.CrossEntropyLoss()]
        for some, wanted in islice(epochs_of(loader), steps):
            optimizer.zero_grad()
            loss_of(private(some), wanted).backward()
            optimizer.step()
    return model.weight.detach().double().numpy().ravel().copy()


@torch.random.fork_rng(devices=[])
def audited_network(plan: AuditPlan, noise: float, *, clipped: bool, seed: int) -> Canaries:
    """The canaries of a network that learned digits with a share of its noise, or unclipped."""
    torch.manual_seed(seed)
    pixels, labels = digits()
    data = TensorDataset(torch.from_numpy(pixels).float(), torch.from_numpy(labels))
    network = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    audit = OpacusAudit(plan, network, data, seed=seed, public_seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the canaries warn of the planted bug, as they should
        private, optimizer, loader = make_private(
            audit.model, audit.loader, 1.0, plan.design.dpsgd.sigma, max_grad_norm=CLIP
        )
        if not clipped:
            optimizer.attach_step_hook(add_what_clipping_removed)
        audit.attach(private, optimizer, loader)
        optimizer.noise_multiplier *= noise
        for inputs, wanted, who in islice(epochs_of(loader), plan.design.dpsgd.steps):
            optimizer.zero_grad()
            nn.functional.cross_entropy(private(inputs, who), wanted).backward()
            optimizer.step()
    return audit.canaries


def add_what_clipping_removed(optimizer: Any, whose: Tensor | bool = True) -> None:
    """A hook after which gradients, of all examples or some, are as without clipping."""
    samples = optimizer.grad_samples
    norm = torch.stack([sample.flatten(1).norm(dim=1) for sample in samples]).norm(dim=0)
    missing = (1 - (optimizer.max_grad_norm / norm.clamp(min=1e-12)).clamp(max=1)) * whose
    for parameter, sample in zip(optimizer.params, samples, strict=True):
        added = torch.einsum("b,b...->...", missing, sample)
        parameter.grad += added / optimizer.expected_batch_size


def epochs_of(loader: Any) -> Iterator[Any]:
    """The batches of one epoch after the other."""
    while True:
        yield from loader

"""The trainings of this folder with PyTorch and Opacus, which this module needs."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from math import isqrt
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import wrap_data_loader
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from torch import Tensor, nn
from torch.optim import SGD, Adam
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset

from orabook.trainings.digits import digits
from orabook.trainings.own_loop import NOISE, SAME_NOISE, STEPS
from oraudit import Result, attach

#: Honest trainings.
KINDS = ("SGD", "momentum", "Adam", "schedule", "small batches", "ghost", "by layers")


@torch.random.fork_rng(devices=[])  # the caller's random numbers are left alone
def train(bug: str, kind: str, sigma: float, canaries: int, seed: int) -> Result:
    """Train a network on digits, with a bug or ``"none"``, and return the result of the audit."""
    torch.manual_seed(seed)
    pixels, labels = digits()
    data = TensorDataset(torch.from_numpy(pixels).float(), torch.from_numpy(labels))
    network: nn.Module = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer: Any = SGD(network.parameters(), 0.1, 0.9 if kind == "momentum" else 0.0)
    if kind == "Adam":
        optimizer = Adam(network.parameters(), 0.01)
    noise = {"noise_generator": torch.Generator().manual_seed(seed)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # audits warn of the planted bug, as they should
        private, optimizer, loss, loader = make_private(
            network, DataLoader(data, batch_size=180), optimizer, sigma, kind, **noise
        )
        audit = attach(optimizer, private, loader, canaries=canaries, seed=seed)
        plant(bug, optimizer, loader)
        if kind == "small batches":
            loader = wrap_data_loader(data_loader=loader, max_batch_size=100, optimizer=optimizer)
        schedule = CosineAnnealingLR(optimizer, STEPS)
        steps = 0
        for inputs, targets in epochs_of(loader):
            optimizer.zero_grad()
            loss(private(inputs), targets).backward()
            # By this the loader of small batches says which of them end a step.
            steps += not optimizer._step_skip_queue or not optimizer._step_skip_queue[0]
            optimizer.step()
            if kind == "schedule":
                schedule.step()
            if steps == STEPS:
                break
        return audit.result()


def plant(bug: str, optimizer: Any, loader: Any) -> None:
    """Put a bug into the optimizer or the loader of Opacus."""
    if bug in NOISE:
        optimizer.add_noise = partial(add_a_share, optimizer, optimizer.add_noise, NOISE[bug])
    elif bug == SAME_NOISE:
        add_noise = optimizer.add_noise
        optimizer.add_noise = lambda: (optimizer.generator.manual_seed(1), add_noise())
    elif bug in CLIPPING:
        optimizer.clip_and_accumulate = lambda: wrongly_clipped(optimizer, CLIPPING[bug])
    elif bug in SAMPLERS:
        loader.batch_sampler.__class__ = SAMPLERS[bug]


def add_a_share(optimizer: Any, add_noise: Callable[[], None], share: float) -> None:
    """Add the noise, and take some of it back."""
    add_noise()
    for parameter in optimizer.params:
        clean = parameter.summed_grad.view_as(parameter.grad)
        parameter.grad = clean + share * (parameter.grad - clean)


def wrongly_clipped(optimizer: Any, factors: Callable[..., Tensor]) -> None:
    """Sum gradients with wrong factors, by the norm of each tensor and example."""
    samples = optimizer.grad_samples
    norms = torch.stack([sample.flatten(1).norm(dim=1) for sample in samples])
    total = torch.cat([sample.sum(dim=0).flatten() for sample in samples]).norm()
    for parameter, sample, norm in zip(optimizer.params, samples, norms, strict=True):
        factor = factors(norm, total, optimizer.max_grad_norm).expand(len(norm))
        parameter.summed_grad = torch.einsum("b,b...->...", factor, sample)


#: The factors of a tensor's gradients, by their norms and that of the whole batch's sum.
CLIPPING: dict[str, Callable[..., Tensor]] = {
    "no clipping": lambda norms, total, clip: torch.ones(1),
    "batch clipped as a whole": lambda norms, total, clip: clip / total.clamp(min=clip),
    "each layer clipped alone": lambda norms, total, clip: clip / norms.clamp(min=clip),
}


class HalfAlways(UniformWithReplacementSampler):
    """The second half of the examples, and so most canaries, are in every batch."""

    def __iter__(self) -> Iterator[list[int]]:
        for drawn in super().__iter__():
            yield sorted({*drawn, *range(self.num_samples // 2, self.num_samples)})


class Replacing(UniformWithReplacementSampler):
    """Batches of one size, drawn with replacement: an example may be in one of them twice."""

    def __iter__(self) -> Iterator[list[int]]:
        size = round(self.sample_rate * self.num_samples)
        for _ in range(self.steps):
            yield torch.randint(self.num_samples, (size,), generator=self.generator).tolist()


class Shuffled(UniformWithReplacementSampler):
    """Each example is used once per epoch."""

    def __iter__(self) -> Iterator[list[int]]:
        order = torch.randperm(self.num_samples, generator=self.generator)
        yield from (batch.tolist() for batch in order.tensor_split(self.steps))


SAMPLERS = {
    "half the data in each batch": HalfAlways,
    "drawn with replacement": Replacing,
    "shuffled": Shuffled,
}


def make_private(
    model: nn.Module, loader: Any, optimizer: Any, sigma: float, kind: str, **options: Any
) -> tuple[Any, ...]:
    """Model, optimizer, loss and loader as Opacus makes them."""
    options |= {"module": model, "optimizer": optimizer, "data_loader": loader}
    options |= {"noise_multiplier": sigma, "max_grad_norm": 1.0}
    options |= {"grad_sample_mode": "ghost" if kind == "ghost" else "hooks"}
    if kind == "by layers":
        tensors = len(list(model.parameters()))
        options |= {"clipping": "per_layer", "max_grad_norm": [tensors**-0.5] * tensors}
    private, made, *loss, batches = PrivacyEngine(accountant="rdp").make_private(**options)
    return private, made, *(loss or [nn.CrossEntropyLoss()]), batches


@torch.random.fork_rng(devices=[])
def release_noise(
    examples: int, weights: int, batch_size: int, steps: int, seed: int, ghost: bool
) -> NDArray[np.float64]:
    """The weights after a training on examples that are all zero: nothing but noise, σ = 1."""
    # With nearly as many inputs as outputs, a batch is small compared with the weights.
    outputs = max(size for size in range(1, isqrt(weights) + 1) if weights % size == 0)
    model = nn.Linear(weights // outputs, outputs, bias=False)
    nn.init.zeros_(model.weight)
    inputs = torch.zeros(1, weights // outputs)
    labels = torch.zeros(1, dtype=torch.long)
    with warnings.catch_warnings():
        # Warnings about random numbers that are not for production, and about PyTorch's hooks.
        warnings.simplefilter("ignore")
        noise = torch.Generator().manual_seed(2 * seed)
        order = torch.Generator().manual_seed(2 * seed + 1)
        data = TensorDataset(inputs.expand(examples, -1), labels.expand(examples))
        private, optimizer, loss, loader = make_private(
            model,
            DataLoader(data, batch_size=batch_size, generator=order),
            SGD(model.parameters(), 1.0),
            1.0,
            "ghost" if ghost else "SGD",
            noise_generator=noise,
        )
        for batch, targets in islice(epochs_of(loader), steps):
            optimizer.zero_grad()
            loss(private(batch), targets).backward()
            optimizer.step()
    return model.weight.detach().double().numpy().ravel().copy()


def epochs_of(loader: Any) -> Iterator[Any]:
    """The batches of one epoch after the other."""
    while True:
        yield from loader

"""The trainings of this folder with PyTorch and Opacus, which this module needs."""

import warnings
from collections.abc import Callable, Iterator
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
from oralib.canaries import Canaries
from oralib.canaries.opacus import OpacusAudit
from oralib.planning import AuditPlan


@torch.random.fork_rng(devices=[])  # the caller's random numbers are left alone
def train(plan: AuditPlan, bug: str, training: str, seed: int) -> Canaries:
    """The canaries of a network that learns digits, with a bug and by one kind of training."""
    torch.manual_seed(seed)
    pixels, labels = digits()
    data = TensorDataset(torch.from_numpy(pixels).float(), torch.from_numpy(labels))
    network: nn.Module = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    loader: Any = DataLoader(data, batch_size=180)
    seeds: dict[str, Any] = {"seed": seed, "public_seed": seed}
    examples = plan.design.way == "examples"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # canaries warn of the planted bug, as they should
        if examples:
            audit = OpacusAudit(plan, network, data, **seeds)
            network, loader = audit.model, audit.loader
        optimizer: Any = SGD(network.parameters(), 0.1, 0.9 if training == "momentum" else 0.0)
        if training == "Adam":
            optimizer = Adam(network.parameters(), 0.01)
        noise = {"noise_generator": torch.Generator().manual_seed(seed)}
        private, optimizer, loss, loader = make_private(
            network, loader, optimizer, plan.design.dpsgd.sigma, training == "ghost", **noise
        )
        if examples:
            audit.attach(private, optimizer, loader)
        else:
            audit = OpacusAudit(plan, optimizer=optimizer, **seeds)
        plant(bug, optimizer, loader)
        if training == "small batches":
            loader = wrap_data_loader(data_loader=loader, max_batch_size=100, optimizer=optimizer)
        schedule = CosineAnnealingLR(optimizer, plan.design.dpsgd.steps)
        for inputs, wanted, *who in epochs_of(loader):
            optimizer.zero_grad()
            loss(private(inputs, *who), wanted).backward()
            optimizer.step()
            if training == "schedule":
                schedule.step()
            if audit.canaries.step == plan.design.dpsgd.steps:
                break
    return audit.canaries


def plant(bug: str, optimizer: Any, loader: Any) -> None:
    """Put a bug into what Opacus has made."""
    if bug in NOISE:
        optimizer.noise_multiplier *= NOISE[bug]
    elif bug == "noise / √batch":
        optimizer.noise_multiplier /= optimizer.expected_batch_size**0.5
    elif bug == "same noise in each step":
        add_noise = optimizer.add_noise
        optimizer.add_noise = lambda: (optimizer.generator.manual_seed(1), add_noise())
    elif bug in CLIPPING:
        optimizer.clip_and_accumulate = lambda: wrongly_clipped(optimizer, CLIPPING[bug])
    elif bug in SAMPLERS:
        loader.batch_sampler.__class__ = SAMPLERS[bug]


NOISE = {f"{share} of the noise": share for share in (0.5, 0.8, 0.9)}


def wrongly_clipped(optimizer: Any, factors: Callable[..., Tensor]) -> None:
    """The sums of gradients with these factors, by the norm of each tensor and example."""
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

#: All bugs, those of noise first.
BUGS = [*NOISE, "noise / √batch", "same noise in each step", *CLIPPING, *SAMPLERS]


def make_private(
    model: nn.Module, loader: Any, optimizer: Any, sigma: float, ghost: bool, **options: Any
) -> tuple[Any, ...]:
    """Model, optimizer, loss and loader as Opacus makes them."""
    options |= {"module": model, "optimizer": optimizer, "data_loader": loader}
    options |= {"noise_multiplier": sigma, "max_grad_norm": 1.0}
    options |= {"grad_sample_mode": "ghost" if ghost else "hooks"}
    private, made, *loss, batches = PrivacyEngine(accountant="rdp").make_private(**options)
    return private, made, *(loss or [nn.CrossEntropyLoss()]), batches


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
        # Warnings about random numbers that are not for production, and about PyTorch's hooks.
        warnings.simplefilter("ignore")
        noise, order = (torch.Generator().manual_seed(2 * seed + i) for i in (0, 1))
        data = TensorDataset(inputs.expand(examples, -1), labels.expand(examples))
        given = DataLoader(data, batch_size=batch_size, generator=order)
        plain = SGD(model.parameters(), 1.0)
        private, optimizer, loss, loader = make_private(
            model, given, plain, 1.0, ghost, noise_generator=noise
        )
        for some, wanted in islice(epochs_of(loader), steps):
            optimizer.zero_grad()
            loss(private(some), wanted).backward()
            optimizer.step()
    return model.weight.detach().double().numpy().ravel().copy()


def epochs_of(loader: Any) -> Iterator[Any]:
    """The batches of one epoch after the other."""
    while True:
        yield from loader

"""How much longer a training with Opacus takes with canaries, by their way into it.

``python -m benchmarks.price`` trains networks of two sizes on images of noise, on a GPU if there is
one: plainly, with canaries as examples, and with canaries in the sum of gradients. The trainings
take turns, step by step, so that whatever else the machine does falls on all of them. A step is all
of it: loading a batch, gradients, clipping, noise, and what the canaries do.
"""

import argparse
import csv
import platform
import warnings
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import opacus
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import oralib
from oralib.canaries.opacus import OpacusAudit
from oralib.ground.types import Way
from oralib.planning import AuditPlan, Claim, Design, Forecast

SIGMA = 1.0


class Arm(NamedTuple):
    """Canaries in a training, and the weights that they are on; a training without has none."""

    way: Way | None
    canaries: int = 0
    coordinates: int = 0


class Size(NamedTuple):
    """What is measured: examples, the rate of batches, steps, networks by channels, and arms."""

    examples: int
    rate: float
    warm: int
    steps: int
    networks: tuple[tuple[int, ...], ...]
    arms: tuple[Arm, ...]


NETWORKS = (32, 64, 128, 168), (64, 256, 512, 704)
ARMS = (
    Arm(None),
    Arm("examples", 64_000, 64_000),
    Arm("sum", 64_000, 64_000),
    Arm("sum", 800_000, 100_000),
)
FEW = Arm(None), Arm("examples", 60, 60), Arm("sum", 60, 60), Arm("sum", 80, 20)
SIZES = {
    "cuda": Size(50_000, 0.01, 5, 95, NETWORKS, ARMS),
    "cpu": Size(50_000, 0.001, 3, 12, NETWORKS[:1], ARMS),
    "small": Size(200, 0.1, 3, 5, ((4, 4),), FEW),
}


def network(channels: tuple[int, ...]) -> nn.Module:
    """Convolutions with normalisation and pooling, for images of 3 x 32 x 32 and ten classes."""
    layers: list[nn.Module] = []
    for before, after in zip((3, *channels[:-1]), channels, strict=True):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(4, after), nn.ReLU()]
        layers += [nn.MaxPool2d(2)]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels[-1], 10)]
    return nn.Sequential(*layers)


def plan(arm: Arm, steps: int, rate: float) -> AuditPlan:
    """The plan of such canaries; where they share weights, most are dropped, as plans do."""
    way, n, d = arm
    training = oralib.DpSgd(n=n, d=d, steps=steps, sample_rate=rate, sigma=SIGMA)
    dropping = oralib.Dropping(n / d / 2, 0.9, 1.65, (3.0, 20.0)) if n > d else None
    design = Design(training, dropping, way or "sum")
    return AuditPlan(Claim(8.0, 1e-5, 0.05), design, min(50, d), Forecast(0.0))


def training(arm: Arm, channels: tuple[int, ...], size: Size, data: Any, device: str) -> Iterator:
    """Steps of a training, of which each ``next`` makes one."""
    torch.manual_seed(1)
    model, steps = network(channels), size.warm + size.steps
    loader: Any = DataLoader(data, batch_size=round(size.rate * size.examples))
    audit = None
    if arm.way == "examples":
        audit = OpacusAudit(plan(arm, steps, size.rate), model, data, seed=1)
        model, loader = audit.model, audit.loader
    model = model.to(device)
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.01)
    private, optimizer, loader = opacus.PrivacyEngine().make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=SIGMA,
        max_grad_norm=1.0,
    )
    if audit is not None:
        audit.attach(private, optimizer, loader)
    if arm.way == "sum":
        OpacusAudit(plan(arm, steps, size.rate), optimizer=optimizer, seed=1)
    while True:
        for inputs, labels, *who in loader:
            loss = nn.functional.cross_entropy(private(inputs.to(device), *who), labels.to(device))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)  # gradients of each example take much memory
            if device == "cuda":
                torch.cuda.synchronize()
            yield


def measured(size: Size, device: str) -> Iterator[dict[str, Any]]:
    """A row for each training: seconds per step, and how many times those of a plain one."""
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(size.examples, 3, 32, 32, generator=generator)
    data = TensorDataset(images, torch.randint(10, (size.examples,), generator=generator))
    for channels in size.networks:
        weights = sum(weight.numel() for weight in network(channels).parameters())
        trainings = [training(arm, channels, size, data, device) for arm in size.arms]
        seconds = np.empty((size.warm + size.steps, len(trainings)))
        for step in range(len(seconds)):
            for i, each in enumerate(trainings):
                start = perf_counter()
                next(each)
                seconds[step, i] = perf_counter() - start
        mean = seconds[size.warm :].mean(axis=0)
        ratio = seconds[size.warm :] / mean[0]
        # Steps of a plain training vary, too: the error of a ratio of means, step by step.
        error = (ratio - ratio[:, :1] * (mean / mean[0])).std(axis=0, ddof=1) / size.steps**0.5
        for i, arm in enumerate(size.arms):
            row = {"weights": weights, "examples": size.examples, "rate": size.rate}
            row |= {**arm._asdict(), "way": arm.way or "none", "seconds": mean[i]}
            yield row | {"ratio": mean[i] / mean[0], "ratio_se": error[i]}


def machine(device: str) -> str:
    """The name of the GPU, or how many threads compute."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    return f"CPU, {torch.get_num_threads()} threads"


def main(words: list[str] | None = None) -> None:
    """Print the table, and write it into price.csv."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.price", description=__doc__)
    parser.add_argument("--small", action="store_true", help="only to see that it runs")
    parser.add_argument(
        "--out", type=Path, default=Path("book/data"), help="a folder, for price.csv"
    )
    chosen = parser.parse_args(words)
    warnings.simplefilter("ignore", UserWarning)  # of PyTorch, about hooks of Opacus
    device = "cuda" if torch.cuda.is_available() else "cpu"
    versions = f"Opacus {opacus.__version__}, PyTorch {torch.__version__}"
    versions += f", Python {platform.python_version()}"
    print(f"{machine(device)}: {versions}")
    print(f"{'weights':>10}  {'way':8}  {'canaries':>8}  {'s a step':>9}  times as long")
    rows = []
    for row in measured(SIZES["small" if chosen.small else device], device):
        rows.append({"machine": machine(device), "software": versions, **row})
        print(
            f"{row['weights']:10,}  {row['way']:8}  {row['canaries']:8,}  {row['seconds']:9.4f}  "
            f"{row['ratio']:.3f} ± {row['ratio_se']:.3f}",
            flush=True,
        )
    chosen.out.mkdir(parents=True, exist_ok=True)
    with (chosen.out / "price.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})


if __name__ == "__main__":
    main()

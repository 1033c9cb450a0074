"""The price of an audit beside a training, in time: ``python benchmarks/witness_price.py``.

It needs PyTorch, NumPy and SciPy, and Opacus for half of its rows, and this repository on
``PYTHONPATH``. Networks of two sizes are trained on noise, on a GPU if there is one: with Opacus,
and by a loop of one's own. Of each training there are a plain one, the same again, one with an
audit, and some with an audit and canaries. They take turns, step by step, in an order that changes,
and draw the same batches, so that whatever else the machine does falls on all of them. A step is
all of it: loading a batch, gradients, clipping, noise, and what the audit does. The table is
printed as CSV, and written into ``book/data/witness-price.csv`` with ``--out book/data``, where
rows of other machines stay, and beside it as the table that the book shows.

Ratios are medians over steps, beside that of a plain training to another plain one, which tells how
far to trust them. An audit looks at clipping in some steps only, so beside it is the ratio of
means. On a GPU memory is measured, too: how much more is used at the most, in copies of the
gradient, and what is kept of each step.
"""

import argparse
import csv
import gc
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.utils.data import DataLoader, TensorDataset

from oraudit import Audit

try:
    import opacus

    from oraudit import attach
except ImportError:
    opacus = None

#: The noise multiplier and the clipping threshold of all trainings.
SIGMA = 1.0
CLIP = 1.0

#: The trainings without an audit: a plain one, and the same again.
PLAIN = (None, None)

#: The numbers of canaries of the audited trainings.
CANARIES = (0, 1000, 64_000)


class Network(NamedTuple):
    """A network, its training, and the largest ratios that we want."""

    make: Callable[[], nn.Module]
    #: The shape of an example, the number of examples, and the sampling rate.
    inputs: tuple[int, ...]
    examples: int
    rate: float
    #: The ratio of an audit without canaries, and of one with canaries.
    aim: float
    riding: float = 1.15


def convolutions(*channels: int) -> nn.Module:
    """Convolutions with normalisation and pooling, for images of 3 x 32 x 32 and ten classes."""
    layers: list[nn.Module] = []
    for before, after in zip((3, *channels[:-1]), channels, strict=True):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(4, after), nn.ReLU()]
        layers += [nn.MaxPool2d(2)]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels[-1], 10)]
    return nn.Sequential(*layers)


def digits(*channels: int) -> nn.Module:
    """Two convolutions and two dense layers, for images of 1 x 28 x 28 and ten classes."""
    first, second = channels
    return nn.Sequential(
        nn.Conv2d(1, first, 8, 2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(first, second, 4, 2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(16 * second, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


def dense(width: int) -> nn.Module:
    """A network with two hidden layers, for 784 numbers and ten classes."""
    return nn.Sequential(
        nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )


IMAGES = (3, 32, 32)
NETWORKS = {
    "cuda": (
        Network(lambda: convolutions(32, 64, 128, 168), IMAGES, 50_000, 0.01, 1.10),
        Network(lambda: convolutions(64, 256, 512, 704), IMAGES, 50_000, 0.01, 1.02, 1.03),
    ),
    "cpu": (
        Network(lambda: digits(16, 32), (1, 28, 28), 6000, 0.01, 1.10),
        Network(lambda: dense(32), (784,), 6000, 0.01, 1.10),
        Network(lambda: dense(1900), (784,), 3200, 0.01, 1.05, 1.06),
    ),
    "small": (Network(lambda: dense(4), (784,), 100, 0.1, 1.10),),
}


# --------------------------------------------------------------------------------------- trainings


def with_opacus(network: Network, data: Any, device: str, canaries: int | None) -> Iterator[None]:
    """Train with Opacus, a step for each ``next``; without an audit if ``canaries`` is None."""
    torch.manual_seed(1)
    plain = network.make().to(device)
    model, optimizer, loader = opacus.PrivacyEngine().make_private(
        module=plain,
        optimizer=torch.optim.SGD(plain.parameters(), lr=0.01),
        data_loader=DataLoader(
            data,
            batch_size=round(network.rate * network.examples),
            generator=torch.Generator().manual_seed(1),
        ),
        noise_multiplier=SIGMA,
        max_grad_norm=CLIP,
    )
    if canaries is not None:
        attach(optimizer, model, loader, canaries=canaries, seed=1)
    while True:
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            yield


def with_a_loop(network: Network, data: Any, device: str, canaries: int | None) -> Iterator[None]:
    """Train by a loop of one's own, a step for each ``next``, with gradients by ``vmap``.

    There is no audit if ``canaries`` is None.
    """
    torch.manual_seed(1)
    model = network.make().to(device)
    weights = {name: weight.detach() for name, weight in model.named_parameters()}
    inputs, labels = (tensor.to(device) for tensor in data.tensors)
    rng = np.random.default_rng(1)
    audit = None
    if canaries is not None:
        audit = Audit(examples=network.examples, canaries=canaries, seed=1)

    def loss(weights: Any, x: Any, y: Any) -> Any:
        output = functional_call(model, weights, (x[None],))
        return nn.functional.cross_entropy(output, y[None])

    gradients_of = vmap(grad(loss), in_dims=(None, 0, 0))
    while True:
        drawn = torch.from_numpy(np.flatnonzero(rng.random(network.examples) < network.rate))
        rows = drawn.to(device)
        batch = inputs[rows]
        gradients = gradients_of(weights, batch, labels[rows])
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients.values()]).norm(dim=0)
        factors = (CLIP / (norms + 1e-6)).clamp(max=1)
        clipped = {
            name: (factors @ g.flatten(1)).view_as(weights[name]) for name, g in gradients.items()
        }
        if audit is not None:
            clipped = audit.ride(clipped, clip=CLIP, rate=network.rate)
        noisy = {name: g + SIGMA * CLIP * torch.randn_like(g) for name, g in clipped.items()}
        if audit is not None:
            audit.step(
                per_example=gradients,
                clipped=clipped,
                noisy=noisy,
                clip=CLIP,
                sigma=SIGMA,
                rate=network.rate,
                inputs=batch,
                weights=weights,
            )
        step = 0.01 / (network.rate * network.examples)
        weights = {name: weight - step * noisy[name] for name, weight in weights.items()}
        yield


# -------------------------------------------------------------------------------------- measurement


def inputs_and_labels(network: Network) -> TensorDataset:
    """Random examples for a network."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(network.examples, *network.inputs, generator=generator)
    return TensorDataset(inputs, torch.randint(10, (network.examples,), generator=generator))


def measured(
    way: Callable[..., Iterator[None]],
    network: Network,
    device: str,
    arms: Sequence[int | None],
    warm: int,
    steps: int,
) -> np.ndarray:
    """Measure the seconds of each step of each training."""
    data = inputs_and_labels(network)
    # On one thread, the time of the processor: what else runs on it does not count.
    clock = perf_counter if device == "cuda" else process_time
    trainings = [way(network, data, device, arm) for arm in arms]
    seconds = np.empty((warm + steps, len(arms)))
    for step in range(len(seconds)):
        for turn in range(len(arms)):
            arm = (step + turn) % len(arms)
            start = clock()
            next(trainings[arm])
            if device == "cuda":
                torch.cuda.synchronize()
            seconds[step, arm] = clock() - start
    return seconds[warm:]


def memory(
    way: Callable[..., Iterator[None]], network: Network, arms: Sequence[int], steps: int = 60
) -> list[tuple[float, float]]:
    """Measure the GPU memory of audits: the peak, in gradients, and what stays, in kB a step."""
    data = inputs_and_labels(network)
    peaks = []
    growths = []
    # The first training is not measured: libraries take memory of their own then.
    for arm in (*PLAIN, *arms):
        before = torch.cuda.memory_allocated()
        training = way(network, data, "cuda", arm)
        for _ in range(32):
            next(training)
        begun = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        for _ in range(steps):
            next(training)
        peaks.append(torch.cuda.max_memory_allocated() - before)
        growths.append((torch.cuda.memory_allocated() - begun) / steps)
        del training
        gc.collect()
        torch.cuda.empty_cache()
    gradient = 4 * weights_of(network)
    return [
        ((peak - peaks[1]) / gradient, (growth - growths[1]) / 1000)
        for peak, growth in zip(peaks[2:], growths[2:], strict=True)
    ]


def weights_of(network: Network) -> int:
    """The number of weights of a network."""
    return sum(weight.numel() for weight in network.make().parameters())


def table(kind: str, device: str, warm: int, steps: int) -> Iterator[dict[str, Any]]:
    """A row for each training and number of canaries."""
    ways = {"opacus": with_opacus, "loop": with_a_loop}
    if opacus is None:
        del ways["opacus"]
    for way, training in ways.items():
        for network in NETWORKS[kind]:
            weights = weights_of(network)
            arms = [canaries for canaries in CANARIES if canaries <= weights]
            seconds = measured(training, network, device, (*PLAIN, *arms), warm, steps).T
            plain, plain_again = seconds[:2]
            memories: list[Any] = [(None, None)] * len(arms)
            if device == "cuda":
                memories = memory(training, network, arms)
            for canaries, audit, (peak, growth) in zip(arms, seconds[2:], memories, strict=True):
                yield {
                    "machine": machine(device),
                    "way": way,
                    "weights": weights,
                    "canaries": canaries,
                    "batch": round(network.rate * network.examples),
                    "steps": steps,
                    "plain ms": f"{1e3 * np.median(plain):.3g}",
                    **ratio("plain again", plain_again, plain),
                    **ratio("audit", audit, plain),
                    "audit, of means": f"{audit.mean() / plain.mean():.3f}",
                    "aim": f"{network.riding if canaries else network.aim:.2f}",
                    "gradients at most": "" if peak is None else f"{peak:.2f}",
                    "kB a step": "" if growth is None else f"{growth:.1f}",
                }


def ratio(name: str, seconds: np.ndarray, plain: np.ndarray) -> dict[str, str]:
    """The median of the ratios of steps, and its standard error."""
    ratios = seconds / plain
    median = float(np.median(ratios))
    # By the median distance from it, as if normal.
    error = 1.253 * 1.4826 * np.median(np.abs(ratios - median)) / len(ratios) ** 0.5
    return {name: f"{median:.3f}", f"{name} se": f"{error:.3f}"}


def machine(device: str) -> str:
    """The name of the GPU, or that there is none: then one thread computes."""
    if device == "cuda":
        return str(torch.cuda.get_device_name()).removeprefix("NVIDIA ")
    return "one CPU thread"


def write(rows: Iterator[dict[str, Any]], out: Path | None) -> None:
    """Print rows as they come, and write them beside those of other machines."""
    here = []
    for row in rows:
        writer = csv.DictWriter(sys.stdout, list(row), lineterminator="\n")
        if not here:
            writer.writeheader()
        writer.writerow(row)
        sys.stdout.flush()
        here.append(row)
    if out is None:
        return
    path = out / "witness-price.csv"
    elsewhere = []
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["machine"] != here[0]["machine"]:
                    elsewhere.append(row)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(here[0]), lineterminator="\n")
        writer.writeheader()
        rows = sorted(elsewhere + here, key=lambda row: row["machine"], reverse=True)
        writer.writerows(rows)
    path.with_suffix(".md").write_text(page(rows), encoding="utf-8")


def page(rows: Iterable[dict[str, Any]]) -> str:
    """The table as the book shows it."""
    lines = [
        "| | weights | canaries | a step | plain again | with the audit | we aimed at |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        way = "Opacus" if row["way"] == "opacus" else "a loop of one's own"
        plain = f"{row['plain again']} ± {row['plain again se']}"
        audit = f"{row['audit']} ± {row['audit se']}"
        canaries = f"{int(row['canaries']):,}" if int(row["canaries"]) else "none"
        lines.append(
            f"| {row['machine']}, {way} | {int(row['weights']):,} | {canaries} "
            f"| {row['plain ms']} ms | {plain} | {audit} | {row['aim']} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Print the table, and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="only to see that it runs")
    parser.add_argument("--cpu", action="store_true", help="not on the GPU, and on one thread")
    parser.add_argument("--steps", type=int, default=100, help="steps of each training")
    parser.add_argument("--out", type=Path, help="a folder, for witness-price.csv")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # of Opacus and PyTorch, about hooks and seeds
    device = "cuda" if torch.cuda.is_available() and not options.cpu else "cpu"
    if device == "cpu":
        torch.set_num_threads(1)
    kind = "small" if options.small else device
    warm = 2 if options.small else 10
    write(table(kind, device, warm=warm, steps=options.steps), options.out)


if __name__ == "__main__":
    main()

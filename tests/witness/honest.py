"""Honest trainings, in many variants: none of them may fail, and each seed has noise of its own."""

import tempfile
from pathlib import Path

import numpy as np
import torch

from . import loop_bugs, numpy_loop
from .case import HONEST, Case
from .opacus_loop import (
    ADAPTIVE,
    BATCH,
    EXAMPLES,
    HABITS,
    STEPS,
    Half,
    Training,
    Twice,
    clip_with,
    network,
    numbers,
)
from .opacus_loop import HONEST as KINDS


def _watched(name, train, **needs):
    return Case(name, "honest", "Opacus", HONEST, (), train, **needs)


def _training(*between, habit=Training.run, steps=None, plant=None, **private):
    """A function of the seed that trains and returns what the witness says."""

    def watched(seed):
        made = [each() if isinstance(each, type) else each for each in between]
        training = Training(*made, seed=seed, attach=False, **private)
        if plant is not None:
            plant(training)
        training.audit = training.attach()
        if steps is None:
            habit(training)
        else:
            training.run(steps)
        return training.result()

    return watched


# ------------------------------------------------------------------------------------------- models


class Recurrent(torch.nn.Module):
    """An LSTM of Opacus."""

    def __init__(self):
        super().__init__()
        from opacus.layers import DPLSTM

        self.cell = DPLSTM(4, 6, batch_first=True)
        self.head = torch.nn.Linear(6, 4)

    def forward(self, x):
        return self.head(self.cell(x.reshape(len(x), 4, 4))[0][:, -1])


class Words(torch.nn.Module):
    """An embedding."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(30, 6)
        self.head = torch.nn.Linear(6, 4)

    def forward(self, x):
        return self.head(self.words(x).mean(1))


class Pictures(torch.nn.Sequential):
    """Convolutions with a group norm."""

    def __init__(self):
        super().__init__(
            torch.nn.Unflatten(1, (1, 4, 4)),
            torch.nn.Conv2d(1, 4, 3, padding=1),
            torch.nn.GroupNorm(2, 4),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(64, 4),
        )


class Shared(torch.nn.Module):
    """One layer is used twice."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 16)
        self.head = torch.nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.layer(torch.relu(self.layer(x))))


class Normed(torch.nn.Sequential):
    def __init__(self):
        super().__init__(
            torch.nn.Linear(16, 12), torch.nn.LayerNorm(12), torch.nn.Tanh(), torch.nn.Linear(12, 4)
        )


class Keywords(torch.nn.Module):
    """Takes its inputs by name, in a dictionary, and returns a tuple."""

    def __init__(self):
        super().__init__()
        self.net = network()

    def forward(self, *, batch):
        return self.net(batch["inputs"]), None


class Frozen(torch.nn.Sequential):
    """The first layer is not trained."""

    def __init__(self):
        super().__init__(*network())
        self[0].requires_grad_(False)


def word_lists():
    generator = torch.Generator().manual_seed(7)
    inputs = torch.randint(30, (EXAMPLES, 8), generator=generator)
    return inputs, torch.randint(4, (EXAMPLES,), generator=generator)


def binary_columns():
    """Seven binary columns: many rows are equal."""
    generator = torch.Generator().manual_seed(7)
    inputs = torch.zeros(EXAMPLES, 16)
    inputs[:, :7] = torch.randint(2, (EXAMPLES, 7), generator=generator).float()
    return inputs, torch.randint(4, (EXAMPLES,), generator=generator)


# ------------------------------------------------------------------------------------------- habits


def compiled(training):
    whole = torch.compile(training.model, backend="eager")
    training.loss = lambda x, y: training.criterion(whole(x), y)
    training.run(10)


def by_keywords(training):
    training.loss = lambda x, y: training.criterion(training.model(batch={"inputs": x})[0], y)
    training.run()


def automatic(training):
    clip_with(lambda norms, c: c / (norms.norm(dim=1, keepdim=True) + 0.01))(training)


def saved(training):
    training.run(10)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt"
        torch.save(training.model, path)
        torch.load(path, weights_only=False)
    training.run(20)


def cosine(training):
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(training.optimizer, STEPS)
    for x, y in training.batches():
        training.act(x, y)
        schedule.step()


def checkpointed(seed):
    """Resumed in another process, with the audit's own state."""
    first = Training(seed=seed).run(20)
    kept = (
        first.net.state_dict(),
        first.engine.accountant.state_dict(),
        first.audit.state_dict(),
    )
    second = Training(seed=seed + 1_000_000)
    second.net.load_state_dict(kept[0])
    second.engine.accountant.load_state_dict(kept[1])
    second.audit = second.attach()
    second.audit.load_state_dict(kept[2])
    return second.run(20).result()


def _worst(train):
    def watched(seed):
        from oraudit.ways.opacus.watch import watch

        with watch() as audits:
            train(seed)
        results = [audit.result() for audit in audits]
        order = ("failed", "cannot tell", "passed")
        return min(results, key=lambda result: order.index(result.status))

    return watched


def resumed(seed):
    first = Training(attach=False, seed=seed).run(20)
    second = Training(attach=False, seed=seed + 1_000_000)
    second.net.load_state_dict(first.net.state_dict())
    second.engine.accountant.load_state_dict(first.engine.accountant.state_dict())
    second.run(20)


def engine_kept(seed):
    """A training in two parts, on one engine."""
    first = Training(attach=False, seed=seed).run(20)
    second = Training(attach=False, seed=seed + 1_000_000, engine=first.engine)
    second.net.load_state_dict(first.net.state_dict())
    second.run(20)


def two_models(seed):
    first = Training(attach=False, seed=seed)
    second = Training(attach=False, engine=first.engine, seed=seed + 1_000_000)
    for one, other in zip(first.batches(), second.batches(), strict=True):
        first.act(*one)
        second.act(*other)


def subclass(seed):
    Twice(network().parameters(), lr=0.1)  # another class's step is wrapped, too
    return Training(seed=seed, kind=Twice).run().result()


def other_accountant(name, **private):
    def watched(seed):
        from opacus import PrivacyEngine

        return Training(seed=seed, engine=PrivacyEngine(accountant=name), **private).run().result()

    return watched


def momentum(parameters, lr):
    return torch.optim.SGD(parameters, lr=lr, momentum=0.9, weight_decay=1e-3)


EPSILON = {"target_epsilon": 8.0, "target_delta": 1e-5, "epochs": 4, "max_grad_norm": 0.1}

OPACUS = [
    *(_watched(name, _training(**private)) for name, private in KINDS.items()),
    *(
        _watched(
            name,
            _training(
                *private.get("between", ()),
                habit=habit,
                **{k: v for k, v in private.items() if k != "between"},
            ),
        )
        for name, (habit, private) in HABITS.items()
    ),
    _watched("momentum and weight decay", _training(kind=momentum)),
    _watched("AdamW", _training(kind=torch.optim.AdamW, lr=0.01)),
    _watched("RMSprop", _training(kind=torch.optim.RMSprop, lr=0.01)),
    _watched("DPLSTM", _training(net=Recurrent)),
    _watched("embeddings", _training(net=Words, data=word_lists())),
    _watched(
        "embeddings, ghost", _training(net=Words, data=word_lists(), grad_sample_mode="ghost")
    ),
    _watched("convolutions and GroupNorm", _training(net=Pictures)),
    _watched("GroupNorm, ghost", _training(net=Pictures, grad_sample_mode="ghost")),
    _watched("LayerNorm", _training(net=Normed)),
    _watched("one layer used twice", _training(net=Shared)),
    _watched("a frozen layer", _training(net=Frozen)),
    _watched("inputs by name", _training(net=Keywords, habit=by_keywords)),
    _watched("seven binary columns", _training(data=binary_columns())),
    _watched("batches of three", _training(batch=3, lr=0.02)),
    _watched("empty batches, too", _training(batch=1, lr=0.01, steps=80)),
    _watched("300 steps", _training(steps=300, batch=20)),
    _watched("a large noise multiplier", _training(noise_multiplier=8.0)),
    _watched("a small noise multiplier", _training(noise_multiplier=0.3)),
    _watched("torch.compile", _training(habit=compiled)),
    _watched("torch.save(model)", _training(habit=saved)),
    _watched("a cosine schedule", _training(habit=cosine)),
    _watched("automatic clipping", _training(plant=automatic)),
    _watched("a step that calls the step it inherits", subclass),
    _watched("make_private_with_epsilon", other_accountant("rdp", **EPSILON)),
    _watched("RDP accountant", other_accountant("rdp")),
    _watched("GDP accountant", other_accountant("gdp")),
    _watched("resumed with the accountant", _worst(resumed)),
    _watched("resumed on one engine", _worst(engine_kept)),
    _watched("resumed with state_dict", checkpointed),
    _watched("two models on one engine", _worst(two_models)),
]


# ------------------------------------------------------------------------------- loops of one's own


def torch_loop(seed):
    """A loop with gradients by functional transforms of PyTorch."""
    from torch.func import functional_call, grad, vmap

    import oraudit

    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    net = network()
    inputs, labels = numbers()
    weights = {name: p.detach() for name, p in net.named_parameters()}

    def loss(weights, x, y):
        return torch.nn.functional.cross_entropy(functional_call(net, weights, (x[None],)), y[None])

    audit = oraudit.Audit(examples=EXAMPLES, accountant=[(1.0, 0.1, STEPS)])
    for _ in range(STEPS):
        chosen = (torch.rand(EXAMPLES, generator=generator) < 0.1).nonzero()[:, 0]
        rows = vmap(grad(loss), (None, 0, 0))(weights, inputs[chosen], labels[chosen])
        norms = torch.stack([each.flatten(1).norm(dim=1) for each in rows.values()]).norm(dim=0)
        factors = (0.1 / norms).clamp(max=1)
        clipped = {name: torch.einsum("i,i...", factors, each) for name, each in rows.items()}
        noisy = {
            name: each + 0.1 * torch.randn(each.shape, generator=generator)
            for name, each in clipped.items()
        }
        audit.step(
            per_example=rows,
            clipped=clipped,
            noisy=noisy,
            clip=0.1,
            sigma=1.0,
            rate=0.1,
            inputs=inputs[chosen],
            weights=weights,
        )
        weights = {name: w - 0.1 / BATCH * noisy[name] for name, w in weights.items()}
    return audit.result()


def jax_loop(seed):
    """A loop in JAX; the audit is called inside of ``jit``, by a callback.

    Random numbers are NumPy's: those of JAX take seconds to compile.
    """
    import jax
    import jax.numpy as jnp

    import oraudit

    rng = np.random.default_rng(seed)
    audit = oraudit.Audit(examples=EXAMPLES)
    inputs, labels = (each.numpy() for each in numbers())

    def loss(weights, x, y):
        scores = jnp.tanh(x @ weights["first"]) @ weights["last"]
        return jax.nn.logsumexp(scores) - scores[y]

    def note(**arrays):
        kept = arrays.pop("kept")
        arrays["per_example"] = {k: v[kept] for k, v in arrays["per_example"].items()}
        audit.step(clip=0.1, sigma=1.0, rate=0.1, batch=int(kept.sum()), **arrays)

    @jax.jit
    def step(weights, kept, noise):
        rows = jax.vmap(jax.grad(loss), (None, 0, 0))(weights, inputs, labels)
        norms = jnp.sqrt(sum((each**2).sum((1, 2)) for each in rows.values()))
        factors = jnp.minimum(1, 0.1 / norms) * kept
        clipped = {name: jnp.einsum("i,ijk", factors, each) for name, each in rows.items()}
        noisy = {name: each + noise[name] for name, each in clipped.items()}
        sums = {"per_example": rows, "clipped": clipped, "noisy": noisy}
        jax.debug.callback(note, ordered=True, **sums, weights=weights, kept=kept)
        return {name: w - 0.1 / BATCH * noisy[name] for name, w in weights.items()}

    shapes = {"first": (16, 6), "last": (6, 4)}
    weights = {name: np.float32(0.3) * _normal(rng, shape) for name, shape in shapes.items()}
    for _ in range(STEPS // 2):
        noise = {name: np.float32(0.1) * _normal(rng, shape) for name, shape in shapes.items()}
        weights = step(weights, rng.random(EXAMPLES) < 0.1, noise)
    jax.effects_barrier()
    return audit.result()


def _normal(rng, shape):
    return rng.standard_normal(shape, dtype=np.float32)


LOOPS = [
    *(
        Case(
            f"a loop: {loop_bugs._named(kind)}",
            "honest",
            "NumPy",
            HONEST,
            (),
            lambda seed, kind=kind: kind(seed).run(),
        )
        for kind in numpy_loop.HONEST
    ),
    Case("a loop in PyTorch", "honest", "PyTorch", HONEST, (), torch_loop, needs=("torch",)),
    Case("a loop in JAX", "honest", "JAX", HONEST, (), jax_loop, needs=("jax",)),
]


# ------------------------------------------------------------------------------- the neighbour test


def _near(name, *between, plant=None, habit=None, **private):
    def compared(seed):
        made = [each() for each in between]
        training = Training(*made, seed=seed, attach=False, habit=habit, **private)
        if plant is not None:
            plant(training)
        return training.neighbours()

    return Case(f"a step: {name}", "honest", "Opacus", HONEST, (), neighbours=compared)


def projected(training, step, x, y):
    training.step(x, y)
    with torch.no_grad():
        for p in training.net.parameters():
            p.mul_(min(1.0, 0.5 / float(p.norm() + 1e-9)))


def averaged(training, step, x, y):
    if step == 0:
        training.mean = {k: v.clone() for k, v in training.model.state_dict().items()}
    training.step(x, y)
    with torch.no_grad():
        for name, p in training.model.state_dict().items():
            p.copy_(0.9 * p + 0.1 * training.mean[name])


STEPS_ALONE = [
    _near("SGD"),
    _near("Adam", kind=torch.optim.Adam, lr=0.01),
    _near("ghost", grad_sample_mode="ghost"),
    _near("sum of losses", loss_reduction="sum", lr=0.002),
    _near("dropout", Half),
    _near("projection", habit=projected),
    _near("average written back", habit=averaged),
    _near("automatic clipping", plant=automatic),
    _near("adaptive clipping", **ADAPTIVE),
    *loop_bugs.HONEST_PURE,
]

CASES = [*OPACUS, *LOOPS, *STEPS_ALONE]

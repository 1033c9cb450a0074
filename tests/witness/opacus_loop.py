"""Small trainings with Opacus, honest ones and broken ones, which an audit watches.

A bug is a function of the training before it begins (it replaces a method), or of each step. The
same training is given to the neighbour test. Everything is a function of the seed.
"""

import torch

EXAMPLES = 400
BATCH = 40
STEPS = 40


class Training:
    """A small training with Opacus, for the witness and for the neighbour test.

    ``private`` is passed on to ``make_private``. ``habit`` is what the training does in each step:
    a function of the training, the step's number, and the batch.
    """

    def __init__(
        self,
        *between,
        seed=1,
        kind=torch.optim.SGD,
        net=None,
        engine=None,
        attach=True,
        habit=None,
        lr=0.1,
        batch=BATCH,
        data=None,
        **private,
    ):
        from opacus import PrivacyEngine
        from torch.utils.data import DataLoader, TensorDataset

        torch.manual_seed(seed)
        self.x, self.y = numbers() if data is None else data
        if not isinstance(net, torch.nn.Module):
            net = network(*between) if net is None else net()
        plain = private.pop("optimizer", None) or kind(net.parameters(), lr=lr)
        loader = DataLoader(TensorDataset(self.x, self.y), batch_size=batch)
        self.engine = engine or PrivacyEngine()
        self.criterion = torch.nn.CrossEntropyLoss()
        self.habit = habit
        self.number = 0
        settings = {"noise_multiplier": 1.0, "max_grad_norm": 0.1, **private}
        made = self.engine.make_private
        if "target_epsilon" in private:
            made = self.engine.make_private_with_epsilon
            del settings["noise_multiplier"]
        parts = made(module=net, optimizer=plain, data_loader=loader, **settings)
        self.net = net
        self.model, self.optimizer, self.loader = parts[0], parts[1], parts[-1]
        if len(parts) == 4:
            self.criterion = parts[2]
        elif private.get("loss_reduction") == "sum":
            self.criterion = torch.nn.CrossEntropyLoss(reduction="sum")
        self.audit = self.attach() if attach else None

    def attach(self, **options):
        from oraudit.ways.opacus.attach import attach

        return attach(self.optimizer, self.model, self.loader, **options)

    def batches(self, steps=STEPS, loader=None):
        done = 0
        while done < steps:
            for batch in self.loader if loader is None else loader:
                yield batch
                done += 1
                if done == steps:
                    return

    def loss(self, x, y):
        return self.criterion(self.model(x), y)

    def backward(self, x, y):
        """Compute the examples' gradients, as the first part of a step."""
        self.optimizer.zero_grad()
        self.loss(x, y).backward()

    def step(self, x, y):
        self.backward(x, y)
        self.optimizer.step()

    def act(self, x, y):
        """Do a step as this training does it."""
        if self.habit is None:
            self.step(x, y)
        else:
            self.habit(self, self.number, x, y)
        self.number += 1

    def run(self, steps=STEPS):
        for x, y in self.batches(steps):
            self.act(x, y)
        return self

    def result(self):
        return self.audit.result()

    def neighbours(self, **options):
        """The neighbour test of a step, after two steps that give the optimizer a state."""
        from oraudit import neighbours

        for k in (1, 2):
            part = slice(k * BATCH, (k + 1) * BATCH)
            self.act(self.x[part], self.y[part])
        batch = (self.x[:BATCH], self.y[:BATCH])
        scale = 1 if self.optimizer.loss_reduction == "sum" else BATCH
        options = {"scale": scale, "tries": BATCH // 2, **options}
        return neighbours(self.act, self.model, self.optimizer, batch, **options)


def numbers():
    """The data: inputs and labels, the same for every seed."""
    generator = torch.Generator().manual_seed(7)
    inputs = torch.randn(EXAMPLES, 16, generator=generator)
    return inputs, torch.randint(4, (EXAMPLES,), generator=generator)


def network(*between):
    return torch.nn.Sequential(
        torch.nn.Linear(16, 12), *between, torch.nn.ReLU(), torch.nn.Linear(12, 4)
    )


# --------------------------------------------------------------------------------- honest variants


def rank_one():
    return torch.nn.Sequential(torch.nn.Linear(16, 4))


ADAPTIVE = {
    "clipping": "adaptive",
    "target_unclipped_quantile": 0.5,
    "clipbound_learning_rate": 0.2,
    "max_clipbound": 10.0,
    "min_clipbound": 0.01,
    "unclipped_num_std": 2.0,
}

HONEST = {
    "sgd": {},
    "adam": {"kind": torch.optim.Adam},
    "sum": {"loss_reduction": "sum", "lr": 0.002},
    "functorch": {"grad_sample_mode": "functorch"},
    "expanded weights": {"grad_sample_mode": "ew"},
    "per layer": {"clipping": "per_layer", "max_grad_norm": [0.05, 0.1, 0.05, 0.1]},
    "adaptive": ADAPTIVE,
    "ghost": {"grad_sample_mode": "ghost"},
}


class Twice(torch.optim.SGD):
    """An optimizer whose step calls the step that it inherits."""

    def step(self, closure=None):
        return super().step(closure)


class Half(torch.nn.Module):
    """Draws random numbers in each forward pass."""

    def forward(self, x):
        return torch.nn.functional.dropout(x, 0.5, self.training)


def in_parts(training):
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    manager = BatchMemoryManager(
        data_loader=training.loader, max_physical_batch_size=16, optimizer=training.optimizer
    )
    with manager as loader:
        for _ in range(4):
            for batch in loader:
                training.step(*batch)
                training.optimizer.zero_grad()


def with_schedules(training):
    from opacus.schedulers import StepGradClip, StepNoise

    schedules = [
        torch.optim.lr_scheduler.StepLR(training.optimizer, 10),
        StepNoise(training.optimizer, step_size=10, gamma=1.1),
        StepGradClip(training.optimizer, step_size=15, gamma=0.9),
    ]
    for batch in training.batches():
        training.step(*batch)
        for schedule in schedules:
            schedule.step()


def with_closure(training):
    for x, y in training.batches():

        def closure(x=x, y=y):
            training.optimizer.zero_grad()
            loss = training.loss(x, y)
            loss.backward()
            return loss

        training.optimizer.step(closure)


def by_hand(training):
    """Somebody tells the accountant after each step, instead of the step hook."""
    training.optimizer.attach_step_hook(None)
    for batch in training.batches():
        training.step(*batch)
        training.engine.accountant.step(noise_multiplier=1.0, sample_rate=0.1)


def with_evaluation(training):
    for batch in training.batches():
        training.step(*batch)
        training.model.eval()
        with torch.no_grad():
            training.model(training.x)
        training.model.train()


def mapped(training):
    """Gradients by functional transforms of the user's own."""
    from torch.func import functional_call, grad, vmap

    names = [name for name, _ in training.model.named_parameters()]
    for x, y in training.batches():
        values = {name: p.detach() for name, p in training.model.named_parameters()}

        def loss(values, x, y):
            out = functional_call(training.model, values, (x[None],))
            return torch.nn.functional.cross_entropy(out, y[None])

        found = vmap(grad(loss), in_dims=(None, 0, 0))(values, x, y)
        for name, p in zip(names, training.model.parameters(), strict=True):
            p.grad_sample = found[name]
        training.optimizer.step()
        training.optimizer.zero_grad()


HABITS = {
    "parts": (in_parts, {}),
    "schedules": (with_schedules, {}),
    "closure": (with_closure, {}),
    "dropout": (Training.run, {"between": [Half()]}),
    "by hand": (by_hand, {}),
    "evaluation": (with_evaluation, {}),
    "functional": (mapped, {"grad_sample_mode": "no_op"}),
    "ghost in parts": (in_parts, {"grad_sample_mode": "ghost"}),
    "ghost dropout": (Training.run, {"between": [Half()], "grad_sample_mode": "ghost"}),
    "adaptive in parts": (in_parts, ADAPTIVE),
    "rank one": (Training.run, {"net": rank_one}),
}


# ------------------------------------------------------------------------------- broken trainings


def noise_with(deviation):
    """Noise of a deviation that depends on the training, the place of the tensor and the step."""

    def plant(training):
        optimizer = training.optimizer
        steps = iter(range(10**6))

        def add_noise():
            step = next(steps)
            for place, p in enumerate(optimizer.params):
                share = deviation(place, step)
                noise = torch.randn_like(p.summed_grad) * share * optimizer.max_grad_norm
                p.grad = (p.summed_grad + noise).view_as(p)
                p.summed_grad._processed = True

        optimizer.add_noise = add_noise

    return plant


def clip_with(factors):
    """Clipping with other factors: examples by tensors, from the tensors' norms and C."""

    def plant(training):
        optimizer = training.optimizer

        def clip_and_accumulate():
            rows = optimizer.grad_samples
            norms = torch.stack([each.flatten(1).norm(dim=1) for each in rows], 1)
            found = factors(norms, optimizer.max_grad_norm).expand_as(norms)
            for place, p in enumerate(optimizer.params):
                total = torch.einsum("i,i...", found[:, place], rows[place])
                p.summed_grad = total if p.summed_grad is None else p.summed_grad + total
                for each in p.grad_sample if isinstance(p.grad_sample, list) else [p.grad_sample]:
                    each._processed = True

        optimizer.clip_and_accumulate = clip_and_accumulate

    return plant


def factor(norms, clip):
    return (clip / norms.norm(dim=1, keepdim=True)).clamp(max=1)


def told_every_second_step(training):
    hook = training.optimizer.step_hook
    steps = iter(range(10**6))
    training.optimizer.attach_step_hook(
        lambda optimizer: hook(optimizer) if next(steps) % 2 else None
    )


def told_more_noise(training):
    accountant = training.engine.accountant
    training.optimizer.attach_step_hook(
        lambda optimizer: accountant.step(noise_multiplier=2.0, sample_rate=0.1)
    )


def divided_by_own_batch(training):
    optimizer = training.optimizer

    def scale_grad():
        for p in optimizer.params:
            p.grad /= len(p.grad_sample)

    optimizer.scale_grad = scale_grad


def ghost_at_another_clip(training):
    training.model.max_grad_norm = 0.3


class Centred(torch.nn.Module):
    """Takes the batch's mean off."""

    def forward(self, x):
        return x - x.mean(0, keepdim=True)


class Running(torch.nn.Module):
    """Keeps the mean of its inputs, as BatchNorm does."""

    def __init__(self, name):
        super().__init__()
        self.name = name
        self.register_buffer(name, torch.zeros(12))

    def forward(self, x):
        if self.training:
            setattr(self, self.name, 0.9 * getattr(self, self.name) + 0.1 * x.detach().mean(0))
        return x


class Body(torch.nn.Module):
    """A model that may get a head later."""

    def __init__(self):
        super().__init__()
        self.body = network()

    def forward(self, x):
        return self.body(x)


# What somebody does in the loop, step by step.


def plain_steps(training, step, x, y):
    training.step(x, y)
    if step % 10 == 9:
        training.optimizer.original_optimizer.step()


def another_optimizer(training, step, x, y):
    other = vars(training).setdefault("other", torch.optim.SGD(training.model.parameters(), 0.01))
    training.step(x, y)
    if step % 10 == 9:
        other.step()


def late_head(training, step, x, y):
    if step == 12:
        training.head = training.net.head = torch.nn.Linear(16, 4)
        training.late = torch.optim.SGD(training.head.parameters(), 0.1)
    training.step(x, y)
    if step > 12:
        training.criterion(training.head(x), y).backward()
        training.late.step()


def late_head_by_hand(training, step, x, y):
    if step == 2:
        training.net.head = torch.nn.Linear(4, 4)
    training.step(x, y)
    if step > 12:
        training.net.head.weight.data.add_(0.1)


def seed_in_each_step(training, step, x, y):
    torch.manual_seed(1000 + step)
    training.step(x, y)


def noise_again(training, step, x, y):
    if step == 10:
        training.state = torch.get_rng_state()
    if step == 30:
        torch.set_rng_state(training.state)
    training.step(x, y)


def accountant_emptied(training, step, x, y):
    if step == 20:
        training.engine.accountant.history.clear()
    training.step(x, y)


def norms_of(training):
    return torch.stack([g.flatten(1).norm(dim=1) for g in training.optimizer.grad_samples]).norm(
        dim=0
    )


def median_clip(training, step, x, y):
    training.backward(x, y)
    training.optimizer.max_grad_norm = float(norms_of(training).median())
    training.optimizer.step()


def mean_clip_of_the_batch_before(training, step, x, y):
    training.optimizer.max_grad_norm = getattr(training, "mean", 0.1)
    training.backward(x, y)
    training.mean = float(norms_of(training).mean())
    training.optimizer.step()


def rate_over_raw_norm(training, step, x, y):
    training.backward(x, y)
    raw = torch.stack([p.grad.norm() for p in training.model.parameters()]).norm()
    training.optimizer.param_groups[0]["lr"] = 0.1 / float(raw)
    training.optimizer.step()


def noise_taken_off(training, step, x, y):
    optimizer = training.optimizer
    if step == 0:

        def scale_grad():
            for p in optimizer.params:
                p.grad = (p.summed_grad / BATCH).view_as(p)

        optimizer.scale_grad = scale_grad
    training.step(x, y)


def each_example_twice(training, step, x, y):
    training.step(torch.cat([x, x]), torch.cat([y, y]))


def averaged_weights(training, step, x, y):
    training.step(x, y)
    if step % 10 == 9:
        with torch.no_grad():
            for p in training.model.parameters():
                p.mul_(0.999)


def clipped_after_the_noise(training, step, x, y):
    if step == 0:
        training.optimizer.original_optimizer.register_step_pre_hook(
            lambda optimizer, *_: torch.nn.utils.clip_grad_value_(training.net.parameters(), 1e-3)
        )
        training.audit.detach()
        training.audit = training.attach()
    training.step(x, y)


def losses_looked_at(training, step, x, y):
    training.optimizer.zero_grad()
    loss = training.loss(x, y)
    loss.backward()
    if loss < 1.4 or step < 2:
        training.optimizer.step()


MAYBE_HARMLESS = {
    "averaged weights": (averaged_weights, "weights-outside"),
    "clipped after the noise": (clipped_after_the_noise, "gradients-after-noise"),
    "losses looked at": (losses_looked_at, "thrown-away"),
}

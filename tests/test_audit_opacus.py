"""Audits of trainings with Opacus: honest ones pass, broken ones fail with the cause in front."""

import gc
import pickle
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

pytest_plugins = "pytester"
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

EXAMPLES = 400
BATCH = 40
STEPS = 40


class Training:
    """A small training with Opacus and the audit that stands around it.

    ``private`` is passed on to ``make_private``. The loop is cut into ``step`` so that a test can
    do more, or something else, in each step.
    """

    def __init__(
        self, *between, seed=1, adam=False, net=None, engine=None, attach=True, lr=0.1, **private
    ):
        from opacus import PrivacyEngine
        from torch.utils.data import DataLoader, TensorDataset

        torch.manual_seed(seed)
        data = torch.Generator().manual_seed(7)
        self.x = torch.randn(EXAMPLES, 16, generator=data)
        self.y = torch.randint(4, (EXAMPLES,), generator=data)
        net = network(*between) if net is None else net
        kind = torch.optim.Adam if adam else torch.optim.SGD
        plain = private.pop("optimizer", None) or kind(net.parameters(), lr=lr)
        loader = DataLoader(TensorDataset(self.x, self.y), batch_size=BATCH)
        self.engine = engine or PrivacyEngine()
        self.criterion = torch.nn.CrossEntropyLoss()
        settings = {"noise_multiplier": 1.0, "max_grad_norm": 0.1, **private}
        parts = self.engine.make_private(
            module=net, optimizer=plain, data_loader=loader, **settings
        )
        self.net = net
        self.model, self.optimizer, self.loader = parts[0], parts[1], parts[-1]
        if len(parts) == 4:
            self.criterion = parts[2]
        self.audit = self.attach() if attach else None

    def attach(self, **options):
        from oraudit.ways.opacus import attach

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

    def step(self, x, y):
        self.optimizer.zero_grad()
        self.loss(x, y).backward()
        self.optimizer.step()

    def run(self, steps=STEPS):
        for x, y in self.batches(steps):
            self.step(x, y)
        return self

    def result(self):
        return self.audit.result()


def network(*between):
    return torch.nn.Sequential(
        torch.nn.Linear(16, 12), *between, torch.nn.ReLU(), torch.nn.Linear(12, 4)
    )


def assert_fails(result, name, words="", side=None):
    """The first finding is of this check, in these words."""
    assert result.status == "failed", result.text
    first = result.findings[0]
    assert first.name == name, result.text
    assert words in first.text, result.text
    if side:
        assert first.side == side


# --------------------------------------------------------------------------------- honest variants

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
    "adam": {"adam": True},
    "sum": {"loss_reduction": "sum", "lr": 0.002},
    "functorch": {"grad_sample_mode": "functorch"},
    "expanded weights": {"grad_sample_mode": "ew"},
    "per layer": {"clipping": "per_layer", "max_grad_norm": [0.05, 0.1, 0.05, 0.1]},
    "adaptive": ADAPTIVE,
    "ghost": {"grad_sample_mode": "ghost"},
}


@pytest.mark.parametrize("private", [{}, {"grad_sample_mode": "ghost"}], ids=["flat", "ghost"])
def test_ten_kilobytes_are_kept_of_steps(private):
    """All that is kept, with batches of 40, and not of the noise alone."""
    between = [torch.nn.Linear(12, 400), torch.nn.Linear(400, 400), torch.nn.Linear(400, 12)]
    training = Training(net=network(*between), **private)
    sizes = []
    for _ in range(2):
        training.run(30)
        sizes.append(len(pickle.dumps(training.audit.state_dict())))
    assert 5_000 < (sizes[1] - sizes[0]) / 30 <= 10_000


@pytest.mark.parametrize("private", HONEST.values(), ids=HONEST)
def test_honest_trainings_pass(private):
    training = Training(**private)
    if private.get("loss_reduction") == "sum":
        training.criterion = torch.nn.CrossEntropyLoss(reduction="sum")
    result = training.run().result()
    result.check()
    assert not result.findings, result.text
    assert "layers" not in result.text
    assert "depend" not in result.text


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


def saving(training, tmp_path):
    training.run(10)
    torch.save(training.model, tmp_path / "model.pt")
    copy = torch.load(tmp_path / "model.pt", weights_only=False)
    assert len(list(copy.parameters())) == 4
    training.run(30)


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
    "rank one": (Training.run, {"net": torch.nn.Sequential(torch.nn.Linear(16, 4))}),
}


@pytest.mark.parametrize(("habit", "private"), HABITS.values(), ids=HABITS)
def test_honest_habits_pass(habit, private):
    private = dict(private)
    training = Training(*private.pop("between", ()), **private)
    habit(training)
    result = training.result()
    result.check()
    assert not result.findings, result.text


def test_saving_the_model_passes(tmp_path):
    training = Training()
    saving(training, tmp_path)
    training.result().check()


def test_nested_step_of_a_subclass_passes():
    net = network()
    Twice(network().parameters(), lr=0.1)  # another class's step is wrapped, too
    training = Training(net=net, optimizer=Twice(net.parameters(), lr=0.1)).run()
    training.result().check()
    assert not training.result().findings


def test_two_models_on_one_engine_pass():
    first = Training()
    second = Training(engine=first.engine, seed=2)
    for one, other in zip(first.batches(), second.batches(), strict=True):
        first.step(*one)
        second.step(*other)
    for training in (first, second):
        training.result().check()
        assert not training.result().findings


def test_compiled_model_passes():
    training = Training()
    compiled = torch.compile(training.model, backend="eager")
    training.loss = lambda x, y: training.criterion(compiled(x), y)
    training.run(10).result().check()


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


PLANTED = {
    "no noise": (noise_with(lambda place, step: 0), "noise-size", "no noise"),
    "half of the noise": (noise_with(lambda place, step: 0.5), "noise-size", "the noise is 0.4"),
    "half in a tensor": (
        noise_with(lambda place, step: 1 - 0.5 * (place == 0)),
        "noise-size",
        "tensor 0.weight",
    ),
    "none in a step": (noise_with(lambda place, step: step != 17), "noise-size", "first 18"),
    "no clipping": (
        clip_with(lambda norms, c: torch.ones(len(norms), 1)),
        "clipped-sum",
        "no example is clipped",
    ),
    "tensor left out": (
        clip_with(lambda norms, c: factor(norms[:, 1:], c)),
        "clipped-sum",
        "tensor 0.weight is left out of the norm",
    ),
    "each tensor by itself": (
        clip_with(lambda norms, c: (c / norms).clamp(max=1)),
        "clipped-sum",
        "each tensor is clipped at C by itself",
    ),
    "twice the clip": (
        clip_with(lambda norms, c: factor(norms, 2 * c)),
        "clipped-sum",
        "adds up to 2 C",
    ),
    "told every second step": (told_every_second_step, "accountant", "told 20 steps, 40 were done"),
    "told more noise": (told_more_noise, "accountant", "multiplier 2, the optimizer has 1"),
    "own batch size": (divided_by_own_batch, "gradient-scale", "size of its own batch"),
}


@pytest.mark.parametrize(("plant", "name", "words"), PLANTED.values(), ids=PLANTED)
def test_planted_bugs_are_named(plant, name, words):
    training = Training(attach=False)
    plant(training)
    training.audit = training.attach()
    assert_fails(training.run().result(), name, words)


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


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_examples_that_mix_are_named(mode):
    result = Training(Centred(), grad_sample_mode=mode).run(20).result()
    assert_fails(result, "dependent-examples", "depends on the others", "less private")


def test_running_statistic_fails():
    assert_fails(Training(Running("running_mean")).run().result(), "private-steps", "running_mean")


def test_unknown_buffer_cannot_be_told():
    training = Training(Running("memory"))
    assert_cannot_tell(training.run().result(), "buffers-outside")


def assert_cannot_tell(result, name):
    """Nothing is accused, and the finding can be allowed if it says so."""
    assert result.status == "cannot tell", result.text
    assert [finding.name for finding in result.findings] == [name], result.text


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
    training.optimizer.zero_grad()
    training.loss(x, y).backward()
    training.optimizer.max_grad_norm = float(norms_of(training).median())
    training.optimizer.step()


def mean_clip_of_the_batch_before(training, step, x, y):
    training.optimizer.max_grad_norm = getattr(training, "mean", 0.1)
    training.optimizer.zero_grad()
    training.loss(x, y).backward()
    training.mean = float(norms_of(training).mean())
    training.optimizer.step()


def rate_over_raw_norm(training, step, x, y):
    training.optimizer.zero_grad()
    training.loss(x, y).backward()
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


HABITS_THAT_BREAK = {
    "plain steps": (plain_steps, "private-steps", "without the private step"),
    "another optimizer": (another_optimizer, "private-steps", "without the private step"),
    "late head": (late_head, "private-steps", "head.weight and 1 more joined the model"),
    "late head by hand": (late_head_by_hand, "private-steps", "head.weight joined the model"),
    "seed in each step": (seed_in_each_step, "seeds", "40 seeds"),
    "noise again": (noise_again, "noise-reuse", "is that of step"),
    "accountant emptied": (accountant_emptied, "accountant", "lost 20 steps"),
    "median clip": (median_clip, "follows-batch", "C follows the median norm of its own batch"),
    "mean clip": (mean_clip_of_the_batch_before, "follows-batch", "mean norm of the batch before"),
    "each example twice": (
        each_example_twice,
        "examples-twice",
        "2 times in its batch: it adds up to 2 C",
    ),
    "noise taken off": (noise_taken_off, "gradient-scale", "0 of the noise is in the gradient"),
    "rate over raw norm": (rate_over_raw_norm, "follows-batch", "the learning rate follows"),
}


@pytest.mark.parametrize(
    ("step", "name", "words"), HABITS_THAT_BREAK.values(), ids=HABITS_THAT_BREAK
)
def test_habits_that_break_are_named(step, name, words):
    training = Training(net=Body())
    for number, (x, y) in enumerate(training.batches()):
        step(training, number, x, y)
    assert_fails(training.result(), name, words, "less private")


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


@pytest.mark.parametrize(("step", "name"), MAYBE_HARMLESS.values(), ids=MAYBE_HARMLESS)
def test_possible_postprocessing_cannot_be_told(step, name):
    training = Training()
    for number, (x, y) in enumerate(training.batches()):
        step(training, number, x, y)
    assert_cannot_tell(training.result(), name)
    assert name in training.result().findings[0].text
    training.audit._allow = (name,)
    allowed = training.result()
    allowed.check()
    assert allowed.findings


def test_method_replaced_after_attach_is_watched():
    """A bug may be planted after make_private, also around what the audit has put there."""
    training = Training()
    training.run(5)
    inner = training.optimizer.add_noise

    def add_noise():
        inner()
        for p in training.optimizer.params:
            p.grad = p.summed_grad.view_as(p) + (p.grad - p.summed_grad.view_as(p)) / 2

    training.optimizer.add_noise = add_noise
    result = training.run(35).result()
    assert_fails(result, "noise-size", "35 of 40 steps, first 6", "less private")
    training.audit.detach()
    assert training.optimizer.add_noise is add_noise


def test_unseen_steps_cannot_be_told():
    from oraudit.ways.opacus import attach

    training = Training(attach=False)
    training.audit = attach(training.optimizer)
    optimizer = training.optimizer

    def step():
        optimizer.clip_and_accumulate()
        type(optimizer).add_noise(optimizer)
        optimizer.scale_grad()
        optimizer.original_optimizer.step()

    optimizer.step = step
    optimizer.add_noise = lambda: None
    training.run(3)
    result = training.result()
    assert result.status != "passed"
    assert "no private step" in str(result)


def test_frozen_weight_that_changes_fails():
    net = Body()
    net.head = torch.nn.Linear(4, 4)
    net.head.requires_grad_(False)
    training = Training(net=net, optimizer=torch.optim.SGD(net.body.parameters(), 0.1)).run(20)
    net.head.weight += 0.1
    training.run(20)
    assert_fails(training.result(), "private-steps", "head.weight changes", "less private")


# ------------------------------------------------------------------------------------------- ghost


def test_ghost_at_another_clip_fails():
    training = Training(grad_sample_mode="ghost")
    training.model.max_grad_norm = 0.3
    assert_fails(training.run().result(), "apart-clip", "clipped at 3 C", "less private")


def test_per_layer_clips_apart_from_the_noise_fail():
    training = Training(clipping="per_layer", max_grad_norm=[0.05, 0.1, 0.05, 0.1])
    training.optimizer.max_grad_norms = [0.1, 0.2, 0.1, 0.2]
    assert_fails(training.run().result(), "apart-clip", "clipped at 2 C", "less private")


def test_wrong_ghost_norm_fails(monkeypatch):
    from opacus.grad_sample import GradSampleModuleFastGradientClipping

    rules = dict(GradSampleModuleFastGradientClipping.NORM_SAMPLERS)
    right = rules[torch.nn.Linear]

    def without_bias(layer, activations, backprops):
        found = right(layer, activations, backprops)
        return {p: norm * (p.ndim == 2) for p, norm in found.items()}

    rules[torch.nn.Linear] = without_bias
    monkeypatch.setattr(GradSampleModuleFastGradientClipping, "NORM_SAMPLERS", rules)
    result = Training(grad_sample_mode="ghost").run(20).result()
    assert_fails(result, "ghost-norms", "times what ghost clipping takes for it", "less private")


def test_wrong_rule_of_a_layer_cannot_be_told(monkeypatch):
    from opacus.grad_sample import GradSampleModule

    rules = dict(GradSampleModule.GRAD_SAMPLERS)
    right = rules[torch.nn.Linear]
    rules[torch.nn.Linear] = lambda *given: {p: g / p.ndim for p, g in right(*given).items()}
    monkeypatch.setattr(GradSampleModule, "GRAD_SAMPLERS", rules)
    result = Training().run(20).result()
    assert_cannot_tell(result, "layer-rules")
    assert "weight" in result.findings[0].text


def test_dropout_is_looked_at_by_two_examples(monkeypatch):
    from opacus.grad_sample import GradSampleModule

    honest = Training(Half()).run(10)
    assert honest.audit._made
    rules = dict(GradSampleModule.GRAD_SAMPLERS)
    right = rules[torch.nn.Linear]
    rules[torch.nn.Linear] = lambda *given: {p: g / p.ndim for p, g in right(*given).items()}
    monkeypatch.setattr(GradSampleModule, "GRAD_SAMPLERS", rules)
    assert_cannot_tell(Training(Half()).run(10).result(), "layer-rules")


def test_adaptive_noise_without_the_counts_share_fails():
    training = Training(attach=False, **{**ADAPTIVE, "unclipped_num_std": 0.7})
    noise_with(lambda place, step: 1.0)(training)
    noisy = training.optimizer.add_noise

    def add_noise():
        noisy()
        training.optimizer.unclipped_num = float(training.optimizer.unclipped_num)

    training.optimizer.add_noise = add_noise
    training.optimizer.update_max_grad_norm = lambda: None
    training.audit = training.attach()
    assert_fails(training.run().result(), "noise-size", "the noise is 0.69", "less private")


def test_shuffled_batches_fail():
    training = Training(poisson_sampling=False)
    result = training.run().result()
    assert_fails(result, "poisson-batches", "not for these batches", "side unknown")


def test_exact_findings_warn_at_their_step():
    from oraudit.report import NotAsTold

    training = Training(grad_sample_mode="ghost").run(5)
    training.model.max_grad_norm = 0.3
    with pytest.warns(NotAsTold, match="step 6: examples are clipped at 3 C") as warned:
        training.run(5)
    assert len([each for each in warned if each.category is NotAsTold]) == 1
    with pytest.warns(NotAsTold, match="without the private step"):
        training.optimizer.original_optimizer.step()


# ------------------------------------------------------------------------- nothing else is changed


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_training_is_the_same_when_watched(mode):
    ended = []
    for attach in (True, False):
        training = Training(Half(), attach=attach, grad_sample_mode=mode)
        training.run(10)
        ended.append((training, torch.get_rng_state()))
    (watched, state), (alone, other) = ended
    assert torch.equal(state, other)
    for mine, theirs in zip(watched.net.parameters(), alone.net.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_detach_leaves_everything_as_it_was():
    from torch.nn.modules.module import _global_forward_hooks
    from torch.optim.optimizer import _global_optimizer_post_hooks

    training = Training(attach=False)
    plain = training.optimizer.original_optimizer

    def state():
        gc.collect()
        hooks = (plain._optimizer_step_pre_hooks, plain._optimizer_step_post_hooks)
        return [
            dict(training.optimizer.__dict__),
            *map(len, hooks),
            len(_global_forward_hooks),
            len(_global_optimizer_post_hooks),
        ]

    before = state()
    audit = training.attach()
    assert state() != before
    training.audit = audit
    training.run(10)
    audit.detach()
    audit.detach()
    training.optimizer.zero_grad()
    assert state() == before
    steps = audit.result().text
    training.run(10)
    assert audit.result().text == steps


def test_an_audit_that_nobody_keeps_leaves_no_hooks():
    from torch.nn.modules.module import _global_forward_hooks

    gc.collect()
    before = len(_global_forward_hooks)
    Training().run(6)
    gc.collect()
    assert len(_global_forward_hooks) == before


def test_error_of_the_audit_does_not_reach_the_training(monkeypatch):
    training = Training()
    training.run(10)
    monkeypatch.setattr("oraudit.ways.opacus.look_at", lambda *given: 1 / 0)
    result = training.run(10).result()
    assert result.status == "cannot tell"
    assert "division by zero" in str(result)


@pytest.mark.parametrize("name", ["DistributedDPOptimizer", "FSDPOptimizerFastGradientClipping"])
def test_ranks_are_refused_by_name(name):
    import opacus.optimizers as optimizers

    from oraudit.ways.opacus import CannotAttach, attach

    kind = getattr(optimizers, name)
    with pytest.raises(CannotAttach, match=f"{name}: attach cannot join ranks"):
        attach(kind.__new__(kind))
    with pytest.raises(CannotAttach, match="optimizer is SGD"):
        attach(torch.optim.SGD(network().parameters(), lr=1))


# ----------------------------------------------------------------------------- resumed and watched


def test_state_goes_into_the_training_checkpoint(tmp_path):
    first = Training().run(20)
    checkpoint = {
        "model": first.net.state_dict(),
        "accountant": first.engine.accountant.state_dict(),
        "audit": first.audit.state_dict(),
    }
    torch.save(checkpoint, tmp_path / "checkpoint.pt")
    checkpoint = torch.load(tmp_path / "checkpoint.pt")
    second = Training(seed=5)
    second.net.load_state_dict(checkpoint["model"])
    second.engine.accountant.load_state_dict(checkpoint["accountant"])
    unaware = second.attach()
    second.audit = second.attach()
    second.audit.load_state_dict(checkpoint["audit"])
    second.run(20)
    result = second.result()
    assert "40 steps" in str(result)
    assert result.status == "passed", str(result)
    assert "knew before" not in str(result)
    unaware.detach()


def test_report_says_from_which_step_it_saw():
    first = Training().run(20)
    second = Training(seed=5)
    second.engine.accountant.load_state_dict(first.engine.accountant.state_dict())
    result = second.run(20).result()
    result.check()
    assert "the 20 steps that the accountant knew before" in str(result)


def test_noise_again_after_a_resume_is_found():
    """The generator is wound back with the checkpoint, and the state of the audit knows it."""
    first = Training()
    state = torch.get_rng_state()
    first.run(20)
    second = Training(seed=2)
    second.net.load_state_dict(first.net.state_dict())
    second.engine.accountant.load_state_dict(first.engine.accountant.state_dict())
    second.audit.load_state_dict(first.audit.state_dict())
    torch.set_rng_state(state)
    assert_fails(second.run(20).result(), "noise-reuse", "is that of step")


def resumed(*, accountant, seed=2):
    """A training that goes on from another one, both of one process."""
    first = Training(attach=False).run(20)
    second = Training(attach=False, seed=seed)
    second.net.load_state_dict(first.net.state_dict())
    if accountant:
        second.engine.accountant.load_state_dict(first.engine.accountant.state_dict())
    torch.manual_seed(seed)
    second.run(20)


def test_watched_trainings_pass():
    from oraudit.ways.watch import watch

    with watch() as audits:
        resumed(accountant=True)
    audits.check()
    assert len(audits) == 2
    assert "training 2 of 2" in str(audits)


def test_resuming_with_an_empty_accountant_fails():
    from oraudit.ways.watch import watch

    with watch() as audits:
        resumed(accountant=False)
    with pytest.raises(AssertionError, match="goes on from an earlier one, whose 20 steps"):
        audits.check()
    assert audits[0].result().status == "passed"
    assert_fails(audits[1].result(), "earlier-trainings", "goes on from", "less private")


def test_noise_of_an_earlier_training_fails():
    from oraudit.ways.watch import watch

    with watch() as audits:
        Training(attach=False).run(20)
        Training(attach=False).run(20)
    assert_fails(audits[1].result(), "earlier-trainings", "of an earlier training")


def test_private_again_ends_the_former_audit():
    from oraudit.ways.watch import watch

    with watch() as audits:
        first = Training(attach=False).run(20)
        parts = first.engine.make_private(
            module=first.model,
            optimizer=first.optimizer,
            data_loader=first.loader,
            noise_multiplier=2.0,
            max_grad_norm=0.1,
            poisson_sampling=False,
        )
        first.optimizer = parts[1]
        first.run(20)
    audits.check()
    assert [audit._record.step for audit in audits] == [21, 21]


def test_watch_raises_if_nothing_is_private():
    from opacus import PrivacyEngine

    from oraudit.ways.watch import NothingPrivate, watch

    former = PrivacyEngine.make_private
    with pytest.raises(NothingPrivate), watch():
        pass
    with pytest.raises(ZeroDivisionError), watch():
        raise ZeroDivisionError
    assert PrivacyEngine.make_private is former


def test_watch_cannot_tell_of_refused_optimizers(monkeypatch):
    from oraudit.ways import opacus
    from oraudit.ways.watch import watch

    def refuse(optimizer):
        raise opacus.CannotAttach("optimizer is Other: its noise is correlated over steps")

    monkeypatch.setattr(opacus, "_check_kind", refuse)
    with watch() as audits:
        Training(attach=False).run(3)
    assert audits.status == "cannot tell"
    assert "Other" in str(audits)


def test_fixture_audits_a_test(pytester):
    pytester.makepyfile(
        f"""
        import sys

        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_audit_opacus import Training, noise_with

        def test_honest(watch):
            Training(attach=False).run(10)
            watch.check()

        def test_nothing(watch):
            pass
        """
    )
    options = ["-p", "no:cacheprovider", "-W", "ignore"]
    if not entry_points(group="pytest11", name="oraudit"):
        options += ["-p", "oraudit.fixtures"]
    result = pytester.runpytest_inprocess(*options)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*NothingPrivate: nothing was made private*"])


# ---------------------------------------------------------------------------------------- commands

SCRIPT = """
import sys
from pathlib import Path

sys.path.append({folder!r})
from test_audit_opacus import Training, noise_with

assert __name__ == "__main__"
assert sys.path[0] == str(Path(__file__).resolve().parent)
import beside_the_script

training = Training(attach=False)
if "quiet" in sys.argv[1:]:
    noise_with(lambda place, step: 0)(training)
if "none" not in sys.argv[1:]:
    training.run(10)
print("trained", sys.argv)
if "error" in sys.argv[1:]:
    raise ValueError("in the script")
if "exit" in sys.argv[1:]:
    sys.exit(0)
if "exit 7" in sys.argv[1:]:
    sys.exit(7)
"""

STATUSES = {
    "honest": ([], 0, "PASSED"),
    "exit": (["exit"], 0, "PASSED"),
    "an exit of its own": (["exit 7"], 3, "ended in an error"),
    "no noise": (["quiet", "--lr", "1"], 1, "FAILED    no noise"),
    "error": (["error"], 3, "ended in an error"),
    "no noise and error": (["quiet", "error"], 1, "FAILED    no noise"),
    "no step": (["none"], 3, "CANNOT TELL  no private step was seen"),
}


@pytest.mark.parametrize(("arguments", "status", "words"), STATUSES.values(), ids=STATUSES)
def test_run_ends_with_the_status(tmp_path, capsys, arguments, status, words):
    from oraudit.__main__ import main

    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(folder=str(Path(__file__).parent)))
    (tmp_path / "beside_the_script.py").write_text("")
    before = (list(sys.argv), list(sys.path))
    assert main(["run", str(script), *arguments]) == status
    assert (sys.argv, sys.path) == before
    printed = capsys.readouterr()
    assert words in printed.out
    assert f"trained {[str(script), *arguments]}" in printed.out
    if "error" in arguments:
        assert "ValueError: in the script" in printed.err
        assert "runpy" not in printed.err


def test_run_without_training_cannot_tell(tmp_path, capsys):
    from oraudit.__main__ import main

    script = tmp_path / "nothing.py"
    script.write_text("print('nothing')\n")
    assert main(["run", str(script)]) == 3
    assert "nothing was made private" in capsys.readouterr().out
    assert main(["run", str(tmp_path / "missing.py")]) == 2
    with pytest.raises(SystemExit) as end:
        main(["run"])
    assert end.value.code == 2

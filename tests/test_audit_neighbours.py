"""The neighbour test: honest steps move by at most C, broken ones are found without being known."""

import copy
from typing import NamedTuple

import numpy as np
import pytest

from oraudit import neighbours_of

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

CLIP = 0.1
SIZE = 40


class Centred(torch.nn.Module):
    """Takes the batch's mean off: examples depend on each other."""

    def forward(self, x):
        return x - x.mean(0, keepdim=True)


def layers(*between):
    return torch.nn.Sequential(
        torch.nn.Linear(16, 12), *between, torch.nn.ReLU(), torch.nn.Linear(12, 4)
    )


class Training:
    """A step with Opacus, which a bug or a harmless habit changes."""

    def __init__(self, *between, adam=False, **private):
        from opacus import PrivacyEngine
        from torch.utils.data import DataLoader, TensorDataset

        torch.manual_seed(3)
        self.x = torch.randn(5 * SIZE, 16)
        self.y = torch.randint(4, (5 * SIZE,))
        net = layers(*between)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        if adam:
            optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        loader = DataLoader(TensorDataset(self.x, self.y), batch_size=SIZE)
        made = PrivacyEngine().make_private(
            module=net,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=1.0,
            max_grad_norm=CLIP,
            **private,
        )
        self.criterion = torch.nn.CrossEntropyLoss()
        self.model, self.optimizer, *rest = made
        if len(rest) == 2:
            self.criterion = rest[0]

    def loss(self, x, y):
        return self.criterion(self.model(x), y)

    def before_step(self):
        pass

    def after_step(self, x):
        pass

    def step(self, x, y):
        self.optimizer.zero_grad()
        self.loss(x, y).backward()
        self.before_step()
        self.optimizer.step()
        self.after_step(x)

    # what bugs are made of

    def gradients(self):
        return [self.optimizer._get_flat_grad_sample(p) for p in self.optimizer.params]

    def norms(self):
        return torch.stack([each.flatten(1).norm(dim=1) for each in self.gradients()]).norm(dim=0)

    def sum_with(self, factors):
        """Replace the clipped sum by a sum with factors of the examples."""

        def clip_and_accumulate():
            weights = factors()
            for p, each in zip(self.optimizer.params, self.gradients(), strict=True):
                p.summed_grad = torch.einsum("i,i...", weights, each)

        self.optimizer.clip_and_accumulate = clip_and_accumulate
        return self

    def test(self, **options):
        from oraudit import neighbours

        for k in range(2):  # so that an optimizer has a state
            part = slice((k + 1) * SIZE, (k + 2) * SIZE)
            self.step(self.x[part], self.y[part])
        batch = (self.x[:SIZE], self.y[:SIZE])
        return neighbours(self.step, self.model, self.optimizer, batch, scale=SIZE, **options)


def projected(training):
    def after_step(x):
        with torch.no_grad():
            for p in training.model.parameters():
                p.mul_(min(1.0, 0.5 / float(p.norm() + 1e-9)))

    training.after_step = after_step
    return training


def averaged(training):
    mean = copy.deepcopy(training.model.state_dict())

    def after_step(x):
        with torch.no_grad():
            for name, p in training.model.state_dict().items():
                p.copy_(0.9 * p + 0.1 * mean[name])

    training.after_step = after_step
    return training


def summed_loss(training):
    training.criterion = torch.nn.CrossEntropyLoss(reduction="sum")
    return training


HONEST = {
    "SGD": Training,
    "Adam": lambda: Training(adam=True),
    "ghost": lambda: Training(grad_sample_mode="ghost", criterion=torch.nn.CrossEntropyLoss()),
    "sum of losses": lambda: summed_loss(Training()),
    "dropout": lambda: Training(torch.nn.Dropout(0.5)),
    "projection": lambda: projected(Training()),
    "average written back": lambda: averaged(Training()),
    "automatic clipping": lambda: (t := Training()).sum_with(lambda: CLIP / (t.norms() + 0.01)),
    "adaptive": lambda: Training(
        clipping="adaptive",
        target_unclipped_quantile=0.5,
        clipbound_learning_rate=0.2,
        max_clipbound=1.0,
        min_clipbound=0.01,
        unclipped_num_std=3.0,
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_steps_pass(name):
    result = HONEST[name]().test()
    assert result.status == "passed", str(result)
    assert result.move <= 1.001
    result.check()
    assert any("noise of its own" in note for note in result.notes) == (name == "adaptive")


def without_norm_of_first():
    training = Training()

    def factors():
        rest = torch.stack([each.flatten(1).norm(dim=1) for each in training.gradients()[1:]])
        return (CLIP / (rest.norm(dim=0) + 1e-6)).clamp(max=1)

    return training.sum_with(factors)


def clipped_after_mean():
    training = Training()

    def factors():
        total = torch.stack([each.mean(0).norm() for each in training.gradients()]).norm()
        return torch.ones(len(training.norms())) * min(1.0, CLIP / float(total))

    return training.sum_with(factors)


def at_median_norm():
    training = Training()

    def factors():
        norms = training.norms()
        return (norms.median() / (norms + 1e-6)).clamp(max=1)

    return training.sum_with(factors)


def raw_gradient_left():
    training = Training()
    clip_and_accumulate = training.optimizer.clip_and_accumulate

    def added():
        clip_and_accumulate()
        for p, each in zip(training.optimizer.params, training.gradients(), strict=True):
            p.summed_grad = p.summed_grad + each.mean(0)

    training.optimizer.clip_and_accumulate = added
    return training


def divided_by_batch():
    training = Training()

    def scale_grad():
        for p in training.optimizer.params:
            p.grad /= len(training.gradients()[0])

    training.optimizer.scale_grad = scale_grad
    return training


def ghost_at_three():
    training = HONEST["ghost"]()
    training.model.max_grad_norm = 3 * CLIP
    return training


def contrastive():
    training = Training()

    def loss(x, y):
        out = training.model(x)
        alike = (out @ out.T).softmax(1).diagonal().log().neg().mean()
        return training.criterion(out, y) + 0.5 * alike

    training.loss = loss
    return training


def two_passes():
    training = Training()

    def step(x, y):
        for again in (True, False):
            training.optimizer.zero_grad()
            training.loss(x, y).backward()
            training.optimizer.signal_skip_step(again)
            training.optimizer.step()

    training.step = step
    return training


def rate_by_raw_norm():
    training = Training()

    def before_step():
        norm = torch.stack([each.mean(0).norm() for each in training.gradients()]).norm()
        training.optimizer.param_groups[0]["lr"] = 0.1 / float(norm)

    training.before_step = before_step
    return training


def raw_second_moment():
    training = Training(adam=True)

    def before_step():
        for p, each in zip(training.optimizer.params, training.gradients(), strict=True):
            state = training.optimizer.state[p]
            if "exp_avg_sq" in state:
                state["exp_avg_sq"].mul_(0.9).add_(0.1 * each.mean(0).detach() ** 2)

    training.before_step = before_step
    return training


def calibrated_on_data():
    training = Training()

    def after_step(x):
        with torch.no_grad():
            training.model._module[2].bias.add_(1e-3 * training.model._module(x).mean(0))

    training.after_step = after_step
    return training


def skipped_by_loss():
    training = Training()
    losses = []

    def step(x, y):
        training.optimizer.zero_grad()
        loss = training.loss(x, y)
        loss.backward()
        losses.append(float(loss.detach()))
        # The first two steps warm up, the third is the whole batch.
        if len(losses) < 3 or losses[-1] < losses[2] + 1e-4:
            training.optimizer.step()

    training.step = step
    return training


BROKEN = {
    "no clipping": lambda: (t := Training()).sum_with(lambda: torch.ones(len(t.norms()))),
    "clipped at 2 C": lambda: (t := Training()).sum_with(
        lambda: (2 * CLIP / (t.norms() + 1e-6)).clamp(max=1)
    ),
    "tensor left out of the norm": without_norm_of_first,
    "clipped after the mean": clipped_after_mean,
    "examples mixed": lambda: Training(Centred()),
    "C is the median norm": at_median_norm,
    "divided by the actual batch": divided_by_batch,
    "raw gradient left in the sum": raw_gradient_left,
    "ghost ignores C": ghost_at_three,
    "contrastive loss": contrastive,
    "two passes": two_passes,
    "learning rate by the raw norm": rate_by_raw_norm,
    "raw second moment": raw_second_moment,
    "weights calibrated on data": calibrated_on_data,
    "step skipped by the loss": skipped_by_loss,
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_steps_fail(name):
    result = BROKEN[name]().test()
    assert result.status == "failed", str(result)
    with pytest.raises(AssertionError, match="FAILED"):
        result.check()


def everything_of(training):
    generator = training.optimizer.generator
    return (
        copy.deepcopy(training.model.state_dict()),
        copy.deepcopy(training.optimizer.original_optimizer.state_dict()),
        {k: v for k, v in vars(training.optimizer).items() if isinstance(v, int | float)},
        torch.get_rng_state(),
        None if generator is None else generator.get_state(),
        len(training.optimizer.original_optimizer._optimizer_step_pre_hooks),
    )


def same(one, other):
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def test_all_is_as_before_even_after_error():
    from oraudit import neighbours

    training = Training(adam=True)
    training.step(training.x[:SIZE], training.y[:SIZE])
    before = everything_of(training)
    batch = (training.x[:SIZE], training.y[:SIZE])
    options = {"clip": CLIP, "scale": SIZE, "tries": 3}
    neighbours(training.step, training.model, training.optimizer, batch, **options)
    assert same(everything_of(training), before)

    def failing(x, y):
        training.step(x, y)
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        neighbours(failing, training.model, training.optimizer, batch, **options)
    assert same(everything_of(training), before)


def test_unsteady_step_cannot_be_told():
    training = Training()

    def step(x, y):
        noise = torch.from_numpy(np.random.default_rng().normal(size=tuple(x.shape)))
        training.optimizer.zero_grad()
        training.loss(x + noise.float(), y).backward()
        training.optimizer.step()

    training.step = step
    assert training.test().status == "cannot tell"


def test_nan_is_noted():
    note = "one example of NaN leaves numbers in the release that are not finite"
    assert note in Training().test(tries=2).notes


@pytest.mark.parametrize(("factor", "status"), [(1.0, "passed"), (1.5, "failed")])
def test_pure_step(factor, status):
    def step(state, batch, released=None):
        if released is None:
            norms = np.linalg.norm(batch["x"], axis=1, keepdims=True)
            released = {"w": factor * (batch["x"] * np.minimum(1, 1 / norms)).sum(0) / 30}
        return released, {"w": state["w"] - 0.1 * released["w"]}

    batch = {"x": np.random.default_rng(1).normal(size=(30, 5))}
    with np.errstate(all="ignore"):
        result = neighbours_of(step, {"w": np.zeros(5)}, batch, clip=1.0, scale=30)
    assert result.status == status
    assert result.move == pytest.approx(factor, rel=1e-6)


def torch_step(state, batch, released=None):
    if released is None:
        norms = batch.norm(dim=1, keepdim=True)
        released = (batch * (1 / norms).clamp(max=1)).sum(0)
    weights = state["weights"] - (0.1 * released).to(state["weights"].dtype)
    return released, {"weights": weights, "steps": [state["steps"][0] + 1]}


def jax_step(state, batch, released=None):
    numpy = pytest.importorskip("jax.numpy")
    if released is None:
        norms = numpy.linalg.norm(batch, axis=1, keepdims=True)
        released = (batch.at[:].multiply(numpy.minimum(1, 1 / norms))).sum(0)
    return released, state - numpy.float32(0.1) * released


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_pure_step_keeps_the_kind_of_arrays(precision):
    """A release given back in another precision would move honest weights by its rounding."""
    batch = torch.randn(30, 5, generator=torch.Generator().manual_seed(1))
    state = {"weights": torch.ones(5, dtype=getattr(torch, precision)), "steps": [0]}
    assert neighbours_of(torch_step, state, batch, clip=1.0, scale=1.0).status == "passed"


class Weights(NamedTuple):
    matrix: np.ndarray
    bias: np.ndarray


def test_pure_step_with_named_tuples():
    def step(state, batch, released=None):
        if released is None:
            norms = np.sqrt((batch.matrix**2).sum(1) + batch.bias**2)
            factors = np.minimum(1, 1 / np.maximum(norms, 1e-12))
            released = Weights(factors @ batch.matrix, factors @ batch.bias)
        return released, Weights(state.matrix - released.matrix, state.bias - released.bias)

    rng = np.random.default_rng(1)
    batch = Weights(rng.normal(size=(30, 4)), rng.normal(size=30))
    state = Weights(np.zeros(4), np.zeros(()))
    with np.errstate(all="ignore"):
        assert neighbours_of(step, state, batch, clip=1.0, scale=1.0).status == "passed"


def test_pure_step_of_jax():
    numpy = pytest.importorskip("jax.numpy")
    batch = numpy.asarray(np.random.default_rng(1).normal(size=(30, 5)), dtype=numpy.float32)
    assert neighbours_of(jax_step, numpy.ones(5), batch, clip=1.0, scale=1.0).status == "passed"


def test_dependence_on_an_example_names_its_place():
    def step(state, batch, released=None):
        released, after = torch_step(state, batch, released)
        return released, after | {"steps": [len(batch)]}

    batch = torch.randn(30, 5, generator=torch.Generator().manual_seed(1))
    state = {"weights": torch.ones(5), "steps": [0]}
    result = neighbours_of(step, state, batch, clip=1.0, scale=1.0)
    assert [finding.text.split(" depends")[0] for finding in result.findings] == [
        "state['steps'][0]"
    ]


def test_step_that_releases_nothing_cannot_be_told():
    def skipped(state, batch, released=None):
        return 0 * batch.sum(0), state

    result = neighbours_of(skipped, np.zeros(5), np.ones((30, 5)), clip=1.0, scale=1.0)
    assert result.status == "cannot tell"
    assert "no example moves what is released" in str(result)


SCHEDULES = {
    "steps": lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 10),
    "cosine": lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100),
    "function": lambda optimizer: torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda k: 1 / (k + 1)
    ),
}


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_schedule_in_the_step_is_honest(schedule):
    training = Training()
    scheduler = schedule(training.optimizer)
    plain = training.step

    def step(x, y):
        plain(x, y)
        scheduler.step()

    training.step = step
    result = training.test(tries=5)
    assert result.status == "passed", str(result)
    assert scheduler.last_epoch == 2  # two steps came before the test


def test_opacus_says_what_it_divides_by():
    from oraudit import neighbours

    training = Training()
    batch = (training.x[:SIZE], training.y[:SIZE])
    named = neighbours(training.step, training.model, training.optimizer, batch, tries=5)
    assert str(named) == str(training.test(tries=5))
    training.optimizer.expected_batch_size = None
    with pytest.raises(ValueError, match="scale is None; it must be given"):
        neighbours(training.step, training.model, training.optimizer, batch)


def test_schedule_by_the_loss_is_seen():
    from oraudit import neighbours

    training = Training()
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(training.optimizer)

    def step(x, y):
        training.step(x, y)
        with torch.no_grad():
            scheduler.step(float(training.loss(x, y)))

    batch = (training.x[:SIZE], training.y[:SIZE])
    result = neighbours(step, training.model, training.optimizer, batch, scale=SIZE, tries=5)
    assert result.status == "failed"
    assert "the scheduler's best depends on one example" in str(result)

"""What the audit of a training by Opacus decides and computes outside PyTorch.

``tests/test_canaries.py`` has the trainings themselves, for those who have PyTorch.
"""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from test_canaries import SMALL, planned

import oralib.canaries
from oralib.accounting import SIGMA_RANGE
from oralib.canaries import Canaries
from oralib.canaries._data import CanaryData, batch_size, gradients_in
from oralib.canaries._steps import Weight, divisor
from oralib.canaries.loop import SEEN_NOISE
from oralib.canaries.opacus import OpacusAudit
from oralib.dpsgd import Dropping
from oralib.dpsgd.setting import differ


class PoissonLoader(list):
    """Stands for Opacus's loader, with as many batches as entries."""


class Optimizer:
    """What Opacus does in a step, with arrays for tensors, and with noise that is not random."""

    def __init__(self, noise=SMALL.sigma, loss_reduction="mean", accumulated=1):
        self.noise_multiplier, self.max_grad_norm = noise, 1.5
        self.loss_reduction, self.expected_batch_size = loss_reduction, 30
        self.accumulated_iterations, self.skips, self.step_hook = accumulated, False, None
        self.params = [SimpleNamespace(grad_sample=[1, 2], summed_grad=np.zeros(3), grad=None)]
        others = [SimpleNamespace(summed_grad=np.zeros(1), grad=None)]
        self.param_groups = [{"params": others}, {"params": list(self.params)}]

    def attach_step_hook(self, hook):
        self.step_hook = hook

    def weights(self):
        return [weight for group in self.param_groups for weight in group["params"]]

    def add_noise(self):
        for weight in self.weights():
            noise = np.linspace(-1, 1, weight.summed_grad.size)
            weight.grad = weight.summed_grad + self.noise_multiplier * self.max_grad_norm * noise

    def pre_step(self, closure=None):
        if self.skips:  # more batches of this step are to come
            return False
        self.add_noise()
        for weight in self.weights():
            weight.grad = weight.grad / divisor(self)
        if self.step_hook is not None:
            self.step_hook(self)
        return closure is None or closure()


def plain_weight(tensor):
    return Weight(tensor, like=np.asarray, array=np.asarray)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    """A stand-in for the part with PyTorch."""
    half = SimpleNamespace(weight=SimpleNamespace(summed_grad=np.zeros(SMALL.d), grad=None))
    parts = SimpleNamespace(
        SOFTWARE="Opacus 0",
        DPDataLoader=PoissonLoader,
        checked_optimizer=lambda optimizer, way: optimizer.noise_multiplier,
        new_weight=lambda optimizer, size: plain_weight(SimpleNamespace(size=size, grad=None)),
        weight_of=plain_weight,
        WithCanaries=lambda *given: SimpleNamespace(coordinates=[half, half], given=given),
        loader_of=lambda data, rate: PoissonLoader([data] * round(1 / rate)),
    )
    monkeypatch.setattr(oralib.canaries, "_torch", parts, raising=False)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_canaries_in_the_sum(reduction):
    """They get and see what they would in a loop, and the optimizer is left as it was."""
    optimizer, plan = Optimizer(loss_reduction=reduction), planned(SMALL, 40, way="sum")
    audit = OpacusAudit(plan, optimizer=optimizer, seed=3)
    same = Canaries.from_plan(plan, seed=3, public_seed=0)
    assert (audit.canaries.included == same.included).all()
    weights, noise = optimizer.weights(), SMALL.sigma * np.linspace(-1, 1, SMALL.d)
    for step in range(3):
        assert optimizer.pre_step() is True
        same.observe(step, same.gradient(step) + noise)
        np.testing.assert_allclose(audit.canaries.scores, same.scores, rtol=1e-9)
        assert optimizer.weights() == weights
    optimizer.skips = True
    assert optimizer.pre_step() is False
    assert optimizer.weights() == weights
    assert audit.canaries.step == 3
    optimizer.skips, calls = False, []
    with pytest.raises(ZeroDivisionError):
        optimizer.pre_step(lambda: calls.append(optimizer.weights()) or 1 / 0)
    assert [len(seen) for seen in calls] == [3]  # the canaries' weight, too
    assert calls[0][2].size == SMALL.d
    assert calls[0][2].grad_sample == [1, 2]
    assert optimizer.weights() == weights
    assert audit.growth == 1.0
    with pytest.raises(ValueError, match="attach is for canaries as examples"):
        audit.attach(None, optimizer, None)
    for given in ({}, {"model": 1}, {"data": 1}):
        with pytest.raises(ValueError, match="give optimizer=, and neither model nor data"):
            OpacusAudit(plan, **given, optimizer=optimizer if given else None, seed=3)


@pytest.mark.parametrize(
    ("rate", "batches", "error"),
    [(0.125, 1, ""), (0.0625, 2, ""), (0.1, 1, "0.1"), (0.125, 2, "0.25")],
)
def test_the_rate_that_the_accountant_is_told(rate, batches, error):
    def accountant(sample_rate):
        return lambda optimizer: sample_rate

    optimizer = Optimizer(accumulated=batches)
    optimizer.attach_step_hook(accountant(rate))
    audit = OpacusAudit(planned(SMALL, 40, way="sum"), optimizer=optimizer, seed=3)
    if error:
        with pytest.raises(ValueError, match=f"the plan, 0.125, and .* told {error}: plan with"):
            optimizer.pre_step()
        return
    optimizer.pre_step()
    optimizer.accumulated_iterations = 5  # only the first step is looked at
    optimizer.pre_step()
    assert audit.canaries.step == 2


def test_canaries_as_examples():
    plan, optimizer, data = planned(SMALL, 40), Optimizer(), [("x", 1)] * 120
    audit = OpacusAudit(plan, "model", data, seed=3)
    assert audit.model.given == ("model", audit.canaries)
    assert audit.growth == (120 + SMALL.n) / 120
    wrapped = SimpleNamespace(modules=lambda: ["another", audit.model])
    told = []
    optimizer.attach_step_hook(told.append)
    audit.attach(wrapped, optimizer, audit.loader)
    assert audit.model.push == 4.5  # three thresholds
    assert audit.model.loss_is_mean
    # The two tensors together have the noise of one, and what half the gradient is on each.
    (half, _), same = audit.model.coordinates, Canaries.from_plan(plan, seed=3)
    added = same.gradient(0)
    half.weight.grad = (added / 2 + 0.1) * 1.5 / 30
    optimizer.step_hook(optimizer)
    same.observe(0, (added + 0.2) / np.sqrt(2))
    np.testing.assert_allclose(audit.canaries.scores, same.scores, rtol=1e-9)
    assert told == [optimizer]
    audit.attach(wrapped, Optimizer(loss_reduction="sum"), audit.loader)
    assert not audit.model.loss_is_mean
    with pytest.raises(ValueError, match="model must contain that of the audit"):
        audit.attach(SimpleNamespace(modules=lambda: ["another"]), optimizer, audit.loader)
    with pytest.raises(ValueError, match=r"rate of the plan, 0\.125, got 0\.1: give make_private"):
        audit.attach(wrapped, optimizer, PoissonLoader(range(10)))
    with pytest.raises(ValueError, match=r"loader must draw Poisson .*got list"):
        audit.attach(wrapped, optimizer, list(range(8)))
    for given in (("model", None, None), (None, data, None), ("model", data, optimizer)):
        with pytest.raises(ValueError, match="give model and data, and no optimizer"):
            OpacusAudit(plan, *given[:2], optimizer=given[2], seed=3)


def test_the_noise_that_the_optimizer_states():
    """Up to 1% nothing is said; more noise is believed; less, only with a warning."""
    plan = planned(SMALL, 40, way="sum")
    certified = plan.claim.epsilon

    def expected(share, claim=certified):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mine = replace(plan, claim=replace(plan.claim, epsilon=claim))
            optimizer = Optimizer(share * SMALL.sigma)
            audit = OpacusAudit(mine, optimizer=optimizer, seed=1)
        assert all(w.filename == __file__ for w in caught)  # the line of the user's
        return audit.canaries.dpsgd.sigma, len(caught)

    assert expected(1.0) == expected(0.992) == (SMALL.sigma, 0)
    assert expected(1.2) == (1.2 * SMALL.sigma, 0)
    assert expected(0.9) == (0.9 * SMALL.sigma, 1)
    assert expected(0.0) == (SIGMA_RANGE[0], 1)
    # Accountants differ a little, so that a claim exceeded by 1% is no reason to warn.
    less = oralib.certified_epsilon(0.9 * SMALL.sigma, 1e-5, SMALL.steps, 0.125, accountant="pld")
    assert [expected(0.9, less / over)[1] for over in (1.01, 1.03)] == [0, 1]


def test_going_on_with_a_file(tmp_path):
    plan, file = planned(SMALL, 40, way="sum"), tmp_path / "canaries.npz"
    first = OpacusAudit(plan, optimizer=Optimizer(1.1 * SMALL.sigma), seed=3)
    first.canaries.save(file)
    again = OpacusAudit(plan, optimizer=Optimizer(1.1 * SMALL.sigma), resume=file)
    assert (again.canaries.included == first.canaries.included).all()
    for seed, public_seed, resume in ((3, 0, file), (None, 0, None), (None, 7, file)):
        with pytest.raises(ValueError, match="give one of seed and resume"):
            OpacusAudit(plan, None, None, seed=seed, public_seed=public_seed, resume=resume)
    first.canaries.observe(0, SMALL.sigma * np.linspace(-2, 2, SMALL.d))
    first.canaries.save(file)
    again = OpacusAudit(plan, optimizer=Optimizer(1.1 * SMALL.sigma), resume=file)
    np.testing.assert_array_equal(again.canaries._look.sums, first.canaries._look.sums)
    with pytest.raises(ValueError, match=r"optimizer must have noise multiplier .* steps before"):
        OpacusAudit(plan, optimizer=Optimizer(), resume=file)
    dropped = replace(plan, design=replace(plan.design, dropping=Dropping(1.0)))
    stay = tmp_path / "stay.npz"
    Canaries(SMALL, 40, seed=1, hop=False).save(stay)
    fewer = planned(replace(SMALL, n=60), 40, way="sum")
    others = [(other, file) for other in (planned(SMALL, 21, way="sum"), fewer, planned(SMALL, 40))]
    for other, path in [*others, (dropped, file), (plan, stay)]:
        with pytest.raises(ValueError, match="resume must be a file of canaries of this plan"):
            OpacusAudit(other, optimizer=Optimizer(), resume=path)


def test_canaries_after_the_examples():
    data = CanaryData([("a", 0), ["b", 1]], 3)
    assert len(data) == 5
    shown = [("a", 0, -1), ("b", 1, -1), ("a", 0, 0), ("a", 0, 1), ("a", 0, 2)]
    assert [data[i] for i in range(5)] == shown
    assert CanaryData(["a"], 1)[0] == ("a", -1)


def test_rates_batches_and_divisors():
    assert not differ(1.0099, 1.0) and differ(1.0101, 1.0) and differ(0.98, 1.0)  # noqa: PT018
    assert not differ(0.505, 0.5001) and differ(0.506, 0.5)  # noqa: PT018
    assert [batch_size(100, rate) for rate in (1.0, 0.5, 0.125, 0.3)] == [100, 50, 13, None]
    assert divisor(Optimizer(accumulated=2)) == 60.0
    assert divisor(Optimizer(loss_reduction="sum", accumulated=2)) == 1.0


def test_the_gradients_that_canaries_ask_for():
    """One by one, the user's own examples and dropped canaries among them."""
    canaries = Canaries.from_plan(planned(SMALL, 40), seed=2)
    coin, where = canaries.included, canaries.places(0).copy()
    where[[1, 5]] = -1  # dropped
    canaries.places = lambda step: where
    who = np.array([-1, 0, 1, 2, 5, 7, -1, SMALL.n - 1])
    assert {bool(coin[i]) for i in (0, 1, 2, 5, 7)} == {True, False}
    assert coin[-1] or coin[5]
    for mean, batch in ((True, 8), (False, 1)):
        at, size = gradients_in(canaries, who, 3.0, mean)
        for i, j in enumerate(who):
            active = j >= 0 and where[j] >= 0
            assert size[i] == (3.0 / batch if active and coin[j] else 0.0)
            assert at[i] == where[j] if active else at[i] >= 0
    empty = gradients_in(canaries, who[:0], 3.0, True)
    assert [part.size for part in empty] == [0, 0]


def test_which_noise_is_believed_and_who_hops():
    """Another noise must be e^20 times likelier; canaries that are alone have no reason to hop."""
    canaries = Canaries.from_plan(planned(SMALL, 40), seed=2)
    for evidence, noise in ((19.9, 1.0), (20.1, 0.5)):
        canaries._fit[SEEN_NOISE.index(0.5)] = evidence
        assert canaries.noise_seen == noise
    alone = Canaries.from_plan(planned(replace(SMALL, n=SMALL.d), 20), seed=2)
    assert (canaries.hop, alone.hop) == (True, False)

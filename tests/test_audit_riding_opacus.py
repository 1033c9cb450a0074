"""Canaries that ride on the clipped sums of trainings with Opacus, and the witness beside them."""

import copy
import gc
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

from witness.opacus_loop import ADAPTIVE, HABITS, HONEST, Training, noise_with  # noqa: E402

from oraudit import attach, watch  # noqa: E402
from oraudit.ways.opacus.refused import CannotAttach  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

CANARIES = 100
WEIGHTS = 16 * 12 + 12 + 12 * 4 + 4


def started(canaries=CANARIES, seed=3, **private):
    training = Training(attach=False, **private)
    training.audit = training.attach(canaries=canaries, seed=seed)
    return training


def scores_of(training):
    return training.audit._canaries.scores()


@pytest.mark.parametrize("private", HONEST.values(), ids=HONEST)
def test_honest_trainings_pass_with_canaries(private):
    """What the witness sees is without canaries: clipping is exact, the noise is the noise."""
    training = started(**copy.copy(private))
    seen = training.run().audit._seen()
    from oraudit.report import judge

    result = judge(seen)
    result.check()
    assert not result.findings, result.text
    assert all(look.holds for look in seen.looks)
    assert training.audit._canaries.steps == seen.steps
    assert np.isfinite(scores_of(training)).all()


@pytest.mark.parametrize(("habit", "private"), HABITS.values(), ids=HABITS)
def test_honest_habits_pass_with_canaries(habit, private):
    from oraudit.report import judge

    private = dict(private)
    training = Training(*private.pop("between", ()), attach=False, **private)
    small = min(CANARIES, sum(p.numel() for p in training.optimizer.params))
    training.audit = training.attach(canaries=small, seed=1)
    habit(training)
    seen = training.audit._seen()
    judge(seen).check()
    assert training.audit._canaries.steps == seen.steps
    assert training.audit.detach() is None


def releases(training, steps):
    """The noisy sums of some steps, as the optimizer gets them, and the random state at the end."""
    found = []
    optimizer = training.optimizer
    scale = optimizer.scale_grad

    def scale_grad():
        found.append(torch.cat([p.grad.detach().flatten() for p in optimizer.params]).clone())
        scale()
        for p in optimizer.params:
            p.grad.zero_()  # the weights stay, so that both trainings have the same gradients

    optimizer.scale_grad = scale_grad
    training.run(steps)
    return torch.stack(found).double().numpy(), torch.get_rng_state()


@pytest.mark.parametrize("kind", ["flat", "ghost", "adaptive"])
def test_the_release_is_that_without_canaries_plus_them(kind):
    private = {"flat": {}, "ghost": {"grad_sample_mode": "ghost"}, "adaptive": ADAPTIVE}[kind]
    plain, state = releases(Training(attach=False, **private), 4)
    training = started(canaries=WEIGHTS, **private)
    clips = []
    hook = training.optimizer.step_hook
    training.optimizer.attach_step_hook(
        lambda optimizer: (clips.append(float(optimizer.max_grad_norm)), hook(optimizer))
    )
    training.audit.detach()
    training.audit = training.attach(canaries=WEIGHTS, seed=3)
    ridden, same_state = releases(training, 4)
    assert torch.equal(state, same_state)
    coins = training.audit._canaries.coins
    for step, (without, with_, clip) in enumerate(zip(plain, ridden, clips, strict=True), 1):
        due = np.zeros(WEIGHTS)
        batch = coins.batch(step, 0.1)
        due[batch] = clip * coins.signs[batch]
        np.testing.assert_allclose(with_ - without, due, atol=1e-6)
        assert 0 < len(batch) < WEIGHTS / 2


def test_scores_are_those_of_plain_sums():
    """From the sums before canaries and after the noise, which somebody else has kept."""
    training = started(canaries=WEIGHTS, seed=5)
    optimizer = training.optimizer
    kept = []
    former = optimizer.__dict__["add_noise"]

    def add_noise():
        before = torch.cat([p.summed_grad.flatten() for p in optimizer.params]).clone()
        former()
        after = torch.cat([p.grad.flatten() for p in optimizer.params]).clone()
        kept.append((before.double().numpy(), after.double().numpy()))

    optimizer.add_noise = add_noise
    training.audit._chain.stand = lambda: None
    training.run(12)
    coins = training.audit._canaries.coins
    scores = np.zeros(WEIGHTS)
    medians = []
    for before, after in kept:
        y = coins.signs * (after - before) / 0.1
        medians.append(np.sort(np.abs(y))[(WEIGHTS - 1) // 2] / 0.6744897501960817)
        s = np.mean(medians)
        scores += np.log(0.9 + 0.1 * np.exp((2 * y - 1) / (2 * s**2)))
    np.testing.assert_allclose(scores_of(training), scores, rtol=1e-3, atol=1e-4)


def test_half_the_noise_shows_in_scores():
    training = started(canaries=WEIGHTS)
    noise_with(lambda place, step: 0.25)(training)
    training.run(60)
    right = (scores_of(training) > 0) == training.audit._canaries.coins.included
    assert right.mean() > 0.9


def test_resumed_audit_has_the_same_scores(tmp_path):
    whole = started().run(30)
    first = started()
    second = started(seed=8)
    batches = list(first.batches(30))
    for batch in batches[:12]:
        first.step(*batch)
    torch.save(first.audit.state_dict(), tmp_path / "audit.pt")
    second.model.load_state_dict(first.model.state_dict())
    second.audit.load_state_dict(torch.load(tmp_path / "audit.pt"))
    coins = second.audit._canaries.coins
    assert (coins.included == whole.audit._canaries.coins.included).all()
    assert second.audit._canaries.steps == 12
    np.testing.assert_allclose(scores_of(second), scores_of(first))
    assert second.audit._canaries._rates == [0.1] * 12
    with pytest.raises(ValueError, match="the saved audit is of 100 canaries; it must be of 0"):
        Training().audit.load_state_dict(first.audit.state_dict())


def test_canaries_join_once_in_virtual_steps():
    training = Training(attach=False)
    training.audit = training.attach(canaries=WEIGHTS, seed=1)
    HABITS["parts"][0](training)
    canaries = training.audit._canaries
    assert canaries.steps == len(training.audit._record.told) >= 38
    assert set(canaries._rates) == {0.1}


def test_noise_schedules_are_followed():
    training = Training(attach=False)
    training.audit = training.attach(canaries=CANARIES, seed=1)
    HABITS["schedules"][0](training)
    found = training.audit._canaries.stretches(training.audit._record.told)
    assert [each.steps for each in found] == [10, 10, 10, 10]
    assert [each.sigma for each in found] == pytest.approx([1, 1.1, 1.21, 1.331])
    share = float(training.audit._canaries._ratios.share) / 40
    assert share == pytest.approx(1, abs=0.1)


def test_too_many_canaries_are_refused():
    training = Training(attach=False)
    with pytest.raises(CannotAttach, match=f"canaries is 1000; it must be at most {WEIGHTS}"):
        training.attach(canaries=1000)
    training.attach().detach()
    with watch(canaries=1000) as audits:
        Training(attach=False).run(2)
    assert audits.status == "cannot tell"
    assert "canaries is 1000" in str(audits)


def test_watch_gives_each_training_its_canaries():
    with watch(canaries=CANARIES, seed=7) as audits:
        Training(attach=False).run(3)
        Training(attach=False, seed=2).run(3)
    first, second = (audit._canaries.coins for audit in audits)
    assert (first.included != second.included).any()
    assert [audit._canaries.steps for audit in audits] == [3, 3]


def test_rates_that_nobody_tells_are_refused():
    training = Training(attach=False)
    training.optimizer.attach_step_hook(None)
    with pytest.raises(CannotAttach, match="canaries need the rate"):
        attach(training.optimizer, training.model, canaries=CANARIES)
    attach(training.optimizer, training.model, training.loader, canaries=CANARIES).detach()


def test_clips_of_layers_are_those_of_their_canaries():
    training = started(canaries=WEIGHTS, **HONEST["per layer"])
    training.run(3)
    canaries = training.audit._canaries
    assert not canaries._whole
    assert math.isfinite(scores_of(training).sum())
    gc.collect()

"""Checks of what stands around a step, on numbers alone: each names its bug and no honest run."""

import numpy as np
import pytest

from oraudit.checks import (
    accountant,
    apart_clip,
    chain,
    dependent_examples,
    earlier_trainings,
    findings,
    follows_batch,
    ghost_norms,
    gradient_scale,
    layer_rules,
    noise_in_weights,
    private_steps,
    thrown_away,
)
from oraudit.records import Around, Batches, Earlier, Event, Noise, Seen, Told
from oraudit.records.around import NAMES, move_numbers

STEPS = 30
RNG = np.random.default_rng(5)
SIZES = RNG.integers(30, 50, STEPS).astype(float)
NORMS = RNG.uniform(1, 3, STEPS)


def around(**numbers):
    usual = {"clip": np.ones(STEPS), "sigma": np.ones(STEPS), "rate": np.full(STEPS, 0.1)}
    usual |= {"factor": np.full(STEPS, 0.025), "off": np.zeros(STEPS), "size": SIZES}
    usual |= {"median": NORMS, "nearest": np.full(STEPS, 0.01), "kept": np.ones(STEPS)}
    usual |= {"rest": np.full(STEPS, 1e-7)}
    return Around(**{name: np.full(STEPS, np.nan) for name in NAMES} | usual | numbers)


def seen(*events, batches=None, noise=None, earlier=(), **numbers):
    """A training without findings, but for what is given."""
    return Seen(
        names=["0.weight"],
        told=[Told(1.0, 1.0)] * STEPS,
        noise=noise,
        looks=(),
        batches=batches or Batches((None,) * STEPS, (None,) * STEPS),
        events=events,
        examples=None,
        claim=None,
        around=around(**numbers),
        earlier=earlier,
    )


def test_honest_numbers_have_no_findings():
    assert findings(seen(Event("accountant-told", None, "", STEPS))) == []


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"clip": NORMS}, "C follows the median norm of its own batch"),
        ({"clip": np.roll(NORMS, 1)}, "C follows the median norm of the batch before"),
        ({"clip": RNG.uniform(1, 2, STEPS), "nearest": np.zeros(STEPS)}, "a quantile"),
        ({"rate": 0.1 / NORMS}, "the learning rate follows the median norm"),
        ({"sigma": 40 / SIZES}, "the noise multiplier follows the size of its own batch"),
    ],
)
def test_what_follows_the_batch_is_named(numbers, words):
    (found,) = follows_batch.check(seen(**numbers))
    assert words in found.text
    assert found.side == "less private"


@pytest.mark.parametrize(
    "numbers",
    [
        {"clip": 0.9 ** np.arange(STEPS)},
        {"clip": RNG.uniform(1, 2, STEPS)},
        {"rate": np.cos(np.arange(STEPS) / 20)},
        {"sigma": np.repeat([1.0, 2.0], STEPS // 2)},
    ],
)
def test_schedules_follow_no_batch(numbers):
    assert findings(seen(**numbers)) == []


@pytest.mark.parametrize(
    ("numbers", "name", "status", "words"),
    [
        ({"factor": 1 / SIZES}, "gradient-scale", "failed", "size of its own batch"),
        (
            {"off": np.full(STEPS, 0.1), "kept": np.full(STEPS, 0.5)},
            "gradient-scale",
            "failed",
            "0.5 of the noise",
        ),
        (
            {"off": np.full(STEPS, 0.1), "rest": np.full(STEPS, 0.2)},
            "gradients-after-noise",
            "cannot tell",
            "in 30 steps",
        ),
        (
            {"factor": np.where(np.arange(STEPS) == 7, 0.01, 0.025)},
            "gradients-after-noise",
            "cannot tell",
            "in 1 steps",
        ),
    ],
)
def test_gradients_that_are_used_are_held(numbers, name, status, words):
    (found,) = gradient_scale.check(seen(**numbers))
    assert (found.name, found.status) == (name, status)
    assert words in found.text


@pytest.mark.parametrize(
    ("check", "event", "words", "status"),
    [
        (accountant, Event("accountant-told", None, "", STEPS - 1), "told 29 steps", "failed"),
        (accountant, Event("accountant-told", None, "", STEPS + 1), "told 31 steps", "passed"),
        (accountant, Event("accountant-forgot", 4, "", 3), "lost 3 steps", "failed"),
        (accountant, Event("sigma-told", 4, "1", 2.0), "multiplier 2, the optimizer", "failed"),
        (accountant, Event("sigma-told", 4, "2", 1.0), "multiplier 1, the optimizer", "passed"),
        (apart_clip, Event("apart-clip", 4, "", 3.0), "clipped at 3 C", "failed"),
        (apart_clip, Event("apart-clip", 4, "", 0.5), "clipped at 0.5 C", "passed"),
        (dependent_examples, Event("examples-mix", 1, "", 0.3), "by 30%", "failed"),
        (ghost_norms, Event("ghost-norm", 1, "", 2.0), "2 times what ghost", "failed"),
        (layer_rules, Event("layer-rule", 1, "0.bias", 0.5), "0.bias", "cannot tell"),
        (thrown_away, Event("thrown-away", 3), "of a batch", "cannot tell"),
        (chain, Event("replaced", None, "add_noise"), "add_noise", "cannot tell"),
        (chain, Event("unwatched", 3, "KeyError: 1"), "KeyError", "cannot tell"),
        (private_steps, Event("buffer-changed", None, "1.running_var"), "running_var", "failed"),
        (private_steps, Event("buffer-changed", None, "1.memory"), "memory", "cannot tell"),
    ],
)
def test_exact_events_become_findings(check, event, words, status):
    (found,) = check.check(seen(event))
    assert words in found.text
    assert found.status == status


def noise(sample):
    rows = len(sample)
    return Noise(
        sizes=np.array([sample.shape[1]]),
        squares=(sample**2).sum(1, keepdims=True).astype(float),
        products=np.zeros((rows, 1)),
        sums=np.zeros((rows, 1)),
        largest=abs(sample).max(1, keepdims=True),
        sample=sample.astype(np.float32),
        owners=np.zeros(sample.shape[1], dtype=int),
        heads=sample[:, None, :16].astype(np.float32),
        rounding=np.full(rows, 1e-7),
    )


def test_earlier_trainings_are_compared():
    sample = RNG.normal(size=(STEPS, 200))
    other = RNG.normal(size=(20, 200)).astype(np.float32)
    again = other.copy()
    again[5] = sample[12]
    sizes = np.array([200])
    fresh = Earlier(20, sizes, other, goes_on=False)
    assert not earlier_trainings.check(seen(noise=noise(sample), earlier=[fresh]))
    same = Earlier(20, sizes, again, goes_on=False)
    (found,) = earlier_trainings.check(seen(noise=noise(sample), earlier=[fresh, same]))
    assert "step 13 is that of step 6 of an earlier training" in found.text
    resumed = Earlier(20, sizes, other, goes_on=True)
    (found,) = earlier_trainings.check(seen(noise=noise(sample), earlier=[resumed]))
    assert "whose 20 steps its accountant was not told" in found.text
    known = Event("earlier-steps", None, "", 20)
    assert not earlier_trainings.check(seen(known, noise=noise(sample), earlier=[resumed]))


def test_rounding_and_nan_are_no_earlier_noise():
    sizes = np.array([200])
    rounding = 1e-9 * RNG.normal(size=(STEPS, 200))
    before = Earlier(STEPS, sizes, rounding.astype(np.float32), goes_on=False)
    assert not earlier_trainings.check(seen(noise=noise(rounding), earlier=[before]))
    sample = RNG.normal(size=(STEPS, 200))
    spoiled = sample.copy()
    spoiled[3] = np.nan
    nothing = Earlier(STEPS, sizes, np.full((STEPS, 200), np.nan, np.float32), goes_on=False)
    assert not earlier_trainings.check(seen(noise=noise(spoiled), earlier=[nothing]))
    again = Earlier(STEPS, sizes, spoiled.astype(np.float32), goes_on=False)
    (found,) = earlier_trainings.check(seen(noise=noise(sample), earlier=[nothing, again]))
    assert "an earlier training" in found.text


# ------------------------------------------------------------------------- noise in the weights


def moves(push, noisiness=1.0, momentum=0.0):
    """What is kept of moves of weights by a function of sum and noise, at some of many steps."""
    rows = []
    total = np.zeros(1000)
    direction = RNG.normal(size=1000)
    for _ in range(20 * STEPS):
        noise = noisiness * RNG.normal(size=1000)
        total = momentum * total + push(direction, noise)
        rows.append(move_numbers(-0.1 * total, direction, noise))
    looked_at = [*rows[:10], *rows[19::20]][:STEPS]
    return {name: np.array([row[name] for row in looked_at]) for name in rows[0]}


@pytest.mark.parametrize("noisiness", [0.11, 1.0, 100.0])
@pytest.mark.parametrize("momentum", [0.0, 0.9, 0.99])
def test_moves_with_noise_are_not_accused(noisiness, momentum):
    felt = moves(lambda clipped, noise: clipped + noise, noisiness, momentum)
    assert not noise_in_weights.check(seen(**felt))


@pytest.mark.parametrize("noisiness", [0.2, 1.0, 100.0])
def test_moves_by_the_clipped_sum_alone_fail(noisiness):
    (found,) = noise_in_weights.check(seen(**moves(lambda clipped, noise: clipped, noisiness)))
    assert found.side == "less private"
    assert found.status == "failed"
    assert "without its noise, in 30 of 30 steps" in found.text


def test_moves_that_feel_no_noise_are_undecided():
    (found,) = noise_in_weights.check(seen(**moves(lambda clipped, noise: np.sign(clipped))))
    assert found.status == "cannot tell"
    assert not noise_in_weights.check(seen(**moves(lambda clipped, noise: 0 * clipped)))

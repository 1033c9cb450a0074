"""Canaries that ride on the clipped sums of a training: their coins, the sums, the scores."""

import math

import numpy as np
import pytest

from oraudit import Audit
from oraudit.canaries import live
from oraudit.canaries.coins import Coins
from oraudit.canaries.live import Canaries, spread

SHAPES = {"bias": (7,), "kernel": (30, 7), "scale": ()}
WEIGHTS = 218
STEPS = 30
CLIP = 0.5
RATE = 0.2
SIGMA = 1.5
CANARIES = 60


def sums_and_noise(steps=STEPS, seed=2, sigma=SIGMA, dtype=np.float32):
    """Clipped sums of some steps and their noise, without any canary."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        clipped = {name: rng.normal(size=shape).astype(dtype) for name, shape in SHAPES.items()}
        noise = {
            name: np.asarray(sigma * CLIP * rng.normal(size=shape)).astype(dtype)
            for name, shape in SHAPES.items()
        }
        yield clipped, noise


def ride(audit, steps, *, kind=np.asarray, rate=RATE, sigma=SIGMA):
    """Steps with canaries, in arrays of some kind."""
    for clipped, noise in steps:
        sums = audit.ride(
            {name: kind(each) for name, each in clipped.items()}, clip=CLIP, rate=rate
        )
        noisy = {name: sums[name] + kind(noise[name]) for name in SHAPES}
        audit.step(clipped=sums, noisy=noisy, clip=CLIP, sigma=sigma, rate=rate)
    return audit


def scores_of(audit):
    return audit._riders._canaries.scores()


# ------------------------------------------------------------------------------------ their coins


def test_coins_depend_on_the_seed_and_step():
    one = Coins(500, seed=3)
    other = Coins(500, seed=3)
    assert (one.included == other.included).all()
    assert (one.signs == other.signs).all()
    other.batch(1, 0.1)
    assert (one.batch(7, 0.1) == other.batch(7, 0.1)).all()
    assert one.batch(7, 0.1).tolist() != one.batch(8, 0.1).tolist()
    assert (Coins(500).included != Coins(500).included).any()


@pytest.mark.parametrize("rate", [0.004, 0.3, 1.0])
def test_batches_are_drawn_as_coins(rate):
    """Each included canary with the told rate, independently of its neighbours."""
    coins = Coins(400, seed=1)
    steps = 2000
    drawn = np.zeros((steps, 400))
    for step in range(steps):
        drawn[step, coins.batch(step, rate)] = 1
    assert not drawn[:, ~coins.included].any()
    some = drawn[:, coins.included]
    numbers = some.size
    assert abs(some.mean() - rate) <= 4 * math.sqrt(rate * (1 - rate) / numbers)
    for member in (0, -1):
        frequency = some[:, member].mean()
        assert abs(frequency - rate) <= 4 * math.sqrt(rate * (1 - rate) / steps)
    neighbours = (some[:, 1:] * some[:, :-1]).mean()
    assert abs(neighbours - rate**2) <= 4 * math.sqrt(rate**2 * (1 - rate**2) / numbers) + 1e-12
    sizes = some.sum(1)
    assert sizes.var() == pytest.approx(some.shape[1] * rate * (1 - rate), rel=0.15)
    # Fair coins and signs.
    for fair in (Coins(10_000, seed=1).included, Coins(10_000, seed=1).signs > 0):
        assert abs(fair.mean() - 0.5) < 0.02


def test_canaries_are_spread_over_all_weights():
    assert spread(109, [7, 210, 1]) == [3, 105, 1]
    assert spread(218, [7, 210, 1]) == [7, 210, 1]
    assert sum(spread(1000, [3, 0, 4_600_000, 77])) == 1000
    canaries = Canaries(109, sizes=[7, 210, 1])
    places = [np.arange(210)[each] for each in canaries.places.slices if each is not None]
    assert [len(each) for each in places] == [3, 105, 1]


# --------------------------------------------------------------------------------------- the sums


def naive_audit(n, seed, steps, rate=RATE):
    """Canaries one by one, in plain loops: scores, and the sums that they leave."""
    coins = Coins(n, seed)
    counts = spread(n, [7, 210, 1])
    places = [
        (name, i * (size // count))
        for (name, size), count in zip(
            [("bias", 7), ("kernel", 210), ("scale", 1)], counts, strict=True
        )
        for i in range(count)
    ]
    scores = np.zeros(n)
    medians = []
    left = []
    for t, (clipped, noise) in enumerate(steps, 1):
        sums = {name: each.astype(float).ravel() for name, each in clipped.items()}
        batch = set(coins.batch(t, rate).tolist())
        for canary, (name, place) in enumerate(places):
            if canary in batch:
                assert coins.included[canary]
                sums[name][place] += CLIP * coins.signs[canary]
        left.append(sums)
        y = np.array(
            [
                coins.signs[canary]
                * (sums[name][place] + noise[name].ravel()[place] - clipped[name].ravel()[place])
                / CLIP
                for canary, (name, place) in enumerate(places)
            ]
        )
        middle = np.sort(np.abs(y))[(n - 1) // 2]
        medians.append(middle / 0.6744897501960817 / SIGMA)
        s = max(np.mean(medians), 0.01) * SIGMA
        scores += np.log(1 - rate + rate * np.exp((2 * y - 1) / (2 * s**2)))
    return scores, left


@pytest.mark.parametrize("n", [CANARIES, WEIGHTS])
def test_scores_are_those_of_plain_loops(n):
    audit = ride(Audit(canaries=n, seed=4), sums_and_noise())
    due, _ = naive_audit(n, 4, sums_and_noise())
    np.testing.assert_allclose(scores_of(audit), due, rtol=1e-4, atol=1e-4)


def test_sums_are_those_of_plain_loops():
    audit = Audit(canaries=CANARIES, seed=4)
    _, left = naive_audit(CANARIES, 4, sums_and_noise(3))
    for (clipped, noise), due in zip(sums_and_noise(3), left, strict=True):
        before = {name: each.copy() for name, each in clipped.items()}
        sums = audit.ride(clipped, clip=CLIP, rate=RATE)
        for name in SHAPES:
            assert (clipped[name] == before[name]).all()
            assert sums[name].dtype == np.float32
            np.testing.assert_allclose(sums[name].ravel(), due[name], rtol=1e-6)
        noisy = {name: sums[name] + noise[name] for name in SHAPES}
        audit.step(clipped=sums, noisy=noisy, clip=CLIP, sigma=SIGMA, rate=RATE)


def test_all_frameworks_give_the_same_scores():
    torch = pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    due = scores_of(ride(Audit(canaries=CANARIES, seed=4), sums_and_noise()))
    for kind in (lambda each: torch.from_numpy(each.copy()), jax.numpy.asarray):
        found = scores_of(ride(Audit(canaries=CANARIES, seed=4), sums_and_noise(), kind=kind))
        np.testing.assert_allclose(found, due, rtol=1e-4, atol=1e-4)


def test_jax_calls_back_from_jit():
    """Within jit canaries join by io_callback, and the step is noted in the same order."""
    jax = pytest.importorskip("jax")
    from functools import partial

    from jax.experimental import io_callback

    audit = Audit(canaries=CANARIES, seed=4)

    @jax.jit
    def step(clipped, noise):
        ridden = partial(audit.ride, clip=CLIP, rate=RATE)
        shapes = jax.tree.map(lambda each: jax.ShapeDtypeStruct(each.shape, each.dtype), clipped)
        sums = io_callback(ridden, shapes, clipped, ordered=True)
        noisy = jax.tree.map(jax.numpy.add, sums, noise)
        seen = partial(audit.step, clip=CLIP, sigma=SIGMA, rate=RATE)
        io_callback(
            lambda sums, noisy: seen(clipped=sums, noisy=noisy), None, sums, noisy, ordered=True
        )
        return noisy

    for clipped, noise in sums_and_noise():
        step(clipped, noise)
    jax.effects_barrier()
    due = scores_of(ride(Audit(canaries=CANARIES, seed=4), sums_and_noise()))
    np.testing.assert_allclose(scores_of(audit), due, rtol=1e-4, atol=1e-4)


def test_structures_come_back_as_they_were():
    from collections import namedtuple

    pair = namedtuple("pair", ["left", "right"])
    tree = {"b": [np.zeros(40)], "a": pair(np.zeros((2, 3)), np.zeros(20))}
    found = Audit(canaries=60, seed=1).ride(tree, clip=1.0, rate=1.0)
    assert list(found) == ["b", "a"]
    assert isinstance(found["b"], list)
    assert isinstance(found["a"], pair)
    assert found["a"].left.shape == (2, 3)
    assert sum(abs(each).sum() for each in (found["b"][0], *found["a"])) > 20
    assert not tree["b"][0].any()


def test_resumed_audit_is_the_same():
    steps = list(sums_and_noise())
    due = scores_of(ride(Audit(canaries=CANARIES, seed=4), steps))
    first = ride(Audit(canaries=CANARIES, seed=4), steps[:11])
    second = Audit(canaries=CANARIES)
    second.load_state_dict(first.state_dict())
    ride(second, steps[11:])
    np.testing.assert_allclose(scores_of(second), due, rtol=1e-12)
    assert second._riders._canaries.steps == STEPS
    with pytest.raises(ValueError, match="the saved audit is of 60 canaries; it must be of 0"):
        Audit().load_state_dict(first.state_dict())


def clipping_each(gradients):
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return (gradients * np.minimum(1, CLIP / norms)).sum(0)


def test_looks_at_clipping_do_not_see_canaries():
    audit = Audit(examples=300, canaries=100, seed=1)
    rng = np.random.default_rng(1)
    for _ in range(STEPS):
        gradients = rng.standard_exponential((rng.binomial(300, RATE), 120))
        sums = audit.ride(clipping_each(gradients), clip=CLIP, rate=RATE)
        audit.step(
            per_example=gradients,
            clipped=sums,
            noisy=sums + SIGMA * CLIP * rng.normal(size=120),
            clip=CLIP,
            sigma=SIGMA,
            rate=RATE,
        )
    looks = audit._record.looks
    assert len(looks) >= 20
    assert all(look.holds for look in looks)


def test_clips_of_tensors_are_those_of_their_canaries():
    audit = Audit(canaries=WEIGHTS, seed=1)
    clips = [0.3, 0.4, 1.2]
    zeros = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    sums = audit.ride(zeros, clip=clips, rate=1.0)
    for name, clip in zip(SHAPES, clips, strict=True):
        found = np.abs(sums[name])
        assert set(found[found > 0].round(6).tolist()) <= {clip}
    assert (sums["kernel"] != 0).mean() > 0.3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ride": 0}, "no canary rides on this step"),
        ({"ride": 2}, "audit.ride was called again"),
        ({"clip": 0.7}, "clip is 0.7; it must be 0.5, as in audit.ride"),
        ({"rate": 0.3}, "rate is 0.3; it must be 0.2, as in audit.ride"),
        ({"rate": None}, "rate is None; it must be 0.2, as in audit.ride"),
        ({"other": True}, "clipped has no canaries in it"),
    ],
)
def test_steps_are_those_that_were_ridden(change, words):
    told = {"clip": CLIP, "rate": RATE, "sigma": SIGMA}
    told |= {name: change[name] for name in ("clip", "rate") if name in change}
    with pytest.raises(ValueError, match=words):
        wrong_step(change.get("ride", 1), "other" in change, told)


def wrong_step(rides, other, told):
    """A step with so many rides, which is noted with the sums of none, if ``other``."""
    audit = Audit(canaries=WEIGHTS, seed=1)
    clipped, noise = next(sums_and_noise(1))
    sums = clipped
    for _ in range(rides):
        sums = audit.ride(clipped, clip=CLIP, rate=RATE)
    sums = clipped if other else sums
    audit.step(clipped=sums, noisy={k: sums[k] + noise[k] for k in sums}, **told)


@pytest.mark.parametrize("n", [-1, 2.5, True, "many"])
def test_numbers_of_canaries_are_checked(n):
    with pytest.raises(ValueError, match=r"canaries is .*; it must be a whole number >= "):
        Audit(canaries=n)


def test_more_canaries_than_weights_are_refused():
    with pytest.raises(ValueError, match="canaries is 300; it must be at most 218"):
        ride(Audit(canaries=300), sums_and_noise(1))


def test_without_canaries_nothing_changes():
    sums = np.zeros(4)
    assert Audit().ride(sums, clip=1.0, rate=0.1) is sums


def test_nothing_is_drawn_from_global_generators():
    torch = pytest.importorskip("torch")
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    torch_state = torch.get_rng_state()
    ride(
        Audit(canaries=CANARIES),
        sums_and_noise(3),
        kind=lambda each: torch.from_numpy(each.copy()),
    )
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002
    assert (torch.get_rng_state() == torch_state).all()


def test_numbers_that_are_not_finite_say_nothing():
    audit = Audit(canaries=CANARIES, seed=4)
    for step, (clipped, noise) in enumerate(sums_and_noise(4)):
        sums = audit.ride(clipped, clip=CLIP, rate=RATE)
        noisy = {name: sums[name] + noise[name] for name in SHAPES}
        if step == 2:
            noisy["kernel"] = noisy["kernel"] * np.nan
        audit.step(clipped=sums, noisy=noisy, clip=CLIP, sigma=SIGMA, rate=RATE)
    assert np.isfinite(scores_of(audit)).all()


# ----------------------------------------------------------------------- what the report is told


def test_stretches_and_share_are_as_told():
    canaries = live.Canaries(100, sizes=[400], seed=1)
    for rate, sigma in ((0.1, 2.0), (0.1, 2.0), (0.2, 1.0)):
        sums = [np.zeros(400)]
        canaries.join(sums, 1.0, rate)
        canaries.score(canaries.look(sums), sigma)
    from oraudit.records import Told

    told = [Told(1.0, 2.0, 0.1), Told(1.0, 2.0, None)]
    found = canaries.stretches(told)
    assert [(s.sigma, s.sample_rate, s.steps) for s in found] == [(2.0, 0.1, 2), (1.0, 0.2, 1)]
    assert canaries.stretches([Told(1.0, 0.0, 0.1)]) is None
    assert canaries.share_of_norm() == pytest.approx(math.sqrt(100 * 0.4 / 2 / (400 * 9)))
    assert not canaries.too_often(told)
    assert canaries.too_often([Told(1.0, 2.0, 0.05)])


@pytest.mark.parametrize(
    ("n", "words"), [(5, "scores must differ"), (1, "the coins of all 1 canaries are alike")]
)
def test_counts_that_say_nothing_are_unlooked(n, words):
    audit = Audit(canaries=n, seed=3)
    nothing = np.zeros(5)
    for _ in range(2):
        sums = audit.ride(nothing, clip=1.0, rate=1e-9)
        audit.step(clipped=sums, noisy=nothing, clip=1.0, sigma=1.0, rate=1e-9)
    result = audit.result()
    assert result.counts is None
    assert f"counts ({words}" in result.text

"""A training with a fault for each check, made of numbers alone: the check has to find it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from audit_states import EXAMPLES, HONEST, STEPS, batches_of, with_events

from oraudit.records import Around, Batches, Earlier, Event, Look, Ranks, Seen, Told
from oraudit.records.around import NAMES
from oraudit.records.noise import NoiseRecord

#: The told noise, in C.
SIGMA = 2.0

#: The weights of the two tensors.
SIZES = (1500, 300)


def with_noise(draw: Callable, *, steps: int = STEPS) -> Seen:
    """A training whose noise is ``draw(rng, step, clipped sum)``."""
    rng = np.random.default_rng(1)
    record = NoiseRecord()
    for step in range(steps):
        clipped = [rng.normal(size=size).astype(np.float32) for size in SIZES]
        noisy = [(each + draw(rng, step, each)).astype(np.float32) for each in clipped]
        record.add(clipped, noisy, SIGMA)
    noise = record.finished(steps)
    told = (Told(1.0, SIGMA, 0.15),) * steps
    batches = Batches((None,) * steps, (None,) * steps)
    return replace(HONEST, told=told, noise=noise, looks=(), batches=batches, events=())


def normal(rng, clipped, share=1.0):
    return rng.normal(scale=share * SIGMA, size=len(clipped))


def swinging(rng, step, clipped):
    """Noise that grows with the clipped sum, which is scaled in place."""
    clipped *= 1 + step % 3
    return normal(rng, clipped, share=1 + step % 3)


def taken_back() -> Seen:
    """Noise that takes back a part of the noise of the step before."""
    former = dict.fromkeys(SIZES, 0.0)

    def draw(rng, step, clipped):
        fresh = normal(rng, clipped)
        noise = (fresh - 0.4 * former[len(clipped)]) / np.sqrt(1.16)
        former[len(clipped)] = fresh
        return noise

    return with_noise(draw)


def same_noise(rng, step, clipped):
    return np.random.default_rng(len(clipped)).normal(scale=SIGMA, size=len(clipped))


def coarse(rng, step, clipped):
    return np.round(normal(rng, clipped))


def uniform(rng, step, clipped):
    return rng.uniform(-1, 1, len(clipped)) * SIGMA * np.sqrt(3)


def around(**numbers) -> Seen:
    """A training of which nothing is known but numbers around its steps."""
    unknown = {name: np.full(STEPS, np.nan) for name in NAMES}
    return replace(HONEST, events=(), around=Around(**unknown | numbers))


def with_batches(drawn) -> Seen:
    """A training with these examples in its batches."""
    prints = np.random.default_rng(3).integers(2**62, size=EXAMPLES)
    batches = Batches(tuple(map(len, drawn)), tuple(prints[each] for each in drawn))
    return replace(HONEST, batches=batches)


def some_more_often() -> Seen:
    rng = np.random.default_rng(4)
    rates = np.where(np.arange(EXAMPLES) < 40, 0.6, 0.1)
    return with_batches([np.flatnonzero(rng.random(EXAMPLES) < rates) for _ in range(STEPS)])


def full_batches() -> Seen:
    """Poisson batches at a small rate, without the empty ones."""
    rng = np.random.default_rng(5)
    drawn = []
    while len(drawn) < 400:
        chosen = np.flatnonzero(rng.random(EXAMPLES) < 0.005)
        if len(chosen):
            drawn.append(chosen)
    return replace(with_batches(drawn), told=(Told(1.0, SIGMA, 0.005),) * 400)


def twice_in_each_batch() -> Seen:
    rng = np.random.default_rng(6)
    half = [np.flatnonzero(rng.random(EXAMPLES) < 0.07) for _ in range(STEPS)]
    return with_batches([np.repeat(each, 2) for each in half])


def on_ranks(noise, *, sizes=None, twice=0, shared=True) -> Ranks:
    """What two ranks tell of themselves."""
    rng = np.random.default_rng(7)
    if sizes is None:
        sizes = rng.binomial(EXAMPLES // 2, 0.15, size=(STEPS, 2))
    return Ranks(sizes, noise, np.full(STEPS, twice), shared)


def rank_noise() -> np.ndarray:
    return np.random.default_rng(8).normal(size=(STEPS, 2, 30))


def another_rate() -> Seen:
    return replace(HONEST, batches=batches_of(rate=0.3))


def earlier_noise() -> Seen:
    noise = HONEST.noise
    return replace(HONEST, earlier=[Earlier(STEPS, noise.sizes, noise.sample, goes_on=False)])


NORMS = np.random.default_rng(9).uniform(1, 3, STEPS)
CLEAN = {"noisiness": np.ones(STEPS), "felt": np.zeros(STEPS), "numbers": np.full(STEPS, 500.0)}

#: A training with a fault, by the name of the check that has to find it.
FAULTS: dict[str, Callable[[], Seen]] = {
    "no-noise-told": lambda: replace(HONEST, told=(Told(1.0, 0.0, 0.15),) * STEPS),
    "accountant": lambda: with_events(Event("accountant-forgot", 4, "", 3)),
    "earlier-trainings": earlier_noise,
    "dependent-examples": lambda: with_events(Event("examples-mix", 1, "", 0.3)),
    "apart-clip": lambda: with_events(Event("apart-clip", 4, "", 3.0)),
    "ghost-norms": lambda: with_events(Event("ghost-norm", 1, "", 2.0)),
    "examples-twice": twice_in_each_batch,
    "rank-data": lambda: replace(HONEST, ranks=on_ranks(rank_noise(), twice=9)),
    "rank-seeds": lambda: replace(
        HONEST, ranks=on_ranks(np.repeat(rank_noise()[:, :1], 2, axis=1), shared=False)
    ),
    "not-finite": lambda: with_noise(lambda rng, step, clipped: np.full(len(clipped), np.nan)),
    "clipped-sum": lambda: replace(HONEST, looks=(Look(1, 0.1, 1e-4, 0.9, {"none": 2.0}),)),
    "layer-rules": lambda: with_events(Event("layer-rule", 1, "0.bias", 0.5)),
    "private-steps": lambda: with_events(Event("plain-step", 5)),
    "gradient-scale": lambda: around(
        factor=1 / NORMS, size=NORMS, off=np.zeros(STEPS), rest=np.full(STEPS, 1e-7)
    ),
    "noise-in-weights": lambda: around(clean=np.zeros(STEPS), **CLEAN),
    "follows-batch": lambda: around(clip=NORMS, median=NORMS),
    "rank-noise": lambda: replace(
        with_noise(lambda rng, step, clipped: normal(rng, clipped, 1.4)),
        ranks=on_ranks(rank_noise()),
    ),
    "noise-reuse": lambda: with_noise(same_noise),
    "noise-follows-sum": lambda: with_noise(swinging, steps=120),
    "sum-in-noise": lambda: with_noise(
        lambda rng, step, clipped: normal(rng, clipped) + 0.5 * clipped
    ),
    "noise-over-steps": taken_back,
    "noise-values": lambda: with_noise(coarse),
    "noise-size": lambda: with_noise(lambda rng, step, clipped: normal(rng, clipped, 0.5)),
    "noise-law": lambda: with_noise(uniform),
    "seeds": lambda: with_events(*(Event("seeded", i, number=i) for i in range(1, STEPS))),
    "example-counts": some_more_often,
    "poisson-batches": lambda: replace(HONEST, batches=batches_of(size=60)),
    "empty-batches": full_batches,
    "batch-rate": another_rate,
    "claim": lambda: replace(HONEST, claim=(0.1, 1e-5)),
    "thrown-away": lambda: with_events(Event("thrown-away", 3)),
    "chain": lambda: with_events(Event("replaced", None, "add_noise")),
}

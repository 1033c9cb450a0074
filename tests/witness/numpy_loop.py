"""Trainings in NumPy with an audit of a loop of one's own: honest ones, and one for each bug.

A bug overrides the method that it is in. Everything is a function of the seed.
"""

import numpy as np
from scipy import stats

import oraudit
from oraudit.records.arrays import rows

SHAPES = ((30, 12), (12,), (12, 5), (5,))


class Training:
    """DP-SGD on linear data: a bug overrides the method that it is in."""

    steps = 60
    examples = 400
    rate = 0.15
    clip = 1.0
    sigma = 1.0
    shapes = SHAPES
    claim = None
    inputs = True
    shows_weights = False

    def __init__(self, seed=1):
        self.rng = np.random.default_rng(seed)
        self.sizes = [int(np.prod(shape)) for shape in self.shapes]
        numbers = sum(self.sizes)
        spread = np.exp(0.7 * self.rng.normal(size=(self.examples, 1)))
        self.data = (spread * self.rng.normal(size=(self.examples, numbers))).astype(np.float32)
        self.data /= np.float32(np.sqrt(numbers))
        self.labels = self.rng.normal(scale=2, size=self.examples).astype(np.float32)
        self.weights = np.zeros(numbers, dtype=np.float32)

    def parts(self, table):
        """The numbers of a gradient, or of many, as tensors."""
        ends = np.cumsum(self.sizes)[:-1]
        pieces = np.split(table, ends, axis=-1)
        return [
            piece.reshape(*table.shape[:-1], *shape)
            for piece, shape in zip(pieces, self.shapes, strict=True)
        ]

    def batch(self, step):
        return np.flatnonzero(self.rng.random(self.examples) < self.rate)

    def norms(self, gradients):
        return np.sqrt(sum((rows(each) ** 2).sum(1) for each in gradients))

    def cap(self, norms):
        return np.minimum(1, self.clip / (norms + 1e-6)).astype(np.float32)

    def clipped(self, gradients):
        factors = self.cap(self.norms(gradients))
        return [np.einsum("i,i...", factors, each) for each in gradients]

    def deviation(self, step):
        """The noise multiplier that is used."""
        return self.sigma

    def told_sigma(self, step):
        return self.deviation(step)

    def told_rate(self, step):
        return self.rate

    def noise(self, step, sums):
        size = self.deviation(step) * self.clip
        return [self.rng.normal(scale=size, size=each.shape) for each in sums]

    def noisy(self, step, sums):
        noise = self.noise(step, sums)
        return [(one + two).astype(np.float32) for one, two in zip(sums, noise, strict=True)]

    def array(self, numbers):
        """The numbers as arrays of the framework that the audit is shown."""
        return numbers

    def shown(self, tree):
        if isinstance(tree, list):
            return [self.array(np.asarray(each)) for each in tree]
        return None if tree is None else self.array(tree)

    def push(self, sums, noisy):
        """What the weights move against."""
        return noisy

    def run(self):
        audit = oraudit.Audit(examples=self.examples, claim=self.claim)
        self.past = []
        for step in range(self.steps):
            chosen = self.batch(step)
            inputs = self.data[chosen]
            slopes = inputs @ self.weights - self.labels[chosen]
            gradients = self.parts(slopes[:, None] * inputs)
            sums = self.clipped(gradients)
            noisy = self.noisy(step, sums)
            audit.step(
                per_example=self.shown(gradients),
                clipped=self.shown(sums),
                noisy=self.shown(noisy),
                clip=self.clip,
                sigma=self.told_sigma(step),
                rate=self.told_rate(step),
                inputs=self.shown(inputs) if self.inputs else None,
                weights=self.shown(self.parts(self.weights)) if self.shows_weights else None,
            )
            flat = np.concatenate([each.ravel() for each in self.push(sums, noisy)])
            self.past.append(noisy)
            self.weights = self.weights - np.float32(0.3 / (self.rate * self.examples)) * flat
        return audit.result()


# ------------------------------------------------------------------------------- honest trainings


class Small(Training):
    shapes = ((7,),)
    examples = 90
    steps = 25


class Large(Training):
    shapes = ((200, 60), (60,), (60, 10), (10,))
    steps = 8


class Rare(Training):
    rate = 0.01
    steps = 200
    shapes = ((20, 2), (2,))


class Long(Training):
    steps = 600
    rate = 0.05
    shapes = ((9, 3), (3,), (1,))


class Scheduled(Training):
    def deviation(self, step):
        return 2.0 * 0.8 ** (step // 15)


class RateScheduled(Training):
    def told_rate(self, step):
        return 0.1 if step < 30 else 0.25

    def batch(self, step):
        return np.flatnonzero(self.rng.random(self.examples) < self.told_rate(step))


class Weighty(Training):
    """The audit is shown the weights."""

    shows_weights = True


class Full(Training):
    rate = 1.0
    steps = 12


class TinyClip(Training):
    clip = 1e-3

    def cap(self, norms):
        return np.minimum(1, self.clip / norms).astype(np.float32)


class Unknown(Training):
    inputs = False


class FewTwins(Training):
    """Some rows of the data are equal, as in many tables."""

    steps = 200

    def __init__(self, seed=1):
        super().__init__(seed)
        self.data[:10] = self.data[10:20]


class ManyTwins(Training):
    def __init__(self, seed=1):
        super().__init__(seed)
        self.data = self.data[np.arange(self.examples) % 20]


HONEST = [
    Training,
    Small,
    Large,
    Rare,
    Long,
    Scheduled,
    RateScheduled,
    Weighty,
    Full,
    TinyClip,
    Unknown,
    FewTwins,
    ManyTwins,
]

# ------------------------------------------------------------------------------------- clipped sums


class Unclipped(Training):
    def cap(self, norms):
        return np.ones_like(norms)


class ByTensor(Training):
    def clipped(self, gradients):
        return [np.einsum("i,i...", self.cap(self.norms([g])), g) for g in gradients]


class LeftOut(Training):
    def clipped(self, gradients):
        factors = self.cap(self.norms(gradients[1:]))
        return [np.einsum("i,i...", factors, each) for each in gradients]


class BiasUnclipped(Training):
    def clipped(self, gradients):
        sums = super().clipped(gradients)
        return [
            each.sum(0) if each.ndim == 2 else total
            for each, total in zip(gradients, sums, strict=True)
        ]


class TwiceTheClip(Training):
    def cap(self, norms):
        return np.minimum(1, 2 * self.clip / (norms + 1e-6)).astype(np.float32)


class HalfTheClip(Training):
    def cap(self, norms):
        return np.minimum(1, 0.5 * self.clip / (norms + 1e-6)).astype(np.float32)


class MeanClipped(Training):
    def clipped(self, gradients):
        means = [each.mean(0) for each in gradients]
        norm = np.sqrt(sum((each**2).sum() for each in means))
        return [len(gradients[0]) * each * min(1, 0.05 / norm) for each in means]

    clip = 0.05


class Automatic(Training):
    def cap(self, norms):
        return (self.clip / (norms + 0.01)).astype(np.float32)


class SumOfNorms(Training):
    def clipped(self, gradients):
        factors = self.cap(sum(self.norms([each]) for each in gradients))
        return [np.einsum("i,i...", factors, each) for each in gradients]


class MeansClipped(Training):
    def clipped(self, gradients):
        whole = len(gradients[0]) // 4 * 4
        means = [each[:whole].reshape(-1, 4, *each.shape[1:]).mean(1) for each in gradients]
        return super().clipped(means)

    def batch(self, step):
        chosen = super().batch(step)
        return chosen[: len(chosen) // 4 * 4]


class Clamped(Training):
    clip = 0.05

    def clipped(self, gradients):
        return [np.clip(each, -self.clip, self.clip).sum(0) for each in gradients]


class LargestNorm(Training):
    def cap(self, norms):
        return np.full_like(norms, self.clip / norms.max())


class RawSumLeft(Training):
    def clipped(self, gradients):
        sums = super().clipped(gradients)
        return [total + each.mean(0) for total, each in zip(sums, gradients, strict=True)]


class TimesThree(Training):
    def clipped(self, gradients):
        return [3 * each for each in super().clipped(gradients)]


class DividedByBatch(Training):
    def clipped(self, gradients):
        return [each / len(gradients[0]) for each in super().clipped(gradients)]


class SomeWeighted(Training):
    def cap(self, norms):
        return super().cap(norms) * (1 + (np.arange(len(norms)) % 3 == 0))


class CoarseNorms(Training):
    def norms(self, gradients):
        flat = np.concatenate([each.reshape(len(each), -1) for each in gradients], axis=1)
        bits = flat.astype(np.float32).view(np.uint32)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        norms = np.sqrt((bits.view(np.float32) ** 2).sum(1))
        bits = norms.view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)


class SquaredNorm(Training):
    def cap(self, norms):
        return super().cap(norms**2)


class MeanScaled(Training):
    """Norms are those of the gradients of the mean loss."""

    def norms(self, gradients):
        return super().norms(gradients) / np.float32(len(gradients[0]))

    clip = 0.01


class SomethingElse(Training):
    def clipped(self, gradients):
        sums = super().clipped(gradients)
        return [each + 0.1 * np.abs(each).astype(np.float32) ** 0.5 for each in sums]


CLIPPING = [
    (Unclipped, "no example is clipped: an example adds up to", "less private"),
    (ByTensor, "each tensor is clipped at C by itself: an example adds up to 2 C", "less private"),
    (LeftOut, "tensor 0 is left out of the norm: an example adds up to", "less private"),
    (BiasUnclipped, "all vectors (biases) are not clipped: an example adds", "less private"),
    (TwiceTheClip, "examples are clipped at 2 C: an example adds up to 2 C", "less private"),
    (HalfTheClip, "examples are clipped at 0.5 C: an example adds up to 0.5 C", "safer"),
    (MeanClipped, "the batch is clipped as a whole, not each example", "less private"),
    (Automatic, "automatic clipping, C / (norm + 0.01): an example adds up to", "safer"),
    (SumOfNorms, "the norm is the sum of the tensors' norms: an example adds up to", "safer"),
    (
        MeansClipped,
        "means of 4 examples are clipped, not examples: an example adds",
        "less private",
    ),
    (Clamped, "each number is clamped at C, not the norm clipped: an example", "less private"),
    (LargestNorm, "all examples are scaled by C over the batch's largest norm", "side unknown"),
    (RawSumLeft, "a multiple of the raw, unclipped sum is added", "less private"),
    (TimesThree, "the clipped sum is multiplied by 3: an example adds up to 3 C", "less private"),
    (DividedByBatch, "the clipped sum is divided by the batch's own size", "side unknown"),
    (SomeWeighted, "some examples have another factor than C / norm: an example", "less private"),
    (CoarseNorms, "norms are computed in bf16", "less private"),
    (SquaredNorm, "the norm is squared: an example adds up to", "safer"),
    (MeanScaled, "norms are those of gradients over the batch's size", "less private"),
    (SomethingElse, "the clipped sum differs from the sum of clipped", "side unknown"),
]


# -------------------------------------------------------------------------------------------- noise


class NoNoise(Training):
    def noisy(self, step, sums):
        return sums

    def told_sigma(self, step):
        return 1.0


class CleanWeights(Weighty):
    """The weights move without the noise that the audit is shown."""

    def push(self, sums, noisy):
        return sums


class RoundedAway(Training):
    """No noise, but a sum that is scaled and scaled back."""

    def noisy(self, step, sums):
        return [(each * np.float32(7)) / np.float32(7) for each in sums]


class NoNoiseInTensor(Training):
    def noise(self, step, sums):
        first, *others = super().noise(step, sums)
        return [0 * first, *others]


class HalfTheNoise(Training):
    def told_sigma(self, step):
        return 2.0


class NoiseTwice(Training):
    def noise(self, step, sums):
        once = super().noise(step, sums)
        return [a + b for a, b in zip(once, super().noise(step, sums), strict=True)]


class LaplaceBeside(Training):
    """More noise than told, which is not one factor on normal noise."""

    def noise(self, step, sums):
        once = super().noise(step, sums)
        return [each + self.rng.laplace(scale=1.5, size=each.shape) for each in once]


class MoreInTensor(Training):
    def noise(self, step, sums):
        first, *others = super().noise(step, sums)
        return [2 * first, *others]


class TakenBack(Training):
    """A part of each step's noise takes back that of the step before, in a small model."""

    steps = 100
    shapes = ((8,),)

    def noise(self, step, sums):
        fresh = super().noise(step, sums)
        last = getattr(self, "last", super().noise(step, sums))
        self.last = fresh
        return [(a - 0.6 * b) / 1.36**0.5 for a, b in zip(fresh, last, strict=True)]


class LateDrop(Training):
    def deviation(self, step):
        return 1.0 if step < 45 else 0.5

    def told_sigma(self, step):
        return 1.0


class OnceWithout(Training):
    def noise(self, step, sums):
        return [(step != 6) * each for each in super().noise(step, sums)]


class FollowsSum(Training):
    def noise(self, step, sums):
        norm = np.sqrt(sum((each**2).sum() for each in sums))
        return [0.1 * norm * each for each in super().noise(step, sums)]


class SumTwice(Training):
    def noise(self, step, sums):
        noise = super().noise(step, sums)
        return [one + two for one, two in zip(sums, noise, strict=True)]


class SumInOneTensor(Training):
    def noise(self, step, sums):
        first, *others = super().noise(step, sums)
        return [first + sums[0], *others]


class SameEachStep(Training):
    def noise(self, step, sums):
        self.rng = np.random.default_rng(7)
        return super().noise(step, sums)

    def batch(self, step):
        return np.flatnonzero(np.random.default_rng(step).random(self.examples) < self.rate)


class OneStepAgain(Training):
    def noise(self, step, sums):
        noise = super().noise(step, sums)
        if step == 10:
            self.kept = noise
        return self.kept if step == 40 else noise


class SameInTensors(Training):
    shapes = ((12, 20), (12, 20), (12,))

    def noise(self, step, sums):
        first, _, last = super().noise(step, sums)
        return [first, first, last]


class TensorsCorrelated(Training):
    shapes = ((6,), (6,), (50,))

    def noise(self, step, sums):
        first, second, last = super().noise(step, sums)
        return [first, 0.6 * first + 0.8 * second, last]


class Coarse(Training):
    def noise(self, step, sums):
        return [np.round(each, 1) for each in super().noise(step, sums)]


class Fp16(Training):
    def noise(self, step, sums):
        return [each.astype(np.float16).astype(float) for each in super().noise(step, sums)]


class Sparse(Training):
    def noise(self, step, sums):
        noise = super().noise(step, sums)
        return [each * 1.2 * (self.rng.random(each.shape) < 0.7) for each in noise]


class Uniform(Training):
    def noise(self, step, sums):
        return [self.rng.uniform(-(3**0.5), 3**0.5, each.shape) for each in sums]


class Cut(Training):
    """Normal noise of the told size, but nothing beyond 3.03 times it."""

    shapes = ((100, 50), (50,))

    def noise(self, step, sums):
        low, high = stats.norm.cdf((-3, 3))
        shares = [self.rng.uniform(low, high, each.shape) for each in sums]
        return [stats.norm.ppf(each) * 1.0136 for each in shares]


class NotFinite(Training):
    def noise(self, step, sums):
        return [each * (np.nan if step == 30 else 1) for each in super().noise(step, sums)]


class NothingTold(Training):
    def told_sigma(self, step):
        return 0.0 if step > 50 else 1.0


NOISE = [
    (NoNoise, "no noise", "less private"),
    (RoundedAway, "no noise", "less private"),
    (NoNoiseInTensor, "tensor 0: no noise", "less private"),
    (HalfTheNoise, "the noise is 0.", "less private"),
    (NoiseTwice, "the noise is 1.", "safer"),
    (LaplaceBeside, "the noise is 2.", "side unknown"),
    (MoreInTensor, "tensor 0: the noise is", "side unknown"),
    (LateDrop, "15 of 60 steps, first 46: the noise is 0.", "less private"),
    (OnceWithout, "1 of 60 steps, first 7: no noise", "less private"),
    (FollowsSum, "the noise's size rises and falls with the size of the clipped", "less private"),
    (SumTwice, "times the clipped sum is in the noisy sum", "less private"),
    (SumInOneTensor, "tensor 0: ", "less private"),
    (SameEachStep, "the noise of step 2 is that of step 1", "less private"),
    (OneStepAgain, "the noise of step 41 is that of step 11", "less private"),
    (SameInTensors, "tensors 0 and 1 get the same noise in step", "less private"),
    (TensorsCorrelated, "the noise of tensors 0 and 1 is correlated", "less private"),
    (TakenBack, "the noise of a step is correlated with that of the step", "side unknown"),
    (Coarse, "the noise takes few values", "less private"),
    (Fp16, "the noise takes few values: it has the precision of fp16", "less private"),
    (Sparse, "of the noise is exactly 0", "less private"),
    (Uniform, "the noise is not normal", "less private"),
    (Cut, "the noise is not normal: its fourth moment", "less private"),
    (NotFinite, "the sum, or its noise, is not finite (NaN or infinite) in 30", "side unknown"),
    (NothingTold, "9 of 60 steps, first 52: no noise is stated", "less private"),
]


# ------------------------------------------------------------------------------------------ batches


class Shuffled(Training):
    def batch(self, step):
        place = step % 6
        if place == 0:
            self.order = self.rng.permutation(self.examples)
        return self.order[place * 60 : place * 60 + 60]


class FixedSize(Training):
    inputs = False

    def batch(self, step):
        return self.rng.permutation(self.examples)[:60]


class PoissonOnce(Training):
    """Poisson batches, which are the same in each epoch."""

    def batch(self, step):
        rng = np.random.default_rng(step % 6)
        return np.flatnonzero(rng.random(self.examples) < self.rate)


class Weighted(Training):
    steps = 150

    def batch(self, step):
        rates = np.where(np.arange(self.examples) < 60, 3 * self.rate, self.rate * 0.65)
        return np.flatnonzero(self.rng.random(self.examples) < rates)


class TwoPasses(Training):
    def batch(self, step):
        return np.repeat(super().batch(step), 2)

    rate = 0.08

    def told_rate(self, step):
        return 0.08


class MoreDrawn(Training):
    def told_rate(self, step):
        return 0.12


class FewerDrawn(Training):
    steps = 150

    def told_rate(self, step):
        return 0.2


class HalfTheData(Training):
    """Only half of the data is drawn, at the told rate."""

    steps = 150

    def batch(self, step):
        return np.flatnonzero(self.rng.random(self.examples // 2) < self.rate)


class NoEmptyBatches(Training):
    rate = 0.004
    steps = 100

    def batch(self, step):
        while not len(chosen := super().batch(step)):
            pass
        return chosen


class OverClaim(Training):
    claim = (1.0, 1e-5)


BATCHES = [
    (Shuffled, "the accountant's ε is not for these batches: they are cut from a", "side unknown"),
    (FixedSize, "the accountant's ε is not for these batches: their sizes", "side unknown"),
    (PoissonOnce, "the accountant's ε is not for these batches", "side unknown"),
    (Weighted, "some examples are drawn more often than others", "less private"),
    (TwoPasses, "each example is 2 times in its batch: it adds up to 2 C", "less private"),
    (MoreDrawn, "batches hold 0.1", "less private"),
    (FewerDrawn, "of the data; the accountant was told 0.2", "safer"),
    (HalfTheData, "some examples are drawn more often than others", "less private"),
    (NoEmptyBatches, "no batch of 100 is empty, where 20 would be", "less private"),
    (OverClaim, "what the accountant was told is ε =", "less private"),
]

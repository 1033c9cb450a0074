"""Exact tables: on few elements a mechanism is a table P[output | s]; all else follows from it."""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from oralib.ground import arguments
from oralib.ground.rounding import ROUNDING, log_ratio, snap
from oralib.ground.types import Array
from oralib.mechanisms import DiscreteMechanism, Signs, sign_vectors

__all__ = ["Channel", "channel"]

#: The most entries that :func:`channel` puts into a table: 128 MiB of doubles.
LARGEST_TABLE = 2**24


@dataclass(frozen=True, eq=False)
class Channel:
    """P[output | s] for every dataset s in {-1, 1}^n, and the privacy notions of the paper.

    Parameters
    ----------
    table : array
        Row o, column s: the probability of output o on dataset s. The 2^n columns are in the
        order of :func:`oralib.mechanisms.sign_vectors` and sum to 1; rows of zeros are dropped.
    outputs : array or None
        What the rows stand for, if it matters.

    Examples
    --------
    >>> table = Channel([[0.75, 0.25], [0.25, 0.75]])
    >>> round(table.epsilon, 6), table.optimal_efficacy()
    (1.098612, 0.75)
    """

    table: NDArray[np.float64]
    outputs: Array | None = None

    def __post_init__(self) -> None:
        table = arguments.reals("table", self.table, 0, 1 + 1e-9)
        if table.ndim != 2 or table.shape[1] & (table.shape[1] - 1) or table.shape[1] < 2:
            raise ValueError(f"table must have a row per output, 2^n columns, got {table.shape}")
        total = table.sum(axis=0)
        if not np.allclose(total, 1, rtol=0, atol=1e-9):
            column = np.abs(total - 1).argmax()
            raise ValueError(
                "each column of table must sum to 1, "
                f"got a sum of {total[column]:.12g} in column {column}"
            )
        possible = table.any(axis=1)
        arguments.store(self, table=arguments.read_only(table[possible]))
        if self.outputs is not None:
            allowed = f"one entry per row of table, {len(table)}"
            outputs = arguments.array("outputs", self.outputs, allowed)
            if outputs.shape[:1] != (len(table),):
                raise ValueError(f"outputs must be {allowed}, got shape {outputs.shape}")
            arguments.store(self, outputs=arguments.read_only(outputs[possible]))

    @property
    def n(self) -> int:
        """The number of elements."""
        return self.table.shape[1].bit_length() - 1

    @property
    def cube(self) -> NDArray[np.float64]:
        """The table with an axis for each element: entry [o, s_1, ..., s_n], -1 first."""
        return self.table.reshape(-1, *[2] * self.n)

    @cached_property
    def signs(self) -> Signs:
        """The datasets, one per row, in the order of the table's columns."""
        return arguments.read_only(sign_vectors(self.n))

    @cached_property
    def probability(self) -> NDArray[np.float64]:
        """The law P[O = o] when the dataset is uniform."""
        return arguments.read_only(self.table.mean(axis=1))

    @cached_property
    def _by_sign(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The pair P[O = o | S_i = -1] and P[O = o | S_i = 1], each outputs x n."""
        ones = (self.signs > 0).astype(float)
        half = self.table.shape[1] / 2
        return self.table @ (1 - ones) / half, self.table @ ones / half

    @cached_property
    def epsilon(self) -> float:
        """The privacy level ε(M): the largest log-ratio between neighbouring datasets, in nats."""
        return max(largest_loss(self.cube, axis) for axis in range(1, self.n + 1))

    def delta(self, epsilon: float) -> float:
        """The least δ for which the table is (ε, δ)-DP at the given ε."""
        factor = np.exp(arguments.real("epsilon", epsilon, 0, 700))
        delta = 0.0
        for axis in range(1, self.n + 1):
            for a, b in permutations(np.moveaxis(self.cube, axis, 0)):
                excess = np.where(a <= factor * b * (1 + ROUNDING), 0.0, a - factor * b)
                delta = max(delta, float(excess.sum(axis=0).max()))
        return delta

    @cached_property
    def privacy_loss(self) -> NDArray[np.float64]:
        """The distributional privacy loss ℓ_i(o), outputs x n, in nats."""
        return arguments.read_only(snap(log_ratio(*self._by_sign)))

    @cached_property
    def guess_accuracy(self) -> NDArray[np.float64]:
        """p(|ℓ_i(o)|), outputs x n: the probability that the likelier value of S_i is right."""
        minus, plus = self._by_sign
        return arguments.read_only(snap(np.maximum(minus, plus) / (minus + plus)))

    @cached_property
    def ddp(self) -> float:
        """Distributional DP: the largest |ℓ_i(o)|, in nats."""
        return float(np.abs(self.privacy_loss).max())

    @cached_property
    def ac_ddp(self) -> float:
        """Average-case DDP: the accuracy of the best element, averaged over outputs."""
        return float(snap(self.probability @ self.guess_accuracy.max(axis=1)))

    @cached_property
    def ae_ac_ddp(self) -> float:
        """Average-element average-case DDP: the accuracy averaged over elements and outputs."""
        return float(snap(self.probability @ self.guess_accuracy.mean(axis=1)))

    def optimal_efficacy(self, k: int | None = None) -> float:
        """Return the best E[V/R] of any guesser that makes at least k guesses, by default all n.

        It averages the k best accuracies of each output (the paper's AE-AC-DDP with k guesses).
        """
        return average_of_best(self.probability, self.guess_accuracy, k)

    @cached_property
    def total_variation(self) -> NDArray[np.float64]:
        """The total variation distance between the outputs for S_i = -1 and S_i = 1, for each i."""
        minus, plus = self._by_sign
        difference = np.where(self.privacy_loss == 0, 0.0, np.abs(minus - plus))
        return arguments.read_only(snap(difference.sum(axis=0) / 2))

    def conditional_loss(self, output: int, known: Signs, index: int) -> float:
        """Return ℓ_i(o) for a row, given known signs of others (0: unknown).

        It is nan if these signs rule the row out.
        """
        other = np.arange(self.n) != index
        agree = ((known[other] == 0) | (known[other] == self.signs[:, other])).all(axis=1)
        weight = np.where(agree, self.table[output], 0.0)
        minus = weight[self.signs[:, index] == -1].sum()
        plus = weight[self.signs[:, index] == 1].sum()
        return float(log_ratio(minus, plus))

    @cached_property
    def full_knowledge_loss(self) -> NDArray[np.float64]:
        """ℓ_i(o) given all other signs, outputs x datasets x n; nan for an impossible output."""
        loss = np.empty((*self.table.shape, self.n))
        for i in range(self.n):
            ratio = log_ratio(*np.split(self.cube, 2, axis=i + 1))
            loss[:, :, i] = np.broadcast_to(ratio, self.cube.shape).reshape(self.table.shape)
        return arguments.read_only(snap(loss))


def channel(mechanism: DiscreteMechanism, n: int) -> Channel:
    """Return the exact table of a discrete mechanism on n elements.

    Parameters
    ----------
    mechanism : DiscreteMechanism
        The mechanism.
    n : int
        The number of elements.

    Examples
    --------
    >>> from oralib import Count
    >>> channel(Count(), 4).optimal_efficacy()
    0.6875
    """
    example = "Count(), with finitely many outputs"
    arguments.instance("mechanism", mechanism, DiscreteMechanism, example)
    n = mechanism.check_size(n)
    if n > 24 or mechanism.count_outputs(n) * 2**n > LARGEST_TABLE:
        raise ValueError(
            f"n must be small enough to enumerate, got n={n}: the table of {mechanism!r}, with "
            f"2^{n} columns, would have more than {LARGEST_TABLE} entries"
        )
    outputs = mechanism.outputs(n)
    table = mechanism.likelihood(outputs, sign_vectors(n))
    if np.isfinite(mechanism.epsilon) and not table[table.any(axis=1)].all():
        raise ValueError(
            f"epsilon must be small enough for a table, got {mechanism!r} on n={n} elements: "
            "some probabilities are too small for a double"
        )
    return Channel(table, outputs)


def largest_loss(cube: Array, axis: int) -> float:
    """Return max |ln a/b| over entries that differ along an axis; inf where only one is 0."""
    pairs = combinations(np.moveaxis(cube, axis, 0), 2)
    return float(snap(max(np.nanmax(np.abs(log_ratio(*pair))) for pair in pairs)))


def average_of_best(probability: Array, accuracy: Array, k: int | None) -> float:
    """Return the mean of the k largest accuracies of each output, by default of all of them."""
    n = accuracy.shape[1]
    k = n if k is None else arguments.integer("k", k, 1, n)
    return float(snap(probability @ np.sort(accuracy, axis=1)[:, n - k :].mean(axis=1)))

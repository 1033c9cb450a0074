"""Section 5 of the paper in its general form: any finite universe, any product distribution.

A dataset has n elements of a finite universe X, element i drawn from a law Θ_i, independently; an
adversary knows these laws, sees the output o, and weighs two values x and y of an element,

    ℓ_{i,x,y}(o) = ln P[O = o | D_i = x] - ln P[O = o | D_i = y].

Fair coins are the special case X = {-1, 1}, Θ_i uniform. The closer the laws are to certainty, the
closer the adversary comes to knowing all other elements, as in differential privacy.
:class:`oralib.Channel` is that special case, for which the whole audit is computed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oralib.channels import Channel, average_of_best, largest_loss
from oralib.ground import arguments
from oralib.ground.rounding import log_ratio, snap
from oralib.mechanisms import sign_vectors

__all__ = ["SampledChannel"]


@dataclass(frozen=True, eq=False)
class SampledChannel:
    """A mechanism on a finite universe X, its dataset drawn from a product distribution Θ.

    Entry [o, d_1, ..., d_n] of the table is P[output o | dataset d], each d_i in 0, ..., |X| - 1.
    Row i of ``theta`` is the law of element i; one row stands for all elements.

    The exclusive or of three bits. Fair bits hide each other completely; bits that an adversary
    can predict with 90% hide each other less.

    >>> from oralib import Xor, channel
    >>> xor = channel(Xor(), 3)
    >>> [round(SampledChannel.of(xor, [1 - q, q]).ddp, 3) for q in (0.5, 0.9, 0.99)]
    [0.0, 1.516, 3.902]
    """

    table: NDArray[np.float64]
    theta: NDArray[np.float64]

    def __post_init__(self) -> None:
        table = arguments.reals("table", self.table, 0, 1 + 1e-9)
        if table.ndim < 2 or len({*table.shape[1:]}) != 1 or table.shape[1] < 2:
            raise ValueError(
                "table must have an axis of outputs and an axis of |X| >= 2 values for each "
                f"element, got shape {table.shape}"
            )
        if not np.allclose(table.sum(axis=0), 1, rtol=0, atol=1e-9):
            raise ValueError("table must sum to 1 over the outputs of each dataset")
        n = table.ndim - 1
        size = table.shape[1]
        theta = arguments.reals("theta", self.theta, 0, 1)
        if theta.shape not in ((size,), (n, size)):
            raise ValueError(
                f"theta must have shape {(size,)} or {(n, size)}, got shape {theta.shape}"
            )
        theta = np.broadcast_to(theta, (n, size))
        if not np.allclose(theta.sum(axis=1), 1, rtol=0, atol=1e-9):
            raise ValueError(f"each row of theta must sum to 1, got {theta.sum(axis=1)}")
        arguments.store(self, table=arguments.read_only(table), theta=arguments.read_only(theta))

    @classmethod
    def of(cls, channel: Channel, theta: ArrayLike = (0.5, 0.5)) -> "SampledChannel":
        """The table of a mechanism on signs, -1 first, with coins that need not be fair."""
        arguments.instance("channel", channel, Channel, "channel(Count(), 4)")
        return cls(channel.cube, np.asarray(theta))

    @property
    def n(self) -> int:
        """The number of elements."""
        return self.table.ndim - 1

    @cached_property
    def given_value(self) -> NDArray[np.float64]:
        """P[O = o | D_i = x] with the other elements drawn from Θ, outputs x n x |X|."""
        given_value = np.empty((len(self.table), *self.theta.shape))
        for i in range(self.n):
            rest = self.table
            # Sum out the others, the last axis first, so that the other axes keep their places.
            for j in reversed(range(self.n)):
                if j != i:
                    rest = np.tensordot(rest, self.theta[j], axes=(j + 1, 0))
            given_value[:, i, :] = rest
        return arguments.read_only(given_value)

    @cached_property
    def probability(self) -> NDArray[np.float64]:
        """P[O = o]."""
        return arguments.read_only(self.given_value[:, 0, :] @ self.theta[0])

    @cached_property
    def privacy_loss(self) -> NDArray[np.float64]:
        """ℓ_{i,x,y}(o), outputs x n x |X| x |X|, in nats; nan where neither value is possible."""
        loss = log_ratio(self.given_value[:, :, :, None], self.given_value[:, :, None, :])
        return arguments.read_only(snap(loss))

    @property
    def _allowed(self) -> NDArray[np.bool_]:
        return (self.theta[:, :, None] > 0) & (self.theta[:, None, :] > 0)

    @cached_property
    def guess_accuracy(self) -> NDArray[np.float64]:
        """The supremum of p(|ℓ_{i,x,y}(o)|) over values x and y that Θ_i allows, outputs x n."""
        of_x = self.given_value[:, :, :, None]
        of_y = self.given_value[:, :, None, :]
        with np.errstate(invalid="ignore"):
            accuracy = np.maximum(of_x, of_y) / (of_x + of_y)
        # Where neither value is possible, the output says nothing about the pair.
        best = np.where(self._allowed & np.isfinite(accuracy), accuracy, 0.5).max(axis=(2, 3))
        return arguments.read_only(snap(best))

    @cached_property
    def epsilon(self) -> float:
        """The privacy level ε(M) over all datasets of X^n, whatever Θ is, in nats."""
        return max(largest_loss(self.table, axis) for axis in range(1, self.n + 1))

    @cached_property
    def ddp(self) -> float:
        """Distributional DP under Θ: the largest loss over possible outputs, elements and pairs."""
        absolute = np.abs(self.privacy_loss)
        loss = np.where(self._allowed & ~np.isnan(absolute), absolute, 0.0)
        return float(loss[self.probability > 0].max())

    @cached_property
    def ac_ddp(self) -> float:
        """Average-case DDP under Θ."""
        return float(snap(self.probability @ self.guess_accuracy.max(axis=1)))

    def ae_ac_ddp(self, k: int | None = None) -> float:
        """Average-element average-case DDP under Θ, over the k most exposed elements (all n)."""
        return average_of_best(self.probability, self.guess_accuracy, k)

    def restricted(self, pairs: Sequence[tuple[int, int]]) -> Channel:
        """M_Z: the mechanism as a function of fair coins that choose from each pair.

        Pairs are the values for S_i = -1 and S_i = 1. If they are equal, the coin has no effect;
        the paper's Algorithm 1 excludes that.
        """
        choice = arguments.integers("pairs", pairs, 0, self.table.shape[1] - 1)
        if choice.shape != (self.n, 2):
            raise ValueError(f"pairs must have shape {(self.n, 2)}, got shape {choice.shape}")
        place = (sign_vectors(self.n) > 0).astype(np.int64)
        datasets = choice[np.arange(self.n), place]
        return Channel(self.table[:, *datasets.T])

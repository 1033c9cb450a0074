"""Canaries for a training that shows only its last model: mislabelled examples.

Such an audit shows little, however the model is trained: it hardly remembers one example. Where
gradients can be seen, canaries in their sum show far more (``attach(..., canaries=1000)``).
"""

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oralib.ground import arguments
from oralib.ground.streams import stream

__all__ = ["Mislabelled", "mislabelled"]


@dataclass(frozen=True, eq=False)
class Mislabelled:
    """Examples with wrong labels: train on those that are included, and leave the others out.

    Attributes
    ----------
    rows
        Which of your examples they are.
    labels
        Their wrong labels.
    included
        Their coins.

    Examples
    --------
    >>> canaries = mislabelled([0, 1, 2, 1], 2, seed=1)
    >>> canaries.rows.size, canaries.included.size
    (2, 2)
    """

    rows: NDArray[np.int64]
    labels: NDArray[np.int64]
    included: NDArray[np.bool_]

    def training_set(self, labels: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the examples to train on, and their labels, wrong ones for the canaries."""
        taught = np.asarray(labels).copy()
        taught[self.rows] = self.labels
        rows = np.delete(np.arange(taught.size), self.rows[~self.included])
        return rows, taught[rows]

    def scores(self, losses: ArrayLike) -> NDArray[np.float64]:
        """Return minus the losses of the model on all canaries, with their wrong labels."""
        loss = arguments.reals("losses", losses, -1e300, 1e300)
        if loss.shape != self.rows.shape:
            raise ValueError(
                f"losses must have a number for each of {self.rows.size} canaries, got shape "
                f"{loss.shape}"
            )
        return -loss

    def write_scores(self, path: str | os.PathLike[str], losses: ArrayLike) -> None:
        """Write a file for ``oraudit scores``, with the columns score and included."""
        rows = zip(self.scores(losses).tolist(), self.included.tolist(), strict=True)
        lines = [f"{score!r},{int(coin)}\n" for score, coin in rows]
        arguments.path("path", path).write_text("score,included\n" + "".join(lines))


def mislabelled(labels: ArrayLike, canaries: int, *, seed: int) -> Mislabelled:
    """Choose canaries among your examples, give each a wrong label, and toss a coin for each.

    Parameters
    ----------
    labels : array
        The labels of all your examples, integers, at least two of them different.
    canaries : int
        The number of them that become canaries.
    seed : int
        The seed of the choice, the labels and the coins. Keep it.

    Examples
    --------
    >>> labels = np.arange(100) % 10
    >>> canaries = mislabelled(labels, 20, seed=1)
    >>> bool((canaries.labels == labels[canaries.rows]).any())
    False
    """
    truth = arguments.integers("labels", labels, -(2**53))
    classes = np.unique(truth)
    if truth.ndim != 1 or classes.size < 2:
        raise ValueError(
            f"labels must be a vector with two kinds of labels or more, got shape {truth.shape} "
            f"and {classes.size} kinds"
        )
    n = arguments.integer("canaries", canaries, 1, truth.size)
    rng = stream(arguments.seed(seed), "canaries", "mislabelled")
    rows = np.sort(rng.permutation(truth.size)[:n])
    true_class = np.searchsorted(classes, truth[rows])
    wrong_class = (true_class + rng.integers(1, classes.size, n)) % classes.size
    return Mislabelled(rows, classes[wrong_class], rng.random(n) < 0.5)

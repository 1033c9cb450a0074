"""Scores from the weights of a training run, simulated or real.

The training releases weights w_0, ..., w_T. Their differences, undone by the learning rate, the
size of the batches and the clipping threshold, are noisy gradients y_1, ..., y_T: on each
coordinate the number of its canaries in the batch, plus normal noise of standard deviation σ. From
there on, a real training is treated like a simulated one.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oralib import _check
from oralib.dpsgd.likelihood import beliefs, likelihood_tables, log_likelihoods
from oralib.dpsgd.setting import DpSgd

#: Larger weights and gradients mean that the training has failed.
LARGEST_GRADIENT = 1e12


def noisy_gradients(
    weights: ArrayLike, *, learning_rate: float = 1.0, clip: float = 1.0, batch: float = 1.0
) -> NDArray[np.float64]:
    """The noisy gradients of a training run, per clipping threshold, a row for each step.

    Parameters
    ----------
    weights : array
        w_0, ..., w_T, a row for each; the first and the last are enough for the sum of gradients.
    learning_rate, clip : float
        How far a step of gradient descent goes, and the clipping threshold.
    batch : float
        What sums of gradients were divided by: the expected size of a batch where an optimiser
        takes means, 1 where it takes sums.

    Examples
    --------
    >>> noisy_gradients([[0.0, 0.0], [-0.5, 0.0], [-1.0, 0.25]], learning_rate=0.5).tolist()
    [[1.0, -0.0], [1.0, -0.5]]
    """
    table = _check.reals("weights", weights, -LARGEST_GRADIENT, LARGEST_GRADIENT)
    if table.ndim != 2 or table.shape[0] < 2:
        raise ValueError(
            "weights must be a matrix with a row for each of two or more steps, "
            f"got shape {table.shape}"
        )
    if table.size and (table == table[0]).all():
        raise ValueError(
            "weights must change from step to step, as noise is added, got rows that are all the "
            "same: copy the weights after each step"
        )
    step = _check.real("learning_rate", learning_rate, 1e-12, 1e12)
    unit = step * _check.real("clip", clip, 1e-12, 1e12)
    return -np.diff(table, axis=0) * (_check.real("batch", batch, 1e-12, 1e12) / unit)


def canary_scores(dpsgd: DpSgd, gradients: ArrayLike) -> NDArray[np.float64]:
    """What the noisy gradients say about each canary: the log-odds that it was included.

    Canary i stays on coordinate i % d. For canaries that hop see :class:`oralib.Canaries`.

    Parameters
    ----------
    dpsgd : DpSgd
        The training run as it was claimed to be.
    gradients : array
        Its noisy gradients, T rows and a column for each used coordinate.

    Examples
    --------
    >>> dpsgd = DpSgd(n=4, d=2, steps=3, sample_rate=0.5, sigma=0.5)
    >>> canary_scores(dpsgd, [[1, 0], [0, 0], [2, 1]]).round(2).tolist()
    [1.29, -0.28, 1.29, -0.28]
    """
    y = checked_gradients(dpsgd, gradients)
    tables = likelihood_tables(dpsgd.per_coordinate, 1, dpsgd.sample_rate, dpsgd.sigma)
    scores = beliefs(log_likelihoods(y, tables), tables.factorials)
    return scores[np.arange(dpsgd.n) % dpsgd.used_coordinates]


def checked_gradients(dpsgd: DpSgd, gradients: ArrayLike) -> NDArray[np.float64]:
    """Noisy gradients of a training run, with their shape and values checked."""
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000, sigma=1.0)")
    y = _check.reals("gradients", gradients, -LARGEST_GRADIENT, LARGEST_GRADIENT)
    if y.shape != (dpsgd.steps, dpsgd.used_coordinates):
        raise ValueError(
            f"gradients must have shape ({dpsgd.steps}, {dpsgd.used_coordinates}), a row for each "
            f"step and a column for each used coordinate, got shape {y.shape}"
        )
    return y

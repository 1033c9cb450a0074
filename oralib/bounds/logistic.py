"""The logistic function, which links privacy levels and accuracies."""

from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oralib.bounds.columns import flat_counts, float_if_single
from oralib.ground import arguments

__all__ = ["epsilon_estimate", "p", "p_inv"]


def p(epsilon: ArrayLike) -> Any:
    """Return the probability that ε-randomized response is true: p(ε) = e^ε / (1 + e^ε).

    Parameters
    ----------
    epsilon : float or array
        The privacy level.

    Examples
    --------
    >>> round(p(1.0), 6)
    0.731059
    """
    return float_if_single(scipy.special.expit(arguments.reals("epsilon", epsilon)))


def p_inv(accuracy: ArrayLike) -> Any:
    """Return ln(a / (1 - a)), the ε for which p(ε) = a: the inverse of :func:`p`.

    Parameters
    ----------
    accuracy : float or array
        The accuracy a, in [0, 1].

    Examples
    --------
    >>> round(p_inv(0.75), 6)
    1.098612
    """
    return float_if_single(scipy.special.logit(arguments.reals("accuracy", accuracy, 0, 1)))


def epsilon_estimate(v: ArrayLike, r: ArrayLike) -> Any:
    """Return the privacy level that the accuracy alone suggests, p_inv(v / r); not a bound.

    It is inf when every guess is right, negative when most are wrong, and nan when r = 0.

    Parameters
    ----------
    v, r : int or array
        The numbers of right guesses and of all guesses.

    Examples
    --------
    >>> round(epsilon_estimate(75, 100), 6)
    1.098612
    """
    shape, (v, r) = flat_counts(v, r)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float_if_single(scipy.special.logit(v / r).reshape(shape))

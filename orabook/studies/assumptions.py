"""One audit under stronger and stronger assumptions: each gives a larger bound, and proves less.

Where an assumption is wrong, its bound may claim too much.
"""

from typing import Any, Literal, TypeAlias

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from oralib.bounds import Counts, Gaussian, Independent, Rule, valid_lower_bound
from oralib.bounds.gaussian import epsilon_of_mu
from oralib.ground import arguments

__all__ = ["ASSUMPTIONS", "bound_assuming", "normal_bounds"]

#: What each bound is for, from the weakest assumption to the strongest.
Assumption: TypeAlias = Literal["dp", "gaussian", "independent", "normal"]
ASSUMPTIONS: dict[Assumption, str] = {
    "dp": "any (ε, δ)-DP mechanism",
    "gaussian": "mechanisms with the trade-off curve of Gaussian noise",
    "independent": "Gaussian noise on each element by itself, independently",
    "normal": "scores that are independent and normal, with one variance",
}


#: The rules of the bounds that look at counts alone, and assume more than (ε, δ)-DP.
_RULES: dict[Assumption, Rule] = {"gaussian": Gaussian(), "independent": Independent()}


def bound_assuming(
    assumption: Assumption,
    counts: Counts,
    *,
    delta: float,
    beta: float = 0.05,
    scores: ArrayLike | None = None,
    included: ArrayLike | None = None,
) -> tuple[float, str]:
    """Return the bound of one audit under an assumption, and the mechanisms that it is valid for.

    Parameters
    ----------
    assumption : str
        ``"dp"``, :func:`oralib.valid_lower_bound`; ``"gaussian"``,
        :class:`oralib.bounds.Gaussian`; ``"independent"``, :class:`oralib.bounds.Independent`; or
        ``"normal"``: the ε of the lower confidence limit of μ, the number of standard deviations
        by which included canaries score higher.
    counts : Counts
        Those of one audit; except for ``"dp"``, r must have been fixed in advance, without
        feedback.
    delta, beta : float
        The δ of (ε, δ)-DP, in [0, 1], and how often the bound may fail, in (0, 1).
    scores, included : array, optional
        A score and a coin for each canary, for ``"normal"`` only.

    Examples
    --------
    >>> counts = Counts(74, 100, n=1000, r_fixed=True)
    >>> for assumption in ("dp", "gaussian", "independent"):
    ...     bound, mechanisms = bound_assuming(assumption, counts, delta=1e-5)
    ...     print(f"{bound:.2f} for {mechanisms}")
    0.65 for any (ε, δ)-DP mechanism
    0.93 for mechanisms with the trade-off curve of Gaussian noise
    1.19 for Gaussian noise on each element by itself, independently
    """
    arguments.one_of("assumption", assumption, tuple(ASSUMPTIONS))
    arguments.instance("counts", counts, Counts, "Counts(74, 100, n=1000, r_fixed=True)")
    beta, delta = arguments.beta_and_delta(beta, delta)
    if counts.trials != 1:
        raise ValueError(f"counts must be those of one audit, got {counts.trials} audits")
    if assumption == "dp":
        bound = np.squeeze(valid_lower_bound(counts, delta=delta, beta=beta))
        return float(bound), ASSUMPTIONS[assumption]
    if not counts.r_fixed or counts.feedback != "none" or counts.coins != "independent":
        raise ValueError(
            f"the bound for {ASSUMPTIONS[assumption]} needs a number of guesses that was fixed in "
            "advance, no feedback and independent coins, "
            f"got r_fixed={counts.r_fixed}, feedback={counts.feedback!r}, coins={counts.coins!r}"
        )
    if assumption in _RULES:
        bound = np.squeeze(_RULES[assumption].lower_bound(counts, delta=delta, beta=beta))
        return float(bound), ASSUMPTIONS[assumption]
    if scores is None or included is None:
        raise ValueError("scores and included must be given for the assumption 'normal'")
    values = arguments.reals("scores", scores, -np.inf, np.inf, interval="()")
    coins = arguments.coins("included", included, values.size)
    groups = (values[coins], values[~coins])
    mean_in, mean_out = (group.mean() if group.size else 0.0 for group in groups)
    squares = sum(((group - group.mean()) ** 2).sum() for group in groups if group.size)
    sizes = [group.size for group in groups]
    bound = normal_bounds(mean_in - mean_out, squares, *sizes, delta=delta, beta=beta)
    return float(bound), ASSUMPTIONS[assumption]


def normal_bounds(
    gap: Any, squares: Any, n_in: Any, n_out: Any, *, delta: float, beta: float
) -> NDArray[np.float64]:
    """Return bounds from the gap of two means, the sum of squares within groups, and group sizes.

    The noncentrality of Student's t is then μ / sqrt(1 / n_in + 1 / n_out).
    """
    gap, squares, n_in, n_out = np.broadcast_arrays(gap, squares, n_in, n_out)
    mu = np.zeros(gap.shape)
    has_both = (n_in > 0) & (n_out > 0) & (n_in + n_out > 2) & (squares > 0)
    degrees = (n_in + n_out - 2)[has_both]
    width = np.sqrt(1 / n_in[has_both] + 1 / n_out[has_both])
    t = gap[has_both] / (np.sqrt(squares[has_both] / degrees) * width)
    limit = scipy.special.nctdtrinc(degrees, 1 - beta, t) * (1 - 1e-6)  # it has seven digits
    mu[has_both] = np.where(t > 0, np.maximum(limit, 0) * width, 0)
    return epsilon_of_mu(mu, np.full(mu.shape, delta))

"""One audit under stronger and stronger assumptions: each gives a larger bound, and proves less.

Where an assumption is wrong, its bound may claim too much.
"""

from typing import Any, Literal, TypeAlias

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from oralib.bounds.fdp import epsilon_lower_bound_fdp, epsilon_of_mu
from oralib.bounds.independent import epsilon_lower_bound_independent
from oralib.bounds.valid import Counts, valid_lower_bound
from oralib.ground import arguments

#: What each bound is for, from the weakest assumption to the strongest.
Assumption: TypeAlias = Literal["dp", "gaussian", "independent", "normal"]
ASSUMPTIONS: dict[Assumption, str] = {
    "dp": "any (ε, δ)-DP mechanism",
    "gaussian": "mechanisms with the trade-off curve of Gaussian noise",
    "independent": "Gaussian noise on each element by itself, independently",
    "normal": "scores that are independent and normal, with one variance",
}


def bound_assuming(
    assumption: Assumption,
    counts: Counts,
    *,
    delta: float,
    beta: float = 0.05,
    scores: ArrayLike | None = None,
    included: ArrayLike | None = None,
) -> tuple[float, str]:
    """The bound of one audit under an assumption, and in words the mechanisms it is valid for.

    Parameters
    ----------
    assumption : str
        ``"dp"``, :func:`oralib.valid_lower_bound`; ``"gaussian"``,
        :func:`oralib.epsilon_lower_bound_fdp`; ``"independent"``,
        :func:`oralib.epsilon_lower_bound_independent`; or ``"normal"``: the ε of the lower
        confidence limit of μ, which is how many standard deviations higher included canaries score.
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
    ...     bound, words = bound_assuming(assumption, counts, delta=1e-5)
    ...     print(f"{bound:.2f} for {words}")
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
    bounds = {"gaussian": epsilon_lower_bound_fdp, "independent": epsilon_lower_bound_independent}
    if assumption in bounds:
        v, r = int(np.squeeze(counts.v)), int(np.squeeze(counts.r))
        bound = bounds[assumption](v, r, n=counts.n, delta=delta, beta=beta)
    else:
        if scores is None or included is None:
            raise ValueError("scores and included must be given for the assumption 'normal'")
        values = arguments.reals("scores", scores, -np.inf, np.inf, interval="()")
        coins = arguments.coins("included", included, values.size)
        groups = values[coins], values[~coins]
        mean_in, mean_out = (group.mean() if group.size else 0.0 for group in groups)
        squares = sum(((group - group.mean()) ** 2).sum() for group in groups if group.size)
        gap, sizes = mean_in - mean_out, [group.size for group in groups]
        bound = normal_bounds(gap, squares, *sizes, delta=delta, beta=beta)
    return float(bound), ASSUMPTIONS[assumption]


def normal_bounds(
    gap: Any, squares: Any, n_in: Any, n_out: Any, *, delta: float, beta: float
) -> NDArray[np.float64]:
    """Bounds from the gap of two group means, the sum of squares within groups, and their sizes.

    The noncentrality of Student's t is then μ / sqrt(1 / n_in + 1 / n_out).
    """
    gap, squares, n_in, n_out = np.broadcast_arrays(gap, squares, n_in, n_out)
    mu, some = np.zeros(gap.shape), (n_in > 0) & (n_out > 0) & (n_in + n_out > 2) & (squares > 0)
    degrees = (n_in + n_out - 2)[some]
    width = np.sqrt(1 / n_in[some] + 1 / n_out[some])
    t = gap[some] / (np.sqrt(squares[some] / degrees) * width)
    limit = scipy.special.nctdtrinc(degrees, 1 - beta, t) * (1 - 1e-6)  # it has seven digits
    mu[some] = np.where(t > 0, np.maximum(limit, 0) * width, 0)
    return epsilon_of_mu(mu, np.full(mu.shape, delta))

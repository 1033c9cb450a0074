"""Figure 4: audits of Local Laplace."""

from collections.abc import Iterable
from math import inf

import pandas as pd

from orabook.experiments.grids import reals_of, with_bar
from orabook.experiments.summaries import summary
from oralib.games import one_run
from oralib.guessers import ThresholdGuesser
from oralib.mechanisms import LocalLaplace

__all__ = ["local_laplace"]


def local_laplace(
    epsilons: Iterable[float] = (0.5, 1, 2, 4, 8, 16),
    *,
    n: int = 10_000,
    beta: float = 0.05,
    trials: int = 200,
    seed: int = 0,
) -> pd.DataFrame:
    """Figure 4: Local Laplace without abstentions, against its ε (column ``x``).

    Parameters
    ----------
    epsilons : iterable of float
        The privacy levels of the mechanism.
    n : int
        The number of elements.
    beta, trials, seed
        As in :func:`taken_guesses`.

    Examples
    --------
    >>> table = local_laplace([2.0], trials=20)
    >>> bool(0 < table["bound"][0] < 2)
    True
    """
    rows = []
    for epsilon in with_bar(reals_of("epsilons", epsilons, 0, inf, "()")):
        counts = one_run(LocalLaplace(epsilon), ThresholdGuesser(), n, trials=trials, seed=seed)
        rows.append({"x": epsilon, "n": counts.n, **summary(counts, beta, 0.0)})
    return pd.DataFrame(rows)

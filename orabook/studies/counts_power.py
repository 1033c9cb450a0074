"""The power of counts of canaries against trainings with too little noise, and their bounds.

Canaries have a weight each and are left in the sum of each step, and their scores use the noise
that was added. All numbers are those of exact laws.
"""

from collections.abc import Iterable

import pandas as pd

from oralib import Training, TrainingTest, noise_multiplier
from oraudit.canaries.guesses import POWER_SHARES, guesses_for_bound, guesses_for_training
from oraudit.canaries.law import law_of_right, stretches

__all__ = ["counts_power"]

#: The trainings of the table (ε, steps, sample rate), at δ = 10⁻⁵ by the paper's accountant.
TRAININGS = ((2.0, 100, 0.1), (1.0, 100, 0.1), (8.0, 100, 0.1), (2.0, 10_000, 0.01))
#: The numbers of canaries of the table.
CANARIES = (200, 500, 1000, 2000, 5000, 20_000, 100_000)


def counts_power(
    trainings: Iterable[tuple[float, int, float]] = TRAININGS,
    canaries: Iterable[int] = CANARIES,
    *,
    beta: float = 0.05,
    delta: float = 1e-5,
) -> pd.DataFrame:
    """The power of counts against trainings with a share of the stated noise.

    A row for each training, number of canaries ``n`` and ``share`` of the noise; the share of an
    honest training is 1. Of ``k`` guesses, ``need`` right ones refute the stated training, which
    happens with probability ``power``; ``bound`` is the mean lower bound on ε, of ``bound_k``
    guesses.

    >>> table = counts_power([(2.0, 100, 0.1)], [1000])
    >>> table[["share", "k", "need", "power"]].round(2).iloc[-1].tolist()
    [0.5, 158.0, 129.0, 0.96]
    """
    rows = []
    sizes = tuple(canaries)
    for epsilon, steps, rate in trainings:
        sigma = noise_multiplier(epsilon, delta, steps, rate)
        stated = stretches(Training(sigma, rate, steps))
        for n in sizes:
            k = guesses_for_training(n, stated, beta)
            bound_k = guesses_for_bound(n)
            need = TrainingTest(stated, n=n, guesses=k, beta=beta).needed
            for share in (1.0, *POWER_SHARES):
                law = law_of_right(stated, n, bound_k, share=share)
                power = law_of_right(stated, n, k, share=share).at_least(need)
                rows.append(
                    {
                        "epsilon": epsilon,
                        "steps": steps,
                        "sample_rate": rate,
                        "sigma": sigma,
                        "n": n,
                        "share": share,
                        "k": k,
                        "need": need,
                        "power": power,
                        "bound_k": bound_k,
                        "bound": law.mean_bound(n, beta=beta, delta=delta),
                    }
                )
    return pd.DataFrame(rows).astype({"need": "Int64"})

"""What feedback is worth once bounds are valid: each kind at its best, on one step of DP-SGD."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from math import nan

import numpy as np
import pandas as pd

from orabook.experiments import summarise
from orabook.single_step import simulate_single_step
from oralib import Counts, DpSgd, simulate_dpsgd, valid_lower_bound

#: Thresholds on the privacy loss, and numbers of guesses without feedback, that are tried.
TAUS, GUESSES = (0.7, 0.85, 1.0, 1.15), (50, 100, 200, 400, 800)
#: A threshold, a number of guesses if it is fixed, and the audit, which still needs a seed.
Design = tuple[float, float, Callable[..., Counts]]


def feedback_at_its_best(
    trainings: Iterable[DpSgd], *, delta: float, beta: float, trials: int, seed: int
) -> pd.DataFrame:
    """Valid bounds of four ways to audit single full-batch steps, against n/d (column ``x``).

    ``tau`` and ``k`` are those with the best mean bound ``pilot`` in other audits, with the next
    seed; ``any_order`` is the mean bound of the same counts, had the order not been settled first.
    """
    bounds, rows = partial(valid_lower_bound, beta=beta, delta=delta), []
    for dpsgd in trainings:
        for word, designs in _designs(dpsgd, trials, seed + 1):
            powers = [bounds(play(trials=trials, seed=seed + 1)).mean() for *_, play in designs]
            tau, k, play = designs[int(np.argmax(powers))]
            row = {"feedback": word, "x": dpsgd.n / dpsgd.d, "tau": tau, "k": k}
            counts = play(trials=trials, seed=seed)
            if counts.feedback == "list":
                other = bounds(replace(counts, feedback="full"))
                row |= {"any_order": other.mean(), "any_order_se": other.std(ddof=1) / trials**0.5}
            of_trials = summarise(counts, beta=beta, delta=delta).iloc[0]
            rows.append(row | {"pilot": max(powers), **of_trials})
    return pd.DataFrame(rows)


def _designs(dpsgd: DpSgd, trials: int, seed: int) -> Iterator[tuple[str, list[Design]]]:
    few = sorted({min(k, dpsgd.n) for k in GUESSES})
    yield "none", [(nan, k, partial(simulate_dpsgd, dpsgd, k)) for k in few]
    step = partial(simulate_single_step, dpsgd)
    yield "one-way", [(tau, nan, partial(step, tau, feedback="one-way")) for tau in TAUS]
    free: list[Design] = [(tau, nan, partial(step, tau, feedback="full")) for tau in TAUS]
    fixed: list[Design] = []
    for tau, _, play in free:
        # Nearly all audits have as many guesses; missing ones count as wrong.
        k = max(1, int(np.quantile(play(trials=trials, seed=seed).r, 0.05)))
        fixed.append((tau, k, partial(play, guesses=k)))
    yield from (("full, number fixed", fixed), ("full, free to stop", free))

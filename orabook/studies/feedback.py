"""The worth of feedback with valid bounds: each kind at its best, on one step of DP-SGD."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from math import nan

import numpy as np
import pandas as pd

from orabook.experiments import summarise
from orabook.experiments.single_step import simulate_single_step
from oralib import Counts, DpSgd, simulate_dpsgd, valid_lower_bound

__all__ = ["feedback_at_its_best"]

#: The thresholds on the privacy loss that pilot audits try.
TAUS = (0.7, 0.85, 1.0, 1.15)
#: The numbers of guesses that pilot audits without feedback try.
GUESSES = (50, 100, 200, 400, 800)
#: A threshold, a number of guesses if it is fixed, and the audit, which needs trials and a seed.
Design = tuple[float, float, Callable[..., Counts]]


def feedback_at_its_best(
    trainings: Iterable[DpSgd], *, delta: float, beta: float, trials: int, seed: int
) -> pd.DataFrame:
    """The valid bounds of four ways to audit single full-batch steps, against n/d (column ``x``).

    ``tau`` and ``k`` are those with the best mean bound ``pilot`` in other audits, with the next
    seed; ``any_order`` is the mean bound of the same counts, had the order not been settled first.
    """
    bounds_of = partial(valid_lower_bound, beta=beta, delta=delta)
    rows = []
    for dpsgd in trainings:
        for feedback, designs in _designs(dpsgd, trials, seed + 1):
            pilots = [bounds_of(play(trials=trials, seed=seed + 1)).mean() for *_, play in designs]
            tau, k, play = designs[int(np.argmax(pilots))]
            row = {"feedback": feedback, "x": dpsgd.n / dpsgd.d, "tau": tau, "k": k}
            counts = play(trials=trials, seed=seed)
            if counts.feedback == "list":
                bounds = bounds_of(replace(counts, feedback="full"))
                row["any_order"] = bounds.mean()
                row["any_order_se"] = bounds.std(ddof=1) / trials**0.5
            means = summarise(counts, beta=beta, delta=delta).iloc[0]
            rows.append(row | {"pilot": max(pilots), **means})
    return pd.DataFrame(rows)


def _designs(dpsgd: DpSgd, trials: int, seed: int) -> Iterator[tuple[str, list[Design]]]:
    """The designs that pilot audits try, for each kind of feedback."""
    numbers = sorted({min(k, dpsgd.n) for k in GUESSES})
    yield "none", [(nan, k, partial(simulate_dpsgd, dpsgd, k)) for k in numbers]
    step = partial(simulate_single_step, dpsgd)
    yield "one-way", [(tau, nan, partial(step, tau, feedback="one-way")) for tau in TAUS]
    free: list[Design] = [(tau, nan, partial(step, tau, feedback="full")) for tau in TAUS]
    fixed: list[Design] = []
    for tau, _, play in free:
        # Nearly all audits have as many guesses; missing ones count as wrong.
        k = max(1, int(np.quantile(play(trials=trials, seed=seed).r, 0.05)))
        fixed.append((tau, k, partial(play, guesses=k)))
    yield "full, number fixed", fixed
    yield "full, free to stop", free

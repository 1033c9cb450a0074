"""The ways of auditing DP-SGD in one run that this book compares, each with its choices made.

The choices are the numbers of canaries and guesses, and the canaries' places. No random numbers
serve both to choose and to judge: schedules were chosen by a prediction without random numbers, all
else in pilot audits with seeds 1, 7, 11 and 100, and the tables have seed 0.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import pandas as pd
from tqdm import tqdm

from orabook.experiments.grids import elements_of
from orabook.experiments.ladder import CROWDED
from orabook.experiments.summaries import summary
from orabook.studies.ceiling import best_guesses
from oralib.bounds import Counts, Exact, valid_lower_bound, valid_rule
from oralib.dpsgd import DpSgd, Dropping, simulate_dpsgd, simulate_hopping, simulate_likelihood
from oralib.dpsgd.accounting import certified_epsilon

__all__ = ["METHODS", "Method", "best_bounds", "bound_map"]

#: The paper's main setting: the number of coordinates, the claim, and the level of its bounds.
D = 1000
EPSILON = 2.0
DELTA = 1e-5
BETA = 0.05


@dataclass(frozen=True)
class Method:
    """A way of auditing DP-SGD, for ε = 2 and δ = 1e-5 in the paper's main setting.

    The number of guesses is fixed in advance; ``play(dpsgd, k, trials=..., seed=...)`` is the game.
    """

    description: str
    per_coordinate: int
    guesses: int
    play: Callable[..., Counts]


_STEPS = partial(simulate_likelihood, sees="steps")
_ONE_WAY = partial(_STEPS, feedback="one-way")
_DROPPING = partial(simulate_hopping, dropping=Dropping(final=3, until=0.8))
_CROWDING = partial(simulate_hopping, dropping=CROWDED)

#: The ways that the book compares, by name.
METHODS = {
    "paper": Method("stay, sums, as in the paper", 8, 100, simulate_dpsgd),
    "sum": Method("stay, sums, more guesses", 8, 300, simulate_dpsgd),
    "steps": Method("stay, all steps", 6, 200, _STEPS),
    "one-way": Method("stay, all steps, one-way feedback", 12, 300, _ONE_WAY),
    "hopping": Method("hop", 24, 300, simulate_hopping),
    "dropping": Method("hop and drop", 96, 400, _DROPPING),
    "crowding": Method("hop, drop and crowd", 100, 350, _CROWDING),
}

#: The ways of auditing of :func:`bound_map`, by name.
MAPPED_GAMES: dict[str, Callable[..., Counts]] = {
    "staying": simulate_dpsgd,
    "one-way": _ONE_WAY,
    "hopping": simulate_hopping,
}


def best_bounds(methods: Iterable[str] = tuple(METHODS), *, trials: int = 1000) -> pd.DataFrame:
    """The valid bound of each way of auditing that the book compares, a row for each method.

    Column ``bound`` is the mean of :func:`oralib.valid_lower_bound` over the audits, ``bound_se``
    its standard error, and ``steinke`` the mean of the paper's rule. ``above`` is the share of
    audits whose bound exceeds ``certified``, the ε by a PLD accountant. ``ceiling`` is the mean
    bound of the best guesser of n isolated elements, which sees all steps and chooses its own
    number of guesses.
    """
    rows = []
    for name in tqdm(methods, disable=None, leave=False):
        method = METHODS[name]
        dpsgd = DpSgd.calibrated(EPSILON, DELTA, n=method.per_coordinate * D, d=D)
        counts = method.play(dpsgd, method.guesses, trials=trials, seed=0)
        means = summary(counts, BETA, DELTA)
        bounds = valid_lower_bound(counts, beta=BETA, delta=DELTA)
        isolated = replace(dpsgd, d=dpsgd.n)
        _, ceiling = best_guesses(isolated, "steps", Exact(), BETA, DELTA)
        certified = certified_epsilon(
            dpsgd.sigma, DELTA, dpsgd.steps, dpsgd.sample_rate, accountant="pld"
        )
        rows.append(
            {
                "method": name,
                "words": method.description,
                "n": dpsgd.n,
                "k": method.guesses,
                "feedback": counts.feedback,
                "rule": valid_rule(counts, DELTA).name,
                # Here ``bound`` is the valid bound; in a summary it is that of the paper's rule.
                "bound": means["valid"],
                "bound_se": means["valid_se"],
                "steinke": means["bound"],
                "steinke_se": means["bound_se"],
                "estimation": means["estimation"],
                "efficacy": means["efficacy"],
                "ceiling": ceiling,
                "certified": certified,
                "above": float((bounds > certified).mean()),
                "trials": counts.trials,
            }
        )
    return pd.DataFrame(rows)


def bound_map(
    ratios: Iterable[float] = (1, 2, 4, 8, 16, 32, 64),
    guesses: Iterable[int] = (50, 100, 200, 400, 800),
    *,
    epsilons: Iterable[float] = (1.0, 2.0, 4.0, 8.0),
    methods: Iterable[str] = ("staying", "one-way", "hopping"),
    trials: int = 20,
) -> pd.DataFrame:
    """The mean valid bound over n/d (column ``x``) and k, for several ε and ways of auditing.

    Canaries stay and the guesser looks at sums; they stay and it looks at all steps, with one-way
    feedback; or they hop, and none is dropped. Columns are those of
    :func:`orabook.experiments.summaries.summary`: ``valid`` is the mean valid bound, and ``bound``
    the mean bound by the paper's rule, which :func:`best_bounds` has in column ``steinke``.
    """
    rows = []
    grid = list(product(epsilons, elements_of(ratios, D), methods, guesses))
    for epsilon, n, method, k in tqdm(grid, disable=None, leave=False):
        dpsgd = DpSgd.calibrated(epsilon, DELTA, n=n, d=D)
        counts = MAPPED_GAMES[method](dpsgd, k, trials=trials, seed=0)
        point = {"epsilon": epsilon, "method": method, "x": n / D, "n": n, "k": k}
        rows.append({**point, **summary(counts, BETA, DELTA)})
    return pd.DataFrame(rows)

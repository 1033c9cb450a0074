"""The ladder of improvements: from an audit of DP-SGD in the paper to ours."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pandas as pd

from orabook.experiments.grids import with_bar
from orabook.experiments.summaries import summary
from oralib import DpSgd, Dropping, simulate_dpsgd, simulate_hopping
from oralib.bounds import Counts, Exact, Rule, Steinke
from oralib.dpsgd import simulate_likelihood

__all__ = ["CROWDED", "Rung", "improvement_ladder"]

#: Our best schedule in the paper's setting, for 100,000 elements, without crowding and with it.
DROPPED = Dropping(final=2, until=0.9, bend=1.65)
CROWDED = Dropping(final=2, until=0.9, bend=1.65, crowding=(3, 20))


class Rung(NamedTuple):
    """An audit of the ladder, and its change from the audit before."""

    change: str
    n: int
    k: int
    sees: str
    places: str
    rule: Rule
    play: Callable[..., Counts]


_ALL_STEPS = partial(simulate_likelihood, sees="steps")
_DROPPING = partial(simulate_hopping, dropping=DROPPED)
_CROWDING = partial(simulate_hopping, dropping=CROWDED)

RUNGS = (
    Rung("as in the paper", 8000, 100, "sum", "stay", Steinke(), simulate_dpsgd),
    Rung("350 guesses", 8000, 350, "sum", "stay", Steinke(), simulate_dpsgd),
    Rung("exact bound", 8000, 350, "sum", "stay", Exact(), simulate_dpsgd),
    Rung("all steps", 8000, 350, "all steps", "stay", Exact(), _ALL_STEPS),
    Rung("hopping", 8000, 350, "all steps", "hop", Exact(), simulate_hopping),
    Rung("24,000 canaries", 24_000, 350, "all steps", "hop", Exact(), simulate_hopping),
    Rung("dropping", 24_000, 350, "all steps", "hop, drop", Exact(), _DROPPING),
    Rung("100,000 canaries", 100_000, 350, "all steps", "hop, drop", Exact(), _DROPPING),
    Rung("crowding", 100_000, 350, "all steps", "hop, drop, crowd", Exact(), _CROWDING),
)


def improvement_ladder(*, trials: int = 200, seed: int = 0) -> pd.DataFrame:
    """Change an audit of DP-SGD at (2, 1e-5) from that in the paper to ours, step by step.

    The training is the paper's throughout: 1000 coordinates, 100 steps, sample rate 0.1. So is the
    access: the auditor sets the gradients of its elements, and sees the noisy gradient of every
    step. Up to ``"all steps"`` only the analysis changes, not the audited run. From ``"hopping"``
    on, the elements' gradients and then their number change. Dropping and crowding pay off only
    with many elements, so that number is raised twice.

    There is a row for each ``change``, and earlier changes stay. There are ``n`` elements and ``k``
    guesses, fixed in advance. The guesser ``sees`` the sum of all steps, or each of them. Over
    ``trials`` audits, ``steinke`` is the mean bound by the p-value of Steinke, Nasr and Jagielski,
    and ``bound`` by that or the exact one, as ``rule`` says. Rows that differ only
    in the rule share their audits. Columns that end in ``_se`` are standard errors.

    Parameters
    ----------
    trials, seed : int
        The number of audits of each row, and the seed of their random numbers.

    Examples
    --------
    >>> ladder = improvement_ladder(trials=2)
    >>> ladder[["change", "n", "k", "places", "rule"]].iloc[[0, -1]]
                change       n    k            places                    rule
    0  as in the paper    8000  100              stay  Steinke et al.'s bound
    8         crowding  100000  350  hop, drop, crowd             exact bound
    """
    rows = []
    for rung in with_bar(list(RUNGS)):
        dpsgd = DpSgd.calibrated(2.0, 1e-5, n=rung.n)
        counts = rung.play(dpsgd, rung.k, trials=trials, seed=seed)
        means = summary(counts, 0.05, 1e-5)
        column = "valid" if rung.rule == Exact() else "bound"
        rows.append(
            {
                "change": rung.change,
                "n": rung.n,
                "k": rung.k,
                "sees": rung.sees,
                "places": rung.places,
                "rule": rung.rule.name,
                "bound": means[column],
                "bound_se": means[f"{column}_se"],
                "steinke": means["bound"],
                "steinke_se": means["bound_se"],
                "trials": counts.trials,
            }
        )
    return pd.DataFrame(rows)

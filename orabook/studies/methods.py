"""The ways of auditing DP-SGD in one run that this book compares, each with its choices made.

The choices (how many canaries, where, how many guesses) were made with different random numbers
from those that judge them: the schedules with :func:`oralib.dpsgd.prediction.predicted_accuracy`,
which uses none, and the others in pilot audits with seeds 1, 7, 11 and 100. The tables have seed 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from orabook.experiments import CROWDED
from oralib.bounds import Counts
from oralib.dpsgd import Dropping, simulate_dpsgd, simulate_hopping, simulate_likelihood


@dataclass(frozen=True)
class Method:
    """A way of auditing DP-SGD, for ε = 2 and δ = 1e-5 in the paper's main setting.

    The number of guesses is fixed in advance; ``play(dpsgd, k, trials=..., seed=...)`` is the game.
    """

    words: str
    per_coordinate: int
    guesses: int
    play: Callable[..., Counts]


_STEPS = partial(simulate_likelihood, sees="steps")
_DROPPING = partial(simulate_hopping, dropping=Dropping(final=3, until=0.8))
_CROWDING = partial(simulate_hopping, dropping=CROWDED)

#: The ways that the book compares, by name.
METHODS = {
    "paper": Method("stay, sums, as in the paper", 8, 100, simulate_dpsgd),
    "sum": Method("stay, sums, more guesses", 8, 300, simulate_dpsgd),
    "steps": Method("stay, all steps", 6, 200, _STEPS),
    "one-way": Method(
        "stay, all steps, one-way feedback", 12, 300, partial(_STEPS, feedback="one-way")
    ),
    "hopping": Method("hop", 24, 300, simulate_hopping),
    "dropping": Method("hop and drop", 96, 400, _DROPPING),
    "crowding": Method("hop, drop and crowd", 100, 350, _CROWDING),
}

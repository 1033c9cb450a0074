"""Guesses as they were planned, and what follows from the plan alone.

The right guesses that refute a statement, and powers, depend on what was fixed before scores were
seen. So they are kept for all audits with the same plan.
"""

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from oralib import Counts, Training, TrainingTest
from oralib.bounds.refuting import right_needed
from oraudit.canaries.guesses import POWER_SHARES
from oraudit.canaries.law import GuessSide, law_of_right

__all__ = ["Plan", "needed_for_claim", "needed_for_training", "powers", "training_test"]

#: Where the output decides the number of guesses, tests are made for this number of them.
EXPECTED = 60


@dataclass(frozen=True)
class Plan:
    """The guesses of an audit, without how many of them are right.

    Attributes
    ----------
    n
        The number of canaries with a coin.
    guesses
        The number of guesses.
    fixed
        Whether the number of guesses was fixed before; if not, the output may have decided it.
    side
        ``"in"`` if all guesses say "included", for independent coins.
    coins
        ``"independent"`` or ``"balanced"``.
    r_in
        The number of guesses that say "included", for balanced coins.
    """

    n: int
    guesses: int
    fixed: bool = True
    side: GuessSide = "both"
    coins: Literal["independent", "balanced"] = "independent"
    r_in: int | None = None

    def counts(self, right: int) -> Counts:
        """Return the counts if this number of guesses is right."""
        return Counts(
            right,
            self.guesses,
            n=self.n,
            r_fixed=self.fixed,
            side=self.side,
            coins=self.coins,
            r_in=self.r_in,
        )


@lru_cache(maxsize=256)
def needed_for_claim(plan: Plan, epsilon: float, delta: float, beta: float) -> int | None:
    """Return the least number of right guesses that refutes (ε, δ); None if even all do not."""
    return right_needed(plan.counts(0), epsilon, delta=delta, beta=beta)


@lru_cache(maxsize=256)
def training_test(training: tuple[Training, ...], plan: Plan, beta: float) -> TrainingTest:
    """Return the test of a stated training at its best ε' for this plan."""
    if plan.fixed:
        return TrainingTest(
            training,
            n=plan.n,
            guesses=plan.guesses,
            beta=beta,
            side=plan.side,
            coins=plan.coins,
            r_in=plan.r_in,
        )
    expected = min(EXPECTED, plan.n)
    return TrainingTest(training, n=plan.n, beta=beta, side=plan.side, expected=expected)


@lru_cache(maxsize=256)
def needed_for_training(training: tuple[Training, ...], plan: Plan, beta: float) -> int | None:
    """Return the least number of right guesses that refutes a training; None if even all do not."""
    test = training_test(training, plan, beta)
    if plan.fixed:
        return test.needed

    def refutes(right: int) -> bool:
        return test.p_value(plan.counts(right)) <= beta

    if not refutes(plan.guesses):
        return None
    return bisect_left(range(plan.guesses + 1), True, key=refutes)


@lru_cache(maxsize=256)
def powers(
    training: tuple[Training, ...], n: int, guesses: int, side: GuessSide, need: int
) -> tuple[tuple[float, float], ...]:
    """Return the probability of ``need`` right guesses, by shares of the stated noise."""
    laws = {
        share: law_of_right(training, n, guesses, share=share, side=side) for share in POWER_SHARES
    }
    return tuple((share, law.at_least(need)) for share, law in laws.items())

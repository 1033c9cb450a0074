"""The set-up of an audit with canaries: all that is fixed before scores are seen."""

from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from oralib import Training, valid_lower_bound, valid_p_value
from oralib.ground import arguments
from oraudit.canaries.counted import Bound, Counted, Origin, StatedTest
from oraudit.canaries.guesses import guesses_for_claim, guesses_for_training
from oraudit.canaries.law import GuessSide, Stated, stretches
from oraudit.canaries.plan import (
    Plan,
    needed_for_claim,
    needed_for_training,
    powers,
    training_test,
)

__all__ = ["AT_BEST", "DELTA", "Adjacency", "CoinKind", "Setup"]

#: Whether each canary had a coin of its own, or exactly half of them are included.
CoinKind: TypeAlias = Literal["independent", "balanced"]

#: Whether a claim is about adding or removing an example, or about replacing one by another.
Adjacency: TypeAlias = Literal["add-remove", "replace"]

#: The δ of the bound, where no (ε, δ) is claimed.
DELTA = 1e-5

#: The remark of a report on powers, if scores come from elsewhere.
AT_BEST = "powers at best: those of canaries with a weight each, whose scores know the noise"


@dataclass(frozen=True)
class Setup:
    """The set-up of an audit, checked when it is made.

    Attributes
    ----------
    training : Training, sequence of Training, (sigma, rate, steps), or None
        What was stated, to be tested.
    claim : (float, float) or None
        The claimed (ε, δ). It is tested if no training is stated.
    beta : float
        How often each of the two statements may fail, in (0, 1).
    delta : float
        The δ of the bound: that of the claim, if there is one.
    side : str
        ``"in"`` if all guesses say "included", on the highest scores, fixed before the audit.
        ``"both"``: of scores half the guesses say so, and the others "left out", on the lowest;
        of log-likelihood ratios those farthest from 0 are guessed, by their signs.
    coins : str or None
        ``"independent"`` fair coins; ``"balanced"`` if exactly half of the canaries, drawn at
        random, were included. None is independent, but exactly half of 40 canaries or more is then
        unusable.
    adjacency : str
        ``"replace"`` if the claim is about replacing an example by another. Then a row is a pair
        of which a coin included one; with balanced coins pairs are made, by lot.
    stretches : tuple of Training, or None
        The stated training in stretches, one for each noise and rate.
    """

    training: Stated | None = None
    claim: tuple[float, float] | None = None
    beta: float = 0.05
    delta: float = DELTA
    side: GuessSide = "both"
    coins: CoinKind | None = None
    adjacency: Adjacency = "add-remove"
    stretches: tuple[Training, ...] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        beta, delta = arguments.beta_and_delta(self.beta, self.delta)
        arguments.one_of("side", self.side, ("both", "in"))
        arguments.one_of("adjacency", self.adjacency, ("add-remove", "replace"))
        if self.coins is not None:
            arguments.one_of("coins", self.coins, ("independent", "balanced"))
        if self.training is not None:
            arguments.store(self, stretches=stretches(self.training))
            if self.adjacency == "replace":
                raise ValueError(
                    "training says nothing of adjacency='replace', as accountants are for adding "
                    "or removing an example; give claim=(epsilon, delta) instead"
                )
        if self.claim is not None:
            if isinstance(self.claim, str) or np.shape(self.claim) != (2,):
                raise TypeError(f"claim must be (epsilon, delta), got claim={self.claim!r}")
            epsilon = arguments.real("the epsilon of claim", self.claim[0], 0, interval="[)")
            delta = arguments.real("the delta of claim", self.claim[1], 0, 1)
            arguments.store(self, claim=(epsilon, delta))
        arguments.store(self, beta=beta, delta=delta)

    @property
    def balanced(self) -> bool:
        """True if exactly half of the canaries are included."""
        return self.coins == "balanced"

    @property
    def in_pairs(self) -> bool:
        """True if included canaries are to be matched with those left out."""
        return self.balanced and self.adjacency == "replace"

    # --------------------------------------------------------------------------- planned guesses

    def guesses_for_test(self, n: int) -> int | None:
        """Return the number of guesses for the test; None if nothing was stated."""
        if self.stretches is not None:
            return guesses_for_training(n, self.stretches, self.beta, self.side)
        if self.claim is not None:
            return guesses_for_claim(
                n, self.claim, beta=self.beta, side=self.side, balanced=self.balanced
            )
        return None

    def plan(self, n: int, guesses: int, *, fixed: bool = True, r_in: int | None = None) -> Plan:
        """Return the plan of guesses, of which ``r_in`` say "included", by default half."""
        if not self.balanced:
            return Plan(n, guesses, fixed, side=self.side)
        if r_in is None:
            r_in = guesses if self.side == "in" else (guesses + 1) // 2
        return Plan(n, guesses, fixed, coins="balanced", r_in=r_in)

    # ------------------------------------------------------------------------- the two statements

    def bound(self, plan: Plan, right: int) -> Bound:
        """Return the lower bound on ε if this number of guesses is right."""
        epsilon = valid_lower_bound(plan.counts(right), beta=self.beta, delta=self.delta)
        largest = valid_lower_bound(plan.counts(plan.guesses), beta=self.beta, delta=self.delta)
        return Bound(float(epsilon), self.delta, right, plan.guesses, float(largest))

    def test(self, plan: Plan, right: int) -> StatedTest | None:
        """Test the stated training, or else the claim; None if nothing was stated."""
        if self.stretches is not None:
            return self._test_of_training(self.stretches, plan, right)
        if self.claim is None:
            return None
        epsilon, delta = self.claim
        need = needed_for_claim(plan, epsilon, delta, self.beta)
        if need is None:
            return StatedTest(right, plan.guesses, None, None, None, False)
        counts = plan.counts(right)
        p_value = float(valid_p_value(counts, epsilon, delta=delta, beta=self.beta))
        return StatedTest(right, plan.guesses, need, epsilon, p_value, right >= need)

    def _test_of_training(
        self, training: tuple[Training, ...], plan: Plan, right: int
    ) -> StatedTest:
        """Test a training at the one ε' that is best for this number of guesses."""
        need = needed_for_training(training, plan, self.beta)
        if need is None:
            return StatedTest(right, plan.guesses, None, None, None, False)
        test = training_test(training, plan, self.beta)
        power: dict[float, float] = {}
        if plan.fixed:
            power = dict(powers(training, plan.n, plan.guesses, self.side, need))
        return StatedTest(
            right,
            plan.guesses,
            need,
            test.epsilon,
            test.p_value(plan.counts(right)),
            right >= need,
            power,
        )

    def counted(
        self,
        n: int,
        bound: Bound,
        test: StatedTest | None,
        *,
        origin: Origin = "scores",
        share_of_norm: float | None = None,
        sees: str = "",
    ) -> Counted:
        """Return both statements, with how the audit was set up."""
        if not sees and origin == "scores" and test is not None and test.power:
            sees = AT_BEST
        return Counted(
            n,
            self.beta,
            origin,
            bound,
            test,
            self.stretches,
            self.claim,
            self.side,
            self.coins or "independent",
            self.adjacency,
            share_of_norm,
            sees,
        )

    def of_pairs(self) -> "Setup":
        """Return the set-up of matched pairs, which have an independent coin each."""
        return replace(self, coins="independent")

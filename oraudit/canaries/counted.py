"""The two statements of one audit with canaries: on the stated training, and on ε.

These are two statements that are never mixed. Each fails with probability β at most, so one of the
two with up to 2β.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from oralib import Training

__all__ = ["FORMULA", "Bound", "Counted", "Origin", "StatedTest"]

#: The version of the formulas for the numbers of guesses: each report states it, because numbers of
#: guesses chosen after the scores were seen would prove nothing.
FORMULA = 1

#: Where the scores come from: ``"sum"`` if the audit made them from the noisy sums of the training,
#: which its canaries are in; ``"scores"`` if they were given by the user.
Origin = Literal["sum", "scores"]


@dataclass(frozen=True)
class StatedTest:
    """The test of the stated training, or of a claimed (ε, δ) where no training is stated.

    Attributes
    ----------
    right, guesses
        The number of right guesses, and of all.
    need
        The least number of right guesses that refutes what was stated; None if even all are too
        few.
    epsilon
        The ε' at which the claim is tested; None if ``need`` is.
    p_value
        The p-value at this ε'; None if ``need`` is.
    refuted
        Whether what was stated is refuted: at least ``need`` guesses are right.
    power
        For shares of the stated noise: the probability that such an audit refutes a training with
        only that share. Empty if it is not known, as of a black box.
    """

    right: int
    guesses: int
    need: int | None
    epsilon: float | None
    p_value: float | None
    refuted: bool
    power: Mapping[float, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Bound:
    """A lower bound on ε, which is no estimate.

    Attributes
    ----------
    epsilon
        With probability 1 - β at least, ε is not less.
    delta
        The δ of (ε, δ)-DP.
    right, guesses
        The number of right guesses, and of all.
    largest
        The bound if all guesses were right: a claim above it cannot be refuted.
    """

    epsilon: float
    delta: float
    right: int
    guesses: int
    largest: float


@dataclass(frozen=True)
class Counted:
    """The two statements of one audit, with how it was set up.

    Attributes
    ----------
    canaries
        How many canaries had a coin.
    beta
        How often each of the two statements may fail.
    origin
        Where the scores come from: ``"sum"`` if they were made from the noisy sums, ``"scores"`` if
        they were given by the user.
    bound
        The lower bound on ε.
    test
        The test of what was stated; None if nothing was.
    training
        The stated training, in stretches; None if it was not given.
    claim
        The claimed (ε, δ); None if there is none.
    side
        ``"both"``, or ``"in"`` if all guesses say "included", fixed before.
    coins
        ``"independent"`` fair coins, or ``"balanced"``: exactly half are included.
    adjacency
        ``"add-remove"`` of one example, or ``"replace"`` by another.
    share_of_norm
        The size of the canaries as a share of the noise of a step, both as norms:
        sqrt(expected number of canaries in a step) / (norm of the noise). None if the scores were
        not made from noisy sums.
    sees
        How the scores were made, in words.
    formula
        The version of the formulas for the numbers of guesses.
    file
        The file that the scores come from; empty if they come from none.
    digest
        The SHA-256 of this file.
    """

    canaries: int
    beta: float
    origin: Origin
    bound: Bound
    test: StatedTest | None = None
    training: tuple[Training, ...] | None = None
    claim: tuple[float, float] | None = None
    side: Literal["both", "in"] = "both"
    coins: Literal["independent", "balanced"] = "independent"
    adjacency: Literal["add-remove", "replace"] = "add-remove"
    share_of_norm: float | None = None
    sees: str = ""
    formula: int = FORMULA
    file: str = ""
    digest: str = ""

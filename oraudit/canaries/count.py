"""From scores, guesses or counts of one audit to its two statements.

All that could be chosen is fixed by a formula before scores are seen: how many canaries are guessed
(:mod:`oraudit.canaries.guesses`), and the ε' at which the stated training is tested
(:class:`oralib.TrainingTest`). Ties are broken by lots that do not depend on scores or coins.

Evidence that proves nothing is :class:`Unusable`: coins that can hardly have been fair, scores with
the wrong sign, canaries that are listed twice.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from oralib import Counts, Training, TrainingTest, valid_lower_bound, valid_p_value
from oralib.bounds.refuting import right_needed
from oralib.ground import arguments
from oralib.ground.streams import stream
from oraudit.canaries.counted import Bound, Counted, Origin, StatedTest
from oraudit.canaries.guesses import (
    POWER_SHARES,
    guesses_for_bound,
    guesses_for_claim,
    guesses_for_training,
)
from oraudit.canaries.law import Said, Stated, law_of_right, stretches
from oraudit.scores.columns import (
    Unusable,
    are_listed_twice,
    guesses_and_coins,
    scores_and_coins,
)

__all__ = ["DELTA", "Unusable", "judge_guesses", "judge_right", "judge_scores"]

Bits: TypeAlias = NDArray[np.bool_]
Reals: TypeAlias = NDArray[np.float64]
Coins: TypeAlias = Literal["independent", "balanced"]
Adjacency: TypeAlias = Literal["add-remove", "replace"]

#: The δ of the bound, where no (ε, δ) is claimed.
DELTA = 1e-5
#: Coins that are more uneven than fair ones with this probability, and guesses that are worse than
#: blind ones with this probability, are unusable.
UNFAIR = 1e-3
#: From so many canaries on, exactly half included must be explained: it happens with probability
#: 0.8 / √n to fair coins.
BALANCED = 40
#: What is known of powers if scores come from elsewhere.
AT_BEST = "powers at best: those of canaries with a weight each, whose scores know the noise"
#: Where the output decides the number of guesses, tests and bounds are made for so many.
_EXPECTED = 60


def judge_scores(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    training: Stated | None = None,
    claim: tuple[float, float] | None = None,
    beta: float = 0.05,
    delta: float = DELTA,
    side: Said = "both",
    coins: Coins | None = None,
    adjacency: Adjacency = "add-remove",
    origin: Origin = "scores",
    share_of_norm: float | None = None,
    sees: str = "",
) -> Counted:
    """What the scores of canaries say of the stated training, and of ε.

    Parameters
    ----------
    scores : array
        A number for each canary, high if it seems to have been included.
    included : array
        The coins: True or False, 1 or 0, or 1 or -1.
    training : Training, sequence of Training, or (sigma, rate, steps)
        What was stated, to be tested.
    claim : (float, float) or None
        The claimed (ε, δ). It is tested if no training is stated.
    beta : float
        How often each of the two statements may fail, in (0, 1).
    delta : float
        The δ of the bound, if no claim has one.
    side : str
        ``"in"`` if all guesses say "included", on the highest scores, fixed before the audit.
        ``"both"``: of scores half the guesses say so, and the others "left out", on the lowest;
        of log-likelihood ratios those farthest from 0 are guessed, by their signs.
    coins : str or None
        ``"independent"`` fair coins; ``"balanced"`` if exactly half of the canaries, drawn at
        random, were included. Without a word they are independent, and exactly half of 40 canaries
        or more is then unusable.
    adjacency : str
        ``"replace"`` if the claim is about replacing an example by another. Then a row is a pair
        of which a coin included one; with balanced coins the pairs are made here, by lot.
    origin : str
        ``"sum"`` if scores are log-likelihood ratios of canaries in the sum of the training.
    share_of_norm, sees
        As in :class:`Counted`.
    """
    values, bits = scores_and_coins(scores, included)
    arguments.one_of("origin", origin, ("sum", "scores"))
    setup = _Setup.of(training, claim, beta, delta, side, coins, adjacency)
    ours = origin == "sum"
    _check_coins(bits, coins, ours)
    if not ours and are_listed_twice(values, bits):
        raise Unusable(
            "no score occurs only once, and equal scores have equal coins: each canary seems to be "
            "listed twice; list each once"
        )
    counting = setup
    farthest = ours and side == "both"
    if setup.coins == "balanced" and adjacency == "replace":
        values, bits = _matched_pairs(values, bits)
        counting = replace(setup, coins="independent")  # one for each pair, given the pairs
        farthest = side == "both"
    elif farthest and setup.coins == "balanced":
        raise ValueError(
            "coins='balanced' needs a fixed number of guesses 'in', got origin='sum' and "
            "side='both', where signs of scores decide it"
        )
    n = bits.size
    right = _right_guesses(values, bits, side, farthest)
    for_bound, for_test = guesses_for_bound(n), counting.guesses_for_test(n)
    if not ours:
        most = max(for_bound, for_test or 0)
        _check_sign(int(right[most - 1]), most, "scores must be high for included canaries")
    bound = counting.bound(counting.counts(int(right[for_bound - 1]), for_bound, n))
    test = None
    if for_test is not None:
        test = counting.test(counting.counts(int(right[for_test - 1]), for_test, n))
    return setup.counted(n, origin, bound, test, share_of_norm=share_of_norm, sees=sees)


def judge_guesses(
    guesses: ArrayLike,
    truth: ArrayLike,
    *,
    planned: int | None = None,
    training: Stated | None = None,
    claim: tuple[float, float] | None = None,
    beta: float = 0.05,
    side: Said = "both",
    coins: Coins | None = None,
    adjacency: Adjacency = "add-remove",
) -> Counted:
    """What guesses that somebody has made say; nan, or 0 beside 1 and -1, is no guess.

    ``planned`` is the number of guesses that was fixed before the audit, of which missing ones
    count as wrong; without it the output may have decided it, and the bound allows for that.
    """
    right, taken, bits = guesses_and_coins(guesses, truth)
    said = taken & (right == bits)
    setup = _Setup.of(training, claim, beta, DELTA, side, coins, adjacency)
    setup.check_no_pairs()
    _check_coins(bits, coins, False)
    made, n = int(taken.sum()), bits.size
    number = made
    if planned is not None:
        number = arguments.integer("planned", planned, made, n)
    if side == "in" and (taken != said).any():
        raise ValueError("guesses must all say 'included' with side='in', got one that does not")
    if setup.coins == "balanced" and planned != made:
        raise ValueError(
            "coins='balanced' needs a number of guesses that was fixed, and none missing, got "
            f"planned={planned} and {made} guesses"
        )
    v = int(right.sum())
    _check_sign(v, made, "a guess of 1 must mean included")
    counts = setup.counts(v, number, n, fixed=planned is not None, r_in=int(said.sum()))
    return setup.counted(n, "scores", setup.bound(counts), setup.test(counts))


def judge_right(
    right: int,
    guesses: int,
    canaries: int,
    *,
    training: Stated | None = None,
    claim: tuple[float, float] | None = None,
    beta: float = 0.05,
    side: Said = "both",
    coins: Coins | None = None,
    adjacency: Adjacency = "add-remove",
) -> Counted:
    """What counts alone say; the number of guesses was fixed before, and missing ones are wrong."""
    n = arguments.integer("canaries", canaries, 1)
    number = arguments.integer("guesses", guesses, 1, n)
    v = arguments.integer("right", right, 0, number)
    setup = _Setup.of(training, claim, beta, DELTA, side, coins, adjacency)
    setup.check_no_pairs()
    counts = setup.counts(v, number, n)
    return setup.counted(n, "scores", setup.bound(counts), setup.test(counts))


@dataclass(frozen=True)
class _Setup:
    """What was fixed before the audit; the attributes are those of :class:`Counted`."""

    training: tuple[Training, ...] | None
    claim: tuple[float, float] | None
    beta: float
    delta: float
    side: Said
    coins: Coins
    adjacency: Adjacency

    @staticmethod
    def of(
        training: Stated | None,
        claim: tuple[float, float] | None,
        beta: float,
        delta: float,
        side: Said,
        coins: Coins | None,
        adjacency: Adjacency,
    ) -> "_Setup":
        """The same, checked."""
        beta, delta = arguments.beta_and_delta(beta, delta)
        arguments.one_of("side", side, ("both", "in"))
        arguments.one_of("adjacency", adjacency, ("add-remove", "replace"))
        if coins is not None:
            arguments.one_of("coins", coins, ("independent", "balanced"))
        if training is not None:
            training = stretches(training)
            if adjacency == "replace":
                raise ValueError(
                    "training says nothing of adjacency='replace', as accountants are for adding "
                    "or removing an example; give claim=(epsilon, delta) instead"
                )
        if claim is not None:
            if isinstance(claim, str) or np.shape(claim) != (2,):
                raise TypeError(f"claim must be (epsilon, delta), got claim={claim!r}")
            epsilon = arguments.real("the epsilon of claim", claim[0], 0, interval="[)")
            delta = arguments.real("the delta of claim", claim[1], 0, 1)
            claim = epsilon, delta
        return _Setup(training, claim, beta, delta, side, coins or "independent", adjacency)

    def check_no_pairs(self) -> None:
        """Pairs cannot be made of balanced coins after guesses are there."""
        if self.coins == "balanced" and self.adjacency == "replace":
            raise ValueError(
                "adjacency='replace' needs scores where coins are balanced, to make pairs of them, "
                "got guesses or counts with coins='balanced'"
            )

    def guesses_for_test(self, n: int) -> int | None:
        """The number of guesses for the test; None if nothing was stated."""
        if self.training is not None:
            return guesses_for_training(n, self.training, self.beta, self.side)
        if self.claim is not None:
            balanced = self.coins == "balanced"
            how = {"beta": self.beta, "side": self.side, "balanced": balanced}
            return guesses_for_claim(n, self.claim, **how)
        return None

    def counts(
        self, right: int, guesses: int, n: int, *, fixed: bool = True, r_in: int | None = None
    ) -> Counts:
        """Counts with how the audit was set up; ``r_in`` guesses say "in", by default half."""
        if self.coins == "independent":
            return Counts(right, guesses, n=n, r_fixed=fixed, side=self.side)
        if r_in is None:
            r_in = guesses if self.side == "in" else (guesses + 1) // 2
        return Counts(right, guesses, n=n, r_fixed=fixed, coins="balanced", r_in=r_in)

    def bound(self, counts: Counts) -> Bound:
        """The lower bound on ε."""
        all_right = replace(counts, v=counts.r)
        epsilon, largest = (
            float(valid_lower_bound(each, beta=self.beta, delta=self.delta))
            for each in (counts, all_right)
        )
        return Bound(epsilon, self.delta, counts.v, counts.r, largest)

    def test(self, counts: Counts) -> StatedTest | None:
        """The test of the stated training, or else of the claim; None if nothing was stated."""
        if self.training is not None:
            return self._test_of_training(self.training, counts)
        if self.claim is None:
            return None
        epsilon, delta = self.claim
        need = _needed_for_claim(*_setup_of(counts), epsilon, delta, self.beta)
        if need is None:
            return StatedTest(counts.v, counts.r, None, None, None, False)
        p_value = float(valid_p_value(counts, epsilon, delta=delta, beta=self.beta))
        return StatedTest(counts.v, counts.r, need, epsilon, p_value, counts.v >= need)

    def _test_of_training(self, training: tuple[Training, ...], counts: Counts) -> StatedTest:
        """The test at the one ε' that is best for this number of guesses."""
        setup = training, *_setup_of(counts), self.beta
        test = _training_test(*setup)
        need = _needed_for_training(*setup)
        if need is None:
            return StatedTest(counts.v, counts.r, None, None, None, False)
        p_value = test.p_value(counts)
        power: dict[float, float] = {}
        if counts.r_fixed:
            power = dict(_powers(training, counts.n, counts.r, self.side, need))
        refuted = counts.v >= need
        return StatedTest(counts.v, counts.r, need, test.epsilon, p_value, refuted, power)

    def counted(
        self,
        n: int,
        origin: Origin,
        bound: Bound,
        test: StatedTest | None,
        *,
        share_of_norm: float | None = None,
        sees: str = "",
    ) -> Counted:
        """Both statements, with how the audit was set up."""
        if not sees and origin == "scores" and test is not None and test.power:
            sees = AT_BEST
        return Counted(
            n,
            self.beta,
            origin,
            bound,
            test,
            self.training,
            self.claim,
            self.side,
            self.coins,
            self.adjacency,
            share_of_norm,
            sees,
        )


# ------------------------------------------------- right guesses that are needed, and powers
# They depend on what was fixed before the audit alone, so that many audits share them.

#: n, guesses, whether their number was fixed, side, coins, and how many say "in".
_Fixed: TypeAlias = tuple[int, int, bool, Any, Any, int | None]


def _setup_of(counts: Counts) -> _Fixed:
    return counts.n, counts.r, counts.r_fixed, counts.side, counts.coins, counts.r_in


def _counts(v: int, n: int, r: int, fixed: bool, side: Any, coins: Any, r_in: int | None) -> Counts:
    return Counts(v, r, n=n, r_fixed=fixed, side=side, coins=coins, r_in=r_in)


@lru_cache(maxsize=256)
def _needed_for_claim(
    n: int,
    r: int,
    fixed: bool,
    side: Any,
    coins: Any,
    r_in: int | None,
    epsilon: float,
    delta: float,
    beta: float,
) -> int | None:
    counts = _counts(0, n, r, fixed, side, coins, r_in)
    return right_needed(counts, epsilon, delta=delta, beta=beta)


@lru_cache(maxsize=256)
def _training_test(
    training: tuple[Training, ...],
    n: int,
    r: int,
    fixed: bool,
    side: Any,
    coins: Any,
    r_in: int | None,
    beta: float,
) -> TrainingTest:
    """The test; if the output decided the number of guesses, it is made for 60 of them."""
    if not fixed:
        return TrainingTest(training, n=n, beta=beta, side=side, expected=min(_EXPECTED, n))
    how = {"side": side, "coins": coins, "r_in": r_in}
    return TrainingTest(training, n=n, guesses=r, beta=beta, **how)


@lru_cache(maxsize=256)
def _needed_for_training(
    training: tuple[Training, ...],
    n: int,
    r: int,
    fixed: bool,
    side: Any,
    coins: Any,
    r_in: int | None,
    beta: float,
) -> int | None:
    """The least number of right guesses that refutes the training; None if even all do not."""
    setup = n, r, fixed, side, coins, r_in
    test = _training_test(training, *setup, beta)
    if fixed:
        return test.needed

    def refutes(v: int) -> bool:
        return test.p_value(_counts(v, *setup)) <= beta

    return bisect_left(range(r + 1), True, key=refutes) if refutes(r) else None


@lru_cache(maxsize=256)
def _powers(
    training: tuple[Training, ...], n: int, r: int, side: Said, need: int
) -> tuple[tuple[float, float], ...]:
    """How often so many guesses are right, by the share of the stated noise."""
    laws = [(share, law_of_right(training, n, r, share=share, side=side)) for share in POWER_SHARES]
    return tuple((share, law.at_least(need)) for share, law in laws)


# ------------------------------------------------------------------------------------- guesses


def _right_guesses(values: Reals, bits: Bits, side: Said, farthest: bool) -> NDArray[np.int64]:
    """For k = 1, 2, ... how many of the first k guesses are right; ties are broken by lots."""
    n = values.size
    lots = stream(0, "canaries", "lots").permutation(n)
    if farthest:
        order = lots[np.argsort(-np.abs(values[lots]), kind="stable")]
        signs = np.where(values[order] == 0, np.arange(n) % 2 - 0.5, values[order])  # 0 is a tie
        return np.cumsum(bits[order] == (signs > 0))
    down = lots[np.argsort(-values[lots], kind="stable")]
    if side == "in":
        return np.cumsum(bits[down])
    right = np.empty(n, dtype=bool)  # the highest is guessed, the lowest, the second highest, ...
    right[0::2] = bits[down[: (n + 1) // 2]]
    right[1::2] = ~bits[down[::-1][: n // 2]]
    return np.cumsum(right)


def _matched_pairs(values: Reals, bits: Bits) -> tuple[Reals, Bits]:
    """Match each included canary by lot with one that was left out.

    A pair is put in an order by lot. Its score is the first one's minus the second one's, and its
    coin says whether the first was included: given the pairs, a fair coin for each.
    """
    draw = stream(0, "canaries", "pairs")
    left_out = draw.permutation(np.flatnonzero(~bits))
    included = np.flatnonzero(bits)
    first = draw.random(included.size) < 0.5
    return np.where(first, 1, -1) * (values[included] - values[left_out]), first


# -------------------------------------------------------------------------------------- checks


def _check_coins(bits: Bits, coins: Coins | None, ours: bool) -> None:
    """Coins that are hardly fair, or balanced without a word, are unusable, but not our own."""
    n, included = bits.size, int(bits.sum())
    half = 2 * included == n
    if coins == "balanced":
        if not half:
            raise Unusable(
                "coins='balanced' needs exactly half of the canaries included, got "
                f"{included:,} of {n:,}"
            )
        return
    p_value = min(1.0, 2 * float(scipy.special.bdtr(min(included, n - included), n, 0.5)))
    if p_value < UNFAIR and not ours:
        raise Unusable(
            f"{included:,} of {n:,} canaries were included: fair coins are this odd with "
            f"probability only {p_value:.1g}; if canaries were not each included by their own "
            "fair coin, or some are missing here, nothing has been shown"
        )
    if half and n >= BALANCED and coins is None and not ours:
        raise Unusable(
            f"exactly half of {n:,} canaries were included: say coins='balanced' if that was "
            "arranged, or coins='independent' if each had a fair coin and they happened to balance"
        )


def _check_sign(right: int, guesses: int, hint: str) -> None:
    """Guesses that are worse than blind ones hardly are have the wrong sign."""
    p_value = float(scipy.special.bdtr(right, guesses, 0.5))
    if p_value < UNFAIR:
        raise Unusable(
            f"{hint}: only {right} of {guesses} guesses are right, and blind ones do this badly "
            f"with probability {p_value:.1g} (trying both signs on the same canaries makes a "
            "statement fail twice as often: then halve beta)"
        )

"""Evidence that proves nothing, whatever its counts are: coins or signs that are hardly right."""

import numpy as np
import scipy
from numpy.typing import NDArray

from oraudit.canaries.columns import Unusable
from oraudit.canaries.setup import CoinKind

__all__ = ["check_coins", "check_sign_of_guesses", "check_sign_of_scores"]

#: Coins that are as uneven as fair ones with a smaller probability are unusable, and guesses that
#: are as bad as blind ones with a smaller probability.
UNFAIR = 1e-3

#: From this number of canaries on, exactly half included must be explained: fair coins balance
#: with probability 0.8 / √n.
BALANCED = 40


def check_coins(bits: NDArray[np.bool_], coins: CoinKind | None, *, trusted: bool) -> None:
    """Refuse coins that are hardly fair, or balanced without a word.

    Coins are ``trusted`` if the audit has tossed them itself.
    """
    n = bits.size
    included = int(bits.sum())
    half = 2 * included == n
    if coins == "balanced":
        if not half:
            raise Unusable(
                "coins='balanced' needs exactly half of the canaries included, got "
                f"{included:,} of {n:,}"
            )
        return
    if trusted:
        return
    p_value = min(1.0, 2 * float(scipy.special.bdtr(min(included, n - included), n, 0.5)))
    if p_value < UNFAIR:
        raise Unusable(
            f"{included:,} of {n:,} canaries were included: fair coins are this odd with "
            f"probability only {p_value:.1g}; if canaries were not each included by their own "
            "fair coin, or some are missing here, nothing has been shown"
        )
    if half and n >= BALANCED and coins is None:
        raise Unusable(
            f"exactly half of {n:,} canaries were included: say coins='balanced' if that was "
            "arranged, or coins='independent' if each had a fair coin and they happened to balance"
        )


def check_sign_of_scores(right: int, guesses: int) -> None:
    """Refuse scores by which guesses are worse than blind ones hardly ever are."""
    p_value = float(scipy.special.bdtr(right, guesses, 0.5))
    if p_value < UNFAIR:
        raise Unusable(
            f"scores must be high for included canaries: only {right} of {guesses} guesses are "
            f"right, and blind ones do this badly with probability {p_value:.1g} (trying both "
            "signs on the same canaries makes a statement fail twice as often: then halve beta)"
        )


def check_sign_of_guesses(right: int, guesses: int) -> None:
    """Refuse guesses that are worse than blind ones hardly ever are."""
    p_value = float(scipy.special.bdtr(right, guesses, 0.5))
    if p_value < UNFAIR:
        raise Unusable(
            f"a guess of 1 must mean included: only {right} of {guesses} guesses are right, and "
            f"blind ones do this badly with probability {p_value:.1g} (trying both signs on the "
            "same canaries makes a statement fail twice as often: then halve beta)"
        )

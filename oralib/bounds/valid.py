"""Which bound is valid for an audit: it follows from how the audit was set up, not from its counts.

===================  ==================  ===========================  =============================
feedback             number of guesses   ε-DP (δ = 0)                 (ε, δ)-DP
===================  ==================  ===========================  =============================
none, one-way, list  fixed in advance    ε'(v, r)                     the exact p-value of (v, r)
none, one-way        set by the output   ε'(v, r)                     the split p-value of (v, r)
full                 fixed in advance    ε'(v, r)                     the p-value for any order
full, list           set by the output   the anytime bound of (v, r)  the same, lowered for δ
all others           any                 none: it is not valid        none: it is not valid
===================  ==================  ===========================  =============================

Suppose that a guesser with full feedback goes through a list that was settled before its first
guess, skipping elements as it likes. It loses nothing if the number of its guesses is fixed; if the
number is open, a list is no protection, since the guesser may stop while it is ahead. If it also
chooses as it goes which element comes next, the p-value is larger; whether that is necessary is not
known. If it is free to stop, the anytime bound is lowered for δ: it is that of (v - ℓ + 1, r) with
β - n δ / (2 ℓ) in place of β. This is valid for every ℓ >= 1 that is fixed before the audit. We
take the least ℓ >= m + min(√m, 2), with m = n δ / (2 β): a smaller one than m leaves
nothing of β.
"""

from bisect import bisect_left
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from oralib import _check
from oralib._binomial import pmf, tail
from oralib.bounds import approximate
from oralib.bounds._arguments import flat_counts
from oralib.bounds.anytime import anytime_bounds

__all__ = ["Counts", "split_for", "valid_lower_bound", "valid_rule"]

#: What a guesser may be told as it goes, as :class:`Counts` explains.
FEEDBACKS = ("none", "one-way", "list", "full", "all others")

PURE, EXACT, ANY_ORDER, SPLIT = "pure", "exact", "any order", "split"
#: The last one is the anytime bound, lowered for δ.
ANYTIME, LOWERED = "anytime", "anytime lowered"


@dataclass(frozen=True, eq=False)
class Counts:
    """The outcome of independent trials of an audit, and how the audit was set up.

    Attributes
    ----------
    v, r : array
        How many guesses were right, and how many were taken, one entry per trial.
    n : int
        The number of elements, guessed or not, or of rounds of a classic audit.
    game : str
        What was played.
    r_fixed : bool
        Whether the number of guesses was fixed before the audit: no more are taken, and missing
        ones count as wrong. It says how the audit was set up: r is not fixed just because it
        happens to be the same in all trials.
    feedback : str
        What the guesser was told as it went: ``"none"``, ``"one-way"`` (the signs of elements that
        it abstained on), ``"full"`` (the signs of all elements it has dealt with), ``"list"`` (the
        same, but the elements and their order were settled before the first guess) or ``"all
        others"`` (for each guess, all signs except its own).
    coins : str
        How the elements were chosen: ``"independent"`` fair coins, as in all games here, or
        ``"balanced"``, exactly half of them included. Balanced coins depend on each other, and no
        bound here is valid for them.

    Examples
    --------
    Your own counts: 75 right of 100 guesses, a number chosen before the training.

    >>> counts = Counts(75, 100, n=1000, r_fixed=True)
    >>> valid_lower_bound(counts, delta=1e-4).round(3).tolist()
    [0.695]
    """

    v: NDArray[np.int64]
    r: NDArray[np.int64]
    n: int
    game: str = "counts"
    r_fixed: bool = False
    feedback: str = "none"
    coins: str = "independent"

    def __post_init__(self) -> None:
        n = _check.integer("n", self.n, 0)
        shape, (v, r, _) = flat_counts(self.v, self.r, n=np.asarray(n))
        if len(shape) > 1:
            raise ValueError(f"v and r must have one entry per trial, got shape {shape}")
        r_fixed = _check.truth("r_fixed", self.r_fixed)
        if r_fixed and v.size and (r != r[0]).any():
            raise ValueError(
                "r must be the same in all trials if it was fixed in advance, "
                f"got r={r[0]} and r={r[r != r[0]][0]}"
            )
        feedback = _check.one_of("feedback", self.feedback, FEEDBACKS)
        _check.one_of("coins", self.coins, ("independent", "balanced"))
        _check.store(self, v=v, r=r, n=n, r_fixed=r_fixed, feedback=feedback)

    @property
    def trials(self) -> int:
        """The number of trials."""
        return len(self.v)

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """v / r for each trial; nan where no guess was taken."""
        with np.errstate(invalid="ignore"):
            return self.v / self.r

    @property
    def unsafe(self) -> bool:
        """Whether r may depend on which guesses were right, or a guess on all other coins.

        Then ``epsilon_lower_bound(v, r)`` is not a valid bound, not even for δ = 0.
        """
        saw_successes = self.feedback in ("full", "list")
        return self.feedback == "all others" or (saw_successes and not self.r_fixed)


def valid_rule(counts: Counts, delta: float = 0.0) -> str:
    """The rule whose bound is proved for an audit that was set up like this one.

    - ``"pure"`` for δ = 0, :func:`oralib.epsilon_lower_bound`;
    - ``"exact"`` for δ > 0 and r fixed in advance, the same with ``method="exact"``;
    - ``"any order"`` for the same with full feedback on no list, with ``method="any order"``;
    - ``"split"`` for δ > 0 if the output decided r, :func:`oralib.epsilon_lower_bound_random_r`;
    - ``"anytime"`` for δ = 0 if a guesser that was told its successes decided r,
      :func:`oralib.epsilon_lower_bound_anytime`;
    - ``"anytime lowered"`` for the same and δ > 0, with fewer right guesses and a smaller β.

    It raises a ValueError where the library has none.

    Examples
    --------
    >>> valid_rule(Counts(75, 100, n=1000), delta=1e-5)
    'split'
    >>> valid_rule(Counts(75, 100, n=1000, feedback="full"), delta=1e-5)
    'anytime lowered'
    """
    _check.instance("counts", counts, Counts, "Counts(75, 100, n=1000)")
    delta = _check.real("delta", delta, 0, 1)
    if counts.coins != "independent":
        raise ValueError(
            "none of our bounds is valid unless each element was chosen by a fair coin of its own, "
            f"got coins={counts.coins!r}"
        )
    if counts.feedback == "all others":
        raise ValueError(
            "no bound is valid for a guesser who knows all other elements, "
            f"got counts of the game {counts.game!r}"
        )
    if counts.feedback in ("full", "list") and not counts.r_fixed:
        return LOWERED if delta > 0 else ANYTIME
    if delta == 0:
        return PURE
    if not counts.r_fixed:
        return SPLIT
    return ANY_ORDER if counts.feedback == "full" else EXACT


def valid_lower_bound(
    counts: Counts, *, beta: float = 0.05, delta: float = 0.0, split: float | None = None
) -> NDArray[np.float64]:
    """For each trial, a lower bound on ε that is valid for the way the audit was set up.

    With probability 1 - β it does not exceed the ε of an (ε, δ)-DP mechanism. Where the library has
    no such bound, it raises a ValueError that says so.

    Parameters
    ----------
    counts : Counts
        The outcome of a game, or your own ``Counts(v, r, n, r_fixed=..., feedback=...)``.
    beta : float
        How often the bound may fail, in (0, 1).
    delta : float
        The δ of (ε, δ)-DP, in [0, 1].
    split : float, optional
        The share of β that is set aside for δ > 0 if r was not fixed in advance; choose it before
        the audit, or leave it to :func:`split_for`.

    See Also
    --------
    valid_rule : the rule that is used.

    Examples
    --------
    >>> from oralib import LocalLaplace, ThresholdGuesser, one_run
    >>> counts = one_run(LocalLaplace(2.0), ThresholdGuesser(2.0), 1000, seed=1)
    >>> bool(valid_lower_bound(counts)[0] < 2.0)
    True
    """
    beta, delta = _check.beta_and_delta(beta, delta)
    if split is not None:
        split = _check.real("split", split, 0, 1, interval="()")
    rule = valid_rule(counts, delta)
    v, r, n = counts.v, counts.r, counts.n
    if rule in (ANYTIME, LOWERED):
        window = anytime_window(n, delta, beta)
        level = beta - n * delta / (2 * window)
        return anytime_bounds(np.maximum(v - window + 1, 0), r, np.full(v.size, level))
    if rule == SPLIT and split is None:
        split = _planned_share(n, delta, beta, None)
    number = approximate.EXACT if rule == PURE else approximate.P_VALUES.index(rule)
    each = np.full(v.size, beta), np.full(v.size, n * delta)
    return approximate.lower_bounds(v, r, *each, number, split or 0.0)


def split_for(n: int, delta: float, beta: float = 0.05, guesses: int | None = None) -> float:
    """A share λ of β to set aside for δ, from what is known before the audit.

    A count is rejected only if its B, as in :func:`oralib.p_value`, is at least n δ / (λ β). If the
    share is too small, nothing is rejected; a larger one leaves the other test less of β,
    about (1 - λ) β. The share is n δ / (β B), where B belongs to the least count that rejects ε = 0
    (or to all right, if none does), for half the expected guesses, since there may be fewer of
    them. It is at least 0.1, which costs little, and at most 0.8.

    Parameters
    ----------
    n : int
        The number of elements, guessed or not.
    delta : float
        The δ of (ε, δ)-DP, in [0, 1].
    beta : float
        How often the bound may fail, in (0, 1).
    guesses : int, optional
        How many guesses are expected, from a simulation or a pilot run, never from the audit
        itself. If unknown, the share is that for 60 guesses, and at most 0.6.

    Examples
    --------
    >>> round(split_for(20_000, 1e-5), 3)
    0.353
    >>> round(split_for(20_000, 1e-5, guesses=400), 3)
    0.13
    """
    n, (beta, delta) = _check.integer("n", n, 0), _check.beta_and_delta(beta, delta)
    if guesses is not None:
        guesses = _check.integer("guesses", guesses, 1)
        _check.at_most("guesses", np.asarray(guesses), "n", np.asarray(n))
    return _planned_share(n, delta, beta, guesses)


def _planned_share(n: int, delta: float, beta: float, guesses: int | None) -> float:
    expected, most = (min(60, n), 0.6) if guesses is None else (guesses, 0.8)
    r = max(1, expected // 2)
    rejects = bisect_left(range(1, r), True, key=lambda v: tail(v, r, 0.5, 0.5) <= beta) + 1
    b = rejects * pmf(rejects, r, 0.5, 0.5) / tail(rejects, r, 0.5, 0.5)
    return float(min(most, max(0.1, n * delta / (beta * b))))


def anytime_window(n: int, delta: float, beta: float) -> int:
    """ℓ of the lowered anytime bound, from what is known before the audit."""
    least = n * delta / (2 * beta)
    return max(1, ceil(min(least + min(sqrt(least), 2), n + 1)))

"""Audits of a training from scores, guesses or counts of its canaries alone.

The report says what the counts show, and that nothing else was looked at. Evidence that cannot
prove anything raises :class:`oraudit.canaries.count.Unusable`.
"""

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from oraudit.canaries.count import judge_guesses, judge_right, judge_scores
from oraudit.canaries.law import GuessSide, Stated
from oraudit.canaries.setup import Adjacency, CoinKind, Setup

if TYPE_CHECKING:
    from oraudit.report import Result

__all__ = ["audit_counts", "audit_guesses", "audit_scores"]


def audit_scores(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    training: Stated | None = None,
    claim: tuple[float, float] | None = None,
    beta: float = 0.05,
    side: GuessSide = "both",
    coins: CoinKind | None = None,
    adjacency: Adjacency = "add-remove",
) -> "Result":
    """Audit a training by the scores of its canaries.

    The number of guesses depends on the number of canaries and on what is stated, not on scores.

    Parameters
    ----------
    scores : array
        A number for each canary, high if it seems to have been included (minus a loss, say).
    included : array
        The coins: True or False, 1 or 0, or 1 or -1.
    training : Training, sequence of Training, or (sigma, rate, steps)
        What was stated, to be tested: the noise multiplier, the rate of Poisson-sampled batches and
        the number of steps, of each stretch of the training.
    claim : (float, float) or None
        The claimed (ε, δ); it is tested if no training is stated, which can refute far less. The
        bound is for its δ, or else for 1e-5.
    beta : float
        How often each of the two statements may fail, in (0, 1).
    side : str
        ``"both"``: half the guesses, on the highest scores, say "included", and the others, on the
        lowest, "left out"; ``"in"``: all say "included", fixed before the audit.
    coins : str or None
        ``"independent"`` fair coins, or ``"balanced"``: exactly half of the canaries, drawn at
        random, were included. By default coins count as independent; then 40 canaries or more of
        which exactly half were included are refused.
    adjacency : str
        The change that the claim is about: ``"add-remove"`` an example, or ``"replace"`` it by
        another. For ``"replace"`` each row is a pair of examples, one of which a coin included; or
        coins are balanced, and pairs are made here.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> included = rng.random(1000) < 0.5
    >>> scores = rng.normal(size=1000) + 0.5 * included
    >>> audit_scores(scores, included, training=(2.4224, 0.1, 100)).status
    'passed'
    """
    from oraudit.report import judge_counts

    setup = Setup(
        training=training, claim=claim, beta=beta, side=side, coins=coins, adjacency=adjacency
    )
    return judge_counts(judge_scores(scores, included, setup))


def audit_guesses(
    guesses: ArrayLike,
    truth: ArrayLike,
    *,
    planned: int | None = None,
    training: Stated | None = None,
    claim: tuple[float, float] | None = None,
    beta: float = 0.05,
    side: GuessSide = "both",
    coins: CoinKind | None = None,
    adjacency: Adjacency = "add-remove",
) -> "Result":
    """Audit a training by guesses that somebody has made.

    Parameters
    ----------
    guesses : array
        A guess for each canary: True or 1 for included, False or 0 for left out, nan for no guess.
        If ``truth`` is written as 1 and -1, then 1, -1, and 0 or nan for no guess.
    truth : array
        The coins of all canaries, guessed or not.
    planned : int or None
        The number of guesses, if it was fixed before the audit; missing ones count as wrong.
        Without it the output may have decided the number, and what is said allows for that.
    training, claim, beta, side, coins, adjacency
        As in :func:`audit_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.random.default_rng(1).random(100) < 0.5
    >>> audit_guesses(truth, truth, planned=100, claim=(2.0, 1e-5)).status
    'failed'
    """
    from oraudit.report import judge_counts

    setup = Setup(
        training=training, claim=claim, beta=beta, side=side, coins=coins, adjacency=adjacency
    )
    return judge_counts(judge_guesses(guesses, truth, setup, planned=planned))


def audit_counts(
    right: int,
    guesses: int,
    canaries: int,
    *,
    training: Stated | None = None,
    claim: tuple[float, float] | None = None,
    beta: float = 0.05,
    side: GuessSide = "both",
    coins: CoinKind | None = None,
    adjacency: Adjacency = "add-remove",
) -> "Result":
    """Audit a training by its counts alone; less can be checked.

    Parameters
    ----------
    right, guesses, canaries : int
        The number of right guesses; the number of guesses, fixed before the audit; and the number
        of canaries with a coin.
    training, claim, beta, side, coins, adjacency
        As in :func:`audit_scores`; with balanced coins half of the guesses said "included", rounded
        up, or all with ``side="in"``.

    Examples
    --------
    >>> result = audit_counts(129, 158, 1000, training=(2.4224, 0.1, 100))
    >>> result.status, round(result.counts.bound.epsilon, 2)
    ('failed', 1.14)
    """
    from oraudit.report import judge_counts

    setup = Setup(
        training=training, claim=claim, beta=beta, side=side, coins=coins, adjacency=adjacency
    )
    return judge_counts(judge_right(right, guesses, canaries, setup))

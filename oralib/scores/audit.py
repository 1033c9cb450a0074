"""From scores, guesses or counts of one training to a bound on ε."""

from collections.abc import Sequence
from math import nan
from typing import Any
from warnings import warn

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oralib import _check
from oralib._streams import stream
from oralib.bounds import (
    Counts,
    epsilon_estimate,
    epsilon_lower_bound,
    epsilon_lower_bound_fdp,
    epsilon_lower_bound_random_r,
    split_for,
    valid_lower_bound,
    valid_rule,
)
from oralib.scores.columns import (
    Bits,
    Ints,
    Reals,
    bits_of,
    check_ids,
    check_one,
    levels,
    right_and_taken,
    scores_and_coins,
)
from oralib.scores.result import UNFAIR, ScoreAudit, best_bound

#: If exactly half of this many canaries are included, the audit assumes a design that is not
#: covered. Fair coins balance with probability about 0.8 / √n: for fewer canaries that is ordinary.
BALANCED = 40

#: Without a claim, the canaries that are set aside never choose fewer guesses than this: a handful
#: could show next to nothing, while 50, all right, show 2.78.
LEAST_GUESSES = 50

#: The default share of the canaries on which the number of guesses is chosen.
DEFAULT_SPLIT = 0.2

#: This many numbers of guesses are tried on the canaries that are set aside, or drawn.
_TRIED = 100


def audit_scores(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    delta: float,
    beta: float = 0.05,
    guesses: int | None = None,
    split: float | None = None,
    grid: Sequence[int] | None = None,
    side: str = "both",
    claim: float | None = None,
    coins: str | None = None,
    ids: Sequence[Any] | None = None,
    seed: int = 0,
) -> ScoreAudit:
    """Audit a training by the scores of its canaries.

    Only the order of the scores matters: those with the highest scores are guessed to have been
    included, those with the lowest to have been left out. Equal scores are ordered at random.

    The audit is not valid, and a warning says why, if the coins are too unlikely for fair ones, or
    if so few guesses are right that the scores must have the wrong sign (both by exact binomial
    tests at 0.001), or if exactly half of 40 or more canaries were included: fair coins do that
    with probability about 0.8 / √n, and a design that fixes the number always does.

    Parameters
    ----------
    scores : one number per canary, high if it seems to have been included (minus a loss, say).
    included : the coins, one per canary: True or False, 1 or 0, or 1 or -1.
    delta, beta : the δ of (ε, δ)-DP, in [0, 1], and how often the bound may fail, in (0, 1).
    guesses : the number of guesses, if it was fixed before scores were seen.
    split : the share of the canaries, drawn at random, on which the number of guesses is chosen;
        the others are audited. This is the default, with a share of 0.2.
    grid : several numbers of guesses, fixed before scores were seen. Each of m is tested at level
        β / m, and the largest bound is returned.
    side : ``"both"``; ``"included"``: no canary is guessed to have been left out; or
        ``"farthest"``: those with scores farthest from 0 are guessed, as included where the score
        is positive, as suits log-likelihood ratios.
    claim : the claimed ε, if a split should choose a number of guesses that could refute it.
    coins : ``"independent"`` says that the coins balanced by chance; ``"balanced"``, exactly half
        of them included, is an error, since no bound here is valid for that.
    ids : names of the canaries, to check that none occurs twice.
    seed : the seed of the split and of the order of equal scores. Do not choose it by the result.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> included = rng.random(2000) < 0.5
    >>> scores = rng.normal(size=2000) + 2.0 * included
    >>> audit = audit_scores(scores, included, delta=1e-5, guesses=300)
    >>> audit.v, audit.r, round(audit.bound, 3)
    (293, 300, 3.093)
    >>> round(audit_scores(scores, included, delta=1e-5, grid=(100, 200, 400)).bound, 3)
    3.224
    """
    values, bits = scores_and_coins(scores, included, side)
    n, seed = bits.size, _check.seed(seed)
    notes: list[str] = []
    delta, beta = levels(delta, beta)
    if claim is not None:
        claim = _check.real("claim", claim, 0)
    check_ids(ids, n)
    if sum(value is not None for value in (guesses, split, grid)) > 1:
        raise ValueError(f"give one of guesses, split and grid, got {guesses=}, {split=}, {grid=}")
    audited = np.arange(n)
    if guesses is not None:
        number, k = "fixed", np.array([_check.integer("guesses", guesses, 1, n)])
    elif grid is not None:
        number, k = "grid", np.unique(_check.integers("grid", grid, 1, n))
        if not k.size:
            raise ValueError(f"grid must hold numbers of guesses, got grid={grid!r}")
    else:
        share = _check.real("split", DEFAULT_SPLIT if split is None else split, 0, 1, interval="()")
        aside, audited = _parts(n, share, seed)
        pilot = _right(values[aside], bits[aside], side, seed)
        chosen, why = _best_number(pilot, audited.size, delta, beta, claim)
        number, k, notes = "split", np.array([chosen]), [why]
    right = _right(values[audited], bits[audited], side, seed)
    level, fixed = beta / k.size, number != "split"
    # The largest bound; among equal ones, the one with the best accuracy.
    r = int(k[np.lexsort((right[k - 1] / k, _exact_bounds(right, k, level, delta)))[-1]])
    v, tied = int(right[r - 1]), _ties_drawn(values[audited], r, side)
    if tied:
        notes.append(f"{tied} of the {r} guesses were drawn by lot among canaries of equal scores")
    best = max(best_bound(m, right.size, delta=delta, level=level, fixed=fixed) for m in k.tolist())
    more = {"level": level, "number": number, "grid": tuple(k.tolist()), "side": side}
    more |= {"ties_drawn": tied, "seed": seed, "best_bound": best}
    counts = _counts(v, r, audited.size, fixed, coins)
    problem = _problem(bits, coins, v, r, "scores")
    return _audit(counts, delta, beta, problem, bits, tuple(notes), **more)


def audit_guesses(
    guessed: ArrayLike,
    truth: ArrayLike,
    *,
    delta: float,
    beta: float = 0.05,
    guesses: int | None = None,
    coins: str | None = None,
    ids: Sequence[Any] | None = None,
) -> ScoreAudit:
    """Audit a training by guesses that somebody has made.

    Parameters
    ----------
    guessed : one guess per canary: True or 1 for included, False or 0 for excluded, nan for none.
        If ``truth`` is written as 1 and -1, then as 1, -1, and 0 or nan for none.
    truth : the coins of all canaries, guessed or not: True or False, 1 or 0, or 1 or -1.
    delta, beta, coins, ids : as in :func:`audit_scores`.
    guesses : the number of guesses, if it was fixed before the training; guesses that are missing
        count as wrong. If it is not given, the number is taken to depend on the output, and the
        bound allows for that.

    Examples
    --------
    >>> truth = [1, 0, 1, 1, 0, 0, 1, 0] * 50  # half of them, by chance
    >>> guessed = [1, 0, 1, np.nan, 0, 1, np.nan, 0] * 50
    >>> audit = audit_guesses(guessed, truth, delta=1e-5, guesses=300, coins="independent")
    >>> audit.v, audit.r, audit.n, round(audit.bound, 3)
    (250, 300, 400, 1.348)
    """
    bits = bits_of("truth", truth)
    delta, beta = levels(delta, beta)
    right, taken = right_and_taken(guessed, truth)
    check_ids(ids, bits.size)
    v, r = int(right.sum()), int(taken.sum())
    if guesses is None and r == 0:
        raise ValueError(f"guessed must hold a guess, got none for all of {bits.size} canaries")
    all_of_them = r if guesses is None else _check.integer("guesses", guesses, 1, bits.size)
    if r > all_of_them:
        raise ValueError(f"guesses must be at least {r}, as this many are given, got {guesses=}")
    said = f"{all_of_them - r} of the {guesses} guesses are missing, and count as wrong"
    fixed = guesses is not None
    counts = _counts(v, all_of_them, bits.size, fixed, coins)
    problem = _problem(bits, coins, v, r, "guesses")
    return _audit(counts, delta, beta, problem, bits, (said,) if r < all_of_them else ())


def audit_counts(counts: Counts, *, delta: float, beta: float = 0.05) -> ScoreAudit:
    """Audit a training by its counts alone; less can be checked.

    Parameters
    ----------
    counts : of one audit, with how it was set up, as ``Counts(75, 100, n=1000, r_fixed=True)``.
    delta, beta : as in :func:`audit_scores`.

    Examples
    --------
    >>> audit = audit_counts(Counts(75, 100, n=1000, r_fixed=True), delta=1e-5)
    >>> round(audit.bound, 3), round(audit.pure_bound, 3), round(audit.fdp_bound, 3)
    (0.702, 0.702, 1.006)
    """
    check_one(counts)
    return _audit(counts, *levels(delta, beta))


def bounds_by_guesses(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    delta: float,
    beta: float = 0.05,
    side: str = "both",
    seed: int = 0,
) -> tuple[Ints, Reals]:
    """Numbers of guesses, and the bound that each alone would have given; only to look at.

    Each would be valid if it alone had been fixed in advance. The largest of them is not a bound.
    As this uses all coins, no number of guesses may be chosen from it for the same audit.

    Examples
    --------
    >>> k, bounds = bounds_by_guesses([3.0, 1.0, 2.0, 0.0], [1, 0, 1, 0], delta=0.0, beta=0.3)
    >>> k.tolist(), bounds.round(2).tolist()
    ([1, 2, 3, 4], [0.0, 0.19, 0.71, 1.05])
    """
    values, bits = scores_and_coins(scores, included, side)
    delta, beta = levels(delta, beta)
    right = _right(values, bits, side, _check.seed(seed))
    k = _spread(bits.size)
    return k, _exact_bounds(right, k, beta, delta)


def bounds_by_beta(counts: Counts, *, delta: float) -> tuple[Reals, Reals]:
    """Values of β from 0.001 to 1/2, and the bound that each alone would have given; to look at.

    Each would be valid if it alone had been fixed in advance.

    Examples
    --------
    >>> beta, bounds = bounds_by_beta(Counts(75, 100, n=1000, r_fixed=True), delta=1e-5)
    >>> beta[[0, -1]].tolist(), bounds[[0, -1]].round(2).tolist()
    ([0.001, 0.5], [0.38, 1.07])
    """
    check_one(counts)
    delta = _check.real("delta", delta, 0, 1)
    beta = np.geomspace(1e-3, 0.5, _TRIED)
    beta[[0, -1]] = 1e-3, 0.5
    return beta, np.array([valid_lower_bound(counts, beta=b, delta=delta)[0] for b in beta])


# ---------------------------------------------------------------------------- from scores to counts


def _parts(n: int, share: float, seed: int) -> tuple[Ints, Ints]:
    """A random share of n canaries, and the others."""
    order = stream(seed, "scores", "split").permutation(n)
    aside = round(share * n)
    if not 0 < aside < n:
        raise ValueError(
            f"split must leave a canary on either side, got split={share:g} of {n} canaries"
        )
    return order[:aside], order[aside:]


def _right(values: Reals, bits: Bits, side: str, seed: int) -> Ints:
    """For k = 1, 2, ... how many of the first k guesses are right; ties are broken at random.

    With both sides: the highest is guessed, the lowest, the second highest, and so on.
    """
    n = values.size
    shuffled = stream(seed, "scores", "lots").permutation(n)
    down = shuffled[np.argsort(values[shuffled], kind="stable")][::-1]
    if side == "included":
        return np.cumsum(bits[down])
    if side == "farthest":
        down = shuffled[np.argsort(-np.abs(values[shuffled]), kind="stable")]
        signs = np.where(values[down] == 0, np.arange(n) % 2 - 0.5, values[down])  # 0 is a tie too
        return np.cumsum(bits[down] == (signs > 0))
    right = np.empty(n, dtype=bool)
    right[0::2], right[1::2] = bits[down[: (n + 1) // 2]], ~bits[down[::-1][: n // 2]]
    return np.cumsum(right)


def _ties_drawn(values: Reals, r: int, side: str) -> int:
    """How many of r guesses were drawn by lot: a canary with the same score was not so guessed."""
    n, up = values.size, np.sort(np.abs(values) if side == "farthest" else values)
    high = (r + 1) // 2 if side == "both" else r
    low, tied = r - high, 0
    if 0 < high < n and up[n - high] == up[n - high - 1]:
        tied += int((up[n - high :] == up[n - high]).sum())
    if 0 < low < n and up[low - 1] == up[low]:
        tied += int((up[:low] == up[low]).sum())
    return tied


def _exact_bounds(right: Ints, k: Ints, level: float, delta: float) -> Reals:
    """The bound for each number of guesses, each fixed in advance."""
    n, v = right.size, right[k - 1]
    return np.asarray(epsilon_lower_bound(v, k, beta=level, delta=delta, n=n, method="exact"))


def _best_number(
    right: Ints, n: int, delta: float, beta: float, claim: float | None
) -> tuple[int, str]:
    """The number of guesses among n canaries that looks best from a smaller sample, and why.

    The accuracy is taken to be a standard error lower than it was (Wilson's interval), so that a
    few lucky guesses do not win. With a claim, only numbers that could refute it are tried. This is
    a heuristic; the audit is valid whatever it says, as it does not know the n canaries.
    """
    k = _spread(right.size)
    accuracy = right[k - 1] / k
    spread = np.sqrt(accuracy * (1 - accuracy) / k + 0.25 / k**2)
    careful = (accuracy + 0.5 / k - spread) / (1 + 1 / k)
    taken = np.clip(np.rint(k * (n / right.size)).astype(np.int64), 1, n)

    def promised(v: Reals) -> Reals:
        share = split_for(n, delta, beta)
        how = {"beta": beta, "delta": delta, "n": n, "split": share}
        return np.asarray(epsilon_lower_bound_random_r(np.floor(v).astype(np.int64), taken, **how))

    few = taken < min(LEAST_GUESSES, n)
    why = f"fewer than {LEAST_GUESSES} were not considered" if few.any() else ""
    if claim is not None and (strong := promised(taken) > claim).any():
        few = ~strong
        why = f"so few that even all right could not refute ε = {claim:g} were left out"
    found = np.where(few, -1.0, promised(careful * taken))
    # Where nothing can be shown, the number whose guesses look least like coins.
    best = np.lexsort(((accuracy - 0.5) * np.sqrt(k), found))[-1]
    near = [
        f"{found[i]:.2f} with {taken[i]:,}"
        for factor in (0.5, 2)
        if found[i := np.abs(np.log(taken / taken[best] / factor)).argmin()] >= 0 and i != best
    ]
    said = f"on the {right.size} canaries set aside, {taken[best]:,} guesses looked best"
    promise = ", ".join([f"they promised {found[best]:.2f}", *near])
    return int(taken[best]), f"{said}: {promise}" + (f"; {why}" if why else "")


def _spread(n: int) -> Ints:
    """Numbers from 1 to n, evenly spaced in the logarithm."""
    return np.unique(np.rint(np.geomspace(1, n, _TRIED)).astype(np.int64))


# --------------------------------------------------------------------------------- from counts to ε


def _counts(v: int, r: int, n: int, fixed: bool, coins: str | None) -> Counts:
    coins = "independent" if coins is None else coins
    return Counts(np.array([v]), np.array([r]), n, "scores", r_fixed=fixed, coins=coins)


def _audit(
    counts: Counts,
    delta: float,
    beta: float,
    problem: str = "",
    bits: Bits | None = None,
    notes: tuple[str, ...] = (),
    **more: Any,
) -> ScoreAudit:
    """All bounds of one pair of counts, each test at ``level``."""
    rule, level = valid_rule(counts, delta), more.setdefault("level", beta)
    more.setdefault("number", "fixed" if counts.r_fixed else "output")
    v, r = int(counts.v[0]), int(counts.r[0])
    fdp = nan
    if counts.r_fixed and counts.feedback == "none" and delta > 0:
        fdp = epsilon_lower_bound_fdp(v, r, n=counts.n, delta=delta, beta=level)
    if bits is not None:
        included = int(bits.sum())
        p_value = _coins_p_value(included, bits.size)
        more |= {"canaries": bits.size, "included": included, "coins_p_value": p_value}
        if 2 * included == bits.size and not problem:
            said = "exactly half of the canaries were included, by chance and not by arrangement"
            notes = (said, *notes)
    if "best_bound" not in more:
        how: Any = {"fixed": counts.r_fixed, "feedback": counts.feedback}
        more["best_bound"] = best_bound(r, counts.n, delta=delta, level=level, **how)
    more |= {"v": v, "r": r, "n": counts.n, "delta": delta, "beta": beta, "rule": rule}
    audit = ScoreAudit(
        bound=float(valid_lower_bound(counts, beta=level, delta=delta)[0]),
        pure_bound=float(valid_lower_bound(counts, beta=level)[0]),
        fdp_bound=float(fdp),
        estimate=float(epsilon_estimate(v, r)),
        accuracy=v / r if r else nan,
        feedback=counts.feedback,
        problem=problem,
        notes=notes,
        **more,
    )
    if problem:
        warn(problem, stacklevel=3)
    return audit


def _coins_p_value(included: int, n: int) -> float:
    """The p-value of the exact two-sided test of fair coins."""
    return float(min(1.0, 2 * scipy.special.bdtr(min(included, n - included), n, 0.5)))


def _problem(bits: Bits, coins: str | None, v: int, taken: int, what: str) -> str:
    """Why an audit with v right guesses shows nothing; empty if it may show something."""
    n, included = bits.size, int(bits.sum())
    p_value = _coins_p_value(included, n)
    if p_value < UNFAIR:
        return (
            f"{included} of {n} canaries were included: fair coins are this odd with probability "
            f"only {p_value:.1g}. If canaries were not each included by their own fair coin, "
            "or if some canaries are missing here, nothing has been shown"
        )
    if 2 * included == n >= BALANCED and coins is None:
        return (
            f"exactly half of {n} canaries were included. If that was arranged, the coins depend "
            "on each other, and no bound here is valid. If each canary had a fair coin of its own, "
            "and they just happened to balance, say so: coins='independent', or --coins independent"
        )
    wrong = float(scipy.special.bdtr(v, taken, 0.5)) if taken else 1.0
    if wrong < UNFAIR:
        hint = {
            "scores": "higher scores must mean included: multiply them by -1?",
            "guesses": "a guess of 1 must mean included: are the guesses turned around?",
        }[what]
        return (
            f"{hint} Only {v} of {taken} guesses are right, and blind ones do this badly with "
            f"probability {wrong:.1g}. (Trying both signs on the same canaries makes the bound "
            "fail twice as often: then halve β)"
        )
    return ""

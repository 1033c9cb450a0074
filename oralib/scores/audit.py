"""From scores, guesses or counts of one training to a bound on ε."""

from collections import Counter
from collections.abc import Sequence
from math import inf, nan
from typing import Any, TypeAlias
from warnings import warn

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from oralib import _check
from oralib._streams import stream
from oralib.bounds import (
    Counts,
    GaussianCurve,
    SubsampledGaussianCurve,
    epsilon_estimate,
    epsilon_lower_bound,
    epsilon_lower_bound_fdp,
    epsilon_lower_bound_random_r,
    split_for,
    valid_lower_bound,
    valid_rule,
)
from oralib.scores.result import UNFAIR, ScoreAudit

Reals: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bits: TypeAlias = NDArray[np.bool_]
Curve = GaussianCurve | SubsampledGaussianCurve
GAUSSIAN = GaussianCurve()

SIDES = ("both", "included")

#: The share of the canaries on which the number of guesses is chosen if nothing else is said.
DEFAULT_SPLIT = 0.2

#: So many numbers of guesses are tried on the canaries that are set aside, or drawn.
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
    coins: str = "independent",
    curve: Curve = GAUSSIAN,
    ids: Sequence[Any] | None = None,
    seed: int = 0,
) -> ScoreAudit:
    """Audit a training by the scores of its canaries.

    Only the order of the scores matters: those with the highest scores are guessed to have been
    included, those with the lowest to have been left out. Equal scores are put in order by lot. If
    the coins are too odd for fair ones, by an exact binomial test, nothing has been shown, and a
    warning says so.

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
    side : ``"both"``, or ``"included"``: nobody is guessed to have been left out.
    coins : ``"independent"``; ``"balanced"``, just half of them included, is an error, since no
        bound here is valid for that.
    curve : the family of trade-off curves for ``fdp_bound``.
    ids : names of the canaries, if it should be checked that none occurs twice.
    seed : of the split, and of the order of equal scores. Do not choose it by what comes out.

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
    values, bits = _scores_and_coins(scores, included)
    n = bits.size
    delta, beta = _levels(delta, beta)
    side = _check.one_of("side", side, SIDES)
    seed = _check.seed(seed)
    _check_ids(ids, n)
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
        number, k = "split", np.array([_best_number(pilot, audited.size, delta, beta)])
    right = _right(values[audited], bits[audited], side, seed)
    level = beta / k.size
    # The largest bound; of equal ones that with the best accuracy.
    best = np.lexsort((right[k - 1] / k, _exact_bounds(right, k, level, delta)))[-1]
    r = int(k[best])
    fixed = number != "split"
    counts = _counts(int(right[r - 1]), r, audited.size, fixed, coins)
    lots = _lots(values[audited], r, side)
    said = f"{lots} of the {r} guesses were drawn by lot among canaries with equal scores"
    more = {"level": level, "number": number, "grid": tuple(k.tolist()), "side": side}
    notes = (said,) if lots else ()
    return _audit(counts, delta, beta, curve, bits, notes, lots=lots, seed=seed, **more)


def audit_guesses(
    guessed: ArrayLike,
    truth: ArrayLike,
    *,
    delta: float,
    beta: float = 0.05,
    guesses: int | None = None,
    coins: str = "independent",
    curve: Curve = GAUSSIAN,
    ids: Sequence[Any] | None = None,
) -> ScoreAudit:
    """Audit a training by guesses that somebody has made.

    Parameters
    ----------
    guessed : one guess per canary: True or 1 for included, False or 0 for excluded, nan for none.
        If ``truth`` is written as 1 and -1, then as 1, -1, and 0 or nan for none.
    truth : the coins of all canaries, guessed or not: True or False, 1 or 0, or 1 or -1.
    delta, beta, coins, curve, ids : as in :func:`audit_scores`.
    guesses : the number of guesses, if it was fixed before the training; guesses that are missing
        count as wrong. If it is not given, the number was left to the output, and the bound is one
        that allows for that.

    Examples
    --------
    >>> truth = [1, 0, 1, 1, 0, 0, 1, 0] * 50
    >>> guessed = [1, 0, 1, np.nan, 0, 1, np.nan, 0] * 50
    >>> audit = audit_guesses(guessed, truth, delta=1e-5, guesses=300)
    >>> audit.v, audit.r, audit.n, round(audit.bound, 3)
    (250, 300, 400, 1.348)
    """
    bits = _bits("truth", truth)
    delta, beta = _levels(delta, beta)
    right, taken = _right_and_taken(guessed, truth)
    _check_ids(ids, bits.size)
    v, r = int(right.sum()), int(taken.sum())
    if guesses is None and r == 0:
        raise ValueError(f"guessed must hold a guess, got none for all of {bits.size} canaries")
    all_of_them = r if guesses is None else _check.integer("guesses", guesses, 1, bits.size)
    if r > all_of_them:
        raise ValueError(f"guesses must be at least {r}, as so many are given, got {guesses=}")
    said = f"{all_of_them - r} of the {guesses} guesses are missing, and count as wrong"
    fixed = guesses is not None
    counts = _counts(v, all_of_them, bits.size, fixed, coins)
    return _audit(counts, delta, beta, curve, bits, (said,) if r < all_of_them else ())


def audit_counts(
    counts: Counts, *, delta: float, beta: float = 0.05, curve: Curve = GAUSSIAN
) -> ScoreAudit:
    """Audit a training by its counts, from which less can be checked.

    Parameters
    ----------
    counts : of one audit, with how it was set up, as ``Counts(75, 100, n=1000, r_fixed=True)``.
    delta, beta, curve : as in :func:`audit_scores`.

    Examples
    --------
    >>> audit = audit_counts(Counts(75, 100, n=1000, r_fixed=True), delta=1e-5)
    >>> round(audit.bound, 3), round(audit.pure_bound, 3), round(audit.fdp_bound, 3)
    (0.702, 0.702, 1.006)
    """
    _check_one(counts)
    return _audit(counts, *_levels(delta, beta), curve)


def bounds_by_guesses(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    delta: float,
    beta: float = 0.05,
    side: str = "both",
    seed: int = 0,
) -> tuple[Ints, Reals]:
    """Numbers of guesses, and the bound that each alone would have had; only to look at.

    Each would be valid had it been the one that was fixed in advance. The largest of them is no
    bound. As it uses all coins, no number of guesses may be chosen from it for the same audit.

    Examples
    --------
    >>> k, bounds = bounds_by_guesses([3.0, 1.0, 2.0, 0.0], [1, 0, 1, 0], delta=0.0, beta=0.3)
    >>> k.tolist(), bounds.round(2).tolist()
    ([1, 2, 3, 4], [0.0, 0.19, 0.71, 1.05])
    """
    values, bits = _scores_and_coins(scores, included)
    delta, beta = _levels(delta, beta)
    right = _right(values, bits, _check.one_of("side", side, SIDES), _check.seed(seed))
    k = _spread(bits.size)
    return k, _exact_bounds(right, k, beta, delta)


def bounds_by_beta(counts: Counts, *, delta: float) -> tuple[Reals, Reals]:
    """Values of β from 0.001 to 1/2, and the bound that each alone would have had; to look at.

    Each would be valid had it been the one that was fixed in advance.

    Examples
    --------
    >>> beta, bounds = bounds_by_beta(Counts(75, 100, n=1000, r_fixed=True), delta=1e-5)
    >>> beta[[0, -1]].tolist(), bounds[[0, -1]].round(2).tolist()
    ([0.001, 0.5], [0.38, 1.07])
    """
    _check_one(counts)
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
    """For k = 1, 2, ... how many of the first k guesses are right; equal scores are put by lot.

    With both sides: the highest is guessed, the lowest, the second highest, and so on.
    """
    n = values.size
    shuffled = stream(seed, "scores", "lots").permutation(n)
    down = shuffled[np.argsort(values[shuffled], kind="stable")][::-1]
    if side == "included":
        return np.cumsum(bits[down])
    right = np.empty(n, dtype=bool)
    right[0::2], right[1::2] = bits[down[: (n + 1) // 2]], ~bits[down[::-1][: n // 2]]
    return np.cumsum(right)


def _lots(values: Reals, r: int, side: str) -> int:
    """How many of r guesses were drawn by lot: their score is also that of one not so guessed."""
    n, up = values.size, np.sort(values)
    high = r if side == "included" else (r + 1) // 2
    low, lots = r - high, 0
    if 0 < high < n and up[n - high] == up[n - high - 1]:
        lots += int((up[n - high :] == up[n - high]).sum())
    if 0 < low < n and up[low - 1] == up[low]:
        lots += int((up[:low] == up[low]).sum())
    return lots


def _exact_bounds(right: Ints, k: Ints, level: float, delta: float) -> Reals:
    """The bound of each of some numbers of guesses that were fixed in advance."""
    n, v = right.size, right[k - 1]
    return np.asarray(epsilon_lower_bound(v, k, beta=level, delta=delta, n=n, method="exact"))


def _best_number(right: Ints, n: int, delta: float, beta: float) -> int:
    """The number of guesses among n canaries that looks best from a smaller sample of them.

    The accuracy is taken to be a standard error less than it was (Wilson's interval), so that a few
    lucky guesses do not win. This is a heuristic; the audit is valid whatever it says.
    """
    k = _spread(right.size)
    accuracy = right[k - 1] / k
    spread = np.sqrt(accuracy * (1 - accuracy) / k + 0.25 / k**2)
    careful = (accuracy + 0.5 / k - spread) / (1 + 1 / k)
    taken = np.clip(np.rint(k * (n / right.size)).astype(np.int64), 1, n)
    v, share = np.floor(careful * taken).astype(np.int64), split_for(n, delta, beta)
    found = epsilon_lower_bound_random_r(v, taken, beta=beta, delta=delta, n=n, split=share)
    # Where nothing can be shown, that which is least like coins.
    return int(taken[np.lexsort(((accuracy - 0.5) * np.sqrt(k), found))[-1]])


def _spread(n: int) -> Ints:
    """Numbers from 1 to n, as dense in the logarithm everywhere."""
    return np.unique(np.rint(np.geomspace(1, n, _TRIED)).astype(np.int64))


# --------------------------------------------------------------------------------- from counts to ε


def _counts(v: int, r: int, n: int, fixed: bool, coins: str) -> Counts:
    return Counts(np.array([v]), np.array([r]), n, "scores", r_fixed=fixed, coins=coins)


def _audit(
    counts: Counts,
    delta: float,
    beta: float,
    curve: Curve,
    bits: Bits | None = None,
    notes: tuple[str, ...] = (),
    **more: Any,
) -> ScoreAudit:
    """All bounds of one pair of counts, each test at ``level``."""
    rule, level = valid_rule(counts, delta), more.setdefault("level", beta)
    more.setdefault("number", "fixed" if counts.r_fixed else "output")
    v, r = int(counts.v[0]), int(counts.r[0])
    if not isinstance(curve, Curve):
        raise TypeError(f"curve must be like GaussianCurve(), got curve={curve!r}")
    fdp = nan
    if counts.r_fixed and counts.feedback == "none" and delta > 0:
        fdp = epsilon_lower_bound_fdp(v, r, n=counts.n, delta=delta, beta=level, curve=curve)
    if bits is not None:
        p_value, about_coins = _coins(bits)
        notes = about_coins + notes
        more |= {"canaries": bits.size, "included": int(bits.sum()), "coins_p_value": p_value}
    more |= {"v": v, "r": r, "n": counts.n, "delta": delta, "beta": beta, "rule": rule}
    audit = ScoreAudit(
        bound=float(valid_lower_bound(counts, beta=level, delta=delta)[0]),
        pure_bound=float(valid_lower_bound(counts, beta=level)[0]),
        fdp_bound=float(fdp),
        estimate=float(epsilon_estimate(v, r)),
        accuracy=v / r if r else nan,
        curve=repr(curve),
        feedback=counts.feedback,
        notes=notes,
        **more,
    )
    if not audit.plausible_coins:
        warn(audit.notes[0], stacklevel=3)
    return audit


def _coins(bits: Bits) -> tuple[float, tuple[str, ...]]:
    """The p-value of the exact two-sided test of fair coins, and what is odd about them."""
    n, included = bits.size, int(bits.sum())
    p_value = float(min(1.0, 2 * scipy.special.bdtr(min(included, n - included), n, 0.5)))
    if p_value < UNFAIR:
        return p_value, (
            f"{included} of {n} canaries were included: fair coins are so odd with probability "
            f"{p_value:.1g} only. If each canary was not included by a fair coin of its own, "
            "or if some canaries are missing here, nothing has been shown",
        )
    if 2 * included == n:
        return p_value, (
            "exactly half of the canaries were included. If that was arranged, the coins depend on "
            "each other, and no bound here is valid",
        )
    return p_value, ()


# ------------------------------------------------------------------------------ checks of arguments


def _levels(delta: float, beta: float) -> tuple[float, float]:
    return _check.real("delta", delta, 0, 1), _check.real("beta", beta, 0, 1, interval="()")


def _column(name: str, value: ArrayLike) -> Reals:
    """One number per canary; truth values are 1 and 0, and what is missing is nan."""
    why = ""
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O":  # as columns of pandas and lists in which something is missing
            missing = ("NoneType", "NAType")
            array = np.array([nan if type(x).__name__ in missing else x for x in array.flat])
    except (ValueError, TypeError, RuntimeError) as error:  # lists of lists, or tensors
        array, why = np.asarray(None), _check.reason(value, error)
    if (
        array.dtype.kind not in "biuf"
        or array.ndim != 1
        or not array.size
        or np.ma.is_masked(value)
    ):
        raise TypeError(
            f"{name} must be a list of numbers or truth values, one per canary, "
            f"got {name}={_check.shown(value)}{why}"
        )
    return array.astype(np.float64)


def _bits(name: str, value: ArrayLike) -> Bits:
    """Coins as truth values; both of them must occur."""
    numbers = _column(name, value)
    low = -1 if (numbers == -1).any() else 0
    bits: Bits = numbers == 1
    allowed = "be 1 or -1, since there is a -1," if low else "be True or False, 1 or 0, or 1 or -1,"
    _check.require(bits | (numbers == low), name, numbers, f"{allowed} for each canary")
    if bits.all() or not bits.any():
        same = "included" if bits.all() else "left out"
        raise ValueError(
            f"{name} must have canaries of both kinds, got {bits.size} that were all {same}: "
            "there is nothing to tell apart"
        )
    return bits


def _scores_and_coins(scores: ArrayLike, included: ArrayLike) -> tuple[Reals, Bits]:
    values = _check.reals("scores", _column("scores", scores), -inf, inf, interval="()")
    bits = _bits("included", included)
    _check_places(scores=scores, included=included)
    if (values == values[0]).all():
        raise ValueError(
            "scores must differ: they say nothing about who was included, "
            f"got {bits.size} scores that are all {values[0]:g}"
        )
    return values, bits


def _right_and_taken(guessed: ArrayLike, truth: ArrayLike) -> tuple[Bits, Bits]:
    """Which guesses are right, and which were taken.

    With truth as 1 and 0, left out is 0; with truth as 1 and -1, it is -1, and 0 is no guess.
    """
    numbers, coins = _column("guessed", guessed), _column("truth", truth)
    _check_places(guessed=guessed, truth=truth)
    signs = bool((coins == -1).any())
    words = "be 1, -1, or 0 or nan" if signs else "be 1, 0, or nan"
    allowed = f"{words} for no guess, as truth is written"
    entries = guessed if isinstance(guessed, list | tuple) else np.asarray(guessed).flat
    if signs and any(isinstance(x, bool | np.bool_) for x in entries):  # is False no guess, or -1?
        raise ValueError(f"guessed must {allowed}, got True or False in guessed")
    taken = (numbers == 1) | (numbers == (-1 if signs else 0))
    _check.require(taken | np.isnan(numbers) | (numbers == 0), "guessed", numbers, allowed)
    return taken & ((numbers == 1) == (coins == 1)), taken


def _check_places(**columns: Any) -> None:
    """Two columns have one entry per canary, and in pandas no labels in another order.

    Canaries are matched by place alone, and so are columns whose labels have nothing in common.
    """
    (one, first), (two, second) = columns.items()
    if len(first) != len(second):
        raise ValueError(
            f"{one} and {two} must have one entry per canary, "
            f"got {len(first)} and {len(second)} entries"
        )
    a: Any = getattr(first, "index", None)
    b: Any = getattr(second, "index", None)
    if hasattr(a, "equals") and hasattr(b, "equals") and not (a.equals(b) or {*a}.isdisjoint(b)):
        raise ValueError(
            f"{one} and {two} must have the same index, "
            f"got {_check.shown(a)} and {_check.shown(b)}; "
            "canaries are matched by their places (to_numpy() gives columns without an index)"
        )


def _check_one(counts: Counts) -> None:
    _check.instance("counts", counts, Counts, "Counts(75, 100, n=1000)")
    if counts.trials != 1:
        raise ValueError(f"counts must be those of one audit, got {counts.trials} of them")


def _check_ids(ids: Sequence[Any] | None, n: int) -> None:
    if ids is None:
        return
    try:
        names = [None if x != x else x for x in np.asarray(list(ids)).tolist()]  # nan is not nan
        twice = [name for name, times in Counter(names).items() if times > 1]
    except (TypeError, ValueError, RuntimeError):  # no list, or of what is no word or number
        shown = _check.shown(ids)
        raise TypeError(f"ids must be a list of words or numbers, got ids={shown}") from None
    if len(names) != n:
        raise ValueError(f"ids must have one entry for each of {n} canaries, got {len(names)}")
    if twice:
        raise ValueError(f"ids must differ, as a canary has one coin, got {twice[0]!r} twice")

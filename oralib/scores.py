"""An audit of a training that has been run: scores or guesses of canaries in, bounds on ε out.

Each canary was included by a fair coin of its own, the training was run once, and somebody has
given each canary a score that is high if it seems to have been included. Some of the canaries are
guessed, by their scores alone; their coins say how many of the guesses are right. What that proves
depends on how the number of guesses came about:

=======================  =========================================  ==============================
number of guesses        what it is                                 bound for (ε, δ)-DP
=======================  =========================================  ==============================
``guesses=200``          fixed before scores were seen              the exact p-value at β
``grid=(50, 100, 200)``  each of m, fixed before scores were seen   the exact p-value at β / m
``split=0.2``            chosen on a random fifth of the canaries;  the split p-value at β, with
                         the others are audited                     the number of the others as n
=======================  =========================================  ==============================

The largest bound over many numbers of guesses without a correction is no bound, and not offered.

**Why a split needs another p-value.** That the coins of a few canaries are revealed costs nothing:
given these coins, the training is (ε, δ)-DP in the others. But their scores come from the same
output as all scores, so that the number that is chosen on them is left to the output. For δ = 0
that makes no difference. For δ > 0 the exact p-value needs a number that is fixed.

**What is not covered.** To include exactly half of the canaries is another design: its coins depend
on each other, and no bound here is valid for it. It cannot be told from the data, so say
``coins="balanced"`` to be told so. Nor may anything but the output of the training enter the scores
that depends on the coins, nor may the seed, the number of guesses or the sign of the scores be
chosen by what comes out.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite, isnan, nan
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from oralib import _check
from oralib._score_report import report
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

__all__ = [
    "ScoreAudit",
    "audit_counts",
    "audit_guesses",
    "audit_scores",
    "bounds_by_beta",
    "bounds_by_guesses",
]

SIDES = ("both", "included")

#: Coins that fair ones surpass in oddity less often than this are not taken for fair.
UNFAIR = 1e-3

#: The share of the canaries on which the number of guesses is chosen if nothing else is said.
DEFAULT_SPLIT = 0.2

#: So many numbers of guesses are tried on the canaries that are set aside, or drawn.
_TRIED = 100


@dataclass(frozen=True)
class ScoreAudit:
    """What an audit has shown, and on which assumptions; ``str()`` of it is a report.

    Attributes
    ----------
    bound : with probability 1 - β it does not exceed the ε of an (ε, δ)-DP training.
    pure_bound : the same for δ = 0.
    fdp_bound : the same for a training whose trade-off curve is one of ``curve``, and for no other;
        nan where the number of guesses was not fixed, where δ = 0, or with feedback.
    estimate : the ε that the accuracy alone suggests; no bound.
    accuracy : v / r.
    v, r, n : right guesses, all guesses, and audited canaries, guessed or not.
    delta, beta : the δ of the claim, and how often a bound may fail.
    level : the level of each test: β, or β / m with m numbers of guesses; with full feedback and
        δ > 0, n δ / 2 is still taken off.
    rule : by which p-value the bound was found, as :func:`oralib.valid_rule` names it.
    number : how the number of guesses came about: ``"fixed"``, ``"grid"``, ``"split"``, or
        ``"output"`` if it was left to the output.
    grid : all numbers of guesses that were tried.
    side : ``"both"``: half of the guesses, the highest scores, say "included", and the others, the
        lowest, "excluded"; ``"included"``: all say so. None if the guesses were given.
    canaries, included : the number of all canaries, audited or not, and of those that were
        included; None if only counts were given.
    coins_p_value : how often fair coins are at least as odd as those of all canaries; None if only
        counts were given.
    lots : guesses that were drawn by lot among canaries with equal scores.
    seed : of these lots, and of the split.
    curve : the family of trade-off curves of ``fdp_bound``.
    feedback : what the guesser was told on its way, as :class:`oralib.Counts` names it.
    notes : what one should know before one believes these numbers.

    Examples
    --------
    >>> audit = audit_counts(Counts(75, 100, n=1000, r_fixed=True), delta=1e-5)
    >>> round(audit.bound, 3), audit.rule, audit.refutes(2.0)
    (0.702, 'exact', False)
    """

    bound: float
    pure_bound: float
    fdp_bound: float
    estimate: float
    accuracy: float
    v: int
    r: int
    n: int
    delta: float
    beta: float
    level: float
    rule: str
    number: str
    grid: tuple[int, ...] = ()
    side: str | None = None
    canaries: int | None = None
    included: int | None = None
    coins_p_value: float | None = None
    lots: int = 0
    seed: int | None = None
    curve: str = "GaussianCurve()"
    feedback: str = "none"
    notes: tuple[str, ...] = ()

    @property
    def plausible_coins(self) -> bool:
        """Whether the coins may have been fair; if not, nothing has been shown."""
        return self.coins_p_value is None or self.coins_p_value >= UNFAIR

    @property
    def assumptions(self) -> dict[str, str]:
        """For each number what must be true for it to be what it is called."""
        told = {
            "none": "the output of the training alone",
            "one-way": "the output of the training and from coins of canaries that the guesser had "
            "given up",
            "list": "the output of the training and from coins of canaries before them on a list "
            "that was settled before, or on no list",
            "full": "the output of the training and from coins of canaries that the guesser was "
            "done with",
        }[self.feedback]
        common = (
            "each canary was included by a fair coin of its own, and the guesses follow from "
            f"{told}"
        )
        number = {
            "fixed": "the number of guesses was fixed before scores were seen",
            "grid": f"the {len(self.grid)} numbers of guesses were fixed before scores were seen",
            "split": "the canaries on which the number of guesses was chosen were drawn at random",
            "output": {
                "none": "the number of guesses may depend on the output, never on the coins",
                "one-way": "the number of guesses may depend on the output and on these coins",
                "list": "the length of the list may depend on the output and on coins of canaries "
                "that are not on it",
                "full": "the guesser may have stopped when it liked",
            }[self.feedback],
        }[self.number]
        return {
            "bound": f"{common}; {number}",
            "pure_bound": f"a claim of ε-DP with δ = 0; {common}; {number}",
            "fdp_bound": f"the trade-off curve of the training is one of {self.curve}; {common}; "
            f"{number}"
            if not isnan(self.fdp_bound)
            else "not computed: it needs a number of guesses that was fixed in advance, δ > 0, and "
            "no feedback",
            "estimate": "none: it is no bound, and may be too large or too small",
            "accuracy": "none: it is what was counted",
        }

    def refutes(self, claim: float) -> bool:
        """Whether a claim of (ε, δ)-DP is refuted with confidence 1 - β; never by unfair coins.

        Examples
        --------
        >>> audit = audit_counts(Counts(900, 1000, n=1000, r_fixed=True), delta=1e-5)
        >>> audit.refutes(1.0), audit.refutes(3.0)
        (True, False)
        """
        return self.bound > _check.real("claim", claim, 0) and self.plausible_coins

    def as_dict(self) -> dict[str, Any]:
        """All fields and assumptions as plain values; what is not a number is None, or 'inf'."""
        fields: dict[str, Any] = {}
        for name, value in asdict(self).items():
            if isinstance(value, float) and not isfinite(value):
                value = None if isnan(value) else str(value)
            fields[name] = list(value) if isinstance(value, tuple) else value
        return {
            **fields,
            "plausible_coins": self.plausible_coins,
            "assumptions": self.assumptions,
        }

    def report(self, claim: float | None = None) -> str:
        """What was claimed and what was shown, in words."""
        return report(self, None if claim is None else _check.real("claim", claim, 0))

    def __str__(self) -> str:
        return self.report()


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
    curve: GaussianCurve | SubsampledGaussianCurve = GaussianCurve(),  # noqa: B008, it is frozen
    ids: Sequence[Any] | None = None,
    seed: int = 0,
) -> ScoreAudit:
    """Audit a training by the scores of its canaries.

    Only the order of the scores matters: those with the highest scores are guessed to have been
    included, those with the lowest to have been left out. Equal scores are put in order by lot.

    Parameters
    ----------
    scores : one number per canary, high if it seems to have been included (so not a loss, but minus
        a loss).
    included : the coins, one per canary: True or False, 1 or 0, or 1 or -1.
    delta : the δ of (ε, δ)-DP, in [0, 1].
    beta : how often the bound may fail, in (0, 1).
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

    Warns
    -----
    UserWarning : if the coins are too odd for fair ones, by an exact binomial test. Then nothing
        has been shown.

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
    values = _values(scores)
    bits = _bits("included", included)
    if values.shape != bits.shape:
        raise ValueError(
            "scores and included must have one entry per canary, "
            f"got shapes {values.shape} and {bits.shape}"
        )
    _check_order(scores=scores, included=included)
    n = bits.size
    if (values == values[0]).all():
        raise ValueError(
            "scores must differ: they say nothing about who was included, "
            f"got {n} scores that are all {values[0]:g}"
        )
    delta, beta = _levels(delta, beta)
    side = _check.one_of("side", side, SIDES)
    seed = _check.seed(seed)
    _check_ids(ids, n)
    given = {"guesses": guesses, "split": split, "grid": grid}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise ValueError(f"give one of guesses, split and grid, got {' and '.join(named)}")
    audited: NDArray[np.int64] = np.arange(n)
    tried: tuple[int, ...]
    if guesses is not None:
        number, tried = "fixed", (_check.integer("guesses", guesses, 1, n),)
    elif grid is not None:
        number, tried = "grid", _numbers_of("grid", grid, n)
    else:
        share = _check.real("split", DEFAULT_SPLIT if split is None else split, 0, 1, interval="()")
        aside, audited = _parts(n, share, seed)
        pilot = _right(_ranked(values[aside], side, seed), bits[aside])
        number, tried = "split", (_best_number(pilot, audited.size, delta, beta),)
    right, k = _right(_ranked(values[audited], side, seed), bits[audited]), np.array(tried)
    level = beta / k.size
    r = _best_of(right, k, level, delta)
    counts = _counts(int(right[r - 1]), r, audited.size, number != "split", coins)
    lots = _lots(values[audited], r, side)
    return _audit(
        counts,
        delta,
        beta,
        curve,
        bits=bits,
        level=level,
        number=number,
        grid=tried,
        side=side,
        lots=lots,
        seed=seed,
        notes=_coin_notes(bits) + _lot_notes(lots, r),
    )


def audit_guesses(
    guessed: ArrayLike,
    truth: ArrayLike,
    *,
    delta: float,
    beta: float = 0.05,
    guesses: int | None = None,
    coins: str = "independent",
    curve: GaussianCurve | SubsampledGaussianCurve = GaussianCurve(),  # noqa: B008, it is frozen
    ids: Sequence[Any] | None = None,
) -> ScoreAudit:
    """Audit a training by guesses that somebody has made.

    Parameters
    ----------
    guessed : one guess per canary: True or 1 for included, False or 0 for excluded, nan for none.
        If ``truth`` is written as 1 and -1, then as 1, -1, and 0 or nan for none.
    truth : the coins of all canaries, guessed or not: True or False, 1 or 0, or 1 or -1.
    delta : the δ of (ε, δ)-DP, in [0, 1].
    beta : how often the bound may fail, in (0, 1).
    guesses : the number of guesses, if it was fixed before the training; guesses that are missing
        count as wrong. If it is not given, the number was left to the output, and the bound is one
        that allows for that.
    coins, curve, ids : as in :func:`audit_scores`.

    Examples
    --------
    >>> truth = [1, 0, 1, 1, 0, 0, 1, 0] * 50
    >>> guessed = [1, 0, 1, np.nan, 0, 1, np.nan, 0] * 50
    >>> audit = audit_guesses(guessed, truth, delta=1e-5, guesses=300)
    >>> audit.v, audit.r, audit.n, round(audit.bound, 3)
    (250, 300, 400, 1.348)
    """
    bits, signs = _bits("truth", truth), _array(truth)
    delta, beta = _levels(delta, beta)
    none = 0.0 if (np.asarray(signs) == -1).any() else nan
    right, taken = _right_and_taken(guessed, bits, none)
    _check_order(guessed=guessed, truth=truth)
    _check_ids(ids, bits.size)
    v, r = int(right.sum()), int(taken.sum())
    if guesses is not None:
        guesses = _check.integer("guesses", guesses, 1, bits.size)
        if r > guesses:
            raise ValueError(f"guesses must be at least {r}, as so many are given, got {guesses=}")
    elif r == 0:
        raise ValueError(f"guessed must hold a guess, got none for all of {bits.size} canaries")
    missing = 0 if guesses is None else guesses - r
    counts = _counts(v, r + missing, bits.size, guesses is not None, coins)
    notes = _coin_notes(bits)
    if missing:
        notes += (f"{missing} of the {guesses} guesses are missing, and count as wrong",)
    return _audit(counts, delta, beta, curve, bits=bits, notes=notes)


def audit_counts(
    counts: Counts,
    *,
    delta: float,
    beta: float = 0.05,
    curve: GaussianCurve | SubsampledGaussianCurve = GaussianCurve(),  # noqa: B008, it is frozen
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
    _check.instance("counts", counts, Counts, "Counts(75, 100, n=1000)")
    if counts.trials != 1:
        raise ValueError(f"counts must be those of one audit, got {counts.trials} of them")
    delta, beta = _levels(delta, beta)
    return _audit(counts, delta, beta, curve)


def bounds_by_guesses(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    delta: float,
    beta: float = 0.05,
    side: str = "both",
    seed: int = 0,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Numbers of guesses, and the bound that each alone would have had; only to look at.

    Each would be valid had it been the one that was fixed in advance. The largest of them is no
    bound. As it uses all coins, no number of guesses may be chosen from it for the same audit.

    Examples
    --------
    >>> k, bounds = bounds_by_guesses([3.0, 1.0, 2.0, 0.0], [1, 0, 1, 0], delta=0.0, beta=0.3)
    >>> k.tolist(), bounds.round(2).tolist()
    ([1, 2, 3, 4], [0.0, 0.19, 0.71, 1.05])
    """
    values = _values(scores)
    bits = _bits("included", included)
    if values.shape != bits.shape:
        raise ValueError("scores and included must have one entry per canary")
    _check_order(scores=scores, included=included)
    delta, beta = _levels(delta, beta)
    ranked = _ranked(values, _check.one_of("side", side, SIDES), _check.seed(seed))
    right = _right(ranked, bits)
    k = _spread(bits.size)
    found = epsilon_lower_bound(
        right[k - 1], k, beta=beta, delta=delta, n=bits.size, method="exact"
    )
    return k, np.asarray(found)


def bounds_by_beta(
    counts: Counts, *, delta: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values of β from 0.001 to 1/2, and the bound that each alone would have had; to look at.

    Each would be valid had it been the one that was fixed in advance.

    Examples
    --------
    >>> beta, bounds = bounds_by_beta(Counts(75, 100, n=1000, r_fixed=True), delta=1e-5)
    >>> beta[[0, -1]].tolist(), bounds[[0, -1]].round(2).tolist()
    ([0.001, 0.5], [0.38, 1.07])
    """
    _check.instance("counts", counts, Counts, "Counts(75, 100, n=1000)")
    if counts.trials != 1:
        raise ValueError(f"counts must be those of one audit, got {counts.trials} of them")
    delta = _check.real("delta", delta, 0, 1)
    beta = np.geomspace(1e-3, 0.5, _TRIED)
    beta[[0, -1]] = 1e-3, 0.5
    return beta, np.array([valid_lower_bound(counts, beta=b, delta=delta)[0] for b in beta])


# ---------------------------------------------------------------------------- from scores to counts


def _parts(n: int, share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A random share of n canaries, and the others."""
    order = stream(seed, "scores", "split").permutation(n)
    aside = round(share * n)
    if not 0 < aside < n:
        raise ValueError(
            f"split must leave a canary on either side, got split={share:g} of {n} canaries"
        )
    return order[:aside], order[aside:]


def _ranked(
    values: NDArray[np.float64], side: str, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Canaries in the order in which they are guessed, and each guess; equal scores by lot.

    With both sides: the highest, the lowest, the second highest, the second lowest, and so on.
    """
    n = values.size
    shuffled = stream(seed, "scores", "lots").permutation(n)
    down = shuffled[np.argsort(values[shuffled], kind="stable")][::-1]
    if side == "included":
        return down, np.ones(n, dtype=bool)
    order = np.empty(n, dtype=np.int64)
    order[0::2], order[1::2] = down[: (n + 1) // 2], down[::-1][: n // 2]
    return order, np.arange(n) % 2 == 0


def _right(
    ranked: tuple[NDArray[np.int64], NDArray[np.bool_]], bits: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """For k = 1, 2, ... how many of the first k guesses are right."""
    order, guess = ranked
    return np.cumsum(bits[order] == guess)


def _lots(values: NDArray[np.float64], r: int, side: str) -> int:
    """How many of r guesses were drawn by lot: their score is also that of one not so guessed."""
    n = values.size
    high = r if side == "included" else (r + 1) // 2
    low = r - high
    up = np.sort(values)
    lots = 0
    if 0 < high < n and up[n - high] == up[n - high - 1]:
        lots += int((up[n - high :] == up[n - high]).sum())
    if 0 < low < n and up[low - 1] == up[low]:
        lots += int((up[:low] == up[low]).sum())
    return lots


def _best_of(right: NDArray[np.int64], k: NDArray[np.int64], level: float, delta: float) -> int:
    """The number of guesses, among some that were fixed in advance, with the largest bound."""
    found = epsilon_lower_bound(
        right[k - 1], k, beta=level, delta=delta, n=right.size, method="exact"
    )
    # Of equal ones that with the best accuracy: the other bounds are then larger.
    return int(k[np.lexsort((right[k - 1] / k, found))[-1]])


def _best_number(right: NDArray[np.int64], n: int, delta: float, beta: float) -> int:
    """The number of guesses among n canaries that looks best from a smaller sample of them.

    The accuracy is taken to be a standard error less than it was (Wilson's interval), so that a few
    lucky guesses do not win. This is a heuristic; the audit is valid whatever it says.
    """
    k = _spread(right.size)
    accuracy = right[k - 1] / k
    spread = np.sqrt(accuracy * (1 - accuracy) / k + 0.25 / k**2)
    careful = (accuracy + 0.5 / k - spread) / (1 + 1 / k)
    taken = np.clip(np.rint(k * (n / right.size)).astype(np.int64), 1, n)
    found = epsilon_lower_bound_random_r(
        np.floor(careful * taken).astype(np.int64),
        taken,
        beta=beta,
        delta=delta,
        n=n,
        split=split_for(n, delta, beta),
    )
    # Where nothing can be shown, that which is least like coins.
    return int(taken[np.lexsort(((accuracy - 0.5) * np.sqrt(k), found))[-1]])


def _spread(n: int) -> NDArray[np.int64]:
    """Numbers from 1 to n, as dense in the logarithm everywhere."""
    return np.unique(np.rint(np.geomspace(1, n, _TRIED)).astype(np.int64))


# --------------------------------------------------------------------------------- from counts to ε


def _counts(v: int, r: int, n: int, fixed: bool, coins: str = "independent") -> Counts:
    return Counts(np.array([v]), np.array([r]), n, "scores", r_fixed=fixed, coins=coins)


def _audit(
    counts: Counts,
    delta: float,
    beta: float,
    curve: GaussianCurve | SubsampledGaussianCurve,
    *,
    bits: NDArray[np.bool_] | None = None,
    level: float | None = None,
    number: str | None = None,
    **more: Any,
) -> ScoreAudit:
    """All bounds of one pair of counts, each test at ``level``."""
    level = beta if level is None else level
    rule = valid_rule(counts, delta)
    v, r = int(counts.v[0]), int(counts.r[0])
    if not isinstance(curve, GaussianCurve | SubsampledGaussianCurve):
        raise TypeError(f"curve must be like GaussianCurve(), got curve={curve!r}")
    fdp = nan
    if counts.r_fixed and counts.feedback == "none" and delta > 0:
        fdp = epsilon_lower_bound_fdp(v, r, n=counts.n, delta=delta, beta=level, curve=curve)
    coins: dict[str, Any] = {}
    if bits is not None:
        included = int(bits.sum())
        coins = {"canaries": bits.size, "included": included}
        coins["coins_p_value"] = _coins_p_value(included, bits.size)
    audit = ScoreAudit(
        bound=float(valid_lower_bound(counts, beta=level, delta=delta)[0]),
        pure_bound=float(valid_lower_bound(counts, beta=level)[0]),
        fdp_bound=float(fdp),
        estimate=float(epsilon_estimate(v, r)),
        accuracy=v / r if r else nan,
        v=v,
        r=r,
        n=counts.n,
        delta=delta,
        beta=beta,
        level=level,
        rule=rule,
        number=number or ("fixed" if counts.r_fixed else "output"),
        curve=repr(curve),
        feedback=counts.feedback,
        **coins,
        **more,
    )
    if not audit.plausible_coins:
        warn(audit.notes[0], stacklevel=3)
    return audit


def _coins_p_value(included: int, n: int) -> float:
    """The exact two-sided binomial test of fair coins."""
    return float(min(1.0, 2 * special.bdtr(min(included, n - included), n, 0.5)))


def _coin_notes(bits: NDArray[np.bool_]) -> tuple[str, ...]:
    n, included = bits.size, int(bits.sum())
    p_value = _coins_p_value(included, n)
    if p_value < UNFAIR:
        return (
            f"{included} of {n} canaries were included: fair coins are so odd with probability "
            f"{p_value:.1g} only. If each canary was not included by a fair coin of its own, "
            "or if some canaries are missing here, nothing has been shown",
        )
    if 2 * included == n:
        return (
            "exactly half of the canaries were included. If that was arranged, the coins depend on "
            "each other, and no bound here is valid",
        )
    return ()


def _lot_notes(lots: int, r: int) -> tuple[str, ...]:
    if not lots:
        return ()
    return (f"{lots} of the {r} guesses were drawn by lot among canaries with equal scores",)


# ------------------------------------------------------------------------------ checks of arguments


def _levels(delta: float, beta: float) -> tuple[float, float]:
    return _check.real("delta", delta, 0, 1), _check.real("beta", beta, 0, 1, interval="()")


def _array(value: ArrayLike) -> ArrayLike:
    """A long list as an array, whose entries an error does not print one by one."""
    if isinstance(value, list | tuple):
        try:
            return np.asarray(value)
        except (ValueError, TypeError, RuntimeError):  # the check will say so
            return value
    return value


def _values(scores: ArrayLike) -> NDArray[np.float64]:
    """Scores as numbers; integers among which some would become equal are refused."""
    array = _array(scores)
    values = _check.reals("scores", array, -inf, inf, interval="()")
    if np.asarray(array).dtype.kind in "iu" and values.size:
        largest = np.abs(values).max()
        if largest > _check.LARGEST_COUNT:
            raise ValueError(
                "scores must lie in [-2^53, 2^53] if they are integers, as larger ones cannot be "
                f"told apart as numbers of double precision, got {largest:g}"
            )
    return values


def _bits(name: str, value: ArrayLike) -> NDArray[np.bool_]:
    """Coins as truth values; both of them must occur."""
    array = _plain_array(name, value)
    numbers = array.astype(np.float64)
    signs = (numbers == -1).any()
    good = (numbers == 1) | (numbers == (-1 if signs else 0))
    if not good.all():
        where = int(np.argmin(good))
        raise ValueError(
            f"{name} must be True or False, 1 or 0, or 1 or -1 for each canary, "
            f"got {name}={array[where]} at index {where}" + (" beside a -1" if signs else "")
        )
    bits: NDArray[np.bool_] = numbers == 1
    if bits.all() or not bits.any():
        same = "included" if bits.all() else "left out"
        raise ValueError(
            f"{name} must have canaries of both kinds, got {bits.size} that were all {same}: "
            "there is nothing to tell apart"
        )
    return bits


def _plain_array(name: str, value: ArrayLike) -> NDArray[Any]:
    """One number or truth value per canary, as a flat array that is not empty."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name} must have no masked entries, got {name}={_check.shown(value)}")
    why = ""
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O" and array.size:
            plain = (bool, int, float, np.bool_, np.integer, np.floating)
            # What pandas has for a missing entry is None, too.
            entries = [None if type(x).__name__ == "NAType" else x for x in array.flat]
            if all(isinstance(entry, plain) or entry is None for entry in entries):
                array = np.array(entries, dtype=np.float64).reshape(array.shape)  # None is nan
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        array, why = np.asarray(None), _check.reason(value, error)
    if array.dtype.kind not in "biuf" or array.ndim != 1 or not array.size:
        raise TypeError(
            f"{name} must be a list of numbers or truth values, one per canary, "
            f"got {name}={_check.shown(value)}{why}"
        )
    return array


def _has_truth_values(value: ArrayLike) -> bool:
    if isinstance(value, list | tuple):  # beside nan they would become numbers in an array
        return any(map(_is_truth_value, value))
    array = np.asarray(value)
    if array.dtype.kind == "O":
        return any(map(_is_truth_value, array.flat))
    return array.dtype.kind == "b"


def _is_truth_value(entry: Any) -> bool:
    """True, False, or an array or a tensor that is one of them."""
    if isinstance(entry, bool | np.bool_):
        return True
    return hasattr(entry, "dtype") and np.asarray(entry).dtype.kind == "b"


def _right_and_taken(
    guessed: ArrayLike, bits: NDArray[np.bool_], none: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which guesses are right, and which were taken; ``none`` is no guess, and so is nan."""
    array = _plain_array("guessed", guessed)
    if none == 0 and _has_truth_values(guessed):  # is False no guess, or -1?
        raise ValueError(
            "guessed must be 1, -1, or 0 or nan for no guess, as truth is written, "
            "got True or False in guessed"
        )
    if array.shape != bits.shape:
        raise ValueError(
            "guessed and truth must have one entry per canary, "
            f"got {array.size} and {bits.size} entries"
        )
    numbers = array.astype(np.float64)
    left_out = -1.0 if none == 0 else 0.0
    taken = (numbers == 1) | (numbers == left_out)
    good = taken | np.isnan(numbers) | (numbers == none)
    if not good.all():
        where = int(np.argmin(good))
        words = "1, -1, or 0 or nan" if none == 0 else "1, 0, or nan"
        raise ValueError(
            f"guessed must be {words} for no guess, as truth is written, "
            f"got guessed={array[where]} at index {where}"
        )
    return taken & ((numbers == 1) == bits), taken


def _numbers_of(name: str, value: Any, n: int) -> tuple[int, ...]:
    """Different numbers of guesses, in their order."""
    numbers = _check.integers(name, value, 1, n)
    if numbers.ndim != 1 or not numbers.size:
        raise ValueError(f"{name} must be a list of numbers of guesses, got {name}={value!r}")
    if np.unique(numbers).size < numbers.size:
        raise ValueError(f"{name} must not hold a number twice, got {name}={_check.shown(value)}")
    return tuple(sorted(numbers.tolist()))


def _check_order(**columns: Any) -> None:
    """Two columns of pandas must not have the same labels in another order.

    Canaries are matched by place alone, and so are columns whose labels have nothing in common.
    """
    first: Any
    second: Any
    first, second = (getattr(column, "index", None) for column in columns.values())
    both = hasattr(first, "equals") and hasattr(second, "equals")
    if both and not first.equals(second) and not {*first}.isdisjoint(second):
        names = " and ".join(columns)
        raise ValueError(
            f"{names} must have the same index, "
            f"got {_check.shown(first)} and {_check.shown(second)}; "
            "canaries are matched by their places (to_numpy() gives columns without an index)"
        )


def _check_ids(ids: Sequence[Any] | None, n: int) -> None:
    if ids is None:
        return
    try:
        names = getattr(ids, "tolist", lambda: list(ids))()  # the numbers of an array by themselves
        names = [x.item() if hasattr(x, "item") else x for x in names]  # tensors are never equal
        names = [None if isinstance(x, float) and isnan(x) else x for x in names]  # equals itself
        different = len(set(names))
    # No sequence, or of what cannot be told apart, or of what is no single value.
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            f"ids must be a list of words or numbers, got ids={_check.shown(ids)}"
        ) from None
    if len(names) != n:
        raise ValueError(f"ids must have one entry for each of {n} canaries, got {len(names)}")
    if different < n:
        seen: set[Any] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"ids must differ, as a canary has one coin, got {twice!r} twice")

"""From scores, guesses or counts of one training run to a bound on ε."""

from collections.abc import Sequence
from dataclasses import replace
from warnings import warn

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oralib.bounds import Counts, valid_rule
from oralib.ground import arguments
from oralib.ground.types import ADJACENCIES, COINS, Adjacency, Choice, Coins, Side
from oralib.scores import guessing
from oralib.scores.columns import Bits, are_listed_twice, guesses_and_coins, scores_and_coins
from oralib.scores.result import UNFAIR, ScoreAudit
from oralib.scores.seen import Seen

#: If exactly half of this many canaries are included, the audit assumes a design that is not
#: covered. Fair coins balance with probability about 0.8 / √n: for fewer canaries that is ordinary.
BALANCED = 40


def audit_scores(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    delta: float,
    beta: float = 0.05,
    guesses: int | None = None,
    split: float | None = None,
    grid: Sequence[int] | None = None,
    side: Side = "both",
    claim: float | None = None,
    coins: Coins | None = None,
    adjacency: Adjacency = "add-remove",
    seed: int = 0,
    seen: Seen | None = None,
) -> ScoreAudit:
    """Audit a training run by the scores of its canaries.

    The audit is not valid, and a warning says why, if fair coins would hardly be so uneven, or
    if so few guesses are right that the scores must have the wrong sign (both by exact binomial
    tests at 0.001), or if exactly half of 40 or more canaries were included and ``coins`` does not
    say why, or if each canary seems to be listed twice. It has no bounds then: they are nan.

    Parameters
    ----------
    scores : array
        One number per canary, high if it seems to have been included (minus a loss, say).
    included : array
        The coins, one per canary: True or False, 1 or 0, or 1 or -1.
    delta, beta : float
        The δ of (ε, δ)-DP, in [0, 1], and how often the bound may fail, in (0, 1).
    guesses : int or None
        The number of guesses, if it was fixed before scores were seen.
    split : float or None
        If the number was not fixed: the share of the canaries, drawn at random, on which it is
        chosen, by default 0.2; the others are audited.
    grid : sequence of int or None
        Several numbers of guesses, fixed before scores were seen; if there are m, each is tested at
        β / m.
    side : str
        ``"both"``: half the guesses, on the highest scores, say "included", and the others, on the
        lowest, "left out"; ``"included"``: all say "included"; ``"farthest"``: those on scores
        farthest from 0, "included" if the score is positive, as suits log-likelihood ratios.
    claim : float or None
        The claimed ε. A split chooses a number of guesses that could refute it.
    coins : str or None
        ``"independent"``: each canary had a fair coin of its own, even if they balance.
        ``"balanced"``: exactly half of the canaries, drawn at random, were included. Then the
        number of guesses must be fixed, by ``guesses`` or ``grid``, and the bound is smaller.
    adjacency : str
        Which change the claim covers: ``"add-remove"``, one example added or removed, or
        ``"replace"``, one example replaced by another. For the latter each row must be a pair, of
        which a coin included one (the score is high if it seems to have been the first). With
        ``coins="balanced"`` we make the pairs: each included canary is matched at random with one
        that was left out, and the pairs whose scores differ most are guessed.
    seed : int
        The seed of the split, of the order of equal scores, and of pairs; fixed before the result.
    seen : Seen or None
        What the canaries saw of the training, ``Canaries.seen``, if they made the scores.

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
    twice, all_bits, seed = are_listed_twice(values, bits), bits, arguments.seed(seed)
    notes = []
    balanced = _check_coins(bits, coins, adjacency)
    if balanced and adjacency == "replace":
        values, bits = guessing.matched_pairs(values, bits, seed)
        side, balanced = "farthest", False
        notes.append("each included canary was matched at random with one that was left out")
    if balanced and (side == "farthest" or (guesses is None and grid is None)):
        raise ValueError(
            "coins='balanced' needs guesses or grid, and side 'both' or 'included': how many "
            f"guesses say 'included' must be fixed in advance, got {guesses=}, {grid=}, {side=}"
        )
    n = bits.size
    beta, delta = arguments.beta_and_delta(beta, delta)
    claim = _checked_claim(claim)
    if seen is not None:
        arguments.instance("seen", seen, Seen, "Canaries(...).seen")
    if sum(value is not None for value in (guesses, split, grid)) > 1:
        raise ValueError(f"give one of guesses, split and grid, got {guesses=}, {split=}, {grid=}")
    choice: Choice = "fixed" if grid is None else "grid"
    if guesses is not None:
        k = np.array([arguments.integer("guesses", guesses, 1, n)])
    elif grid is not None:
        k = np.unique(arguments.integers("grid", grid, 1, n))
        if not k.size:
            raise ValueError(f"grid must hold numbers of guesses, got grid={grid!r}")
    else:
        share = arguments.real("split", 0.2 if split is None else split, 0, 1, interval="()")
        aside, audited = guessing.parts(n, share, seed)
        pilot = guessing.right_guesses(values[aside], bits[aside], side, seed)
        chosen, why = guessing.best_number(pilot, audited.size, delta, beta, claim)
        choice, k = "split", np.array([chosen])
        notes.append(why)
        values, bits = values[audited], bits[audited]
    right = guessing.right_guesses(values, bits, side, seed)
    if side == "farthest" and not values.min() < 0 < values.max():
        word = "included" if values.max() > 0 else "left out"
        notes.append(f"no score has the other sign, so every guess says {word!r}")
    ranking = guessing.ranking(values, bits)

    def audit_of(r: int) -> ScoreAudit:
        counts = Counts(int(right[r - 1]), r, n=bits.size, game="scores", r_fixed=choice != "split")
        if balanced:
            r_in = r if side == "included" else (r + 1) // 2
            counts = replace(counts, coins="balanced", r_in=r_in)
        how = choice, tuple(k.tolist()), side, adjacency
        audit = ScoreAudit(counts, delta, beta, claim, *how, seed=seed, ranking=ranking, seen=seen)
        return replace(audit, notes=tuple(notes))

    # The largest bound; among equal ones, the one with the best accuracy.
    audit = max(map(audit_of, k.tolist()), key=lambda audit: (audit.bound, audit.accuracy))
    if ties := guessing.ties_drawn(values, audit.r, side):
        drawn = f"{ties} of the {audit.r} guesses were drawn by lot among canaries of equal scores"
        audit = replace(audit, ties_drawn=ties, notes=(*audit.notes, drawn))
    hint = "higher scores must mean included: multiply them by -1?"
    return _with_coins(audit, all_bits, coins, audit.r, hint, twice)


def audit_guesses(
    guessed: ArrayLike,
    truth: ArrayLike,
    *,
    delta: float,
    beta: float = 0.05,
    guesses: int | None = None,
    claim: float | None = None,
    coins: Coins | None = None,
    adjacency: Adjacency = "add-remove",
) -> ScoreAudit:
    """Audit a training run by guesses that somebody has made.

    Parameters
    ----------
    guessed : array
        One guess per canary: True or 1 for included, False or 0 for left out, nan for no guess. If
        ``truth`` is written as 1 and -1, then 1, -1, and 0 or nan for no guess.
    truth : array
        The coins of all canaries, guessed or not: True or False, 1 or 0, or 1 or -1.
    delta, beta : float
        As in :func:`audit_scores`.
    guesses : int or None
        The number of guesses, if it was fixed before the training; missing ones count as wrong.
        Without it the number may depend on the output, and the bound allows for that.
    claim, coins, adjacency : float or None, str or None, str
        As in :func:`audit_scores`, but no pairs are made here. With balanced coins no guess
        may be missing, and how many say "included" must have been fixed, too.

    Examples
    --------
    >>> truth = [1, 0, 1, 1, 0, 0, 1, 0] * 50  # half of them, by chance
    >>> guessed = [1, 0, 1, np.nan, 0, 1, np.nan, 0] * 50
    >>> audit = audit_guesses(guessed, truth, delta=1e-5, guesses=300, coins="independent")
    >>> audit.v, audit.r, audit.n, round(audit.bound, 3)
    (250, 300, 400, 1.348)
    """
    right, taken, bits = guesses_and_coins(guessed, truth)
    balanced = _check_coins(bits, coins, adjacency)
    beta, delta = arguments.beta_and_delta(beta, delta)
    v, r = int(right.sum()), int(taken.sum())
    if guesses is None and r == 0:
        raise ValueError(f"guessed must hold a guess, got none for all of {bits.size} canaries")
    number = r if guesses is None else arguments.integer("guesses", guesses, 1, bits.size)
    if r > number:
        raise ValueError(f"guesses must be at least {r}, as this many are given, got {guesses=}")
    missing = f"{number - r} of the {number} guesses are missing, and count as wrong"
    counts = Counts(v, number, n=bits.size, game="guesses", r_fixed=guesses is not None)
    if balanced:
        if adjacency == "replace" or guesses != r:
            needs = "scores for adjacency='replace', and otherwise the number of all guesses"
            got = f"none of them missing: got {adjacency=}, {guesses=} and {r} given"
            raise ValueError(f"coins='balanced' needs {needs}, {got}")
        counts = replace(counts, coins="balanced", r_in=int((taken & (right == bits)).sum()))
    audit = audit_counts(counts, delta=delta, beta=beta, claim=claim)
    audit = replace(audit, adjacency=adjacency, notes=(missing,) if r < number else ())
    hint = "a guess of 1 must mean included: are the guesses turned around?"
    return _with_coins(audit, bits, coins, r, hint)


def audit_counts(
    counts: Counts, *, delta: float, beta: float = 0.05, claim: float | None = None
) -> ScoreAudit:
    """Audit a training run by its counts alone; less can be checked.

    Parameters
    ----------
    counts : Counts
        Of one audit, with how it was set up, as ``Counts(75, 100, n=1000, r_fixed=True)``.
    delta, beta, claim : float, float, float or None
        As in :func:`audit_scores`.

    Examples
    --------
    >>> audit = audit_counts(Counts(75, 100, n=1000, r_fixed=True), delta=1e-5)
    >>> round(audit.bound, 3), round(audit.pure_bound, 3), round(audit.fdp_bound, 3)
    (0.702, 0.702, 1.006)
    """
    arguments.instance("counts", counts, Counts, "Counts(75, 100, n=1000)")
    if counts.trials != 1:
        raise ValueError(f"counts must be those of one audit, got {counts.trials} of them")
    counts = replace(counts, v=np.squeeze(counts.v), r=np.squeeze(counts.r))
    beta, delta = arguments.beta_and_delta(beta, delta)
    valid_rule(counts, delta)  # an error if there is none
    choice: Choice = "fixed" if counts.r_fixed else "output"
    return ScoreAudit(counts, delta, beta, _checked_claim(claim), choice)


def _checked_claim(claim: float | None) -> float | None:
    return None if claim is None else arguments.real("claim", claim, 0, interval="[)")


def _check_coins(bits: Bits, coins: Coins | None, adjacency: Adjacency) -> bool:
    """Whether exactly half of the canaries were included by arrangement."""
    arguments.one_of("adjacency", adjacency, ADJACENCIES)
    if coins is not None:
        arguments.one_of("coins", coins, COINS)
    if coins == "balanced" and 2 * bits.sum() != bits.size:
        got = f"{bits.sum():,} of {bits.size:,} canaries"
        raise ValueError(f"coins='balanced' needs exactly half of the canaries included, got {got}")
    return coins == "balanced"


def _with_coins(
    audit: ScoreAudit, bits: Bits, coins: Coins | None, taken: int, hint: str, twice: bool = False
) -> ScoreAudit:
    """The audit with what its coins say; without bounds and with a warning if it is not valid."""
    n, included, notes = bits.size, int(bits.sum()), audit.notes
    audit = replace(audit, canaries=n, included=included)
    balanced = 2 * included == n
    wrong = float(scipy.special.bdtr(audit.v, taken, 0.5)) if taken else 1.0
    problem = ""
    if not audit.plausible_coins:
        problem = (
            f"{included} of {n} canaries were included: fair coins are this odd with probability "
            f"only {audit.coins_p_value:.1g}. If canaries were not each included by their own fair "
            "coin, or if some canaries are missing here, nothing has been shown"
        )
    elif balanced and n >= BALANCED and coins is None and audit.seen is None:
        problem = (
            f"exactly half of {n} canaries were included. If that was arranged, say so, since the "
            "usual bounds are false then: coins='balanced', or --coins balanced. If each canary "
            "had a fair coin of its own, and they just happened to balance: coins='independent', "
            "or --coins independent"
        )
    elif twice:
        problem = (
            "no score occurs only once, and equal scores have equal coins: each canary seems to be "
            "listed twice. List each once; a column id would show that they differ"
        )
    elif wrong < UNFAIR:
        problem = (
            f"{hint} Only {audit.v} of {taken} guesses are right, and blind ones do this badly "
            f"with probability {wrong:.1g}. (Trying both signs on the same canaries makes the "
            "bound fail twice as often: then halve β)"
        )
    elif balanced and coins != "balanced":
        happened = "exactly half the canaries were included, by chance and not by arrangement"
        notes = (happened, *notes)
    if problem:
        warn(problem, stacklevel=3)
    return replace(audit, problem=problem, notes=notes)

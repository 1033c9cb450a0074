"""Which bound is valid for an audit: it follows from how the audit was set up, not from its counts.

===================  ==================  ===========================  =============================
feedback             number of guesses   ε-DP (δ = 0)                 (ε, δ)-DP
===================  ==================  ===========================  =============================
none, one-way, list  fixed in advance    ε'(v, r)                     the exact p-value of (v, r)
none, one-way        not fixed           ε'(v, r)                     the p-value for any r
full                 fixed in advance    ε'(v, r)                     the p-value for any order
full, list           not fixed           the anytime bound of (v, r)  the same, certified
"all others"         any                 no valid bound above 0       no valid bound above 0
===================  ==================  ===========================  =============================

All of these are for independent fair coins. If exactly half of the elements were included, there is
a bound for a fixed number of guesses without feedback, :mod:`oralib.bounds.balanced`. Here (ε,
δ)-DP refers to adding or removing one element. If the claim is about replacing one record by
another, the elements must be pairs, of which a coin includes one.
"""

from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oralib.bounds import approximate
from oralib.bounds._arguments import flat_counts
from oralib.bounds.anytime import free_to_stop_bounds
from oralib.bounds.balanced import balanced_bounds
from oralib.bounds.crossing import LARGEST_WALK
from oralib.ground import arguments
from oralib.ground.types import COINS, FEEDBACKS, SAID, Coins, Feedback, Said

#: What :func:`valid_rule` names.
Rule: TypeAlias = Literal[
    "pure", "exact", "any order", "random r", "anytime", "anytime certified", "balanced"
]


#: What may be expected of an audit in which the output decides the number of guesses.
Expected: TypeAlias = "Counts | int | None"


@dataclass(frozen=True, eq=False)
class Counts:
    """The outcome of an audit, or of independent trials of one, and how it was set up.

    Attributes
    ----------
    v, r : int or array
        How many guesses were right, and how many were made; arrays have one entry per trial.
    n : int
        The number of elements, guessed or not, or of rounds of a classic audit.
    game : str
        What was played.
    r_fixed : bool
        Whether the number of guesses was fixed before the audit: no more are made, and missing
        ones count as wrong. It is not fixed just because it happens to be the same in all trials.
    feedback : str
        What the guesser was told as it went: ``"none"``, ``"one-way"`` (the signs of elements that
        it abstained on), ``"full"`` (also of those it guessed), ``"list"`` (the same, with their
        order fixed before the first guess) or ``"all others"`` (all signs but that of the guess).
    coins : str
        How the elements were chosen: ``"independent"`` fair coins, as in all games here, or
        ``"balanced"``, exactly half of them included, which makes coins depend on each other.
    r_in : int or None
        How many of the r guesses say "included", fixed before the audit; for balanced coins only.
    side : str
        ``"in"`` if all guesses say "included", also where a score is low, and this was fixed before
        the audit; ``"out"`` if all say "left out"; otherwise ``"both"``. Half of δ is then enough,
        so that bounds are larger. For independent coins only.

    Examples
    --------
    Your own counts: 75 right of 100 guesses, a number chosen before the training.

    >>> counts = Counts(75, 100, n=1000, r_fixed=True)
    >>> round(valid_lower_bound(counts, delta=1e-4), 3)
    0.695
    >>> one_sided = Counts(75, 100, n=1000, r_fixed=True, side="in")
    >>> round(valid_lower_bound(one_sided, delta=1e-4), 3)
    0.699
    """

    v: Any
    r: Any
    n: int
    game: str = "counts"
    r_fixed: bool = False
    feedback: Feedback = "none"
    coins: Coins = "independent"
    r_in: int | None = None
    side: Said = "both"

    def __post_init__(self) -> None:
        n = arguments.integer("n", self.n, 0)
        shape, (v, r, _) = flat_counts(self.v, self.r, n=np.asarray(n))
        if len(shape) > 1:
            raise ValueError(f"v and r must have one entry per trial, got shape {shape}")
        r_fixed = arguments.truth("r_fixed", self.r_fixed)
        if r_fixed and v.size and (r != r[0]).any():
            got = f"r={r[0]} and r={r[r != r[0]][0]}"
            raise ValueError(f"r must be the same in all trials if fixed in advance, got {got}")
        feedback = arguments.one_of("feedback", self.feedback, FEEDBACKS)
        arguments.one_of("side", self.side, SAID)
        if arguments.one_of("coins", self.coins, COINS) == "balanced":
            if self.side != "both":
                got = f"side={self.side!r} and coins='balanced'"
                raise ValueError(f"side is for independent coins; give r_in instead, got {got}")
            arguments.store(self, r_in=_balanced_r_in(n, r, self.r_in))
        elif self.r_in is not None:
            raise ValueError(f"r_in is for balanced coins only, got r_in={self.r_in}")
        counts = {"v": v, "r": r} if shape else {"v": int(v[0]), "r": int(r[0])}
        arguments.store(self, **counts, n=n, r_fixed=r_fixed, feedback=feedback)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counts) and all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
        )

    @property
    def trials(self) -> int:
        """The number of trials."""
        return int(np.size(self.v))

    @property
    def accuracy(self) -> Any:
        """v / r for each trial; nan where no guess was made."""
        with np.errstate(invalid="ignore"):
            return np.divide(self.v, self.r)


def leaks(counts: Counts, d_in: Any, d_out: Any) -> Any:
    """What all elements together may leak to right guesses: n δ in the bounds for (ε, δ)-DP.

    The two arguments are the δ of (ε, δ)-DP in either direction, "in" against "out" and the other
    way round. A right guess "in" leaks as much as the first allows, for half of the coins; a right
    guess "out" leaks as much as the second. This is for independent coins.
    """
    of_side = {"both": d_in + d_out, "in": d_in, "out": d_out}
    return counts.n * (of_side[counts.side] / 2)


def valid_rule(counts: Counts, delta: float = 0.0) -> Rule:
    """The rule whose bound is proved for the way the audit was set up.

    - ``"pure"``, ``"exact"`` and ``"any order"``: :func:`oralib.epsilon_lower_bound`, for δ > 0
      with that method;
    - ``"random r"``: :func:`oralib.epsilon_lower_bound_random_r`;
    - ``"anytime"``: :func:`oralib.epsilon_lower_bound_anytime`; ``"anytime certified"`` for δ > 0,
      a multiple of 0.001 for which a computation has checked how often the bound can fail;
    - ``"balanced"``: :mod:`oralib.bounds.balanced`.

    The table above says which is for what. Where the library has none, it raises a ValueError.

    >>> valid_rule(Counts(75, 100, n=1000), delta=1e-5)
    'random r'
    >>> valid_rule(Counts(75, 100, n=1000, feedback="full"), delta=1e-5)
    'anytime certified'
    """
    arguments.instance("counts", counts, Counts, "Counts(75, 100, n=1000)")
    delta = arguments.real("delta", delta, 0, 1)
    if counts.coins == "balanced":
        if counts.feedback != "none" or not counts.r_fixed:
            raise ValueError(
                "with balanced coins a bound is known only for a number of guesses fixed in "
                f"advance and no feedback, got {counts.r_fixed=} and {counts.feedback=}"
            )
        return "balanced"
    if counts.feedback == "all others":
        got = f"counts of the game {counts.game!r}"
        raise ValueError(f"no bound is valid for a guesser who knows all other elements, got {got}")
    if counts.feedback in ("full", "list") and not counts.r_fixed:
        return "anytime certified" if delta > 0 else "anytime"
    if delta == 0:
        return "pure"
    if not counts.r_fixed:
        return "random r"
    return "any order" if counts.feedback == "full" else "exact"


def valid_lower_bound(
    counts: Counts, *, beta: float = 0.05, delta: float = 0.0, expected: Expected = None
) -> Any:
    """For each trial, a lower bound on ε that is valid for the way the audit was set up.

    With probability at least 1 - β it does not exceed the ε of an (ε, δ)-DP mechanism. Where the
    library has no such bound, it raises a ValueError that says so. For scalar counts it is a float.

    Parameters
    ----------
    counts : Counts
        The outcome of a game, or your own ``Counts(v, r, n, r_fixed=..., feedback=...)``.
    beta : float
        How often the bound may fail, in (0, 1).
    delta : float
        The δ of (ε, δ)-DP, in [0, 1].
    expected : Counts or int, optional
        If r was not fixed in advance: the counts of a pilot run, or of trials of a simulation, or
        just how many guesses are expected. Never those of the audit itself. The bound is valid
        whatever is expected, and large if it comes true; by default it is made for 60 guesses.

    Examples
    --------
    >>> from oralib import LocalLaplace, ThresholdGuesser, one_run
    >>> counts = one_run(LocalLaplace(2.0), ThresholdGuesser(2.0), 1000, seed=1)
    >>> bool(valid_lower_bound(counts)[0] < 2.0)
    True
    """
    beta, delta = arguments.beta_and_delta(beta, delta)
    rule = valid_rule(counts, delta)
    pilot = pilot_of(counts, expected)
    n_delta = leaks(counts, delta, delta)
    v, r, n = np.atleast_1d(counts.v), np.atleast_1d(counts.r), counts.n
    if rule in ("anytime", "anytime certified"):
        if rule == "anytime certified":
            arguments.integer("n", n, 0, LARGEST_WALK)
        bounds = free_to_stop_bounds(v, r, n, n_delta, beta)
    elif rule == "balanced":
        bounds = balanced_bounds(v, r, n, counts.r_in or 0, delta, beta)
    else:
        if rule == "any order" and r.size:
            arguments.integer("r", r[0], 0, LARGEST_WALK)
        number = approximate.EXACT if rule == "pure" else approximate.RULES.index(rule)
        each, together = np.full(v.size, beta), np.full(v.size, n_delta)
        least_b = None
        if rule == "random r":
            least_b = approximate.planned_b(np.full(v.size, n), together, each, pilot)
        bounds = approximate.lower_bounds(v, r, each, together, number, least_b)
    return bounds if np.ndim(counts.v) else float(bounds[0])


def pilot_of(counts: Counts, expected: Expected) -> tuple[int, int] | int | None:
    """The counts (v, r) that are expected, of as many elements as were audited, or only r."""
    if expected is None:
        return None
    if not isinstance(expected, Counts):
        return arguments.integer("expected", expected, 1, max(counts.n, 1))
    share = counts.n / max(expected.n, 1)
    r = max(1, round(share * float(np.mean(expected.r))))
    return min(r, round(share * float(np.mean(expected.v)))), r


def _balanced_r_in(n: int, r: NDArray[np.int64], r_in: int | None) -> int:
    if n % 2:
        raise ValueError(f"n must be even if exactly half of the elements were included, got {n=}")
    if r_in is None:
        raise ValueError(
            "r_in must be given for balanced coins: how many guesses say 'included', got r_in=None"
        )
    return arguments.integer("r_in", r_in, 0, int(r.min(initial=n)))

"""The paper's figures, recomputed: audits repeated over grids, one function for each figure.

Each returns a data frame with a row for each point of its grid. Every point has its own random
stream, so adding a point changes no other. The defaults are the paper's own parameters; where it
has none (grids, the n of Figure 4) they are ours. :func:`summarise` turns any counts into such
rows. :func:`improvement_ladder` leads from an audit of DP-SGD in the paper to ours.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import product
from math import inf, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from orabook.laws import mean_bound, sums_law
from orabook.single_step import simulate_single_step
from oralib import DpSgd, Dropping, simulate_dpsgd, simulate_hopping
from oralib.bounds import (
    Counts,
    Exact,
    Rule,
    Steinke,
    epsilon_estimate,
    epsilon_lower_bound,
    valid_lower_bound,
)
from oralib.dpsgd import simulate_likelihood
from oralib.games import adaptive, one_run
from oralib.ground import arguments
from oralib.ground.types import PLAYED
from oralib.guessers import ThresholdGuesser
from oralib.mechanisms import CountInSets, LocalLaplace

__all__ = ["REPORTED", "adaptive_count_in_sets", "adaptive_dpsgd", "elements_by_epsilon"]
__all__ += ["elements_per_coordinate", "improvement_ladder", "local_laplace", "summarise"]
__all__ += ["exact_elements_by_epsilon", "taken_guesses", "taken_guesses_by_epsilon"]

ELEMENTS_PER_COORDINATE = (0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 16, 32, 64)
FRACTIONS_OF_GUESSES = (0.002, 0.004, 0.01, 0.02, 0.04, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0)
#: With full feedback, proved bounds are computed for audits of at most this many elements.
MOST_CERTIFIED = 20_000
#: What the paper reports in Figure 2: mean bound and standard error by elements per coordinate.
REPORTED = {1: (0.49, 0.01), 8: (0.62, 0.01)}
#: Our best schedule in the paper's setting, for 100,000 elements, without crowding and with it.
DROPPED = Dropping(final=2, until=0.9, bend=1.65)
CROWDED = Dropping(final=2, until=0.9, bend=1.65, crowding=(3, 20))


def taken_guesses(
    fractions: Iterable[float] = FRACTIONS_OF_GUESSES,
    *,
    epsilon: float = 2.0,
    delta: float = 1e-5,
    n: int = 5000,
    d: int = 1000,
    steps: int = 100,
    sample_rate: float = 0.1,
    beta: float = 0.05,
    trials: int = 200,
    seed: int = 0,
) -> pd.DataFrame:
    """Figures 1 and 5: DP-SGD against the fraction k/n of elements guessed, column ``x``.

    Examples
    --------
    >>> table = taken_guesses([0.02, 0.2], trials=5)
    >>> table["x"].tolist()
    [0.02, 0.2]
    """
    run: dict[str, Any] = {"steps": steps, "sample_rate": sample_rate}
    dpsgd = DpSgd.calibrated(epsilon, delta, n=n, d=d, **run)
    rows = []
    for fraction in _with_bar(_reals_of("fractions", fractions, 0, 1, "(]")):
        k = max(1, round(fraction * dpsgd.n))
        counts = simulate_dpsgd(dpsgd, k, trials=trials, seed=seed)
        rows.append({"x": k / dpsgd.n, "n": dpsgd.n, "k": k, **summary(counts, beta, delta)})
    return pd.DataFrame(rows)


def elements_per_coordinate(
    ratios: Iterable[float] = ELEMENTS_PER_COORDINATE,
    *,
    k: int = 100,
    epsilon: float = 2.0,
    delta: float = 1e-5,
    d: int = 1000,
    steps: int = 100,
    sample_rate: float = 0.1,
    beta: float = 0.05,
    trials: int = 200,
    seed: int = 0,
) -> pd.DataFrame:
    """Figures 2 and 6: DP-SGD against the number n/d of elements per coordinate, column ``x``.

    For many elements the bound falls for two reasons: they hide each other, and the correction
    for δ grows like 2nδ. In column ``valid``, by the exact p-value, most of the latter is gone.

    Examples
    --------
    >>> table = elements_per_coordinate([1, 4], trials=50)
    >>> bool(table["bound"][1] > table["bound"][0])
    True
    """
    run: dict[str, Any] = {"d": d, "steps": steps, "sample_rate": sample_rate}
    settings = [DpSgd.calibrated(epsilon, delta, n=n, **run) for n in elements_of(ratios, d)]
    rows = []
    for dpsgd in _with_bar(settings):
        counts = simulate_dpsgd(dpsgd, k, trials=trials, seed=seed)
        rows.append({"x": dpsgd.n / dpsgd.d, "n": dpsgd.n, "k": k, **summary(counts, beta, delta)})
    return pd.DataFrame(rows)


def taken_guesses_by_epsilon(
    fractions: Iterable[float] = FRACTIONS_OF_GUESSES,
    *,
    epsilons: Iterable[float] = EPSILONS,
    trials: int = 20,
    **setting: Any,
) -> pd.DataFrame:
    """Figure 7: as :func:`taken_guesses`, for several ε (column ``epsilon``).

    Examples
    --------
    >>> taken_guesses_by_epsilon([0.02], epsilons=[1.0, 4.0], trials=5)["epsilon"].tolist()
    [1.0, 4.0]
    """
    return _by_epsilon(taken_guesses, epsilons, fractions, trials=trials, **setting)


def elements_by_epsilon(
    ratios: Iterable[float] = ELEMENTS_PER_COORDINATE,
    *,
    epsilons: Iterable[float] = EPSILONS,
    trials: int = 20,
    **setting: Any,
) -> pd.DataFrame:
    """Figure 8: as :func:`elements_per_coordinate`, for several ε (column ``epsilon``).

    Examples
    --------
    >>> elements_by_epsilon([4], epsilons=[1.0, 4.0], trials=5)["epsilon"].tolist()
    [1.0, 4.0]
    """
    return _by_epsilon(elements_per_coordinate, epsilons, ratios, trials=trials, **setting)


def exact_elements_by_epsilon(
    ratios: Iterable[float] = ELEMENTS_PER_COORDINATE,
    *,
    k: int = 100,
    epsilons: Iterable[float] = EPSILONS,
    delta: float = 1e-5,
    d: int = 1000,
) -> pd.DataFrame:
    """Figure 8 without simulation: the exact means of ``bound`` and ``valid``.

    >>> exact_elements_by_epsilon([8], epsilons=[2.0])[["x", "bound", "valid"]].round(3)
         x  bound  valid
    0  8.0  0.605  0.622
    """
    rows = []
    numbers = dict.fromkeys(elements_of(ratios, d))
    points = product(_reals_of("epsilons", epsilons, 0, inf, "()"), numbers)
    for epsilon, n in _with_bar(list(points)):
        law = sums_law(DpSgd.calibrated(epsilon, delta, n=n, d=d), k)
        row = {"epsilon": epsilon, "x": n / d, "n": n, "k": k}
        row["bound"] = mean_bound(law, delta=delta)
        row["valid"] = mean_bound(law, delta=delta, rule=Exact())
        rows.append(row)
    return pd.DataFrame(rows)


def _by_epsilon(
    experiment: Callable[..., pd.DataFrame],
    epsilons: Iterable[float],
    grid: Iterable[float],
    **setting: Any,
) -> pd.DataFrame:
    """An experiment at several ε, one below the other."""
    values = _reals_of("epsilons", epsilons, 0, inf, "()")
    tables = {epsilon: experiment(grid, epsilon=epsilon, **setting) for epsilon in values}
    return pd.concat(tables, names=["epsilon"]).reset_index("epsilon").reset_index(drop=True)


def adaptive_dpsgd(
    ratios: Iterable[float] = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 40, 80, 160),
    *,
    tau: float = 1.0,
    feedbacks: Iterable[str] = PLAYED,
    epsilon: float = 2.0,
    delta: float = 1e-5,
    d: int = 1000,
    beta: float = 0.05,
    trials: int = 200,
    seed: int = 0,
) -> pd.DataFrame:
    """Figure 3: one full-batch step of DP-SGD, with feedback or without, against n/d (``x``).

    Column ``feedback``: ``none`` is the paper's ORA, ``full`` its AORA, ``one-way`` reveals the
    coins of skipped elements only. Column ``bound`` is what the paper plots, with δ > 0 and a
    number of guesses that depends on the output, which the theorem behind it does not cover.
    ``valid`` is proved for the audit; for ``full`` it is the certified anytime bound, up to
    20,000 elements: with more, certificates take seconds, and nearly every audit needs its own.

    Examples
    --------
    >>> adaptive_dpsgd([4], trials=5)["feedback"].tolist()
    ['none', 'one-way', 'full']
    """
    once: dict[str, Any] = {"d": d, "steps": 1, "sample_rate": 1.0}
    settings = [DpSgd.calibrated(epsilon, delta, n=n, **once) for n in elements_of(ratios, d)]
    points = list(product(_words_of("feedbacks", feedbacks, PLAYED), settings))
    rows = []
    for word, dpsgd in _with_bar(points):
        counts = simulate_single_step(dpsgd, tau, feedback=word, trials=trials, seed=seed)
        point = {"feedback": word, "x": dpsgd.n / dpsgd.d, "n": dpsgd.n}
        proved = word != "full" or dpsgd.n <= MOST_CERTIFIED
        rows.append({**point, **summary(counts, beta, delta, proved=proved)})
    return pd.DataFrame(rows)


def adaptive_count_in_sets(
    sizes: Iterable[int] = range(1, 11),
    *,
    sets: int = 100,
    tau: float = inf,
    feedbacks: Iterable[str] = PLAYED,
    beta: float = 0.05,
    trials: int = 100,
    seed: int = 0,
) -> pd.DataFrame:
    """Figure 9: Count-in-Sets, with feedback or without, against the size s of the sets (``x``).

    Column ``feedback`` as in :func:`adaptive_dpsgd`.

    Examples
    --------
    >>> adaptive_count_in_sets([2], trials=5)[["x", "feedback"]]
       x feedback
    0  2     none
    1  2  one-way
    2  2     full
    """
    sets, guesser = arguments.integer("sets", sets, 1), ThresholdGuesser(tau)
    words = _words_of("feedbacks", feedbacks, PLAYED)
    whole = _row("sizes", arguments.integers("sizes", _readable(sizes), 1))
    rows = []
    for word, s in _with_bar(list(product(words, whole))):
        mechanism, n = CountInSets(s), s * sets
        if word == "none":
            counts = one_run(mechanism, guesser, n, trials=trials, seed=seed)
        else:
            counts = adaptive(mechanism, guesser, n, feedback=word, trials=trials, seed=seed)
        rows.append({"feedback": word, "x": s, "n": n, **summary(counts, beta, 0.0)})
    return pd.DataFrame(rows)


def local_laplace(
    epsilons: Iterable[float] = (0.5, 1, 2, 4, 8, 16),
    *,
    n: int = 10_000,
    beta: float = 0.05,
    trials: int = 200,
    seed: int = 0,
) -> pd.DataFrame:
    """Figure 4: Local Laplace without abstentions, against its ε (column ``x``).

    Examples
    --------
    >>> table = local_laplace([2.0], trials=20)
    >>> bool(0 < table["bound"][0] < 2)
    True
    """
    rows = []
    for epsilon in _with_bar(_reals_of("epsilons", epsilons, 0, inf, "()")):
        counts = one_run(LocalLaplace(epsilon), ThresholdGuesser(), n, trials=trials, seed=seed)
        rows.append({"x": epsilon, "n": counts.n, **summary(counts, beta, 0.0)})
    return pd.DataFrame(rows)


def improvement_ladder(*, trials: int = 200, seed: int = 0) -> pd.DataFrame:
    """From an audit of DP-SGD at (2, 1e-5) in the paper to ours, one change at a time.

    The training is the paper's throughout: 1000 coordinates, 100 steps, sample rate 0.1. So is the
    access: the auditor sets the gradients of its elements, and sees the noisy gradient of every
    step. Up to ``"all steps"`` only the analysis changes, not the audited run. From ``"hopping"``
    on, the elements' gradients and then their number change. Dropping and crowding pay off only
    with many elements, so that number is raised twice.

    There is a row for each ``change``, and earlier changes stay. There are ``n`` elements and ``k``
    guesses, fixed in advance. The guesser ``sees`` the sum of all steps, or each of them. Over
    ``trials`` audits, ``steinke`` is the mean bound by the p-value of Steinke, Nasr and Jagielski,
    and ``bound`` by that or the exact one, as ``rule`` says. Rows that differ only
    in the rule share their audits. Columns that end in ``_se`` are standard errors.

    Examples
    --------
    >>> ladder = improvement_ladder(trials=2)
    >>> ladder[["change", "n", "k", "places", "rule"]].iloc[[0, -1]]
                change       n    k            places                    rule
    0  as in the paper    8000  100              stay  Steinke et al.'s bound
    8         crowding  100000  350  hop, drop, crowd             exact bound
    """
    all_steps = partial(simulate_likelihood, sees="steps")
    dropped, crowded = (partial(simulate_hopping, dropping=x) for x in (DROPPED, CROWDED))
    rungs: list[tuple[str, int, int, str, str, Rule, Callable[..., Counts]]] = [
        ("as in the paper", 8000, 100, "sum", "stay", Steinke(), simulate_dpsgd),
        ("350 guesses", 8000, 350, "sum", "stay", Steinke(), simulate_dpsgd),
        ("exact bound", 8000, 350, "sum", "stay", Exact(), simulate_dpsgd),
        ("all steps", 8000, 350, "all steps", "stay", Exact(), all_steps),
        ("hopping", 8000, 350, "all steps", "hop", Exact(), simulate_hopping),
        ("24,000 canaries", 24_000, 350, "all steps", "hop", Exact(), simulate_hopping),
        ("dropping", 24_000, 350, "all steps", "hop, drop", Exact(), dropped),
        ("100,000 canaries", 100_000, 350, "all steps", "hop, drop", Exact(), dropped),
        ("crowding", 100_000, 350, "all steps", "hop, drop, crowd", Exact(), crowded),
    ]
    rows = []
    for change, n, k, sees, places, rule, play in _with_bar(rungs):
        counts = play(DpSgd.calibrated(2.0, 1e-5, n=n), k, trials=trials, seed=seed)
        found = summary(counts, 0.05, 1e-5)
        name = "valid" if rule == Exact() else "bound"
        row = {"change": change, "n": n, "k": k, "sees": sees, "places": places}
        row["rule"] = rule.name
        row |= {"bound": found[name], "bound_se": found[f"{name}_se"], "steinke": found["bound"]}
        rows.append({**row, "steinke_se": found["bound_se"], "trials": counts.trials})
    return pd.DataFrame(rows)


def summarise(
    counts: Counts | Mapping[str, Counts], *, beta: float = 0.05, delta: float = 0.0
) -> pd.DataFrame:
    """Mean bounds, estimation and efficacy of many trials, with standard errors: one row per audit.

    Parameters
    ----------
    counts : Counts or dict
        The counts of an audit, or of several by name; the names become the index.
    beta, delta : float
        The bounds hold with probability at least 1 - beta, for this δ.

    Returns
    -------
    DataFrame
        ``bound`` is the mean of ε'_β(v, r) as in the paper, 0 for a trial without guesses. For
        δ > 0 it is proved only for a number of guesses fixed in advance. ``valid`` is the mean of
        :func:`oralib.valid_lower_bound`, the bound that is proved for the way the audit was set
        up; nan where the library has none. ``estimation`` is the mean of p_inv(v / r). It is inf
        if some trial has v = r, and nan if some trial has no guesses, or if one has v = r and
        another v = 0; ``all_right`` and ``no_guesses`` count these trials. ``efficacy`` is the mean
        of v / r; nan if some trial has no guesses. Columns that end in ``_se`` are standard errors.
        ``guesses`` is the mean of r, and ``trials`` the number of trials.

    Examples
    --------
    >>> few, many = Counts([7, 8], [10, 10], n=100), Counts([70, 80], [100, 100], n=100)
    >>> summarise({"few": few, "many": many})[["bound", "efficacy"]].round(3)
          bound  efficacy
    few   0.000      0.75
    many  0.715      0.75
    """
    named = counts if isinstance(counts, Mapping) else {0: counts}
    if not named:
        raise ValueError("counts must have at least one entry, got counts={}")
    for each in named.values():
        arguments.instance("counts", each, Counts, "Counts(75, 100, n=1000)")
    rows = [summary(each, beta, delta) for each in named.values()]
    return pd.DataFrame(rows, index=list(named))


def summary(counts: Counts, beta: float, delta: float, *, proved: bool = True) -> dict[str, Any]:
    """The row of one audit; without its valid bound if it is not to be ``proved``."""
    bound = epsilon_lower_bound(counts.v, counts.r, beta=beta, delta=delta, n=counts.n)
    valid = np.full(counts.trials, np.nan)
    if proved:
        with suppress(ValueError):  # no bound is known for this kind of audit
            valid = valid_lower_bound(counts, beta=beta, delta=delta)
    return {
        **_mean("bound", bound),
        **_mean("valid", valid),
        **_mean("estimation", epsilon_estimate(counts.v, counts.r)),
        **_mean("efficacy", counts.accuracy),
        "guesses": float(counts.r.mean()),
        "all_right": int(((counts.v == counts.r) & (counts.r > 0)).sum()),
        "no_guesses": int((counts.r == 0).sum()),
        "trials": counts.trials,
    }


def _mean(name: str, values: NDArray[np.float64]) -> dict[str, float]:
    defined = len(values) > 1 and np.isfinite(values).all()
    error = float(values.std(ddof=1)) / sqrt(len(values)) if defined else nan
    with np.errstate(invalid="ignore"):  # the mean of inf and -inf is nan
        return {name: float(values.mean()), f"{name}_se": error}


def _reals_of(
    name: str, values: Iterable[float], low: float, high: float, interval: str
) -> list[float]:
    """A grid of numbers in an interval; a single number is a grid of one point."""
    return _row(name, arguments.reals(name, _readable(values), low, high, interval=interval))


def _words_of(name: str, values: Iterable[str], allowed: Iterable[str]) -> list[str]:
    """A grid of some of the allowed words."""
    words = _row(name, arguments.array(name, _readable(values), "a row of words"))
    return [arguments.one_of(name, word, tuple(allowed)) for word in words]


def elements_of(ratios: Iterable[float], d: int) -> list[int]:
    """The numbers of elements n with these ratios n / d."""
    d = arguments.integer("d", d, 1)
    return [max(1, round(ratio * d)) for ratio in _reals_of("ratios", ratios, 0, 1e12, "(]")]


def _readable(values: Any) -> Any:
    """Dictionaries and generators, which NumPy takes for a single object, as lists."""
    as_it_is = isinstance(values, str | np.ndarray) or not isinstance(values, Iterable)
    return values if as_it_is else list(values)


def _row(name: str, values: NDArray[Any]) -> list[Any]:
    row = np.atleast_1d(values)
    if row.ndim != 1 or not row.size:
        raise ValueError(f"{name} must be a row of at least one entry, got shape {row.shape}")
    return row.tolist()


def _with_bar(points: list[Any]) -> Iterable[Any]:
    """The points of a grid, with a progress bar on a terminal."""
    return tqdm(points, disable=None, leave=False)

"""Ways of auditing DP-SGD side by side: the best bound of each, and maps of them."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import product

import pandas as pd
from tqdm import tqdm

from orabook.studies.ceiling import best_guesses
from orabook.studies.methods import METHODS, Method, training
from oralib import _check
from oralib.accounting import certified_epsilon, noise_multiplier
from oralib.bounds import Counts, valid_lower_bound, valid_rule
from oralib.dpsgd import DpSgd, simulate_dpsgd, simulate_hopping, simulate_likelihood
from oralib.experiments import elements_of, integers_of, reals_of, summary, words_of


def best_bounds(
    methods: Iterable[str] = tuple(METHODS),
    *,
    epsilon: float = 2.0,
    delta: float = 1e-5,
    d: int = 1000,
    steps: int = 100,
    sample_rate: float = 0.1,
    beta: float = 0.05,
    trials: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """The valid bound of each way of auditing that we compare, a row per method.

    Columns ``bound`` and ``bound_se`` are the mean of :func:`oralib.valid_lower_bound` over the
    audits and its standard error, ``usual`` that of the paper's rule, ``above`` the share of audits
    whose bound exceeds ``certified``, the ε by a PLD accountant, and ``ceiling`` the mean bound of
    the best guesser of as many isolated elements. The choices of
    :data:`orabook.studies.methods.METHODS` were made for the defaults.

    Examples
    --------
    >>> best_bounds(["paper"], trials=20)[["method", "n", "k", "rule"]]
      method     n    k   rule
    0  paper  8000  100  exact
    """
    names = words_of("methods", methods, METHODS)
    d = _check.integer("d", d, max(_least_coordinates(METHODS[name]) for name in names), 10**6)
    sigma = noise_multiplier(epsilon, delta, steps, sample_rate)
    rows = []
    for name in tqdm(names, disable=None, leave=False):
        method = METHODS[name]
        dpsgd = training(method, d, steps, sample_rate, sigma)
        counts = method.play(dpsgd, method.guesses, trials=trials, seed=seed)
        means = summary(counts, beta, delta)
        bounds = valid_lower_bound(counts, beta=beta, delta=delta)
        alone = DpSgd(counts.n, counts.n, steps, sample_rate, sigma)
        certified = certified_epsilon(alone, delta)
        row = {"method": name, "words": method.words, "n": counts.n, "k": method.guesses}
        row |= {"feedback": counts.feedback, "rule": valid_rule(counts, delta)}
        row |= {"bound": means["valid"], "bound_se": means["valid_se"]}
        row |= {"usual": means["bound"], "usual_se": means["bound_se"]}
        row |= {name: means[name] for name in ("estimation", "efficacy")}
        row["ceiling"] = best_guesses(alone, "steps", "exact", beta, delta)[1]
        row |= {"certified": certified, "above": float((bounds > certified).mean())}
        rows.append({**row, "trials": counts.trials})
    return pd.DataFrame(rows)


def _least_coordinates(method: Method) -> int:
    """The least number of coordinates that leaves enough canaries in the end for all guesses."""
    dropping = getattr(method.play, "keywords", {}).get("dropping")
    left = method.per_coordinate if dropping is None else int(dropping.final)
    return -(-method.guesses // left)


def bound_map(
    ratios: Iterable[float] = (1, 2, 4, 8, 16, 32, 64),
    guesses: Iterable[int] = (50, 100, 200, 400, 800),
    *,
    epsilons: Iterable[float] = (1.0, 2.0, 4.0, 8.0),
    methods: Iterable[str] = ("staying", "one-way", "hopping"),
    delta: float = 1e-5,
    d: int = 1000,
    steps: int = 100,
    sample_rate: float = 0.1,
    beta: float = 0.05,
    trials: int = 20,
    seed: int = 0,
) -> pd.DataFrame:
    """The mean valid bound over n/d (column ``x``) and k, for several ε and ways of auditing.

    Canaries stay and the guesser looks at sums; they stay and it looks at all steps, with one-way
    feedback; or they hop, and none is dropped.

    Examples
    --------
    >>> table = bound_map([1], [100], epsilons=[2.0], methods=["staying"], trials=5)
    >>> table[["epsilon", "x", "k"]]
       epsilon    x    k
    0      2.0  1.0  100
    """
    words = words_of("methods", methods, _MAPPED)
    numbers = integers_of("guesses", guesses)
    sizes = elements_of(ratios, d)
    if max(numbers) > min(sizes):
        raise ValueError(
            f"guesses must be at most n, the fewest elements, got guesses={max(numbers)} and "
            f"n={min(sizes)}"
        )
    rows = []
    levels = reals_of("epsilons", epsilons, 0, 1000, "(]")
    grid = list(product(levels, sizes, words, numbers))
    for epsilon, n, word, k in tqdm(grid, disable=None, leave=False):
        sigma = noise_multiplier(epsilon, delta, steps, sample_rate)
        dpsgd = DpSgd(n, d, steps, sample_rate, sigma)
        counts = _MAPPED[word](dpsgd, k, trials=trials, seed=seed)
        labels = {"epsilon": epsilon, "method": word, "x": n / d, "n": n, "k": k}
        rows.append({**labels, **summary(counts, beta, delta)})
    return pd.DataFrame(rows)


_MAPPED: dict[str, Callable[..., Counts]] = {
    "staying": simulate_dpsgd,
    "one-way": partial(simulate_likelihood, sees="steps", feedback="one-way"),
    "hopping": simulate_hopping,
}

"""Several independent runs of one training, each audited: one bound for all of them.

A mechanism may be (ε, δ)-DP and leak everything in one of some thousand runs. One run cannot tell
that from bad luck, so its bound is limited. In m independent runs it would have to happen m times,
with the m-th power of the probability: so m bounds that each fail with probability β^(1/m) all fail
with probability β, and the least of them is a bound.
"""

from collections.abc import Sequence
from dataclasses import replace

from oralib.bounds.anytime import LARGEST_BETA, Anytime
from oralib.bounds.certified import Certified
from oralib.bounds.counts import Counts, Expected
from oralib.bounds.valid import valid_lower_bound, valid_p_value, valid_rule
from oralib.ground import arguments

__all__ = ["lower_bound_of_runs", "p_value_of_runs"]


def lower_bound_of_runs(
    runs: Counts | Sequence[Counts],
    *,
    beta: float = 0.05,
    delta: float = 0.0,
    expected: Expected = None,
) -> float:
    """Return a lower bound on ε from m independent runs: the least of m bounds, each at β^(1/m).

    With probability at least 1 - β it does not exceed the ε of an (ε, δ)-DP mechanism. Each run has
    canaries, coins, noise and guesses of its own, and all m are used, whatever came out.

    The runs can also be pooled, as one audit of m n canaries: ``valid_lower_bound`` of the sums of
    v, r and n. That is larger for few canaries, since the bound of a run grows with its guesses;
    the least of m bounds is larger for many, since pooled runs have the limit of a single one. With
    two runs of 100 steps for ε = 2 and δ = 10⁻⁵ it is worth it from about 300,000 canaries each.
    Which of the two it will be must be fixed in advance.

    Parameters
    ----------
    runs : Counts or sequence of Counts
        One for each run, or one with arrays.
    beta, delta, expected
        As for :func:`oralib.valid_lower_bound`. With feedback and a number of guesses that is not
        fixed, β^(1/m) must be at most 1/e, so that at β = 0.05 there are at most two runs.

    Examples
    --------
    >>> runs = Counts([310, 305, 300], 350, n=100_000, r_fixed=True)
    >>> round(lower_bound_of_runs(runs, delta=1e-5), 3)
    1.721
    """
    parts = _parts(runs)
    beta, delta = arguments.beta_and_delta(beta, delta)
    level = _level(parts, beta, delta)
    return min(
        float(valid_lower_bound(part, beta=level, delta=delta, expected=expected)) for part in parts
    )


def p_value_of_runs(
    runs: Counts | Sequence[Counts],
    epsilon: float,
    *,
    beta: float = 0.05,
    delta: float = 0.0,
    expected: Expected = None,
) -> float:
    """Return a p-value of (ε, δ)-DP from m independent runs: the m-th power of their largest.

    Parameters
    ----------
    runs, beta, delta, expected
        As for :func:`lower_bound_of_runs`.
    epsilon : float
        The ε of the hypothesis, at least 0.

    Examples
    --------
    >>> runs = Counts([310, 305, 300], 350, n=100_000, r_fixed=True)
    >>> round(p_value_of_runs(runs, 1.7, delta=1e-5), 3)
    0.032
    """
    parts = _parts(runs)
    epsilon = arguments.real("epsilon", epsilon, 0)
    beta, delta = arguments.beta_and_delta(beta, delta)
    level = _level(parts, beta, delta)
    largest = max(
        float(valid_p_value(part, epsilon, beta=level, delta=delta, expected=expected))
        for part in parts
    )
    return float(largest ** len(parts))


def _parts(runs: Counts | Sequence[Counts]) -> list[Counts]:
    """Return the counts of each run by itself."""
    if not isinstance(runs, Counts | list | tuple):
        raise TypeError(f"runs must be Counts or a list of Counts, got runs={runs!r}")
    parts: list[Counts] = []
    for counts in [runs] if isinstance(runs, Counts) else runs:
        arguments.instance("runs", counts, Counts, "[Counts(75, 100, n=1000, r_fixed=True), ...]")
        if isinstance(counts.v, int):
            parts.append(counts)
        else:
            pairs = zip(counts.v.tolist(), counts.r.tolist(), strict=True)
            parts.extend(replace(counts, v=v, r=r) for v, r in pairs)
    if not parts:
        raise ValueError("runs must hold the counts of at least one run, got none")
    return parts


def _level(parts: list[Counts], beta: float, delta: float) -> float:
    """Return β^(1/m), if the rule of each run is proved for that."""
    level = float(beta ** (1 / len(parts)))
    rules = [valid_rule(part, delta) for part in parts]
    any_may_stop = any(isinstance(rule, Anytime | Certified) for rule in rules)
    if len(parts) > 1 and level > LARGEST_BETA and any_may_stop:
        raise ValueError(
            "beta ** (1 / m) must be at most 1/e for runs with feedback and an open number of "
            f"guesses, got m={len(parts)} runs and beta={beta:g}; fix the number of guesses"
        )
    return level

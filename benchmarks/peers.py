"""Bounds by other packages from the same counts: how long they take, and how far they differ.

A package that is not installed is left out; ``make torch`` brings jax_privacy.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np

from benchmarks.words import time, two_digits
from oralib.bounds import Gaussian, Rule, Steinke

#: The δ of all bounds.
DELTA = 1e-5

#: Right guesses, guesses, and canaries for which f-DP bounds of other packages take seconds.
FEW = (
    (75, 100, 1000),
    (95, 100, 500),
    (179, 200, 2000),
    (300, 500, 500),
    (700, 1000, 5000),
)

#: Counts for bounds that are faster.
COUNTS = (*FEW, (8000, 10_000, 10_000), (60_000, 100_000, 100_000))


def jax_privacy(rule: str, v: int, r: int, n: int) -> Callable[[], float]:
    """A call of a rule of jax_privacy; r canaries have score 1 and are guessed to be included."""
    from jax_privacy import auditing

    inside = np.arange(max(v, n // 2)) < v
    outside = np.arange(n - inside.size) < r - v
    auditor = auditing.CanaryScoreAuditor(inside.astype(float), outside.astype(float))
    cut = auditing.Explicit(0.5)
    return lambda: getattr(auditor, rule)(0.05, DELTA, threshold_strategy=cut)


def privacy_guard(v: int, r: int, n: int) -> Callable[[], float]:
    """A call of the f-DP analysis of privacy_guard, which tries noises in steps of 0.01."""
    from privacy_guard.analysis.mia.fdp_analysis_node import FDPAnalysisNode as Node

    return lambda: Node(m=n, c=v, c_cap=r, threshold=0.05, delta=DELTA).run_analysis().eps


def ours(rule: Rule, v: int, r: int, n: int) -> float:
    """Return the bound of oralib by a rule."""
    return float(rule.lower_bound(v, r, n=n, delta=DELTA))


#: Comparisons: a name, the package, its bound, our rule, and the counts.
PEERS = (
    (
        "Steinke et al.'s bound, one threshold",
        "jax_privacy",
        partial(jax_privacy, "epsilon_one_run"),
        Steinke(),
        COUNTS,
    ),
    (
        "f-DP bound, one threshold",
        "jax_privacy",
        partial(jax_privacy, "epsilon_one_run_fdp"),
        Gaussian(),
        FEW,
    ),
    ("f-DP bound", "privacy_guard", privacy_guard, Gaussian(), FEW[:3]),
)


def compared(
    seconds: Callable[[Callable[[], object], int], float],
) -> Iterator[tuple[str, ...]]:
    """Measure each comparison, and yield its row. Both are warm: jax_privacy keeps its noises."""
    for name, package, theirs, rule, counts in PEERS:
        if find_spec(package) is None:
            print(f"{name}: {package} is not installed")
            continue
        plain = []
        fast = []
        gaps = []
        for count in counts:
            their_bound = theirs(*count)
            our_bound = partial(ours, rule, *count)
            gaps.append(abs(our_bound() - their_bound()))
            rounds = [(seconds(their_bound, 1), seconds(our_bound, 5)) for _ in range(3)]
            plain.append(min(duration for duration, _ in rounds))
            fast.append(min(duration for _, duration in rounds))
        ratios = [a / b for a, b in zip(plain, fast, strict=True)]
        yield (
            name,
            f"{len(counts)}, up to {counts[-1][0]:,} right of {counts[-1][1]:,} guesses",
            f"{package} {version(package.replace('_', '-'))}",
            f"{time(min(plain))} to {time(max(plain))}",
            f"{time(min(fast))} to {time(max(fast))}",
            f"{two_digits(min(ratios))} to {two_digits(max(ratios))}",
            f"{max(gaps):.0e}",
        )

"""Bounds by other packages from the same counts: how long they take, and how far they differ.

A package that is not installed is left out; ``make torch`` brings jax_privacy.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np

from benchmarks.words import shown, time
from oralib.bounds import Gaussian, Rule, Steinke

DELTA = 1e-5

#: Right guesses, guesses, and canaries.
COUNTS = (
    *((75, 100, 1000), (95, 100, 500), (179, 200, 2000), (300, 500, 500), (700, 1000, 5000)),
    *((8000, 10_000, 10_000), (60_000, 100_000, 100_000)),
)

#: The f-DP bounds of other packages would take minutes for the others.
FEW = COUNTS[:5]


def jax_privacy(rule: str, v: int, r: int, n: int) -> Callable[[], float]:
    """A rule of its auditor; r canaries have a score of 1 and are guessed to be included."""
    from jax_privacy import auditing

    inside = np.arange(max(v, n // 2)) < v
    outside = np.arange(n - inside.size) < r - v
    auditor = auditing.CanaryScoreAuditor(inside.astype(float), outside.astype(float))
    cut = auditing.Explicit(0.5)
    return lambda: getattr(auditor, rule)(0.05, DELTA, threshold_strategy=cut)


def privacy_guard(v: int, r: int, n: int) -> Callable[[], float]:
    """Its f-DP analysis, which tries noises in steps of 0.01."""
    from privacy_guard.analysis.mia.fdp_analysis_node import FDPAnalysisNode as Node

    return lambda: Node(m=n, c=v, c_cap=r, threshold=0.05, delta=DELTA).run_analysis().eps


def ours(rule: Rule, v: int, r: int, n: int) -> float:
    return float(rule.lower_bound(v, r, n=n, delta=DELTA))


#: What is compared: a name, the package, its bound, ours, and the counts.
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
    """A row for each comparison, in turn. Both are warm: jax_privacy has its noises in a cache."""
    for name, package, theirs, rule, counts in PEERS:
        if find_spec(package) is None:
            print(f"{name}: {package} is not installed")
            continue
        took, ours_took, gaps = [], [], []
        for count in counts:
            call = theirs(*count)
            mine = partial(ours, rule, *count)
            gaps.append(mine() - call())
            rounds = [(seconds(call, 1), seconds(mine, 5)) for _ in range(3)]
            took.append(min(theirs for theirs, _ in rounds))
            ours_took.append(min(ours for _, ours in rounds))
        ratios = [a / b for a, b in zip(took, ours_took, strict=True)]
        yield (
            name,
            f"{len(counts)}, up to {counts[-1][0]:,} right of {counts[-1][1]:,} guesses",
            f"{package} {version(package.replace('_', '-'))}",
            f"{time(min(took))} to {time(max(took))}",
            f"{time(min(ours_took))} to {time(max(ours_took))}",
            f"{shown(min(ratios))} to {shown(max(ratios))}",
            f"{max(map(abs, gaps)):.0e}",
        )

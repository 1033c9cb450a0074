"""Compute the tables that chapters read because they take minutes: ``make data``.

Or some of them: ``python -m orabook.builder.data best-bounds``. Real trainings need ``make torch``.

A table has the result of many audits, and in column ``first`` that of the first few. A test plays
these again, and so finds a table that the library would no longer compute.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import product
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from orabook import studies
from orabook.experiments import improvement_ladder
from orabook.extensions import stored_outputs
from orabook.laws import mean_bound
from orabook.place import BOOK
from orabook.studies.methods import METHODS
from orabook.trainings import blackbox, other_packages, planted
from oralib import (
    Counts,
    DpSgd,
    Dropping,
    simulate_dpsgd,
    simulate_hopping,
    valid_lower_bound,
)
from oralib.bounds import Exact, Rule, Steinke
from oralib.dpsgd.hopping import hopping_counts
from oralib.dpsgd.likelihood import likelihood_counts

__all__ = [
    "LargeAudit",
    "as_paper",
    "best_bounds",
    "bound_map",
    "ceilings",
    "explored",
    "explorer",
    "ladder",
    "main",
    "many_weights",
    "published_audits",
    "standard_error",
    "staying",
]

FOLDER = BOOK / "data"

#: The audits of each row of ``best-bounds``: more where they are cheap.
TRIALS = {
    **dict.fromkeys(METHODS, 1000),
    **dict.fromkeys(("paper", "sum"), 10_000),
    **dict.fromkeys(("hopping", "dropping", "crowding"), 4000),
}
#: The first audits of a row, one block, which the tests play again.
FIRST = 32


def best_bounds() -> pd.DataFrame:
    """The bounds of each way of auditing in the paper's setting."""
    rows = [studies.best_bounds([name], trials=trials) for name, trials in TRIALS.items()]
    first = studies.best_bounds(TRIALS, trials=FIRST)["bound"]
    return pd.concat(rows, ignore_index=True).assign(first=first)


def ladder() -> pd.DataFrame:
    """The ladder from the paper's audit to ours, one change at a time."""
    first = improvement_ladder(trials=FIRST)["bound"]
    return improvement_ladder(trials=4000).assign(first=first)


class LargeAudit(NamedTuple):
    """An audit of a model with 100,000 weights, and how often it is played."""

    n: int
    k: int
    sees: str
    places: str
    rule: Rule
    trials: int
    play: Callable[..., Counts] = simulate_hopping


#: The weights of the large model, and the first audits of a row that the tests play again.
LARGE_D = 100_000
LARGE_FIRST = 2
#: The schedule of dropping and crowding of the last row of ``LARGE``, which was chosen by a
#: prediction that uses no random numbers.
LARGE_SCHEDULE = Dropping(4.0, 0.9, 1.65, crowding=(3.0, 20.0))
#: The rows of ``many-weights``. The first two are controls: canaries stay, and the guesser uses
#: only sums. For one canary a weight with the paper's bound the best number of guesses is computed
#: (studies.isolated_ceiling). More canaries or fewer show less: so did audits with seed 1, which
#: also chose the second row.
LARGE = {
    "control": LargeAudit(100_000, 882, "sum", "stay", Steinke(), 4000, simulate_dpsgd),
    "control, exact bound": LargeAudit(200_000, 900, "sum", "stay", Exact(), 4000, simulate_dpsgd),
    "a canary each": LargeAudit(100_000, 350, "all steps", "stay", Exact(), 400),
    "800,000 canaries": LargeAudit(
        800_000,
        1500,
        "all steps",
        "hop, drop, crowd",
        Exact(),
        96,
        partial(simulate_hopping, dropping=LARGE_SCHEDULE),
    ),
}


def many_weights(trials: int | None = None) -> pd.DataFrame:
    """Audit a model with many weights, by the paper's audit and ours; ten minutes.

    The columns are those of the ladder; canaries with a weight each have nowhere to hop to.
    """
    rows = []
    for change, audit in LARGE.items():
        dpsgd = DpSgd.calibrated(2.0, 1e-5, n=audit.n, d=LARGE_D)
        counts = audit.play(dpsgd, audit.k, trials=trials or audit.trials, seed=0)
        bounds = audit.rule.lower_bound(counts.v, counts.r, n=audit.n, delta=1e-5)
        rows.append(
            {
                "change": change,
                "n": audit.n,
                "d": LARGE_D,
                "k": audit.k,
                "sees": audit.sees,
                "places": audit.places,
                "rule": audit.rule.name,
                "bound": bounds.mean(),
                "bound_se": standard_error(bounds),
                "trials": counts.trials,
                "first": bounds[:LARGE_FIRST].mean(),
            }
        )
    table = pd.DataFrame(rows)
    isolated = studies.isolated_ceiling(table["n"], sees=["steps"], rules=[Exact()])
    return table.assign(ceiling=isolated["bound"])


#: Canaries and guesses of the rows of both ladders, and the best number of guesses of 8,000.
CEILINGS = (
    (8000, 100),
    (8000, 200),
    (8000, 350),
    (24_000, 350),
    (100_000, 350),
    (100_000, 882),
    (200_000, 900),
    (800_000, 1500),
)
#: The ε of the conditions of ``CEILINGS``; right guesses up to half of all are counted together.
CEILING_EPSILONS = tuple((np.arange(2, 47) / 20).tolist())


def ceilings(designs: Sequence[tuple[int, int]] = CEILINGS) -> pd.DataFrame:
    """Ceilings of the mean bound of n canaries and k guesses, and the means of isolated ones.

    The bound is the exact one; the guesses are fixed in advance, with no or one-way feedback.
    """
    rows = []
    for n, k in tqdm(designs, disable=None, leave=False):
        dpsgd = DpSgd.calibrated(2.0, 1e-5, n=n, d=n)
        ceiling = studies.ceiling_of_means(
            dpsgd, k, delta=1e-5, epsilons=CEILING_EPSILONS, lowest=k // 2
        )
        law = studies.isolated_law(dpsgd, k)
        isolated = mean_bound(law, delta=1e-5, rule=Exact())
        rows.append({"n": n, "k": k, "ceiling": ceiling, "isolated": isolated})
    return pd.DataFrame(rows)


def as_paper(n: int, epsilon: float = 2.0) -> DpSgd:
    """The training of the paper's main setting, with n elements."""
    return DpSgd.calibrated(epsilon, 1e-5, n=n)


def standard_error(values: NDArray[Any]) -> float:
    return float(values.std(ddof=1) / sqrt(len(values)))


#: The numbers of canaries of audits like a published one, which had the first number.
PUBLISHED_SIZES = (5000, 100_000, 800_000)
#: The simulated audits with the first number of canaries that take the best threshold.
PUBLISHED_TRIALS = 400


def published_audits() -> pd.DataFrame:
    """Audit trainings like those that others audited; three minutes."""
    published = pd.read_csv(FOLDER / "auditbench-cifar10.csv")["certified"]
    rows = []
    for certified, n in tqdm(list(product(published, PUBLISHED_SIZES))):
        row = studies.audits_like_published(certified, n)
        if n == PUBLISHED_SIZES[0]:
            bounds = studies.best_threshold_bounds(certified, n, trials=PUBLISHED_TRIALS, seed=0)
            row |= {"any_threshold": bounds.mean(), "any_threshold_se": standard_error(bounds)}
            row |= {"trials": len(bounds), "first": bounds[:FIRST].mean()}
        rows.append(row)
    return pd.DataFrame(rows).astype({"trials": "Int64"})


def bound_map() -> pd.DataFrame:
    """Mean bounds over elements per coordinate and guesses, from 20 audits per point."""
    columns = ["epsilon", "method", "x", "n", "k", "valid", "valid_se", "efficacy", "trials"]
    return studies.bound_map(trials=20)[columns]


def explorer() -> pd.DataFrame:
    """Mean bounds of the explorer, at the points of its sliders; about a minute."""
    points = list(product(EXPLORED["epsilon"], EXPLORED["x"], WAYS))
    rows = [explored(*point) for point in tqdm(points, disable=None, leave=False)]
    return pd.concat(rows, ignore_index=True).round(4)


def explored(epsilon: float, x: int, way: str, trials: int | None = None) -> pd.DataFrame:
    """A row for each number of guesses; they share their trainings, unless canaries stay."""
    guesses = EXPLORED["k"][::-1]
    play, default_trials = WAYS[way]
    audits = play(as_paper(1000 * x, epsilon), guesses, trials=trials or default_trials, seed=0)
    rows = []
    for k, counts in zip(guesses, audits, strict=True):
        bounds = valid_lower_bound(counts, delta=1e-5)
        rows.append(
            {
                "epsilon": epsilon,
                "method": way,
                "x": x,
                "k": k,
                "bound": bounds.mean(),
                "bound_se": standard_error(bounds),
                "accuracy": counts.accuracy.mean(),
                "trials": counts.trials,
                "first": bounds[:FIRST].mean(),
            }
        )
    return pd.DataFrame(rows[::-1])


def staying(dpsgd: DpSgd, guesses: Sequence[int], *, trials: int, seed: int) -> list[Counts]:
    return [simulate_dpsgd(dpsgd, k, trials=trials, seed=seed) for k in guesses]


#: The ways of auditing that the explorer offers: the function that plays audits, and their number.
WAYS: dict[str, tuple[Callable[..., list[Counts]], int]] = {
    "staying": (staying, 960),
    "hopping": (hopping_counts, 128),
    "one-way": (partial(likelihood_counts, sees="steps", feedback="one-way"), 64),
}

#: The positions of the explorer's sliders.
EXPLORED = {
    "epsilon": (1.0, 2.0, 3.0, 4.0, 6.0, 8.0),
    "x": (1, 2, 3, 4, 6, 8, 12, 16, 24, 32),
    "k": (50, 100, 200, 300, 400, 800),
}

#: The tables by the names of their files, and the functions that compute them.
MAKERS: dict[str, Callable[[], pd.DataFrame]] = {
    "best-bounds": best_bounds,
    "black-box": blackbox.black_box,  # sixty real trainings, and twenty references
    "bound-map": bound_map,
    "ceilings": ceilings,
    "counts-power": studies.counts_power,
    "explorer": explorer,
    "many-weights": many_weights,
    "ladder": ladder,
    "overclaims": studies.overclaims,
    "published-audits": published_audits,
    "audited-trainings": planted.planted_bugs,  # 180 real trainings
    "other-packages": other_packages.other_packages,  # needs JAX
}


def main() -> None:
    names = sys.argv[1:] or list(MAKERS)
    unknown = [name for name in names if name not in MAKERS]
    if unknown:
        sys.exit(f"there is no table {unknown[0]}, only {', '.join(MAKERS)}")
    if not all(map(find_spec, stored_outputs.NEEDS["torch"][1])):
        for name in {"black-box", "audited-trainings", "other-packages"} & set(names):
            print(f"{name} needs PyTorch: make torch", file=sys.stderr)
            names.remove(name)
    for name in names:
        table = MAKERS[name]().round(6)
        table.to_csv(FOLDER / f"{name}.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main()

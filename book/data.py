"""Compute the tables that chapters read because they take minutes: ``make data``.

Or some of them: ``python -m book.data best-bounds``. Real trainings need PyTorch: ``make torch``.

Beside the result of many audits there is that of the first few, ``first``, which a test computes
again: a table that no longer belongs to the library is found.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from book._ext import committed
from oralib import experiments
from oralib.methods import METHODS
from oralib.trainings import planted

FOLDER = Path(__file__).parent / "data"

#: Audits of a row, many where they are cheap, as in Chapter 6; and those that are played again by
#: the tests: one block of random numbers.
TRIALS = {
    **dict.fromkeys(METHODS, 1000),
    **dict.fromkeys(("paper", "sum"), 10_000),
    **dict.fromkeys(("hopping", "dropping", "crowding"), 4000),
}
FIRST = 32


def best_bounds() -> pd.DataFrame:
    """What each way of auditing shows in the paper's setting."""
    rows = [experiments.best_bounds([name], trials=trials) for name, trials in TRIALS.items()]
    table = pd.concat(rows, ignore_index=True)
    return table.assign(first=first_bounds(table["method"]))


def first_bounds(methods: "pd.Series[str]") -> list[float]:
    """The mean bound of the first audits of each method."""
    return experiments.best_bounds(methods, trials=FIRST)["bound"].tolist()


def bound_map() -> pd.DataFrame:
    """Mean bounds over elements per coordinate and guesses, from 20 audits a point."""
    columns = ["epsilon", "method", "x", "n", "k", "valid", "valid_se", "efficacy", "trials"]
    return experiments.bound_map(trials=20)[columns]


def planted_bugs() -> pd.DataFrame:
    """Twenty real trainings for each bug and claim; needs PyTorch."""
    return planted.planted_bugs(runs=20)


def lacking() -> bool:
    """Whether a package of the real trainings is missing."""
    needed = committed.NEEDS["from oralib.trainings"]
    return any(find_spec(name) is None for name in needed)


MAKERS = {"best-bounds": best_bounds, "bound-map": bound_map, "planted-bugs": planted_bugs}


def main() -> None:
    names = sys.argv[1:] or list(MAKERS)
    unknown = [name for name in names if name not in MAKERS]
    if unknown:
        sys.exit(f"there is no table {unknown[0]}, only {', '.join(MAKERS)}")
    if "planted-bugs" in names and lacking():
        print("planted-bugs needs PyTorch: make torch", file=sys.stderr)
        names.remove("planted-bugs")
    FOLDER.mkdir(exist_ok=True)
    for name in names:
        MAKERS[name]().round(6).to_csv(FOLDER / f"{name}.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main()

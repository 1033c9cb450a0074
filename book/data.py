"""Compute the tables that chapters read because they take minutes: ``make data``.

Beside the result of many audits there is that of the first few, ``first``, which a test computes
again: a table that no longer belongs to the library is found.
"""

from pathlib import Path

import pandas as pd

from oralib import experiments

FOLDER = Path(__file__).parent / "data"

#: Trials of a table, and those that are played again by the tests: one block of random numbers.
TRIALS, FIRST = 1000, 32


def best_bounds() -> pd.DataFrame:
    """What each way of auditing shows in the paper's setting, from 1000 audits."""
    table = experiments.best_bounds(trials=TRIALS)
    return table.assign(first=first_bounds(table["method"]))


def first_bounds(methods: "pd.Series[str]") -> list[float]:
    """The mean bound of the first audits of each method."""
    return experiments.best_bounds(methods, trials=FIRST)["bound"].tolist()


def bound_map() -> pd.DataFrame:
    """Mean bounds over elements per coordinate and guesses, from 20 audits a point."""
    columns = ["epsilon", "method", "x", "n", "k", "valid", "valid_se", "efficacy", "trials"]
    return experiments.bound_map(trials=20)[columns]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, make in (("best-bounds", best_bounds), ("bound-map", bound_map)):
        make().round(6).to_csv(FOLDER / f"{name}.csv", index=False, lineterminator="\n")

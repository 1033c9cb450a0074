"""Compute the tables that chapters read because they take minutes: ``make data``.

Beside the result of many audits there is that of the first few, ``first``, which a test computes
again: a table that no longer belongs to the library is found.
"""

from pathlib import Path

import pandas as pd

from oralib import experiments
from oralib.methods import METHODS

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


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, make in (("best-bounds", best_bounds), ("bound-map", bound_map)):
        make().round(6).to_csv(FOLDER / f"{name}.csv", index=False, lineterminator="\n")

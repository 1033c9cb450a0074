"""The table of a sweep: a row for each complete point, as pandas, CSV, JSON and a picture."""

# mypy: disable-error-code="import-untyped"

import json
import os
from collections.abc import Container, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oralib.results import as_json
from oralib.runs.chapters import identifier, settings
from oralib.runs.folders import set_aside, unseen
from oralib.runs.grid import Grid
from oralib.runs.marked import MARK, put, say

# pandas takes a second to import, and is not needed before there are results.
if TYPE_CHECKING:
    import pandas as pd


def as_text(table: "pd.DataFrame", most: int = 60) -> str:
    """The table to be read on a terminal, its first rows if there are many.

    Examples
    --------
    >>> import pandas as pd
    >>> print(as_text(pd.DataFrame({"epsilon": [1.0, 2.0], "bound": [0.52, 1.25]})))
     epsilon  bound
           1   0.52
           2   1.25
    """
    shown = table.head(most)
    for name in table.columns:
        if table[name].dtype == "object":  # where something may be missing
            shown = shown.copy()
            shown[name] = ["" if cell is None else cell for cell in shown[name]]
    text = str(shown.to_string(index=False, float_format=lambda x: f"{x:.6g}"))
    return text + (f"\n... and {len(table) - most} more" if len(table) > most else "")


def _result(results: Mapping[str, Any], name: str) -> Any:
    """The result of this name, or of the one that Python has made of it."""
    return results.get(name, results.get(identifier(name)))


def table_of(
    grid: Grid,
    keys: list[str],
    complete: Mapping[str, Mapping[str, Any]],
    failures: Container[int] = (),
) -> "pd.DataFrame":
    """The parameters that vary and the results of all complete points, by their records.

    One that has failed may have an earlier record, of modules that are no longer found.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for i, (key, point) in enumerate(zip(keys, grid.points, strict=True)):
        record = None if i in failures else complete.get(key)
        if record is not None:
            values = settings(grid.chapter, point)
            axes = {name: values[name] for name in grid.axes}
            results = record["results"]
            kept = results if grid.results is None else grid.results
            # A result with the name of an axis must not take its place.
            columns: dict[str, str] = {}
            for name in kept:
                column = name
                while column in axes or column in columns or (column != name and column in kept):
                    column = f"{column} (result)"
                columns[column] = name
            found = {column: _result(results, name) for column, name in columns.items()}
            rows.append({**axes, **found})
    names = dict.fromkeys([*grid.axes, *(name for row in rows for name in row)])
    lists = {name: [row.get(name) for row in rows] for name in names}
    # pandas would let a missing number be nan, which is another thing, and round large integers.
    return pd.DataFrame(
        {
            name: pd.Series(column, dtype=None if len({type(x) for x in column}) == 1 else object)
            for name, column in lists.items()
        }
    )


def missing_results(grid: Grid, table: "pd.DataFrame") -> list[str]:
    """The names of results that the grid asks for and no complete point has."""
    asked = dict.fromkeys([*(grid.results or ()), *([grid.show] if grid.show else [])])
    there = [name for name in table.columns if any(cell is not None for cell in table[name])]
    return [
        name
        for name in asked
        if len(table) and not {name, identifier(name), f"{name} (result)"} & {*there}
    ]


def write_table(out: Path, table: "pd.DataFrame", grid: Grid) -> None:
    """The table of all complete points, as CSV and JSON, and a picture of it."""
    with unseen(out / MARK) as place:
        names = ["table.csv", "table.json"]
        text = table.map(_cell).to_csv(index=False, lineterminator="\n")
        (place / "table.csv").write_text(text, encoding="utf-8", newline="")
        rows = [as_json(row) for row in table.to_dict("records")]
        listed = json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False)
        (place / "table.json").write_text(listed + "\n", encoding="utf-8")
        if _drawn(table, grid, place / "figure.png"):
            names.append("figure.png")
        put(out, place, grid, names)
        if "figure.png" not in names and os.path.lexists(out / "figure.png"):
            new = set_aside(out / "figure.png", out / "set-aside")
            say(f"the table has nothing to draw; figure.png of an earlier one is now {new}")


def _drawn(table: "pd.DataFrame", grid: Grid, path: Path) -> bool:
    """Whether there is a picture; whatever is wrong with it, there is the table."""
    try:
        from oralib.runs.picture import draw_table

        return draw_table(table, grid.axes, grid.show, path)
    except Exception as error:  # of Matplotlib and its settings, in many forms
        say(f"the table cannot be drawn: {' '.join(str(error).split()) or type(error).__name__}")
        return False


def _cell(value: Any) -> str:
    """A value in CSV: what is missing is empty, nan and inf are words."""
    if isinstance(value, list):
        return json.dumps(value)
    return "" if value is None else str(value)

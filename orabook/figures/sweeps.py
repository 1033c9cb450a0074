"""The picture of a sweep: one result against the parameters that vary."""

# mypy: disable-error-code="import-untyped"

from collections.abc import Sequence

import numpy as np
import pandas as pd

from orabook.figures.general import curves_of, heatmap, lines
from orabook.figures.style import Picture


def swept(table: pd.DataFrame, axes: Sequence[str], result: str = "") -> Picture | None:
    """Curves of a result against the first parameter that is a number, or a map over two.

    There is a curve for each setting of the other parameters; a map if these are more than five
    and all of one parameter. None if there is no number to draw, or too many parameters vary.
    ``axes`` are the columns that are parameters, and ``result`` is by default the first other one
    that holds numbers.
    """
    numbers = [name for name in table if pd.api.types.is_numeric_dtype(table[name])]
    results = [name for name in numbers if name not in axes]
    result = result or next(iter(results), "")
    varying = [name for name in axes if table[name].map(str).nunique() > 1]
    x = next((name for name in varying if name in numbers), None)
    if result not in results or x is None or not np.isfinite(table[result]).any():
        return None
    others = [name for name in varying if name != x]
    curve_of_row = pd.Series(result, table.index)
    if others:
        settings = table[others].astype(str).agg(", ".join, axis=1)
        curve_of_row = f"{', '.join(others)} = " + settings
    labels = {label: label for label in curve_of_row.unique()}
    if len(labels) <= 5:
        by_x = table.assign(_curve=curve_of_row).sort_values(x)
        curves = curves_of(by_x, x, result, by="_curve", labels=labels)
        values = np.unique(table[x])
        wide = len(values) > 2 and values[0] > 0 and values[-1] >= 30 * values[0]
        return lines(curves, x, result, log_x=wide)
    if len(others) > 1 or others[0] not in numbers:
        return None
    plane = table.pivot(index=others[0], columns=x, values=result)
    return heatmap(
        {"": plane.to_numpy()}, list(plane.columns), list(plane.index), x, others[0], result
    )

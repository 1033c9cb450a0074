"""The picture of a sweep: curves of a result, or a map of it."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from orabook.figures.curves import curves_of, lines
from orabook.figures.maps import heatmap
from orabook.figures.style import Picture

__all__ = ["swept"]


def swept(table: pd.DataFrame, axes: Sequence[str], result: str = "") -> Picture | None:
    """Draw curves of a result against the first parameter that is a number, or a map over two.

    There is a curve for each setting of the other parameters; a map if these are more than five
    and all of one parameter. None if there is no number to draw, or too many parameters vary.
    ``axes`` are the columns that are parameters, and ``result`` is by default the first other one
    that holds numbers.
    """
    numeric = [name for name in table if pd.api.types.is_numeric_dtype(table[name])]
    results = [name for name in numeric if name not in axes]
    result = result or next(iter(results), "")
    varying = [name for name in axes if table[name].map(str).nunique() > 1]
    x = next((name for name in varying if name in numeric), None)
    if result not in results or x is None or not np.isfinite(table[result]).any():
        return None
    parameters = [name for name in varying if name != x]
    curve_of_row = pd.Series(result, table.index)
    if parameters:
        settings = table[parameters].astype(str).agg(", ".join, axis=1)
        curve_of_row = f"{', '.join(parameters)} = " + settings
    labels = {label: label for label in curve_of_row.unique()}
    if len(labels) <= 5:
        by_x = table.assign(_curve=curve_of_row).sort_values(x)
        curves = curves_of(by_x, x, result, by="_curve", labels=labels)
        values = np.unique(table[x])
        is_wide = len(values) > 2 and values[0] > 0 and values[-1] >= 30 * values[0]
        return lines(curves, x, result, log_x=is_wide)
    if len(parameters) > 1 or parameters[0] not in numeric:
        return None
    y = parameters[0]
    plane = table.pivot(index=y, columns=x, values=result)
    return heatmap({"": plane.to_numpy()}, list(plane.columns), list(plane.index), x, y, result)

"""A picture of a sweep's table: curves for one or two axes, a map for two with many values."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oralib import figures


def draw_table(
    rows: Sequence[Mapping[str, Any]], axes: Sequence[str], show: str | None, path: Path
) -> None:
    """Draw one result against the parameters that vary; nothing if there is no number to draw."""
    numbers = [name for name in rows[0] if name not in axes and _is_number(rows[0][name])]
    result = show if show in numbers else next(iter(numbers), None)
    plain = [name for name in axes if all(_is_number(row[name]) for row in rows)]
    if result is None or not plain:
        return
    kept = [row for row in rows if _is_number(row.get(result))]
    x = plain[0]
    if len(plain) == 1:
        values = sorted((row[x], row[result]) for row in kept)
        picture = figures.lines({result: tuple(zip(*values, strict=True))}, x, result)
    else:
        by = plain[1]
        columns = sorted({row[x] for row in kept})
        lines = sorted({row[by] for row in kept})
        grid = np.full((len(lines), len(columns)), np.nan)
        for row in kept:
            grid[lines.index(row[by]), columns.index(row[x])] = row[result]
        picture = figures.heatmap(grid, columns, lines, x, by, result)
    picture.savefig(path, dpi=144)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

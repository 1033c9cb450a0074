"""A picture of a sweep's table: curves, or a map where there would be too many of them."""

# mypy: disable-error-code="import-untyped"

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oralib import figures

if TYPE_CHECKING:
    import pandas as pd

#: As many curves can be told apart.
MOST_CURVES = 5


def draw_table(table: "pd.DataFrame", axes: Sequence[str], show: str | None, path: Path) -> bool:
    """Draw one result against the parameters that vary; False if there is no number to draw.

    The first parameter that is a number is the abscissa. The others make a curve for each of their
    settings. If these are too many, the picture is a map over the first two numbers, of the mean
    over all others.

    Parameters
    ----------
    axes : the parameters, in the order of the grid.
    show : the result to draw; by default the first that is a number.
    """
    results = [name for name in table.columns if name not in axes and _has_numbers(table[name])]
    result = show if show in results else next(iter(results), None)
    numbers = [name for name in axes if _is_numeric(table[name])]
    if result is None or not numbers:
        return False
    kept = table.copy()
    kept[result] = _as_numbers(table[result])
    kept = kept[np.isfinite(kept[result])]
    varying = [name for name in axes if kept[name].map(str).nunique() > 1]
    x = next((name for name in numbers if name in varying), numbers[0])
    others = [name for name in varying if name != x]
    if len(kept) == 0:
        return False
    curves = len({tuple(map(str, row)) for row in kept[others].itertuples(index=False)})
    if curves <= MOST_CURVES:
        picture = _curves(kept, x, others, result)
    else:
        by = next((name for name in others if name in numbers), None)
        if by is None:
            return False
        averaged = [name for name in others if name != by]
        label = f"mean {result} over {', '.join(averaged)}" if averaged else result
        # A mean without the infinite ones would be too low: such cells stay empty.
        everything = table.assign(**{result: _as_numbers(table[result])})
        means = everything.groupby([by, x])[result].agg(lambda values: values.mean(skipna=False))
        means = means.unstack()
        means = means.where(np.isfinite(means))
        if means.isna().all(axis=None):
            return False
        picture = figures.heatmap(
            *(means.to_numpy(), list(means.columns), list(means.index)),
            *map(_plain, (x, by, label)),
        )
    picture.savefig(path, dpi=144)
    return True


def _curves(table: "pd.DataFrame", x: str, others: Sequence[str], result: str) -> Any:
    """A curve for each setting of the other parameters, with standard errors if there are some."""
    error = f"{result}_se"
    columns = [x, result, *([error] if error in table and _has_numbers(table[error]) else [])]
    curves: dict[str, Any] = {}
    names = [tuple(row) for row in table[list(others)].itertuples(index=False)]
    for name in sorted(dict.fromkeys(map(repr, names)), key=list(map(repr, names)).index):
        rows = table[[repr(other) == name for other in names]].sort_values(x, kind="stable")
        setting = rows[list(others)].iloc[0] if others else {}
        label = ", ".join(f"{other} = {_short(setting[other])}" for other in others) or result
        curves[_plain(label)] = tuple(_as_numbers(rows[column]).to_numpy() for column in columns)
    values = np.unique(table[x].to_numpy(dtype=float))
    wide = len(values) > 2 and values[0] > 0 and values[-1] >= 30 * values[0]
    return figures.lines(curves, _plain(x), _plain(result), log_x=wide)


def _plain(words: str) -> str:
    """Words that Matplotlib does not take for a formula."""
    return words.replace("$", r"\$")


def _short(value: Any) -> str:
    """A number with few digits, but all that tell it from others."""
    if not isinstance(value, float | np.floating):
        return str(value)
    text = f"{value:.12g}"
    return text if float(text) == value else repr(float(value))


def _as_numbers(column: "pd.Series") -> "pd.Series":
    import pandas as pd

    return pd.to_numeric(column, errors="coerce").astype(float)


def _is_numeric(column: "pd.Series") -> bool:
    """Whether all entries are numbers."""
    return column.dtype.kind in "iuf"


def _has_numbers(column: "pd.Series") -> bool:
    """Whether entries are numbers, if they are there."""
    present = [value for value in column if value is not None]
    return bool(present) and all(
        isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)
        for value in present
    )

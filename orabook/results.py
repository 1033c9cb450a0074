"""The results of a chapter, which ``orabook run`` and ``sweep`` write down.

A chapter declares them once, in its last code cell::

    from orabook import results

    results.record(best_ratio=best, bound=b, bound_se=se)

The cell shows a small table of rounded values. The values themselves, to 12 significant digits, are
in the metadata of this output, which comparisons of outputs ignore: on another machine the last
digits may differ.
"""

import math
import sys
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from orabook.place import book_file
from orabook.tables import number

__all__ = ["as_json", "from_json", "record", "recorded", "results_of"]

#: The place of the values in the metadata of an output.
SECTION = "oralib"

#: Numbers that JSON does not have, and the words that stand for them.
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def record(**values: Any) -> None:
    """Show named numbers, words and booleans, and leave them in the notebook for runs and sweeps.

    >>> record(bound=np.float64(1.23456), holds=True, law="Laplace")
    bound  1.235
    holds  yes
    law    Laplace
    """
    results = {name: _plain(name, value) for name, value in values.items()}
    texts = {name: number(value) for name, value in results.items()}
    width = max(map(len, texts), default=0)
    plain = "\n".join(f"{name:<{width}}  {text}" for name, text in texts.items())
    # Only a notebook has imported IPython; elsewhere there is only the text.
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        print(plain)
        return
    rows = [
        f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in texts.items()
    ]
    html = "\n".join(['<table class="dataframe results">', *rows, "</table>"])
    # A notebook's file keeps names in alphabetical order.
    note = {SECTION: {"results": as_json(results), "order": list(results)}}
    shell.display_pub.publish({"text/plain": plain, "text/html": html}, metadata=note)


def as_json(values: Any) -> Any:
    """Replace numbers that JSON does not have by words for them."""
    if isinstance(values, Mapping):
        return {name: as_json(value) for name, value in values.items()}
    if isinstance(values, list):
        return [as_json(value) for value in values]
    is_missing = isinstance(values, float) and not math.isfinite(values)
    return str(values) if is_missing else values


def from_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the words of :func:`as_json` by the numbers that they stand for."""
    return {
        name: NOT_FINITE.get(value, value) if isinstance(value, str) else value
        for name, value in values.items()
    }


def _plain(name: str, value: Any) -> int | float | str | bool:
    """Return a plain Python value, a float to 12 significant digits."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, str) and value in NOT_FINITE:
        raise ValueError(f"{name} must not be the word {value!r}; give the number")
    if isinstance(value, bool | int | str):
        return value
    raise TypeError(
        f"{name} must be a number, a word or a boolean, got {name}={repr(value)[:60]}, "
        f"which is of type {type(value).__name__}"
    )


def results_of(notebook: Any) -> dict[str, Any]:
    """The results that an executed notebook has recorded, in order."""
    results: dict[str, Any] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            section = output.get("metadata", {}).get(SECTION)
            if section:
                values = from_json(section["results"])
                results |= {name: values[name] for name in section["order"]}
    return results


def recorded(chapter: str) -> dict[str, Any]:
    """The results of a chapter of the book as they are committed, for pages that quote them."""
    import nbformat  # which a chapter that only records does without

    return results_of(nbformat.read(book_file(f"{chapter}.ipynb"), 4))

"""The results of a chapter: what ``python -m oralib run`` and ``sweep`` write down.

A chapter declares them once, in its last code cell::

    from oralib import results

    results.record(best_ratio=best, bound=b, bound_se=se)

The cell shows a small table of rounded values. The values themselves, to 12 significant digits, are
in the metadata of this output, where comparisons of outputs do not look: on another machine the
last digits may differ.
"""

import math
import sys
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

#: Where the values are in the metadata of an output.
SECTION = "oralib"

#: Numbers that JSON does not have, and the words that stand for them.
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def record(**values: Any) -> None:
    """Show named results, and leave them in the notebook for runs and sweeps.

    Parameters
    ----------
    values : numbers of Python or NumPy, words, and booleans. Infinite numbers and nan are allowed.

    >>> record(bound=np.float64(1.23456), holds=True, law="Laplace")
    bound  1.235
    holds  True
    law    Laplace
    """
    kept = {name: _plain(name, value) for name, value in values.items()}
    rows = {name: _rounded(value) for name, value in kept.items()}
    width = max(map(len, rows), default=0)
    text = "\n".join(f"{name:<{width}}  {word}" for name, word in rows.items())
    # Only a notebook has imported IPython; elsewhere the text is all.
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        print(text)
        return
    # A run sees at the end whether an output has got lost, by clear_output for example.
    noted = getattr(sys, "recorded_in_oralib", [])
    sys.recorded_in_oralib = [*noted, *kept]  # type: ignore[attr-defined]
    _publisher(shell).publish(
        {"text/plain": text, "text/html": _as_html(rows)},
        # A notebook's file has names in the order of the alphabet.
        metadata={SECTION: {"results": as_json(kept), "order": list(kept)}},
    )


def _publisher(shell: Any) -> Any:
    """What shows outputs in the notebook, also in a cell whose outputs are captured."""
    # IPython puts another one in its place for a while; kernels without IPython's parts do not.
    kind = getattr(shell, "display_pub_class", ())
    own = [part for part in getattr(shell, "configurables", ()) if isinstance(part, kind)]
    return own[0] if own else shell.display_pub


def is_text(word: str) -> bool:
    """Whether a word can be written to a file; names of files may have bytes that cannot."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values with words for the numbers that JSON does not have."""
    return {name: _json_value(value) for name, value in values.items()}


def from_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that :func:`as_json` was given."""
    return {
        name: NOT_FINITE.get(value, value) if isinstance(value, str) else value
        for name, value in values.items()
    }


def _json_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_json_value(entry) for entry in value]
    if isinstance(value, dict):
        return {name: _json_value(entry) for name, entry in value.items()}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _plain(name: str, value: Any) -> int | float | str | bool:
    """A value of Python's own, a float to 12 significant digits."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(f"{float(value):.12g}")
    if isinstance(value, str):
        if value in NOT_FINITE:
            raise ValueError(f"{name} must not be the word {value!r}; give the number")
        if not is_text(value):
            raise ValueError(f"{name} must be a text in UTF-8, got {name}={value!r}")
        return str(value)
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    raise TypeError(
        f"{name} must be a number, a word or a boolean, got {name}={shown}, "
        f"which is of type {type(value).__name__}"
    )


def _rounded(value: int | float | str | bool) -> str:
    """A text that is the same on every machine on which the value is nearly the same."""
    if isinstance(value, str | bool):
        return str(value)
    size = abs(value)
    if isinstance(value, int) or not math.isfinite(value):
        text = str(value)
    elif size != 0 and not 0.1 <= size < 1e6:
        text = f"{value:.3g}"
    else:
        text = f"{value:.3f}" if size < 1000 else f"{value:.0f}"
    return f"−{text[1:]}" if text.startswith("-") else text


def _as_html(rows: Mapping[str, str]) -> str:
    lines = [
        f"<tr><th>{escape(name)}</th><td>{escape(word)}</td></tr>" for name, word in rows.items()
    ]
    return "\n".join(['<table class="dataframe results">', *lines, "</table>"])


def results_of(notebook: Any) -> dict[str, Any]:
    """The results that an executed notebook has recorded, in their order."""
    found: dict[str, Any] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if section := output.get("metadata", {}).get(SECTION):
                values = from_json(section["results"])
                found |= {name: values[name] for name in section["order"]}
    return found


def recorded(chapter: str) -> dict[str, Any]:
    """The results of a chapter of the book as they are committed, for pages that quote them.

    Examples
    --------
    >>> sorted(recorded("06-dp-sgd"))[:1]
    ['best_bound']
    """
    import nbformat

    from oralib.parameters import book_file

    return results_of(nbformat.read(book_file(f"{chapter}.ipynb"), 4))

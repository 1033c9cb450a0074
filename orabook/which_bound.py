"""Which bound is valid for which audit, in the words of the book."""

from itertools import product

import pandas as pd

from oralib.bounds import Counts, valid_rule
from oralib.ground.types import FEEDBACKS, Feedback

TOLD = dict(zip(FEEDBACKS, ("nothing", "one-way", "list", "full", "all other coins"), strict=True))
NUMBER = {True: "fixed in advance", False: "not fixed in advance"}


def valid_bound(feedback: Feedback, r_fixed: bool, delta: float) -> str:
    """The name of the bound that is proved for an audit with a fair coin for each element."""
    # Any numbers: the rule depends on the rest.
    counts = Counts(75, 100, n=1000, feedback=feedback, r_fixed=r_fixed)
    try:
        return valid_rule(counts, delta).name
    except ValueError as refusal:
        if not str(refusal).startswith("no bound is valid"):
            raise
        return "no valid bound above 0"


def table() -> pd.DataFrame:
    """The valid bound by feedback, number of guesses and δ; audits with equal bounds share a row.

    >>> table().iloc[0].tolist()
    ['nothing, one-way or list', 'fixed in advance', 'bound ε′(v, r)', 'exact bound']
    """
    told: dict[tuple[bool, tuple[str, ...]], list[str]] = {}
    for feedback, r_fixed in product(FEEDBACKS, NUMBER):
        bounds = tuple(valid_bound(feedback, r_fixed, delta) for delta in (0.0, 1e-5))
        told.setdefault((r_fixed, bounds), []).append(TOLD[feedback])
    rows: dict[tuple[str, ...], list[str]] = {}
    for (r_fixed, bounds), words in told.items():
        *most, last = words
        said = f"{', '.join(most)} or {last}" if most else last
        rows.setdefault((said, *bounds), []).append(NUMBER[r_fixed])
    lines = [(said, " or ".join(numbers), *bounds) for (said, *bounds), numbers in rows.items()]
    heads = ["the guesser was told", "number of guesses", "for δ = 0", "for δ > 0"]
    return pd.DataFrame(lines, columns=heads)

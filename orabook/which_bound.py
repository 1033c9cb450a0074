"""Which bound is valid for which audit, in the words of the book."""

from itertools import product

import pandas as pd

from oralib.bounds import Counts, valid_rule
from oralib.ground.types import FEEDBACKS, Feedback

__all__ = ["table", "valid_bound"]

#: The book's names for the kinds of feedback, which are about the coins that a guesser was told.
FEEDBACK_NAMES = {
    "none": "nothing",
    "one-way": "one-way",
    "list": "list",
    "full": "full",
    "all others": "all other coins",
}
#: Whether the number of guesses was fixed in advance, in words.
NUMBER_NAMES = {True: "fixed in advance", False: "not fixed in advance"}
#: The claims of the table: δ = 0, and any δ > 0, as the rule is the same for all of them.
DELTAS = (0.0, 1e-5)


def valid_bound(feedback: Feedback, r_fixed: bool, delta: float) -> str:
    """The name of the bound that is proved for an audit with a fair coin for each element."""
    # The rule is the same for all counts.
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
    ['nothing, one-way or list', 'fixed in advance', 'pure bound', 'exact bound']
    """
    kinds_of_feedback: dict[tuple[bool, tuple[str, ...]], list[str]] = {}
    for feedback, r_fixed in product(FEEDBACKS, NUMBER_NAMES):
        bounds = tuple(valid_bound(feedback, r_fixed, delta) for delta in DELTAS)
        kinds_of_feedback.setdefault((r_fixed, bounds), []).append(FEEDBACK_NAMES[feedback])
    numbers_of_guesses: dict[tuple[str, ...], list[str]] = {}
    for (r_fixed, bounds), names in kinds_of_feedback.items():
        row = (_joined(names), *bounds)
        numbers_of_guesses.setdefault(row, []).append(NUMBER_NAMES[r_fixed])
    rows = [
        (feedback, " or ".join(numbers), *bounds)
        for (feedback, *bounds), numbers in numbers_of_guesses.items()
    ]
    heads = ["the guesser was told", "number of guesses", "for δ = 0", "for δ > 0"]
    return pd.DataFrame(rows, columns=heads)


def _joined(names: list[str]) -> str:
    """Join names as a sentence does.

    >>> _joined(["nothing", "list", "full"]), _joined(["full"])
    ('nothing, list or full', 'full')
    """
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last

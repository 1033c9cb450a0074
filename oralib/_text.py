"""How reports write their numbers and their rows."""

from collections.abc import Iterable, Sequence
from math import floor, isfinite
from textwrap import fill


def rounded_down(bound: float) -> str:
    """Three digits that are not above the bound."""
    return f"{floor(bound * 1000) / 1000:.3f}" if isfinite(bound) else str(bound)


def short(number: float) -> str:
    """1e-5, as people type it, and not 1e-05."""
    return f"{number:g}".replace("e-0", "e-")


def confidence(beta: float) -> str:
    """1 - β in words, which is never rounded up to certainty."""
    return f"{100 * (1 - beta):.6g}% confidence" if beta > 1e-4 else f"confidence 1 - {short(beta)}"


def grades_in_words(grades: Sequence[tuple[int, ...]]) -> str:
    """What right guesses count, by (number of guesses, weight) of each grade."""
    (first, most), *others = grades
    words = f"the {first:,} surest count {most:g} points each if right"
    return words + "".join(f", the next {number:,} count {weight}" for number, weight in others)


def paragraphs(rows: Iterable[tuple[str, str]]) -> str:
    """Each row a paragraph of 80 columns, with its label in the margin."""
    return "\n".join(
        fill(text, 80, initial_indent=f"{label:<10}", subsequent_indent=" " * 10)
        for label, text in rows
    )

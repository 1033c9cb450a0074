"""How reports write their numbers and their rows."""

from collections.abc import Iterable
from math import ceil, floor, isfinite, log10
from textwrap import fill


def rounded_down(bound: float) -> str:
    """Three digits that are not above the bound."""
    return f"{floor(bound * 1000) / 1000:.3f}" if isfinite(bound) else str(bound)


def rounded_up(p: float) -> str:
    """Two digits that are not below a probability."""
    unit = 10.0 ** (floor(log10(max(p, 1e-290))) - 1)
    return f"{ceil(max(p, 1e-290) / unit) * unit:.2g}"


def short(number: float) -> str:
    """1e-5, as people type it, and not 1e-05."""
    return f"{number:g}".replace("e-0", "e-")


def confidence(beta: float) -> str:
    """1 - β in words, which is never rounded up to certainty."""
    return f"{100 * (1 - beta):.6g}% confidence" if beta > 1e-4 else f"confidence 1 - {short(beta)}"


def paragraphs(rows: Iterable[tuple[str, str]]) -> str:
    """Each row a paragraph of 80 columns, with its label in the margin."""
    return "\n".join(
        fill(text, 80, initial_indent=f"{label:<10}", subsequent_indent=" " * 10)
        for label, text in rows
    )

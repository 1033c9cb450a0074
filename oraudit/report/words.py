"""Numbers and lists as a report writes them."""

from collections.abc import Sequence
from math import isinf

__all__ = ["epsilon_words", "joined", "percent", "range_of"]

#: An ε above this is told as "beyond" it.
LARGEST_EPSILON = 100


def epsilon_words(epsilon: float) -> str:
    """Return an ε that was calculated, in words.

    >>> epsilon_words(1.8149), epsilon_words(1e3), epsilon_words(float("inf"))
    ('ε = 1.81', 'ε is beyond 100', 'no ε')
    """
    if isinf(epsilon):
        return "no ε"
    if epsilon > LARGEST_EPSILON:
        return f"ε is beyond {LARGEST_EPSILON}"
    return f"ε = {epsilon:.3g}"


def percent(share: float) -> str:
    """Return a share in percent; never 0% or 100% where it is neither.

    >>> percent(0.957), percent(0.999), percent(0.001), percent(1e-9), percent(1.0)
    ('96%', '99.9%', '0.1%', 'below 0.1%', '100%')
    """
    if 0 < share < 0.001:
        return "below 0.1%"
    if 0.999 < share < 1:
        return "over 99.9%"
    rounded = f"{share:.0%}"
    return rounded if 0.01 <= share <= 0.99 or share in (0, 1) else f"{100 * share:.1f}%"


def range_of(values: Sequence[float]) -> str:
    """Return a number, or the smallest and the largest of several."""
    low = f"{min(values):.4g}"
    high = f"{max(values):.4g}"
    return low if low == high else f"{low} to {high}"


def joined(items: Sequence[str]) -> str:
    """Return items as a list in a sentence.

    >>> joined(["noise", "clipping", "batches"])
    'noise, clipping, and batches'
    """
    *first, last = items
    comma = "," if len(first) > 1 else ""
    return f"{', '.join(first)}{comma} and {last}" if first else last

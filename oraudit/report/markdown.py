"""The report as a section of a model card."""

import re
from collections.abc import Iterable

from oraudit.report.facts import Facts

__all__ = ["escaped", "section"]

#: The characters that Markdown would read as its own.
_SIGNS = re.compile(r"([\\`*_{}\[\]<>#|~$&])")


def section(facts: Facts) -> str:
    """Write a heading with the verdict, four questions and answers, the rows, and the card."""
    rows = [(row.name, row.words) for row in facts.rows]
    parts = [
        f"## Privacy audit: {facts.verdict}",
        escaped(facts.headline),
        *(f"**{question}** {escaped(answer)}" for question, answer in facts.answers),
        _table("What", "Result", rows),
    ]
    if facts.card:
        parts.append(_table("The training", "As said", facts.card))
    return "\n\n".join(parts) + "\n"


def _table(first: str, second: str, pairs: Iterable[tuple[str, str]]) -> str:
    lines = [f"| {first} | {second} |", "|---|---|"]
    lines += [f"| {escaped(name)} | {escaped(content)} |" for name, content in pairs]
    return "\n".join(lines)


def escaped(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return _SIGNS.sub(r"\\\1", text)

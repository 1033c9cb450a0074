"""The report as a section of a model card."""

import re
from collections.abc import Iterable

from oraudit.report.result import Result

__all__ = ["escaped", "section"]

#: What Markdown would read as its own.
_SIGNS = re.compile(r"([\\`*_{}\[\]<>#|~$&])")


def section(result: Result) -> str:
    """A heading with the verdict, four questions and answers, the rows, and the card."""
    facts = result.facts
    rows = [(each.name, each.words) for each in facts.rows]
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
    lines += [f"| {escaped(one)} | {escaped(two)} |" for one, two in pairs]
    return "\n".join(lines)


def escaped(words: str) -> str:
    """Words that Markdown shows as they are."""
    return _SIGNS.sub(r"\\\1", words)

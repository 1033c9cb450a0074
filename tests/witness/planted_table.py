"""The table of the planted bugs for the book: what the audit said then, and what it says now.

    python -m tests.witness.planted_table

planted.csv holds what was said, and judged, when the bugs were new, and is not written again. This
runs each of them once more and writes book/data/planted.md.
"""

import csv
import inspect
from collections import Counter
from io import StringIO
from pathlib import Path

__all__ = ["BUGS", "first_lines", "page"]

#: What was said of each of the twenty, and of the eight honest ones.
SAID = list(csv.DictReader(StringIO(Path(__file__).with_name("planted.csv").read_text("utf-8"))))

HONEST = list(dict.fromkeys(row["bug"] for row in SAID if row["truth"] == "honest"))
BUGS = list(dict.fromkeys(row["bug"] for row in SAID if row["truth"] != "honest"))

PAGE = Path(__file__).parents[2] / "book" / "data" / "planted.md"

#: The judgements of planted.csv, in words for several bugs.
JUDGEMENTS = {
    "named by its cause": "were named by their cause",
    "seen by a symptom": "seen by a symptom on the right side",
    "side unknown": "seen with the side unknown",
    "unseen": "not seen",
}

#: What tells a reader least, last.
ORDER = ("FAILED", "CANNOT", "PASSED")


def first_lines(name: str) -> list[str]:
    """What each tool says first of a training, the most telling line first."""
    from . import planted

    results = getattr(planted, name)(1).values()
    lines = []
    for result in results:
        text = str(result if hasattr(result, "status") else result[0].result())
        line, *others = text.splitlines()
        notes = [each for each in others if each.startswith("note") and "safer" in each]
        lines.append("; ".join([line, *notes]))
    return sorted(lines, key=lambda line: ORDER.index(line.split()[0]))


def page(now: dict[str, str]) -> str:
    """The table, with what is said now of each training by its name."""
    rows = {row["bug"]: row for row in SAID}
    judged = Counter(rows[bug]["judgement of all"] for bug in BUGS)
    counted = [f"{judged[key]} {words}" for key, words in JUDGEMENTS.items()]
    accused = [bug for bug in HONEST if rows[bug]["judgement of all"] == "accused"]
    text = [
        f"Of the twenty, {', '.join(counted)}; none was put on the wrong side. Of eight honest "
        f"trainings, {len(accused)} were accused. What is said now, after mends, stands beside it.",
        "",
        "| planted | in truth | judged then | now |",
        "| --- | --- | --- | --- |",
    ]
    for name in [*BUGS, *HONEST]:
        row = rows[name]
        line = " ".join(now[name].replace("|", "/").split())
        text.append(f"| {_words(name)} | {row['truth']} | {row['judgement of all']} | {line} |")
    return "\n".join(text) + "\n"


def _words(name: str) -> str:
    """The first sentence of what a training says of itself."""
    from . import planted

    text = inspect.getdoc(getattr(planted, name)) or name
    return (
        text.split("\n\n")[0].split(". Side:")[0].replace("\n", " ").replace("|", r"\|").rstrip(".")
    )


def main() -> None:
    now = {name: first_lines(name)[0] for name in [*BUGS, *HONEST]}
    PAGE.write_text(page(now), encoding="utf-8")


if __name__ == "__main__":
    main()

"""The tables of the zoo: what every audit said of every case, and whether the promises hold."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from scipy import stats

from .case import HONEST, Case, Run, Tool, is_named, is_right
from .unseen import MOST, UNSEEN

__all__ = ["Row", "broken_promises", "pages", "read_runs", "table", "write_runs", "write_table"]

#: The least share of bugs that are seen whose cause is named.
NAMED = 2 / 3

#: What parts the summary from the table of every case, for the page that shows both.
EVERY = "<!-- every case -->"

_KINDS = {field.name: field.type for field in fields(Run)}


@dataclass(frozen=True)
class Row:
    """A case and a tool: how many of its runs ended how.

    Attributes
    ----------
    right
        Runs with the status and side that the truth lets an audit say.
    named
        Runs whose first finding says what is wrong.
    wrong
        Runs on the wrong side: a bug that passes as safer, or is accused of more than is true.
    """

    case: str
    source: str
    way: str
    truth: str
    tool: Tool
    runs: int
    failed: int
    cannot_tell: int
    passed: int
    errors: int
    right: int
    wrong: int
    named: int
    listed: bool
    words: str
    seconds: float


def write_runs(path: Path, runs: Iterable[Run]) -> None:
    """Write what was said of each run, to be joined with other parts."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(_KINDS), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(run) for run in runs)


def read_runs(path: Path) -> list[Run]:
    """Read a part that :func:`write_runs` has written."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [
        Run(**{**row, "seed": int(row["seed"]), "seconds": float(row["seconds"])}) for row in rows
    ]


def table(cases: Sequence[Case], runs: Iterable[Run]) -> list[Row]:
    """A row for each case and tool that was run, in the order of the cases."""
    groups: dict[tuple[str, Tool], dict[int, Run]] = {}
    for run in runs:
        groups.setdefault((run.case, run.tool), {})[run.seed] = run
    rows = []
    for case in cases:
        for tool in case.tools:
            found = [run for _, run in sorted(groups.get((case.name, tool), {}).items())]
            if found:
                rows.append(_row(case, tool, found))
    return rows


def _row(case: Case, tool: Tool, runs: Sequence[Run]) -> Row:
    statuses = [run.status for run in runs]
    right = [is_right(case.truth, run) for run in runs]
    return Row(
        case=case.name,
        source=case.source,
        way=case.way,
        truth=case.truth,
        tool=tool,
        runs=len(runs),
        failed=statuses.count("failed"),
        cannot_tell=statuses.count("cannot tell"),
        passed=statuses.count("passed"),
        errors=statuses.count("error"),
        right=sum(right),
        wrong=sum(_is_wrong(case, run) for run in runs),
        named=sum(ok and is_named(case, run) for ok, run in zip(right, runs, strict=True)),
        listed=case.name in UNSEEN,
        words=next((run.words for run in runs if run.words), ""),
        seconds=round(sum(run.seconds for run in runs) / len(runs), 2),
    )


def _is_wrong(case: Case, run: Run) -> bool:
    """Whether a run was said to be on the wrong side."""
    if case.truth == HONEST or run.status == "error":
        return run.status == "failed"
    if case.truth == "less private":
        return run.side == "safer"
    if case.truth == "safer":
        return run.status == "failed" and run.side == "less private"
    return run.status == "failed" and run.side == "less private"


# ----------------------------------------------------------------------------------------- promises


def seen(rows: Sequence[Row]) -> bool:
    """Whether one of the tools is right in every run of a case."""
    return any(row.right == row.runs for row in rows)


def named(rows: Sequence[Row]) -> bool:
    """Whether a tool that is right in every run names the cause in every run."""
    return any(row.named == row.runs for row in rows)


def by_case(rows: Iterable[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.case, []).append(row)
    return groups


def broken_promises(rows: Sequence[Row]) -> list[str]:
    """What is not as promised, a sentence each."""
    broken = []
    if len(UNSEEN) > MOST:
        broken.append(f"{len(UNSEEN)} bugs are listed as unseen, {MOST} may be")
    bugs = by_case(row for row in rows if row.truth != HONEST)
    for name, group in bugs.items():
        for row in group:
            if row.errors:
                broken.append(f"{name}: {row.errors} runs of the {row.tool} ended in an error")
            if row.wrong:
                broken.append(f"{name}: the {row.tool} is on the wrong side in {row.wrong} runs")
        if group[0].source == "the noise is deleted":
            passed = min(row.passed for row in group)
            if passed:
                broken.append(f"{name}: noise is deleted, and {passed} runs pass")
        if not seen(group) and name not in UNSEEN:
            broken.append(f"{name}: not seen in every run, and not listed as unseen")
    caught = [group for group in bugs.values() if seen(group)]
    if caught and sum(map(named, caught)) < NAMED * len(caught):
        broken.append(f"{sum(map(named, caught))} of {len(caught)} bugs are named by their cause")
    for row in rows:
        if row.truth == HONEST and row.right < row.runs:
            broken.append(
                f"honest, {row.case}: {row.failed} of {row.runs} runs failed, {row.cannot_tell} "
                f"cannot tell, {row.errors} errors"
            )
    return broken


# ------------------------------------------------------------------------------------------ tables


def write_table(path: Path, rows: Iterable[Row]) -> None:
    """Write the table as comma-separated values; times are left out, as they differ."""
    names = [field.name for field in fields(Row) if field.name != "seconds"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def upper_limit(events: int, runs: int, confidence: float = 0.95) -> float:
    """The exact (Clopper and Pearson) upper limit of a rate.

    >>> round(upper_limit(0, 500), 4)
    0.006
    """
    return float(stats.beta.ppf(confidence, events + 1, runs - events)) if events < runs else 1.0


def pages(rows: Sequence[Row], versions: Iterable[str]) -> str:
    """The tables as a page of text."""
    bugs = [row for row in rows if row.truth != HONEST]
    groups = by_case(bugs)
    lines = [
        "Each case is a small training with one bug, run with several seeds. A bug is *seen* if "
        "one of the tools is right in every run: it fails, and not on the wrong side; what is "
        "safer passes with its line; what may be post-processing is CANNOT TELL.",
        "",
        "| | cases | seen in every run | named by the cause | listed as unseen | wrong side |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    sources = list(dict.fromkeys(row.source for row in bugs))
    for source in [*sources, ""]:
        own = [group for group in groups.values() if source in ("", group[0].source)]
        if not own:
            continue
        found = [group for group in own if seen(group)]
        lines.append(
            f"| {source or 'all'} | {len(own)} | {len(found)} | {sum(map(named, found))} "
            f"| {sum(group[0].listed for group in own)} "
            f"| {sum(any(row.wrong for row in group) for group in own)} |"
        )
    summary, *variants = _honest([row for row in rows if row.truth == HONEST])
    lines += ["", summary, "", f"Run with {'; '.join(sorted(set(versions)))}.", "", EVERY]
    for source in sources:
        lines += ["", f"**{source[0].upper()}{source[1:]}**", ""]
        lines += [
            "| bug | in truth | tool | right | named | the first finding of the first run |",
            "| --- | --- | --- | ---: | ---: | --- |",
        ]
        for row in bugs:
            if row.source == source:
                listed = " (listed)" if row.listed and not row.right else ""
                lines.append(
                    f"| {row.case} | {row.truth} | {row.tool} | {row.right} of {row.runs}{listed} "
                    f"| {row.named} of {row.runs} | {_cell(row)} |"
                )
    lines += ["", "**Honest trainings**", *variants]
    return "\n".join(lines) + "\n"


def _cell(row: Row) -> str:
    words = row.words.replace("|", "\\|")
    return words or "nothing"


def _honest(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return ["No honest training was run."]
    total = sum(row.runs for row in rows)
    failed = sum(row.failed for row in rows)
    untold = sum(row.cannot_tell for row in rows)
    errors = sum(row.errors for row in rows)
    lines = [
        f"**Honest trainings.** Of {total} runs of {len(rows)} variants, each with noise of its "
        f"own, {failed} failed, {untold} could not be told, {errors} ended in an error: with 95% "
        f"confidence at most {upper_limit(failed, total):.2%} of such trainings fail.",
        "",
        "| variant | written with | tool | passed | note |",
        "| --- | --- | --- | ---: | --- |",
    ]
    for row in rows:
        lines.append(
            f"| {row.case} | {row.way} | {row.tool} | {row.passed} of {row.runs} | {row.words} |"
        )
    return lines

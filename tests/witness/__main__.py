"""How many bugs the audits see, and how many honest trainings they accuse.

    python -m tests.witness --processes 16 --seeds 5

runs every case with every seed and writes the tables. ``--only`` and ``--skip`` choose cases by
words of their names or sources; ``--part FILE`` keeps what was said of them in a file and writes
no table; ``--join FILE FILE`` makes the tables of such files. A case whose packages are missing is
left out and named. It ends with status 1 if a promise is broken.
"""

import argparse
import os
import sys
from pathlib import Path

# Before NumPy and PyTorch are imported: one thread, and the same numbers on every processor.
os.environ.setdefault("ATEN_CPU_CAPABILITY", "default")
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from .case import HONEST, Case, Run  # noqa: E402
from .cases import CASES  # noqa: E402
from .runs import can_run, run_all  # noqa: E402
from .table import broken_promises, pages, read_runs, table, write_runs, write_table  # noqa: E402

DATA = Path(__file__).parents[2] / "book" / "data"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.witness", description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seeds", type=int, default=5, help="of each bug")
    parser.add_argument("--honest", type=int, default=500, help="honest runs, all together")
    parser.add_argument("--only", default="", help="words of a name or source; | between several")
    parser.add_argument("--skip", default="", help="words of names or sources to leave out")
    parser.add_argument("--part", type=Path, help="keep the runs in this file; write no table")
    parser.add_argument("--join", type=Path, nargs="+", help="make the tables of such files")
    parser.add_argument("--data", type=Path, default=DATA, help="where the tables go")
    asked = parser.parse_args(arguments)
    if asked.join:
        runs = [run for path in asked.join for run in read_runs(path)]
    else:
        chosen = [case for case in CASES if _is_chosen(case, asked.only, asked.skip)]
        able = [case for case in chosen if can_run(case)]
        for case in chosen:
            if case not in able:
                print(f"left out, needs {', '.join(case.needs)}: {case.name}", file=sys.stderr)
        runs = list(run_all(list(_jobs(able, asked.seeds, asked.honest)), asked.processes))
    if asked.part:
        write_runs(asked.part, runs)
    return _report(runs, None if asked.part else asked.data, whole=not (asked.only or asked.skip))


def _is_chosen(case: Case, only: str, skip: str) -> bool:
    text = f"{case.name} {case.source} {case.way} {case.truth}"
    return any(each in text for each in only.split("|")) and not (
        skip and any(each in text for each in skip.split("|"))
    )


def _jobs(cases: list[Case], seeds: int, honest: int):
    """Cases with their seeds; no two trainings of honest variants share one."""
    variants = sum(case.truth == HONEST for case in CASES)
    first = 0
    for case in cases:
        number = seeds
        if case.truth == HONEST:
            number = -(-honest // variants)
            first = 100 * (1 + CASES.index(case))
        for tool in case.tools:
            for seed in range(1, number + 1):
                yield case.name, tool, (first if case.truth == HONEST else 0) + seed


def _report(runs: list[Run], data: Path | None, *, whole: bool) -> int:
    rows = table(CASES, runs)
    for row in rows:
        good = "" if row.right == row.runs else ("listed " if row.listed else "MISSED ")
        print(
            f"{good:7} {row.right}/{row.runs} right {row.named}/{row.runs} named "
            f"{row.seconds:5.1f} s  {row.case} [{row.tool}]: {row.words}"
        )
    if data is not None and whole:
        write_table(data / "witness.csv", rows)
        text = pages(rows, (run.versions for run in runs))
        (data / "witness.md").write_text(text, encoding="utf-8")
    broken = broken_promises(rows)
    for sentence in broken:
        print(f"BROKEN  {sentence}")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())

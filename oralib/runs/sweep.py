"""A grid of runs through dask.distributed: on this machine, or on any cluster that Dask can reach.

Every point is a folder that appears when it is complete. Whatever is killed on the way, the same
command goes on from there: complete points are kept, the others are run again.
"""

import contextlib
import csv
import fcntl
import io
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from oralib.runs.chapters import find_chapter
from oralib.runs.grid import Grid, point_key
from oralib.runs.record import code_version, read_results, write_text
from oralib.runs.single import run_chapter

#: Libraries that would start threads of their own in every kernel.
_THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Sweep:
    """What came out of a sweep: the table of all complete points, and the failures."""

    rows: list[dict[str, Any]]
    failures: dict[int, str]
    table: Path


def as_text(rows: list[dict[str, Any]], most: int = 60) -> str:
    """The table to be read on a terminal, its first rows if there are many."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [columns, *([str(row.get(name, "")) for name in columns] for row in rows[:most])]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in cells
    ]
    if len(rows) > most:
        lines.append(f"... and {len(rows) - most} more")
    return "\n".join(lines)


def sweep_grid(
    grid: Grid, out: Path, *, workers: int | None = None, scheduler: str | None = None
) -> Sweep:
    """Run every point of a grid that is not complete yet, and write the table of all.

    Parameters
    ----------
    out : the folder of the sweep: ``points/``, ``table.csv``, ``table.json``, ``figure.png``.
    workers : processes on this machine, at most as many as it has cores, the default.
    scheduler : the address of a Dask scheduler instead, whose workers see ``out`` at the same path
        and have this package. Whoever can reach a scheduler without TLS can run code on its
        workers: see ``oralib.runs.cluster``.
    """
    cores = os.cpu_count() or 1
    if workers is not None and not 1 <= workers <= cores:
        raise ValueError(f"workers must lie in [1, {cores}], the cores, got workers={workers}")
    _check_writable(out)
    with _alone(out):
        shutil.rmtree(out / "points" / ".partial", ignore_errors=True)
        code = code_version(grid.chapter)
        keys = [point_key(grid.chapter, point) for point in grid.points]
        _say_what_changed(grid, out, keys, code)
        missing = [i for i, key in enumerate(keys) if _done(out, key, code) is None]
        _say(f"{len(keys)} points, {len(keys) - len(missing)} complete, {len(missing)} to run")
        failures: dict[int, str] = {}
        if missing:
            from oralib.runs.cluster import connected  # takes a second to import

            processes = min(workers or cores, len(missing))
            threads = max(1, cores // processes) if scheduler is None else 1
            with connected(processes, scheduler) as client:
                failures = _run_all(client, grid, out, keys, missing, code, threads)
        rows = _rows(grid, out, keys, code)
        _write_table(out, rows, grid)
        shutil.rmtree(out / "points" / ".partial", ignore_errors=True)
    return Sweep(rows, failures, out / "table.csv")


def _run_all(
    client: Any,
    grid: Grid,
    out: Path,
    keys: list[str],
    missing: list[int],
    code: str,
    threads: int,
) -> dict[int, str]:
    """Run the missing points; what went wrong, by point."""
    from distributed import as_completed

    place = str(out.resolve())
    tasks = {
        client.submit(
            run_point,
            str(grid.chapter.path),
            dict(grid.points[i]),
            place,
            keys[i],
            code,
            threads,
            key=f"point-{keys[i]}",
            pure=False,
        ): i
        for i in missing
    }
    failures: dict[int, str] = {}
    with tqdm(total=len(missing), unit="point", disable=None) as bar:
        for task in as_completed(tasks):
            i = tasks[task]
            said = task.result() if task.status == "finished" else str(task.exception())
            if said:
                failures[i] = said
                tqdm.write(f"point {_named(grid, i)} failed: {said}", file=sys.stderr)
            bar.update()
    return dict(sorted(failures.items()))


def run_point(
    chapter: str, point: Mapping[str, Any], out: str, key: str, code: str, threads: int
) -> str:
    """Run one point on a worker; what went wrong, if anything did."""
    for name in _THREADS:
        os.environ[name] = str(threads)  # the kernel inherits it
    try:
        folder = Path(out) / "points" / key
        run_chapter(find_chapter(chapter), point, folder, code=code)
    except OSError as error:
        return f"{error.strerror or error} ({error.filename or out})"
    except Exception as error:
        return f"{error}" or type(error).__name__
    return ""


@contextlib.contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Keep other sweeps out of the folder; the lock goes with the process."""
    with (out / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(f"another sweep is at work in {out}") from None
        yield


def _check_writable(out: Path) -> None:
    try:
        (out / "points").mkdir(parents=True, exist_ok=True)
        probe = out / ".probe"
        probe.write_text("x")
        probe.unlink()
    except OSError as error:
        raise ValueError(f"{out} cannot be written to: {error.strerror}") from None


# -------------------------------------------------------------------------- what is complete


def _done(out: Path, key: str, code: str) -> dict[str, Any] | None:
    """The record of a complete point of this version of the code."""
    record = read_results(out / "points" / key)
    return record if record is not None and record["provenance"]["code"] == code else None


def _say_what_changed(grid: Grid, out: Path, keys: list[str], code: str) -> None:
    """Compare with what lies in the folder from earlier."""
    found = {
        folder.name: record
        for folder in sorted((out / "points").iterdir())
        if (record := read_results(folder)) is not None
    }
    if found and not set(found) & set(keys):
        _say(f"the grid has changed: none of the {len(found)} points in {out} belongs to it")
    elif set(found) - set(keys):
        others = len(set(found) - set(keys))
        _say(
            f"the grid has changed: {others} points in {out} do not belong to it and are left alone"
        )
    old = [key for key in keys if key in found and found[key]["provenance"]["code"] != code]
    if old:
        _say(f"the code has changed: {len(old)} points were run by another version and run again")


def _rows(grid: Grid, out: Path, keys: list[str], code: str) -> list[dict[str, Any]]:
    rows = []
    for key in keys:
        record = _done(out, key, code)
        if record is not None:
            axes = {name: record["parameters"][name] for name in grid.axes}
            results = record["results"]
            kept = results if grid.results is None else grid.results
            rows.append({**axes, **{name: results.get(name) for name in kept}})
    return rows


def _write_table(out: Path, rows: list[dict[str, Any]], grid: Grid) -> None:
    """The table of all complete points, as CSV and JSON, and a picture of it."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    for row in rows:
        table.writerow({name: _cell(value) for name, value in row.items()})
    write_text(out / "table.csv", text.getvalue())
    write_text(out / "table.json", json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    if rows:
        from oralib.runs.picture import draw_table

        draw_table(rows, grid.axes, grid.show, out / "figure.png")


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value


def _named(grid: Grid, i: int) -> str:
    words = ", ".join(f"{name}={grid.points[i].get(name)}" for name in grid.axes)
    return f"{i + 1} ({words})"


def _say(text: str) -> None:
    print(text, file=sys.stderr)

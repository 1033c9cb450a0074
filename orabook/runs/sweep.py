"""A grid of runs on Dask: on this machine, or on any cluster that Dask can reach.

A point is a folder named by its content. If it exists, it is complete and is skipped. So there is
nothing to invalidate or to lock, and two sweeps at once cannot harm each other.
"""

import json
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from orabook import figures
from orabook.results import from_json
from orabook.runs.grid import Grid
from orabook.runs.run import RunFailed, run_chapter, run_key
from oralib import _check
from oralib._folders import appearing


@dataclass(frozen=True)
class Sweep:
    """What came out of a sweep.

    Attributes
    ----------
    table : a row for each complete point: the parameters that vary, then the results.
    failures : what went wrong, by the number of the point.
    folder : where the table is, as ``table.csv`` and ``figure.png``.

    Examples
    --------
    >>> swept = Sweep(pd.DataFrame({"epsilon": [1.0, 2.0]}), {}, Path("sweep/table-1a2b"))
    >>> len(swept.table), swept.failures
    (2, {})
    """

    table: pd.DataFrame
    failures: dict[int, str]
    folder: Path


def sweep_grid(
    grid: Grid,
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    scheduler: str | None = None,
) -> Sweep:
    """Run every point of a grid that does not exist yet, and write the table of all points.

    Parameters
    ----------
    out : the folder of the sweep, which gets a folder for each point and one for the table.
    workers : processes on this machine, by default as many as it has cores.
    scheduler : the address of a Dask scheduler instead, whose workers see ``out`` and the chapter
        at the same paths and have this package.

    Examples
    --------
    >>> from orabook.runs import read_grid
    >>> swept = sweep_grid(read_grid("book/grids/plane.yml"), "plane")  # doctest: +SKIP
    """
    out = _check.path("out", out).absolute()
    cores = os.cpu_count() or 1
    workers = cores if workers is None else _check.integer("workers", workers, 1, 1000)
    places = [out / run_key(grid.chapter, point, grid.inputs) for point in grid.points]
    missing = [i for i, place in enumerate(places) if not place.exists()]
    print(f"{len(places) - len(missing)} of {len(places)} points are complete", file=sys.stderr)
    failures: dict[int, str] = {}
    if missing:
        calls = {i: (grid, grid.points[i], places[i]) for i in missing}
        for i, said in _ended(calls, min(workers, len(missing)), cores, scheduler):
            if said:
                failures[i] = said
                words = ", ".join(f"{name}={grid.points[i][name]}" for name in grid.axes)
                tqdm.write(f"point {i + 1} ({words}) failed: {said}", file=sys.stderr)
    table = _table(grid, places)
    return Sweep(table, failures, _write_table(grid, table, places, out))


_thread = threading.local()


def run_point(grid: Grid, point: Mapping[str, Any], place: Path) -> str:
    """Run a point on a worker; returns what went wrong, if anything did."""
    # Dask calls this in a new context each time, and the client of a kernel keeps an event loop
    # with open files in its context. So all points of a thread share one.
    if not hasattr(_thread, "context"):
        _thread.context = copy_context()
    run = partial(run_chapter, page=False, inputs=grid.inputs)
    if run_key(grid.chapter, point, grid.inputs) != place.name:
        return "an input has changed since the sweep began; the same command runs it anew"
    try:
        _thread.context.run(run, grid.chapter, point, place)
    except (RunFailed, OSError, ValueError) as error:
        return "" if place.exists() else str(error)  # another sweep may have been faster
    return ""


def _ended(
    calls: Mapping[int, tuple[Any, ...]], workers: int, cores: int, scheduler: str | None
) -> Iterator[tuple[int, str]]:
    """Run all points on Dask; yields the number of each and what went wrong, as they end."""
    import dask
    from distributed import Client, LocalCluster, Security, as_completed

    with ExitStack() as stack:
        cluster = scheduler
        if cluster is None:
            stack.enter_context(warnings.catch_warnings(action="ignore"))  # about taken ports
            stack.enter_context(dask.config.set({"distributed.scheduler.http.routes": []}))
            cluster = stack.enter_context(
                LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    protocol="tls",
                    security=Security.temporary(),
                    dashboard_address=None,
                    memory_limit=0,  # a kernel is a separate process, which Dask does not measure
                    silence_logs=logging.CRITICAL,
                    env={"NUMBA_NUM_THREADS": str(max(1, cores // workers))},
                )
            )
        client = stack.enter_context(Client(cluster))
        tasks = {client.submit(run_point, *call, pure=False): i for i, call in calls.items()}
        for task in tqdm(as_completed(tasks), total=len(tasks), unit="point", disable=None):
            yield (
                tasks[task],
                task.result() if task.status == "finished" else repr(task.exception()),
            )


def _table(grid: Grid, places: list[Path]) -> pd.DataFrame:
    """The parameters that vary and the results of all complete points."""
    rows = []
    for point, place in zip(grid.points, places, strict=True):
        if place.exists():
            results = from_json(json.loads((place / "results.json").read_text())["results"])
            names = grid.results or tuple(results)
            axes = {name: point[name] for name in grid.axes}
            rows.append({**axes, **{name: results.get(name) for name in names}})
    return pd.DataFrame(rows)


def _write_table(grid: Grid, table: pd.DataFrame, places: list[Path], out: Path) -> Path:
    """The table and its picture, in a folder named by its points and columns."""
    content = [[place.name for place in places if place.exists()], *grid.axes, grid.show, *table]
    folder = out / f"table-{sha256(json.dumps(content).encode()).hexdigest()[:8]}"
    if len(table) and not folder.exists():
        # Another sweep of the same points may be faster: its table is the same.
        with suppress(FileExistsError), appearing(folder) as written:
            table.to_csv(written / "table.csv", index=False)
            picture = figures.swept(table, grid.axes, grid.show)
            if picture is not None:
                picture.savefig(written / "figure.png", dpi=144)
    return folder

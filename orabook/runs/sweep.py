"""A grid of runs on Dask: on this machine, or on any cluster that Dask can reach.

A point is a folder named by its content. If it exists, it is complete and is skipped. So there is
nothing to invalidate or to lock, and two sweeps at once cannot harm each other.
"""

import json
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from multiprocessing.resource_tracker import ensure_running
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from orabook.results import from_json
from orabook.runs.folders import appearing
from orabook.runs.grid import Grid
from orabook.runs.run import RunFailed, key_of, origin_of, run_chapter
from oralib.ground import arguments

__all__ = ["Sweep", "run_point", "sweep_grid"]


@dataclass(frozen=True)
class Sweep:
    """The outcome of a sweep."""

    table: pd.DataFrame  # a row for each complete point: the parameters that vary, then the results
    failures: dict[int, str]  # the error of each point that failed, by the number of the point
    folder: Path  # where the table is, as a file and a picture, if a point is complete


def sweep_grid(
    grid: Grid,
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    scheduler: str | None = None,
) -> Sweep:
    """Run every point of a grid that does not exist yet, and write the table of all points.

    The folder ``out`` gets a folder for each point and one for the table. There are as many workers
    on this machine as it has cores; or those of a Dask scheduler at an address, which see ``out``
    and the chapter at the same paths and have this package. Dask's own configuration says how to
    reach a scheduler at ``tls://``.
    """
    out = arguments.path("out", out).absolute()
    cores = os.cpu_count() or 1
    workers = cores if workers is None else arguments.integer("workers", workers, 1, 1000)
    origin = origin_of(grid.chapter, grid.inputs)
    folders = [out / key_of(point, origin) for point in grid.points]
    missing = [number for number, folder in enumerate(folders) if not folder.exists()]
    complete = len(folders) - len(missing)
    print(f"{complete} of {len(folders)} points are complete", file=sys.stderr)
    failures: dict[int, str] = {}
    if missing:
        calls = {number: (grid, grid.points[number], folders[number], origin) for number in missing}
        with ExitStack() as stack:
            if scheduler is None:
                client = _local_client(stack, min(workers, len(missing)), cores)
            else:
                client = _client_of(stack, scheduler)
            for number, error in _run_all(client, calls):
                if error:
                    failures[number] = error
                    point = grid.points[number]
                    setting = ", ".join(f"{name}={point[name]}" for name in grid.axes)
                    tqdm.write(f"point {number + 1} ({setting}) failed: {error}", file=sys.stderr)
    table = _table(grid, folders)
    return Sweep(table, failures, _write_table(grid, table, folders, out))


_thread = threading.local()


def run_point(grid: Grid, point: Mapping[str, Any], folder: Path, origin: Mapping[str, Any]) -> str:
    """Run a point on a worker; return its error, or "" if there is none.

    A folder is named by what the sweep found when it began, so nothing runs where that differs.
    """
    here = origin_of(grid.chapter, grid.inputs)
    if here["inputs"] != origin["inputs"]:
        return "an input has changed since the sweep began; the same command runs it again"
    for part, name in {"sources": "oralib", "python": "Python", "packages": "packages"}.items():
        if here[part] != origin[part]:
            return (
                f"the workers have another {name}: restart them (the same command does so for a "
                "sweep without --scheduler)"
            )
    # Dask calls this in a new context each time, and in it the client of a kernel keeps an event
    # loop with open files. So all points of a thread share one.
    if not hasattr(_thread, "context"):
        _thread.context = copy_context()
    run = partial(run_chapter, page=False, inputs=grid.inputs)
    try:
        _thread.context.run(run, grid.chapter, point, folder)
    except (RunFailed, OSError, ValueError) as error:
        return "" if folder.exists() else str(error)  # another sweep may have been faster
    return ""


def _local_client(stack: ExitStack, workers: int, cores: int) -> Any:
    """Start workers on this machine, which listen on loopback only, and return their client."""
    import dask
    from distributed import Client, LocalCluster

    stack.enter_context(warnings.catch_warnings(action="ignore"))  # about taken ports
    settings = {
        "distributed.scheduler.http.routes": [],
        "distributed.nanny.pre-spawn-environ.DASK_LOGGING__DISTRIBUTED": "critical",
    }
    stack.enter_context(dask.config.set(settings))
    with _interrupts_blocked():
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            memory_limit=0,  # a kernel is a separate process, which Dask does not measure
            silence_logs=logging.CRITICAL,
            env={"NUMBA_NUM_THREADS": str(max(1, cores // workers))},
        )
        stack.enter_context(cluster)
        return stack.enter_context(Client(cluster))


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C, which goes to all processes of a terminal, for those that start meanwhile.

    They end because we end, and print nothing. (The tracker's own start would unblock it.) Windows
    cannot block it.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _client_of(stack: ExitStack, scheduler: str) -> Any:
    """Return a client of a running scheduler."""
    from distributed import Client

    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # we say it in a sentence
    client = stack.enter_context(Client(scheduler))
    if not client.nthreads():
        print(f"{scheduler} has no workers yet; waiting for the first", file=sys.stderr)
    return client


def _run_all(client: Any, calls: Mapping[int, tuple[Any, ...]]) -> Iterator[tuple[int, str]]:
    """Run all points on Dask; yield the number of each and its error, as they end."""
    from distributed import as_completed

    tasks = {client.submit(run_point, *call, pure=False): i for i, call in calls.items()}
    for task in tqdm(as_completed(tasks), total=len(tasks), unit="point", disable=None):
        if task.status == "finished":
            yield tasks[task], task.result()
        elif task.status == "error":  # for example, all workers that tried it have died
            yield tasks[task], repr(task.exception())
        else:
            raise ConnectionError("the scheduler is gone; the same command goes on from here")


def _table(grid: Grid, folders: list[Path]) -> pd.DataFrame:
    """Return the parameters that vary and the results of all complete points."""
    rows = []
    for point, folder in zip(grid.points, folders, strict=True):
        if folder.exists():
            record = json.loads((folder / "results.json").read_text(encoding="utf-8"))
            results = from_json(record["results"])
            axes = {name: point[name] for name in grid.axes}
            rows.append(axes | {name: results.get(name) for name in grid.results or results})
    return pd.DataFrame(rows)


def _write_table(grid: Grid, table: pd.DataFrame, folders: list[Path], out: Path) -> Path:
    """Write the table and its picture, in a folder named by its points and columns."""
    complete = [folder.name for folder in folders if folder.exists()]
    content = json.dumps([complete, *grid.axes, grid.show, *table])
    target = out / f"table-{sha256(content.encode()).hexdigest()[:8]}"
    if len(table) and not target.exists():
        from orabook import figures  # with Matplotlib, for which a run need not wait

        # Another sweep of the same points may be faster: its table is the same.
        with suppress(FileExistsError), appearing(target) as written:
            table.to_csv(written / "table.csv", index=False)
            picture = figures.swept(table, grid.axes, grid.show)
            if picture is not None:
                picture.savefig(written / "figure.png", dpi=144)
    return target

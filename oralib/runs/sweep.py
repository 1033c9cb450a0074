"""A grid of runs through dask.distributed: on this machine, or on any cluster that Dask can reach.

Every point is a folder that appears when it is complete. Whatever is killed on the way, the same
command goes on from there: complete points are kept, the others are run again.

All points are run from one copy of the chapter, ``chapter.ipynb``, which was read once.
"""

# mypy: disable-error-code="import-untyped"

import contextlib
import contextvars
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tqdm import tqdm

from oralib import _check, _signals
from oralib._folders import PARTIAL, settled
from oralib.results import as_json
from oralib.runs import inside
from oralib.runs.chapters import read_chapter, settings
from oralib.runs.folders import SOURCE, clear_dead, is_file, set_aside
from oralib.runs.grid import Grid, point_key
from oralib.runs.marked import MARK, alone, begin, claim, read_mark, say
from oralib.runs.record import (
    RunFailed,
    code_version,
    disturbed,
    is_as_written,
    is_current,
    made_by_each,
    read_results,
    would_import_the_same,
)
from oralib.runs.single import run_chapter
from oralib.runs.table import missing_results, table_of, write_table

# pandas takes a second to import, and is not needed before there are results.
if TYPE_CHECKING:
    import pandas as pd

#: Libraries that would start threads of their own in every kernel.
_THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Sweep:
    """What came out of a sweep.

    Attributes
    ----------
    table : a row for each complete point, in the order of the grid: the parameters that vary, then
        the results. Where a point has no such result, there is None.
    failures : what went wrong, by the number of the point.
    path : the file ``table.csv``.

    Examples
    --------
    >>> import pandas as pd
    >>> swept = Sweep(pd.DataFrame({"epsilon": [1.0, 2.0]}), {}, Path("sweep/table.csv"))
    >>> len(swept.table), swept.failures
    (2, {})
    """

    table: "pd.DataFrame"
    failures: dict[int, str]
    path: Path


@dataclass(frozen=True)
class Ended:
    """How a point has ended.

    Attributes
    ----------
    said : what went wrong, if anything did.
    record : of one that failed, what others must know of it: which files it wrote, and when.

    Examples
    --------
    >>> Ended("a cell has failed").record
    {}
    """

    said: str = ""
    record: dict[str, Any] = field(default_factory=dict)


def sweep_grid(
    grid: Grid,
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    scheduler: str | None = None,
) -> Sweep:
    """Run every point of a grid that is not complete yet, and write the table of all.

    Parameters
    ----------
    out : the folder of the sweep: ``points/``, ``table.csv``, ``table.json``, ``figure.png``.
    workers : processes on this machine, at most as many as it has cores, the default.
    scheduler : the address of a Dask scheduler instead, whose workers see ``out`` at the same path
        and have this package. Whoever can reach a scheduler without TLS can run code on its
        workers: see ``oralib.runs.cluster``.

    Examples
    --------
    In some minutes, or where it was interrupted:

    >>> from oralib.runs import read_grid
    >>> grid = read_grid("book/grids/plane.yml")
    >>> swept = sweep_grid(grid, "plane", workers=2)  # doctest: +SKIP
    """
    _check.instance("grid", grid, Grid, 'read_grid("grid.yml")')
    out = _check.path("out", out)
    cores = os.cpu_count() or 1
    if workers is not None:
        workers = _check.integer("workers", workers)
    if workers is not None and not 1 <= workers <= cores:
        raise ValueError(f"workers must lie in [1, {cores}], the cores, got workers={workers}")
    if scheduler is not None:
        from oralib.runs.cluster import check_address

        _check.instance("scheduler", scheduler, str, "'tcp://host:8786'")
        check_address(scheduler)
    claim(out, grid)
    place = settled(out)
    with alone(out):
        code = code_version(grid.chapter)
        begin(place, grid)
        keys = [point_key(grid.chapter, point) for point in grid.points]
        _take_stock(grid, place, keys, code)
        kept = _kept(grid, place, keys, code)
        missing = [i for i, key in enumerate(keys) if key not in kept]
        say(f"{len(keys)} points, {len(keys) - len(missing)} complete, {len(missing)} to run")
        ended: dict[int, Ended] = {}
        try:
            if missing:
                from oralib.runs.cluster import connected  # takes a second to import

                processes = min(workers or cores, len(missing))
                threads = max(1, cores // processes) if scheduler is None else 1
                with contextlib.ExitStack() as stack:
                    with _interrupted_later():
                        client = stack.enter_context(connected(processes, scheduler))
                    ended = _run_all(client, grid, place, keys, missing, code, threads)
        finally:
            clear_dead(place / "points" / PARTIAL)
        if read_mark(place) is None:
            raise ValueError(
                f"{out} is gone, or its {MARK} has been changed, and its points with it"
            )
        failures = {i: end.said for i, end in sorted(ended.items()) if end.said}
        failed = {i: end.record for i, end in ended.items() if end.record}
        complete = _complete(grid, place, keys, code, failed)
        for i, key in enumerate(keys):
            if i not in failures and key not in complete:
                failures[i] = "a file that it used has changed meanwhile; sweep again"
                say(f"point {_named(grid, i)} is not complete: {failures[i]}")
        failures |= _set_aside_disturbed(grid, place, keys, code, failed)
        table = table_of(grid, keys, _complete(grid, place, keys, code, failed), failures)
        for name in missing_results(grid, table):
            say(f"the table has no result {name}: no complete point has recorded it")
        write_table(place, table, grid)
    return Sweep(table, failures, out / "table.csv")


def _run_all(
    client: Any,
    grid: Grid,
    out: Path,
    keys: list[str],
    missing: list[int],
    code: str,
    threads: int,
) -> dict[int, Ended]:
    """Run the missing points; how each has ended."""
    calls = {
        i: (str(grid.chapter.path), dict(grid.points[i]), str(out), keys[i], code, threads)
        for i in missing
    }
    ended: dict[int, Ended] = {}
    with tqdm(total=len(missing), unit="point", disable=None) as bar:
        for i, end in _ended(client, calls):
            ended[i] = end
            if end.said and end.said != _GONE:
                line = " ".join(end.said.split())
                tqdm.write(f"point {_named(grid, i)} failed: {line}", file=sys.stderr)
            bar.update()
    if gone := sum(end.said == _GONE for end in ended.values()):
        say(f"{_GONE}, before {gone} points were complete; the same command goes on from here")
    return ended


def _ended(client: Any, calls: Mapping[int, tuple[Any, ...]]) -> Iterator[tuple[int, Ended]]:
    """Each point as it ends."""
    from distributed import as_completed

    # Dask takes tasks of one name for one, also those of another sweep at the same scheduler.
    sweep = uuid4().hex
    tasks = {
        client.submit(run_point, *call, key=f"point-{call[3]}-{sweep}", pure=False): i
        for i, call in calls.items()
    }
    for task in as_completed(tasks):
        if task.status == "finished":
            yield tasks[task], task.result()
        elif task.status == "error":
            error = task.exception()
            yield tasks[task], Ended(str(error) or type(error).__name__)
        else:  # cancelled, or lost
            yield tasks[task], Ended(_GONE)


#: What is said of points that nobody knows of any more.
_GONE = "the scheduler has gone"

#: In each thread of a worker, the context in which it runs its points.
_thread = threading.local()


def run_point(
    chapter: str, point: Mapping[str, Any], out: str, key: str, code: str, threads: int
) -> Ended:
    """Run one point on a worker, from the sweep's copy.

    Dask calls it in a new context each time, and the clients of kernels keep an event loop, with
    open files, in their context. So all points of a thread have one.
    """
    if not hasattr(_thread, "context"):
        _thread.context = contextvars.copy_context()
    end: Ended = _thread.context.run(_run_point, chapter, point, out, key, code, threads)
    return end


def _run_point(
    chapter: str, point: Mapping[str, Any], out: str, key: str, code: str, threads: int
) -> Ended:
    began = time.time()
    for name in _THREADS:
        os.environ[name] = str(threads)  # the kernel inherits it
    try:
        home = Path(out)
        copy = read_chapter(home / SOURCE, Path(chapter))
        run_chapter(
            copy,
            point,
            home / "points" / key,
            code=code,
            force=True,
            failed=home / "failed" / key,
            again=True,
        )
    except RunFailed as error:
        origin = {"written": error.written, "span": [began, time.time()]}
        return Ended(str(error), {"provenance": origin})
    except OSError as error:
        return Ended(f"{error.strerror or error} ({error.filename or out})")
    except Exception as error:
        return Ended(str(error) or type(error).__name__)
    return Ended()


@contextlib.contextmanager
def _interrupted_later() -> Iterator[None]:
    """Put signals off until the end of a block: a cluster that is half there cannot be closed."""
    ours = [n for n in _signals.ENDINGS if signal.getsignal(n) is _signals.interrupt]
    heard: list[int] = []
    for number in ours:
        signal.signal(number, lambda number, frame: heard.append(number))
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, _signals.interrupt)
        if heard:
            signal.raise_signal(heard[0])


# -------------------------------------------------------------------------- what is complete


def _complete(
    grid: Grid,
    out: Path,
    keys: list[str],
    code: str,
    failed: Mapping[int, Mapping[str, Any]] | None = None,
) -> dict[str, dict[str, Any]]:
    """The records of complete points of this version of the code, and of the files they used.

    Those that have failed tell as well which files each point makes for itself.
    """
    found = {key: read_results(out / "points" / key) for key in keys}
    records = {
        key: record
        for key, record in found.items()
        if record is not None and record["provenance"]["code"] == code
    }
    made = made_by_each([*records.values(), *(failed or {}).values()])
    return {
        key: record
        for key, record in records.items()
        if is_current(record, grid.chapter, code, made)
    }


def _kept(grid: Grid, out: Path, keys: list[str], code: str) -> set[str]:
    """The points that need not be run: they are complete, and would import the same modules."""
    complete = _complete(grid, out, keys, code).items()
    return {key for key, record in complete if would_import_the_same(record, grid.chapter)}


def _set_aside_disturbed(
    grid: Grid, out: Path, keys: list[str], code: str, failed: Mapping[int, Mapping[str, Any]]
) -> dict[int, str]:
    """Keep no points that have read each other's files; what is said of them."""
    found = _complete(grid, out, keys, code, failed)
    complete = {i: found[key] for i, key in enumerate(keys) if key in found and i not in failed}
    said = {}
    for i, name in disturbed({**complete, **failed}).items():
        if i in failed:
            continue
        set_aside(out / "points" / keys[i], out / "set-aside")
        said[i] = (
            f"another point wrote {name}, which this one has read back, at the same time; let each "
            "point write a file of its own, or sweep again with --workers 1"
        )
        say(f"point {_named(grid, i)} is not kept: {said[i]}")
    return said


def _take_stock(grid: Grid, out: Path, keys: list[str], code: str) -> None:
    """Compare with what lies in the folder from earlier, and set aside what is damaged."""
    found: dict[str, dict[str, Any]] = {}
    for folder in sorted((out / "points").iterdir()):
        record = read_results(folder)
        if record is not None and (
            folder.name not in keys or _belongs(grid, record, keys.index(folder.name))
        ):
            found[folder.name] = record
        elif folder.name in keys:
            new = set_aside(folder, out / "set-aside")
            say(f"point {keys.index(folder.name) + 1} is damaged and run again; it is now {new}")
    if found and not set(found) & set(keys):
        say(f"the grid has changed: none of the {len(found)} points in {out} belongs to it")
    elif set(found) - set(keys):
        others = len(set(found) - set(keys))
        say(
            f"the grid has changed: {others} points in {out} do not belong to it and are left alone"
        )
    kept = _kept(grid, out, keys, code)
    old = [key for key in keys if key in found and key not in kept]
    if old:
        same = all(found[key]["provenance"]["code"] == code for key in old)
        what = "a file that the chapter used has changed" if same else "the code has changed"
        later = ", and so is table.csv until the end" if is_file(out / "table.csv") else ""
        say(f"{what}: {len(old)} points were run by another version{later}; they run again")
    _name_other_versions([found[key] for key in keys if key in found and key not in old])
    for key in old:
        if not is_as_written(out / "points" / key, found[key]):
            new = set_aside(out / "points" / key, out / "set-aside")
            say(f"point {keys.index(key) + 1} has files of somebody else; it is now {new}")


def _name_other_versions(kept: list[dict[str, Any]]) -> None:
    """Say which packages have changed since points were run that are kept."""
    names = {name for record in kept for name in record["provenance"]["packages"]}
    for name in sorted(names):
        now = inside.version_of(name)
        others = {record["provenance"]["packages"].get(name, now) for record in kept} - {now}
        if others:
            before = ", ".join(sorted(version or "absent" for version in others))
            say(f"points are kept that were run with {name} {before}; now it is {now or 'absent'}")


def _belongs(grid: Grid, record: Mapping[str, Any], i: int) -> bool:
    """Whether the record is of this point, and not of another one that was copied here."""
    # As it was written: inf in a list is a word there.
    written = json.dumps(as_json(settings(grid.chapter, grid.points[i])))
    return bool(record["parameters"] == json.loads(written))


def _named(grid: Grid, i: int) -> str:
    words = ", ".join(f"{name}={grid.points[i].get(name)}" for name in grid.axes)
    return f"{i + 1} ({words})"

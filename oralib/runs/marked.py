"""The folder of a sweep. It bears a mark, and no other folder is written to unless it is empty.

The mark, ``sweep.json``, names the chapter and the digests of our files in the folder. What is not
as we have left it is somebody's, and is set aside under another name.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from oralib._folders import PARTIAL, is_link
from oralib.runs.folders import (
    SOURCE,
    clear_dead,
    digest_of,
    is_file,
    is_folder,
    set_aside,
    unseen,
)
from oralib.runs.grid import Grid
from oralib.runs.record import read_sealed, sealed

#: The mark of the folder of a sweep: the file, and what is in it.
MARK, FORMAT = "sweep.json", "oralib-sweep/1"

#: What may be in a folder that is going to be a sweep's: a start that was killed has left it.
_BEGINNINGS = {".lock", PARTIAL}


def claim(out: Path, grid: Grid) -> None:
    """Have a folder that is ours or empty, and refuse any other."""
    if is_link(out):
        raise ValueError(f"{out} is a symbolic link; give a folder that is none")
    try:
        out.mkdir(parents=True, exist_ok=True)
        names = set(os.listdir(out))
    except OSError as error:
        raise ValueError(f"{out} cannot be written to: {error.strerror}") from None
    mark = read_mark(out)
    if names - _BEGINNINGS and mark is None:
        raise ValueError(f"{out} exists and is not a sweep; give another folder")
    name = grid.chapter.name
    if mark is not None and mark["chapter"] != name:
        raise ValueError(
            f"{out} is a sweep of {mark['chapter']}, not of {name}; give another folder"
        )
    if mark is not None and (other := _other_notebook(out, mark, grid)) is not None:
        raise ValueError(f"{out} is a sweep of {other}, another notebook; give another folder")
    for path in (out / ".lock", out / MARK):
        if os.path.lexists(path) and not is_file(path):
            raise ValueError(f"{path} is not a file; give another folder")
    for path in (out / PARTIAL, out / "points", out / "failed", out / "set-aside"):
        if os.path.lexists(path) and not is_folder(path):
            raise ValueError(f"{path} is not a folder; give another folder")


def _other_notebook(out: Path, mark: Mapping[str, Any], grid: Grid) -> Path | None:
    """The notebook of a sweep, if it is there and another one than that of the grid.

    It is known by where it lies, seen from the folder of the sweep or not: both may be moved.
    """
    places = [Path(os.path.normpath(out / place)) for place in map(str, mark.get("places", ()))]
    # By its name, not by its content: links in two folders to one file are two notebooks.
    # One that may not be looked at is as good as none.
    known = [place.parent.resolve() / place.name for place in places if os.path.exists(place)]
    return None if grid.chapter.path in known or not known else known[0]


def read_mark(out: Path) -> dict[str, Any] | None:
    """What the mark of a sweep says, if there is one: the chapter, and digests of our files."""
    schema = {"format": str, "chapter": str, "files": dict, "digest": str}
    mark = read_sealed(out / MARK, schema)
    if mark is None or mark["format"] != FORMAT:
        return None
    return mark if all(isinstance(known, list) for known in mark["files"].values()) else None


@contextlib.contextmanager
def alone(out: Path) -> Iterator[None]:
    """Keep other sweeps out of the folder; the lock goes with the process."""
    lock = FileLock(out / ".lock", blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise ValueError(f"another sweep is at work in {out}") from None
    except OSError as error:
        raise ValueError(f"{out} cannot be written to: {error.strerror}") from None
    try:
        yield
    finally:
        lock.release()


def begin(out: Path, grid: Grid) -> None:
    """Leave the mark and the copy of the chapter, and make room for points."""
    try:
        with unseen(out / MARK) as place:
            (place / SOURCE).write_text(grid.chapter.text, encoding="utf-8")
            put(out, place, grid, [SOURCE])
        (out / "points").mkdir(exist_ok=True)
        clear_dead(out / "points" / PARTIAL)
    except OSError as error:
        raise ValueError(f"{out} cannot be written to: {error.strerror}") from None


def put(out: Path, place: Path, grid: Grid, names: list[str]) -> None:
    """Let files appear in the folder; a file that is not as we have left it is set aside.

    Their digests are written down before, so that they are known as ours whatever happens.
    """
    mark = read_mark(out)
    files = {} if mark is None else dict(mark["files"])
    for name in names:
        known = [digest_of(out / name)] if is_file(out / name) else []
        if os.path.lexists(out / name) and not set(known) & set(files.get(name, [])):
            new = set_aside(out / name, out / "set-aside")
            say(f"{name} in {out} was not as the sweep has left it; it is now {new}")
            known = []
        files[name] = [*known, digest_of(place / name)]
    home = grid.chapter.path
    places = [str(home)]
    with contextlib.suppress(ValueError):  # on another drive of Windows
        places.append(os.path.relpath(home, out))
    content = {"format": FORMAT, "chapter": home.stem, "places": places, "files": files}
    text = json.dumps(sealed(content), indent=1)
    (place / MARK).write_text(text + "\n", encoding="utf-8")
    for name in (MARK, *names):
        with (place / name).open("r+b") as file:
            os.fsync(file.fileno())
        os.replace(place / name, out / name)


def say(text: str) -> None:
    """A word about a sweep, for whoever has started it."""
    print(text, file=sys.stderr)

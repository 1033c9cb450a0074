"""Where runs and sweeps write, so that nothing of anybody else is lost.

A folder is written in an unseen place beside it and renamed when it is complete, so whoever sees it
sees all of it. Only what we have written is ever deleted, and we know it by the digests that we
wrote down. Everything else is refused, or set aside under another name. Symbolic links are neither
followed nor replaced, but for those among the parents of a folder that somebody has given.

The unseen place is locked by its process. The system opens the lock when the process ends, however
it ends, so what a dead process has left can be told from what a living one is writing. As some
shared file systems keep locks to one machine, each machine clears only what its own have left.

On Windows a file that another program has open can be neither renamed nor deleted; this is an error
then, and nothing is lost. Junctions are known as links from Python 3.12 on.
"""

import contextlib
import os
import platform
import re
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping
from errno import ENOTDIR
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout

from oralib._folders import PARTIAL, is_link, publish

#: What lies in an unseen place: its lock, the notebook to be run, what the kernel says about its
#: own troubles, and the folder to be.
LOCK, SOURCE, KERNEL_LOG, WRITTEN = "lock", "chapter.ipynb", "kernel.log", "written"


def is_file(path: Path) -> bool:
    """Whether this is a plain file and not a link to one, or a pipe."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    return path.is_dir() and not is_link(path)


def digest_of(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def changed_since(folder: Path, files: Mapping[str, str], others: Collection[str]) -> str | None:
    """An entry of the folder that is not as it was written, if there is one.

    Parameters
    ----------
    files : digests by name.
    others : files that may be there and are known to be ours.
    """
    for path in sorted(folder.iterdir()):
        if not is_file(path) or (path.name not in files and path.name not in others):
            return path.name
        if path.name in files and digest_of(path) != files[path.name]:
            return path.name
    return None


# ------------------------------------------------------------------------------ unseen places


@contextlib.contextmanager
def unseen(folder: Path) -> Iterator[Path]:
    """A new place beside the folder, with a folder ``written`` in it; both go when this ends.

    What dead processes have left beside it goes as well.
    """
    home = folder.parent / PARTIAL
    place, lock = _locked(home)
    try:
        clear_dead(home)
        yield place
    finally:
        lock.release()
        shutil.rmtree(place, ignore_errors=True)
        with contextlib.suppress(OSError):
            home.rmdir()  # the last one, if it is


def _locked(home: Path) -> tuple[Path, FileLock]:
    for _ in range(100):
        try:
            home.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), str(home.parent)) from None
        with contextlib.suppress(FileExistsError):
            home.mkdir()
            _keep_private(home)
        if is_link(home):
            raise ValueError(f"{home} is a symbolic link; nothing is written there")
        check_ours(home)
        place = home / f"{uuid4().hex}-{_machine()}"
        lock = FileLock(place / LOCK, blocking=False)
        try:
            place.mkdir()
            _keep_private(place)
            lock.acquire()
            (place / WRITTEN).mkdir()
            return place, lock
        except (FileNotFoundError, Timeout):
            # Somebody who clears away has taken it for dead, in the moment before it was locked.
            lock.release()
    raise OSError(f"no place can be locked in {home}")


def _keep_private(folder: Path) -> None:
    """For this user only, whatever the umask is; what is made in it gets the group of a team."""
    folder.chmod(0o700 | (folder.stat().st_mode & stat.S_ISGID))


def check_ours(folder: Path) -> None:
    """Refuse a folder that another user could change under our hands."""
    if not hasattr(os, "geteuid"):
        return  # Windows keeps a user's folders to the user by other means
    status = folder.stat()
    if status.st_uid != os.geteuid():
        raise ValueError(f"{folder} belongs to another user; give another folder")
    if status.st_mode & 0o022:
        raise ValueError(f"{folder} can be written by other users; give another folder")


def _machine() -> str:
    """A word for this machine that can be in a file's name."""
    return sha256(platform.node().encode()).hexdigest()[:8]


def clear_dead(home: Path) -> None:
    """Remove this machine's unseen places whose process is gone, if nothing else is in them."""
    if not is_folder(home):
        return
    for place in list(home.iterdir()):
        if not re.fullmatch(rf"[0-9a-f]{{32}}-{_machine()}", place.name) or not is_folder(place):
            continue
        with contextlib.suppress(OSError, Timeout):
            if is_file(place / LOCK):
                with FileLock(place / LOCK, blocking=False):  # a living one has it
                    ours = _is_ours(place)
                if ours:
                    shutil.rmtree(place)
            else:
                place.rmdir()
    with contextlib.suppress(OSError):
        home.rmdir()


#: All files that runs and sweeps ever write.
OURS = (
    *("notebook.ipynb", "page.html", "results.csv", "results.json"),
    *("sweep.json", SOURCE, "table.csv", "table.json", "figure.png"),
)


def _is_ours(place: Path) -> bool:
    inner = [path for path in place.iterdir() if path.name != WRITTEN]
    if (place / WRITTEN).exists():
        if not is_folder(place / WRITTEN):
            return False
        inner += (place / WRITTEN).iterdir()
    return all(is_file(path) and path.name in (LOCK, KERNEL_LOG, *OURS) for path in inner)


# --------------------------------------------------------------------------- what can be seen


def swap(
    written: Path, folder: Path, files: Mapping[str, str], others: Collection[str]
) -> Path | None:
    """Let a complete folder appear in the place of an older one, of which we know all files.

    The older one is renamed before it is deleted. Should it have got files of others just then, or
    should it be closed to us, it stays, and its new name is returned.
    """
    old = free_name(folder.with_name(folder.name + ".old"))
    os.rename(folder, old)
    try:
        publish(written, folder)
    except BaseException:
        if not os.path.lexists(folder):
            os.rename(old, folder)
        raise
    with contextlib.suppress(OSError):
        if changed_since(old, files, others) is None:
            for name in (*files, *others):
                (old / name).unlink(missing_ok=True)
            old.rmdir()
            return None
    return old


def free_name(path: Path, suffix: str = "") -> Path:
    """The path with a number after it that nobody has; a long name is cut."""
    stem = os.fsencode(path.name)[:200].decode("utf-8", "ignore")
    number = 1
    while os.path.lexists(free := path.with_name(f"{stem}-{number}{suffix}")):
        number += 1
    return free


def set_aside(path: Path, home: Path) -> Path:
    """Rename what is in the way, a link as such, into a folder for such things."""
    home.mkdir(exist_ok=True)
    if is_link(home):
        raise ValueError(f"{home} is a symbolic link; nothing is written there")
    new = free_name(home / path.name)
    os.rename(path, new)
    return new

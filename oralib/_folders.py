"""Where commands may write: never over anything of anybody else, and never in part.

This is what all commands need, with or without the extra ``runs``; what runs and sweeps need beyond
it is in the module ``folders`` there.
"""

import contextlib
import os
import shutil
import stat
from collections.abc import Mapping
from errno import ENOTDIR
from pathlib import Path
from tempfile import mkdtemp
from uuid import uuid4

#: Longer names are refused by most file systems.
LONGEST_NAME = 255

#: The folder of all unseen places of runs, beside what will be seen.
PARTIAL = ".partial"


def settled(folder: Path) -> Path:
    """The same folder by a path that does not depend on the current one; its last link is kept."""
    for parent in folder.parents:
        if is_link(parent) and not parent.exists():
            raise ValueError(f"{parent} is a symbolic link to nothing; it is not followed")
    if folder.name in ("", ".."):
        return folder.resolve()
    return folder.parent.resolve() / folder.name


def is_link(path: Path) -> bool:
    isjunction = getattr(os.path, "isjunction", None)
    return path.is_symlink() or (isjunction is not None and isjunction(path))


def check_place(folder: Path) -> bool:
    """Whether there is a folder with something in it; an error if there never can be one of ours.

    Neither links nor mounts, nor the current folder or home, nor a folder that contains these.
    """
    try:
        str(settled(folder)).encode()
    except UnicodeEncodeError:
        shown = ascii(str(folder))
        raise ValueError(f"the path {shown} is not in UTF-8; give a folder with another") from None
    if len(os.fsencode(folder.name)) > LONGEST_NAME or folder.name == PARTIAL:
        raise ValueError(f"{folder} cannot be the name of a folder here; give another name")
    if is_link(folder):
        raise ValueError(f"{folder} is a symbolic link; give a folder that is none")
    if not os.path.lexists(folder):
        return False
    if not folder.is_dir():
        raise ValueError(f"{folder} exists and is not a folder; give another name")
    here = settled(folder).resolve()
    if os.path.ismount(here):
        raise ValueError(f"{folder} is a mount; give a folder in it")
    for name, near in (("the current folder", Path.cwd()), ("home", Path(os.path.expanduser("~")))):
        near = near.resolve()
        if here == near or here in near.parents:
            said = "is" if here == near else "contains"
            raise ValueError(f"{folder} {said} {name}; give a folder in it")
    return any(folder.iterdir())


def publish(written: Path, folder: Path) -> None:
    """Let a complete folder appear under a name that is free, or that of an empty folder."""
    for path in written.iterdir():
        with path.open("r+b") as file:  # on the disk before the folder gets its name
            os.fsync(file.fileno())
    if is_link(folder):
        raise FileExistsError(f"{folder} is a symbolic link")
    mode = None
    with contextlib.suppress(OSError):
        mode = stat.S_IMODE(folder.stat().st_mode)
        folder.rmdir()  # only if it is empty
    os.rename(written, folder)  # an error if there is something
    if mode is not None:  # an empty folder that was private stays private
        with contextlib.suppress(OSError):
            os.chmod(folder, mode)


def replace(path: Path, before: bytes | None, content: bytes) -> None:
    """Let a file have another content, all of it or none; an error if it is not as before."""
    new = path.with_name(f".{path.name}-{uuid4().hex[:8]}")
    try:
        with new.open("xb") as file:
            file.write(content)
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, new)
        if before is not None and path.read_bytes() != before:
            raise ValueError(f"{path} was changed in the meantime, and is left as it is")
        os.replace(new, path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def check_new(folder: Path) -> None:
    """An error unless there is no such folder yet, or an empty one."""
    place = settled(folder)
    if check_place(place if folder.name == ".." else folder):  # new/.. is a folder that is there
        raise ValueError(f"{folder} exists and is not empty; give another folder")


def write_new(folder: Path, files: Mapping[str, bytes]) -> None:
    """A new folder with these files, which appears when it is complete."""
    check_new(folder)
    folder = settled(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), str(folder.parent)) from None
    place = Path(mkdtemp(prefix=".oralib-", dir=folder.parent))
    try:
        written = place / "written"  # with the rights that a new folder has here
        written.mkdir()
        for name, content in files.items():
            (written / name).write_bytes(content)
        publish(written, folder)
    finally:
        shutil.rmtree(place, ignore_errors=True)

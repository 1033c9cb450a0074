"""Where commands write: a new folder, complete or not at all, and never over anything else."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp


def check_new(folder: Path) -> None:
    """An error unless there is no such folder yet, or an empty one."""
    if folder.is_symlink():
        raise ValueError(f"{folder} is a symbolic link; give a folder that is none")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} exists and is not a folder; give another name")
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} exists and is not empty; give another folder")


def write_new(folder: Path, files: Mapping[str, bytes]) -> None:
    """A new folder with these files, which gets its name when it is complete."""
    check_new(folder)
    folder = folder.absolute()
    if not folder.parent.exists():
        folder.parent.mkdir(parents=True)
    place = Path(mkdtemp(prefix=".oralib-", dir=folder.parent))
    try:
        written = place / "written"  # with the rights that a new folder has here
        written.mkdir()
        for name, content in files.items():
            (written / name).write_bytes(content)
        written.rename(folder)  # an error if there is something by now
    finally:
        shutil.rmtree(place, ignore_errors=True)


def replace(path: Path, before: bytes | None, content: bytes) -> None:
    """Let a file have another content, all of it or none; an error if it is not as before."""
    if before is not None and path.read_bytes() != before:
        raise ValueError(f"{path} was changed in the meantime, and is left as it is")
    new = path.with_name(f".{path.name}-new")
    new.write_bytes(content)
    new.replace(path)

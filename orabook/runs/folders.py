"""New folders that appear by one rename: a killed process leaves a whole folder or none."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

__all__ = ["FolderExists", "appearing", "check_new"]


class FolderExists(ValueError, FileExistsError):
    """The name of a new folder is already taken."""


def check_new(folder: Path) -> None:
    """Raise an error if the name is already taken: nothing is ever overwritten."""
    if os.path.lexists(folder):
        raise FolderExists(f"{folder} exists; give another folder")


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """Make a hidden folder next to ``folder``, and rename it to that if the block has no error.

    An error in the block removes the hidden folder; a killed process leaves it.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    hidden = Path(mkdtemp(prefix=f".{folder.name[:40]}-", dir=folder.parent))
    try:
        written = hidden / "written"
        written.mkdir()  # with the usual permissions; mkdtemp gives none to others
        yield written
        check_new(folder)
        os.rename(written, folder)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)

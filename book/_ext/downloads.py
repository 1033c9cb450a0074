"""Build what the book carries for its readers: ``python book/_ext/downloads.py FOLDER``.

A wheel of the package, and an archive with all sources and chapters: the files that git tracks,
as they are now, or everything that is not ignored where there is no git.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def tracked() -> list[str]:
    """The names of all files that git tracks; none where this is no clone."""
    if not (ROOT / ".git").exists():
        return []
    names = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def build(folder: Path) -> None:
    """Put the wheel and the archive into a folder."""
    with tempfile.TemporaryDirectory() as temporary:
        source, env = ROOT, dict(os.environ)
        if names := tracked():
            source = Path(temporary)
            # All files in an archive get one time. It must not be that of other versions: Python
            # tells by it whether a module has changed since it was compiled.
            command = ["git", "log", "-1", "--format=%ct"]
            env["SOURCE_DATE_EPOCH"] = subprocess.check_output(command, cwd=ROOT, text=True).strip()
            for name in names:
                (source / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, source / name)
        command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder.resolve())]
        subprocess.run(command, cwd=source, env=env, check=True)


if __name__ == "__main__":
    build(Path(sys.argv[1]))

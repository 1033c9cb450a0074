"""The downloads that the book carries for its readers, in its folder ``downloads``.

A wheel of the package, and an archive with all sources and chapters as they are now: the files that
git tracks or, without git, the files that belong to the project and nothing else.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from orabook.place import ROOT

__all__ = ["ask_git", "build", "files"]

#: The files and folders of the project, at its top.
PROJECT = (
    ".binder",
    ".ci",
    ".devcontainer",
    ".github",
    ".gitignore",
    ".jupyter",
    ".pre-commit-config.yaml",
    ".zenodo.json",
    "CHANGELOG.md",
    "CITATION.cff",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "LICENSE-CC-BY-4.0",
    "Makefile",
    "README.md",
    "_config.yml",
    "_toc.yml",
    "benchmarks",
    "book",
    "conftest.py",
    "environment.yml",
    "ledger",
    "orabook",
    "oralib",
    "oraudit",
    "paper.md",
    "pyproject.toml",
    "requirements-torch.txt",
    "requirements.lock",
    "tests",
)

#: The names of folders that other tools leave in those.
LEFT = ("__pycache__", ".ipynb_checkpoints", ".hypothesis")


def ask_git(*arguments: str) -> str:
    """The output of git, or "" if this is not a clone, or git is missing or not allowed to look."""
    if not (ROOT / ".git").exists():
        return ""
    # A repository named in the environment is a different one, as in git hooks.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, env=env, capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return os.fsdecode(done.stdout)


def files() -> list[str]:
    """The names of all files of the project."""
    tracked = ask_git("ls-files", "-z")
    if tracked:
        return [name for name in tracked.split("\0") if name and (ROOT / name).is_file()]
    paths = [path for name in PROJECT for path in [ROOT / name, *(ROOT / name).rglob("*")]]
    names = [path.relative_to(ROOT) for path in paths if path.is_file()]
    return sorted(str(name) for name in names if not set(name.parts) & set(LEFT))


def build(folder: Path) -> None:
    """Put the wheel and the archive into a folder."""
    names = files()
    # All files in an archive get the same time. It must differ between versions: Python uses it to
    # tell whether a module has changed since it was compiled.
    time = ask_git("log", "-1", "--format=%ct").strip()
    if not time:
        time = str(int(max((ROOT / name).stat().st_mtime for name in names)))
    with tempfile.TemporaryDirectory() as source:
        for name in names:
            (Path(source) / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, Path(source) / name)
        command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder.resolve())]
        env = {**os.environ, "SOURCE_DATE_EPOCH": time}
        subprocess.run(command, cwd=source, env=env, check=True)

"""One run: papermill executes a chapter with other parameters and writes a folder."""

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import papermill
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines

from orabook.results import as_json, results_of
from orabook.runs.chapters import BOOK, Chapter, check_parameters
from orabook.runs.prose import fill_in
from oralib import _check
from oralib._folders import appearing, check_new

#: The packages that the numbers depend on.
NUMERIC = ("numpy", "scipy", "numba", "pandas", "matplotlib", "dp-accounting")


class RunFailed(Exception):
    """A chapter stopped with an error; the message says which, and where its notebook is.

    Examples
    --------
    >>> str(RunFailed("a cell has failed"))
    'a cell has failed'
    """


class _Client(PapermillNotebookClient):
    def execute_cell(self, cell: Any, cell_index: int, **kw: Any) -> Any:
        fill_in(self, cell)  # the numbers in prose, once the kernel has got there
        return super().execute_cell(cell, cell_index, **kw)


class _Engine(NBClientEngine):
    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **kw: Any) -> Any:
        return _Client(nb_man, kernel_name=kernel_name, startup_timeout=120).execute()


papermill_engines.register("oralib", _Engine)


def run_chapter(
    chapter: Chapter,
    given: Mapping[str, Any],
    folder: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    page: bool = True,
    inputs: Sequence[Path] = (),
    progress: bool = False,
) -> tuple[Path, dict[str, Any]]:
    """Execute a chapter with papermill into a folder; returns its path and what results.json has.

    Parameters
    ----------
    given : parameters that differ from the chapter's own; checked before anything starts.
    folder : a new folder, by default one in ``runs/``. It appears when it is complete, with
        ``notebook.ipynb``, ``results.json``, ``results.csv`` and ``page.html``. If the chapter
        fails, its notebook is in a folder of this name with ``-failed-`` and the time.
    force : whether to rename an existing folder of this name instead of refusing it.
    page : whether to make ``page.html``, if the book's builder is there; it takes some seconds.
    inputs : files whose digests are stored with the results.

    Examples
    --------
    >>> from orabook.runs import find_chapter
    >>> chapter = find_chapter("06-dp-sgd")
    >>> folder, record = run_chapter(chapter, {"epsilon": 4.0})  # doctest: +SKIP
    """
    parameters = check_parameters(chapter, given)
    origin = {"seed": parameters.get("seed"), **_origin(chapter, inputs), "commit": _commit()}
    folder = _default_folder(chapter, given) if folder is None else _check.path("folder", folder)
    if force and os.path.lexists(folder):
        os.rename(folder, _aside(folder, "old"))
    check_new(folder)
    began = time.time()
    with appearing(folder) as written:
        path = written.absolute() / "notebook.ipynb"
        try:
            notebook = papermill.execute_notebook(
                nbformat.reads(chapter.text, 4),
                str(path),
                parameters,
                engine_name="oralib",
                cwd=str(chapter.path.parent),
                kernel_name="python3",
                progress_bar={"disable": None, "leave": False} if progress else False,
            )
        except Exception as error:  # from a cell, from a number in prose, or from the kernel itself
            failed = _aside(folder, "failed")
            os.rename(written, failed)
            name = getattr(error, "ename", type(error).__name__)
            said = " ".join(str(getattr(error, "evalue", error)).split())
            raise RunFailed(f"{name}: {said} (see {failed})") from None
        notebook.metadata.papermill.update(input_path=chapter.path.name, output_path="")
        _tell_parameters(notebook, chapter, parameters)
        nbformat.write(notebook, path)
        origin["finished"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        origin["seconds"] = round(time.time() - began, 1)
        results = results_of(notebook)
        record = {
            **{"chapter": chapter.name, "parameters": as_json(parameters)},
            **{"results": as_json(results), "provenance": origin},
        }
        text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
        (written / "results.json").write_text(text + "\n", encoding="utf-8")
        table = pd.DataFrame({"name": list(results), "value": list(results.values())}, dtype=object)
        table.to_csv(written / "results.csv", index=False)
        if page and (BOOK / "page.py").exists() and find_spec("jupyter_book"):
            words = [
                "-m",
                "orabook.builder.page",
                path,
                path.with_name("page.html"),
                chapter.path.parent,
            ]
            made = subprocess.run([sys.executable, *map(str, words)], cwd=BOOK.parent)
            if made.returncode:  # the results are there anyway
                print(f"the page of {chapter.name} could not be made", file=sys.stderr)
    return folder, {**record, "results": results}


def _aside(folder: Path, word: str) -> Path:
    """A free name beside a folder."""
    return folder.with_name(f"{folder.name}-{word}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")


def _tell_parameters(notebook: Any, chapter: Chapter, parameters: Mapping[str, Any]) -> None:
    """Say at the top which parameters are not the chapter's own: its text was written for those."""
    own = check_parameters(chapter, {})
    changed = [
        f"`{name}` is `{json.dumps(value)[:60]}` instead of `{json.dumps(own[name])[:60]}`"
        for name, value in parameters.items()
        if value != own[name]
    ]
    if changed:
        text = (
            ":::{admonition} Run with other parameters\n:class: warning\n"
            f"Here {'; '.join(changed)}. Numbers, tables and pictures are of this run. The words "
            "around them were written for the chapter's own parameters: where they compare and "
            "judge, see for yourself whether they still hold.\n:::"
        )
        notebook.cells.insert(0, nbformat.v4.new_markdown_cell(text))


# ------------------------------------------------------------------------------- where it is from


def _origin(chapter: Chapter, inputs: Sequence[Path]) -> dict[str, Any]:
    return {
        "chapter": chapter.digest,
        "oralib": _sources_digest(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in NUMERIC},
        "inputs": {path.name: sha256(path.read_bytes()).hexdigest()[:16] for path in inputs},
    }


@cache
def _sources_digest() -> str:
    """A digest of oralib's sources."""
    package, digest = Path(__file__).parents[1], sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _commit() -> str:
    """The commit of the checkout, and whether files differ from it; unknown outside a checkout."""
    words = ["git", "-C", str(BOOK.parent), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def run_key(chapter: Chapter, given: Mapping[str, Any], inputs: Sequence[Path] = ()) -> str:
    """A digest of a chapter's cells, oralib's sources, versions, all parameters, and inputs.

    Examples
    --------
    >>> from orabook.runs import find_chapter
    >>> chapter = find_chapter("06-dp-sgd")
    >>> run_key(chapter, {"epsilon": 2.0}) == run_key(chapter, {})
    True
    """
    content = [check_parameters(chapter, given), _origin(chapter, inputs)]
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _default_folder(chapter: Chapter, given: Mapping[str, Any]) -> Path:
    """``runs/06-dp-sgd-epsilon=4-`` and the key of the run."""
    words = "-".join([chapter.name, *(f"{name}={value}" for name, value in given.items())])
    plain = re.sub(r"[^A-Za-z0-9.,=+_-]", "", words)[:100]
    return Path("runs") / f"{plain}-{run_key(chapter, given)}"

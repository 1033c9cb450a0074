"""One run of a chapter with other parameters."""

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat

from oralib.runs.chapters import Chapter, check_parameters
from oralib.runs.record import (
    RESULTS,
    aside,
    code_version,
    page_of,
    provenance,
    publish,
    read_results,
    results_of,
    write_results,
)


class RunFailed(Exception):
    """A chapter stopped with an error; the message is what it said."""


def run_chapter(
    chapter: Chapter,
    given: Mapping[str, Any],
    folder: Path,
    *,
    code: str | None = None,
    progress: bool = False,
    pages: bool = True,
) -> dict[str, Any]:
    """Execute a chapter with papermill and write a folder with all that it gives.

    Parameters
    ----------
    given : parameters that differ from the chapter's own; checked before anything starts.
    folder : appears when it is complete, with ``notebook.ipynb``, ``page.html``, ``results.csv``
        and ``results.json``. An earlier run in its place is replaced.
    code : the version of the code, if the caller knows it.
    pages : whether to write the HTML page.
    """
    values = check_parameters(chapter, given)
    code = code_version(chapter) if code is None else code
    if folder.exists() and read_results(folder) is None and any(folder.iterdir()):
        raise ValueError(f"{folder} exists and is not a run; give another folder")
    place = aside(folder)
    try:
        start = time.perf_counter()
        notebook = _execute(chapter, values, place / "notebook.ipynb", progress)
        parameters = {name: entry.default for name, entry in chapter.parameters.items()} | values
        record = {
            "chapter": chapter.name,
            "parameters": parameters,
            "results": results_of(notebook),
            "provenance": provenance(parameters, code, time.perf_counter() - start),
        }
        if pages:
            (place / "page.html").write_text(page_of(notebook, chapter.name), encoding="utf-8")
        write_results(place, record)
        publish(place, folder)
    finally:
        shutil.rmtree(place, ignore_errors=True)
        _remove_if_empty(place.parent)
    return record


def _execute(chapter: Chapter, values: Mapping[str, Any], output: Path, progress: bool) -> Any:
    import papermill

    try:
        papermill.execute_notebook(
            str(chapter.path),
            str(output),
            {name: _plain(value) for name, value in values.items()},
            cwd=str(chapter.path.parent),
            progress_bar={"disable": None, "leave": False} if progress else False,
            kernel_name="python3",
            language="python",
            log_output=False,
        )
    except papermill.PapermillExecutionError as error:
        raise RunFailed(f"{error.ename}: {error.evalue}") from None
    return nbformat.read(output, 4)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, float) else value


def default_folder(chapter: Chapter, values: Mapping[str, Any]) -> Path:
    """``runs/06-dp-sgd``, with the parameters that differ in its name."""
    words = [f"{name}={json.dumps(value).replace(' ', '')}" for name, value in values.items()]
    return Path("runs") / "-".join([chapter.name, *words])[:120]


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def show(record: Mapping[str, Any], folder: Path) -> None:
    """Print the results of a run, and where they are."""
    width = max((len(name) for name in record["results"]), default=0)
    for name, value in record["results"].items():
        print(f"{name:<{width}}  {value}")
    seconds = record["provenance"]["seconds"]
    print(f"{folder}: notebook.ipynb, page.html, results.csv, {RESULTS} ({seconds} s)")
    sys.stdout.flush()

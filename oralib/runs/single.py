"""One run of a chapter with other parameters."""

import json
import os
import re
import sys
import time
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

import nbformat

from oralib import _check
from oralib._folders import publish, settled
from oralib.runs.chapters import (
    Chapter,
    check_chapter,
    check_parameters,
    results_of,
    settings,
)
from oralib.runs.folders import KERNEL_LOG, WRITTEN, free_name, swap, unseen
from oralib.runs.record import (
    FILES,
    RESULTS,
    RunFailed,
    check_free,
    code_version,
    provenance,
    read_results,
    write_results,
)

#: The tag of a cell that says which parameters are not the chapter's own.
NOTICE = "other-parameters"


def run_chapter(
    chapter: Chapter,
    given: Mapping[str, Any],
    folder: str | os.PathLike[str],
    *,
    code: str | None = None,
    force: bool = False,
    failed: Path | None = None,
    progress: bool = False,
    again: bool = False,
) -> dict[str, Any]:
    """Execute a chapter with papermill and write a folder with all that it gives.

    Parameters
    ----------
    given : parameters that differ from the chapter's own; checked before anything starts.
    folder : appears when it is complete, with ``notebook.ipynb``, ``page.html``, ``results.csv``
        and ``results.json``.
    code : the version of the code that the results will bear, if the caller has marked it; results
        of any other one are refused.
    force : whether an earlier run in the place of the folder may be replaced. Nothing else is.
    failed : where to keep the notebook of a run that fails; the name gets a number.
    again : whether this process will run this chapter again, so that kernels should share imports.

    Examples
    --------
    In half a minute or so:

    >>> from oralib.runs import find_chapter
    >>> chapter = find_chapter("06-dp-sgd")
    >>> record = run_chapter(chapter, {"epsilon": 4.0}, "runs/four")  # doctest: +SKIP
    """
    # They take a second to import, and the client of a sweep needs neither.
    from oralib.runs.kernel import execute

    force = _check.truth("force", force)
    values = check_parameters(chapter, given)
    parameters = settings(chapter, values)
    code = code_version(chapter) if code is None else code
    cells, _, library = code.partition("-")
    if chapter.digest != cells:
        raise RunFailed(f"{chapter.name} is of version {chapter.digest}, not {cells}")
    folder = settled(_check.path("folder", folder))
    check_free(folder, force)
    with unseen(folder) as place:
        written = place / WRITTEN
        began = time.time()
        try:
            # All parameters are given, so that what is recorded is what was run.
            kernel = execute(
                chapter.text,
                written / "notebook.ipynb",
                parameters,
                log=place / KERNEL_LOG,
                library=library,
                cwd=chapter.path.parent,
                progress=progress,
                again=again,
            )
            notebook = _named(written / "notebook.ipynb", chapter)
            _tell_parameters(notebook, chapter, parameters)
            nbformat.write(notebook, written / "notebook.ipynb")
            results = _recorded(notebook, kernel)
        except RunFailed as error:
            if failed is None or not (written / "notebook.ipynb").exists():
                raise
            kept = _keep(written / "notebook.ipynb", chapter, failed)
            raise RunFailed(f"{error} (see {kept})", error.written) from None
        record: dict[str, Any] = {
            "chapter": chapter.name,
            "parameters": parameters,
            "results": results,
            "provenance": provenance(parameters, code, kernel, began),
        }
        (written / "page.html").write_text(_page(notebook, chapter), encoding="utf-8")
        record = write_results(written, record)
        _appear(written, folder, force)
    return record


def _page(notebook: Any, chapter: Chapter) -> str:
    """The page of a run; where it cannot be made, a line that says so: the results are there."""
    from oralib.runs.page import page_of

    try:
        return page_of(notebook, chapter.name, chapter.path.parent)
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        print(f"the page of {chapter.name} cannot be made: {said}", file=sys.stderr)
        return (
            f"<!doctype html><meta charset=utf-8><title>{escape(chapter.name)}</title>"
            f"<p>This page cannot be made ({escape(said)}). The notebook and the results are "
            "beside it.</p>\n"
        )


def _recorded(notebook: Any, kernel: Mapping[str, Any]) -> dict[str, Any]:
    """The results in the notebook, which must have all that were recorded in its kernel."""
    try:
        results = results_of(notebook)
    except ValueError as error:
        raise RunFailed(str(error), kernel["written"]) from None
    lost = [str(name) for name in kernel["recorded"] if name not in results]
    if lost:
        raise RunFailed(
            f"{', '.join(lost)} was recorded, but is not in the notebook: something has cleared or "
            "redirected the output of results.record",
            kernel["written"],
        )
    return results


def _named(path: Path, chapter: Chapter) -> Any:
    """The executed notebook, with the name of the chapter instead of that of its copy."""
    notebook = nbformat.read(path, 4)
    # The name of a folder may have bytes that are no text.
    shown = os.fsencode(chapter.path).decode("utf-8", "backslashreplace")
    notebook.metadata.papermill.input_path = shown
    notebook.metadata.papermill.output_path = path.name
    nbformat.write(notebook, path)
    return notebook


def _tell_parameters(
    notebook: Any, chapter: Chapter, parameters: Mapping[str, Any], longest: int = 60
) -> None:
    """Say at the top which parameters are not the chapter's own: its words are about those."""

    def shown(value: Any) -> str:
        text = json.dumps(value, ensure_ascii=False)
        text = text if len(text) <= longest else f"{text[:longest]} …"
        return "`` " + text.replace("`", "ˋ") + " ``"

    # A notebook that is itself of a run may have one.
    notebook.cells = [c for c in notebook.cells if NOTICE not in c.metadata.get("tags", ())]
    own = settings(chapter, {})
    changed = [
        f"`{name}` is {shown(value)} instead of {shown(own[name])}"
        for name, value in parameters.items()
        if json.dumps(value) != json.dumps(own[name])
    ]
    if not changed:
        return
    text = (
        ":::{admonition} Run with other parameters\n:class: warning\n"
        f"Here {'; '.join(changed)}. Numbers, tables and pictures are of this run, unless it is "
        "said otherwise. The words around them were written for the chapter's own parameters: "
        "where they compare and judge, see for yourself whether it still holds.\n:::"
    )
    cell = nbformat.v4.new_markdown_cell(text, id=NOTICE, metadata={"tags": [NOTICE]})
    if (notebook.nbformat, notebook.nbformat_minor) < (4, 5):
        del cell["id"]  # which notebooks did not have then
    notebook.cells.insert(0, cell)


def _keep(notebook: Path, chapter: Chapter, failed: Path) -> Path:
    _named(notebook, chapter)
    failed.parent.mkdir(exist_ok=True)
    kept = free_name(failed, ".ipynb")
    os.rename(notebook, kept)
    return kept


def _appear(written: Path, folder: Path, force: bool) -> None:
    """Let the folder be seen; if there is something else by now, beside it."""
    try:
        if check_free(folder, force):
            record = read_results(folder)
            assert record is not None
            left = swap(written, folder, record["files"], [RESULTS])
            if left is not None:
                print(f"the old run could not be removed; it is now {left}", file=sys.stderr)
        else:
            publish(written, folder)
    except (ValueError, OSError) as error:
        if not written.exists() or not os.path.lexists(folder):
            raise
        beside = free_name(folder)
        publish(written, beside)
        raise RunFailed(f"{error}; the run is in {beside}") from None


def default_folder(chapter: Chapter, values: Mapping[str, Any]) -> Path:
    """``runs/06-dp-sgd-epsilon=4.0-`` and a digest of all that tells this run from others.

    The words are for people, and are cut if they are many. The digest tells runs apart: by all
    parameters, by the chapter and by the version of the code.

    Examples
    --------
    >>> from oralib.runs import find_chapter
    >>> folder = default_folder(find_chapter("06-dp-sgd"), {"epsilon": 4.0})
    >>> folder.name.startswith("06-dp-sgd-epsilon=4.0-")
    True
    """
    check_chapter(chapter)
    everything = [chapter.name, code_version(chapter), sorted(settings(chapter, values).items())]
    digest = sha256(json.dumps(everything).encode()).hexdigest()[:12]
    words = [chapter.name, *(f"{name}={json.dumps(value)}" for name, value in values.items())]
    plain = re.sub(r"[^A-Za-z0-9.,=+_-]", "", "-".join(words))
    return Path("runs") / f"{plain[:100].strip('.-') or 'run'}-{digest}"


def show(record: Mapping[str, Any], folder: Path) -> None:
    """Print the results of a run, and where they are.

    Examples
    --------
    >>> record = {"results": {"bound": 1.25, "audits": 200}, "provenance": {"seconds": 9}}
    >>> show(record, Path("runs/four"))
    bound   1.25
    audits  200
    runs/four: notebook.ipynb, page.html, results.csv, results.json (9 s)
    """
    width = max((len(name) for name in record["results"]), default=0)
    for name, value in record["results"].items():
        print(f"{name:<{width}}  {value}")
    seconds = record["provenance"]["seconds"]
    print(f"{folder}: {', '.join(FILES)}, {RESULTS} ({seconds} s)")
    sys.stdout.flush()

"""What a run leaves behind: a folder with a notebook, a page, results, and where they are from.

A folder is written aside and renamed when it is complete, so whoever sees it sees all of it.
"""

import ast
import csv
import json
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

import nbformat

from oralib.runs.chapters import BOOK, Chapter

PACKAGES = ("oralib", "numpy", "scipy", "numba", "matplotlib", "dp-accounting", "papermill")

#: The file that is written last; a folder without it is not a run.
RESULTS = "results.json"


def results_of(notebook: Any) -> dict[str, Any]:
    """The named values of an executed notebook, in their order: what its cells have glued."""
    found: dict[str, Any] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("scrapbook", {}).get("name")
            text = output.get("data", {}).get("application/papermill.record/text/plain")
            if name is not None and text is not None:
                found[name] = _value(text)
    return found


def _value(text: str) -> Any:
    """The number or word that a repr stands for; other reprs as they are."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, int | float | str | bool) else text


def code_version(chapter: Chapter) -> str:
    """A digest of the chapter's cells and of the library: it changes when results may."""
    digest = sha256()
    notebook = nbformat.read(chapter.path, 4)
    digest.update("\0".join(cell.source for cell in notebook.cells).encode())
    package = Path(__file__).parent.parent
    for source in sorted(package.rglob("*.py")):
        if "runs" not in source.relative_to(package).parts:  # running is not computing
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def provenance(parameters: Mapping[str, Any], code: str, seconds: float) -> dict[str, Any]:
    """Where results are from."""
    return {
        "seed": parameters.get("seed"),
        "code": code,
        "commit": _commit(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(seconds, 1),
    }


def _commit() -> str:
    """The commit of the checkout, and whether files differ from it; unknown outside of one."""
    if not (BOOK.parent / ".git").exists():
        return "unknown"
    try:
        return subprocess.run(
            ["git", "-C", str(BOOK.parent), "describe", "--always", "--dirty", "--abbrev=40"],
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def write_results(folder: Path, record: Mapping[str, Any]) -> None:
    """The results as a table and with their provenance."""
    with (folder / "results.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("name", "value"))
        table.writerows(record["results"].items())
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (folder / RESULTS).write_text(text + "\n", encoding="utf-8")


def read_results(folder: Path) -> dict[str, Any] | None:
    """The record of a complete run, or None."""
    try:
        return dict(json.loads((folder / RESULTS).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def aside(folder: Path) -> Path:
    """A new folder beside others of its kind, where a run can be written unseen."""
    place = folder.parent / ".partial" / f"{folder.name}-{uuid4().hex[:8]}"
    place.mkdir(parents=True)
    return place


def publish(written: Path, folder: Path) -> None:
    """Let a complete folder appear under its name; an older one of that name goes."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    _flush(written)
    if folder.exists():
        old = aside(folder)
        os.replace(folder, old / "old")
        os.replace(written, folder)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.replace(written, folder)


def _flush(folder: Path) -> None:
    """Have the files on the disk before the folder gets its name."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())


def write_text(path: Path, text: str) -> None:
    """Write a file aside and rename it."""
    partial = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


# --------------------------------------------------------------------------------- the page

_ROLES = [
    (r"\{(?:doc|ref|numref)\}`([^`<]+?)\s*<[^`>]+>`", r"\1"),  # a link with a text
    (r"\{(?:numref|prf:ref|ref|doc|cite(?::[tp])?)\}`([^`]+)`", r"*\1*"),  # one without
    (r"^\([\w-]+\)=\n", ""),  # a target
    (r"^:(?:label|class|name|gutter|link|link-type):.*\n", ""),  # options of directives
    (r"^:{3,}\{prf:(\w+)\}[ ]*(.*)$", lambda m: f"**{m[1].capitalize()}.** {m[2]}\n"),
    (r"^:{3,}\{admonition\}[ ]*(.*)$", r"**\1**\n"),
    (r"^:{3,}(?:\{[\w-]+\}.*)?$", ""),  # other directives, and their ends
]


def readable(markdown: str, results: Mapping[str, Any]) -> str:
    """Markdown without the book's own roles and directives, which only Sphinx understands."""
    text = re.sub(
        r"\{glue:text\}`([^`:]+)(?::[^`]*)?`",
        lambda match: str(results.get(match[1], match[1])),
        markdown,
    )
    for pattern, replacement in _ROLES:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)  # type: ignore[call-overload]
    return text


def page_of(notebook: Any, title: str) -> str:
    """The executed notebook as one HTML page, pictures included."""
    from nbconvert import HTMLExporter  # takes a second to import, and a sweep's client needs none

    results = results_of(notebook)
    shown = nbformat.from_dict(json.loads(json.dumps(notebook)))
    for cell in shown.cells:
        if cell.cell_type == "markdown":
            cell.source = readable(cell.source, results)
        else:
            # Glued values have no output that a page could show.
            cell.outputs = [
                output for output in cell.outputs if "scrapbook" not in output.get("metadata", {})
            ]
    resources = {"metadata": {"name": title}}
    html, _ = HTMLExporter(template_name="lab").from_notebook_node(shown, resources)
    return str(html)

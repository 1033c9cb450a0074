"""One run: papermill executes a chapter with other parameters and writes a folder."""

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import papermill
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from papermill.engines import papermill_engines

from orabook.builder.downloads import ask_git
from orabook.place import BOOK
from orabook.products import ProductEngine
from orabook.results import as_json, results_of
from orabook.runs.chapters import Chapter, check_parameters
from orabook.runs.folders import appearing, check_new
from oralib.ground import arguments

__all__ = ["RunFailed", "key_of", "origin_of", "run_chapter"]

#: The packages that the numbers depend on.
NUMERIC = ("numpy", "scipy", "numba", "pandas", "matplotlib", "dp-accounting")
#: The packages whose sources the numbers depend on.
PACKAGES = ("oralib", "oraudit", "orabook")


class RunFailed(Exception):
    """A chapter stopped with an error, or its page could not be made.

    The message says where its notebook is.
    """


class _Kernel(AsyncKernelManager):
    @property
    def kernel_spec(self) -> KernelSpec:
        # A kernel of another Python may have the name python3, as by JUPYTER_PATH.
        return KernelSpec(**get_kernel_dict(["--log-level=ERROR"]))


# papermill knows the engine by the entry point too, if the package was installed since.
papermill_engines.register("oralib", ProductEngine)


def run_chapter(
    chapter: Chapter,
    changed: Mapping[str, Any],
    folder: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    page: bool = True,
    inputs: Sequence[Path] = (),
    progress: bool = False,
) -> tuple[Path, dict[str, Any]]:
    """Execute a chapter with papermill into a folder; return its path and the results.json.

    The values of ``changed`` stand for the chapter's own parameters, and are checked before
    anything starts. The folder is new, by default in ``runs/``, and appears when it is complete;
    with ``force`` one that has its name is renamed first. If the chapter fails, its notebook is in
    a folder of this name with ``-failed-`` and the time. A page takes some seconds, and needs the
    sources of the book; a run without its page fails, but leaves its results. The digests of the
    inputs are stored with the results.
    """
    parameters = check_parameters(chapter, changed)
    commit = ask_git("describe", "--always", "--dirty", "--abbrev=40").strip() or "unknown"
    origin = origin_of(chapter, inputs)
    if origin["sources"] != IMPORTED:
        raise ValueError("oralib or orabook was edited after this process imported it; restart it")
    if folder is None:
        folder = _default_folder(chapter, changed, key_of(parameters, origin))
    folder = arguments.path("folder", folder)
    if force and os.path.lexists(folder):
        os.rename(folder, _aside(folder, "old"))
    check_new(folder)
    began = time.time()
    with appearing(folder) as written:
        path = written.absolute() / "notebook.ipynb"
        try:
            notebook = _execute(chapter, parameters, path, progress)
            if origin_of(chapter, inputs) != origin:  # it is unknown which of the two it has read
                raise RuntimeError("oralib, orabook or an input was edited meanwhile; run it again")
        except Exception as error:  # from a cell, from a number in prose, or from the kernel itself
            failed = _aside(folder, "failed")
            os.rename(written, failed)
            name = getattr(error, "ename", type(error).__name__)
            message = " ".join(str(getattr(error, "evalue", error)).split())
            raise RunFailed(f"{name}: {message} (see {failed})") from None
        notebook.metadata.papermill.update(input_path=chapter.path.name, output_path="")
        nbformat.write(notebook, path)
        results = results_of(notebook)
        record = {
            "chapter": chapter.name,
            "parameters": as_json(parameters),
            "results": as_json(results),
            "provenance": {
                "seed": parameters.get("seed"),
                **origin,
                "commit": commit,
                "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "seconds": round(time.time() - began, 1),
            },
        }
        text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
        (written / "results.json").write_text(text + "\n", encoding="utf-8")
        table = pd.DataFrame({"name": list(results), "value": list(results.values())}, dtype=object)
        table.to_csv(written / "results.csv", index=False)
        page_error = _write_page(path, chapter.path.parent) if page else None
    if page_error is not None:
        raise RunFailed(f"the page could not be made: {page_error} (the results are in {folder})")
    return folder, {**record, "results": results}


def _default_folder(chapter: Chapter, changed: Mapping[str, Any], key: str) -> Path:
    """A folder such as runs/06-dp-sgd-epsilon=4- and a digest."""
    settings = [f"{name}={value}" for name, value in changed.items()]
    plain = re.sub(r"[^A-Za-z0-9.,=+_-]", "", "-".join([chapter.name, *settings]))[:100]
    return Path("runs") / f"{plain}-{key}"


def _aside(folder: Path, word: str) -> Path:
    """Return a free name next to a folder's."""
    return folder.with_name(f"{folder.name}-{word}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")


def _execute(chapter: Chapter, parameters: Mapping[str, Any], path: Path, progress: bool) -> Any:
    """Execute a chapter into a notebook at this path, in a kernel of this Python."""
    return papermill.execute_notebook(
        nbformat.reads(chapter.text, 4),
        str(path),
        parameters,
        engine_name="oralib",
        cwd=str(chapter.path.parent),
        kernel_name="python3",
        kernel_manager_class=_Kernel,
        start_timeout=120,
        progress_bar={"disable": None, "leave": False} if progress else False,
    )


def _write_page(notebook: Path, folder: Path) -> str | None:
    """Write the page of a notebook next to it; return the error, or None if there is none."""
    # The settings of the book are with its sources; a wheel has none.
    if not (BOOK.parent / "_config.yml").exists() or not find_spec("jupyter_book"):
        return None
    paths = [str(notebook), str(notebook.with_name("page.html")), str(folder)]
    command = [sys.executable, "-m", "orabook.builder.page", *paths]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    return done.stderr.strip().rpartition("\n")[2] if done.returncode else None


# ------------------------------------------------------------------------------- where it is from


def origin_of(chapter: Chapter, inputs: Sequence[Path]) -> dict[str, Any]:
    """Return the state of all that a run depends on besides its parameters, as it is now."""
    return {
        "chapter": chapter.digest,
        "sources": _sources_digest(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in NUMERIC},
        # A list, since files in different folders may have the same name.
        "inputs": [[path.name, sha256(path.read_bytes()).hexdigest()[:16]] for path in inputs],
    }


def _sources_digest() -> str:
    """A digest of the packages' sources, read each time, as a sweep is long."""
    digest = sha256()
    for package in map(files, PACKAGES):
        folder = Path(str(package))
        for path in sorted(folder.rglob("*.py")):
            name = path.relative_to(folder.parent).as_posix()
            digest.update(f"{name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


#: The sources as this process has them in memory: a worker of Dask may stand for weeks.
IMPORTED = _sources_digest()


def key_of(parameters: Mapping[str, Any], origin: Mapping[str, Any]) -> str:
    """The name of a run with these parameters, all of them, and this origin."""
    content = json.dumps([parameters, origin], sort_keys=True)
    return sha256(content.encode()).hexdigest()[:16]

"""What a run leaves behind: a folder with a notebook, a page, results, and where they are from."""

import csv
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from math import inf
from pathlib import Path
from typing import Any

from oralib import _check
from oralib._folders import check_place
from oralib.results import as_json, from_json, is_text
from oralib.runs.chapters import BOOK, Chapter
from oralib.runs.folders import changed_since, digest_of, is_file, is_folder
from oralib.runs.inside import file_digest, library_digest, module_places

#: The file that is written last; a folder without it is not a run.
RESULTS = "results.json"

#: The mark of a folder that a run has written.
FORMAT = "oralib-run/1"

#: The other files of a run.
FILES = ("notebook.ipynb", "page.html", "results.csv")

#: A larger file is not one of ours, and is not read.
LARGEST_JSON = 100_000_000


class RunFailed(Exception):
    """A chapter stopped with an error, or its results cannot be kept; the message says why.

    Attributes
    ----------
    written : the files that it had written by then, as far as is known, as in a record.

    Examples
    --------
    >>> str(RunFailed("a cell has failed"))
    'a cell has failed'
    """

    def __init__(self, said: str, written: Mapping[str, bool | None] | None = None) -> None:
        super().__init__(said)
        self.written = dict(written or {})


def code_version(chapter: Chapter) -> str:
    """A digest of the chapter's cells and one of the library: they change when results may."""
    return f"{chapter.digest}-{library_digest(Path(__file__).parent.parent)}"


def provenance(
    parameters: Mapping[str, Any], code: str, kernel: Mapping[str, Any], began: float
) -> dict[str, Any]:
    """Where results are from; the kernel has said itself what it is."""
    ended = time.time()
    return {
        "seed": parameters.get("seed"),
        "code": code,
        "used": kernel["used"],
        "written": kernel["written"],
        "found": kernel["found"],
        "commit": _commit(),
        "python": kernel["python"],
        "executable": kernel["executable"],
        "packages": {**kernel["packages"], "papermill": version("papermill")},
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ended)),
        "seconds": round(max(0.0, ended - began), 1),
        "span": [round(began, 3), round(ended, 3)],
    }


def disturbed(records: Mapping[int, Mapping[str, Any]]) -> dict[int, str]:
    """The runs that have read back a file which another run wrote at the same time, and the file.

    Examples
    --------
    >>> def run(begin, end, **written):
    ...     return {"provenance": {"written": written, "span": [begin, end]}}
    >>> disturbed({1: run(0, 2, log=False, x=True), 2: run(1, 3, log=False, x=True)})
    {1: 'x', 2: 'x'}
    >>> disturbed({1: run(0, 2, x=True), 2: run(2, 3, x=True), 3: run(0, 3, log=False)})
    {}

    A file that a library has made, as in 5, may be one that all runs share, as 4 has made it:

    >>> disturbed({4: run(0, 2, x=True), 5: run(1, 3, x=None)})
    {}
    >>> disturbed({5: run(1, 3, x=None), 6: run(2, 4, x=None)})
    {5: 'x', 6: 'x'}
    """
    spans: dict[tuple[str, bool], list[tuple[float, float, int]]] = {}
    for i, record in records.items():
        origin = record["provenance"]
        for name, read in origin.get("written", {}).items():
            spans.setdefault((name, read is None), []).append((*origin["span"], i))
    for name, made in list(spans):
        # One that a run has made for others is an input of theirs; and no run makes modules.
        if made and ((name, False) in spans or _is_source(name)):
            del spans[name, made]
    found = {}
    for (name, _), at in spans.items():
        latest, owner = -inf, -1  # the run that ends last of those that have begun
        for begin, end, i in sorted(at):
            if begin < latest:
                for run in (owner, i):
                    if records[run]["provenance"]["written"][name] is not False:
                        found[run] = name
            if end > latest:
                latest, owner = end, i
    return dict(sorted(found.items()))


def made_by_each(records: Sequence[Mapping[str, Any]]) -> set[str]:
    """The files that were new for all runs that used them: processes or libraries make them anew.

    Examples
    --------
    >>> def run(used, **written):
    ...     return {"provenance": {"used": dict.fromkeys(used, "digest"), "written": written}}
    >>> made_by_each([run(["x", "data"], x=None), run(["x", "data"], x=None)])
    {'x'}

    What is made once, and used by later ones, counts as any other file:

    >>> made_by_each([run([], x=True), run(["x"], x=None), run(["x"])])
    set()
    """
    new: Counter[str] = Counter()
    others: set[str] = set()
    for record in records:
        origin = record["provenance"]
        for name in {*origin.get("used", ()), *origin.get("written", ())}:
            new_here = origin.get("written", {}).get(name, False) is None
            if new_here and not _is_source(name):
                new[name] += 1
            else:
                others.add(name)
    return {name for name, times in new.items() if times > 1} - others


def _is_source(name: str) -> bool:
    return name.endswith((".py", ".ipynb"))


def _commit() -> str:
    """The commit of the checkout, and whether files differ from it; unknown outside of one."""
    if not (BOOK.parent / ".git").exists():
        return "unknown"
    try:
        return subprocess.run(
            ["git", "-C", str(BOOK.parent), "describe", "--always", "--dirty", "--abbrev=40"],
            # A hook of Git names another repository in its environment.
            env={name: word for name, word in os.environ.items() if not name.startswith("GIT_")},
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def write_results(folder: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """The results as a table and with their provenance, and digests of all files; the record."""
    with (folder / "results.csv").open("x", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("name", "value"))
        table.writerows(record["results"].items())
    files = {name: digest_of(folder / name) for name in FILES if (folder / name).exists()}
    content = {"format": FORMAT, **record, "files": files}
    for key in ("parameters", "results"):
        content[key] = as_json(content[key])
    marked = sealed(content)
    text = json.dumps(marked, indent=2, ensure_ascii=False, allow_nan=False)
    if not is_text(text):  # the name of a file that was used may have bytes that are no text
        text = json.dumps(marked, indent=2, allow_nan=False)
    (folder / RESULTS).write_text(text + "\n", encoding="utf-8")
    return {**marked, "results": record["results"]}


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with a digest of itself, by which an edited or damaged file is known."""
    return {**content, "digest": sha256(json.dumps(content).encode()).hexdigest()}


def read_sealed(path: Path, schema: Mapping[str, type]) -> dict[str, Any] | None:
    """What was sealed, or None if it is missing, damaged, edited, or something else."""
    try:
        if not is_file(path) or path.stat().st_size > LARGEST_JSON:
            return None
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or any(
        not isinstance(content.get(key), kind) for key, kind in schema.items()
    ):
        return None
    bare = {key: value for key, value in content.items() if key != "digest"}
    return content if sealed(bare)["digest"] == content.get("digest") else None


def read_results(folder: Path) -> dict[str, Any] | None:
    """The record of a complete run, or None."""
    if not is_folder(folder):
        return None
    schema = {"chapter": str, "parameters": dict, "results": dict, "provenance": dict}
    record = read_sealed(folder / RESULTS, {"format": str, **schema, "files": dict, "digest": str})
    if record is None or record["format"] != FORMAT:
        return None
    origin = record["provenance"]
    if not isinstance(origin.get("code"), str) or not isinstance(origin.get("seconds"), float):
        return None
    if not isinstance(origin.get("used"), dict):
        return None
    if not all(name in FILES and isinstance(said, str) for name, said in record["files"].items()):
        return None
    return {**record, "results": from_json(record["results"])}


def is_current(
    record: Mapping[str, Any], chapter: Chapter, code: str, made: Container[str] = ()
) -> bool:
    """Whether a run would give the same today: the code and the files that it used are the same.

    Files that each run makes for itself do not count.
    """
    if record["provenance"]["code"] != code:
        return False
    try:
        return all(
            _digest_now(os.path.join(chapter.path.parent, name)) == digest
            for name, digest in record["provenance"]["used"].items()
            if name not in made
        )
    except OSError:
        return False


#: Digests of large files, and the states in which they were taken.
_known: dict[str, tuple[object, str]] = {}


def _digest_now(path: str, large: int = 1_000_000) -> str:
    """The digest of a file, which is read once as long as it does not change."""
    state = os.stat(path) if os.path.isfile(path) else None
    if state is None or state.st_size < large:
        return file_digest(path)
    # One that has just changed may change again and have the same times.
    settled = time.time() - max(state.st_mtime, state.st_ctime) > 2
    now = (state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino)
    if settled and _known.get(path, (None, ""))[0] == now:
        return _known[path][1]
    digest = file_digest(path)
    if settled:
        _known[path] = (now, digest)
    return digest


def would_import_the_same(record: Mapping[str, Any], chapter: Chapter) -> bool:
    """Whether the modules of a run would be found where they were, if Python is the same."""
    origin = record["provenance"]
    found = origin.get("found")
    executable = origin.get("executable")
    # python and python3 of one folder are one.
    if not isinstance(found, dict) or not isinstance(executable, str):
        return True
    if os.path.dirname(executable) != os.path.dirname(sys.executable):
        return True
    return module_places(found, str(chapter.path.parent), _paths_of_a_process()) == found


@cache
def _paths_of_a_process() -> list[str] | None:
    """Where a new Python looks for modules; a script may have added folders here."""
    words = [sys.executable, "-c", "import json, sys; print(json.dumps(sys.path))"]
    try:
        said = subprocess.run(
            words,
            cwd=sys.prefix,  # whose modules are those of this Python anyway
            env={**os.environ, "PYTHONSAFEPATH": "1", "PYTHONINSPECT": ""},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=60,
            text=True,
        ).stdout
        paths: list[str] = json.loads(said.splitlines()[-1])
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None
    return [path for path in paths if path]


def is_as_written(folder: Path, record: Mapping[str, Any]) -> bool:
    """Whether a run has nothing in its folder but what it has written there."""
    return changed_since(folder, record["files"], [RESULTS]) is None


def check_free(folder: str | os.PathLike[str], force: bool = False) -> bool:
    """Whether an earlier run will be replaced; an error if the folder must not be written.

    A folder is that of a run only if it bears the mark of one. With ``force`` such a one may be
    replaced, as long as all files in it are those that the run has written.

    Examples
    --------
    >>> check_free("runs/a-new-folder")
    False
    """
    folder = _check.path("folder", folder)
    if not check_place(folder):
        return False
    record = read_results(folder)
    if record is None:
        raise ValueError(f"{folder} exists and is not a run; give another folder")
    strange = changed_since(folder, record["files"], [RESULTS])
    if strange is not None:
        raise ValueError(
            f"{folder} is a run, but {strange} in it is not as the run has left it; "
            "move it away, or give another folder"
        )
    if not force:
        raise ValueError(f"{folder} is a complete run; --force replaces it")
    return True

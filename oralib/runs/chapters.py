"""The chapters as programs: where they are, which parameters they have, and what may be given."""

import ast
import contextlib
import json
import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import Any
from unicodedata import normalize

import nbformat
import numpy as np

from oralib import _check
from oralib.parameters import PARAMETERS
from oralib.results import NOT_FINITE, SECTION, from_json, is_text

#: Where the book lies in a checkout of the repository.
BOOK = Path(__file__).parent.parent.parent / "book"


#: The types that a parameter may have.
TYPES = ("int", "float", "bool", "str", "list")

#: A longer line declares no parameter.
LONGEST_LINE = 10_000


@dataclass(frozen=True)
class Declaration:
    """A parameter as a chapter declares it: one line of its parameters cell.

    Examples
    --------
    >>> find_chapter("06-dp-sgd").parameters["epsilon"].meaning
    'privacy level of the training, in nats'
    """

    name: str
    type: str
    default: Any
    meaning: str


@dataclass(frozen=True)
class Chapter:
    """A notebook with declared parameters, as it was when it was read.

    Attributes
    ----------
    path : where it lies; it is run in the folder of this file, but from ``text``.
    text : the notebook without outputs, read once. What is run is what was checked and marked,
        even if somebody edits the file in the meantime.
    results : the names of its results, if it has been executed.

    Examples
    --------
    >>> find_chapter("06-dp-sgd").name
    '06-dp-sgd'
    """

    name: str
    path: Path
    parameters: Mapping[str, Declaration]
    text: str
    results: tuple[str, ...]

    @property
    def digest(self) -> str:
        """It changes when a cell does, or what its tags say about running it."""
        cells = [
            [cell.cell_type, cell.metadata.get("tags", []), cell.source]
            for cell in nbformat.reads(self.text, 4).cells
        ]
        return sha256(json.dumps(cells).encode()).hexdigest()[:16]


def chapters(folder: str | os.PathLike[str] | None = None) -> list[Chapter]:
    """All chapters of the book that have parameters, in the order of their names.

    What is no notebook, or a damaged one, is named and left out: it is no matter to the others.

    Examples
    --------
    >>> "06-dp-sgd" in [chapter.name for chapter in chapters()]
    True
    """
    folder = _book() if folder is None else _check.path("folder", folder)
    found = []
    for path in sorted(folder.glob("*.ipynb")):
        try:
            found.append(read_chapter(path))
        except ValueError as error:
            print(f"left out: {error}", file=sys.stderr)
    return [chapter for chapter in found if chapter.parameters]


def _book() -> Path:
    """Where the book lies: in a checkout, or with an installed package in the current folder.

    There it is if the current folder is that of the unpacked sources.
    """
    if BOOK.is_dir():
        return BOOK
    try:
        with open("pyproject.toml", "rb") as file:
            unpacked = tomllib.load(file)["project"]["name"] == "oralib"
    except (OSError, ValueError, KeyError, TypeError):
        unpacked = False
    return Path("book") if unpacked else BOOK


def find_chapter(name: str | os.PathLike[str]) -> Chapter:
    """The chapter with this name, for example ``06-dp-sgd``, or the notebook at this path.

    Examples
    --------
    >>> find_chapter("06-dp-sgd").parameters["delta"].default
    1e-05
    """
    path = _check.path("name", name)
    name = os.fspath(name)
    if path.suffix == ".ipynb":
        try:
            there = path.is_file()
        except OSError:  # a name that is too long
            there = False
        if not there:
            raise ValueError(f"there is no notebook {name}")
        return read_chapter(path)
    if f"{name}.ipynb" in {path.name for path in _book().glob("*.ipynb")}:
        chapter = read_chapter(_book() / f"{name}.ipynb")  # a word about others is not wanted
        if chapter.parameters:
            return chapter
    known = {chapter.name: chapter for chapter in chapters()}
    beginnings = [other for other in known if name and other.startswith(name)]
    if len(beginnings) == 1:
        return known[beginnings[0]]
    if not known:
        raise ValueError(f"there is no book at {_book()}; give the path of a notebook")
    close = beginnings or get_close_matches(name, known, n=1)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    raise ValueError(f"there is no chapter {name!r}{hint} (there are {', '.join(known)})")


def read_chapter(path: Path, original: Path | None = None) -> Chapter:
    """The notebook at this path; ``original`` is where it lay if this is a copy of it."""
    if not path.is_file():  # a pipe would be waited for
        raise ValueError(f"{path} is not a notebook: it is no file")
    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8-sig"), 4)
    except Exception as error:
        raise ValueError(f"{path} is not a notebook: {' '.join(str(error).split())}") from None
    tagged, injected = (_tagged(notebook, tag) for tag in ("parameters", "injected-parameters"))
    if len(tagged) > 1:
        raise ValueError(f"{path} must have one cell tagged parameters, got {len(tagged)}")
    lines = [line for cell in tagged for line in cell.source.splitlines()]
    lines = [line for line in lines if line.partition("#")[0].strip()]
    try:
        declared = [_declaration(line) for line in lines]
        results = tuple(results_of(notebook))
        # The notebook of a run is a chapter too; its defaults are the values it was run with.
        given = {name: value for cell in injected for name, value in _assigned(cell.source)}
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    declared = [replace(entry, default=given.get(entry.name, entry.default)) for entry in declared]
    notebook.cells = [cell for cell in notebook.cells if cell not in injected]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        cell.metadata.pop("user_expressions", None)  # the values of numbers in prose
    # A link is a notebook of the folder where it lies, as it is in Jupyter.
    original = path.parent.resolve() / path.name if original is None else original
    return Chapter(
        original.stem,
        original,
        {entry.name: entry for entry in declared},
        nbformat.writes(notebook),
        results,
    )


def _tagged(notebook: Any, tag: str) -> list[Any]:
    return [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code" and tag in _words(cell.metadata.get("tags"))
    ]


def _words(tags: Any) -> list[Any]:
    return tags if isinstance(tags, list) else []


def _assigned(source: str) -> list[tuple[str, Any]]:
    """The plain values that a cell of papermill's assigns to names."""
    try:
        found = [
            (ast.unparse(node.targets[0]), ast.literal_eval(_NotFinite().visit(node.value)))
            for node in ast.parse(source).body
            if isinstance(node, ast.Assign)
        ]
        json.dumps(found)
        return found
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise ValueError(
            "a cell tagged injected-parameters must be as papermill writes it"
        ) from None


class _NotFinite(ast.NodeTransformer):
    """Takes ``float('nan')``, which papermill writes, for the number, and so infinite ones."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(ast.Name("float"), [ast.Constant(str(word))], []) if word in NOT_FINITE:
                return ast.Constant(NOT_FINITE[word])
        return node


def results_of(notebook: Any) -> dict[str, Any]:
    """The results that an executed notebook has recorded, in their order."""
    found: dict[str, Any] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            section = (output.get("metadata") or {}).get(SECTION)
            if not isinstance(section, dict) or "results" not in section:
                continue
            given = section["results"]
            if not isinstance(given, dict):
                raise ValueError(f"results must map names to values, got {str(given)[:60]}")
            values = from_json(given)
            order = section.get("order")
            if not isinstance(order, list) or sorted(map(str, order)) != sorted(values):
                order = list(values)
            for name in order:
                if name in found:
                    raise ValueError(f"the result {name} is recorded twice")
                found[name] = values[name]
    return found


def recorded(name: str) -> dict[str, Any]:
    """The results of a chapter of the book as they are committed, for pages that quote them.

    The tests see to it that they are what the chapter gives.

    Examples
    --------
    >>> sorted(recorded("06-dp-sgd"))[:1]
    ['best_bound']
    """
    path = BOOK / f"{name}.ipynb"
    if not path.exists():
        raise ValueError(f"there is no chapter {name!r} at {BOOK}")
    return results_of(nbformat.read(path, 4))


def _declaration(line: str) -> Declaration:
    """One line such as ``trials: int = 200  # number of audits``."""
    shown = line if len(line) <= 100 else f"{line[:97]}..."
    refused = f"a parameters cell has one 'name: type = value' a line, not {shown!r}"
    if len(line) > LONGEST_LINE:
        raise ValueError(refused)
    try:
        (node,) = ast.parse(line.strip()).body
        if not isinstance(node, ast.AnnAssign) or node.value is None:
            raise ValueError(refused)
        default = ast.literal_eval(node.value)
        json.dumps(default, allow_nan=False)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise ValueError(refused) from None
    kind = ast.unparse(node.annotation)
    if kind not in TYPES:
        name = ast.unparse(node.target)
        raise ValueError(f"a parameter must be of type {', '.join(TYPES)}, got {name}: {kind}")
    rest = line.strip().encode()[node.end_col_offset or 0 :].decode()  # offsets count bytes
    meaning = rest.strip().lstrip("#")
    return Declaration(ast.unparse(node.target), kind, default, meaning.strip())


def check_parameters(chapter: Chapter, given: Mapping[str, Any]) -> dict[str, Any]:
    """The given values, checked and converted as the chapter itself would; nothing is started.

    Examples
    --------
    >>> check_parameters(find_chapter("06-dp-sgd"), {"epsilon": "4"})
    {'epsilon': 4.0}
    """
    check_chapter(chapter)
    _check.instance("given", given, Mapping, "{'epsilon': 4.0}")
    checked = {}
    for name, value in given.items():
        name = identifier(name)
        if name not in chapter.parameters:
            close = get_close_matches(name, chapter.parameters, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ValueError(
                f"{name} is not a parameter of {chapter.name}, got {name}={value!r}{hint} "
                f"(its parameters: {', '.join(chapter.parameters)})"
            )
        checked[name] = _convert(chapter.parameters[name], value)
    return checked


def settings(chapter: Chapter, given: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters with their values: the same setting looks the same however it was written."""
    defaults = {name: entry.default for name, entry in chapter.parameters.items()}
    return check_parameters(chapter, {**defaults, **given})


def identifier(name: str) -> str:
    """A name as Python has it, for which some signs that look alike are the same.

    >>> identifier("\u03f5") == "\u03b5"
    True
    """
    if not isinstance(name, str):
        raise TypeError(f"names of parameters must be words, got {name!r}")
    return normalize("NFKC", name)


def check_chapter(chapter: Any) -> None:
    """Refuse the name of a chapter where the chapter itself is due."""
    _check.instance("chapter", chapter, Chapter, 'find_chapter("06-dp-sgd")')


def _convert(declared: Declaration, value: Any) -> Any:
    name = declared.name
    try:
        value = _of_type(declared, value)
        return PARAMETERS[name].convert(name, value) if name in PARAMETERS else value
    except TypeError as error:
        raise ValueError(str(error)) from None


def _of_type(declared: Declaration, value: Any) -> Any:
    """A value of the declared type, which may have been given as text, or by NumPy."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, str) and declared.type != "str":
        value = _from_text(declared, value)
    name, kind = declared.name, declared.type
    if kind == "int":
        whole = (
            isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
        )
        if not whole:
            raise ValueError(f"{name} must be an integer, got {name}={value!r}")
        return int(value)
    if kind == "float":
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name} must be a number, got {name}={value!r}")
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"{name} must be a number that a double can hold") from None
    if kind == "bool" and not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, got {name}={value!r}")
    if kind == "str" and not isinstance(value, str):
        raise ValueError(f"{name} must be a word, got {name}={value!r}")
    if kind == "str" and not is_text(value):
        raise ValueError(f"{name} must be a text in UTF-8, got {name}={value!r}")
    if kind == "list" and not isinstance(value, list | tuple):
        raise ValueError(f"{name} must be a list such as 1,2,3, got {name}={value!r}")
    if kind == "list":
        value = _with_lists(value)
        if not is_text(json.dumps(value, ensure_ascii=False)):
            raise ValueError(f"{name} must have texts in UTF-8, got {name}={value!r}")
    return value


def _with_lists(value: Any) -> Any:
    """A value with lists for tuples and arrays, also inside: papermill would write words."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_with_lists(entry) for entry in value]
    if isinstance(value, dict):
        return {name: _with_lists(entry) for name, entry in value.items()}
    return value


def _from_text(declared: Declaration, text: str) -> Any:
    """Text as on a command line: 1e4, true, [1, 2], or 1,2."""
    word = text.strip()
    if declared.type == "bool":
        return {"true": True, "false": False}.get(word.lower(), word)
    return _list_from_text(declared, word) if declared.type == "list" else _number(word)


def _list_from_text(declared: Declaration, word: str) -> list[Any]:
    """A list, as JSON or Python write it or without brackets; of the kind that its default has."""
    name, kinds = declared.name, {type(entry) for entry in declared.default}
    entries = _flat_list(word) if word.startswith("[") else None
    if entries is None:
        bare = word[1:-1] if word.startswith("[") and word.endswith("]") else word
        parts = [part.strip() for part in bare.split(",")] if bare.strip() else []
        if any(not part or set(part) & set("[]\"'") for part in parts):
            raise ValueError(f"{name} must be a list such as 1,2,3, got {name}={word}")
        if kinds == {str}:
            return parts
        if kinds == {bool}:
            return [{"true": True, "false": False}.get(part.lower(), part) for part in parts]
        entries = [_number(part) for part in parts]
    if kinds and kinds <= {int, float} and not {type(entry) for entry in entries} <= {int, float}:
        raise ValueError(f"{name} must be a list of numbers such as 1,2,3, got {name}={word}")
    return entries


def _flat_list(text: str) -> list[Any] | None:
    """The list that is written here, as JSON or Python have it; None if it is none, or not flat."""
    for read in (json.loads, ast.literal_eval):
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            found = read(text)
            if isinstance(found, list) and all(
                isinstance(entry, int | float | str) for entry in found
            ):
                return found
    return None


def _number(word: str) -> Any:
    """An integer or a float where the word is one; otherwise the word."""
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            pass
    return word.strip()


def parse_assignments(assignments: Sequence[str]) -> dict[str, str]:
    """``["epsilon=4", "trials=50"]`` as a dictionary of texts.

    Examples
    --------
    >>> parse_assignments(["epsilon=4", "trials=50"])
    {'epsilon': '4', 'trials': '50'}
    """
    given: dict[str, str] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        name = identifier(name)
        if not equals or not name.strip() or not value.strip():
            raise ValueError(f"-p needs name=value, got -p {assignment}")
        if name.strip() in given:
            raise ValueError(f"{name.strip()} is given twice")
        given[name.strip()] = value
    return given


def described(chapter: Chapter) -> str:
    """The chapter and its parameters, one a line.

    Examples
    --------
    >>> described(find_chapter("06-dp-sgd")).splitlines()[0]
    '06-dp-sgd'
    """
    check_chapter(chapter)
    width = max((len(name) for name in chapter.parameters), default=0)
    lines = [
        f"  {entry.name:<{width}}  {entry.type:<5}  {json.dumps(entry.default)}  {entry.meaning}"
        for entry in chapter.parameters.values()
    ]
    return "\n".join([chapter.name, *lines])

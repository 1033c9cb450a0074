"""The chapters as programs: where they are, which parameters they have, and what may be given."""

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import nbformat

from oralib.parameters import PARAMETERS

#: Where the book lies in a checkout of the repository.
BOOK = Path(__file__).parent.parent.parent / "book"


@dataclass(frozen=True)
class Declaration:
    """A parameter as a chapter declares it: one line of its parameters cell."""

    name: str
    type: str
    default: Any
    meaning: str


@dataclass(frozen=True)
class Chapter:
    """A notebook with declared parameters."""

    name: str
    path: Path
    parameters: Mapping[str, Declaration]


def chapters(folder: Path | None = None) -> list[Chapter]:
    """All chapters of the book that have parameters, in the order of their names."""
    folder = BOOK if folder is None else folder
    found = [_read(path) for path in sorted(folder.glob("*.ipynb"))]
    return [chapter for chapter in found if chapter.parameters]


def find_chapter(name: str) -> Chapter:
    """The chapter with this name, for example ``06-dp-sgd``, or the notebook at this path."""
    path = Path(name)
    if path.suffix == ".ipynb":
        if not path.is_file():
            raise ValueError(f"there is no notebook {name}")
        return _read(path)
    known = {chapter.name: chapter for chapter in chapters()}
    if name in known:
        return known[name]
    beginnings = [other for other in known if other.startswith(name)]
    if len(beginnings) == 1:
        return known[beginnings[0]]
    if not known:
        raise ValueError(f"there is no book at {BOOK}; give the path of a notebook")
    close = beginnings or get_close_matches(name, known, n=1)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    raise ValueError(f"there is no chapter {name!r}{hint} (there are {', '.join(known)})")


def _read(path: Path) -> Chapter:
    try:
        notebook = nbformat.read(path, 4)
    except Exception as error:
        raise ValueError(f"{path} is not a notebook: {error}") from None
    tagged = [
        cell.source
        for cell in notebook.cells
        if cell.cell_type == "code" and "parameters" in cell.metadata.get("tags", [])
    ]
    declared = [_declaration(line) for line in "\n".join(tagged).splitlines() if line.strip()]
    return Chapter(path.stem, path.resolve(), {entry.name: entry for entry in declared})


def _declaration(line: str) -> Declaration:
    """One line such as ``trials: int = 200  # number of audits``."""
    code, _, meaning = line.partition("#")
    (node,) = ast.parse(code.strip()).body
    if not isinstance(node, ast.AnnAssign) or node.value is None:
        raise ValueError(f"a parameters cell has one 'name: type = value' a line, not {line!r}")
    default = ast.literal_eval(node.value)
    return Declaration(
        ast.unparse(node.target), ast.unparse(node.annotation), default, meaning.strip()
    )


def check_parameters(chapter: Chapter, given: Mapping[str, Any]) -> dict[str, Any]:
    """The given values, checked and converted as the chapter itself would; nothing is started."""
    checked = {}
    for name, value in given.items():
        if name not in chapter.parameters:
            close = get_close_matches(name, chapter.parameters, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ValueError(
                f"{name} is not a parameter of {chapter.name}, got {name}={value!r}{hint} "
                f"(its parameters: {', '.join(chapter.parameters)})"
            )
        checked[name] = _convert(chapter.parameters[name], value)
    return checked


def _convert(declared: Declaration, value: Any) -> Any:
    name = declared.name
    try:
        value = _of_type(declared, value)
        return PARAMETERS[name].convert(name, value) if name in PARAMETERS else value
    except TypeError as error:
        raise ValueError(str(error)) from None


def _of_type(declared: Declaration, value: Any) -> Any:
    """A value of the declared type, which may have been given as text."""
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
        return float(value)
    if kind == "bool" and not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, got {name}={value!r}")
    if kind == "str" and not isinstance(value, str):
        raise ValueError(f"{name} must be a word, got {name}={value!r}")
    if kind == "list" and not isinstance(value, list | tuple):
        raise ValueError(f"{name} must be a list such as 1,2,3, got {name}={value!r}")
    return list(value) if kind == "list" else value


def _from_text(declared: Declaration, text: str) -> Any:
    """Text as on a command line: 1e4, true, [1, 2], or 1,2."""
    word = text.strip()
    if declared.type == "bool":
        return {"true": True, "false": False}.get(word.lower(), word)
    if declared.type == "list":
        return [_number(part) for part in word.strip("[]").split(",") if part.strip()]
    return _number(word)


def _number(word: str) -> Any:
    """An integer or a float where the word is one; otherwise the word."""
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            pass
    return word.strip()


def parse_assignments(assignments: Sequence[str]) -> dict[str, str]:
    """``["epsilon=4", "trials=50"]`` as a dictionary of texts."""
    given: dict[str, str] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise ValueError(f"-p needs name=value, got -p {assignment}")
        if name.strip() in given:
            raise ValueError(f"{name.strip()} is given twice")
        given[name.strip()] = value
    return given


def described(chapter: Chapter) -> str:
    """The chapter and its parameters, one a line."""
    width = max(len(name) for name in chapter.parameters)
    lines = [
        f"  {entry.name:<{width}}  {entry.type:<5}  {json.dumps(entry.default)}  {entry.meaning}"
        for entry in chapter.parameters.values()
    ]
    return "\n".join([chapter.name, *lines])

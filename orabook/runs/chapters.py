"""A chapter as a program: the parameters that it declares, and the values that they may have."""

import ast
import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import CodeType
from typing import Any

import nbformat
import numpy as np
import papermill
import yaml

from orabook.parameters import PARAMETERS, did_you_mean
from orabook.place import BOOK
from orabook.products import restore
from orabook.results import results_of
from oralib.ground import arguments

__all__ = ["Chapter", "Declaration", "Loader", "chapters", "check_parameters", "find_chapter"]


@dataclass(frozen=True)
class Declaration:
    """A parameter as a chapter declares it: ``trials: int = 200  # number of audits``."""

    name: str
    type: str
    default: Any
    meaning: str


@dataclass(frozen=True)
class Chapter:
    """A notebook with declared parameters, as it was when it was read."""

    name: str
    path: Path  # it runs in the folder of this file
    parameters: Mapping[str, Declaration]
    text: str  # without outputs, so that what is run is what was checked
    results: tuple[str, ...]  # their names, if it has been executed

    @property
    def digest(self) -> str:
        """A digest that changes when a cell or its tags change."""
        cells = [
            [cell.cell_type, cell.metadata.get("tags", []), cell.source]
            for cell in nbformat.reads(self.text, 4).cells
        ]
        return sha256(json.dumps(cells).encode()).hexdigest()[:16]


def chapters() -> list[Chapter]:
    """All chapters of the book that have parameters, in the order of their names."""
    notebooks = [_read(path) for path in _notebooks().values()]
    return [chapter for chapter in notebooks if chapter.parameters]


def _notebooks() -> dict[str, Path]:
    """The notebooks of the book by their names."""
    notebooks = {path.stem: path for path in sorted(BOOK.glob("*.ipynb"))}
    if not notebooks:
        raise ValueError(f"there is no book at {BOOK}, so no chapters have names; give a notebook")
    return notebooks


def find_chapter(name: str | os.PathLike[str]) -> Chapter:
    """The chapter with this name, or the notebook at this path.

    >>> find_chapter("06-dp-sgd").parameters["epsilon"].meaning
    'privacy level of the training, in nats'
    """
    name = str(arguments.path("name", name))
    path = Path(name) if name.endswith(".ipynb") else BOOK / f"{name}.ipynb"
    if path.is_file():
        return _read(path)
    if name.endswith(".ipynb"):
        raise ValueError(f"there is no notebook {name}")
    raise ValueError(f"there is no chapter {name!r}{did_you_mean(name, _notebooks(), 'there are')}")


def _read(path: Path) -> Chapter:
    try:
        notebook = nbformat.read(path, 4)
        inspected = papermill.inspect_notebook(path).values()
        declared = {
            name: Declaration(name, kind, ast.literal_eval(default), meaning)
            for name, kind, default, meaning in map(dict.values, inspected)
        }
    except Exception as error:  # whatever is wrong with the file
        raise ValueError(f"{path} is not a chapter: {' '.join(str(error).split())}") from None
    for name, entry in declared.items():
        if entry.type not in _FITS:
            allowed = ", ".join(_FITS)
            raise ValueError(f"{path}: {name} must have a type ({allowed}), got {entry.type}")
    results = tuple(results_of(notebook))
    restore(notebook)  # it may be the product of an earlier run, whose parameters are not its own
    notebook.cells = [
        cell
        for cell in notebook.cells
        if "injected-parameters" not in cell.metadata.get("tags", [])
    ]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
            cell.execution_count = None
    return Chapter(path.stem, path.resolve(), declared, nbformat.writes(notebook), results)


# ------------------------------------------------------------------------------------- values


class Loader(yaml.SafeLoader):
    """YAML, for grid files and the command line, where ``1e4`` is a number and no key is double."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.YAMLError(f"{key} occurs twice, again{node.start_mark}")
        return dict(super().construct_mapping(node, deep))


Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: Any) -> bool:
    is_list = isinstance(value, list | tuple)
    return is_list and not any(isinstance(entry, Mapping) for entry in value)


#: The types that a parameter may have: a test of a value, the words for a value, a conversion.
_FITS: dict[str, tuple[Callable[[Any], bool], str, Callable[[Any], Any]]] = {
    "int": (lambda value: _is_number(value) and value % 1 == 0, "an integer", int),
    "float": (_is_number, "a number", float),
    "bool": (lambda value: isinstance(value, bool), "true or false", bool),
    "str": (lambda value: isinstance(value, str), "a word", str),
    "list": (_is_list, "a list such as 1,2,3", list),
}


def check_parameters(chapter: Chapter, changed: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a chapter with their values, checked and converted; nothing is started.

    The values of ``changed`` stand for the chapter's own. Strings, as on a command line, are read
    as YAML, and a list needs no brackets.

    >>> check_parameters(find_chapter("06-dp-sgd"), {"epsilon": "4"})["epsilon"]
    4.0
    """
    for name, value in changed.items():
        if name not in chapter.parameters:
            hint = did_you_mean(str(name), chapter.parameters, "its parameters:")
            raise ValueError(f"{name} is not a parameter of {chapter.name}, got {value!r}{hint}")
    values = {
        name: _converted(entry, changed.get(name, entry.default))
        for name, entry in chapter.parameters.items()
    }
    try:
        exec(_checks(chapter.text), {"__annotations__": dict.fromkeys(values), **values})
    except Exception as error:
        if isinstance(error, ValueError):
            raise  # any other error says that they need a kernel, which makes them again
    return values


@cache
def _checks(text: str) -> CodeType:
    """Compile the chapter's own checks, for which no kernel need start.

    They are the cell after the parameters up to its last statement that uses ``parameters``. Of its
    imports only those that are used are made: others, such as PyTorch, take seconds.
    """
    cells = [cell for cell in nbformat.reads(text, 4).cells if cell.cell_type == "code"]
    tagged = [i for i, cell in enumerate(cells) if "parameters" in cell.metadata.get("tags", [])]
    statements = ast.parse(cells[tagged[0] + 1].source).body
    names = [
        {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        for statement in statements
    ]
    checking = [place for place, used in enumerate(names) if "parameters" in used]
    end = checking[-1] + 1 if checking else 0
    used = set().union(*names[:end])
    checks = []
    for statement in statements[:end]:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            statement.names = [
                alias
                for alias in statement.names
                if (alias.asname or alias.name.partition(".")[0]) in used
            ]
            if not statement.names:
                continue
        checks.append(statement)
    return compile(ast.Module(checks, []), "the checks of a chapter", "exec")


def _converted(declared: Declaration, value: Any) -> Any:
    name = declared.name
    kind = declared.type
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, str) and kind != "str":
        is_bare = kind == "list" and not value.lstrip().startswith(("[", "{"))
        with suppress(yaml.YAMLError):  # the error below names the text
            value = yaml.load(f"[{value}]" if is_bare else value, Loader)
    fits, wanted, convert = _FITS[kind]
    if not fits(value):
        raise ValueError(f"{name} must be {wanted}, got {name}={value!r}")
    value = convert(value)
    try:
        json.dumps(value)  # papermill and results.json can write it
    except TypeError:
        raise ValueError(f"{name} must be {wanted} of plain values, got {value!r}") from None
    try:
        return PARAMETERS[name](name, value) if name in PARAMETERS else value
    except TypeError as error:
        raise ValueError(str(error)) from None

"""Grid files: a chapter and many settings of its parameters, all checked before the first run.

::

    chapter: running
    parameters:              # the same for all points
      trials: 20
    product:                 # every combination
      ratio: [1, 2, 5]
      k: [50, 100]
    points:                  # and these
      - {ratio: 64, k: 100}
    inputs: [data.csv]       # files beside the grid that the chapter reads
    results: [run_bound]     # columns of the table, by default all
    show: run_bound          # the result to draw, by default the first
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from orabook.runs.chapters import Chapter, Loader, check_parameters, find_chapter
from oralib.ground import arguments

#: The keys of a grid file, and what each must hold.
KEYS = {"chapter": str, "parameters": dict, "product": dict, "points": list}
KEYS |= {"inputs": list, "results": list, "show": str}


@dataclass(frozen=True)
class Grid:
    """A chapter and the points at which to run it."""

    chapter: Chapter
    points: Sequence[Mapping[str, Any]]  # all parameters at each point
    axes: tuple[str, ...]  # the parameters that vary, in the order of the file
    inputs: tuple[Path, ...] = ()  # their contents are part of the name of every point
    results: tuple[str, ...] = ()  # empty for all
    show: str = ""  # empty for the first that is a number


def read_grid(path: str | os.PathLike[str]) -> Grid:
    """A grid file, with every point checked.

    >>> grid = read_grid("book/grids/plane.yml")
    >>> grid.chapter.name, grid.axes, len(grid.points)
    ('running', ('ratio', 'k'), 50)
    """
    path = arguments.path("path", path)
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader)
        if not isinstance(content, dict) or "chapter" not in content:
            raise ValueError("a grid has a chapter, and a product or points")
        for key, value in content.items():
            if key not in KEYS:
                raise ValueError(f"{key} is not a key of a grid ({', '.join(KEYS)})")
            if not isinstance(value, KEYS[key]):
                kind = {str: "a word", dict: "a mapping", list: "a list"}[KEYS[key]]
                raise ValueError(f"{key} must be {kind}, got {key}={value!r}")
        return _grid(path.parent, content)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{path}: {' '.join(str(error).split())}") from None


def _grid(beside: Path, content: Mapping[str, Any]) -> Grid:
    name, fixed = content["chapter"], content.get("parameters", {})
    results, show = content.get("results", []), content.get("show", "")
    found = find_chapter(beside / name if name.endswith(".ipynb") else name)
    values = content.get("product", {})
    for name, entries in values.items():
        if not isinstance(entries, list) or not entries:
            raise ValueError(f"product: {name} must be a list of values, got {name}={entries!r}")
    chosen = product(*values.values()) if "product" in content else ()
    given = [*(dict(zip(values, x, strict=True)) for x in chosen), *content.get("points", [])]
    if not given:
        raise ValueError("a grid needs a product, or points")
    for point in given:
        if not isinstance(point, dict):
            raise ValueError(f"a point must be a mapping such as {{k: 100}}, got {point!r}")
        if twice := set(point) & set(fixed):
            raise ValueError(f"{min(twice)} is set twice, in parameters and in a point")
    checked = [check_parameters(found, {**fixed, **point}) for point in given]
    for i, point in enumerate(checked):
        if point in checked[:i]:
            raise ValueError(f"points {checked.index(point) + 1} and {i + 1} are the same")
    for name in [*results, *([show] if show else [])]:
        if found.results and name not in found.results:
            known = ", ".join(found.results)
            raise ValueError(f"{name} is not a result of {found.name} (its results: {known})")
    files = tuple((beside / name).absolute() for name in content.get("inputs", []))
    for file in files:
        if not file.is_file():
            raise ValueError(f"inputs: there is no file {file}")
    axes = tuple(dict.fromkeys(name for point in given for name in point))
    return Grid(found, checked, axes, files, tuple(results), show)

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
    inputs: [data.csv]       # files next to the grid that the chapter reads
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

__all__ = ["Grid", "read_grid"]

#: The keys of a grid file, and the type of the value of each.
KEYS = {
    "chapter": str,
    "parameters": dict,
    "product": dict,
    "points": list,
    "inputs": list,
    "results": list,
    "show": str,
}
#: Those types in words.
TYPES = {str: "a word", dict: "a mapping", list: "a list"}


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
    """Read a grid file and check every point.

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
                raise ValueError(f"{key} must be {TYPES[KEYS[key]]}, got {key}={value!r}")
        return _grid(path.parent, content)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{path}: {' '.join(str(error).split())}") from None


def _grid(folder: Path, content: Mapping[str, Any]) -> Grid:
    """The grid of a file in this folder."""
    name = content["chapter"]
    chapter = find_chapter(folder / name if name.endswith(".ipynb") else name)
    points = _points_of(content)
    shared = content.get("parameters", {})
    for point in points:
        if not isinstance(point, dict):
            raise ValueError(f"a point must be a mapping such as {{k: 100}}, got {point!r}")
        repeated = set(point) & set(shared)
        if repeated:
            raise ValueError(f"{min(repeated)} is set twice, in parameters and in a point")
    checked = [check_parameters(chapter, {**shared, **point}) for point in points]
    for place, point in enumerate(checked):
        if point in checked[:place]:
            raise ValueError(f"points {checked.index(point) + 1} and {place + 1} are the same")
    results = content.get("results", [])
    show = content.get("show", "")
    for name in [*results, show] if show else results:
        if chapter.results and name not in chapter.results:
            available = ", ".join(chapter.results)
            raise ValueError(f"{name} is not a result of {chapter.name} (its results: {available})")
    files = tuple((folder / name).absolute() for name in content.get("inputs", []))
    for file in files:
        if not file.is_file():
            raise ValueError(f"inputs: there is no file {file}")
    axes = tuple(dict.fromkeys(name for point in points for name in point))
    return Grid(chapter, checked, axes, files, tuple(results), show)


def _points_of(content: Mapping[str, Any]) -> list[Any]:
    """The points of a grid file, as they are written: those of the product, then the others."""
    lists = content.get("product", {})
    for name, entries in lists.items():
        if not isinstance(entries, list) or not entries:
            raise ValueError(f"product: {name} must be a list of values, got {name}={entries!r}")
    points: list[Any] = []
    if "product" in content:
        points += [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]
    points += content.get("points", [])
    if not points:
        raise ValueError("a grid needs a product, or points")
    return points

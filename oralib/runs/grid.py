"""Grid files: a chapter and many settings of its parameters, all checked before the first run.

::

    chapter: running-your-own
    parameters:              # the same for all points
      trials: 20
    product:                 # every combination
      ratio: [1, 2, 5]
      k: [50, 100]
    points:                  # and these
      - {ratio: 64, k: 100}
    results: [run_bound, run_bound_se]   # columns of the table, by default all
    show: run_bound          # the result to draw
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from itertools import product
from math import prod
from typing import Any

from oralib import _check
from oralib.runs.chapters import (
    Chapter,
    check_chapter,
    check_parameters,
    find_chapter,
    identifier,
    settings,
)
from oralib.runs.plain_yaml import read_yaml

KEYS = ("chapter", "parameters", "product", "points", "results", "show")

#: More points than this are a mistake.
LARGEST_GRID = 10_000


@dataclass(frozen=True)
class Grid:
    """A chapter and the points at which to run it.

    Attributes
    ----------
    points : what is given to the chapter at each point, checked and converted.
    axes : the parameters that vary, in the order of the file.
    results : the results that go into the table; None for all.
    show : the result to draw; None for the first that is a number.

    Examples
    --------
    >>> grid = read_grid("book/grids/plane.yml")
    >>> grid.axes, len(grid.points)
    (('ratio', 'k'), 50)
    """

    chapter: Chapter
    points: Sequence[Mapping[str, Any]]
    axes: tuple[str, ...]
    results: tuple[str, ...] | None
    show: str | None


def read_grid(path: str | os.PathLike[str]) -> Grid:
    """A grid file, with every point checked.

    Examples
    --------
    >>> read_grid("book/grids/plane.yml").chapter.name
    'running'
    """
    path = _check.path("path", path)
    content = read_yaml(path)
    if content is None:
        raise ValueError(f"{path} is empty; a grid has a chapter, and a product or points")
    if not isinstance(content, dict):
        raise ValueError(f"{path} must have the keys {', '.join(KEYS)}, got {_short(content)}")
    for key in content:
        if key not in KEYS:
            close = get_close_matches(str(key), KEYS, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ValueError(f"{path}: {key} is not a key of a grid{hint} ({', '.join(KEYS)})")
    if not isinstance(content.get("chapter"), str):
        raise ValueError(f"{path}: chapter must be given, for example chapter: 06-dp-sgd")
    name = content["chapter"]
    beside = path.parent / name
    chapter = find_chapter(str(beside) if name.endswith(".ipynb") else name)
    try:
        for key in ("parameters", "product", "points"):
            if key in content:
                content[key] = _as_identifiers(key, content[key])
        return _grid(chapter, content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _as_identifiers(key: str, given: Any) -> Any:
    """Settings with the names of parameters as Python has them."""
    if isinstance(given, list):
        return [_as_identifiers(key, entry) for entry in given]
    if not isinstance(given, dict):
        return given
    named = {identifier(name): value for name, value in given.items()}
    if len(named) < len(given):
        raise ValueError(f"{key} has a name twice, written in two ways: {_short(list(given))}")
    return named


def _grid(chapter: Chapter, content: Mapping[str, Any]) -> Grid:
    fixed = _mapping("parameters", content.get("parameters"))
    axes = _mapping("product", content.get("product"))
    for name, values in axes.items():
        if not isinstance(values, list) or not values:
            raise ValueError(
                f"product: {name} must be a list of values, got {name}={_short(values)}"
            )
    listed = [] if content.get("points") is None else content["points"]
    if not isinstance(listed, list) or not all(isinstance(point, dict) for point in listed):
        raise ValueError(f"points must be a list of settings, got points={_short(listed)}")
    count = len(listed) + (prod(map(len, axes.values())) if axes else 0)
    if not 1 <= count <= LARGEST_GRID:
        allowed = f"between 1 and {LARGEST_GRID}"
        raise ValueError(f"product and points must give {allowed} points, got {count}")
    combined = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    points: list[dict[str, Any]] = []
    seen: dict[str, int] = {}
    for given in [*(combined if axes else []), *listed]:
        for name in given:
            if name in fixed:
                raise ValueError(f"{name} is set twice, in parameters and in a point")
        point = check_parameters(chapter, {**fixed, **given})
        key = point_key(chapter, point)
        if key in seen:
            raise ValueError(
                f"points {seen[key] + 1} and {len(points) + 1} are the same: {_short(given)}"
            )
        seen[key] = len(points)
        points.append(point)
    varying = [*axes, *(name for point in listed for name in point)]
    show = content.get("show")
    if show is not None and not isinstance(show, str):
        raise ValueError(f"show must be the name of a result, got show={_short(show)}")
    results = content.get("results")
    if results is not None:
        if not isinstance(results, list) or not results or not all(map(_is_word, results)):
            raise ValueError(f"results must be a list of names, got results={_short(results)}")
        results = tuple(results)
    _check_results(chapter, [*(results or ()), *([show] if show else [])])
    return Grid(chapter, points, tuple(dict.fromkeys(varying)), results, show)


def _check_results(chapter: Chapter, names: Sequence[str]) -> None:
    """The chapter as it lies there shows which results it has, if it has been executed."""
    known = chapter.results
    for name in names:
        if known and name not in known and identifier(name) not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ValueError(
                f"{name} is not a result of {chapter.name}, when it was executed last{hint} "
                f"({', '.join(known)})"
            )


def _short(value: Any) -> str:
    """A value for an error message."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _is_word(value: Any) -> bool:
    return isinstance(value, str)


def _mapping(key: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{key} must map names to values, got {key}={_short(value)}")
    return value


def point_key(chapter: Chapter, point: Mapping[str, Any]) -> str:
    """The name of a point: a digest of the chapter and all of its parameters.

    Examples
    --------
    >>> from oralib.runs import find_chapter
    >>> chapter = find_chapter("06-dp-sgd")
    >>> point_key(chapter, {"epsilon": 2.0}) == point_key(chapter, {})
    True
    """
    check_chapter(chapter)
    text = json.dumps([chapter.name, sorted(settings(chapter, point).items())])
    return sha256(text.encode()).hexdigest()[:16]

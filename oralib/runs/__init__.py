"""Chapters run again: once with other parameters, or over a whole grid of them."""

from oralib.runs import _lean  # noqa: F401

# isort: split
from oralib.runs.chapters import (
    Chapter,
    Declaration,
    chapters,
    check_parameters,
    described,
    find_chapter,
    parse_assignments,
    recorded,
)
from oralib.runs.grid import Grid, point_key, read_grid
from oralib.runs.record import RunFailed, check_free
from oralib.runs.single import default_folder, run_chapter, show
from oralib.runs.sweep import Sweep, sweep_grid
from oralib.runs.table import as_text

__all__ = [
    "Chapter",
    "Declaration",
    "Grid",
    "RunFailed",
    "Sweep",
    "as_text",
    "chapters",
    "check_free",
    "check_parameters",
    "default_folder",
    "described",
    "find_chapter",
    "parse_assignments",
    "point_key",
    "read_grid",
    "recorded",
    "run_chapter",
    "show",
    "sweep_grid",
]

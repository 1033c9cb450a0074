"""Chapters run again: once with other parameters, or over a whole grid of them."""

from oralib.runs.chapters import (
    Chapter,
    Declaration,
    chapters,
    check_parameters,
    described,
    find_chapter,
    parse_assignments,
)
from oralib.runs.single import RunFailed, default_folder, run_chapter, show

__all__ = [
    "Chapter",
    "Declaration",
    "RunFailed",
    "chapters",
    "check_parameters",
    "default_folder",
    "described",
    "find_chapter",
    "parse_assignments",
    "run_chapter",
    "show",
]

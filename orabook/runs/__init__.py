"""Run chapters again: once with other parameters, or over a whole grid of them."""

from orabook.runs.chapters import Chapter, chapters, check_parameters, find_chapter
from orabook.runs.grid import Grid, read_grid
from orabook.runs.run import RunFailed, run_chapter
from orabook.runs.sweep import Sweep, sweep_grid

__all__ = [
    "Chapter",
    "Grid",
    "RunFailed",
    "Sweep",
    "chapters",
    "check_parameters",
    "find_chapter",
    "read_grid",
    "run_chapter",
    "sweep_grid",
]

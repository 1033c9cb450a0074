"""The command line: ``python -m orabook``, or ``orabook``, and a command."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from orabook.command import Commands, path, process, run_command
from oralib import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="orabook" if Path(sys.argv[0]).stem == "orabook" else "python -m orabook",
        description="Run chapters of the book with other parameters.",
    )
    parser.add_argument("--version", action="version", version=f"orabook {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_run(commands)
    _add_sweep(commands)
    return run_command(parser.parse_args(arguments), trouble=1)


def _add_run(commands: Commands) -> None:
    parser = commands.add_parser(
        "run",
        help="run a chapter with other parameters",
        description="Run a chapter with other parameters, which are checked before it starts, and "
        "write its notebook, a page and its results into a folder.",
    )
    parser.add_argument("chapter", nargs="?", help="for example 06-dp-sgd, or a notebook")
    parser.add_argument(
        "-p",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a parameter, for example -p epsilon=4 or -p ratios=1,2,5",
    )
    parser.add_argument("--out", type=path, metavar="DIR", help="where to write")
    parser.add_argument("--force", action="store_true", help="rename a folder that exists")
    parser.add_argument("--list", action="store_true", help="show chapters and their parameters")
    parser.set_defaults(command=_run)


def _run(chosen: argparse.Namespace) -> int:
    runs = _runs()
    if chosen.list:
        chapters = [runs.find_chapter(chosen.chapter)] if chosen.chapter else runs.chapters()
        print("\n\n".join(_description(chapter) for chapter in chapters))
        return 0
    if chosen.chapter is None:
        raise ValueError("run needs a chapter; --list shows them")
    chapter = runs.find_chapter(path(chosen.chapter))
    parameters = _assignments(chosen.p)
    try:
        folder, record = runs.run_chapter(
            chapter, parameters, chosen.out, force=chosen.force, progress=True
        )
    except runs.RunFailed as error:
        print(f"{chapter.name} failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        # The kernel was interrupted too, and asyncio would print where.
        logging.getLogger("asyncio").disabled = True
        raise
    width = max(map(len, record["results"]), default=0)
    for name, value in record["results"].items():
        print(f"{name:<{width}}  {value}")
    print(f"{folder} ({record['provenance']['seconds']} s)")
    return 0


def _runs() -> Any:
    try:
        from orabook import runs
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{error.name} is not installed: pip install '.[runs]' in the repository"
        ) from None
    return runs


def _description(chapter: Any) -> str:
    """Return the name of a chapter and its parameters, one to a line."""
    width = max(map(len, chapter.parameters), default=0)
    lines = [chapter.name]
    for entry in chapter.parameters.values():
        lines.append(f"  {entry.name:<{width}}  {entry.type:<5}  {entry.default}  {entry.meaning}")
    return "\n".join(lines)


def _assignments(arguments: Sequence[str]) -> dict[str, str]:
    """Read ``["epsilon=4", "trials=50"]`` as a dictionary of strings."""
    values: dict[str, str] = {}
    for argument in arguments:
        text = os.fsencode(argument).decode()  # the locale may not know all letters
        name, _, value = (part.strip() for part in text.partition("="))
        if not name or not value:
            raise ValueError(f"-p needs name=value, got -p {text}")
        if name in values:
            raise ValueError(f"{name} is given twice")
        values[name] = value
    return values


# ------------------------------------------------------------------------------------ sweep


def _add_sweep(commands: Commands) -> None:
    parser = commands.add_parser(
        "sweep",
        help="run a chapter at every point of a grid",
        description="Run a chapter at every point of a grid file. The same command goes on where "
        "an earlier one was interrupted. The exit status is 1 if a point failed.",
    )
    parser.add_argument("grid", type=path, metavar="GRID.yml")
    parser.add_argument("--out", type=path, metavar="DIR", help="by default runs/GRID")
    parser.add_argument("--workers", type=int, metavar="N", help="processes on this machine")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler to use instead")
    parser.set_defaults(command=_sweep)


def _sweep(chosen: argparse.Namespace) -> int:
    runs = _runs()
    grid = runs.read_grid(chosen.grid)
    out = Path("runs") / chosen.grid.stem if chosen.out is None else chosen.out
    done = runs.sweep_grid(grid, out, workers=chosen.workers, scheduler=chosen.scheduler)
    if done.table.empty:
        first = done.failures[min(done.failures)]
        print(f"all {len(grid.points)} points failed, the first with {first}", file=sys.stderr)
        return 1
    print(done.table.to_string(index=False, max_rows=60, float_format="{:.6g}".format))
    print(f"{len(done.table)} of {len(grid.points)} points: {done.folder}")
    return 1 if done.failures else 0


def console() -> NoReturn:
    """Run the whole process: ``python -m orabook``, and the script ``orabook``."""
    process(main)


if __name__ == "__main__":
    console()

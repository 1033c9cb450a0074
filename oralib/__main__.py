"""The command line: ``python -m oralib``, or ``oralib``, and a command."""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from errno import EMFILE, ENFILE, ENOMEM
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from oralib import _signals

# What a command needs is imported when it is called: none of them needs all. Until all of it is
# there, Ctrl-C ends the process at once; then the command calls raise_from_now_on.

#: What the extra ``runs`` installs, each with the module that it brings.
RUNS = {
    "papermill": "papermill",
    "nbformat": "nbformat",
    "ipykernel": "ipykernel",
    "myst-parser": "myst_parser",
    "pybtex": "pybtex",
    "dask": "dask",
    "distributed": "distributed",
    "cryptography": "cryptography",
    "filelock": "filelock",
    "pyyaml": "yaml",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status."""
    started = "oralib" if _signals.is_script() else "python -m oralib"
    parser = argparse.ArgumentParser(prog=started, description="Rerun the book's work.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_claims(commands)
    _add_plan(commands)
    _add_run(commands)
    _add_sweep(commands)
    chosen = parser.parse_args(arguments)
    try:
        return int(chosen.command(chosen))
    except ValueError as error:
        print(f"error: {' '.join(str(error).splitlines())}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        print(f"error: {error.strerror or error}{where}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as error:
        return _signals.ended(error)


def _path(word: str) -> Path:
    """A path; ``~`` is home also where shells leave it, as in ``--out=~/runs``."""
    try:
        return Path(word).expanduser()
    except RuntimeError as error:  # there is no such user
        raise argparse.ArgumentTypeError(f"{word}: {error}") from None


def _check_installed(command: str) -> None:
    missing = [package for package, module in RUNS.items() if find_spec(module) is None]
    if missing:
        raise ValueError(
            f"{command} needs packages that are not installed ({', '.join(missing)}): "
            "pip install 'oralib[runs]'"
        )


# ----------------------------------------------------------------------------------- claims


def _add_claims(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "claims",
        help="check every claim of the paper",
        description="Check every claim of the paper and print the verdicts. The exit status is 1 "
        "if one of them is not as expected.",
    )
    parser.add_argument("--only", metavar="LABEL", help="check this claim alone (or its number)")
    parser.add_argument(
        "--mutants",
        action="store_true",
        help="also try small changes of every constant and direction, which each check must reject",
    )
    parser.set_defaults(command=_claims)


def _claims(chosen: argparse.Namespace) -> int:
    from tqdm import tqdm

    from oralib import claims

    _signals.raise_from_now_on()
    asked = claims.ledger() if chosen.only is None else [claims.find(chosen.only)]
    verdicts = [
        claim.verdict(mutants=chosen.mutants)
        for claim in tqdm(asked, desc="checking", unit="claim", disable=None, leave=False)
    ]
    print(claims.Page(verdicts))
    if chosen.mutants:
        print(claims.score(verdicts))
    return 0 if all(verdict.as_expected for verdict in verdicts) else 1


# ------------------------------------------------------------------------------------- plan


def _add_plan(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "plan",
        help="plan the audit of a training with DP-SGD",
        description="How to audit a training with DP-SGD in one run: how many canaries, where, how "
        "many guesses, and the bound to expect.",
    )
    parser.add_argument("--epsilon", type=float, required=True, help="the claimed privacy level")
    parser.add_argument("--delta", type=float, required=True, help="its δ")
    parser.add_argument("--d", type=int, required=True, help="the number of coordinates")
    parser.add_argument("--steps", type=int, required=True, help="the number of steps")
    parser.add_argument(
        "--sample-rate", type=float, required=True, help="how likely an element is in a batch"
    )
    parser.add_argument(
        "--beta", type=float, default=0.05, help="how often the bound may fail, by default 0.05"
    )
    parser.add_argument(
        "--most", type=int, metavar="N", help="the largest number of canaries, by default 150 d"
    )
    parser.add_argument("--trials", type=int, default=40, help="simulated audits, by default 40")
    parser.add_argument("--seed", type=int, default=0, help="of the simulation, by default 0")
    parser.set_defaults(command=_plan)


def _plan(chosen: argparse.Namespace) -> int:
    from oralib.planning import plan_audit

    _signals.raise_from_now_on()
    given = {name: value for name, value in vars(chosen).items() if name != "command"}
    print(plan_audit(given.pop("epsilon"), given.pop("delta"), **given))
    return 0


# -------------------------------------------------------------------------------------- run


def _add_run(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "run",
        help="run a chapter with other parameters",
        description="Run a chapter with other parameters, which are checked before it starts, and "
        "write its notebook, a page and its results into a folder.",
    )
    parser.add_argument(
        "chapter", nargs="?", help="a chapter, for example 06-dp-sgd, or a notebook"
    )
    parser.add_argument(
        "-p",
        dest="parameters",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a parameter, for example -p epsilon=4 or -p ratios=1,2,5",
    )
    parser.add_argument("--out", type=_path, metavar="DIR", help="where to write")
    parser.add_argument(
        "--force", action="store_true", help="replace an earlier run; other folders never are"
    )
    parser.add_argument("--list", action="store_true", help="show chapters and their parameters")
    parser.set_defaults(command=_run)


def _run(chosen: argparse.Namespace) -> int:
    _check_installed("run")
    from oralib import runs

    if chosen.list:
        asked = runs.chapters() if chosen.chapter is None else [runs.find_chapter(chosen.chapter)]
        if not asked:
            raise ValueError(
                "there is no book beside this installation, so no chapter has a name; "
                "give the path of a notebook"
            )
        print("\n\n".join(runs.described(chapter) for chapter in asked))
        return 0
    if chosen.chapter is None:
        raise ValueError("run needs a chapter; --list shows them")
    chapter = runs.find_chapter(str(_path(chosen.chapter)))
    values = runs.check_parameters(chapter, runs.parse_assignments(chosen.parameters))
    folder = runs.default_folder(chapter, values) if chosen.out is None else chosen.out
    try:
        if runs.check_free(folder, chosen.force):
            print(f"the run in {folder} will be replaced", file=sys.stderr)
        import oralib.runs.kernel
        import oralib.runs.page  # noqa: F401

        _signals.raise_from_now_on()
        record = runs.run_chapter(chapter, values, folder, force=chosen.force, progress=True)
    except runs.RunFailed as error:
        print(f"{chapter.name} failed: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except OSError as error:
        if error.errno in (EMFILE, ENFILE, ENOMEM):
            raise  # not the fault of a folder
        print(f"{folder} cannot be written: {error.strerror or error}", file=sys.stderr)
        return 1
    runs.show(record, folder)
    return 0


# ------------------------------------------------------------------------------------ sweep


def _add_sweep(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "sweep",
        help="run a chapter at every point of a grid",
        description="Run a chapter at every point of a grid file. The same command goes on where "
        "an earlier one was interrupted. The exit status is 1 if a point failed.",
    )
    parser.add_argument("grid", type=_path, metavar="GRID.yml")
    parser.add_argument(
        "--out", type=_path, metavar="DIR", help="where to write, by default runs/GRID"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes on this machine")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler to use instead")
    parser.set_defaults(command=_sweep)


def _sweep(chosen: argparse.Namespace) -> int:
    _check_installed("sweep")
    import distributed  # noqa: F401

    from oralib import runs

    _signals.raise_from_now_on()
    grid = runs.read_grid(chosen.grid)
    out = Path("runs") / chosen.grid.stem if chosen.out is None else chosen.out
    try:
        done = runs.sweep_grid(grid, out, workers=chosen.workers, scheduler=chosen.scheduler)
    except KeyboardInterrupt as error:
        return _signals.ended(error, "; the same command goes on from here")
    except OSError as error:
        if error.errno in (EMFILE, ENFILE, ENOMEM):
            raise
        print(f"{out} cannot be written: {error.strerror or error}", file=sys.stderr)
        return 1
    if len(done.table):
        print(runs.as_text(done.table))
    print(f"{len(done.table)} of {len(grid.points)} points: {done.path}")
    if done.failures:
        print(f"{len(done.failures)} of {len(grid.points)} points failed", file=sys.stderr)
    return 1 if done.failures else 0


def console() -> NoReturn:
    """The whole process: ``python -m oralib``, and the script ``oralib``."""
    _write_into_nothing()
    for stream in (sys.stdout, sys.stderr):
        # A name of a folder may have bytes that are no text.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        status = main()
        sys.stdout.flush()
    except OSError as error:
        # Somebody has read enough, as head does; or there is no room for the output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = 141 if isinstance(error, BrokenPipeError) else 1
    _signals.end_from_now_on()
    if status in (129, 130, 143):
        # All is cleaned up. What a kernel's client has left undone would only print tracebacks.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):  # of a terminal that is gone
                stream.flush()
        os._exit(status)
    sys.exit(status)


def _write_into_nothing() -> None:
    """Have an output and an error to write to, for bars and messages, where they were closed."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


if __name__ == "__main__":
    console()

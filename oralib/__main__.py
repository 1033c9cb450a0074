"""The command line: ``python -m oralib``, or ``oralib``, and a command."""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from oralib import __version__, _check
from oralib._audit_command import add_audit, audit, path

# A command imports what it needs when it is called: no command needs everything.


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="oralib" if Path(sys.argv[0]).stem == "oralib" else "python -m oralib",
        description="Rerun the book's work, or audit a training of your own.",
    )
    parser.add_argument("--version", action="version", version=f"oralib {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add_audit(commands)
    _add_plan(commands)
    _add_conformity(commands)
    _add_run(commands)
    _add_sweep(commands)
    chosen = parser.parse_args(arguments)
    trouble = 2 if chosen.command is audit else 1  # there 1 means a refuted claim
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
        return trouble


# ------------------------------------------------------------------------------------- plan


def _add_plan(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "plan",
        help="plan the audit of a training with DP-SGD",
        description="How to audit a training with DP-SGD in one run: how many canaries, where, how "
        "many guesses, and the bound to expect.",
    )
    parser.add_argument(
        "--epsilon", type=float, help="the claimed ε; by default computed from --sigma"
    )
    parser.add_argument("--delta", type=float, required=True, help="the claimed δ")
    parser.add_argument(
        "--d",
        type=int,
        required=True,
        help="coordinates for the canaries: weights that you add to the model for them, not the "
        "size of your model",
    )
    parser.add_argument("--steps", type=int, required=True, help="the number of steps")
    parser.add_argument(
        "--sample-rate",
        type=float,
        required=True,
        help="the probability that an element is in a batch",
    )
    parser.add_argument(
        "--beta", type=float, default=0.05, help="how often the bound may fail, by default 0.05"
    )
    parser.add_argument(
        *("--most", "--canaries"),
        type=int,
        metavar="N",
        help="use at most this many canaries, by default 150 d but at most a million; each "
        "is one more example in your training and slows it down",
    )
    parser.add_argument(
        "--sigma", type=float, help="the claimed noise multiplier; by default from --epsilon"
    )
    parser.add_argument(
        "--accountant",
        choices=("rdp", "pld"),
        default="rdp",
        help="which accountant converts between ε and noise, by default rdp",
    )
    parser.add_argument(
        "--aim",
        choices=("bound", "refute"),
        default="bound",
        help="bound (the default): the largest bound on an honest training; refute: refute the "
        "claim if the noise is much smaller than stated (the plan says how much)",
    )
    parser.add_argument(
        "--trials", type=int, default=40, help="number of simulated audits, by default 40"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the simulation, by default 0")
    parser.set_defaults(command=_plan)


def _plan(chosen: argparse.Namespace) -> int:
    from oralib import _jit
    from oralib.planning import expected_outcomes, plan_audit
    from oralib.tables import show

    if _jit._FOLDER is None or not any(_jit._FOLDER.rglob("hopping.*.nbi")):
        print("the first run compiles the kernels, which takes about a minute", file=sys.stderr)
    given = {name: value for name, value in vars(chosen).items() if name != "command"}
    plan = plan_audit(given.pop("epsilon"), given.pop("delta"), **given)
    print(plan)
    if plan.trials:
        outcomes = expected_outcomes(plan, trials=min(plan.trials, 20), seed=chosen.seed)
        trials = outcomes.pop("trials").iloc[0]
        heads = {"right": f"right of {plan.k}", "bound": "bound", "refuted": "share refuted"}
        print(f"\nWhat to expect, from {trials} simulated audits of each kind, ± standard error:\n")
        print(show(outcomes, heads, digits={"right": 1, "bound": 2, "refuted": 2}, index="bug"))
    return 0


# ------------------------------------------------------------------------------- conformity


def _add_conformity(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "conformity",
        help="check whether released gradients look like those of the stated training",
        description="Compare the noisy gradients of a training, in units of its clipping "
        "threshold, with what the stated noise and sample rate would give. It says nothing about "
        "privacy, but it finds wrong noise long before a bound on ε does. The exit status is 1 if "
        "the training does not look like the stated one, and 2 if the test cannot be run.",
    )
    parser.add_argument(
        "file",
        type=path,
        metavar="FILE.npz",
        help="the arrays gradients (a row for each step, a column for each coordinate) and "
        "included (the coins); for canaries that hop also places, a row of Canaries.places for "
        "each step; without it canary i stays on coordinate i %% d. Canaries.write_released "
        "writes this file",
    )
    parser.add_argument("--sigma", type=float, required=True, help="the stated noise multiplier")
    parser.add_argument(
        "--sample-rate",
        type=float,
        required=True,
        help="the probability that an element is in a batch",
    )
    parser.add_argument(
        "--beta",
        type=float,
        default=0.05,
        help="how often an honest training may fail this test, by default 0.05",
    )
    parser.set_defaults(command=_conformity)


def _conformity(chosen: argparse.Namespace) -> int:
    import numpy as np

    from oralib import DpSgd, conformity

    beta = _check.real("beta", chosen.beta, 0, 1, interval="()")
    try:
        arrays = dict(np.load(chosen.file))
        gradients, included = arrays["gradients"], arrays["included"].astype(bool)
        steps, d = gradients.shape
    except (OSError, KeyError, ValueError, AttributeError) as error:
        said = "must be an .npz file with the arrays gradients, T rows and d columns, and included"
        raise ValueError(f"{chosen.file} {said}: {error}") from None
    stated = DpSgd(included.size, d, steps, chosen.sample_rate, chosen.sigma)
    found = conformity(stated, gradients, included, places=arrays.get("places"))
    if "places" not in arrays:
        print(f"places    none in the file: canary i is taken to stay on coordinate i % {d}")
    for name in ("signal", "spread", "steps"):
        print(f"{name:<10}{getattr(found, name):+.2f}")
    print(f"p-value   {found.p_value:.3g}")
    doubted = found.p_value < beta
    print(f"verdict   {'not' if doubted else 'nothing speaks against'} the stated training")
    return int(doubted)


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
    parser.add_argument("--out", type=path, metavar="DIR", help="where to write")
    parser.add_argument(
        "--force", action="store_true", help="rename an existing folder of that name"
    )
    parser.add_argument("--list", action="store_true", help="show chapters and their parameters")
    parser.set_defaults(command=_run)


def _run(chosen: argparse.Namespace) -> int:
    runs = _runs()
    if chosen.list:
        asked = [runs.find_chapter(chosen.chapter)] if chosen.chapter else runs.chapters()
        print("\n\n".join(_described(chapter) for chapter in asked))
        return 0
    if chosen.chapter is None:
        raise ValueError("run needs a chapter; --list shows them")
    chapter = runs.find_chapter(path(chosen.chapter))
    given = _assignments(chosen.parameters)
    try:
        folder, record = runs.run_chapter(
            chapter, given, chosen.out, force=chosen.force, progress=True
        )
    except runs.RunFailed as error:
        print(f"{chapter.name} failed: {error}", file=sys.stderr)
        return 1
    width = max(map(len, record["results"]), default=0)
    for name, value in record["results"].items():
        print(f"{name:<{width}}  {value}")
    print(f"{folder} ({record['provenance']['seconds']} s)")
    return 0


def _runs() -> Any:
    try:
        from oralib import runs
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{error.name} is not installed: pip install '.[runs]' in the repository"
        ) from None
    return runs


def _described(chapter: Any) -> str:
    """The chapter and its parameters, one per line."""
    width = max(map(len, chapter.parameters), default=0)
    lines = [
        f"  {entry.name:<{width}}  {entry.type:<5}  {entry.default}  {entry.meaning}"
        for entry in chapter.parameters.values()
    ]
    return "\n".join([chapter.name, *lines])


def _assignments(words: Sequence[str]) -> dict[str, str]:
    """``["epsilon=4", "trials=50"]`` as a dictionary of strings."""
    given: dict[str, str] = {}
    for word in words:
        name, _, value = (part.strip() for part in word.partition("="))
        if not name or not value:
            raise ValueError(f"-p needs name=value, got -p {word}")
        if name in given:
            raise ValueError(f"{name} is given twice")
        given[name] = value
    return given


# ------------------------------------------------------------------------------------ sweep


def _add_sweep(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "sweep",
        help="run a chapter at every point of a grid",
        description="Run a chapter at every point of a grid file. The same command goes on where "
        "an earlier one was interrupted. The exit status is 1 if a point failed.",
    )
    parser.add_argument("grid", type=path, metavar="GRID.yml")
    parser.add_argument(
        "--out", type=path, metavar="DIR", help="where to write, by default runs/GRID"
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="number of processes on this machine"
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler to use instead")
    parser.set_defaults(command=_sweep)


def _sweep(chosen: argparse.Namespace) -> int:
    runs = _runs()
    grid = runs.read_grid(chosen.grid)
    out = Path("runs") / chosen.grid.stem if chosen.out is None else chosen.out
    done = runs.sweep_grid(grid, out, workers=chosen.workers, scheduler=chosen.scheduler)
    print(done.table.to_string(index=False, max_rows=60, float_format="{:.6g}".format))
    print(f"{len(done.table)} of {len(grid.points)} points: {done.folder}")
    return 1 if done.failures else 0


def console() -> NoReturn:
    """The whole process: ``python -m oralib``, and the script ``oralib``."""
    for stream in (sys.stdout, sys.stderr):  # folder names may contain bytes that are not text
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        status = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        status = 130
    except OSError as error:  # the reader has stopped, as head does, or the disk is full
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = 141 if isinstance(error, BrokenPipeError) else 2
    except Exception:  # a bug in our code; Python's own status, 1, means a refuted claim
        traceback.print_exc()
        status = 2
    sys.exit(status)


if __name__ == "__main__":
    console()

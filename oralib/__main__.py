"""The command line: ``python -m oralib``, or ``oralib``, and a command."""

import argparse
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from oralib import _check

# What a command needs is imported when it is called: none of them needs all.


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status."""
    parser = argparse.ArgumentParser(
        prog="oralib" if Path(sys.argv[0]).stem == "oralib" else "python -m oralib",
        description="Rerun the book's work, or audit a training of your own.",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_audit(commands)
    _add_plan(commands)
    _add_run(commands)
    _add_sweep(commands)
    chosen = parser.parse_args(arguments)
    trouble = 2 if chosen.command is _audit else 1  # where 1 is that of a refuted claim
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


def _path(word: str) -> Path:
    """A path; ``~`` is home also where shells leave it, as in ``--out=~/runs``."""
    try:
        return Path(word).expanduser()
    except RuntimeError as error:  # there is no such user
        raise argparse.ArgumentTypeError(f"{word}: {error}") from None


# ------------------------------------------------------------------------------------ audit


def _add_audit(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "audit",
        help="audit a training of your own by the scores of its canaries",
        description="A valid lower bound on ε from a file of canaries, CSV or Parquet, with the "
        "columns score and included, or guess and truth, and, if canaries have names, id. The exit "
        "status is 0, or 1 if --claim is refuted, or 2 if the audit cannot be made or cannot judge "
        "the claim.",
        epilog="Each canary must have been included by a fair coin of its own; to include just "
        "half of them is not covered. Coins are 1 or 0, true or false, yes or no, or 1 or -1. "
        "Scores are high for canaries that seem to have been included. A guess is written like a "
        "coin, and an empty cell is no guess (where coins are 1 or -1, so is 0). For guesses, "
        "--guesses says how many were fixed in advance; without it their number was left to the "
        "output.",
    )
    parser.add_argument("file", type=_path, metavar="FILE", help="a CSV or Parquet file")
    parser.add_argument("--delta", type=float, required=True, help="the δ of the claim")
    parser.add_argument(
        "--beta", type=float, default=0.05, help="how often the bound may fail, by default 0.05"
    )
    number = parser.add_mutually_exclusive_group()
    number.add_argument(
        "--guesses", type=int, metavar="K", help="the number of guesses, fixed in advance"
    )
    number.add_argument(
        "--split",
        type=float,
        metavar="SHARE",
        help="the share of the canaries on which the number of guesses is chosen, while the others "
        "are audited: the default, 0.2",
    )
    number.add_argument(
        "--grid",
        type=_numbers,
        metavar="K,K,...",
        help="several numbers of guesses, fixed in advance, each tested at β / m",
    )
    parser.add_argument(
        "--side",
        choices=("both", "included"),
        help="guess the highest scores as included and the lowest as left out, which is the "
        "default, or only the former",
    )
    parser.add_argument("--claim", type=float, metavar="EPSILON", help="the ε that is claimed")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--out", type=_path, metavar="DIR", help="a new folder for report.json and a figure"
    )
    parser.add_argument(
        "--seed", type=int, help="of the split, and of the order of equal scores, by default 0"
    )
    parser.set_defaults(command=_audit)


def _numbers(word: str) -> list[int]:
    try:
        return [int(part) for part in word.split(",")]
    except ValueError:
        said = f"must be whole numbers with commas between them, such as 50,100, got {word!r}"
        raise argparse.ArgumentTypeError(said) from None


def _audit(chosen: argparse.Namespace) -> int:
    """Status 1 is kept for a claim that is refuted, so all troubles have status 2."""
    import json

    from oralib import _folders
    from oralib.scores.file import read_scores

    if chosen.claim is not None:
        _check.real("claim", chosen.claim, 0, interval="[)")
    if chosen.out is not None:
        _folders.check_new(chosen.out)
    file = read_scores(chosen.file)
    audit, draw = _audit_of(file, chosen)
    content = {
        **{"file": str(chosen.file), "sha256": file.digest, "oralib": version("oralib")},
        **{"claim": chosen.claim, "refuted": None, **audit.as_dict()},
    }
    if chosen.claim is not None and audit.plausible_coins:
        content["refuted"] = audit.refutes(chosen.claim)
    text = json.dumps(content, indent=2, allow_nan=False)
    if chosen.out is not None:
        files = {"report.json": f"{text}\n".encode()}
        if audit.plausible_coins:
            files["figure.png"] = draw()
        _folders.write_new(chosen.out, files)
    print(text if chosen.json else audit.report(chosen.claim))
    if chosen.out is not None and not chosen.json:
        print(f"written   {chosen.out}")
    if not audit.plausible_coins:
        print(f"error: {audit.notes[0]}", file=sys.stderr)
        return 2
    return 1 if content["refuted"] else 0


def _audit_of(file: Any, chosen: argparse.Namespace) -> tuple[Any, Any]:
    """The audit of a file, and what draws its figure."""
    import numpy as np

    from oralib import Counts, scores

    given = {"delta": chosen.delta, "beta": chosen.beta}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the report says it
        if file.kind == "guess":
            for name in ("split", "grid", "side", "seed"):
                if getattr(chosen, name) is not None:
                    raise ValueError(f"--{name} is for scores, and {chosen.file} has guesses")
            audit = scores.audit_guesses(file.values, file.coins, guesses=chosen.guesses, **given)
        else:
            given |= {"side": chosen.side or "both", "seed": chosen.seed or 0}
            number = {name: getattr(chosen, name) for name in ("guesses", "split", "grid")}
            audit = scores.audit_scores(file.values, file.coins, **number, **given)

    def draw() -> bytes:

        from oralib import figures

        if file.kind == "guess":
            fixed = audit.number == "fixed"
            counts = Counts(np.array([audit.v]), np.array([audit.r]), audit.n, r_fixed=fixed)
            picture = figures.guess_audit(
                *scores.bounds_by_beta(counts, delta=audit.delta),
                shown=(audit.beta, audit.bound),
                right=(audit.v, audit.r),
                estimate=audit.estimate,
                claim=chosen.claim,
            )
        else:
            curve = scores.bounds_by_guesses(file.values, file.coins, **given)
            shown = (audit.r, audit.bound)
            picture = figures.score_audit(*curve, shown=shown, tried=audit.grid, claim=chosen.claim)
        return bytes(picture._repr_png_()[0])

    return audit, draw


# ------------------------------------------------------------------------------------- plan


def _add_plan(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "plan",
        help="plan the audit of a training with DP-SGD",
        description="How to audit a training with DP-SGD in one run: how many canaries, where, how "
        "many guesses, and the bound to expect.",
    )
    parser.add_argument(
        "--epsilon", type=float, help="the claimed privacy level; by default that of --sigma"
    )
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
        *("--most", "--canaries"),
        type=int,
        metavar="N",
        help="the largest number of canaries, by default 150 d, and at most a million",
    )
    parser.add_argument(
        "--sigma", type=float, help="the claimed noise multiplier; by default that of --epsilon"
    )
    parser.add_argument(
        "--accountant",
        choices=("rdp", "pld"),
        default="rdp",
        help="which makes the noise from ε, or ε from the noise, by default rdp",
    )
    parser.add_argument(
        "--aim",
        choices=("bound", "refute"),
        default="bound",
        help="the largest bound for an honest training, which is the default; or to refute the "
        "claim if the noise is half of what is stated, or less",
    )
    parser.add_argument("--trials", type=int, default=40, help="simulated audits, by default 40")
    parser.add_argument("--seed", type=int, default=0, help="of the simulation, by default 0")
    parser.set_defaults(command=_plan)


def _plan(chosen: argparse.Namespace) -> int:
    from oralib import _jit
    from oralib.planning import expected_outcomes, plan_audit
    from oralib.tables import show

    if _jit._FOLDER is None or not any(_jit._FOLDER.rglob("hopping.*.nbi")):
        print("at first use kernels are compiled, which takes about a minute", file=sys.stderr)
    given = {name: value for name, value in vars(chosen).items() if name != "command"}
    plan = plan_audit(given.pop("epsilon"), given.pop("delta"), **given)
    print(plan)
    if plan.trials:
        outcomes = expected_outcomes(plan, trials=min(plan.trials, 20), seed=chosen.seed)
        trials = outcomes.pop("trials").iloc[0]
        heads = {"right": f"right of {plan.k}", "bound": "bound", "refuted": "share refuted"}
        print(f"\nWhat to expect, by {trials} simulated audits of each kind, ± standard error:\n")
        print(show(outcomes, heads, digits={"right": 1, "bound": 2, "refuted": 2}, index="bug"))
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
        "--force", action="store_true", help="rename an existing folder of this name aside"
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
    chapter = runs.find_chapter(_path(chosen.chapter))
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
        raise ValueError(f"{error.name} is not installed: pip install 'oralib[runs]'") from None
    return runs


def _described(chapter: Any) -> str:
    """The chapter and its parameters, one a line."""
    width = max(map(len, chapter.parameters), default=0)
    lines = [
        f"  {entry.name:<{width}}  {entry.type:<5}  {entry.default}  {entry.meaning}"
        for entry in chapter.parameters.values()
    ]
    return "\n".join([chapter.name, *lines])


def _assignments(words: Sequence[str]) -> dict[str, str]:
    """``["epsilon=4", "trials=50"]`` as a dictionary of texts."""
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
    parser.add_argument("grid", type=_path, metavar="GRID.yml")
    parser.add_argument(
        "--out", type=_path, metavar="DIR", help="where to write, by default runs/GRID"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes on this machine")
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
    for stream in (sys.stdout, sys.stderr):  # names of folders may have bytes that are no text
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        status = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        status = 130
    except OSError as error:  # somebody has read enough, as head does; or the disk is full
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = 141 if isinstance(error, BrokenPipeError) else 2
    except Exception:  # a mistake of ours; Python's own status, 1, is that of a refuted claim
        traceback.print_exc()
        status = 2
    sys.exit(status)


if __name__ == "__main__":
    console()

"""The command line: ``python -m oralib``, or ``oralib``, and a command."""

import argparse
import contextlib
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from errno import EMFILE, ENFILE, ENOMEM
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from oralib import _check, _extra, _signals

# What a command needs is imported when it is called: none of them needs all. Until all of it is
# there, Ctrl-C ends the process at once; then a command that has something to clean up calls
# raise_from_now_on. Those that only compute do not: an exception that comes while Numba compiles or
# runs a kernel turns into another one.

#: A kernel and a worker have about fifty files open at once; where they cannot, they end without a
#: word, or never begin.
OPEN_FILES = 64


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status."""
    started = "oralib" if _signals.is_script() else "python -m oralib"
    parser = argparse.ArgumentParser(
        prog=started, description="Rerun the book's work, or audit a training of your own."
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_audit(commands)
    _add_claims(commands)
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
    except MemoryError:
        print("error: this needs more memory than there is", file=sys.stderr)
        return trouble
    except KeyboardInterrupt as error:
        return _signals.ended(error)


def _path(word: str) -> Path:
    """A path; ``~`` is home also where shells leave it, as in ``--out=~/runs``."""
    try:
        return Path(word).expanduser()
    except RuntimeError as error:  # there is no such user
        raise argparse.ArgumentTypeError(f"{word}: {error}") from None


def _check_ready(command: str) -> None:
    """That what chapters need is installed, and that their processes can open enough files."""
    try:
        _extra.check_runs(command)
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None
    with contextlib.suppress(ImportError):  # Windows has no such limit
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if 0 <= most < OPEN_FILES:  # infinity is -1 in some systems
            raise ValueError(
                f"{command} opens up to {OPEN_FILES} files at once in each of its processes, and "
                f"{most} are allowed here; allow more, for example by ulimit -n 1024"
            )


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

    from oralib import _folders, scores
    from oralib._score_file import read_scores

    if chosen.claim is not None:
        _check.real("claim", chosen.claim, 0, interval="[)")
    try:
        if chosen.out is not None:
            _folders.check_new(chosen.out)
        file = read_scores(chosen.file)
        audit, figure = _audit_of(file, chosen, scores)
        content = {
            **{"file": str(chosen.file), "sha256": file.digest, "oralib": version("oralib")},
            **{"claim": chosen.claim, "refuted": None, **audit.as_dict()},
        }
        if chosen.claim is not None and audit.plausible_coins:
            content["refuted"] = audit.refutes(chosen.claim)
        text = json.dumps(content, indent=2, allow_nan=False)
        if chosen.out is not None:
            pictures = {} if figure is None else {"figure.png": figure()}
            _signals.raise_from_now_on()
            try:
                _folders.write_new(chosen.out, {"report.json": f"{text}\n".encode(), **pictures})
            except OSError as error:  # which may name no file, or one that is unseen
                said = error.strerror or error
                raise ValueError(f"{chosen.out} cannot be written: {said}") from None
            _signals.end_from_now_on()
        print(text if chosen.json else audit.report(chosen.claim))
        if chosen.out is not None and not chosen.json:
            print(f"written   {chosen.out}")
        sys.stdout.flush()
    except MemoryError:
        raise ValueError(f"the audit of {chosen.file} needs more memory than there is") from None
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        raise ValueError(f"{error.strerror or error}{where}") from None
    if not audit.plausible_coins:
        print(f"error: {audit.notes[0]}", file=sys.stderr)
        return 2
    return 1 if content["refuted"] else 0


def _audit_of(file: Any, chosen: argparse.Namespace, scores: Any) -> tuple[Any, Any]:
    """The audit of a file, and what draws its figure, if it is valid."""
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

    def figure() -> bytes:
        from oralib import figures

        if file.kind == "guess":
            fixed = audit.number == "fixed"
            counts = scores.Counts(audit.v, audit.r, n=audit.n, r_fixed=fixed)
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
        return picture._repr_png_()[0]

    return audit, figure if audit.plausible_coins else None


# ----------------------------------------------------------------------------------- claims


def _add_claims(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "claims",
        help="check the claims of the paper",
        description="Check the claims of the paper and print the verdicts. The exit status is 1 "
        "if one of them is not as expected.",
    )
    parser.add_argument(
        "--only",
        metavar="LABEL",
        action="append",
        help="check this claim alone (or its number); give it again for another one",
    )
    parser.add_argument(
        "--mutants",
        action="store_true",
        help="also try small changes of every constant and direction, which each check must reject",
    )
    parser.set_defaults(command=_claims)


def _claims(chosen: argparse.Namespace) -> int:
    from tqdm import tqdm

    from oralib import claims

    asked = claims.ledger()
    if chosen.only is not None:
        wanted = [claims.find(name).number for name in chosen.only]
        asked = [claim for claim in asked if claim.number in wanted]
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
        "--force", action="store_true", help="replace an earlier run; other folders never are"
    )
    parser.add_argument("--list", action="store_true", help="show chapters and their parameters")
    parser.set_defaults(command=_run)


def _run(chosen: argparse.Namespace) -> int:
    _check_ready("run")
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
    _check_ready("sweep")
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
        if interrupt := _interrupt_behind(error):
            return _signals.ended(interrupt, "; the same command goes on from here")
        if error.errno is None:  # of Dask, about a connection
            print(f"the sweep has ended: {error}; the same command goes on", file=sys.stderr)
        else:
            print(f"{out} cannot be written: {error.strerror or error}", file=sys.stderr)
        return 1
    if len(done.table):
        print(runs.as_text(done.table))
    print(f"{len(done.table)} of {len(grid.points)} points: {done.path}")
    if done.failures:
        print(f"{len(done.failures)} of {len(grid.points)} points failed", file=sys.stderr)
    return 1 if done.failures else 0


def _interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The interrupt while a cluster that was closed because of it has failed to close."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error


def console() -> NoReturn:
    """The whole process: ``python -m oralib``, and the script ``oralib``."""
    status = 0
    sys.excepthook = sys.__excepthook__  # all is imported
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
        status = 141 if isinstance(error, BrokenPipeError) else 2
    except Exception:  # a mistake of ours; Python's own status, 1, is that of a refuted claim
        traceback.print_exc()
        status = 2
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

"""The command line: ``python -m oralib``, or ``oralib``, and a command."""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from oralib import __version__, _check
from oralib._audit_command import add_audit, audit, path

# A command imports what it needs when it is called: no command needs everything.


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="oralib" if Path(sys.argv[0]).stem == "oralib" else "python -m oralib",
        description="Audit a training of your own.",
    )
    parser.add_argument("--version", action="version", version=f"oralib {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add_audit(commands)
    _add_plan(commands)
    _add_conformity(commands)
    chosen = parser.parse_args(arguments)
    # Status 1 of an audit means a refuted claim.
    return run_command(chosen, trouble=2 if chosen.command is audit else 1)


def run_command(chosen: argparse.Namespace, *, trouble: int) -> int:
    """The status of a command: 2 after a wrong argument, ``trouble`` if a file cannot be used."""
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


#: The columns of the table of bugs, and their digits.
_SHOWN = {"right": 1, "bound": 2, "refuted": 2}


def _plan(chosen: argparse.Namespace) -> int:
    from oralib import _jit
    from oralib.planning import expected_outcomes, plan_audit

    if _jit._FOLDER is None or not any(_jit._FOLDER.rglob("hopping.*.nbi")):
        print("the first run compiles the kernels, which takes about a minute", file=sys.stderr)
    given = {name: value for name, value in vars(chosen).items() if name != "command"}
    plan = plan_audit(given.pop("epsilon"), given.pop("delta"), **given)
    print(plan)
    if plan.trials:
        outcomes = expected_outcomes(plan, trials=min(plan.trials, 20), seed=chosen.seed)
        trials = outcomes.pop("trials").iloc[0]
        print(f"\nWhat to expect, from {trials} simulated audits of each kind, ± standard error:\n")
        print(f"{'bug':<28}{f'right of {plan.k}':>16}{'bound':>16}{'share refuted':>16}")
        for bug, row in outcomes.iterrows():
            cells = (f"{row[x]:.{d}f} ± {row[f'{x}_se']:.{d}f}" for x, d in _SHOWN.items())
            print(f"{bug:<28}" + "".join(f"{cell:>16}" for cell in cells))
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


def process(main: Callable[[], int]) -> NoReturn:
    """End the process with the status of a command line, whatever happens to it."""
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


def console() -> NoReturn:
    """The whole process: ``python -m oralib``, and the script ``oralib``."""
    process(main)


if __name__ == "__main__":
    console()

"""``oraudit run train.py ...``: a script that trains with Opacus, and the audit of what it does."""

import argparse
import os
import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from oraudit.report import EXIT

__all__ = ["add", "run"]

#: The exit status of a usage error, as of every command.
USAGE = 2

#: The worst exit status first.
WORST = (EXIT["failed"], EXIT["cannot tell"], EXIT["passed"])


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "run",
        help="run a script that trains with Opacus, and audit what it does",
        description="Run a script as Python does, and audit every training in it that Opacus "
        "makes private. The exit status is 0 if all passed, 1 if one failed, 3 if nothing can be "
        "told or the script ended in an error, 2 for a usage error.",
    )
    parser.add_argument(
        "--claim",
        nargs=2,
        type=float,
        metavar=("EPSILON", "DELTA"),
        help="the (ε, δ) that the training is said to have",
    )
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="NAME",
        help="a finding that is post-processing and meant, by the name that the report gives",
    )
    parser.add_argument("-m", dest="module", action="store_true", help="run a module, not a file")
    parser.add_argument("script", help="the script, or with -m the module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script is given")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the script under audit, print the report, and return the exit status."""
    if not options.module and not Path(options.script).is_file():
        print(f"oraudit run: there is no file {options.script}", file=sys.stderr)
        return USAGE
    try:
        from oraudit.ways.watch import watch
    except ModuleNotFoundError as missing:
        print(f"oraudit run: {missing.name} is not installed", file=sys.stderr)
        return USAGE
    claim = None if options.claim is None else (options.claim[0], options.claim[1])
    with watch(claim=claim, allow=options.allow, required=False) as audits:
        ended_well = _run_script(options.script, options.arguments, module=options.module)
    sys.stdout.flush()
    text = f"\n{audits}"
    status = EXIT[audits.status]
    if not ended_well:
        ended = "the script ended in an error: what comes after it was not seen"
        verdict = f"also      {ended}" if status == EXIT["failed"] else f"CANNOT TELL  {ended}"
        text = (
            f"{text}\n{verdict}" if status == EXIT["failed"] else f"\n{verdict}; until then\n{text}"
        )
        status = min(status, EXIT["cannot tell"], key=WORST.index)
    if audits.meeting is None:
        print(text)
        return status
    return audits.meeting.settle(status, text, worst=WORST, well=ended_well, say=_print_now)


def _print_now(text: str) -> None:
    """Print before another process ends this one."""
    print(text, flush=True)


def _run_script(script: str, arguments: Sequence[str], *, module: bool) -> bool:
    """Run a script as Python does; return whether it came to its end without an error."""
    with _as_if_started(script, arguments, module=module):
        try:
            if module:
                runpy.run_module(script, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
            return end.code in (None, 0)
        except BaseException as error:
            _print_error(error, script)
            return False
    return True


@contextmanager
def _as_if_started(script: str, arguments: Sequence[str], *, module: bool) -> Iterator[None]:
    """The arguments and the first place of imports that the script would have by itself."""
    argv = sys.argv
    path = list(sys.path)
    sys.argv = [script, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd() if module else str(Path(script).resolve().parent)
    try:
        yield
    finally:
        sys.argv = argv
        sys.path[:] = path


def _print_error(error: BaseException, script: str) -> None:
    """Print a traceback that begins in the script, not in what runs it."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != script:
        frames = frames.tb_next
    traceback.print_exception(type(error), error, frames or error.__traceback__)

"""``oraudit run train.py ...``: a script that trains with Opacus, and the audit of what it does."""

import argparse
import os
import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from oraudit.commands.common import (
    CANNOT_TELL,
    USAGE,
    Commands,
    add_claim,
    add_report,
    canaries,
    complain,
    formatted,
    saved,
)

__all__ = ["add", "run"]

DESCRIPTION = """\
Run a script unchanged, as Python does, and audit every training in it that
Opacus makes private. Its own arguments follow its name. The report is printed
at the end, and the exit status is that of the worst training.
"""

#: The line of a report on a script that did not come to its end.
INTERRUPTION = "the script ended in an error: what comes after it was not seen"

#: The exit statuses of audits, the worst first: failed, cannot tell, passed.
WORST = (1, CANNOT_TELL, 0)


def add(commands: Commands) -> None:
    """Add the command to a parser."""
    parser = formatted(
        commands,
        "run",
        help="run a script that trains with Opacus, and audit what it does",
        description=DESCRIPTION,
    )
    add_claim(parser)
    parser.add_argument(
        "--canaries",
        type=canaries,
        metavar="N",
        help="how many canaries join each training's clipped sums, for a lower bound on ε",
    )
    add_report(parser)
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
        complain("run", f"argument script: must be a file, got {options.script!r}, which is none")
        return USAGE
    try:
        from oraudit.ways.opacus.watch import watch
    except ModuleNotFoundError as missing:
        complain("run", f"{missing.name} is not installed")
        return USAGE
    from oraudit.report import EXIT

    with watch(
        canaries=options.canaries or 0, claim=options.claim, allow=options.allow, required=False
    ) as audits:
        ended_well = _run_script(options.script, options.arguments, module=options.module)
    sys.stdout.flush()
    text = f"\n{audits}"
    status = EXIT[audits.status]
    interruption = "" if ended_well else INTERRUPTION
    if options.report is not None and not saved(
        "run", options.report, lambda: audits.save(options.report, interrupted=interruption)
    ):
        status = min(status, CANNOT_TELL, key=WORST.index)
    if not ended_well:
        if status == EXIT["failed"]:
            text = f"{text}\nalso      {INTERRUPTION}"
        else:
            text = f"\nCANNOT TELL  {INTERRUPTION}; until then\n{text}"
        status = min(status, CANNOT_TELL, key=WORST.index)

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
    """Give a script the arguments and the first place of imports that it would have by itself."""
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

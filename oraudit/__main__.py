"""The command line: ``oraudit``, or ``python -m oraudit``, and a command."""

import argparse
from collections.abc import Sequence
from typing import NoReturn

from oraudit.commands import expect, run, scores
from oraudit.commands.common import STATUSES, process

#: All commands, in the order of the help text.
COMMANDS = (run, scores, expect)

#: The beginning of the help text.
DESCRIPTION = """\
Audit a training: is what ran what the accountant was told? A report says what
was looked at and what was not; with canaries it proves a lower bound on ε,
which is no estimate; and the exit status fails a build as a test does.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="oraudit",
        description=DESCRIPTION,
        epilog=STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    chosen = parser.parse_args(arguments)
    return int(chosen.run(chosen))


def console() -> NoReturn:
    """Run a command and end the process."""
    process(main)


if __name__ == "__main__":
    console()

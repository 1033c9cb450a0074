"""The command line: ``oraudit``, or ``python -m oraudit``, and a command."""

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from oraudit.commands import run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="oraudit", description="Audit a training: is what ran what the accountant was told?"
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (run,):
        command.add(commands)
    chosen = parser.parse_args(arguments)
    return int(chosen.run(chosen))


def console() -> NoReturn:
    """The whole process."""
    sys.exit(main())


if __name__ == "__main__":
    console()

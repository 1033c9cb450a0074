"""The command line: ``python -m oralib``, or ``oralib``, and a command."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from oralib import __version__
from oralib.commands import audit, plan
from oralib.commands.common import process, run_command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="oralib" if Path(sys.argv[0]).stem == "oralib" else "python -m oralib",
        description="Audit a training run of your own.",
    )
    parser.add_argument("--version", action="version", version=f"oralib {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (audit, plan):
        command.add(commands)
    chosen = parser.parse_args(arguments)
    # Status 1 of an audit means a refuted claim.
    return run_command(chosen, trouble=2 if chosen.command is audit.run else 1)


def console() -> NoReturn:
    """The whole process: ``python -m oralib``, and the script ``oralib``."""
    process(main)


if __name__ == "__main__":
    console()

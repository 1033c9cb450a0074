"""The command line: ``python -m oralib claims``."""

import argparse
import sys
from collections.abc import Sequence

from tqdm import tqdm


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m oralib", description="Rerun the book's work.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    claims = commands.add_parser(
        "claims",
        help="check every claim of the paper",
        description="Check every claim of the paper and print the verdicts. The exit status is 1 "
        "if one of them is not as expected.",
    )
    claims.add_argument("--only", metavar="LABEL", help="check this claim alone (or its number)")
    claims.set_defaults(command=_claims)
    chosen = parser.parse_args(arguments)
    try:
        return int(chosen.command(chosen))
    except ValueError as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _claims(chosen: argparse.Namespace) -> int:
    from oralib import claims  # its modules are many, and other commands do not need them

    asked = claims.ledger() if chosen.only is None else [claims.find(chosen.only)]
    verdicts = [
        claim.verdict()
        for claim in tqdm(asked, desc="checking", unit="claim", disable=None, leave=False)
    ]
    print(claims.Page(verdicts))
    return 0 if all(verdict.as_expected for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Check the claims of the paper: ``python -m ledger``."""

import argparse
import os
import sys
from collections.abc import Sequence

from tqdm import tqdm

import ledger


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the verdicts; return 1 if one is not as expected, 2 for an unknown claim."""
    parser = argparse.ArgumentParser(
        prog="python -m ledger",
        description="Check the claims of the paper and print the verdicts. The exit status is 1 "
        "if one of them is not as expected.",
    )
    parser.add_argument(
        "--only",
        metavar="LABEL",
        action="append",
        help="check only this claim (label or number); repeat the option for more claims",
    )
    parser.add_argument(
        "--mutants",
        action="store_true",
        help="also try small changes of every constant and direction, which each check must reject",
    )
    options = parser.parse_args(arguments)
    try:
        return _print(options.only, options.mutants)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader has stopped, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _print(only: Sequence[str] | None, mutants: bool) -> int:
    """Print the verdicts of all claims, or of some; return the exit status."""
    claims = ledger.claims()
    if only is not None:
        numbers = [ledger.find(name).number for name in only]
        claims = [claim for claim in claims if claim.number in numbers]
    verdicts = [
        claim.verdict(mutants=mutants)
        for claim in tqdm(claims, desc="checking", unit="claim", disable=None, leave=False)
    ]
    print(ledger.Page(verdicts), flush=True)
    if mutants:
        print(ledger.score(verdicts))
    return 0 if all(verdict.as_expected for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())

"""``oraudit scores FILE``: a judgement of canaries' scores in a file, wherever they come from."""

import argparse
from dataclasses import replace
from pathlib import Path

from oraudit.commands.common import (
    CANNOT_TELL,
    USAGE,
    Commands,
    Usage,
    add_claim,
    add_counts,
    add_report,
    add_training,
    clock,
    complain,
    formatted,
    saved,
    trainings,
)

__all__ = ["add", "run"]

DESCRIPTION = """\
Judge a file of canaries: a test of the stated training or of a claim, and a
lower bound on ε, which is no estimate. The report says what such an audit
finds, and how often; nothing but the scores is looked at.

FILE is CSV (UTF-8, gzipped or not) or Parquet with the columns score and
included, or guess and truth, and id if canaries have names. A separate fair
coin has decided whether each canary was included; coins are 1 or 0, true or
false, yes or no, or 1 or -1. A high score says that the canary seems to have
been included; a guess is written like a coin, and an empty cell is no guess.
"""


def add(commands: Commands) -> None:
    """Add the command to a parser."""
    parser = formatted(
        commands, "scores", help="judge a file of canaries' scores", description=DESCRIPTION
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="a CSV or Parquet file")
    add_training(parser, required=False)
    add_claim(parser)
    add_counts(parser)
    parser.add_argument(
        "--coins",
        choices=("independent", "balanced"),
        help="a coin for each canary (independent), or exactly half were included (balanced); by "
        "default independent, but exactly half of many are then refused",
    )
    parser.add_argument(
        "--adjacency",
        choices=("add-remove", "replace"),
        default="add-remove",
        help="what the claim protects: one example added or removed (the default), or replaced",
    )
    add_report(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Judge the file, print the report, and return the exit status."""
    from oraudit.scores.file import UnusableFile, read_scores

    try:
        training = None if options.training is None else trainings(options.training)
    except Usage as error:
        complain("scores", error)
        return USAGE
    from oraudit import audit_guesses, audit_scores
    from oraudit.canaries.count import Unusable
    from oraudit.report import judge_counts

    try:
        with clock(f"oraudit scores: reading and judging {options.file}"):
            file = read_scores(options.file)
            judge = audit_scores if file.kind == "score" else audit_guesses
            result = judge(
                file.values,
                file.coins,
                training=training,
                claim=options.claim,
                beta=options.beta,
                side=options.side,
                coins=options.coins,
                adjacency=options.adjacency,
            )
    except UnusableFile as error:
        complain("scores", error)
        return CANNOT_TELL
    except Unusable as error:  # all scores are equal, say
        complain("scores", f"{options.file}: {error}")
        return CANNOT_TELL
    except ValueError as error:  # options that do not go together
        complain("scores", error)
        return USAGE
    assert result.counts is not None
    counts = replace(result.counts, file=str(options.file), digest=file.digest)
    result = judge_counts(counts)
    print(result)
    print(f"file      {options.file}, SHA-256 {file.digest}")
    if options.report is not None and not saved(
        "scores", options.report, lambda: result.save(options.report)
    ):
        return CANNOT_TELL if result.exit == 0 else result.exit
    return result.exit

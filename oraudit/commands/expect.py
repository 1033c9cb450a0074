"""``oraudit expect``: the findings to expect of an audit with canaries."""

import argparse

from oraudit.commands.common import (
    USAGE,
    Commands,
    Usage,
    add_counts,
    add_training,
    canaries,
    clock,
    complain,
    formatted,
    trainings,
)

__all__ = ["add", "run"]

DESCRIPTION = """\
Say before a training what an audit of it with canaries will be able to tell:
how many guesses it makes, how many right ones refute the stated training,
how often too little noise is found, and which lower bound on ε to expect.
"""


def add(commands: Commands) -> None:
    """Add the command to a parser."""
    parser = formatted(
        commands,
        "expect",
        help="say what an audit with so many canaries will find",
        description=DESCRIPTION,
        statuses="exit status:\n  0  it is said\n  2  a usage error\n",
    )
    add_training(parser, required=True)
    parser.add_argument(
        "--canaries", type=canaries, required=True, metavar="N", help="the number of canaries"
    )
    add_counts(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print what to expect, and return the exit status."""
    from oraudit import expect

    try:
        training = trainings(options.training)
        with clock("oraudit expect: computing the law of the guesses"):
            expected = expect(training, options.canaries, beta=options.beta, side=options.side)
    except (Usage, ValueError) as error:
        complain("expect", error)
        return USAGE
    print(expected)
    return 0

"""``oralib plan``: how to audit a training run, and what to expect."""

import argparse
import sys
from typing import Any

from oralib._types import AIMS, WAYS
from oralib.commands.common import Commands, path
from oralib.planning import plan_audit, plan_black_box, plans_by_price
from oralib.planning.price import price_table
from oralib.planning.search import NoRefutationError

#: The options, and what --help says of each.
OPTIONS = """
--epsilon  the claimed ε; by default computed from --sigma
--delta  the claimed δ
--d  coordinates for the canaries: weights that you add to the model for them, not the size of your
model; by default as many as are of use
--steps  the number of steps
--sample-rate  the probability that an element is in a batch
--beta  how often the bound may fail, by default 0.05
--canaries  use at most this many canaries, by default 150 d but at most a million; as examples
(--way examples) they make the training longer
--examples  how many examples your training has: also print what 0 to 50%% more computation would
show, in both ways
--sigma  the noise multiplier of the training, for Opacus optimizer.noise_multiplier; by default
computed from --epsilon, but other accountants compute other noise
--accountant  which accountant converts between ε and noise, by default rdp
--aim  bound (the default): the largest bound on an honest training run; refute: refute the claim if
the noise is much smaller than stated (the plan says how much)
--way  how canaries come into the training: sum (the default), into the clipped sum of gradients
just before the noise, in milliseconds a step; examples, among your data, which costs as much as
other examples but tests sampling and clipping, too
--black-box  for a training run that shows only its last model, by a claim and a number of canaries
--trials  number of simulated audits, by default 40
--seed  seed of the simulation, by default 0
--out  write the plan into this file, for oralib audit --plan
"""

#: How they are read, if not as integers.
KINDS: dict[str, dict[str, Any]] = {
    **{name: {"type": float} for name in ("epsilon", "sample-rate", "beta", "sigma")},
    **{name: {"type": int, "metavar": "N"} for name in ("canaries", "examples")},
    "delta": {"type": float, "required": True},
    "accountant": {"choices": ("rdp", "pld")},
    "aim": {"choices": AIMS},
    "way": {"choices": WAYS},
    "black-box": {"action": "store_true"},
    "out": {"type": path, "metavar": "PLAN.json"},
}


def add(commands: Commands) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "plan",
        help="plan the audit of a training run with DP-SGD",
        description="How to audit a training run with DP-SGD: how many canaries, where, how many "
        "guesses, and the bound to expect.",
    )
    for option in OPTIONS.split("\n--")[1:]:
        name, words = option.split(maxsplit=1)
        parser.add_argument(f"--{name}", help=words, **KINDS.get(name, {"type": int}))
    parser.set_defaults(command=run)


def run(chosen: argparse.Namespace) -> int:
    """Print the plan, and a table of what an audit would show with and without bugs."""
    given = {name: value for name, value in vars(chosen).items() if value is not None}
    out, examples = given.pop("out", None), given.pop("examples", None)
    del given["command"]
    if given.pop("black_box"):
        if "epsilon" not in given:
            raise ValueError("--epsilon must be given with --black-box")
        if examples is not None:
            raise ValueError("--examples must be left out with --black-box, which costs nothing")
        used = ("epsilon", "delta", "canaries", "beta")
        black_box = plan_black_box(**{name: given[name] for name in used if name in given})
        if out is not None:
            black_box.save(out)
        print(black_box)
        return 0
    if "steps" not in given or "sample_rate" not in given:
        raise ValueError("--steps and --sample-rate must be given, unless with --black-box")
    words = "Looking for a plan and simulating audits: seconds to minutes, more in the first run, "
    print(f"{words}which compiles.", file=sys.stderr, flush=True)
    given.setdefault("epsilon", None)
    try:
        plan = plan_audit(**given)
    except NoRefutationError as error:
        raise ValueError(f"--{error}") from None
    if out is not None:
        plan.save(out)
    print(plan.text(examples))
    if examples is not None:
        others = ("aim", "way", "canaries", "trials")
        options = {name: value for name, value in given.items() if name not in others}
        print(f"\nWhat more computation shows, with {examples:,} examples of your own:\n")
        print(price_table(plans_by_price(examples, **options)))
    return 0

"""``oralib plan``: how to audit a training run, and what to expect."""

import argparse
import sys

from oralib.commands.common import Commands, path
from oralib.ground.types import ACCOUNTANTS, AIMS, WAYS
from oralib.planning import plan_audit, plan_black_box, plans_by_price
from oralib.planning.price import price_table


def add(commands: Commands) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "plan",
        help="plan the audit of a training run with DP-SGD",
        description="How to audit a training run with DP-SGD: how many canaries, where, how many "
        "guesses, and the bound to expect.",
    )
    option = parser.add_argument
    option("--epsilon", type=float, help="the claimed ε; by default computed from --sigma")
    option("--delta", type=float, required=True, help="the claimed δ")
    d = "weights that you add for the canaries, not the size of your model; by default enough"
    option("--d", type=int, help=d)
    option("--steps", type=int, help="the number of steps")
    rate = "the probability that an element is in a batch"
    option("--sample-rate", type=float, help=rate)
    option("--beta", type=float, help="how often the bound may fail, by default 0.05")
    canaries = "use at most this many canaries, by default 150 d but at most a million"
    option("--canaries", type=int, metavar="N", help=canaries)
    examples = "the number of your examples: also print what more canaries among them would show"
    option("--examples", type=int, metavar="N", help=examples)
    sigma = "the noise multiplier, for Opacus optimizer.noise_multiplier; by default from --epsilon"
    option("--sigma", type=float, help=sigma)
    accountant = "which accountant converts between ε and noise, by default rdp"
    option("--accountant", choices=ACCOUNTANTS, help=accountant)
    aim = "bound (the default): the largest bound; refute: refute the claim if noise is missing"
    option("--aim", choices=AIMS, help=aim)
    way = "how canaries enter the training: sum (the default), in the sum of clipped gradients; "
    way += "examples, among your data, which costs more, and tests sampling and clipping, too"
    option("--way", choices=WAYS, help=way)
    last = "for a training run that shows only its last model, by a claim and a number of canaries"
    option("--black-box", action="store_true", help=last)
    option("--trials", type=int, help="number of simulated audits, by default 40")
    option("--seed", type=int, help="seed of the simulation, by default 0")
    out = "write the plan into this file, for oralib audit --plan"
    option("--out", type=path, metavar="PLAN.json", help=out)
    parser.set_defaults(command=run)


def run(chosen: argparse.Namespace) -> int:
    """Print the plan, and a table of what an audit would show with and without bugs."""
    given = {name: value for name, value in vars(chosen).items() if value is not None}
    out = given.pop("out", None)
    del given["command"]
    if given.pop("black_box"):
        if "epsilon" not in given:
            raise ValueError("--epsilon must be given with --black-box")
        odd = [name for name in given if name not in ("epsilon", "delta", "canaries", "beta")]
        if odd:
            raise ValueError(f"--{odd[0].replace('_', '-')} must be left out with --black-box")
        black_box = plan_black_box(**given)
        if out is not None:
            black_box.save(out)
        print(black_box)
        return 0
    if "steps" not in given or "sample_rate" not in given:
        raise ValueError("--steps and --sample-rate must be given, unless with --black-box")
    examples = given.pop("examples", None)
    words = "Looking for a plan and simulating audits: seconds to minutes, more in the first run, "
    print(f"{words}which compiles.", file=sys.stderr, flush=True)
    given.setdefault("epsilon", None)
    plan = plan_audit(**given)
    if out is not None:
        plan.save(out)
    print(plan.text(examples))
    if examples is not None:
        others = ("aim", "way", "canaries", "trials")
        options = {name: value for name, value in given.items() if name not in others}
        print(f"\nWhat more canaries show, with {examples:,} examples of your own:\n")
        print(price_table(plans_by_price(examples, **options)))
    return 0

"""``oralib plan``: how to audit a training run, and what to expect."""

import argparse
import sys

from oralib._types import AIMS, WAYS
from oralib.commands.common import Commands, path
from oralib.planning import plan_audit, plan_black_box, plans_by_price
from oralib.planning.price import price_table
from oralib.planning.refute import NoRefutationError


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
    option(
        "--d",
        type=int,
        help="coordinates for the canaries: weights that you add to the model for them, not the "
        "size of your model; by default as many as are of use",
    )
    option("--steps", type=int, help="the number of steps")
    rate = "the probability that an element is in a batch"
    option("--sample-rate", type=float, help=rate)
    option("--beta", type=float, default=0.05, help="how often the bound may fail, by default 0.05")
    option(
        "--canaries",
        type=int,
        metavar="N",
        help="use at most this many canaries, by default 150 d but at most a million; as examples "
        "(--way examples) they make the training longer",
    )
    option(
        "--examples",
        type=int,
        metavar="N",
        help="how many examples your training has: also print what 0 to 50%% more computation "
        "would show, in both ways",
    )
    option(
        "--sigma",
        type=float,
        help="the noise multiplier of the training, for Opacus optimizer.noise_multiplier; by "
        "default computed from --epsilon, but other accountants compute other noise",
    )
    option(
        "--accountant",
        choices=("rdp", "pld"),
        default="rdp",
        help="which accountant converts between ε and noise, by default rdp",
    )
    option(
        "--aim",
        choices=AIMS,
        default="bound",
        help="bound (the default): the largest bound on an honest training run; refute: refute the "
        "claim if the noise is much smaller than stated (the plan says how much)",
    )
    option(
        "--way",
        choices=WAYS,
        default="sum",
        help="how canaries come into the training: sum (the default), into the clipped sum of "
        "gradients just before the noise, which costs nothing; examples, among your data, which "
        "costs as much as other examples but tests sampling and clipping, too",
    )
    black = "for a training run that shows only its last model, by a claim and a number of canaries"
    option("--black-box", action="store_true", help=black)
    option("--trials", type=int, default=40, help="number of simulated audits, by default 40")
    option("--seed", type=int, default=0, help="seed of the simulation, by default 0")
    file = "write the plan into this file, for oralib audit --plan"
    option("--out", type=path, metavar="PLAN.json", help=file)
    parser.set_defaults(command=run)


def run(chosen: argparse.Namespace) -> int:
    """Print the plan, and a table of what an audit would show with and without bugs."""
    if chosen.black_box:
        if chosen.epsilon is None:
            raise ValueError("--epsilon must be given with --black-box")
        if chosen.examples is not None:
            raise ValueError("--examples must be left out with --black-box, which costs nothing")
        n = 500 if chosen.canaries is None else chosen.canaries
        black_box = plan_black_box(chosen.epsilon, chosen.delta, n, beta=chosen.beta)
        if chosen.out is not None:
            black_box.save(chosen.out)
        print(black_box)
        return 0
    if chosen.steps is None or chosen.sample_rate is None:
        raise ValueError("--steps and --sample-rate must be given, unless with --black-box")
    print(
        "Looking for a plan and simulating audits: seconds to minutes, more in the first run, "
        "which compiles.",
        file=sys.stderr,
        flush=True,
    )
    skipped = ("command", "out", "black_box", "examples")
    options = {name: value for name, value in vars(chosen).items() if name not in skipped}
    try:
        plan = plan_audit(**options)
    except NoRefutationError as error:
        raise ValueError(f"--{error}") from None
    if chosen.out is not None:
        plan.save(chosen.out)
    print(plan.text(chosen.examples))
    if chosen.examples is not None:
        for name in ("aim", "way", "canaries", "trials"):
            options.pop(name)
        print(f"\nWhat more computation shows, with {chosen.examples:,} examples of your own:\n")
        print(price_table(plans_by_price(chosen.examples, **options)))
    return 0

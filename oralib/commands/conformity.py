"""``oralib conformity``: do released gradients look like those of the stated training?"""

import argparse

import numpy as np

from oralib import DpSgd, _check, conformity
from oralib._text import paragraphs
from oralib.commands.common import Commands, path
from oralib.scores.sentences import UNSEEN


def add(commands: Commands) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "conformity",
        help="check whether released gradients look like those of the stated training",
        description="Compare the noisy gradients of a training run, in units of its clipping "
        "threshold, with what the stated noise and sample rate would give. It says nothing about "
        "privacy, but it finds wrong noise long before a bound on ε does. The exit status is 1 if "
        "the training does not look like the stated one, and 2 if the test cannot be run.",
    )
    option = parser.add_argument
    option(
        "file",
        type=path,
        metavar="FILE.npz",
        help="the arrays gradients (a row for each step, a column for each coordinate) and "
        "included (the coins); for canaries that hop also places, a row of Canaries.places for "
        "each step; without it canary i stays on coordinate i %% d. Canaries.write_released "
        "writes this file",
    )
    option("--sigma", type=float, required=True, help="the stated noise multiplier")
    rate = "the probability that an element is in a batch"
    option("--sample-rate", type=float, required=True, help=rate)
    often = "how often an honest training run may fail this test, by default 0.05"
    option("--beta", type=float, default=0.05, help=often)
    parser.set_defaults(command=run)


def run(chosen: argparse.Namespace) -> int:
    """Status 1 if the training does not look like the stated one."""
    beta, _ = _check.beta_and_delta(chosen.beta)
    try:
        arrays = dict(np.load(chosen.file))
        gradients, included = arrays["gradients"], arrays["included"].astype(bool)
        steps, d = gradients.shape
    except (OSError, KeyError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{chosen.file} must be an .npz file with the arrays gradients, T rows and d columns, "
            f"and included: {error}"
        ) from None
    stated = DpSgd(included.size, d, steps, chosen.sample_rate, sigma=chosen.sigma)
    result = conformity(stated, gradients, included, places=arrays.get("places"))
    if "places" not in arrays:
        print(f"places    none in the file: canary i is taken to stay on coordinate i % {d}")
    depend = "neighbouring steps are" if result.steps >= 0 else "neighbouring steps are inversely"
    doubtful = result.p_value < beta
    verdict = "does not look" if doubtful else "looks"
    rows = [
        ("noise", f"{result.noise:.2f} of the stated (z = {result.spread:+.1f})"),
        ("canaries", f"{result.gradient:.2f} of the stated gradient (z = {result.signal:+.1f})"),
        ("steps", f"{depend} related by z = {result.steps:+.1f}, where honest ones give -3 to 3"),
        ("p-value", f"{result.p_value:.3g}"),
        ("verdict", f"this training {verdict} like the stated one, as far as these gradients show"),
        ("unseen", UNSEEN),
    ]
    print(paragraphs(rows))
    return int(doubtful)

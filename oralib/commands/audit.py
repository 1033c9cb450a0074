"""``oralib audit``: a file of canaries in, a verdict and a report out."""

import argparse
import json
import os
import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from oralib import __version__, audit_guesses, audit_scores
from oralib.bounds.assumptions import ASSUMPTIONS, Assumption, bound_assuming
from oralib.commands.common import Commands, clock, path
from oralib.ground.text import rounded_down
from oralib.ground.types import ADJACENCIES, COINS, SIDES
from oralib.planning.file import load_plan
from oralib.scores import ScoreAudit
from oralib.scores.columns import ScoreFile
from oralib.scores.page import page

#: The exit status of a verdict.
STATUS = {"not refuted": 0, "refuted": 1, "invalid": 2, "cannot test": 3, "unlike": 4}
STATUS["no claim"] = 0


def add(commands: Commands) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "audit",
        help="audit your own training by the scores of its canaries",
        description="A valid lower bound on ε from a file of canaries, CSV or Parquet, with the "
        "columns score and included, or guess and truth, and an optional column id. The exit "
        "status is 0 if --claim is not refuted (or not given), 1 if it is refuted, 2 if the audit "
        "cannot be made or is not valid, 3 if the audit cannot test the claim because no outcome "
        "would have refuted it, and 4 if the claim is not refuted but the training looks unlike "
        "the stated one to oralib's own canaries.",
        epilog="A separate fair coin must have decided whether each canary was included; if "
        "exactly half of them were included by arrangement, say --coins balanced. Coins are 1 or "
        "0, true or false, yes or no, or 1 or -1. A high score says that the canary seems to have "
        "been included. A guess is written like a coin; an empty cell means no guess, and so does "
        "0 where coins are 1 or -1. With guesses, --guesses says how many were fixed in advance; "
        "without it the audit assumes that their number depends on the output.",
    )
    option = parser.add_argument
    option("file", type=path, metavar="FILE", help="a CSV file, gzipped or not, or Parquet")
    plan = "a file from oralib plan --out, which fixed claim, guesses and side before the training"
    option("--plan", type=path, metavar="PLAN.json", help=plan)
    option("--delta", type=float, help="the δ of the claim; needed without --plan")
    option("--beta", type=float, help="how often the bound may fail, by default 0.05")
    number = parser.add_mutually_exclusive_group().add_argument
    number("--guesses", type=int, metavar="K", help="the number of guesses, fixed in advance")
    split = "choose the number on this share of the canaries, by default 0.2; audit the others"
    number("--split", type=float, metavar="SHARE", help=split)
    several = "several numbers of guesses, fixed in advance, each tested at β / m"
    number("--grid", type=_numbers, metavar="K,K,...", help=several)
    side = "both (the default): guess the highest scores as included and the lowest as left out; "
    side += "included: only the highest; farthest: the scores farthest from 0, by their sign"
    option("--side", choices=SIDES, help=side)
    option("--claim", type=float, metavar="EPSILON", help="the claimed ε")
    balanced = "balanced: exactly half of the canaries, drawn at random, were included; "
    balanced += "independent: each had a fair coin of its own, even if exactly half are in"
    option("--coins", choices=COINS, help=balanced)
    protects = "what the claim protects: one example added or removed (the default), or replaced"
    option("--adjacency", choices=ADJACENCIES, help=protects)
    assume = "also print the bound under a stronger assumption, by which no claim is judged: the "
    assume += "trade-off curve of Gaussian noise (gaussian), independent Gaussian noise on each "
    assume += "canary (independent), or independent normal scores (normal); needs --guesses"
    option("--assume", choices=ASSUMPTIONS, help=assume)
    option("--json", action="store_true", help="print the result as JSON")
    folder = "a new folder for report.html, report.txt, report.json, figure.png and the plan"
    option("--out", type=path, metavar="DIR", help=folder)
    option("--title", help="which training it was, for the report")
    seed = "seed of the split and of the order of equal scores, by default 0"
    option("--seed", type=int, help=seed)
    parser.set_defaults(command=run)


def _numbers(word: str) -> list[int]:
    try:
        return [int(part) for part in word.split(",")]
    except ValueError:
        must = "must be whole numbers with commas between them, such as 50,100"
        raise argparse.ArgumentTypeError(f"{must}, got {word!r}") from None


def run(chosen: argparse.Namespace) -> int:
    """Status 1 is reserved for a refuted claim, so every error has status 2."""
    from oralib.scores.file import read_scores  # pandas, for which other commands need not wait

    if chosen.plan is None and chosen.delta is None:
        raise ValueError("--delta or --plan must be given, got neither")
    if chosen.out is not None and os.path.lexists(chosen.out):
        raise ValueError(f"{chosen.out} exists; give another folder")
    with clock(f"reading {chosen.file}, and auditing its canaries"):
        file = read_scores(chosen.file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the report says the same
            audit = _audit(file, chosen) if chosen.plan is None else _audit_by_plan(file, chosen)
    if audit.status == "cannot test":
        most, best = max(audit.grid, default=audit.r), rounded_down(audit.best_bound)
        only = f"warning: even {most:,} right of {most:,} guesses would only show {best}"
        print(f"{only}, so this audit cannot test a claim of ε = {audit.claim:g}", file=sys.stderr)
    source = _given(chosen, "title")
    source |= {"audited": f"{datetime.now(UTC):%Y-%m-%d}, by oralib {__version__}"}
    source |= {"file": str(chosen.file), "sha256": file.digest}
    assumed = None if chosen.assume is None else _bound_assuming(file, audit, chosen.assume)
    result = {**source, "assumed": assumed, **audit.as_dict()}
    report, text = audit.report(), json.dumps(result, indent=2, allow_nan=False)
    if chosen.out is not None:
        picture = None if audit.problem else _picture(file, audit, chosen.coins == "balanced")
        files = {"report.txt": f"{report}\n".encode(), "report.json": f"{text}\n".encode()}
        files["report.html"] = page(audit, picture, source).encode()
        if picture is not None:
            files["figure.png"] = picture
        if chosen.plan is not None:
            files["plan.json"] = chosen.plan.read_bytes()
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        # The folder appears when it is complete: on a full disk there is none.
        with TemporaryDirectory(prefix=".report-", dir=chosen.out.parent) as hidden:
            written = Path(hidden, "report")
            written.mkdir()
            for name, content in files.items():
                (written / name).write_bytes(content)
            written.rename(chosen.out)
    if chosen.json:
        print(text)
    else:
        print(report)
        if assumed is not None:
            bound = rounded_down(assumed["bound"])
            print(f"assuming  {assumed['assumption']}: ε is at least {bound}")
            print("          If that assumption is wrong, this number may be too large.")
        if chosen.out is not None:
            print(f"written   {chosen.out}")
    if audit.problem:
        print(f"error: {audit.problem}", file=sys.stderr)
    return STATUS[audit.status]


def _audit_by_plan(file: ScoreFile, chosen: argparse.Namespace) -> ScoreAudit:
    """All that the plan has fixed is left out of the command."""
    fixed = "delta", "beta", "claim", "guesses", "side", "split", "grid", "seed", "coins"
    for name in (*fixed, "adjacency"):
        if getattr(chosen, name) is not None:
            raise ValueError(f"--{name} must be left out with --plan, which has fixed it")
    if file.kind != "score":
        raise ValueError(f"--plan is for scores, and {chosen.file} has guesses")
    try:
        return load_plan(chosen.plan).audit(file.values, file.coins, file.seen)
    except ValueError as error:
        raise ValueError(f"--plan {chosen.plan}: {error}") from None


def _audit(file: ScoreFile, chosen: argparse.Namespace) -> ScoreAudit:
    options = _given(chosen, "delta", "beta", "guesses", "claim", "coins", "adjacency")
    only_scores = _given(chosen, "split", "grid", "side", "seed")
    if file.kind == "score":
        return audit_scores(file.values, file.coins, **options, **only_scores, seen=file.seen)
    for name in only_scores:
        raise ValueError(f"--{name} is for scores, and {chosen.file} has guesses")
    return audit_guesses(file.values, file.coins, **options)


def _given(chosen: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Those of these options that were given."""
    return {name: value for name in names if (value := getattr(chosen, name)) is not None}


def _bound_assuming(file: ScoreFile, audit: ScoreAudit, assume: Assumption) -> dict[str, Any]:
    """The bound under a stronger assumption, and the assumption in words."""
    if audit.choice != "fixed" or file.kind == "guess" or not audit.delta:
        raise ValueError("--assume needs scores, a number of guesses (--guesses), and a delta > 0")
    data: dict[str, Any] = {"scores": file.values, "included": file.coins == 1}
    data |= {"delta": audit.delta, "beta": audit.beta}
    bound, words = bound_assuming(assume, audit.counts, **data)
    return {"name": assume, "bound": bound, "assumption": words}


def _picture(file: ScoreFile, audit: ScoreAudit, balanced: bool) -> bytes | None:
    """The picture of the report; a sentence and None if there is nothing to draw it with."""
    try:
        from oralib.scores import picture  # matplotlib, which is optional
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        print("The report has no picture: matplotlib is not installed.", file=sys.stderr)
        return None
    if file.kind == "guess" or balanced:  # the other one is for independent coins
        return picture.guess_picture(audit)
    return picture.score_picture(audit, file.values, file.coins == 1)

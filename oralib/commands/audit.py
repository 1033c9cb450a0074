"""``oralib audit``: a file of canaries in, a verdict and a report out."""

import argparse
import json
import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from oralib import AuditPlan, ScoreAudit, __version__, _check, audit_guesses, audit_scores
from oralib._text import rounded_down
from oralib.bounds.assumptions import ASSUMPTIONS, bound_assuming
from oralib.bounds.valid import COINS
from oralib.commands.common import Commands, path, sign_of_life
from oralib.scores.columns import SIDES, ScoreFile
from oralib.scores.page import page
from oralib.scores.result import ADJACENCIES

#: The exit status of a verdict.
STATUS = {"not refuted": 0, "refuted": 1, "invalid": 2, "cannot test": 3}

#: The status if the claim is not refuted, but the canaries saw another noise than the stated one.
NOT_AS_STATED = 4


def add(commands: Commands) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "audit",
        help="audit your own training by the scores of its canaries",
        description="A valid lower bound on ε from a file of canaries, CSV or Parquet, with the "
        "columns score and included, or guess and truth, and an optional column id. The exit "
        "status is 0 if --claim is not refuted (or not given), 1 if it is refuted, 2 if the audit "
        "cannot be made or is not valid, 3 if the audit cannot test the claim because no outcome "
        "would have refuted it, and 4 if the claim is not refuted but oralib's own canaries saw "
        "that the training does not look like the stated one.",
        epilog="A separate fair coin must have decided whether each canary was included; if "
        "exactly half of them were included by arrangement, say --coins balanced. Coins are 1 or "
        "0, true or false, yes or no, or 1 or -1. A high score says that the canary seems to have "
        "been included. A guess is "
        "written like a coin; an empty cell means no guess, and so does 0 where coins are 1 or -1. "
        "With guesses, --guesses says how many were fixed in advance; without it the audit assumes "
        "that their number depends on the output.",
    )
    option = parser.add_argument
    option("file", type=path, metavar="FILE", help="a CSV file, gzipped or not, or Parquet")
    option(
        "--plan",
        type=path,
        metavar="PLAN.json",
        help="a file by oralib plan --out, in which δ, β, the claim, the number of guesses, grades "
        "if any, and the side were fixed before the training",
    )
    option("--delta", type=float, help="the δ of the claim; needed without --plan")
    option("--beta", type=float, help="how often the bound may fail, by default 0.05")
    number = parser.add_mutually_exclusive_group().add_argument
    number("--guesses", type=int, metavar="K", help="the number of guesses, fixed in advance")
    number(
        "--split",
        type=float,
        metavar="SHARE",
        help="choose the number of guesses on this share of the canaries and audit the others; "
        "the default, with a share of 0.2",
    )
    several = "several numbers of guesses, fixed in advance, each tested at β / m"
    number("--grid", type=_numbers, metavar="K,K,...", help=several)
    grades = "numbers of guesses and what a right one counts, fixed in advance: with 160:5,240:2 "
    grades += "the surest 160 count 5 points each if right, and the next 240 count 2"
    number("--grades", type=_grades, metavar="K:W,K:W,...", help=grades)
    option(
        "--side",
        choices=SIDES,
        help="both (the default): guess the highest scores as included and the lowest as left "
        "out; included: only the highest; farthest: the scores farthest from 0, by their sign",
    )
    option("--claim", type=float, metavar="EPSILON", help="the claimed ε")
    balanced = "balanced: exactly half of the canaries, drawn at random, were included; "
    balanced += "independent: each had a fair coin of its own, even if exactly half are in"
    option("--coins", choices=COINS, help=balanced)
    protects = "what the claim protects: one example added or removed (the default), or replaced"
    option("--adjacency", choices=ADJACENCIES, help=protects)
    option(
        "--assume",
        choices=ASSUMPTIONS,
        help="also print the bound under an assumption stronger than (ε, δ)-DP: the trade-off "
        "curve of Gaussian noise (gaussian), independent Gaussian noise on each canary "
        "(independent), or independent normal scores (normal); --claim is not judged by it; needs "
        "--guesses",
    )
    option("--json", action="store_true", help="print the result as JSON")
    folder = "a new folder for report.html, report.txt, report.json and figure.png"
    option("--out", type=path, metavar="DIR", help=folder)
    seed = "seed of the split and of the order of equal scores, by default 0"
    option("--seed", type=int, help=seed)
    parser.set_defaults(command=run)


def _numbers(word: str) -> list[int]:
    try:
        return [int(part) for part in word.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be whole numbers with commas between them, such as 50,100, got {word!r}"
        ) from None


def _grades(word: str) -> list[tuple[int, int]]:
    try:
        pairs = (pair.split(":") for pair in word.split(","))
        return [(int(number), int(weight)) for number, weight in pairs]
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be like 160:5,240:2, got {word!r}") from None


def run(chosen: argparse.Namespace) -> int:
    """Status 1 is reserved for a refuted claim, so every error has status 2."""
    from oralib.scores.file import read_scores  # pandas, for which other commands need not wait

    plan = None if chosen.plan is None else _apply_plan(chosen)
    if chosen.delta is None:
        raise ValueError("--delta or --plan must be given, got neither")
    claim = chosen.claim
    if claim is not None:
        _check.real("claim", claim, 0, interval="[)")
    if chosen.out is not None and os.path.lexists(chosen.out):
        raise ValueError(f"{chosen.out} exists; give another folder")
    with sign_of_life(f"reading {chosen.file}, and auditing its canaries ..."):
        file = read_scores(chosen.file)
        audit = _audit(file, chosen)
    if plan is not None:
        audit = replace(audit, notes=(*_plan_notes(plan, file, chosen.plan), *audit.notes))
    verdict = None if claim is None else audit.verdict(claim)
    if verdict == "cannot test":
        most, best = max(audit.grid, default=audit.r), rounded_down(audit.best_bound)
        only = f"warning: even {most:,} right of {most:,} guesses would only show {best}"
        print(f"{only}, so this audit cannot test a claim of ε = {claim:g}", file=sys.stderr)
    source = {"file": str(chosen.file), "sha256": file.digest, "oralib": __version__}
    assumed = None if chosen.assume is None else _bound_assuming(file, audit, chosen)
    result = {**source, "claim": None, "verdict": None, "refuted": None, "assumed": assumed}
    result |= audit.as_dict(claim)
    report, text = audit.report(claim), json.dumps(result, indent=2, allow_nan=False)
    if chosen.out is not None:
        picture = (
            None if audit.problem else _picture(file, audit, claim, chosen.coins == "balanced")
        )
        files = {
            "report.html": page(audit, claim, picture, source).encode(),
            "report.txt": f"{report}\n".encode(),
            "report.json": f"{text}\n".encode(),
        }
        if picture is not None:
            files["figure.png"] = picture
        chosen.out.mkdir(parents=True)
        for name, content in files.items():
            (chosen.out / name).write_bytes(content)
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
        return 2
    if verdict in (None, "not refuted") and audit.seen is not None and not audit.seen.as_stated:
        return NOT_AS_STATED
    return 0 if verdict is None else STATUS[verdict]


def _apply_plan(chosen: argparse.Namespace) -> AuditPlan:
    """Take from the plan what it has fixed."""
    plan = AuditPlan.load(chosen.plan)
    fixed: dict[str, Any] = {
        "delta": plan.delta,
        "beta": plan.beta,
        "claim": plan.epsilon,
        "guesses": None if plan.grades else plan.k,
        "grades": plan.grades or None,
        "side": "farthest",
    }
    for name in (*fixed, "split", "grid", "seed"):
        if getattr(chosen, name) is not None:
            raise ValueError(f"--{name} must be left out with --plan, which has fixed it")
    vars(chosen).update(fixed)
    return plan


def _plan_notes(plan: AuditPlan, file: ScoreFile, where: Path) -> list[str]:
    """Which plan it was, whether the file fits it, and which bugs it would have found."""
    notes = [f"claim, side and number of guesses were fixed in {where}, digest {plan.digest}"]
    dpsgd, seen = plan.dpsgd, file.seen
    if file.coins.size != dpsgd.n or (seen and seen.planned != dpsgd.steps):
        raise ValueError(
            f"--plan must be the plan of these canaries: {where} has {dpsgd.n:,} canaries and "
            f"{dpsgd.steps:,} steps, and the scores have other ones"
        )
    if seen and seen.sigma != dpsgd.sigma:
        notes.append(f"the training states σ = {seen.sigma:g}, and the plan {dpsgd.sigma:g}")
    if seen is None:
        notes.append("what the canaries saw of the training is missing from this file")
    bugs = [f"{bug.bug} {bug.refuted:.0%}" for bug in plan.outcomes if bug.bug != "none"]
    if bugs:
        when = "" if seen is None or seen.steps == seen.planned else ", with all planned steps"
        found = f"so often did simulated audits by this plan{when} refute the claim"
        notes.append(f"{found}, had there been a bug: {', '.join(bugs)}")
    return notes


def _audit(file: ScoreFile, chosen: argparse.Namespace) -> ScoreAudit:
    options = _given(chosen, "delta", "beta", "guesses", "coins", "adjacency")
    only_scores = _given(chosen, "split", "grid", "grades", "side", "seed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the report says the same
        if file.kind == "score":
            options |= {**only_scores, "claim": chosen.claim, "seen": file.seen}
            return audit_scores(file.values, file.coins, **options)
        for name in only_scores:
            raise ValueError(f"--{name} is for scores, and {chosen.file} has guesses")
        return audit_guesses(file.values, file.coins, **options)


def _given(chosen: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Those of these options that were given."""
    return {name: value for name in names if (value := getattr(chosen, name)) is not None}


def _bound_assuming(
    file: ScoreFile, audit: ScoreAudit, chosen: argparse.Namespace
) -> dict[str, Any]:
    """The bound under a stronger assumption, and the assumption in words."""
    if chosen.guesses is None or file.kind == "guess":
        raise ValueError("--assume needs scores, and a number of guesses: give --guesses")
    options = {"delta": audit.delta, "beta": audit.beta}
    columns = {"scores": file.values, "included": file.coins == 1}
    bound, words = bound_assuming(chosen.assume, audit.counts, **options, **columns)
    return {"name": chosen.assume, "bound": bound, "assumption": words}


def _picture(
    file: ScoreFile, audit: ScoreAudit, claim: float | None, balanced: bool
) -> bytes | None:
    """The picture of the report; a sentence and None if there is nothing to draw it with."""
    try:
        from oralib.scores import picture  # matplotlib, which is optional
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        print("The report has no picture: matplotlib is not installed.", file=sys.stderr)
        return None
    if file.kind == "guess" or balanced:  # the other one is for independent coins
        return picture.guess_picture(audit, claim)
    return picture.score_picture(audit, file.values, file.coins == 1, claim)

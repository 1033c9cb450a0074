"""``oralib audit``: a file of canaries in, a verdict and a report out."""

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

from oralib import __version__, _check


def path(word: str) -> Path:
    """A path; ``~`` means home even where the shell does not expand it, as in ``--out=~/runs``."""
    try:
        return Path(word).expanduser()
    except RuntimeError as error:  # there is no such user
        raise argparse.ArgumentTypeError(f"{word}: {error}") from None


def add_audit(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "audit",
        help="audit your own training by the scores of its canaries",
        description="A valid lower bound on ε from a file of canaries, CSV or Parquet, with the "
        "columns score and included, or guess and truth, and an optional column id. The exit "
        "status is 0 if --claim is not refuted (or not given), 1 if it is refuted, 2 if the audit "
        "cannot be made or is not valid, and 3 if the audit cannot test the claim because no "
        "outcome would have refuted it.",
        epilog="A separate fair coin must have decided whether each canary was included; "
        "including exactly half of them is not covered. Coins are 1 or 0, true or false, yes or "
        "no, or 1 or -1. A high score says that the canary seems to have been included. A guess is "
        "written like a coin; an empty cell means no guess, and so does 0 where coins are 1 or -1. "
        "With guesses, --guesses says how many were fixed in advance; without it the audit assumes "
        "that their number depends on the output.",
    )
    parser.add_argument("file", type=path, metavar="FILE", help="a CSV or Parquet file")
    parser.add_argument("--delta", type=float, required=True, help="the δ of the claim")
    parser.add_argument(
        "--beta", type=float, default=0.05, help="how often the bound may fail, by default 0.05"
    )
    number = parser.add_mutually_exclusive_group()
    number.add_argument(
        "--guesses", type=int, metavar="K", help="the number of guesses, fixed in advance"
    )
    number.add_argument(
        "--split",
        type=float,
        metavar="SHARE",
        help="choose the number of guesses on this share of the canaries and audit the others; "
        "the default, with a share of 0.2",
    )
    number.add_argument(
        "--grid",
        type=_numbers,
        metavar="K,K,...",
        help="several numbers of guesses, fixed in advance, each tested at β / m",
    )
    parser.add_argument(
        "--side",
        choices=("both", "included", "farthest"),
        help="both (the default): guess the highest scores as included and the lowest as left "
        "out; included: only the highest; farthest: the scores farthest from 0, by their sign",
    )
    parser.add_argument("--claim", type=float, metavar="EPSILON", help="the claimed ε")
    parser.add_argument(
        "--coins",
        choices=("independent",),
        help="declare that the coins were independent although exactly half of them are heads",
    )
    parser.add_argument(
        "--assume",
        choices=("dp", "gaussian", "independent", "normal"),
        help="also print the bound under an assumption stronger than (ε, δ)-DP: the trade-off "
        "curve of Gaussian noise (gaussian), independent Gaussian noise on each canary "
        "(independent), or independent normal scores (normal); --claim is not judged by it; needs "
        "--guesses",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--out",
        type=path,
        metavar="DIR",
        help="a new folder for report.html, report.txt, report.json and figure.png",
    )
    parser.add_argument(
        "--seed", type=int, help="seed of the split and of the order of equal scores, by default 0"
    )
    parser.set_defaults(command=audit)


def _numbers(word: str) -> list[int]:
    try:
        return [int(part) for part in word.split(",")]
    except ValueError:
        said = f"must be whole numbers with commas between them, such as 50,100, got {word!r}"
        raise argparse.ArgumentTypeError(said) from None


def audit(chosen: argparse.Namespace) -> int:
    """Status 1 is reserved for a refuted claim, so every error has status 2."""
    import json

    from oralib import _folders
    from oralib.scores.file import read_scores
    from oralib.scores.page import page
    from oralib.scores.result import down

    if chosen.claim is not None:
        _check.real("claim", chosen.claim, 0, interval="[)")
    if chosen.out is not None:
        _folders.check_new(chosen.out)
    file = read_scores(chosen.file)
    if chosen.claim is not None:
        _warn_if_blind(file, chosen)
    found, draw = _audit_of(file, chosen)
    made = {"file": str(chosen.file), "sha256": file.digest, "oralib": __version__}
    assumed = None if chosen.assume is None else _assumed(file, found, chosen)
    content = {**made, "claim": None, "verdict": None, "refuted": None, "assumed": assumed}
    text = json.dumps(content | found.as_dict(chosen.claim), indent=2, allow_nan=False)
    if chosen.out is not None:
        figure = None if found.problem else draw()
        files = {
            "report.html": page(found, chosen.claim, figure, made).encode(),
            "report.txt": f"{found.report(chosen.claim)}\n".encode(),
            "report.json": f"{text}\n".encode(),
            **({} if figure is None else {"figure.png": figure}),
        }
        _folders.write_new(chosen.out, files)
    print(text if chosen.json else found.report(chosen.claim))
    if assumed is not None and not chosen.json:
        print(f"assuming  {assumed['assumption']}: ε is at least {down(assumed['bound'])}")
        print("          If that assumption is wrong, this number may be too large.")
    if chosen.out is not None and not chosen.json:
        print(f"written   {chosen.out}")
    if found.problem:
        print(f"error: {found.problem}", file=sys.stderr)
        return 2
    return 0 if chosen.claim is None else STATUS[found.verdict(chosen.claim)]


#: The exit status of a verdict.
STATUS = {"not refuted": 0, "refuted": 1, "invalid": 2, "cannot test": 3}


def _warn_if_blind(file: Any, chosen: argparse.Namespace) -> None:
    """Warn before the audit if no outcome of it could refute the claim."""
    from math import isnan

    from oralib.scores.result import best_bound, down

    n, level = file.coins.size, chosen.beta
    fixed = chosen.guesses is not None or chosen.grid is not None
    if file.kind == "guess":
        most = chosen.guesses or sum(not isnan(guess) for guess in file.values)
    elif chosen.grid is not None:
        most, level = max(chosen.grid), level / len({*chosen.grid})
    elif chosen.guesses is not None:
        most = chosen.guesses
    else:
        most = n = n - round(n * (0.2 if chosen.split is None else chosen.split))
    if not 0 < most <= n or not 0 < level < 1:
        return  # the audit will refuse this
    best = best_bound(most, n, delta=chosen.delta, level=level, fixed=fixed)
    if best <= chosen.claim:
        print(
            f"warning: even {most:,} right of {most:,} guesses would only show {down(best)}, so "
            f"this audit cannot test a claim of ε = {chosen.claim:g}",
            file=sys.stderr,
        )


def _assumed(file: Any, found: Any, chosen: argparse.Namespace) -> dict[str, Any]:
    """The bound under a stronger assumption, and the assumption in words."""
    import numpy as np

    from oralib import Counts
    from oralib.bounds.assumptions import bound_assuming

    if chosen.guesses is None or file.kind == "guess":
        raise ValueError("--assume needs scores, and a number of guesses: give --guesses")
    counts = Counts(np.array([found.v]), np.array([found.r]), found.n, r_fixed=True)
    how = {"scores": file.values, "included": file.coins == 1}
    bound, words = bound_assuming(
        chosen.assume, counts, delta=chosen.delta, beta=chosen.beta, **how
    )
    return {"name": chosen.assume, "bound": bound, "assumption": words}


def _audit_of(file: Any, chosen: argparse.Namespace) -> tuple[Any, Any]:
    """The audit of a file, and the function that draws its figure."""
    import numpy as np

    from oralib import Counts, scores

    given = {"delta": chosen.delta, "beta": chosen.beta}
    how = {"coins": chosen.coins}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the report says it
        if file.kind == "guess":
            for name in ("split", "grid", "side", "seed"):
                if getattr(chosen, name) is not None:
                    raise ValueError(f"--{name} is for scores, and {chosen.file} has guesses")
            how["guesses"] = chosen.guesses
            audit = scores.audit_guesses(file.values, file.coins, **given, **how)
        else:
            given |= {"side": chosen.side or "both", "seed": chosen.seed or 0}
            how |= {name: getattr(chosen, name) for name in ("guesses", "split", "grid", "claim")}
            audit = scores.audit_scores(file.values, file.coins, **given, **how)

    def draw() -> bytes:
        from oralib.scores import picture

        if file.kind == "guess":
            fixed = audit.number == "fixed"
            counts = Counts(np.array([audit.v]), np.array([audit.r]), audit.n, r_fixed=fixed)
            curve = scores.bounds_by_beta(counts, delta=audit.delta)
            return picture.guess_picture(audit, *curve, chosen.claim)
        by_guesses = scores.bounds_by_guesses(file.values, file.coins, **given)
        return picture.score_picture(audit, *by_guesses, chosen.claim)

    return audit, draw

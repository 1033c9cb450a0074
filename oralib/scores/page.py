"""A report for somebody else, in one HTML file: for people who have not read the paper."""

from base64 import b64encode
from html import escape
from typing import Any

from oralib.scores.result import down, plain

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --soft: #f2f4f7; --line: #d5d9e0; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --paper: #16181c; --soft: #22262d; --line: #3a404a; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 46rem; color: var(--ink); background: var(--paper);
  font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.verdict { padding: 1rem; border-left: .4rem solid; border-radius: .3rem; background: var(--soft);
  font-size: 1.1rem; }
.refuted, .invalid { border-color: #d55e00; } .cannot { border-color: #e69f00; }
.not { border-color: #0072b2; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .4rem .6rem .4rem 0;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; min-width: 5.5rem; overflow-wrap: break-word; }
img { max-width: 100%; height: auto; background: #fff; border-radius: .3rem; }
@media (prefers-color-scheme: dark) { img { filter: invert(.91) hue-rotate(180deg); } }
"""


def table(rows: list[tuple[str, str]]) -> str:
    """Labels and what they say, as a table of HTML."""
    cells = "".join(f"<tr><th>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in rows)
    return f'<table style="text-align: left">{cells}</table>'


def page(audit: Any, claim: float | None, figure: bytes | None, made: dict[str, str]) -> str:
    """The whole page; ``figure`` is a PNG, and ``made`` says what the report was made of."""
    said = dict(audit.rows(claim))
    verdict = "none" if claim is None else audit.verdict(claim)
    parts = [f'<p class="verdict {verdict.split()[0]}"><strong>{escape(_headline(audit, claim))}']
    parts.append(f"</strong><br>{escape(_meaning(audit, verdict))}</p>")

    def section(title: str, *paragraphs: str) -> None:
        parts.append(f"<h2>{title}</h2>" + "".join(f"<p>{escape(text)}</p>" for text in paragraphs))

    if claim is not None:
        section(
            "What was claimed",
            f"That the training is {said['claim'].replace('-DP', '')}-differentially private. "
            "Differential privacy limits what a trained model can reveal about a single record of "
            f"its training data. ε = {claim:g} is the strength of the promise, and smaller is "
            f"stronger; δ = {plain(audit.delta)} allows for rare exceptions.",
        )
    section(
        "What was tested",
        "Records made for the purpose, called canaries, were put into the training data or left "
        "out, each by the toss of a fair coin. After the training somebody guessed from its output "
        "which of them had been put in. The more private a training is, the closer such guesses "
        "must come to tossing a coin.",
        *(f"Canaries: {said['canaries']}." for _ in range("canaries" in said)),
        f"Guesses: {said['guesses']}.",
    )
    shown = [f"Right guesses: {said['right']}."] if "right" in said else []
    section("What was shown", *shown, _sentence(said["shown"]))
    if figure is not None:
        data = b64encode(figure).decode()
        about = "The bound that was shown, beside those that other choices would have had."
        parts.append(f'<img alt="{about}" src="data:image/png;base64,{data}">')
        parts.append(
            f"<p><small>{about} Only the point that is called valid is a result.</small></p>"
        )
    section(
        "What it could not have seen",
        *([] if verdict == "refuted" else [f"In this audit, {said['power']}."]),
        "An audit looks at one training, through the canaries, scores and guesses that were "
        "chosen. A training that leaks in another way, or only about other records, passes it. "
        "That a claim is not refuted never proves it.",
    )
    parts.append("<h2>On which assumptions, and who has to vouch for them</h2>")
    parts.append(table([(who, f"{what}.") for who, what in _vouched(audit)]))
    if audit.notes:
        section("Notes", *map(_sentence, audit.notes))
    parts.append("<h2>All of it, in short</h2>")
    parts.append(table([*audit.rows(claim), *made.items()]))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Audit of a privacy claim</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>Audit of a privacy claim</h1>\n{chr(10).join(parts)}\n</body></html>\n"
    )


def _sentence(text: str) -> str:
    """A capital, if the first letter is not a Greek one, and a full stop."""
    return (text[0].upper() if text[0].isascii() else text[0]) + text[1:] + "."


def _headline(audit: Any, claim: float | None) -> str:
    if audit.problem:
        return "This audit is not valid: nothing has been shown."
    bound = f"ε is at least {down(audit.bound)}"
    if claim is None:
        return (
            f"The audit has shown that {bound}." if audit.bound else "The audit has shown nothing."
        )
    return {
        "refuted": f"The claim of ε = {claim:g} is refuted: {bound}.",
        "cannot test": f"This audit cannot test the claim of ε = {claim:g}.",
        "not refuted": f"The claim of ε = {claim:g} was not refuted.",
    }[audit.verdict(claim)]


def _meaning(audit: Any, verdict: str) -> str:
    return {
        "invalid": _sentence(audit.problem or "-"),
        "refuted": "The training reveals more than was promised. If the claim were true, guesses "
        f"would be so often right in at most {100 * audit.beta:g} of 100 such audits.",
        "cannot test": "No outcome of it could have refuted the claim, however much the training "
        "reveals. It says nothing for the claim, and nothing against it.",
        "not refuted": "The audit could have refuted it, and did not. That does not prove it.",
        "none": f"Such a statement is wrong in at most {100 * audit.beta:g} of 100 audits.",
    }["invalid" if audit.problem else verdict]


def _vouched(audit: Any) -> list[tuple[str, str]]:
    """Who has to vouch for which assumption."""
    number = audit.assumptions["bound"].rpartition("; ")[2]
    rows = [
        ("Whoever drew the canaries", "each was put in by a fair coin of its own, and not, say, "
         "exactly half of them"),
        ("Whoever ran the training", "it is the training that the claim is about, and the coins "
         "went nowhere but into its data"),
        ("Whoever made the scores", "they follow from the output of the training, never from the "
         "coins"),
        ("The auditor", f"{number}; and this is the only audit, not the best of several"),
    ]  # fmt: skip
    if audit.coins_p_value is not None:
        checked = f"the number of included canaries fits fair coins (p = {audit.coins_p_value:.2g})"
        rows.append(("Checked here", checked if audit.plausible_coins else audit.problem))
    return rows

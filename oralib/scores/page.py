"""A report for somebody else, in one HTML file: for people who have not read the paper."""

from base64 import b64encode
from collections.abc import Mapping
from html import escape

from oralib.ground.text import short
from oralib.scores.result import ScoreAudit
from oralib.scores.sentences import coins, headline, number_of_guesses, of_canaries, table

#: What was shown: which rows, and how their sentences begin.
_SHOWN = {"right": "Right guesses: ", "shown": "", "p-value": "The p-value of the claim is "}
_SHOWN |= {"training": "The training: "}

_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0 auto; padding: 1rem; max-width: 46rem; font: 1rem/1.55 system-ui, sans-serif;
  overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.verdict { padding: 1rem; border-left: .4rem solid; background: #8882; font-size: 1.1rem; }
.refuted, .invalid { border-color: #d55e00; } .cannot, .unlike { border-color: #e69f00; }
.not { border-color: #0072b2; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .4rem .6rem .4rem 0;
  border-bottom: 1px solid #8886; }
th { min-width: 5.5rem; overflow-wrap: break-word; }
img { max-width: 100%; }
@media (prefers-color-scheme: dark) { img { filter: invert(.91) hue-rotate(180deg); } }
"""


def page(audit: ScoreAudit, picture: bytes | None, source: Mapping[str, str]) -> str:
    """The whole page; ``picture`` is a PNG, and ``source`` says what was audited by what."""
    rows, claim, seen = audit.rows(), audit.claim, audit.seen
    says = dict(rows)
    result, meaning = (escape(_sentence(clause)) for clause in headline(audit))
    parts = [f'<p class="verdict {audit.status.split()[0]}"><strong>{result}</strong>']
    parts.append(f"<br>{meaning}</p>")

    def section(title: str, *paragraphs: str) -> None:
        parts.append(f"<h2>{title}</h2>" + "".join(f"<p>{escape(text)}</p>" for text in paragraphs))

    def said(labels: Mapping[str, str]) -> list[str]:
        return [_sentence(words + says[label]) for label, words in labels.items() if label in says]

    parts.append("<h2>Which training</h2>")
    parts.append(table([*source.items(), *_training(audit)]))
    if claim is not None:
        section(
            "What was claimed",
            f"That the training is ({claim:g}, {short(audit.delta)})-differentially private. "
            "Differential privacy limits what a trained model can reveal about a single record of "
            f"its training data. ε = {claim:g} is the strength of the promise, and smaller is "
            f"stronger; δ = {short(audit.delta)} allows for rare exceptions.",
        )
    what = "Records" if seen is None or seen.way == "examples" else "Gradients of records"
    section(
        "What was tested",
        f"{what} made for the purpose, called canaries, were put into the training or left "
        "out, each by the toss of a fair coin. From "
        f"{'its output' if seen is None else _LOOKED_AT} it was guessed which of them had been "
        "put in. The more private the run is, the closer such guesses must come to tossing a coin.",
        *said({"canaries": "Canaries: ", "guesses": "Guesses: "}),
    )
    section("What was shown", *said(_SHOWN))
    if picture is not None:
        data = b64encode(picture).decode()
        about = "The bound that was shown, beside those that other choices would have had."
        parts.append(f'<img alt="{about}" src="data:image/png;base64,{data}"><p><small>{about}')
        parts.append("Only the point that is called valid is a result.</small></p>")
    section(
        "What it could not have seen",
        *([] if audit.status == "refuted" else [f"In this audit, {says['power']}."]),
        *([] if seen is None else [_sentence(says["unseen"])]),
        "An audit looks at one training run, through the canaries, scores and guesses that were "
        "chosen. A training that leaks in another way, or only about other records, passes it. "
        "That a claim is not refuted never proves it.",
    )
    parts.append("<h2>On which assumptions, and who has to vouch for them</h2>")
    parts.append(table([(who, f"{what}.") for who, what in _guarantors(audit)]))
    if audit.notes:
        section("Notes", *map(_sentence, audit.notes))
    parts.append("<h2>All of it, in short</h2>")
    parts.append(table(rows))
    title = escape(f"Audit of a privacy claim: {source.get('title', '')}".rstrip(": "))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{title}</h1>\n{chr(10).join(parts)}\n</body></html>\n"
    )


#: What oralib's own canaries look at.
_LOOKED_AT = "the noisy gradients of its steps, on weights that were added for the canaries,"


def _training(audit: ScoreAudit) -> list[tuple[str, str]]:
    """What oralib's canaries know of the training."""
    if (seen := audit.seen) is None:
        return [("training", "not known here: ask whoever made the scores")]
    rows = [("steps", f"{seen.steps:,}, of {seen.planned:,} planned")]
    rows.append(("sample rate", f"{seen.sample_rate:g}, as the training states it"))
    rows.append(("noise", f"σ = {seen.sigma:g} clipping thresholds, as the training states it"))
    way = {
        "sum": "added to the sum of clipped gradients, just before the noise",
        "examples": "examples among those of the training",
    }[seen.way]
    return [*rows, ("canaries", way), ("software", seen.software or "not recorded")]


def _sentence(clause: str) -> str:
    """A capital, if the first letter is not a Greek one, and a full stop."""
    return (clause[0].upper() if clause[0].isascii() else clause[0]) + clause[1:] + "."


def _guarantors(audit: ScoreAudit) -> list[tuple[str, str]]:
    """Who has to vouch for which assumption."""
    rows = {
        "Whoever drew the canaries": coins(audit),
        "Whoever ran the training": "it is the training that the claim is about, and the coins "
        f"decided which canaries took part, and nothing else{of_canaries(audit)}",
        "Whoever made the scores": "they follow from the output of the training, never from coins",
        "The auditor": f"{number_of_guesses(audit)}; and this is the only audit, not the best of "
        "several",
    }
    if audit.coins_p_value is not None:
        fits = f"the number of included canaries fits fair coins (p = {audit.coins_p_value:.2g})"
        rows["Checked here"] = fits if audit.plausible_coins else audit.problem
    return list(rows.items())

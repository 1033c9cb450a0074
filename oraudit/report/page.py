"""The report as a page that needs no other file, for a browser, a printer or a notebook."""

from html import escape

from oraudit.report.card import NOT_GIVEN
from oraudit.report.facts import MEANING, Facts

__all__ = ["fragment", "page"]

_STYLE = """
.oraudit { --ink: #1c1f24; --soft: #555e6b; --paper: #ffffff; --line: #d9dee5; --panel: #f5f7f9;
  --good: #17693a; --bad: #b3191f; --open: #8a5300; --on: #ffffff; color-scheme: light;
  color: var(--ink); background: var(--paper); font: 16px/1.5 system-ui, sans-serif;
  max-width: 60rem; margin: 0 auto; padding: 1.2rem 1rem; overflow-wrap: anywhere; }
.oraudit header { border-left: .5rem solid var(--tone); padding: .1rem 0 .1rem 1rem; }
.oraudit h1 { font-size: 1rem; font-weight: 600; color: var(--soft); margin: 0; }
.oraudit .verdict { display: inline-block; background: var(--tone); color: var(--on);
  font-weight: 700; font-size: 1.5rem; padding: .1rem .8rem; border-radius: .3rem;
  margin: .3rem 0; }
.oraudit .headline { font-size: 1.1rem; margin: .3rem 0; }
.oraudit .headline::first-letter { text-transform: uppercase; }
.oraudit .meaning { margin: .3rem 0; font-weight: 600; }
.oraudit dl { display: grid; grid-template-columns: 11rem 1fr; gap: .5rem 1rem;
  margin: 1rem 0; }
.oraudit dt { font-weight: 600; }
.oraudit dd { margin: 0; }
.oraudit h2 { font-size: 1.05rem; margin: 1.5rem 0 .4rem; }
.oraudit table { border-collapse: collapse; width: 100%; font-size: .93rem; margin: 0; }
.oraudit th, .oraudit td { text-align: left; vertical-align: top; padding: .35rem .6rem;
  border-top: 1px solid var(--line); background: none; color: inherit; }
.oraudit th { font-weight: 600; width: 9rem; }
.oraudit .card th { width: 17rem; }
.oraudit .good { --tone: var(--good); } .oraudit .bad { --tone: var(--bad); }
.oraudit .open { --tone: var(--open); } .oraudit .plain { --tone: transparent; }
.oraudit tr[class] th { border-left: .3rem solid var(--tone); }
.oraudit .missing { color: var(--soft); font-style: italic; }
@media (prefers-color-scheme: dark) {
  .oraudit { --ink: #e8eaed; --soft: #a4adb8; --paper: #15181c; --line: #363c44; --panel: #1d2126;
    --good: #57c785; --bad: #ff7b7b; --open: #f0b35a; --on: #101214; color-scheme: dark; } }
@media (max-width: 40rem) {
  .oraudit dl { display: block; } .oraudit dd { margin-bottom: .6rem; }
  .oraudit th, .oraudit .card th { width: auto; min-width: 5.5rem; } }
@media print {
  .oraudit { --ink: #000; --soft: #444; --paper: #fff; --line: #bbb; --good: #17693a;
    --bad: #b3191f; --open: #8a5300; --on: #fff; color-scheme: light; font-size: 11pt;
    padding: 0; print-color-adjust: exact; }
  .oraudit tr, .oraudit dd { break-inside: avoid; } .oraudit h2 { break-after: avoid; } }
"""

_BODY_STYLE = """
body { margin: 0; background: #ffffff; }
@media (prefers-color-scheme: dark) { body { background: #15181c; } }
@media print { body { background: #ffffff; } }
"""


def page(facts: Facts) -> str:
    """Write a whole page, whose first screen says the verdict and answers four questions."""
    title = escape(f"Privacy audit: {facts.verdict}")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_BODY_STYLE}</style></head>\n"
        f"<body>\n{fragment(facts)}</body></html>\n"
    )


def fragment(facts: Facts) -> str:
    """Write the page's content for another page to include, such as a notebook."""
    answers = "\n".join(
        f"<dt>{escape(question)}</dt><dd>{escape(answer)}</dd>"
        for question, answer in facts.answers
    )
    rows = "\n".join(
        f'<tr class="{row.tone}"><th scope="row">{escape(row.name)}</th>'
        f"<td>{escape(row.words)}</td></tr>"
        for row in facts.rows
    )
    parts = [
        f"<style>{_STYLE}</style>",
        f'<article class="oraudit">\n<header class="{facts.tone}">',
        "<h1>Privacy audit of a training</h1>",
        f'<div class="verdict">{escape(facts.verdict)}</div>',
        f'<p class="meaning">{escape(MEANING[facts.status])}</p>',
        f'<p class="headline">{escape(facts.headline)}</p></header>',
        f'<dl class="answers">\n{answers}\n</dl>',
    ]
    if facts.rows:
        parts.append(f'<h2>In detail</h2>\n<table class="rows">\n{rows}\n</table>')
    if facts.card:
        parts.append(f'<h2>The training</h2>\n<table class="card">\n{_card(facts)}\n</table>')
    parts.append("</article>\n")
    return "\n".join(parts)


def _card(facts: Facts) -> str:
    lines = []
    for question, answer in facts.card:
        missing = ' class="missing"' if answer == NOT_GIVEN else ""
        lines.append(
            f'<tr><th scope="row">{escape(question)}</th><td{missing}>{escape(answer)}</td></tr>'
        )
    return "\n".join(lines)

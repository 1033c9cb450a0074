"""Repairs of pages that other extensions and the theme write, for eyes and screen readers."""

import re
from html import escape, unescape
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from sphinx_proof.nodes import proof_node

__all__ = [
    "describe",
    "description_of",
    "drop_repeated_ids",
    "improve_tables",
    "keep_punctuation",
    "mark_numbers",
    "repair",
    "repair_pages",
    "say",
    "setup",
]


def keep_punctuation(app, doctree, docname):
    """Keep the full stop after a formula, and an opening bracket before it, on its line."""
    for formula in list(doctree.findall(nodes.math)):
        parent = formula.parent
        place = parent.index(formula)
        before = parent[place - 1] if place else None
        after = parent[place + 1] if place + 1 < len(parent) else None
        start = re.search(r"[(\[“‘]*$", before)[0] if isinstance(before, nodes.Text) else ""
        stop = re.match(r"[^\s\w]*", after)[0] if isinstance(after, nodes.Text) else ""
        if not start and not stop:
            continue
        together = nodes.inline(classes=["nowrap"])
        parent.replace(formula, together)
        together += [nodes.Text(start), formula, nodes.Text(stop)]
        if start:  # by its place: other pieces of the text may be equal
            parent[place - 1] = nodes.Text(before.removesuffix(start))
        if stop:
            parent[place + 1] = nodes.Text(after.removeprefix(stop))


NUMERAL = re.compile(
    r"[-−+±<>≤≥≈]?\s*(\d[\d., \u202f]*(e[-+]?\d+)?\s*%?|inf|∞|nan|[-–—]|)", re.IGNORECASE
)


def mark_numbers(html: str) -> str:
    """Give the cells of every column of numbers, and its heading, the class ``number``.

    >>> mark_numbers("<tr><th>n</th><th>who</th></tr><tr><td>1</td><td>x</td></tr>")[:37]
    '<tr><th class="number">n</th><th>who<'
    """
    table = BeautifulSoup(html, "html.parser")
    rows = [row.find_all(["th", "td"]) for row in table.find_all("tr")]
    bodies = [row for row in rows if any(cell.name == "td" for cell in row)]
    width = max(map(len, bodies), default=0)
    for i in range(width):
        if all(len(row) == width and NUMERAL.fullmatch(row[i].text.strip()) for row in bodies):
            for row in rows:
                if i < len(row) and not row[i].has_attr("class"):
                    row[i]["class"] = "number"
    return str(table)


def improve_tables(app, doctree, docname):
    """Mark the numbers of tables in HTML, of pandas (class dataframe) and ours (class house)."""
    for raw in doctree.findall(nodes.raw):
        if "html" in raw.get("format", "") and re.search(r'class="(dataframe|house)', raw.astext()):
            raw.children = [nodes.Text(mark_numbers(raw.astext()))]


def drop_repeated_ids(app, doctree, docname):
    """Drop ids that every box of a page shares, after Sphinx has numbered what has an id."""
    for proof in doctree.findall(proof_node):
        proof[0]["classes"].append("proof-text")
        proof[0]["ids"] = []
    for section in doctree.findall(nodes.section):
        if section["ids"] and section["ids"][0].endswith("-content") and not section["names"]:
            section["ids"] = []


#: Faults in the HTML of docutils and of the theme, and what stands for them.
REPAIRS = (
    # A megabyte and a half that redraws the icons that the style sheet has already drawn.
    (r"<script[^>]*fontawesome\.js[^>]*></script>", ""),
    # The references are a list, so each of them is an item.
    ('role="doc-biblioentry"', 'role="listitem"'),
    # A button is named by its text; its icons say nothing.
    ('<summary aria-label="Toggle hidden content">', "<summary>"),
    (r'(search-button-field[^>]*?) title="Search" aria-label="Search"', r"\1"),
    (r'(<i class="theme-switch [^>]*?) title="[^"]*"', r'\1 aria-hidden="true"'),
    # The name of the book and the search are part of the page too.
    ('<div (class="sidebar-primary-items__start)', r'<div role="region" aria-label="Book" \1'),
    # The arrow beside a page that has pages below it says what it opens.
    ('<summary>(<span class="toctree-toggle")', r'<summary aria-label="Pages below this one">\1'),
    # An empty heading is not a heading.
    (r"<th( [^>]*)?>(\s*<p>\s*</p>\s*)?</th>", r"<td\1></td>"),
)


def repair_pages(app, exception):
    if exception is None and app.builder.format == "html":
        for path in Path(app.outdir).rglob("*.html"):
            path.write_text(repair(path.read_text(encoding="utf-8")), encoding="utf-8")


def repair(html):
    """Repair a page, so that a screen reader does not stumble.

    >>> repair('<div class="citation" role="doc-biblioentry">')
    '<div class="citation" role="listitem">'
    """
    for fault, repaired in REPAIRS:
        html = re.sub(fault, repaired, html)
    if 'class="math' not in html:  # the first page has it for the formulas of all other pages
        html = re.sub(r"<script[^>]*mathjax/[^>]*></script>", "", html)
    return re.sub(
        r'(<th(?: [^>]*)?>\s*<p>)(<span class="math[^>]*>(.*?)</span></p></th>)', say, html
    )


def say(heading):
    """Add words to a heading that is only a formula, for those who listen to the page."""
    text = re.sub(r"[\\(){}$]", "", heading[3])
    return f'{heading[1]}<span class="visually-hidden">{text}: </span>{heading[2]}'


#: The most characters of a description that search engines show.
DESCRIPTION = 160


def description_of(body: str) -> str:
    """The beginning of a page's first full paragraph in plain words, cut between two words.

    >>> page = "<p>Short.</p><p>An <b>audit</b> tests a promise from outside, in one run.</p>"
    >>> description_of(page)
    'An audit tests a promise from outside, in one run.'
    """
    for paragraph in re.findall(r"<p>(.*?)</p>", body, re.DOTALL):
        text = " ".join(re.sub(r"[\\](?:[()]|(?=[a-z]))|[{}$]", "", _text_of(paragraph)).split())
        if len(text) >= 50:
            break
    else:
        return ""
    if len(text) > DESCRIPTION:
        text = text[: DESCRIPTION - 1].rpartition(" ")[0] + "…"
    return text


def _text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


def describe(app, pagename, templatename, context, doctree):
    """Give every page a description, for search engines and previews of links."""
    text = description_of(context.get("body", "")) or f"A page of the book {app.config.html_title}."
    context["metatags"] = (
        f'{context.get("metatags", "")}<meta name="description" content="{escape(text)}" />'
    )


def setup(app):
    app.connect("doctree-resolved", keep_punctuation)
    app.connect("doctree-resolved", improve_tables)
    app.connect("doctree-resolved", drop_repeated_ids)
    app.connect("html-page-context", describe)
    app.connect("build-finished", repair_pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

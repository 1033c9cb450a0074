"""Statements of the paper under its own numbers.

A box ``:::{prf:theorem} Theorem 5.2 of the paper: when auditing is tight`` with
``:label: paper-theorem-5-2`` and ``:nonumber:`` keeps the paper's own number. Wherever the book
says "Theorem 5.2", this is a link to the box, and the search finds the box.
"""

import re
from itertools import groupby

from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging
from sphinx_proof.nodes import unenumerable_node

__all__ = [
    "ancestors",
    "join_texts",
    "label_of",
    "link_in_html",
    "link_mentions",
    "mentions",
    "name_statements",
    "setup",
    "strip_parentheses",
]

logger = logging.getLogger(__name__)

KINDS = "Definition|Theorem|Proposition|Lemma|Corollar|Algorithm"
NUMBER = r"(?:[A-Z]\.)?\d+(?:\.\d+)?"
MENTION = re.compile(
    rf"\b({KINDS})(y|s|ies)?\s+"
    rf"({NUMBER}(?:(?:,?\s+(?:and|or|to)\s+|,\s+|–){NUMBER})*)(?![\w-])"
)


def label_of(name: str) -> str:
    """The label of the box of a statement.

    >>> label_of("Proposition E.5")
    'paper-proposition-e-5'
    """
    return "paper-" + re.sub(r"[ .]", "-", name).lower()


def mentions(text: str) -> list[tuple[int, int, str]]:
    """Find the statements of the paper that a text mentions: (start, end, label) of each.

    >>> text = "Theorem 5.2, 3 times; Propositions D.2 and D.5. Corollary 5.4!"
    >>> [(text[start:end], label) for start, end, label in mentions(text)]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('Theorem 5.2', 'paper-theorem-5-2'), ('Propositions D.2', 'paper-proposition-d-2'),
     ('D.5', 'paper-proposition-d-5'), ('Corollary 5.4', 'paper-corollary-5-4')]
    """
    places = []
    for match in MENTION.finditer(text):
        kind = "Corollary" if match[1] == "Corollar" else match[1]
        numbers = list(re.finditer(NUMBER, match[3]))
        is_plural = match[2] in ("s", "ies")
        for place, number in enumerate(numbers if is_plural else numbers[:1]):
            start = match.start(3) + number.start() if place else match.start()
            end = match.start(3) + number.end()
            places.append((start, end, label_of(f"{kind} {number[0]}")))
    return places


def name_statements(app, doctree):
    """Put the number of the paper, and nothing before it, into titles of boxes with its labels."""
    for box in list(doctree.findall(nodes.Admonition)):
        label = box.get("label", "")
        if not label.startswith("paper-"):
            continue
        title = box[0]
        if not isinstance(box, unenumerable_node):
            logger.warning("%s needs the option :nonumber:", label, location=box)
            continue
        strip_parentheses(title)
        name = title.astext().partition(" of the paper")[0]
        numbered = not label.startswith("paper-section-")  # otherwise a statement without a number
        if numbered and label_of(name) != label:
            logger.warning("%s has the title of %s", label, label_of(name), location=box)
        title["ids"] = []  # the box has them
        entry = ("single", name, label, "main", None)
        statement = nodes.admonition("", *box.children, **box.attributes)
        statement["classes"].append("of-the-paper")
        box.replace_self([addnodes.index(entries=[entry]), statement])


def strip_parentheses(title):
    """Undo the format ``" (%t)"`` of sphinx-proof."""
    first = next(title.findall(nodes.Text))
    first.parent.replace(first, nodes.Text(re.sub(r"^\s*\(", "", first)))
    *_, last = title.findall(nodes.Text)
    last.parent.replace(last, nodes.Text(re.sub(r"\)$", "", last)))


#: Nodes in which a mention stays as it is.
SILENT = (
    nodes.reference,
    nodes.literal,
    nodes.literal_block,
    nodes.math,
    nodes.math_block,
    nodes.raw,
    nodes.comment,
    nodes.title,
    nodes.subtitle,
    nodes.rubric,
    nodes.citation,
)


def join_texts(doctree):
    """Join neighbouring texts, so that a line break in the source does not split a mention."""
    parents = {text.parent for text in doctree.findall(nodes.Text)}
    for element in parents - {None}:  # the theme shortens links and leaves a text behind
        children = element.children
        element.children = []
        for is_text, group in groupby(children, lambda child: isinstance(child, nodes.Text)):
            neighbours = list(group)
            element.extend([nodes.Text("".join(neighbours))] if is_text else neighbours)


def link_mentions(app, doctree, docname):
    """Make every mention of a statement that has a box a link to it, in text and in raw HTML."""
    boxes = {
        label: entry["docname"]
        for label, entry in getattr(app.env, "proof_list", {}).items()
        if label.startswith("paper-")
    }

    def address(label):
        return f"{app.builder.get_relative_uri(docname, boxes[label])}#{label}"

    join_texts(doctree)
    for text in list(doctree.findall(nodes.Text)):
        around = ancestors(text)
        if any(isinstance(node, SILENT) for node in around):
            continue
        labels_around = {label for node in around for label in node.get("ids", [])}
        parts = []
        end = 0
        for start, stop, label in mentions(text):
            if label in boxes and label not in labels_around:
                link = nodes.reference("", text[start:stop], internal=True, refuri=address(label))
                parts += [nodes.Text(text[end:start]), link]
                end = stop
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(text[end:])])
    for raw in list(doctree.findall(nodes.raw)):
        if "html" in raw.get("format", "").split():
            raw.children = [nodes.Text(link_in_html(raw.astext(), boxes, address))]


def ancestors(node):
    """All nodes around a node, the nearest first."""
    around = []
    node = node.parent
    while node is not None:
        around.append(node)
        node = node.parent
    return around


def link_in_html(html, boxes, address):
    """Link mentions in a piece of HTML, but not within links, code, headings or scripts.

    >>> html = "<td>Lemma 2 <code>Lemma 2</code></td>"
    >>> link_in_html(html, {"paper-lemma-2"}, "#{}".format)
    '<td><a class="reference internal" href="#paper-lemma-2">Lemma 2</a> <code>Lemma 2</code></td>'
    """
    silent = 0
    parts = []
    for part in re.split(r"(<[^>]*>)", html):
        tag = re.match(r"<(/?)(a|code|pre|script|style|svg|summary|h[1-6])\b", part)
        if tag:
            silent += -1 if tag[1] else 1
        elif not silent and not part.startswith("<"):
            end = 0
            for start, stop, label in mentions(part):
                if label in boxes:
                    link = f'<a class="reference internal" href="{address(label)}">'
                    parts.append(f"{part[end:start]}{link}{part[start:stop]}</a>")
                    end = stop
            part = part[end:]
        parts.append(part)
    return "".join(parts)


def setup(app):
    app.connect("doctree-read", name_statements)
    app.connect("doctree-resolved", link_mentions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""Statements of the paper under its own numbers.

A box ``:::{prf:theorem} Theorem 5.2 of the paper: when auditing is tight`` with
``:label: paper-theorem-5-2`` and ``:nonumber:`` keeps the paper's own number. Wherever the book
says "Theorem 5.2", this is a link to the box, and the search finds the box.
"""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging
from sphinx_proof.nodes import unenumerable_node

logger = logging.getLogger(__name__)

KINDS = (
    *("definition", "theorem", "proposition", "lemma"),
    *("corollary", "algorithm", "example", "remark"),
)
NUMBER = r"(?:[A-Z]\.)?\d+(?:\.\d+)?"
MENTION = re.compile(
    rf"\b({'|'.join(kind.title().removesuffix('y') for kind in KINDS)})(y|s|ies)?\s+"
    rf"({NUMBER}(?:(?:,?\s+(?:and|or|to)\s+|,\s+|–){NUMBER})*)(?![\w-])"
)


def label_of(kind: str, number: str) -> str:
    """The label of a box.

    >>> label_of("Proposition", "E.5")
    'paper-proposition-e-5'
    """
    return f"paper-{kind}-{number.replace('.', '-')}".lower()


def name_of(label: str) -> str:
    """What the box is called in the paper.

    >>> name_of("paper-proposition-e-5")
    'Proposition E.5'
    """
    kind, *number = label.removeprefix("paper-").split("-")
    return f"{kind.title()} {'.'.join(number).upper()}"


def mentions(text: str) -> list[tuple[int, int, str]]:
    """Where a text mentions statements of the paper: (start, end, label) of each.

    >>> text = "Theorem 5.2, 3 times; Propositions D.2 and D.5. Corollary 5.4!"
    >>> [(text[start:end], label) for start, end, label in mentions(text)]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('Theorem 5.2', 'paper-theorem-5-2'), ('Propositions D.2', 'paper-proposition-d-2'),
     ('D.5', 'paper-proposition-d-5'), ('Corollary 5.4', 'paper-corollary-5-4')]
    """
    found = []
    for match in MENTION.finditer(text):
        stem, ending = match[1].lower(), match[2]
        kind = stem + "y" if stem == "corollar" else stem
        numbers = list(re.finditer(NUMBER, match[3]))
        several = ending in ("s", "ies")
        for place, number in enumerate(numbers if several else numbers[:1]):
            start = match.start(3) + number.start() if place else match.start()
            found.append((start, match.start(3) + number.end(), label_of(kind, number[0])))
    return found


class statement_node(nodes.Admonition, nodes.Element):
    """A statement of the paper: a box that says nothing about itself except its title."""


def visit_statement(translator, node):
    translator.body.append(translator.starttag(node, "div", CLASS="admonition"))


def depart_statement(translator, node):
    translator.body.append("</div>\n")


def name_statements(app, doctree):
    """Boxes with a label of the paper carry its number, in their title and in references."""
    for box in list(doctree.findall(nodes.Admonition)):
        label = box.get("label", "")
        if not label.startswith("paper-"):
            continue
        title = box[0]
        if not isinstance(box, unenumerable_node):
            logger.warning("%s needs the option :nonumber:", label, location=box)
            continue
        strip_parentheses(title)
        said = title.astext()
        numbered = not label.startswith("paper-section-")  # otherwise a statement without a number
        name = name_of(label) if numbered else said.partition(" of the paper")[0]
        if not said.startswith(name):
            words = "%s has the title %r: it must begin with %r"
            logger.warning(words, label, said, name, location=box)
        title["ids"] = []  # the box has them
        entry = ("single", name, label, "main", None)
        statement = statement_node("", *box.children, **box.attributes)
        statement["classes"].append("of-the-paper")
        box.replace_self([addnodes.index(entries=[entry]), statement])
    for reference in doctree.findall(addnodes.pending_xref):
        label = reference["reftarget"]
        if reference.get("refdomain") == "prf" and label.startswith("paper-"):
            shown = reference[0]
            if shown.astext() == label:  # no words by the author
                shown.children = []
                shown += nodes.Text(name_of(label))


def strip_parentheses(title):
    """Undo the format ``" (%t)"`` of sphinx-proof."""
    texts = list(title.findall(nodes.Text))
    first, last = texts[0], texts[-1]
    opened = re.sub(r"^\s*\(", "", first)
    if first is last:
        title.replace(first, nodes.Text(re.sub(r"\)$", "", opened)))
    else:
        first.parent.replace(first, nodes.Text(opened))
        last.parent.replace(last, nodes.Text(re.sub(r"\)$", "", last)))


#: Where a mention stays as it is.
SILENT = (
    *(nodes.reference, nodes.literal, nodes.literal_block, nodes.math, nodes.math_block),
    *(nodes.raw, nodes.comment, nodes.title, nodes.subtitle, nodes.rubric, nodes.citation),
)


def ancestors(node):
    while node := node.parent:
        yield node


def join_texts(doctree):
    """Join neighbouring texts, so that a line break in the source does not split a mention."""
    parents = {text.parent for text in doctree.findall(nodes.Text)}
    for element in parents - {None}:  # the theme shortens links and leaves a text behind
        joined = []
        for child in element.children:
            if isinstance(child, nodes.Text) and joined and isinstance(joined[-1], nodes.Text):
                joined[-1] = nodes.Text(joined[-1] + child)
            else:
                joined.append(child)
        element.children = []
        element.extend(joined)


def is_cited(neighbours):
    return any("bibtex-citation" in x.get("classes", []) for x in neighbours if x.children)


def is_of_another_paper(text, start, end):
    """Whether a citation next to the words says that the theorem is from another paper."""
    place = text.parent.index(text)
    before, after = text.parent[place - 1 : place], text.parent[place + 1 : place + 2]
    return (is_cited(after) and re.fullmatch(r",?\s*(of|in|by)?\s*", text[end:])) or (
        is_cited(before) and re.fullmatch(r"(’s|'s)?,?\s*", text[:start])
    )


def link_mentions(app, doctree, docname):
    """Make every mention of a statement that has a box a link to it, in text and in raw HTML."""
    boxes = {
        label: entry["docname"]
        for label, entry in getattr(app.env, "proof_list", {}).items()
        if label.startswith("paper-")
    }

    def address(label):
        return f"{app.builder.get_relative_uri(docname, boxes[label])}#{label}"

    def link_to(label):
        return f'<a class="reference internal" href="{address(label)}">'

    join_texts(doctree)
    for text in list(doctree.findall(nodes.Text)):
        around = list(ancestors(text))
        if any(isinstance(node, SILENT) for node in around):
            continue
        own = {label for node in around for label in node.get("ids", [])}
        parts, end = [], 0
        for start, stop, label in mentions(text):
            if label not in boxes or label in own or is_of_another_paper(text, start, stop):
                continue
            link = nodes.reference("", text[start:stop], internal=True, refuri=address(label))
            parts += [nodes.Text(text[end:start]), link]
            end = stop
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(text[end:])])
    for raw in list(doctree.findall(nodes.raw)):
        if "html" in raw.get("format", "").split():
            html = link_in_html(raw.astext(), boxes, link_to)
            raw.children = [nodes.Text(html)]
            raw.rawsource = html


def link_in_html(html, boxes, link_to):
    """Links in the text of a piece of HTML, but not within links, code, headings or scripts.

    >>> link_in_html("<td>Theorem 5.2</td>", {"paper-theorem-5-2"}, "<a href='#{}'>".format)
    "<td><a href='#paper-theorem-5-2'>Theorem 5.2</a></td>"
    >>> link_in_html("<code>Theorem 5.2</code>", {"paper-theorem-5-2"}, "<a href='#{}'>".format)
    '<code>Theorem 5.2</code>'
    """
    silent, parts = 0, []
    for part in re.split(r"(<[^>]*>)", html):
        tag = re.match(r"<(/?)(a|code|pre|script|style|svg|summary|h[1-6])\b", part)
        if tag:
            silent += -1 if tag[1] else 1
        elif not silent and not part.startswith("<"):
            end = 0
            for start, stop, label in mentions(part):
                if label in boxes:
                    parts.append(f"{part[end:start]}{link_to(label)}{part[start:stop]}</a>")
                    end = stop
            part = part[end:]
        parts.append(part)
    return "".join(parts)


def setup(app):
    app.add_node(statement_node, html=(visit_statement, depart_statement))
    app.connect("doctree-read", name_statements)
    app.connect("doctree-resolved", link_mentions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

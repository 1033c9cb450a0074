"""What this book asks of Sphinx beyond its other extensions.

Statements of the paper
    A box ``:::{prf:theorem} Theorem 5.2 of the paper: when auditing is tight`` with
    ``:label: paper-theorem-5-2`` and ``:nonumber:`` keeps the paper's own number. Wherever the
    book says "Theorem 5.2", this is a link to the box, and the search finds both.
Set-up cells
    Neighbours of the folded cell with the parameters are shown as one folded block with it.
Boxes that say how to run a chapter
    At the end of every chapter with parameters; ``:::{run-this-book}`` is one for all of them.
Maths
    Punctuation stays with the formula before it.
Tables and repairs
    Columns of numbers are known as such to the style sheet; what other extensions and the theme
    write is put right where a screen reader would stumble.
The calculator
    A page with ``:::{div} calculator`` loads its script and its style sheet; no other page does.
"""

import ast
import re
from importlib.metadata import version
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx import addnodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx_proof.nodes import proof_node, unenumerable_node

from book._ext import committed

logger = logging.getLogger(__name__)

# ------------------------------------------------------------------------------------------------
# Statements of the paper under its own numbers

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
    """A statement of the paper: a box whose title is all that it says about itself."""


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
        numbered = not label.startswith("paper-section-")  # else a statement without a number
        name = name_of(label) if numbered else said.partition(" of the paper")[0]
        kind = box["realtype"] if numbered else "section"
        if not label.startswith(label_of(kind, name.split()[1])) or not said.startswith(name):
            logger.warning(
                "%s is a box of the kind %r with the title %r: the title must begin with %r",
                label,
                box["realtype"],
                said,
                name,
                location=box,
            )
        title["ids"] = []  # they are those of the box
        entry = ("single", name, label, "main", None)
        statement = statement_node("", *box.children, **box.attributes)
        statement["classes"].append("of-the-paper")
        box.replace_self([addnodes.index(entries=[entry]), statement])
    for reference in doctree.findall(addnodes.pending_xref):
        label = reference["reftarget"]
        if reference.get("refdomain") == "prf" and label.startswith("paper-"):
            shown = reference[0]
            if shown.astext() == label:  # no words of the author's own
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
    """A line break in the source must not part a mention: one text where several meet."""
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
    """Whether a citation next to the words says whose theorem it is."""
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
    first = {label for label in boxes if boxes[label] != docname}  # mentions still to be indexed

    def address(label):
        return f"{app.builder.get_relative_uri(docname, boxes[label])}#{label}"

    def index(node, label):
        """The search shall find the first mention on this page; its anchor."""
        if label not in first:
            return []
        first.remove(label)
        anchor = f"mention-of-{label}"
        entry = ("single", name_of(label), anchor, "", None)
        node.parent.insert(node.parent.index(node), addnodes.index(entries=[entry]))
        return [anchor]

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
            link["ids"] = index(text, label)
            parts += [nodes.Text(text[end:start]), link]
            end = stop
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(text[end:])])
    for raw in list(doctree.findall(nodes.raw)):
        if "html" in raw.get("format", "").split():

            def link_to(label, raw=raw):
                anchor = "".join(f' id="{anchor}"' for anchor in index(raw, label))
                return f'<a class="reference internal" href="{address(label)}"{anchor}>'

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


# ------------------------------------------------------------------------------------------------
# Set-up cells as one block

SHOW, HIDE = (f"Parameters of this chapter: click to {verb}" for verb in ("show", "hide"))


def is_folded(node):
    """Whether a node is a code cell that is folded and shows nothing else."""
    return (
        isinstance(node, nodes.container)
        and node.get("nb_element") == "cell_code"
        and node.get("hide_mode") in ("input", "all", "input+output")
        and all(child.get("nb_element") == "cell_code_source" for child in node)
    )


def fold_setup(app, doctree):
    """Merge the folded parameters with the folded cells right before and after them."""
    for cell in list(doctree.findall(is_folded)):
        if "parameters" not in cell["cell_metadata"].get("tags", []):
            continue
        cells = cell.parent.children
        first = last = cells.index(cell)
        while first and is_folded(cells[first - 1]):
            first -= 1
        while last + 1 < len(cells) and is_folded(cells[last + 1]):
            last += 1
        block, *others = cells[first : last + 1]
        block["hide_mode"], block["prompt_show"], block["prompt_hide"] = "all", SHOW, HIDE
        block["classes"].append("setup")
        for other in others:
            block.extend(other.children)
            other.parent.remove(other)


def visit_fold(translator, node):
    """As in MyST-NB, but the name of the button is what it says."""
    classes = " ".join(node["classes"])
    translator.body.append(f'<details class="admonition hide {classes}">\n<summary>\n')
    for state, prompt in ("collapsed", node["prompt_show"]), ("expanded", node["prompt_hide"]):
        words = translator.encode(prompt)
        translator.body.append(f'<p class="{state} admonition-title">{words}</p>\n')
    translator.body.append("</summary>\n")


def depart_fold(translator, node):
    translator.body.append("</details>\n")


# ------------------------------------------------------------------------------------------------
# How to run a chapter, with the files that the book carries (see downloads.py)

#: The example is the first of these that a chapter has; every chapter allows the value.
EXAMPLES = {"epsilon": "1.5", "beta": "0.01", "trials": "10", "seed": "1"}


def example(source: str) -> str:
    """A parameter, with a value, of a chapter whose parameters cell is given.

    A chapter about a large ε would have little to show at a small one.

    >>> example("n: int = 4  # elements\\nbeta: float = 0.05  # failures")
    'beta=0.01'
    >>> example("epsilon: float = 2.0  # level"), example("epsilon: float = 8.0  # level")
    ('epsilon=1.5', 'epsilon=4')
    """
    declared = [node for node in ast.parse(source).body if isinstance(node, ast.AnnAssign)]
    own = {ast.unparse(node.target): ast.unparse(node.value) for node in declared}
    name = next((name for name in EXAMPLES if name in own), next(iter(own)))
    value = EXAMPLES.get(name, own[name])
    if name == "epsilon":
        value = f"{max(float(value), float(own[name]) / 2):g}"
    return f"{name}={value}"


def run_box(docname, title, *commands, extras=()):
    """A box with links to the wheel and the archive, and what to do with them.

    >>> box = run_box("book/a", "Run", "oralib run a.ipynb", extras=["torch", "jax"])
    >>> box.astext().splitlines()[-3].partition("[")[2]
    'runs,torch,jax]"'
    """
    archive = f"oralib-{version('oralib')}"
    wheel = f"{archive}-py3-none-any.whl"
    up = "../" * docname.count("/")
    links = [
        nodes.reference("", name, internal=False, refuri=f"{up}downloads/{name}")
        for name in (wheel, f"{archive}.tar.gz")
    ]
    sentence = nodes.paragraph("", "Download the package, ")
    sentence += [links[0], nodes.Text(", and the sources with all chapters, "), links[1]]
    sentence += nodes.Text(". In the folder where they lie, with Python 3.11 to 3.13:")
    install = f'pip install "{wheel}[{",".join(["runs", *extras])}]"'
    lines = "\n".join([install, f"tar xf {archive}.tar.gz && cd {archive}", *commands])
    code = nodes.literal_block(lines, lines, language="console")
    return nodes.admonition("", nodes.title("", title), sentence, code, classes=["run"])


def add_run_box(app, doctree):
    """End a chapter that has parameters with a box that says how to run it."""
    for cell in doctree.findall(nodes.container):
        tags = cell.get("cell_metadata", {}).get("tags", [])
        if "parameters" in tags and cell.get("nb_element") == "cell_code" and cell.children:
            docname = app.env.docname
            command = f"oralib run {docname}.ipynb -p {example(cell[0].astext())}"
            extras = committed.extras(Path(app.env.doc2path(docname)))
            doctree[-1].append(run_box(docname, "Run this chapter", command, extras=extras))
            return


class RunThisBook(SphinxDirective):
    """The same for the whole book."""

    def run(self):
        commands = (
            "oralib run --list                   # all chapters and their parameters",
            "oralib run 04-the-gaps -p epsilon=1.5",
            "make book                           # all chapters anew, into _build/html",
        )
        return [run_box(self.env.docname, "Run this book", *commands)]


# ------------------------------------------------------------------------------------------------
# Maths


def keep_punctuation(app, doctree, docname):
    """No line begins with the full stop that follows a formula, or ends with its bracket."""
    for formula in list(doctree.findall(nodes.math)):
        parent = formula.parent
        place = parent.index(formula)
        before, after = parent[max(place - 1, 0) : place], parent[place + 1 : place + 2]
        start = re.search(r"[(\[“‘]*$", before[0])[0] if is_text(before) else ""
        stop = re.match(r"[^\s\w]*", after[0])[0] if is_text(after) else ""
        if not start and not stop:
            continue
        together = nodes.inline(classes=["nowrap"])
        parent.replace(formula, together)
        together += [nodes.Text(start), formula, nodes.Text(stop)]
        if start:
            parent.replace(before[0], nodes.Text(before[0].removesuffix(start)))
        if stop:
            parent.replace(after[0], nodes.Text(after[0].removeprefix(stop)))


def is_text(neighbours):
    return any(isinstance(node, nodes.Text) for node in neighbours)


# ------------------------------------------------------------------------------------------------
# Tables and repairs

ROW, CELL = (
    re.compile(r"<tr.*?</tr>", re.DOTALL),
    re.compile(r"<(t[hd])\b([^>]*)>(.*?)</\1>", re.DOTALL),
)
NUMERAL = re.compile(
    r"[-−+±<>≤≥≈]?\s*(\d[\d., \u202f]*(e[-+]?\d+)?\s*%?|inf|∞|nan|[-–—]|)", re.IGNORECASE
)


def mark_numbers(html: str) -> str:
    """Give the cells of every column of numbers, and its heading, the class ``number``.

    >>> mark_numbers("<tr><th>n</th><th>who</th></tr><tr><td>1</td><td>x</td></tr>")[:37]
    '<tr><th class="number">n</th><th>who<'
    """
    rows = [CELL.findall(row) for row in ROW.findall(html)]
    bodies = [row for row in rows if any(tag == "td" for tag, _, _ in row)]
    width = max(map(len, bodies), default=0)
    numeric = {
        column
        for column in range(width)
        if all(len(row) == width and is_numeral(row[column][2]) for row in bodies)
    }

    def mark_row(row):
        columns = iter(range(width))

        def mark_cell(cell):
            column = next(columns, None)
            marked = column in numeric and "class=" not in cell[2]
            attributes = cell[2] + (' class="number"' if marked else "")
            return f"<{cell[1]}{attributes}>{cell[3]}</{cell[1]}>"

        return CELL.sub(mark_cell, row[0])

    return ROW.sub(mark_row, html)


def is_numeral(cell: str) -> bool:
    return NUMERAL.fullmatch(re.sub(r"<[^>]*>", "", cell).strip()) is not None


def improve_tables(app, doctree, docname):
    """Numbers of tables in HTML, of pandas (class dataframe) and our own (class house)."""
    for raw in doctree.findall(nodes.raw):
        if "html" in raw.get("format", "") and re.search(r'class="(dataframe|house)', raw.astext()):
            raw.children = [nodes.Text(mark_numbers(raw.astext()))]


def drop_repeated_ids(app, doctree, docname):
    """The same id for every box of a page is none; after Sphinx has numbered what has one."""
    for proof in doctree.findall(proof_node):
        proof[0]["classes"].append("proof-text")
        proof[0]["ids"] = []
    for section in doctree.findall(nodes.section):
        if section["ids"] and section["ids"][0].endswith("-content") and not section["names"]:
            section["ids"] = []


#: What is wrong in the HTML of docutils and of the theme, and what is right.
REPAIRS = (
    # A megabyte and a half that draws the icons again, which the style sheet has drawn already.
    (r"<script[^>]*fontawesome\.js[^>]*></script>", ""),
    # The references are a list, so each of them is an item.
    ('role="doc-biblioentry"', 'role="listitem"'),
    # What a button shows is its name; its icons say nothing.
    (r'(search-button-field[^>]*?) title="Search" aria-label="Search"', r"\1"),
    (r'(<i class="theme-switch [^>]*?) title="[^"]*"', r'\1 aria-hidden="true"'),
    # The name of the book and the search are a part of the page, too.
    (
        '<div class="sidebar-primary-items__start',
        r'<div role="region" aria-label="Book" class="sidebar-primary-items__start',
    ),
    # The arrow beside a page that has pages below it says what it opens.
    (
        '<summary>(<span class="toctree-toggle")',
        r'<summary aria-label="Pages below this one">\1',
    ),
    # A heading of nothing is no heading.
    (r"<th( [^>]*)?>(\s*<p>\s*</p>\s*)?</th>", r"<td\1></td>"),
)


def repair_pages(app, exception):
    if exception is None and app.builder.format == "html":
        for path in Path(app.outdir).rglob("*.html"):
            html = path.read_text(encoding="utf-8")
            path.write_text(repair(html), encoding="utf-8")


def repair(html):
    """A page without what a screen reader would stumble over.

    >>> repair('<div class="citation" role="doc-biblioentry">')
    '<div class="citation" role="listitem">'
    """
    for wrong, right in REPAIRS:
        html = re.sub(wrong, right, html)
    if 'class="math' not in html:  # the first page has it for the formulas of all others
        html = re.sub(r"<script[^>]*mathjax/[^>]*></script>", "", html)
    return re.sub(
        r'(<th(?: [^>]*)?>\s*<p>)(<span class="math[^>]*>(.*?)</span></p></th>)', say, html
    )


def say(heading):
    """A heading that is nothing but a formula gets words for those who hear the page."""
    words = re.sub(r"[\\(){}$]", "", heading[3])
    return f'{heading[1]}<span class="visually-hidden">{words}: </span>{heading[2]}'


# ------------------------------------------------------------------------------------------------
# The calculator


def load_calculator(app, pagename, templatename, context, doctree):
    """Its files, where there is a place for it (see _static/calculator.js)."""
    boxes = doctree.findall(nodes.container) if doctree else ()
    if any("calculator" in box["classes"] for box in boxes):
        app.add_js_file("calculator.js", loading_method="defer")
        app.add_css_file("calculator.css")


def setup(app):
    app.add_node(statement_node, html=(visit_statement, depart_statement))
    app.add_node(HideCodeCellNode, override=True, html=(visit_fold, depart_fold))
    app.connect("doctree-read", name_statements)
    app.connect("doctree-read", fold_setup)
    app.connect("doctree-read", add_run_box, priority=400)  # before the cells are merged
    app.connect("doctree-resolved", link_mentions)
    app.connect("doctree-resolved", keep_punctuation)
    app.connect("doctree-resolved", improve_tables)
    app.connect("doctree-resolved", drop_repeated_ids)
    app.connect("html-page-context", load_calculator)
    app.connect("build-finished", repair_pages)
    app.add_directive("run-this-book", RunThisBook)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

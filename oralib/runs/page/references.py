"""Numbers of figures, tables and equations, and references to them or to other chapters."""

# mypy: disable-error-code="import-untyped"

import re

from docutils import nodes

from oralib.runs.page.known import Page
from oralib.runs.page.parts import pending


def number(document: nodes.document, page: Page) -> None:
    """Number figures, tables and equations, and learn what all labels stand for."""
    for node in document.findall(nodes.Element):
        labels = [node["label"]] if node.get("label") else list(node.get("names", []))
        text = ""
        if isinstance(node, nodes.figure):
            # docutils gives the name of a figure to its picture.
            labels += [name for image in node.findall(nodes.image) for name in image["names"]]
            text = f"Figure {page.next_number('figure')}"
            _say_first(node, nodes.caption, text)
        elif isinstance(node, nodes.table) and _say_first(node, nodes.title, ""):
            text = f"Table {page.next_number('table')}"
            _say_first(node, nodes.title, text)
        elif isinstance(node, nodes.math_block) and labels:
            text = f"({page.next_number('equation')})"
            node["number"] = text
        elif isinstance(node, nodes.section):
            text = node[0].astext()
        for label in labels if text else []:
            page.add_label(label, node, text)


def _say_first(node: nodes.Element, kind: type[nodes.Element], word: str) -> bool:
    """Begin the caption of a figure or the title of a table with a word; whether there is one."""
    found = next(iter(node.findall(kind)), None)
    if found is not None and word:
        found[0:0] = [nodes.strong("", word), nodes.Text(". ")]
    return found is not None


def resolve(document: nodes.document, page: Page) -> None:
    """Let references within the page be links, and others text."""
    # docutils writes names of targets in small letters; a label may have others.
    known = {nodes.fully_normalize_name(label): found for label, found in page.labels.items()}
    for node in list(document.findall(pending)):
        target, words = node["target"], node.get("words", "")
        place, text = known.get(nodes.fully_normalize_name(target), ("", ""))
        if not place or node["kind"] == "doc":
            file = node["kind"] == "doc" or target.endswith((".ipynb", ".md"))
            text = words or (_chapter if file else _found)(target, page)
        said = node.children or [nodes.Text(_filled(words, text))]
        if place and node["kind"] != "doc":
            link = nodes.reference("", "", *said, refid=place)
            node.replace_self(link if node["link"] else said)
        else:
            node.replace_self(nodes.inline("", "", *said, classes=["elsewhere"]))
    for node in list(document.findall(nodes.problematic)):
        node.replace_self(nodes.inline("", node.astext()))


def _filled(words: str, text: str) -> str:
    """The words of a reference with its number in them, ``see %s`` or ``see {number}``."""
    number = text.rpartition(" ")[2]
    return (words or text).replace("%s", number).replace("{number}", number)


def _chapter(target: str, page: Page) -> str:
    """The title of another chapter, if it is there; otherwise its name."""
    name = re.sub(r"\.(ipynb|md)$", "", target.partition("#")[0]).rpartition("/")[2]
    for cell in page.neighbours.get(name, []):
        heading = re.search(r"^#\s+(.+)$", cell.source, re.MULTILINE)
        if cell.cell_type == "markdown" and heading:
            return heading[1].strip()
    return name or target


def _found(label: str, page: Page) -> str:
    """What a label of another chapter stands for, and where; otherwise the label itself."""
    quoted = re.escape(label)
    for name, cells in page.neighbours.items():
        where = f" in {_chapter(name, page)}"
        for cell in cells:
            options = cell.metadata.get("mystnb") or {}
            if (options.get("figure") or {}).get("name") == label:
                return f"a figure{where}"
            if cell.cell_type != "markdown" or label not in cell.source:
                continue
            heading = re.search(rf"^\({quoted}\)=\s*\n+#+\s+(.+)$", cell.source, re.MULTILINE)
            if heading:
                return heading[1].strip()
            directive = re.search(
                r"^[:`]{3,}\{(?:prf:)?([\w-]+)\}[ ]*(.*)\n(?::.*\n)*?:(?:label|name): "
                + quoted
                + "$",
                cell.source,
                re.MULTILINE,
            )
            if directive:
                title = f" ({directive[2].strip()})" if directive[2].strip() else ""
                return f"{directive[1].capitalize()}{title}{where}"
    return label

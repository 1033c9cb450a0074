"""An executed notebook as one HTML page that can be read anywhere, without a network or a script.

myst-parser reads the markdown cells, docutils writes the page. What Sphinx would add is made here
in a small way: boxes for theorems, exercises and admonitions, numbers and links within the page,
citations, and the numbers in prose. A reference to another page becomes text.
"""

# mypy: disable-error-code="import-untyped"

import base64
import contextlib
import mimetypes
import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from docutils.core import publish_doctree, publish_from_doctree
from docutils.parsers.rst import Directive, directives, roles
from docutils.writers import html5_polyglot
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.mdit_to_docutils.base import DocutilsRenderer
from myst_parser.parsers.docutils_ import Parser as MystParser
from myst_parser.parsers.mdit import create_md_parser
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from oralib.runs import prose
from oralib.runs.formulas import as_mathml

_STYLE = Path(__file__).with_name("page.css")

_SETTINGS = {
    "_disable_config": True,  # a docutils.conf somewhere must not change a page
    "doctitle_xform": False,
    "file_insertion_enabled": False,
    "halt_level": 6,
    "initial_header_level": "1",
    "output_encoding": "unicode",
    "report_level": 5,  # what cannot be understood is shown as it is written
    "section_self_link": False,
    "syntax_highlight": "short",
}


def page_of(notebook: Any, name: str, folder: Path | None = None) -> str:
    """The executed notebook as one HTML page, pictures included.

    Parameters
    ----------
    name : of the chapter; the title of the page if there is no heading.
    folder : where the chapter lies, with its pictures, ``references.bib`` and other chapters.
    """
    page = _Page(notebook, name, folder)
    with _registered(page):
        document = publish_doctree(
            "", parser=_Parser(page), settings_overrides={**_SETTINGS, "page": page}
        )
    _box_between_marks(document)
    _number(document, page)
    _resolve(document, page)
    writer = html5_polyglot.Writer()
    writer.translator_class = _Translator
    publish_from_doctree(document, writer=writer, settings_overrides={**_SETTINGS, "page": page})
    heading = next(iter(document.findall(nodes.title)), None)
    title = name if heading is None else heading.astext()
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>\n{_STYLE.read_text(encoding='utf-8')}</style>\n</head>\n<body>\n<main>\n"
        f"{writer.parts['fragment']}{_bibliography(page)}</main>\n</body>\n</html>\n"
    )


class _Page:
    """What is known about a page while it is made.

    Attributes
    ----------
    values : texts of the numbers in prose, by expression.
    counts : how many theorems, figures, ... there are so far.
    labels : what a label stands for: the id in the page, and the text of a reference to it.
    cited : keys of works, in the order of their first citation.
    """

    def __init__(self, notebook: Any, name: str, folder: Path | None) -> None:
        self.notebook = notebook
        self.name = name
        self.folder = folder
        self.values = {
            entry["expression"]: prose.text_of(entry["result"])
            for cell in notebook.cells
            for entry in cell.metadata.get(prose.SECTION, [])
        }
        self.counts: Counter[str] = Counter()
        self.labels: dict[str, tuple[str, str]] = {}
        self.cited: list[str] = []

    def next_number(self, kind: str) -> int:
        self.counts[kind] += 1
        return self.counts[kind]

    def add_label(self, label: str, node: nodes.Element, text: str) -> None:
        """Let references to this label lead to the node, and read as this text."""
        if label:
            place = nodes.make_id(label)
            node["ids"] = [place, *(other for other in node["ids"] if other != place)]
            self.labels[label] = (place, text)

    @cached_property
    def works(self) -> Any:
        """Entries of the bibliography beside the chapter, by key."""
        from pybtex.database import parse_file

        path = None if self.folder is None else self.folder / "references.bib"
        if path is None or not path.is_file():
            return {}
        try:
            return parse_file(str(path)).entries
        except Exception:  # an error of BibTeX is no reason to have no page
            return {}

    @cached_property
    def neighbours(self) -> dict[str, list[Any]]:
        """The cells of the other chapters in the folder."""
        paths = [] if self.folder is None else sorted(self.folder.glob("*.ipynb"))
        found = {}
        for path in paths:
            with contextlib.suppress(Exception):  # of files that are no notebooks
                if path.is_file():  # and no pipe
                    cells = nbformat.read(path, 4).cells
                    found[path.stem] = [cell for cell in cells if isinstance(cell.source, str)]
        return found


# -------------------------------------------------------------------------------- the parser


class _Parser(MystParser):
    """Reads the cells of a notebook one after the other, instead of a text."""

    def __init__(self, page: _Page) -> None:
        super().__init__()
        self._page = page

    def parse(self, inputstring: str, document: nodes.document) -> None:
        self.setup_parse(inputstring, document)
        config = MdParserConfig(enable_extensions=set(prose.EXTENSIONS), heading_anchors=3)
        parser = create_md_parser(config, DocutilsRenderer)
        parser.options["document"] = document
        environment: dict[str, Any] = {}
        tokens: list[Token] = []
        for index, cell in enumerate(self._page.notebook.cells):
            if _tags(cell) & {"remove-cell", "remove_cell"}:
                continue
            if cell.cell_type == "markdown":
                tokens += parser.parse(cell.source, environment)
            elif cell.cell_type == "code":
                info = f"{{{_Cell.name}}} {index}"
                tokens.append(Token("fence", "code", 0, info=info, markup="```", map=[0, 1]))
        parser.renderer.render(tokens, parser.options, environment)
        # Links to labels and files; docutils would find no target and drop their words.
        for node in list(document.findall(nodes.reference)):
            if "refname" in node:
                node.replace_self(
                    pending("", "", *node.children, kind="any", target=node["refname"], link=True)
                )
        document.refnames.clear()
        self.finish_parse()


def _tags(cell: Any) -> set[str]:
    return set(cell.metadata.get("tags") or ())


@contextlib.contextmanager
def _registered(page: _Page) -> Iterator[None]:
    """Let docutils know our directives and roles, and those of the notebook that nobody knows."""
    text = "\n".join(cell.source for cell in page.notebook.cells if cell.cell_type == "markdown")
    before = dict(directives._directives), dict(roles._roles)
    try:
        for name in re.findall(r"^[\s>]*[:`~]{3,}\{([^}\s]+)\}", text, re.MULTILINE):
            if name not in directives._directive_registry:
                directives.register_directive(name, _Other)
        for name in re.findall(r"\{([A-Za-z][\w:.+-]*)\}`", text):
            if name not in roles._role_registry:
                roles._roles[name] = _other_role
        for directive in (_Cell, _Theorem, _Proof, _Admonition, _Note, _Dropdown, _Exercise):
            for name in directive.names:
                directives.register_directive(name, directive)
        for directive in (_Solution, _Start, _End, _Nothing, _Math):
            for name in directive.names:
                directives.register_directive(name, directive)
        roles._roles.update(_ROLES)
        yield
    finally:
        for registry, old in zip((directives._directives, roles._roles), before, strict=True):
            registry.clear()
            registry.update(old)


# ------------------------------------------------------------------------------------- nodes


class box(nodes.General, nodes.Element):
    """A theorem, an exercise, an admonition."""


class details(nodes.General, nodes.Element):
    """Something folded; its first child is the summary."""


class summary(nodes.General, nodes.TextElement):
    """What is seen of something folded."""


class pending(nodes.Inline, nodes.TextElement):
    """A reference that is resolved when the page is complete."""


class mark(nodes.General, nodes.Element):
    """The start or the end of a box whose content stands between two directives."""


def _html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


# -------------------------------------------------------------------------------- directives


class _AnyOption(dict):
    """Every option is allowed: those that are not known here are for others."""

    def __missing__(self, name: str) -> Any:
        return directives.unchanged


class _Base(Directive):
    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = _AnyOption({"class": directives.class_option})
    names: tuple[str, ...] = ()

    @property
    def page(self) -> _Page:
        page: _Page = self.state.document.settings.page
        return page

    @property
    def argument(self) -> str:
        return str(self.arguments[0]) if self.arguments else ""

    @property
    def label(self) -> str:
        return str(self.options.get("label") or self.options.get("name") or "")

    def inline(self, text: str) -> list[nodes.Node]:
        return list(self.state.inline_text(text, self.lineno)[0])

    def fill(self, node: nodes.Element) -> nodes.Element:
        self.state.nested_parse(self.content, self.content_offset, node)
        return node

    def boxed(self, classes: list[str], title: list[nodes.Node]) -> nodes.Element:
        """A box with a title and the content; a folded one if its class says so."""
        classes = [*classes, *self.options.get("class", [])]
        folded = "dropdown" in classes or "toggle" in classes
        outer = details(classes=["box", *classes]) if folded else box(classes=["box", *classes])
        if folded:
            outer += summary("", "", *title)
        elif title:
            outer += nodes.paragraph("", "", *title, classes=["box-title"])
        if "open" in self.options and folded:
            outer["open"] = True
        return self.fill(outer)

    def titled(self, word: str, kind: str) -> tuple[str, list[nodes.Node]]:
        """``Theorem 3``, and the nodes of a title such as **Theorem 3** (Squares)."""
        numbered = "nonumber" not in self.options
        name = f"{word} {self.page.next_number(kind)}" if numbered else word
        title: list[nodes.Node] = [nodes.strong("", name)]
        if self.argument:
            title += [nodes.Text(" ("), *self.inline(self.argument), nodes.Text(")")]
        return name, title


class _Theorem(_Base):
    names = tuple(
        f"prf:{kind}"
        for kind in (
            *("theorem", "lemma", "definition", "corollary", "proposition", "remark", "example"),
            *("conjecture", "axiom", "criterion", "observation", "property", "assumption"),
            *("algorithm", "notation"),
        )
    )

    def run(self) -> list[nodes.Node]:
        kind = self.name.partition(":")[2]
        name, title = self.titled(kind.capitalize(), kind)
        outer = self.boxed(["theorem", kind], title)
        self.page.add_label(self.label, outer, name)
        return [outer]


class _Proof(_Base):
    names = ("prf:proof",)

    def run(self) -> list[nodes.Node]:
        outer = self.boxed(["proof"], [])
        title = f" ({self.argument})" if self.argument else ""
        words = nodes.emphasis("", "", nodes.Text("Proof"), *self.inline(title), nodes.Text(". "))
        if isinstance(outer, details):
            outer[0].extend(words.children)
        elif outer.children and isinstance(outer[0], nodes.paragraph):
            outer[0].insert(0, words)
        else:
            outer.insert(0, nodes.paragraph("", "", words))
        return [outer]


class _Admonition(_Base):
    names = ("admonition",)

    def run(self) -> list[nodes.Node]:
        return [self.boxed(["admonition"], self.inline(self.argument))]


class _Note(_Base):
    """An admonition whose name is its title; text in the first line is content."""

    optional_arguments = 0
    names = (
        *("note", "tip", "hint", "important", "seealso"),
        *("warning", "caution", "attention", "danger", "error"),
    )

    def run(self) -> list[nodes.Node]:
        word = {"seealso": "See also"}.get(self.name, self.name.capitalize())
        return [self.boxed(["admonition", self.name], [nodes.Text(word)])]


class _Dropdown(_Base):
    names = ("dropdown", "toggle")

    def run(self) -> list[nodes.Node]:
        title = self.inline(self.argument or "Show")
        return [self.boxed(["admonition", "dropdown"], title)]


class _Exercise(_Base):
    names = ("exercise",)

    def run(self) -> list[nodes.Node]:
        if "hidden" in self.options:
            return []
        name, title = self.titled("Exercise", "exercise")
        outer = self.boxed(["exercise"], title)
        self.page.add_label(self.label, outer, name)
        return [outer]


class _Solution(_Base):
    """Folded; its argument is the label of the exercise."""

    names = ("solution",)

    def run(self) -> list[nodes.Node]:
        if "hidden" in self.options:
            return []
        self.options["class"] = [*self.options.get("class", []), "dropdown"]
        title: list[nodes.Node] = [nodes.Text("Solution")]
        if self.argument:
            word = pending("", "", kind="ref", target=self.argument, link=False)
            title += [nodes.Text(" to "), word]
        outer = self.boxed(["solution"], title)
        self.page.add_label(self.label, outer, "the solution")
        return [outer]


class _Start(_Base):
    """The start of an exercise or a solution whose content is in other cells."""

    names = ("exercise-start", "solution-start")

    def run(self) -> list[nodes.Node]:
        kind = _Exercise if self.name.startswith("exercise") else _Solution
        outer = kind.run(self)
        return [mark("", *outer, end=False)] if outer else []


class _End(_Base):
    names = ("exercise-end", "solution-end")

    def run(self) -> list[nodes.Node]:
        return [mark(end=True)]


class _Nothing(_Base):
    """What only a whole book has."""

    names = ("toctree", "tableofcontents", "bibliography", "contents", "nb-exec-table", "index")

    def run(self) -> list[nodes.Node]:
        return []


class _Math(_Base):
    names = ("math",)

    def run(self) -> list[nodes.Node]:
        text = "\n".join([self.argument, *self.content]).strip()
        block = nodes.math_block(text, text)
        if self.label:
            block["names"].append(nodes.fully_normalize_name(self.label))
            self.state.document.note_explicit_target(block, block)
        return [block]


class _Other(_Base):
    """A card, a grid, a tab, or what nobody knows: its title, if it has one, and its content."""

    def run(self) -> list[nodes.Node]:
        # The argument of a grid is a number of columns; lines of signs divide a card.
        plain = re.fullmatch(r"[\d\s]*", self.argument)
        title = [] if plain else [nodes.strong("", "", *self.inline(self.argument))]
        for i, line in enumerate(self.content):
            if line.strip() in ("^^^", "+++"):
                self.content[i] = ""
        return [self.boxed(["other", nodes.make_id(self.name)], title)]


# ---------------------------------------------------------------------------------- the cells


class _Cell(_Base):
    """A code cell: its source and its outputs, as its tags say."""

    name = "oralib-cell"
    names = (name,)

    def run(self) -> list[nodes.Node]:
        cell = self.page.notebook.cells[int(self.argument)]
        tags = {tag.replace("_", "-") for tag in _tags(cell)}
        options = cell.metadata.get("mystnb") or {}
        source: list[nodes.Node] = []
        if cell.source.strip() and "remove-input" not in tags:
            source = [_html(_highlighted(cell.source, self.page.notebook))]
        shown: list[nodes.Node] = []
        if "remove-output" not in tags:
            shown = [node for output in _joined(cell.outputs) for node in self.shown(output, cell)]
        if "hide-cell" in tags:
            parts = _folded("content", options, [*source, *shown])
        else:
            parts = _folded("source", options, source) if "hide-input" in tags else source
            parts += _folded("output", options, shown) if "hide-output" in tags else shown
        return [nodes.container("", *parts, classes=["cell"])] if parts else []

    def shown(self, output: Any, cell: Any) -> list[nodes.Node]:
        if output.output_type == "stream":
            return [_html(f'<pre class="output {output.name}">{escape(output.text)}</pre>\n')]
        if output.output_type == "error":
            text = re.sub(r"\x1b\[[^@-~]*[@-~]", "", "\n".join(output.traceback))
            return [_html(f'<pre class="output error">{escape(text)}</pre>\n')]
        options = cell.metadata.get("mystnb") or {}
        node = self.displayed(output.data, (options.get("image") or {}).get("alt") or "")
        figure = options.get("figure") or {}
        if not node or not figure.get("caption"):
            return node
        outer = nodes.figure("", *node)
        outer += nodes.caption("", "", *self.inline(str(figure["caption"])))
        outer["label"] = str(figure.get("name") or "")
        return [outer]

    def displayed(self, data: Any, alt: str) -> list[nodes.Node]:
        """The richest form of an output that a page without scripts can show."""
        if "text/html" in data:
            # Scripts of other hosts and other pages of the book cannot be reached from here.
            html = re.sub(r"<script\b[^>]*\bsrc=.*?</script>", "", data["text/html"], flags=re.S)
            html = re.sub(r'(<a\b[^>]*?)\s+href="(?!#|https?:|mailto:)[^"]*"', r"\1", html)
            return [_html(f'<div class="output scroll" tabindex="0">{html}</div>\n')]
        if "image/svg+xml" in data:
            svg = re.sub(r"^.*?(?=<svg)", "", data["image/svg+xml"], count=1, flags=re.S)
            # An id would be that of another picture as well.
            encoded = base64.b64encode(svg.encode()).decode()
            return [_html(_picture("image/svg+xml", encoded, alt))]
        for kind in ("image/png", "image/jpeg", "image/gif"):
            if kind in data:
                return [_html(_picture(kind, "".join(data[kind].split()), alt))]
        if "text/markdown" in data:
            inner = nodes.container(classes=["output"])
            lines = data["text/markdown"].splitlines()
            self.state.nested_parse(lines, self.content_offset, inner)
            return [inner]
        if "text/latex" in data:
            return [nodes.math_block("", data["text/latex"].strip().strip("$"))]
        if "text/plain" in data:
            return [_html(f'<pre class="output">{escape(data["text/plain"])}</pre>\n')]
        return []


def _folded(what: str, options: Any, content: list[nodes.Node]) -> list[nodes.Node]:
    if not content:
        return []
    prompt = str(options.get("code_prompt_show") or "Show code cell {type}")
    words = prompt.replace("{type}", what)
    return [details("", summary("", words), *content, classes=["folded"])]


def _joined(outputs: Any) -> list[Any]:
    """Outputs with the parts of one stream in one piece."""
    joined: list[Any] = []
    for output in outputs:
        last = joined[-1] if joined else None
        stream = output.output_type == "stream"
        if stream and last and last.output_type == "stream" and last.name == output.name:
            joined[-1] = nbformat.v4.new_output(
                "stream", name=last.name, text=last.text + output.text
            )
        else:
            joined.append(output)
    return joined


def _highlighted(source: str, notebook: Any) -> str:
    language = (notebook.metadata.get("language_info") or {}).get("name") or "python"
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    code = highlight(source, lexer, HtmlFormatter(nowrap=True))
    return f'<pre class="code" tabindex="0"><code>{code}</code></pre>\n'


def _picture(kind: str, encoded: str, alt: str) -> str:
    return f'<img alt="{escape(alt)}" src="data:{kind};base64,{encoded}">\n'


# ---------------------------------------------------------------------------------- the roles


def _split(text: str) -> tuple[str, str]:
    """The target of a role, and the text to show if one is given: ``text <target>``."""
    match = re.fullmatch(r"(.+?)\s*<([^<>]+)>", text, re.DOTALL)
    return (match[2].strip(), match[1]) if match else (text.strip(), "")


def _reference_role(name: str, rawtext: str, text: str, *_: Any, **__: Any) -> Any:
    target, words = _split(text)
    return [pending("", "", kind=name, target=target, words=words, link=True)], []


def _eval_role(name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any) -> Any:
    values = inliner.document.settings.page.values
    expression = text.replace("\n", " ").strip()
    if expression in values:
        return [nodes.Text(values[expression])], []
    return [nodes.literal("", expression)], []


def _cite_role(name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any) -> Any:
    page = inliner.document.settings.page
    in_text = name.endswith((":t", ":ts", ":ct"))
    found: list[nodes.Node] = []
    for key in filter(None, map(str.strip, text.split(","))):
        found += [nodes.Text("; ")] if found else []
        if key in page.works:
            if key not in page.cited:
                page.cited.append(key)
            words = _cited(page.works[key], in_text)
            found.append(nodes.reference("", words, refid=f"work-{nodes.make_id(key)}"))
        else:
            found.append(nodes.Text(key))
    return (found if in_text else [nodes.Text("["), *found, nodes.Text("]")]), []


def _other_role(name: str, rawtext: str, text: str, *_: Any, **__: Any) -> Any:
    target, words = _split(text)
    return [nodes.literal("", words or target)], []


_ROLES: dict[str, Any] = {
    **dict.fromkeys(("ref", "numref", "prf:ref", "eq", "doc", "any"), _reference_role),
    **dict.fromkeys(("cite", "cite:p", "cite:ps", "cite:t", "cite:ts", "cite:ct"), _cite_role),
    "eval": _eval_role,
}


# ------------------------------------------------------------------- numbers and references


def _box_between_marks(document: nodes.document) -> None:
    """Move what stands between the start and the end of an exercise into its box."""
    for start in list(document.findall(mark)):
        if start["end"] or start.parent is None:
            continue
        parent, outer = start.parent, start[0]
        inside = parent[parent.index(start) + 1 :]
        ends = [i for i, node in enumerate(inside) if isinstance(node, mark) and node["end"]]
        moved = inside[: ends[0]] if ends else []
        for node in moved:
            parent.remove(node)
            outer += node
        parent.replace(start, outer)
    for end in list(document.findall(mark)):
        end.parent.remove(end)


def _number(document: nodes.document, page: _Page) -> None:
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


def _resolve(document: nodes.document, page: _Page) -> None:
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


def _chapter(target: str, page: _Page) -> str:
    """The title of another chapter, if it is there; otherwise its name."""
    name = re.sub(r"\.(ipynb|md)$", "", target.partition("#")[0]).rpartition("/")[2]
    for cell in page.neighbours.get(name, []):
        heading = re.search(r"^#\s+(.+)$", cell.source, re.MULTILINE)
        if cell.cell_type == "markdown" and heading:
            return heading[1].strip()
    return name or target


def _found(label: str, page: _Page) -> str:
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


# ------------------------------------------------------------------------------ the bibliography


def _people(work: Any) -> list[str]:
    persons = work.persons.get("author") or work.persons.get("editor") or []
    return [" ".join(str(name) for name in person.rich_last_names) for person in persons]


def _field(work: Any, name: str) -> str:
    from pybtex.richtext import Text

    return str(Text.from_latex(work.fields[name])) if name in work.fields else ""


def _cited(work: Any, in_text: bool) -> str:
    people = _people(work)
    if len(people) > 2:
        who = f"{people[0]} et al."
    else:
        who = " and ".join(people) or _field(work, "title")
    year = _field(work, "year")
    return who + ((f" ({year})" if in_text else f", {year}") if year else "")


def _bibliography(page: _Page) -> str:
    """The works that are cited, by author."""
    if not page.cited:
        return ""
    lines = []
    for key in sorted(page.cited, key=lambda key: _cited(page.works[key], False).lower()):
        work = page.works[key]
        place = next(filter(None, (_field(work, f) for f in ("journal", "booktitle"))), "")
        people = _people(work)
        names = ", ".join(people[:-1]) + (" and " if people[:-1] else "") + "".join(people[-1:])
        words = [names, _field(work, "title"), place, _field(work, "year")]
        text = " ".join(
            word if word.endswith((".", "?", "!")) else f"{word}." for word in words if word
        )
        lines.append(f'<li id="work-{nodes.make_id(key)}">{escape(text)}</li>')
    return "\n".join(
        ['<section class="works">\n<h2>References</h2>\n<ul>', *lines, "</ul>\n</section>\n"]
    )


# ------------------------------------------------------------------------------------- HTML


class _Translator(html5_polyglot.HTMLTranslator):
    """HTML for our nodes, and for formulas, pictures and tables in our way."""

    def visit_box(self, node: Any) -> None:
        self.body.append(self.starttag(node, "div"))

    def depart_box(self, node: Any) -> None:
        self.body.append("</div>\n")

    def visit_details(self, node: Any) -> None:
        opened = {"open": "open"} if node.get("open") else {}
        self.body.append(self.starttag(node, "details", **opened))

    def depart_details(self, node: Any) -> None:
        self.body.append("</details>\n")

    def visit_summary(self, node: Any) -> None:
        self.body.append(self.starttag(node, "summary", suffix=""))

    def depart_summary(self, node: Any) -> None:
        self.body.append("</summary>\n")

    def visit_container(self, node: Any) -> None:
        self.body.append(self.starttag(node, "div"))

    def depart_container(self, node: Any) -> None:
        self.body.append("</div>\n")

    def visit_math(self, node: Any) -> None:
        block = isinstance(node, nodes.math_block)
        tex = node.astext()
        formula = as_mathml(tex, block) or f'<code class="tex">{escape(tex)}</code>'
        if block:
            self.body.append(self.starttag(node, "div", CLASS="formula scroll", tabindex="0"))
            number = node.get("number")
            formula += f'<span class="number">{number}</span>' if number else ""
            formula += "</div>\n"
        self.body.append(formula)
        raise nodes.SkipNode

    visit_math_block = visit_math

    def visit_table(self, node: Any) -> None:
        self.body.append('<div class="scroll" tabindex="0">\n')
        super().visit_table(node)

    def depart_table(self, node: Any) -> None:
        super().depart_table(node)
        self.body.append("</div>\n")

    def visit_image(self, node: Any) -> None:
        uri, alt = node["uri"], node.get("alt", "")
        folder = self.settings.page.folder
        path, kind = _picture_file(folder, uri)
        if path is not None:
            encoded = base64.b64encode(path.read_bytes()).decode()
            self.body.append(_picture(kind, encoded, alt))
        elif uri.startswith("data:"):
            self.body.append(f'<img alt="{escape(alt)}" src="{escape(uri)}">')
        else:  # another host, or nothing
            self.body.append(f'<span class="elsewhere">{escape(alt or uri)}</span>')
        raise nodes.SkipNode


def _picture_file(folder: Path | None, uri: str) -> tuple[Path | None, str]:
    """The file of a picture in the folder of the chapter, or below, and its kind."""
    kind = mimetypes.guess_type(uri)[0] or ""
    if folder is None or not kind.startswith("image/") or uri.startswith("data:"):
        return None, kind
    try:
        path = (folder / uri).resolve()
        inside = path.is_relative_to(folder.resolve()) and path.is_file()
    except OSError:  # a name that is too long
        inside = False
    return (path if inside else None), kind

"""Code cells: their sources and their outputs, as their tags say."""

# mypy: disable-error-code="import-untyped"

import base64
import re
from html import escape
from typing import Any

import nbformat
from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from oralib.figures.data import data_in
from oralib.runs.page.boxes import Base
from oralib.runs.page.parts import details, html, picture, summary
from oralib.runs.page.passive import passive


def tags_of(cell: Any) -> set[str]:
    return set(cell.metadata.get("tags") or ())


class Cell(Base):
    """A code cell: its source and its outputs, as its tags say."""

    name = "oralib-cell"
    names = (name,)

    def run(self) -> list[nodes.Node]:
        cell = self.page.notebook.cells[int(self.argument)]
        tags = {tag.replace("_", "-") for tag in tags_of(cell)}
        options = cell.metadata.get("mystnb") or {}
        source: list[nodes.Node] = []
        if cell.source.strip() and "remove-input" not in tags:
            source = [html(_highlighted(cell.source, self.page.notebook))]
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
            return [html(f'<pre class="output {output.name}">{escape(output.text)}</pre>\n')]
        if output.output_type == "error":
            text = re.sub(r"\x1b\[[^@-~]*[@-~]", "", "\n".join(output.traceback))
            return [html(f'<pre class="output error">{escape(text)}</pre>\n')]
        options = cell.metadata.get("mystnb") or {}
        node = self.displayed(output.data, (options.get("image") or {}).get("alt") or "")
        figure = options.get("figure") or {}
        if not node or not figure.get("caption"):
            return node
        outer = nodes.figure("", *node)
        outer += nodes.caption("", "", *self.inline(str(figure["caption"])))
        outer["label"] = str(figure.get("name") or "")
        return [outer, *_numbers(output.data, outer["label"])]

    def displayed(self, data: Any, alt: str) -> list[nodes.Node]:
        """The richest form of an output that a page without scripts can show."""
        if "text/html" in data:
            shown = passive(data["text/html"])
            return [html(f'<div class="output scroll" tabindex="0">{shown}</div>\n')]
        if "image/svg+xml" in data:
            svg = re.sub(r"^.*?(?=<svg)", "", data["image/svg+xml"], count=1, flags=re.S)
            # An id would be that of another picture as well.
            encoded = base64.b64encode(svg.encode()).decode()
            return [html(picture("image/svg+xml", encoded, alt))]
        for kind in ("image/png", "image/jpeg", "image/gif"):
            if kind in data:
                return [html(picture(kind, "".join(data[kind].split()), alt))]
        if "text/markdown" in data:
            inner = nodes.container(classes=["output"])
            lines = data["text/markdown"].splitlines()
            self.state.nested_parse(lines, self.content_offset, inner)
            return [inner]
        if "text/latex" in data:
            return [nodes.math_block("", data["text/latex"].strip().strip("$"))]
        if "text/plain" in data:
            return [html(f'<pre class="output">{escape(data["text/plain"])}</pre>\n')]
        return []


def _numbers(data: Any, name: str) -> list[nodes.Node]:
    """A link to the numbers of a figure, which its picture carries."""
    try:
        table = data_in(base64.b64decode(data.get("image/png", "")))
    except (OSError, ValueError, SyntaxError):  # no picture, or a damaged one
        return []
    if table is None:
        return []
    encoded = base64.b64encode(table.encode()).decode()
    file = f"{escape(name or 'figure')}.csv"
    link = f'<a download="{file}" href="data:text/csv;base64,{encoded}">{file}</a>'
    return [html(f'<p class="numbers">Data: {link}</p>\n')]


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

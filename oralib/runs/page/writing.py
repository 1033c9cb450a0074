"""HTML of our own parts, and of formulas, pictures and tables in our way."""

# mypy: disable-error-code="import-untyped"

import base64
import mimetypes
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.writers import html5_polyglot

from oralib.runs.formulas import as_mathml
from oralib.runs.page.parts import picture
from oralib.runs.page.passive import passive


class Translator(html5_polyglot.HTMLTranslator):
    """HTML for our nodes, and for formulas, pictures and tables in our way."""

    def visit_raw(self, node: Any) -> None:
        if not node.get("ours"):
            node[:] = [nodes.Text(passive(node.astext()))]
        super().visit_raw(node)

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
            self.body.append(picture(kind, encoded, alt))
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

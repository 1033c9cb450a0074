"""The cells of a notebook as one document of docutils, read by myst-parser."""

# mypy: disable-error-code="import-untyped"

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives, roles
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.mdit_to_docutils.base import DocutilsRenderer
from myst_parser.parsers.docutils_ import Parser as MystParser
from myst_parser.parsers.mdit import create_md_parser

from oralib.runs import prose
from oralib.runs.page.boxes import DIRECTIVES, Base, Other
from oralib.runs.page.cells import Cell, tags_of
from oralib.runs.page.known import Page
from oralib.runs.page.parts import pending
from oralib.runs.page.roles import ROLES, other_role


class Parser(MystParser):
    """Reads the cells of a notebook one after the other, instead of a text."""

    def __init__(self, page: Page) -> None:
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
            if tags_of(cell) & {"remove-cell", "remove_cell"}:
                continue
            if cell.cell_type == "markdown":
                tokens += parser.parse(cell.source, environment)
            elif cell.cell_type == "code":
                info = f"{{{Cell.name}}} {index}"
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


@contextlib.contextmanager
def registered(page: Page) -> Iterator[None]:
    """Let docutils know our directives and roles, and those of the notebook that nobody knows."""
    text = "\n".join(cell.source for cell in page.notebook.cells if cell.cell_type == "markdown")
    before = dict(directives._directives), dict(roles._roles)
    try:
        for name in re.findall(r"^[\s>]*[:`~]{3,}\{([^}\s]+)\}", text, re.MULTILINE):
            if name not in directives._directive_registry:
                directives.register_directive(name, Other)
        for name in re.findall(r"\{([A-Za-z][\w:.+-]*)\}`", text):
            if name not in roles._role_registry:
                roles._roles[name] = other_role
        ours: list[type[Base]] = [Cell, *DIRECTIVES]
        for known in ours:
            for name in known.names:
                directives.register_directive(name, known)
        roles._roles.update(ROLES)
        yield
    finally:
        for registry, old in zip((directives._directives, roles._roles), before, strict=True):
            registry.clear()
            registry.update(old)

"""An executed notebook as one HTML page that can be read anywhere, without a network or a script.

myst-parser reads the markdown cells, docutils writes the page. What Sphinx would add is made here
in a small way: boxes for theorems, exercises and admonitions, numbers and links within the page,
citations, and the numbers in prose. A reference to another page becomes text.
"""

# mypy: disable-error-code="import-untyped"

from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.core import publish_doctree, publish_from_doctree
from docutils.writers import html5_polyglot

from oralib.runs.page.boxes import box_between_marks
from oralib.runs.page.known import Page
from oralib.runs.page.parsing import Parser, registered
from oralib.runs.page.passive import POLICY
from oralib.runs.page.references import number, resolve
from oralib.runs.page.works import bibliography
from oralib.runs.page.writing import Translator

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
    page = Page(notebook, name, folder)
    with registered(page):
        document = publish_doctree(
            "", parser=Parser(page), settings_overrides={**_SETTINGS, "page": page}
        )
    box_between_marks(document)
    number(document, page)
    resolve(document, page)
    writer = html5_polyglot.Writer()
    writer.translator_class = Translator
    publish_from_doctree(document, writer=writer, settings_overrides={**_SETTINGS, "page": page})
    heading = next(iter(document.findall(nodes.title)), None)
    title = name if heading is None else heading.astext()
    works = bibliography({key: page.works[key] for key in page.cited})
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>\n{_STYLE.read_text(encoding='utf-8')}</style>\n</head>\n<body>\n<main>\n"
        f"{writer.parts['fragment']}{works}</main>\n</body>\n</html>\n"
    )

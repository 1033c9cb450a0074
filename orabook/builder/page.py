"""The page of a run: ``python -m orabook.builder.page NOTEBOOK PAGE FOLDER``.

Turns an executed notebook, whose {eval} expressions are already replaced by text, into one HTML
file, by Sphinx with the book's settings. Nothing is executed, and the file needs no network. Links
to other chapters become plain words. Pictures that the notebook mentions are taken from FOLDER.
"""

import base64
import copy
import mimetypes
import sys
import tempfile
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
from bs4 import BeautifulSoup
from jupyter_book.config import get_final_config
from sphinx.application import Sphinx

from orabook.builder.links import book_at, in_words, labels_in
from orabook.extensions.captions import move_captions
from orabook.place import BOOK

__all__ = ["main", "page_of", "write_page"]

_REFERENCES = "## References\n\n```{bibliography}\n:filter: docname in docnames\n```"

#: Our only extension that a single page needs, for the paper's numbers.
_OUR_EXTENSIONS = ("orabook.extensions.paper_statements",)

#: The selector of all style sheets except those for icons, whose fonts would have to be included.
_STYLE_SHEETS = "link[rel=stylesheet]:not([href*=fontawesome])"

_PAGE = """<!doctype html>
<html lang="en" data-theme="light" data-mode="light">
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>{style}
body {{ max-width: 52rem; margin: 2rem auto; padding: 0 1rem }}
.admonition-title::after {{ content: none !important }}
</style><script>MathJax = {{ options: {{ processHtmlClass: "math" }} }}</script>
<script>{mathjax}</script>
<article class="bd-article">{article}</article>
"""


def page_of(notebook: nbformat.NotebookNode, pictures: Path) -> str:
    """Return the page of a notebook as HTML; ``pictures`` is the folder of its pictures."""
    notebook = copy.deepcopy(notebook)
    # BOOK may be a relative path, and Sphinx changes the working directory.
    book = BOOK.resolve()
    references = book_at(book.parent)
    prose = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    labels = {label for cell in prose for label in labels_in(cell.source)}
    for cell in prose:
        cell.source = in_words(cell.source, references, labels)
    move_captions(notebook.cells)
    notebook.cells.append(nbformat.v4.new_markdown_cell(_REFERENCES))
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        out = Path(folder) / "out"
        source.mkdir()
        nbformat.write(notebook, source / "page.ipynb")
        Sphinx(
            str(source),
            None,
            str(out),
            str(out / "doctrees"),
            "html",
            confoverrides=_settings(book),
            status=None,
            warning=None,
        ).build()
        page = BeautifulSoup((out / "page.html").read_text(encoding="utf-8"), "html.parser")
        style_sheets = [
            out / element["href"].partition("?")[0] for element in page.select(_STYLE_SHEETS)
        ]
        article = page.select_one("article")
        for anchor in article.select(".headerlink"):
            anchor.decompose()
        for link in article.select('a[href]:not([href^="#"])'):
            # Without a scheme it leads to another file of the book, which this page is without.
            if not urlsplit(link["href"]).scheme:
                link.unwrap()
        for image in article.select("img[src]"):
            # Sphinx copies the figures of cells; other pictures are still in their folder.
            path = out / image["src"]
            if not path.exists():
                path = pictures / image["src"]
            if path.is_file():
                content = base64.b64encode(path.read_bytes()).decode()
                image["src"] = f"data:{mimetypes.guess_type(path.name)[0]};base64,{content}"
        return _PAGE.format(
            title=escape(article.h1.get_text() if article.h1 else "A run"),
            style="\n".join(sheet.read_text(encoding="utf-8") for sheet in style_sheets),
            mathjax=next(out.rglob("tex-svg.js")).read_text(encoding="utf-8"),
            article=article.decode_contents(),
        )


def _settings(book: Path) -> dict:
    """Return Sphinx's settings of the book, less those that need all of its pages."""
    # Jupyter Book takes latex_individualpages out of cli_config, and fails where it is not there.
    settings, _ = get_final_config(
        user_yaml=book.parent / "_config.yml", cli_config={"latex_individualpages": False}
    )
    # A single page has no table of contents, and most of our extensions need other pages.
    left_out = ("orabook.", "sphinx_external_toc")
    extensions = [name for name in settings["extensions"] if not name.startswith(left_out)]
    return settings | {
        "extensions": [*extensions, *_OUR_EXTENSIONS],
        "root_doc": "page",
        "nb_execution_mode": "off",
        "suppress_warnings": ["*"],
        "html_static_path": [str(book / "_static")],
        "html_js_files": [],
        "html_favicon": "",
        "bibtex_bibfiles": [str(book / "references.bib")],
    }


def write_page(text: str, target: Path) -> None:
    """Write a page whole or, where the disk is full, not at all."""
    unfinished = target.with_name(f".{target.name}")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def main() -> None:
    source, target, pictures = map(Path, sys.argv[1:])
    try:
        write_page(page_of(nbformat.read(source, 4), pictures), target)
    except Exception as error:  # Sphinx and its extensions raise errors of any class
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()

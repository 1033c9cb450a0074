"""The page of a run: ``python -m orabook.builder.page NOTEBOOK PAGE FOLDER``.

Sphinx makes it with the settings of the book, from an executed notebook with its numbers in prose
as text; nothing is executed. It is one HTML file that needs no network. Links to other chapters
become plain words. Pictures that the notebook mentions are taken from the folder.
"""

import base64
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

#: Of our own extensions only the one for the paper's numbers; the others are about whole books.
_OURS = ("orabook.extensions.paper_statements",)

#: All style sheets except those for icons, whose fonts would have to be included.
_SHEETS = "link[rel=stylesheet]:not([href*=fontawesome])"

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


def page_of(notebook: nbformat.NotebookNode, beside: Path) -> str:
    """The page of a notebook as HTML; its pictures are in a folder."""
    book = BOOK.resolve()  # it may be below the current folder, which Sphinx changes
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
        sheets = [out / link["href"].partition("?")[0] for link in page.select(_SHEETS)]
        article = page.select_one("article")
        for link in article.select(".headerlink"):
            link.decompose()
        for link in article.select('a[href]:not([href^="#"])'):
            if not urlsplit(link["href"]).scheme:  # a page or a file that is not beside this one
                link.unwrap()
        for image in article.select("img[src]"):
            place = out / image["src"]
            place = place if place.exists() else beside / image["src"]
            if place.is_file():
                content = base64.b64encode(place.read_bytes()).decode()
                image["src"] = f"data:{mimetypes.guess_type(place.name)[0]};base64,{content}"
        return _PAGE.format(
            title=escape(article.h1.get_text() if article.h1 else "A run"),
            style="\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets),
            mathjax=next(out.rglob("tex-svg.js")).read_text(encoding="utf-8"),
            article=article.decode_contents(),
        )


def _settings(book: Path) -> dict:
    """The settings of the book, without what is about whole books."""
    settings, _ = get_final_config(
        user_yaml=book.parent / "_config.yml", cli_config={"latex_individualpages": False}
    )
    left_out = ("orabook.", "sphinx_external_toc")
    extensions = [name for name in settings["extensions"] if not name.startswith(left_out)]
    return settings | {
        "extensions": [*extensions, *_OURS],
        "root_doc": "page",
        "nb_execution_mode": "off",
        "suppress_warnings": ["*"],
        "html_static_path": [str(book / "_static")],
        "html_js_files": [],
        "html_favicon": "",
        "bibtex_bibfiles": [str(book / "references.bib")],
    }


def write_page(text: str, target: Path) -> None:
    """Write a page whole or not at all: the disk may be full."""
    unfinished = target.with_name(f".{target.name}")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def main() -> None:
    source, target, beside = map(Path, sys.argv[1:])
    try:
        write_page(page_of(nbformat.read(source, 4), beside), target)
    except Exception as error:  # from Sphinx or the disk
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()

"""Build the book into ``_build/html``: ``python -m orabook.builder.build``, as ``make book`` does.

This is ``jupyter-book build --warningiserror --nitpick .``, but pages are read side by side, and
chapters are executed while they are read. As a Sphinx extension this module declares that the other
extensions allow that, and adds the downloads.
"""

import os
import sys
from pathlib import Path

import sphinx.builders
from jupyter_book.sphinx import build_sphinx
from sphinx_proof.domain import ProofDomain

from orabook.builder import downloads
from orabook.place import ROOT

__all__ = ["add_downloads", "build", "setup"]

#: The most pages that are read at a time: the kernel of a chapter has its own threads.
PAGES = 4


def build(root: Path) -> bool:
    """Build the book in a folder; return whether it could be built."""
    failed = build_sphinx(
        root,
        root / "_build" / "html",
        noconfig=True,
        path_config=root / "_config.yml",
        confoverrides={
            "external_toc_path": str(root / "_toc.yml"),
            "latex_individualpages": False,
            "nitpicky": True,
        },
        warningiserror=True,
        jobs=min(PAGES, os.cpu_count() or 1),
    )
    print(getattr(failed, "traceback", ""), file=sys.stderr)  # of a cell
    return not failed


def add_downloads(app, exception) -> None:
    """Put the wheel and the archive with the pages, unless a test builds another book."""
    if exception is None and app.builder.format == "html" and Path(app.srcdir) == ROOT:
        downloads.build(Path(app.outdir) / "downloads")


def setup(app) -> dict:
    app.connect("build-finished", add_downloads)
    # Each page is a separate task. Sphinx would make a few large ones, and wait for the last.
    sphinx.builders.make_chunks = lambda pages, processes: [[page] for page in pages]
    # It keeps nothing that belongs to a page, but does not say so.
    ProofDomain.merge_domaindata = lambda domain, pages, other: None
    # The same, for work that they do after all pages have been read.
    for name in ("sphinx_multitoc_numbering", "sphinx-mathjax-offline"):
        app.extensions[name].parallel_read_safe = True
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    sys.exit(not build(ROOT))

"""The line below every figure of numbers: a file with them, and the command that recomputes them.

The PNG of a picture carries its table (see ``orabook.figures.data``); the book offers it as CSV.
"""

from pathlib import Path

from docutils import nodes

from orabook.figures.data import data_in

__all__ = ["below", "offer_data", "setup"]

#: The folder of the files in the built book.
FOLDER = "_downloads/figures"


def offer_data(app, doctree, docname) -> None:
    """Write the table of each figure into a file, and link it."""
    if app.builder.format != "html":
        return
    for figure in doctree.findall(nodes.figure):
        image = next(iter(figure.findall(nodes.image)), None)
        if image is None or not figure["ids"] or not image["uri"].endswith(".png"):
            continue
        path = Path(app.srcdir) / image["uri"]
        table = data_in(path.read_bytes()) if path.exists() else None
        if table is not None:
            name = f"{figure['ids'][0]}.csv"
            folder = Path(app.outdir) / FOLDER
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(table, encoding="utf-8")
            figure += below(name, "../" * docname.count("/"), Path(docname).name)


def below(name: str, up: str, chapter: str) -> nodes.legend:
    """A line with the link and the command.

    >>> below("fig-a.csv", "../", "04-the-gaps").astext()
    'Data: fig-a.csv. Computed by: orabook run 04-the-gaps'
    """
    line = nodes.paragraph("", "Data: ")
    line += nodes.reference("", name, internal=False, refuri=f"{up}{FOLDER}/{name}")
    line += nodes.Text(". Computed by: ")
    line += nodes.literal("", f"orabook run {chapter}")
    return nodes.legend("", line, classes=["figure-data"])


def setup(app) -> dict:
    app.connect("doctree-resolved", offer_data)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Execute the chapters in place, all or some: ``python -m orabook.builder.execute 04-the-gaps``.

Only what belongs in a commit is kept: outputs, execution counts and tags, but no timings. Numbers
in prose are kept in the metadata of the notebook, so that they can be compared (``compare``), and
shown without an execution (``stored_outputs``). The picture of the README is one of a chapter.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from tqdm import tqdm

from orabook.builder import compare
from orabook.builder.contents import contents
from orabook.extensions import stored_outputs
from orabook.place import BOOK, ROOT
from orabook.prose import VALUES, evaluate, fill_in, text_of, values_in

__all__ = ["check_unchanged", "execute", "main", "readme_picture"]

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def execute(path: Path) -> None:
    notebook = nbformat.read(path, 4)
    resources = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(
        notebook, timeout=600, record_timing=False, coalesce_streams=True, resources=resources
    )
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            fill_in(client, cell)
            client.execute_cell(cell, index)
        check_unchanged(client, notebook)
    numbers: dict[str, str] = {}
    for cell in notebook.cells:
        numbers |= values_in(cell)
        cell.metadata.pop(VALUES, None)
    notebook.metadata = nbformat.from_dict(METADATA | {stored_outputs.NUMBERS: numbers})
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")


def check_unchanged(client: NotebookClient, notebook: nbformat.NotebookNode) -> None:
    """Refuse a number in prose that has changed at the end, when JupyterLab evaluates them all."""
    entries = [entry for cell in notebook.cells for entry in cell.metadata.get(VALUES, [])]
    at_end = evaluate(client, [entry["expression"] for entry in entries])
    for entry in entries:
        before = text_of(entry["result"])
        after = text_of(at_end[entry["expression"]])
        if before != after:
            raise ValueError(
                f"{{eval}}`{entry['expression']}` is {before} in its place and {after} at the end: "
                "a name that prose mentions must be assigned once"
            )


def readme_picture() -> bytes:
    """The PNG of the paper's Figure 2, as chapter 6 shows it."""
    cells = nbformat.read(BOOK / "06-dp-sgd.ipynb", 4).cells
    label = ":label: fig-dpsgd-tradeoff\n"
    caption = next(place for place, cell in enumerate(cells) if label in cell.source)
    (picture,) = compare.pictures(cells[caption - 1].outputs)
    return picture


def main() -> None:
    # A notebook that is not in the contents is somebody's own and is not overwritten.
    pages = {Path(page).name for _, part in contents(ROOT) for page in part}
    chapters = {path.stem: path for path in sorted(BOOK.glob("*.ipynb")) if path.stem in pages}
    for name in sys.argv[1:]:
        if name not in chapters:
            sys.exit(f"there is no chapter {name}; the chapters are {', '.join(chapters)}")
    bar = tqdm(sys.argv[1:] or list(chapters))
    for name in bar:
        bar.set_description(name)
        missing = stored_outputs.missing(chapters[name])
        if missing:
            bar.write(f"{name} needs {', '.join(missing)}: make torch", file=sys.stderr)
            continue
        try:
            execute(chapters[name])
        except Exception as error:  # from the chapter, its kernel or the disk
            sys.exit(f"{name} failed: {str(error) or type(error).__name__}")
    (BOOK / "figure-2.png").write_bytes(readme_picture())


if __name__ == "__main__":
    main()

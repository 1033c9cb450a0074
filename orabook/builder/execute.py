"""Execute the chapters in place, all or some: ``python -m orabook.builder.execute 04-the-gaps``.

Only what belongs in a commit is kept: outputs, execution counts and tags, but no timings. Numbers
in prose are kept where a chapter may have to be shown without an execution (``stored_outputs``).
Without names, the picture of the README is redrawn too.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from tqdm import tqdm

from orabook import experiments, figures
from orabook.builder.contents import contents
from orabook.experiments import REPORTED
from orabook.extensions import stored_outputs
from orabook.place import BOOK, ROOT
from orabook.prose import VALUES, evaluate, fill_in, text_of, values_in

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
    stored = {stored_outputs.NUMBERS: numbers} if stored_outputs.extras(path) else {}
    notebook.metadata = nbformat.from_dict(METADATA | stored)
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")


def check_unchanged(client: NotebookClient, notebook: nbformat.NotebookNode) -> None:
    """Refuse a number in prose that has changed at the end, when JupyterLab evaluates them all."""
    entries = [entry for cell in notebook.cells for entry in cell.metadata.get(VALUES, [])]
    at_end = evaluate(client, [entry["expression"] for entry in entries])
    for entry in entries:
        before, after = text_of(entry["result"]), text_of(at_end[entry["expression"]])
        if before != after:
            raise ValueError(
                f"{{eval}}`{entry['expression']}` is {before} in its place and {after} at the end: "
                "a name that prose mentions must be assigned once"
            )


def draw_readme_picture() -> None:
    """The paper's Figure 2, with the two means that it quotes and the bands of its 200 audits."""
    ratios = (*(0.1, 0.2, 0.3, 0.5, 0.7), *range(1, 9), *(10, 12, 16, 24, 32, 48, 64))
    table = experiments.elements_per_coordinate(ratios, trials=10_000)
    picture = figures.lines(
        figures.curves_of(table, "x", ["bound", "estimation"], audits=200),
        "elements per coordinate n/d",
        "privacy level ε (nats)",
        points={"quoted in the paper": (list(REPORTED), *zip(*REPORTED.values(), strict=True))},
        references={"certified ε": 2.0},
        log_x=True,
        ylim=(0, None),
    )
    picture.savefig(BOOK / "figure-2.png", dpi=144)


def main() -> None:
    # A notebook that is not in the contents is somebody's own and is not overwritten.
    pages = {Path(page).name for _, part in contents(ROOT) for page in part}
    chapters = {path.stem: path for path in sorted(BOOK.glob("*.ipynb")) if path.stem in pages}
    for name in sys.argv[1:]:
        if name not in chapters:
            sys.exit(f"there is no chapter {name}; the chapters are {', '.join(chapters)}")
    for name in (bar := tqdm(sys.argv[1:] or list(chapters))):
        bar.set_description(name)
        if missing := stored_outputs.missing(chapters[name]):
            bar.write(f"{name} needs {', '.join(missing)}: make torch", file=sys.stderr)
            continue
        try:
            execute(chapters[name])
        except Exception as error:  # from the chapter, its kernel or the disk
            sys.exit(f"{name} failed: {str(error) or type(error).__name__}")
    if not sys.argv[1:]:
        draw_readme_picture()


if __name__ == "__main__":
    main()

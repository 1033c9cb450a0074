"""Execute the chapters in place: ``python -m book``, or ``python -m book 04-the-gaps``.

Only what belongs into a commit is kept: outputs, execution counts, tags and the numbers in prose,
no timings. Without names, the picture of the README is drawn again as well. A notebook that
somebody has saved in the meantime is left as it is.
"""

import signal
import sys

if __name__ == "__main__":  # Ctrl-C is an exception only where there is something to say
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from oralib.runs import _lean  # noqa: F401  # which lets nbformat be imported in less time

import logging
from io import BytesIO
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from tqdm import tqdm

from book._ext import stored_outputs
from book.contents import contents
from oralib._folders import replace
from oralib.runs import prose

BOOK = Path(__file__).parent
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def execute(path: Path) -> None:
    before = path.read_bytes()
    notebook = nbformat.reads(before.decode(), 4)
    resources = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(
        notebook, timeout=600, record_timing=False, coalesce_streams=True, resources=resources
    )
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            prose.fill_in(client, cell)
            client.execute_cell(cell, index)
        prose.check_unchanged(client, notebook)
    notebook.metadata = nbformat.from_dict(METADATA)
    replace(path, before, (nbformat.writes(notebook) + "\n").encode())


def draw_readme_picture() -> None:
    """The paper's Figure 2, with the two means that it quotes and the bands of its 200 audits."""
    from oralib import experiments, figures  # take long to import, and chapters do so by themselves

    ratios = (*(0.1, 0.2, 0.3, 0.5, 0.7), *range(1, 9), *(10, 12, 16, 24, 32, 48, 64))
    table = experiments.elements_per_coordinate(ratios, trials=10_000)
    quoted = {1: (0.49, 0.01), 8: (0.62, 0.01)}
    label = "elements per coordinate n/d"
    picture = figures.tradeoff(table, label, epsilon=2.0, quoted=quoted, audits=200)
    drawn = BytesIO()
    picture.savefig(drawn, format="png", dpi=144)
    replace(BOOK / "figure-2.png", None, drawn.getvalue())


def main() -> None:
    # A notebook that is not in the contents is somebody's own, and is not written over.
    pages = {Path(page).name for _, part in contents(BOOK.parent) for page in part}
    chapters = {path.stem: path for path in sorted(BOOK.glob("*.ipynb")) if path.stem in pages}
    names = sys.argv[1:] or list(chapters)
    for name in names:
        if name not in chapters:
            sys.exit(f"there is no chapter {name}; the chapters are {', '.join(chapters)}")
    paths = [chapters[name] for name in dict.fromkeys(names)]
    for path in [path for path in paths if stored_outputs.missing(path)]:
        print(
            f"{path.stem} needs {', '.join(stored_outputs.missing(path))}: make torch",
            file=sys.stderr,
        )
        paths.remove(path)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for path in (bar := tqdm(paths)):
        bar.set_description(path.stem)
        try:
            execute(path)
        except KeyboardInterrupt:
            logging.disable()  # asyncio would tell at the end what the cell raised when it was cut
            sys.exit(f"interrupted; {path.stem} is as it was")
        # Of the chapter, its kernel, which may die or be unknown, or the disk.
        except Exception as error:
            said = str(error) or type(error).__name__
            sys.exit(f"{path.stem} failed: {said}")
    if not sys.argv[1:]:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            draw_readme_picture()
        except OSError as error:
            sys.exit(f"the picture of the README cannot be written: {error}")


if __name__ == "__main__":
    main()

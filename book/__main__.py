"""Execute the chapters in place: ``python -m book``, or ``python -m book 04-the-gaps``.

Only what belongs into a commit is kept: outputs, execution counts and tags, no timings.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from tqdm import tqdm

BOOK = Path(__file__).parent
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def execute(path: Path) -> None:
    notebook = nbformat.read(path, 4)
    resources = {"metadata": {"path": str(BOOK)}}
    NotebookClient(
        notebook, timeout=600, record_timing=False, coalesce_streams=True, resources=resources
    ).execute()
    notebook.metadata = nbformat.from_dict(METADATA)
    nbformat.write(notebook, path)


def main() -> None:
    names = sys.argv[1:] or [path.stem for path in sorted(BOOK.glob("*.ipynb"))]
    paths = [BOOK / f"{name}.ipynb" for name in names]
    for path in paths:
        if not path.exists():
            sys.exit(f"there is no chapter {path.stem}")
    for path in (bar := tqdm(paths)):
        bar.set_description(path.stem)
        execute(path)


main()

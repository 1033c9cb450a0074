"""Where the book is: beside this package in a checkout, otherwise below the current folder."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

BOOK = ROOT / "book" if (ROOT / "book").is_dir() else Path("book")


def book_file(name: str) -> Path:
    """A file of the book that a chapter reads: beside this package, here, or in ``book`` below."""
    for place in (ROOT / "book", Path(), Path("book")):
        if (place / name).is_file():
            return place / name
    raise FileNotFoundError(
        f"there is no {name} of the book beside orabook or in {Path.cwd()}; run the chapter in its "
        "own folder, with all files that are there"
    )

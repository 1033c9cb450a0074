"""The place of the book: next to this package in a checkout, else below the current folder."""

from pathlib import Path

__all__ = ["BOOK", "ROOT", "book_file"]

ROOT = Path(__file__).resolve().parents[1]

BOOK = ROOT / "book" if (ROOT / "book").is_dir() else Path("book")


def book_file(name: str) -> Path:
    """Find a file that a chapter reads: in the book next to this package, here, or in ``book``."""
    for folder in (ROOT / "book", Path(), Path("book")):
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(
        f"there is no {name} of the book beside orabook or in {Path.cwd()}; run the chapter in its "
        "own folder, with all files that are there"
    )

"""The table of contents of the book, for code that needs its pages."""

from pathlib import Path

import yaml

__all__ = ["contents"]


def contents(root: Path) -> list[tuple[str, list[str]]]:
    """The parts of the book in a folder, each with its pages; the first has no name."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    parts = [("", [toc["root"]])]
    for part in toc.get("parts", ()):
        pages = []
        for chapter in part["chapters"]:
            pages.append(chapter["file"])
            pages += [section["file"] for section in chapter.get("sections", ())]
        parts.append((part["caption"], pages))
    return parts

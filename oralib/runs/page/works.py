"""The works that a page cites, from the BibTeX file beside its chapter."""

# mypy: disable-error-code="import-untyped"

import re
import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes


def read_works(path: Path) -> Any:
    """Entries of a BibTeX file, by key; what is wrong in it is said and costs no other entry."""
    try:
        if not path.is_file():
            return {}
        written = path.read_bytes()
    except OSError as error:
        print(f"{path} cannot be read: {error.strerror}", file=sys.stderr)
        return {}
    text = written.decode("utf-8-sig", "replace")
    works, wrong = _parsed([text])
    if wrong:
        # A brace that is missing takes what follows with it, up to the next line with an @.
        works, _ = _parsed(re.split(r"^(?=[ \t]*@)", text, flags=re.MULTILINE))
    if "\N{REPLACEMENT CHARACTER}" in text:
        wrong.append("not all of it is a text in UTF-8")
    for problem in wrong:
        print(f"{path}: {problem}", file=sys.stderr)
    return works


def _parsed(pieces: list[str]) -> tuple[Any, list[str]]:
    """The entries in pieces of a file, and what is wrong with them."""
    # A part of a second, which only pages with citations need.
    from pybtex.database.input.bibtex import Parser
    from pybtex.errors import capture

    parser = Parser()
    with capture() as wrong:
        for piece in pieces:
            try:
                parser.parse_string(piece)
            except Exception as error:  # that pybtex itself does not expect
                wrong.append(error)
    works = parser.data.entries
    for key in [key for key, work in works.items() if not cited_as(work, False)]:
        del works[key]  # an error has left nothing of it
    return works, [" ".join(str(problem).split()) for problem in wrong]


def _people(work: Any) -> list[str]:
    persons = work.persons.get("author") or work.persons.get("editor") or []
    return [" ".join(str(name) for name in person.rich_last_names) for person in persons]


def _field(work: Any, name: str) -> str:
    from pybtex.richtext import Text

    written = str(work.fields.get(name, ""))
    try:
        return str(Text.from_latex(written))
    except Exception:  # of braces that do not match
        return written


def cited_as(work: Any, in_text: bool) -> str:
    people = _people(work)
    if len(people) > 2:
        who = f"{people[0]} et al."
    else:
        who = " and ".join(people) or _field(work, "title")
    year = _field(work, "year")
    return who + ((f" ({year})" if in_text else f", {year}") if year else "")


def bibliography(works: Mapping[str, Any]) -> str:
    """The works that are cited, by author."""
    if not works:
        return ""
    lines = []
    for key in sorted(works, key=lambda key: cited_as(works[key], False).lower()):
        work = works[key]
        place = next(filter(None, (_field(work, f) for f in ("journal", "booktitle"))), "")
        people = _people(work)
        names = ", ".join(people[:-1]) + (" and " if people[:-1] else "") + "".join(people[-1:])
        words = [names, _field(work, "title"), place, _field(work, "year")]
        text = " ".join(
            word if word.endswith((".", "?", "!")) else f"{word}." for word in words if word
        )
        lines.append(f'<li id="work-{nodes.make_id(key)}">{escape(text)}</li>')
    return "\n".join(
        ['<section class="works">\n<h2>References</h2>\n<ul>', *lines, "</ul>\n</section>\n"]
    )

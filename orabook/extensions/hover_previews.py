"""Previews of linked statements and figures, to see them without leaving the page.

After the build, the boxes and figures that any link leads to are collected from the pages into one
script, ``_static/previews-data.js``. ``previews.js`` loads it when the pointer first rests on such
a link: a script and not JSON, so that it also works for a book that is opened as files. Other
extensions for this load their scripts from other hosts.
"""

import json
import posixpath
from pathlib import Path

from bs4 import BeautifulSoup

#: What can be shown: statements, the paper's and ours, and figures.
TARGETS = "div.proof[id], figure[id]"
LINKS = "article a.reference.internal[href*='#']"


def previews(pages: dict[str, str]) -> dict[str, str]:
    """From places, ``page#anchor``, to the HTML there, for all that some page links to.

    >>> page = '<article><div class="proof" id="a"><img src="../x.png"></div></article>'
    >>> link = '<article><a class="reference internal" href="one.html#a">A</a></article>'
    >>> previews({"book/one.html": page, "book/two.html": link})
    {'book/one.html#a': '<div class="proof"><img src="x.png"/></div>'}
    """
    found, wanted = {}, set()
    for name, html in pages.items():
        page = BeautifulSoup(html, "html.parser")
        for link in page.select(LINKS):
            file, _, anchor = link["href"].partition("#")
            wanted.add(f"{moved(file, name) if file else name}#{anchor}")
        for target in page.select(TARGETS):
            place = f"{name}#{target['id']}"
            found[place] = alone(target, name)
    return {place: found[place] for place in sorted(wanted & set(found))}


def moved(address: str, page: str) -> str:
    """An address as it is seen from the root of the book."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), address))


def alone(target, page: str) -> str:
    """A piece of a page that can be shown on another one: no ids, no links to its own title."""
    for part in target.select(".headerlink, .figure-data, script"):
        part.decompose()
    for part in [target, *target.select("[id]")]:
        del part["id"]
    for part in target.select("[src], [href]"):
        name = "src" if part.has_attr("src") else "href"
        if "://" not in part[name] and not part[name].startswith(("data:", "#")):
            part[name] = moved(part[name], page)
    return str(target)


def write(app, exception) -> None:
    if exception is None and app.builder.name == "html":
        out = Path(app.outdir)
        pages = {
            path.relative_to(out).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted((out / "book").glob("*.html"))
        }
        data = json.dumps(previews(pages), ensure_ascii=False)
        (out / "_static" / "previews-data.js").write_text(
            f"window.oralibPreviews = {data};\n", encoding="utf-8"
        )


def setup(app) -> dict:
    app.connect("build-finished", write, priority=900)  # after all repairs
    return {"parallel_read_safe": True, "parallel_write_safe": True}

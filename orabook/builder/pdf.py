"""The whole book as one PDF, from the pages that ``make book`` has built.

The pages are joined into one, in the order of the table of contents, and headless Chromium prints
it: nothing is executed again, and LaTeX is not needed. What needs a screen is left out: the things
to play with, buttons, downloads, and folded code, whose figure or table is there. So is the
reference of the library. Links between pages lead to places inside the PDF; others become text.
"""

import base64
import logging
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from io import BytesIO
from pathlib import Path
from posixpath import join, normpath
from typing import Any

import yaml
from bs4 import BeautifulSoup
from pypdf import PdfReader, PdfWriter

from orabook.builder.contents import contents
from orabook.place import BOOK, ROOT

__all__ = [
    "article",
    "head",
    "joined",
    "lay_out",
    "link_inside",
    "local",
    "main",
    "offer",
    "place",
    "print_out",
    "printed_parts",
    "printer",
    "read",
    "sheets",
    "start_chromium",
]

HTML = ROOT / "_build" / "html"
PDF = ROOT / "_build" / "pdf" / "auditing-differential-privacy-in-one-run.pdf"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

#: A selector of the elements that are useless on paper.
DROPPED = """.headerlink, script, style, .copybtn, .figure-data, .ledger-box > input,
.ledger-box > label, table.ledger details, .run, .ways-in, .on-screen, .explorer,
section:has(> .calculator), section:has(> .gap-game), .cell > .hide,
.cell:has(> .hide):not(:has(> .cell_output)), .cell:has(:-soup-contains("Results that a run"))"""
#: The beginnings of pages that are not printed.
LEFT_OUT = ("book/api",)
MATHJAX = 'head script[src*="mathjax"]'

# ------------------------------------------------------------------------------------------------
# One page of all pages


def place(page: str, anchor: str = "") -> str:
    """The id of a place of the book in the joined page.

    >>> place("book/04-the-gaps"), place("book/04-the-gaps", "fig-gaps-three")
    ('04-the-gaps', '04-the-gaps.fig-gaps-three')
    """
    name = page.removeprefix("book/")
    return f"{name}.{anchor}" if anchor else name


def printed_parts() -> list[tuple[str, list[str]]]:
    """The parts of the book, each with its printed pages."""
    return [
        (name, [page for page in pages if not page.startswith(LEFT_OUT)])
        for name, pages in contents(ROOT)
    ]


def read(page: str) -> BeautifulSoup:
    path = HTML / f"{page}.html"
    if not path.exists():
        raise SystemExit(f"error: the page {page} is not built: run `make book` first")
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def article(page: str, pages: list[str]) -> Any:
    """The content of a page, with ids and links as they are in the joined page."""
    content = read(page).select_one("article.bd-article")
    for useless in content.select(DROPPED):
        useless.decompose()
    for fold in content.find_all("details"):
        fold["open"] = ""
    for element in content.find_all(id=True):
        element["id"] = place(page, element["id"])
    for link in content.find_all("a", href=True):
        link_inside(link, page, pages)
    for image in content.find_all("img", src=True):
        image["src"] = local(page, image["src"])
    for level in range(5, 0, -1):  # the level above is for the parts
        for heading in content.find_all(f"h{level}"):
            heading.name = f"h{level + 1}"
    content.name = "section"
    content["class"] = ["chapter"]
    return content


def link_inside(link: Any, page: str, pages: list[str]) -> None:
    """Point a link to its place in the joined page; a link to a file outside it becomes text."""
    target = link["href"]
    if re.match(r"[a-z]+:", target):
        return
    path, _, anchor = target.partition("#")
    linked = normpath(join(page, "..", path)).removesuffix(".html") if path else page
    if linked in pages:
        link["href"] = "#" + place(linked, anchor)
    else:
        link.unwrap()


def local(page: str, source: str) -> str:
    """The address of a file of the book from the folder of the PDF.

    >>> local("book/index", "../_images/a.png")
    '../html/_images/a.png'
    """
    if re.match(r"[a-z]+:", source):
        return source
    return f"../html/{normpath(join(page, '..', source))}"


def head(pages: list[str]) -> str:
    """The style sheets, and the scripts for formulas, of the first page that has formulas."""
    soups = ((page, read(page)) for page in pages)
    page, soup = next((page, soup) for page, soup in soups if soup.select_one(MATHJAX))
    sheets = soup.select('head link[rel="stylesheet"]')
    for sheet in sheets:
        sheet["href"] = local(page, sheet["href"])
    scripts = soup.select(MATHJAX)
    for script in scripts:
        script["src"] = local(page, script["src"])
    settings = [x for x in soup.select("head script") if "window.MathJax" in x.text]
    return "\n".join(map(str, [*sheets, *settings, *scripts]))


def joined() -> str:
    """The whole book as one page; the sheet numbers in its table of contents come later."""
    parts = printed_parts()
    pages = [page for _, listed in parts for page in listed]
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    title = config["title"]
    footer = config["html"]["extra_footer"].rstrip(".")
    chapters = []
    listing = []
    for name, listed in parts:
        listing.append(f"<li>{name}<ul>" if name else "<li><ul>")
        for number, page in enumerate(listed):
            chapter = article(page, pages)
            heading = chapter.find("h2")
            heading["id"] = place(page)  # not the chapter, which may begin a sheet before it
            text = heading.get_text(" ", strip=True)
            if page == pages[0]:
                if text == title:
                    text = "Preface"
                heading.string = text
                heading.name = "h1"  # it is in no part
            if name and number == 0:
                part = BeautifulSoup(f'<h1 class="part">{name}</h1>', "html.parser")
                heading.insert_before(part)  # next to it, so that they stay together
            name_and_sheet = f'<span>{text}</span> <span class="sheet"></span>'
            listing.append(f'<li><a href="#{place(page)}">{name_and_sheet}</a></li>')
            chapters.append(chapter)
        listing.append("</ul></li>")
    anchors = {element["id"] for chapter in chapters for element in chapter.find_all(id=True)}
    links = [link for chapter in chapters for link in chapter.select('a[href^="#"]')]
    for link in links:
        if link["href"][1:] not in anchors:  # it is left out
            link.unwrap()
    return f"""<!DOCTYPE html>
<html lang="en" data-theme="light" data-mode="light">
<head>
<meta charset="utf-8">
<title>{title}</title>
{head(pages)}
<link rel="stylesheet" href="../html/_static/print.css">
<script src="../html/_static/print.js"></script>
</head>
<body class="bd-content">
<header>
<p class="title">{title}</p>
<p>The companion, in code, to the paper <em>How Well Can Differential Privacy Be Audited in One
Run?</em> by Amit Keinan, Moshe Shenfeld and Katrina Ligett</p>
<p>{footer}, {date.today():%Y-%m-%d}</p>
<p class="small">The code of figures and tables and the reference of the library are left out here.
They are on the pages of the book, and its notebooks run.</p>
</header>
<nav><h1>Contents</h1><ul>{"".join(listing)}</ul></nav>
<main>{"".join(map(str, chapters))}</main>
</body>
</html>
"""


# ------------------------------------------------------------------------------------------------
# The printer

#: The printed width of a sheet, in CSS pixels: A4 without its margins.
WIDTH = round((210 - 2 * 16) / 25.4 * 96)


def start_chromium(profile: Path, hosts: str = "", **logs: str) -> Any:
    """A headless Chromium with a profile folder of its own, which reaches only some hosts."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if not browser or not driver:
        raise SystemExit(
            "error: Chromium prints the PDF, but it or its driver is missing "
            "(on Debian: apt-get install chromium chromium-driver)"
        )
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        f"--host-resolver-rules=MAP * ~NOTFOUND{hosts}",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", logs)
    return webdriver.Chrome(options, webdriver.ChromeService(driver))


@contextmanager
def printer() -> Iterator[Any]:
    """A Chromium without network access that takes its time."""
    with tempfile.TemporaryDirectory() as profile, start_chromium(Path(profile)) as chromium:
        chromium.command_executor.client_config.timeout = 1200  # it is a long book
        chromium.set_script_timeout(600)
        yield chromium


def lay_out(chromium: Any, path: Path) -> None:
    """Open the joined page as it will be on paper, and shrink what is too wide."""
    screen = {"width": WIDTH, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    chromium.get(path.as_uri())
    chromium.execute_async_script(
        "const done = arguments[0];"
        "const ready = () => window.MathJax.startup.promise.then(() => document.fonts.ready)"
        "  .then(() => done());"
        "document.readyState === 'complete' ? ready() : window.addEventListener('load', ready);"
    )
    chromium.execute_script("fit()")


def print_out(chromium: Any, *, whole: bool = True) -> PdfReader:
    """The page as a PDF, with an outline and tags for screen readers if it is the whole book."""
    options = {
        "preferCSSPageSize": True,
        "printBackground": whole,
        "generateTaggedPDF": whole,
        "generateDocumentOutline": whole,
    }
    printed = chromium.execute_cdp_cmd("Page.printToPDF", options)["data"]
    return PdfReader(BytesIO(base64.b64decode(printed)))


def sheets(reader: PdfReader) -> dict[str, int]:
    """The sheet on which each chapter begins, counting from 1."""
    targets = {name.removeprefix("/"): x for name, x in reader.named_destinations.items()}
    names = [place(page) for _, listed in printed_parts() for page in listed]
    return {name: reader.get_destination_page_number(targets[name]) + 1 for name in names}


def main() -> None:
    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it counts objects unlike Chromium
    with printer() as chromium:
        PDF.parent.mkdir(parents=True, exist_ok=True)
        for name in ("print.css", "print.js"):
            shutil.copy(BOOK / "_static" / name, HTML / "_static")
        page = PDF.with_suffix(".html")
        page.write_text(joined(), encoding="utf-8")
        lay_out(chromium, page)
        wide = chromium.execute_script("return tooWide()")
        if wide:
            places = "\n".join(wide)
            raise SystemExit(f"error: too wide for paper: {places}")
        whole = print_out(chromium)
        # Only now do we know on which sheet each chapter begins. To print everything again would
        # take minutes, so numbers and heads are printed alone, and laid onto the sheets.
        begins = list(sheets(whole).items())  # a dict would be sorted on its way
        chromium.execute_script("leaveNumbers(...arguments)", begins, len(whole.pages))
        numbers = print_out(chromium, whole=False)
    writer = PdfWriter(clone_from=whole)
    for sheet, stamp in zip(writer.pages, numbers.pages, strict=True):
        sheet.merge_page(stamp)
    writer.write(PDF)
    offer(PDF, HTML, len(writer.pages))
    print(f"{PDF.relative_to(ROOT)}: {len(writer.pages)} sheets")


def offer(pdf: Path, html: Path, pages: int) -> None:
    """Put the PDF into the built book, and a link to it on the first page.

    ``make book`` alone makes no PDF, so only this step writes the link; a second time it renews it.
    """
    shutil.copy(pdf, html / "downloads" / pdf.name)
    first = html / "book" / "index.html"
    page = BeautifulSoup(first.read_text(encoding="utf-8"), "html.parser")
    for old in page.select("p.whole-book"):
        old.decompose()
    size = pdf.stat().st_size / 1e6
    link = f'<a href="../downloads/{pdf.name}">one PDF</a>'
    text = f"The whole book as {link}, without what needs a screen: {pages} sheets, {size:.0f} MB."
    box = page.select_one("div.admonition.run")
    box.append(BeautifulSoup(f'<p class="whole-book">{text}</p>', "html.parser"))
    first.write_text(str(page), encoding="utf-8")


if __name__ == "__main__":
    main()

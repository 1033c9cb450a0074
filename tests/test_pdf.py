"""The book as a PDF: what the tool says, how it joins pages, and the file that it has made."""

import re
import shutil

import pytest
from bs4 import BeautifulSoup

from orabook.builder import pdf

pytestmark = pytest.mark.browser


def soup(html):
    return BeautifulSoup(html, "html.parser")


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("#fig", "#a.fig"),
        ("b.html", "#b"),
        ("b.html#eq", "#b.eq"),
        ("https://arxiv.org/x#y", "https://arxiv.org/x#y"),
        ("../downloads/oralib.whl", None),
    ],
)
def test_links_stay_inside_lead_outside_or_become_text(href, expected):
    page = soup(f'<p><a href="{href}">words</a></p>')
    pdf.link_inside(page.a, "book/a", ["book/a", "book/b"])
    assert page.get_text() == "words"
    assert (page.a["href"] if page.a else None) == expected


PIECES = {
    '<div class="cell"><details class="hide"><summary>Code</summary><p>x</p></details></div>': "",
    '<div class="cell"><details class="hide"><summary>Code</summary></details>'
    '<div class="cell_output">figure</div></div>': "figure",
    '<div class="cell"><details class="hide"><summary>Results that a run of it records</summary>'
    '</details><div class="cell_output">recorded</div></div>': "",
    "<section><h2>Play</h2><p>Press.</p><div class='gap-game'>Needs a screen.</div></section>": "",
    "<section><p>Words.</p><div class='explorer'>Needs a screen.</div></section>": "Words.",
    "<details><summary>Proof.</summary> It is so.</details>": "Proof. It is so.",
    "<div class='ways-in'><a class='sd-btn' href='b.html'>Read it</a></div>": "",
}


@pytest.mark.parametrize("piece", PIECES)
def test_what_needs_a_screen_is_left_out(piece, monkeypatch):
    page = soup(f'<article class="bd-article">{piece}</article>')
    monkeypatch.setattr(pdf, "read", lambda name: page)
    assert pdf.article("book/a", ["book/a"]).get_text() == PIECES[piece]
    assert not page.select("details:not([open])")


LITTLE = """<!DOCTYPE html><html><body style="margin: 0"><main style="overflow-wrap: anywhere">
<script>window.MathJax = {startup: {promise: Promise.resolve()}}</script><script>%s</script>
<table style="width: 1200px"><tr><td>made to fit</td></tr></table>
<pre style="white-space: %s; overflow-x: auto">%s</pre></main></body></html>"""


@pytest.mark.skipif(not shutil.which("chromedriver"), reason="needs chromium and chromedriver")
def test_what_would_be_cut_off_is_found(tmp_path):
    page = tmp_path / "little.html"
    script = (pdf.BOOK / "_static" / "print.js").read_text()
    with pdf.printer() as chromium:
        for space, wide in (("pre-wrap", []), ("pre", ["pre"])):
            page.write_text(LITTLE % (script, space, "code " * 100))
            pdf.lay_out(chromium, page)
            found = chromium.execute_script("return tooWide()")
            assert [re.match(r"<(\w+)", html)[1] for html in found] == wide
        (sheet,) = pdf.print_out(chromium).pages
    assert [round(float(x) / 72 * 25.4) for x in sheet.mediabox[2:]] in ([210, 297], [216, 279])


def test_pdf_is_offered_once_on_the_first_page(tmp_path):
    (tmp_path / "downloads").mkdir()
    (tmp_path / "book").mkdir()
    first = tmp_path / "book" / "index.html"
    first.write_text('<article><div class="run admonition"><p>Run it.</p></div></article>')
    made = tmp_path / "whole.pdf"
    made.write_bytes(b"x" * 2_600_000)
    for pages in (140, 141):
        pdf.offer(made, tmp_path, pages)
    (link,) = soup(first.read_text()).select("p.whole-book")
    assert link.get_text().endswith("141 sheets, 3 MB.")
    assert (first.parent / link.a["href"]).read_bytes() == made.read_bytes()


@pytest.fixture(scope="module")
def printed():
    if not pdf.PDF.exists():
        pytest.skip("needs the PDF of `make pdf`")
    return pdf.PdfReader(pdf.PDF)


def titles(outline):
    for entry in outline:
        if isinstance(entry, list):
            yield from titles(entry)
        else:
            yield re.sub(r"\s+", "", entry.title)


def test_outline_and_contents_have_every_chapter(printed):
    page = soup(pdf.PDF.with_suffix(".html").read_text(encoding="utf-8"))
    chapters = [a.find("span").get_text() for a in page.select("nav a")]
    assert len(chapters) == sum(len(pages) for _, pages in pdf.printed_parts())
    assert {re.sub(r"\s+", "", chapter) for chapter in chapters} <= {*titles(printed.outline)}
    found = pdf.sheets(printed)
    assert len(found) == len(chapters) < len(printed.pages)
    listed = printed.pages[1].extract_text()
    assert all(re.search(rf"\b{number}\b", listed) for number in found.values())
    for chapter, sheet in zip(chapters, found.values(), strict=True):  # the title, and a head
        words = re.sub(r"\s+", "", printed.pages[sheet - 1].extract_text())
        first = list(found.values()).index(sheet) == chapters.index(chapter)
        assert words.count(re.sub(r"\s+", "", chapter)) >= 1 + first
    assert len(printed.pages) <= 180


def test_every_link_leads_somewhere(printed):
    known = {name.removeprefix("/") for name in printed.named_destinations}
    inside, outside = set(), set()
    for page in printed.pages:
        for entry in page.get("/Annots", ()):
            link = entry.get_object()
            if "/Dest" in link:
                inside.add(str(link["/Dest"]).removeprefix("/"))
            elif "/URI" in link.get("/A", {}):
                outside.add(link["/A"]["/URI"])
    assert len(inside) > 100
    assert inside <= known
    assert outside
    assert all(re.match("https?:|mailto:", address) for address in outside)


def test_links_of_the_printed_page_have_targets():
    """Chromium drops a link to nowhere in silence."""
    path = pdf.PDF.with_suffix(".html")
    if not path.exists():
        pytest.skip("needs the PDF of `make pdf`")
    page = soup(path.read_text(encoding="utf-8"))
    known = [element["id"] for element in page.find_all(id=True)]
    assert len(known) == len(set(known))
    asked = {a["href"][1:] for a in page.select('a[href^="#"]')}
    assert asked
    assert asked <= set(known)
    assert not re.search("click to show|JavaScript", page.get_text())
    assert not page.select(".sd-btn, button, input, [download]")

"""The page of a run: what the book shows, in one file, without a network or a script."""

import base64
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

from oralib.runs import prose
from oralib.runs.formulas import as_mathml
from oralib.runs.page import page_of
from oralib.runs.page.passive import passive

BOOK = Path(__file__).parent.parent / "book"
CHAPTERS = sorted(BOOK.glob("*.ipynb"))
PIXEL = base64.b64encode(b"\x89PNG not really").decode()

markdown, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell


def cell(source, *outputs, tags=(), **mystnb):
    metadata = {"tags": list(tags)} | ({"mystnb": mystnb} if mystnb else {})
    return code(source, outputs=list(outputs), metadata=metadata, execution_count=1)


def display(**data):
    kinds = {"html": "text/html", "png": "image/png", "plain": "text/plain", "md": "text/markdown"}
    kinds |= {"svg": "image/svg+xml", "latex": "text/latex"}
    return nbformat.v4.new_output("display_data", {kinds[k]: v for k, v in data.items()})


def printed(text, name="stdout"):
    return nbformat.v4.new_output("stream", name=name, text=text)


def page(*cells, folder=None, name="own"):
    """The body of a page of these cells; a text is a markdown cell."""
    cells = [markdown(entry) if isinstance(entry, str) else entry for entry in cells]
    html = page_of(nbformat.v4.new_notebook(cells=cells), name, folder)
    return html.partition("<main>")[2].partition("</main>")[0]


def text(html):
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


class Reader(HTMLParser):
    """Checks that tags are closed in their order; collects links, ids and addresses."""

    VOID = frozenset(("meta", "img", "br", "hr", "input", "col", "link", "path", "mspace", "wbr"))

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.addresses = [], [], [], []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids += [found["id"]] if "id" in found else []
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        self.addresses += [found[name] for name in ("src", "data", "action") if name in found]
        if tag == "script" or (tag == "link" and "href" in found):
            self.addresses.append(f"<{tag}>")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def read(html):
    reader = Reader()
    reader.feed(html)
    assert reader.open == []
    return reader


# ------------------------------------------------------------------------------ all chapters


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_chapter_has_a_page(path):
    html = page_of(nbformat.read(path, 4), path.stem, BOOK)
    reader = read(html)
    assert all(address.startswith("data:") for address in reader.addresses)
    assert not re.search(r"@import|url\(", html.partition("</head>")[0])
    inner = [link[1:] for link in reader.links if link.startswith("#")]
    assert set(inner) <= set(reader.ids)
    elsewhere = ("#", "https://", "http://", "data:text/csv;base64,")  # figures carry their data
    assert [link for link in reader.links if not link.startswith(elsewhere)] == []
    assert 'class="tex"' not in html  # a formula that could not be converted
    body = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", html, flags=re.DOTALL)
    assert ":::" not in body
    assert "system-message" not in body
    assert not re.search(r"\{(?:numref|ref|prf:ref|doc|cite|cite:t|eval)\}", body)
    assert len(re.findall("<img", html)) == len(re.findall(r'<img alt="[^"]', html))


# ---------------------------------------------------------------------------------- formulas


def plain(tex, block=False):
    return re.sub(r"\s*\n\s*| xmlns=\"[^\"]*\"", "", as_mathml(tex, block) or "")


@pytest.mark.parametrize(
    ("tex", "mathml"),
    [
        (r"\frac12 + x", "<mfrac><mn>1</mn><mn>2</mn></mfrac><mo>+</mo><mi>x</mi>"),
        (r"\tfrac1n", "<mn>1</mn><mi>n</mi></mfrac>"),
        (r"\frac n2", "<mfrac><mi>n</mi><mn>2</mn></mfrac>"),
        (r"\frac1{10}", "<mfrac><mn>1</mn><mn>10</mn></mfrac>"),
        (r"x^12", "<msup><mi>x</mi><mn>1</mn></msup><mn>2</mn>"),
        (r"(0,1)", "<mn>0</mn><mo>,</mo><mn>1</mn>"),
        (r"1{,}000", "<mn>1,000</mn>"),
        (r"\{-1, 1\}", '<mo>{</mo><mo form="prefix">−</mo><mn>1</mn>'),
        (r"\ln 2", '<mi>ln</mi><mo>&ApplyFunction;</mo><mspace width="0.17em"/><mn>2</mn>'),
        (r"\ln(2)", '<mo>&ApplyFunction;</mo><mo stretchy="false">(</mo>'),
        (r"ε \le 1", "<mi>ε</mi><mo>≤</mo>"),
        (r"\big| x \Big|", 'maxsize="1.623em"'),
        (r"1, \dots, n", "<mi>…</mi>"),
        (r"a < b", "<mo>&lt;</mo>"),
    ],
)
def test_formulas(tex, mathml):
    assert mathml in plain(tex)


def test_what_is_no_formula_is_shown_as_it_is_written():
    assert as_mathml(r"\nothing{x}", block=False) is None
    assert as_mathml(r"\frac{1", block=True) is None
    html = page(r"So $\nothing{<b>}$.", r"$$\nothing$$")
    assert r'<code class="tex">\nothing{&lt;b&gt;}</code>.' in html
    assert r'<code class="tex">\nothing</code>' in html


def test_equations_have_numbers():
    html = page(
        "$$a = b$$ (eq-a)\n\nSee {eq}`eq-a` and {eq}`eq-b`.", "```{math}\n:label: eq-b\nc\n```"
    )
    assert text(html).count("(1)") == text(html).count("(2)") == 2
    assert 'href="#eq-b">(2)</a>' in html
    read(html)


# ------------------------------------------------------------------------------------- boxes


def test_theorems_are_numbered_and_linked():
    html = page(
        "By {prf:ref}`thm-b` and {prf:ref}`the {number}th <thm-b>`, {ref}`thm-b`.",
        ":::{prf:theorem} Odd *things*\nOne.\n:::\n\n"
        ":::{prf:theorem}\n:label: thm-b\nTwo, $x$.\n:::\n\n"
        ":::{prf:lemma}\n:nonumber:\nThree.\n:::\n\n"
        ":::{prf:proof}\nFour.\n\nFive.\n:::",
    )
    assert "<strong>Theorem 1</strong> (Odd <em>things</em>)" in html
    assert '<div class="box theorem" id="thm-b">' in html
    assert html.count('href="#thm-b">Theorem 2</a>') == 2
    assert 'href="#thm-b">the 2th</a>' in html
    assert "<strong>Lemma</strong>" in html
    assert '<div class="box proof">\n<p><em>Proof. </em>Four.</p>' in html
    read(html)


def test_admonitions_and_what_is_folded():
    html = page(
        "```{note} In the first line.\n```\n\n:::{warning}\nBeware.\n:::",
        ":::{admonition} A *title* {eval}`x`\n:class: tip\nText.\n:::",
        ":::{admonition} Folded\n:class: dropdown\nInside.\n:::\n\n:::{dropdown} More\nDeep.\n:::",
        "::::{tip}\n:::{note}\nNested.\n:::\n::::",
    )
    assert '<p class="box-title">Note</p>\n<p>In the first line.</p>' in html
    assert '<div class="box admonition warning">' in html
    assert "A <em>title</em>" in html
    assert html.count("<details") == 2
    assert "<summary>Folded</summary>\n<p>Inside.</p>\n</details>" in html
    assert "<summary>More</summary>\n<p>Deep.</p>\n</details>" in html
    assert re.search(
        r'tip">\n<p class="box-title">Tip</p>\n<div class="box admonition note">', html
    )
    read(html)


def test_exercises_and_their_solutions():
    html = page(
        ":::{exercise} Halves\n:label: ex-a\nWhat is $\\frac12$?\n:::",
        ":::{solution} ex-a\n:label: sol-a\nA half.\n:::",
        "```{exercise-start}\n:label: ex-b\n```",
        cell("1 + 1", printed("in the exercise")),
        "Words.\n\n```{exercise-end}\n```\n\nAfter {ref}`ex-b`.",
        ":::{exercise}\n:hidden:\nNever.\n:::",
    )
    assert "<strong>Exercise 1</strong> (Halves)" in html
    assert "<summary>Solution to Exercise 1</summary>\n<p>A half.</p>\n</details>" in html
    boxed = html[html.index('id="ex-b"') : html.index("After")]
    assert "in the exercise" in boxed
    assert "Words." in boxed
    assert 'href="#ex-b">Exercise 2</a>' in html
    assert "Never" not in html
    read(html)


def test_what_nobody_knows_keeps_its_content():
    html = page(
        "::::{grid} 1 2 2 3\n:gutter: 3\n\n"
        ":::{grid-item-card} A card\n:link: x\nInside.\n+++\nFoot.\n:::\n::::",
        "````{tab-set}\n```{tab-item} First\nTabbed *text*.\n```\n````",
        "```{mystery} Title\nContent of a mystery, {mystery}`role` and {role}`text <target>`.\n```",
        "```{toctree}\nnothing\n```",
    )
    words = text(html)
    for expected in ("A card Inside. Foot.", "First Tabbed text .", "Title Content of a mystery"):
        assert expected in words
    assert "1 2 2 3" not in words
    assert "nothing" not in words
    assert ">role</span>" in html
    read(html)


# ------------------------------------------------------------------------- numbers in prose


def filled(source, **values):
    told = [
        {"expression": name, "result": {"status": "ok", "data": {"text/plain": repr(value)}}}
        for name, value in values.items()
    ]
    return markdown(source, metadata={prose.SECTION: told})


def test_numbers_are_filled_in():
    html = page(
        filled(
            "# About {eval}`b`\n\nIt is {eval}`a`, **{eval}`b`**.\n\n"
            ":::{prf:theorem} Of {eval}`b`\nBody {eval}`a`.\n:::\n\n"
            "| x |\n|---|\n| {eval}`a` |\n\n`{eval}` is ``{eval}`a` ``",
            a=0.25,
            b="1.0 ± 0.1 <i>`x`</i>",
        )
    )
    assert "<p>It is 0.25, <strong>1.0 ± 0.1 &lt;i&gt;`x`&lt;/i&gt;</strong>.</p>" in html
    assert "<p>Body 0.25.</p>" in html
    assert re.search(r"<td>(<p>)?0\.25(</p>)?</td>", html)
    assert "{eval}`a`</span>" in html
    assert "About 1.0" in html


def test_a_number_without_a_value_is_shown_as_code():
    assert "x + 1</span>" in page("So {eval}`x + 1`.")


# ------------------------------------------------------------------------------------- cells


def test_tags_hide_and_remove():
    html = page(
        cell("first()", printed("shown")),
        cell("second()", printed("two"), tags=["hide-input"], code_prompt_show="How it is drawn"),
        cell("third()", printed("three"), tags=["remove-input"]),
        cell("fourth()", printed("four"), tags=["remove-cell"]),
        cell("fifth()", printed("five"), tags=["hide-output"]),
        cell("sixth()", printed("six"), tags=["remove_output"]),
        cell("seventh()", printed("seven"), tags=["hide-cell"]),
        markdown("Secret.", metadata={"tags": ["remove-cell"]}),
        cell("", tags=["hide-input"]),
    )
    words = text(html)
    assert "How it is drawn second () two third" not in words
    assert words.count("How it is drawn") == 1
    assert '<details class="folded">\n<summary>How it is drawn</summary>' in html
    assert "<summary>Show code cell output</summary>" in html
    assert "<summary>Show code cell content</summary>" in html
    for gone in ("third", "fourth", "four", "six<", "Secret"):
        assert gone not in html
    assert html.count("<details") == 3
    read(html)


def test_outputs():
    table = '<table class="dataframe"><tr><td>1</td></tr></table>'
    frame = f"<style scoped>td {{x: y}}</style>{table}"
    html = page(
        cell("a", printed("one "), printed("line <b>\n"), printed("oh", name="stderr")),
        cell("b", display(html=frame + '<script src="https://x/y.js"></script>', plain="no")),
        cell("c", display(md="Some *words*")),
        cell("d", display(svg='<?xml version="1.0"?><svg id="s"></svg>'), image={"alt": 'a "b"'}),
        cell("e", display(latex="$x^2$"), display(plain="<plain>")),
        cell("f", nbformat.v4.new_output("error", traceback=["\x1b[31mOops\x1b[0m <x>"])),
    )
    assert '<pre class="output stdout">one line &lt;b&gt;\n</pre>' in html
    assert '<pre class="output stderr">oh</pre>' in html
    assert f'<div class="output scroll" tabindex="0">{frame}</div>' in html
    assert "y.js" not in html
    assert "Some <em>words</em>" in html
    assert '<img alt="a &quot;b&quot;" src="data:image/svg+xml;base64,' in html
    assert "<msup>" in html
    assert "&lt;plain&gt;</pre>" in html
    assert "Oops &lt;x&gt;</pre>" in html
    read(html)


def test_figures_have_numbers_captions_and_words_for_those_who_do_not_see_them(tmp_path):
    (tmp_path / "dot.png").write_bytes(base64.b64decode(PIXEL))
    figure = {"caption": "A *caption* with $x$.", "name": "fig-b"}
    html = page(
        "See {numref}`fig-b` and {numref}`picture %s <fig-a>`.",
        "```{figure} dot.png\n:name: fig-a\n:alt: a dot\nThe first.\n```",
        cell("draw()", display(png=PIXEL), figure=figure, image={"alt": "a curve"}),
        "![elsewhere](https://example.org/x.png) ![here](dot.png)",
        folder=tmp_path,
    )
    assert '<a class="reference internal" href="#fig-b">Figure 2</a>' in html
    assert 'href="#fig-a">picture 1</a>' in html
    assert html.count(f'src="data:image/png;base64,{PIXEL}"') == 3
    assert '<img alt="a dot"' in html
    assert '<img alt="a curve"' in html
    assert "<strong>Figure 2</strong>. A <em>caption</em> with <math" in html
    assert '<span class="elsewhere">elsewhere</span>' in html
    reader = read(html)
    assert {"fig-a", "fig-b"} <= set(reader.ids)


# -------------------------------------------------------------------------------- references

WORKS = """@article{one, author = {Ada Müller},
  title = {On {DP} \\"uber}, journal = {J}, year = 2001}
@book{two, author = {Bo, C. and Du, E.}, title = {Two}, year = {2002}}
@misc{three, author = {X, A and Y, B and Z, C}, title = {Three}}"""


def test_citations(tmp_path):
    (tmp_path / "references.bib").write_text(WORKS)
    html = page("As {cite}`one,two`, {cite:t}`three` and {cite:p}`four`.", folder=tmp_path)
    assert "As [ Müller, 2001 ; Bo and Du, 2002 ], X et al. and [four]." in text(html)
    assert '<a class="reference internal" href="#work-one">' in html
    assert "Müller. On DP über. J. 2001." in text(html)
    assert text(html).index("Bo and Du. Two") < text(html).index("Müller. On")
    read(html)


def test_citations_without_a_bibliography(tmp_path):
    assert "As [one]." in page("As {cite}`one`.")
    (tmp_path / "references.bib").write_text("@article{one, ")
    assert "As [one]." in page("As {cite}`one`.", folder=tmp_path)


@pytest.mark.parametrize(
    "bad", ['@article{x, title = "a {b"}', "@article{x, author = {C} title = {D}}", "@article{x,"]
)
def test_a_bad_entry_costs_no_other_citation(tmp_path, capsys, bad):
    first, _, others = WORKS.partition("@book")
    (tmp_path / "references.bib").write_text(f"{first}\n{bad}\n@book{others}")
    html = page("As {cite}`one,two` and {cite:t}`three`.", folder=tmp_path)
    assert "As [ Müller, 2001 ; Bo and Du, 2002 ] and X et al." in text(html)
    assert "references.bib: syntax error in line" in capsys.readouterr().err


def test_a_bibliography_that_is_not_in_utf8(tmp_path, capsys):
    (tmp_path / "references.bib").write_bytes(WORKS.encode("latin-1"))
    html = page("As {cite}`two` and {cite:t}`three`.", folder=tmp_path)
    assert "As [ Bo and Du, 2002 ] and X et al." in text(html)
    assert "not all of it is a text in UTF-8" in capsys.readouterr().err


def test_references_to_other_pages_are_words(tmp_path):
    other = "(ch-o)=\n# The other one\n\n:::{prf:lemma} Small\n:label: lem-o\nx\n:::"
    cells = [markdown(other), cell("x", figure={"caption": "c", "name": "fig-o"})]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "other.ipynb")
    (tmp_path / "broken.ipynb").write_text("{")
    html = page(
        "{doc}`other`, {doc}`that one <other>`, {ref}`ch-o`, {prf:ref}`lem-o`, {numref}`fig-o`, "
        "{ref}`nowhere`, [file](other.ipynb), [](other.ipynb), [web](https://example.org).",
        folder=tmp_path,
    )
    words = text(html)
    assert words.startswith(
        "The other one , that one , The other one , Lemma (Small) in The other one , "
        "a figure in The other one , nowhere , file , The other one , web"
    )
    assert read(html).links == ["https://example.org"]


def test_links_within_the_page():
    html = page(
        "(top)=\n# Title\n\n## Second part", "To {ref}`top`, [here](#second-part), [x](top)."
    )
    assert 'href="#top">Title</a>' in html
    assert 'href="#second-part">here</a>' in html
    assert 'href="#top">x</a>' in html
    reader = read(html)
    assert {"top", "second-part"} <= set(reader.ids)


ACTS = [
    "<script>out('block')</script>",
    "So <script>out('inline')</script> it is.",
    "<script>\nout('open')",
    '<img src="x" onerror="out(1)">',
    '<a href="javascript:out(1)">x</a>',
    '<a href=" java\nscript:out(1)">x</a>',
    '<iframe srcdoc="<script>out(1)</script>"></iframe>',
    '<meta http-equiv="refresh" content="0;url=https://example.org/out">',
    '<form action="https://example.org/out"><input></form>',
    '<svg onload="out(1)"><a xlink:href="javascript:out(1)">x</a></svg>',
    '<object data="https://example.org/out"></object>',
    "```{raw} html\n<script>out(1)</script>\n```",
]


@pytest.mark.parametrize("acts", ACTS)
@pytest.mark.parametrize("where", ["prose", "output"])
def test_nothing_acts_by_itself(acts, where):
    if where == "output":
        acts = cell("show()", display(html=acts.replace("```{raw} html", "").strip("`")))
    html = page(acts, "The next cell.")
    assert not re.search(r"<(script|iframe|form|meta|object)|javascript:|srcdoc| on\w+=", html)
    assert "<p>The next cell.</p>" in html


def test_a_browser_is_told_to_run_nothing():
    html = page_of(nbformat.v4.new_notebook(cells=[]), "own")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert unescape(policy[1]).startswith("default-src 'none'; img-src data:;")
    assert html.index(policy[0]) < html.index("<title>")


@pytest.mark.parametrize(
    "kept",
    [
        '<b class="x">a &lt; b &amp; c&#8211;d</b>',
        '<a href="https://example.org/?a=1&amp;b=2">x</a>',
        "<style scoped>a > b {x: '&'}</style>",
        '<svg viewbox="0 0 1 1"><path d="M 0 0"/></svg>',
        f'<img alt="a &quot;b&quot;" src="data:image/png;base64,{PIXEL}">',
        "<details open><summary>x</summary>y</details>",
    ],
)
def test_harmless_html_is_kept(kept):
    assert passive(kept) == kept


@pytest.mark.parametrize(
    "odd", ["<!-- never closed", "<style>a", "a <b", '<div class="', "<![CDATA["]
)
def test_html_that_never_ends_hides_nothing_else(odd):
    assert re.fullmatch(r"(<style>a?</style>)?[^<]*", passive(odd))
    assert "<p>The next cell.</p>" in page(odd, "The next cell.")


def test_html_that_browsers_read_in_another_way():
    assert "<img" not in passive("<svg><style><img src=x onerror=out()></style></svg>")
    assert "<script" not in passive("<scr<script>ipt>out()</script>")


def test_odd_notebooks(tmp_path):
    assert text(page()) == ""
    html = page_of(nbformat.v4.new_notebook(cells=[]), "a <b>", None)
    assert "<title>a &lt;b&gt;</title>" in html
    unfinished = page(":::{note}\nNever closed.", "Next *cell*.", "---\n\nA line.")
    assert "Never closed." in unfinished
    assert "Next <em>cell</em>." in unfinished


def test_nothing_of_a_page_is_left_in_docutils():
    from docutils.parsers.rst import directives, roles

    before = dict(directives._directives), dict(roles._roles)
    page(":::{prf:theorem}\nx {mystery}`y`\n:::\n\n```{mystery}\n```")
    assert (directives._directives, roles._roles) == before

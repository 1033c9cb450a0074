"""The book's own extensions and settings, on a small book that has everything once."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from orabook.extensions import stored_outputs
from orabook.prose import expressions

pytestmark = pytest.mark.slow  # a book is built

ROOT = Path(__file__).parent.parent

INDEX = """# A small book

Start with Proposition E.5.

| where | what |
| --- | --- |
| Definitions A.1 and 3.1 | `Theorem 5.2` in code |

They are {cite}`steinke2023`.

:::{run-this-book}
:::
"""

BOXES = """# Statements

## Theorem 5.2

:::{prf:theorem} Theorem 5.2 of the paper: when $k$ guesses are tight (almost)
:label: paper-theorem-5-2
:nonumber:
Theorem 5.2 says so, unlike Proposition E.5.
:::

:::{prf:proposition} Proposition E.5 of the paper
:label: paper-proposition-e-5
:nonumber:
It is about $n$.
:::

:::{prf:definition} Definition 3.1 of the paper: tight
:label: paper-definition-3-1
:nonumber:
A word.
:::

:::{prf:theorem} Ours, from Theorem 5.2
:label: thm-ours
See {prf:ref}`the best <paper-theorem-5-2>` and {prf:ref}`thm-ours`.
:::"""

EXERCISES = """## Exercises

:::{exercise} Twice
:label: ex-twice
What is twice {eval}`x`?
:::

:::{solution} ex-twice
:label: sol-twice
:class: dropdown
It is {eval}`f"{2 * x:.2f}"`.
:::

:::{exercise}
:label: ex-thrice
And thrice?
:::

:::{solution-start} ex-thrice
:label: sol-thrice
:class: dropdown
:::

So:"""


def code(source, *tags):
    return nbformat.v4.new_code_cell(source, metadata={"tags": list(tags)})


text = nbformat.v4.new_markdown_cell


def write_book(folder, cells):
    """A book with an index and one chapter, under the settings of the real one."""
    shutil.copytree(ROOT / "book" / "_static", folder / "book" / "_static")
    for name in ("_config.yml", "book/favicon.png", "book/references.bib", "book/references.md"):
        shutil.copy(ROOT / name, folder / name)
    files = ("book/chapter", "book/references")
    chapters = "".join(f"  - file: {name}\n" for name in files)
    (folder / "_toc.yml").write_text(f"format: jb-book\nroot: book/index\nchapters:\n{chapters}")
    (folder / "book" / "index.md").write_text(INDEX)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, folder / "book" / "chapter.ipynb")


def build(folder, *options):
    """As people type it: ``jupyter-book build``, where a warning is an error."""
    program = str(Path(sys.executable).with_name("jupyter-book"))
    command = [program, "build", "-W", "-n", *options, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    """The folder with the rendered book."""
    folder = tmp_path_factory.mktemp("scratch")
    cells = [
        text(BOXES),
        code("from math import pi", "hide-input"),
        code("x: float = 1.25  # a number", "parameters", "hide-input"),
        code("assert x", "hide-input"),
        code("print(pi)", "hide-input"),
        code("import pandas as pd\n\npd.DataFrame({'who': ['x', 'y'], 'n': [1, 12]})"),
        text("There are {eval}`f'{x:.3f}'` of them, as Theorem\n5.2 says."),
        text("Words, *two*, ($a$, $b$, $c$), and “$d$”, then $e$."),
        text(EXERCISES),
        code("print(3 * x)"),
        text(":::{solution-end}\n:::\n\nAfter all."),
        text(":::{div} calculator\nNeeds JavaScript.\n:::"),
        text(":::{nb-exec-table}\n:::"),
        code("from orabook import results\n\nresults.record(thrice=3 * x)", "hide-input"),
    ]
    write_book(folder, cells)
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "_build" / "html"


@pytest.fixture(scope="module")
def pages(html):
    """The rendered pages by name."""
    return {path.stem: path.read_text() for path in (html / "book").glob("*.html")}


def links(page, target):
    """The words of all links to a target in the text of a page."""
    article = re.search(r"<article.*</article>", page, re.DOTALL)[0]
    anchors = re.findall(rf'<a [^>]*href="[^"]*#{target}"[^>]*>(.*?)</a>', article, re.DOTALL)
    return [re.sub(r"<.*?>", "", anchor) for anchor in anchors if 'title="Link' not in anchor]


def test_a_statement_keeps_the_number_of_the_paper(pages):
    titles = re.findall(r'<p class="admonition-title"[^>]*>(.*?)</p>', pages["chapter"])
    titles = [re.sub(r"\s+", " ", re.sub(r"<.*?>", "", title)).strip() for title in titles]
    assert titles[:4] == [
        r"Theorem 5.2 of the paper: when \(k\) guesses are tight (almost)",
        "Proposition E.5 of the paper",
        "Definition 3.1 of the paper: tight",
        "Theorem 1 (Ours, from Theorem 5.2)",
    ]


def test_mentions_are_links(pages):
    assert links(pages["index"], "paper-proposition-e-5") == ["Proposition E.5"]
    assert links(pages["index"], "paper-definition-3-1") == ["3.1"]
    assert links(pages["index"], "paper-theorem-5-2") == []  # in code
    words = [re.sub(r"\s+", " ", link) for link in links(pages["chapter"], "paper-theorem-5-2")]
    assert words == ["the best", "Theorem 5.2"]
    assert links(pages["chapter"], "paper-proposition-e-5") == ["Proposition E.5"]


def test_numbers_in_prose_come_from_the_kernel(pages):
    assert "There are 1.250 of them" in re.sub(r"<.*?>", "", pages["chapter"])
    assert "It is 2.50." in re.sub(r"<.*?>", "", pages["chapter"])


def test_punctuation_stays_with_its_formula(pages):
    """And every mark is there once, although several pieces of the text are the same."""
    line = re.search(r"<p>Words, .*?</p>", pages["chapter"])[0]
    assert (
        re.sub(r"<.*?>", "", line) == r"Words, two, (\(a\), \(b\), \(c\)), and “\(d\)”, then \(e\)."
    )
    kept = re.findall(r'<span class="nowrap">(.*?</span>[^<]*)</span>', line)
    assert [re.sub(r"<.*?>", "", each) for each in kept] == [
        r"(\(a\),",
        r"\(b\),",
        r"\(c\)),",
        r"“\(d\)”,",
        r"\(e\).",
    ]


def test_without_packages_committed_outputs_are_shown(monkeypatch):
    """Outputs and numbers in prose: nothing else could compute them."""
    monkeypatch.setattr(stored_outputs, "find_spec", lambda name: None)
    assert stored_outputs.chapters()
    for path in stored_outputs.chapters():
        content = [path.read_text(encoding="utf-8")]
        app = SimpleNamespace(srcdir=ROOT)
        stored_outputs.fill_in(app, path.relative_to(ROOT).with_suffix("").as_posix(), content)
        shown = nbformat.reads(content[0], 4)
        assert not [c for c in shown.cells if c.cell_type == "markdown" and expressions(c.source)]


def test_exercises_and_folded_solutions(pages):
    page = pages["chapter"]
    solution = page.split('id="sol-thrice"')[1].split("After all")[0]
    assert "3.75" in solution  # the output of a cell between the gates
    assert re.search(r'<div class="[^"]*dropdown[^"]*" id="sol-thrice"', page)
    assert re.sub(r"<.*?>", "", page).count("Exercise 2") == 1


def test_chapters_end_with_how_to_run_them(pages):
    before, box = pages["chapter"].split("</article>")[0].split("Run this chapter")
    assert before.rpartition('<div class="')[2].startswith("run dropdown admonition")
    assert "results.record" not in before + box
    assert "thrice" in box
    assert "orabook run book/chapter.ipynb -p x=1.25" in box
    assert ".whl[runs]" in re.sub(r"<.*?>", "", box)
    assert re.findall(r'href="(../downloads/oralib-[^"]*(?:whl|gz))"', box)
    assert "Run this book" in pages["index"]


def test_the_extras_that_a_chapter_needs():
    """The box at its end names them."""
    for name, extras in {
        "04-the-gaps": [],
        "auditing-a-real-training": ["torch"],
        "12-a-leak-that-one-run-cannot-see": ["torch"],
    }.items():
        assert stored_outputs.extras(ROOT / "book" / f"{name}.ipynb") == extras


def test_warnings_and_failing_cells_end_a_build(tmp_path):
    box = ":::{{prf:lemma}} {}\n:label: paper-lemma-{}\n{}So.\n:::\n"
    boxes = box.format("Lemma 2", 1, ":nonumber:\n") + box.format("Lemma 3", 3, "")
    for number, (cells, messages) in enumerate(
        (
            (
                [text("# A\n\n{eval}`missing`\n\n" + boxes)],
                (
                    "name 'missing' is not defined",
                    "paper-lemma-1 has the title of paper-lemma-2",
                    "paper-lemma-3 needs the option :nonumber:",
                ),
            ),
            ([text("# A"), code("1 / 0")], ("ZeroDivisionError",)),
        )
    ):
        (tmp_path / str(number)).mkdir()
        write_book(tmp_path / str(number), cells)
        done = build(tmp_path / str(number), "--keep-going")
        assert done.returncode == 1
        for message in messages:
            assert message in done.stdout + done.stderr

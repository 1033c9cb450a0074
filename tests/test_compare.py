"""What a reader sees is compared with what is committed: pictures and numbers in prose."""

import subprocess
import sys
from functools import cache
from io import BytesIO

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from PIL import Image

from orabook import drawings, figures
from orabook.builder import compare, execute
from orabook.drawings.pen import Sheet
from orabook.extensions import stored_outputs
from orabook.extensions.stored_outputs import NUMBERS
from orabook.figures.data import with_data
from orabook.place import BOOK, ROOT


@cache
def curve(change=0.0, label="bound", last=3):
    """The PNG of a curve, with a change of its point at x = 2."""
    x = np.arange(1, last + 1)
    picture = figures.lines({label: (x, x * np.where(x == 2, 1 + change, 1))}, "x", "y")
    return picture._repr_png_()[0]


def repainted(change):
    """The picture of the curve with its own table and other pixels."""
    picture = figures.lines({"bound": ([1, 2, 3], [1, 2, 3])}, "x", "y")
    pixels = np.asarray(Image.open(BytesIO(picture._repr_png_()[0])).convert("RGB"))
    image = Image.fromarray(change(pixels).astype(np.uint8)).quantize(128, dither=0)
    return with_data(image, picture.table())


def test_what_processors_may_do_to_a_picture():
    """Other last digits of its numbers, words and lines a pixel away, and other shades."""
    for now in (
        curve(change=5e-4),
        repainted(lambda pixels: np.roll(pixels, (1, 1), axis=(0, 1))),
        repainted(lambda pixels: pixels - pixels // 10),
    ):
        assert compare.pictures_differ([curve()], [now]) == []


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (
            [curve(change=0.01)],
            "y, at {'series': 'bound', 'x': 2}: 2 is now 2.02; 1 of 3 entries",
        ),
        ([curve(label="other")], "series, at {'x': 1, 'y': 1}: bound is now other; 3 of 3 entries"),
        ([curve(last=4)], "the picture's table has 3 rows, and now 4"),
        ([], "1 pictures are committed, and 0 are drawn"),
        ([repainted(lambda pixels: pixels * 0 + 255)], "the picture looks different: "),
        ([repainted(lambda pixels: np.roll(pixels, 2, axis=1))], "the picture looks different: "),
        ([repainted(lambda pixels: pixels[:-1])], "the picture's height, width and colours (800, "),
        (
            [drawings.three_gaps()._repr_png_()[0]],
            "the picture's columns ['series', 'x', 'y'] are ",
        ),
    ],
)
def test_another_picture_is_noticed(now, said):
    found = compare.pictures_differ([curve()], now)
    assert found
    assert found[0].startswith(said)


def drawn(words="8 right", colour=figures.RED, radius=0.5):
    sheet = Sheet(2.0)
    sheet.say(2, 1, words, 11)
    sheet.disc(4, 1, radius, facecolor=colour)
    return sheet.picture._repr_png_()[0]


def test_changed_words_and_shapes_are_noticed():
    assert compare.pictures_differ([drawn()], [drawn()]) == []
    for other in (drawn(words="9 right"), drawn(colour=figures.ORANGE), drawn(radius=0.52)):
        (said,) = compare.pictures_differ([drawn()], [other])
        assert said.startswith("the picture looks different: ")


def test_drawings_of_real_trainings_are_those_committed():
    """Their chapters are executed, and compared, only where PyTorch is."""
    chapters = [path for path in BOOK.glob("*.ipynb") if stored_outputs.extras(path)]
    cells = [cell for path in chapters for cell in nbformat.read(path, 4).cells]
    shown = [cell for cell in cells if cell.source.startswith("drawings.")]
    assert shown
    for cell in shown:
        now = getattr(drawings, cell.source.removeprefix("drawings.").removesuffix("()"))()
        assert compare.pictures_differ(compare.pictures(cell.outputs), [now._repr_png_()[0]]) == []


def chapter(*cells, **metadata):
    return new_notebook(cells=list(cells), metadata=metadata)


def test_prose_is_asked_after_the_code_above_it():
    cells = [new_markdown_cell("{eval}`1`"), new_code_cell("a = 1")]
    cells += [new_markdown_cell("{eval}`a`"), new_markdown_cell("{eval}`b` and {eval}`a`")]
    cells += [new_code_cell("c = 1"), new_code_cell("d = 1"), new_markdown_cell("{eval}`d`")]
    assert [compare.below(cells, number) for number in range(3)] == [["1", "a", "b"], [], ["d"]]


def test_readme_shows_the_figure_of_its_chapter():
    assert (BOOK / "figure-2.png").read_bytes() == execute.readme_picture()


DRAW = "from orabook import figures\na = 2\nfigures.lines({'bound': ([1, 2], [1, a])}, 'x', 'y')"


@pytest.mark.slow
def test_nbval_compares_what_is_seen(tmp_path):
    """But not with the numbers in prose of other parameters, which papermill copies."""
    path = tmp_path / "right.ipynb"
    nbformat.write(chapter(new_code_cell(DRAW), new_markdown_cell("It is {eval}`a`.")), path)
    execute.execute(path)
    right = nbformat.read(path, 4)
    assert right.metadata[NUMBERS] == {"a": "2"}
    for name in ("figure", "number", "product"):
        other = nbformat.read(path, 4)
        if name == "figure":
            other.cells[0].source = DRAW.replace("[1, a]", "[1, 2.02]")
        else:
            other.metadata[NUMBERS]["a"] = "3"
        if name == "product":
            other.metadata["papermill"] = {}
        nbformat.write(other, tmp_path / f"{name}.ipynb")
    # With these pytest finds the settings of the project, and its conftest.
    line = ["pytest", "--nbval", "-q", "-c", ROOT / "pyproject.toml", "-p", "conftest"]
    done = subprocess.run(
        [sys.executable, "-m", *line, tmp_path], cwd=ROOT, capture_output=True, text=True
    )
    assert "2 failed, 2 passed" in done.stdout
    assert "y, at {'series': 'bound', 'x': 2}: 2 is now 2.02" in done.stdout
    assert "{eval}`a` is now 2, committed as 3" in done.stdout

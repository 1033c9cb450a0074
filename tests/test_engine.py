"""papermill --engine oralib: numbers as text, which stay with their parameters."""

import ast
import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest

from orabook import products, prose, runs
from orabook.extensions import stored_outputs

BOOK = Path(__file__).parent.parent / "book"
code, markdown = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell


@pytest.fixture
def small(tmp_path):
    """A chapter whose numbers are known, with values of its committed run in its metadata."""
    cells = [
        markdown("# A chapter"),
        code("x: float = 2.0  # a number\nn: int = 3", metadata={"tags": ["parameters"]}),
        code("y = x * n"),
        markdown("The product is {eval}`f'{y:.1f}'`, by ``{eval}`y` ``, see {doc}`which-bound`."),
        code("y"),
        markdown("And [{eval}`[n, 'a_b']`]."),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "language": "python", "display_name": "P"}
    notebook.metadata[stored_outputs.NUMBERS] = {"f'{y:.1f}'": "old"}
    path = tmp_path / "small.ipynb"
    nbformat.write(notebook, path)
    return path


def prose_of(path):
    return [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown"]


def test_papermill_finds_the_engine_and_loads_little():
    look = """import papermill.engines, sys
assert papermill.engines.papermill_engines.get_engine("oralib").__name__ == "Engine"
print(sorted(name for name in sys.modules if name.split(".")[0] in
    ("orabook", "oralib", "numpy", "numba", "scipy", "pandas")))"""
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("['orabook', 'orabook.engine']\n", "")


@pytest.mark.parametrize("first", ["orabook.engine", "orabook.products", "orabook.runs.run"])
def test_the_engine_may_be_imported_before_papermill(first):
    done = subprocess.run([sys.executable, "-c", f"import {first}"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_product_has_text_and_is_renewed(small):
    out, again = small.with_name("out.ipynb"), small.with_name("again.ipynb")
    options = {"engine_name": "oralib", "progress_bar": False}
    papermill.execute_notebook(small, out, {"x": 4}, **options)
    banner, *_, product, last = prose_of(out)
    assert "Here `x` is 4 instead of 2.0." in banner
    assert product == "The product is 12.0, by ``{eval}`y` ``, see {doc}`which-bound`."
    assert last == r"And [\[3, 'a\_b'\]]."
    notebook = nbformat.read(out, 4)
    assert stored_outputs.NUMBERS not in notebook.metadata
    assert not any(prose.VALUES in cell.metadata for cell in notebook.cells)
    papermill.execute_notebook(out, again, {"n": 5}, **options)
    banner, *_, product, last = prose_of(again)
    assert "Here `n` is 5 instead of 3." in banner
    assert product.startswith("The product is 10.0, by")
    assert last == r"And [\[5, 'a\_b'\]]."
    ids = [cell.id for cell in nbformat.read(again, 4).cells]
    assert (ids.count("oralib-guard"), ids.count("oralib-banner")) == (1, 1)
    assert runs.find_chapter(again).digest == runs.find_chapter(small).digest
    own = small.with_name("own.ipynb")
    papermill.execute_notebook(small, own, **options)
    assert prose_of(own)[0] == "# A chapter"  # no banner


@pytest.mark.slow
def test_the_command_line_and_plain_papermill_and_nbval(small):
    """Somebody may run the product without the engine: with other parameters it refuses."""

    def ran(*words):
        command = [sys.executable, "-m", *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=small.parent)

    engine = ["papermill", "--engine", "oralib"]
    assert ran(*engine, "small.ipynb", "out.ipynb", "-p", "x", "4").returncode == 0
    assert "The product is 12.0," in prose_of(small.with_name("out.ipynb"))[2]
    plain = ran("papermill", "out.ipynb", "plain.ipynb", "-p", "x", "5")
    assert plain.returncode == 1
    assert "ValueError: the text has numbers of other parameters: x is 5 and was 4" in plain.stderr
    assert ran("papermill", "out.ipynb", "plain.ipynb", "-p", "x", "4.0").returncode == 0
    checked = ran("pytest", "--nbval", "out.ipynb", "-q", "-p", "no:cacheprovider")
    assert checked.returncode == 0, checked.stdout
    assert "5 passed" in checked.stdout  # with the injected parameters and the guard


# ------------------------------------------------------------------------- without a kernel


def prepared(small, given=None):
    notebook = nbformat.read(small, 4)
    if given:
        notebook.cells.insert(2, code(given, metadata={"tags": ["injected-parameters"]}))
    products.prepare(notebook)
    return notebook


def test_the_guard_compares_values_right_after_the_parameters(small):
    cells = prepared(small, "# Parameters\nx = 4\nwords = ['a', \"b'\"]").cells
    (place,) = [i for i, cell in enumerate(cells) if cell.id == "oralib-guard"]
    assert cells[place - 1].source.startswith("# Parameters")
    same = {"x": 4.0, "n": 3, "words": ["a", "b'"]}
    exec(cells[place].source, dict(same))
    for name, value in {"x": 2, "n": 4, "words": []}.items():
        with pytest.raises(ValueError, match=rf"other parameters: {name} is .* and was .*--engine"):
            exec(cells[place].source, same | {name: value})


def test_the_banner_tells_what_differs(small):
    assert not prepared(small, "x = 2").cells[0].source.startswith(">")
    text = prepared(small, "x = 3\nn = 3").cells[0].source
    assert "Here `x` is 3 instead of 2.0." in text
    assert "`n`" not in text
    assert "committed" not in text
    notebook = nbformat.read(small, 4)
    notebook.cells[2].source = 'y = recorded("06-dp-sgd"), place.book_file("data/ladder.csv")\n'
    notebook.cells[2].source += 'z = book_file("data/ladder.csv"), book_file(y)'
    notebook.cells.append(code("%matplotlib inline"))
    nbformat.write(notebook, small)
    text = prepared(small, "x = 3").cells[0].source
    assert (
        "gave with these values. It also reads committed files, computed for their own settings "
        "(`data/ladder.csv`) and the chapter `06-dp-sgd` as committed. All other words"
    ) in text
    assert all(line.startswith(">") for line in text.splitlines())


def test_a_product_becomes_its_chapter_again(small):
    notebook = prepared(small, "x = 4")
    assert len(notebook.cells) == 9
    notebook.cells[-1].metadata[products.NOTE] = {"template": "{eval}`y`"}
    notebook.cells[-1].source = "12"
    products.restore(notebook)
    assert [cell.source for cell in notebook.cells][-2:] == ["y", "{eval}`y`"]
    assert len(notebook.cells) == 7
    assert not any(products.NOTE in cell.metadata for cell in notebook.cells)


def test_parameters_that_cannot_be_read_are_refused(small):
    with pytest.raises(ValueError, match="a cell with parameters must be plain Python"):
        prepared(small, "%time x = 3")


@pytest.mark.parametrize("path", sorted(BOOK.glob("*.ipynb")), ids=lambda path: path.stem)
def test_chapters_name_the_committed_files_that_they_read(path):
    """In the call itself, where the banner looks for them; and they read no others."""
    cells = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    calls = [x for c in cells for x in ast.walk(ast.parse(c.source)) if isinstance(x, ast.Call)]
    for call in calls:
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        assert name not in ("with_name", "with_suffix", "open", "glob"), ast.unparse(call)
        if name in ("book_file", "recorded"):
            assert isinstance(call.args[0], ast.Constant), ast.unparse(call)
        if name == "read_csv":
            assert "book_file(" in ast.unparse(call), ast.unparse(call)

"""Results that chapters record, and numbers in their prose."""

import json
import math
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import nbformat
import numpy as np
import pytest
from notebooks import IMPORTS

from oralib import results, runs
from oralib.__main__ import main
from oralib.runs import prose
from oralib.runs.chapters import results_of

markdown, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell


def write_notebook(folder, *cells, name="own"):
    """A notebook with one parameter and these cells; a word is a markdown cell."""
    first = code("a: int = 1", metadata={"tags": ["parameters"]})
    path = folder / f"{name}.ipynb"
    notebook = nbformat.v4.new_notebook(cells=[first, code(IMPORTS), *cells])
    nbformat.write(notebook, path)
    return path


def run(path):
    """The record of a run, and the notebook that it has left."""
    out = path.parent / "out"
    record = runs.run_chapter(runs.find_chapter(str(path)), {}, out)
    return record, nbformat.read(out / "notebook.ipynb", 4)


# ---------------------------------------------------------------------------------- results


class Shell:
    """What IPython is asked to publish."""

    def __init__(self):
        self.display_pub = self

    def publish(self, data, metadata):
        self.data, self.metadata = data, metadata


@pytest.fixture
def shell(monkeypatch):
    import IPython

    shell = Shell()
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    return shell


def test_results_are_shown_rounded_and_kept_to_twelve_digits(shell):
    results.record(
        bound=np.float64(1.23456789012345678),
        share=0.1 + 0.2,
        count=np.int64(123456789012345),
        steps=1234.5678,
        tail=1.23456e-7,
        below=-2.5,
        nothing=0.0,
        holds=np.bool_(True),
        law="Laplace <b>",
    )
    assert shell.data["text/plain"].splitlines() == [
        "bound    1.235",
        "share    0.300",
        "count    123456789012345",
        "steps    1235",
        "tail     1.23e-07",
        "below    −2.500",
        "nothing  0.000",
        "holds    True",
        "law      Laplace <b>",
    ]
    assert "<th>law</th><td>Laplace &lt;b&gt;</td>" in shell.data["text/html"]
    kept = shell.metadata["oralib"]["results"]
    assert kept["bound"] == 1.23456789012
    assert kept["share"] == 0.3
    assert kept["count"] == 123456789012345
    assert kept["holds"] is True
    assert {type(value) for value in kept.values()} == {float, int, bool, str}


def test_numbers_that_json_does_not_have(shell):
    results.record(a=math.nan, b=math.inf, c=np.float32(-np.inf))
    assert shell.metadata["oralib"]["results"] == {"a": "nan", "b": "inf", "c": "-inf"}
    assert shell.data["text/plain"] == "a  nan\nb  inf\nc  −inf"
    back = results.from_json(shell.metadata["oralib"]["results"])
    assert math.isnan(back["a"])
    assert (back["b"], back["c"]) == (math.inf, -math.inf)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (np.zeros(3), "ndarray"),
        (np.array(1.0), "ndarray"),
        ([1, 2], "list"),
        (None, "NoneType"),
        (1j, "complex"),
        ({"a": 1}, "dict"),
        (list(range(1000)), "list"),
    ],
)
def test_other_results_are_refused(shell, value, kind):
    with pytest.raises(TypeError, match=rf"^bad must be a number, .* got bad=.*type {kind}$") as e:
        results.record(good=1, bad=value)
    assert len(str(e.value)) < 200
    assert not hasattr(shell, "data")


def test_a_word_that_would_be_read_as_a_number_is_refused(shell):
    with pytest.raises(ValueError, match="a must not be the word 'nan'; give the number"):
        results.record(a="nan")


def test_without_a_notebook_the_results_are_printed():
    program = "from oralib import results; results.record(x=0.25, word='é')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("x     0.250\nword  é\n", "")


def test_results_of_a_run_are_valid_json(tmp_path):
    last = 'from oralib import results\nresults.record(a=float("nan"), b=-float("inf"), c=1/3)'
    path = write_notebook(tmp_path, code(last))
    record, _ = run(path)
    assert math.isnan(record["results"]["a"])
    text = (tmp_path / "out" / "results.json").read_text()

    def refuse(word):
        raise AssertionError(word)

    said = json.loads(text, parse_constant=refuse)["results"]
    assert said == {"a": "nan", "b": "-inf", "c": 0.333333333333}
    table = (tmp_path / "out" / "results.csv").read_text()
    assert table == "name,value\na,nan\nb,-inf\nc,0.333333333333\n"
    assert runs.check_free(tmp_path / "out", force=True)


def test_results_that_are_recorded_twice(tmp_path, capsys):
    twice = [code("results.record(x=1, y=2)"), code("results.record(z=3, y=2)")]
    path = write_notebook(tmp_path, *twice)
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 1
    assert "own failed: the result y is recorded twice" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_results_keep_their_order(tmp_path):
    record, notebook = run(write_notebook(tmp_path, code("results.record(z=1, a=2, m=3)")))
    assert list(record["results"]) == list(results_of(notebook)) == ["z", "a", "m"]
    assert (tmp_path / "out" / "results.csv").read_text() == "name,value\nz,1\na,2\nm,3\n"


def test_no_results_are_fine(tmp_path):
    record, notebook = run(write_notebook(tmp_path, code("1 + 1")))
    assert record["results"] == results_of(notebook) == {}
    assert (tmp_path / "out" / "results.csv").read_text() == "name,value\n"


def test_only_recorded_values_are_results():
    glued = nbformat.v4.new_output(
        "display_data",
        {"application/papermill.record/text/plain": "1"},
        metadata={"scrapbook": {"name": "x"}},
    )
    assert results_of(nbformat.v4.new_notebook(cells=[code("", outputs=[glued])])) == {}


# -------------------------------------------------------------------------- numbers in prose

FOUND = {
    "One {eval}`x`, two {eval}`y + 1`, and one {eval}`x`.": ["x", "y + 1"],
    '{eval}`f"{x:.3f}"` and {eval}`f\'{y["a"]:,}\'`': ['f"{x:.3f}"', "f'{y[\"a\"]:,}'"],
    "{eval}``'`' + x``": ["'`' + x"],
    '*{eval}`é`* **{eval}`"± ε"`** [{eval}`z`](a.md)': ["é", '"± ε"', "z"],
    "| a | b |\n|---|---|\n| {eval}`u` | {eval}`v` |": ["u", "v"],
    "- item {eval}`u`\n  - {eval}`v`\n\n> {eval}`w`": ["u", "v", "w"],
    "# Title {eval}`t`": ["t"],
    "{eval}`a +\nb`": ["a + b"],
    ":::{prf:theorem} Half {eval}`t`\n:label: thm-a\nBody {eval}`x`.\n:::": ["t", "x"],
    "```{note}\nBody {eval}`x`.\n```": ["x"],
    "````{admonition} Why\n---\nclass: tip\n---\n{eval}`x`\n\n```{tip}\n{eval}`y`\n```\n````": [
        "x",
        "y",
    ],
    "::::{exercise}\n:label: ex\n{eval}`x`\n\n:::{hint}\n{eval}`y`\n:::\n::::": ["x", "y"],
    # What only looks like it.
    "`{eval}` and ``{eval}`x` ``": [],
    "```python\n{eval}`x`\n```": [],
    "```\n{eval}`x`\n```": [],
    "    {eval}`x`": [],
    "```{code-block} python\n{eval}`x`\n```": [],
    ":::{math}\n{eval}`x`\n:::": [],
    "$a$ {eval} $b$ `x` and {glue:text}`x`, {evaluate}`x`": [],
    "$${eval}`x`$$": [],
    "<!-- {eval}`x` -->": [],
}


@pytest.mark.parametrize(("text", "found"), FOUND.items())
def test_expressions_are_found(text, found):
    assert prose.expressions(text) == found


def test_numbers_in_prose_are_evaluated_in_their_place(tmp_path):
    path = write_notebook(
        tmp_path,
        code("b = 1 / 3\nname = 'it`s \"ε\"'"),
        markdown(
            "A third is {eval}`f\"{b:.3f}\"`, {eval}`a` and {eval}``name.replace('`', '')``.\n\n"
            ":::{prf:theorem}\n:label: t\n{eval}`round(b, 2)`\n:::\n\n"
            "| x |\n|---|\n| {eval}`len(name)` |"
        ),
        markdown("None here, `{eval}` but code."),
        code("_"),
    )
    stale = nbformat.read(path, 4)
    stale.cells[4].metadata["user_expressions"] = [{"expression": "old", "result": {}}]
    nbformat.write(stale, path)
    _, notebook = run(path)
    told = notebook.cells[4].metadata["user_expressions"]  # after the cell of the parameters
    assert told[0] == {
        "expression": 'f"{b:.3f}"',
        "result": {"status": "ok", "data": {"text/plain": "'0.333'"}, "metadata": {}},
    }
    texts = [prose.text_of(entry["result"]) for entry in told]
    assert texts == ["0.333", "1", 'its "ε"', "0.33", "8"]
    assert "user_expressions" not in notebook.cells[5].metadata
    # The kernel does not count them, nor does it keep their values.
    assert [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"] == [
        *range(1, 6)
    ]
    assert notebook.cells[-1].outputs[0].data["text/plain"] == "''"


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("nowhere", "{eval}`nowhere`: NameError: name 'nowhere' is not defined"),
        ("1 / 0", "{eval}`1 / 0`: ZeroDivisionError: division by zero"),
        ("a +", "{eval}`a +`: SyntaxError: invalid syntax"),
        ("later", "{eval}`later`: NameError: name 'later' is not defined"),
    ],
)
def test_an_expression_that_fails_is_named(tmp_path, capsys, expression, said):
    cells = [markdown(f"{{eval}}`a`, {{eval}}`{expression}`"), code("later = 1")]
    path = write_notebook(tmp_path, *cells)
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 1
    assert f"own failed: {said}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_number_that_changes_later_is_an_error(tmp_path, capsys):
    cells = [code("b = 1"), markdown("{eval}`b + 1`"), code("b = 2")]
    path = write_notebook(tmp_path, *cells)
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 1
    said = "own failed: {eval}`b + 1` is 2 in its place and 3 later: a name that prose mentions"
    assert said in capsys.readouterr().err


def test_a_cell_that_fails_is_named_before_numbers(tmp_path, capsys):
    cells = [code("b = 1"), markdown("{eval}`b`"), code("b = 2\nraise OSError('no')")]
    path = write_notebook(tmp_path, *cells)
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 1
    assert "own failed: OSError: no" in capsys.readouterr().err


# ---------------------------------------------------------------- chapters executed in place


@pytest.fixture
def book(tmp_path, monkeypatch):
    """``python -m book`` for a folder of its own, in this process; how it ends."""
    home = tmp_path / "book"
    home.mkdir()
    source = Path(__file__).parent.parent / "book" / "__main__.py"
    (tmp_path / "_toc.yml").write_text("root: book/own\n")
    program = module_from_spec(spec := spec_from_file_location("program", source))
    spec.loader.exec_module(program)
    monkeypatch.setattr(program, "BOOK", home)

    def execute(*names):
        monkeypatch.setattr(sys, "argv", ["book", *names])
        try:
            program.main()
        except SystemExit as end:
            return end.code
        return 0

    execute.home = home
    return execute


def test_only_chapters_of_the_book_are_executed_in_place(book, tmp_path):
    mine = write_notebook(tmp_path, code("1"))
    write_notebook(book.home, code("1 / 0"))
    before = mine.read_text()
    for name in (str(mine.with_suffix("")), "../own", "--help"):
        assert book(name) == f"there is no chapter {name}; the chapters are own"
    assert mine.read_text() == before
    failed = book("own")
    assert failed.startswith("own failed: ")
    assert "ZeroDivisionError" in failed


def test_a_notebook_that_is_not_in_the_contents_is_left_alone(book):
    write_notebook(book.home, code("1"))
    mine = book.home / "Untitled.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[code("2")], metadata={"my": "word"}), mine)
    before = mine.read_bytes()
    assert book("Untitled") == "there is no chapter Untitled; the chapters are own"
    assert mine.read_bytes() == before


def test_chapters_in_place_have_their_numbers(book):
    cells = [code("b = 0.125"), markdown("{eval}`f'{b:.2f}'`"), code("results.record(b=b)")]
    path = write_notebook(book.home, *cells)
    shutil.copy(Path(__file__).parent.parent / "book" / "__main__.py", book.home)
    command = [sys.executable, "-m", "book", "own"]
    done = subprocess.run(command, cwd=book.home.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first = path.read_text()
    notebook = nbformat.reads(first, 4)
    (entry,) = (e for c in notebook.cells for e in c.metadata.get("user_expressions", []))
    assert entry["expression"] == "f'{b:.2f}'"
    assert prose.text_of(entry["result"]) == "0.12"
    assert results_of(notebook) == {"b": 0.125}
    assert runs.find_chapter(str(path)).results == ("b",)
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == [1, 2, 3, 4]
    assert book("own") == 0
    assert path.read_text() == first


@pytest.mark.parametrize(
    ("prose", "said"),
    [
        ("{eval}`nowhere`", "own failed: {eval}`nowhere`: NameError: name 'nowhere'"),
        ("{eval}`b`", "own failed: {eval}`b` is 1 in its place and 2 later"),
    ],
)
def test_chapters_in_place_are_left_alone_if_a_number_fails(book, prose, said):
    path = write_notebook(book.home, code("b = 1"), markdown(prose), code("b = 2"))
    before = path.read_text()
    assert said in book("own")
    assert path.read_text() == before

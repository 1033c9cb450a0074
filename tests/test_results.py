"""Results that chapters record, numbers in their prose, and chapters executed in place."""

import math
import subprocess
import sys

import nbformat
import numpy as np
import pytest

import orabook.builder.execute as in_place
from orabook import prose, results
from orabook.results import results_of

markdown, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell


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


def test_results_are_rounded_and_kept_to_twelve_digits(shell):
    results.record(
        bound=np.float64(1.23456789012345678),
        share=0.1 + 0.2,
        count=np.int64(123456789012345),
        tail=1.23456e-7,
        holds=np.bool_(True),
        law="Laplace <b>",
    )
    assert shell.data["text/plain"].splitlines() == [
        "bound  1.235",
        "share  0.300",
        "count  123,456,789,012,345",
        "tail   1.2 · 10⁻⁷",
        "holds  yes",
        "law    Laplace <b>",
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
    assert shell.data["text/plain"] == "a  –\nb  ∞\nc  −∞"
    back = results.from_json(shell.metadata["oralib"]["results"])
    assert math.isnan(back["a"])
    assert (back["b"], back["c"]) == (math.inf, -math.inf)


def test_other_results_are_refused(shell):
    for value in (np.zeros(3), np.array(1.0), [1, 2], None, 1j, {"a": 1}, list(range(1000))):
        kind = type(value).__name__
        said = rf"^bad must be a number, .* got bad=.*type {kind}$"
        with pytest.raises(TypeError, match=said) as refused:
            results.record(good=1, bad=value)
        assert len(str(refused.value)) < 200
        assert not hasattr(shell, "data")
    with pytest.raises(ValueError, match="a must not be the word 'nan'; give the number"):
        results.record(a="nan")


def test_without_a_notebook_the_results_are_printed():
    program = "from orabook import results; results.record(x=0.25, word='é')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("x     0.250\nword  é\n", "")


def test_results_keep_their_order():
    section = {"oralib": {"results": {"a": 2, "m": "inf", "z": 1}, "order": ["z", "a", "m"]}}
    output = nbformat.v4.new_output("display_data", {"text/plain": ""}, metadata=section)
    notebook = nbformat.v4.new_notebook(cells=[code("", outputs=[output])])
    assert list(results_of(notebook).items()) == [("z", 1), ("a", 2), ("m", math.inf)]


def test_expressions_are_found():
    for text, found in {
        "One {eval}`x`, two {eval}`y + 1`, and one {eval}`x`.": ["x", "y + 1"],
        '{eval}`f"{x:.3f}"` and {eval}`f\'{y["a"]:,}\'`': ['f"{x:.3f}"', "f'{y[\"a\"]:,}'"],
        "| a |\n|---|\n| {eval}`u` |\n\n- {eval}`v`": ["u", "v"],
        "{eval}`a +\nb`": ["a + b"],
        ":::{prf:theorem} Half {eval}`t`\n:label: thm-a\nBody {eval}`x`.\n:::": ["t", "x"],
        "```{note}\nBody {eval}`x`.\n```": ["x"],
        "`{eval}` and ``{eval}`x` ``, `` {eval}`y` ``": [],
        "{glue:text}`x`, {evaluate}`x`": [],
    }.items():
        assert prose.expressions(text) == found


def test_values_are_filled_in():
    values = {"x": "0.62", "a + b": "3", "word": "<b>*_`"}
    words = "{eval}`x`, {eval}`a +\nb`, ``{eval}`x` ``, {eval}`word`"
    assert prose.filled(words, values) == r"0.62, 3, ``{eval}`x` ``, \<b\>\*\_\`"


def write_notebook(path, *cells):
    notebook = nbformat.v4.new_notebook(cells=list(cells))
    nbformat.write(notebook, path)
    return path


def test_chapters_in_place_keep_numbers_in_prose(tmp_path):
    """In the notebook, not in its cells, whose metadata papermill copies."""
    cells = [code("b = 0.125"), markdown("{eval}`f'{b:.2f}'`"), code("b")]
    path = write_notebook(tmp_path / "own.ipynb", *cells)
    in_place.execute(path)
    written = path.read_text()
    notebook = nbformat.reads(written, 4)
    assert "user_expressions" not in written
    assert notebook.metadata["numbers_in_prose"] == {"f'{b:.2f}'": "0.12"}
    assert [cell.get("execution_count") for cell in notebook.cells] == [1, None, 2]
    in_place.execute(path)
    assert path.read_text() == written


def test_chapters_are_left_alone_if_a_number_fails(tmp_path):
    for words, said in [
        ("{eval}`nowhere`", "{eval}`nowhere`: NameError: name 'nowhere'"),
        ("{eval}`b`", "{eval}`b` is 1 in its place and 2 at the end"),
    ]:
        path = write_notebook(tmp_path / "own.ipynb", code("b = 1"), markdown(words), code("b = 2"))
        before = path.read_text()
        with pytest.raises(ValueError, match=said):
            in_place.execute(path)
        assert path.read_text() == before

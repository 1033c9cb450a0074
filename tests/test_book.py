"""The chapters as files: executed, parameterised, captioned; and runs with other parameters."""

import ast
import re
from pathlib import Path

import nbformat
import papermill
import pytest

from orabook.builder.contents import contents
from orabook.extensions.captions import move_captions
from orabook.extensions.stored_outputs import NUMBERS
from orabook.parameters import PARAMETERS
from orabook.prose import VALUES, expressions
from orabook.results import results_of

ROOT = Path(__file__).parent.parent
PAGES = [page for _, listed in contents(ROOT) for page in listed]
CHAPTERS = [ROOT / f"{page}.ipynb" for page in PAGES if (ROOT / f"{page}.ipynb").exists()]
PAPER = [path for path in CHAPTERS if re.match(r"0[1-7]-|[A-E]-", path.name)]
BEYOND = [
    ROOT / "book" / f"{name}.ipynb"
    for name in (
        *("10-feedback", "09-exact-bound", "11-what-an-assumption-buys"),
        *("08-how-much-can-one-run-show", "auditing-a-real-training"),
        *("12-a-leak-that-one-run-cannot-see", "running"),
    )
]
STORIES = [*PAPER, *BEYOND]
LEDGER = ROOT / "book" / "paper-check.ipynb"


def read(path):
    """A chapter as the book reads it: captions are with the cells that draw."""
    notebook = nbformat.read(path, 4)
    move_captions(notebook.cells)
    return notebook


def code_cells(path):
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def parameters_cell(path):
    """(place among the code cells, source) of the tagged cell."""
    tagged = [
        (place, cell.source)
        for place, cell in enumerate(code_cells(path))
        if "parameters" in cell.metadata.get("tags", [])
    ]
    assert len(tagged) == 1, f"{path.name} has {len(tagged)} cells tagged parameters"
    return tagged[0]


def ids(path):
    return path.stem


def test_toc_lists_chapters_in_the_papers_order():
    assert {path.stem for path in (ROOT / "book").glob("*.ipynb")} == {p.stem for p in CHAPTERS}
    numbers = [path.stem.split("-")[0] for path in PAPER]
    assert all(path in CHAPTERS for path in [*BEYOND, LEDGER])
    assert numbers == ["01", "02", "03", "04", "05", "06", "07", "A", "B", "C", "D", "E"]


@pytest.mark.parametrize("path", CHAPTERS, ids=ids)
def test_outputs_are_there(path):
    """A notebook that has lost its outputs would be compared with nothing."""
    cells = code_cells(path)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert len(outputs) >= (3 if path in STORIES else 1)
    assert not [o for o in outputs if o.output_type == "error"]
    assert not [o for o in outputs if o.output_type == "stream" and o.name == "stderr"]


@pytest.mark.parametrize("path", CHAPTERS, ids=ids)
def test_every_number_in_prose_is_there(path):
    """One that is not would be compared with nothing."""
    notebook = nbformat.read(path, 4)
    prose = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    asked = {expression for words in prose for expression in expressions(words)}
    assert set(notebook.metadata[NUMBERS]) == asked


@pytest.mark.parametrize("path", [*STORIES, LEDGER], ids=ids)
def test_figures_have_caption_alt_text_and_mention(path):
    prose = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    figures = 0
    for cell in code_cells(path):
        if any("image/png" in output.get("data", {}) for output in cell.outputs):
            settings = cell.metadata.get("mystnb", {})
            figure, image = settings.get("figure", {}), settings.get("image", {})
            assert figure.get("caption"), cell.source
            assert f"`{figure['name']}`" in prose, cell.source
            assert len(image.get("alt", "")) > 20, cell.source
            figures += 1
    assert figures >= 1 or path == LEDGER  # which has tiles


@pytest.mark.parametrize("path", STORIES, ids=ids)
def test_parameters_are_declared_and_checked(path):
    place, source = parameters_cell(path)
    declared = [node for node in ast.parse(source).body if isinstance(node, ast.AnnAssign)]
    names = [node.target.id for node in declared]
    assert len(names) == len(source.strip().splitlines()), "one annotated parameter a line"
    assert set(names) <= set(PARAMETERS)
    assert all("#" in line for line in source.strip().splitlines()), "each line says its meaning"
    set_up = code_cells(path)[place + 1]
    assert len(re.findall(r"^parameters\.check\(\s*globals\(\)", set_up.source, re.MULTILINE)) == 1
    inferred = papermill.inspect_notebook(str(path))
    assert set(inferred) == set(names)


def is_folded(cell):
    tags = set(cell.metadata.get("tags", []))
    assert "remove-cell" not in tags, "it would be executed too late for the prose after it"
    return {"hide-input", "remove-input"} & tags


@pytest.mark.parametrize("path", STORIES, ids=ids)
def test_plumbing_is_folded(path):
    cells = read(path).cells
    first = next(i for i, cell in enumerate(cells) if "\n## " in f"\n{cell.source}")
    opening = [cell for cell in cells[:first] if cell.cell_type == "code"]
    assert opening
    assert all(map(is_folded, opening)), "the set-up is folded"
    for cell in cells:
        if cell.cell_type == "code":  # what is folded in the book is folded in JupyterLab
            hidden = cell.metadata.get("jupyter", {}).get("source_hidden", False)
            to_change = "parameters" in cell.metadata.get("tags", [])  # which is what readers want
            assert hidden == (bool(is_folded(cell)) and not to_change)


#: The widest line of code that a page of 1300 pixels shows whole.
COLUMNS = 76


@pytest.mark.parametrize("path", CHAPTERS, ids=ids)
def test_open_code_fits_the_page(path):
    lines = [x for cell in code_cells(path) if not is_folded(cell) for x in cell.source.split("\n")]
    assert [line for line in lines if len(line) > COLUMNS] == []


@pytest.mark.parametrize("path", STORIES, ids=ids)
def test_results_are_declared_once_at_the_end(path):
    calls = [cell.source for cell in code_cells(path) if "results.record(" in cell.source]
    assert len(calls) == 1
    if path.stem != "running":  # which is about recording
        assert calls[0] == code_cells(path)[-1].source
    assert len(results_of(read(path))) >= 2


@pytest.mark.parametrize("path", STORIES, ids=ids)
def test_exercises_have_solutions(path):
    prose = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    exercises = re.findall(r"^:::+\{exercise\}.*\n:label: (\S+)", prose, re.MULTILINE)
    solutions = re.findall(r"^:::+\{solution\} (\S+)\n:class: dropdown", prose, re.MULTILINE)
    assert 2 <= len(exercises) <= 4
    assert exercises == solutions
    assert len(re.findall(r"\{eval\}`", prose.split("## Exercises")[-1])) >= 1


def test_what_the_paper_numbers_is_a_box_once():
    found = set()
    for path in CHAPTERS:
        prose = "\n".join(c.source for c in read(path).cells if c.cell_type == "markdown")
        boxes = re.findall(r"^:::+\{prf:(\w+)\} (.*)\n((?::.*\n)*)", prose, re.MULTILINE)
        for kind, title, options in boxes:
            label = re.search(r":label: (\S+)", options)
            if label is None or not label[1].startswith("paper-"):
                assert not re.match(r"(Theorem|Proposition|Lemma|Definition) [A-E\d]\.", title)
                continue
            assert ":nonumber:" in options, title
            assert label[1] not in found, label[1]
            found.add(label[1])
            if re.fullmatch(rf"paper-{kind}-(?:[a-e2-6]-)?\d+", label[1]):
                spoken = label[1].removeprefix(f"paper-{kind}-").replace("-", ".").upper()
                assert title.startswith(f"{kind.capitalize()} {spoken} of the paper"), title
            else:
                assert label[1].startswith("paper-section-"), label[1]
    assert len([label for label in found if "section" not in label]) >= 55


def test_figures_of_the_paper_are_all_there():
    captions = " ".join(
        cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", "")
        for path in PAPER
        for cell in code_cells(path)
    )
    assert set(re.findall(r"paper's Figure (\d)", captions)) == set("123456789")


GAPS = ROOT / "book" / "04-the-gaps.ipynb"


@pytest.mark.slow
def test_papermill_with_other_parameters(tmp_path, monkeypatch):
    """Also from a folder with files that are called like those of the book."""
    (tmp_path / "grids").mkdir()
    monkeypatch.chdir(tmp_path)
    for path, given, name, value in [
        (GAPS, {"p": 0.5, "n": 3}, "aon_efficacy", 0.75),
        (ROOT / "book" / "running.ipynb", {"trials": 2, "k": 1}, "run_bound", 0.0),
    ]:
        done = papermill.execute_notebook(str(path), None, given, progress_bar=False)
        assert results_of(done)[name] == value
        assert any(expressions(cell.source) for cell in done.cells)
        assert not any(VALUES in cell.metadata for cell in done.cells)  # of other parameters

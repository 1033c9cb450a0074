"""The product of a run of a chapter: a notebook with its numbers in prose as text.

Every viewer of notebooks shows them then, and the text stays with its parameters:

- a markdown cell keeps the text with the expressions, its template, in its metadata; a run of the
  product by this engine begins with the templates, and so renews everything;
- a cell right after the parameters, the guard, refuses other parameters than those of the text, as
  somebody may run the product without this engine;
- a banner at the top says which parameters are not the chapter's own, and what the page takes from
  committed files.
"""

import ast
from collections.abc import Iterable
from typing import Any

import nbformat
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine
from papermill.log import logger

from orabook.prose import VALUES, escaped, evaluate, expressions, filled, text_of

__all__ = ["ProductEngine", "committed_sources", "prepare", "restore"]

#: The section of a cell's metadata with the notes of a product.
NOTE = "oralib"

#: The numbers in prose of the committed run, in the metadata of a committed chapter.
COMMITTED_NUMBERS = "numbers_in_prose"

_GUARD = """\
# The numbers in the text are of these parameters.
_written = {{{written}}}
_other = [
    f"{{name}} is {{globals()[name]!r}} and was {{value!r}}"
    for name, value in _written.items()
    if globals()[name] != value
]
if _other:
    raise ValueError(
        f"the text has numbers of other parameters: {{'; '.join(_other)}}. "
        "To renew the text too, run this notebook by papermill --engine oralib."
    )"""


class _Client(PapermillNotebookClient):
    def execute_cell(self, cell: Any, cell_index: int, **options: Any) -> Any:
        in_cell = expressions(cell.source) if cell.cell_type == "markdown" else []
        if in_cell:
            results = evaluate(self, in_cell)  # by the kernel, which has reached this cell
            texts = {expression: text_of(result) for expression, result in results.items()}
            cell.metadata[NOTE] = {"template": cell.source}
            cell.source = filled(cell.source, texts)
        return super().execute_cell(cell, cell_index, **options)


class ProductEngine(NBClientEngine):
    """The engine of papermill that leaves such a notebook; ``orabook run`` uses it as well."""

    @classmethod
    def execute_notebook(cls, nb: Any, kernel_name: str, **options: Any) -> Any:
        prepare(nb)
        return super().execute_notebook(nb, kernel_name, **options)

    @classmethod
    def execute_managed_notebook(
        cls,
        nb_man: Any,
        kernel_name: str,
        *,
        input_path: str = "",  # which the client does not know
        start_timeout: int = 60,
        execution_timeout: int | None = None,
        **options: Any,
    ) -> Any:
        options |= {"startup_timeout": start_timeout, "timeout": execution_timeout}
        return _Client(nb_man, kernel_name=kernel_name, log=logger, **options).execute()


def prepare(notebook: Any) -> None:
    """Give a chapter, or the product of an earlier run, the guard and the banner of a new run."""
    restore(notebook)
    parameters = _tagged(notebook, "parameters")
    injected = _tagged(notebook, "injected-parameters")
    declared = _assigned(parameters)
    current = declared | _assigned(injected)
    if current:
        guard = nbformat.v4.new_code_cell(_guard(current), id="oralib-guard")
        guard.metadata = nbformat.from_dict({"tags": ["remove-input"], NOTE: {"made": "guard"}})
        last = injected or parameters
        place = next(i for i, cell in enumerate(notebook.cells) if cell is last)
        notebook.cells.insert(place + 1, guard)
    changed = {
        name: (current[name], declared[name])
        for name in declared
        if _differ(current[name], declared[name])
    }
    if changed:
        text = _banner(changed, *committed_sources(notebook.cells))
        metadata = nbformat.from_dict({NOTE: {"made": "banner"}})
        banner = nbformat.v4.new_markdown_cell(text, id="oralib-banner", metadata=metadata)
        notebook.cells.insert(0, banner)
        for cell in notebook.cells:  # who hears a picture must not be told of another one
            image = cell.metadata.get("mystnb", {}).get("image", {})
            if "alt" in image:
                cell.metadata[NOTE] = {"alt": image["alt"]}
                image["alt"] = f"With the chapter's own parameters: {image['alt']}"


def restore(notebook: Any) -> None:
    """Make the product of an earlier run its chapter again; injected parameters stay."""
    notebook.metadata.pop(COMMITTED_NUMBERS, None)  # of other parameters than those of this run
    notes = [cell.metadata.pop(NOTE, {}) for cell in notebook.cells]
    for cell, note in zip(notebook.cells, notes, strict=True):
        cell.metadata.pop(VALUES, None)
        cell.source = note.get("template", cell.source)
        if "alt" in note:
            cell.metadata["mystnb"]["image"]["alt"] = note["alt"]
    notebook.cells = [
        cell for cell, note in zip(notebook.cells, notes, strict=True) if "made" not in note
    ]


# ----------------------------------------------------------------------------------- parameters


def _tagged(notebook: Any, tag: str) -> Any:
    """The first cell with a tag, or None."""
    return next((cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])), None)


def _assigned(cell: Any) -> dict[str, ast.expr]:
    """The values that a cell with parameters assigns, as they are written."""
    values: dict[str, ast.expr] = {}
    if cell is None:
        return values
    try:
        body = ast.parse(cell.source).body
    except SyntaxError as error:
        raise ValueError(f"a cell with parameters must be plain Python: {error}") from None
    for part in body:
        match part:
            case ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value):
                values[name] = value
            case ast.Assign(targets=[ast.Name(name)], value=value):
                values[name] = value
    return values


def _differ(one: ast.expr, other: ast.expr) -> bool:
    """Tell whether two values differ; 2 and 2.0 do not."""
    try:
        return bool(ast.literal_eval(one) != ast.literal_eval(other))
    except ValueError:  # a call, say
        return ast.unparse(one) != ast.unparse(other)


def _guard(current: dict[str, ast.expr]) -> str:
    written = ", ".join(f'"{name}": {ast.unparse(value)}' for name, value in current.items())
    return _GUARD.format(written=written)


# ----------------------------------------------------------------------------------- the banner


def committed_sources(cells: Iterable[Any]) -> tuple[list[str], list[str]]:
    """List the files of the book, and the chapters with results, that code reads as committed.

    >>> cell = {"cell_type": "code", "source": 'a, b = book_file("data/a.csv"), recorded("06")'}
    >>> committed_sources([cell])
    (['data/a.csv'], ['06'])
    """
    names_in: dict[str, list[str]] = {"book_file": [], "recorded": []}
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        try:
            nodes = list(ast.walk(ast.parse(cell["source"])))
        except SyntaxError:  # a magic command, in somebody's own notebook
            continue
        for node in nodes:
            match node:
                case ast.Call(
                    func=ast.Name(name) | ast.Attribute(attr=name), args=[ast.Constant(str(value))]
                ) if name in names_in and value not in names_in[name]:
                    names_in[name].append(value)
    return names_in["book_file"], names_in["recorded"]


def _banner(
    changed: dict[str, tuple[ast.expr, ast.expr]], files: list[str], chapters: list[str]
) -> str:
    """The text at the top of a run with other parameters, {name: (value, the chapter's own)}."""
    pairs = [
        f"`{name}` is {_shortened(current)} instead of {_shortened(declared)}"
        for name, (current, declared) in changed.items()
    ]
    sources = []
    if files:
        names = ", ".join(f"`{name}`" for name in files)
        sources.append(f"committed files, computed for their own settings ({names})")
    if chapters:
        names = " and ".join(f"`{name}`" for name in chapters)
        kind = "chapter" if len(chapters) == 1 else "chapters"
        sources.append(f"the {kind} {names} as committed")
    also = f" It also reads {' and '.join(sources)}." if sources else ""
    return (
        f"> **Run with other parameters.** Here {'; '.join(pairs)}.\n>\n"
        "> Tables, pictures and the numbers that code puts into the text are what the code gave "
        f"with these values.{also} All other words were written for the chapter's own parameters: "
        "where they compare and judge, see for yourself whether they still hold."
    )


def _shortened(value: ast.expr) -> str:
    text = ast.unparse(value)
    return escaped(text if len(text) <= 60 else f"{text[:59]}…")

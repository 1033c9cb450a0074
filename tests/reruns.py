"""Chapters run again with other parameters: what a reader sees of them, output by output."""

import ast
import contextlib
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import nbformat

from orabook import figures, place, prose, tables


@dataclass(frozen=True)
class Output:
    """One thing that a reader sees, with the words around it and the code that made it."""

    source: str
    shown: str
    beside: str

    def __str__(self) -> str:
        shown = " ".join(self.shown.split())
        return f"{' '.join(self.source.split())[-120:]}\n    shows {shown[:120]}"


def played(chapter: str, given: Mapping[str, Any]):
    """Run the cells of a chapter with these values: a generator that stops after each of them.

    It yields the cell, the names that the chapter has by then, and what the cell shows: a list of
    pairs (source, value), an expression in prose being a source too.
    """
    space: dict[str, Any] = {}
    for cell in nbformat.read(place.BOOK / f"{chapter}.ipynb", 4).cells:
        if cell.cell_type != "code":
            yield cell, space, [(x, str(eval(x, space))) for x in prose.expressions(cell.source)]
            continue
        body = ast.parse(cell.source).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module(body, []), chapter, "exec"), space)
            value = None
            if last:
                value = eval(compile(ast.Expression(last.value), chapter, "eval"), space)
        if "parameters" in cell.metadata.get("tags", []):
            space |= given
        seen = [(cell.source, printed.getvalue())] if printed.getvalue().strip() else []
        seen += [] if value is None else [(cell.source, value)]
        yield cell, space, seen


def outputs(chapter: str, given: Mapping[str, Any]) -> list[Output]:
    """What a reader of this run sees: numbers in prose, tables, and each series of a picture."""
    cells, found = [], []
    for cell, space, seen in played(chapter, given):
        cells.append(cell)
        # What shows only declared parameters is true of every run.
        declared = {*space.get("__annotations__", {}), *dir(__builtins__)}
        for source, value in seen:
            if cell.cell_type != "code" and _names(source) <= declared:
                continue
            found += [(len(cells) - 1, source, shown) for shown in _parts(value)]
    texts = [cell.source if cell.cell_type != "code" else "" for cell in cells]
    results = []
    for number, source, shown in found:
        if texts[number]:
            beside = next(x for x in texts[number].split("\n\n") if source in _flat(x))
        else:  # the caption stands below, the introduction above
            around = texts[max(number - 1, 0)].split("\n\n")[-1:] + texts[number + 1 : number + 2]
            beside = "\n".join([shown, *around])
        results.append(Output(source, shown, beside))
    return results


def _names(expression: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(expression)) if isinstance(node, ast.Name)}


def _flat(text: str) -> str:
    return text.replace("\n", " ")


def _parts(value: Any) -> list[str]:
    """A value as text; a picture by its series, so that a curve that stays is found."""
    if isinstance(value, figures.Picture):
        value.draw_without_rendering()
        table = value.table()
        if not len(table):  # a drawing: its words and its shapes, if it shows a number
            words = [text.get_text() for text in value.findobj(lambda x: hasattr(x, "get_text"))]
            if not any(map(str.isdigit, "".join(words))):
                return []
            buffer = io.BytesIO()
            value.savefig(buffer, dpi=40)
            return ["\n".join([*words, hashlib.sha256(buffer.getvalue()).hexdigest()])]
        names = [name for name in ("panel", "series") if name in table]
        groups = table.groupby(names, sort=False, dropna=False) if names else [("", table)]
        return [group.to_csv(index=False) for _, group in groups]
    if isinstance(value, tables.Shown):
        return [value._repr_html_()]
    return [value if isinstance(value, str) else repr(value)]


def kept(runs: list[list[Output]]) -> list[Output]:
    """The outputs of the first run that every other one shows in the same way."""
    others = [{(each.source, each.shown) for each in run} for run in runs[1:]]
    return [each for each in runs[0] if all((each.source, each.shown) in seen for seen in others)]

"""Numbers in prose: a markdown cell may say {eval}`f"{bound:.3f}"`.

When an execution reaches the cell, its kernel evaluates the expression. The product of a run has
the value as text in the place of the expression (``orabook.products``). While a chapter is executed
in place, the value is in the metadata of the cell, where jupyterlab-myst keeps it too. Committed
chapters have no values there, as papermill copies the metadata of cells, and would show old values
with new parameters: their values are in the metadata of the notebook (``orabook.builder.execute``).
"""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "VALUES",
    "escaped",
    "evaluate",
    "expressions",
    "fill_in",
    "filled",
    "text_of",
    "values_in",
]

#: Where jupyterlab-myst keeps the values, in the metadata of a markdown cell.
VALUES = "user_expressions"

#: A number in prose; double backticks only show how to write one.
_ROLE = re.compile(r"((?<!`)``(?!`).+?(?<!`)``(?!`))|(?<!`)\{eval\}`([^`]+)`", re.DOTALL)


def expressions(markdown: str) -> list[str]:
    """The expressions of a text in order, each once.

    >>> expressions("{eval}`x` and {eval}`y + 1`, written `` {eval}`z` ``")
    ['x', 'y + 1']
    """
    roles = (match for match in _ROLE.finditer(markdown) if match[2])
    return list(dict.fromkeys(_on_one_line(role[2]) for role in roles))


def _on_one_line(expression: str) -> str:
    return expression.replace("\n", " ").strip()


def fill_in(client: Any, cell: Any) -> None:
    """Let the kernel of an nbclient evaluate the expressions of a markdown cell it has reached."""
    if cell.cell_type != "markdown":
        return
    cell.metadata.pop(VALUES, None)
    in_cell = expressions(cell.source)
    if in_cell:
        results = evaluate(client, in_cell)
        cell.metadata[VALUES] = [
            {"expression": expression, "result": result} for expression, result in results.items()
        ]


def evaluate(client: Any, asked: Sequence[str]) -> dict[str, Any]:
    """Evaluate expressions in the kernel of an nbclient."""
    numbered = {str(number): expression for number, expression in enumerate(asked)}
    message = client.kc.execute("", silent=True, store_history=False, user_expressions=numbered)
    answer = client.wait_for_reply(message)["content"].get("user_expressions", {})
    results = {expression: answer[number] for number, expression in numbered.items()}
    for expression, result in results.items():
        if result["status"] != "ok":
            raise ValueError(f"{{eval}}`{expression}`: {result['ename']}: {result['evalue']}")
    return results


def text_of(result: Any) -> str:
    """The text of a value on a page: a word without its quotes, anything else as Python writes it.

    >>> text_of({"data": {"text/plain": "'1.25 ± 0.01'"}})
    '1.25 ± 0.01'
    """
    text = "".join(result["data"]["text/plain"])
    return str(ast.literal_eval(text)) if text[:1] in ("'", '"') else text


def values_in(cell: Any) -> dict[str, str]:
    """The values in the metadata of a cell, by their expressions."""
    entries = cell["metadata"].get(VALUES, [])
    return {entry["expression"]: text_of(entry["result"]) for entry in entries}


def filled(markdown: str, values: Mapping[str, str]) -> str:
    """Put the values of its expressions into a text.

    >>> filled("a {eval}`x`", {"x": "<0.62>"})
    'a \\\\<0.62\\\\>'
    """

    def value_of(match: re.Match[str]) -> str:
        is_code = match[1] is not None  # it only shows how to write an expression
        return match[1] if is_code else escaped(values[_on_one_line(match[2])])

    return _ROLE.sub(value_of, markdown)


def escaped(text: str) -> str:
    """Escape a text, so that Markdown shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>$|~#&])", r"\\\1", text)

"""Numbers in prose: a markdown cell may say {eval}`f"{bound:.3f}"`.

When an execution reaches the cell, its kernel evaluates the expression. The product of a run has
the value as text in the place of the expression (``orabook.products``). While a chapter is executed
in place, the value is in the metadata of the cell, where jupyterlab-myst keeps it too. Committed
chapters have no values there, as papermill copies the metadata of cells and would show them beside
other parameters: theirs are in the metadata of the notebook (``orabook.builder.execute``).
"""

import ast
import re
from collections.abc import Mapping
from typing import Any

#: Where jupyterlab-myst keeps the values, in the metadata of a markdown cell.
VALUES = "user_expressions"

#: A number in prose; double backticks only show how to write one.
_ROLE = re.compile(r"((?<!`)``(?!`).+?(?<!`)``(?!`))|(?<!`)\{eval\}`([^`]+)`", re.DOTALL)


def expressions(markdown: str) -> list[str]:
    """The expressions of a text in order, each once.

    >>> expressions("{eval}`x` and {eval}`y + 1`, written `` {eval}`z` ``")
    ['x', 'y + 1']
    """
    found = (_as_written(match[2]) for match in _ROLE.finditer(markdown) if match[2])
    return list(dict.fromkeys(found))


def _as_written(expression: str) -> str:
    return expression.replace("\n", " ").strip()


def fill_in(client: Any, cell: Any) -> None:
    """Let the kernel of an nbclient evaluate the expressions of a markdown cell it has reached."""
    if cell.cell_type == "markdown":
        cell.metadata.pop(VALUES, None)
        if asked := expressions(cell.source):
            answers = evaluate(client, asked).items()
            cell.metadata[VALUES] = [{"expression": x, "result": result} for x, result in answers]


def evaluate(client: Any, asked: list[str]) -> dict[str, Any]:
    """The values of expressions in the kernel of an nbclient."""
    numbered = {str(number): expression for number, expression in enumerate(asked)}
    message = client.kc.execute("", silent=True, store_history=False, user_expressions=numbered)
    found = client.wait_for_reply(message)["content"].get("user_expressions", {})
    answers = {expression: found[number] for number, expression in numbered.items()}
    for expression, result in answers.items():
        if result["status"] != "ok":
            raise ValueError(f"{{eval}}`{expression}`: {result['ename']}: {result['evalue']}")
    return answers


def text_of(result: Any) -> str:
    """How a page shows a value: a word without its quotes, anything else as Python writes it.

    >>> text_of({"data": {"text/plain": "'1.25 ± 0.01'"}})
    '1.25 ± 0.01'
    """
    text = "".join(result["data"]["text/plain"])
    return str(ast.literal_eval(text)) if text[:1] in ("'", '"') else text


def values_in(cell: Any) -> dict[str, str]:
    """The values in the metadata of a cell, by their expressions."""
    return {e["expression"]: text_of(e["result"]) for e in cell["metadata"].get(VALUES, [])}


def filled(markdown: str, values: Mapping[str, str]) -> str:
    """A text with the values of its expressions.

    >>> filled("a {eval}`x`", {"x": "<0.62>"})
    'a \\\\<0.62\\\\>'
    """
    return _ROLE.sub(lambda match: match[1] or escaped(values[_as_written(match[2])]), markdown)


def escaped(text: str) -> str:
    """A text that Markdown shows as it is."""
    return re.sub(r"([\\`*_{}\[\]<>$|~#&])", r"\\\1", text)

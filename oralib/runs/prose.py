"""Numbers in prose: the ``{eval}`` roles of markdown cells, evaluated while a notebook is run.

A markdown cell may say {eval}`f"{bound:.3f}"`. When the cell is reached, the expression is
evaluated in the kernel, in silence, and its value is left in the metadata of the cell, in the form
of jupyterlab-myst: JupyterLab shows it as soon as the notebook is opened, and the page of a run
fills it in.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from oralib.runs.record import RunFailed

#: Where jupyterlab-myst has the values, in the metadata of a markdown cell.
SECTION = "user_expressions"

#: What the book's markdown has beside CommonMark: the extensions that Jupyter Book turns on, but
#: for links without brackets, which are no matter here.
EXTENSIONS = ("colon_fence", "dollarmath", "tasklist")

#: Directives whose content is no markdown; directives that are not listed have some.
_VERBATIM = {
    *("code", "code-block", "code-cell", "sourcecode", "literalinclude", "parsed-literal"),
    *("math", "raw", "eval-rst"),
}


@cache
def _parser() -> Any:
    from markdown_it.renderer import RendererHTML
    from myst_parser.config.main import MdParserConfig
    from myst_parser.parsers.mdit import create_md_parser

    return create_md_parser(MdParserConfig(enable_extensions=set(EXTENSIONS)), RendererHTML)


def expressions(markdown: str) -> list[str]:
    """The expressions of a text in their order, each once; those shown as code are none."""
    if "{eval}" not in markdown:
        return []
    return list(dict.fromkeys(_expressions(markdown)))


def _expressions(markdown: str) -> Iterator[str]:
    for token in _parser().parse(markdown):
        for child in token.children or ():
            if child.type == "myst_role" and child.meta["name"] == "eval":
                # As MyST has it: a line break in a role is a space.
                yield child.content.replace("\n", " ").strip()
        if token.type in ("fence", "colon_fence"):
            directive = re.match(r"\{([^\s{}]+)\}\s*(.*)", token.info.strip())
            if directive and directive[1] not in _VERBATIM:
                yield from _expressions(directive[2])
                yield from _expressions(_without_options(token.content))


def _without_options(content: str) -> str:
    """The body of a directive after its options, which are lines with colons or between dashes."""
    if content.startswith("---\n"):
        return content.partition("\n---\n")[2]
    return re.sub(r"\A(?:[ \t]*:[\w-]+:.*\n?)+", "", content)


def fill_in(client: Any, cell: Any) -> None:
    """Evaluate the expressions of a cell and leave their values in its metadata.

    Parameters
    ----------
    client : of nbclient, with a kernel that has reached this cell.
    """
    if cell.cell_type != "markdown":
        return
    cell.metadata.pop(SECTION, None)
    found = expressions(cell.source)
    if found:
        answers = _ask(client, found)
        cell.metadata[SECTION] = [
            {"expression": expression, "result": answers[expression]} for expression in found
        ]


def check_unchanged(client: Any, notebook: Any) -> None:
    """See that all expressions have at the end the values that they had in their places.

    JupyterLab evaluates them when all cells have been run. Its readers would see other numbers than
    those of the book if a name that the prose mentions were assigned twice.
    """
    told = {
        entry["expression"]: text_of(entry["result"])
        for cell in reversed(notebook.cells)  # the first place of an expression counts
        for entry in cell.metadata.get(SECTION, [])
    }
    for cell in notebook.cells:
        for entry in cell.metadata.get(SECTION, []):
            _compare(entry["expression"], told[entry["expression"]], text_of(entry["result"]))
    if told:
        for expression, result in _ask(client, list(told)).items():
            _compare(expression, told[expression], text_of(result))


def _compare(expression: str, before: str, after: str) -> None:
    if before != after:
        raise RunFailed(
            f"{_role(expression)} is {before} in its place and {after} later: "
            "a name that prose mentions must be assigned once"
        )


def _ask(client: Any, asked: list[str]) -> dict[str, Any]:
    """The values of expressions in the kernel, as it sends them."""
    numbered = {str(number): expression for number, expression in enumerate(asked)}
    message = client.kc.execute("", silent=True, store_history=False, user_expressions=numbered)
    reply = client.wait_for_reply(message)["content"]
    found = reply.get("user_expressions", {})
    answers = {expression: found[number] for number, expression in numbered.items()}
    for expression, result in answers.items():
        if result["status"] != "ok":
            raise RunFailed(f"{_role(expression)}: {result['ename']}: {result['evalue']}")
    return answers


def _role(expression: str) -> str:
    return f"{{eval}}`{expression}`"


def text_of(result: Any) -> str:
    """What a page shows of a value: a word without its quotes, anything else as Python writes it.

    >>> text_of({"data": {"text/plain": "'1.25 ± 0.01'"}})
    '1.25 ± 0.01'
    """
    plain = result["data"].get("text/plain", "")
    text = plain if isinstance(plain, str) else "".join(plain)
    if text[:1] in ("'", '"'):
        try:
            return str(ast.literal_eval(text))
        except (ValueError, SyntaxError):
            pass
    return text

"""Roles: references, citations, and the numbers in prose."""

# mypy: disable-error-code="import-untyped"

import re
from typing import Any

from docutils import nodes

from oralib.runs.page.parts import pending
from oralib.runs.page.works import cited_as


def _split(text: str) -> tuple[str, str]:
    """The target of a role, and the text to show if one is given: ``text <target>``."""
    match = re.fullmatch(r"(.+?)\s*<([^<>]+)>", text, re.DOTALL)
    return (match[2].strip(), match[1]) if match else (text.strip(), "")


def _reference_role(name: str, rawtext: str, text: str, *_: Any, **__: Any) -> Any:
    target, words = _split(text)
    return [pending("", "", kind=name, target=target, words=words, link=True)], []


def _eval_role(name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any) -> Any:
    values = inliner.document.settings.page.values
    expression = text.replace("\n", " ").strip()
    if expression in values:
        return [nodes.Text(values[expression])], []
    return [nodes.literal("", expression)], []


def _cite_role(name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any) -> Any:
    page = inliner.document.settings.page
    in_text = name.endswith((":t", ":ts", ":ct"))
    found: list[nodes.Node] = []
    for key in filter(None, map(str.strip, text.split(","))):
        found += [nodes.Text("; ")] if found else []
        if key in page.works:
            if key not in page.cited:
                page.cited.append(key)
            words = cited_as(page.works[key], in_text)
            found.append(nodes.reference("", words, refid=f"work-{nodes.make_id(key)}"))
        else:
            found.append(nodes.Text(key))
    return (found if in_text else [nodes.Text("["), *found, nodes.Text("]")]), []


def other_role(name: str, rawtext: str, text: str, *_: Any, **__: Any) -> Any:
    target, words = _split(text)
    return [nodes.literal("", words or target)], []


ROLES: dict[str, Any] = {
    **dict.fromkeys(("ref", "numref", "prf:ref", "eq", "doc", "any"), _reference_role),
    **dict.fromkeys(("cite", "cite:p", "cite:ps", "cite:t", "cite:ts", "cite:ct"), _cite_role),
    "eval": _eval_role,
}

"""The reference: every public name has one entry, and every entry an example."""

import doctest
import importlib
import inspect
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from sphinx.ext.autodoc.mock import mock

ROOT = Path(__file__).parent.parent
#: Audits of trainings with Opacus have entries where it is not installed, too.
MISSING = [name for name in ("torch", "opacus") if find_spec(name) is None]
PAGES = sorted((ROOT / "book").glob("api*.md"))
#: The modules that the reference documents: all functions and classes in their ``__all__``.
MODULES = (
    "oralib",
    *(
        f"oralib.{path.stem}"
        for path in sorted((ROOT / "oralib").iterdir())
        if not path.stem.startswith("_") and path.stem not in ("ground", "py")
    ),
    *("oraudit", "orabook.experiments", "orabook.laws", "orabook.experiments.single_step"),
)
ENTRY = re.compile(r"^\.\. auto(?:function|class|exception|data):: ([\w.]+)", re.MULTILINE)


@pytest.fixture(autouse=True)
def stand_ins():
    """As in the book, which is built without PyTorch; SciPy would take a stand-in for it."""
    for name in entries():
        if not name.startswith("oraudit."):
            lookup(name)
    with mock(MISSING):
        yield


def entries():
    """All names that the pages have an entry for, in their order."""
    return [name for page in PAGES for name in ENTRY.findall(page.read_text())]


def test_overviews_list_what_is_there():
    """Each page but the overview itself is summed up there, and no summary is empty."""
    summary = re.compile(r"autosummary::\n   :nosignatures:\n\n((?:   [\w.]+\n)+)")
    overview = (ROOT / "book" / "api.md").read_text()
    summaries = [names.split() for names in summary.findall(overview)]
    assert len(summaries) == overview.count("autosummary::") == len(PAGES) - 1
    for names in summaries:
        assert all(lookup(name) for name in names)


def lookup(name):
    """The object with this full name."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def test_every_public_name_has_one_entry():
    """Under one of the names that it can be imported by."""
    names = entries()
    assert len(MODULES) > 9
    assert len(names) == len(set(names))
    listed = [lookup(name) for name in names]
    for module in map(importlib.import_module, MODULES):
        for last in module.__all__:
            thing = getattr(module, last)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                assert sum(thing is other for other in listed) == 1, f"{module.__name__}.{last}"


def test_every_entry_explains_itself_and_has_an_example():
    for name in entries():
        if (last := name.rpartition(".")[2]).isupper():
            continue
        thing = lookup(name)
        if inspect.isabstract(thing) or getattr(thing, "_is_protocol", False):
            continue  # its subclasses have examples
        examples = doctest.DocTestParser().get_examples(inspect.getdoc(thing))
        shown = any(last in example.source for example in examples)
        assert shown or (examples and inspect.isclass(thing)), name  # of what another one returns


def sections(docstring):
    """The names in the sections "Parameters" and "Attributes"; None if there is neither."""
    bodies = re.findall(
        r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=\n\n\S[^\n]*\n---|\Z)",
        docstring,
        re.DOTALL | re.M,
    )
    if not bodies:
        return None
    heads = [line.partition(" : ")[0] for part in bodies for line in part.splitlines()]
    heads = [head for head in heads if head and not head[0].isspace()]
    return {name.strip().lstrip("*\\") for head in heads for name in head.split(",")}


def parameters(thing):
    """The names in the signature of a function, or in that of a class."""
    names = list(inspect.signature(thing).parameters)
    return {name for name in names if name not in ("self", "cls")}


def methods(thing):
    """The public functions that a class defines."""
    members = vars(thing).items() if inspect.isclass(thing) else ()
    for name, member in members:
        function = getattr(member, "__func__", member)
        if not name.startswith("_") and inspect.isfunction(function):
            yield function


def test_docstrings_name_every_parameter():
    """Methods, too, where they describe any."""
    checked = 0
    for name in entries():
        thing = lookup(name)
        if not callable(thing):
            continue
        if not (inspect.isabstract(thing) or getattr(thing, "_is_protocol", False)):
            described = sections(inspect.getdoc(thing)) or set()
            assert described == parameters(thing), name
            checked += len(described)
        for method in methods(thing):
            described = sections(inspect.getdoc(method) or "")
            if described is not None:
                assert described == parameters(method), f"{name}.{method.__name__}"
    assert checked > 100

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
#: The modules that the reference documents: all names in their ``__all__``.
MODULES = (
    "oralib",
    *("oralib.bounds", "oralib.dpsgd", "orabook.experiments", "oralib.games"),
    *("orabook.laws", "oralib.mechanisms", "oraudit"),
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
    for page in PAGES:
        for names in re.findall(
            r"autosummary::\n   :nosignatures:\n\n((?:   [\w.]+\n)+)", page.read_text()
        ):
            assert all(lookup(name) for name in names.split())


def lookup(name):
    """The object with this full name."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def test_every_public_name_has_one_entry():
    """Under one of the names that it can be imported by."""
    names = entries()
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

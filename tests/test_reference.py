"""The reference of the library: nothing public is missing, and everything has an example."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import oralib

ROOT = Path(__file__).parent.parent
HTML = ROOT / "_build" / "html" / "book"
PAGES = sorted((ROOT / "book").glob("api-*.md"))
#: Modules with public names of their own, beyond those of ``oralib``.
MODULES = (
    *("canaries", "channel", "dpsgd", "drawings", "experiments", "figures", "games", "guessers"),
    *("laws", "mechanisms", "methods", "parameters", "planning", "runs", "scores", "tables"),
    *("trainings", "universe"),
)
ENTRY = re.compile(r"^\.\. auto(?:function|class|exception|data):: ([\w.]+)", re.MULTILINE)


def entries():
    """All names that the pages have an entry for, in their order."""
    return [name for page in PAGES for name in ENTRY.findall(page.read_text())]


def lookup(name):
    """The object with this full name."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def public():
    """Every public function and class, each once, under a name that it can be imported by."""
    found = {}
    for name in ("oralib", *(f"oralib.{module}" for module in MODULES)):
        module = importlib.import_module(name)
        for last in module.__all__:
            thing = getattr(module, last)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                found.setdefault(thing, f"{name}.{last}")
    return found


def test_every_public_name_has_one_entry():
    names = entries()
    assert len(names) == len(set(names))
    listed = [lookup(name) for name in names]
    assert [name for thing, name in public().items() if thing not in listed] == []


def test_names_of_the_package_are_called_by_it():
    """``oralib.p``, not ``oralib.bounds.p``: as people import them."""
    functions = {name for name in oralib.__all__ if not inspect.ismodule(getattr(oralib, name))}
    assert {f"oralib.{name}" for name in functions} <= set(entries())


def test_the_overview_lists_every_entry():
    overview = (ROOT / "book" / "api.md").read_text()
    listed = set(re.findall(r"^   ([\w.]+)$", overview, re.MULTILINE))
    constants = {name for name in entries() if name.rpartition(".")[2].isupper()}
    assert {f"oralib.{name}" for name in listed} == set(entries()) - constants


def test_every_entry_explains_itself_and_has_an_example():
    for name in entries():
        if (last := name.rpartition(".")[2]).isupper():
            continue
        thing = lookup(name)
        text = inspect.getdoc(thing)
        examples = doctest.DocTestParser().get_examples(text)
        shown = any(last in example.source for example in examples)
        assert shown or (examples and inspect.isclass(thing)), name  # of what another one returns
        described = re.findall(r"^([\w, ]+?) : ", text, re.MULTILINE)
        arguments = {word for names in described for word in names.split(", ")}
        if described and inspect.isfunction(thing):
            assert arguments & set(inspect.signature(thing).parameters), name


# ------------------------------------------------------------------------------ the built pages


@pytest.fixture(scope="module")
def reference():
    if not (HTML / "api.html").exists():
        pytest.skip("needs a book built by `make book`")
    return {page.stem: (HTML / f"{page.stem}.html").read_text() for page in PAGES}


def test_every_entry_is_on_its_page_with_its_example(reference):
    for page in PAGES:
        for name in ENTRY.findall(page.read_text()):
            (start,) = re.finditer(
                rf'<dt class="sig[^>]* id="{re.escape(name)}"', reference[page.stem]
            )
            following = reference[page.stem][start.start() :].partition("</dl>\n\n")[0]
            if not name.split(".")[-1].isupper():
                assert "&gt;&gt;&gt; " in re.sub("</?span[^>]*>", "", following), name


def test_names_in_cells_and_prose_lead_to_their_entries(reference):
    link = 'href="api-bounds.html#oralib.epsilon_lower_bound"'
    chapter = (HTML / "04-the-gaps.html").read_text()
    cells = re.findall(r"<pre>.*?</pre>", chapter, re.DOTALL)
    assert any(f'<a class="to-reference" {link}>' in cell for cell in cells)
    notation = (HTML / "notation.html").read_text()
    assert notation.count("#oralib.") > 60
    for page in ("04-the-gaps", "notation", "06-dp-sgd"):
        text = (HTML / f"{page}.html").read_text()
        for target, anchor in set(re.findall(r'href="(api-[\w-]+)\.html#(oralib[\w.]*)"', text)):
            assert f'id="{anchor}"' in reference[target], anchor

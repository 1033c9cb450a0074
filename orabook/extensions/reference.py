"""Links to the reference: a name of oralib or orabook in prose leads to its entry."""

import re
from itertools import product

from docutils import nodes
from sphinx.util.nodes import make_refnode

__all__ = ["clean_docstring", "link_names", "named", "refer", "resolve", "setup"]

#: Packages whose names have entries.
PACKAGES = ("oralib", "orabook")

#: The page on which every name of the library counts as one, however short.
NOTATION = "book/notation"


def clean_docstring(app, what, name, obj, options, lines):
    """Keep napoleon and reStructuredText from reading markup into plain words."""
    # |x| is an absolute value, not a substitution.
    lines[:] = [re.sub(r"(?<!\\)\|(\S|\S[^|]*\S)\|", r"\\|\1\\|", line) for line in lines]
    if what in ("attribute", "data", "property"):
        # Words before a colon in the first line would be taken for a type: begin with a comment.
        lines[:0] = ["..", ""]


NAME = re.compile(r"([A-Za-z_][\w.]*)(?:\(.*)?", re.DOTALL)


def named(text: str, objects, everything: bool = False) -> str | None:
    """The entry of the reference that a piece of code names, if any.

    A short word by itself may mean something else, unless ``everything`` is a name.

    >>> entries = {"oralib.p", "oralib.p_value", "oralib.Counts", "orabook.laws.Law"}
    >>> [named(code, entries) for code in ("oralib.p", "p_value(v, r)", "laws.Law", "p", "v")]
    ['oralib.p', 'oralib.p_value', 'orabook.laws.Law', None, None]
    >>> named("p", entries, everything=True), named("Counts.v", entries)
    ('oralib.p', 'oralib.Counts')

    A file may be called like a module.

    >>> named("games.csv", {"oralib.games"}), named("games", {"oralib.games"}, True)
    (None, 'oralib.games')
    """
    match = NAME.fullmatch(text)
    if not match or not (everything or re.search(r"[A-Z_.]", match[1])):
        return None
    parts = match[1].split(".")
    tops = [""] if parts[0] in PACKAGES else [f"{package}." for package in PACKAGES]
    for top, end in product(tops, range(len(parts), 0, -1)):
        name = top + ".".join(parts[:end])
        # The parts that follow may be an attribute of a class that has no entry of its own.
        if name in objects and (end == len(parts) or parts[end - 1][0].isupper()):
            return name
    return None


def link_names(app, doctree, docname):
    """Link names in prose to their entries."""
    objects = app.env.domains["py"].objects
    for code in list(doctree.findall(nodes.literal)):
        around = code
        while around is not None and not isinstance(around, nodes.reference | nodes.title):
            around = around.parent
        name = named(code.astext(), objects, everything=docname == NOTATION)
        if around is None and name:
            code.replace_self(refer(app.builder, docname, objects[name], code.deepcopy(), name))


def refer(builder, docname, entry, words, name):
    return make_refnode(builder, docname, entry.docname, entry.node_id, words, name)


def resolve(app, env, node, contnode):
    """A docstring may call an object by its module, or by its last name alone if that is clear."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    objects = env.domains["py"].objects
    last = target.rpartition(".")[2]
    names = [name for name in objects if name.rpartition(".")[2] == last]
    at_the_top = [name for name in names if name.count(".") == 1]
    candidates = at_the_top or names
    if len(candidates) != 1 or ("." in target and not target.startswith(PACKAGES)):
        return None
    (name,) = candidates
    return refer(app.builder, node["refdoc"], objects[name], contnode, name)


def setup(app):
    app.connect("autodoc-process-docstring", clean_docstring, priority=400)  # before napoleon
    app.connect("missing-reference", resolve)
    app.connect("doctree-resolved", link_names)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

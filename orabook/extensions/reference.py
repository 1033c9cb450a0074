"""The reference of the library: pages made from its docstrings, and links to them.

Docstrings
    They say ``name : what it is`` where NumPy's say ``name : type`` and explain below, and they
    write absolute values as in a book, with bars. Here both are put into a form that Sphinx
    understands.
Links
    A name of the library in the prose of the book or in a cell is a link to its entry.
"""

import ast
import re

from docutils import nodes
from sphinx.util.nodes import make_refnode

#: Sections of a docstring with entries ``name : what it is``.
LISTS = ("Parameters", "Attributes", "Columns", "Warns")
#: On this page every name of the library counts as one, however short.
NOTATION = "book/notation"

# ------------------------------------------------------------------------------------------------
# Docstrings


def rewrite(lines: list[str]) -> list[str]:
    """One of our docstrings in the form that napoleon reads.

    >>> rewrite(["The size |x|.", "", "Parameters", "----------", "x, y : numbers", "    of it."])
    ['The size \\\\|x\\\\|.', '', 'Parameters', '----------', 'x, y', '    numbers', '    of it.']
    """
    new, section, example = [], "", False
    for place, line in enumerate(lines):
        if set(line) == {"-"}:
            section = lines[place - 1]
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        entry = re.match(r"([\w, ]+?) : (.*)", line) if section in LISTS else None
        if entry:
            new += [entry[1], f"    {typeset(entry[2])}"]
        else:
            new.append(line if example else typeset(line))
    return new


#: Signs in a docstring, and the signs of a book.
SIGNS = (
    (r"(?<!\\)\|", r"\|"),  # bars are bars
    ("<=", "≤"),
    (">=", "≥"),
    (r"(?<=[\s({\[])-(?=[\d.\w(]| )", "−"),
    (r"(?<![\w`])(\w{1,3}'?)_(\w|\(\S+?\))(?![\w`])", r"\1\\ :sub:`\2`\\ "),  # s_i
    (r"\^(-?\w+|\([^)\s]*\))", r"\\ :sup:`\1`\\ "),  # 2^n
    (r"(:su[bp]:`)\((.*?)\)`", r"\1\2`"),  # e^(-x)
)


def typeset(line: str) -> str:
    """A line of words and formulas, with the signs of a book; code stays as it is.

    >>> print(typeset("|s_i| <= 2^n - 1, ``a_i | b``"))
    \\|s\\ :sub:`i`\\ \\| ≤ 2\\ :sup:`n`\\  − 1, ``a_i | b``
    """
    parts = re.split(r"(``.*?``|:\w+:`.*?`)", line)
    for place in range(0, len(parts), 2):
        for sign, right in SIGNS:
            parts[place] = re.sub(sign, right, parts[place])
    return "".join(parts)


def rewrite_docstring(app, what, name, obj, options, lines):
    lines[:] = rewrite(lines)
    if what in ("attribute", "data", "property"):
        # Words before a colon in the first line would be taken for a type: begin with a comment.
        lines[:0] = ["..", ""]


# ------------------------------------------------------------------------------------------------
# Links

NAME = re.compile(r"(?:oralib\.)?([A-Za-z_][\w.]*)(?:\(.*)?", re.DOTALL)


def named(text: str, objects, everything: bool = False) -> str | None:
    """The entry of the reference that a piece of code names, if any.

    A short word by itself may mean something else, unless ``everything`` is a name.

    >>> entries = {"oralib.p", "oralib.p_value", "oralib.Counts", "orabook.tables.show"}
    >>> [named(code, entries) for code in ("oralib.p", "p_value(v, r)", "tables.show", "p", "v")]
    ['oralib.p', 'oralib.p_value', 'orabook.tables.show', None, None]
    >>> named("p", entries, everything=True), named("Counts.v", entries)
    ('oralib.p', 'oralib.Counts')

    A file may be called like a module.

    >>> named("results.json", {"orabook.results"}), named("results", {"orabook.results"}, True)
    (None, 'orabook.results')
    """
    match = NAME.fullmatch(text)
    if not match:
        return None
    says_so = text.startswith("oralib.") or re.search(r"[A-Z_.]", match[1]) or everything
    whole = match[1].split(".")
    for end in range(len(whole) if says_so else 0, 0, -1):
        name = ".".join(["oralib", *whole[:end]])
        # What follows may be an attribute of a class that has no entry of its own.
        if name in objects and (end == len(whole) or whole[end - 1][0].isupper()):
            return name
    return None


def link_names(app, doctree, docname):
    objects = app.env.domains["py"].objects
    for code in list(doctree.findall(nodes.literal)):
        around = code
        while around is not None and not isinstance(around, nodes.reference | nodes.title):
            around = around.parent
        name = named(code.astext(), objects, everything=docname == NOTATION)
        if around is None and name:
            entry = objects[name]
            reference = make_refnode(
                app.builder, docname, entry.docname, entry.node_id, code.deepcopy(), name
            )
            code.replace_self(reference)


def imported(sources) -> dict[str, str]:
    """The meaning of the names that pieces of code import from the library.

    >>> imported(["import oralib", "from oralib import laws, p_value as luck"])
    {'oralib': 'oralib', 'laws': 'oralib.laws', 'luck': 'oralib.p_value'}
    """
    names = {}
    for source in sources:
        try:
            statements = ast.parse(source).body
        except SyntaxError:  # not Python, or not a whole program
            continue
        for statement in statements:
            if isinstance(statement, ast.Import) and any(
                x.name == "oralib" for x in statement.names
            ):
                names["oralib"] = "oralib"
            if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith(
                "oralib"
            ):
                for name in statement.names:
                    names[name.asname or name.name] = f"{statement.module}.{name.name}"
    return names


#: A name with its attributes in highlighted code. It is not itself an attribute or the name of an
#: argument, and not already in a link.
PIECE = r'<span class="nn?">([\w.]+)</span>'
DOT = r'<span class="o">\.</span>'
CHAIN = re.compile(
    rf'(?<!{DOT}){PIECE}(?:{DOT}<span class="n">\w+</span>)*(?!\s*<span class="o">=</span>|</a>)'
)


def link_code(html: str, names: dict[str, str], address) -> str:
    """Highlighted code with links; ``address`` gives the address of a full name, or None.

    >>> code = '<span class="n">laws</span><span class="o">.</span><span class="n">Law</span>'
    >>> link_code(code, {"laws": "oralib.laws"}, {"oralib.laws.Law": "x.html#law"}.get)[:34]
    '<a class="to-reference" href="x.ht'
    """

    def link(chain):
        words = re.findall(r">([\w.]+)</span>", re.sub(DOT, "", chain[0]))
        first, *rest = words
        if first not in names:
            return chain[0]
        spans = re.findall(r'<span class="nn?">[\w.]+</span>', chain[0])
        for end in range(len(words), 0, -1):
            found = address(".".join([names[first], *rest[: end - 1]]))
            if found:
                dot = '<span class="o">.</span>'
                linked, left = dot.join(spans[:end]), "".join(dot + x for x in spans[end:])
                return f'<a class="to-reference" href="{found}">{linked}</a>{left}'
        return chain[0]

    return CHAIN.sub(link, html)


def link_cells(app, pagename, templatename, context, doctree):
    """Names of the library in all code of a page, as its cells import them."""
    if doctree is None or "body" not in context:
        return
    objects = app.env.domains["py"].objects
    names = imported(block.astext() for block in doctree.findall(nodes.literal_block))

    def address(name):
        entry = objects.get(name)
        if entry is None or entry.objtype == "module":
            return None
        return f"{app.builder.get_relative_uri(pagename, entry.docname)}#{entry.node_id}"

    if names:
        context["body"] = re.sub(
            r"<pre>.*?</pre>",
            lambda block: link_code(block[0], names, address),
            context["body"],
            flags=re.DOTALL,
        )


def resolve(app, env, node, contnode):
    """A docstring may call an object by its module, or by its last name alone if that is clear."""
    if node.get("refdomain") != "py":
        return None
    target, objects = node["reftarget"], env.domains["py"].objects
    found = [name for name in objects if name.rpartition(".")[2] == target.rpartition(".")[2]]
    top = [name for name in found if name.count(".") == 1]
    if len(top or found) != 1 or (target.count(".") and not target.startswith("oralib.")):
        return None
    (name,) = top or found
    entry = objects[name]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, contnode, name)


def setup(app):
    app.connect("autodoc-process-docstring", rewrite_docstring, priority=400)  # before napoleon
    app.connect("missing-reference", resolve)
    app.connect("doctree-resolved", link_names)
    app.connect("html-page-context", link_cells)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

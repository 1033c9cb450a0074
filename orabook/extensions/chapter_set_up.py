"""The beginning and the end of a chapter: its set-up as one folded block, and how to run it.

Folded cells next to the parameters cell are shown as one folded block with it. A chapter with
parameters ends with a folded box that says how to run it, with the files that the book carries
(``orabook.builder.downloads``), and which results a run records; ``:::{run-this-book}`` is an open
box for all chapters.
"""

import ast
from importlib.metadata import version
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from orabook.extensions import stored_outputs

__all__ = ["RunThisBook", "add_run_box", "example", "fold_setup", "is_folded", "run_box", "setup"]

SHOW = "Parameters and set-up: click to show"
HIDE = "Parameters and set-up: click to hide"


def is_folded(node):
    """Tell whether a node is a code cell that is folded and shows nothing else."""
    return (
        isinstance(node, nodes.container)
        and node.get("nb_element") == "cell_code"
        and node.get("hide_mode") in ("input", "all", "input+output")
        and all(child.get("nb_element") == "cell_code_source" for child in node)
    )


def fold_setup(app, doctree):
    """Merge the folded parameters with the folded cells right before and after them."""
    for cell in list(doctree.findall(is_folded)):
        if "parameters" not in cell["cell_metadata"].get("tags", []):
            continue
        cells = cell.parent.children
        first = last = cells.index(cell)
        while first and is_folded(cells[first - 1]):
            first -= 1
        while last + 1 < len(cells) and is_folded(cells[last + 1]):
            last += 1
        block, *following = cells[first : last + 1]
        block["hide_mode"] = "all"
        block["prompt_show"] = SHOW
        block["prompt_hide"] = HIDE
        for other in following:
            block.extend(other.children)
            other.parent.remove(other)


#: Values for the example of a run, of the first of these parameters that a chapter has. Every
#: chapter allows them.
EXAMPLES = {"epsilon": "1.5", "beta": "0.01", "trials": "10", "seed": "1"}


def example(source: str) -> str:
    """A parameter, with a value, of a chapter whose parameters cell is given.

    A chapter about a large ε would have little to show at a small one.

    >>> example("n: int = 4  # elements\\nbeta: float = 0.05  # failures")
    'beta=0.01'
    >>> example("epsilon: float = 2.0  # level"), example("epsilon: float = 8.0  # level")
    ('epsilon=1.5', 'epsilon=4')
    """
    statements = [node for node in ast.parse(source).body if isinstance(node, ast.AnnAssign)]
    declared = {ast.unparse(node.target): ast.unparse(node.value) for node in statements}
    name = next((name for name in EXAMPLES if name in declared), next(iter(declared)))
    if name == "epsilon":
        return f"epsilon={max(float(EXAMPLES[name]), float(declared[name]) / 2):g}"
    return f"{name}={EXAMPLES.get(name, declared[name])}"


def run_box(docname, title, *commands, extras=()):
    """A box with links to the wheel and the archive, and the commands to run with them.

    >>> box = run_box("book/a", "Run", "orabook run a.ipynb", extras=["torch", "jax"])
    >>> box.astext().splitlines()[-3].partition("[")[2]
    'runs,torch,jax]"'
    """
    archive = f"oralib-{version('oralib')}"
    wheel = f"{archive}-py3-none-any.whl"
    folder = "../" * docname.count("/") + "downloads"
    links = [
        nodes.reference("", name, internal=False, refuri=f"{folder}/{name}")
        for name in (wheel, f"{archive}.tar.gz")
    ]
    sentence = nodes.paragraph("", "Download the package, ")
    sentence += [links[0], nodes.Text(", and the sources with all chapters, "), links[1]]
    sentence += nodes.Text(". In the folder with both files, using Python 3.11 or later:")
    install = f'pip install "{wheel}[{",".join(["runs", *extras])}]"'
    lines = "\n".join([install, f"tar xf {archive}.tar.gz && cd {archive}", *commands])
    code = nodes.literal_block(lines, lines, language="console")
    return nodes.admonition("", nodes.title("", title), sentence, code, classes=["run"])


def add_run_box(app, doctree):
    """End a chapter with parameters with a folded box: how to run it, and what a run records."""
    code = [x for x in doctree.findall(nodes.container) if x.get("nb_element") == "cell_code"]
    tagged = [x for x in code if "parameters" in x["cell_metadata"].get("tags", []) and x.children]
    if not tagged:
        return
    docname = app.env.docname
    command = f"orabook run {docname}.ipynb -p {example(tagged[0][0].astext())}"
    extras = stored_outputs.extras(Path(app.env.doc2path(docname)))
    results = [x for x in code if x.get("hide_mode") and "results.record(" in x[0].astext()]
    title = "Run this chapter, and what a run records" if results else "Run this chapter"
    box = run_box(docname, title, command, extras=extras)
    box["classes"].append("dropdown")
    for cell in results:
        cell.parent.remove(cell)
        cell["hide_mode"] = None
        cell.children = cell.children[1:]
        box += [nodes.paragraph("", "A run records these results:"), cell]
    doctree[-1].append(box)


class RunThisBook(SphinxDirective):
    """The same for the whole book."""

    def run(self):
        commands = (
            "orabook run --list                   # all chapters and their parameters",
            "orabook run 04-the-gaps -p epsilon=1.5",
            "make book                            # all chapters again, into _build/html",
        )
        return [run_box(self.env.docname, "Run this book", *commands)]


def setup(app):
    app.connect("doctree-read", fold_setup)
    app.connect("doctree-read", add_run_box, priority=400)  # before the cells are merged
    app.add_directive("run-this-book", RunThisBook)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""Directives: theorems, exercises, admonitions, and what nobody knows."""

# mypy: disable-error-code="import-untyped"

import re
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives

from oralib.runs.page.known import Page
from oralib.runs.page.parts import box, details, mark, pending, summary


class _AnyOption(dict):
    """Every option is allowed: those that are not known here are for others."""

    def __missing__(self, name: str) -> Any:
        return directives.unchanged


class Base(Directive):
    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = _AnyOption({"class": directives.class_option})
    names: tuple[str, ...] = ()

    @property
    def page(self) -> Page:
        page: Page = self.state.document.settings.page
        return page

    @property
    def argument(self) -> str:
        return str(self.arguments[0]) if self.arguments else ""

    @property
    def label(self) -> str:
        return str(self.options.get("label") or self.options.get("name") or "")

    def inline(self, text: str) -> list[nodes.Node]:
        return list(self.state.inline_text(text, self.lineno)[0])

    def fill(self, node: nodes.Element) -> nodes.Element:
        self.state.nested_parse(self.content, self.content_offset, node)
        return node

    def boxed(self, classes: list[str], title: list[nodes.Node]) -> nodes.Element:
        """A box with a title and the content; a folded one if its class says so."""
        classes = [*classes, *self.options.get("class", [])]
        folded = "dropdown" in classes or "toggle" in classes
        outer = details(classes=["box", *classes]) if folded else box(classes=["box", *classes])
        if folded:
            outer += summary("", "", *title)
        elif title:
            outer += nodes.paragraph("", "", *title, classes=["box-title"])
        if "open" in self.options and folded:
            outer["open"] = True
        return self.fill(outer)

    def titled(self, word: str, kind: str) -> tuple[str, list[nodes.Node]]:
        """``Theorem 3``, and the nodes of a title such as **Theorem 3** (Squares)."""
        numbered = "nonumber" not in self.options
        name = f"{word} {self.page.next_number(kind)}" if numbered else word
        title: list[nodes.Node] = [nodes.strong("", name)]
        if self.argument:
            title += [nodes.Text(" ("), *self.inline(self.argument), nodes.Text(")")]
        return name, title


class _Theorem(Base):
    names = tuple(
        f"prf:{kind}"
        for kind in (
            *("theorem", "lemma", "definition", "corollary", "proposition", "remark", "example"),
            *("conjecture", "axiom", "criterion", "observation", "property", "assumption"),
            *("algorithm", "notation"),
        )
    )

    def run(self) -> list[nodes.Node]:
        kind = self.name.partition(":")[2]
        name, title = self.titled(kind.capitalize(), kind)
        outer = self.boxed(["theorem", kind], title)
        self.page.add_label(self.label, outer, name)
        return [outer]


class _Proof(Base):
    names = ("prf:proof",)

    def run(self) -> list[nodes.Node]:
        outer = self.boxed(["proof"], [])
        title = f" ({self.argument})" if self.argument else ""
        words = nodes.emphasis("", "", nodes.Text("Proof"), *self.inline(title), nodes.Text(". "))
        if isinstance(outer, details):
            outer[0].extend(words.children)
        elif outer.children and isinstance(outer[0], nodes.paragraph):
            outer[0].insert(0, words)
        else:
            outer.insert(0, nodes.paragraph("", "", words))
        return [outer]


class _Admonition(Base):
    names = ("admonition",)

    def run(self) -> list[nodes.Node]:
        return [self.boxed(["admonition"], self.inline(self.argument))]


class _Note(Base):
    """An admonition whose name is its title; text in the first line is content."""

    optional_arguments = 0
    names = (
        *("note", "tip", "hint", "important", "seealso"),
        *("warning", "caution", "attention", "danger", "error"),
    )

    def run(self) -> list[nodes.Node]:
        word = {"seealso": "See also"}.get(self.name, self.name.capitalize())
        return [self.boxed(["admonition", self.name], [nodes.Text(word)])]


class _Dropdown(Base):
    names = ("dropdown", "toggle")

    def run(self) -> list[nodes.Node]:
        title = self.inline(self.argument or "Show")
        return [self.boxed(["admonition", "dropdown"], title)]


class _Exercise(Base):
    names = ("exercise",)

    def run(self) -> list[nodes.Node]:
        if "hidden" in self.options:
            return []
        name, title = self.titled("Exercise", "exercise")
        outer = self.boxed(["exercise"], title)
        self.page.add_label(self.label, outer, name)
        return [outer]


class _Solution(Base):
    """Folded; its argument is the label of the exercise."""

    names = ("solution",)

    def run(self) -> list[nodes.Node]:
        if "hidden" in self.options:
            return []
        self.options["class"] = [*self.options.get("class", []), "dropdown"]
        title: list[nodes.Node] = [nodes.Text("Solution")]
        if self.argument:
            word = pending("", "", kind="ref", target=self.argument, link=False)
            title += [nodes.Text(" to "), word]
        outer = self.boxed(["solution"], title)
        self.page.add_label(self.label, outer, "the solution")
        return [outer]


class _Start(Base):
    """The start of an exercise or a solution whose content is in other cells."""

    names = ("exercise-start", "solution-start")

    def run(self) -> list[nodes.Node]:
        kind = _Exercise if self.name.startswith("exercise") else _Solution
        outer = kind.run(self)
        return [mark("", *outer, end=False)] if outer else []


class _End(Base):
    names = ("exercise-end", "solution-end")

    def run(self) -> list[nodes.Node]:
        return [mark(end=True)]


class _Nothing(Base):
    """What only a whole book has."""

    names = ("toctree", "tableofcontents", "bibliography", "contents", "nb-exec-table", "index")

    def run(self) -> list[nodes.Node]:
        return []


class _Math(Base):
    names = ("math",)

    def run(self) -> list[nodes.Node]:
        text = "\n".join([self.argument, *self.content]).strip()
        block = nodes.math_block(text, text)
        if self.label:
            block["names"].append(nodes.fully_normalize_name(self.label))
            self.state.document.note_explicit_target(block, block)
        return [block]


class Other(Base):
    """A card, a grid, a tab, or what nobody knows: its title, if it has one, and its content."""

    def run(self) -> list[nodes.Node]:
        # The argument of a grid is a number of columns; lines of signs divide a card.
        plain = re.fullmatch(r"[\d\s]*", self.argument)
        title = [] if plain else [nodes.strong("", "", *self.inline(self.argument))]
        for i, line in enumerate(self.content):
            if line.strip() in ("^^^", "+++"):
                self.content[i] = ""
        return [self.boxed(["other", nodes.make_id(self.name)], title)]


#: All but :class:`Other`, which has no names of its own.
DIRECTIVES: tuple[type[Base], ...] = (
    *(_Theorem, _Proof, _Admonition, _Note, _Dropdown),
    *(_Exercise, _Solution, _Start, _End, _Nothing, _Math),
)


def box_between_marks(document: nodes.document) -> None:
    """Move what stands between the start and the end of an exercise into its box."""
    for start in list(document.findall(mark)):
        if start["end"] or start.parent is None:
            continue
        parent, outer = start.parent, start[0]
        inside = parent[parent.index(start) + 1 :]
        ends = [i for i, node in enumerate(inside) if isinstance(node, mark) and node["end"]]
        moved = inside[: ends[0]] if ends else []
        for node in moved:
            parent.remove(node)
            outer += node
        parent.replace(start, outer)
    for end in list(document.findall(mark)):
        end.parent.remove(end)

"""The parts of a page that docutils does not have."""

# mypy: disable-error-code="import-untyped"

from html import escape

from docutils import nodes


class box(nodes.General, nodes.Element):
    """A theorem, an exercise, an admonition."""


class details(nodes.General, nodes.Element):
    """Something folded; its first child is the summary."""


class summary(nodes.General, nodes.TextElement):
    """What is seen of something folded."""


class pending(nodes.Inline, nodes.TextElement):
    """A reference that is resolved when the page is complete."""


class mark(nodes.General, nodes.Element):
    """The start or the end of a box whose content stands between two directives."""


def html(text: str) -> nodes.raw:
    """HTML that was made here; what others have written does not have the mark."""
    return nodes.raw("", text, format="html", ours=True)


def picture(kind: str, encoded: str, alt: str) -> str:
    return f'<img alt="{escape(alt)}" src="data:{kind};base64,{encoded}">\n'

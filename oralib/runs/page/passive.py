"""HTML of others, without what acts by itself: scripts, frames, forms, and what is elsewhere.

A browser does none of that in our pages, as their :data:`POLICY` forbids it. It is taken out all
the same: other programs may not know the policy, and a script without its end would hide the rest
of a page.
"""

import re
from html import escape
from html.parser import HTMLParser

#: What a browser may do with a page: show it. Pictures are inside; there is nothing to be loaded.
POLICY = (
    "default-src 'none'; img-src data:; media-src data:; font-src data:; "
    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)

#: Elements that act, load or send something, or take what follows for something else than HTML.
_ACTIVE = frozenset(
    (
        *("script", "iframe", "frame", "frameset", "object", "embed", "applet", "portal"),
        *("base", "link", "meta", "form", "html", "head", "body", "main", "title"),
        *("noscript", "noframes", "noembed", "textarea", "xmp", "plaintext", "template"),
    )
)

#: Attributes with addresses, and the addresses that may be in them.
_LINKS = {"href": r"#|https?:|mailto:", "xlink:href": r"#|https?:|mailto:"}
_LOADED = dict.fromkeys(("src", "poster", "background", "data"), r"data:(image|video|audio)/")
_ADDRESSES = {**_LINKS, **_LOADED}

#: Attributes that are never kept, beside those that begin with ``on``.
_NEVER = frozenset(("action", "formaction", "srcdoc", "srcset", "ping", "target", "http-equiv"))


def passive(html: str) -> str:
    """A piece of HTML with what is harmless in it.

    >>> passive('<b onclick="f()">bold</b><script>f()</script> <a href="javascript:f()">link</a>')
    '<b>bold</b> <a>link</a>'
    """
    filtered = _Filter()
    filtered.feed(html)
    filtered.close()
    return filtered.text()


class _Filter(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self._kept: list[str] = []
        self._raw = ""  # the element, a script or a style, whose content is no HTML

    def text(self) -> str:
        return "".join(self._kept) + ("</style>" if self._raw == "style" else "")

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style"):
            self._raw = tag
        self._keep(tag, attributes, "")

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._keep(tag, attributes, "/")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._raw:
            self._raw = ""
        if _is_harmless(tag):
            self._kept.append(f"</{tag}>")

    def _keep(self, tag: str, attributes: list[tuple[str, str | None]], end: str) -> None:
        if _is_harmless(tag):
            kept = "".join(_written(name, value) for name, value in attributes)
            self._kept.append(f"<{tag}{kept}{end}>")

    def handle_data(self, data: str) -> None:
        if self._raw == "style":
            self._kept.append(data.replace("<", r"\3c "))  # as CSS writes it; in SVG it is a tag
        elif not self._raw:
            self._kept.append(escape(data, quote=False))

    def handle_entityref(self, name: str) -> None:
        self._kept.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._kept.append(f"&#{name};")


def _is_harmless(tag: str) -> bool:
    return tag not in _ACTIVE and re.fullmatch(r"[a-z][\w:.-]*", tag) is not None


def _written(name: str, value: str | None) -> str:
    """An attribute as it is written, after a space; nothing if it is not kept."""
    if name.startswith("on") or name in _NEVER or not re.fullmatch(r"[\w:.-]+", name):
        return ""
    if value is None:
        return f" {name}"
    # Browsers do not see these signs in an address.
    address = re.sub(r"[\x00-\x20]", "", value).lower()
    if name in _ADDRESSES and not re.match(_ADDRESSES[name], address):
        return ""
    return f' {name}="{escape(value)}"'

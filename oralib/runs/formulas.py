"""Formulas of a page as MathML, which browsers show without a script.

docutils converts most of LaTeX's maths. What it does not know, or reads otherwise than LaTeX does,
is written in other words before.
"""

# mypy: disable-error-code="import-untyped"

import re
from collections.abc import Callable

from docutils.utils.math import MathError, latex2mathml, unichar2tex

# Delimiters that LaTeX makes larger without saying whether they open or close; docutils would say
# that they are unknown.
latex2mathml.bigdelimiters.update({"big": 1, "Big": 2, "bigg": 3, "Bigg": 4})
latex2mathml.bigdelimiters.update({"bigm": 1, "Bigm": 2, "biggm": 3, "Biggm": 4, "middle": 0})

_SAME = {
    r"\dots": r"\ldots",
    r"\dotsc": r"\ldots",
    r"\dotsb": r"\cdots",
    r"\iff": r"\;\Longleftrightarrow\;",
    r"\implies": r"\;\Longrightarrow\;",
    r"\stackrel": r"\overset",
    r"\textbf": r"\text",
    r"\textit": r"\text",
    r"\textsf": r"\text",
    r"\texttt": r"\text",
    r"\qed": r"\blacksquare",
    r"\ensuremath": "",
    r"\mathop": "",
    r"\mathbin": "",
    r"\mathrel": "",
    r"\nonumber": "",
}


def _operator(match: re.Match[str]) -> str:
    name = re.sub(r"\\[,;: ]", "\u2009", match[1])  # a thin space, as in arg max
    return r"\operatorname{" + name.replace(r"\!", "") + "}"


#: What is replaced, in this order.
_WORDS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    # One digit is an argument, two are two: \frac12 is a half, and docutils would read 12.
    (r"(\\[dtc]?frac|\\[dt]?binom|\\sqrt|[\^_])\s*(\d)(?=\d|\{)", r"\1{\2}"),
    (r"(\\[dtc]?frac\s*\{\w\}|\\[dt]?binom\s*\{\w\})\s*(\d)", r"\1{\2}"),
    (r"(\\[dtc]?frac\s*\w)(\d)", r"\1{\2}"),
    # A comma between numbers separates them, unless it is in braces.
    (r"(?<=\d),(?=\d)", ", "),
    (r"(?<=\d)\{,\}(?=\d)", ","),
    (r"\\operatorname\*?\s*\{([^{}]*)\}", _operator),
    (r"\\substack\s*\{([^{}]*)\}", r"{\\begin{matrix}\1\\end{matrix}}"),
    (r"\\(begin|end)\{(?:align|eqnarray|split|alignat|multline)\*?\}", r"\\\1{aligned}"),
    (r"\\(begin|end)\{gather(?:ed)?\*?\}", r"\\\1{aligned}"),
    (r"\\(begin|end)\{equation\*?\}", ""),
    (r"\\begin\{array\}\s*\{[^{}]*\}", r"\\begin{matrix}"),
    (r"\\end\{array\}", r"\\end{matrix}"),
    (r"\\label\s*\{[^{}]*\}", ""),
    (r"\\tag\*?\s*\{([^{}]*)\}", r"\\qquad\\text{(\1)}"),
    # A style can only be given at the beginning of a group.
    (r"(?<=[^{\s])\s*\\(?:text|display|script)style(?![A-Za-z])", " "),
    (r"\\[A-Za-z]+", lambda match: _SAME.get(match[0], match[0])),
)

#: Spaces of LaTeX that docutils does not make.
_SPACES = (
    # Between a function and its argument, unless that is in brackets.
    (r"(<mo>&ApplyFunction;</mo>)(?!\s*<mo[^>]*>[(\[{])", r'\1<mspace width="0.17em"/>'),
    # None between a sign and its number.
    (
        r"(<mo[^>]*>(?:[{,:=≤≥≠∈→]|&lt;|&gt;)</mo>\s*)<mo>−</mo>",
        r'\1<mo form="prefix">−</mo>',
    ),
)


def as_mathml(tex: str, block: bool) -> str | None:
    """A formula in MathML; None if it has something in it that cannot be converted."""
    text = tex.strip().translate(unichar2tex.uni2tex_table)
    bare = re.sub(r"\\.", "", text)
    if bare.count("{") != bare.count("}"):  # which docutils forgives
        return None
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    try:
        mathml = str(latex2mathml.tex2mathml(text, as_block=block))
    except (MathError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None  # docutils does not always notice itself what is wrong
    for pattern, replacement in _SPACES:
        mathml = re.sub(pattern, replacement, mathml)
    return mathml

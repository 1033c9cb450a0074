"""Imported before all else that runs need: a look at what is there, and nbformat without a grammar.

jsonschema, with which nbformat checks notebooks, imports ``rfc3987_syntax`` where it finds it, and
JupyterLab brings it along. That package compiles dozens of grammars for international addresses,
which takes longer than all other imports together. Notebooks have no such addresses in their
schema, so jsonschema is imported as if the package were not there.
"""

import sys

from oralib import _extra

_extra.check_runs("oralib.runs")  # which names the extra, and not only what is missing

_GRAMMAR = "rfc3987_syntax"

if "jsonschema" not in sys.modules and _GRAMMAR not in sys.modules:
    sys.modules[_GRAMMAR] = None  # type: ignore[assignment]
    try:
        import jsonschema  # type: ignore[import-untyped]  # noqa: F401
    finally:
        del sys.modules[_GRAMMAR]

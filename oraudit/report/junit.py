"""The report as a test suite with one test, in the XML that CI services show."""

import re
from xml.etree import ElementTree

from oraudit.findings import CANNOT_TELL, FAILED
from oraudit.report.facts import Facts

__all__ = ["suite"]

#: The characters that XML cannot have, escaped or not.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def suite(facts: Facts) -> str:
    """Write a test suite with one test: a failure if the audit failed, an error if it is open."""
    failed = facts.status == FAILED
    undecided = facts.status == CANNOT_TELL
    root = ElementTree.Element("testsuite", name="oraudit", tests="1")
    root.set("failures", str(int(failed)))
    root.set("errors", str(int(undecided)))
    properties = ElementTree.SubElement(root, "properties")
    pairs = [
        ("status", facts.status),
        ("headline", facts.headline),
        *((row.name, row.words) for row in facts.rows),
    ]
    for name, value in pairs:
        ElementTree.SubElement(properties, "property", name=_legal(name), value=_legal(value))
    case = ElementTree.SubElement(
        root, "testcase", classname="oraudit", name="the training is as stated"
    )
    if failed or undecided:
        kind = "failure" if failed else "error"
        trouble = ElementTree.SubElement(
            case, kind, type=facts.status, message=_legal(facts.headline)
        )
        trouble.text = _legal(facts.text)
    output = ElementTree.SubElement(case, "system-out")
    output.text = _legal(facts.text)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, "unicode")}\n'


def _legal(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)

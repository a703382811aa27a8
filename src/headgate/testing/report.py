"""Outcomes for programs: a JUnit file."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from headgate.testing.outcome import Outcome


def junit(outcomes: Sequence[Outcome]) -> bytes:
    """One test case per file, in a suite per folder's name."""
    seconds = sum(one.seconds for one in outcomes)
    failed = sum(not one.passed for one in outcomes)
    counts = {"tests": str(len(outcomes)), "failures": str(failed), "errors": "0", "time": f"{seconds:.3f}"}
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", {"name": "headgate test", **counts})
    for one in outcomes:
        folder, _, name = one.path.rpartition("/")
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": folder or ".", "name": name, "time": f"{one.seconds:.3f}"}
        )
        for failure in one.failures:
            told = ElementTree.SubElement(case, "failure", {"message": _clean(failure.diagnostic.message)})
            told.text = _clean(failure.render())
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def summary(outcomes: Sequence[Outcome]) -> str:
    passed = sum(one.passed for one in outcomes)
    return f"{passed} passed, {len(outcomes) - passed} failed"


def _clean(text: str) -> str:
    """Without what XML cannot hold."""
    return "".join(one for one in text if one in "\n\t" or (one >= " " and not "\ud800" <= one <= "\udfff"))

"""The outcomes of files: as lines, as a JUnit file, and as edits of the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from headgate.errors import Diagnostic
from headgate.testing.context import Edit


@dataclass(frozen=True, slots=True)
class Failure:
    """A step that failed. The ``detail`` of the diagnostic holds the diff, if there is one."""

    path: str
    line: int
    diagnostic: Diagnostic
    format: str | None = None

    def render(self) -> str:
        where = f"{self.path}:{self.line}" + (f" (format {self.format})" if self.format else "")
        parts = [f"{where}: {self.diagnostic.code}: {self.diagnostic.message}"]
        if self.diagnostic.detail:
            parts.append(self.diagnostic.detail)
        if self.diagnostic.hint:
            parts.append(f"hint: {self.diagnostic.hint}")
        return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one file. ``rewritten`` is how many blocks `--rewrite` has changed."""

    path: str
    seconds: float
    failures: tuple[Failure, ...] = ()
    rewritten: int = 0

    @property
    def passed(self) -> bool:
        return not self.failures


def junit(outcomes: Sequence[Outcome]) -> bytes:
    """A JUnit document with one test case per file."""
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
            element = ElementTree.SubElement(case, "failure", {"message": _clean(failure.diagnostic.message)})
            element.text = _clean(failure.render())
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def summary(outcomes: Sequence[Outcome]) -> str:
    passed = sum(one.passed for one in outcomes)
    return f"{passed} passed, {len(outcomes) - passed} failed"


def _clean(text: str) -> str:
    """The text without characters that XML cannot hold."""
    return "".join(one for one in text if one in "\n\t" or (one >= " " and not "\ud800" <= one <= "\udfff"))


def rewritten(text: str, edits: Sequence[Edit]) -> str:
    """The text of a file with its edits. If several formats have edited a block, the first one counts."""
    lines = text.split("\n")
    first: dict[int, Edit] = {}
    for edit in edits:
        first.setdefault(edit.block.line, edit)
    for number in sorted(first, reverse=True):
        edit = first[number]
        start = number - 1
        lines[start : start + len(edit.block.lines)] = edit.lines
    return "\n".join(lines)

"""What became of a file, and of each of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from headgate.errors import Diagnostic
from headgate.testing.context import Edit


@dataclass(frozen=True, slots=True)
class Failure:
    """``detail`` of the diagnostic is the diff, where there is one."""

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
    """Of one file. ``seconds`` is how long it took; ``rewritten`` how many blocks `--rewrite` changed."""

    path: str
    seconds: float
    failures: tuple[Failure, ...] = ()
    rewritten: int = 0

    @property
    def passed(self) -> bool:
        return not self.failures


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


def rewritten(text: str, edits: Sequence[Edit]) -> str:
    """A block that was edited in several runs, one for each format, takes the lines of the first."""
    lines = text.split("\n")
    first: dict[int, Edit] = {}
    for edit in edits:
        first.setdefault(edit.block.line, edit)
    for number in sorted(first, reverse=True):
        edit = first[number]
        start = number - 1
        lines[start : start + len(edit.block.lines)] = edit.lines
    return "\n".join(lines)

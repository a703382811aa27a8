"""Golden files: a text, and what becomes of it.

A file holds cases separated by lines of ``====``: the text, a line ``----``, and then the statements as they are
printed, or the error as a person sees it. With HEADGATE_REWRITE=1 the test writes what it found; look at the
difference before you keep it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headgate.errors import HeadgateError
from headgate.sql.redact import redacted_text
from headgate.sql.script import parse_script
from headgate.sql.statement import print_statement

FOLDER = Path(__file__).parent / "golden"
_CASE, _ANSWER = "\n====\n", "\n----\n"


@dataclass(frozen=True, slots=True)
class Case:
    text: str
    expected: str

    def found(self) -> str:
        try:
            return "\n\n".join(print_statement(statement) for statement in parse_script(self.text))
        except HeadgateError as problem:
            return problem.diagnostic(redacted_text(self.text)).render()


def files() -> list[Path]:
    return sorted(FOLDER.glob("*.txt"))


def read(path: Path) -> list[Case]:
    cases = path.read_text(encoding="utf-8").rstrip("\n").split(_CASE)
    return [Case(*(case.split(_ANSWER) if _ANSWER in case else (case, ""))) for case in cases]


def write(path: Path) -> None:
    cases = [f"{case.text}{_ANSWER}{case.found()}" for case in read(path)]
    path.write_text(_CASE.join(cases) + "\n", encoding="utf-8")


def texts() -> list[str]:
    """The texts of all cases: what people really write, good and bad."""
    return [case.text for path in files() for case in read(path)]

"""The table of changes and what each does to each target, for the docs: made by really asking for the verdicts."""

from __future__ import annotations

from headgate.schema.evolve.diff import diff
from headgate.schema.evolve.verdict import Level
from headgate.schema.evolve.verdicts import Target, verdict
from headgate.schema.parse import parse_type
from headgate.schema.types import Record

# A change in words, and the columns before and after it.
SHOWN = (
    ("a nullable field is added", "a text", "a text, b text"),
    ("a field that is not null is added", "a text", "a text, b text not null"),
    ("a nullable field is removed", "a text, b text", "a text"),
    ("integer to bigint", "a integer", "a bigint"),
    ("integer or real to double", "a integer", "a double"),
    ("bigint to double", "a bigint", "a double"),
    ("bigint to decimal", "a bigint", "a decimal(19,0)"),
    ("decimal to one of more digits before the point", "a decimal(5,2)", "a decimal(9,2)"),
    ("decimal to one of more digits after the point", "a decimal(5,2)", "a decimal(9,4)"),
    ("a number to text", "a integer", "a text"),
    ("uuid to text", "a uuid", "a text"),
    ("enum to text", "a enum('x')", "a text"),
    ("text to json", "a text", "a json"),
    ("a record to json", "a record(x text)", "a json"),
    ("a number to a narrower one", "a bigint", "a integer"),
    ("text to a number", "a text", "a integer"),
    ("becomes nullable", "a text not null", "a text"),
    ("becomes not null", "a text", "a text not null"),
    ("an enum gains a symbol", "a enum('x')", "a enum('x', 'y')"),
    ("an enum loses a symbol", "a enum('x', 'y')", "a enum('x')"),
    ("a field moves", "a text, b text", "b text, a text"),
    ("a doc changes", "a text", "a text comment 'x'"),
)
WORDS = {
    Level.SAFE: "nothing to do",
    Level.IN_PLACE: "in place",
    Level.REBUILD: "made anew",
    Level.BREAKING: "breaks",
}


def change_table() -> str:
    """Every kind of change and its verdict for every target, with the reason. Markdown."""
    lines = ["| change | " + " | ".join(target.value for target in Target) + " |"]
    lines.append("| --- " * (len(Target) + 1) + "|")
    for words, old, new in SHOWN:
        lines.append(f"| {words} | " + " | ".join(_cell(old, new, target) for target in Target) + " |")
    return "\n".join(lines) + "\n"


def _cell(old: str, new: str, target: Target) -> str:
    changes = diff(_record(old), _record(new))
    worst = max((verdict(change, target) for change in changes), key=lambda found: found.level)
    return f"**{WORDS[worst.level]}**: {worst.reason}"


def _record(columns: str) -> Record:
    record = parse_type(f"record({columns})")
    assert isinstance(record, Record)
    return record

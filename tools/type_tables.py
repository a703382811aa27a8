"""The tables of types and changes for the docs. They are made by mapping every type, so they show what happens."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from headgate.schema.evolve.changes import diff
from headgate.schema.evolve.verdicts import Level, Target, verdict
from headgate.schema.formats import avro, elasticsearch, jsonschema, postgres, protobuf, spark
from headgate.schema.formats.protobuf.print import print_proto
from headgate.schema.parse import LISTS, RECORDS, SPELLINGS, parse_type
from headgate.schema.render import print_type
from headgate.schema.types import Field, Record, Type
from tools.type_losses import READ_CONVERSIONS, ROUND_TRIP_LOSSES, Loss

TYPES = (
    "boolean", "integer", "bigint", "real", "double", "decimal(10,2)", "text", "bytes", "bytes(16)", "date", "time",
    "timestamp", "timestamptz", "uuid", "json", "enum('a', 'b')", "array<integer not null>",
    "map<text, integer not null>", "record(a integer, b text)",
)  # fmt: skip
_OF_SEVERAL_WORDS = {
    "double": "double precision",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
    "text": "character varying",
}


def _avro(type_: Type) -> str:
    schema = avro.to_avro(_one_column(type_), name="row").json
    assert isinstance(schema, dict)
    return json.dumps(schema["fields"][0]["type"])


def _json_schema(type_: Type) -> str:
    schema = jsonschema.to_json_schema(type_)
    return json.dumps({key: value for key, value in schema.items() if key != "$schema"})


def _protobuf(type_: Type) -> str:
    text = print_proto(protobuf.to_protobuf(_one_column(type_), name="Row", package="p"))
    line = next(line for line in text.splitlines() if line.endswith(" f = 1;"))
    return line.strip().removesuffix(" f = 1;").removeprefix(".p.Row.").removeprefix(".")


def _spark(type_: Type) -> str:
    return spark.to_spark(type_).simpleString()


def _postgres(type_: Type) -> str:
    columns = postgres.columns(_one_column(type_))
    if len(columns) == 1:
        return columns[0].postgres
    return ", ".join(f"{column.name} {column.postgres}" for column in columns)


def _elasticsearch(type_: Type) -> str:
    return json.dumps(elasticsearch.to_elasticsearch_field(type_))


def _one_column(type_: Type) -> Record:
    return Record((Field("f", type_, nullable=False),))


FORMATS: dict[str, Callable[[Type], str]] = {
    "avro": _avro,
    "json schema": _json_schema,
    "protobuf": _protobuf,
    "spark": _spark,
    "postgres": _postgres,
    "elasticsearch": _elasticsearch,
}
TITLES = {
    "avro": "Avro",
    "json schema": "JSON Schema",
    "protobuf": "Protobuf",
    "spark": "Spark",
    "postgres": "PostgreSQL",
    "elasticsearch": "Elasticsearch",
}


def type_table() -> str:
    """Every type, its other spellings, and what it is in every format. Markdown."""
    rows = []
    for text in TYPES:
        type_ = parse_type(text)
        mapped = [_code(to(type_)) for to in FORMATS.values()]
        rows.append([_code(print_type(type_)), ", ".join(map(_code, _spellings(text))), *mapped])
    return _table(["type", "also written", *TITLES.values()], rows)


def loss_table(format_: str) -> str:
    """The types that do not come back from a format as they were written. Markdown."""
    return _losses("written", "read back as", ROUND_TRIP_LOSSES[format_])


def reading_table(format_: str) -> str:
    """The types that only the format has, and what they are read as. Markdown."""
    return _losses(f"in {TITLES[format_]}", "is read as", READ_CONVERSIONS[format_])


def _spellings(text: str) -> list[str]:
    word = text.split("(")[0].split("<")[0]
    if word == "array":
        return [*sorted(LISTS - {word}), "T[]"]
    if word == "record":
        return sorted(RECORDS - {word})
    if word not in SPELLINGS or text == "bytes(16)":
        return []
    same = [spelling for spelling, type_ in SPELLINGS.items() if type_ == SPELLINGS[word] and spelling != word]
    return same + ([_OF_SEVERAL_WORDS[word]] if word in _OF_SEVERAL_WORDS else [])


def _losses(from_: str, to: str, losses: Iterable[Loss]) -> str:
    return _table([from_, to, ""], [[loss.type, loss.becomes, loss.note] for loss in losses])


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _code(text: str) -> str:
    return f"`{text}`"


# A change in words, and the columns before and after it.
CHANGES = (
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
LEVELS = {
    Level.SAFE: "nothing to do",
    Level.IN_PLACE: "in place",
    Level.REBUILD: "made anew",
    Level.BREAKING: "breaks",
}


def change_table() -> str:
    """Every kind of change and its verdict for every target, with the reason. Markdown."""
    lines = ["| change | " + " | ".join(target.value for target in Target) + " |"]
    lines.append("| --- " * (len(Target) + 1) + "|")
    for words, old, new in CHANGES:
        lines.append(f"| {words} | " + " | ".join(_verdict_cell(old, new, target) for target in Target) + " |")
    return "\n".join(lines) + "\n"


def _verdict_cell(old: str, new: str, target: Target) -> str:
    changes = diff(_record(old), _record(new))
    worst = max((verdict(change, target) for change in changes), key=lambda found: found.level)
    return f"**{LEVELS[worst.level]}**: {worst.reason}"


def _record(columns: str) -> Record:
    record = parse_type(f"record({columns})")
    assert isinstance(record, Record)
    return record

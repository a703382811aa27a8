"""The tables of the docs, made by really mapping every type: what is shown is what happens."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from headgate.errors import similar_names
from headgate.schema.formats import avro, elasticsearch, jsonschema, postgres, protobuf, spark
from headgate.schema.formats.errors import UnknownFormat
from headgate.schema.formats.loss import Loss
from headgate.schema.formats.proto_text import print_proto
from headgate.schema.parse import LISTS, RECORDS, SPELLINGS, parse_type
from headgate.schema.render import print_type
from headgate.schema.types import Field, Record, Type

SHOWN = (
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
_LOSSES: dict[str, tuple[Sequence[Loss], Sequence[Loss]]] = {
    "avro": (avro.LOSSES, avro.READING),
    "json schema": (jsonschema.LOSSES, jsonschema.READING),
    "protobuf": (protobuf.LOSSES, protobuf.READING),
    "spark": (spark.LOSSES, spark.READING),
    "postgres": (postgres.LOSSES, postgres.READING),
    "elasticsearch": (elasticsearch.LOSSES, elasticsearch.READING),
}


def type_table() -> str:
    """Every type, how else it may be written, and what it is in every format. Markdown."""
    rows = []
    for text in SHOWN:
        type_ = parse_type(text)
        mapped = [_code(to(type_)) for to in FORMATS.values()]
        rows.append([_code(print_type(type_)), ", ".join(map(_code, _spellings(text))), *mapped])
    return _table(["type", "also written", *TITLES.values()], rows)


def loss_table(format_: str) -> str:
    """What a type does not bring back from a format. Markdown."""
    return _losses("written", "read back as", _of(format_)[0])


def reading_table(format_: str) -> str:
    """How what only the format has is read. Markdown."""
    return _losses(f"in {TITLES[format_]}", "is read as", _of(format_)[1])


def _of(format_: str) -> tuple[Sequence[Loss], Sequence[Loss]]:
    if format_ not in _LOSSES:
        raise UnknownFormat(format_, similar_names(format_, _LOSSES))
    return _LOSSES[format_]


def _spellings(text: str) -> list[str]:
    word = text.split("(")[0].split("<")[0]
    if word == "array":
        return [*sorted(LISTS - {word}), "T[]"]
    if word == "record":
        return sorted(RECORDS - {word})
    if word not in SPELLINGS or text == "bytes(16)":
        return []
    same = [
        spelling for spelling, type_ in SPELLINGS.items() if type_ == SPELLINGS[word] and spelling != word
    ]
    return same + ([_OF_SEVERAL_WORDS[word]] if word in _OF_SEVERAL_WORDS else [])


def _losses(from_: str, to: str, losses: Iterable[Loss]) -> str:
    return _table([from_, to, ""], [[loss.type, loss.becomes, loss.note] for loss in losses])


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _code(text: str) -> str:
    return f"`{text}`"

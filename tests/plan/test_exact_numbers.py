"""Which numbers of JSON documents a table reads from the document's own text."""

from __future__ import annotations

import pytest

from headgate.control.definitions import task_definition
from headgate.plan.definitions import SourceDefinition, TaskDefinition
from headgate.plan.target_definitions import TableDefinition
from headgate.schema.encodings import SchemaEncoding, decoded_type
from headgate.schema.types import Json, Record
from headgate.schema.written import SchemaFormat
from headgate.sql.statement import Kind
from tests.plan.planning import Planning

pytestmark = pytest.mark.unit

NUMBER = {"type": "number"}
DOCUMENT = {
    "type": "object",
    "properties": {"a": NUMBER, "b": NUMBER, "whole": {"type": "integer"}, "inner": {"type": "object", "properties": {"c": NUMBER}}},
}  # fmt: skip


def task(fields: str, view: str = "") -> TaskDefinition:
    made = Planning()
    made.outside.topics["docs"] = 1
    made.outside.add_subject("docs-value", DOCUMENT, SchemaFormat.JSON)
    format_ = "FORMAT JSON SCHEMA USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
    made.do(f"CREATE SOURCE docs FROM KAFKA CONNECTION kafka (TOPIC 'docs') {format_};{view}")
    made.do("CREATE CONNECTION pg TO POSTGRES (HOST 'h') WITH (VALIDATE = false)")
    of = "v" if view else "docs"
    made.do(f"CREATE MATERIALIZATION m FROM {of} INTO POSTGRES CONNECTION pg (TABLE 't') FIELDS ({fields})")
    return task_definition(made.catalog, made.named("m", Kind.MATERIALIZATION))


def places(made: TaskDefinition) -> tuple[tuple[str, ...], ...]:
    assert isinstance(made.source, SourceDefinition)
    value = made.source.layout.value
    assert isinstance(value, SchemaEncoding)
    return value.as_json


def test_only_numbers_that_need_their_digits_are_read_as_text() -> None:
    made = task("a i64 NULL, again f64 FROM '/a' NULL, b f64 NULL, whole string NULL, c string FROM '/inner/c' NULL")
    assert places(made) == (("a",), ("inner", "c"))
    assert isinstance(made.source, SourceDefinition)
    read = decoded_type(made.source.layout.value).type
    assert isinstance(read, Record)
    assert {field.name for field in read.fields if field.type == Json()} == {"a"}
    assert isinstance(made.sink, TableDefinition)
    inside = {column.name for column in made.sink.columns if column.field.path and column.field.path.inside is not None}
    assert inside == {"a", "again", "c"}


def test_a_record_that_is_kept_whole_knows_that_it_holds_json() -> None:
    made = task("c string FROM '/inner/c' NULL, inner json NULL")
    assert isinstance(made.sink, TableDefinition)
    source = made.sink.columns[1].field.source
    assert isinstance(source, Record)
    assert [field.type for field in source.fields] == [Json()]


def test_a_view_computes_with_numbers() -> None:
    assert places(task("a i64 NULL", "CREATE VIEW v AS SELECT a FROM docs;")) == ()

"""Which numbers of JSON documents a table reads from the document's own text."""

from __future__ import annotations

import pytest

from headgate.control.definitions import task_definition
from headgate.plan.definitions import SourceDefinition, TaskDefinition
from headgate.plan.target_definitions import IndexDefinition, TableDefinition
from headgate.schema.encodings import SchemaEncoding, decoded_type
from headgate.schema.types import Double, Json, Place, Record
from headgate.schema.written import SchemaFormat
from headgate.sql.statement import Kind
from tests.plan.planning import Planning

pytestmark = pytest.mark.unit

NUMBER = {"type": "number"}
DOCUMENT = {
    "type": "object",
    "properties": {"a": NUMBER, "b": NUMBER, "list": {"type": "array", "items": NUMBER}, "by_name": {"type": "object", "additionalProperties": NUMBER}, "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}, "n": NUMBER}}}, "whole": {"type": "integer"}, "inner": {"type": "object", "properties": {"c": NUMBER}}},
}  # fmt: skip


TABLE, INDEX = "POSTGRES CONNECTION pg (TABLE 't')", "ELASTICSEARCH CONNECTION es (INDEX 'i')"


def task(fields: str, view: str = "", target: str = TABLE) -> TaskDefinition:
    made = Planning()
    made.outside.topics["docs"] = 1
    made.outside.add_subject("docs-value", DOCUMENT, SchemaFormat.JSON)
    format_ = "FORMAT JSON SCHEMA USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
    made.do(f"CREATE SOURCE docs FROM KAFKA CONNECTION kafka (TOPIC 'docs') {format_};{view}")
    made.do("CREATE CONNECTION pg TO POSTGRES (HOST 'h') WITH (VALIDATE = false)")
    made.do("CREATE CONNECTION es TO ELASTICSEARCH (URL 'http://h') WITH (VALIDATE = false)")
    of = "v" if view else "docs"
    made.do(f"CREATE MATERIALIZATION m FROM {of} INTO {target} FIELDS ({fields})")
    return task_definition(made.catalog, made.named("m", Kind.MATERIALIZATION))


def places(made: TaskDefinition) -> tuple[Place, ...]:
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


def test_a_view_that_renames_chooses_and_filters_gives_the_digits_of_its_source() -> None:
    views = """CREATE VIEW u AS SELECT a AS x, "inner", b FROM docs WHERE a > 5;
        CREATE VIEW v AS SELECT x AS y, "inner" FROM u WHERE b < 2;"""
    made = task("y i64 NULL, inner json NULL", views)
    assert places(made) == (("a",), ("inner", "c"))
    assert isinstance(made.source, SourceDefinition)
    types = {column.name: column.type for column in made.source.layout.columns}
    assert (types["a"], types["hg:exact_a"]) == (Double(), Json())
    assert isinstance(made.sink, TableDefinition)
    assert [column.field.path and column.field.path.inside for column in made.sink.columns] == [(), None]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a + 0 AS a FROM docs",
        "SELECT coalesce(a, b) AS a FROM docs",
    ],
)
def test_what_a_view_computes_from_a_double_is_a_double(query: str) -> None:
    assert places(task("a i64 NULL", f"CREATE VIEW v AS {query};")) == ()


def test_an_index_has_the_digits_that_a_table_has() -> None:
    made = task("a i64 NULL, b f64 NULL, c string FROM '/inner/c' NULL", target=INDEX)
    assert places(made) == (("a",), ("inner", "c"))
    assert isinstance(made.sink, IndexDefinition)
    assert [field.path and field.path.inside for field in made.sink.fields] == [(), None, ()]


@pytest.mark.parametrize("target", [TABLE, INDEX])
@pytest.mark.parametrize(
    ("field", "place"),
    [
        ("list ARRAY<i64> NULL", ("list", None)),
        ("list ARRAY<string> NULL", ("list", None)),
        ("by_name map<text, decimal(20,2)> NULL", ("by_name", None)),
        ("lines ARRAY<record(n decimal(20,2))> NULL", ("lines", None, "n")),
        ("lines json NULL", ("lines", None, "n")),
        ("inner json NULL", ("inner", "c")),
        ("list json NULL", ("list", None)),
        ("n i64 FROM '/list/0' NULL", ("list", None)),
        ("n string FROM '/lines/3/n' NULL", ("lines", None, "n")),
        ("list ARRAY<json> NULL", ("list", None)),
        ("a json NULL", ("a",)),
    ],
)
def test_numbers_in_lists_maps_and_records_keep_their_digits_too(field: str, place: Place, target: str) -> None:
    assert places(task(field, target=target)) == (place,)


@pytest.mark.parametrize("field", ["list ARRAY<f64> NULL", "lines ARRAY<record(sku text, n f64)> NULL"])
def test_lists_whose_numbers_are_doubles_are_read_as_they_are(field: str) -> None:
    assert places(task(field)) == ()

"""Every rule about schema ids: for keys and for values, for CREATE and for AS SELECT. Each has its own error and a hint."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.errors import HeadgateError
from headgate.plan.plans import RegisterSchema
from headgate.resolve import stream_errors as errors
from headgate.schema.errors import RecursiveSchema, UnknownMessage
from headgate.schema.written import SchemaFormat
from headgate.sql.errors import InvalidOptionValue
from headgate.sql.statement import Kind
from headgate.sql.streams import CreateStreamAs
from tests.plan.planning import Planning

pytestmark = pytest.mark.unit

SIDES = ("key", "value")
FORMS = ("create", "as")
SOURCES = """
CREATE STREAM src (k text KEY, c1 int, c2 text, r record(a int, b text)) WITH (kafka_topic = 'src', format = 'avro', partitions = 1);
CREATE STREAM plain (k text KEY, c1 int) WITH (kafka_topic = 'plain', value_format = 'json', partitions = 1);
CREATE STREAM proto (k text KEY, c1 int) WITH (kafka_topic = 'proto', format = 'protobuf', partitions = 1);
"""
AVRO = '{"type": "record", "name": "Given", "namespace": "shop", "fields": [{"name": "c1", "type": "int"}]}'
TREE = '{"type": "record", "name": "t", "fields": [{"name": "left", "type": ["null", "t"]}]}'
PROTO = 'syntax = "proto3"; package shop; message First { int32 c1 = 1; message In { string c2 = 1; } } message Second { string c2 = 1; }'


@pytest.fixture
def planning() -> Planning:
    found = Planning()
    found.outside.topics["t"] = 1
    found.do(SOURCES)
    return found


def statement(form: str, side: str, properties: str, select: str = "SELECT k, c1 FROM src", columns: str = "") -> str:
    """A statement with properties for one side, in which SIDE stands for its name. The other side is right."""
    other = "key" if side == "value" else "value"
    given = [properties.replace("SIDE", side)]
    if form == "as":
        return f"CREATE STREAM s WITH ({', '.join(given)}) AS {select}"
    given += ["kafka_topic = 't'"]
    columns = columns or ("k text KEY" if other == "key" else "v text")
    if "format = " not in properties.replace("SIDE_format", "") and f"{other}_format" not in properties:
        given += [f"{other}_format = '{'kafka' if other == 'key' else 'json'}'"]
    return f"CREATE STREAM s ({columns}) WITH ({', '.join(given)})"


def refused(planning: Planning, text: str, error: type[HeadgateError]) -> HeadgateError:
    with pytest.raises(error) as caught:
        planning.plan(text)
    return caught.value


def given(planning: Planning, schema: str, format_: SchemaFormat = SchemaFormat.AVRO) -> int:
    return planning.outside.add_subject(f"given{len(planning.outside.subjects)}", schema, format_)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("form", FORMS)
class TestBothSidesAndBothForms:
    def test_a_format_without_schemas_is_refused(self, planning: Planning, form: str, side: str) -> None:
        for format_ in ("json", "kafka", "delimited"):
            text = statement(form, side, f"SIDE_format = '{format_}', SIDE_schema_id = {given(planning, AVRO)}")
            wrong = refused(planning, text, errors.FormatWithoutSchemas)
            assert f"{side}_schema_id" in wrong.message()
            assert f"{side}_format = 'avro'" in str(wrong.hint())

    def test_a_schema_of_another_type_is_refused_with_the_format_to_write(
        self, planning: Planning, form: str, side: str
    ) -> None:
        id_ = given(planning, PROTO, SchemaFormat.PROTOBUF)
        text = statement(form, side, f"SIDE_format = 'avro', SIDE_schema_id = {id_}")
        wrong = refused(planning, text, errors.SchemaIdOfOtherFormat)
        assert wrong.message() == f'{side}_schema_id of stream "s": schema {id_} is PROTOBUF, not AVRO'
        assert f"{side}_format = 'protobuf'" in str(wrong.hint())

    def test_an_id_that_the_registry_does_not_have_is_refused(self, planning: Planning, form: str, side: str) -> None:
        wrong = refused(
            planning, statement(form, side, "SIDE_format = 'avro', SIDE_schema_id = 99"), errors.SchemaIdUnknown
        )
        assert wrong.message() == f'{side}_schema_id of stream "s": the registry has no schema with id 99'
        assert "registry" in str(wrong.hint())

    @pytest.mark.parametrize("id_", ["0", "-1", "2147483648"])
    def test_a_number_that_is_no_id_is_refused(self, planning: Planning, form: str, side: str, id_: str) -> None:
        wrong = refused(
            planning, statement(form, side, f"SIDE_format = 'avro', SIDE_schema_id = {id_}"), errors.InvalidSchemaId
        )
        assert wrong.message() == f'{side}_schema_id = {id_} of stream "s" cannot be the id of a schema'

    def test_a_text_that_is_no_id_is_refused(self, planning: Planning, form: str, side: str) -> None:
        refused(planning, statement(form, side, "SIDE_format = 'avro', SIDE_schema_id = 'one'"), InvalidOptionValue)

    def test_a_recursive_schema_is_refused_with_its_path(self, planning: Planning, form: str, side: str) -> None:
        text = statement(form, side, f"SIDE_format = 'avro', SIDE_schema_id = {given(planning, TREE)}")
        assert "left" in str(refused(planning, text, RecursiveSchema))

    def test_another_full_name_than_the_one_of_an_avro_schema_is_refused(
        self, planning: Planning, form: str, side: str
    ) -> None:
        schema = AVRO if side == "value" else AVRO.replace('"c1", "type": "int"', '"k", "type": "string"')
        given_ = f"SIDE_format = 'avro', SIDE_schema_id = {given(planning, schema)}, SIDE_schema_full_name = "
        wrong = refused(planning, statement(form, side, f"{given_}'Given'"), errors.OtherFullName)
        assert f"{side}_schema_full_name" in wrong.message()
        assert "'shop.Given'" in str(wrong.hint())
        planning.do(statement(form, side, f"{given_}'shop.Given'"))

    def test_a_full_name_in_a_format_without_names_is_refused(self, planning: Planning, form: str, side: str) -> None:
        text = statement(form, side, "SIDE_format = 'json', SIDE_schema_full_name = 'x'", columns="v int, k text KEY")
        wrong = refused(planning, text, errors.PropertyWithoutMeaning)
        assert f"{side}_schema_full_name" in wrong.message()

    def test_a_full_name_chooses_the_message(self, planning: Planning, form: str, side: str) -> None:
        id_ = given(planning, PROTO, SchemaFormat.PROTOBUF)
        select = "SELECT c2, c1 AS n FROM src PARTITION BY c2" if side == "key" else "SELECT k, c2 FROM src"
        properties = f"SIDE_format = 'protobuf', SIDE_schema_id = {id_}, SIDE_schema_full_name = "
        for name in ("shop.Second", "shop.First.In"):
            planning.do(statement(form, side, f"{properties}'{name}'", select))
            assert "c2" in [c.name for c in planning.named("s", Kind.STREAM).columns]
            planning.do("DROP STREAM s")
        other = select.replace("c2", "c1").replace("c1 AS n", "k") if side == "key" else "SELECT k, c1 FROM src"
        (done,) = planning.do(statement(form, side, f"SIDE_format = 'protobuf', SIDE_schema_id = {id_}", other))
        assert any(f'the {side} of stream "s" is message "shop.First"' in text for text in done.notices)
        wrong = refused(
            planning, statement(form, side, f"{properties}'shop.Third'", select).replace(" s ", " u "), UnknownMessage
        )
        assert "shop.Third" in wrong.message()


@pytest.mark.parametrize("side", SIDES)
def test_columns_beside_an_id_are_refused(planning: Planning, side: str) -> None:
    columns = "k text KEY, v int"
    text = statement("create", side, f"SIDE_format = 'avro', SIDE_schema_id = {given(planning, AVRO)}", columns=columns)
    wrong = refused(planning, text, errors.ColumnsBesideSchemaId)
    assert wrong.message().startswith(f'{side} columns of stream "s" are declared beside {side}_schema_id')


@pytest.mark.parametrize("side", SIDES)
def test_a_format_that_nobody_gives_is_refused(planning: Planning, side: str) -> None:
    id_ = given(planning, AVRO)
    text = statement("create", side, f"SIDE_schema_id = {id_}")
    assert f"{side} format" in refused(planning, text, errors.StreamFormatMissing).message()


@pytest.mark.parametrize(("side", "source"), [("key", "plain"), ("value", "plain")])
def test_a_format_that_comes_from_the_source_must_have_schemas(planning: Planning, side: str, source: str) -> None:
    text = statement("as", side, f"SIDE_schema_id = {given(planning, AVRO)}", f"SELECT k, c1 FROM {source}")
    refused(planning, text, errors.FormatWithoutSchemas)


@pytest.mark.parametrize("side", SIDES)
def test_a_format_that_comes_from_the_source_must_be_that_of_the_schema(planning: Planning, side: str) -> None:
    text = statement("as", side, f"SIDE_schema_id = {given(planning, AVRO)}", "SELECT k, c1 FROM proto")
    refused(planning, text, errors.SchemaIdOfOtherFormat)


def test_an_id_may_be_a_text_of_digits(planning: Planning) -> None:
    planning.do(statement("as", "value", f"value_schema_id = '{given(planning, AVRO)}'"))
    assert [c.name for c in planning.named("s", Kind.STREAM).columns] == ["k", "c1"]


@pytest.mark.parametrize("format_", ["avro", "protobuf"])
@pytest.mark.parametrize("names", [("a.K", None), (None, "b.V"), ("a.K", "b.V")])
def test_generated_schemas_have_the_full_names(
    planning: Planning, format_: str, names: tuple[str | None, str | None]
) -> None:
    given_ = [f"{side}_schema_full_name = '{name}'" for side, name in zip(SIDES, names, strict=True) if name]
    (done,) = planning.do(f"CREATE STREAM s WITH (format = '{format_}', {', '.join(given_)}) AS SELECT k, c1 FROM src")
    schemas = [effect.schema.text for effect in done.effects if isinstance(effect, RegisterSchema)]
    for schema, name in zip(schemas, names, strict=True):
        package, _, last = (name or "").rpartition(".")
        assert last in schema
        assert package in schema


def test_a_schema_with_imports_is_taken_by_the_name_of_its_message(planning: Planning) -> None:
    imported = 'syntax = "proto3"; package lib; message Address { string city = 1; }'
    text = (
        'syntax = "proto3"; package shop; import "lib.proto"; message Other { int32 n = 1; }'
        " message Order { int32 c1 = 1; lib.Address to = 2; }"
    )
    id_ = given(planning, text, SchemaFormat.PROTOBUF)
    subject = next(name for name, schema in planning.outside.subjects.items() if schema.id == id_)
    known = planning.outside.subjects[subject]
    planning.outside.subjects[subject] = replace(known, references=(("lib.proto", imported),))
    properties = f"kafka_topic = 't', value_format = 'protobuf', value_schema_id = {id_}, value_schema_full_name = "
    planning.do(f"CREATE STREAM s WITH ({properties}'shop.Order')")
    assert [c.name for c in planning.named("s", Kind.STREAM).columns] == ["c1", "to"]
    # A frame names a message of the schema's own file, so that one of an imported file cannot be written.
    refused(planning, f"CREATE STREAM u WITH ({properties}'lib.Address')", UnknownMessage)


# the projection is a part of the schema


def avro(*fields: str, name: str = "Given") -> str:
    listed = ", ".join(f'{{"name": "{f.split()[0]}", "type": {f.split(None, 1)[1]}}}' for f in fields)
    return f'{{"type": "record", "name": "{name}", "fields": [{listed}]}}'


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("select", "fields", "problem"),
    [
        ("c1, c2", ["c1 \"int\""], '"c2" is missing in the schema'),
        ("c2, c1", ["c1 \"int\"", "c2 \"string\""], '"c1" comes after "c2"'),
        ("c1::bigint AS c1, c2", ["c1 \"int\"", "c2 \"string\""], "write CAST(c1 AS integer)"),
        ("c1, c2", ["c1 \"string\"", "c2 \"string\""], '"c1" is integer and in the schema text: write CAST(c1 AS text)'),
        ("c1, c2", ['c1 {"type": "enum", "name": "E", "symbols": ["A"]}', "c2 \"string\""], "write CAST(c1 AS text)"),
        ("c1, c2", ["C1 \"int\"", "c2 \"string\""], '"c1" differs from "C1" only by case: write "C1" in quotes'),
        ("c1, r", ["c1 \"int\"", "r " + avro("a \"int\"", "B \"string\"", name="In")], '"r.b" differs from "B" only by case'),
        ("c1, r", ["c1 \"int\"", "r " + avro("b \"string\"", "a \"int\"", name="In")], '"r.b" comes after'),
        ("c1, r", ["c1 \"int\"", "r " + avro("a \"string\"", "b \"string\"", name="In")], '"r.a" is integer and in the schema text'),
    ],
)  # fmt: skip
def test_columns_that_are_no_part_of_the_schema_are_told(
    planning: Planning, side: str, select: str, fields: list[str], problem: str
) -> None:
    id_ = given(planning, avro(*fields))
    names = "c1, c2" if "c2" in select else "c1, r"
    query = f"SELECT {select}, k FROM src PARTITION BY {names}" if side == "key" else f"SELECT k, {select} FROM src"
    text = statement("as", side, f"SIDE_format = 'avro', SIDE_schema_id = {id_}", query)
    wrong = refused(planning, text, errors.ColumnsNotInSchema)
    assert wrong.message().startswith(f'the {side} columns of stream "s" do not fit schema {id_}: ')
    assert problem in wrong.message()
    first, *rows = str(wrong.detail()).splitlines()
    assert first.split() == ["columns", "|", "schema"]
    assert len(rows) == max(2, len(fields))


def test_extra_fields_may_stand_anywhere_and_nullability_does_not_matter(planning: Planning) -> None:
    inner = avro('x ["null", "int"]', 'a "int"', 'y "int"', 'b ["null", "string"]', name="In")
    id_ = given(planning, avro('z "int"', 'c1 "int"', 'w "string"', f"r {inner}", 'v "int"'))
    (done,) = planning.do(statement("as", "value", f"value_schema_id = {id_}", "SELECT k, c1, r FROM src"))
    assert any('requires "z", "w" and "v" in the value' in text for text in done.notices)
    definition = planning.named("s", Kind.STREAM).definition
    assert isinstance(definition, CreateStreamAs)
    assert [c.name.name for c in definition.columns] == ["k", "c1", "r"]


def test_texts_and_bytes_go_into_enums_and_fixed_and_nulls_inside_arrays_are_told(planning: Planning) -> None:
    planning.do(
        "CREATE STREAM parts (f bytes, t text[], m map<text, int>, e text) WITH (kafka_topic = 'p', value_format = 'json', partitions = 1)"
    )
    one, two = (f'{{"type": "enum", "name": "E", "symbols": {symbols}}}' for symbols in ('["A"]', '["B", "A"]'))
    rest = ('f {"type": "fixed", "name": "F", "size": 3}', 't {"type": "array", "items": "string"}', 'm {"type": "map", "values": "int"}')  # fmt: skip
    first, second = (given(planning, avro(*rest, f"e {enum}")) for enum in (one, two))
    (done,) = planning.do(
        f"CREATE STREAM a WITH (value_format = 'avro', value_schema_id = {first}) AS SELECT * FROM parts"
    )
    assert '"f", "t", "t[]", "m", "m{}" and "e"' in done.notices[0]
    planning.do(f"CREATE STREAM b WITH (kafka_topic = 't', value_format = 'avro', value_schema_id = {first})")
    planning.do(f"CREATE STREAM c WITH (value_schema_id = {second}) AS SELECT f, e FROM b")
    planning.do(f"CREATE STREAM d WITH (kafka_topic = 't', value_format = 'avro', value_schema_id = {second})")
    wrong = refused(
        planning,
        f"CREATE STREAM x WITH (value_schema_id = {first}) AS SELECT f, e FROM d",
        errors.ColumnsNotInSchema,
    )
    assert wrong.message().endswith("and in the schema enum('A'): write CAST(e AS text)")


# values and keys that are no records


def test_a_value_that_is_no_record_takes_one_column_of_any_name(planning: Planning) -> None:
    id_ = given(planning, '"int"')
    refused(planning, statement("as", "value", f"value_schema_id = {id_}"), errors.SchemaNotRecord)
    single = f"value_schema_id = {id_}, wrap_single_value = false"
    planning.do(statement("as", "value", single))
    assert [c.name for c in planning.named("s", Kind.STREAM).columns] == ["k", "c1"]
    two = statement("as", "value", single, "SELECT k, c1, c2 FROM src")
    refused(planning, two.replace("STREAM s", "STREAM u"), HeadgateError)


@pytest.mark.parametrize("side", SIDES)
def test_a_column_is_the_whole_record_also_under_the_name_of_a_field(planning: Planning, side: str) -> None:
    id_ = given(planning, avro('c1 "int"', 'c2 "string"'))
    select, more = "STRUCT(c1 := c1, c2 := c2) AS c1", ", wrap_single_value = false" if side == "value" else ""
    query = f"SELECT {select}, k FROM src PARTITION BY c1" if side == "key" else f"SELECT k, {select} FROM src"
    planning.do(statement("as", side, f"SIDE_format = 'avro', SIDE_schema_id = {id_}{more}", query))
    definition = planning.named("s", Kind.STREAM).definition
    assert isinstance(definition, CreateStreamAs)
    assert ("c1", "key" if side == "key" else "value") in [
        (c.name.name, "key" if c.role == "KEY" else "value") for c in definition.columns
    ]


def test_a_key_of_two_fields_takes_two_columns(planning: Planning) -> None:
    id_ = given(planning, avro('c1 "int"', 'c2 "string"'))
    planning.do(statement("as", "key", f"key_schema_id = {id_}", "SELECT c1, k, c2 FROM src PARTITION BY c1, c2"))
    definition = planning.named("s", Kind.STREAM).definition
    assert isinstance(definition, CreateStreamAs)
    assert [c.name.name for c in definition.columns if c.role == "KEY"] == ["c1", "c2"]

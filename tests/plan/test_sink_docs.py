"""Docs of sinks: their precedence, freezing, changes, and what does not fit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.catalog.changes import apply
from headgate.catalog.errors import UnknownColumn, UnknownField, UnknownObject
from headgate.catalog.names import SearchPath
from headgate.catalog.objects import Object, definition_of
from headgate.errors import HeadgateError
from headgate.plan import doc_errors as errors
from headgate.plan.definitions import RecordEncoding
from headgate.plan.plans import ChangeCatalog, RegisterSchema, Skip
from headgate.plan.sink import plan_new_sink
from headgate.plan.sink_doc_changes import published_schemas
from headgate.plan.sink_docs import (
    MOST_BYTES,
    documented_types,
    sink_slots,
)
from headgate.schema.encodings import AFTER_DOC, BEFORE_DOC, EVENT_DOC
from headgate.schema.formats.jsonschema import to_json_schema
from headgate.schema.formats.protobuf import print_proto, to_protobuf
from headgate.schema.types import DocumentedPart, inner_fields
from headgate.sql.formats import frozen_schemas
from headgate.sql.registry_formats import RegistryFormat
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Kind
from tests.plan.planning import AVRO, REGISTRY, Planning, record

pytestmark = pytest.mark.unit

SINK = f"CREATE SINK out FROM v INTO KAFKA CONNECTION kafka (TOPIC 'out') KEY (id) {AVRO}"


@pytest.fixture
def world() -> Planning:
    """The view `v` over an upsert source. It has a named record, an enum, and a record without a name."""
    world = Planning()
    address = {"type": "record", "name": "address", "doc": "a place", "fields": [
        {"name": "street", "type": "string", "doc": "with number"}, {"name": "zip", "type": "string"}]}  # fmt: skip
    world.topic("people", key=record("k", ("id", "long")), value=record("person", ("addr", address)))
    world.do(
        f"CREATE SOURCE people FROM KAFKA CONNECTION kafka (TOPIC 'people') {AVRO} ENVELOPE UPSERT;"
        "CREATE TYPE unit AS enum('mm', 'inch');"
        "CREATE TYPE point AS (x integer, unit unit);"
        "CREATE TYPE points AS LIST (ELEMENT TYPE = point);"
        "CREATE VIEW v AS SELECT id, addr, ARRAY[ROW(1, 'mm'::unit)::point]::points AS places FROM people"
    )
    return world


def made(world: Planning, text: str = SINK) -> Object:
    """The sink that the statement makes, with ids as if a registry had taken its schemas."""
    world.do(text)
    return world.named("out", Kind.SINK)


def schemas(world: Planning) -> dict[str, Any]:
    statement = definition_of(world.named("out", Kind.SINK), CreateSink)
    return {side: json.loads(effect.schema.text) for side, effect in published_schemas(world.catalog, statement)}


def frozen(world: Planning, side: str = "VALUE") -> Any:
    """The schema that records are written with."""
    format_ = definition_of(world.named("out", Kind.SINK), CreateSink).formats.value
    return json.loads(frozen_schemas(format_, side)[-1].schema)  # type: ignore[arg-type]


def listed(world: Planning) -> list[str]:
    """The docs of the sink's statement; a star marks those that were frozen."""
    format_ = definition_of(world.named("out", Kind.SINK), CreateSink).formats.value
    assert isinstance(format_, RegistryFormat)
    return [f"{'*' if each.frozen else ''}{each.sql()}".replace("headgate.public.", "") for each in format_.docs]


def doc(schema: Any, *path: str) -> str | None:
    """The doc of a field, by the names that lead to it; without names that of the record."""
    for name in path[:-1]:
        schema = _record_in(next(f["type"] for f in schema["fields"] if f["name"] == name))
    found: str | None = (next(f for f in schema["fields"] if f["name"] == path[-1]) if path else schema).get("doc")
    return found


def _record_in(type_: Any) -> Any:
    if isinstance(type_, list):
        return _record_in(type_[-1])
    return type_ if type_["type"] in ("record", "enum") else _record_in(type_.get("items", type_.get("values")))


def alter(world: Planning, changes: str) -> ChangeCatalog:
    planned = world.change(f"ALTER SINK out FORMAT AVRO ({changes})")
    world.catalog = apply(world.catalog, *planned.changes)
    return planned


# precedence


@pytest.mark.parametrize(
    ("options", "key", "value"),
    [
        ("", "comment", "comment"),
        ("DOC ON COLUMN v.id = 'both'", "both", "both"),
        ("KEY DOC ON COLUMN v.id = 'key'", "key", "comment"),
        ("VALUE DOC ON COLUMN v.id = 'value'", "comment", "value"),
        ("VALUE DOC ON COLUMN v.id = 'value', DOC ON COLUMN v.id = 'both'", "both", "value"),
        ("KEY DOC ON COLUMN v.id = 'key', VALUE DOC ON COLUMN v.id = 'value'", "key", "value"),
        ("IGNORE COMMENTS", None, None),
        ("IGNORE COMMENTS, KEY DOC ON COLUMN v.id = 'key'", "key", None),
    ],
)
def test_a_doc_of_one_side_wins_over_a_doc_of_both_and_that_over_the_comment(
    world: Planning, options: str, key: str | None, value: str | None
) -> None:
    world.do("COMMENT ON COLUMN v.id IS 'comment'")
    made(world, f"{SINK} ({options})" if options else SINK)
    found = schemas(world)
    assert (doc(found["KEY"], "id"), doc(found["VALUE"], "id")) == (key, value)


@pytest.mark.parametrize(("option", "expected"), [("", "comment"), ("(DOC ON COLUMN v.id = 'x')", "x")])
def test_a_format_for_each_side_has_the_same_precedence(world: Planning, option: str, expected: str) -> None:
    world.do("COMMENT ON COLUMN v.id IS 'comment'")
    made(
        world,
        "CREATE SINK out FROM v INTO KAFKA CONNECTION kafka (TOPIC 'out') KEY (id)"
        f" KEY FORMAT TEXT VALUE FORMAT AVRO {REGISTRY} {option}",
    )
    assert doc(frozen(world), "id") == expected
    assert [each.startswith("*VALUE DOC ON") for each in listed(world) if "v.id" in each] == [not option]


def test_docs_are_looked_up_by_the_sql_name(world: Planning) -> None:
    world.do('CREATE VIEW odd AS SELECT id, id AS "a-b" FROM people; COMMENT ON COLUMN odd."a-b" IS \'odd\'')
    made(world, SINK.replace("FROM v", "FROM odd"))
    assert doc(frozen(world), "a_b") == "odd"


def test_names_are_found_by_the_search_path(world: Planning) -> None:
    world.do("CREATE SCHEMA s; CREATE TYPE s.point AS (x integer)")
    world.path = SearchPath((("headgate", "s"), ("headgate", "public")))
    with pytest.raises(errors.DocNotInSink):
        world.plan(f"{SINK} (DOC ON TYPE point = 'x')")
    world.plan(f"{SINK} (DOC ON TYPE public.point = 'x')")


# where docs are


def test_comments_on_types_reach_records_and_enums_in_lists(world: Planning) -> None:
    world.do(
        "COMMENT ON TYPE point IS 'a place'; COMMENT ON COLUMN point.x IS 'east'; COMMENT ON TYPE unit IS 'measure';"
        "COMMENT ON TYPE points IS 'nowhere'; COMMENT ON COLUMN v.places IS 'some places'"
    )
    made(world)
    schema = frozen(world)
    places = next(f for f in schema["fields"] if f["name"] == "places")
    point = _record_in(places["type"])
    assert (places["doc"], point["doc"], doc(schema, "places", "x")) == ("some places", "a place", "east")
    assert (point["name"], point["namespace"]) == ("point", "com.headgate.sink")
    assert _record_in(point["fields"][1]["type"])["doc"] == "measure"


def test_fields_of_records_without_a_name_can_be_documented(world: Planning) -> None:
    world.do("COMMENT ON COLUMN (people.addr).zip IS 'of the town'")
    made(world, f"{SINK} (DOC ON COLUMN (v.addr).street = 'by hand')")
    schema = frozen(world)
    assert (doc(schema, "addr", "street"), doc(schema, "addr", "zip")) == ("by hand", "of the town")
    assert _record_in(schema["fields"][1]["type"])["doc"] == "a place"


def test_fields_behind_lists_and_maps_with_names_can_be_documented(world: Planning) -> None:
    world.do(
        "CREATE TYPE stays AS LIST (ELEMENT TYPE = record(city text, year record(n integer)));"
        "CREATE TYPE by_kind AS MAP (VALUE TYPE = stays); CREATE TYPE life AS (past by_kind);"
        "CREATE VIEW lives AS SELECT id, NULL::life AS life FROM people;"
        "CREATE SINK POLICY p FORMAT AVRO (REQUIRE DOCUMENTATION FOR ALL FIELDS);"
        "COMMENT ON COLUMN (life.past).city IS 'where'; COMMENT ON COLUMN life.past IS 'before now';"
        "COMMENT ON COLUMN lives.life IS 'all of it'; COMMENT ON COLUMN lives.id IS 'its number'"
    )
    text = SINK.replace("FROM v", "FROM lives")
    with pytest.raises(errors.PolicyViolated) as refused:
        world.plan(text)
    assert refused.value.undocumented == ("value $.life.past{}[].year", "value $.life.past{}[].year.n")
    made(world, f"{text} (DOC ON COLUMN (life.past).year = 'when', DOC ON COLUMN (life.past).year.n = 'of our era')")
    paths = [("life", "past", name) for name in ("city", "year")] + [("life", "past", "year", "n")]
    assert [doc(frozen(world), *path) for path in paths] == ["where", "when", "of our era"]


def test_the_docs_reach_every_mapper(world: Planning) -> None:
    world.do("COMMENT ON VIEW v IS 'the view'; COMMENT ON TYPE point IS 'a place'; COMMENT ON COLUMN point.x IS 'east'")
    sink = made(world)
    relation, statement = world.named("v"), definition_of(sink, CreateSink)
    types = documented_types(world.catalog, relation, relation.columns, statement.formats, "VALUE", comments=False)
    named = types.record(relation, relation.columns)
    described = json.dumps(to_json_schema(named, resolve=types.resolve))
    printed = print_proto(to_protobuf(types.expanded(named), name="v", package=""))
    for text in ("the view", "a place", "east", "with number"):
        assert f'"description": "{text}"' in described
        assert text in printed


def test_the_docs_of_a_relation_are_on_the_rows_of_change_events(world: Planning) -> None:
    world.do(
        "CREATE SOURCE log FROM KAFKA CONNECTION kafka (TOPIC 'people') FORMAT TEXT; COMMENT ON SOURCE log IS 'all'"
    )
    made(
        world,
        "CREATE SINK out FROM log INTO KAFKA CONNECTION kafka (TOPIC 'out')"
        f" {AVRO} (DOC ON COLUMN log.text = 'a line') ENVELOPE DEBEZIUM",
    )
    schema = frozen(world)
    assert (doc(schema), doc(schema, "before"), doc(schema, "after")) == (EVENT_DOC, BEFORE_DOC, AFTER_DOC)
    row = _record_in(schema["fields"][0]["type"])
    assert (row["name"], row["doc"], doc(schema, "before", "text")) == ("row", "all", "a line")


def test_another_relation_brings_its_own_comments(world: Planning) -> None:
    world.do("CREATE VIEW w AS SELECT id, addr, places FROM v; COMMENT ON COLUMN w.id IS 'of w'")
    made(world, f"{SINK} (DOC ON COLUMN v.id = 'of v', DOC ON TYPE point = 'kept')")
    (planned,) = world.do("ALTER SINK out SET FROM w")
    lost = "DOC ON COLUMN headgate.public.v.id is no part of the sink any more, and is left out"
    assert lost in planned.notices
    assert doc(frozen(world), "id") == "of w"
    assert listed(world) == [
        "DOC ON TYPE point = 'kept'",
        "*DOC ON COLUMN w.id = 'of w'",
        "*DOC ON COLUMN (w.addr).street = 'with number'",
    ]


# freezing


def test_comments_are_frozen_behind_the_docs_of_the_user_with_types_before_the_relation(world: Planning) -> None:
    world.do(
        "COMMENT ON VIEW v IS 'view'; COMMENT ON COLUMN v.id IS 'id'; COMMENT ON COLUMN point.x IS 'x';"
        "COMMENT ON TYPE unit IS 'unit'"
    )
    made(world, f"{SINK} (VALUE DOC ON TYPE v = 'mine', DOC ON COLUMN point.x = 'my x')")
    assert listed(world) == [
        "VALUE DOC ON TYPE v = 'mine'",
        "DOC ON COLUMN point.x = 'my x'",
        "*DOC ON TYPE unit = 'unit'",
        "*DOC ON TYPE v = 'view'",
        "*DOC ON COLUMN v.id = 'id'",
        "*DOC ON COLUMN (v.addr).street = 'with number'",
    ]


def test_later_comments_change_nothing_until_refresh(world: Planning) -> None:
    world.do("COMMENT ON COLUMN v.id IS 'first'")
    made(world)
    before = schemas(world)
    world.do("COMMENT ON COLUMN v.id IS 'second'; COMMENT ON VIEW v IS 'new'; COMMENT ON COLUMN (v.addr).zip IS 'new'")
    assert schemas(world) == before
    alter(world, "REFRESH DOCS")
    after = schemas(world)
    assert [doc(after["VALUE"], "id"), doc(after["VALUE"]), doc(after["VALUE"], "addr", "zip")] == [
        "second",
        "new",
        "new",
    ]


def test_another_name_of_a_type_changes_no_schema(world: Planning) -> None:
    world.do("COMMENT ON TYPE point IS 'a place'")
    made(world)
    before = schemas(world)
    world.do("ALTER TYPE point RENAME TO spot; CREATE TYPE point AS (x integer)")
    assert schemas(world) == before
    statement = definition_of(world.named("out", Kind.SINK), CreateSink)
    generated, _ = plan_new_sink(world.catalog, statement, comments=False)
    assert json.loads(_schema(generated.value)) == before["VALUE"]


def _schema(encoding: RecordEncoding) -> str:
    assert encoding.schema is not None
    return encoding.schema


# changes


def test_add_replaces_and_drop_removes_a_doc_frozen_or_not(world: Planning) -> None:
    world.do("COMMENT ON COLUMN v.id IS 'frozen'")
    made(world)
    alter(world, "ADD DOC ON COLUMN v.id = 'added', ADD VALUE DOC ON TYPE v = 'view'")
    assert [each for each in listed(world) if "v.id" in each] == ["DOC ON COLUMN v.id = 'added'"]
    assert doc(frozen(world)) == "view"
    alter(world, "DROP DOC ON COLUMN v.id, DROP VALUE DOC ON TYPE v")
    assert (doc(frozen(world)), doc(frozen(world), "id")) == (None, None)
    alter(world, "REFRESH DOCS")
    assert doc(frozen(world), "id") == "frozen"


def test_refresh_leaves_the_docs_of_the_user(world: Planning) -> None:
    world.do("COMMENT ON COLUMN v.id IS 'comment'")
    made(world, f"{SINK} (DOC ON COLUMN v.id = 'mine')")
    assert isinstance(world.plan("ALTER SINK out FORMAT AVRO (REFRESH DOCS)"), Skip)


def test_a_new_key_doc_is_published_and_records_keep_the_first_key_schema(world: Planning) -> None:
    made(world)
    before = frozen(world, "KEY")
    planned = alter(world, "ADD KEY DOC ON COLUMN v.id = 'new'")
    (effect,) = planned.effects
    assert isinstance(effect, RegisterSchema)
    assert effect.subject == "out-key"
    assert doc(json.loads(effect.schema.text), "id") == "new"
    assert frozen(world, "KEY") == before
    assert doc(schemas(world)["KEY"], "id") == "new"


# what does not fit


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("DOC ON TYPE people = 'x'", errors.DocNotInSink),
        ("DOC ON COLUMN people.id = 'x'", errors.DocNotInSink),
        ("DOC ON TYPE points = 'x'", errors.DocNotInSink),
        ("KEY DOC ON COLUMN v.addr = 'x'", errors.KeyDocOutsideKey),
        ("DOC ON TYPE v = 'x', DOC ON TYPE headgate.public.v = 'y'", errors.DocTwice),
        ("DOC ON COLUMN (v.addr).zip = 'x', DOC ON COLUMN (public.v.ADDR).zip = 'y'", errors.DocTwice),
        ("DOC ON TYPE v = ''", errors.DocEmpty),
        (f"DOC ON TYPE v = '{'x' * (1 << 20)}'", errors.DocTooLong),
        ("DOC ON TYPE nothing = 'x'", UnknownObject),
        ("DOC ON COLUMN v.idd = 'x'", UnknownColumn),
        ("DOC ON COLUMN (v.addr).zp = 'x'", UnknownField),
        ("DOC ON COLUMN (v.places).x = 'x'", UnknownField),
    ],
)
def test_docs_that_do_not_fit_are_refused(world: Planning, options: str, error: type[HeadgateError]) -> None:
    with pytest.raises(error):
        world.plan(f"{SINK} ({options})")


def test_a_comment_has_the_same_limit(world: Planning) -> None:
    world.do(f"COMMENT ON VIEW v IS '{'x' * MOST_BYTES}'")
    with pytest.raises(errors.DocTooLong):
        world.plan(f"COMMENT ON VIEW v IS '{'x' * MOST_BYTES}ä'")


def test_docs_of_the_wrong_side(world: Planning) -> None:
    with pytest.raises(errors.KeyDocWithoutKey):
        world.plan(f"{SINK.replace('KEY (id)', '')} (KEY DOC ON TYPE v = 'x') ENVELOPE NONE")
    with pytest.raises(errors.DocOfOtherSide):
        world.plan(
            "CREATE SINK out FROM v INTO KAFKA CONNECTION kafka (TOPIC 'out') KEY (id)"
            f" KEY FORMAT AVRO {REGISTRY} (VALUE DOC ON COLUMN v.id = 'x') VALUE FORMAT AVRO {REGISTRY}"
        )


def test_alter_refuses_other_formats_and_docs_that_are_not_there(world: Planning) -> None:
    made(world)
    with pytest.raises(errors.DocsOfOtherFormat):
        world.plan("ALTER SINK out FORMAT PROTOBUF (REFRESH DOCS)")
    with pytest.raises(errors.DocUnknown):
        world.plan("ALTER SINK out FORMAT AVRO (DROP DOC ON COLUMN v.id)")
    with pytest.raises(errors.DocNotInSink):
        world.plan("ALTER SINK out FORMAT AVRO (ADD DOC ON TYPE people = 'x')")
    with pytest.raises(errors.DocTwice):
        world.plan("ALTER SINK out FORMAT AVRO (ADD DOC ON TYPE v = 'x', ADD DOC ON TYPE public.v = 'y')")
    world.plan("ALTER SINK out FORMAT AVRO (ADD DOC ON TYPE v = 'x', ADD KEY DOC ON TYPE v = 'y')")


def test_every_field_of_a_schema_can_be_documented_by_a_statement(world: Planning) -> None:
    statement = definition_of(made(world), CreateSink)
    planned, _ = plan_new_sink(world.catalog, statement)
    fields = {path for path, _ in inner_fields(planned.value.record)}
    slots = [slot for slot in sink_slots(world.catalog, planned).value if slot.part is DocumentedPart.FIELD]
    assert {slot.path for slot in slots} == fields
    assert all(slot.key is not None for slot in slots)

"""Materializations as they are planned: which field is where, what it becomes in a table, and what is refused."""

from __future__ import annotations

import pytest

from headgate.catalog.objects import definition_of
from headgate.errors import ErrorGroup, HeadgateError
from headgate.plan import materialization_errors as errors
from headgate.plan.errors import NotSupportedYet, ReplacementBreaks, ViewNotRowByRow
from headgate.plan.materializations import existing_materialization
from headgate.plan.plans import Outcome, ProvisionTable, ReleaseTable
from headgate.plan.tables import table_name
from headgate.plan.target_definitions import TableDefinition
from headgate.schema.errors import InvalidColumnName, NameClash, NameTooLong
from headgate.schema.written import SchemaFormat
from headgate.sql.materializations import CreateMaterialization
from headgate.sql.options import ChangeOptions
from headgate.sql.statement import Kind
from headgate.sql.views import CreateView
from tests.plan.planning import AVRO, Planning, record, with_orders

pytestmark = pytest.mark.unit

ADDRESS = record("address", ("city", "string"), ("zip", ["null", "long"]))
ORDERS = record(
    "orders",
    ("id", "long"),
    ("price", "double"),
    ("note", ["null", "string"]),
    ("vip", "boolean"),
    ("tags", {"type": "array", "items": "string"}),
    ("address", ["null", ADDRESS]),
)
LINES = record("lines", ("lines", {"type": "array", "items": record("line", ("sku", "string"), ("n", "long"))}))
PG = "CREATE CONNECTION pg TO POSTGRES (HOST 'h', DATABASE 'd') WITH (VALIDATE = false)"


def world(envelope: str = "", key: object = None, schema: object = ORDERS) -> Planning:
    made = with_orders(schema, key)
    made.do(f"{PG}; CREATE SOURCE orders FROM KAFKA CONNECTION kafka (TOPIC 'orders') {AVRO} {envelope}")
    return made


def keyed() -> Planning:
    return world("ENVELOPE UPSERT (KEY (id))")


def table(made: Planning, rest: str = "", name: str = "t", of: str = "orders") -> TableDefinition:
    planned = made.change(f"CREATE MATERIALIZATION m FROM {of} INTO POSTGRES CONNECTION pg (TABLE '{name}') {rest}")
    (effect,) = planned.effects
    assert isinstance(effect, ProvisionTable)
    return effect.table


def columns(made: TableDefinition) -> list[str]:
    return [f"{c.name} {c.postgres}{'' if c.nullable else ' not null'}" for c in made.columns]


def failure(made: Planning, rest: str = "", of: str = "orders", name: str = "t") -> HeadgateError:
    with pytest.raises(HeadgateError) as raised:
        table(made, rest, name, of)
    return raised.value


def test_without_fields_all_columns_are_taken_and_records_to_their_leaves() -> None:
    assert columns(table(world())) == [
        "id bigint not null",
        "price double precision not null",
        "note text",
        "vip boolean not null",
        "tags text[] not null",
        "address_city text",
        "address_zip bigint",
    ]


@pytest.mark.parametrize("rest", ["FIELDS RECOMMENDED DEPTH 1", "WITH (NESTED = JSON)"])
def test_a_record_can_be_kept_as_json(rest: str) -> None:
    assert columns(table(world(), rest))[-1] == "address jsonb"


def test_fields_can_be_left_out_by_name_and_by_pointer() -> None:
    made = table(world(), "FIELDS RECOMMENDED EXCLUDE (tags, '/address/zip', vip)")
    assert [c.name for c in made.columns] == ["id", "price", "note", "address_city"]


def test_listed_fields_are_not_null_unless_they_say_so() -> None:
    made = table(world(), "FIELDS (id i64, note string NULL, city string FROM '/address/city')")
    assert columns(made) == ["id bigint not null", "note text", "city text not null"]


def test_an_object_groups_fields_that_have_pointers_of_their_own() -> None:
    made = table(
        world(), "FIELDS (id i64, about OBJECT (town string FROM '/address/city', note string FROM '/note' NULL))"
    )
    assert columns(made) == ["id bigint not null", "about_town text not null", "about_note text"]


def test_an_object_of_the_row_is_found_by_its_name() -> None:
    made = table(world(), "FIELDS (address OBJECT (city string, zip i64 NULL) NULL)")
    assert columns(made) == ["address_city text", "address_zip bigint"]
    (city, _) = made.columns
    assert city.field.path is not None
    assert city.field.path.tokens == ("address", "city")


def test_a_native_type_goes_into_the_table_and_its_values_are_checked_as_what_they_are() -> None:
    made = table(world(), "FIELDS (price f64 AS 'numeric(20,4)', note string NULL AS 'inet', id i64 AS 'smallint')")
    assert columns(made) == ["price numeric(20,4) not null", "note inet", "id smallint not null"]
    assert [type(c.field.type).__name__ for c in made.columns] == ["Decimal", "Text", "Integer"]


def test_the_key_of_the_relation_is_the_key_of_the_table() -> None:
    assert table(keyed()).key == ("id",)
    assert table(world()).key == ()


@pytest.mark.parametrize(
    ("name", "schema", "plain"),
    [("t", "public", "t"), ("s.t", "s", "t"), ('"a.b".T', "a.b", "T"), ("select", "public", "select")],
)
def test_a_table_is_named_as_it_is_written(name: str, schema: str, plain: str) -> None:
    made = table(world(), name=name)
    assert (made.table.schema, made.table.name) == (schema, plain)


@pytest.mark.parametrize("name", ["", "a.b.c", ".t", "t.", 'a"b', '""', "x" * 64, "headgate.ledger", "pg_catalog.t"])
def test_what_is_no_name_of_a_table_is_refused(name: str) -> None:
    assert isinstance(failure(world(), name=name), errors.MalformedTableName)


def test_the_table_must_be_named() -> None:
    with pytest.raises(errors.TargetNameMissing):
        table_name("m", None)


def test_an_unknown_pointer_is_refused_with_near_ones() -> None:
    error = failure(world(), "FIELDS (city string FROM '/address/cty')")
    assert isinstance(error, errors.UnknownPointer)
    assert error.similar == ("/address/city",)
    assert "points at /address/cty" in error.message()


def test_everything_that_is_wrong_with_fields_is_said_at_once() -> None:
    error = failure(world(), "FIELDS (a string FROM '/nothing', id boolean, id i64, b string FROM 'note')")
    assert isinstance(error, ErrorGroup)
    kinds = {type(each) for each in error.errors}
    assert kinds == {errors.UnknownPointer, errors.ImpossibleCast, errors.FieldTwice, errors.MalformedPointer}


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("note i64 NULL", "A text is no number"),
        ("note uuid NULL", "A text need not be a uuid"),
        ("price boolean", "Only booleans"),
        ("price real", "lose digits"),
        ("tags string", "is not a single value"),
        ("tags array<i64>", "A text is no number"),
        ("id array<i64>", "has no parts"),
        ("address string", "is not a single value"),
        ("price date", "No value of type double"),
    ],
)
def test_a_cast_that_no_value_survives_is_refused(field: str, reason: str) -> None:
    error = failure(world(), f"FIELDS ({field})")
    assert isinstance(error, errors.ImpossibleCast)
    assert reason in (error.detail() or "")


@pytest.mark.parametrize(
    "field", ["id string", "price i64", "vip string", "id decimal(20,0)", "tags json", "address json"]
)
def test_a_cast_that_some_values_survive_is_allowed(field: str) -> None:
    assert len(table(world(), f"FIELDS ({field})").columns) == 1


@pytest.mark.parametrize(
    "element", ["record(n string)", "record(sku text not null, n i32)", "json", "record(n json, sku text)"]
)
def test_records_of_a_list_are_cast_field_by_field(element: str) -> None:
    assert columns(table(world(schema=LINES), f"FIELDS (lines ARRAY<{element}>)"))[0].startswith("lines json")


PARTS = record(
    "parts",
    ("lines", {"type": "array", "items": record("line", ("sku", "string"), ("n", "long"), ("at", {"type": "int", "logicalType": "date"}))}),
    ("by_name", {"type": "map", "values": {"type": "array", "items": "double"}}),
)  # fmt: skip


@pytest.mark.parametrize(
    ("field", "column"),
    [
        ("f string FROM '/lines/0/sku'", "text not null"),
        ("f string FROM '/lines/1/n' NULL", "text"),
        ("f date FROM '/lines/0/at'", "date not null"),
        ("f i64 FROM '/by_name/some key/3'", "bigint not null"),
        ("f array<f64> FROM '/by_name/x'", "double precision[] not null"),
        ("f json FROM '/lines/0'", "jsonb not null"),
    ],
)
def test_a_pointer_leads_into_lists_and_maps(field: str, column: str) -> None:
    assert columns(table(world(schema=PARTS), f"FIELDS ({field})")) == [f"f {column}"]


@pytest.mark.parametrize(
    ("field", "error"),
    [
        ("f string FROM '/lines/first'", errors.UnknownPointer),
        ("f string FROM '/lines/-1/sku'", errors.UnknownPointer),
        ("f string FROM '/lines/0/skn'", errors.UnknownPointer),
        ("f string FROM '/lines/0/sku/0'", errors.UnknownPointer),
        ("f i64 FROM '/lines/0/sku'", errors.ImpossibleCast),
        ("f string FROM '/lines/0/at'", errors.ImpossibleCast),
        ("f string FROM '/lines/0'", errors.ImpossibleCast),
        ("f record(at text) FROM '/lines/0'", errors.ImpossibleCast),
    ],
)
def test_a_pointer_into_a_list_leads_to_what_its_elements_have(field: str, error: type[HeadgateError]) -> None:
    assert isinstance(failure(world(schema=PARTS), f"FIELDS ({field})"), error)


@pytest.mark.parametrize(
    ("element", "reason"),
    [
        ("record(skn text)", 'has no field "skn"'),
        ("record(sku i64)", "A text is no number"),
        ("text", "is not a single value"),
        ("map<text, text>", "is not a single value"),
    ],
)
def test_records_of_a_list_that_can_never_fit_are_refused(element: str, reason: str) -> None:
    error = failure(world(schema=LINES), f"FIELDS (lines ARRAY<{element}>)")
    assert isinstance(error, errors.ImpossibleCast)
    assert reason in (error.detail() or "")


@pytest.mark.parametrize(
    ("native", "reason"),
    [("bigserial", "a sequence"), ("int; DROP TABLE x", "not the name"), ("timestamp(0)", "rounded"), ("boolean", "no boolean"), ("real", "lose digits")],
)  # fmt: skip
def test_a_native_type_that_loses_something_is_refused(native: str, reason: str) -> None:
    error = failure(world(), f"FIELDS (price f64 AS '{native}')")
    assert isinstance(error, errors.NativeTypeRefused)
    assert reason in error.message()


def test_names_that_clash_after_flattening_are_refused() -> None:
    error = failure(world(), "FIELDS (address_city string FROM '/note', address OBJECT (city string))")
    assert isinstance(error, NameClash)


def test_a_name_that_is_too_long_after_flattening_is_refused() -> None:
    long = "a" * 40
    error = failure(world(), f"FIELDS ({long} OBJECT ({long} string FROM '/note'))")
    assert isinstance(error, NameTooLong)


@pytest.mark.parametrize("name", ["ctid", "xmin"])
def test_a_name_that_every_table_has_already_is_refused(name: str) -> None:
    assert isinstance(failure(world(), f"FIELDS ({name} string FROM '/note' NULL)"), InvalidColumnName)


def test_the_whole_key_must_be_there_as_it_is() -> None:
    error = failure(keyed(), "FIELDS (note string NULL)")
    assert isinstance(error, errors.KeyNotMaterialized)
    assert error.hint() == 'Add "id" to FIELDS.'


def test_a_changing_relation_is_refused_with_what_to_keep() -> None:
    made = keyed()
    made.do("CREATE VIEW prices AS SELECT price FROM orders")
    error = failure(made, of="prices")
    assert isinstance(error, errors.MaterializationOverChanging)
    assert error.hint() == 'Keep "id" in the query.'


def test_a_relation_whose_rows_go_with_time_is_refused() -> None:
    made = world()
    made.do("CREATE VIEW late AS SELECT id FROM orders WHERE now() > timestamptz '2026-01-01T00:00:00Z'")
    assert isinstance(failure(made, of="late"), errors.ClockInMaterialization)


def test_a_view_with_another_key_than_its_source_is_refused() -> None:
    made = keyed()
    made.do("CREATE VIEW tags AS SELECT id, pos, tag FROM orders LATERAL VIEW posexplode(tags) t AS pos, tag")
    assert isinstance(failure(made, of="tags"), errors.MaterializationKeyNotOfSource)


def test_what_can_have_no_position_cannot_be_quarantined() -> None:
    made = world()
    made.do("CREATE VIEW tags AS SELECT id, explode(tags) AS tag FROM orders")
    error = failure(made, "WITH (ON ERROR = QUARANTINE)", of="tags")
    assert isinstance(error, errors.MaterializationCannotQuarantine)


@pytest.mark.parametrize("target", ["POSTGRES CONNECTION pg (TABLE 't')", "ELASTICSEARCH CONNECTION es (INDEX 'i')"])
@pytest.mark.parametrize(
    "query",
    ["SELECT id FROM orders UNION ALL SELECT id FROM orders", "SELECT DISTINCT id FROM orders", "SELECT 1 AS a"],
)
def test_a_view_whose_rows_have_no_record_of_their_own_is_refused_unless_it_is_stored(query: str, target: str) -> None:
    made = world()
    made.do("CREATE CONNECTION es TO ELASTICSEARCH (URL 'http://h:9200') WITH (VALIDATE = false)")
    made.do(f"CREATE VIEW v AS {query}; CREATE MATERIALIZED VIEW stored AS {query}")
    with pytest.raises(ViewNotRowByRow) as raised:
        made.plan(f"CREATE MATERIALIZATION m FROM v INTO {target}")
    assert "CREATE MATERIALIZED VIEW" in (raised.value.hint() or "")
    made.do(f"CREATE MATERIALIZATION m FROM stored INTO {target}")


def test_a_key_that_cannot_be_compared_is_refused() -> None:
    made = with_orders(record("orders", ("id", {"type": "array", "items": "long"}), ("a", "long")))
    made.do(
        f"{PG}; CREATE SOURCE orders FROM KAFKA CONNECTION kafka (TOPIC 'orders') {AVRO} ENVELOPE UPSERT (KEY (id))"
    )
    assert isinstance(failure(made), errors.KeyTypeRefused)


def test_one_table_has_one_writer() -> None:
    made = world()
    made.do("CREATE MATERIALIZATION first FROM orders INTO POSTGRES CONNECTION pg (TABLE 't')")
    error = failure(made, name="public.t")
    assert isinstance(error, errors.TargetTaken)


def test_fields_are_left_over() -> None:
    made = world()
    made.do("CREATE VIEW one AS SELECT id FROM orders")
    assert isinstance(failure(made, "FIELDS RECOMMENDED EXCLUDE (id)", of="one"), errors.NoFields)
    assert isinstance(failure(made, "FIELDS RECOMMENDED EXCLUDE (it)", of="one"), errors.UnknownExcluded)


def test_a_required_field_must_be_in_a_schema() -> None:
    made = Planning()
    made.topic("docs")
    made.do(f"{PG}; CREATE SOURCE docs FROM KAFKA CONNECTION kafka (TOPIC 'docs') FORMAT JSON")
    column = made.named("docs", Kind.SOURCE).columns[0].name
    error = failure(made, f"FIELDS (a i64 FROM '/{column}/a' REQUIRED)", of="docs")
    assert isinstance(error, errors.RequiredFieldUnknown)


def test_below_json_a_pointer_leads_anywhere() -> None:
    made = Planning()
    made.topic("docs")
    made.do(f"{PG}; CREATE SOURCE docs FROM KAFKA CONNECTION kafka (TOPIC 'docs') FORMAT JSON")
    column = made.named("docs", Kind.SOURCE).columns[0].name
    (one,) = table(made, f"FIELDS (a i64 FROM '/{column}/a~1b/0')", of="docs").columns
    assert one.field.path is not None
    assert (one.field.path.column, one.field.path.inside) == (column, ("a/b", "0"))


def test_with_delta_updates_a_keyed_relation_has_a_row_for_every_change() -> None:
    made = table(keyed(), "FIELDS (id i64, price f64) WITH (DELTA UPDATES = true)")
    assert columns(made.as_made) == [
        "id bigint not null",
        "price double precision",
        "_sequence bigint not null",
        "_deleted boolean not null",
    ]
    assert (made.key, made.merges) == (("id",), False)
    assert not made.columns[1].field.nullable  # a row that is written must have it; a deletion has nothing but the key


def test_with_delta_updates_a_relation_without_a_key_is_appended_to_as_without() -> None:
    made = world()
    assert table(made, "WITH (DELTA UPDATES = true)") == table(made)


def test_a_field_with_the_name_of_a_column_of_changes_is_refused() -> None:
    error = failure(keyed(), "FIELDS (id i64, _deleted boolean FROM '/vip') WITH (DELTA UPDATES = true)")
    assert isinstance(error, NameClash)


def test_a_table_of_changes_has_no_child_tables() -> None:
    error = failure(keyed(), "WITH (DELTA UPDATES = true, NESTED = TABLES)")
    assert isinstance(error, errors.ChildTablesOfChanges)
    assert error.field == "address"


def test_backfill_of_a_table_of_changes_deletes_them() -> None:
    made = created(keyed(), "WITH (DELTA UPDATES = true)")
    assert "deleted and written anew" in made.change("ALTER MATERIALIZATION m BACKFILL").notices[0]


DOCUMENT = {
    "type": "object",
    "properties": {
        "any": {},
        "maybe": {"oneOf": [{"type": "null"}, {"type": "string"}]},
        "two": {"type": ["string", "number"]},
        "ways": {"anyOf": [{"type": "string"}, {"type": "object"}]},
        "tuple": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]},
        "mixed": {"type": "array", "items": {"type": ["string", "number"]}},
        "nothing": {"type": "null"},
        "parts": {"allOf": [{"type": ["string", "number"]}, {"minLength": 1}]},
        "symbol": {"enum": [1, "a"]},
        "list": {"type": ["array", "null"]},
        "open": {"type": "object"},
        "inner": {"$ref": "#/$defs/inner"},
    },
    "$defs": {"inner": {"type": "object", "properties": {"two": {"type": ["boolean", "integer"]}}}},
}


def documents() -> Planning:
    made = Planning()
    made.outside.topics["docs"] = 1
    made.outside.add_subject("docs-value", DOCUMENT, SchemaFormat.JSON)
    format_ = "FORMAT JSON SCHEMA USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
    made.do(f"{PG}; CREATE SOURCE docs FROM KAFKA CONNECTION kafka (TOPIC 'docs') {format_}")
    return made


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("two string", "the types string, number"),
        ("ways string", "several alternatives (anyOf)"),
        ("tuple array<string>", "a tuple"),
        ("mixed array<string>", "the types string, number"),
        ("nothing string", "null alone"),
        ("parts string", "the types number, string"),
        ("symbol string", "the types number, string"),
        ("list string", "arrays alone"),
        ("list i64", "arrays alone"),
        ("open string", "objects alone"),
        ("open array<string>", "objects alone"),
    ],
)
def test_what_can_never_be_of_a_type_by_its_schema_must_be_json(field: str, reason: str) -> None:
    error = failure(documents(), f"FIELDS ({field} NULL)", of="docs")
    assert isinstance(error, errors.ImpossibleCast)
    assert reason in error.reason
    assert error.hint() == "Write json as its type."
    name = field.split()[0]
    assert columns(table(documents(), f"FIELDS ({name} json NULL)", of="docs")) == [f"{name} jsonb"]


def test_a_place_inside_a_record_that_is_referred_to_is_found() -> None:
    error = failure(documents(), "FIELDS (two string FROM '/inner/two' NULL)", of="docs")
    assert isinstance(error, errors.ImpossibleCast)


@pytest.mark.parametrize(
    "field", ["any i64", "maybe string", "mixed array<json>", "tuple array<json>", "list array<i64>"]
)
def test_a_property_without_a_type_and_one_that_is_null_or_a_type_pass(field: str) -> None:
    assert len(table(documents(), f"FIELDS ({field} NULL)", of="docs").columns) == 1


# ALTER and DROP


def existing(made: Planning) -> CreateMaterialization:
    definition = made.named("m", Kind.MATERIALIZATION).definition
    assert isinstance(definition, CreateMaterialization)
    return definition


def created(made: Planning, rest: str = "") -> Planning:
    made.do(f"CREATE MATERIALIZATION m FROM orders INTO POSTGRES CONNECTION pg (TABLE 't') {rest}")
    return made


def test_backfill_counts_up() -> None:
    made = created(keyed())
    for count in (1, 2):
        made.do("ALTER MATERIALIZATION m BACKFILL")
        assert existing(made).with_options.seed_backfill == count


def test_a_materialization_that_is_renamed_still_writes_its_table() -> None:
    made = created(world())
    made.do("ALTER MATERIALIZATION m RENAME TO other; ALTER MATERIALIZATION other BACKFILL")
    planned = existing_materialization(made.catalog, made.named("other", Kind.MATERIALIZATION))
    assert (planned.name, planned.relation) == ("other", made.named("orders", Kind.SOURCE).id)


def test_setting_the_same_fields_changes_nothing() -> None:
    made = created(world(), "FIELDS (id i64)")
    assert "stay as they are" in made.skip("ALTER MATERIALIZATION m SET FIELDS (id i64)").notice


def test_rows_of_an_adopted_table_without_a_key_are_never_written_twice() -> None:
    made = created(world(), "WITH (ADOPT = true)")
    for statement in ("BACKFILL", "SET FIELDS (id i32) WITH (CONFIRM = true)"):
        with pytest.raises(NotSupportedYet):
            made.change(f"ALTER MATERIALIZATION m {statement}")
    made.change("ALTER MATERIALIZATION m SET FIELDS (id i64)")


def test_widening_a_field_needs_no_confirmation_and_narrowing_does() -> None:
    made = created(world(), "FIELDS (id i64, price f64)")
    made.do("ALTER MATERIALIZATION m SET FIELDS (id decimal(20,0), price f64)")
    with pytest.raises(errors.NoWayInPlace) as raised:
        made.change("ALTER MATERIALIZATION m SET FIELDS (id i64, price f64)")
    assert "id from numeric(20,0) to bigint" in raised.value.message()
    made.do("ALTER MATERIALIZATION m SET FIELDS (id i64, price f64) WITH (CONFIRM = true)")
    assert existing(made).with_options.seed_backfill == 1


def over_a_view(rest: str = "") -> Planning:
    made = world()
    made.do("CREATE VIEW v AS SELECT id, note AS n FROM orders")
    made.do(f"CREATE MATERIALIZATION m FROM v INTO POSTGRES CONNECTION pg (TABLE 't') {rest}")
    return made


NARROWER = "AS SELECT id, CAST(note AS bigint) AS n FROM orders"


def test_replacing_a_view_so_that_a_column_narrows_needs_a_confirmation() -> None:
    made = over_a_view()
    with pytest.raises(ReplacementBreaks) as raised:
        made.change(f"CREATE OR REPLACE VIEW v {NARROWER}")
    assert "narrows n from text to bigint" in (raised.value.detail() or "")
    assert "CONFIRM = true" in raised.value.hint()
    planned = made.change(f"CREATE OR REPLACE VIEW v WITH (CONFIRM = true) {NARROWER}")
    assert [one.outcome for one in planned.consequences] == [Outcome.FILLED_ANEW]
    assert "filled anew" in planned.notices[0]
    made.do(f"CREATE OR REPLACE VIEW v WITH (CONFIRM = true) {NARROWER}")
    assert definition_of(made.named("v", Kind.VIEW), CreateView).with_options == ChangeOptions()


@pytest.mark.parametrize(
    ("policy", "outcome"), [("BACKFILL", Outcome.FILLED_ANEW), ("DISABLE TASK", Outcome.HALTS), ("ABORT", None)]
)
def test_a_policy_that_is_written_out_decides_without_a_confirmation(policy: str, outcome: Outcome | None) -> None:
    made = over_a_view(f"WITH (ON INCOMPATIBLE SCHEMA CHANGE = {policy})")
    if outcome is None:
        with pytest.raises(ReplacementBreaks) as raised:
            made.change(f"CREATE OR REPLACE VIEW v WITH (CONFIRM = true) {NARROWER}")
        assert "CONFIRM" not in raised.value.hint()
        return
    planned = made.change(f"CREATE OR REPLACE VIEW v {NARROWER}")
    assert [one.outcome for one in planned.consequences] == [outcome]


@pytest.mark.parametrize(("rest", "drop"), [("", False), (" WITH (DROP TARGET = true)", True)])
def test_drop_keeps_the_table_unless_it_is_told_otherwise(rest: str, drop: bool) -> None:
    made = created(world())
    planned = made.change(f"DROP MATERIALIZATION m{rest}")
    (effect,) = planned.effects
    assert isinstance(effect, ReleaseTable)
    assert (str(effect.table), effect.drop) == ("public.t", drop)


def over_views() -> Planning:
    made = keyed()
    made.do(
        "CREATE MATERIALIZED VIEW totals AS SELECT note, count(*) AS n, sum(price) AS total FROM orders GROUP BY note"
    )
    return made


def test_a_keyed_materialized_view_is_merged_by_its_key_and_views_over_it_too() -> None:
    made = over_views()
    assert table(made, of="totals").key == ("note",)
    made.do("CREATE VIEW large AS SELECT note AS said, total FROM totals WHERE total > 10")
    assert table(made, of="large").key == ("said",)
    made.do("CREATE VIEW keyless AS SELECT total FROM totals")
    made.do("CREATE MATERIALIZED VIEW kept_keyless AS SELECT price FROM orders")
    for relation, key in (("keyless", "note"), ("kept_keyless", "id")):
        refused = failure(made, of=relation)
        assert isinstance(refused, errors.MaterializationOverChanging)
        assert refused.hint() == f'Keep "{key}" in the query.'


def test_a_materialized_view_that_only_grows_is_appended_to() -> None:
    made = world()
    made.do("CREATE MATERIALIZED VIEW dear AS SELECT id, price FROM orders WHERE price > 10")
    assert table(made, of="dear").key == ()


def test_rows_of_a_materialized_view_cannot_be_set_aside_by_their_record() -> None:
    refused = failure(over_views(), "WITH (ON ERROR = QUARANTINE)", of="totals")
    assert isinstance(refused, errors.MaterializationCannotQuarantine)
    assert "a row of it is no record" in refused.message()
    assert table(over_views(), "WITH (ON ERROR = SKIP)", of="totals").on_error == "SKIP"

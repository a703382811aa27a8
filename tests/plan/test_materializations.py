"""Materializations as they are planned: which field is where, what it becomes in a table, and what is refused."""

from __future__ import annotations

import pytest

from headgate.errors import ErrorGroup, HeadgateError
from headgate.plan import materialization_errors as errors
from headgate.plan.errors import NotSupportedYet
from headgate.plan.materializations import existing_materialization
from headgate.plan.plans import ProvisionTable, ReleaseTable
from headgate.plan.tables import table_name
from headgate.plan.target_definitions import TableDefinition
from headgate.schema.errors import NameClash, NameTooLong
from headgate.schema.written import SchemaFormat
from headgate.sql.materializations import CreateMaterialization
from headgate.sql.statement import Kind
from tests.plan.planning import Planning, record, with_orders

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
AVRO = "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
PG = "CREATE CONNECTION pg TO POSTGRES (HOST 'h', DATABASE 'd') WITH (VALIDATE = false)"


def world(envelope: str = "", key: object = None) -> Planning:
    made = with_orders(ORDERS, key)
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


@pytest.mark.parametrize("name", ["", "a.b.c", ".t", "t.", 'a"b', '""', "x" * 64])
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


@pytest.mark.parametrize("rest", ["WITH (NESTED = TABLES, ADOPT = true)", "WITH (DELTA UPDATES = true)"])
def test_what_is_not_there_yet_says_so(rest: str) -> None:
    assert isinstance(failure(world(), rest), NotSupportedYet)


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
    "field", ["two string", "ways string", "tuple array<string>", "mixed array<string>", "nothing string"]
)
def test_what_has_several_types_by_its_schema_must_be_json(field: str) -> None:
    error = failure(documents(), f"FIELDS ({field} NULL)", of="docs")
    assert isinstance(error, errors.ImpossibleCast)
    assert error.hint() == "Write json as its type."
    name = field.split()[0]
    assert columns(table(documents(), f"FIELDS ({name} json NULL)", of="docs")) == [f"{name} jsonb"]


def test_a_place_inside_a_record_that_is_referred_to_is_found() -> None:
    error = failure(documents(), "FIELDS (two string FROM '/inner/two' NULL)", of="docs")
    assert isinstance(error, errors.ImpossibleCast)


@pytest.mark.parametrize("field", ["any i64", "maybe string", "mixed array<json>"])
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


def test_widening_a_field_needs_no_confirmation_and_narrowing_does() -> None:
    made = created(world(), "FIELDS (id i64, price f64)")
    made.do("ALTER MATERIALIZATION m SET FIELDS (id decimal(20,0), price f64)")
    with pytest.raises(errors.NoWayInPlace) as raised:
        made.change("ALTER MATERIALIZATION m SET FIELDS (id i64, price f64)")
    assert "id from numeric(20,0) to bigint" in raised.value.message()
    made.do("ALTER MATERIALIZATION m SET FIELDS (id i64, price f64) WITH (CONFIRM = true)")
    assert existing(made).with_options.seed_backfill == 1


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
    refused = failure(made, of="keyless")
    assert isinstance(refused, errors.MaterializationOverChanging)
    assert refused.hint() == 'Keep "note" in the query.'


def test_a_materialized_view_that_only_grows_is_appended_to() -> None:
    made = world()
    made.do("CREATE MATERIALIZED VIEW dear AS SELECT id, price FROM orders WHERE price > 10")
    assert table(made, of="dear").key == ()


def test_rows_of_a_materialized_view_cannot_be_set_aside_by_their_record() -> None:
    refused = failure(over_views(), "WITH (ON ERROR = QUARANTINE)", of="totals")
    assert isinstance(refused, errors.MaterializationCannotQuarantine)
    assert "a row of it is no record" in refused.message()
    assert table(over_views(), "WITH (ON ERROR = SKIP)", of="totals").on_error == "SKIP"

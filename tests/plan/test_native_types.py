"""Types in PostgreSQL's own words: a field has one only if the database keeps all of its values, or a row that would lose a part is found."""

from __future__ import annotations

import re

import pytest

from headgate.plan import materialization_errors as errors
from headgate.plan.native_types import text_form, with_native
from headgate.plan.target_definitions import TargetField, ValuePath
from headgate.schema import types as t
from tests.plan.planning import AVRO, Planning, record, with_orders
from tests.plan.test_materializations import PG, failure, table

pytestmark = pytest.mark.unit


def field(type_: t.Type, *, key: bool = False) -> TargetField:
    return TargetField("f", ValuePath("f", ()), type_, type_, nullable=True, key=key)


@pytest.mark.parametrize(
    ("type_", "native", "reason"),
    [
        (t.TimestampTz(), "date", "the time of a timestamptz would be left out"),
        (t.Timestamp(), "date", "the time of a timestamp would be left out"),
        (t.TimestampTz(), "time", "the day of a timestamptz"),
        (t.TimestampTz(), "timetz", "the day of a timestamptz"),
        (t.Timestamp(), "time with time zone", "the day of a timestamp"),
        (t.TimestampTz(), "timestamp", "the time zone of a timestamptz"),
        (t.Array(t.TimestampTz()), "date[]", "the time of a timestamptz"),
        (t.Text(), "numeric(8,2)", "rounded in silence"),
        (t.Text(), "real", "lose digits"),
        (t.Text(), "money", "rounded in silence"),
        (t.Double(), "pg_catalog.money", "rounded in silence"),
        (t.Double(), "numeric(50,2)", "more than 38 digits"),
        (t.Text(), "name", "cut in silence"),
        (t.Text(), '"char"', "cut in silence"),
        (t.Array(t.Text()), "numeric(8,2)[]", "rounded in silence"),
        (t.Array(t.Double()), "real[]", "lose digits"),
        (t.Date(), "integer", "a value of type date is no number"),
    ],
)
def test_a_native_type_that_would_keep_a_part_of_a_value_is_refused(type_: t.Type, native: str, reason: str) -> None:
    with pytest.raises(errors.NativeTypeRefused) as raised:
        with_native("m", field(type_), native)
    assert reason in raised.value.message()


@pytest.mark.parametrize(
    ("type_", "native", "checked"),
    [
        (t.Text(), "numeric", t.Text()),
        (t.Text(), "double precision", t.Text()),
        (t.Text(), "uuid", t.Text()),
        (t.Bigint(), "money", t.Bigint()),
        (t.Date(), "timestamp", t.Date()),
        (t.TimestampTz(), "timestamp with time zone", t.TimestampTz()),
        (t.Double(), "numeric(8,2)", t.Decimal(8, 2)),
        (t.Array(t.Double()), "numeric(8,2)[]", t.Array(t.Decimal(8, 2))),
        (t.Array(t.Bigint()), "smallint[]", t.Array(t.Integer())),
    ],
)
def test_the_values_of_a_native_type_are_checked_as_what_they_become(
    type_: t.Type, native: str, checked: t.Type
) -> None:
    made = with_native("m", field(type_), native)
    assert (made.native, made.type) == (native, checked)


@pytest.mark.parametrize(
    ("native", "good", "bad"),
    [
        ("date", ["2026-11-15"], ["2026-11-15 10:00", "15.11.2026", "today", "infinity"]),
        ("time", ["10:00:00", "10:00:00.123456"], ["10:00:00.1234567", "2026-11-15T10:00:00", "10:00:60"]),
        ("timestamp", ["2026-11-15T10:00:00", "2026-11-15 10:00:00.5000000"], ["2026-11-15T10:00:00+02:00", "now"]),
        ("timestamptz", ["2026-11-15T10:00:00Z", "2026-11-15 10:00:00-05:30"], ["2026-11-15T10:00:00", "2026-11-15"]),
        ("timetz", ["10:00:00+01:00"], ["2026-11-15T10:00:00+01:00", "10:00:00"]),
        ("date[]", ["2026-11-15"], ["2026-11-15T10:00:00"]),
    ],
)
def test_a_text_must_have_the_form_of_which_the_database_reads_all(
    native: str, good: list[str], bad: list[str]
) -> None:
    type_ = t.Array(t.Text()) if native.endswith("[]") else t.Text()
    form = text_form(with_native("m", field(type_), native))
    assert form is not None
    assert [one for one in (*good, *bad) if re.fullmatch(form, one)] == good


@pytest.mark.parametrize("native", ["inet", "interval", "uuid", "varchar(3)"])
def test_other_texts_are_left_to_the_database(native: str) -> None:
    assert text_form(with_native("m", field(t.Text()), native)) is None


def test_a_key_has_one_text_for_each_uuid() -> None:
    form = text_form(with_native("m", field(t.Text(), key=True), "uuid"))
    assert form is not None
    assert re.fullmatch(form, "8b7b0b4e-0000-4000-8000-00000000000a")
    assert not re.fullmatch(form, "8B7B0B4E-0000-4000-8000-00000000000A")


def keyed(type_: object) -> Planning:
    made = with_orders(record("orders", ("id", type_), ("a", "long")))
    made.do(
        f"{PG}; CREATE SOURCE orders FROM KAFKA CONNECTION kafka (TOPIC 'orders') {AVRO} ENVELOPE UPSERT (KEY (id))"
    )
    return made


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}


@pytest.mark.parametrize(
    ("type_", "written"),
    [
        (DECIMAL, "f64"),
        ("string", "string AS 'inet'"),
        ("string", "string AS 'numeric'"),
        ("string", "string AS 'char'"),
        ("string", "string AS 'citext'"),
        ("string", "string AS 'timestamptz'"),
    ],
)
def test_a_key_does_not_become_a_type_in_which_two_keys_are_one(type_: object, written: str) -> None:
    """The later row of one would replace that of the other, without an error."""
    error = failure(keyed(type_), f"FIELDS (id {written})")
    assert isinstance(error, errors.KeyTypeRefused)


@pytest.mark.parametrize(
    ("type_", "written"),
    [
        (DECIMAL, "decimal(30,2)"),
        (DECIMAL, "string"),
        ("long", "i64 AS 'integer'"),
        ("long", "f64"),
        ("string", "string AS 'varchar(20)'"),
        ("string", "string AS 'uuid'"),
        ("long", "string AS 'varchar(20)'"),
    ],
)
def test_a_key_may_become_a_type_that_tells_keys_apart(type_: object, written: str) -> None:
    assert table(keyed(type_), f"FIELDS (id {written})").key == ("id",)

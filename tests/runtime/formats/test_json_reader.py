"""Reading JSON texts and the documents of a JSON Schema."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest

from headgate.runtime.formats.json_reader import json_error
from headgate.schema.encodings import SchemaEncoding
from headgate.schema.written import SchemaFormat
from tests.runtime.formats.decoding import Bad, decoded, framed, one, written


@pytest.mark.parametrize("text", [b"null", b" 1 ", b"-0", b"1e400", b"[" * 150 + b"]" * 150, b'"\\u0000"'])
def test_json_has_nothing_wrong(text: bytes) -> None:
    assert json_error(text) is None


@pytest.mark.parametrize("text", [b"NaN", b"[Infinity]", b'{"a": -Infinity}', b"", b"1 2", b"01", b'"\\ud800"'])
def test_what_only_some_parsers_take_is_no_json(text: bytes) -> None:
    assert str(json_error(text)).startswith("it is not JSON at line 1 column ")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"a": 1, "\\u0061": 2}', "it has a member twice"),
        (b'"\xff"', "it is not valid UTF-8"),
        (b"[" * 300 + b"]" * 300, "it is nested too deeply"),
    ],
)
def test_the_reason_is_the_true_one(text: bytes, reason: str) -> None:
    assert json_error(text) == reason


pytestmark = pytest.mark.unit

DAY = dt.date(2026, 11, 15)
CONNECT = "org.apache.kafka.connect.data."
DEBEZIUM = "io.debezium.time."


def values(schema: object, *documents: str | bytes, **references: object) -> list[Any]:
    """What documents become as member `f`, if the schema is an object's, else as the whole."""
    side = SchemaEncoding(SchemaFormat.JSON, (written(schema, 3, **references),))
    texts = [d.encode() if isinstance(d, str) else d for d in documents]
    return decoded(side, [framed(3, text) for text in texts])


@pytest.mark.parametrize(
    ("schema", "document", "value"),
    [
        ({"type": "boolean"}, "true", True),
        ({"type": "integer"}, "-9223372036854775808", -(2**63)),
        ({"type": "integer"}, "9007199254740993.0", 2**53 + 1),
        ({"type": "integer"}, "1e3", 1000),
        ({"type": "integer", "format": "int32"}, "7", 7),
        ({"type": "integer", "maximum": 10**20}, "100000000000000000000", Decimal(10**20)),
        ({"type": "number"}, "1.5", 1.5),
        ({"type": "number"}, "9007199254740993", 9007199254740992.0),
        ({"type": "number"}, "-0.0", -0.0),
        ({"type": "number", "format": "float"}, "0.1", 0.10000000149011612),
        ({"type": "string"}, '"\\u00f6\\ud83d\\ude00"', "ö😀"),
        ({"enum": ["a", "b"]}, '"b"', "b"),
        ({"const": "a"}, '"a"', "a"),
        ({"type": "string", "format": "date"}, '"2026-11-15"', DAY),
        ({"type": "string", "format": "time"}, '"12:30:00.5"', dt.time(12, 30, 0, 500_000)),
        ({"type": "string", "format": "date-time"}, '"2026-11-15T01:00:00+01:00"', dt.datetime(2026, 11, 15, tzinfo=dt.UTC)),
        ({"type": "string", "format": "date-time-local"}, '"2026-11-15T01:00:00"', dt.datetime(2026, 11, 15, 1)),
        ({"type": "string", "format": "uuid"}, '"6BA7B810-9dad-11d1-80b4-00c04fd430c8"', "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        ({"type": "string", "contentEncoding": "base64"}, '"AP8="', b"\x00\xff"),
        ({"type": "string", "format": "number", "x-precision": 10, "x-scale": 2}, '"1.50"', Decimal("1.50")),
        ({"type": "array", "items": {"type": ["integer", "null"]}}, "[1, null]", [1, None]),
        ({"type": "object", "additionalProperties": {"type": "string"}}, '{"a": "b"}', {"a": "b"}),
        ({"type": "object", "properties": {"x": {"type": "integer"}}}, '{"x": 1, "y": 2}', {"x": 1}),
        ({"oneOf": [{"type": "null"}, {"type": "string"}]}, '"x"', "x"),
        ({"type": ["string", "integer"]}, "12", "12"),
        ({}, '{"b": 1.10, "a": [1e400]}', '{"b":1.10,"a":[1E+400]}'),
        ({"type": "integer", "title": CONNECT + "Date"}, "20772", DAY),
        ({"type": "integer", "title": CONNECT + "Time"}, "1500", dt.time(0, 0, 1, 500_000)),
        ({"type": "integer", "title": CONNECT + "Timestamp"}, "1500", dt.datetime(1970, 1, 1, 0, 0, 1, 500_000, dt.UTC)),
        ({"type": "integer", "title": DEBEZIUM + "MicroTimestamp"}, "-1", dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)),
        ({"type": "number", "title": CONNECT + "Decimal", "connect.parameters": {"scale": "2"}}, "12.34", Decimal("12.34")),
    ],
)  # fmt: skip
def test_each_type_gives_its_value(schema: object, document: str, value: object) -> None:
    inside = {"type": "object", "properties": {"f": schema}}
    assert values(schema, document) == [value]
    assert values(inside, f'{{"f": {document}}}') == [{"f": value}]


@pytest.mark.parametrize(
    ("schema", "document", "reason"),
    [
        ({"type": "integer"}, "1.5", '$ is against "type"'),
        ({"type": "integer"}, "true", '$ is against "type"'),
        ({"type": "integer"}, "9223372036854775808", "$ does not fit bigint"),
        ({"type": "integer", "format": "int32"}, "2147483648", "$ does not fit integer"),
        ({"type": "number"}, "1e400", "it is not finite"),
        ({"type": "number", "format": "float"}, "1e39", "it is not finite"),
        ({"type": "number", "multipleOf": 0.5}, "0.3", '"multipleOf"'),
        ({"type": "string", "pattern": "^a"}, '"secret"', '"pattern"'),
        ({"type": "string", "maxLength": 2}, '"secret"', '"maxLength"'),
        ({"type": "string", "format": "date"}, '"2026-02-30"', "no such moment"),
        ({"type": "string", "format": "date-time"}, '"2026-11-15T01:00:00"', "no time zone"),
        ({"type": "string", "contentEncoding": "base64"}, '"secret!"', "not base64"),
        ({"enum": ["a", "b"]}, '"secret"', '"enum"'),
        ({"type": "array", "items": {"type": "integer"}}, '[1, "secret"]', "$[1]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, '{"secret": "x"}', "$.f{}"),
        ({"type": "object", "properties": {"x": {}}, "required": ["x"]}, "{}", '"x" is missing'),
        ({"type": "object", "properties": {"x": {}}, "additionalProperties": False}, '{"secret": 1}', '"additionalProperties"'),
        ({"items": {"type": "string"}}, '"secret"', "does not fit array"),
        ({"not": {"type": "string"}, "type": ["string", "integer"]}, '"secret"', '"not"'),
    ],
)  # fmt: skip
def test_what_is_against_its_schema_is_told_with_its_path(schema: object, document: str, reason: str) -> None:
    inside = {"type": "object", "properties": {"f": schema}}
    found = values(inside, f'{{"f": {document}}}')[0]
    assert isinstance(found, Bad)
    assert reason.replace("$ ", "$.f ").replace("$[", "$.f[") in found.reason
    assert "secret" not in found.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "it is not JSON"),
        (b"{", "it is not JSON"),
        (b'{"f": 1} x', "it is not JSON"),
        (b'{"f": NaN}', "it is not JSON"),
        (b'{"f": 1, "f": 2}', "it has a member twice"),
        (b'{"g": "\xff"}', "it is not valid UTF-8"),
        (b'{"g": "\\ud800"}', "it is not JSON"),
        (b"[" * 10_000, "it is nested too deeply"),
    ],
)
def test_what_is_no_json_is_told(text: bytes, reason: str) -> None:
    found = values({"type": "object", "properties": {"f": {"type": "integer"}}}, text)[0]
    assert isinstance(found, Bad)
    assert found.reason.startswith(reason)


def test_bad_documents_do_not_disturb_the_good_ones_around_them() -> None:
    schema = {"type": "object", "properties": {"f": {"type": "integer"}}}
    texts = [f'{{"f": {n}.0}}' if n % 7 == 0 else f'{{"f": "{n}"}}' if n % 5 == 0 else f'{{"f": {n}}}' for n in range(500)]  # fmt: skip
    found = values(schema, *texts)
    for number, value in enumerate(found):
        if number % 5 == 0 and number % 7:
            assert isinstance(value, Bad)
        else:
            assert value == {"f": number}


def test_records_of_every_version_become_the_type_of_all() -> None:
    old = written({"type": "object", "properties": {"n": {"type": "integer", "format": "int32"}}, "required": ["n"]}, 1)
    new = written({"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}, 2)
    side = SchemaEncoding(SchemaFormat.JSON, (old, new))
    bodies = [
        framed(1, b'{"n": 1}'),
        framed(2, b'{"n": 3000000000, "s": "x"}'),
        framed(2, b"{}"),
        None,
        framed(1, b"{}"),
    ]
    good = [{"n": 1, "s": None}, {"n": 3_000_000_000, "s": "x"}, {"n": None, "s": None}, None]
    found = decoded(side, bodies)
    assert found[:4] == good
    assert isinstance(found[4], Bad)


def test_a_pinned_source_refuses_what_its_columns_cannot_hold() -> None:
    frozen = written({"type": "object", "properties": {"n": {"type": "integer"}, "t": {"type": "array", "items": {"type": "string"}}}, "required": ["n"]}, 1)  # fmt: skip
    later = written({"type": "object", "properties": {"n": {}, "t": {}}}, 2)
    side = SchemaEncoding(SchemaFormat.JSON, (frozen,))
    texts = (b'{"n": 1.5}', b'{"n": true}', b"{}", b'{"n": 1, "t": "ab"}', b'{"n": 1, "t": ["ab"]}')
    found = decoded(side, [framed(2, text) for text in texts], frozen, later)
    assert [isinstance(value, Bad) for value in found] == [True, True, True, True, False]


def test_references_are_found_by_name_and_nowhere_else() -> None:
    other = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    schema = {"type": "object", "properties": {"f": {"$ref": "other.json"}}}
    side = SchemaEncoding(SchemaFormat.JSON, (written(schema, 3, **{"other.json": other}),))
    assert one(side, framed(3, b'{"f": {"x": 1}}')) == {"f": {"x": 1}}
    assert isinstance(one(side, framed(3, b'{"f": {}}')), Bad)


def test_a_schema_that_cannot_be_used_spoils_only_its_own_records() -> None:
    good, bad = written({"type": "integer"}, 1), written({"$ref": "http://nowhere.invalid/x.json"}, 2)
    found = decoded(SchemaEncoding(SchemaFormat.JSON, (good,)), [framed(1, b"1"), framed(2, b"1")], good, bad)
    assert found[0] == 1
    assert isinstance(found[1], Bad)


def test_null_is_a_value_where_the_schema_lets_it_through() -> None:
    assert values({"type": ["integer", "null"]}, "null", "1") == [None, 1]
    assert isinstance(values({"type": "integer"}, "null")[0], Bad)


def test_a_document_of_ten_megabytes_is_read() -> None:
    text = "x" * 10_000_000
    assert values({"type": "object", "properties": {"f": {"type": "string"}}}, json.dumps({"f": text})) == [{"f": text}]

"""Protobuf in Arrow batches: each row of the type tables, versions, and bytes that are no message."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf import text_format
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from headgate.runtime.formats import protobuf_files
from headgate.runtime.formats.arrow_reader import Decoding, InvalidBody, names_of_writers
from headgate.runtime.formats.protobuf_reader import ProtobufDecoders
from headgate.schema.encodings import SchemaEncoding
from headgate.schema.formats.protobuf.protoc import read_files
from headgate.schema.formats.protobuf.read import find_message, link
from headgate.schema.types import Field, Record, Text
from headgate.schema.written import SchemaFormat
from tests.runtime.formats.decoding import Bad, decoded, framed, one, written

pytestmark = pytest.mark.unit

IMPORTS = "".join(
    f'import "{name}.proto";'
    for name in (
        "google/protobuf/timestamp", "google/protobuf/struct", "google/protobuf/wrappers", "google/protobuf/duration",
        "google/protobuf/any", "google/type/date", "google/type/timeofday", "confluent/meta", "confluent/type/decimal",
    )
)  # fmt: skip


def message(schema: str, text: str, name: str | None = None) -> bytes:
    """The bytes of a message written as Protobuf's text."""
    made: Message = GetMessageClass(find_message(link(read_files(schema)), name))()
    return text_format.Parse(text, made).SerializePartialToString()


def value(fields: str, text: str, more: str = "", syntax: str = "proto3") -> Any:
    schema = f'syntax = "{syntax}"; {IMPORTS} message M {{ {fields} }} {more}'
    return one(SchemaEncoding(SchemaFormat.PROTOBUF, (written(schema),), False), message(schema, text, "M"))


@pytest.mark.parametrize(
    ("field", "text", "found"),
    [
        ("int32 f = 1;", "f: -5", -5),
        ("sint32 f = 1;", "f: -5", -5),
        ("sfixed64 f = 1;", "f: -9223372036854775808", -(2**63)),
        ("uint32 f = 1;", "f: 4294967295", 2**32 - 1),
        ("fixed64 f = 1;", "f: 18446744073709551615", Decimal(2**64 - 1)),
        ("float f = 1;", "f: 0.1", 0.10000000149011612),
        ("double f = 1;", "f: inf", float("inf")),
        ("bool f = 1;", "f: true", True),
        ("string f = 1;", 'f: "ö"', "ö"),
        ("bytes f = 1;", 'f: "\\377"', b"\xff"),
        ("E f = 1;", "f: B", "B"),
        ("string f = 1;", "", ""),
        ("optional string f = 1;", "", None),
        ("repeated sint64 f = 1;", "f: 1 f: 2", [1, 2]),
        ("repeated E f = 1;", "f: B", ["B"]),
        ("repeated N f = 1;", "f {x: 1} f {}", [{"x": 1}, {"x": 0}]),
        ("N f = 1;", "", None),
        ("N f = 1;", "f {}", {"x": 0}),
        ("map<string, N> f = 1;", 'f {key: "a" value {x: 2}}', {"a": {"x": 2}}),
        ("map<bool, int32> f = 1;", "f {key: true value: 2}", {"true": 2}),
        ("map<int64, string> f = 1;", 'f {key: -1 value: "x"}', {"-1": "x"}),
        ("google.protobuf.Timestamp f = 1;", "f {seconds: -1 nanos: 999999999}", dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC)),
        ("google.type.Date f = 1;", "f {year: 2026 month: 2 day: 28}", dt.date(2026, 2, 28)),
        ("google.type.TimeOfDay f = 1;", "f {hours: 23 nanos: 1999}", dt.time(23, 0, 0, 1)),
        ("google.protobuf.Value f = 1;", "f {number_value: 1.5}", "1.5"),
        ("google.protobuf.Struct f = 1;", 'f {fields {key: "a" value {null_value: NULL_VALUE}}}', '{"a":null}'),
        ("google.protobuf.ListValue f = 1;", "f {values {number_value: 2} values {bool_value: true}}", "[2,true]"),
        ("google.protobuf.Int32Value f = 1;", "f {}", 0),
        ("google.protobuf.UInt64Value f = 1;", "f {value: 7}", Decimal(7)),
        ("google.protobuf.StringValue f = 1;", "", None),
        ("repeated google.protobuf.BoolValue f = 1;", "f {value: true} f {}", [True, False]),
        ("google.protobuf.Duration f = 1;", "f {seconds: 1}", {"seconds": 1, "nanos": 0}),
        ('confluent.type.Decimal f = 1 [(confluent.field_meta) = {params: [{key: "precision", value: "9"}, {key: "scale", value: "2"}]}];',
         'f {value: "\\377\\205" scale: 2}', Decimal("-1.23")),
        ("oneof o { int32 f = 1; string g = 2; }", "f: 3", 3),
    ],
)  # fmt: skip
def test_each_type_gives_its_value(field: str, text: str, found: object) -> None:
    read = value(field, text, "message N { int32 x = 1; } enum E { A = 0; B = 1; }")
    assert read["f"] == found


@pytest.mark.parametrize(
    ("field", "text", "reason"),
    [
        ("google.type.Date f = 1;", "f {year: 2026}", "$.f does not fit date"),
        ("google.type.TimeOfDay f = 1;", "f {hours: 24}", "$.f does not fit time"),
        ("google.protobuf.Timestamp f = 1;", "f {nanos: -1}", "$.f does not fit timestamptz"),
        (
            "repeated google.type.Date f = 1;",
            "f {year: 2026 month: 1 day: 1} f {}",
            "$.f[] does not fit date",
        ),
        ("google.protobuf.Value f = 1;", "f {}", "not set"),
        ("E f = 1;", "f: 9", "not one of the symbols"),
    ],
)
def test_values_that_no_column_can_hold_are_told_with_their_path(field: str, text: str, reason: str) -> None:
    found = value(field, text, "enum E { A = 0; B = 1; }")
    assert isinstance(found, Bad)
    assert reason in found.reason


CLOSED = 'syntax = "proto2"; message M { required int32 id = 1; optional E e = 2; optional string s = 3; repeated E l = 4; } enum E { A = 0; }'


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "required fields are missing: id"),
        ("08", "not a message"),
        ("0801ff", "not a message"),
        ("08011009", "not as its schema says"),  # a symbol that a closed enum does not have
        ("08012009", "not as its schema says"),
        ("080110001203", "not a message"),
        ("08011a01ff", "does not fit"),  # proto2 does not look at texts
        ("0a0161" + "0801", "not as its schema says"),  # the field has another type on the wire
    ],
)
def test_bytes_that_are_no_message_are_told(data: str, reason: str) -> None:
    found = one(SchemaEncoding(SchemaFormat.PROTOBUF, (written(CLOSED),), False), bytes.fromhex(data))
    assert isinstance(found, Bad)
    assert reason in found.reason


def test_numbers_of_unknown_fields_are_passed_over() -> None:
    side = SchemaEncoding(SchemaFormat.PROTOBUF, (written(CLOSED),), False)
    assert one(side, bytes.fromhex("0801fa070161"))["id"] == 1


TWO = 'syntax = "proto3"; package p; message A { message In { int32 n = 1; } int32 n = 1; } message B { string s = 1; }'


def test_the_frame_says_which_message_it_is() -> None:
    first, second = (
        SchemaEncoding(SchemaFormat.PROTOBUF, (written(TWO, 5),)),
        SchemaEncoding(SchemaFormat.PROTOBUF, (written(TWO, 5),), True, "B"),
    )
    inner = SchemaEncoding(SchemaFormat.PROTOBUF, (written(TWO, 5),), True, "p.A.In")
    assert one(first, framed(5, b"\x08\x01", (0,))) == {"n": 1}
    assert one(first, framed(5, b"\x02\x00\x08\x01")) == {"n": 1}
    assert one(second, framed(5, b"\x0a\x01x", (1,))) == {"s": "x"}
    assert one(inner, framed(5, b"\x08\x02", (0, 0))) == {"n": 2}
    for wrong in (
        framed(5, b"\x0a\x01x", (1,)),
        framed(5, b""),
        framed(5, b"\x02"),
        framed(5, b"\x01\x00"),
        framed(5, b"\x02\x63"),
    ):
        assert isinstance(one(first, wrong), Bad)


def test_records_of_every_version_become_the_type_of_all() -> None:
    old = written(
        'syntax = "proto3"; message M { int32 n = 1; string gone = 2; N in = 3; } message N { int32 x = 1; }',
        1,
    )
    new = written('syntax = "proto3"; message M { int64 n = 1; optional string s = 4; N in = 3; } message N { int32 x = 1; repeated int32 y = 2; }', 2)  # fmt: skip
    side = SchemaEncoding(SchemaFormat.PROTOBUF, (old, new))
    bodies = [
        framed(1, message(old.text, 'n: 1 gone: "x" in {x: 2}'), (0,)),
        framed(2, message(new.text, 'n: 3000000000 s: "y" in {y: 5}'), (0,)),
    ]
    assert decoded(side, bodies) == [
        {"n": 1, "gone": "x", "in": {"x": 2, "y": []}, "s": None},
        {"n": 3_000_000_000, "gone": "", "in": {"x": 0, "y": [5]}, "s": "y"},
    ]


def test_a_pinned_source_reads_by_the_rules_of_protobuf_and_loses_nothing() -> None:
    frozen = written('syntax = "proto3"; message M { int32 n = 1; string a = 2; repeated string l = 3; }', 1)
    later = written('syntax = "proto3"; message M { int64 n = 1; string renamed = 2; }', 2)
    side = SchemaEncoding(SchemaFormat.PROTOBUF, (frozen,))
    bodies = [framed(2, message(later.text, text), (0,)) for text in ('n: 1 renamed: "x"', "n: 3000000000")]
    found = decoded(side, bodies, frozen, later)
    assert found[0] == {"n": 1, "a": "x", "l": []}
    assert isinstance(found[1], Bad)


def test_imports_come_from_the_references() -> None:
    schema = written(
        'syntax = "proto3"; import "n.proto"; message M { N in = 1; }',
        4,
        **{"n.proto": 'syntax = "proto3"; message N { int32 x = 1; }'},
    )
    assert one(SchemaEncoding(SchemaFormat.PROTOBUF, (schema,)), framed(4, b"\x0a\x02\x08\x07", (0,))) == {
        "in": {"x": 7}
    }


def test_a_schema_without_the_message_spoils_only_its_own_records() -> None:
    good, bad = written(TWO, 1), written('syntax = "proto3"; message Z { int32 n = 1; }', 2)
    found = decoded(
        SchemaEncoding(SchemaFormat.PROTOBUF, (good,), True, "B"),
        [framed(1, b"", (1,)), framed(2, b"", (0,))],
        good,
        bad,
    )
    assert found[0] == {"s": ""}
    assert isinstance(found[1], Bad)


def test_a_message_of_ten_megabytes_is_read() -> None:
    schema = 'syntax = "proto3"; message M { bytes f = 1; }'
    data = b"x" * 10_000_000
    assert one(SchemaEncoding(SchemaFormat.PROTOBUF, (written(schema),), False), b"\x0a\x80\xad\xe2\x04" + data) == {
        "f": data
    }


def test_a_worker_gets_descriptors_and_never_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = written('syntax = "proto3"; message M { string s = 1; }', 7)
    broken = written('syntax = "proto3"; message M { Other s = 1; }', 8)
    decoders = pickle.dumps(ProtobufDecoders.of((schema, broken)))
    monkeypatch.setattr(protobuf_files, "read_files", None)
    sent: ProtobufDecoders = pickle.loads(decoders)
    assert {sent: "found"}[pickle.loads(decoders)] == "found"
    target = Field("value", Record((Field("s", Text(), False),)), False)
    side = SchemaEncoding(SchemaFormat.PROTOBUF, (schema,))
    names = names_of_writers(side, (schema, broken))
    decoding = Decoding(target, (schema,), (schema, broken), True, names=names)
    assert sent(decoding, schema).exact(b"\x00\x0a\x01a").to_pylist() == [{"s": "a"}]
    with pytest.raises(InvalidBody) as caught:
        sent(decoding, broken).exact(b"\x00")
    assert caught.value.reason == ('the schema that it names cannot be used: schema.proto:1:32: "Other" is not defined')


def test_a_field_that_was_renamed_is_read_into_its_column() -> None:
    old = written(
        'syntax = "proto3"; message M { int32 a = 1; N in = 2; map<string, N> m = 3; } message N { string x = 1; }',
        1,
    )
    new = written(
        'syntax = "proto3"; message M { int64 b = 1; N within = 2; map<string, N> m = 3; string a = 4; } message N { string y = 1; }', 2
    )  # fmt: skip
    bodies = [
        framed(1, message(old.text, 'a: 1 in {x: "p"} m {key: "k" value {x: "q"}}'), (0,)),
        framed(2, message(new.text, 'b: 2 within {y: "r"} m {key: "k" value {y: "s"}} a: "t"'), (0,)),
    ]
    assert decoded(SchemaEncoding(SchemaFormat.PROTOBUF, (old, new)), bodies) == [
        {"a": 1, "in": {"x": "p"}, "m": {"k": {"x": "q"}}, "a_": ""},
        {"a": 2, "in": {"x": "r"}, "m": {"k": {"x": "s"}}, "a_": "t"},
    ]

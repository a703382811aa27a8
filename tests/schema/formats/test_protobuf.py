"""Messages to records and back, and what is lost on the way."""

from __future__ import annotations

from typing import assert_never

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import assume, given

from headgate.schema.errors import (
    RecursiveSchema,
    SchemaTooDeep,
    SchemaTooLarge,
    UnknownMessage,
    UnresolvedType,
    UnsupportedType,
)
from headgate.schema.formats.protobuf import from_protobuf, print_proto, read_files, to_protobuf
from headgate.schema.formats.protobuf.names import are_symbols
from headgate.schema.formats.protobuf.read import link
from headgate.schema.types import (
    Array,
    Bigint,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Double,
    Enum,
    Field,
    Integer,
    Json,
    Map,
    Named,
    Real,
    Record,
    Text,
    Time,
    Timestamp,
    TimestampTz,
    Type,
    Uuid,
)
from tests.laws import examples
from tests.schema.proto_messages import declared_comments, without_comments
from tests.schema.strategies import records

pytestmark = pytest.mark.unit


def read(body: str, message: str | None = None) -> Record:
    return compiled(f'syntax = "proto3"; {body}', message)


def compiled(text: str, message: str | None = None, *references: tuple[str, str]) -> Record:
    file, *imported = read_files(text, references)
    return from_protobuf(file, message, imported)


def written(record: Record, previous: FileDescriptorProto | None = None) -> FileDescriptorProto:
    return to_protobuf(record, name="Row", package="p", previous=previous)


def numbers(file: FileDescriptorProto) -> dict[str, int]:
    return {field.name: field.number for field in file.message_type[0].field}


def one(type_: Type, nullable: bool = True) -> Record:
    return Record((Field("c", type_, nullable),))


# Reading


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("bool c = 1;", Field("c", Boolean(), False)),
        ("int32 c = 1;", Field("c", Integer(), False)),
        ("sint32 c = 1;", Field("c", Integer(), False)),
        ("sfixed32 c = 1;", Field("c", Integer(), False)),
        ("int64 c = 1;", Field("c", Bigint(), False)),
        ("sint64 c = 1;", Field("c", Bigint(), False)),
        ("sfixed64 c = 1;", Field("c", Bigint(), False)),
        ("uint32 c = 1;", Field("c", Bigint(), False)),
        ("fixed32 c = 1;", Field("c", Bigint(), False)),
        ("uint64 c = 1;", Field("c", Decimal(20, 0), False)),
        ("fixed64 c = 1;", Field("c", Decimal(20, 0), False)),
        ("float c = 1;", Field("c", Real(), False)),
        ("double c = 1;", Field("c", Double(), False)),
        ("string c = 1;", Field("c", Text(), False)),
        ("bytes c = 1;", Field("c", Bytes(), False)),
        ("optional int32 c = 1;", Field("c", Integer(), True)),
        ("repeated string c = 1;", Field("c", Array(Text(), False), False)),
        ("map<string, int64> c = 1;", Field("c", Map(Bigint(), False), False)),
        ("map<int32, E> c = 1;", Field("c", Map(Enum(("A", "B"), "M.E"), False), False)),
        ("oneof o { string c = 1; }", Field("c", Text(), True)),
        ("E c = 1;", Field("c", Enum(("A", "B"), "M.E"), False)),
        ("optional E c = 1;", Field("c", Enum(("A", "B"), "M.E"), True)),
        ("In c = 1;", Field("c", Record((Field("x", Text(), False),), "M.In"), True)),
        ("repeated In c = 1;", Field("c", Array(Record((Field("x", Text(), False),), "M.In"), False), False)),
        ("google.protobuf.Timestamp c = 1;", Field("c", TimestampTz(), True)),
        ("google.type.Date c = 1;", Field("c", Date(), True)),
        ("google.type.TimeOfDay c = 1;", Field("c", Time(), True)),
        ("google.protobuf.Struct c = 1;", Field("c", Json(), True)),
        ("google.protobuf.Value c = 1;", Field("c", Json(), True)),
        ("google.protobuf.ListValue c = 1;", Field("c", Json(), True)),
        ("google.protobuf.UInt64Value c = 1;", Field("c", Decimal(20, 0), True)),
        ("google.protobuf.StringValue c = 1;", Field("c", Text(), True)),
        ("repeated google.protobuf.Int32Value c = 1;", Field("c", Array(Integer(), False), False)),
        (
            "google.protobuf.Duration c = 1;",
            Field("c", Record((Field("seconds", Bigint(), False), Field("nanos", Integer(), False)), "google.protobuf.Duration")),
        ),
        (
            "google.protobuf.Any c = 1;",
            Field("c", Record((Field("type_url", Text(), False), Field("value", Bytes(), False)), "google.protobuf.Any")),
        ),
        ('string c = 1 [json_name = "cName"];', Field("c", Text(), False)),
        ('string c = 1 [json_name = "order-id"];', Field("order-id", Text(), False)),
    ],
)  # fmt: skip
def test_a_field_is_read_as(field: str, expected: Field) -> None:
    files = (
        "protobuf/timestamp",
        "protobuf/struct",
        "protobuf/wrappers",
        "protobuf/duration",
        "protobuf/any",
        "type/date",
        "type/timeofday",
    )
    imports = "".join(f'import "google/{name}.proto";' for name in files)
    record = read(f"{imports} message M {{ {field} enum E {{ A = 0; B = 1; }} message In {{ string x = 1; }} }}")
    assert record.fields[0] == expected


def test_comments_become_docs() -> None:
    record = read("""
        // An order,
        //   as it came.
        message Order {
          // not this one

          int64 id = 1; // the key
          /* where
           * it goes */
          Address to = 2;
          // its state
          State state = 3;
        }
        // A place
        message Address {
          string city = 1; /* a town */
        }
        // All states
        enum State { NEW = 0; }""")
    assert record.doc == "An order,\n  as it came."
    assert [field.doc for field in record.fields] == ["the key", "where\nit goes", "its state"]
    address, state = record.fields[1].type, record.fields[2].type
    assert isinstance(address, Record)
    assert isinstance(state, Enum)
    assert (address.doc, address.fields[0].doc, state.doc) == ("A place", "a town", "All states")


def test_proto2_is_nullable_unless_required() -> None:
    record = compiled("""message M { required int32 a = 1; optional int32 b = 2 [default = 5];
        optional group G = 3 { required string x = 1; } }""")
    assert [field.nullable for field in record.fields] == [False, True, True]
    assert record.fields[2].type == Record((Field("x", Text(), False),), "M.G")


def test_presence_of_editions_is_inherited() -> None:
    record = compiled("""edition = "2023"; option features.field_presence = IMPLICIT;
        message M { int32 a = 1; int32 b = 2 [features.field_presence = EXPLICIT];
          int32 c = 3 [features.field_presence = LEGACY_REQUIRED]; }""")
    assert [field.nullable for field in record.fields] == [False, True, False]
    assert compiled('edition = "2023"; message M { int32 a = 1; }').fields[0].nullable


def test_the_first_message_is_read_unless_one_is_named() -> None:
    body = "package p.q; message A { int32 a = 1; message In { int32 i = 1; } } message B { int32 b = 1; }"
    assert read(body).name == "p.q.A"
    assert read(body, "B").name == read(body, "p.q.B").name == read(body, ".p.q.B").name == "p.q.B"
    assert read(body, "A.In").fields[0].name == "i"


def test_an_unknown_message_names_the_near_ones() -> None:
    with pytest.raises(UnknownMessage) as caught:
        read("message Order {}", "Ordre")
    assert caught.value.similar == ("Order",)
    with pytest.raises(UnknownMessage):
        read("enum E { A = 0; }")


def test_a_message_of_an_imported_file_is_read_with_its_docs() -> None:
    other = 'syntax = "proto3"; package o;\n// A thing\nmessage Thing { int32 x = 1; // an x\n }'
    text = 'syntax = "proto3"; import "other.proto"; message M { o.Thing thing = 1; }'
    thing = compiled(text, None, ("other.proto", other)).fields[0].type
    assert thing == Record((Field("x", Integer(), False, "an x"),), "o.Thing", "A thing")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("message M { M m = 1; }", "$.m"),
        (
            "message M { A a = 1; } message A { repeated B b = 1; } message B { map<string, A> c = 1; }",
            "$.a.b[].c{}",
        ),
    ],
)
def test_a_recursive_message_is_refused_with_its_path(body: str, path: str) -> None:
    with pytest.raises(RecursiveSchema) as caught:
        read(body)
    assert caught.value.path == path


def test_messages_that_unfold_without_end_are_refused() -> None:
    messages = [f"message M{i} {{ M{i + 1} a = 1; M{i + 1} b = 2; }}" for i in range(40)]
    with pytest.raises(SchemaTooLarge):
        read(" ".join(messages) + "message M40 {}")


def test_confluents_decimal_is_a_decimal_if_its_size_is_known() -> None:
    imports = 'import "confluent/meta.proto"; import "confluent/type/decimal.proto";'
    option = '[(confluent.field_meta) = { doc: "price", params: [{ key: "precision", value: "9" }, { key: "scale", value: "2" }] }]'
    known = read(f"{imports} message M {{ confluent.type.Decimal d = 1 {option}; confluent.type.Decimal e = 2; }}")
    assert known.fields[0] == Field("d", Decimal(9, 2), True, "price")
    assert known.fields[1].type == Record(
        (Field("value", Bytes(), False), Field("scale", Integer(), False)), "confluent.type.Decimal"
    )
    with pytest.raises(UnsupportedType) as caught:
        read(f"{imports} message M {{ confluent.type.Decimal d = 1 {option.replace('9', '77')}; }}")
    assert caught.value.path == "$.d"


def test_confluents_decimal_is_read_also_where_confluents_own_package_is_loaded() -> None:
    from confluent_kafka.schema_registry.confluent import meta_pb2

    assert meta_pb2.DESCRIPTOR.package == "confluent"
    test_confluents_decimal_is_a_decimal_if_its_size_is_known()


# Writing


def test_a_record_is_written_with_its_docs_as_comments() -> None:
    record = Record(
        (
            Field("id", Bigint(), False, "the key"),
            Field("note", Text(), True, "two\nlines"),
            Field("at", TimestampTz()),
            Field("address", Record((Field("city", Text(), False, "a town"),), doc="A place")),
            Field("state", Enum(("new", "done"), doc="All states"), False),
            Field("tags", Map(Array(Text()))),
            Field("order id", Uuid(), False),
        ),
        doc="An order",
    )
    assert (
        print_proto(to_protobuf(record, name="Order", package="shop"))
        == """syntax = "proto3";

package shop;

import "google/protobuf/timestamp.proto";

// An order
message Order {
  // the key
  int64 id = 1;
  // two
  // lines
  optional string note = 2;
  .google.protobuf.Timestamp at = 3;
  .shop.Order.Address address = 4;
  .shop.Order.StateEnum.Value state = 5;
  map<string, .shop.Order.TagsItems> tags = 6;
  string order_id = 7 [json_name = "order id"];

  // A place
  message Address {
    // a town
    string city = 1;
  }

  message StateEnum {
    // All states
    enum Value {
      new = 0;
      done = 1;
    }
  }

  message TagsItems {
    repeated string items = 1;
  }
}
"""
    )


def survives(type_: Type, nullable: bool) -> tuple[Type, bool]:
    """What ROUND_TRIP_LOSSES says that a place comes back as."""
    match type_:
        case Boolean() | Integer() | Bigint() | Real() | Double() | Text():
            return type_, nullable
        case Decimal() | Uuid() | Timestamp():
            return Text(), nullable
        case Bytes():
            return Bytes(), nullable
        case Enum():
            return (Enum(type_.symbols, doc=_doc(type_.doc)) if are_symbols(type_.symbols) else Text()), nullable
        case Date() | Time() | TimestampTz() | Json():
            return type_, True
        case Record():
            return _record(type_), True
        case Array():
            return Array(_element(type_.element), False), False
        case Map():
            return Map(_element(type_.value), False), False
        case Named():
            raise AssertionError("a named type cannot be written")
        case _:
            assert_never(type_)


def _element(type_: Type) -> Type:
    inner = survives(type_, False)[0]
    return Record((Field("items", inner, False),)) if isinstance(inner, Array | Map) else inner


def _record(record: Record) -> Record:
    fields = (Field(f.name, *survives(f.type, f.nullable), _doc(f.doc)) for f in record.fields)
    return Record(tuple(fields), doc=_doc(record.doc))


def _doc(doc: str | None) -> str | None:
    return doc.strip() or None if doc else None


def _unnamed(type_: Type) -> Type:
    match type_:
        case Record():
            return Record(
                tuple(Field(f.name, _unnamed(f.type), f.nullable, f.doc) for f in type_.fields), doc=type_.doc
            )
        case Enum():
            return Enum(type_.symbols, None, type_.default, type_.doc)
        case Array():
            return Array(_unnamed(type_.element), type_.element_nullable)
        case Map():
            return Map(_unnamed(type_.value), type_.value_nullable)
        case _:
            return type_


@given(records(max_fields=5))
@examples(40)
def test_a_record_comes_back_but_for_the_declared_losses(record: Record) -> None:
    try:
        file = written(record)
    except UnsupportedType as refused:
        assume("that Protobuf makes for a map" not in refused.why)
        raise
    assert _unnamed(from_protobuf(file, None, [])) == _record(record)


@given(records(max_fields=5))
@examples(25)
def test_protoc_compiles_what_a_written_file_prints_to_the_same_file(record: Record) -> None:
    try:
        file = written(record)
    except UnsupportedType:
        assume(False)
    again, *imported = read_files(print_proto(file))
    assert without_comments(again) == without_comments(file)
    assert declared_comments(again) == declared_comments(file)
    linked = link([file, *imported]).message_types_by_name["Row"]
    assert set(linked.fields_by_name) == {f.name for f in file.message_type[0].field}


def test_protoc_takes_what_is_written() -> None:
    inner = Record((Field("a_b", Text()), Field("aB", Text()), Field("a b", Text()), Field("1st", Integer())))
    record = Record(
        (
            Field("Inner", Integer()),
            Field("inner", inner),
            Field("s", Enum(("Value", "inner", "s"))),
            Field("t", Array(Enum(("Value", "s")))),
            Field("u", Enum(("F", "f"))),
            Field("v", Enum(("value_a", "A"))),
            Field("w", Enum(("foo_bar", "foobar", "VALUE_", "x", "Values"))),
            Field("m", Map(Map(Array(Array(Date()))))),
            Field("_m", Time()),
            Field("注文", Json()),
            Field("reserved", Text()),
            Field("message", Boolean()),
        )
    )
    again = read_files(print_proto(written(record)))[0]
    assert without_comments(again) == without_comments(written(record))


def test_symbols_that_protoc_cannot_tell_apart_are_text() -> None:
    kept = [are_symbols(symbols) for symbols in (("F", "f"), ("value_a", "A"), ("foo_bar", "foobar", "VALUE_"))]
    assert kept == [False, False, True]
    first = written(one(Enum(("F", "g"))))
    second = written(one(Enum(("f", "g"))), first)
    assert read_again(second).fields[0].type == Text()
    read_files(print_proto(second))


def test_what_protobuf_cannot_hold_is_refused_with_its_path() -> None:
    with pytest.raises(UnresolvedType) as unresolved:
        written(one(Array(Named(("a", "b")))))
    assert unresolved.value.path == "$.c[]"
    with pytest.raises(UnsupportedType) as clash:
        written(Record((Field("a_b", Map(Text())), Field("aB", Map(Text())))))
    assert clash.value.path == "$.aB"
    with pytest.raises(UnsupportedType):
        written(Record((Field("[odd]", Text()),)))
    deep: Type = Text()
    for _ in range(40):
        deep = Record((Field("c", deep),))
    with pytest.raises(SchemaTooDeep):
        written(one(deep))


def test_a_column_keeps_its_number_and_none_is_used_again() -> None:
    first = written(Record((Field("a", Integer()), Field("b", Text()), Field("c", Text()))))
    second = written(Record((Field("d", Text()), Field("c", Text()), Field("a", Bigint()))), first)
    assert numbers(second) == {"d": 4, "c": 3, "a": 1}
    assert list(second.message_type[0].reserved_name) == ["b"]
    third = written(Record((Field("b", Text()), Field("a", Bigint()), Field("c", Text()))), second)
    assert numbers(third) == {"b": 5, "a": 1, "c": 3}
    assert [found.start for found in third.message_type[0].reserved_range] == [2, 4]
    assert list(third.message_type[0].reserved_name) == ["d"]
    read_files(print_proto(third))


def test_a_column_whose_old_values_cannot_be_read_gets_a_new_number() -> None:
    first = written(Record((Field("a", Integer()), Field("b", Array(Text())), Field("c", Record(())))))
    second = written(Record((Field("a", Text()), Field("b", Text()), Field("c", Record((Field("x", Text()),))))), first)
    assert numbers(second) == {"a": 4, "b": 5, "c": 3}


@pytest.mark.parametrize("name", ["0", "_0", "__", "a-b", "\U0001f600", "a b c", "x y", "0_"])
def test_any_name_of_a_column_comes_back(name: str) -> None:
    record = Record((Field(name, Text()), Field("_0", Text()) if name != "_0" else Field("y", Text())))
    assert [field.name for field in from_protobuf(written(record)).fields] == [field.name for field in record.fields]


def test_a_column_without_a_valid_name_is_known_by_its_json_name() -> None:
    first = written(Record((Field("a b", Text()), Field("a_b", Text()))))
    second = written(Record((Field("a b", Text()),)), first)
    before = {field.json_name: field.number for field in first.message_type[0].field}
    assert second.message_type[0].field[0].number == before["a b"]


def test_nested_numbers_and_symbols_stay_too() -> None:
    def row(*symbols: str, extra: tuple[Field, ...] = ()) -> Record:
        return one(Record((*extra, Field("x", Enum(symbols)))))

    first = written(row("a", "b", "c"))
    second = written(row("d", "c", extra=(Field("y", Text()),)), first)
    nested = second.message_type[0].nested_type[0]
    assert {field.name: field.number for field in nested.field} == {"y": 2, "x": 1}
    enum = nested.nested_type[0].enum_type[0]
    assert [(value.name, value.number) for value in enum.value] == [("a", 0), ("d", 3), ("c", 2)]
    assert list(enum.reserved_name) == ["b"]
    read_files(print_proto(second))


@given(records(max_fields=5), records(max_fields=5), records(max_fields=5))
@examples(15)
def test_no_number_is_ever_given_to_another_column(first: Record, second: Record, third: Record) -> None:
    owners: dict[int, str] = {}
    file: FileDescriptorProto | None = None
    for record in (first, second, third):
        try:
            file = written(record, file)
        except UnsupportedType:
            assume(False)
        for column, field in zip(record.fields, file.message_type[0].field, strict=True):
            assert owners.setdefault(field.number, column.name) == column.name
        assert [field.name for field in read_again(file).fields] == [column.name for column in record.fields]


def read_again(file: FileDescriptorProto) -> Record:
    return compiled(print_proto(file))


def test_two_thousand_columns_map_in_time() -> None:
    columns = tuple(Field(f"column_{i}", Record((Field("x", Text()),)) if i % 10 == 0 else Text()) for i in range(2000))
    file = written(Record(columns))
    assert len(from_protobuf(file).fields) == 2000
    assert max(numbers(file).values()) == 2000

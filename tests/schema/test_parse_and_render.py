"""Print and parse are inverse, every spelling is read, and every error points at its place."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, strategies as st

from headgate.errors import HeadgateError
from headgate.schema.errors import SchemaError, TypeTooDeep
from headgate.schema.parse import parse_type, read_type
from headgate.schema.render import print_type
from headgate.schema.types import (
    MAX_DEPTH,
    Array,
    Bigint,
    Boolean,
    Bytes,
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
    depth,
    plain,
)
from headgate.text.cursor import Cursor
from headgate.text.errors import UnterminatedIdentifier
from headgate.text.lexer import tokenize
from tests.laws import examples
from tests.schema import strategies as s

pytestmark = pytest.mark.unit


@examples(30)
@given(s.types(named=True))
def test_the_full_form_brings_back_the_very_type(type_: Type) -> None:
    assert parse_type(print_type(type_, full=True)) == type_


@examples(30)
@given(s.types(named=True))
def test_the_short_form_brings_back_the_plain_type(type_: Type) -> None:
    assert parse_type(print_type(type_)) == plain(type_)


@examples(30)
@given(
    s.types(named=True),
    st.sampled_from(["", " not null", ", b text)", " comment 'x'", " WITH (a = 1)", ") AS q"]),
)
def test_a_prefix_ends_where_its_type_ends(type_: Type, rest: str) -> None:
    text = print_type(type_)
    script = f"create x {text}{rest}"
    cursor = Cursor(script, tokenize(script), 2)
    assert read_type(cursor) == plain(type_)
    assert cursor.span_from(9).end == 9 + len(text)


@given(st.text("()<>,.[]'\"`: -/*aAint0129not nullcommentrecordarraymapenum", max_size=40))
@examples(40)
def test_no_text_raises_anything_but_our_own_errors(text: str) -> None:
    try:
        found = parse_type(text)
    except HeadgateError as error:
        assert error.diagnostic(text).line is not None  # noqa: PT017
    else:
        assert parse_type(print_type(found, full=True)) == found


PRINTED = {
    "bigint": Bigint(),
    "decimal(10,2)": Decimal(10, 2),
    "bytes(16)": Bytes(16),
    "record(a integer, b text not null)": Record((Field("a", Integer()), Field("b", Text(), nullable=False))),
    "array<text>": Array(Text()),
    "map<text, integer not null>": Map(Integer(), value_nullable=False),
    "enum('a', 'it''s')": Enum(("a", "it's")),
    'shop."Order Line"': Named(("shop", "Order Line")),
    '"text"': Named(("text",)),
    'record("select" date, Mixed time)': parse_type("record(`select` date, Mixed time)"),
}


@pytest.mark.parametrize(("text", "type_"), PRINTED.items())
def test_the_printed_form_is(text: str, type_: Type) -> None:
    assert print_type(type_) == text


def test_the_full_form_puts_names_and_docs_before_the_parenthesis() -> None:
    size = Enum(("s", "m"), name="shop.Size", default="s", doc="it fits")
    order = Record((Field("id", Bigint(), False, "from the till"), Field("size", size)), "shop.Order", "one order")
    assert print_type(order, full=True) == (
        "record \"shop.Order\" comment 'one order' (id bigint not null comment 'from the till', "
        "size enum \"shop.Size\" default 's' comment 'it fits' ('s', 'm'))"
    )


SPELLINGS = {
    "BOOL": Boolean(), "int": Integer(), "i32": Integer(), "long": Bigint(), "i64": Bigint(), "f32": Real(),
    "f64": Double(), "float8": Double(), "Double  Precision": Double(), "numeric": Decimal(38, 18),
    "numeric(7)": Decimal(7, 0), "string": Text(), "varchar": Text(), "character varying": Text(), "bytea": Bytes(),
    "jsonb": Json(), "any": Json(), "timestamp with time zone": TimestampTz(),
    "timestamp without time zone": Timestamp(), "time without time zone": Time(), "timestamp(6)": Timestamp(),
    "int[]": Array(Integer()), "text [ ] []": Array(Array(Text())), "list<int>": Array(Integer()),
    "point list": Array(Named(("point",))), "map<varchar, f64>": Map(Double()), "map<int>": Map(Integer()),
    "struct<a: int, b string>": Record((Field("a", Integer()), Field("b", Text()))),
    "OBJECT (a f64 NOT NULL, b i64 NULL)": Record((Field("a", Double(), False), Field("b", Bigint()))),
    "int -- a comment\n /* another */": Integer(),
    "int /* one /* inside */ another */": Integer(),
    "struct<>": Record(()),
    r"enum(E'\u00e4', $$it's$$)": Enum(("ä", "it's")),
    "`my type`": Named(("my type",)),
}  # fmt: skip


@pytest.mark.parametrize(("text", "type_"), SPELLINGS.items())
def test_is_read_as(text: str, type_: Type) -> None:
    assert parse_type(text) == type_


WRONG = {
    "": "SCH-0101: expected a type, found the end of the text @0",
    "array<int": 'SCH-0101: expected ">", found the end of the text @9',
    "record(a)": 'SCH-0101: expected a type, found ")" @8',
    "record(a int b text)": 'SCH-0101: expected "," or ")", found "b" @13',
    "record(a int not)": 'SCH-0101: expected NULL, found ")" @16',
    "int x": 'SCH-0101: expected the end of the type, found "x" @4',
    "map<int, text>": 'SCH-0101: expected text, the type of every map\'s key, found "int" @4',
    "enum()": 'SCH-0101: expected a string in single quotes, found ")" @5',
    "enum('a', 'a')": 'SCH-0107: symbol "a" occurs more than once in the enum @10',
    "enum default 'b' ('a')": 'SCH-0108: default "b" is not a symbol of the enum @5',
    "record(a int, a text)": 'SCH-0106: field "a" occurs more than once in the record at $ @14',
    "decimal(39,2)": "SCH-0104: decimal(39,2) is not a valid type @0",
    "decimal(2,3)": "SCH-0104: decimal(2,3) is not a valid type @0",
    "decimal(1,1,1)": 'SCH-0101: expected ")", found "," @11',
    "bytes(0)": "SCH-0105: bytes(0) is not a valid type @0",
    "varchar(20)": 'SCH-0109: type "varchar(20)" has a limit that Headgate does not enforce @0',
    "timestamp(3)": 'SCH-0109: type "timestamp(3)" has a limit that Headgate does not enforce @0',
    "decimal(7x)": 'SCH-0101: expected a whole number, found "7x" @8',
}


@pytest.mark.parametrize(("text", "expected"), WRONG.items())
def test_what_is_wrong_is_said_with_its_place(text: str, expected: str) -> None:
    with pytest.raises(SchemaError) as raised:
        parse_type(text)
    span = raised.value.span
    assert span is not None
    assert f"{raised.value} @{span.start}" == expected


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("float", 'Did you mean "real" or "double"?'),
        ("smallint", 'Did you mean "integer"?'),
        ("varchar(20)", "Write varchar without it."),
    ],
)
def test_the_hint_says_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(SchemaError) as raised:
        parse_type(text)
    assert raised.value.hint() == hint


def test_a_greater_or_equal_sign_may_follow_the_type_that_its_first_character_closes() -> None:
    cursor = Cursor(text := "array<int>=b", tokenize(text))
    assert read_type(cursor) == Array(Integer())
    assert cursor.at("=", "B")


def test_a_text_that_is_not_closed_is_an_error_of_the_lexer() -> None:
    with pytest.raises(UnterminatedIdentifier):
        parse_type('"open')


@pytest.mark.parametrize("name", ["", "\x00", "\ud800", "a\nb", "--"])
def test_every_name_of_a_foreign_schema_can_be_printed_and_read(name: str) -> None:
    type_ = Record((Field(name, Enum((name,), name=name or None), doc=name),))
    assert parse_type(print_type(type_, full=True)) == type_


def test_a_name_that_is_not_built_in_is_a_type_of_the_catalog() -> None:
    assert parse_type("public.point[]") == Array(Named(("public", "point")))


@pytest.mark.parametrize(
    "text", ["array<" * 500 + "int" + ">" * 500, "int" + "[]" * 500, "record(a " * 500 + "int" + ")" * 500]
)
def test_five_hundred_levels_are_refused_and_do_not_overflow(text: str) -> None:
    with pytest.raises(TypeTooDeep):
        parse_type(text)


@pytest.mark.parametrize(("opening", "closing"), [("record(a ", ")"), ("array<", ">"), ("map<text, ", ">")])
def test_the_deepest_type_can_be_printed_compared_hashed_and_pickled(opening: str, closing: str) -> None:
    text = opening * MAX_DEPTH + "integer" + closing * MAX_DEPTH
    type_ = parse_type(text)
    assert depth(type_) == MAX_DEPTH
    assert print_type(type_, full=True) == text
    assert plain(type_) == type_
    assert hash(type_) == hash(pickle.loads(pickle.dumps(type_)))


def test_a_named_type_remembers_which_parts_were_in_quotes() -> None:
    named = parse_type('public."Point"')
    assert named == Named(("public", "Point"))
    assert isinstance(named, Named)
    assert named.quoted == (False, True)
    assert print_type(named) == 'public."Point"'
    assert print_type(parse_type('"point"')) == '"point"'

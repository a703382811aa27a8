"""Hypothesis strategies for types and for values of a type, shared by every test of schemas.

`types()` never makes what no format may be asked to hold: empty enums, two fields of one name in a record, invalid
decimals. `named=True` adds types of the catalog by name, which most formats refuse until they are resolved.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import struct
from typing import assert_never

from hypothesis import strategies as st

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
    Scalar,
    Text,
    Time,
    Timestamp,
    TimestampTz,
    Type,
    Uuid,
)

_ANY_TEXT = st.characters(exclude_categories=["Cs"])
_NO_ARGUMENTS: list[Scalar] = [
    Boolean(), Integer(), Bigint(), Real(), Double(), Text(), Date(), Time(), Timestamp(), TimestampTz(), Uuid(), Json()
]  # fmt: skip


def simple_names() -> st.SearchStrategy[str]:
    """Names that every format takes as they are."""
    return st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)


def names() -> st.SearchStrategy[str]:
    """Names as people write them: mixed case, reserved words, blanks, quotes, other scripts, never empty."""
    odd = st.sampled_from(
        ["select", "Not", "a b", 'say "hi"', "tick`", "naïve", "注文", "1st", "a.b", "a-b", "$x", "text"]
    )
    return simple_names() | st.from_regex(r"[A-Z][A-Za-z0-9]{0,6}", fullmatch=True) | odd


def docs() -> st.SearchStrategy[str | None]:
    return st.none() | st.sampled_from(["a doc", "it's", "two\nlines", "ünïcode ✓", ""])


def full_names() -> st.SearchStrategy[str | None]:
    """Full names of records and enums, valid in Avro and Protobuf."""
    return st.none() | st.from_regex(r"([a-z]{1,4}\.){0,2}[A-Z][a-z]{0,4}", fullmatch=True)


def decimals() -> st.SearchStrategy[Decimal]:
    return st.integers(1, 38).flatmap(lambda p: st.builds(Decimal, st.just(p), st.integers(0, p)))


@st.composite
def enums(draw: st.DrawFn, *, named: bool = True) -> Enum:
    symbols = tuple(
        draw(
            st.lists(
                st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,4}", fullmatch=True),
                min_size=1,
                max_size=4,
                unique=True,
            )
        )
    )
    default = draw(st.none() | st.sampled_from(symbols))
    return Enum(symbols, draw(full_names()) if named else None, default, draw(docs()))


def scalars() -> st.SearchStrategy[Scalar]:
    lengths = st.none() | st.integers(1, 32)
    return st.sampled_from(_NO_ARGUMENTS) | decimals() | st.builds(Bytes, lengths) | enums()


def fields(types_: st.SearchStrategy[Type] | None = None) -> st.SearchStrategy[Field]:
    return st.builds(Field, names(), types() if types_ is None else types_, st.booleans(), docs())


def records(
    types_: st.SearchStrategy[Type] | None = None, *, min_fields: int = 0, max_fields: int = 4
) -> st.SearchStrategy[Record]:
    """Records; their field names differ, but may do so only in case."""
    lists = st.lists(fields(types_), min_size=min_fields, max_size=max_fields, unique_by=lambda f: f.name)
    return st.builds(Record, lists.map(tuple), full_names(), docs())


def types(
    *, named: bool = False, leaves: st.SearchStrategy[Type] | None = None, max_leaves: int = 8
) -> st.SearchStrategy[Type]:
    start: st.SearchStrategy[Type] = scalars() if leaves is None else leaves
    if named:
        start = start | st.builds(Named, st.lists(names(), min_size=1, max_size=3).map(tuple))
    return st.recursive(start, _composites, max_leaves=max_leaves)


def _composites(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    return st.builds(Array, inner, st.booleans()) | st.builds(Map, inner, st.booleans()) | records(inner, max_fields=3)


def values_of(type_: Type) -> st.SearchStrategy[object]:
    """Canonical Python values of a type (`headgate.schema.values`), its extremes included."""
    match type_:
        case Array(element, nullable):
            return st.lists(_place(element, nullable), max_size=3)
        case Map(value, nullable):
            return st.dictionaries(st.text(_ANY_TEXT, max_size=4), _place(value, nullable), max_size=3)
        case Record():
            return st.fixed_dictionaries({f.name: _place(f.type, f.nullable) for f in type_.fields})
        case Named():
            raise ValueError("a named type has values only once it is resolved")
        case _:
            return _scalar_values(type_)


def _place(type_: Type, nullable: bool) -> st.SearchStrategy[object]:
    return st.none() | values_of(type_) if nullable else values_of(type_)


def _scalar_values(type_: Scalar) -> st.SearchStrategy[object]:
    match type_:
        case Boolean():
            return st.booleans()
        case Integer():
            return st.integers(-(2**31), 2**31 - 1)
        case Bigint():
            return st.integers(-(2**63), 2**63 - 1)
        case Real():
            return st.floats(width=32, allow_nan=False, allow_infinity=False).map(_single)
        case Double():
            return st.floats(allow_nan=False, allow_infinity=False)
        case Decimal(precision, scale):
            return st.integers(-(10**precision) + 1, 10**precision - 1).map(lambda n: exact(n, scale))
        case Text():
            return st.text(_ANY_TEXT, max_size=12)
        case Bytes(length):
            return st.binary(max_size=12) if length is None else st.binary(min_size=length, max_size=length)
        case Date():
            return st.dates()
        case Time():
            return st.times()
        case Timestamp():
            return st.datetimes()
        case TimestampTz():
            return st.datetimes(timezones=st.just(dt.UTC))
        case Uuid():
            return st.uuids()
        case Json():
            # JSON's null at a place is no value there, so it is none of json's either.
            some = json_values().filter(lambda value: value is not None)
            return some.map(lambda value: json.dumps(value, ensure_ascii=False))
        case Enum(symbols):
            return st.sampled_from(symbols)
        case _:
            assert_never(type_)


def json_values() -> st.SearchStrategy[object]:
    """JSON values, parsed."""
    leaves: st.SearchStrategy[object] = st.none() | st.booleans() | st.integers() | st.text(_ANY_TEXT, max_size=5)
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(_ANY_TEXT, max_size=3), inner, max_size=3),
        max_leaves=5,
    )


def exact(unscaled: int, scale: int) -> decimal.Decimal:
    """The decimal with these digits, without a context that could round."""
    digits = tuple(int(c) for c in str(abs(unscaled)))
    return decimal.Decimal((int(unscaled < 0), digits, -scale))


def _single(value: float) -> float:
    single: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return single

"""Functions that give rows: which columns they have."""

from __future__ import annotations

from headgate.schema.types import Array, Bigint, Integer, Map, Record, Text
from headgate.sql.query.relation import Column
from headgate.sql.query.typing import Typed


def columns_of(function: str, argument: Typed, outer: bool = False) -> tuple[Column, ...]:
    """The columns of a function that gives rows, or none if they are not known. ``outer``: one row even for none."""
    outer = outer or function.endswith("_outer")
    match function.removesuffix("_outer"), argument.type:
        case "explode", Array(element, nullable):
            return (Column("col", element, nullable or outer),)
        case "explode", Map(value, nullable):
            return (Column("key", Text(), outer), Column("value", value, nullable or outer))
        case "posexplode", Array(element, nullable):
            return (Column("pos", Integer(), outer), Column("col", element, nullable or outer))
        case "posexplode", Map(value, nullable):
            return (
                Column("pos", Integer(), outer),
                Column("key", Text(), outer),
                Column("value", value, nullable or outer),
            )
        case "inline", Array(Record(fields), nullable):
            return tuple(Column(f.name, f.type, f.nullable or nullable or outer, f.doc) for f in fields)
        case "range", _:
            return (Column("id", Bigint(), outer),)
        case _:
            return ()

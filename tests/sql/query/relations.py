"""Two relations that the tests of queries read, with a column of every kind of type."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.errors import similar_names
from headgate.schema.types import (
    Array,
    Bigint,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Double,
    Field,
    Integer,
    Json,
    Map,
    Named,
    Real,
    Record,
    Text,
    Timestamp,
    TimestampTz,
    Type,
)
from headgate.sql.errors import UnknownAlias, UnsupportedQuery
from headgate.sql.query.scope import Column, Relation
from headgate.sql.query.tree import ColumnRef, RelationName
from headgate.text.cursor import Identifier

POINT = Record((Field("x", Integer()), Field("y", Integer())))
KEY = Record((Field("f", Integer(), False), Field("g", Record((Field("h", Text(), doc="its height"),)))))

ORDERS = Relation(
    RelationName("orders", 1),
    "rel_1",
    (
        Column("id", Bigint(), False, "the order's number", ColumnRef(1, 1)),
        Column("price", Double(), True, "in EUR", ColumnRef(1, 2)),
        Column("Name", Text(), False),
        Column("n", Integer()),
        Column("r", Real()),
        Column("d", Decimal(10, 2)),
        Column("paid", Boolean(), False),
        Column("raw", Bytes()),
        Column("day", Date()),
        Column("ts", TimestampTz(), False),
        Column("local", Timestamp()),
        Column("k", KEY),
        Column("arr", Array(Integer())),
        Column("tags", Array(Text(), False), False),
        Column("m", Map(Double())),
        Column("j", Json()),
    ),
    hidden=(Column("_meta", Text(), False),),
    hints=(("customer", "The source drops its key: add INCLUDE KEY to it."),),
)
CUSTOMERS = Relation(RelationName("customers", 2), "rel_2", (Column("id", Bigint(), False), Column("city", Text())))
BOTH_CASES = Relation(RelationName("cases", 3), "rel_3", (Column("a", Integer()), Column("A", Text())))

RELATIONS = {relation.name.name: relation for relation in (ORDERS, CUSTOMERS, BOTH_CASES)}


def find_relation(parts: Sequence[Identifier]) -> Relation:
    name = parts[-1].name
    if name.lower() not in RELATIONS:
        raise UnknownAlias(name, similar_names(name, RELATIONS))
    return RELATIONS[name.lower()]


def resolve(named: Named) -> Type:
    if named.parts != ("point",):
        raise UnsupportedQuery(f"type {named.parts[-1]}")
    return POINT


SMALL = (
    Column("id", Bigint(), False),
    Column("a", Integer()),
    Column("b", Text()),
    Column("tags", Array(Text())),
    Column("m", Map(Integer())),
)


def find_small(parts: Sequence[Identifier]) -> Relation:
    """Any relation, with a few columns."""
    name = parts[-1].name
    return Relation(RelationName(name), name, SMALL)

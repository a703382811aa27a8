"""What a query reads and what it gives: relations with typed columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from headgate.errors import HeadgateError, Span
from headgate.schema.types import Type


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation, or of a query's result. ``type`` is None where only Spark can tell it.

    ``null`` marks a column of a subquery that holds nothing but NULL, and takes the type that it meets.
    """

    name: str
    type: Type | None
    nullable: bool = True
    doc: str | None = None
    origin: tuple[str, str] | None = None  # relation and column that it is a plain projection of
    null: bool = False


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation as a query sees it.

    ``spark_name`` is the name of the view under which Spark knows it, ``hidden`` are columns that can be named but
    are no part of `*`, ``advice`` maps a name that is no column to what to do about it. ``called`` is what the query
    calls it without an alias; where it is empty, the last part of its name. ``withheld`` is what `*` ought to give and
    cannot: the error for each such name.
    """

    name: str
    spark_name: str
    columns: tuple[Column, ...]
    hidden: tuple[Column, ...] = ()
    advice: tuple[tuple[str, str], ...] = ()
    called: str = ""
    withheld: tuple[tuple[str, HeadgateError], ...] = ()


class NamePart(NamedTuple):
    name: str
    quoted: bool


FindRelation: TypeAlias = Callable[[tuple[NamePart, ...]], Relation]


@dataclass(frozen=True, slots=True)
class Mention:
    """A place where a query names a relation: in FROM, or before a column (``of`` is then the place in FROM).

    What goes by an alias, and what WITH defines, is not mentioned: only the names of relations themselves are.
    """

    span: Span
    parts: tuple[NamePart, ...]
    relation: str
    of: Span | None = None


@dataclass(frozen=True, slots=True)
class WrittenType:
    """A place where a query writes a type."""

    span: Span
    type: Type


@dataclass(frozen=True, slots=True)
class AnalysedQuery:
    """A query that is known to be sound, as far as can be told without Spark.

    ``untyped`` names the functions whose result type is not in our table: their columns have no type yet.
    ``stateless`` is true if every output row depends on one input row of one relation alone. ``mentions`` and ``types``
    tell in the order of the text where it names what the catalog holds.
    """

    columns: tuple[Column, ...]
    reads: tuple[str, ...]
    spark_sql: str
    stateless: bool
    untyped: tuple[str, ...] = ()
    mentions: tuple[Mention, ...] = ()
    types: tuple[WrittenType, ...] = ()

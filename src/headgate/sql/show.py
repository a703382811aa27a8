"""SHOW, DESCRIBE, EXPLAIN, and REPLAY QUARANTINE, which acts on what SHOW QUARANTINE lists."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from headgate.sql import statement as s
from headgate.sql.errors import NotExplainable
from headgate.sql.objects import kind, kind_before_name, longest_first
from headgate.sql.queries import STARTS, ShowSearchPath
from headgate.sql.registry_formats import Side, side
from headgate.sql.sinks import CreateSink, create_sink
from headgate.text.cursor import Cursor

Listing: TypeAlias = Literal[
    "DATABASES", "SCHEMAS", "SECRETS", "CONNECTIONS", "SOURCES", "TYPES", "VIEWS", "MATERIALIZED VIEWS", "SINKS",
    "SINK POLICIES", "STREAMS", "TABLES", "COLLECTIONS", "CAPTURES", "MATERIALIZATIONS", "OBJECTS", "COMMENTS",
    "DEPENDENCIES", "TASKS", "EVENTS", "HISTORY", "QUARANTINE",
]  # fmt: skip
# The kind of objects that a listing shows; the other listings show system tables.
LISTED_KINDS = {re.sub("Y$", "IE", kind.words) + "S": kind for kind in s.Kind}
CollectionSchema: TypeAlias = Literal["WRITE", "READ", "INFERRED"]


@dataclass(frozen=True, slots=True)
class ShowObjects(s.Statement):
    """Lists objects or rows of a system table.

    ``within``: only those of this schema. ``subject``: only those about this object. ``like``: a pattern for the name.
    """

    words = "SHOW"
    what: Listing
    within: s.ObjectName | None = None
    subject: s.ObjectName | None = None
    like: str | None = None

    def sql(self) -> str:
        return s.words(
            f"SHOW {self.what}",
            f"FROM {s.print_name(self.within)}" if self.within is not None else "",
            f"FOR {s.print_name(self.subject)}" if self.subject is not None else "",
            f"LIKE {s.print_string(self.like)}" if self.like is not None else "",
        )


@dataclass(frozen=True, slots=True)
class ShowCreate(s.Statement):
    """SHOW CREATE kind name: the statement that creates the object as it is now."""

    words = "SHOW CREATE"
    kind: s.Kind
    name: s.ObjectName

    def sql(self) -> str:
        return f"SHOW CREATE {self.kind.words} {s.print_name(self.name)}"


@dataclass(frozen=True, slots=True)
class AboutObject(s.Statement):
    """A statement of the form ``… FOR [kind] name``."""

    name: s.ObjectName
    kind: s.Kind | None = None

    def sql(self) -> str:
        return s.words(f"{self.words} FOR", self.kind.words if self.kind else "", s.print_name(self.name))


@dataclass(frozen=True, slots=True)
class ShowLineage(AboutObject):
    """SHOW LINEAGE FOR name: the dependencies of the object."""

    words = "SHOW LINEAGE"


@dataclass(frozen=True, slots=True)
class ShowSchemaHistory(AboutObject):
    """SHOW SCHEMA HISTORY FOR name: the versions of its schema."""

    words = "SHOW SCHEMA HISTORY"


@dataclass(frozen=True, slots=True)
class ReplayQuarantine(AboutObject):
    """REPLAY QUARANTINE FOR name: process again the records that were set aside."""

    words = "REPLAY QUARANTINE"


@dataclass(frozen=True, slots=True)
class ShowCollectionSchema(s.Statement):
    """SHOW WRITE, READ or INFERRED SCHEMA FOR COLLECTION name."""

    which: CollectionSchema
    name: s.ObjectName

    @property
    def words(self) -> str:
        return f"SHOW {self.which} SCHEMA"

    def sql(self) -> str:
        return f"SHOW {self.which} SCHEMA FOR COLLECTION {s.print_name(self.name)}"


@dataclass(frozen=True, slots=True)
class Describe(s.Statement):
    """DESCRIBE name: its columns and, with EXTENDED, all that is known of the object."""

    words = "DESCRIBE"
    name: s.ObjectName
    kind: s.Kind | None = None
    extended: bool = False

    def sql(self) -> str:
        return s.words(
            "DESCRIBE",
            "EXTENDED" if self.extended else "",
            self.kind.words if self.kind else "",
            s.print_name(self.name),
        )


@dataclass(frozen=True, slots=True)
class Explain(s.Statement):
    """Shows how a query, or the query of a statement, would run."""

    words = "EXPLAIN"
    statement: s.Statement

    def sql(self) -> str:
        return f"EXPLAIN {self.statement.sql()}"


@dataclass(frozen=True, slots=True)
class ExplainObject(s.Statement):
    """Shows how an existing object runs."""

    kind: s.Kind
    name: s.ObjectName

    @property
    def words(self) -> str:
        return f"EXPLAIN {self.kind.words}"

    def sql(self) -> str:
        return f"EXPLAIN {self.kind.words} {s.print_name(self.name)}"


@dataclass(frozen=True, slots=True)
class ExplainSchema(s.Statement):
    """Shows the schema that a sink publishes or would publish."""

    words = "EXPLAIN SCHEMA"
    side: Side
    sink: s.ObjectName | CreateSink

    def sql(self) -> str:
        target = f"SINK {s.print_name(self.sink)}" if isinstance(self.sink, s.ObjectName) else self.sink.sql()
        return f"EXPLAIN {self.side} SCHEMA FOR {target}"


@dataclass(frozen=True, slots=True)
class ExplainChange(s.Statement):
    """Shows what ALTER or CREATE OR REPLACE would do to all objects that depend on this one."""

    statement: s.Statement

    @property
    def words(self) -> str:
        return f"EXPLAIN CHANGE {self.statement.words}"

    def sql(self) -> str:
        return f"EXPLAIN CHANGE {self.statement.sql()}"


@dataclass(frozen=True, slots=True)
class ExplainSubjectChange(s.Statement):
    """Shows what a new schema of a registry's subject would do."""

    words = "EXPLAIN CHANGE SUBJECT"
    subject: str
    schema: str

    def sql(self) -> str:
        return f"EXPLAIN CHANGE SUBJECT {s.print_string(self.subject)} TO {s.print_string(self.schema)}"


_SCHEMAS: tuple[CollectionSchema, ...] = ("WRITE", "READ", "INFERRED")

_LISTINGS: dict[str, Listing] = {listing: listing for listing in get_args(Listing)}
# A phrase must be tried before its own beginning.
_LISTING_PHRASES = longest_first(tuple(_LISTINGS))


def show(cursor: Cursor) -> s.Statement:
    """Read SHOW. The longer forms are tried before the listings."""
    cursor.expect("SHOW")
    if cursor.take("CREATE"):
        kind_ = kind(cursor)
        return ShowCreate(kind_, s.object_name(cursor))
    if cursor.take("LINEAGE FOR"):
        kind_or_none = kind_before_name(cursor)
        return ShowLineage(s.object_name(cursor), kind_or_none)
    if cursor.take("SCHEMA HISTORY FOR"):
        kind_or_none = kind_before_name(cursor)
        return ShowSchemaHistory(s.object_name(cursor), kind_or_none)
    if cursor.take("SEARCH_PATH"):
        return ShowSearchPath()
    which = cursor.choose(*_SCHEMAS)
    if which is not None:
        cursor.expect("SCHEMA FOR COLLECTION")
        return ShowCollectionSchema(which, s.object_name(cursor))
    return _show_objects(cursor)


def _show_objects(cursor: Cursor) -> s.Statement:
    """Read a listing. SHOW SINK POLICY with a name shows one policy, without a name all of them."""
    listing = cursor.choose(*_LISTING_PHRASES)
    if listing is not None:
        return _listing(cursor, _LISTINGS[listing])
    if cursor.take("SINK POLICY"):
        return (
            ShowObjects("SINK POLICIES") if cursor.at_end() else ShowCreate(s.Kind.SINK_POLICY, s.object_name(cursor))
        )
    raise cursor.unexpected()


def _listing(cursor: Cursor, listing: Listing) -> ShowObjects:
    within = s.object_name(cursor, most=2) if cursor.take("FROM") or cursor.take("IN") else None
    subject = s.object_name(cursor) if cursor.take("FOR") else None
    like = cursor.string() if cursor.take("LIKE") else None
    return ShowObjects(listing, within, subject, like)


def describe(cursor: Cursor) -> Describe:
    cursor.expect("DESCRIBE")
    extended = cursor.at("EXTENDED") and cursor.at_name(1)
    if extended:
        cursor.step()
    kind_ = kind_before_name(cursor)
    if kind_ is None and not extended:
        cursor.expecting("EXTENDED")
    name = s.object_name(cursor)
    return Describe(name, kind_, cursor.take("EXTENDED") or extended)


def replay_quarantine(cursor: Cursor) -> ReplayQuarantine:
    cursor.expect("REPLAY QUARANTINE FOR")
    kind_ = kind_before_name(cursor)
    return ReplayQuarantine(s.object_name(cursor), kind_)


ParseStatement = Callable[[Cursor], s.Statement]


def explain(cursor: Cursor, statement: ParseStatement) -> s.Statement:
    """Read EXPLAIN. ``statement`` is the parser of a nested statement; it is passed in, because that module imports
    this one."""
    cursor.expect("EXPLAIN")
    if cursor.at("KEY", "SCHEMA") or cursor.at("VALUE", "SCHEMA"):
        return _schema(cursor)
    if cursor.take("CHANGE"):
        return _change(cursor, statement)
    if cursor.token.word in (*STARTS, "CREATE", "INSERT"):
        return Explain(statement(cursor))
    for start in ("SELECT", "CREATE", "INSERT", "KEY SCHEMA", "VALUE SCHEMA"):
        cursor.expecting(start)
    return ExplainObject(kind(cursor), s.object_name(cursor))


def _schema(cursor: Cursor) -> ExplainSchema:
    of = side(cursor)
    cursor.expect("SCHEMA")
    cursor.take("AS JSON")
    cursor.expect("FOR")
    if cursor.take("SINK"):
        return ExplainSchema(of, s.object_name(cursor))
    return ExplainSchema(of, _create_sink(cursor))


def _create_sink(cursor: Cursor) -> CreateSink:
    start = cursor.token.start
    cursor.expect("CREATE SINK")
    sink = create_sink(cursor)
    return dataclasses.replace(sink, span=cursor.span_from(start))


def _change(cursor: Cursor, statement: ParseStatement) -> s.Statement:
    """Read what EXPLAIN CHANGE explains."""
    if cursor.take("SUBJECT"):
        subject = cursor.string()
        cursor.expect("TO")
        return ExplainSubjectChange(subject, cursor.string())
    first = cursor.token
    if not (cursor.at("ALTER") or cursor.at("CREATE", "OR", "REPLACE")):
        expected = "an ALTER, a CREATE OR REPLACE or SUBJECT"
        raise NotExplainable("EXPLAIN CHANGE", expected).at(first.span)
    return ExplainChange(statement(cursor))

"""CREATE SOURCE, and ALTER SOURCE n ACCEPT SCHEMA CHANGE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.sql import options as o, statement as s
from headgate.sql.connections import Kafka, ReadOptions, kafka
from headgate.sql.errors import RepeatedClause
from headgate.sql.formats import Formats, formats
from headgate.sql.objects import Target
from headgate.sql.registry_formats import ReadFormatOptions
from headgate.text.cursor import Cursor, Identifier

Metadata: TypeAlias = Literal["KEY", "PARTITION", "OFFSET", "TIMESTAMP", "TOPIC", "HEADERS"]


@dataclass(frozen=True, slots=True)
class IncludeMetadata:
    """A column with metadata of the record."""

    what: Metadata
    alias: Identifier | None = None

    def sql(self) -> str:
        return s.words(self.what, f"AS {s.print_identifier(self.alias)}" if self.alias is not None else "")


@dataclass(frozen=True, slots=True)
class IncludeHeader:
    """One header by its key, as text or, with ``as_bytes``, as bytes."""

    header: str
    alias: Identifier
    as_bytes: bool = False

    def sql(self) -> str:
        return s.words(
            f"HEADER {s.print_string(self.header)} AS {s.print_identifier(self.alias)}",
            "BYTES" if self.as_bytes else "",
        )


Include: TypeAlias = IncludeMetadata | IncludeHeader


@dataclass(frozen=True, slots=True)
class NoneEnvelope:
    """Every record is a new row."""

    def sql(self) -> str:
        return "NONE"


@dataclass(frozen=True, slots=True)
class UpsertEnvelope:
    """``key``: columns of the value that form the key instead of the record's key. ``inline_errors_as`` needs
    ``inline_errors``."""

    key: tuple[Identifier, ...] = ()
    inline_errors: bool = False
    inline_errors_as: Identifier | None = None

    def sql(self) -> str:
        items = []
        if self.key:
            items.append(f"KEY {s.print_identifiers(self.key)}")
        if self.inline_errors:
            alias = f"AS {s.print_identifier(self.inline_errors_as)}" if self.inline_errors_as is not None else ""
            items.append(s.words("VALUE DECODING ERRORS = INLINE", alias))
        return s.words("UPSERT", s.block(items) if items else "")


@dataclass(frozen=True, slots=True)
class DebeziumEnvelope:
    """Every record is a change that Debezium captured: a row before and after it."""

    def sql(self) -> str:
        return "DEBEZIUM"


SourceEnvelope: TypeAlias = NoneEnvelope | UpsertEnvelope | DebeziumEnvelope


@dataclass(frozen=True, slots=True)
class SourceOptions(o.Options, owner="the source"):
    """Without ON SCHEMA CHANGE, the format decides."""

    on_schema_change: o.OnSchemaChange | None = o.option()
    on_error: o.OnError = o.option("HALT", aliases=("ON INVALID",))


@dataclass(frozen=True, slots=True)
class CreateSource(s.Create):
    """CREATE SOURCE … FROM KAFKA."""

    kind = s.Kind.SOURCE
    kafka: Kafka[ReadOptions]
    formats: Formats
    columns: tuple[Identifier, ...] = ()
    include: tuple[Include, ...] = ()
    envelope: SourceEnvelope | None = None
    with_options: SourceOptions = SourceOptions()

    def sql(self) -> str:
        return s.clauses(
            s.words(self.head(), s.print_identifiers(self.columns) if self.columns else ""),
            f"FROM {self.kafka.sql()}",
            self.formats.sql(),
            "INCLUDE " + ", ".join([item.sql() for item in self.include]) if self.include else "",
            f"ENVELOPE {self.envelope.sql()}" if self.envelope is not None else "",
            o.print_with_options(self.with_options),
        )


@dataclass(frozen=True, slots=True)
class AcceptSchemaChange(s.Alter):
    """ALTER SOURCE … ACCEPT SCHEMA CHANGE: follow a schema that FOLLOW would not follow by itself."""

    with_options: o.ChangeOptions = o.ChangeOptions()

    def sql(self) -> str:
        return s.words(self.head(), "ACCEPT SCHEMA CHANGE", o.print_with_options(self.with_options))


@dataclass(frozen=True, slots=True)
class RenameColumn(s.Alter):
    """ALTER SOURCE … RENAME COLUMN a TO b."""

    column: Identifier
    new_name: Identifier

    def sql(self) -> str:
        column, new = s.print_identifier(self.column), s.print_identifier(self.new_name)
        return s.words(self.head(), f"RENAME COLUMN {column} TO {new}")


# The order of the choices in errors.
_METADATA: tuple[Metadata, ...] = ("KEY", "PARTITION", "OFFSET", "TIMESTAMP", "TOPIC", "HEADERS")


def create_source(cursor: Cursor) -> CreateSource:
    exists = s.if_not_exists(cursor)
    name = s.object_name(cursor)
    columns = s.optional_columns(cursor)
    cursor.expect("FROM KAFKA")
    return CreateSource(
        name=name,
        columns=columns,
        kafka=kafka(cursor, ReadOptions),
        formats=formats(cursor, ReadFormatOptions),
        include=_include(cursor),
        envelope=_envelope(cursor),
        with_options=o.with_options(cursor, SourceOptions),
        if_not_exists=exists,
    )


def _include(cursor: Cursor) -> tuple[Include, ...]:
    """Read the metadata columns. Only KEY may not be repeated, because it decides the columns of the key."""
    if not cursor.take("INCLUDE"):
        return ()
    found: list[Include] = []
    while True:
        start = cursor.token
        item = _include_item(cursor)
        if isinstance(item, IncludeMetadata) and item.what == "KEY" and _has_key(found):
            raise RepeatedClause("INCLUDE KEY").at(start.span)
        found.append(item)
        if not cursor.take(","):
            return tuple(found)


def _has_key(found: list[Include]) -> bool:
    return any(isinstance(item, IncludeMetadata) and item.what == "KEY" for item in found)


def _include_item(cursor: Cursor) -> Include:
    """Read one metadata column."""
    what = cursor.choose(*_METADATA)
    if what is not None:
        return IncludeMetadata(what, cursor.identifier() if cursor.take("AS") else None)
    cursor.expect("HEADER")
    header = cursor.string()
    cursor.expect("AS")
    return IncludeHeader(header, cursor.identifier(), cursor.take("BYTES"))


def _envelope(cursor: Cursor) -> SourceEnvelope | None:
    if not cursor.take("ENVELOPE"):
        return None
    match cursor.choose("NONE", "UPSERT", "DEBEZIUM"):
        case "NONE":
            return NoneEnvelope()
        case "UPSERT":
            return _upsert(cursor) if cursor.at("(") else UpsertEnvelope()
        case "DEBEZIUM":
            return DebeziumEnvelope()
        case _:
            raise cursor.unexpected()


def _upsert(cursor: Cursor) -> UpsertEnvelope:
    """Read the options of ENVELOPE UPSERT."""
    key: tuple[Identifier, ...] = ()
    inline, alias = False, None
    for _ in cursor.items():
        start = cursor.token
        if not key and cursor.take("KEY"):
            key = cursor.identifiers()
        elif not inline and cursor.take("VALUE DECODING ERRORS"):
            cursor.take("=")
            inline, alias = True, _inline(cursor)
        elif (key and cursor.at("KEY")) or (inline and cursor.at("VALUE")):
            raise RepeatedClause(start.word).at(start.span)
        else:
            raise cursor.unexpected()
    return UpsertEnvelope(key, inline, alias)


def _inline(cursor: Cursor) -> Identifier | None:
    """``INLINE [AS n]``, also in parentheses."""
    enclosed = cursor.take("(")
    cursor.expect("INLINE")
    alias = cursor.identifier() if cursor.take("AS") else None
    if enclosed:
        cursor.expect(")")
    return alias


def accept_schema_change(cursor: Cursor, target: Target) -> AcceptSchemaChange | None:
    if not cursor.take("ACCEPT SCHEMA CHANGE"):
        return None
    change = o.with_options(cursor, o.ChangeOptions)
    return AcceptSchemaChange(target.kind, target.name, change, if_exists=target.if_exists)


def rename_column(cursor: Cursor, target: Target) -> RenameColumn | None:
    if not cursor.take("RENAME COLUMN"):
        return None
    column = cursor.identifier()
    cursor.expect("TO")
    return RenameColumn(target.kind, target.name, column, cursor.identifier(), if_exists=target.if_exists)

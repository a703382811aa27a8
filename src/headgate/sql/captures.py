"""Collections, and the captures that fill them: CREATE and ALTER COLLECTION and CAPTURE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.sql import options as o, statement as s
from headgate.sql.connections import Kafka, ReadOptions, kafka
from headgate.sql.errors import RepeatedClause
from headgate.sql.formats import Format, Formats, format_, formats
from headgate.sql.objects import Target
from headgate.sql.queries import read_query, take_emit_changes
from headgate.sql.registry_formats import ReadFormatOptions
from headgate.text.cursor import Cursor


@dataclass(frozen=True, slots=True)
class CaptureKafka:
    """A topic is captured."""

    kafka: Kafka[ReadOptions]
    formats: Formats

    def sql(self) -> str:
        return s.clauses(self.kafka.sql(), self.formats.sql())


@dataclass(frozen=True, slots=True)
class TablesOptions(o.Options, owner="the postgres capture"):
    """The tables of a database that are captured, by name or by schema."""

    tables: tuple[str, ...] | None = o.option()
    schemas: tuple[str, ...] | None = o.option()


@dataclass(frozen=True, slots=True)
class CaptureOptions(o.Options, owner="the capture"):
    """Options of CREATE CAPTURE."""

    auto_discover: bool | None = o.option()
    add_new_bindings: bool | None = o.option()
    on_key_change: Literal["RESET", "HALT"] | None = o.option()
    on_error: o.OnError = o.option("HALT", aliases=("ON INVALID",))
    interval: o.Interval | None = o.option()


@dataclass(frozen=True, slots=True)
class CapturePostgres:
    """Tables of a PostgreSQL database are captured."""

    connection: s.ObjectName
    options: TablesOptions

    def sql(self) -> str:
        return f"POSTGRES CONNECTION {s.print_name(self.connection)} {o.print_options(self.options)}"


@dataclass(frozen=True, slots=True)
class CaptureFiles:
    """Files below a path are captured."""

    path: str
    format: Format

    def sql(self) -> str:
        return f"FILES {s.print_string(self.path)} FORMAT {self.format.sql()}"


@dataclass(frozen=True, slots=True)
class CaptureHttp:
    """Documents that clients post to a path of the engine are captured."""

    path: str

    def sql(self) -> str:
        return f"HTTP {s.print_string(self.path)}"


CaptureOrigin: TypeAlias = CaptureKafka | CapturePostgres | CaptureFiles | CaptureHttp


@dataclass(frozen=True, slots=True)
class IntoCollection:
    """All documents go into one collection."""

    name: s.ObjectName

    def sql(self) -> str:
        return s.print_name(self.name)


@dataclass(frozen=True, slots=True)
class Binding:
    """Documents of one stream of the origin go into one collection."""

    stream: str
    collection: s.ObjectName


@dataclass(frozen=True, slots=True)
class IntoBindings:
    """Every stream that is captured has a binding. Other streams are left out."""

    bindings: tuple[Binding, ...]

    def sql(self) -> str:
        return s.block(
            [f"{s.print_string(binding.stream)} -> {s.print_name(binding.collection)}" for binding in self.bindings]
        )


@dataclass(frozen=True, slots=True)
class IntoSchema:
    """One collection per stream of the origin, with the stream's name."""

    name: s.ObjectName

    def sql(self) -> str:
        return f"SCHEMA {s.print_name(self.name)}"


CaptureTarget: TypeAlias = IntoCollection | IntoBindings | IntoSchema


@dataclass(frozen=True, slots=True)
class CreateCapture(s.Create):
    """CREATE CAPTURE … FROM origin INTO target."""

    kind = s.Kind.CAPTURE
    origin: CaptureOrigin
    target: CaptureTarget
    with_options: CaptureOptions = CaptureOptions()

    def sql(self) -> str:
        return s.clauses(
            self.head(),
            f"FROM {self.origin.sql()}",
            f"INTO {self.target.sql()}",
            o.print_with_options(self.with_options),
        )


@dataclass(frozen=True, slots=True)
class DiscoverCapture(s.Alter):
    """ALTER CAPTURE … DISCOVER: look for new streams in the origin."""

    def sql(self) -> str:
        return f"{self.head()} DISCOVER"


@dataclass(frozen=True, slots=True)
class CollectionOptions(o.Options, owner="the collection"):
    """Options of CREATE COLLECTION."""

    on_error: o.OnError = o.option("HALT", aliases=("ON INVALID",))
    complexity_limit: int | None = o.option()


@dataclass(frozen=True, slots=True)
class CreateCollection(s.Create):
    """``key`` and ``partition_by`` are JSON pointers. ``schema`` is both the write and the read schema.

    With a query it is a derivation.
    """

    kind = s.Kind.COLLECTION
    key: tuple[str, ...]
    schema: str | None = None
    write_schema: str | None = None
    read_schema: str | None = None
    partition_by: tuple[str, ...] = ()
    with_options: CollectionOptions = CollectionOptions()
    query: s.Query | None = None

    def sql(self) -> str:
        return s.clauses(
            self.head(),
            f"KEY {s.print_strings(self.key)}",
            f"SCHEMA {s.print_string(self.schema)}" if self.schema is not None else "",
            f"WRITE SCHEMA {s.print_string(self.write_schema)}" if self.write_schema is not None else "",
            f"READ SCHEMA {s.print_string(self.read_schema)}" if self.read_schema is not None else "",
            f"PARTITION BY {s.print_strings(self.partition_by)}" if self.partition_by else "",
            o.print_with_options(self.with_options),
            f"AS\n{self.query.text}" if self.query is not None else "",
        )


@dataclass(frozen=True, slots=True)
class ResetCollection(s.Alter):
    """Empties the collection and starts it again. A key or partitioning that is not named stays."""

    key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    with_options: o.ChangeOptions = o.ChangeOptions()

    def sql(self) -> str:
        return s.words(
            f"{self.head()} RESET",
            f"KEY {s.print_strings(self.key)}" if self.key else "",
            f"PARTITION BY {s.print_strings(self.partition_by)}" if self.partition_by else "",
            o.print_with_options(self.with_options),
        )


@dataclass(frozen=True, slots=True)
class SetCollectionSchema(s.Alter):
    """ALTER COLLECTION … SET {WRITE | READ} SCHEMA. A schema that is not named stays."""

    write_schema: str | None = None
    read_schema: str | None = None
    with_options: o.ChangeOptions = o.ChangeOptions()

    def sql(self) -> str:
        return s.words(
            f"{self.head()} SET",
            f"WRITE SCHEMA {s.print_string(self.write_schema)}" if self.write_schema is not None else "",
            f"READ SCHEMA {s.print_string(self.read_schema)}" if self.read_schema is not None else "",
            o.print_with_options(self.with_options),
        )


def create_capture(cursor: Cursor) -> CreateCapture:
    exists = s.if_not_exists(cursor)
    name = s.object_name(cursor)
    cursor.expect("FROM")
    origin = _origin(cursor)
    cursor.expect("INTO")
    target = _target(cursor)
    given = o.with_options(cursor, CaptureOptions)
    return CreateCapture(name, origin, target, given, if_not_exists=exists)


def _origin(cursor: Cursor) -> CaptureOrigin:
    """Read where the documents come from."""
    match cursor.choose("KAFKA", "POSTGRES", "FILES", "HTTP"):
        case "KAFKA":
            return CaptureKafka(kafka(cursor, ReadOptions), formats(cursor, ReadFormatOptions))
        case "POSTGRES":
            cursor.expect("CONNECTION")
            return CapturePostgres(s.object_name(cursor), o.options(cursor, TablesOptions))
        case "FILES":
            path = cursor.string()
            cursor.expect("FORMAT")
            return CaptureFiles(path, format_(cursor, ReadFormatOptions))
        case "HTTP":
            return CaptureHttp(cursor.string())
        case _:
            raise cursor.unexpected()


def _target(cursor: Cursor) -> CaptureTarget:
    """Read where the documents go."""
    if cursor.at("("):
        return IntoBindings(tuple(_binding(cursor) for _ in cursor.items()))
    # A collection may itself be called schema.
    if cursor.at("SCHEMA") and cursor.at_name(1):
        cursor.step()
        return IntoSchema(s.object_name(cursor, most=2))
    cursor.expecting("(")
    cursor.expecting("SCHEMA")
    return IntoCollection(s.object_name(cursor))


def _binding(cursor: Cursor) -> Binding:
    stream = cursor.string()
    cursor.expect("->")
    return Binding(stream, s.object_name(cursor))


def discover_capture(cursor: Cursor, target: Target) -> DiscoverCapture | None:
    """Read DISCOVER."""
    if not cursor.take("DISCOVER"):
        return None
    return DiscoverCapture(target.kind, target.name, if_exists=target.if_exists)


def create_collection(cursor: Cursor) -> CreateCollection:
    exists = s.if_not_exists(cursor)
    name = s.object_name(cursor)
    cursor.expect("KEY")
    key = s.strings(cursor)
    schema = cursor.string() if cursor.take("SCHEMA") else None
    write, read = (None, None) if schema is not None else _schemas(cursor)
    partition_by = s.strings(cursor) if cursor.take("PARTITION BY") else ()
    options = o.with_options(cursor, CollectionOptions)
    query = read_query(cursor) if cursor.take("AS") else None
    if query is not None:
        take_emit_changes(cursor)
    return CreateCollection(name, key, schema, write, read, partition_by, options, query, if_not_exists=exists)


def _schemas(cursor: Cursor) -> tuple[str | None, str | None]:
    """``[WRITE SCHEMA '…'] [READ SCHEMA '…']`` in any order."""
    found: dict[str, str] = {}
    while True:
        start = cursor.token
        which = cursor.choose("WRITE SCHEMA", "READ SCHEMA")
        if which is None:
            return found.get("WRITE SCHEMA"), found.get("READ SCHEMA")
        if which in found:
            raise RepeatedClause(which).at(start.span)
        found[which] = cursor.string()


def reset_collection(cursor: Cursor, target: Target) -> ResetCollection | None:
    """Read RESET and what it changes."""
    if not cursor.take("RESET"):
        return None
    key = s.strings(cursor) if cursor.take("KEY") else ()
    partition_by = s.strings(cursor) if cursor.take("PARTITION BY") else ()
    change = o.with_options(cursor, o.ChangeOptions)
    return ResetCollection(target.kind, target.name, key, partition_by, change, if_exists=target.if_exists)


def set_schema(cursor: Cursor, target: Target) -> SetCollectionSchema | None:
    """Read SET and at least one schema."""
    if not cursor.take("SET"):
        return None
    write, read = _schemas(cursor)
    if write is None and read is None:
        raise cursor.unexpected()
    change = o.with_options(cursor, o.ChangeOptions)
    return SetCollectionSchema(target.kind, target.name, write, read, change, if_exists=target.if_exists)

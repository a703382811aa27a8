"""System relations: `headgate_catalog`, and `information_schema` as the SQL standard has it, with `comment` added.

A system relation has a name, typed columns, and rows that are computed from the catalog when a query reads them.
`SHOW <kind>S` and the like are short forms of queries over these. Types are printed as everywhere in Headgate. A source is
FOREIGN in `information_schema`, because its rows are stored elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from headgate.catalog.catalog import (
    SYSTEM_SCHEMAS,
    Catalog,
    column_comment,
    effective_comment,
    field_comment,
    fold,
    object_comment,
    own_comment,
)
from headgate.catalog.errors import UnknownObject
from headgate.catalog.graph import hidden_parts, without_aliases
from headgate.catalog.names import SearchPath, span_of
from headgate.catalog.objects import Column, Comment, DesiredTaskState, Object
from headgate.catalog.positions import dump_record
from headgate.catalog.store.reader import SqliteReader
from headgate.catalog.tasks import State
from headgate.errors import similar_names
from headgate.schema import types as t
from headgate.schema.names import print_name
from headgate.schema.render import print_type
from headgate.sql.connections import given_topic
from headgate.sql.registry_formats import RegistryFormat, RegistryUrl, subject_name
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import CreateSource
from headgate.sql.statement import RELATIONS, Kind, ObjectName
from headgate.sql.streams import CreateStream, CreateStreamAs
from headgate.text.cursor import Identifier

Row = tuple[object, ...]
Compute: TypeAlias = Callable[[Catalog, SqliteReader], Iterable[Row]]

_TYPES: dict[str, t.Type] = {
    "text": t.Text(),
    "integer": t.Integer(),
    "bigint": t.Bigint(),
    "boolean": t.Boolean(),
    "timestamptz": t.TimestampTz(),
    "bytes": t.Bytes(),
    "json": t.Json(),
}


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows as data: values in the order of the columns, None for NULL. `rows` can be iterated once."""

    name: tuple[str, str]
    columns: t.Record
    rows: Iterable[Row]
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SystemRelation:
    """`hidden` columns can be selected by name but are not part of `*`. `compute_hidden` computes them too, where that costs
    more than the rest; without it they are NULL."""

    schema: str
    name: str
    columns: t.Record
    compute: Compute
    hidden: frozenset[str] = frozenset()
    compute_hidden: Compute | None = None

    def read(self, catalog: Catalog, reader: SqliteReader, *, hidden: bool = False) -> Relation:
        """The rows for a snapshot and for what the engine has recorded. The snapshot may be that of a plan. Columns that are
        hidden have values only if ``hidden`` says so."""
        compute = self.compute_hidden if hidden and self.compute_hidden is not None else self.compute
        return Relation((self.schema, self.name), self.columns, compute(catalog, reader), self.hidden)


def record(columns: str) -> t.Record:
    """`record("name text, id bigint!")`: columns are nullable unless their type ends in an exclamation mark."""
    named = (column.split() for column in columns.split(","))
    return t.Record(tuple(t.Field(name, _TYPES[type_.rstrip("!")], not type_.endswith("!")) for name, type_ in named))


def _objects(catalog: Catalog, _: SqliteReader) -> Iterator[Row]:
    for o in catalog.objects.values():
        yield (o.id, *_home(catalog, o), o.name, o.kind.value, o.created, object_comment(o))


def _columns(catalog: Catalog, _: SqliteReader) -> Iterator[Row]:
    for o in catalog.objects.values():
        for position, c in enumerate(o.columns, 1):
            comment = effective_comment(catalog, c)
            text = None if comment is None else comment.text
            type_ = print_type(c.type)
            yield (o.id, *_home(catalog, o), o.name, c.id, position, c.name, type_, c.nullable, c.key, text)


def _comments(catalog: Catalog, _: SqliteReader) -> Iterator[Row]:
    """All comments. One that `IS NULL` suppressed is listed without text."""
    for o in catalog.objects.values():
        home = (*_home(catalog, o), o.name, o.kind.value)
        mine = own_comment(o.comment)
        if mine is not None or _silenced(o.comment):
            yield (*home, None, mine and mine.text, mine.origin.value if mine else "suppressed")
        for c in o.columns:
            found = effective_comment(catalog, c)
            if found is not None or _silenced(c.comment):
                yield (*home, c.name, found and found.text, found.origin.value if found else "suppressed")
            for path, text, origin in _field_comments(catalog, c):
                yield (*home, print_name((c.name, *path)), text, origin)


def _field_comments(catalog: Catalog, column: Column) -> Iterator[tuple[tuple[str, ...], str | None, str]]:
    """The comments on fields of records in a column, with their origin. One that `IS NULL` suppressed has no text."""
    for path, field in t.inner_fields(without_aliases(catalog, column.type)):
        found = field_comment(catalog, column, path, field.doc)
        if found is not None:
            yield path, found.text, found.origin.value
        elif field.doc is not None:
            yield path, None, "suppressed"


def _dependencies(catalog: Catalog, _: SqliteReader) -> Iterator[Row]:
    for o in catalog.objects.values():
        for on in dict.fromkeys(d.on for d in o.dependencies):
            yield catalog.display_name(o.id), catalog.display_name(on), o.kind.value


def _tasks(catalog: Catalog, reader: SqliteReader) -> Iterator[Row]:
    """All tasks. One without a report yet is starting, or disabled if it shall pause."""
    known = {status.task: status for status in reader.statuses()}
    for id_, desired in sorted(catalog.desired.items()):
        task, status = catalog.get(id_), known.get(id_)
        name, kind = catalog.display_name(id_), task.kind.value
        if status is None:
            state = State.DISABLED if desired is DesiredTaskState.PAUSED else State.STARTING
            yield name, kind, state.value, None, None, 0, 0, None, None, task.created, _notice(task)
        else:
            yield (
                name, kind, status.state.value, status.error, status.batch, status.rows, status.skipped, status.lag,
                status.stored_bytes, status.since, _notice(task, status.notice),
            )  # fmt: skip


def _notice(task: Object, way: str | None = None) -> str | None:
    """What a user should know of a task that does its work: the fields that it does not write yet, and the ``way`` in which it
    runs, as the engine reported it."""
    pending = task.definition.pending if isinstance(task.definition, CreateSink) else ()
    if not pending:
        return way
    fields = ", ".join(print_name(path) for path in pending)
    told = f"pending until they are documented and ALTER SINK … (REFRESH DOCS) takes them up: {fields}"
    return told if way is None else f"{told}; {way}"


def _events(_: Catalog, reader: SqliteReader) -> Iterator[Row]:
    return ((e.time, e.object, e.event, e.detail) for e in reader.events())


def _history(_: Catalog, reader: SqliteReader) -> Iterator[Row]:
    for e in reader.history():
        position = None if e.position is None else dump_record(e.position)
        yield e.time, e.object, e.change, e.cause, position, e.statement


def _schemas(catalog: Catalog, _: SqliteReader) -> Iterator[Row]:
    """The schemas that sources read and sinks write, as the registry gave them."""
    for entry in catalog.of_kind(Kind.SOURCE, Kind.SINK, Kind.STREAM, Kind.TABLE):
        definition = entry.definition
        if isinstance(definition, CreateStream | CreateStreamAs):
            definition = definition.reads
        if isinstance(definition, CreateSource | CreateSink):
            for format_ in definition.formats.each():
                if isinstance(format_, RegistryFormat):
                    yield from _schemas_of(catalog, entry, definition, format_)


def _schemas_of(
    catalog: Catalog, entry: Object, definition: CreateSource | CreateSink, format_: RegistryFormat
) -> Iterator[Row]:
    registry = format_.registry
    at = registry.url if isinstance(registry, RegistryUrl) else catalog.display_name(registry.id or 0)
    for schema in format_.frozen:
        if isinstance(schema.id, int):
            subject = subject_name(given_topic(definition.kafka) or "", schema.side)
            yield schema.id, subject, schema.schema, format_.kind, at, catalog.display_name(entry.id)


def _quarantine(catalog: Catalog, reader: SqliteReader, *, raw: bool = False) -> Iterator[Row]:
    """Records in quarantine, without those in folders, which only Spark can read. It is read after the catalog, so records of
    tasks that the catalog does not know yet are left out."""
    found = reader.quarantined(raw=raw)
    for q in (one for one in found if one.task in catalog.objects and one.object in catalog.objects):
        yield (
            catalog.display_name(q.object), catalog.display_name(q.task), q.topic, q.partition, q.offset, q.time, q.schema_id,
            q.path, q.expected, q.reason, q.raw, dump_record(q.position),
        )  # fmt: skip


def _home(catalog: Catalog, o: Object) -> tuple[str | None, str | None]:
    """The database and the schema of an object. A schema has only a database, a database has neither."""
    above = catalog.path(o.id)[:-1]
    return (above[0] if above else None, above[1] if len(above) > 1 else None)


def _silenced(comment: Comment) -> bool:
    return comment.suppressed and comment.imported is not None


def _table(
    name: str, rows: Compute, columns: str, hidden: frozenset[str] = frozenset(), compute_hidden: Compute | None = None
) -> SystemRelation:
    return SystemRelation("headgate_catalog", name, record(columns), rows, hidden, compute_hidden)


HEADGATE_CATALOG = (
    _table(
        "objects",
        _objects,
        "id bigint!, database text, schema text, name text!, kind text!, created timestamptz!, comment text",
    ),
    _table(
        "columns",
        _columns,
        "object_id bigint!, database text, schema text, object text!, id bigint!, position integer!, name text!, "
        "type text!, nullable boolean!, key boolean!, comment text",
    ),
    _table(
        "comments",
        _comments,
        "database text, schema text, object text!, kind text!, column text, comment text, origin text!",
    ),
    _table("dependencies", _dependencies, "object text!, depends_on text!, kind text!"),
    _table(
        "tasks",
        _tasks,
        "name text!, kind text!, state text!, error text, batch bigint, rows bigint!, skipped bigint!, lag bigint, "
        "stored_bytes bigint, since timestamptz!, notice text",
    ),
    _table("events", _events, "time timestamptz!, object text!, event text!, detail text"),
    _table(
        "history", _history, "time timestamptz!, object text!, change text!, cause text!, position json, statement text"
    ),
    _table("schemas", _schemas, "id bigint!, subject text!, text text!, format text!, registry text!, object text!"),
    _table(
        "quarantine",
        _quarantine,
        "object text!, task text!, topic text, partition integer, offset bigint, time timestamptz!, "
        "schema_id bigint, path text, expected text, reason text!, raw bytes, position json!",
        hidden=frozenset({"raw"}),
        compute_hidden=partial(_quarantine, raw=True),
    ),
)


# information_schema

_TABLE_TYPES = {
    Kind.SOURCE: "FOREIGN",
    Kind.VIEW: "VIEW",
    Kind.MATERIALIZED_VIEW: "VIEW",
    Kind.STREAM: "BASE TABLE",
    Kind.TABLE: "BASE TABLE",
    Kind.COLLECTION: "BASE TABLE",
}
_INSERTABLE = (Kind.STREAM, Kind.TABLE, Kind.COLLECTION)

_SCHEMATA = record(
    "catalog_name text!, schema_name text!, schema_owner text, default_character_set_catalog text, "
    "default_character_set_schema text, default_character_set_name text, sql_path text, comment text"
)

_TABLES = record(
    "table_catalog text!, table_schema text!, table_name text!, table_type text!, "
    "self_referencing_column_name text, reference_generation text, user_defined_type_catalog text, "
    "user_defined_type_schema text, user_defined_type_name text, is_insertable_into text!, is_typed text!, "
    "commit_action text, comment text"
)

_COLUMNS = record(
    "table_catalog text!, table_schema text!, table_name text!, column_name text!, ordinal_position integer!, "
    "column_default text, is_nullable text!, data_type text!, character_maximum_length integer, "
    "character_octet_length integer, numeric_precision integer, numeric_precision_radix integer, "
    "numeric_scale integer, datetime_precision integer, interval_type text, interval_precision integer, "
    "character_set_catalog text, character_set_schema text, character_set_name text, collation_catalog text, "
    "collation_schema text, collation_name text, domain_catalog text, domain_schema text, domain_name text, "
    "udt_catalog text, udt_schema text, udt_name text, scope_catalog text, scope_schema text, scope_name text, "
    "maximum_cardinality integer, dtd_identifier text!, is_self_referencing text!, is_identity text!, "
    "identity_generation text, identity_start text, identity_increment text, identity_maximum text, "
    "identity_minimum text, identity_cycle text, is_generated text!, generation_expression text, "
    "is_updatable text!, comment text"
)


def system_relation(path: SearchPath, written: ObjectName) -> SystemRelation | None:
    """The system relation that a name means; None if the name has no system schema."""
    name = written.parts
    if len(name) == 1:
        schemas = [schema for _, schema in path.entries if schema in SYSTEM_SCHEMAS]
        return next((r for r in SYSTEM_RELATIONS if r.schema in schemas and _means(name[0], r.name)), None)
    schema = next((s for s in SYSTEM_SCHEMAS if _means(name[-2], s)), None)
    if schema is None or len(name) > 3:
        return None
    known = {r.name: r for r in SYSTEM_RELATIONS if r.schema == schema}
    found = next((r for r in known.values() if _means(name[-1], r.name)), None)
    if found is None:
        missing = UnknownObject("relation", f"{schema}.{name[-1].name}", similar_names(name[-1].name, known))
        raise missing.at(span_of(written))
    return found


def _means(written: Identifier, name: str) -> bool:
    return written.name == name if written.quoted else fold(written.name) == name


def _standard_schemata(catalog: Catalog, _: SqliteReader) -> Iterator[Row]:
    for schema in catalog.of_kind(Kind.SCHEMA):
        database = catalog.get(schema.parent).name
        yield _row(len(_SCHEMATA.fields), {0: database, 1: schema.name, 7: object_comment(schema)})
    for database, name in _system_schemas(catalog):
        yield _row(len(_SCHEMATA.fields), {0: database, 1: name})


def _relations(catalog: Catalog) -> Iterator[Object]:
    """All relations but the hidden parts of streams."""
    hidden = hidden_parts(catalog)
    return (relation for relation in catalog.of_kind(*RELATIONS) if relation.id not in hidden)


def _standard_tables(catalog: Catalog, _: SqliteReader) -> Iterator[Row]:
    for relation in _relations(catalog):
        insertable = _yes(relation.kind in _INSERTABLE)
        yield _standard_table(
            catalog.path(relation.id), _TABLE_TYPES[relation.kind], insertable, object_comment(relation)
        )
    for path, _standard_columns in _system_paths(catalog):
        yield _standard_table(path, "VIEW", "NO", None)


def _standard_table(path: tuple[str, ...], type_: str, insertable: str, comment: str | None) -> Row:
    values = {0: path[0], 1: path[1], 2: path[2], 3: type_, 9: insertable, 10: "NO", 12: comment}
    return _row(len(_TABLES.fields), values)


def _standard_columns(catalog: Catalog, _: SqliteReader) -> Iterator[Row]:
    for relation in _relations(catalog):
        yield from _columns_of(catalog, relation)
    for path, fields in _system_paths(catalog):
        for position, field in enumerate(fields, 1):
            yield _standard_column(path, position, field.name, field.type, field.nullable, None)


def _columns_of(catalog: Catalog, relation: Object) -> Iterator[Row]:
    path = catalog.path(relation.id)
    for position, c in enumerate(relation.columns, 1):
        yield _standard_column(path, position, c.name, c.type, c.nullable, column_comment(catalog, c))


def _standard_column(
    path: tuple[str, ...], position: int, name: str, type_: t.Type, nullable: bool, comment: str | None
) -> Row:
    udt = type_.parts if isinstance(type_, t.Named) else (None, None, None)
    values: dict[str, object] = {
        "table_catalog": path[0],
        "table_schema": path[1],
        "table_name": path[2],
        "column_name": name,
        "ordinal_position": position,
        "is_nullable": _yes(nullable),
        "data_type": print_type(type_),
        "character_maximum_length": type_.length if isinstance(type_, t.Bytes) else None,
        "datetime_precision": _fraction_digits(type_),
        **dict(zip(("udt_catalog", "udt_schema", "udt_name"), udt, strict=True)),
        **dict(zip(_NUMERIC, _numeric(type_), strict=True)),
        "dtd_identifier": str(position),
        "is_self_referencing": "NO",
        "is_identity": "NO",
        "is_generated": "NEVER",
        "is_updatable": "NO",
        "comment": comment,
    }
    return tuple(values.get(field.name) for field in _COLUMNS.fields)


_NUMERIC = ("numeric_precision", "numeric_precision_radix", "numeric_scale")


def _numeric(type_: t.Type) -> tuple[int | None, int | None, int | None]:
    """Precision, its radix, and scale, as the standard counts them."""
    match type_:
        case t.Integer():
            return 32, 2, 0
        case t.Bigint():
            return 64, 2, 0
        case t.Real():
            return 24, 2, None
        case t.Double():
            return 53, 2, None
        case t.Decimal():
            return type_.precision, 10, type_.scale
        case _:
            return None, None, None


def _fraction_digits(type_: t.Type) -> int | None:
    match type_:
        case t.Date():
            return 0
        case t.Time() | t.Timestamp() | t.TimestampTz():
            return 6
        case _:
            return None


def _system_schemas(catalog: Catalog) -> Iterator[tuple[str, str]]:
    return ((d.name, schema) for d in catalog.of_kind(Kind.DATABASE) for schema in SYSTEM_SCHEMAS)


def _system_paths(catalog: Catalog) -> Iterator[tuple[tuple[str, str, str], tuple[t.Field, ...]]]:
    for database, schema in _system_schemas(catalog):
        for relation in (r for r in SYSTEM_RELATIONS if r.schema == schema):
            yield (database, schema, relation.name), relation.columns.fields


def _row(width: int, values: Mapping[int, object]) -> Row:
    return tuple(values.get(position) for position in range(width))


def _yes(answer: bool) -> str:
    return "YES" if answer else "NO"


def _all() -> Iterable[SystemRelation]:
    yield SystemRelation("information_schema", "schemata", _SCHEMATA, _standard_schemata)
    yield SystemRelation("information_schema", "tables", _TABLES, _standard_tables)
    yield SystemRelation("information_schema", "columns", _COLUMNS, _standard_columns)
    yield from HEADGATE_CATALOG


SYSTEM_RELATIONS = tuple(_all())

"""System relations, and those of `headgate_catalog`: the catalog as relations.

A system relation has a name, typed columns, and rows that are computed from the catalog when a query reads them.
`SHOW <kind>S` and the like are short forms of queries over these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from headgate.catalog.catalog import Catalog
from headgate.catalog.comments import effective_comment, object_comment, own_comment
from headgate.catalog.objects import Comment, DesiredTaskState, Object
from headgate.catalog.positions import dump_record
from headgate.catalog.store import Reader
from headgate.catalog.tasks import State
from headgate.schema.render import print_type
from headgate.schema.types import (
    Bigint,
    Boolean,
    Bytes,
    Field,
    Integer,
    Json,
    Record,
    Text,
    TimestampTz,
    Type,
)
from headgate.sql.connections import given_topic
from headgate.sql.registry_formats import RegistryFormat, RegistryUrl
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import CreateSource
from headgate.sql.statement import Kind

Row = tuple[object, ...]

_TYPES: dict[str, Type] = {
    "text": Text(),
    "integer": Integer(),
    "bigint": Bigint(),
    "boolean": Boolean(),
    "timestamptz": TimestampTz(),
    "bytes": Bytes(),
    "json": Json(),
}


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows as data: values in the order of the columns, None for NULL. `rows` can be iterated once."""

    name: tuple[str, str]
    columns: Record
    rows: Iterable[Row]
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SystemRelation:
    """`hidden` columns can be selected by name but are not part of `*`."""

    schema: str
    name: str
    columns: Record
    compute: Callable[[Catalog, Reader], Iterable[Row]]
    hidden: frozenset[str] = frozenset()

    def read(self, catalog: Catalog, reader: Reader) -> Relation:
        """The rows for a snapshot, also a hypothetical one, and for what the engine has recorded."""
        return Relation((self.schema, self.name), self.columns, self.compute(catalog, reader), self.hidden)


def record(*columns: str) -> Record:
    """`record("name text", "id bigint not null")`: columns are nullable unless they say otherwise."""
    return Record(tuple(_field(*column.split(" ", 2)) for column in columns))


def _field(name: str, type_: str, rest: str = "") -> Field:
    return Field(name, _TYPES[type_], nullable=rest != "not null")


_SCHEMA = "headgate_catalog"


def _objects(catalog: Catalog, _: Reader) -> Iterator[Row]:
    for o in catalog.objects.values():
        yield (o.id, *_home(catalog, o), o.name, o.kind.value, o.created, object_comment(o))


def _columns(catalog: Catalog, _: Reader) -> Iterator[Row]:
    for o in catalog.objects.values():
        for position, c in enumerate(o.columns, 1):
            comment = effective_comment(catalog, c)
            text = None if comment is None else comment.text
            type_ = print_type(c.type)
            yield (o.id, *_home(catalog, o), o.name, c.id, position, c.name, type_, c.nullable, c.key, text)


def _comments(catalog: Catalog, _: Reader) -> Iterator[Row]:
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


def _dependencies(catalog: Catalog, _: Reader) -> Iterator[Row]:
    for o in catalog.objects.values():
        for on in dict.fromkeys(d.on for d in o.dependencies):
            yield catalog.display_name(o.id), catalog.display_name(on), o.kind.value


def _tasks(catalog: Catalog, reader: Reader) -> Iterator[Row]:
    """All tasks. One without a report yet is starting, or disabled if it shall pause."""
    known = {status.task: status for status in reader.statuses()}
    for id_, desired in sorted(catalog.desired.items()):
        task, status = catalog.get(id_), known.get(id_)
        name, kind = catalog.display_name(id_), task.kind.value
        if status is None:
            state = State.DISABLED if desired is DesiredTaskState.PAUSED else State.STARTING
            yield name, kind, state.value, None, None, 0, 0, None, task.created
        else:
            yield (
                name, kind, status.state.value, status.error, status.batch, status.rows, status.skipped, status.lag,
                status.since,
            )  # fmt: skip


def _events(_: Catalog, reader: Reader) -> Iterator[Row]:
    return ((e.time, e.object, e.event, e.detail) for e in reader.events())


def _history(_: Catalog, reader: Reader) -> Iterator[Row]:
    for e in reader.history():
        position = None if e.position is None else dump_record(e.position)
        yield e.time, e.object, e.change, e.cause, position, e.statement


def _schemas(catalog: Catalog, _: Reader) -> Iterator[Row]:
    """The schemas that sources read and sinks write, as the registry gave them."""
    for entry in catalog.of_kind(Kind.SOURCE, Kind.SINK):
        if isinstance(entry.definition, CreateSource | CreateSink):
            for format_ in entry.definition.formats.each():
                if isinstance(format_, RegistryFormat):
                    yield from _schemas_of(catalog, entry, entry.definition, format_)


def _schemas_of(
    catalog: Catalog, entry: Object, definition: CreateSource | CreateSink, format_: RegistryFormat
) -> Iterator[Row]:
    registry = format_.registry
    at = registry.url if isinstance(registry, RegistryUrl) else catalog.display_name(registry.id or 0)
    for schema in format_.frozen:
        if isinstance(schema.id, int):
            subject = f"{given_topic(definition.kafka)}-{schema.side.lower()}"
            yield schema.id, subject, schema.schema, format_.kind, at, catalog.display_name(entry.id)


def _quarantine(catalog: Catalog, reader: Reader) -> Iterator[Row]:
    """Records in quarantine. It is read after the catalog, so records of tasks that the catalog does not know yet are left out."""
    known = (q for q in reader.quarantined() if q.task in catalog.objects and q.object in catalog.objects)
    for q in known:
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


HEADGATE_CATALOG = (
    SystemRelation(
        _SCHEMA,
        "objects",
        record(
            "id bigint not null",
            "database text",
            "schema text",
            "name text not null",
            "kind text not null",
            "created timestamptz not null",
            "comment text",
        ),
        _objects,
    ),
    SystemRelation(
        _SCHEMA,
        "columns",
        record(
            "object_id bigint not null",
            "database text",
            "schema text",
            "object text not null",
            "id bigint not null",
            "position integer not null",
            "name text not null",
            "type text not null",
            "nullable boolean not null",
            "key boolean not null",
            "comment text",
        ),
        _columns,
    ),
    SystemRelation(
        _SCHEMA,
        "comments",
        record(
            "database text",
            "schema text",
            "object text not null",
            "kind text not null",
            "column text",
            "comment text",
            "origin text not null",
        ),
        _comments,
    ),
    SystemRelation(
        _SCHEMA,
        "dependencies",
        record("object text not null", "depends_on text not null", "kind text not null"),
        _dependencies,
    ),
    SystemRelation(
        _SCHEMA,
        "tasks",
        record(
            "name text not null",
            "kind text not null",
            "state text not null",
            "error text",
            "batch bigint",
            "rows bigint not null",
            "skipped bigint not null",
            "lag bigint",
            "since timestamptz not null",
        ),
        _tasks,
    ),
    SystemRelation(
        _SCHEMA,
        "events",
        record("time timestamptz not null", "object text not null", "event text not null", "detail text"),
        _events,
    ),
    SystemRelation(
        _SCHEMA,
        "history",
        record(
            "time timestamptz not null",
            "object text not null",
            "change text not null",
            "cause text not null",
            "position json",
            "statement text",
        ),
        _history,
    ),
    SystemRelation(
        _SCHEMA,
        "schemas",
        record(
            "id bigint not null",
            "subject text not null",
            "text text not null",
            "format text not null",
            "registry text not null",
            "object text not null",
        ),
        _schemas,
    ),
    SystemRelation(
        _SCHEMA,
        "quarantine",
        record(
            "object text not null",
            "task text not null",
            "topic text",
            "partition integer",
            "offset bigint",
            "time timestamptz not null",
            "schema_id bigint",
            "path text",
            "expected text",
            "reason text not null",
            "raw bytes",
            "position json not null",
        ),
        _quarantine,
        hidden=frozenset({"raw"}),
    ),
)

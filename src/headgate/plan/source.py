"""Plans of sources: the columns of a source, and how a record becomes a row. Made from a purified CREATE SOURCE alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count

from headgate.catalog.objects import Column, Comment, Object
from headgate.errors import similar_names
from headgate.plan import definitions as d, errors
from headgate.plan.encodings import encodings, format_words
from headgate.schema import encodings as e, types as t
from headgate.schema.evolve.merge import is_number, widen
from headgate.schema.evolve.renames import present_name
from headgate.schema.names import Found, find
from headgate.schema.render import print_type
from headgate.sql import sources
from headgate.sql.formats import AvroInline, Format, ProtobufInline
from headgate.sql.registry_formats import LatestStrategy, RegistryFormat, Side

INLINE_ERROR = t.Record((t.Field("description", t.Text()),))
METADATA: dict[str, t.Field] = {
    "PARTITION": t.Field("partition", t.Integer(), False),
    "OFFSET": t.Field("offset", t.Bigint(), False),
    "TIMESTAMP": t.Field("timestamp", t.TimestampTz(), False),
    "TOPIC": t.Field("topic", t.Text(), False),
    "HEADERS": t.Field(
        "headers", t.Array(t.Record((t.Field("key", t.Text(), False), t.Field("value", t.Bytes()))), False), False
    ),
}


@dataclass(frozen=True, slots=True)
class SourcePlan(d.SourceLayout):
    """The layout of a source with its doc. ``without_column`` has an error for each field whose column name was taken.

    Only a schema that was followed can bring such a field: CREATE SOURCE refuses it.
    """

    doc: str | None = None
    without_column: tuple[errors.ColumnNameTaken, ...] = ()


def describe_origin(origin: d.Origin) -> str:
    """The origin of a column, in the words of an error message."""
    match origin.section:
        case "metadata":
            return f"metadata {(origin.name or '').lower()}"
        case "header":
            return f'header "{origin.name}"'
        case "error":
            return errors.INLINE_ERRORS
        case "after":
            return f'field "{origin.name}" of after'
        case _:
            return origin.section if origin.name is None else f'{origin.section} field "{origin.name}"'


def rename_hint(origin: d.Origin) -> str:
    """What to write to give the column another name."""
    match origin.section:
        case "metadata":
            return f"INCLUDE {origin.name} AS <name>"
        case "header":
            return f"INCLUDE HEADER '{origin.name}' AS <name>"
        case "error":
            return f"{errors.INLINE_ERRORS} = INLINE AS <name>"
        case "key":
            return "INCLUDE KEY AS <name>"
        case _:
            return "another list of names"


@lru_cache(maxsize=1024)  # every query that reads the source needs the plan again
def plan_source(statement: sources.CreateSource) -> SourcePlan:
    """The plan of a purified statement. Raises ColumnCollision if two columns have one name."""
    name = str(statement.name.parts[-1].name)
    value, key = encodings(statement.formats)
    value = e.by_format_rules(value) if schema_change_policy(statement) == "PIN" else e.filling(value)
    columns, doc = _body_columns(statement, name, value, key)
    # A list of names counts the columns that existed when it was written. Names behind those belong to columns that were
    # added later, in the order of their addition; RENAME COLUMN writes such names.
    first = len(_body_columns(statement, name, e.without_followed_schemas(value), key)[0])
    grown = columns[first:]
    created = [*columns[:first], *_metadata_columns(statement)]
    renamed = _renamed([*created, *grown], statement, name)
    columns, grown = renamed[: len(created)], renamed[len(created) :]
    _check_collisions(columns, name)
    taken = {c.name: c.origin for c in columns}
    columns[first:first] = [c for c in grown if c.name not in taken]
    without_column = [_name_taken(name, c, taken[c.name]) for c in grown if c.name in taken]
    columns = _with_upsert_key(columns, statement, name)
    envelope = _envelope(statement)
    return SourcePlan(
        name,
        tuple(columns),
        value,
        key if envelope == "DEBEZIUM" or any(c.origin.section == "key" for c in columns) else None,
        envelope,
        statement.with_options.on_error,
        schema_change_policy(statement),
        key_change_policy(statement),
        doc,
        tuple(without_column),
    )


def key_fields_not_included(statement: sources.CreateSource) -> tuple[str, ...]:
    """The columns that INCLUDE KEY would add to a source without it. A key without fields is also called as a value would be."""
    planned, key = plan_source(statement), encodings(statement.formats)[1]
    if planned.key is not None or key is None:
        return ()
    kept = {column.name for column in planned.columns}
    names = [field.name for field in e.fields_of(key) or ()] or ["key", e.decoded_type(key).name]
    return tuple(name for name in names if name not in kept)


def _envelope(statement: sources.CreateSource) -> d.SourceEnvelope:
    match statement.envelope:
        case sources.UpsertEnvelope():
            return "UPSERT"
        case sources.DebeziumEnvelope():
            return "DEBEZIUM"
        case _:
            return "NONE"


# columns


def _body_columns(
    statement: sources.CreateSource, name: str, value: e.Encoding, key: e.Encoding | None
) -> tuple[list[d.SourceColumn], str | None]:
    """All columns except metadata, and the doc of the rows."""
    if isinstance(statement.envelope, sources.DebeziumEnvelope):
        return _debezium_columns(statement, name, value, key)
    errors_column = _error_column(statement, name)
    columns = [*_key_columns(statement, name, key), *errors_column, *_value_columns(value, bool(errors_column))]
    return columns, e.decoded_type(value).doc


def _key_columns(statement: sources.CreateSource, name: str, key: e.Encoding | None) -> list[d.SourceColumn]:
    include = _include_key(statement)
    upsert = isinstance(statement.envelope, sources.UpsertEnvelope)
    of_value = isinstance(statement.envelope, sources.UpsertEnvelope) and bool(statement.envelope.key)
    if include is None and (not upsert or of_value):
        return []
    if key is None:
        raise errors.KeyFormatMissing(name, "INCLUDE KEY" if include else "ENVELOPE UPSERT")
    alias = include.alias.name if include and include.alias else None
    is_key = upsert and not of_value
    place = e.decoded_type(key)
    if not isinstance(place.type, t.Record) or alias is not None:
        return [d.SourceColumn(alias or "key", place.type, not is_key, d.Origin("key"), key=is_key)]
    return [
        d.SourceColumn(f.name, f.type, f.nullable or not is_key, d.Origin("key", f.name), f.doc, is_key)
        for f in place.type.fields
    ]


def _include_key(statement: sources.CreateSource) -> sources.IncludeMetadata | None:
    return next((i for i in statement.include if isinstance(i, sources.IncludeMetadata) and i.what == "KEY"), None)


def _error_column(statement: sources.CreateSource, name: str) -> list[d.SourceColumn]:
    envelope = statement.envelope
    if not isinstance(envelope, sources.UpsertEnvelope) or not envelope.inline_errors:
        return []
    if envelope.key:
        raise errors.InlineErrorsWithoutKey(name)
    alias = envelope.inline_errors_as.name if envelope.inline_errors_as else "error"
    return [d.SourceColumn(alias, INLINE_ERROR, True, d.Origin("error"))]


def _value_columns(value: e.Encoding, nullable: bool) -> list[d.SourceColumn]:
    """With inline errors all of them are ``nullable``: a value that could not be decoded has none of them."""
    place = e.decoded_type(value)
    nullable = nullable or place.nullable
    if not isinstance(place.type, t.Record):
        return [d.SourceColumn(place.name, place.type, nullable, d.Origin("value"))]
    return [
        d.SourceColumn(f.name, f.type, f.nullable or nullable, d.Origin("value", f.name), f.doc, default=f.default)
        for f in place.type.fields
    ]


def _debezium_columns(
    statement: sources.CreateSource, name: str, value: e.Encoding, key: e.Encoding | None
) -> tuple[list[d.SourceColumn], str | None]:
    """The fields of `after`, and the doc of the row."""
    if _include_key(statement) is not None:
        raise errors.KeyNotAllowed(name)
    row = changed_row(value, name)
    if key is None:
        raise errors.KeyFormatMissing(name, "ENVELOPE DEBEZIUM")
    keys = row_key(key, row, name)
    typed = [(f, keys.get(f.name, f)) for f in row.fields]
    columns = [
        d.SourceColumn(f.name, like.type, like.nullable, d.Origin("after", f.name), f.doc, f.name in keys, f.default)
        for f, like in typed
    ]
    return columns, row.doc or e.decoded_type(value).doc


def _metadata_columns(statement: sources.CreateSource) -> list[d.SourceColumn]:
    columns = []
    for include in statement.include:
        if isinstance(include, sources.IncludeHeader):
            type_ = t.Bytes() if include.as_bytes else t.Text()
            origin = d.Origin("header", include.header, include.as_bytes)
            columns.append(d.SourceColumn(include.alias.name, type_, True, origin))
        elif include.what != "KEY":
            field = METADATA[include.what]
            name = include.alias.name if include.alias else field.name
            columns.append(d.SourceColumn(name, field.type, field.nullable, d.Origin("metadata", include.what)))
    return columns


def _renamed(columns: list[d.SourceColumn], statement: sources.CreateSource, name: str) -> list[d.SourceColumn]:
    names = [i.name for i in statement.columns]
    if len(names) > len(columns):
        raise errors.TooManyNames(name, len(names), len(columns))
    renamed = [replace(c, name=n) for c, n in zip(columns, names, strict=False)]
    return renamed + columns[len(names) :]


def listed_names(statement: sources.CreateSource) -> list[str]:
    """The names of all columns, in the order of a list of names."""
    value, key = encodings(statement.formats)
    name = str(statement.name.parts[-1].name)
    body = _body_columns(statement, name, value, key)[0]
    first = len(_body_columns(statement, name, e.without_followed_schemas(value), key)[0])
    columns = [*body[:first], *_metadata_columns(statement), *body[first:]]
    return [column.name for column in _renamed(columns, statement, name)]


def present_field_names(statement: sources.CreateSource) -> dict[str, str]:
    """The present name of each field that was renamed since its column was created, by column."""
    planned, found = plan_source(statement), {}
    for column in planned.columns:
        section, name = column.origin.section, column.origin.name
        encoding = planned.key if section == "key" else planned.value
        if name is None or section not in ("key", "value", "after") or not isinstance(encoding, e.SchemaEncoding):
            continue
        path = (d.AFTER, name) if section == "after" else (name,)
        present = present_name(e.known_fields(encoding), path)
        if present not in (None, name):
            found[column.name] = str(present)
    return found


def _check_collisions(columns: Sequence[d.SourceColumn], source: str) -> None:
    seen: dict[str, d.SourceColumn] = {}
    for column in columns:
        first = seen.setdefault(column.name, column)
        if first is not column:
            raise errors.ColumnCollision(
                column.name, describe_origin(first.origin), describe_origin(column.origin), source
            )


def _name_taken(source: str, column: d.SourceColumn, other: d.Origin) -> errors.ColumnNameTaken:
    return errors.ColumnNameTaken(
        source, column.name, describe_origin(column.origin), describe_origin(other), rename_hint(other)
    )


def _with_upsert_key(columns: list[d.SourceColumn], statement: sources.CreateSource, name: str) -> list[d.SourceColumn]:
    """The columns with those of UPSERT (KEY (c, …)) marked as the key. Only columns of the value can be named there."""
    if not isinstance(statement.envelope, sources.UpsertEnvelope):
        return columns
    chosen = set()
    values = [c.name for c in columns if c.origin.section == "value"]
    for identifier in statement.envelope.key:
        match find(identifier.name, identifier.quoted, values):
            case Found(exact):
                chosen.add(exact)
            case _:
                raise errors.UpsertKeyUnknown(identifier.name, name, similar_names(identifier.name, values))
    return [replace(c, key=True) if c.name in chosen else c for c in columns]


# policies


def check_schema_change(statement: sources.CreateSource) -> None:
    """Raises for a policy that cannot have an effect. Only CREATE SOURCE checks it: a stored source goes on."""
    given, value = statement.with_options.on_schema_change, statement.formats.value
    if given is None or isinstance(value, RegistryFormat):
        return
    inline = isinstance(value, AvroInline | ProtobufInline)
    if not inline or given != "PIN":
        name = statement.name.parts[-1].name
        raise errors.SchemaCannotChange(name, given, format_words(value), inline)


def schema_change_policy(statement: sources.CreateSource) -> d.SchemaChangePolicy:
    given = statement.with_options.on_schema_change
    if given is not None:
        return given
    return "FOLLOW" if reads_latest_schema(statement.formats.value) else "PIN"


def key_change_policy(statement: sources.CreateSource) -> d.SchemaChangePolicy:
    """A key follows where the value does, or where the value has no schema that could change."""
    formats = statement.formats
    follows = reads_latest_schema(formats.key or formats.value, "KEY")
    if isinstance(formats.value, RegistryFormat):
        follows = follows and schema_change_policy(statement) == "FOLLOW"
    return "FOLLOW" if follows else "HALT"


def reads_latest_schema(format_: Format, side: Side = "VALUE") -> bool:
    """Whether records are read with the latest schema of their subject. False for fixed ids and inline schemas."""
    if not isinstance(format_, RegistryFormat):
        return False
    return isinstance(format_.strategy(side) or LatestStrategy(), LatestStrategy)


# change events of Debezium

BEFORE = "before"


def changed_row(value: e.Encoding, source: str) -> t.Record:
    """The type of `after`. `before` and `op` may be missing: without `op`, an event without `after` is a delete."""
    fields = {field.name: field.type for field in e.fields_of(value) or ()}
    if d.AFTER not in fields:
        missing = tuple(name for name in (BEFORE, d.AFTER) if name not in fields)
        raise errors.NoChangeEvents(source, missing)
    row = fields[d.AFTER]
    if not isinstance(row, t.Record):
        raise errors.NoChangeEvents(source, (), 'field "after" is no record')
    if not isinstance(fields.get(d.OP, t.Text()), t.Text | t.Enum):
        raise errors.NoChangeEvents(source, (), 'field "op" is no text')
    return row


def row_key(key: e.Encoding, row: t.Record, source: str) -> dict[str, t.Field]:
    """The key's fields by name. Each must be a field of the row of the same type.

    A number may be wider in one of them, because a schema change reaches keys and values one after the other. The field
    then has the wider type.
    """
    fields = e.fields_of(key)
    if not fields:
        raise errors.InvalidDebeziumKey(source, "it has no fields")
    return {field.name: replace(field, type=_common_type(field, row, source)) for field in fields}


def _common_type(field: t.Field, row: t.Record, source: str) -> t.Type:
    found = row.field(field.name)
    if found is None:
        raise errors.InvalidDebeziumKey(source, f'field "{field.name}" of it is no field of "after"')
    if print_type(field.type) == print_type(found.type):
        return found.type
    common = widen(found.type, field.type)
    if not (is_number(found.type) and is_number(common)):
        types = f"{print_type(field.type)} in the key and {print_type(found.type)} in the row"
        raise errors.InvalidDebeziumKey(source, f'field "{field.name}" is {types}')
    return common


# columns as the catalog has them


def source_columns(planned: SourcePlan) -> tuple[Column, ...]:
    """The columns of a new source. The docs of its schemas become imported comments."""
    return tuple(
        Column(position, c.name, t.without_defaults(c.type), c.nullable, c.key, comment=Comment(imported=c.doc))
        for position, c in enumerate(planned.columns, start=1)
    )


def keep_column_ids(old: Object, columns: Sequence[Column]) -> tuple[Column, ...]:
    """The new columns of an object. One with the name of an old column is that column; others get new ids."""
    ids = {c.name: c.id for c in old.columns}
    numbers = count(old.next_column)
    return tuple(replace(c, id=ids.get(c.name) or next(numbers)) for c in columns)

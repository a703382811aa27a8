"""The property timestamp of streams and tables: the column whose value is the time of the records that Headgate writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from headgate.errors import similar_names
from headgate.plan.definitions import RecordTime
from headgate.plan.reading import stream_layout
from headgate.resolve import time_errors as errors
from headgate.resolve.streams import header_columns, own_name
from headgate.schema import types as t
from headgate.schema.names import Found, find
from headgate.schema.render import print_type
from headgate.sql.statement import Kind
from headgate.sql.streams import AnyStream, StreamProperties
from headgate.text.cursor import Identifier

IsPattern: TypeAlias = Callable[[str], bool]
"""Whether Spark can read times by a pattern."""

Who: TypeAlias = tuple[str, str]
_TIMES = (t.Bigint, t.Timestamp, t.TimestampTz, t.Text)


def stream_time(statement: AnyStream, columns: Mapping[str, t.Type], is_pattern: IsPattern) -> RecordTime | None:
    """The time of the records of a stream or table; None if the property is not given. ``columns`` are those that are written."""
    given = statement.properties
    if given.timestamp is None:
        return None
    if given.timestamp_format is not None and not is_pattern(given.timestamp_format):
        raise errors.InvalidTimeFormat(*own_name(statement), given.timestamp_format)
    return _time(statement, columns)


def known_time(statement: AnyStream) -> RecordTime | None:
    """The same for a stream that exists: its pattern was checked when it was made."""
    return _time(statement, written_columns(statement))


def written_columns(statement: AnyStream) -> dict[str, t.Type]:
    """The columns of the key and the value."""
    layout = stream_layout(statement)
    return {c.name: c.type for c in layout.columns if c.origin.section in ("key", "value")}


def _time(statement: AnyStream, columns: Mapping[str, t.Type]) -> RecordTime | None:
    given = statement.properties
    if given.timestamp is None:
        return None
    column = _column(statement, given.timestamp, columns)
    return record_time(own_name(statement), column, columns[column], given.timestamp_format)


def record_time(who: Who, column: str, type_: t.Type, format_: str | None) -> RecordTime:
    """Raises unless the column is a time, and has a pattern if and only if it is a text."""
    if not isinstance(type_, _TIMES):
        raise errors.TimeColumnType(*who, column, print_type(type_))
    if isinstance(type_, t.Text) and format_ is None:
        raise errors.TimeFormatMissing(*who, column)
    if not isinstance(type_, t.Text) and format_ is not None:
        raise errors.TimeFormatUnused(*who, column, print_type(type_))
    return RecordTime(column, type_, format_)


def _column(statement: AnyStream, written: str, columns: Mapping[str, t.Type]) -> str:
    """The column that the property names, as statements name columns: without quotes in any case."""
    if written in columns:
        return written
    identifier = _identifier(written)
    match find(identifier.name, identifier.quoted, list(columns)):
        case Found(name):
            return name
        case _:
            who, headers = own_name(statement), [column.name.name for column in header_columns(statement)]
            reason = "it holds headers" if identifier.name in headers else "there is no such column"
            raise errors.UnknownTimeColumn(*who, written, reason, similar_names(identifier.name, list(columns)))


def _identifier(written: str) -> Identifier:
    quote = written[:1]
    if quote in ('"', "`") and len(written) > 1 and written.endswith(quote):
        return Identifier(written[1:-1].replace(quote * 2, quote), quoted=True)
    return Identifier(written)


def topic_settings(given: StreamProperties) -> tuple[tuple[str, str], ...]:
    """The settings of the topic that the properties name. A topic with the time of arrival would overwrite those of the records."""
    retention = () if given.retention_ms is None else (("retention.ms", str(given.retention_ms)),)
    return retention if given.timestamp is None else (*retention, ("message.timestamp.type", "CreateTime"))


def time_notices(statement: AnyStream, time: RecordTime | None, *, by_task: bool) -> Iterator[str]:
    """What the creator should know of the times."""
    if time is None:
        return
    kind, name = own_name(statement)
    how = (
        ". Spark's writer cannot set it: its task writes with the engine's own producer, in transactions"
        if by_task
        else ""
    )
    yield f'the time of a record of {kind} "{name}" is the value of column "{time.column}"{how}'
    if statement.kind is Kind.TABLE and not any(
        c.name == time.column for c in stream_layout(statement).columns if c.key
    ):
        yield f'a record that deletes a key of {kind} "{name}" has no column "{time.column}", and has the time at which it is written'

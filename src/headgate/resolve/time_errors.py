"""What is wrong with the property timestamp of a stream or table: PLN-0740 to PLN-0745."""

from __future__ import annotations

from headgate.resolve.stream_errors import StreamError


class UnknownTimeColumn(StreamError, code="PLN-0740"):
    """The property timestamp names a column that the stream or table does not have, or that nobody writes."""

    column: str
    reason: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'timestamp of {kind} "{name}" names column "{column}": {reason}'

    def hint(self) -> str | None:
        return super().hint() or "Name a column of the key or the value. With AS it is one that the query gives."


class TimeColumnType(StreamError, code="PLN-0741"):
    """The column that the property timestamp names has a type that is no time."""

    column: str
    type: str
    MESSAGE = 'timestamp of {kind} "{name}": column "{column}" is {type}, which is no time'
    HINT = "It may be bigint (milliseconds since 1970), timestamp, timestamptz, or text with timestamp_format."


class TimeFormatMissing(StreamError, code="PLN-0742"):
    """The property timestamp names a column of type text, and nothing says how its texts are to be read."""

    column: str
    MESSAGE = 'timestamp of {kind} "{name}": column "{column}" is text, and timestamp_format is missing'
    HINT = "Add a pattern as Java's DateTimeFormatter has them: timestamp_format = 'yyyy-MM-dd HH:mm:ss'."


class TimeFormatUnused(StreamError, code="PLN-0743"):
    """The property timestamp_format stands beside a column that is no text."""

    column: str
    type: str
    MESSAGE = 'timestamp_format of {kind} "{name}" is for texts, and column "{column}" is {type}'
    HINT = "Leave timestamp_format out."


class InvalidTimeFormat(StreamError, code="PLN-0744"):
    """The property timestamp_format is not a pattern by which texts can be read as times."""

    format: str
    MESSAGE = 'timestamp_format of {kind} "{name}" is no pattern for times: {format}'
    HINT = "Write a pattern as Java's DateTimeFormatter has them, with other text in single quotes: yyyy-MM-dd''T''HH:mm:ssXXX in a literal of SQL."


class TimeNeedsNewTask(StreamError, code="PLN-0745"):
    """CREATE OR REPLACE gives the property timestamp to a stream or table whose task writes without it. Its progress is kept in
    another way, and rows would be written twice."""

    MESSAGE = 'cannot replace {kind} "{name}": its task writes without the property timestamp'
    HINT = "Leave timestamp out, or drop the {kind} and create it again."

"""Where a source begins: what START OFFSET and START TIMESTAMP mean on the day of its creation, written as offsets.

Asked again by every reader, `LATEST` would pass over what came while no engine ran, and a query would never see a row.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from headgate.connectors.kafka import Topic
from headgate.purify.errors import InvalidTimestamp, StartTwice, TooManyOffsets
from headgate.sql.kafka import Kafka
from headgate.sql.options import Choice, ListLiteral, NumberLiteral, Option, StringLiteral, Value, option

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MOMENT = 253_402_300_799_999  # the end of the year 9999, in milliseconds

Offsets = Callable[[int | None], tuple[int, ...]]  # of every partition, since a time or the end


def with_seed_offset(kafka: Kafka, topic: Topic, offsets: Offsets) -> Kafka:
    """With `SEED OFFSET`, unless the source begins at offsets that are written already. Partitions that are added
    later have none, and begin at their start."""
    start, moment = option(kafka.options, "START OFFSET"), option(kafka.options, "START TIMESTAMP")
    if start is not None and moment is not None:
        raise StartTwice(topic.name)
    seed = option(kafka.options, "SEED OFFSET")
    for name, given in (("START OFFSET", start), ("SEED OFFSET", seed)):
        if isinstance(given, ListLiteral) and len(given.items) > topic.partitions:
            raise TooManyOffsets(topic.name, len(given.items), topic.partitions, name)
    since = None if moment is None else _milliseconds(moment, topic.name)
    if seed is not None:
        return kafka
    match start:
        case NumberLiteral(text):
            found = (int(text),) * topic.partitions
        case Choice("LATEST"):
            found = offsets(None)
        case None if since is not None:
            found = offsets(since)
        case _:
            return kafka
    frozen = ListLiteral(tuple(NumberLiteral(str(offset)) for offset in found))
    return replace(kafka, options=(*kafka.options, Option("SEED OFFSET", frozen)))


def _milliseconds(given: Value, topic: str) -> int:
    """Milliseconds since 1970, or if negative so long before now; or a time in ISO form."""
    match given:
        case NumberLiteral(text):
            number = int(text)
            found = number if number >= 0 else max(0, int(time.time() * 1000) + number)
        case StringLiteral(text):
            found = _since_1970(text)
        case _:
            found = -1
    if not 0 <= found <= LAST_MOMENT:
        raise InvalidTimestamp("START TIMESTAMP", topic)
    return found


def _since_1970(text: str) -> int:
    """Of a time in ISO form, in UTC unless it says otherwise; the next millisecond, where it lies between two. -1 if it is no
    time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return -1
    return -((EPOCH - (moment if moment.tzinfo else moment.replace(tzinfo=UTC))) // timedelta(milliseconds=1))

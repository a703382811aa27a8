"""What Spark raised -> what is wrong, in our words. A bad record is read again, alone, to say why it is bad."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from typing import cast

import fastavro
from fastavro.schema import parse_schema
from pyspark.errors import PySparkException

from headgate.errors import HeadgateError
from headgate.runtime.decode import BAD
from headgate.runtime.errors import BadRecord, NotANumber, SparkGone, SparkRefused
from headgate.runtime.formats.avro import inlined, texts
from headgate.runtime.formats.side import MALFORMED, UNKNOWN_ID
from headgate.runtime.source import SourceReader

_LONGEST = 500  # characters of Spark's own words that an error repeats


def unknown_schema_id(error: BaseException) -> int | None:
    """The id that a batch met and that no schema is known for, if that is what failed it."""
    found = re.search(re.escape(UNKNOWN_ID) + r"(\d+)", str(error))
    return int(found[1]) if found else None


def translated(error: BaseException, reader_of: Callable[[str], SourceReader | None]) -> HeadgateError:
    """The error to be shown. ``reader_of`` finds the source that reads a topic."""
    if isinstance(error, HeadgateError):
        return error
    text = str(error)
    found = re.search(re.escape(BAD) + r"(\{.*?\})(?=\s|$|\")", text)
    if found is not None:
        return bad_record(json.loads(found[1].replace('\\"', '"')), reader_of)
    if (
        isinstance(error, ConnectionError | EOFError)
        or type(error).__name__ == "Py4JNetworkError"
        or "stopped SparkContext" in text
    ):
        return SparkGone(_short(text))
    if isinstance(error, PySparkException):
        condition = error.getCondition() or ""
        reason = _short(text)
        if (
            condition in ("DIVIDE_BY_ZERO", "ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE")
            or "CAST_" in condition
        ):
            return NotANumber(_without_values(condition))
        return SparkRefused(reason)
    return SparkRefused(_short(text) or type(error).__name__)


def bad_record(place: dict[str, object], reader_of: Callable[[str], SourceReader | None]) -> BadRecord:
    topic, partition, offset = str(place["topic"]), int(str(place["partition"])), int(str(place["offset"]))
    side, reason = str(place["side"]), str(place["reason"])
    schema_id = int(str(place["schema_id"])) if place.get("schema_id") is not None else None
    reader = reader_of(topic)
    path: str | None = None
    if reader is not None and reason == MALFORMED and schema_id is not None:
        reason, path = _explained(reader, topic, partition, offset, side, schema_id)
    source = reader.object.name if reader is not None else topic
    return BadRecord(source, topic, partition, offset, side, _sentence(reason), path, schema_id)


def _explained(
    reader: SourceReader, topic: str, partition: int, offset: int, side: str, schema_id: int
) -> tuple[str, str | None]:
    """Why an Avro body is malformed, found by decoding that one record in Python."""
    record = reader.cluster.record(topic, partition, offset)
    writer = reader.writer(schema_id, side)
    data = None if record is None else record[0 if side == "key" else 1]
    if data is None or writer is None:
        return MALFORMED, None
    body = io.BytesIO(data[5:])
    try:
        schema = parse_schema(cast("dict[str, object]", inlined(json.loads(writer.text), texts(writer))))
        fastavro.schemaless_reader(body, schema, None)
    except EOFError:
        return "it ends before its schema does", None
    except Exception:  # noqa: BLE001 - whatever the decoder raises, it says no more than that
        return MALFORMED, None
    left = len(data) - 5 - body.tell()
    return (f"{left} bytes are left over behind it", None) if left else (MALFORMED, None)


def _short(text: str) -> str:
    first = text.split("JVM stacktrace")[0].split("\n\tat ")[0].strip()
    first = re.sub(r"\s*SQLSTATE: \w+.*", "", first, flags=re.S)
    return first.splitlines()[0][:_LONGEST] if first else ""


def _without_values(condition: str) -> str:
    return condition.lower().replace("_", " ").replace(".", ", ")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]

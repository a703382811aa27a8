"""What Spark raised -> what is wrong, in our words. A bad record is read again, alone, to say why it is bad."""

from __future__ import annotations

import logging
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pyspark.errors import AnalysisException, PySparkException

from headgate.connectors.errors import BrokerUnreachable
from headgate.errors import HeadgateError
from headgate.runtime import errors
from headgate.runtime.decode import BAD, CHANGED
from headgate.runtime.formats.avro_reader import explain_malformed
from headgate.runtime.formats.frame import UNKNOWN_ID
from headgate.runtime.formats.side import MALFORMED
from headgate.runtime.source import SourceReader
from headgate.schema.values import CAST_ERROR
from headgate.schema.written import WrittenSchema

log = logging.getLogger(__name__)

SILENT = "Spark's driver does not answer"
UNSEEN = "It was bad when it was read, and could not be read again to say why"
_LONGEST = 500  # characters of Spark's own words that an error repeats
# What a record that stops a job says of itself (`Decoder`).
_STOPPED = re.compile(
    rf"(?:{BAD}|{CHANGED})(?P<source>\d+)/(?P<partition>\d+)/(?P<offset>\d+)(?:/(?P<side>key|value)/(?P<id>\d+))?"
)
# What the JVM says when a write found no room; with the file, where it was told.
_NO_SPACE = re.compile(r"(?P<path>(?:file:)?/\S+)?\W*(?:No space left on device|Disk quota exceeded|File too large)")
# What Kafka's Java client, and Spark on top of it, say when no broker answers.
_NO_ANSWER = re.compile(
    r"(?:kafka\.common\.errors\.(?:TimeoutException|DisconnectException)|util\.concurrent\.TimeoutException): "
    r"(?P<said>[^\n]*?)\.?(?:\n|$)"
)
# py4j: "An error occurred while calling o787.save.", then the Java exception, then what caused it. Or, of a failed job,
# what ended it: "… (TID 5) (host executor driver): java.lang.…".
_CAUSE = re.compile(
    r"(?:^: |^Caused by: |\(TID \d+\) \([^)]*\): )(?P<package>(?:[\w$]+\.)*)(?P<name>[\w$]+)(?:: (?P<said>.+))?$",
    re.MULTILINE,
)
# A condition of Spark's, with which its words begin, and the SQLSTATE with which they end.
_CONDITION = re.compile(r"(?:^|(?:Exception|Error): )\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)?)\]", re.MULTILINE)
_SQLSTATE = re.compile(r"SQLSTATE: (\w{2})\w{3}")
# Words that tell of the machinery. All others may hold a value: "The value 'x' cannot be cast", "Invalid date 'x'".
_MACHINERY = ("08", "53", "54", "57", "58", "XX")  # classes of SQLSTATEs
_HARMLESS = re.compile(r"java\.(?:io|net|nio)\.|java\.lang\.(?:IllegalState|\w+Error$)|org\.apache\.(?:kafka|hadoop)\.")
_OWN = re.compile(r"\[USER_RAISED_EXCEPTION\] (" + CAST_ERROR + r"\w+)(?: SQLSTATE|$)", re.MULTILINE)
# A path as `schema.paths` writes it.
_PATH = re.compile(r'(?:\bat |^)\$((?:\.\w+|\."(?:[^"]|"")*"|\[\d*\]|\{\})*)')


@dataclass(frozen=True, slots=True)
class StoppedAt:
    """The record that stopped a job. ``side`` and ``schema_id`` are set if its schema did."""

    partition: int
    offset: int
    side: Literal["key", "value"] | None = None
    schema_id: int | None = None


def stopped_at(text: str) -> StoppedAt | None:
    """The record that stopped a job, if that is what the words of an error say."""
    told = _STOPPED.search(text)
    if told is None:
        return None
    place = int(told["partition"]), int(told["offset"])
    if told["id"] is None:
        return StoppedAt(*place)
    return StoppedAt(*place, "key" if told["side"] == "key" else "value", int(told["id"]))


def unknown_schema_id(error: BaseException) -> int | None:
    """The id that a batch met and that no schema is known for, if that is what failed it."""
    found = re.search(re.escape(UNKNOWN_ID) + r"(\d+)", message_of(error))
    return int(found[1]) if found else None


def records_are_gone(error: BaseException) -> bool:
    """Whether a read asked for records that the topic does not have any more."""
    text = message_of(error)
    return any(said in text for said in ("KAFKA_DATA_LOSS", "OffsetOutOfRangeException", "data may have been lost"))


def record_is_too_large(error: BaseException) -> bool:
    """Whether the broker refused a record because its topic takes none of that size."""
    return "RecordTooLargeException" in message_of(error)


def result_is_too_large(error: BaseException) -> bool:
    """Whether a job had more to give to the driver than Spark lets it have."""
    return "spark.driver.maxResultSize" in message_of(error)


def translated(
    error: BaseException, sources: Iterable[SourceReader] = (), brokers: str = "the broker"
) -> HeadgateError:
    """The error to be shown. ``sources`` are those that were read; ``brokers`` are those of their cluster."""
    if isinstance(error, HeadgateError):
        return error
    text = message_of(error)
    told = _STOPPED.search(text)
    reader = next((one for one in sources if told and one.id == int(told["source"])), None)
    if told is not None and reader is not None:
        place = int(told["partition"]), int(told["offset"])
        if told["id"] is not None:
            return _schema_changed(reader, *place, told["side"], int(told["id"]))
        return _read_bad_record(reader, *place)
    if (
        isinstance(error, ConnectionError | EOFError)
        or type(error).__name__ == "Py4JNetworkError"
        or "stopped SparkContext" in text
        or text == SILENT
    ):
        return errors.SparkGone(_short(text))
    if records_are_gone(error):
        return errors.RecordsDeleted()
    if full := _NO_SPACE.search(text):
        return errors.DiskFull(_folder(full["path"]))
    if unanswered := _NO_ANSWER.search(text):
        return BrokerUnreachable(brokers, f"{unanswered['said'][:_LONGEST]}.")
    if isinstance(error, AnalysisException):  # no record was read yet
        return errors.SparkRefused(_short(text))
    if own := _OWN.search(text):
        return errors.ComputationFailed(own[1])
    if conditions := _CONDITION.findall(text):
        states = _SQLSTATE.findall(text)
        if not states or states[-1] not in _MACHINERY:
            return errors.ComputationFailed(_without_values(conditions[-1]))
    return errors.SparkRefused(_cause(text) or _shown_message(error, text))


def _schema_changed(
    reader: SourceReader, partition: int, offset: int, side: str, schema_id: int
) -> errors.SchemaChanged:
    differences = reader.schemas[side].describe(schema_id)
    name, topic = reader.name, reader.topic_name
    return errors.SchemaChanged(name, topic, partition, offset, side, schema_id, differences, reader.kind)


def _read_bad_record(reader: SourceReader, partition: int, offset: int) -> errors.BadRecord:
    """The record that stopped a job, read once more to say what is wrong with it. It may be gone by now."""
    try:
        found = reader.problem(partition, offset)
    except Exception as error:  # noqa: BLE001 - that the record is bad is the news, and stays so
        log.warning("a bad record could not be read again: %s", translated(error))
        found = None
    if found is None:
        name, topic = reader.name, reader.topic_name
        return errors.BadRecord(name, topic, partition, offset, "value", UNSEEN, None, None, reader.kind)
    return bad_record(reader, partition, offset, found["side"], found["reason"], found["schema_id"])


def bad_record(
    reader: SourceReader, partition: int, offset: int, side: str, reason: str, schema_id: int | None
) -> errors.BadRecord:
    writer = None if schema_id is None else reader.writer(schema_id, side)
    data = _read_again(reader, partition, offset, side) if reason == MALFORMED and writer is not None else None
    name, topic = reader.name, reader.topic_name
    why = reason_of(reason, data, writer)
    return errors.BadRecord(name, topic, partition, offset, side, why, None, schema_id, reader.kind)


def reason_of(reason: str, data: bytes | None, writer: WrittenSchema | None) -> str:
    """Why a record is bad, as a sentence. ``data`` is the side that is bad, and ``writer`` its schema, if it names one.
    Executors call it too."""
    if reason == MALFORMED and writer is not None:
        reason = explain_malformed(data, writer)
    return _sentence(reason)


def path_of(side: str, reason: str) -> str:
    """Where in a record the trouble lies: its side, and within it what the reason says."""
    found = _PATH.search(reason)
    return f"$.{side}{found[1] if found else ''}"


def _read_again(reader: SourceReader, partition: int, offset: int, side: str) -> bytes | None:
    record = reader.cluster.read_record(reader.topic_name, partition, offset)
    return None if record is None else record[0 if side == "key" else 1]


def is_of_spark(error: BaseException) -> bool:
    """Whether Spark or the connection to it raised an error. The text of such an error may contain values of rows."""
    from_connection = isinstance(error, ConnectionError | EOFError) or type(error).__name__.startswith("Py4J")
    return from_connection or isinstance(error, PySparkException)


def message_of(error: BaseException) -> str:
    """The text of an error. Spark is asked for the text of its own errors, and Spark may be dead by then."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - py4j has several for it
        return SILENT


def _folder(path: str | None) -> str:
    """Where there was no room; without a path it is where Spark keeps what does not fit into memory."""
    return str(Path(path.removeprefix("file:")).parent) if path else tempfile.gettempdir()


def _cause(text: str) -> str:
    """The innermost exception, with its words if these tell nothing of a record."""
    found = list(_CAUSE.finditer(text))
    if not found:
        return ""
    package, name, said = found[-1]["package"], found[-1]["name"], found[-1]["said"]
    harmless = said is not None and (_HARMLESS.match(package + name) or _CONDITION.match(said))
    return f"{name}: {_short(said)}" if harmless else name


def _shown_message(error: BaseException, text: str) -> str:
    """What an error says that names no cause. Spark's own words are not known to be free of values."""
    name = type(error).__name__
    return name if isinstance(error, PySparkException) else _short(text) or name


def _short(text: str) -> str:
    """The first line, without what is for programs."""
    first = text.split("JVM stacktrace")[0].split("\n\tat ")[0].strip()
    first = re.sub(r"\s*SQLSTATE: \w+.*", "", first, flags=re.S)
    return first.splitlines()[0][:_LONGEST] if first else ""


def _without_values(condition: str) -> str:
    return condition.lower().replace("_", " ").replace(".", ", ")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def own_error(error: BaseException, task: str) -> HeadgateError:
    """The error itself if it is one of ours. Any other is logged with its trace, and its first line is shown."""
    if isinstance(error, HeadgateError):
        return error
    log.error("%s failed", task, exc_info=error)
    first_line = (str(error).splitlines() or [type(error).__name__])[0]
    return errors.TaskFailed(task, first_line[:300])

"""What is wrong with a sink that is well formed: its key and relation (PLN-030x and PLN-031x), its formats (PLN-035x), its
options (PLN-036x) and changes of it. Those of its docs are in `doc_errors.py`."""

from __future__ import annotations

from headgate.plan.errors import OverChanging, PlanError


class SinkKeyMissing(PlanError, code="PLN-0301"):
    """A sink writes the newest row per key and has no KEY clause."""

    sink: str
    MESSAGE = 'ENVELOPE UPSERT of sink "{sink}" needs a KEY'
    HINT = "Write KEY (column, …) before FORMAT."


class SinkKeyNotUnique(PlanError, code="PLN-0302"):
    """A sink writes the newest row per key, and several rows of its relation may have the same key."""

    sink: str
    key: tuple[str, ...]
    known: tuple[str, ...]
    deletes: bool = False  # whether rows of the relation can be deleted
    MESSAGE = 'key ({key:list}) of sink "{sink}" is not known to be unique'
    DETAIL = "The relation's key is ({known:list})."
    HINT = "Use the relation's key, or write KEY (…) NOT ENFORCED if you know that it is unique."

    def detail(self) -> str | None:
        return super().detail() or "The relation has no key."

    def hint(self) -> str | None:
        if self.deletes:
            return (
                "Use the key of the source: a deletion carries this key alone, so that KEY (…) NOT ENFORCED does not help. Or "
                "write ENVELOPE NONE: every change is then written, and nothing is deleted."
            )
        return super().hint()


class SinkFormatNeedsOneColumn(PlanError, code="PLN-0303"):
    """A format that holds a single value is used for several columns."""

    sink: str
    format: str
    side: str
    found: int
    MESSAGE = '{format} writes one column, but the {side} of sink "{sink}" has {found}'
    HINT = "Select the one column in a view, or use a format that has fields."


class FormatNotWritten(PlanError, code="PLN-0356"):
    """A sink has a format that only sources have."""

    sink: str
    format: str
    MESSAGE = 'sink "{sink}" cannot write FORMAT {format}'
    HINT = (
        "A sink writes AVRO, PROTOBUF or JSON SCHEMA with USING CONFLUENT SCHEMA REGISTRY, JSON, TEXT or BYTES. TEXT writes one "
        "column, which a view can put together: concat_ws(',', a, b)."
    )


class KeyWithoutFormat(PlanError, code="PLN-0304"):
    """A sink has a format for keys and no KEY clause.

    Cure: Write KEY (column, …) before KEY FORMAT, or leave KEY FORMAT out.
    """

    sink: str
    MESSAGE = 'KEY FORMAT of sink "{sink}" needs a KEY'


class SideWithoutSchema(PlanError, code="PLN-0305"):
    """A statement asks for the schema of a key or value whose format has none.

    Cure: Ask for the other side, or give the sink a format with a schema registry.
    """

    sink: str
    side: str
    MESSAGE = 'the {side} of sink "{sink}" has no schema'
    DETAIL = "Only formats that use a schema registry have one."


class SinkFeedsItself(PlanError, code="PLN-0306"):
    """A sink, or a stream or table with AS, writes to a topic from which its own records reach it again."""

    kind: str
    sink: str
    source_kind: str
    source: str
    topic: str
    over: tuple[str, ...] = ()  # other sinks that bring the records back to it
    MESSAGE = '{kind} "{sink}" cannot write to topic "{topic}", which {source_kind} "{source}" reads for {reader}'
    DETAIL = "Every record that the {kind} writes would be read and written again, without end."
    HINT = "Write to a topic of another name."

    @property
    def reader(self) -> str:
        sinks = " and ".join(f'"{name}"' for name in self.over)
        return f"sink {sinks}, whose records it reads again" if self.over else "it"


class SinkOverChanging(OverChanging, code="PLN-0307"):
    """A sink reads a relation whose rows come and go without a key.

    Cure: Keep the key of the relation below in the query: the hint names the columns.
    """

    MESSAGE = 'sink "{name}" cannot write {kind} "{relation}": its rows change, and no key tells them apart'


class SinkNeedsKey(PlanError, code="PLN-0308"):
    """A sink reads a relation whose rows are replaced and deleted by key, and does not say how to write that."""

    sink: str
    kind: str
    relation: str
    key: tuple[str, ...]
    MESSAGE = 'sink "{sink}" over {kind} "{relation}", whose rows change by key, needs KEY or ENVELOPE NONE'
    DETAIL = "Its key is ({key:list})."
    HINT = (
        "Write KEY ({key:list}) to write the newest row of each key and deletes, or ENVELOPE NONE to write every change as a "
        "record of its own and no deletes."
    )


class ClockInFilter(PlanError, code="PLN-0309"):
    """A sink reads a relation whose rows come and go with the time."""

    sink: str
    kind: str
    relation: str
    functions: tuple[str, ...]
    MESSAGE = 'sink "{sink}" cannot write {kind} "{relation}": which rows it has depends on {functions:and}'
    DETAIL = "A sink computes a row once, when the row comes. Nothing tells it when a row passes a condition because time has passed."
    HINT = "Make it a MATERIALIZED VIEW, whose time is that of its last batch, or leave the time out of the condition."


class SinkNotDeterministic(PlanError, code="PLN-0310"):
    """A sink writes the newest row per key, and its rows differ each time they are computed."""

    sink: str
    kind: str
    relation: str
    functions: tuple[str, ...]
    columns: tuple[str, ...] = ()
    MESSAGE = 'sink "{sink}" with a key cannot write {kind} "{relation}", which depends on {functions:and}'
    DETAIL = "A batch that is written again after a failure would have other values than what was written of it before."
    HINT = "Leave the function out, or write every row without a key: ENVELOPE NONE."


class SinkKeyNotOfSource(PlanError, code="PLN-0311"):
    """A sink writes the newest row per key, and what it reads is keyed by other columns."""

    sink: str
    key: tuple[str, ...]
    kind: str
    source: str
    source_key: tuple[str, ...]
    source_id: int | None = None  # whose stored copy would have the old rows
    MESSAGE = 'sink "{sink}" cannot delete by key ({key:list}), as {kind} "{source}" is keyed by ({source_key:list})'
    DETAIL = (
        "A sink keeps no rows. When a row of the {kind} changes or is deleted, the sink knows its key alone, and cannot find "
        "the records that it wrote under other keys."
    )
    HINT = (
        "Add the columns of that key to the KEY, let the sink read a MATERIALIZED VIEW that is keyed by what you want, as by GROUP "
        "BY, or write ENVELOPE NONE: nothing is deleted then."
    )

    def hint(self) -> str | None:
        if self.source_id is not None:
            return "Let the sink read a MATERIALIZED VIEW, which keeps its rows, or write ENVELOPE NONE: nothing is deleted then."
        return super().hint()


class InvalidMessageName(PlanError, code="PLN-0350"):
    """A FULLNAME cannot be the name of a Protobuf message."""

    name: str
    option: str
    MESSAGE = '"{name}" of {option} cannot be the name of a Protobuf message'
    HINT = "Write a package and a name, each of letters, digits and _ and not beginning with a digit, such as 'com.shop.Order'."


class OptionOfOtherFormat(PlanError, code="PLN-0351"):
    """An option of a sink's format has a meaning only in another format."""

    option: str
    format: str
    only: str
    MESSAGE = "{option} has no meaning for FORMAT {format}"
    DETAIL = "Only schemas of {only} have it."
    HINT = "Leave the option out."


class OptionOfOtherSide(PlanError, code="PLN-0353"):
    """An option for values is written in KEY FORMAT, or one for keys in VALUE FORMAT."""

    option: str
    side: str
    other: str
    MESSAGE = "{option} stands in {side} FORMAT"
    HINT = "Write it in {other} FORMAT."


class TypeNotBytes(PlanError, code="PLN-0354"):
    """FORMAT BYTES of a sink is used for a column that has no bytes of its own."""

    sink: str
    side: str
    column: str
    type: str
    MESSAGE = 'BYTES cannot write column "{column}" of type {type} as the {side} of sink "{sink}"'
    DETAIL = "It writes bytes as they are, and text, json, uuid and enum in UTF-8."
    HINT = "Use TEXT, or cast the column to text in a view."


class SchemaIdExcludes(PlanError, code="PLN-0355"):
    """An option would change the schema that a sink is told to write with by its id."""

    option: str
    id_option: str
    MESSAGE = "{option} and {id_option} exclude each other"
    HINT = "Leave {option} out: records are written with the schema as it is registered."


class DebeziumNeedsState(PlanError, code="PLN-0360"):
    """A sink writes change events of a relation whose rows are replaced or deleted. An event then holds the old row, which
    the sink does not have."""

    sink: str
    kind: str
    relation: str
    source_id: int | None = None  # whose stored copy would have the old rows
    MESSAGE = 'ENVELOPE DEBEZIUM of sink "{sink}" needs the old rows of {kind} "{relation}"'
    DETAIL = "Its rows change. A change event holds the row before the change, and a sink keeps no rows."
    HINT = (
        "Let the sink read a MATERIALIZED VIEW, which keeps its rows, or write the newest row of each key: "
        "KEY (…) with ENVELOPE UPSERT."
    )


class SinkKeyHoldsMap(PlanError, code="PLN-0361"):
    """A sink writes the newest row per key, and its key holds a map. Equal maps can have different bytes."""

    sink: str
    column: str
    MESSAGE = 'key column "{column}" of sink "{sink}" holds a map'
    DETAIL = "The entries of a map have no order, so that one key could be written as different bytes."
    HINT = "Leave the column out of the key, or make a sorted list of its entries in a view: array_sort(map_entries({column}))."


class PartitionByNotInteger(PlanError, code="PLN-0362"):
    """PARTITION BY of a sink is not a whole number."""

    sink: str
    type: str
    MESSAGE = 'PARTITION BY of sink "{sink}" is of type {type}, and must be an integer or bigint'
    HINT = "Make a number of it: PARTITION BY hash(column), for example."


class PartitionByNotKey(PlanError, code="PLN-0363"):
    """PARTITION BY of a sink with a key uses a column that is not in the key."""

    sink: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    MESSAGE = 'PARTITION BY of sink "{sink}" uses {columns:list}, which its key ({key:list}) does not have'
    DETAIL = "All records of a key must go to one partition, and a deletion has nothing but the key."
    HINT = "Use columns of the key alone, or write every row without replacing others: ENVELOPE NONE."


class PartitionByNotFixed(PlanError, code="PLN-0364"):
    """PARTITION BY of a sink does not give the same number for the same row each time it is computed."""

    sink: str
    reason: str
    MESSAGE = 'PARTITION BY of sink "{sink}" is not computed from one row alone: {reason}'
    HINT = "Use columns of the relation, constants and functions of these."


class HeadersOfOtherType(PlanError, code="PLN-0365"):
    """HEADERS of a sink names a column that cannot be the headers of a record."""

    sink: str
    column: str
    type: str
    MESSAGE = 'column "{column}" of type {type} cannot be the headers of sink "{sink}"'
    HINT = (
        "It must be a map of text to text or bytes, as map('source', 'shop') gives, or a list of records with the fields key "
        "(text) and value (text or bytes), as INCLUDE HEADERS of a source gives."
    )


class SinkCannotQuarantine(PlanError, code="PLN-0366"):
    """A sink sets rows aside by the position of their records, and its rows have none that could be sent through again."""

    sink: str
    reason: str
    MESSAGE = 'sink "{sink}" cannot have ON ERROR = QUARANTINE: {reason}'
    DETAIL = "The quarantine holds records by their position, and REPLAY QUARANTINE sends a whole record through again."
    HINT = "Write ON ERROR = SKIP or HALT."


class SnapshotOfCopy(PlanError, code="PLN-0370"):
    """A sink without a snapshot needs old rows, which a stored copy of its source would have. The copy has its own batches, so
    that offsets of the source do not say where to begin."""

    sink: str
    copy: str
    MESSAGE = 'sink "{sink}" cannot have SNAPSHOT = false over a source whose old rows it needs'
    HINT = "Let it read the materialized view that keeps them: FROM {copy}, or a view over it."


class TopicDiffers(PlanError, code="PLN-0367"):
    """A sink gives settings for its topic, and the topic exists with others."""

    topic: str
    differences: tuple[tuple[str, str, str], ...]  # the option, its value in the statement and in the topic
    MESSAGE = 'topic "{topic}" exists with other settings'
    HINT = "Leave these options out to write to the topic as it is, change the topic, or name another topic."

    def detail(self) -> str:
        parts = [f"{option} is {found}, not {wanted}" for option, wanted, found in self.differences]
        return f"{'; '.join(parts)}."


class OptionWithoutKey(PlanError, code="PLN-0368"):
    """An option of a sink is about its key, and the sink has none."""

    sink: str
    option: str
    MESSAGE = '{option} of sink "{sink}" needs a KEY'
    HINT = "Write KEY (column, …) before FORMAT, or leave the option out."


class FullnameOfOneSide(PlanError, code="PLN-0369"):
    """A sink with a key names the Avro record of one side only."""

    sink: str
    given: str
    missing: str
    MESSAGE = 'sink "{sink}" has {given} and no {missing}'
    HINT = "Write both names, or neither: the records are then called row and envelope."


class ExactlyOnceInRealTime(PlanError, code="PLN-0380"):
    """A sink asks for exactly-once delivery and for real time."""

    sink: str
    MESSAGE = 'sink "{sink}" cannot deliver exactly once in real time'
    DETAIL = (
        "Exactly once means that readers see a batch whole. In real time records are written one by one as they come."
    )
    HINT = (
        "Leave out DELIVERY = 'exactly once' or LATENCY = 'real time'. A topic with a key ends up the same either way."
    )


class RealTimeImpossible(PlanError, code="PLN-0391"):
    """A sink asks for real time, and a part of it can run in micro-batches only."""

    sink: str
    reason: str
    MESSAGE = 'sink "{sink}" cannot run in real time'
    DETAIL = "The reason: {reason}."
    HINT = "Leave LATENCY out, or write LATENCY = 'micro-batch'."


class SinkKeyChanges(PlanError, code="PLN-0410"):
    """A change of the source would give the keys of a sink other bytes."""

    sink: str
    reasons: tuple[str, ...]
    MESSAGE = 'the key of sink "{sink}" would have other bytes in its topic'
    HINT = "ALTER SINK {sink} SET FROM the relation that it reads accepts it: all keys are written anew, and the old ones deleted."

    def detail(self) -> str:
        return f"{'; '.join(self.reasons)}. The topic would hold two records for one key."

"""What is wrong with the options of a sink: PLN-036x and PLN-037x."""

from __future__ import annotations

from headgate.plan.errors import PlanError


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

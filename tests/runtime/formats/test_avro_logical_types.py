"""Which reader Avro resolves a writer to, where both mean different things by the same bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.runtime.formats.avro_logical_types import LogicalTypeConflict, with_writer_logical_types
from headgate.runtime.formats.avro_plan import NameConflict, to_json_text, writer_tree
from headgate.schema.formats.avro.tree import AvroType, Field, Name, Record, to_json
from headgate.schema.written import WrittenSchema

pytestmark = pytest.mark.unit


def logical(primitive: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": primitive, "logicalType": name, **more}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return logical("bytes", "decimal", precision=precision, scale=scale)


def record(*fields: dict[str, Any], name: str = "r") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(type_: Any, name: str = "a", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


def tree(schema: Any) -> AvroType:
    return writer_tree(WrittenSchema(json.dumps(schema)))


def meant(writer: Any, reader: Any) -> Any:
    return to_json(with_writer_logical_types(tree(writer), tree(reader)))


MILLIS, MICROS = logical("long", "timestamp-millis"), logical("long", "timestamp-micros")
TIME_MILLIS, TIME_MICROS = logical("int", "time-millis"), logical("long", "time-micros")
DATE, UUID = logical("int", "date"), logical("string", "uuid")
CONNECT_TIME = {"type": "int", "connect.name": "org.apache.kafka.connect.data.Time"}
EXACT = [
    (MILLIS, MICROS), (MICROS, MILLIS), (TIME_MILLIS, TIME_MICROS), (CONNECT_TIME, TIME_MICROS), (decimal(9, 2), decimal(12, 4)),
]  # fmt: skip
OTHER = [
    ("int", DATE), ("long", MICROS), ("int", MICROS), (DATE, "int"), (DATE, "double"), (DATE, MICROS), ("bytes", decimal(9, 2)),
    (decimal(9, 2), "bytes"), (decimal(9, 2), "string"), (decimal(9, 2), decimal(9, 4)), (decimal(9, 2), decimal(8, 2)),
    (decimal(50, 2), decimal(38, 2)), (MICROS, logical("long", "local-timestamp-micros")),
    (logical("long", "timestamp-nanos"), MICROS),
]  # fmt: skip
ALIKE = [
    ("int", "long"), ("int", "double"), (MICROS, MICROS), ("string", UUID), (UUID, "string"), (logical("int", "unheard"), "long"),
    (TIME_MICROS, TIME_MILLIS), ("string", DATE),
]  # fmt: skip


@pytest.mark.parametrize(("writer", "reader"), EXACT)
def test_the_writer_says_what_its_values_mean(writer: Any, reader: Any) -> None:
    assert meant(writer, reader) == writer
    assert meant(writer, ["null", reader]) == ["null", writer]
    assert meant(["null", writer], reader) == writer
    nested = {"type": "array", "items": record(field({"type": "map", "values": reader}))}
    found = meant({"type": "array", "items": record(field({"type": "map", "values": writer}))}, nested)
    assert found == {"type": "array", "items": record(field({"type": "map", "values": writer}))}


@pytest.mark.parametrize(("writer", "reader"), OTHER)
def test_values_of_another_kind_are_told_by_their_path(writer: Any, reader: Any) -> None:
    inner = record(field({"type": "array", "items": ["null", reader]}, "b c"))
    with pytest.raises(LogicalTypeConflict) as told:
        meant(record(field({"type": "array", "items": writer}, "b c")), inner)
    assert told.value.path == '$."b c"[]'


@pytest.mark.parametrize(("writer", "reader"), ALIKE)
def test_what_means_the_same_or_cannot_be_resolved_is_left_to_avro(writer: Any, reader: Any) -> None:
    whole = record(field(reader, default=0))
    assert meant(record(field(writer)), whole) == whole


def test_fields_that_the_writer_lacks_keep_their_defaults() -> None:
    reader = record(field(MICROS, default=5), field(MICROS, "b", default=6))
    assert meant(record(field(MILLIS)), reader) == record(field(MILLIS), field(MICROS, "b", default=6))


def test_fields_are_found_by_the_aliases_of_their_record() -> None:
    reader = {**record(field(MICROS, aliases=["old"]), name="n.r"), "aliases": ["before"]}
    found = meant(record(field(MILLIS, "old"), name="n.before"), reader)
    assert found["fields"] == [field(MILLIS, aliases=["old"])]
    assert meant(record(field(MILLIS, "old"), name="n.stranger"), reader) == to_json(tree(reader))


def test_a_branch_of_a_union_is_found_by_its_type() -> None:
    assert meant(["string", MILLIS], ["null", MICROS, UUID]) == ["null", MILLIS, UUID]
    assert meant(MILLIS, [DATE, MICROS]) == [DATE, MILLIS]
    with pytest.raises(LogicalTypeConflict):
        meant([TIME_MILLIS, TIME_MICROS], [TIME_MICROS, "string"])


def test_one_of_several_records_that_nobody_named_means_nothing_else() -> None:
    first, second = record(field(MICROS), name="x"), record(field(MICROS), name="y")
    assert meant(record(field(MILLIS), name="y"), [first, second]) == [
        first,
        record(field(MILLIS), name="y"),
    ]
    assert meant(record(field(MICROS), name="z"), [first, second]) == [first, second]
    with pytest.raises(LogicalTypeConflict):
        meant(record(field(MILLIS), name="z"), [first, second])


@pytest.mark.parametrize("itself", ["r", "n.r", {"type": "r"}])
def test_a_writer_that_holds_itself_is_followed_as_far_as_the_reader_goes(itself: Any) -> None:
    writer = record(field(MILLIS), field(["null", itself], "next"), name="n.r")
    reader = record(field(MICROS), field(["null", record(field(MICROS), name="n.last")], "next"), name="n.r")
    assert meant(writer, reader)["fields"][1]["type"][1]["fields"] == [field(MILLIS)]


def test_a_name_is_written_out_once_and_stands_for_one_thing() -> None:
    one, other = tree(record(field(MILLIS), name="x")), tree(record(field(MICROS), name="x"))
    text = to_json_text(Record(Name("r"), (Field("a", one), Field("b", one))))
    assert text.count("timestamp-millis") == 1
    with pytest.raises(NameConflict):
        to_json_text(Record(Name("r"), (Field("a", one), Field("b", other))))

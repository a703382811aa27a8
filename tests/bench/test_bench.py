"""Every benchmark that needs no service runs and says what it found. How long anything took is nobody's test."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from bench.__main__ import BENCHMARKS, main
from bench.compatibility import ours
from bench.disagreements import Disagreement, Reason
from bench.figures import compared, shown
from bench.mappers import schema_of
from bench.materializations import documents
from bench.pairs import TextPair, pairs
from bench.rows_by_hand import NAMES
from headgate.schema.formats.avro import from_avro
from headgate.schema.types import Record
from headgate.schema.written import SchemaFormat

pytestmark = pytest.mark.unit

WITHOUT_SERVICES = ("language", "catalog", "mappers", "queries", "statements", "avro")


@pytest.mark.parametrize("name", WITHOUT_SERVICES)
def test_a_small_run_gives_rows(name: str) -> None:
    report = BENCHMARKS[name]("small")
    assert report.rows
    assert all(row.what and row.ours for row in report.rows)
    assert any(row.ratio is not None and row.ratio > 0 for row in report.rows)
    agreements = [(row.ratio, row.kept) for row in report.rows if "agree" in row.what]
    assert agreements == ([(1.0, True)] if name == "avro" else [])


def test_every_figure_that_is_promised_has_a_benchmark() -> None:
    assert set(BENCHMARKS) >= {*WITHOUT_SERVICES, "registry", "world", "views", "materializations"}


def test_documents_have_the_columns_of_the_table_and_keys_of_their_own() -> None:
    found = list(documents(200))
    assert {tuple(one) for one in found} == {NAMES}
    assert len({one["id"] for one in found}) == 200
    assert found == list(documents(200))


def test_the_command_prints_a_table() -> None:
    result = CliRunner().invoke(main, ["--small", "--only", "mappers"])
    assert result.exit_code == 0, result.output
    assert "Language: mappers" in result.output
    assert "Protobuf" in result.output


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    result = CliRunner().invoke(main, ["--only", "mapers"])
    assert result.exit_code == 2
    assert "'mappers'" in result.output


@pytest.mark.parametrize("type_", SchemaFormat)
def test_pairs_are_distinct_and_the_same_in_every_run(type_: SchemaFormat) -> None:
    found = pairs(type_, 20)
    assert len(set(found)) == len(found) == 20
    assert found == pairs(type_, 20)


def test_some_pairs_are_compatible_and_some_are_not() -> None:
    for type_ in SchemaFormat:
        assert {ours(pair) == () for pair in pairs(type_, 40)} == {True, False}


def test_the_wide_schema_has_as_many_leaves_as_it_is_asked_for() -> None:
    record = from_avro(schema_of(100))
    assert isinstance(record, Record)
    assert sum(len(field.type.fields) for field in record.fields if isinstance(field.type, Record)) == 100


@pytest.mark.parametrize(
    ("seconds", "text"), [(12.345, "12.3 s"), (0.2, "200 ms"), (0.0000715, "71.5 µs"), (0.0000002, "0.2 µs")]
)
def test_a_time_is_shown_in_a_unit_that_suits_it(seconds: float, text: str) -> None:
    assert shown(seconds) == text


def test_a_promise_is_kept_below_its_limit_only() -> None:
    assert compared("x", 0.001, 0.002, "peer", limit=0.002).kept is True
    assert compared("x", 0.003, 0.002, "peer", limit=0.002).kept is False
    assert compared("x", 0.003).kept is None


REFUSED = "Incompatible artifact: list of diff types: [{} at /properties/v]"


def _document(schema: str) -> str:
    return f'{{"type": "object", "properties": {{"v": {schema}}}, "additionalProperties": false}}'


@pytest.mark.parametrize(
    ("old", "new", "theirs", "reason"),
    [
        (
            '{"type": "null"}',
            '{"anyOf": [{"type": "null"}, {"type": "string"}]}',
            REFUSED.format("SUBSCHEMA_TYPE_CHANGED"),
            Reason.MOVED_INTO_SUM,
        ),
        (
            '{"type": "boolean"}',
            '{"oneOf": [{"type": "boolean"}, {"type": "boolean"}]}',
            REFUSED.format("SUBSCHEMA_TYPE_CHANGED"),
            Reason.OVERLAPPING_ONE_OF,
        ),
        (
            '{"type": "object", "properties": {}}',
            '{"type": "object", "properties": {}, "required": ["a"]}',
            REFUSED.format("OBJECT_TYPE_REQUIRED_PROPERTIES_MEMBER_ADDED"),
            Reason.REQUIRED_UNSEEN,
        ),
        (
            '{"oneOf": [{"type": "integer"}, {"type": "null"}]}',
            '{"anyOf": [{"type": "integer"}]}',
            "",
            Reason.CRITERION_ENDS_IT,
        ),
        ('{"type": "string"}', '{"type": "string"}', REFUSED.format("OTHER"), Reason.UNEXPLAINED),
    ],
    ids=lambda value: value.name if isinstance(value, Reason) else None,
)
def test_a_disagreement_on_json_schema_has_its_reason(old: str, new: str, theirs: str, reason: Reason) -> None:
    pair = TextPair(SchemaFormat.JSON, _document(new), _document(old))
    assert Disagreement(pair, ours(pair), theirs).reason() is reason


@pytest.mark.parametrize(
    ("old", "new", "theirs", "reason"),
    [
        ("int32 a = 1;", "", "refused", Reason.REMOVED),
        ("int32 a = 1;", "int32 b = 1;", "refused", Reason.RENAMED),
        ("int32 a = 1;", "int64 a = 1;", "refused", Reason.SAME_WIRE_FORM),
        ("int32 a = 1;", "optional int32 a = 1;", "refused", Reason.LABEL),
        ("int32 a = 1;", "oneof o { int32 a = 1; }", "refused", Reason.UNEXPLAINED),
        (
            "int32 a = 1; int32 b = 2;",
            "oneof o { int32 a = 1; int32 b = 2; }",
            "",
            Reason.ONEOF_GATHERED,
        ),
        ("int32 a = 1;", "string a = 1;", "", Reason.UNEXPLAINED),
    ],
    ids=lambda value: value.name if isinstance(value, Reason) else None,
)
def test_a_disagreement_on_protobuf_has_its_reason(old: str, new: str, theirs: str, reason: Reason) -> None:
    texts = (f'syntax = "proto3"; message M {{ {body} }}' for body in (new, old))
    pair = TextPair(SchemaFormat.PROTOBUF, *texts)
    assert Disagreement(pair, ours(pair), theirs).reason() is reason

"""A keyed sink over filters and projections: its records come out of one projection, and always add up to the batch query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import redirect_stdout
from io import StringIO

import pytest
from hypothesis import given, strategies as st
from pyspark.sql import DataFrame, SparkSession, functions as F

from headgate.plan.definitions import (
    PRESENT,
    Origin,
    QueryDefinition,
    RecordEncoding,
    RelationDefinition,
    SinkDefinition,
    SourceColumn,
    SourceDefinition,
    SourceLayout,
    TaskDefinition,
    ViewDefinition,
    spark_name,
)
from headgate.runtime.ports import Upsert
from headgate.runtime.relations import RelationFrames
from headgate.runtime.sink_task import SinkPlan
from headgate.runtime.source import latest_per_key
from headgate.schema.encodings import TextEncoding
from headgate.schema.types import Bigint, Integer, Record, Text, Type
from headgate.sql.query.scope import AnalysedQuery, Column, Relation
from headgate.sql.query.select import analyse
from headgate.sql.query.tree import RelationName
from headgate.sql.query.tree_sql import marked_sql
from headgate.text.cursor import Identifier
from tests.laws import examples

pytestmark = pytest.mark.spark

COLUMNS: Mapping[str, Type] = {"id": Bigint(), "a": Integer(), "b": Integer(), "note": Text()}
SCHEMA = "id bigint, a int, b int, note string"
SOURCE = 1

Row = tuple[int | None, int | None, str | None]
State = dict[int, Row]


def chain(*queries: str) -> TaskDefinition:
    """A task over views with these queries, each of which reads the one before it as `t`."""
    columns = tuple(SourceColumn(n, t, True, Origin("value", n), key=n == "id") for n, t in COLUMNS.items())
    layout = SourceLayout("s", columns, TextEncoding(), None, "UPSERT", "HALT", "PIN")
    source = SourceDefinition(SOURCE, "s", "topic", 1, layout)
    relations: dict[int, RelationDefinition] = {SOURCE: source}
    below: tuple[Column, ...] = tuple(Column(n, t) for n, t in COLUMNS.items())
    views = []
    for id_, query in enumerate(queries, start=SOURCE + 1):
        analysed = _analysed(query, id_ - 1, below)
        names = tuple(column.name for column in analysed.columns)
        definition = QueryDefinition(analysed.spark_sql, tuple((n, None) for n in names), (id_ - 1,))
        relations[id_] = ViewDefinition(id_, f"v{id_}", definition, names)
        views.append((analysed.tree, names))
        below = tuple(Column(c.name, c.type, c.nullable) for c in analysed.columns)
    side = RecordEncoding("JSON", ("id",), Record(()))
    sink = SinkDefinition("s", SOURCE + len(queries), "topic", 1, side, side, "UPSERT")
    sql = marked_sql(spark_name(SOURCE), list(COLUMNS), views, ("id",), PRESENT)
    return TaskDefinition(9, "s", source, relations, sink, {"id": "id"}, marked_sql=sql)


def _analysed(query: str, relation: int, columns: tuple[Column, ...]) -> AnalysedQuery:
    def find(parts: tuple[Identifier, ...]) -> Relation:
        assert [part.name for part in parts] == ["t"]
        return Relation(RelationName("t", relation), spark_name(relation), columns)

    return analyse(query, find)


def marked(session: SparkSession, changes: Mapping[int, Row | None]) -> Upsert:
    rows = [(id_, *(row or (None, None, None)), row is not None) for id_, row in changes.items()]
    return Upsert(session.createDataFrame(rows, f"{SCHEMA}, `{PRESENT}` boolean"), ("id",), marked=True)


def write(
    session: SparkSession, task: TaskDefinition, changes: Mapping[int, Row | None], held: dict[int, object]
) -> None:
    """Bring a table up to date with what the sink writes for some changes."""
    output = SinkPlan(task).output(session, marked(session, changes))
    assert isinstance(output, Upsert)
    assert output.marked is (task.marked_sql is not None)
    if not output.marked:
        assert output.changed is not None
        for row in output.changed.collect():
            held.pop(row["id"], None)
    for row in output.rows.collect():
        values = row.asDict()
        if values.pop(PRESENT, True):
            held[values["id"]] = values
        else:
            held.pop(values["id"], None)


def batch_query(session: SparkSession, task: TaskDefinition, state: State) -> dict[int, object]:
    current = session.createDataFrame([(id_, *row) for id_, row in state.items()], SCHEMA)
    frames = RelationFrames(session, task.relations, lambda _: current)
    rows: DataFrame = frames.relation(task.sink.relation)
    found: dict[int, object] = {row["id"]: row.asDict() for row in rows.collect()}
    frames.close()
    return found


# Random chains. Every view has the columns id, a, b and note, so that each can read each.
numbers = st.sampled_from(
    ["a", "b", "a + b", "b AS a", "coalesce(a, 7)", "CASE WHEN a > 2 THEN b ELSE -a END", "length(note)"]
)
texts = st.sampled_from(["note", "upper(note)", "note || '!'", "CAST(a AS text)", "NULL::text"])
conditions = st.sampled_from(
    ["", "", "a > 1", "b IS NOT NULL", "a % 3 = 1 OR note LIKE 'x%'", "id <> 2", "NOT (a = b)", "note IN ('x', 'y')", "false"]
)  # fmt: skip


@st.composite
def queries(draw: st.DrawFn) -> str:
    a, b = (draw(numbers).removesuffix(" AS a") for _ in range(2))
    condition = draw(conditions)
    quotient = draw(st.booleans())
    if quotient:  # fails for the rows that the condition leaves out
        a, condition = "100 / b", f"b <> 0{f' AND ({condition})' if condition else ''}"
    where = f" WHERE {condition}" if condition else ""
    select = f"SELECT id, CAST({a} AS int) AS a, {b} AS b, {draw(texts)} AS note FROM t{where}"
    if draw(st.booleans()):
        return f"SELECT u.* FROM ({select}) AS u"
    return select


rows = st.tuples(
    st.integers(-3, 6) | st.none(), st.integers(0, 4) | st.none(), st.sampled_from(["x", "xy", "y"]) | st.none()
)
changes = st.dictionaries(st.integers(0, 5), rows | st.none(), min_size=1, max_size=6)


def test_a_keyed_sink_ends_up_equal_to_the_batch_query(session: SparkSession) -> None:
    @examples(24)
    @given(st.lists(queries(), min_size=0, max_size=3), st.lists(changes, min_size=1, max_size=3))
    def law(views: list[str], batches: list[dict[int, Row | None]]) -> None:
        task = chain(*views)
        state: State = {}
        held: dict[int, object] = {}
        for batch in batches:
            for id_, row in batch.items():
                state.pop(id_, None)
                if row is not None:
                    state[id_] = row
            write(session, task, batch, held)
        assert held == batch_query(session, task, state)

    law()


@pytest.mark.parametrize(
    ("views", "one_pass"),
    [
        ([], True),
        (["SELECT id, 1 / b AS a FROM t WHERE b <> 0"], True),
        (["SELECT id, 1 / b AS a, b FROM t", "SELECT id, a * 2 AS c, a FROM t WHERE b <> 0"], True),
        (["SELECT id, a + 1 AS a FROM t", "SELECT id FROM t WHERE a > 2"], False),
        (["SELECT id, x FROM t LATERAL VIEW explode(array(a, b)) e AS x"], False),
    ],
)
def test_a_chain_is_one_pass_if_its_conditions_are_on_columns_of_the_source(views: list[str], one_pass: bool) -> None:
    assert (chain(*views).marked_sql is not None) is one_pass


def test_a_value_that_cannot_be_computed_does_not_matter_in_a_row_that_a_view_above_leaves_out(
    session: SparkSession,
) -> None:
    task = chain("SELECT id, 1 / b AS a, b FROM t", "SELECT id, a, a * 2 AS c FROM t WHERE b <> 0")
    held: dict[int, object] = {}
    write(session, task, {1: (1, 0, "x"), 2: (1, 2, "y")}, held)
    assert held == {2: {"id": 2, "a": 0.5, "c": 1.0}}


def test_one_pass_has_no_join_and_no_shuffle_of_its_own(session: SparkSession) -> None:
    task = chain("SELECT id, upper(note) AS note, a FROM t WHERE b > 0", "SELECT id, note FROM t WHERE a > 1")
    plan = _plan(SinkPlan(task).output(session, marked(session, {1: (1, 1, "x")})).rows)
    assert [word for word in ("Join", "Exchange", "Sort", "Filter", "Union") if word in plan] == []


def test_a_batch_of_a_keyed_source_is_shuffled_and_sorted_once(session: SparkSession) -> None:
    task = chain("SELECT id, upper(note) AS note, a FROM t WHERE b > 0")
    record = f"hg_value struct<{SCHEMA}>, value binary, partition int, offset bigint, timestamp timestamp"
    decoded = session.createDataFrame([], record)
    assert isinstance(task.source, SourceDefinition)
    last = latest_per_key(decoded, task.source.layout)
    rows = last.select("hg_value.*", (F.col("value").isNotNull()).alias(PRESENT))
    plan = _plan(SinkPlan(task).output(session, Upsert(rows, ("id",), marked=True)).rows)
    assert plan.count("Exchange hashpartitioning") == 1
    assert len(re.findall(r"[- ]Sort \[", plan)) == 1
    assert "Join" not in plan


def _plan(frame: DataFrame) -> str:
    out = StringIO()
    with redirect_stdout(out):
        frame.explain()
    return out.getvalue()

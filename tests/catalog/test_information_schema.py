"""The catalog as relations: what DESIGN lists, typed, and true to the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.catalog.changes import (
    Change,
    ColumnsChanged,
    CommentSet,
    DefinitionChanged,
    ObjectRenamed,
    TaskStateSet,
)
from headgate.catalog.errors import UnknownObject
from headgate.catalog.names import DEFAULT_PATH, SearchPath
from headgate.catalog.objects import Column, Comment, DesiredTaskState
from headgate.catalog.positions import KafkaRecord
from headgate.catalog.store.sqlite import SqliteStore
from headgate.catalog.system_tables import SYSTEM_RELATIONS, system_relation
from headgate.catalog.tasks import Quarantined, State, TaskStatus
from headgate.schema.types import Bigint, Boolean, Bytes, Integer, Json, Text, TimestampTz, Type
from headgate.sql.script import parse_statement
from headgate.sql.statement import Create, Kind
from tests.catalog.building import NOW, created, written

pytestmark = pytest.mark.unit

COLUMNS_OF = {
    "objects": "id database schema name kind created comment",
    "dependencies": "object depends_on kind",
    "tasks": "name kind state error batch rows skipped lag stored_bytes since notice",
    "events": "time object event detail",
    "history": "time object change cause position statement",
    "quarantine": "object task topic partition offset time schema_id path expected reason raw position",
}
PYTHON: dict[Type, type] = {
    Text(): str,
    Integer(): int,
    Bigint(): int,
    Boolean(): bool,
    TimestampTz(): type(NOW),
    Bytes(): bytes,
    Json(): str,
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(tmp_path / "c.db", clock=lambda: NOW) as opened:
        yield opened


def add(store: SqliteStore, kind: Kind, name: str, *columns: str, reads: tuple[int, ...] = ()) -> int:
    change = created(store.load(), kind, name, *columns, reads=reads)
    return commit(store, change) and change.object.id


def commit(store: SqliteStore, *changes: Change) -> int:
    return store.commit(changes, cause="statement").version


def rows(store: SqliteStore, name: str, *columns: str, where: str | None = None) -> list[tuple[object, ...]]:
    """The rows of a relation; of some columns, and where the column `object`, `table_name` or `name` is that."""
    relation = system_relation(DEFAULT_PATH, written(name))
    assert relation is not None
    answer = relation.read(store.load(), store)
    names = [f.name for f in answer.columns.fields]
    found = [dict(zip(names, row, strict=True)) for row in answer.rows]
    key = next(n for n in ("object", "table_name", "name", "schema_name", "id") if n in names)
    return [tuple(r[c] for c in columns or names) for r in found if where is None or r[key] == where]


@pytest.mark.parametrize(("name", "columns"), COLUMNS_OF.items())
def test_the_relations_have_the_columns_that_were_promised(name: str, columns: str) -> None:
    relation = system_relation(DEFAULT_PATH, written(f"headgate_catalog.{name}"))
    assert relation is not None
    assert [f.name for f in relation.columns.fields] == columns.split()


def test_the_raw_bytes_of_the_quarantine_are_not_part_of_a_star() -> None:
    assert {r.name: set(r.hidden) for r in SYSTEM_RELATIONS if r.hidden} == {"quarantine": {"raw"}}


def test_the_raw_bytes_of_the_quarantine_are_read_only_if_they_are_asked_for(store: SqliteStore) -> None:
    source = add(store, Kind.SOURCE, "orders")
    sink = add(store, Kind.SINK, "s", reads=(source,))
    store.quarantine([Quarantined(source, sink, KafkaRecord("t", 0, 1), NOW, None, None, None, "bad", b"x")])
    (relation,) = (r for r in SYSTEM_RELATIONS if r.name == "quarantine")
    at = [field.name for field in relation.columns.fields].index("raw")
    read = [next(iter(relation.read(store.load(), store, hidden=hidden).rows))[at] for hidden in (False, True)]
    assert read == [None, b"x"]


def test_system_relations_are_found_by_the_rules_of_names() -> None:
    found = system_relation(DEFAULT_PATH, written("Headgate.INFORMATION_SCHEMA.Tables"))
    assert found is not None
    assert (found.schema, found.name) == ("information_schema", "tables")
    assert system_relation(DEFAULT_PATH, written('"Information_Schema".tables')) is None
    assert system_relation(DEFAULT_PATH, written("tables")) is None
    path = SearchPath((("headgate", "information_schema"),))
    assert system_relation(path, written("TABLES")) is found
    with pytest.raises(UnknownObject) as caught:
        system_relation(DEFAULT_PATH, written("headgate_catalog.object"))
    assert caught.value.similar == ("objects",)


def test_every_value_is_of_its_columns_type(store: SqliteStore) -> None:
    source = add(store, Kind.SOURCE, "orders", "id bigint", "price decimal(10,2)", "at timestamptz")
    sink = add(store, Kind.SINK, "s", reads=(source,))
    commit(store, CommentSet(source, 1, "the key"))
    store.report(TaskStatus(sink, State.HALTED, NOW, "RUN-0001", 1, 2, 3, 4))
    store.quarantine([Quarantined(source, sink, KafkaRecord("t", 0, 1), NOW, 7, "$.a", "text", "trailing bytes", b"x")])
    definition = parse_statement(
        "CREATE SOURCE orders FROM KAFKA BROKER 'b:1' TOPIC 'orders' FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY"
        " 'http://r' (SEED VALUE SCHEMA ID 7 '{}')"
    )
    assert isinstance(definition, Create)
    commit(store, DefinitionChanged(source, "", definition, (), store.load().get(source).columns))
    for relation in SYSTEM_RELATIONS:
        seen = list(relation.read(store.load(), store).rows)
        assert seen, relation.name
        for row in seen:
            for field, value in zip(relation.columns.fields, row, strict=True):
                assert field.nullable if value is None else type(value) is PYTHON[field.type], (
                    relation.name,
                    field,
                )


def test_quarantined_records_of_a_task_that_the_catalog_does_not_know_yet_are_left_out(
    store: SqliteStore,
) -> None:
    source = add(store, Kind.SOURCE, "orders")
    before = store.load()
    sink = add(store, Kind.SINK, "s", reads=(source,))
    store.quarantine([Quarantined(source, sink, KafkaRecord("t", 0, 1), NOW, None, None, None, "trailing bytes")])
    (relation,) = (r for r in SYSTEM_RELATIONS if r.name == "quarantine")
    assert list(relation.read(before, store).rows) == []
    assert len(list(relation.read(store.load(), store).rows)) == 1


def test_objects_lists_everything_with_its_home_and_comment(store: SqliteStore) -> None:
    view = add(store, Kind.VIEW, "v")
    commit(store, CommentSet(view, None, "about v"))
    assert rows(store, "headgate_catalog.objects") == [
        (1, None, None, "headgate", "database", NOW, None),
        (2, "headgate", None, "public", "schema", NOW, None),
        (3, "headgate", "public", "v", "view", NOW, "about v"),
    ]


def _imported(column: Column) -> Column:
    docs = {2: "from the schema", 3: "silenced"}
    return replace(column, comment=Comment(imported=docs.get(column.id)))


def test_columns_and_comments_show_what_holds(store: SqliteStore) -> None:
    view = add(store, Kind.VIEW, "v", "a integer", "b record(x integer comment 'a doc')", "c text")
    commit(
        store,
        CommentSet(view, 1, "by hand"),
        ColumnsChanged(view, tuple(_imported(c) for c in store.load().get(view).columns)),
        CommentSet(view, 3, None),
    )
    shown = rows(store, "headgate_catalog.columns", "position", "name", "type", "nullable", "key", "comment")
    assert shown == [
        (1, "a", "integer", True, False, "by hand"),
        (2, "b", "record(x integer)", True, False, "from the schema"),
        (3, "c", "text", True, False, None),
    ]
    assert rows(store, "headgate_catalog.comments", "object", "column", "comment", "origin") == [
        ("v", "a", "by hand", "explicit"),
        ("v", "b", "from the schema", "imported"),
        ("v", "b.x", "a doc", "imported"),
        ("v", "c", None, "suppressed"),
    ]


def test_dependencies_tell_objects_of_one_name_apart_by_kind(store: SqliteStore) -> None:
    view = add(store, Kind.VIEW, "orders")
    add(store, Kind.MATERIALIZATION, "orders", reads=(view,))
    assert rows(store, "headgate_catalog.dependencies") == [("orders", "orders", "materialization")]


def test_tasks_show_what_was_reported_or_what_is_wanted(store: SqliteStore) -> None:
    first, second, third = (add(store, Kind.SINK, name) for name in ("a", "b", "c"))
    add(store, Kind.VIEW, "not_a_task")
    commit(store, TaskStateSet(second, DesiredTaskState.PAUSED))
    store.report(
        TaskStatus(third, State.HALTED, NOW, "RUN-0007: cannot decode", 3, 10, 1, 5, notice="told", stored_bytes=7)
    )
    assert first < second < third
    assert rows(store, "headgate_catalog.tasks") == [
        ("a", "sink", "starting", None, None, 0, 0, None, None, NOW, None),
        ("b", "sink", "disabled", None, None, 0, 0, None, None, NOW, None),
        ("c", "sink", "halted", "RUN-0007: cannot decode", 3, 10, 1, 5, 7, NOW, "told"),
    ]


def test_history_and_events_are_relations(store: SqliteStore) -> None:
    view = add(store, Kind.VIEW, "v")
    store.commit([ObjectRenamed(view, "w")], cause="statement", statement="ALTER VIEW v RENAME TO w")
    assert rows(store, "headgate_catalog.history")[-1] == (
        NOW, "w", "renamed from v to w", "statement", None, "ALTER VIEW v RENAME TO w",
    )  # fmt: skip
    assert rows(store, "headgate_catalog.events")[-1] == (NOW, "w", "renamed", "renamed from v to w")


def test_tables_are_as_the_standard_has_them(store: SqliteStore) -> None:
    for kind in (Kind.SOURCE, Kind.VIEW, Kind.STREAM, Kind.TYPE, Kind.SINK):
        add(store, kind, f"a_{kind}", "x integer")
    columns = ("table_catalog", "table_schema", "table_name", "table_type", "is_insertable_into", "comment")
    shown = [row for row in rows(store, "information_schema.tables", *columns) if row[1] == "public"]
    assert shown == [
        ("headgate", "public", "a_source", "FOREIGN", "NO", None),
        ("headgate", "public", "a_view", "VIEW", "NO", None),
        ("headgate", "public", "a_stream", "BASE TABLE", "YES", None),
    ]
    assert len(rows(store, "information_schema.tables")) == 3 + len(SYSTEM_RELATIONS)


def test_columns_are_as_the_standard_has_them(store: SqliteStore) -> None:
    view = add(store, Kind.VIEW, "v", "a integer", "b decimal(10,2)", "c timestamptz", "d text")
    strict = Column(1, "a", Integer(), nullable=False)
    commit(store, ColumnsChanged(view, (strict, *store.load().get(view).columns[1:])))
    shown = rows(
        store,
        "information_schema.columns",
        "column_name",
        "ordinal_position",
        "is_nullable",
        "data_type",
        "numeric_precision",
        "numeric_precision_radix",
        "numeric_scale",
        "datetime_precision",
        where="v",
    )
    assert shown == [
        ("a", 1, "NO", "integer", 32, 2, 0, None),
        ("b", 2, "YES", "decimal(10,2)", 10, 10, 2, None),
        ("c", 3, "YES", "timestamptz", None, None, None, 6),
        ("d", 4, "YES", "text", None, None, None, None),
    ]


def test_system_relations_describe_themselves(store: SqliteStore) -> None:
    described = rows(store, "information_schema.columns", "table_schema", "column_name", where="dependencies")
    assert described == [("headgate_catalog", name) for name in ("object", "depends_on", "kind")]
    assert rows(store, "information_schema.schemata", "schema_name") == [
        ("public",),
        ("information_schema",),
        ("headgate_catalog",),
    ]

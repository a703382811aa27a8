"""The lines that history tells about a change."""

from __future__ import annotations

import pytest

from headgate.catalog.changes import (
    Change,
    ColumnsChanged,
    CommentSet,
    DefinitionChanged,
    ObjectRenamed,
    SecretChanged,
    TaskStateSet,
    apply_each,
)
from headgate.catalog.history import EventKind, describe, event_of
from headgate.catalog.objects import Column, DesiredTaskState, Growth
from headgate.catalog.secrets import EncryptedSecret
from headgate.schema.parse import parse_type
from headgate.sql.statement import Kind, Query
from headgate.sql.views import CreateView
from tests.catalog.building import Building, written

pytestmark = pytest.mark.unit


DEFINITION = CreateView(written("v"), Query("SELECT 1"))


def lines(building: Building, *changes: Change) -> list[str]:
    _, done = apply_each(building.catalog, changes)
    return [line for step in done for line in describe(step)]


def test_a_followed_schema_change_is_told_column_by_column() -> None:
    building = Building()
    source = building.add(Kind.SOURCE, "s", "id integer", "price integer", "note text", "old text")
    evolved = (
        Column(1, "id", parse_type("bigint"), nullable=False, key=True),
        Column(3, "remark", parse_type("text")),
        Column(2, "price", parse_type("decimal(10,2)")),
        Column(5, "Extra", parse_type("record(a integer comment 'a doc')")),
    )
    assert lines(building, ColumnsChanged(source, evolved)) == [
        "column id changed from integer to bigint",
        "column id may not be null now",
        "column id is part of the key now",
        "column note renamed to remark",
        "column price changed from integer to decimal(10,2)",
        "column Extra added as record(a integer)",
        "column old removed",
        "columns reordered",
    ]
    assert lines(building, ColumnsChanged(source, building.catalog.get(source).columns)) == ["columns unchanged"]
    changing = ColumnsChanged(source, building.catalog.get(source).columns, Growth.CHANGING)
    assert lines(building, changing) == ["rows come by changing now"]


def test_comments_and_secrets_are_told_without_their_text() -> None:
    building = Building()
    view = building.add(Kind.VIEW, "v", "c text")
    secret = building.add(Kind.SECRET, "s")
    assert lines(
        building,
        CommentSet(view, None, "confidential"),
        CommentSet(view, 1, None),
        SecretChanged(secret, EncryptedSecret("token")),
    ) == ["comment set", "comment on column c removed", "secret changed"]


def test_other_changes_are_told_in_one_line() -> None:
    building = Building()
    view = building.add(Kind.MATERIALIZED_VIEW, "v", "a integer")
    columns = building.catalog.get(view).columns
    assert lines(
        building,
        ObjectRenamed(view, "new name"),
        DefinitionChanged(view, "CREATE …", DEFINITION, (), columns),
        TaskStateSet(view, DesiredTaskState.PAUSED),
        TaskStateSet(view, DesiredTaskState.RUNNING),
    ) == ['renamed from v to "new name"', "redefined materialized view", "paused", "resumed"]


def test_every_change_is_an_event() -> None:
    changes: dict[Change, EventKind] = {
        ObjectRenamed(3, "x"): EventKind.RENAMED,
        DefinitionChanged(3, "", DEFINITION, (), ()): EventKind.REDEFINED,
        ColumnsChanged(3, ()): EventKind.COLUMNS_CHANGED,
        CommentSet(3, None, "x"): EventKind.COMMENTED,
        SecretChanged(3, EncryptedSecret("x")): EventKind.SECRET_CHANGED,
        TaskStateSet(3, DesiredTaskState.PAUSED): EventKind.PAUSED,
    }
    assert {change: event_of(change) for change in changes} == changes

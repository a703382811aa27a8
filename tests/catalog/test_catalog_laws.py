"""What holds for every history of a catalog."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from headgate.catalog.catalog import build_catalog
from headgate.catalog.changes import Change, apply
from headgate.catalog.graph import blocking_users, drop_order
from headgate.catalog.names import DEFAULT_PATH, resolve
from headgate.sql.statement import Kind, ObjectName
from headgate.text.cursor import Identifier
from tests.catalog.building import START
from tests.catalog.strategies import commits

pytestmark = pytest.mark.unit


@given(commits())
@settings(max_examples=30, deadline=None)
def test_the_indexes_are_those_of_a_catalog_read_anew(history: list[list[Change]]) -> None:
    catalog = apply(START, *(change for commit in history for change in commit))
    anew = build_catalog(catalog.version, catalog.next_id, catalog.objects.values(), catalog.secrets, catalog.desired)
    assert catalog == anew
    assert catalog.by_name == anew.by_name
    assert catalog.users == anew.users


@given(commits())
@settings(max_examples=30, deadline=None)
def test_changes_one_by_one_are_changes_all_at_once(history: list[list[Change]]) -> None:
    changes = [change for commit in history for change in commit]
    one_by_one = START
    for change in changes:
        one_by_one = apply(one_by_one, change)
    assert one_by_one == apply(START, *changes)
    assert one_by_one.version == len(changes)


@given(commits())
@settings(max_examples=30, deadline=None)
def test_every_object_is_found_by_its_full_name_in_quotes(history: list[list[Change]]) -> None:
    catalog = apply(START, *(change for commit in history for change in commit))
    for entry in catalog.objects.values():
        if entry.kind not in (Kind.DATABASE, Kind.SCHEMA):
            parts = tuple(Identifier(part, quoted=True) for part in catalog.path(entry.id))
            assert resolve(catalog, DEFAULT_PATH, ObjectName(parts), entry.kind) is entry


@given(commits())
@settings(max_examples=30, deadline=None)
def test_a_drop_order_puts_every_object_after_all_that_hold_it(history: list[list[Change]]) -> None:
    catalog = apply(START, *(change for commit in history for change in commit))
    for target in catalog.objects:
        order = [o.id for o in drop_order(catalog, (target,))]
        assert order[-1] == target
        for position, id_ in enumerate(order):
            assert {o.id for o in blocking_users(catalog, id_)} <= set(order[:position])

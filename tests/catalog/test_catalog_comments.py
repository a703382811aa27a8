"""Which comment holds for an object and a column."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.catalog.catalog import (
    Effective,
    Origin,
    column_comment,
    effective_comment,
    field_comment,
    object_comment,
)
from headgate.catalog.changes import ColumnsChanged, CommentSet, ObjectCreated, ObjectDropped
from headgate.catalog.objects import Column, FieldComment
from headgate.sql.query.tree import ColumnRef
from headgate.sql.statement import Kind
from tests.catalog.building import Building, created

pytestmark = pytest.mark.unit


@pytest.fixture
def building() -> Building:
    return Building()


def column(building: Building, object_id: int, id_: int = 1) -> Column:
    found = building.catalog.get(object_id).column(id_)
    assert found is not None
    return found


def projection(building: Building, name: str, of: ColumnRef) -> int:
    """A view with one column that is a plain projection of another."""
    change = created(building.catalog, Kind.VIEW, name, "renamed text", reads=(of.object,))
    columns = tuple(replace(c, origin=of) for c in change.object.columns)
    building.do(ObjectCreated(replace(change.object, columns=columns)))
    return change.object.id


def test_an_explicit_comment_outranks_an_imported_one(building: Building) -> None:
    source = building.add(Kind.SOURCE, "s", "a text")
    assert column_comment(building.catalog, column(building, source)) is None
    building.imported(source, 1, "from the schema")
    assert effective_comment(building.catalog, column(building, source)) == Effective(
        "from the schema", Origin.IMPORTED
    )
    building.do(CommentSet(source, 1, "by hand"))
    assert effective_comment(building.catalog, column(building, source)) == Effective("by hand", Origin.EXPLICIT)


def test_is_null_silences_the_imported_comment_also_when_it_changes(building: Building) -> None:
    source = building.add(Kind.SOURCE, "s", "a text")
    building.imported(source, None, "old")
    building.do(CommentSet(source, None, None))
    assert object_comment(building.catalog.get(source)) is None
    building.imported(source, None, "new")
    assert object_comment(building.catalog.get(source)) is None
    building.do(CommentSet(source, None, "mine"))
    assert object_comment(building.catalog.get(source)) == "mine"


def test_an_empty_comment_is_a_comment(building: Building) -> None:
    source = building.add(Kind.SOURCE, "s")
    building.imported(source, None, "imported")
    building.do(CommentSet(source, None, ""))
    assert object_comment(building.catalog.get(source)) == ""


def test_a_comment_follows_a_column_through_projections_and_renames(building: Building) -> None:
    source = building.add(Kind.SOURCE, "s", "a text")
    first = projection(building, "v", ColumnRef(source, 1))
    second = projection(building, "w", ColumnRef(first, 1))
    building.imported(source, 1, "upstream")
    assert effective_comment(building.catalog, column(building, second)) == Effective("upstream", Origin.FOLLOWED)
    building.do(CommentSet(first, 1, "between"))
    assert column_comment(building.catalog, column(building, second)) == "between"


def test_is_null_in_between_silences_what_comes_from_upstream(building: Building) -> None:
    source = building.add(Kind.SOURCE, "s", "a text")
    first = projection(building, "v", ColumnRef(source, 1))
    second = projection(building, "w", ColumnRef(first, 1))
    building.do(CommentSet(source, 1, "upstream"), CommentSet(first, 1, None))
    assert column_comment(building.catalog, column(building, first)) is None
    assert column_comment(building.catalog, column(building, second)) is None


def test_fields_of_a_type_are_commented_like_columns(building: Building) -> None:
    point = building.add(Kind.TYPE, "point", "x integer", "y integer")
    building.do(CommentSet(point, 2, "to the north"))
    assert [column_comment(building.catalog, c) for c in building.catalog.get(point).columns] == [
        None,
        "to the north",
    ]


def test_a_comment_goes_with_its_object(building: Building) -> None:
    view = building.add(Kind.VIEW, "v")
    building.do(CommentSet(view, None, "about v"), ObjectDropped(view))
    again = building.add(Kind.VIEW, "v")
    assert object_comment(building.catalog.get(again)) is None


def test_a_comment_on_a_field_outranks_its_doc_and_is_seen_downstream(building: Building) -> None:
    source = building.add(Kind.SOURCE, "s", "addr record(zip text)")
    view = projection(building, "v", ColumnRef(source, 1))

    def shown(object_id: int, imported: str | None = "from the schema") -> Effective | None:
        return field_comment(building.catalog, column(building, object_id), ("zip",), imported)

    assert shown(source) == Effective("from the schema", Origin.IMPORTED)
    building.do(CommentSet(source, 1, "by hand", ("zip",)))
    assert (shown(source), shown(view)) == (
        Effective("by hand", Origin.EXPLICIT),
        Effective("by hand", Origin.FOLLOWED),
    )
    building.do(CommentSet(view, 1, None, ("zip",)))
    assert shown(view) is None
    assert column_comment(building.catalog, column(building, source)) is None


def test_a_comment_on_a_field_stays_when_the_columns_change(building: Building) -> None:
    source = building.add(Kind.SOURCE, "s", "addr record(zip text)")
    building.do(CommentSet(source, 1, "by hand", ("zip",)))
    building.do(ColumnsChanged(source, (replace(column(building, source), nullable=False, fields=()),)))
    assert column(building, source).fields == (FieldComment(("zip",), "by hand"),)

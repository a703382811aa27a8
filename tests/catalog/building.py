"""A catalog in few words, for tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from headgate.catalog.catalog import Catalog, CatalogBuilder, empty_catalog
from headgate.catalog.changes import Change, ObjectCreated, apply
from headgate.catalog.objects import Column, Dependency, DependencyKind, Object, with_comment
from headgate.catalog.secrets import FromEnvironment
from headgate.schema.parse import parse_type
from headgate.sql.statement import Kind, ObjectName
from headgate.text.cursor import Identifier

NOW = datetime(2024, 5, 1, 12, 30, 15, 123456, tzinfo=UTC)
START = empty_catalog(NOW)
PUBLIC = 2  # the id of headgate.public


def written(text: str) -> ObjectName:
    """`a."B".c` as the parser would give it; no dots inside quotes."""
    return ObjectName(tuple(_identifier(part) for part in text.split(".")))


def _identifier(part: str) -> Identifier:
    return Identifier(part.strip('"'), quoted=part.startswith('"'))


def created(
    catalog: Catalog,
    kind: Kind,
    name: str,
    *columns: str,
    parent: int = PUBLIC,
    reads: tuple[int, ...] = (),
    types: tuple[int, ...] = (),
    body: str | None = None,
) -> ObjectCreated:
    """The change that creates an object; columns are written `name type`."""
    uses = tuple(Dependency(i) for i in reads) + tuple(Dependency(i, DependencyKind.TYPE) for i in types)
    made = Object(
        catalog.next_id,
        kind,
        parent,
        name,
        NOW,
        statement=f"CREATE {kind.upper()} {name}",
        columns=numbered(*columns),
        body=None if body is None else parse_type(body),
        dependencies=uses,
    )
    return ObjectCreated(made, FromEnvironment("PASSWORD") if kind is Kind.SECRET else None)


def numbered(*columns: str) -> tuple[Column, ...]:
    pairs = (column.split(" ", 1) for column in columns)
    return tuple(Column(i, name, parse_type(type_)) for i, (name, type_) in enumerate(pairs, 1))


class Building:
    """A catalog that grows; each `add` gives the new object's id."""

    def __init__(self) -> None:
        self.catalog = START

    def add(
        self,
        kind: Kind,
        name: str,
        *columns: str,
        parent: int = PUBLIC,
        reads: tuple[int, ...] = (),
        types: tuple[int, ...] = (),
        body: str | None = None,
    ) -> int:
        change = created(self.catalog, kind, name, *columns, parent=parent, reads=reads, types=types, body=body)
        self.do(change)
        return change.object.id

    def do(self, *changes: Change) -> None:
        self.catalog = apply(self.catalog, *changes)

    def imported(self, id_: int, column: int | None, text: str) -> None:
        """Give the object or its column the doc that the source's schema would bring."""
        target = self.catalog.get(id_)
        place = target if column is None else target.column(column)
        assert place is not None
        builder = CatalogBuilder(self.catalog)
        builder.put(with_comment(target, column, replace(place.comment, imported=text)))
        self.catalog = builder.view()

"""What a system relation is: a name, typed columns, and rows computed from the catalog when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from headgate.catalog.snapshot import Catalog
from headgate.catalog.store import Reader
from headgate.schema.types import Bigint, Boolean, Bytes, Field, Integer, Record, Text, TimestampTz, Type

Row = tuple[object, ...]

_TYPES: dict[str, Type] = {
    "text": Text(),
    "integer": Integer(),
    "bigint": Bigint(),
    "boolean": Boolean(),
    "timestamptz": TimestampTz(),
    "bytes": Bytes(),
}


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows as data: values in the order of the columns, None for NULL. `rows` can be gone through once."""

    name: tuple[str, str]
    columns: Record
    rows: Iterable[Row]
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SystemRelation:
    """Columns that are `hidden` can be selected by name and are not part of `*`."""

    schema: str
    name: str
    columns: Record
    compute: Callable[[Catalog, Reader], Iterable[Row]]
    hidden: frozenset[str] = frozenset()

    def read(self, catalog: Catalog, reader: Reader) -> Relation:
        """The rows over a snapshot, which may be a hypothetical one, and over what the engine recorded."""
        return Relation((self.schema, self.name), self.columns, self.compute(catalog, reader), self.hidden)


def record(*columns: str) -> Record:
    """`record("name text", "id bigint not null")`: columns are nullable unless they say otherwise."""
    return Record(tuple(_field(*column.split(" ", 2)) for column in columns))


def _field(name: str, type_: str, rest: str = "") -> Field:
    return Field(name, _TYPES[type_], nullable=rest != "not null")

"""A record that always stands in another is, in bytes, nothing but its fields: they are read as fields of the other one.

Spark makes every inner row anew and asks its settings for each field of it: for one record of two fields that was a sixth
of all CPU time. The first field of an inlaid record is read under the name of its place, where the record is put later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from headgate.runtime.formats.avro_schemas import Tree, is_simple, kind_of


@dataclass(frozen=True, slots=True)
class Inlay:
    """The record of a field: the names of the reader's fields in it, and those of them that are inlaid themselves."""

    names: tuple[str, ...]
    inlays: Mapping[str, Inlay]


def find_inlays(schemas: Sequence[Tree]) -> dict[str, Inlay]:
    """The fields that are records in all schemas, of which the first is the reader's."""
    return _found(schemas) if all(map(is_simple, schemas)) else {}


def _found(schemas: Sequence[Tree]) -> dict[str, Inlay]:
    found = {}
    for name in _names(schemas[0]):
        records = [f["type"] for schema in schemas for f in schema["fields"] if f["name"] == name]
        if len(records) == len(schemas) and all(kind_of(r) == "record" and r["fields"] for r in records):
            found[name] = Inlay(_names(records[0]), _found(records))
    return found


def laid_in(record: Tree, inlays: Mapping[str, Inlay]) -> Tree:
    """The record as it is written or read, with fields for the inlaid records."""
    return {**record, "fields": [field for one in record["fields"] for field in _laid_in(one, inlays)]}


def _laid_in(field: Tree, inlays: Mapping[str, Inlay], place: Place | None = None) -> Iterator[Tree]:
    here = Place.of(field["name"]) if place is None else place
    if (inlay := inlays.get(field["name"])) is None:
        yield {**field, "name": here.name}
        return
    for inner in field["type"]["fields"]:
        yield from _laid_in(inner, inlay.inlays, here.within(inlay, inner["name"]))


def taken_out(read: Column, inlays: Mapping[str, Inlay]) -> Column:
    """What was read, with the records where they belong. A change of fields is what Spark can look through: whoever asks
    for a field of such a record gets what was read."""
    made, spare = read, []
    for name, inlay in inlays.items():
        place = Place.of(name)
        made = made.withField(name, _record(read, inlay, place))
        spare += [leaf for leaf in _leaves(inlay, place) if leaf != name]
    return made.dropFields(*spare) if spare else made


def _record(read: Column, inlay: Inlay, place: Place) -> Column:
    fields = []
    for name in inlay.names:
        at, inner = place.within(inlay, name), inlay.inlays.get(name)
        value = read.getField(at.name) if inner is None else _record(read, inner, at)
        fields.append(value.alias(name))
    return F.struct(*fields)


def _leaves(inlay: Inlay, place: Place) -> Iterator[str]:
    for name in inlay.names:
        at, inner = place.within(inlay, name), inlay.inlays.get(name)
        if inner is None:
            yield at.name
        else:
            yield from _leaves(inner, at)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a field stands, and the name that it is read under. ``leads``: it is the first of all that stands in the
    outermost field."""

    path: tuple[str, ...]
    leads: bool

    @staticmethod
    def of(name: str) -> Place:
        return Place((name,), True)

    @property
    def name(self) -> str:
        return self.path[0] if self.leads else "_headgate_".join(self.path)

    def within(self, inlay: Inlay, name: str) -> Place:
        return Place((*self.path, name), self.leads and name == inlay.names[0])


def _names(record: Tree) -> tuple[str, ...]:
    return tuple(str(field["name"]) for field in record["fields"])

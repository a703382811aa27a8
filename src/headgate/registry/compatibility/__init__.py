"""Whether one version of a schema may follow another, and if not, why.

Enters: parsed schemas and a compatibility level. Leaves: incompatibilities, each with a path, a kind in the words of
Confluent's registry, and a sentence. ``check`` decides which earlier versions a level compares a new one with, and in
which direction. `avro`, `protobuf` and `json_compare` answer whether a reader can read what a writer wrote. For JSON
Schema, `json_load` turns a document into `json_nodes`, and `json_compare` compares these, with `json_members` for
objects, arrays and plain values.

No I/O. Imports `errors`, `schema`, `registry.errors` and `registry.schemas`.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.registry.compatibility import avro, json_compare, protobuf
from headgate.registry.errors import Incompatibility
from headgate.registry.schemas import ParsedSchema
from headgate.schema.written import CompatibilityLevel, SchemaFormat


def check(new: ParsedSchema, earlier: Sequence[ParsedSchema], level: CompatibilityLevel) -> tuple[Incompatibility, ...]:
    """Why `new` cannot follow `earlier` (oldest first). Empty if it can.

    The latest version is compared first, and only it if the level is not transitive. An incompatibility that several
    versions or both directions have in common is returned once.
    """
    if level is CompatibilityLevel.NONE:
        return ()
    versions = list(earlier)[::-1]
    found: dict[Incompatibility, None] = {}
    for old in versions if level.is_transitive else versions[:1]:
        if level.reads_old:
            found.update(dict.fromkeys(incompatibilities(new, old)))
        if level.is_read_by_old:
            found.update(dict.fromkeys(incompatibilities(old, new)))
    return tuple(found)


def incompatibilities(reader: ParsedSchema, writer: ParsedSchema) -> tuple[Incompatibility, ...]:
    """Why `reader` cannot read what was written with `writer`. The formats of both may differ."""
    if reader.schema.type is not writer.schema.type:
        types = " and ".join(sorted((reader.schema.type, writer.schema.type)))
        message = f"schemas of types {types} cannot read each other's data"
        return (Incompatibility("$", "SCHEMA_TYPE_CHANGED", message),)
    try:
        return _COMPARISONS[reader.schema.type](reader, writer)
    except RecursionError:
        # Thousands of types, each inside the next. They count as incompatible, because nothing is known about them.
        message = "the schemas refer through too many types to be compared"
        return (Incompatibility("$", "TOO_DEEP_TO_COMPARE", message),)


_COMPARISONS = {
    SchemaFormat.AVRO: avro.incompatibilities,
    SchemaFormat.JSON: json_compare.incompatibilities,
    SchemaFormat.PROTOBUF: protobuf.incompatibilities,
}

"""Named types in queries: the analysis looks through a name to the record behind it, and what comes out of the query is
called by that name again. A record that the query changed is another record, without a name."""

from __future__ import annotations

import json
from dataclasses import replace

from headgate.schema.types import Array, Map, Named, Record, Type

_MARK = "type "  # no name of a record in any format has a blank


def looked_through(path: tuple[str, ...], definition: Type) -> Type:
    """The definition of the type at ``path`` of the catalog, which remembers where it is from."""
    if not isinstance(definition, Record):
        return definition
    return replace(definition, name=_MARK + json.dumps(path))


def called_again(type_: Type) -> Type:
    """The type with names in place of the records that were looked through to."""
    match type_:
        case Record(name=str(name)) if name.startswith(_MARK):
            return Named(tuple(json.loads(name.removeprefix(_MARK))))
        case Record(fields):
            return replace(type_, fields=tuple(replace(f, type=called_again(f.type)) for f in fields))
        case Array(element):
            return replace(type_, element=called_again(element))
        case Map(value):
            return replace(type_, value=called_again(value))
        case _:
            return type_

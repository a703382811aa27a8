"""Change events of Debezium: where the row lies in a value, and which of its fields are the record's key."""

from __future__ import annotations

from dataclasses import replace

from headgate.plan.definitions import AFTER, OP
from headgate.plan.errors import InvalidDebeziumKey, NoChangeEvents
from headgate.schema.encodings import Encoding, fields_of
from headgate.schema.evolve.merge import is_number, widen
from headgate.schema.render import print_type
from headgate.schema.types import Enum, Field, Record, Text, Type

BEFORE = "before"


def changed_row(value: Encoding, source: str) -> Record:
    """What `after` holds. `before` and `op` may be missing: without `op`, a change without `after` deletes."""
    fields = {field.name: field.type for field in fields_of(value) or ()}
    if AFTER not in fields:
        missing = tuple(name for name in (BEFORE, AFTER) if name not in fields)
        raise NoChangeEvents(source, missing)
    row = fields[AFTER]
    if not isinstance(row, Record):
        raise NoChangeEvents(source, (), 'field "after" is no record')
    if not isinstance(fields.get(OP, Text()), Text | Enum):
        raise NoChangeEvents(source, (), 'field "op" is no text')
    return row


def row_key(key: Encoding, row: Record, source: str) -> dict[str, Field]:
    """The key's fields by name; each is a field of the row too, of the same type. A number may be wider in one of them:
    a schema change reaches keys and values one after the other. The field then has the wider type."""
    fields = fields_of(key)
    if not fields:
        raise InvalidDebeziumKey(source, "it has no fields")
    return {field.name: replace(field, type=_common_type(field, row, source)) for field in fields}


def _common_type(field: Field, row: Record, source: str) -> Type:
    found = row.field(field.name)
    if found is None:
        raise InvalidDebeziumKey(source, f'field "{field.name}" of it is no field of "after"')
    if print_type(field.type) == print_type(found.type):
        return found.type
    common = widen(found.type, field.type)
    if not (is_number(found.type) and is_number(common)):
        types = f"{print_type(field.type)} in the key and {print_type(found.type)} in the row"
        raise InvalidDebeziumKey(source, f'field "{field.name}" is {types}')
    return common

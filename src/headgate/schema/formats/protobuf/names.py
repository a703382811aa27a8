"""Names in Protobuf: those that protoc derives, and those that are made for columns, messages and enums."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from google.protobuf import descriptor_pb2 as pb

from headgate.schema.errors import UnsupportedType

# protoc would read an enum value of such a name as a statement of the enum.
_STATEMENTS = frozenset(("option", "reserved"))


def is_identifier(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) is not None


def json_name(name: str) -> str:
    """lowerCamelCase as protoc derives it from a field's name."""
    return re.sub(r"_+(.?)", lambda found: _ascii_upper(found[1]), name)


def map_entry_name(name: str) -> str:
    """The name of the message that protoc makes for a map field."""
    return _camel_case(name) + "Entry"


def _camel_case(name: str) -> str:
    """UpperCamelCase as protoc derives it from a field's name; may be empty or begin with a digit."""
    return re.sub(r"(?:^|_+)([^_]?)", lambda found: _ascii_upper(found[1]), name)


def _ascii_upper(text: str) -> str:
    return text.upper() if text.isascii() else text


def field_names(columns: Iterable[str], path: str, published: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """The field of each column: the one in ``published``, otherwise the column's own name if it is an identifier that is
    free, otherwise a name made from it."""
    named = tuple(columns)
    found = {column: field for column, field in (published or {}).items() if column in named}
    taken = set(found.values())
    own = {column for column in named if is_identifier(column) and column not in found and column not in taken}
    taken |= own
    for column in named:
        if column in found:
            continue
        if (column.startswith("[") and column.endswith("]")) or "\0" in column:
            why = "a JSON name cannot be in brackets or hold a NUL, and the name is no identifier"
            raise UnsupportedType(f"{path}.{column}", "Protobuf", "column", why)
        if column in own:
            found[column] = column
        elif is_identifier(column):
            found[column] = free(column, taken)
        else:
            made = re.sub(r"[^A-Za-z0-9_]", "_", column)
            made = made if is_identifier(made) and json_name(made) != column else f"x_{made}"
            found[column] = free(made, taken)
    return {column: found[column] for column in named}


def columns_of(message: pb.DescriptorProto) -> tuple[str, ...]:
    """The columns of a message's fields, in order.

    A column has the name of its field, or the field's JSON name if that is written out and is no identifier. A column that
    came later, when a field had its name already, is in a field with a number behind the name: `a_b2` with the JSON name
    `a_b`, beside `a_b` with the JSON name `a-b`.
    """
    columns = {field.name: _own_column(field) for field in message.field}
    for field in message.field:
        name = field.json_name
        if columns.get(name, name) != name and re.fullmatch(re.escape(name) + r"\d+", field.name):
            columns[field.name] = name
    return tuple(columns.values())


def _own_column(field: pb.FieldDescriptorProto) -> str:
    """The column of a field, without regard to the others."""
    given = field.json_name and field.json_name != json_name(field.name)
    return field.json_name if given and not is_identifier(field.json_name) else field.name


def json_names(fields: Mapping[str, str]) -> Mapping[str, str]:
    """The JSON name of each column: protoc's, or the column itself if it is no identifier or if two would be equal."""
    spelt = {column: json_name(field) if field == column else column for column, field in fields.items()}
    counts = Counter(spelt.values())
    return {column: name if counts[name] == 1 else column for column, name in spelt.items()}


def type_name(field: str, suffix: str) -> str:
    """The name for the message or enum of a field, before clashes are resolved."""
    name = _camel_case(field) + suffix
    return name if is_identifier(name) else f"T{name}"


def free(name: str, taken: set[str]) -> str:
    """The name, or if it is taken, with the smallest number behind it that is not. Adds it to `taken`."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}{number}"
    taken.add(found)
    return found


def enum_name(symbols: Iterable[str]) -> str:
    """The name of the enum that a message is made around. Its symbols are names beside it."""
    taken = set(symbols)
    return free("Values", taken) if "Value" in taken else "Value"


def are_symbols(symbols: Iterable[str]) -> bool:
    """Whether an enum can have these symbols.

    protoc refuses two symbols that it would derive the same name from, such as `F` and `f`.
    """
    named = set(symbols)
    plain = {_pascal_case(symbol, enum_name(named)) for symbol in named}
    return len(plain) == len(named) and all(is_identifier(one) and one not in _STATEMENTS for one in named)


def _pascal_case(symbol: str, enum: str) -> str:
    """As protoc derives it: without the enum's name at its beginning, and without case and `_` within words."""
    prefix = re.match("_*" + "_*".join(enum.lower()) + "_*", symbol, re.IGNORECASE)
    rest = symbol[prefix.end() :] if prefix else ""
    return "".join(word.capitalize() for word in (rest or symbol).split("_"))

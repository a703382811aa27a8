"""How a place in a type is written: `$.a.b` a field, `$.a[]` an array's elements, `$.m{}` a map's values."""

from __future__ import annotations

from headgate.schema.names import force_quotes

ROOT = "$"


def field_path(path: str, name: str) -> str:
    """The path of a field; a name that could be taken for something else is quoted."""
    return f"{path}.{name}" if name.isidentifier() else f"{path}.{force_quotes(name)}"


def element_path(path: str) -> str:
    return path + "[]"


def value_path(path: str) -> str:
    return path + "{}"

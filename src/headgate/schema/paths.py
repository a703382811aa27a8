"""The path of a part of a type: `$.a.b` is a field, `$.a[]` the elements of an array, `$.m{}` the values of a map."""

from __future__ import annotations

from headgate.schema.names import force_quotes

ROOT = "$"


def field_path(path: str, name: str) -> str:
    """The path of a field. A name that could be misread is quoted."""
    return f"{path}.{name}" if name.isidentifier() else f"{path}.{force_quotes(name)}"


def element_path(path: str) -> str:
    return path + "[]"


def value_path(path: str) -> str:
    return path + "{}"

"""The path of a part of a type: `$.a.b` is a field, `$.a[]` the elements of an array, `$.m{}` the values of a map.

Code that takes a path apart uses `Path`, a tuple of steps. Code that only shows paths makes their text step by step.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from headgate.schema.names import force_quotes

ROOT = "$"


class Step(Enum):
    """A step into a value that is not a record."""

    ELEMENT = "[]"
    VALUE = "{}"


Path: TypeAlias = tuple[str | Step, ...]
"""From the outermost value inwards. A text is the name of a field."""


def print_path(path: Path) -> str:
    text = ROOT
    for step in path:
        text = text + step.value if isinstance(step, Step) else field_path(text, step)
    return text


def field_path(path: str, name: str) -> str:
    """The path of a field. A name that could be misread is quoted."""
    return f"{path}.{name}" if name.isidentifier() else f"{path}.{force_quotes(name)}"


def element_path(path: str) -> str:
    return path + Step.ELEMENT.value


def value_path(path: str) -> str:
    return path + Step.VALUE.value

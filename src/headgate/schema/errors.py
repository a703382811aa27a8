"""What can be wrong with a type, its text, a value or a name: SCH-01xx. Each format has errors of its own beside it.

Every error carries the path of the place, `$` being the root.
"""

from __future__ import annotations

from headgate.errors import HeadgateError, did_you_mean, error
from headgate.schema.types import MAX_DEPTH, MAX_PRECISION


class SchemaError(HeadgateError):
    """Family SCH."""


@error
class TypeSyntax(SchemaError):
    """The text of a type cannot be read any further."""

    code = "SCH-0101"
    expected: tuple[str, ...]
    found: str

    def message(self) -> str:
        return f"expected {_one_of(self.expected)}, found {self.found}"


@error
class UnknownType(SchemaError):
    code = "SCH-0102"
    name: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'type "{self.name}" does not exist'


@error
class TypeTooDeep(SchemaError):
    code = "SCH-0103"
    path: str = "$"

    def message(self) -> str:
        return f"type at {self.path} is nested too deeply"

    def detail(self) -> str:
        return f"A type may be nested {MAX_DEPTH} levels deep."

    def hint(self) -> str:
        return "Keep what is deeper as json."


@error
class InvalidDecimal(SchemaError):
    code = "SCH-0104"
    precision: int
    scale: int

    def message(self) -> str:
        return f"decimal({self.precision},{self.scale}) is not a valid type"

    def hint(self) -> str:
        return f"The precision is from 1 to {MAX_PRECISION}, the scale from 0 to the precision."


@error
class InvalidLength(SchemaError):
    code = "SCH-0105"
    type: str
    length: int

    def message(self) -> str:
        return f"{self.type}({self.length}) is not a valid type"

    def hint(self) -> str:
        return "A length is a whole number from 1."


@error
class DuplicateField(SchemaError):
    code = "SCH-0106"
    field: str
    path: str = "$"

    def message(self) -> str:
        return f'field "{self.field}" occurs more than once in the record at {self.path}'


@error
class DuplicateSymbol(SchemaError):
    code = "SCH-0107"
    symbol: str

    def message(self) -> str:
        return f'symbol "{self.symbol}" occurs more than once in the enum'


@error
class DefaultNotASymbol(SchemaError):
    code = "SCH-0108"
    default: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'default "{self.default}" is not a symbol of the enum'


@error
class LimitedType(SchemaError):
    """A length or precision that Headgate's type does not have: leaving it out must be the writer's decision."""

    code = "SCH-0109"
    written: str
    instead: str

    def message(self) -> str:
        return f'type "{self.written}" has a limit that headgate does not keep'

    def hint(self) -> str:
        return f"Write {self.instead}."


@error
class ValueDoesNotFit(SchemaError):
    """A value that is not one of its type, or not exactly. Says the kind of value it was, never the value."""

    code = "SCH-0110"
    path: str
    expected: str
    found: str
    reason: str = ""

    def message(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"value at {self.path} does not fit {self.expected}, found {self.found}{why}"


@error
class UnresolvedType(SchemaError):
    """A named type where its definition is needed."""

    code = "SCH-0111"
    path: str
    name: str

    def message(self) -> str:
        return f'type "{self.name}" at {self.path} has not been resolved'


@error
class NameTooLong(SchemaError):
    code = "SCH-0112"
    name: str
    path: str
    limit: int

    def message(self) -> str:
        return (
            f'column "{self.name}" for {self.path} is longer than the {self.limit} bytes that postgres allows'
        )

    def hint(self) -> str:
        return "Give the field a shorter name, or keep the record that holds it as json."


@error
class NameClash(SchemaError):
    """Two fields that would become one column."""

    code = "SCH-0113"
    name: str
    first: str
    second: str

    def message(self) -> str:
        return f'fields {self.first} and {self.second} would both become the column "{self.name}"'

    def hint(self) -> str:
        return "Rename one of them, or keep the record that holds it as json."


@error
class UnknownPath(SchemaError):
    """A doc or a change for a place that the type does not have."""

    code = "SCH-0114"
    path: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f"there is no field at {self.path}"

    def hint(self) -> str | None:
        return did_you_mean(self.similar)


def _one_of(expected: tuple[str, ...]) -> str:
    if len(expected) == 1:
        return expected[0]
    return f"{', '.join(expected[:-1])} or {expected[-1]}"

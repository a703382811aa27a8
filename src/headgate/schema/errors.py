"""What can be wrong with a type, its text, a value or a name: SCH-01xx. Each format has errors of its own beside it.

Every error carries the path of the place, `$` being the root.
"""

from __future__ import annotations

from headgate.errors import HeadgateError
from headgate.schema.types import MAX_DEPTH, MAX_PRECISION


class SchemaError(HeadgateError):
    """Family SCH."""


class TypeSyntax(SchemaError, code="SCH-0101"):
    """The text of a type does not go on as the grammar of types demands.

    Write one of the things that the message lists. The page on types shows every type.
    """

    expected: tuple[str, ...]
    found: str
    MESSAGE = "expected {expected:or}, found {found}"


class UnknownType(SchemaError, code="SCH-0102"):
    """The text of a type names a type that does not exist."""

    name: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'type "{name}" does not exist'


class TypeTooDeep(SchemaError, code="SCH-0103"):
    """A type has more levels of arrays, maps and records than are supported."""

    path: str = "$"
    MESSAGE = "type at {path} is nested too deeply"
    DETAIL = f"A type may be nested {MAX_DEPTH} levels deep."
    HINT = "Keep what is deeper as json."


class InvalidDecimal(SchemaError, code="SCH-0104"):
    """The precision or the scale of a decimal is out of range."""

    precision: int
    scale: int
    MESSAGE = "decimal({precision},{scale}) is not a valid type"
    HINT = f"The precision is from 1 to {MAX_PRECISION}, the scale from 0 to the precision."


class InvalidLength(SchemaError, code="SCH-0105"):
    """The length of a type is zero or negative."""

    type: str
    length: int
    MESSAGE = "{type}({length}) is not a valid type"
    HINT = "A length is a whole number from 1."


class DuplicateField(SchemaError, code="SCH-0106"):
    """A record type has two fields of the same name.

    Rename or remove one of the two fields.
    """

    field: str
    path: str = "$"
    MESSAGE = 'field "{field}" occurs more than once in the record at {path}'


class DuplicateSymbol(SchemaError, code="SCH-0107"):
    """An enum type has the same symbol twice.

    Remove one of the two.
    """

    symbol: str
    MESSAGE = 'symbol "{symbol}" occurs more than once in the enum'


class DefaultNotASymbol(SchemaError, code="SCH-0108"):
    """The default of an enum is not one of its symbols."""

    default: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'default "{default}" is not a symbol of the enum'


class LimitedType(SchemaError, code="SCH-0109"):
    """A type is written with a length or precision that Headgate does not check. Only its writer can decide to leave it
    out."""

    written: str
    instead: str
    MESSAGE = 'type "{written}" has a limit that headgate does not keep'
    HINT = "Write {instead}."


class ValueDoesNotFit(SchemaError, code="SCH-0110"):
    """A value is not of its type, or cannot be converted without loss. The message names the kind of the value, never
    the value.

    Correct the value where it is made, or give the column a type that can hold it.
    """

    path: str
    expected: str
    found: str
    reason: str = ""
    MESSAGE = "value at {path} does not fit {expected}, found {found}{why}"

    @property
    def why(self) -> str:
        return f": {self.reason}" if self.reason else ""


class UnresolvedType(SchemaError, code="SCH-0111"):
    """A type refers to a named type whose definition is needed here and is not known.

    Create the type first, or write its definition in place of its name.
    """

    path: str
    name: str
    MESSAGE = 'type "{name}" at {path} has not been resolved'


class NameTooLong(SchemaError, code="SCH-0112"):
    """A column has a longer name than PostgreSQL allows."""

    name: str
    path: str
    limit: int
    MESSAGE = 'column "{name}" for {path} is longer than the {limit} bytes that postgres allows'
    HINT = "Give the field a shorter name, or keep the record that holds it as json."


class NameClash(SchemaError, code="SCH-0113"):
    """Nested fields become columns of one table, and two of them get the same column name."""

    name: str
    first: str
    second: str
    MESSAGE = 'fields {first} and {second} would both become the column "{name}"'
    HINT = "Rename one of them, or keep the record that holds it as json."


class UnknownPath(SchemaError, code="SCH-0114"):
    """A comment or a change names a field that the type does not have."""

    path: str
    similar: tuple[str, ...] = ()
    MESSAGE = "there is no field at {path}"

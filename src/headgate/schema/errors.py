"""What can be wrong with a schema or a type. Every error carries the path of the place, `$` being the root."""

from __future__ import annotations

from headgate.errors import HeadgateError, did_you_mean, error
from headgate.schema.types import MAX_DEPTH, MAX_PRECISION


class SchemaError(HeadgateError):
    """Family SCH."""


# SCH-01xx: types, their text, values, names


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


# SCH-02xx: the mappers for Avro and JSON Schema


@error
class MalformedAvro(SchemaError):
    code = "SCH-0201"
    path: str
    problem: str

    def message(self) -> str:
        return f"avro schema is malformed at {self.path}: {self.problem}"


@error
class MalformedJsonSchema(SchemaError):
    code = "SCH-0202"
    path: str
    problem: str

    def message(self) -> str:
        return f"json schema is malformed at {self.path}: {self.problem}"


@error
class SchemaTooDeep(SchemaError):
    code = "SCH-0203"
    format: str
    path: str

    def message(self) -> str:
        return f"{self.format} is nested too deeply at {self.path}"

    def detail(self) -> str:
        return f"Arrays, maps and records may be nested {MAX_DEPTH} levels deep."


@error
class SchemaTooLarge(SchemaError):
    """A schema that names the same types over and over, so that it would unfold without end."""

    code = "SCH-0204"
    format: str
    path: str
    limit: int

    def message(self) -> str:
        return f"{self.format} is too large at {self.path}"

    def detail(self) -> str:
        return f"With every named type written out where it is used, a schema may have {self.limit} fields and elements."


@error
class RecursiveSchema(SchemaError):
    code = "SCH-0205"
    format: str
    path: str
    name: str

    def message(self) -> str:
        return f'{self.format} is recursive: "{self.name}" holds itself at {self.path}'

    def hint(self) -> str:
        return "A column has a type of finite depth. Cut the recursion in the schema, or keep the place as json text."


@error
class UnknownReference(SchemaError):
    """A name that neither the schema nor its references define."""

    code = "SCH-0206"
    format: str
    path: str
    name: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'{self.format} names "{self.name}" at {self.path}, which is not defined'


@error
class DecimalTooWide(SchemaError):
    code = "SCH-0207"
    path: str
    precision: int

    def message(self) -> str:
        return f"decimal at {self.path} has {self.precision} digits, and at most {MAX_PRECISION} can be held"

    def hint(self) -> str:
        return f"Declare a precision of {MAX_PRECISION} or less in the schema, or write the number as text."


@error
class UnsupportedUnion(SchemaError):
    code = "SCH-0208"
    path: str
    branches: tuple[str, ...]

    def message(self) -> str:
        return f"avro union of {', '.join(self.branches)} at {self.path} cannot become columns"

    def detail(self) -> str:
        return "A union of several types becomes one column per type, which only a field of a record can be."

    def hint(self) -> str:
        return "Put the union into a field of a record."


@error
class NullOnly(SchemaError):
    code = "SCH-0209"
    format: str
    path: str

    def message(self) -> str:
        return f"{self.format} allows nothing but null at {self.path}, and there is no type for that"


@error
class UnionColumnClash(SchemaError):
    code = "SCH-0210"
    path: str
    column: str

    def message(self) -> str:
        return f'avro union at {self.path} would become the column "{self.column}", which exists already'

    def hint(self) -> str:
        return "Rename one of the two fields."


@error
class InvalidAvroName(SchemaError):
    code = "SCH-0211"
    name: str

    def message(self) -> str:
        return f'"{self.name}" is not a valid avro name'

    def hint(self) -> str:
        return "Each part between dots is letters, digits and _, and does not start with a digit."


@error
class ImpossibleSchema(SchemaError):
    code = "SCH-0212"
    path: str

    def message(self) -> str:
        return f"json schema at {self.path} contradicts itself: no value is valid"


# SCH-04xx: the mappers for Spark, PostgreSQL and Elasticsearch


@error
class UnsupportedType(SchemaError):
    """A type that a format cannot hold, or a type of a format that Headgate cannot hold."""

    code = "SCH-0401"
    path: str
    format: str
    type: str
    why: str
    instead: str = ""

    def message(self) -> str:
        return f"type {self.type} at {self.path} has no counterpart in {self.format}: {self.why}"

    def hint(self) -> str | None:
        return f"Write {self.instead}." if self.instead else None


@error
class InvalidColumnName(SchemaError):
    """A name that a target cannot have for a field."""

    code = "SCH-0402"
    name: str
    path: str
    format: str

    def message(self) -> str:
        return f'{self.format} cannot have a field "{self.name}" for {self.path}'

    def hint(self) -> str:
        return "Give the field another name, or keep the record that holds it as json."


@error
class InvalidMapping(SchemaError):
    """An index mapping that is not one, or not of the kind that Elasticsearch returns."""

    code = "SCH-0403"
    path: str
    expected: str

    def message(self) -> str:
        return f"index mapping is invalid at {self.path}: expected {self.expected}"


@error
class UnknownFormat(SchemaError):
    code = "SCH-0404"
    name: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'format "{self.name}" does not exist'


def _one_of(expected: tuple[str, ...]) -> str:
    if len(expected) == 1:
        return expected[0]
    return f"{', '.join(expected[:-1])} or {expected[-1]}"


# SCH-03xx: Protobuf


@error
class MalformedProto(SchemaError):
    """A .proto text that cannot be read any further. Line and column are from 1."""

    code = "SCH-0301"
    line: int
    column: int
    expected: str
    found: str

    def message(self) -> str:
        found = f'"{self.found}"' if self.found else "the end of the text"
        return f"malformed .proto text at line {self.line}, column {self.column}: expected {self.expected}, found {found}"


@error
class InvalidProto(SchemaError):
    """A .proto file that can be read and breaks a rule of the language."""

    code = "SCH-0302"
    path: str
    problem: str

    def message(self) -> str:
        return f'protobuf definition "{self.path}" is invalid: {self.problem}'


@error
class UnresolvedProtoType(SchemaError):
    code = "SCH-0303"
    path: str
    name: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'type "{self.name}" of protobuf definition "{self.path}" does not exist'

    def hint(self) -> str:
        return did_you_mean(self.similar) or "Import the file that defines it, or register it as a reference."


@error
class MissingImport(SchemaError):
    code = "SCH-0304"
    file: str
    imported: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'file "{self.imported}" imported by "{self.file}" does not exist'

    def hint(self) -> str:
        return did_you_mean(self.similar) or f'Register it and name it as a reference "{self.imported}".'


@error
class UnknownProtoOption(SchemaError):
    code = "SCH-0305"
    line: int
    column: int
    option: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'option "{self.option}" at line {self.line}, column {self.column} does not exist'

    def hint(self) -> str:
        return did_you_mean(self.similar) or f"Write an option of your own in parentheses: ({self.option})."


@error
class ProtoTooDeep(SchemaError):
    code = "SCH-0306"
    line: int
    column: int
    limit: int

    def message(self) -> str:
        return f"message at line {self.line}, column {self.column} is nested too deeply"

    def detail(self) -> str:
        return f"Messages can be nested {self.limit} levels deep."


@error
class UnknownMessage(SchemaError):
    code = "SCH-0307"
    name: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        named = f'protobuf message "{self.name}"' if self.name else "a protobuf message"
        return f"{named} does not exist in the file"

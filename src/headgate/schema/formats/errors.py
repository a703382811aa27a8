"""What can be wrong with a schema of a format: SCH-02xx Avro and JSON Schema, SCH-04xx Spark, PostgreSQL and Elasticsearch."""

from __future__ import annotations

from headgate.schema.errors import SchemaError
from headgate.schema.types import MAX_DEPTH, MAX_PRECISION


class MalformedAvro(SchemaError, code="SCH-0201"):
    """The text is not a valid Avro schema."""

    path: str
    problem: str
    MESSAGE = "avro schema is malformed at {path}: {problem}"
    HINT = 'Write an Avro schema as JSON, for example {{"type": "record", "name": "r", "fields": []}}.'


class MalformedJsonSchema(SchemaError, code="SCH-0202"):
    """The text is not a valid JSON Schema.

    Correct the schema at the path that the message names.
    """

    path: str
    problem: str
    MESSAGE = "json schema is malformed at {path}: {problem}"


class SchemaTooDeep(SchemaError, code="SCH-0203"):
    """A schema has more levels of arrays, maps and records than are supported.

    Use fewer levels, or keep the inner ones as text that holds JSON.
    """

    format: str
    path: str
    MESSAGE = "{format} is nested too deeply at {path}"
    DETAIL = f"Arrays, maps and records may be nested {MAX_DEPTH} levels deep."


class SchemaTooLarge(SchemaError, code="SCH-0204"):
    """A schema names the same types so often that it becomes too large when every name is replaced by its definition.

    Split the schema, or remove the repeated parts.
    """

    format: str
    path: str
    limit: int
    MESSAGE = "{format} is too large at {path}"
    DETAIL = (
        "With every named type written out where it is used, a schema may have {limit} fields and elements."
    )


class RecursiveSchema(SchemaError, code="SCH-0205"):
    """A schema contains a type that contains itself, so that no finite set of columns can hold it."""

    format: str
    path: str
    name: str
    MESSAGE = '{format} is recursive: "{name}" holds itself at {path}'
    HINT = "A column has a type of finite depth. Cut the recursion in the schema, or keep the place as json text."


class UnknownReference(SchemaError, code="SCH-0206"):
    """A schema names a type that neither the schema nor its references define."""

    format: str
    path: str
    name: str
    similar: tuple[str, ...] = ()
    MESSAGE = '{format} names "{name}" at {path}, which is not defined'


class DecimalTooWide(SchemaError, code="SCH-0207"):
    """A decimal has more digits than Spark and the targets can hold."""

    path: str
    precision: int
    MESSAGE = f"decimal at {{path}} has {{precision}} digits, and at most {MAX_PRECISION} can be held"
    HINT = f"Declare a precision of {MAX_PRECISION} or less in the schema, or write the number as text."


class UnsupportedUnion(SchemaError, code="SCH-0208"):
    """A union of several types stands in an array or a map, or at the root, where it cannot become one column per type."""

    path: str
    branches: tuple[str, ...]
    MESSAGE = "avro union of {branches:list} at {path} cannot become columns"
    DETAIL = "A union of several types becomes one column per type, which only a field of a record can be."
    HINT = "Put the union into a field of a record."


class NullOnly(SchemaError, code="SCH-0209"):
    """A part of a schema has only the type null, which no column can have.

    Add another type to the union, or remove the field.
    """

    format: str
    path: str
    MESSAGE = "{format} allows nothing but null at {path}, and there is no type for that"


class UnionColumnClash(SchemaError, code="SCH-0210"):
    """A union becomes one column per type, and one of these columns has the name of another field."""

    path: str
    column: str
    MESSAGE = 'avro union at {path} would become the column "{column}", which exists already'
    HINT = "Rename one of the two fields."


class InvalidAvroName(SchemaError, code="SCH-0211"):
    """A name cannot be written in an Avro schema."""

    name: str
    MESSAGE = '"{name}" is not a valid avro name'
    HINT = "Each part between dots is letters, digits and _, and does not start with a digit."


class ImpossibleSchema(SchemaError, code="SCH-0212"):
    """The rules of a JSON Schema exclude each other, so that no value is valid.

    Remove one of the rules that contradict each other at this path.
    """

    path: str
    MESSAGE = "json schema at {path} contradicts itself: no value is valid"


class UnsupportedType(SchemaError, code="SCH-0401"):
    """A type of Headgate cannot be written in a format, or a type of a format cannot be read by Headgate.

    Cast the column to a type that the format has, or leave it out.
    """

    path: str
    format: str
    type: str
    why: str
    instead: str = ""
    MESSAGE = "type {type} at {path} has no counterpart in {format}: {why}"
    HINT = "Write {instead}."


class InvalidColumnName(SchemaError, code="SCH-0402"):
    """A column has a name that the target does not allow."""

    name: str
    path: str
    format: str
    MESSAGE = '{format} cannot have a field "{name}" for {path}'
    HINT = "Give the field another name, or keep the record that holds it as json."


class InvalidMapping(SchemaError, code="SCH-0403"):
    """The mapping of an index does not have the form in which Elasticsearch returns it.

    Give the mapping as GET /index/_mapping returns it.
    """

    path: str
    expected: str
    MESSAGE = "index mapping is invalid at {path}: expected {expected}"


class MalformedPattern(SchemaError, code="PLN-0214"):
    """The pattern of FORMAT REGEX is not a valid regular expression.

    Correct the pattern as the detail says.
    """

    reason: str
    MESSAGE = "the pattern of FORMAT REGEX is no regular expression"
    DETAIL = "{sentence}."

    @property
    def sentence(self) -> str:
        return f"{self.reason[:1].upper()}{self.reason[1:]}"

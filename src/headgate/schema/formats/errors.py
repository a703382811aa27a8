"""What can be wrong with a schema of a format: SCH-02xx Avro and JSON Schema, SCH-04xx Spark, PostgreSQL and Elasticsearch."""

from __future__ import annotations

from headgate.errors import error
from headgate.schema.errors import SchemaError
from headgate.schema.types import MAX_DEPTH, MAX_PRECISION


@error
class MalformedAvro(SchemaError):
    code = "SCH-0201"
    path: str
    problem: str

    def message(self) -> str:
        return f"avro schema is malformed at {self.path}: {self.problem}"

    def hint(self) -> str:
        return 'Write an Avro schema as JSON, for example {"type": "record", "name": "r", "fields": []}.'


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


@error
class MalformedPattern(SchemaError):
    code = "PLN-0214"
    reason: str

    def message(self) -> str:
        return "the pattern of FORMAT REGEX is no regular expression"

    def detail(self) -> str:
        return f"{self.reason[:1].upper()}{self.reason[1:]}."

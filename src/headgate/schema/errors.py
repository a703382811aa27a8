"""What can be wrong with a schema: SCH-01xx types, values and names, SCH-02xx Avro and JSON Schema, SCH-03xx Protobuf,
SCH-04xx targets. Lines and columns are from 1."""

from __future__ import annotations

from headgate.errors import HeadgateError
from headgate.schema.types import MAX_DEPTH, MAX_PRECISION


class SchemaError(HeadgateError):
    """An error of a schema, type or value: SCH-…."""


class TypeSyntax(SchemaError, code="SCH-0101"):
    """The text of a type does not go on as the grammar of types demands.

    Cure: Write one of the things that the message lists. The page on types shows every type.
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

    Cure: Rename or remove one of the two fields.
    """

    field: str
    path: str = "$"
    MESSAGE = 'field "{field}" occurs more than once in the record at {path}'


class DuplicateSymbol(SchemaError, code="SCH-0107"):
    """An enum type has the same symbol twice.

    Cure: Remove one of the two.
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
    MESSAGE = 'type "{written}" has a limit that Headgate does not enforce'
    HINT = "Write {instead}."


class ValueDoesNotFit(SchemaError, code="SCH-0110"):
    """A value is not of its type, or cannot be converted without loss. The message names the kind of the value, never
    the value.

    Cure: Correct the value where it is made, or give the column a type that can hold it.
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

    Cure: Create the type first, or write its definition in place of its name.
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


class MalformedAvro(SchemaError, code="SCH-0201"):
    """The text is not a valid Avro schema."""

    path: str
    problem: str
    MESSAGE = "avro schema is malformed at {path}: {problem}"
    HINT = 'Write an Avro schema as JSON, for example {{"type": "record", "name": "r", "fields": []}}.'


class MalformedJsonSchema(SchemaError, code="SCH-0202"):
    """The text is not a valid JSON Schema.

    Cure: Correct the schema at the path that the message names.
    """

    path: str
    problem: str
    MESSAGE = "json schema is malformed at {path}: {problem}"


class SchemaTooDeep(SchemaError, code="SCH-0203"):
    """A schema has more levels of arrays, maps and records than are supported.

    Cure: Use fewer levels, or keep the inner ones as text that holds JSON.
    """

    format: str
    path: str
    MESSAGE = "{format} is nested too deeply at {path}"
    DETAIL = f"Arrays, maps and records may be nested {MAX_DEPTH} levels deep."


class SchemaTooLarge(SchemaError, code="SCH-0204"):
    """A schema names the same types so often that it becomes too large when every name is replaced by its
    definition.

    Cure: Split the schema, or remove the repeated parts.
    """

    format: str
    path: str
    limit: int
    MESSAGE = "{format} is too large at {path}"
    DETAIL = "With every named type written out where it is used, a schema may have {limit} fields and elements."


class RecursiveSchema(SchemaError, code="SCH-0205"):
    """A schema contains a type that contains itself, so that no finite set of columns can hold it."""

    format: str
    path: str
    name: str
    MESSAGE = '{format} is recursive: "{name}" holds itself at {path}'
    HINT = "A column has a type of finite depth. Cut the recursion in the schema, or keep the part that repeats as json text."


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
    """A union of several types stands in an array or a map, or at the root, where it cannot become one column per
    type."""

    path: str
    branches: tuple[str, ...]
    MESSAGE = "avro union of {branches:list} at {path} cannot become columns"
    DETAIL = "A union of several types becomes one column per type, which only a field of a record can be."
    HINT = "Put the union into a field of a record."


class NullTypeOnly(SchemaError, code="SCH-0209"):
    """A part of a schema has only the type null, which no column can have.

    Cure: Add another type to the union, or remove the field.
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

    Cure: Remove one of the rules that contradict each other at this path.
    """

    path: str
    MESSAGE = "json schema at {path} contradicts itself: no value is valid"


class RefusedProto(SchemaError):
    """The compiler of Protobuf refuses a .proto text. `others` are its further findings, in the form `file:line:column:
    problem`.

    A text that has no name of its own is called `schema.proto`.
    """

    file: str
    line: int
    column: int
    problem: str
    others: tuple[str, ...] = ()
    MESSAGE = "{file}:{line}:{column}: {problem}"
    DETAIL = "{others:lines}"


class MalformedProto(RefusedProto, code="SCH-0301"):
    """The text of a .proto file breaks a rule of Protobuf. The message is the one of its compiler, protoc.

    Cure: Correct the text at the line and column that the message names.
    """


class UnresolvedProtoType(RefusedProto, code="SCH-0303"):
    """A .proto file uses a type that neither the file nor its imports define."""

    name: str = ""
    similar: tuple[str, ...] = ()
    HINT = "Import the file that defines it, or register it as a reference."


class MissingImport(RefusedProto, code="SCH-0304"):
    """A .proto file imports a file that is neither a reference of the schema nor one of Protobuf's own."""

    imported: str = ""
    similar: tuple[str, ...] = ()
    HINT = 'Register it and name it as a reference "{imported}".'


class UnknownProtoOption(RefusedProto, code="SCH-0305"):
    """A .proto file sets an option that neither Protobuf nor an imported file defines."""

    option: str = ""
    similar: tuple[str, ...] = ()
    HINT = "Import the file that defines the option, and write its name in parentheses."


class ProtoTooDeep(RefusedProto, code="SCH-0306"):
    """Messages are nested in each other beyond the limit.

    Cure: Define the inner messages at the top level of the file.
    """

    limit: int = 0
    DETAIL = "Messages can be nested {limit} levels deep."


class UnknownMessage(SchemaError, code="SCH-0307"):
    """A name that is given for a Protobuf message is not in the file."""

    name: str
    similar: tuple[str, ...] = ()
    MESSAGE = "{which} does not exist in the file"

    @property
    def which(self) -> str:
        return f'protobuf message "{self.name}"' if self.name else "a protobuf message"


class ProtoTooLarge(SchemaError, code="SCH-0308"):
    """The compiler of Protobuf did not finish: it took too long, or it ended without an answer."""

    characters: int
    seconds: int
    MESSAGE = "protobuf schema of {characters} characters is too large to compile"
    DETAIL = "The compiler is stopped after {seconds} seconds."
    HINT = "Split the schema into several files, or remove what is not needed."


class CompilerFailed(HeadgateError, code="SCH-0309"):
    """The compiler of Protobuf could not run, for example because the disk is full.

    It says nothing about the schema, so it is no SchemaError: those are taken for the last word on a schema.
    """

    retryable = True
    reason: str
    MESSAGE = "could not run the compiler of Protobuf"
    DETAIL = "{reason}"
    HINT = "Check that the folder for temporary files has room and can be written."


class UnsupportedType(SchemaError, code="SCH-0401"):
    """A type of Headgate cannot be written in a format, or a type of a format cannot be read by Headgate.

    Cure: Cast the column to a type that the format has, or leave it out.
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

    Cure: Give the mapping as GET /index/_mapping returns it.
    """

    path: str
    expected: str
    MESSAGE = "index mapping is invalid at {path}: expected {expected}"


class MalformedPattern(SchemaError, code="PLN-0214"):
    """The pattern of FORMAT REGEX is not a valid regular expression.

    Cure: Correct the pattern as the detail says.
    """

    reason: str
    MESSAGE = "the pattern of FORMAT REGEX is not a regular expression"
    DETAIL = "{sentence}."

    @property
    def sentence(self) -> str:
        return f"{self.reason[:1].upper()}{self.reason[1:]}"

"""What can be wrong with a Protobuf file: SCH-03xx."""

from __future__ import annotations

from headgate.schema.errors import SchemaError


class MalformedProto(SchemaError, code="SCH-0301"):
    """The text of a .proto file does not follow the grammar of Protobuf."""

    line: int
    column: int
    expected: str
    found: str
    MESSAGE = "malformed .proto text at line {line}, column {column}: expected {expected}, found {shown}"
    CURE = "Correct the text at the line and column that the message names."

    @property
    def shown(self) -> str:
        return f'"{self.found}"' if self.found else "the end of the text"


class InvalidProto(SchemaError, code="SCH-0302"):
    """A .proto file follows the grammar of Protobuf and breaks one of its rules."""

    path: str
    problem: str
    MESSAGE = 'protobuf definition "{path}" is invalid: {problem}'
    CURE = "Correct the definition that the message names."


class UnresolvedProtoType(SchemaError, code="SCH-0303"):
    """A .proto file uses a type that neither the file nor its imports define."""

    path: str
    name: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'type "{name}" of protobuf definition "{path}" does not exist'
    HINT = "Import the file that defines it, or register it as a reference."


class MissingImport(SchemaError, code="SCH-0304"):
    """A .proto file imports a file that is not known."""

    file: str
    imported: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'file "{imported}" imported by "{file}" does not exist'
    HINT = 'Register it and name it as a reference "{imported}".'


class UnknownProtoOption(SchemaError, code="SCH-0305"):
    """A .proto file sets an option that Protobuf does not define."""

    line: int
    column: int
    option: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'option "{option}" at line {line}, column {column} does not exist'
    HINT = "Write an option of your own in parentheses: ({option})."


class ProtoTooDeep(SchemaError, code="SCH-0306"):
    """Messages are nested in each other beyond the limit."""

    line: int
    column: int
    limit: int
    MESSAGE = "message at line {line}, column {column} is nested too deeply"
    DETAIL = "Messages can be nested {limit} levels deep."
    CURE = "Define the inner messages at the top level of the file."


class UnknownMessage(SchemaError, code="SCH-0307"):
    """A name that is given for a Protobuf message is not in the file."""

    name: str
    similar: tuple[str, ...] = ()
    MESSAGE = "{which} does not exist in the file"

    @property
    def which(self) -> str:
        return f'protobuf message "{self.name}"' if self.name else "a protobuf message"

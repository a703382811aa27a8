"""What can be wrong with a Protobuf file: SCH-03xx. Lines and columns are from 1."""

from __future__ import annotations

from headgate.schema.errors import SchemaError


class RefusedProto(SchemaError):
    """protoc refuses a .proto text. `others` are its further findings, in the form `file:line:column: problem`.

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
    """The text of a .proto file breaks a rule of Protobuf. The message is the one of its compiler, protoc."""

    CURE = "Correct the text at the line and column that the message names."


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
    """Messages are nested in each other beyond the limit."""

    limit: int = 0
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


class ProtoTooLarge(SchemaError, code="SCH-0308"):
    """protoc did not finish with a .proto text: it took too long, or it ended without an answer."""

    characters: int
    seconds: int
    MESSAGE = "protobuf schema of {characters} characters is too large to compile"
    DETAIL = "The compiler is stopped after {seconds} seconds."
    HINT = "Split the schema into several files, or remove what is not needed."

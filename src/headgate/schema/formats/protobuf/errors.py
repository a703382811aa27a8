"""What can be wrong with a Protobuf file: SCH-03xx. Lines and columns are from 1."""

from __future__ import annotations

from headgate.schema.errors import SchemaError


class RefusedProto(SchemaError):
    """protoc refuses a .proto text. `others` are its further findings, in the form `file:line:column: problem`."""

    file: str
    line: int
    column: int
    problem: str
    others: tuple[str, ...] = ()
    MESSAGE = "{file}:{line}:{column}: {problem}"
    DETAIL = "{others:lines}"


class MalformedProto(RefusedProto, code="SCH-0301"):
    """The text of a .proto file breaks a rule of the language. The message is protoc's."""


class UnresolvedProtoType(RefusedProto, code="SCH-0303"):
    """A field has a type that neither its file nor an imported one defines."""

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
    """Messages within messages are nested deeper than protoc allows."""

    limit: int = 0
    DETAIL = "Messages can be nested {limit} levels deep."


class UnknownMessage(SchemaError, code="SCH-0307"):
    """A source names a message that its .proto file does not have, or the file has no message at all."""

    name: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        named = f'protobuf message "{self.name}"' if self.name else "a protobuf message"
        return f"{named} does not exist in the file"


class ProtoTooLarge(SchemaError, code="SCH-0308"):
    """protoc did not finish with a .proto text: it took too long, or ended without an answer."""

    characters: int
    seconds: int
    MESSAGE = "protobuf schema of {characters} characters is too large to compile"
    DETAIL = "The compiler is stopped after {seconds} seconds."
    HINT = "Split the schema into several files, or remove what is not needed."

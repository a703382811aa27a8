"""What can be wrong with a Protobuf file: SCH-03xx."""

from __future__ import annotations

from headgate.errors import did_you_mean, error
from headgate.schema.errors import SchemaError


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

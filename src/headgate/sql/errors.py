"""What can be wrong with the text of a statement: SQL-01xx from the lexer, SQL-02xx from the parser, SQL-03xx stored
statements. The texts of string literals never appear in an error, because any of them may be a secret."""

from __future__ import annotations

from headgate.errors import error
from headgate.text.errors import SqlError, alternatives


@error
class UnknownStatement(SqlError):
    code = "SQL-0202"
    found: str
    known: tuple[str, ...]
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f"no statement begins with {self.found}"

    def detail(self) -> str:
        return f"A statement begins with {alternatives(self.known)}."


@error
class UnknownOption(SqlError):
    code = "SQL-0203"
    option: str
    owner: str
    known: tuple[str, ...]
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'option "{self.option}" of {self.owner} does not exist'

    def detail(self) -> str:
        return f"The options are {', '.join(self.known)}."


@error
class RepeatedOption(SqlError):
    code = "SQL-0204"
    option: str
    owner: str

    def message(self) -> str:
        return f'option "{self.option}" of {self.owner} is given more than once'


@error
class InvalidOptionValue(SqlError):
    code = "SQL-0205"
    option: str
    owner: str
    expected: str
    found: str
    unquoted: str | None = None  # a name that stands where a string should

    def message(self) -> str:
        return f'option "{self.option}" of {self.owner} takes {self.expected}, found {self.found}'

    def hint(self) -> str | None:
        return None if self.unquoted is None else f"Write it in single quotes: '{self.unquoted}'."


@error
class UnknownChoice(SqlError):
    code = "SQL-0206"
    option: str
    owner: str
    choices: tuple[str, ...]
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'option "{self.option}" of {self.owner} must be {alternatives(self.choices)}'


@error
class UnclosedBracket(SqlError):
    code = "SQL-0208"
    bracket: str

    def message(self) -> str:
        return f'"{self.bracket}" is not closed'


@error
class UnopenedBracket(SqlError):
    code = "SQL-0209"
    bracket: str

    def message(self) -> str:
        return f'"{self.bracket}" closes nothing'


@error
class EmptyStatement(SqlError):
    code = "SQL-0210"

    def message(self) -> str:
        return "there is no statement"


@error
class SeveralStatements(SqlError):
    code = "SQL-0211"

    def message(self) -> str:
        return "expected one statement, found another after it"


@error
class NestedTooDeep(SqlError):
    code = "SQL-0212"
    limit: int

    def message(self) -> str:
        return f"fields are nested more than {self.limit} levels deep"


@error
class MissingRegistry(SqlError):
    code = "SQL-0213"
    format: str

    def message(self) -> str:
        return f"format {self.format} does not say where its schema is"

    def hint(self) -> str:
        return "Write USING CONFLUENT SCHEMA REGISTRY CONNECTION <name> after the format."


@error
class ReplaceNotSupported(SqlError):
    code = "SQL-0214"
    kind: str

    def message(self) -> str:
        return f"a {self.kind} cannot be replaced"

    def hint(self) -> str:
        return f"Only views, streams and tables can: use ALTER {self.kind.upper()}, or drop it and create it again."


@error
class ReplaceIfNotExists(SqlError):
    code = "SQL-0215"

    def message(self) -> str:
        return "OR REPLACE and IF NOT EXISTS exclude each other"


@error
class RepeatedClause(SqlError):
    code = "SQL-0216"
    clause: str

    def message(self) -> str:
        return f"{self.clause} is given more than once"


@error
class TooFewNameParts(SqlError):
    code = "SQL-0217"
    name: str

    def message(self) -> str:
        return f'column "{self.name}" does not say of which object it is'

    def hint(self) -> str:
        return "Write object.column."


@error
class TooManyNameParts(SqlError):
    code = "SQL-0218"
    name: str
    most: int

    def message(self) -> str:
        return f'name "{self.name}" has more than {self.most} parts'


@error
class NotExplainable(SqlError):
    code = "SQL-0220"
    what: str
    expected: str

    def message(self) -> str:
        return f"{self.what} explains {self.expected}, found another statement"


@error
class MapKeyNotText(SqlError):
    code = "SQL-0221"

    def message(self) -> str:
        return "the key of a map must be text"


@error
class UnknownSetting(SqlError):
    code = "SQL-0222"
    setting: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'setting "{self.setting}" does not exist'


@error
class RegistryGivenTwice(SqlError):
    code = "SQL-0223"

    def message(self) -> str:
        return "the schema registry is given both after USING and as an option"


@error
class InvalidStatementJson(SqlError):
    """A stored statement that this version cannot read."""

    code = "SQL-0301"
    reason: str

    def message(self) -> str:
        return f"stored statement cannot be read: {self.reason}"

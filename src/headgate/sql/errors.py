"""What can be wrong with the text of a statement: SQL-01xx from the lexer, SQL-02xx from the parser, SQL-03xx stored
statements. The texts of string literals never appear in an error, because any of them may be a secret."""

from __future__ import annotations

import unicodedata

from headgate.errors import HeadgateError, error


class SqlError(HeadgateError):
    """Any error in the text of a statement."""


@error
class UnterminatedString(SqlError):
    code = "SQL-0101"

    def message(self) -> str:
        return "string is not closed"

    def hint(self) -> str:
        return "Close it with a single quote. A single quote inside a string is written twice."


@error
class UnterminatedIdentifier(SqlError):
    code = "SQL-0102"
    quote: str

    def message(self) -> str:
        return "quoted identifier is not closed"

    def hint(self) -> str:
        return f"Close it with {self.quote} and write {self.quote} inside it twice."


@error
class UnterminatedComment(SqlError):
    code = "SQL-0103"

    def message(self) -> str:
        return "comment is not closed"

    def hint(self) -> str:
        return "Close it with */. Comments nest, so every /* needs its own */."


@error
class UnterminatedDollarQuote(SqlError):
    code = "SQL-0104"
    tag: str

    def message(self) -> str:
        return f"string that begins with {self.tag} is not closed"

    def hint(self) -> str:
        return f"Close it with {self.tag}."


@error
class UnexpectedCharacter(SqlError):
    code = "SQL-0105"
    character: str

    def message(self) -> str:
        shown = f'"{self.character}" ' if self.character.isprintable() and self.character != " " else ""
        return f"unexpected character {shown}U+{ord(self.character):04X}"

    def detail(self) -> str:
        return f"Its name is {unicodedata.name(self.character, 'not defined')}."

    def hint(self) -> str:
        if self.character.isspace():
            return "Write an ordinary blank instead."
        if self.character in "‘’‚‛“”„‟′″´":
            return "Write straight quotes: 'a text', \"a name\"."
        return "Remove it, or put the name that it belongs to in double quotes."


@error
class NulCharacter(SqlError):
    code = "SQL-0106"

    def message(self) -> str:
        return "text contains a NUL character"

    def hint(self) -> str:
        return "Remove it: no target can store it in text."


@error
class InvalidEscape(SqlError):
    code = "SQL-0107"
    escape: str

    def message(self) -> str:
        return f"invalid escape {self.escape} in string"

    def hint(self) -> str:
        return r"Write \xHH, \uHHHH or \UHHHHHHHH with the code of a character other than NUL, or \\ for a backslash."


@error
class InvalidUtf8(SqlError):
    code = "SQL-0108"
    offset: int

    def message(self) -> str:
        return f"text is not valid UTF-8 at byte {self.offset}"

    def hint(self) -> str:
        return "Save the file in UTF-8."


@error
class EmptyIdentifier(SqlError):
    code = "SQL-0109"

    def message(self) -> str:
        return "name is empty"


@error
class UnexpectedToken(SqlError):
    code = "SQL-0201"
    expected: tuple[str, ...]
    found: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        if self._many():
            return f"did not expect {self.found} here"
        return f"expected {alternatives(self.expected)}, found {self.found}"

    def detail(self) -> str | None:
        return f"Expected was {alternatives(self.expected)}." if self._many() else None

    def _many(self) -> bool:
        return len(self.expected) > 8


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
class ReservedWord(SqlError):
    code = "SQL-0207"
    word: str

    def message(self) -> str:
        return f'expected a name, found the reserved word "{self.word}"'

    def hint(self) -> str:
        return f'As a name it must be quoted: "{self.word.lower()}".'


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
class InvalidNumber(SqlError):
    code = "SQL-0219"
    text: str
    expected: str

    def message(self) -> str:
        return f'expected {self.expected}, found "{self.text}"'


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


def alternatives(words: tuple[str, ...]) -> str:
    """Words as a list that ends in "or"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} or {words[-1]}"

"""What can be wrong with a text before its grammar is known: SQL-01xx from the lexer, and three of SQL-02xx from the cursor.

The texts of string literals never appear in an error, because any of them may be a secret.
"""

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
class ReservedWord(SqlError):
    code = "SQL-0207"
    word: str

    def message(self) -> str:
        return f'expected a name, found the reserved word "{self.word}"'

    def hint(self) -> str:
        return f'As a name it must be quoted: "{self.word.lower()}".'


@error
class InvalidNumber(SqlError):
    code = "SQL-0219"
    text: str
    expected: str

    def message(self) -> str:
        return f'expected {self.expected}, found "{self.text}"'


def alternatives(words: tuple[str, ...]) -> str:
    """Words as a list that ends in "or"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} or {words[-1]}"

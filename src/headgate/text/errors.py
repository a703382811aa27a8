"""What can be wrong with a text before its grammar is known: SQL-01xx from the lexer, and three of SQL-02xx from the
cursor.

The texts of string literals never appear in an error, because any of them may be a secret.
"""

from __future__ import annotations

import unicodedata

from headgate.errors import HeadgateError


class SqlError(HeadgateError):
    """An error in the text of a statement: SQL-…."""


class UnterminatedString(SqlError, code="SQL-0101"):
    """A string begins with a single quote, and the text ends before the closing one."""

    MESSAGE = "string is not closed"
    HINT = "Close it with a single quote. A single quote inside a string is written twice."


class UnterminatedIdentifier(SqlError, code="SQL-0102"):
    """A quoted name begins, and the text ends before the closing quote."""

    quote: str
    MESSAGE = "quoted identifier is not closed"
    HINT = "Close it with {quote} and write {quote} inside it twice."


class UnterminatedComment(SqlError, code="SQL-0103"):
    """A comment begins with /*, and the text ends before it is closed."""

    MESSAGE = "comment is not closed"
    HINT = "Close it with */. Comments nest, so every /* needs its own */."


class UnterminatedDollarQuote(SqlError, code="SQL-0104"):
    """A string begins with a dollar quote, and the text ends before the same tag comes again."""

    tag: str
    MESSAGE = "string that begins with {tag} is not closed"
    HINT = "Close it with {tag}."


class UnexpectedCharacter(SqlError, code="SQL-0105"):
    """A character stands outside strings and quoted names that no statement can contain there."""

    character: str
    MESSAGE = "unexpected character {shown}"
    DETAIL = "Its name is {name}."
    HINT = "Remove it, or put the name that it belongs to in double quotes."

    @property
    def shown(self) -> str:
        code = f"U+{ord(self.character):04X}"
        visible = self.character.isprintable() and self.character != " "
        return f'"{self.character}" {code}' if visible else code

    @property
    def name(self) -> str:
        return unicodedata.name(self.character, "not defined")

    def hint(self) -> str | None:
        if self.character.isspace():
            return "Write an ordinary blank instead."
        if self.character in "‘’‚‛“”„‟′″´":
            return "Write straight quotes: 'a text', \"a name\"."
        return super().hint()


class NulCharacter(SqlError, code="SQL-0106"):
    """The text of a statement contains the character U+0000."""

    MESSAGE = "text contains a NUL character"
    HINT = "Remove it: no target can store it in text."


class InvalidEscape(SqlError, code="SQL-0107"):
    """A string of the form E'…' contains a backslash that does not begin a valid escape."""

    escape: str
    MESSAGE = "invalid escape {escape} in string"
    HINT = "Write \\xHH, \\uHHHH or \\UHHHHHHHH with the code of a character other than NUL, or \\\\ for a backslash."


class InvalidUtf8(SqlError, code="SQL-0108"):
    """A script is not encoded in UTF-8."""

    offset: int
    MESSAGE = "text is not valid UTF-8 at byte {offset}"
    HINT = "Save the file in UTF-8."


class EmptyIdentifier(SqlError, code="SQL-0109"):
    """A quoted name has no character between its quotes.

    Cure: Write at least one character between the quotes.
    """

    MESSAGE = "name is empty"


class UnexpectedToken(SqlError, code="SQL-0201"):
    """The statement does not go on as its grammar demands. The message lists what can stand at this position.

    Cure: Write one of the words that the message or the detail lists. The page on statements shows the whole
    grammar.
    """

    expected: tuple[str, ...]
    found: str
    similar: tuple[str, ...] = ()
    MESSAGE = "expected {expected:or}, found {found}"
    DETAIL = "Expected {expected:or}."

    @property
    def many(self) -> bool:
        return len(self.expected) > 8

    def message(self) -> str:
        return f"did not expect {self.found} here" if self.many else super().message()

    def detail(self) -> str | None:
        return super().detail() if self.many else None


class ReservedWord(SqlError, code="SQL-0207"):
    """A reserved word stands where a name is expected."""

    word: str
    MESSAGE = 'expected a name, found the reserved word "{word}"'
    HINT = 'As a name it must be quoted: "{word:lower}".'


class InvalidNumber(SqlError, code="SQL-0219"):
    """A number is written in a form that cannot stand here, for example with a fraction.

    Cure: Write a number of the form that the message names.
    """

    text: str
    expected: str
    MESSAGE = 'expected {expected}, found "{text}"'

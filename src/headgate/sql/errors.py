"""What can be wrong with the text of a statement: SQL-01xx from the lexer, SQL-02xx from the parser, SQL-03xx stored
statements. The texts of string literals never appear in an error, because any of them may be a secret."""

from __future__ import annotations

from headgate.text.errors import SqlError


class UnknownStatement(SqlError, code="SQL-0202"):
    """The first word is not the beginning of any statement."""

    found: str
    known: tuple[str, ...]
    similar: tuple[str, ...] = ()
    MESSAGE = "no statement begins with {found}"
    DETAIL = "A statement begins with {known:or}."
    CURE = "Begin with one of the words that the detail lists."


class UnknownOption(SqlError, code="SQL-0203"):
    """A list of options contains a name that this object does not have."""

    option: str
    owner: str
    known: tuple[str, ...]
    similar: tuple[str, ...] = ()
    MESSAGE = 'option "{option}" of {owner} does not exist'
    DETAIL = "The options are {known:list}."


class RepeatedOption(SqlError, code="SQL-0204"):
    """A list of options contains the same option twice."""

    option: str
    owner: str
    MESSAGE = 'option "{option}" of {owner} is given more than once'
    CURE = "Leave one of them out."


class InvalidOptionValue(SqlError, code="SQL-0205"):
    """An option has a value of the wrong kind, for example a number where a string is needed."""

    option: str
    owner: str
    expected: str
    found: str
    unquoted: str | None = None  # a name that stands where a string should
    MESSAGE = 'option "{option}" of {owner} takes {expected}, found {found}'
    HINT = "Write it in single quotes: '{unquoted}'."
    CURE = "Write a value of the kind that the message names."


class UnknownChoice(SqlError, code="SQL-0206"):
    """An option has a value that is not one of its choices."""

    option: str
    owner: str
    choices: tuple[str, ...]
    similar: tuple[str, ...] = ()
    MESSAGE = 'option "{option}" of {owner} must be {choices:or}'


class UnclosedBracket(SqlError, code="SQL-0208"):
    """A bracket is opened, and the statement ends before it is closed."""

    bracket: str
    MESSAGE = '"{bracket}" is not closed'
    CURE = "Close the bracket that the caret points at."


class UnopenedBracket(SqlError, code="SQL-0209"):
    """A closing bracket has no opening one."""

    bracket: str
    MESSAGE = '"{bracket}" has no opening bracket'
    CURE = "Remove the bracket that the caret points at, or open it earlier."


class EmptyStatement(SqlError, code="SQL-0210"):
    """The text contains no statement, only blanks, comments or semicolons."""

    MESSAGE = "there is no statement"
    CURE = "Write a statement."


class SeveralStatements(SqlError, code="SQL-0211"):
    """More than one statement stands where exactly one is allowed."""

    MESSAGE = "expected one statement, found another after it"
    CURE = "Send the statements one by one, or as a script."


class NestedTooDeep(SqlError, code="SQL-0212"):
    """The column list of a definition has records in records beyond the limit."""

    limit: int
    MESSAGE = "fields are nested more than {limit} levels deep"
    CURE = "Use fewer levels of records, or keep the inner ones as json."


class MissingRegistry(SqlError, code="SQL-0213"):
    """A format needs a schema, and the statement names neither a registry nor an inline schema."""

    format: str
    MESSAGE = "format {format} does not say where its schema is"
    HINT = "Write USING CONFLUENT SCHEMA REGISTRY CONNECTION <name> after the format."


class ReplaceNotSupported(SqlError, code="SQL-0214"):
    """CREATE OR REPLACE is written for a kind of object that cannot be replaced."""

    kind: str
    MESSAGE = "a {kind} cannot be replaced"
    HINT = "Only views, streams and tables can: use ALTER {kind:upper}, or drop it and create it again."


class ReplaceIfNotExists(SqlError, code="SQL-0215"):
    """A CREATE statement has both OR REPLACE, which replaces an existing object, and IF NOT EXISTS, which keeps it."""

    MESSAGE = "OR REPLACE and IF NOT EXISTS exclude each other"
    CURE = "Leave one of the two out."


class RepeatedClause(SqlError, code="SQL-0216"):
    """A clause that may stand once is written twice."""

    clause: str
    MESSAGE = "{clause} is given more than once"
    CURE = "Leave one of them out."


class TooFewNameParts(SqlError, code="SQL-0217"):
    """A column is named alone where the name of its object is needed too."""

    name: str
    MESSAGE = 'column "{name}" is named without its object'
    HINT = "Write object.column."


class TooManyNameParts(SqlError, code="SQL-0218"):
    """A name has more parts than database, schema and object (and column, where one is named)."""

    name: str
    most: int
    MESSAGE = 'name "{name}" has more than {most} parts'
    CURE = "Write fewer parts. A dot that belongs to a name needs quotes around that part."


class NotExplainable(SqlError, code="SQL-0220"):
    """EXPLAIN is followed by a statement that it cannot explain."""

    what: str
    expected: str
    MESSAGE = "{what} explains {expected}, found another statement"
    CURE = "Write EXPLAIN before one of the statements that the message names."


class MapKeyNotText(SqlError, code="SQL-0221"):
    """A map type has a key of another type than text."""

    MESSAGE = "the key of a map must be text"
    CURE = "Write text as the key type. Keys of other types can be cast to text."


class UnknownSetting(SqlError, code="SQL-0222"):
    """SET or SHOW names a setting of the session that does not exist."""

    setting: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'setting "{setting}" does not exist'


class RegistryGivenTwice(SqlError, code="SQL-0223"):
    """A format names its schema registry in two positions of the statement."""

    MESSAGE = "the schema registry is given both after USING and as an option"
    CURE = "Leave one of them out."


class InvalidStatementJson(SqlError, code="SQL-0301"):
    """The catalog holds a statement that this version of Headgate cannot read, because another version wrote it or the
    file was changed by hand."""

    reason: str
    MESSAGE = "stored statement cannot be read: {reason}"
    CURE = "Use the version of Headgate that wrote the catalog, or restore the catalog from a copy."

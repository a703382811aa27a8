"""What can be wrong with the text of a statement: SQL-02xx from the parser, SQL-03xx for stored statements, SQL-04xx
for queries, found before anything runs. (SQL-01xx come from the lexer: `text/errors.py`.) The texts of string literals
never appear in an error, because any of them may be a secret."""

from __future__ import annotations

from headgate.text.errors import SqlError


class UnknownStatement(SqlError, code="SQL-0202"):
    """The first word is not the beginning of any statement.

    Cure: Begin with one of the words that the detail lists.
    """

    found: str
    known: tuple[str, ...]
    similar: tuple[str, ...] = ()
    MESSAGE = "no statement begins with {found}"
    DETAIL = "A statement begins with {known:or}."


class UnknownOption(SqlError, code="SQL-0203"):
    """A list of options contains a name that this object does not have."""

    option: str
    owner: str
    known: tuple[str, ...]
    similar: tuple[str, ...] = ()
    MESSAGE = 'option "{option}" of {owner} does not exist'
    DETAIL = "The options are {known:list}."


class RepeatedOption(SqlError, code="SQL-0204"):
    """A list of options contains the same option twice.

    Cure: Leave one of them out.
    """

    option: str
    owner: str
    MESSAGE = 'option "{option}" of {owner} is given more than once'


class InvalidOptionValue(SqlError, code="SQL-0205"):
    """An option has a value of the wrong kind, for example a number where a string is needed.

    Cure: Write a value of the kind that the message names.
    """

    option: str
    owner: str
    expected: str
    found: str
    unquoted: str | None = None  # a name that stands where a string should
    MESSAGE = 'option "{option}" of {owner} takes {expected}, found {found}'
    HINT = "Write it in single quotes: '{unquoted}'."


class UnknownChoice(SqlError, code="SQL-0206"):
    """An option has a value that is not one of its choices."""

    option: str
    owner: str
    choices: tuple[str, ...]
    similar: tuple[str, ...] = ()
    MESSAGE = 'option "{option}" of {owner} must be {choices:or}'


class UnclosedBracket(SqlError, code="SQL-0208"):
    """A bracket is opened, and the statement ends before it is closed.

    Cure: Close the bracket that the caret points at.
    """

    bracket: str
    MESSAGE = '"{bracket}" is not closed'


class UnopenedBracket(SqlError, code="SQL-0209"):
    """A closing bracket has no opening one.

    Cure: Remove the bracket that the caret points at, or open it earlier.
    """

    bracket: str
    MESSAGE = '"{bracket}" has no opening bracket'


class EmptyStatement(SqlError, code="SQL-0210"):
    """The text contains no statement, only blanks, comments or semicolons.

    Cure: Write a statement.
    """

    MESSAGE = "there is no statement"


class SeveralStatements(SqlError, code="SQL-0211"):
    """More than one statement stands where exactly one is allowed.

    Cure: Send the statements one by one, or as a script.
    """

    MESSAGE = "expected one statement, found another after it"


class NestedTooDeep(SqlError, code="SQL-0212"):
    """The column list of a definition has records in records beyond the limit.

    Cure: Use fewer levels of records, or keep the inner ones as json.
    """

    limit: int
    MESSAGE = "fields are nested more than {limit} levels deep"


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
    """A CREATE statement has both OR REPLACE, which replaces an existing object, and IF NOT EXISTS, which keeps it.

    Cure: Leave one of the two out.
    """

    MESSAGE = "OR REPLACE and IF NOT EXISTS exclude each other"


class RepeatedClause(SqlError, code="SQL-0216"):
    """A clause that may stand once is written twice.

    Cure: Leave one of them out.
    """

    clause: str
    MESSAGE = "{clause} is given more than once"


class TooFewNameParts(SqlError, code="SQL-0217"):
    """A column is named alone where the name of its object is needed too."""

    name: str
    MESSAGE = 'column "{name}" is named without its object'
    HINT = "Write object.column."


class TooManyNameParts(SqlError, code="SQL-0218"):
    """A name has more parts than database, schema and object (and column, where one is named).

    Cure: Write fewer parts. A dot that belongs to a name needs quotes around that part.
    """

    name: str
    most: int
    MESSAGE = 'name "{name}" has more than {most} parts'


class NotExplainable(SqlError, code="SQL-0220"):
    """EXPLAIN is followed by a statement that it cannot explain.

    Cure: Write EXPLAIN before one of the statements that the message names.
    """

    what: str
    expected: str
    MESSAGE = "{what} explains {expected}, found another statement"


class MapKeyNotText(SqlError, code="SQL-0221"):
    """A map type has a key of another type than text.

    Cure: Write text as the key type. Keys of other types can be cast to text.
    """

    MESSAGE = "the key of a map must be text"


class UnknownSetting(SqlError, code="SQL-0222"):
    """SET or SHOW names a setting of the session that does not exist."""

    setting: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'setting "{setting}" does not exist'


class RegistryGivenTwice(SqlError, code="SQL-0223"):
    """A format names its schema registry in two positions of the statement.

    Cure: Leave one of them out.
    """

    MESSAGE = "the schema registry is given both after USING and as an option"


class DocNotText(SqlError, code="SQL-0224"):
    """DOC ON has no value, or one that is no text."""

    target: str
    MESSAGE = "{target} needs a text"
    HINT = "Write {target} = 'the documentation'. To have no doc, leave the option out."


class InvalidStatementJson(SqlError, code="SQL-0301"):
    """The catalog holds a statement that this version of Headgate cannot read, because another version wrote it or the
    file was changed by hand.

    Cure: Use the version of Headgate that wrote the catalog, or restore the catalog from a copy.
    """

    reason: str
    MESSAGE = "stored statement cannot be read: {reason}"


# Queries

_INSTEAD_OF_ARROWS = {
    "text": "Write (x::json) -> 'key' if the text holds JSON.",
    "record": "Write x.field or (x).field.",
    "map": "Write x['key'].",
}


class QueryTooDeep(SqlError, code="SQL-0401"):
    """A query has more nested expressions or subqueries than can be analysed."""

    limit: int
    MESSAGE = "query is nested more than {limit} levels deep"
    HINT = "Split it into views or WITH clauses."


class MalformedQuery(SqlError, code="SQL-0402"):
    """The text of a query is not valid SQL.

    Cure: Correct the query where the caret points.
    """

    reason: str
    MESSAGE = "query cannot be read: {reason}"


class UnknownColumn(SqlError, code="SQL-0403"):
    """A query names a column that none of its relations has."""

    column: str
    relations: tuple[str, ...]
    similar: tuple[str, ...] = ()
    advice: str | None = None
    columns: tuple[str, ...] = ()
    MESSAGE = 'column "{column}" does not exist'
    DETAIL = "Looked in {relations:list}."
    HINT = "The columns are {columns:list}."

    def detail(self) -> str:
        return super().detail() or "The query has no FROM."

    def hint(self) -> str | None:
        return self.advice or super().hint()


class AmbiguousColumn(SqlError, code="SQL-0404"):
    """A query names a column that several of its relations have, or that differs from others only by case."""

    column: str
    candidates: tuple[str, ...]
    MESSAGE = 'column "{column}" is ambiguous'
    DETAIL = "It may be {candidates:or}."
    HINT = "Qualify it with the name of its relation, or put it in double quotes if the names differ only by case."


class UnknownAlias(SqlError, code="SQL-0405"):
    """A query qualifies a column with a relation that is not in its FROM clause."""

    alias: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'the query has no relation "{alias}"'


class UnknownField(SqlError, code="SQL-0406"):
    """A query takes a field of a record, and the record has no such field."""

    field: str
    owner: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'field "{field}" of {owner} does not exist'


class NotARecord(SqlError, code="SQL-0407"):
    """A query takes a field of a value that is no record.

    Cure: Leave the field out, or take it from a column that holds a record.
    """

    field: str
    type: str
    MESSAGE = 'field "{field}" cannot be taken from a value of type {type}'


class WrongColumnCount(SqlError, code="SQL-0408"):
    """Two queries are combined, or a list is compared, with different numbers of columns.

    Cure: Give both sides the same number of columns.
    """

    what: str
    expected: int
    found: int
    MESSAGE = "{what} has {found} columns, expected {expected}"


class IncompatibleBranches(SqlError, code="SQL-0409"):
    """Two values must have one type, for example in UNION or CASE, and no type can hold both."""

    what: str
    left: str
    right: str
    MESSAGE = "types {left} and {right} of {what} have no common type"
    HINT = "Write a CAST on one of them."


class UnknownFunction(SqlError, code="SQL-0411"):
    """A query calls a function that Headgate does not know."""

    function: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'function "{function}" does not exist'


class UnsupportedQuery(SqlError, code="SQL-0412"):
    """A query uses a part of SQL that Headgate does not support.

    Cure: Write the query without it.
    """

    what: str
    instead: str | None = None
    MESSAGE = "{what} is not supported in a query"
    HINT = "{instead}"


class DuplicateAlias(SqlError, code="SQL-0413"):
    """Two relations of one FROM or WITH clause have the same name."""

    alias: str
    clause: str
    MESSAGE = 'relation name "{alias}" is used more than once in one {clause}'
    HINT = "Give one of them another name with AS."


class NotJson(SqlError, code="SQL-0414"):
    """An operator for JSON is applied to a value of another type.

    Cure: Cast the value to json first.
    """

    type: str
    MESSAGE = "-> and ->> take a value of type json, found {type}"

    def hint(self) -> str | None:
        return _INSTEAD_OF_ARROWS.get(self.type.partition("(")[0])


class WrongType(SqlError, code="SQL-0415"):
    """An operator or a function gets a value of a type that it does not take.

    Cure: Cast the value to the type that the message names.
    """

    what: str
    expected: str
    found: str
    MESSAGE = "{what} takes {expected}, found {found}"


class ImpossibleCast(SqlError, code="SQL-0416"):
    """A cast goes between types that have no conversion.

    Cure: Cast to text first, or compute the value in another way.
    """

    source: str
    target: str
    MESSAGE = "a value of type {source} cannot be cast to {target}"


class NotIndexable(SqlError, code="SQL-0417"):
    """Square brackets follow a value that is neither an array nor a map.

    Cure: Use them only after an array or a map.
    """

    type: str
    MESSAGE = "[ ] takes an element of an array or a value of a map, found {type}"


class MisplacedFunction(SqlError, code="SQL-0418"):
    """A function that makes rows or needs a window stands where a single value is expected."""

    function: str
    why: str
    instead: str
    MESSAGE = "function {function} {why} and cannot stand here"
    HINT = "{instead}"


class UngroupedColumn(SqlError, code="SQL-0419"):
    """A query with GROUP BY or an aggregate uses a column that has several values per group."""

    column: str
    MESSAGE = 'column "{column}" is neither grouped nor inside an aggregate'
    HINT = "Add it to GROUP BY, or take one of its values with any_value, min or max."


class MisplacedAggregate(SqlError, code="SQL-0420"):
    """An aggregate stands in a clause that is evaluated before rows are grouped.

    Cure: Move the aggregate to SELECT or HAVING, or compute it in a subquery.
    """

    function: str
    clause: str
    MESSAGE = "aggregate {function} cannot stand in {clause}"

    def hint(self) -> str | None:
        return "Write the condition in HAVING." if self.clause == "WHERE" else None

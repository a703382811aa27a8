"""What can be wrong with a query, found before anything runs: SQL-04xx."""

from __future__ import annotations

from headgate.text.errors import SqlError

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
    """The text of a query is not valid SQL."""

    reason: str
    MESSAGE = "query cannot be read: {reason}"
    CURE = "Correct the query where the caret points."


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
    """A query takes a field of a value that is no record."""

    field: str
    type: str
    MESSAGE = 'field "{field}" cannot be taken from a value of type {type}'
    CURE = "Leave the field out, or take it from a column that holds a record."


class WrongColumnCount(SqlError, code="SQL-0408"):
    """Two queries are combined, or a list is compared, with different numbers of columns."""

    what: str
    expected: int
    found: int
    MESSAGE = "{what} has {found} columns, expected {expected}"
    CURE = "Give both sides the same number of columns."


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
    """A query uses a part of SQL that Headgate does not support."""

    what: str
    instead: str | None = None
    MESSAGE = "{what} is not supported in a query"
    HINT = "{instead}"
    CURE = "Write the query without it."


class DuplicateAlias(SqlError, code="SQL-0413"):
    """Two relations of one FROM or WITH clause have the same name."""

    alias: str
    clause: str
    MESSAGE = 'relation name "{alias}" is used more than once in one {clause}'
    HINT = "Give one of them another name with AS."


class NotJson(SqlError, code="SQL-0414"):
    """An operator for JSON is applied to a value of another type."""

    type: str
    MESSAGE = "-> and ->> take a value of type json, found {type}"
    CURE = "Cast the value to json first."

    def hint(self) -> str | None:
        return _INSTEAD_OF_ARROWS.get(self.type.partition("(")[0])


class WrongType(SqlError, code="SQL-0415"):
    """An operator or a function gets a value of a type that it does not take."""

    what: str
    expected: str
    found: str
    MESSAGE = "{what} takes {expected}, found {found}"
    CURE = "Cast the value to the type that the message names."


class ImpossibleCast(SqlError, code="SQL-0416"):
    """A cast goes between types that have no conversion."""

    source: str
    target: str
    MESSAGE = "a value of type {source} cannot be cast to {target}"
    CURE = "Cast to text first, or compute the value in another way."


class NotIndexable(SqlError, code="SQL-0417"):
    """Square brackets follow a value that is neither an array nor a map."""

    type: str
    MESSAGE = "[ ] takes an element of an array or a value of a map, found {type}"
    CURE = "Use them only after an array or a map."


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
    """An aggregate stands in a clause that is evaluated before rows are grouped."""

    function: str
    clause: str
    MESSAGE = "aggregate {function} cannot stand in {clause}"
    CURE = "Move the aggregate to SELECT or HAVING, or compute it in a subquery."

    def hint(self) -> str | None:
        return "Write the condition in HAVING." if self.clause == "WHERE" else None

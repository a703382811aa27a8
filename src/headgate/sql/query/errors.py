"""What can be wrong with a query, found before anything runs: SQL-04xx."""

from __future__ import annotations

from headgate.errors import error
from headgate.text.errors import SqlError

SHOWN_COLUMNS = 20  # of those that a name could have been, in a hint


@error
class QueryTooDeep(SqlError):
    code = "SQL-0401"
    limit: int

    def message(self) -> str:
        return f"query is nested more than {self.limit} levels deep"

    def hint(self) -> str:
        return "Split it into views or WITH clauses."


@error
class MalformedQuery(SqlError):
    code = "SQL-0402"
    reason: str

    def message(self) -> str:
        return f"query cannot be read: {self.reason}"


@error
class UnknownColumn(SqlError):
    code = "SQL-0403"
    column: str
    relations: tuple[str, ...]
    similar: tuple[str, ...] = ()
    advice: str | None = None
    columns: tuple[str, ...] = ()

    def message(self) -> str:
        return f'column "{self.column}" does not exist'

    def detail(self) -> str | None:
        return f"Looked in {', '.join(self.relations)}." if self.relations else "The query has no FROM."

    def hint(self) -> str | None:
        if self.advice or self.similar or not self.columns:
            return self.advice or super().hint()
        more = ", …" if len(self.columns) > SHOWN_COLUMNS else ""
        return f"The columns are {', '.join(self.columns[:SHOWN_COLUMNS])}{more}."


@error
class AmbiguousColumn(SqlError):
    code = "SQL-0404"
    column: str
    candidates: tuple[str, ...]

    def message(self) -> str:
        return f'column "{self.column}" is ambiguous'

    def detail(self) -> str:
        return f"It may be {' or '.join(self.candidates)}."

    def hint(self) -> str:
        return "Qualify it with the name of its relation, or put it in double quotes if the names differ only by case."


@error
class UnknownAlias(SqlError):
    code = "SQL-0405"
    alias: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'the query has no relation "{self.alias}"'


@error
class UnknownField(SqlError):
    code = "SQL-0406"
    field: str
    owner: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'field "{self.field}" of {self.owner} does not exist'


@error
class NotARecord(SqlError):
    code = "SQL-0407"
    field: str
    type: str

    def message(self) -> str:
        return f'field "{self.field}" cannot be taken of a value of type {self.type}'


@error
class WrongColumnCount(SqlError):
    code = "SQL-0408"
    what: str
    expected: int
    found: int

    def message(self) -> str:
        return f"{self.what} has {self.found} columns, expected {self.expected}"


@error
class IncompatibleBranches(SqlError):
    code = "SQL-0409"
    what: str
    left: str
    right: str

    def message(self) -> str:
        return f"types {self.left} and {self.right} of {self.what} have no common type"

    def hint(self) -> str:
        return "Write a CAST on one of them."


@error
class UnknownFunction(SqlError):
    code = "SQL-0411"
    function: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'function "{self.function}" does not exist'


@error
class UnsupportedQuery(SqlError):
    code = "SQL-0412"
    what: str
    instead: str | None = None

    def message(self) -> str:
        return f"{self.what} is not supported in a query"

    def hint(self) -> str | None:
        return self.instead


@error
class DuplicateAlias(SqlError):
    code = "SQL-0413"
    alias: str
    clause: str

    def message(self) -> str:
        return f'relation name "{self.alias}" is used more than once in one {self.clause}'

    def hint(self) -> str:
        return "Give one of them another name with AS."


@error
class NotJson(SqlError):
    code = "SQL-0414"
    type: str

    def message(self) -> str:
        return f"-> and ->> take a value of type json, found {self.type}"

    def hint(self) -> str | None:
        match self.type.partition("(")[0]:
            case "text":
                return "Write (x::json) -> 'key' if the text holds JSON."
            case "record":
                return "Write x.field or (x).field."
            case "map":
                return "Write x['key']."
            case _:
                return None


@error
class WrongType(SqlError):
    code = "SQL-0415"
    what: str
    expected: str
    found: str

    def message(self) -> str:
        return f"{self.what} takes {self.expected}, found {self.found}"


@error
class ImpossibleCast(SqlError):
    code = "SQL-0416"
    source: str
    target: str

    def message(self) -> str:
        return f"a value of type {self.source} cannot be cast to {self.target}"


@error
class NotIndexable(SqlError):
    code = "SQL-0417"
    type: str

    def message(self) -> str:
        return f"[ ] takes an element of an array or a value of a map, found {self.type}"


@error
class MisplacedFunction(SqlError):
    code = "SQL-0418"
    function: str
    why: str
    instead: str

    def message(self) -> str:
        return f"function {self.function} {self.why} and cannot stand here"

    def hint(self) -> str:
        return self.instead


@error
class UngroupedColumn(SqlError):
    code = "SQL-0419"
    column: str

    def message(self) -> str:
        return f'column "{self.column}" is neither grouped nor inside an aggregate'

    def hint(self) -> str:
        return "Add it to GROUP BY, or take one of its values with any_value, min or max."


@error
class MisplacedAggregate(SqlError):
    code = "SQL-0420"
    function: str
    clause: str

    def message(self) -> str:
        return f"aggregate {self.function} cannot stand in {self.clause}"

    def hint(self) -> str | None:
        return "Write the condition in HAVING." if self.clause == "WHERE" else None

"""What is wrong with a statement that reads well: PLN-01xx any statement, PLN-02xx sources, PLN-03xx sinks."""

from __future__ import annotations

from headgate.errors import HeadgateError, error

INLINE_ERRORS = "VALUE DECODING ERRORS"  # where the column of inline errors comes from


class PlanError(HeadgateError):
    """Family PLN."""


@error
class NotSupportedYet(PlanError):
    code = "PLN-0101"
    what: str

    def message(self) -> str:
        return f"{self.what} is not supported yet"


@error
class ColumnTwice(PlanError):
    code = "PLN-0102"
    column: str
    relation: str

    def message(self) -> str:
        return f'column "{self.column}" of "{self.relation}" is given more than once'

    def hint(self) -> str:
        return (
            "Give one of them another name with AS, or name all columns in a list after the relation's name."
        )


@error
class TooManyNames(PlanError):
    code = "PLN-0103"
    relation: str
    names: int
    columns: int

    def message(self) -> str:
        return f'"{self.relation}" has {self.columns} columns, but {self.names} names are given'


@error
class ColumnOfUnknownType(PlanError):
    code = "PLN-0104"
    column: str

    def message(self) -> str:
        return f'the type of column "{self.column}" is not known'

    def hint(self) -> str:
        return "Write a cast to the type that it has, as in (…)::text."


@error
class ViewInUse(PlanError):
    code = "PLN-0105"
    view: str
    users: tuple[tuple[str, str], ...]

    def message(self) -> str:
        return f'cannot give view "{self.view}" other columns: it is in use'

    def detail(self) -> str:
        users = ", ".join(f'{kind} "{name}"' for kind, name in self.users)
        return f"It is used by {users}."

    def hint(self) -> str:
        return "Keep the names and types of its columns, or create a view of another name."


@error
class NameCaptured(PlanError):
    code = "PLN-0106"
    kind: str
    name: str
    new_name: str
    user_kind: str
    user: str

    def message(self) -> str:
        return (
            f'cannot rename {self.kind} "{self.name}" to "{self.new_name}": '
            f'in {self.user_kind} "{self.user}" that name would mean something else'
        )

    def detail(self) -> str:
        return "An alias, a column or a WITH of its query has that name already, where the new name would be written."

    def hint(self) -> str:
        return (
            f"Choose another name, or first replace {self.user_kind} {self.user} by one that gives the relation an "
            "alias."
        )


@error
class ViewOutgrown(PlanError):
    """A source that a view reads takes up a schema change, and the view's query does not fit it."""

    code = "PLN-0107"
    view: str
    reason: str
    advice: str = ""

    def message(self) -> str:
        return f'view "{self.view}" does not fit the changed columns of what it reads: {self.reason}'

    def detail(self) -> str:
        return (
            "A source below it takes up a change of its schema. What does not read the view is not concerned."
        )

    def hint(self) -> str:
        if self.advice:
            return f"Write CREATE OR REPLACE VIEW {self.view}; what reads it then goes on where it stopped. {self.advice}"
        return (
            f"Write CREATE OR REPLACE VIEW {self.view} with a query that gives its columns again, for example "
            "SELECT * EXCEPT (column) for one that a new field brings; what reads it then goes on where it stopped."
        )


@error
class ColumnCollision(PlanError):
    code = "PLN-0201"
    column: str
    first: str
    second: str
    source: str

    def message(self) -> str:
        return f'column "{self.column}" of source "{self.source}" comes from two places: {self.first} and {self.second}'

    def hint(self) -> str:
        if INLINE_ERRORS in (self.first, self.second):
            return "Write VALUE DECODING ERRORS = INLINE AS <name> to call the column of errors otherwise."
        if self.first.startswith("key") or self.second.startswith("key"):
            return "Write INCLUDE KEY AS <name> to keep the key in one column of its own, or name the columns in a list."
        return "Give the metadata column another name with AS, or name the columns in a list."


@error
class FieldWithheld(PlanError):
    """A source followed a schema with a new field whose name is that of a column which it has from elsewhere."""

    code = "PLN-0216"
    source: str
    column: str
    field: str
    other: str
    cure: str

    def message(self) -> str:
        return (
            f'cannot take all columns of source "{self.source}": {self.field} has no column, '
            f'because column "{self.column}" is {self.other}'
        )

    def detail(self) -> str:
        return "The field came with a schema that the source followed. What names its columns goes on without it."

    def hint(self) -> str:
        return (
            f"Name the columns, or leave it out with * EXCEPT ({self.column}); a sink reads a view that does. "
            f"To have the field, create the source again with {self.cure}."
        )


@error
class SchemaCannotChange(PlanError):
    code = "PLN-0409"
    source: str
    policy: str
    format: str
    inline: bool  # whether the schema is written in the statement, so that PIN is what happens

    def message(self) -> str:
        return f'ON SCHEMA CHANGE = {self.policy} of source "{self.source}" would have no effect'

    def detail(self) -> str:
        if self.inline:
            return f"The schema of its values stands in the statement (FORMAT {self.format}), and nobody else can change it."
        return f"FORMAT {self.format} has no schema that could change."

    def hint(self) -> str:
        if self.inline:
            return "Leave the option out, or write USING CONFLUENT SCHEMA REGISTRY to learn of other schemas."
        return "Leave the option out. What does not fit the format is left to ON ERROR."


@error
class KeyFormatMissing(PlanError):
    code = "PLN-0202"
    source: str
    asked_by: str

    def message(self) -> str:
        return f'{self.asked_by} of source "{self.source}" needs to know the format of the key'

    def hint(self) -> str:
        return "Write KEY FORMAT … VALUE FORMAT … instead of FORMAT …"


@error
class KeyNotAllowed(PlanError):
    code = "PLN-0203"
    source: str

    def message(self) -> str:
        return f'INCLUDE KEY is not allowed for source "{self.source}" under ENVELOPE DEBEZIUM'

    def hint(self) -> str:
        return "The values of Debezium hold the columns of the key already: leave INCLUDE KEY out."


@error
class UpsertKeyUnknown(PlanError):
    code = "PLN-0204"
    column: str
    source: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'key column "{self.column}" is no column of the values of source "{self.source}"'


@error
class NoChangeEvents(PlanError):
    code = "PLN-0206"
    source: str
    missing: tuple[str, ...]
    reason: str = ""

    def message(self) -> str:
        return f'the values of source "{self.source}" are no change events of Debezium: {self.reason or self._missing()}'

    def _missing(self) -> str:
        names = " and ".join(f'"{name}"' for name in self.missing)
        return f"field {names} is missing" if len(self.missing) == 1 else f"fields {names} are missing"

    def hint(self) -> str:
        return "A change event is a record with before, after and op. For values that are the rows write ENVELOPE UPSERT."


@error
class DebeziumKeyUnfit(PlanError):
    code = "PLN-0207"
    source: str
    reason: str

    def message(self) -> str:
        return f'the key of source "{self.source}" is no key of its rows: {self.reason}'

    def detail(self) -> str:
        return (
            "Under ENVELOPE DEBEZIUM every field of the record's key is a field of the row, of the same type."
        )


@error
class InlineErrorsWithoutKey(PlanError):
    code = "PLN-0208"
    source: str

    def message(self) -> str:
        return f'source "{self.source}" cannot have VALUE DECODING ERRORS = INLINE and a key in its values'

    def detail(self) -> str:
        return "A value that cannot be decoded would be a row without a key."

    def hint(self) -> str:
        return (
            "Leave KEY (…) out, so that the record's own key is the key, or leave such records to ON ERROR."
        )


@error
class CsvWithoutColumns(PlanError):
    code = "PLN-0211"

    def message(self) -> str:
        return "FORMAT CSV of a topic needs to know its columns"

    def hint(self) -> str:
        return "Write CSV WITH n COLUMNS, or CSV WITH HEADER (name, …)."


@error
class FormatColumnTwice(PlanError):
    code = "PLN-0212"
    format: str
    column: str

    def message(self) -> str:
        return f'FORMAT {self.format} has two columns "{self.column}"'

    def hint(self) -> str:
        return "Give each of them a name of its own."


@error
class DelimiterNotOneCharacter(PlanError):
    code = "PLN-0213"
    delimiter: str

    def message(self) -> str:
        return f"cannot delimit columns by {self.delimiter!r}"

    def hint(self) -> str:
        return "A delimiter is one character, and neither a double quote nor the end of a line."


@error
class PatternWithoutGroups(PlanError):
    code = "PLN-0215"

    def message(self) -> str:
        return "the pattern of FORMAT REGEX has no group"

    def hint(self) -> str:
        return "Put what shall be a column in parentheses, with a name if you like: (?<name>…)."


@error
class SinkKeyMissing(PlanError):
    code = "PLN-0301"
    sink: str

    def message(self) -> str:
        return f'ENVELOPE UPSERT of sink "{self.sink}" needs a KEY'

    def hint(self) -> str:
        return "Write KEY (column, …) before FORMAT."


@error
class SinkKeyNotUnique(PlanError):
    code = "PLN-0302"
    sink: str
    key: tuple[str, ...]
    known: tuple[str, ...]
    deletes: bool = False  # whether rows of the relation can be deleted

    def message(self) -> str:
        return f'key ({", ".join(self.key)}) of sink "{self.sink}" is not known to be unique'

    def detail(self) -> str:
        if not self.known:
            return "The relation has no key."
        return f"The relation's key is ({', '.join(self.known)})."

    def hint(self) -> str:
        if self.deletes:  # which no other key would find
            return (
                "Use the key of the source, which its deletions have alone, so that KEY (…) NOT ENFORCED is of no help here. Or "
                "write ENVELOPE NONE: every change is written then, and nothing deleted."
            )
        return "Use the relation's key, or write KEY (…) NOT ENFORCED if you know that it is unique."


@error
class SinkFormatNeedsOneColumn(PlanError):
    code = "PLN-0303"
    sink: str
    format: str
    side: str
    found: int

    def message(self) -> str:
        return f'{self.format} writes one column, but the {self.side} of sink "{self.sink}" has {self.found}'

    def hint(self) -> str:
        return "Select the one column in a view, or use a format that has fields."


@error
class KeyWithoutFormat(PlanError):
    code = "PLN-0304"
    sink: str

    def message(self) -> str:
        return f'KEY FORMAT of sink "{self.sink}" needs a KEY'


@error
class SideWithoutSchema(PlanError):
    code = "PLN-0305"
    sink: str
    side: str

    def message(self) -> str:
        return f'the {self.side} of sink "{self.sink}" has no schema'

    def detail(self) -> str:
        return "Only formats that use a schema registry have one."


@error
class SinkFeedsItself(PlanError):
    code = "PLN-0306"
    sink: str
    source: str
    topic: str
    over: tuple[str, ...] = ()  # other sinks that bring the records back to it

    def message(self) -> str:
        told = f'sink "{self.sink}" cannot write to topic "{self.topic}", which source "{self.source}" reads'
        if not self.over:
            return f"{told} for it"
        sinks = " and ".join(f'"{name}"' for name in self.over)
        return f"{told} for sink {sinks}, whose records come back to it"

    def detail(self) -> str:
        return "Every record that it writes would come back as one to be written, without end."

    def hint(self) -> str:
        return "Write to a topic of another name."

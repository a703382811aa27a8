"""What is wrong with a statement that is well formed: PLN-01xx any statement, PLN-02xx sources, PLN-05xx scripts for apply,
PLN-08xx materialized views. Sinks and materializations have files of their own."""

from __future__ import annotations

from headgate.errors import HeadgateError, joined

INLINE_ERRORS = "VALUE DECODING ERRORS"  # where the column of inline errors comes from


class PlanError(HeadgateError):
    """An error of a statement that is well formed: PLN-…."""


class OverChanging(PlanError):
    """A relation is written whose rows come and go without a key."""

    name: str  # of the sink or materialization
    kind: str
    relation: str
    why: str
    keep: tuple[str, ...] = ()  # columns with which the relation would be keyed
    cure: str = ""
    DETAIL = "{why}"

    def hint(self) -> str | None:
        kept = joined([f'"{name}"' for name in self.keep], "and")
        if self.cure:
            return self.cure
        return f"Keep {kept} in the query." if kept else "Read a relation that has a key and keep its key."


class NotSupportedYet(PlanError, code="PLN-0101"):
    """A statement is valid and asks for something that this version cannot do.

    Cure: Use another statement, or wait for a version that supports it.
    """

    what: str
    MESSAGE = "{what} is not supported yet"


class ViewNotRowByRow(PlanError, code="PLN-0109"):
    """A task or statement reads a view whose rows may come from several records, as those of joins, groups and DISTINCT do. Only a
    materialized view keeps the rows that such a query needs.

    Cure: Make the view a materialized one, or make a materialized view over it.
    """

    task: str
    view: str
    MESSAGE = '{task} cannot read view "{view}", which is not computed row by row'
    HINT = "Write CREATE MATERIALIZED VIEW in place of CREATE VIEW, or make one that selects from it."


class ColumnTwice(PlanError, code="PLN-0102"):
    """A relation gets two columns of the same name."""

    column: str
    relation: str
    MESSAGE = 'column "{column}" of "{relation}" is given more than once'
    HINT = "Give one of them another name with AS, or name all columns in a list after the relation's name."


class TooManyNames(PlanError, code="PLN-0103"):
    """The list after a relation's name has more names than the relation has columns.

    Cure: Write one name for each column.
    """

    relation: str
    names: int
    columns: int
    MESSAGE = '"{relation}" has {columns} columns, but {names} names are given'


class ColumnOfUnknownType(PlanError, code="PLN-0104"):
    """A view selects NULL without a type."""

    column: str
    MESSAGE = 'the type of column "{column}" is not known'
    HINT = "Write a cast to the type that it has, as in (…)::text."


class ReplacementBreaks(PlanError, code="PLN-0108"):
    """CREATE OR REPLACE gives a view, a stream or a table a form with which objects that read it, at any depth, no longer work.

    Cure: Keep what they need in the query, drop them first, or create an object of another name. WITH (CONFIRM = true) fills a target
    anew whose types narrow.
    """

    view: str
    broken: tuple[tuple[str, str, str], ...]  # kind, name and reason
    kind: str = "view"
    narrows: bool = False  # whether WITH (CONFIRM = true) would let some of them work
    MESSAGE = 'cannot replace {kind} "{view}": {count} that read it would no longer work'

    def hint(self) -> str:
        confirm = " WITH (CONFIRM = true) fills a target anew whose types narrow." if self.narrows else ""
        return f"Keep what they need in the query, drop them first, or create a {self.kind} of another name.{confirm}"

    @property
    def count(self) -> str:
        return "1 object" if len(self.broken) == 1 else f"{len(self.broken)} objects"

    def detail(self) -> str:
        return "; ".join(f'{kind} "{name}": {reason}' for kind, name, reason in self.broken) + "."


class NameShadowed(PlanError, code="PLN-0106"):
    """A new name means something else in the statement of an object that uses the renamed one."""

    kind: str
    name: str
    new_name: str
    user_kind: str
    user: str
    MESSAGE = (
        'cannot rename {kind} "{name}" to "{new_name}": in {user_kind} "{user}" that name would mean something else'
    )
    DETAIL = "An alias, a column or a WITH of its query has that name already, where the new name would be written."
    HINT = "Choose another name, or first replace {user_kind} {user} by one that gives the relation an alias."


class ViewNoLongerValid(PlanError, code="PLN-0107"):
    """A source that a view reads follows a schema change, and the view's query is not valid for the new columns."""

    view: str
    reason: str
    advice: str = ""
    MESSAGE = 'view "{view}" does not fit the changed columns of its relations: {reason}'
    DETAIL = (
        "The schema of a source that the view reads has changed. Objects that do not read the view are not affected."
    )
    HINT = (
        "Write CREATE OR REPLACE VIEW {view} with a query that returns the same columns, for example SELECT * EXCEPT "
        "(column) for a column that a new field adds; tasks that read it then continue where they stopped."
    )

    def hint(self) -> str | None:
        if self.advice:
            return f"Write CREATE OR REPLACE VIEW {self.view}; tasks that read it then continue where they stopped. {self.advice}"
        return super().hint()


class ColumnCollision(PlanError, code="PLN-0201"):
    """Two parts of a source, such as key, value and metadata, give a column of the same name."""

    column: str
    first: str
    second: str
    source: str
    MESSAGE = 'column "{column}" of source "{source}" comes from two places: {first} and {second}'
    HINT = "Give the metadata column another name with AS, or name the columns in a list."

    def hint(self) -> str | None:
        if INLINE_ERRORS in (self.first, self.second):
            return "Write VALUE DECODING ERRORS = INLINE AS <name> to give the column of errors another name."
        if self.first.startswith("key") or self.second.startswith("key"):
            return (
                "Write INCLUDE KEY AS <name> to keep the key in one column of its own, or name the columns in a list."
            )
        return super().hint()


class KeyFormatMissing(PlanError, code="PLN-0202"):
    """A clause needs the columns of the record's key, and the statement gives only the format of the value."""

    source: str
    asked_by: str
    MESSAGE = '{asked_by} of source "{source}" needs to know the format of the key'
    HINT = "Write KEY FORMAT … VALUE FORMAT … instead of FORMAT …"


class KeyNotAllowed(PlanError, code="PLN-0203"):
    """INCLUDE KEY is written for change events of Debezium, which repeat the key in their values."""

    source: str
    MESSAGE = 'INCLUDE KEY is not allowed for source "{source}" under ENVELOPE DEBEZIUM'
    HINT = "The values of Debezium hold the columns of the key already: leave INCLUDE KEY out."


class UpsertKeyUnknown(PlanError, code="PLN-0204"):
    """KEY (…) of a source names a column that the record's value does not have."""

    column: str
    source: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'key column "{column}" is not a column of the values of source "{source}"'


class NoChangeEvents(PlanError, code="PLN-0206"):
    """ENVELOPE DEBEZIUM is written for a topic whose values have another schema than change events."""

    source: str
    missing: tuple[str, ...]
    reason: str = ""
    MESSAGE = 'the values of source "{source}" are not change events of Debezium: {problem}'
    HINT = "A change event is a record with before, after and op. For values that are the rows write ENVELOPE UPSERT."

    @property
    def problem(self) -> str:
        names = " and ".join(f'"{name}"' for name in self.missing)
        verb = f"field {names} is" if len(self.missing) == 1 else f"fields {names} are"
        return self.reason or f"{verb} missing"


class InvalidDebeziumKey(PlanError, code="PLN-0207"):
    """The fields of the record's key are missing in the rows of the change events, or have other types there.

    Cure: Correct the key of the connector, or write ENVELOPE NONE.
    """

    source: str
    reason: str
    MESSAGE = 'the key of source "{source}" is not a key of its rows: {reason}'
    DETAIL = "Under ENVELOPE DEBEZIUM every field of the record's key is a field of the row, of the same type."


class InlineErrorsWithoutKey(PlanError, code="PLN-0208"):
    """A source keeps undecodable values as rows, and its key is a part of the value, which such rows do not have."""

    source: str
    MESSAGE = 'source "{source}" cannot have VALUE DECODING ERRORS = INLINE and a key in its values'
    DETAIL = "A value that cannot be decoded would be a row without a key."
    HINT = "Leave KEY (…) out, so that the record's own key is the key, or leave such records to ON ERROR."


class CsvWithoutColumns(PlanError, code="PLN-0211"):
    """The records of a topic in CSV have no schema, and the statement does not name columns."""

    MESSAGE = "FORMAT CSV of a topic needs to know its columns"
    HINT = "Write CSV WITH n COLUMNS, or CSV WITH HEADER (name, …)."


class FormatColumnTwice(PlanError, code="PLN-0212"):
    """The list of columns of a format has the same name twice."""

    format: str
    column: str
    MESSAGE = 'FORMAT {format} has two columns "{column}"'
    HINT = "Give each of them a name of its own."


class DelimiterNotOneCharacter(PlanError, code="PLN-0213"):
    """The delimiter of FORMAT CSV is not a single character, or is a character with a meaning of its own."""

    delimiter: str
    MESSAGE = "cannot delimit columns by {delimiter!r}"
    HINT = "A delimiter is one character, and neither a double quote nor the end of a line."


class PatternWithoutGroups(PlanError, code="PLN-0215"):
    """The pattern of FORMAT REGEX has no group, so there is nothing that could become a column."""

    MESSAGE = "the pattern of FORMAT REGEX has no group"
    HINT = "Put what shall be a column in parentheses, with a name if you like: (?<name>…)."


class ColumnNameTaken(PlanError, code="PLN-0216"):
    """A source followed a schema with a new field, and the source already has a column of that name from another part
    of the record."""

    source: str
    column: str
    field: str
    other: str
    cure: str
    MESSAGE = 'cannot select * from source "{source}": {field} has the name of column "{column}", which holds {other}'
    DETAIL = "The field came with a schema change that the source followed. Queries that name their columns are not affected."
    HINT = (
        "Name the columns, or leave it out with * EXCEPT ({column}); a sink reads a view that does. To have the "
        "field, create the source again with {cure}."
    )


class ColumnInUse(PlanError, code="PLN-0411"):
    """A column of a source gets another name while queries or sinks use it."""

    column: str
    source: str
    users: tuple[str, ...]
    MESSAGE = 'column "{column}" of source "{source}" is used'
    DETAIL = "It is used by {users:list}."
    HINT = "Drop these first, or replace their queries by ones that do not use the column. A view can give it another name: SELECT {column} AS <name>."


class SchemaCannotChange(PlanError, code="PLN-0409"):
    """ON SCHEMA CHANGE is written for a source whose schema cannot change."""

    source: str
    policy: str
    format: str
    inline: bool  # whether the schema is written in the statement, so that PIN is what happens
    MESSAGE = 'ON SCHEMA CHANGE = {policy} of source "{source}" would have no effect'
    DETAIL = "FORMAT {format} has no schema that could change."
    HINT = "Leave the option out. What does not fit the format is left to ON ERROR."

    def detail(self) -> str | None:
        if self.inline:
            return f"The schema of its values stands in the statement (FORMAT {self.format}) and cannot change."
        return super().detail()

    def hint(self) -> str | None:
        if self.inline:
            return "Leave the option out, or write USING CONFLUENT SCHEMA REGISTRY to follow the schemas of a registry."
        return super().hint()


class ObjectDiffers(PlanError, code="PLN-0501"):
    """A script for apply defines an object that exists with another definition, and no statement can change one into
    the other."""

    kind: str
    name: str
    parts: tuple[str, ...] = ()
    MESSAGE = '{kind} "{name}" already exists with another definition'
    DETAIL = "They differ in {parts:list}."
    HINT = (
        "A {kind} cannot be altered in place. Run `DROP {kind:upper} {name};` (with CASCADE, if others use it) with "
        "`headgate sql`, then apply the script again; or write the statement as it was."
    )


class NotDesiredState(PlanError, code="PLN-0502"):
    """A script for apply contains a statement that does something once instead of describing an object."""

    statement: str
    MESSAGE = "{statement} is not allowed in a script for apply"
    HINT = "Run it with `headgate sql`. A script to apply has CREATE, COMMENT ON, ALTER … PAUSE or RESUME, and SET."


class ViewNotStable(PlanError, code="PLN-0801"):
    """The query of a materialized view has a function whose result differs each time it is computed."""

    view: str
    functions: tuple[str, ...]
    MESSAGE = 'materialized view "{view}" depends on {functions:list}'
    DETAIL = "Its rows would differ each time they are computed, so that nothing could be kept equal to the query."
    HINT = (
        "Use a time or an id of the records instead. A plain VIEW may have such functions, and a condition may have now() and "
        "current_date."
    )


class ViewNotDetermined(PlanError, code="PLN-0802"):
    """Two runs of the query over the same rows may give different results, because of the order in which rows are read."""

    view: str
    why: str
    instead: str = ""
    MESSAGE = 'the query of materialized view "{view}" may give different results for the same rows'
    DETAIL = "{why}"
    HINT = "Write a query whose result does not depend on the order of rows."

    def hint(self) -> str | None:
        return self.instead or super().hint()


class OldRowsNeeded(PlanError, code="PLN-0803"):
    """A materialized view needs rows of a source that it has read before, and a topic does not keep them."""

    view: str
    source: str
    source_id: int
    why: str
    MESSAGE = 'materialized view "{view}" needs the rows of source "{source}" that were read before'
    DETAIL = "{why}"
    HINT = (
        "Keep them first: CREATE MATERIALIZED VIEW {source}_rows AS SELECT * FROM {source}. Then read {source}_rows "
        "instead of {source}."
    )


class AssertedColumnUnknown(PlanError, code="PLN-0804"):
    """ASSERT NOT NULL names a column that the materialized view does not have."""

    view: str
    column: str
    MESSAGE = 'ASSERT NOT NULL names column "{column}", which materialized view "{view}" does not have'
    HINT = "Name a column of the query's result."


class ColumnNameReserved(PlanError, code="PLN-0805"):
    """A column of a materialized view has a name that its storage needs."""

    view: str
    column: str
    prefix: str
    MESSAGE = 'column "{column}" of materialized view "{view}" has a reserved name'
    DETAIL = "Names that begin with {prefix} are those of columns that Headgate stores beside the rows."
    HINT = "Give it another name with AS."


class ClockOutsideCondition(PlanError, code="PLN-0806"):
    """A materialized view uses the time for more than to choose rows."""

    view: str
    functions: tuple[str, ...]
    MESSAGE = 'materialized view "{view}" uses {functions:and} outside a condition'
    DETAIL = "Its values would change all the time, and with them every row that has them."
    HINT = "Use the time in WHERE, HAVING or ON only. A SELECT or a plain VIEW over the materialized view may compute such values."


class ViewCannotSkip(PlanError, code="PLN-0807"):
    """A materialized view is to leave out, or set aside, rows that cannot be computed. It always equals its query, and the query
    has no result while such a row is there."""

    view: str
    policy: str
    MESSAGE = 'materialized view "{view}" cannot have ON ERROR = {policy}'
    DETAIL = (
        "It always equals its query, which has no result while a value cannot be computed. The view halts then and keeps the "
        "rows of its last batch."
    )
    HINT = (
        "Write ON ERROR = {policy} for the source, whose records that cannot be decoded are then left out. For values that "
        "cannot be computed write try_divide, try_add or TRY_CAST, which give NULL, or leave their rows out with WHERE."
    )


class ChangesNotKept(PlanError, code="PLN-0808"):
    """SUBSCRIBE or EMIT CHANGES is to follow something else than a materialized view, or a query that is not computed row by row over
    one. Only a materialized view knows which rows of its result came and went."""

    what: str
    MESSAGE = "the changes of {what} are not kept"
    HINT = "Write CREATE MATERIALIZED VIEW v AS SELECT …, and then SUBSCRIBE v or SELECT … FROM v EMIT CHANGES."

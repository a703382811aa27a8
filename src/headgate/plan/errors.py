"""What is wrong with a statement that is well formed: PLN-01xx any statement, PLN-02xx sources, PLN-03xx sinks, PLN-05xx
scripts for apply."""

from __future__ import annotations

from headgate.errors import HeadgateError, joined

INLINE_ERRORS = "VALUE DECODING ERRORS"  # where the column of inline errors comes from


class PlanError(HeadgateError):
    """An error of a statement that is well formed: PLN-…."""


class NotSupportedYet(PlanError, code="PLN-0101"):
    """A statement is valid and asks for something that this version cannot do.

    Cure: Use another statement, or wait for a version that supports it.
    """

    what: str
    MESSAGE = "{what} is not supported yet"


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
    """CREATE OR REPLACE gives a view, a stream or a table a form with which objects that read it, at any depth, no longer work."""

    view: str
    broken: tuple[tuple[str, str, str], ...]  # kind, name and reason
    kind: str = "view"
    MESSAGE = 'cannot replace {kind} "{view}": {count} that read it would no longer work'
    HINT = "Keep what they need in the query, drop them first, or create a {kind} of another name."

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


class SinkKeyMissing(PlanError, code="PLN-0301"):
    """A sink writes the newest row per key and has no KEY clause."""

    sink: str
    MESSAGE = 'ENVELOPE UPSERT of sink "{sink}" needs a KEY'
    HINT = "Write KEY (column, …) before FORMAT."


class SinkKeyNotUnique(PlanError, code="PLN-0302"):
    """A sink writes the newest row per key, and several rows of its relation may have the same key."""

    sink: str
    key: tuple[str, ...]
    known: tuple[str, ...]
    deletes: bool = False  # whether rows of the relation can be deleted
    MESSAGE = 'key ({key:list}) of sink "{sink}" is not known to be unique'
    DETAIL = "The relation's key is ({known:list})."
    HINT = "Use the relation's key, or write KEY (…) NOT ENFORCED if you know that it is unique."

    def detail(self) -> str | None:
        return super().detail() or "The relation has no key."

    def hint(self) -> str | None:
        if self.deletes:
            return (
                "Use the key of the source: a deletion carries this key alone, so that KEY (…) NOT ENFORCED does not help. Or "
                "write ENVELOPE NONE: every change is then written, and nothing is deleted."
            )
        return super().hint()


class SinkFormatNeedsOneColumn(PlanError, code="PLN-0303"):
    """A format that holds a single value is used for several columns."""

    sink: str
    format: str
    side: str
    found: int
    MESSAGE = '{format} writes one column, but the {side} of sink "{sink}" has {found}'
    HINT = "Select the one column in a view, or use a format that has fields."


class KeyWithoutFormat(PlanError, code="PLN-0304"):
    """A sink has a format for keys and no KEY clause.

    Cure: Write KEY (column, …) before KEY FORMAT, or leave KEY FORMAT out.
    """

    sink: str
    MESSAGE = 'KEY FORMAT of sink "{sink}" needs a KEY'


class SideWithoutSchema(PlanError, code="PLN-0305"):
    """A statement asks for the schema of a key or value whose format has none.

    Cure: Ask for the other side, or give the sink a format with a schema registry.
    """

    sink: str
    side: str
    MESSAGE = 'the {side} of sink "{sink}" has no schema'
    DETAIL = "Only formats that use a schema registry have one."


class SinkFeedsItself(PlanError, code="PLN-0306"):
    """A sink writes to a topic from which its own records reach it again."""

    sink: str
    source: str
    topic: str
    over: tuple[str, ...] = ()  # other sinks that bring the records back to it
    MESSAGE = 'sink "{sink}" cannot write to topic "{topic}", which source "{source}" reads for {reader}'
    DETAIL = "Every record that the sink writes would be read and written again, without end."
    HINT = "Write to a topic of another name."

    @property
    def reader(self) -> str:
        sinks = " and ".join(f'"{name}"' for name in self.over)
        return f"sink {sinks}, whose records it reads again" if self.over else "it"


class SinkOverChanging(PlanError, code="PLN-0307"):
    """A sink reads a relation whose rows come and go without a key.

    Cure: Keep the key of the relation below in the query: the hint names the columns.
    """

    sink: str
    kind: str
    relation: str
    why: str
    keep: tuple[str, ...] = ()  # columns with which the relation would be keyed
    cure: str = ""
    MESSAGE = 'sink "{sink}" cannot write {kind} "{relation}": its rows change, and no key tells them apart'
    DETAIL = "{why}"

    def hint(self) -> str | None:
        kept = joined([f'"{name}"' for name in self.keep], "and")
        if self.cure:
            return self.cure
        return f"Keep {kept} in the query." if kept else "Read a relation that has a key and keep its key."


class SinkNeedsKey(PlanError, code="PLN-0308"):
    """A sink reads a relation whose rows are replaced and deleted by key, and does not say how to write that."""

    sink: str
    kind: str
    relation: str
    key: tuple[str, ...]
    MESSAGE = 'sink "{sink}" over {kind} "{relation}", whose rows change by key, needs KEY or ENVELOPE NONE'
    DETAIL = "Its key is ({key:list})."
    HINT = (
        "Write KEY ({key:list}) to write the newest row of each key and deletes, or ENVELOPE NONE to write every change as a "
        "record of its own and no deletes."
    )


class ClockInFilter(PlanError, code="PLN-0309"):
    """A sink reads a relation whose rows come and go with the time."""

    sink: str
    kind: str
    relation: str
    functions: tuple[str, ...]
    MESSAGE = 'sink "{sink}" cannot write {kind} "{relation}": which rows it has depends on {functions:and}'
    DETAIL = "A sink computes a row once, when the row comes. Nothing tells it when a row passes a condition because time has passed."
    HINT = "Make it a MATERIALIZED VIEW, whose time is that of its last batch, or leave the time out of the condition."


class SinkNotDeterministic(PlanError, code="PLN-0310"):
    """A sink writes the newest row per key, and its rows differ each time they are computed."""

    sink: str
    kind: str
    relation: str
    functions: tuple[str, ...]
    columns: tuple[str, ...] = ()
    MESSAGE = 'sink "{sink}" with a key cannot write {kind} "{relation}", which depends on {functions:and}'
    DETAIL = "A batch that is written again after a failure would have other values than what was written of it before."
    HINT = "Leave the function out, or write every row without a key: ENVELOPE NONE."


class SinkKeyNotOfSource(PlanError, code="PLN-0311"):
    """A sink writes the newest row per key over a source that is keyed by other columns."""

    sink: str
    key: tuple[str, ...]
    source: str
    source_key: tuple[str, ...]
    MESSAGE = 'sink "{sink}" cannot delete by key ({key:list}), as source "{source}" is keyed by ({source_key:list})'
    DETAIL = (
        "A sink keeps no rows. When a row of the source changes or is deleted, the sink knows the source's key alone, and "
        "cannot find the records that it wrote under other keys."
    )
    HINT = (
        "Let the sink read a MATERIALIZED VIEW, which keeps its rows, or write ENVELOPE NONE: nothing is deleted then."
    )


class ExactlyOnceInRealTime(PlanError, code="PLN-0380"):
    """A sink asks for exactly-once delivery and for real time."""

    sink: str
    MESSAGE = 'sink "{sink}" cannot deliver exactly once in real time'
    DETAIL = (
        "Exactly once means that readers see a batch whole. In real time records are written one by one as they come."
    )
    HINT = (
        "Leave out DELIVERY = 'exactly once' or LATENCY = 'real time'. A topic with a key ends up the same either way."
    )


class RealTimeImpossible(PlanError, code="PLN-0391"):
    """A sink asks for real time, and a part of it can run in micro-batches only."""

    sink: str
    reason: str
    MESSAGE = 'sink "{sink}" cannot run in real time'
    DETAIL = "The reason: {reason}."
    HINT = "Leave LATENCY out, or write LATENCY = 'micro-batch'."


class ColumnInUse(PlanError, code="PLN-0411"):
    """A column of a source gets another name while queries or sinks use it."""

    column: str
    source: str
    users: tuple[str, ...]
    MESSAGE = 'column "{column}" of source "{source}" is used'
    DETAIL = "It is used by {users:list}."
    HINT = "Drop these first, or replace their queries by ones that do not use the column. A view can give it another name: SELECT {column} AS <name>."


class SinkKeyChanges(PlanError, code="PLN-0410"):
    """A change of the source would give the keys of a sink other bytes."""

    sink: str
    reasons: tuple[str, ...]
    MESSAGE = 'the key of sink "{sink}" would have other bytes in its topic'
    HINT = "ALTER SINK {sink} SET FROM the relation that it reads accepts it: all keys are written anew, and the old ones deleted."

    def detail(self) -> str:
        return f"{'; '.join(self.reasons)}. The topic would hold two records for one key."


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

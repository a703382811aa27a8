"""What is wrong with a materialization that is well formed: PLN-06xx, among them PLN-065x for indexes and PLN-067x for ON DEMAND."""

from __future__ import annotations

from headgate.errors import joined
from headgate.plan.errors import OverChanging, PlanError


class UnknownPointer(PlanError, code="PLN-0601"):
    """A field of a materialization points at something that its relation does not have.

    Cure: Correct the pointer: it begins with a column and leads through fields of records.
    """

    materialization: str
    field: str
    pointer: str
    reason: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'field "{field}" of materialization "{materialization}" points at {pointer}, which does not exist'
    DETAIL = "{reason}"


class MalformedPointer(PlanError, code="PLN-0602"):
    """The text after FROM is not a JSON pointer."""

    pointer: str
    MESSAGE = "{pointer} is not a JSON pointer"
    HINT = "Begin with / and the name of a column, as in '/address/city'. Write ~1 for / and ~0 for ~ in a name."


class ImpossibleCast(PlanError, code="PLN-0603"):
    """A field of a materialization has a type that the values of its relation can never have.

    Cure: Give the field a type that its values have, or cast them in a view.
    """

    materialization: str
    field: str
    source: str
    type: str
    reason: str
    cure: str = ""
    MESSAGE = 'field "{field}" of materialization "{materialization}" cannot be {type}: its values are {source}'
    DETAIL = "{reason}"

    def hint(self) -> str | None:
        return self.cure or None


class FieldTwice(PlanError, code="PLN-0604"):
    """A list of fields has two of the same name.

    Cure: Give one of them another name, and say with FROM where its value is.
    """

    materialization: str
    field: str
    MESSAGE = 'field "{field}" of materialization "{materialization}" is given more than once'


class MaterializationOverChanging(OverChanging, code="PLN-0605"):
    """A materialization reads a relation whose rows come and go without a key.

    Cure: Keep the key of the relation below in the query: the hint names the columns.
    """

    MESSAGE = 'materialization "{name}" cannot write {kind} "{relation}": its rows change, and no key tells them apart'


class KeyNotMaterialized(PlanError, code="PLN-0606"):
    """The fields of a materialization lack a column of its relation's key, by which rows are replaced and deleted."""

    materialization: str
    missing: tuple[str, ...]
    relation: str
    MESSAGE = 'materialization "{materialization}" lacks key {missing:quoted and} of "{relation}"'
    DETAIL = "Rows of the relation are replaced and deleted by its key, so the target must hold the whole key."
    HINT = "Add {first} to FIELDS."

    @property
    def first(self) -> str:
        return joined([f'"{name}"' for name in self.missing], "and")


class MaterializationKeyNotOfSource(PlanError, code="PLN-0607"):
    """A materialization reads a view that is keyed by other columns than its source."""

    materialization: str
    key: tuple[str, ...]
    source: str
    source_key: tuple[str, ...]
    MESSAGE = (
        'materialization "{materialization}" cannot delete by key ({key:list}), as source "{source}" is keyed by '
        "({source_key:list})"
    )
    DETAIL = (
        "A chain of views keeps no rows. When a row of the source changes or is deleted, the source's key alone is known, and "
        "rows under other keys cannot be found."
    )
    HINT = "Let the materialization read a MATERIALIZED VIEW, which keeps its rows."


class TargetNameMissing(PlanError, code="PLN-0608"):
    """A materialization does not say which table or index it writes."""

    materialization: str
    option: str
    MESSAGE = 'materialization "{materialization}" has no {option}'
    HINT = "Write {option} and its name in parentheses after the connection."


class MalformedTableName(PlanError, code="PLN-0609"):
    """The option TABLE is not the name of a table."""

    text: str
    reason: str
    MESSAGE = 'TABLE "{text}" is not the name of a table: {reason}'
    HINT = "Write 'table' or 'schema.table'. Put double quotes around a part that has a dot in it."


class TargetTaken(PlanError, code="PLN-0610"):
    """Two materializations would write one table or index."""

    materialization: str
    target: str
    other: str
    MESSAGE = 'materialization "{materialization}" cannot write {target}: materialization "{other}" writes it'
    HINT = "Choose another name for the target, or drop the other materialization."


class KeyTypeRefused(PlanError, code="PLN-0611"):
    """A key column of a materialization has a type by which a target cannot tell rows apart."""

    materialization: str
    field: str
    type: str
    MESSAGE = 'field "{field}" of materialization "{materialization}" is a key and cannot be {type}'
    HINT = "Cast the key to text in a view."


class NativeTypeRefused(PlanError, code="PLN-0612"):
    """A type after AS cannot be given to a column.

    Cure: Write the name of a type that takes the field's values without loss.
    """

    materialization: str
    field: str
    native: str
    reason: str
    cure: str = ""
    MESSAGE = 'field "{field}" of materialization "{materialization}" cannot be AS \'{native}\': {reason}'

    def hint(self) -> str | None:
        return self.cure or None


class MaterializationCannotQuarantine(PlanError, code="PLN-0613"):
    """A materialization sets rows aside by the position of their records, and its rows have none."""

    materialization: str
    reason: str
    MESSAGE = 'materialization "{materialization}" cannot have ON ERROR = QUARANTINE: {reason}'
    DETAIL = "The quarantine holds records by their position, and REPLAY QUARANTINE sends a whole record through again."
    HINT = "Write ON ERROR = SKIP or HALT."


class ClockInMaterialization(PlanError, code="PLN-0614"):
    """A materialization reads a relation whose rows come and go with the time."""

    materialization: str
    kind: str
    relation: str
    functions: tuple[str, ...]
    MESSAGE = 'materialization "{materialization}" cannot write {kind} "{relation}": which rows it has depends on {functions:and}'
    DETAIL = "A row is computed once, when it comes. Nothing tells when it passes a condition because time has passed."
    HINT = "Make it a MATERIALIZED VIEW, whose time is that of its last batch, or leave the time out of the condition."


class NoFields(PlanError, code="PLN-0615"):
    """A materialization has no field left.

    Cure: Leave less out with EXCLUDE, or list the fields.
    """

    materialization: str
    MESSAGE = 'materialization "{materialization}" has no field'


class UnknownExcluded(PlanError, code="PLN-0616"):
    """EXCLUDE names a field that is not there.

    Cure: Name a column, or give the pointer of a field of a record.
    """

    materialization: str
    excluded: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'materialization "{materialization}" excludes {excluded}, which does not exist'


class RequiredFieldUnknown(PlanError, code="PLN-0617"):
    """A field that is REQUIRED lies in a JSON document, whose schema nobody knows."""

    materialization: str
    field: str
    pointer: str
    MESSAGE = 'field "{field}" of materialization "{materialization}" is REQUIRED, but no schema says whether {pointer} exists'
    HINT = "Leave REQUIRED out: a row without the field is an invalid value unless the field is NULL."


class NoWayInPlace(PlanError, code="PLN-0618"):
    """A statement gives a field of a materialization a type that the values in the target may not fit."""

    materialization: str
    changes: tuple[str, ...]
    MESSAGE = 'the change of materialization "{materialization}" narrows {changes:and}'
    DETAIL = "The rows that are in the target would have to be read and written again."
    HINT = "Write WITH (CONFIRM = true) to fill the target anew from its relation."


class ChildTablesNeedKey(PlanError, code="PLN-0619"):
    """NESTED = TABLES over a relation without a key, by which rows of child tables would point to their parent."""

    materialization: str
    field: str
    kind: str
    relation: str
    MESSAGE = 'materialization "{materialization}" cannot have a table for "{field}": {kind} "{relation}" has no key'
    DETAIL = "A row of a child table points to its parent by the key of the relation."
    HINT = "Read a relation with a key, or write NESTED = FLATTEN or JSON."


class ChildTableTwice(PlanError, code="PLN-0620"):
    """Two records of a materialization with NESTED = TABLES would become one table."""

    table: str
    first: str
    second: str
    MESSAGE = '{first} and {second} would both become table "{table}"'
    HINT = "Rename one of them in a view, or list FIELDS with other names."


class ChildTablesOfChanges(PlanError, code="PLN-0621"):
    """NESTED = TABLES together with DELTA UPDATES. A table of changes has several rows for a key, and a row of a child table could
    not say to which of them it belongs."""

    materialization: str
    field: str
    MESSAGE = 'materialization "{materialization}" cannot have a table for "{field}" with DELTA UPDATES'
    DETAIL = (
        "A row of a child table points to its parent by the key, and a table of changes has several rows for a key."
    )
    HINT = "Write NESTED = FLATTEN or JSON, or leave DELTA UPDATES out."


class MalformedIndexName(PlanError, code="PLN-0651"):
    """The option INDEX is not a name that an index can have."""

    text: str
    reason: str
    MESSAGE = 'INDEX "{text}" is not the name of an index: {reason}'
    HINT = "Write small letters, digits, dots, hyphens and underscores, and begin with a letter."


class NestedNotForIndex(PlanError, code="PLN-0652"):
    """NESTED says how objects become columns of a table, and an index has objects."""

    materialization: str
    option: str
    MESSAGE = 'materialization "{materialization}" writes an index, which has no NESTED = {option}'
    HINT = "Leave NESTED out: an index keeps objects as they are. AS 'nested' makes each object of an array a document of its own."


class DeltaUpdatesNotForIndex(PlanError, code="PLN-0653"):
    """DELTA UPDATES keeps every change of a key as a row, and an index has one document for each key."""

    materialization: str
    MESSAGE = 'materialization "{materialization}" writes an index, which has no DELTA UPDATES'
    DETAIL = "The key of a row is the _id of its document, so that an index holds the newest row of each key."
    HINT = (
        "Leave DELTA UPDATES out, or read a source with ENVELOPE NONE over the same topic: each of its records is a document. A "
        "materialization INTO POSTGRES can have a row for every change."
    )


class OptionNotOnDemand(PlanError, code="PLN-0671"):
    """An option of a materialization says how its target is written, and a materialization ON DEMAND has none."""

    materialization: str
    option: str
    MESSAGE = 'materialization "{materialization}" is ON DEMAND and cannot have {option}'
    HINT = "Leave {option} out. ON ERROR = SKIP or HALT is the only option of such a materialization."


class NoTaskOnDemand(PlanError, code="PLN-0672"):
    """A statement is about the task of a materialization, and no task runs for one that is ON DEMAND."""

    materialization: str
    action: str
    MESSAGE = 'materialization "{materialization}" is ON DEMAND and has no task for {action}'
    HINT = "Its rows are computed when a client asks for them. DROP MATERIALIZATION ends its service."


class ServiceNameTaken(PlanError, code="PLN-0673"):
    """The gRPC services of two materializations would have the same name."""

    materialization: str
    service: str
    other: str
    MESSAGE = (
        'materialization "{materialization}" would be the gRPC service {service}, which materialization "{other}" is'
    )
    HINT = (
        "Choose another name. The service has the letters and digits of the materialization's name, without its schema."
    )


class FilterNotCondition(PlanError, code="PLN-0674"):
    """A filter is no condition over the fields of one row."""

    materialization: str
    reason: str
    MESSAGE = 'the filter on materialization "{materialization}" is not one condition over a row: {reason}'
    HINT = "Write one condition as after WHERE, without subqueries, such as price > 10 AND vip."


class UnknownRowField(PlanError, code="PLN-0675"):
    """A client asks for a field that a materialization does not have.

    Cure: Name fields of the materialization. DESCRIBE lists them; those inside an object come with the object.
    """

    materialization: str
    field: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'field "{field}" of materialization "{materialization}" does not exist'


class NoKeyOnDemand(PlanError, code="PLN-0676"):
    """A client looks a row up by its key, and the relation has no key."""

    materialization: str
    relation: str
    MESSAGE = 'materialization "{materialization}" has no key to look up: "{relation}" has none'
    HINT = "Use a filter."


class MalformedKey(PlanError, code="PLN-0677"):
    """The key that a client looks up does not have the form of the relation's key.

    Cure: Write the key as `object_id` has it: the text of one value, or a JSON array of several.
    """

    materialization: str
    reason: str
    key: tuple[tuple[str, str], ...]
    MESSAGE = 'the key does not fit the key of materialization "{materialization}": {reason}'

    def hint(self) -> str:
        parts = joined([f"{name} {type_}" for name, type_ in self.key], "and")
        if len(self.key) == 1:
            return f"Write the value of {parts} as text, or a JSON array of it."
        return f"Write a JSON array of {parts}."


class MalformedLimit(PlanError, code="PLN-0678"):
    """A client asks for a number of rows that is no number, or a negative one."""

    text: str
    MESSAGE = 'the limit "{text}" is not a number of rows'
    HINT = "Write a whole number, at least 0, or leave it out."


class NotOnDemand(PlanError, code="PLN-0679"):
    """A client asks for the rows of a materialization that writes a table or an index."""

    materialization: str
    MESSAGE = 'materialization "{materialization}" is not ON DEMAND'
    HINT = "Read its table or its index, or create another one with INTO ON DEMAND."

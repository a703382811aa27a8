"""What is wrong with streams and tables: PLN-07xx. Each rule about schemas has an error of its own, which names the side."""

from __future__ import annotations

from headgate.errors import joined
from headgate.resolve.errors import ResolveError


class StreamError(ResolveError):
    """An error of CREATE STREAM or CREATE TABLE. ``kind`` is the word for the object, ``side`` is key or value."""

    kind: str
    name: str


class StreamFormatMissing(StreamError, code="PLN-0701"):
    """A stream or table does not say in which format its keys or values are."""

    side: str
    others: str = "'protobuf', 'json_sr', 'json', 'kafka'"
    MESSAGE = '{kind} "{name}" has no {side} format'
    HINT = "Add {side}_format = 'avro' (or {others}), or format = … for both sides."


class StreamFormatTwice(StreamError, code="PLN-0702"):
    """The property format stands beside key_format or value_format."""

    property: str
    MESSAGE = 'format and {property} of {kind} "{name}" exclude each other'
    HINT = "Write format for both sides, or key_format and value_format."


class FormatWithoutSchemas(StreamError, code="PLN-0703"):
    """A schema id is given for a side whose format has no schemas in a registry."""

    side: str
    format: str
    MESSAGE = '{side}_schema_id of {kind} "{name}" needs a format with schemas, not {format}'
    HINT = "Write {side}_format = 'avro', 'protobuf' or 'json_sr', whichever the schema is."


class ColumnsBesideSchemaId(StreamError, code="PLN-0704"):
    """Columns are declared for a side whose columns come from the schema with the given id."""

    side: str
    columns: tuple[str, ...]
    MESSAGE = '{side} columns of {kind} "{name}" are declared beside {side}_schema_id: {columns:quoted list}'
    HINT = "Leave these columns out, because the schema has them, or leave {side}_schema_id out."


class NameNotInFormat(StreamError, code="PLN-0725"):
    """A column, or a field inside it, has a name that Avro does not allow. The schema would have another name, and the column
    would not be found in it."""

    column: str
    MESSAGE = 'column "{column}" of {kind} "{name}" has a name that a schema of Avro cannot have'
    HINT = "Names of Avro are letters, digits and _, and do not begin with a digit. Give it another name, in a query with AS."


class TypeNotInFormat(StreamError, code="PLN-0729"):
    """The schema that would be generated for a column is read as another type. Protobuf, for example, has no decimals."""

    side: str
    format: str
    column: str
    type: str
    becomes: str
    MESSAGE = '{format} has no type for column "{column}" of {kind} "{name}": {type} becomes {becomes}'
    HINT = "Let the column be {becomes} (in a query with CAST), or write {side}_format = 'avro'."


class MapInKey(StreamError, code="PLN-0738"):
    """A key column is a map or holds one. Keys are compared, and maps cannot be."""

    column: str
    type: str
    MESSAGE = 'key column "{column}" of {kind} "{name}" is {type}, and a key cannot hold a map'
    HINT = "Take other columns as the key, or a record in the place of the map."


class NoFieldInSchema(StreamError, code="PLN-0739"):
    """The schemas of a stream have no fields, so that it would have no columns."""

    MESSAGE = 'the schemas of {kind} "{name}" have no fields, of which its columns are made'
    HINT = "Give a schema with fields. Of a Protobuf file it is the first message, unless value_schema_full_name names another."


class InvalidSchemaId(StreamError, code="PLN-0705"):
    """A schema id is not one that a registry gives: these begin with 1."""

    property: str
    id: int
    MESSAGE = '{property} = {id} of {kind} "{name}" cannot be the id of a schema'
    HINT = "Ids of schemas are whole numbers from 1 to 2147483647."


class SchemaIdUnknown(StreamError, code="PLN-0706"):
    """The registry has no schema with the id that a stream or table gives."""

    property: str
    id: int
    MESSAGE = '{property} of {kind} "{name}": the registry has no schema with id {id}'
    HINT = "Look the id up in the registry. It must be the registry that the property registry names, or the connection registry."


class SchemaIdOfOtherFormat(StreamError, code="PLN-0707"):
    """The schema with the given id belongs to another format than the one of its side."""

    side: str
    id: int
    found: str
    wanted: str
    right: str
    MESSAGE = '{side}_schema_id of {kind} "{name}": schema {id} is {found}, not {wanted}'
    HINT = "Write {side}_format = '{right}', or give the id of a schema that is {wanted}."


class KeyRoleOfOtherKind(StreamError, code="PLN-0708"):
    """A column of a stream is a PRIMARY KEY, or one of a table is a KEY."""

    column: str
    role: str
    right: str
    MESSAGE = 'column "{column}" of {kind} "{name}" is a {role}'
    HINT = "Write {column} … {right}: rows of a stream may share a key, those of a table may not."


class TableWithoutKey(StreamError, code="PLN-0709"):
    """A table has no key, by which its rows replace each other."""

    MESSAGE = 'table "{name}" has no key'
    HINT = "Declare a column as PRIMARY KEY, or give key_format = 'avro' (or another one) with key_schema_id."


class StreamColumnsMissing(StreamError, code="PLN-0710"):
    """A format without schemas is used, and no columns are declared."""

    side: str
    format: str
    MESSAGE = 'the {side} columns of {kind} "{name}" are not known'
    DETAIL = "The format {format} has no schemas in a registry from which they could come."
    HINT = "Declare them in parentheses after the name."


class PropertyWithoutMeaning(StreamError, code="PLN-0711"):
    """A property has no effect beside the others."""

    property: str
    reason: str
    MESSAGE = '{property} of {kind} "{name}" has no meaning: {reason}'
    HINT = "Leave it out."


class StreamTopicMissing(StreamError, code="PLN-0712"):
    """The topic of a stream or table does not exist, and nothing says how it is to be created."""

    topic: str
    MESSAGE = 'topic "{topic}" of {kind} "{name}" does not exist'
    HINT = "Add partitions = 1 (or more) to create it, or name another topic with kafka_topic."


class SchemaNotRecord(StreamError, code="PLN-0713"):
    """The values of a stream or table are no records, and the statement does not say that they are single values."""

    type: str
    MESSAGE = 'the schema of the value of {kind} "{name}" is {type}, and no record'
    HINT = "Add wrap_single_value = false: the value is then the column ROWVALUE."


class OtherFullName(StreamError, code="PLN-0714"):
    """The full name beside a schema id is not the name that the schema has."""

    property: str
    given: str
    found: str
    MESSAGE = '{property} of {kind} "{name}" is "{given}", but the schema is called "{found}"'
    HINT = "Leave {property} out, or write '{found}'."


class NoSchemaToInfer(StreamError, code="PLN-0715"):
    """Neither columns nor a schema id are given, and the registry has no schema for the topic."""

    side: str
    subject: str
    MESSAGE = 'the {side} columns of {kind} "{name}" are not known'
    DETAIL = 'The registry has no subject "{subject}" from which they could come.'
    HINT = "Declare the columns, give {side}_schema_id, or register a schema for the subject."

    def hint(self) -> str | None:
        if self.side == "key":
            return "Declare the key column, give key_schema_id, or write key_format = 'none' for records without a key."
        return super().hint()


class StreamColumnTwice(StreamError, code="PLN-0716"):
    """The key and the value of a stream or table, or two declarations, have a column of one name."""

    column: str
    first: str
    second: str
    MESSAGE = 'column "{column}" of {kind} "{name}" comes from two places: {first} and {second}'
    HINT = "Use CREATE SOURCE with INCLUDE KEY AS, which can give the key another name, or a schema without the field."


class ColumnsNotInSchema(StreamError, code="PLN-0717"):
    """Columns are not a subset of the registered schema in the same order: they are missing there, moved, of another type, or
    written in another case."""

    side: str
    schema: str
    problems: tuple[str, ...]
    columns: tuple[str, ...]  # each with its type
    fields: tuple[str, ...]
    MESSAGE = 'the {side} columns of {kind} "{name}" do not fit {schema}: {problems:clauses}'
    HINT = "Select the columns with the names, the types and the order of the schema. A schema may have further fields."

    def detail(self) -> str:
        """Both schemas side by side."""
        width = max(len(text) for text in ("columns", *self.columns))
        rows = [("columns", "schema")]
        count = max(len(self.columns), len(self.fields))
        rows += [(_at(self.columns, at), _at(self.fields, at)) for at in range(count)]
        return "\n".join(f"{left:{width}} | {right}".rstrip() for left, right in rows)


def _at(texts: tuple[str, ...], at: int) -> str:
    return texts[at] if at < len(texts) else ""


class FormatOfOneColumn(StreamError, code="PLN-0718"):
    """The format kafka holds one number or text, and the side has another number of columns."""

    side: str
    format: str
    count: int
    MESSAGE = 'the {side} format {format} of {kind} "{name}" holds one column, not {count}'
    HINT = "Write {side}_format = 'json' or a format with schemas."


class FormatCannotHold(StreamError, code="PLN-0719"):
    """A column has a type that the format of its side cannot hold.

    Cure: Give the side a format with schemas, or json.
    """

    side: str
    format: str
    column: str
    type: str
    only: tuple[str, ...]
    MESSAGE = 'the {side} format {format} of {kind} "{name}" cannot hold column "{column}" of type {type}'

    def hint(self) -> str | None:
        return f"It can hold {joined(self.only, 'and')}. Write {self.side}_format = 'json' or a format with schemas."


class TopicStillUsed(StreamError, code="PLN-0720"):
    """DELETE TOPIC of a topic that other objects read or write."""

    topic: str
    users: tuple[str, ...]
    MESSAGE = 'topic "{topic}" of {kind} "{name}" cannot be deleted: others use it'
    DETAIL = "{users:lines}"
    HINT = "Drop these first, or leave DELETE TOPIC out."


class HeaderType(StreamError, code="PLN-0721"):
    """A column for headers has another type than headers have."""

    column: str
    type: str
    wanted: str
    MESSAGE = 'column "{column}" of {kind} "{name}" is {type}, but headers are {wanted}'
    HINT = "Write {column} {wanted}."


class StreamChangesColumns(StreamError, code="PLN-0722"):
    """CREATE OR REPLACE STREAM or TABLE would take columns away or change them."""

    columns: tuple[str, ...]
    MESSAGE = 'cannot replace {kind} "{name}": columns would be taken away or changed'
    DETAIL = "{columns:lines}"
    HINT = "Keep the columns and their types. Drop the {kind} first to give it others."


class StreamChangesTopic(StreamError, code="PLN-0728"):
    """CREATE OR REPLACE STREAM or TABLE names another topic than the one that the stream or table has."""

    topic: str
    new: str
    MESSAGE = 'cannot replace {kind} "{name}": its topic would be "{new}" instead of "{topic}"'
    HINT = "Write kafka_topic = '{topic}'. Drop the {kind} first to give it another topic."


class StreamOfOtherGrowth(StreamError, code="PLN-0724"):
    """The rows of a query come in another way than those of the object that it shall fill.

    Cure: Write CREATE STREAM for rows that are only added, and CREATE TABLE for rows with a key.
    """

    growth: str
    MESSAGE = 'the query of {kind} "{name}" gives rows that are {found}'

    @property
    def found(self) -> str:
        return {
            "append": "only added, and have no key",
            "keyed": "replaced and deleted by their key",
        }.get(self.growth, "changed, and no key is known")

    def hint(self) -> str | None:
        match self.growth:
            case "append":
                return "Write CREATE STREAM. A table needs a query over a table, or one with GROUP BY."
            case "keyed":
                return "Write CREATE TABLE. A stream only grows, and would not show what is replaced or deleted."
            case _:
                return "Keep the key columns of what the query reads."


class StreamWithoutKey(StreamError, code="PLN-0726"):
    """A key schema is given for a stream whose query has no key columns."""

    MESSAGE = 'key_schema_id of {kind} "{name}" has no column to be written'
    HINT = "Select all key columns of the source, or add PARTITION BY and the columns of the key."


class PartitionByNoColumn(StreamError, code="PLN-0727"):
    """PARTITION BY of CREATE STREAM … AS cannot be computed from the columns of the query, or has two expressions without a name."""

    expression: str
    columns: tuple[str, ...]
    MESSAGE = 'PARTITION BY of {kind} "{name}" is no column of the query: {expression}'
    DETAIL = "The columns are {columns:quoted list}."
    HINT = "Select the expression under a name of its own, and write PARTITION BY with that name."


class NotInsertable(ResolveError, code="PLN-0730"):
    """INSERT names a relation that is neither a stream nor a table."""

    kind: str
    name: str
    MESSAGE = 'cannot insert into {kind} "{name}"'
    HINT = "Rows can be inserted into streams and tables. CREATE STREAM makes a topic one."


class WrongNumberOfValues(StreamError, code="PLN-0731"):
    """A row of INSERT has more or fewer values than there are columns."""

    values: int
    columns: tuple[str, ...]
    MESSAGE = '{values:value|values} for {count:column|columns} of {kind} "{name}"'
    DETAIL = "The columns are {columns:quoted list}."
    HINT = "Write one value for each column, or name the columns after the {kind}."

    @property
    def count(self) -> int:
        return len(self.columns)


class UnknownInsertColumn(StreamError, code="PLN-0732"):
    """INSERT names a column that the stream or table does not have, or that cannot be written.

    Cure: Name columns of the key and the value; those that are not named are null.
    """

    column: str
    reason: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'column "{column}" of {kind} "{name}" cannot be inserted: {reason}'

    def hint(self) -> str | None:
        return super().hint() or "Leave it out: what is not named is null."


class NoLiteral(StreamError, code="PLN-0733"):
    """A value of INSERT … VALUES is not a literal."""

    column: str
    MESSAGE = 'the value for column "{column}" of {kind} "{name}" is not a literal'
    DETAIL = "Literals are numbers, texts, true, false, NULL, DATE '…' and the like, ARRAY[…], MAP('k' := …) and STRUCT(f := …)."
    HINT = "Write INSERT INTO … SELECT for values that must be computed."


class InsertKeyMissing(StreamError, code="PLN-0734"):
    """A row for a table has no key."""

    column: str
    MESSAGE = 'key column "{column}" of table "{name}" is null'
    HINT = "Every row of a table needs its key."


class InsertTypeDiffers(StreamError, code="PLN-0736"):
    """A column of INSERT … SELECT has another type than the column that it goes into."""

    column: str
    found: str
    wanted: str
    MESSAGE = 'column "{column}" of {kind} "{name}" is {wanted}, but the query gives {found}'
    HINT = "Write CAST(… AS {wanted}) in the query."


class InsertFollows(StreamError, code="PLN-0737"):
    """INSERT … SELECT has EMIT CHANGES, but it runs once and does not follow changes."""

    MESSAGE = 'INSERT INTO {kind} "{name}" runs once, and cannot EMIT CHANGES'
    HINT = "Leave EMIT CHANGES out, or write CREATE SINK … INTO KAFKA, which goes on as rows come."


class RowUnwritable(StreamError, code="PLN-0735"):
    """A row of INSERT cannot be written with the schema of the topic."""

    path: str
    reason: str
    written: int = 0
    MESSAGE = 'a row for {kind} "{name}" cannot be written: {path}: {reason}'
    HINT = "Give the field a value that its schema takes. DESCRIBE EXTENDED shows the schema."

    def detail(self) -> str | None:
        if not self.written:
            return None
        rows = "1 row" if self.written == 1 else f"{self.written} rows"
        return f"{rows} of the query before it {'was' if self.written == 1 else 'were'} written, and will be written again if the statement is repeated."


class SchemaGotOtherId(ResolveError, code="PLN-0723"):
    """The registry gave a schema another id when it was registered for the topic. Records would not have the given id."""

    subject: str
    id: int
    found: int
    MESSAGE = 'the schema of id {id} has id {found} in subject "{subject}"'
    HINT = "Give {found} as the id, if that schema is the same in every respect."

"""How types change on their way through a format and back: data for the docs, held to the mappers by tests.

Types are named as they are printed, without arguments (`decimal`, `enum`). Something that is lost beside the type
itself has a name of its own (`nullability of elements`).
"""

from __future__ import annotations

from typing import NamedTuple


class Loss(NamedTuple):
    """`type`, written to a format and read back, is `becomes`."""

    type: str
    becomes: str
    note: str


# fmt: off
# Types that do not come back from a format as they were written.
ROUND_TRIP_LOSSES: dict[str, tuple[Loss, ...]] = {
    "avro": (
        Loss("enum", "text", "If a symbol is not a valid Avro name; otherwise an enum stays an enum."),
        Loss("named type", "its definition", "A record or enum keeps the type's name, in com.headgate.sink."),
        Loss("record without a name", "record", "It gets the name record0, record1, … in com.headgate.sink."),
        Loss("enum without a name", "enum", "It gets the name enum0, enum1, … in com.headgate.sink."),
        Loss("name without namespace", "name in a namespace", "Inside a record that has a namespace, a record or enum that has none takes it."),
        Loss("name of the outermost record", "the name given", "envelope and row, unless a FULLNAME says more."),
        Loss("name that is not valid in Avro", "valid name", "Other characters become _, a leading digit gets _, a clash the smallest free number. Docs stay."),
    ),
    "json schema": (
        Loss("bytes", "bytes", "A fixed length is not kept: the text is base64."),
        Loss("enum", "enum", "The symbol that an unknown one is read as is not kept."),
        Loss("named type", "its definition", "It stands under $defs by its name."),
        Loss("name of a record or enum", "doc", "Only if it could not be a name in a program: it is the title."),
    ),
    "protobuf": (
        Loss("decimal", "text", "Written as a string, digit by digit."),
        Loss("uuid", "text", "Written as a string in its usual form."),
        Loss("timestamp", "text", "Written as a string, ISO 8601 without zone."),
        Loss("bytes(n)", "bytes", "The length is not kept."),
        Loss(
            "enum",
            "text",
            "If a symbol is no identifier, is option or reserved, or differs from another only by case or `_`. "
            "Otherwise it stays an enum.",
        ),
        Loss("default of an enum", "nothing", "A number that the enum does not know is an invalid value."),
        Loss("array<array>", "array<record(items array)>", "A list in a list or a map needs a message between."),
        Loss("array<map>", "array<record(items map)>", "Likewise."),
        Loss("map<text, array>", "map<text, record(items array)>", "Likewise."),
        Loss("map<text, map>", "map<text, record(items map)>", "Likewise."),
        Loss("nullability of elements", "NOT NULL", "A list or map cannot hold a null: a sink refuses such a row. A null of type json is written as JSON's null."),
        Loss("nullability of arrays and maps", "NOT NULL", "An empty list and no list are the same: a sink writes NULL as an empty one."),
        Loss("NOT NULL of record, date, time, timestamptz, json", "NULL", "These are messages, and a message can always be missing."),
        Loss("name of a record or enum", "name in the file", "From the field that holds it."),
        Loss("blanks around a doc", "nothing", "At its ends, at the ends of its lines, and a doc of blanks only."),
    ),
    "spark": (
        Loss("uuid", "text", "Spark has no type for it."),
        Loss("json", "text", "A string that holds the JSON text as it came: a variant would lose digits."),
        Loss("enum", "text", "Spark has no type for it."),
        Loss("bytes(n)", "bytes", "Spark's binary has no length."),
        Loss("name of a type", "nothing", "A struct has no name."),
        Loss("doc of a type", "nothing", "Only fields have comments."),
    ),
    "postgres": (
        Loss("enum", "text", "A new symbol must never need a new type in the database."),
        Loss("bytes(n)", "bytes", "bytea has no length."),
        Loss("map", "json", "jsonb holds it."),
        Loss("record", "json", "Only where it is one column: inside an array or a map, or with NESTED = JSON."),
        Loss("array", "json", "Only an array of arrays, maps or records: jsonb holds it."),
        Loss("not null", "null", "Only an array's elements: PostgreSQL lets any of them be null."),
    ),
    "elasticsearch": (
        Loss("decimal", "text", "A keyword keeps every digit. With the option `scaled`, a number of at most 15 digits, read back with 15."),
        Loss("time", "text", "A keyword; there is no type for a time of day."),
        Loss("timestamp", "timestamptz", "The index takes a time without zone for UTC."),
        Loss("uuid", "text", "A keyword."),
        Loss("enum", "text", "A keyword."),
        Loss("bytes(n)", "bytes", "binary has no length."),
        Loss("array", "its element", "Every field may hold several values."),
        Loss("map", "json", "Only a map of maps, records or json: a field of its own type holds any object."),
        Loss("record", "json", "Only a record without fields: nothing says what may be in it."),
        Loss("not null", "null", "Any field may be missing."),
        Loss("name of a type", "nothing", "An object has no name."),
        Loss("doc of a type", "doc of its field", "Where that field has no doc of its own."),
        Loss("doc of a type", "nothing", "Where the field that holds it has a doc of its own."),
    ),
}

# Types that only the format has, and the type that each is read as.
READ_CONVERSIONS: dict[str, tuple[Loss, ...]] = {
    "avro": (
        Loss("timestamp-nanos", "bigint", "Also local-timestamp-nanos: a timestamp has microseconds."),
        Loss("duration", "bytes", "Its 12 bytes as they are."),
        Loss("fixed", "bytes", "The length is kept, the name is not."),
        Loss("union", "columns", "A field of n types is n nullable columns, numbered from 1; one has the value."),
        Loss("decimal", "bytes", "If its precision or scale is not valid, as the Avro specification asks."),
        Loss("default of a field", "nothing", "Defaults act when a record is read; a type has none."),
        Loss("aliases", "nothing", "They act when a record is read."),
    ),
    "json schema": (
        Loss("several types", "json", "Other than null, and integer with number, which is double."),
        Loss("oneOf, anyOf, if / then / else", "one type", "Objects are one record with the fields of all, those not in every one nullable; texts and enums are joined; anything else is json."),
        Loss("object without properties", "json", "With additionalProperties or one pattern that has a schema: map."),
        Loss("additionalProperties beside properties", "nothing", "A record has the properties that are named."),
        Loss("tuple", "json", "prefixItems, or items as a list."),
        Loss("array without items", "json", ""),
        Loss("null alone", "json", "Always null."),
        Loss("const", "enum", "An enum of one symbol if it is a text, otherwise the type of the value."),
        Loss("other formats, pattern, lengths, bounds", "nothing", "They are checked, not kept in the type; bounds choose between integer, bigint and decimal."),
        Loss("not", "nothing", "It is checked, not kept in the type."),
        Loss("Connect's map as a list of entries", "array", "An array of record(key, value), as it is written."),
        Loss("Connect's decimal without precision", "decimal", "38 digits; a value that has more is invalid."),
    ),
    "protobuf": (
        Loss("uint32, fixed32", "bigint", "So that every value fits."),
        Loss("uint64, fixed64", "decimal(20,0)", "So that every value fits."),
        Loss("map with keys of another type than string", "map<text, T>", "Keys become text, as in Protobuf's JSON."),
        Loss("google.protobuf.Timestamp", "timestamptz", "Nanoseconds are cut to microseconds."),
        Loss("google.type.TimeOfDay", "time", "Nanoseconds are cut to microseconds."),
        Loss("google.protobuf.Struct, Value, ListValue", "json", "Numbers are doubles there, and members are sorted. A sink refuses a number that would lose digits."),
        Loss("google.protobuf wrappers (Int32Value, …)", "nullable scalar", ""),
        Loss("google.protobuf.Duration", "record(seconds bigint, nanos integer)", "As the message has it."),
        Loss("google.protobuf.Any", "record(type_url text, value bytes)", "The message inside stays bytes."),
        Loss("confluent.type.Decimal", "decimal(p,s)", "With precision and scale in field_meta; else a record."),
        Loss("oneof", "a nullable column for each field", "That one only is set is not kept."),
        Loss("extensions", "nothing", "Fields of `extend` are no columns."),
        Loss("JSON name that is no identifier", "name of the column", "So odd column names come back."),
    ),
    "spark": (
        Loss("tinyint, smallint", "integer", ""),
        Loss("char, varchar", "text", "The length is not kept."),
        Loss("variant", "json", ""),
        Loss("time", "time", "Of any precision; a time has microseconds."),
        Loss("void, intervals, geometry, map with keys that are not strings", "refused", "With its path."),
    ),
    "postgres": (
        Loss("smallint", "integer", ""),
        Loss("numeric", "decimal(38,18)", "Without arguments; a value beyond it is an error when it is read."),
        Loss("varchar, char, citext, name", "text", "The length is not kept."),
        Loss("json", "json", "It is written as jsonb."),
        Loss("array of several dimensions", "array", "PostgreSQL does not say how many a column has."),
        Loss("domain, enum", "its type", "Where the database's own types are given, otherwise refused."),
        Loss("numeric of more than 38 digits, any other type", "refused", "With its path."),
    ),
    "elasticsearch": (
        Loss("byte, short", "integer", ""),
        Loss("unsigned_long", "decimal(20,0)", "So that every value fits."),
        Loss("half_float", "real", ""),
        Loss("scaled_float", "decimal(15,s)", "If the factor is a power of ten, otherwise double."),
        Loss("keyword, constant_keyword, wildcard, match_only_text, ip, version", "text", ""),
        Loss("date, date_nanos", "timestamptz", "A date whose formats have no time is date."),
        Loss("nested", "array of record", ""),
        Loss("object without properties", "json", "With a template for its fields: map."),
        Loss("any other type", "refused", "With its path."),
    ),
}
# fmt: on

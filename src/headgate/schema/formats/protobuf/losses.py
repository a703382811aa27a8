"""What does not survive Protobuf, one way or the other."""

from __future__ import annotations

from headgate.schema.formats.loss import Loss

LOSSES: tuple[Loss, ...] = (
    Loss("protobuf", "decimal", "text", "Written as a string, digit by digit."),
    Loss("protobuf", "uuid", "text", "Written as a string in its usual form."),
    Loss("protobuf", "timestamp", "text", "Written as a string, ISO 8601 without zone."),
    Loss("protobuf", "bytes(n)", "bytes", "The length is not kept."),
    Loss(
        "protobuf",
        "enum",
        "text",
        "If a symbol is no identifier, or is option or reserved; else it stays an enum.",
    ),
    Loss(
        "protobuf",
        "default of an enum",
        "nothing",
        "A number that the enum does not know is an invalid value.",
    ),
    Loss(
        "protobuf",
        "array<array>",
        "array<record(items array)>",
        "A list in a list or a map needs a message between.",
    ),
    Loss("protobuf", "array<map>", "array<record(items map)>", "Likewise."),
    Loss("protobuf", "map<text, array>", "map<text, record(items array)>", "Likewise."),
    Loss("protobuf", "map<text, map>", "map<text, record(items map)>", "Likewise."),
    Loss(
        "protobuf",
        "nullability of elements",
        "NOT NULL",
        "A list or map cannot hold a null; a json element can be JSON's null.",
    ),
    Loss("protobuf", "nullability of arrays and maps", "NOT NULL", "An empty list and no list are the same."),
    Loss(
        "protobuf",
        "NOT NULL of record, date, time, timestamptz, json",
        "NULL",
        "These are messages, and a message can always be missing.",
    ),
    Loss("protobuf", "name of a record or enum", "name in the file", "From the field that holds it."),
    Loss(
        "protobuf",
        "blanks around a doc",
        "nothing",
        "At its ends, at the ends of its lines, and a doc of blanks only.",
    ),
)

READING: tuple[Loss, ...] = (
    Loss("protobuf", "uint32, fixed32", "bigint", "So that every value fits."),
    Loss("protobuf", "uint64, fixed64", "decimal(20,0)", "So that every value fits."),
    Loss(
        "protobuf",
        "map with keys of another type than string",
        "map<text, T>",
        "Keys become text, as in Protobuf's JSON.",
    ),
    Loss("protobuf", "google.protobuf.Timestamp", "timestamptz", "Nanoseconds are cut to microseconds."),
    Loss("protobuf", "google.type.TimeOfDay", "time", "Nanoseconds are cut to microseconds."),
    Loss("protobuf", "google.protobuf.Struct, Value, ListValue", "json", "Numbers are doubles there."),
    Loss("protobuf", "google.protobuf wrappers (Int32Value, …)", "nullable scalar", ""),
    Loss(
        "protobuf",
        "google.protobuf.Duration",
        "record(seconds bigint, nanos integer)",
        "As the message has it.",
    ),
    Loss(
        "protobuf",
        "google.protobuf.Any",
        "record(type_url text, value bytes)",
        "The message inside stays bytes.",
    ),
    Loss(
        "protobuf",
        "confluent.type.Decimal",
        "decimal(p,s)",
        "With precision and scale in field_meta; else a record.",
    ),
    Loss("protobuf", "oneof", "a nullable column for each field", "That one only is set is not kept."),
    Loss("protobuf", "extensions", "nothing", "Fields of `extend` are no columns."),
    Loss(
        "protobuf", "JSON name that is no identifier", "name of the column", "So odd column names come back."
    ),
)

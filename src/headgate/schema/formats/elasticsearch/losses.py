"""What does not survive Elasticsearch, one way or the other."""

from __future__ import annotations

from headgate.schema.formats.loss import Loss

_FORMAT = "elasticsearch"

LOSSES: tuple[Loss, ...] = (
    Loss(_FORMAT, "decimal", "text", "A keyword keeps every digit. With the option `scaled`, a number of at most 15 digits, read back with 15."),
    Loss(_FORMAT, "time", "text", "A keyword; there is no type for a time of day."),
    Loss(_FORMAT, "timestamp", "timestamptz", "The index takes a time without zone for UTC."),
    Loss(_FORMAT, "uuid", "text", "A keyword."),
    Loss(_FORMAT, "enum", "text", "A keyword."),
    Loss(_FORMAT, "bytes(n)", "bytes", "binary has no length."),
    Loss(_FORMAT, "array", "its element", "Every field may hold several values."),
    Loss(_FORMAT, "map", "json", "Only a map of maps, records or json: a field of its own type holds any object."),
    Loss(_FORMAT, "record", "json", "Only a record without fields: nothing says what may be in it."),
    Loss(_FORMAT, "not null", "null", "Any field may be missing."),
    Loss(_FORMAT, "name of a type", "nothing", "An object has no name."),
    Loss(_FORMAT, "doc of a type", "doc of its field", "Where that field has no doc of its own."),
    Loss(_FORMAT, "doc of a type", "nothing", "Where the field that holds it has a doc of its own."),
)  # fmt: skip

READING: tuple[Loss, ...] = (
    Loss(_FORMAT, "byte, short", "integer", ""),
    Loss(_FORMAT, "unsigned_long", "decimal(20,0)", "So that every value fits."),
    Loss(_FORMAT, "half_float", "real", ""),
    Loss(_FORMAT, "scaled_float", "decimal(15,s)", "If the factor is a power of ten, otherwise double."),
    Loss(_FORMAT, "keyword, constant_keyword, wildcard, match_only_text, ip, version", "text", ""),
    Loss(_FORMAT, "date, date_nanos", "timestamptz", "A date whose formats have no time is date."),
    Loss(_FORMAT, "nested", "array of record", ""),
    Loss(_FORMAT, "object without properties", "json", "With a template for its fields: map."),
    Loss(_FORMAT, "any other type", "refused", "With its path."),
)

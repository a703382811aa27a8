"""What does not survive JSON Schema, one way or the other."""

from __future__ import annotations

from headgate.schema.formats.loss import Loss

_FORMAT = "json schema"

LOSSES: tuple[Loss, ...] = (
    Loss(_FORMAT, "bytes", "bytes", "A fixed length is not kept: the text is base64."),
    Loss(_FORMAT, "enum", "enum", "The symbol that an unknown one is read as is not kept."),
    Loss(_FORMAT, "named type", "its definition", "It stands under $defs by its name."),
    Loss(
        _FORMAT,
        "name of a record or enum",
        "doc",
        "Only if it could not be a name in a program: it is the title.",
    ),
)

READING: tuple[Loss, ...] = (
    Loss(_FORMAT, "several types", "json", "Other than null, and integer with number, which is double."),
    Loss(_FORMAT, "oneOf, anyOf, if / then / else", "one type", "Objects are one record with the fields of all, those not in every one nullable; texts and enums are joined; anything else is json."),
    Loss(_FORMAT, "object without properties", "json", "With additionalProperties or one pattern that has a schema: map."),
    Loss(_FORMAT, "additionalProperties beside properties", "nothing", "A record has the properties that are named."),
    Loss(_FORMAT, "tuple", "json", "prefixItems, or items as a list."),
    Loss(_FORMAT, "array without items", "json", ""),
    Loss(_FORMAT, "null alone", "json", "Always null."),
    Loss(_FORMAT, "const", "enum", "An enum of one symbol if it is a text, otherwise the type of the value."),
    Loss(_FORMAT, "other formats, pattern, lengths, bounds", "nothing", "They are checked, not kept in the type; bounds choose between integer, bigint and decimal."),
    Loss(_FORMAT, "not", "nothing", "It is checked, not kept in the type."),
    Loss(_FORMAT, "Connect's map as a list of entries", "array", "An array of record(key, value), as it is written."),
    Loss(_FORMAT, "Connect's decimal without precision", "decimal", "38 digits; a value that has more is invalid."),
)  # fmt: skip

"""What does not survive Avro, one way or the other."""

from __future__ import annotations

from headgate.schema.formats.loss import Loss

LOSSES: tuple[Loss, ...] = (
    Loss("avro", "enum", "text", "If a symbol is not a valid Avro name; otherwise an enum stays an enum."),
    Loss(
        "avro",
        "named type",
        "its definition",
        "A record or enum keeps the type's name, in com.headgate.sink.",
    ),
    Loss(
        "avro",
        "record without a name",
        "record",
        "It gets the name record0, record1, … in com.headgate.sink.",
    ),
    Loss("avro", "enum without a name", "enum", "It gets the name enum0, enum1, … in com.headgate.sink."),
    Loss(
        "avro",
        "name without namespace",
        "name in a namespace",
        "Inside a record that has a namespace, a record or enum that has none takes it.",
    ),
    Loss(
        "avro",
        "name of the outermost record",
        "the name given",
        "envelope and row, unless a FULLNAME says more.",
    ),
    Loss(
        "avro",
        "name that is not valid in Avro",
        "valid name",
        "Other characters become _, a leading digit gets _, a clash the smallest free number. Docs stay.",
    ),
)

READING: tuple[Loss, ...] = (
    Loss("avro", "timestamp-nanos", "bigint", "Also local-timestamp-nanos: a timestamp has microseconds."),
    Loss("avro", "duration", "bytes", "Its 12 bytes as they are."),
    Loss("avro", "fixed", "bytes", "The length is kept, the name is not."),
    Loss(
        "avro",
        "union",
        "columns",
        "A field of n types is n nullable columns, numbered from 1; one has the value.",
    ),
    Loss(
        "avro", "decimal", "bytes", "If its precision or scale is not valid, as the Avro specification asks."
    ),
    Loss("avro", "default of a field", "nothing", "Defaults act when a record is read; a type has none."),
    Loss("avro", "aliases", "nothing", "They act when a record is read."),
)

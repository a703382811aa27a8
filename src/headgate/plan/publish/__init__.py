"""The schemas that sinks publish: one for each side of their records, and the next version when the relation changes.

In: the record of a side, the FORMAT clause, and the schema that was published before. Out: a `RecordEncoding`, or the text
of the next version. Imports `headgate.schema`, `headgate.sql` and the planner's definitions and errors. No I/O but protoc's
temporary folder.
"""

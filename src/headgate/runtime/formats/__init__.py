"""How one side of a record (key or value) is read, by format.

In: the plan of a side and the schemas that its records may be written with. Out: a `SideReader`, which gives columns of
Spark for the value of the side and for the error of a record that cannot be read. `readers` picks the reader. Avro, text, CSV
and REGEX are read by expressions on the JVM; JSON, JSON Schema and Protobuf in Python workers, in Arrow batches.
`frame` has the five bytes that name a record's schema. Imports `plan`, `registry` and `schema`.
"""

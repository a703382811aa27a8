"""The neutral type system: what a column is, whatever format it came in and whatever target it goes to.

Enters: foreign schemas (Avro, JSON Schema, Protobuf, Spark, PostgreSQL, Elasticsearch) through `formats`, and the text
of types through `parse`. Leaves: frozen values of `types`, their printed form (`render`), values of these types and
checked casts (`values`), and through `evolve` the changes between two types, each safe or breaking per target.
`written` holds schemas from outside that are still text. Everybody imports `types` as `t`.

No I/O. pyspark is imported only by `formats/spark.py`. Imports `errors` and `text`.
"""

"""The neutral type system: what a column is, whatever format it came in and whatever target it goes to.

In: foreign schemas (Avro, JSON Schema, Protobuf, Spark, PostgreSQL, Elasticsearch) through ``formats``, and type
names in SQL through ``parse``. Out: frozen values of ``types``, their one printed form, and ``evolve``'s list of
changes between two of them, each safe or breaking per reader and target. Pure: no I/O anywhere in this package,
and pyspark only in ``formats/spark.py``. Imports only ``headgate.errors``.
"""

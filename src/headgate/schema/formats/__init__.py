"""One mapper per foreign format: Avro, JSON Schema, Protobuf, Spark, PostgreSQL, Elasticsearch.

In: a neutral type for `to_x`, a foreign schema as the format's own library or text has it for `from_x`. Out: the
other of the two. What cannot be held is refused with its path; what comes back from a round trip as another type is
listed in `tools/type_losses.py`, from which the docs are made, and a test holds the list to what really happens.
Imports `headgate.schema` and the format's library; only `spark` imports pyspark.
"""

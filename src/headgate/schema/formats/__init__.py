"""One mapper per foreign format: Avro, JSON Schema, Protobuf, Spark, PostgreSQL, Elasticsearch; and `regex`, the
patterns of FORMAT REGEX.

Enters: a neutral type (`to_x`), or a foreign schema as text or as the object of its library (`from_x`). Leaves: the
other of the two. A type that cannot be mapped is refused with its path. `tools/type_losses.py` lists the types that
come back from a round trip as other ones; the docs are made from it, and tests hold it to what the mappers do.

Imports `headgate.schema` and the library of the format. Only `spark` imports pyspark.
"""

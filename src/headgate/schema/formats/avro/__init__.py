"""The mapper for Avro: `from_avro` reads a schema, `to_avro` generates one.

In: an Avro schema as text or as parsed JSON with the schemas it refers to; or a neutral type with the names that its
records shall have. Out: neutral types; or a schema as JSON with the names that had to be changed. Imports
nothing of Avro's own: a schema is JSON, and the libraries differ in what they let through.
"""

from headgate.schema.formats.avro.read import from_avro
from headgate.schema.formats.avro.write import AvroSchema, to_avro

__all__ = ["AvroSchema", "from_avro", "to_avro"]

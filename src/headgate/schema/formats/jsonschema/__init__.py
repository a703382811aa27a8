"""The mapper for JSON Schema, drafts 4 to 2020-12: `from_json_schema` reads a schema, `to_json_schema` makes one.

Enters: a schema as text or parsed, with the documents that it refers to; or a neutral type. Leaves: a neutral type
that every valid document fits; or a schema of draft 2020-12. `keywords` checks and intersects the keywords of
schemas and gives the types of scalars, `references` finds the target of a `$ref`.
"""

from headgate.schema.formats.jsonschema.read import from_json_schema
from headgate.schema.formats.jsonschema.write import to_json_schema

__all__ = ["from_json_schema", "to_json_schema"]

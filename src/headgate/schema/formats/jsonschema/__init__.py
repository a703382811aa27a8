"""The mapper for JSON Schema, drafts 4 to 2020-12: `from_json_schema` reads a schema, `to_json_schema` makes one.

In: a schema as text or parsed, with the documents it refers to; or a neutral type. Out: a neutral type that every
valid document fits; or a schema of draft 2020-12. `keywords` is one schema's keywords checked and intersected,
`references` finds what a `$ref` means, `join` is the type of several alternatives.
"""

from headgate.schema.formats.jsonschema.read import from_json_schema
from headgate.schema.formats.jsonschema.write import to_json_schema

__all__ = ["from_json_schema", "to_json_schema"]

"""The differences between two JSON Schemas, and which of them let the new one accept everything that the old one
did.

Enters: parsed JSON Schemas of drafts 4 to 2020-12. Leaves: differences, each with a kind and a path, and the
incompatible ones among them. The kinds, and which of them are compatible, are those of Confluent's registry, because
clients rely on its answers. Where that registry is known to be too lenient or too strict, the module says so.

`load` turns a schema into `nodes`: one node per constraint on one JSON type, several of them joined by an `allOf` as
if it had been written. `compare` compares nodes, with `members` for objects, arrays and plain values and `combined`
for allOf, anyOf, oneOf and not. No I/O.
"""

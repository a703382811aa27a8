"""Reading the text of a registered schema, one family of modules per schema type.

In: texts, and for Avro and JSON Schema the texts that they refer to. Out: JSON values that have been checked
(``json_text``), Avro types as linked nodes (``avro_nodes``, read by ``avro``, checked with ``avro_defaults``, printed by
``avro_print``), JSON Schema documents whose every ``$ref`` leads somewhere (``json_documents``, ``json_schema``).
All of them report ``MalformedSchema`` with every fault and its path. Pure: no I/O.
Imports ``headgate.errors`` and ``headgate.registry.errors``; ``headgate.registry.schemas`` is built on top.
"""

"""What changed between two JSON Schemas, and which changes let the new one accept what the old one did.

In: parsed JSON Schemas of drafts 4 to 2020-12. Out: differences, each of a kind with a path (``compare``), and those
among them that break readers. The kinds and the verdict on each are those of Confluent's registry, because clients
rely on its answers; where it is known to be too kind or too strict, the module that asks the question says so.

A schema is first turned into nodes (``load`` makes ``nodes``): one node per constraint on one JSON type, several of
them joined by an ``allOf`` as if it had been written. Then nodes are compared: ``scalars``, ``arrays``, ``objects``,
``combined``. Pure: no I/O.
"""

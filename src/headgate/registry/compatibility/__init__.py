"""May one version of a schema follow another, and if not, where not.

In: parsed schemas. Out: incompatibilities, each with the path of the place, a kind in the words that Confluent's
registry uses, and a sentence. One module per schema type (``avro``, ``json_schema``, ``protobuf``) answers "can
this reader read what that writer wrote"; ``levels`` turns a compatibility level into such questions.
Pure: no I/O. Imports ``headgate.errors``, ``headgate.schema`` and ``headgate.registry.schemas``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason why a reader cannot read what a writer wrote.

    ``path`` is a place in the reader: ``$.fields[2].type`` in Avro, ``/properties/a/type`` in JSON Schema, a full
    name in Protobuf. ``kind`` is a stable upper-case word that a program can compare.
    """

    path: str
    kind: str
    message: str

"""Whether one version of a schema may follow another, and if not, why.

Enters: parsed schemas. Leaves: incompatibilities, each with a path, a kind in the words of Confluent's registry, and
a sentence. `avro`, `json_schema` and `protobuf` answer whether a reader can read what a writer wrote; `levels` turns
a compatibility level into such questions.

No I/O. Imports `errors`, `schema` and `registry.schemas`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason why a reader cannot read what a writer wrote.

    `path` is in the reader: `$.fields[2].type` in Avro, `/properties/a/type` in JSON Schema, a full name in
    Protobuf. `kind` is a stable upper-case word that a program can compare.
    """

    path: str
    kind: str
    message: str

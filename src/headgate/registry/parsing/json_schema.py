"""Is this JSON a JSON Schema: does it conform to its meta-schema, and does every ``$ref`` lead somewhere?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import jsonschema_rs

from headgate.registry.errors import Fault, MalformedSchema
from headgate.registry.parsing.json_documents import (
    META_SCHEMAS,
    REFERENCES,
    Documents,
    draft_of,
    escape,
    subschemas,
)
from headgate.schema.formats.documents import Json

_URLS = {draft: url for url, draft in META_SCHEMAS.items()}


def check_json_schema(document: Json, others: Sequence[tuple[str, Json]]) -> None:
    """Raise :class:`MalformedSchema` with every fault. ``others``: name and JSON of the schemas referred to."""
    if not isinstance(document, dict | bool):
        raise MalformedSchema("JSON", (Fault("/", "a JSON Schema is an object, true or false"),))
    faults = [*_meta_faults(document)]
    if not faults:
        faults.extend(_loose_references(Documents(document, others)))
    if faults:
        raise MalformedSchema("JSON", tuple(faults))


def _meta_faults(document: dict[str, Json] | bool) -> Iterator[Fault]:
    if isinstance(document, dict):
        # An unknown "$schema" must not make the library look for it on the network.
        document = {**document, "$schema": _URLS[draft_of(document)]}
    try:
        jsonschema_rs.meta.validate(document)
    except jsonschema_rs.ValidationError as wrong:
        path = "".join(f"/{escape(str(step))}" for step in wrong.instance_path)
        yield Fault(path or "/", wrong.message)
    except jsonschema_rs.ReferencingError:
        yield Fault("/", 'a "$schema" inside the schema names no known draft')
    if not isinstance(document, bool):
        yield from _bad_patterns(document)


def _bad_patterns(document: dict[str, Json]) -> Iterator[Fault]:
    for path, schema in _every(document, ""):
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and not is_pattern(pattern):
            yield Fault(f"{path}/pattern", f'"{pattern}" is no regular expression')
        named = schema.get("patternProperties")
        for name in named if isinstance(named, dict) else ():
            if not is_pattern(name):
                yield Fault(f"{path}/patternProperties/{escape(name)}", f'"{name}" is no regular expression')


def is_pattern(pattern: str) -> bool:
    try:
        jsonschema_rs.Draft7Validator({"pattern": pattern})
    except (ValueError, jsonschema_rs.ReferencingError):
        return False
    return True


def _loose_references(documents: Documents) -> Iterator[Fault]:
    for path, schema in _every(documents.root, ""):
        for keyword in REFERENCES:
            reference = schema.get(keyword)
            if isinstance(reference, str) and not documents.follow(schema, reference)[1]:
                yield Fault(
                    f"{path}/{keyword}",
                    f'"{reference}" leads nowhere; another document must be named in the references of the schema',
                )


def _every(schema: Json, path: str) -> Iterator[tuple[str, dict[str, Json]]]:
    if isinstance(schema, dict):
        yield path, schema
        for step, inner in subschemas(schema):
            yield from _every(inner, path + step)

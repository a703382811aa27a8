"""The validator of a writer's schema. It finds what the schema refers to among its references, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jsonschema_rs

from headgate.plan.sides import WrittenSchema
from headgate.schema.paths import ROOT, field_path, value_path
from headgate.schema.types import Array, Map, Record, Type

_BASE = "json-schema:///"  # what the library takes for the address of a schema that has none
_ONE = "headgate-one-of-many"
_OWN_NAMES = {"$id", "id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"}

# Drafts before 2019-09 demand that formats hold; of these the type of the column is the judge, which has no zone for
# a time.
_FORMATS: Mapping[str, Callable[[str], bool]] = dict.fromkeys(
    ("date", "time", "date-time", "uuid"), lambda _: True
)


def validator(schema: WrittenSchema) -> jsonschema_rs.Validator:
    """Raises ValueError, jsonschema_rs.ValidationError or jsonschema_rs.ReferencingError if there can be none."""
    documents = {name: json.loads(text) for name, text in schema.references}
    named = {str(d["$id"]): d for d in documents.values() if isinstance(d, dict) and "$id" in d}

    def retrieve(uri: str) -> Any:
        address = uri.partition("#")[0]
        for name, document in (*documents.items(), *named.items()):
            if address == name or address.endswith(f"/{name}"):
                return document
        raise ValueError("a reference leads nowhere")

    return jsonschema_rs.validator_for(
        json.loads(schema.text), formats=dict(_FORMATS), retriever=retrieve, base_uri=_BASE
    )


def validator_of_many(schema: WrittenSchema) -> jsonschema_rs.Validator | None:
    """For a list of documents, in a third of the time that they take one by one. None for a schema with a name of its own,
    which others within it may go by, and for one that cannot be used."""
    document = json.loads(schema.text)
    if not isinstance(document, dict) or _OWN_NAMES & _keys(document):
        return None
    one = {"$ref": f"{_BASE}{_ONE}"}
    version = {"$schema": document["$schema"]} if "$schema" in document else {}
    many = {**version, "type": "array", "items": one}
    named = replace(schema, text=json.dumps(many), references=(*schema.references, (_ONE, schema.text)))
    try:
        return validator(named)
    except (ValueError, jsonschema_rs.ReferencingError):
        return None


def _keys(node: object) -> set[str]:
    """Those that say something themselves: what stands under the others is a schema, or the schemas of properties."""
    match node:
        case dict():
            own = {key for key, value in node.items() if not isinstance(value, dict)}
            return own.union(*(_keys(value) for value in node.values()))
        case list():
            return {key for value in node for key in _keys(value)}
        case _:
            return set()


def instance_path(steps: Sequence[str | int], type_: Type) -> str:
    """Where something is, in the words of the type: the keys of a map are data, and are left out."""
    path = ROOT
    for step in steps:
        match type_:
            case Record() if (field := type_.field(str(step))) is not None:
                path, type_ = field_path(path, field.name), field.type
            case Array():
                path, type_ = f"{path}[{step}]", type_.element
            case Map():
                path, type_ = value_path(path), type_.value
            case _:
                break
    return path

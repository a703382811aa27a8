"""From stored or posted text to parsed schemas, and what makes two of them the same."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

from headgate.registry.errors import MalformedSchema, ReferenceCycle, UnknownReference
from headgate.registry.schemas import ParsedSchema, Reference, Schema, parse
from headgate.registry.server.errors import InvalidSchema
from headgate.registry.server.store import LATEST, Fingerprints, StoredVersion, Tables, Visibility
from headgate.schema.written import SchemaFormat


@dataclass(frozen=True, slots=True)
class Reading:
    """A posted schema: parsed, the form in which it is kept, and its fingerprints."""

    parsed: ParsedSchema
    kept: Schema
    prints: Fingerprints


def read(rows: Tables, posted: Schema, *, normalize: bool, show: Visibility) -> Reading:
    """Raises InvalidSchema. ``show`` says whether a reference may point to a deleted version."""
    schema = _with_numbered_references(rows, posted, show)
    normal = _parse(rows, schema, show, normalize=True)
    if normalize:
        schema = replace(schema, text=normal.canonical, references=_sorted(schema.references))
    parsed = _parse(rows, schema, show)
    kept = replace(schema, text=parsed.canonical) if _is_descriptor(schema) else schema
    exact = fingerprint(schema.type, parsed.canonical, schema.references)
    normalized = fingerprint(schema.type, normal.canonical, _sorted(schema.references))
    return Reading(parsed, kept, Fingerprints(exact, normalized))


def fingerprint(schema_type: SchemaFormat, canonical: str, references: tuple[Reference, ...]) -> str:
    named = [[reference.name, reference.subject, reference.version] for reference in references]
    return hashlib.sha256(json.dumps([schema_type, canonical, named]).encode()).hexdigest()


class ParsedVersions:
    """Parsed forms of stored schemas by id, the most recently used ones kept: an id never changes its text."""

    def __init__(self, capacity: int = 1000) -> None:
        self._capacity = capacity
        self._by_id: OrderedDict[int, ParsedSchema] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, rows: Tables, version: StoredVersion) -> ParsedSchema:
        with self._lock:
            if (known := self._by_id.get(version.schema_id)) is not None:
                self._by_id.move_to_end(version.schema_id)
                return known
        parsed = _parse(rows, version.schema, Visibility.ALL)
        with self._lock:
            self._by_id[version.schema_id] = parsed
            if len(self._by_id) > self._capacity:
                self._by_id.popitem(last=False)
        return parsed


def parse_stored(rows: Tables, schema: Schema) -> ParsedSchema:
    """A schema that the registry keeps; what it refers to may be deleted by now."""
    return _parse(rows, schema, Visibility.ALL)


def _parse(rows: Tables, schema: Schema, show: Visibility, *, normalize: bool = False) -> ParsedSchema:
    def resolve(reference: Reference) -> Schema:
        found = rows.version(reference.subject, reference.version, show)
        if found is None:
            raise UnknownReference(reference.name, reference.subject, reference.version)
        return found.schema

    try:
        return parse(schema, resolve, normalize=normalize)
    except MalformedSchema as failure:
        raise InvalidSchema("; ".join(filter(None, (failure.message(), failure.detail())))) from failure
    except (UnknownReference, ReferenceCycle) as failure:
        raise InvalidSchema(failure.message()) from failure
    except RecursionError as failure:
        raise InvalidSchema("the schema is nested too deeply") from failure


def _with_numbered_references(rows: Tables, schema: Schema, show: Visibility) -> Schema:
    """A reference to the latest version means the version that is the latest now."""
    return replace(schema, references=tuple(_numbered(rows, r, show) for r in schema.references))


def _numbered(rows: Tables, reference: Reference, show: Visibility) -> Reference:
    if reference.version != LATEST:
        return reference
    found = rows.latest(reference.subject, show)
    if found is None:
        raise InvalidSchema(UnknownReference(reference.name, reference.subject, LATEST).message())
    return replace(reference, version=found.version)


def _sorted(references: tuple[Reference, ...]) -> tuple[Reference, ...]:
    return tuple(sorted(references, key=lambda r: (r.name, r.subject, r.version)))


def _is_descriptor(schema: Schema) -> bool:
    """Confluent's Protobuf serialisers send a file descriptor in base64; people want to read the schema as text."""
    return schema.type is SchemaFormat.PROTOBUF and not any(sign in schema.text for sign in ";{}")

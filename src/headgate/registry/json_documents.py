"""JSON Schemas as documents: strict JSON, drafts, `$id`, anchors, and the target of each `$ref`.

Documents are the schema itself and those it refers to, each under the name by which it is used. Nothing is fetched:
a `$ref` leads into one of them, to a published meta-schema, or nowhere. `check_json_schema` reports every fault of a
schema at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NoReturn
from urllib.parse import unquote, urljoin

import jsonschema_rs

from headgate.registry.errors import Fault, MalformedSchema
from headgate.schema.written import Json

# Real schemas nest a few dozen types, and a nullable record inside a record takes four levels of JSON. The bound keeps every
# recursive walk away from Python's own limit of 1000.
MOST_LEVELS = 300


def read_json(text: str, schema_type: str) -> Json:
    """The JSON value of the text. Raises MalformedSchema, with line and column if the text is no JSON."""
    try:
        value: Json = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as wrong:
        reason = f"not valid JSON: {wrong.msg[:1].lower()}{wrong.msg[1:]}"
        raise MalformedSchema(schema_type, (Fault("", reason),), wrong.lineno, wrong.colno) from None
    except (ValueError, RecursionError) as wrong:
        reason = "nested too deeply" if isinstance(wrong, RecursionError) else f"not valid JSON: {wrong}"
        raise MalformedSchema(schema_type, (Fault("", reason),)) from None
    if _levels(value) > MOST_LEVELS:
        raise MalformedSchema(schema_type, (Fault("", f"nested more than {MOST_LEVELS} levels deep"),))
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _levels(value: Json) -> int:
    """How deep arrays and objects nest. It does not recurse, because the answer may be "too deep"."""
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        node, level = waiting.pop()
        deepest = max(deepest, level)
        if isinstance(node, dict):
            waiting.extend((child, level + 1) for child in node.values())
        elif isinstance(node, list):
            waiting.extend((child, level + 1) for child in node)
    return deepest


class Draft(IntEnum):
    """In order of age, so that drafts can be compared: `draft >= Draft.V7`."""

    V4 = 4
    V6 = 6
    V7 = 7
    V2019_09 = 2019
    V2020_12 = 2020


META_SCHEMAS = {
    "http://json-schema.org/draft-04/schema": Draft.V4,
    "http://json-schema.org/draft-06/schema": Draft.V6,
    "http://json-schema.org/draft-07/schema": Draft.V7,
    "https://json-schema.org/draft/2019-09/schema": Draft.V2019_09,
    "https://json-schema.org/draft/2020-12/schema": Draft.V2020_12,
}

# The keywords whose values hold schemas: by name, in a list, or the schema itself. `items` is either of the last two.
MAPS_OF_SCHEMAS = ("properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies")
LISTS_OF_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
SCHEMAS = (
    "additionalProperties", "additionalItems", "items", "contains", "propertyNames", "not", "if", "then", "else",
    "unevaluatedItems", "unevaluatedProperties", "contentSchema",
)  # fmt: skip
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def draft_of(document: Json, otherwise: Draft = Draft.V7) -> Draft:
    """The draft that `$schema` names. A schema that names no known draft is read as draft 7."""
    named = document.get("$schema") if isinstance(document, dict) else None
    return META_SCHEMAS.get(_plain(named), otherwise) if isinstance(named, str) else otherwise


def subschemas(schema: Json) -> Iterator[tuple[str, Json]]:
    """The schemas directly inside a schema, each with its JSON pointer."""
    if not isinstance(schema, dict):
        return
    for keyword in SCHEMAS:
        if isinstance(schema.get(keyword), dict | bool):
            yield f"/{keyword}", schema[keyword]
    for keyword in LISTS_OF_SCHEMAS:
        members = schema.get(keyword)
        if isinstance(members, list):
            yield from ((f"/{keyword}/{index}", member) for index, member in enumerate(members))
    for keyword in MAPS_OF_SCHEMAS:
        named = schema.get(keyword)
        if isinstance(named, dict):
            found = ((f"/{keyword}/{escape(name)}", member) for name, member in named.items())
            yield from (pair for pair in found if isinstance(pair[1], dict | bool))


def escape(name: str) -> str:
    """A key as a step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


class Documents:
    """Looks up references. It knows schemas by identity, so the JSON values must not be copied or changed."""

    def __init__(self, root: Json, others: Iterable[tuple[str, Json]] = ()) -> None:
        self.root = root
        self._bases: dict[int, str] = {}
        self._drafts: dict[int, Draft] = {}
        self._resources: dict[str, Json] = {}
        self._anchors: dict[str, Json] = {}
        self._kept: list[Json] = []
        base = _identity(root) or ""
        for name, document in others:
            self._add(document, urljoin(base, name), (name, name.removeprefix("./")))
        self._add(root, base, ("",))

    def follow(self, schema: dict[str, Json], reference: str) -> tuple[Json, bool]:
        """The schema that a `$ref` in `schema` means, and whether it was found.

        A published meta-schema counts as found and is returned as `true`, because every schema that is not refused
        conforms to it.
        """
        written, _, fragment = reference.partition("#")
        base = self._bases.get(id(schema), "")
        uri = base if not written else urljoin(base, written)
        for candidate in (uri, written, written.removeprefix("./")):
            if candidate in self._resources:
                return self._inside(candidate, unquote(fragment))
        return True, _plain(uri) in META_SCHEMAS

    def draft(self, schema: Json) -> Draft:
        """The draft by which to read the schema: that of its document."""
        return self._drafts.get(id(schema), Draft.V7)

    def _inside(self, uri: str, fragment: str) -> tuple[Json, bool]:
        """The schema at a fragment: a JSON pointer, or the name of an anchor."""
        document = self._resources[uri]
        if not fragment:
            return document, True
        if not fragment.startswith("/"):
            anchored = f"{uri}#{fragment}"
            return self._anchors.get(anchored, True), anchored in self._anchors
        for pointer in (fragment, _other_bucket(fragment)):
            found, target, base = self._walk(document, pointer, uri)
            if found:
                self._index(target, base, self._drafts.get(id(document), Draft.V7))
                return target, True
        return True, False

    def _walk(self, document: Json, pointer: str, base: str) -> tuple[bool, Json, str]:
        """Follow a JSON pointer. Returns whether it leads to a schema, the schema, and the base URI there."""
        node = document
        for step in pointer.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and key in node:
                node = node[key]
            elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
                node = node[int(key)]
            else:
                return False, None, base
            base = self._bases.get(id(node), base) if isinstance(node, dict) else base
        return isinstance(node, dict | bool), node, base

    def _add(self, document: Json, base: str, names: Iterable[str]) -> None:
        for name in (base, *names):
            self._resources.setdefault(_plain(name), document)
        self._index(document, base, draft_of(document))

    def _index(self, schema: Json, base: str, draft: Draft) -> None:
        """Record base URI and draft of a schema and of all schemas inside. Booleans need neither."""
        if not isinstance(schema, dict) or id(schema) in self._bases:
            return
        self._kept.append(schema)
        if identity := _identity(schema):
            base = base + identity if identity.startswith("#") else urljoin(base, identity)
            base, _, name = base.partition("#")
            if name:
                self._anchors[f"{base}#{name}"] = schema
            else:
                self._resources.setdefault(base, schema)
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(anchor := schema.get(keyword), str):
                self._anchors[f"{base}#{anchor}"] = schema
        self._bases[id(schema)], self._drafts[id(schema)] = base, draft_of(schema, draft)
        for _, inner in subschemas(schema):
            self._index(inner, base, self._drafts[id(schema)])


def _identity(schema: Json) -> str | None:
    """`$id`, or `id` in draft 4. A property may be called `id`, too; then its value is not a text."""
    if not isinstance(schema, dict):
        return None
    written = schema.get("$id", schema.get("id"))
    return written if isinstance(written, str) else None


def _plain(uri: str) -> str:
    return uri.removesuffix("#")


def _other_bucket(pointer: str) -> str:
    """The pointer with `/definitions/` instead of `/$defs/`. Confluent's registry looks in both, in every draft."""
    return f"/definitions{pointer[len('/$defs') :]}" if pointer.startswith("/$defs/") else pointer


_URLS = {draft: url for url, draft in META_SCHEMAS.items()}


def check_json_schema(document: Json, others: Sequence[tuple[str, Json]]) -> None:
    """Raise MalformedSchema with every fault. `others` are name and JSON of the schemas referred to."""
    if not isinstance(document, dict | bool):
        raise MalformedSchema("JSON", (Fault("/", "a JSON Schema is an object, true or false"),))
    faults = [*_meta_faults(document)]
    if not faults:
        faults.extend(_loose_references(Documents(document, others)))
    if faults:
        raise MalformedSchema("JSON", tuple(faults))


def _meta_faults(document: dict[str, Json] | bool) -> Iterator[Fault]:
    """What the meta-schema of the draft refuses, and patterns that no validator can use."""
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
    """The meta-schemas do not check regular expressions, so a bad one would only fail with the first record."""
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

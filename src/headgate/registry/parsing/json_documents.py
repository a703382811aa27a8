"""JSON Schema documents as one web: drafts, ``$id``, anchors, and where each ``$ref`` leads.

Documents are the schema itself and those it refers to, each under the name by which it is referred to. Nothing is
ever fetched: a ``$ref`` leads into one of them, to a published meta-schema, or nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from urllib.parse import unquote, urljoin

from headgate.schema.formats.documents import Json


class Draft(IntEnum):
    """In order of age, so that ``draft >= Draft.V7`` reads as it should."""

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

MAPS_OF_SCHEMAS = (
    "properties",
    "patternProperties",
    "definitions",
    "$defs",
    "dependentSchemas",
    "dependencies",
)
LISTS_OF_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
SCHEMAS = (
    *(
        "additionalProperties",
        "additionalItems",
        "items",
        "contains",
        "propertyNames",
        "not",
        "if",
        "then",
        "else",
    ),
    *("unevaluatedItems", "unevaluatedProperties", "contentSchema"),
)
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def draft_of(document: Json, otherwise: Draft = Draft.V7) -> Draft:
    """The draft that ``$schema`` names. One that names none, or none that is known, is read as draft 7."""
    named = document.get("$schema") if isinstance(document, dict) else None
    return META_SCHEMAS.get(_plain(named), otherwise) if isinstance(named, str) else otherwise


def subschemas(schema: Json) -> Iterator[tuple[str, Json]]:
    """The schemas directly inside a schema, each with its pointer from there."""
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
    """Looks up references. Schemas are told apart by identity, so the JSON values must not be copied or changed."""

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
        """What a ``$ref`` in ``schema`` means, and whether it means anything at all.

        A published meta-schema counts as found and means ``true``: any schema conforms to it or was refused.
        """
        written, _, fragment = reference.partition("#")
        base = self._bases.get(id(schema), "")
        uri = base if not written else urljoin(base, written)
        for candidate in (uri, written, written.removeprefix("./")):
            if candidate in self._resources:
                return self._inside(candidate, unquote(fragment))
        return True, _plain(uri) in META_SCHEMAS

    def draft(self, schema: Json) -> Draft:
        """The draft by which to read ``schema``: that of the document it is in."""
        return self._drafts.get(id(schema), Draft.V7)

    def _inside(self, uri: str, fragment: str) -> tuple[Json, bool]:
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
        """Note the base URI and draft of a schema and of all inside it. Booleans need neither."""
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
    """``$id``, or ``id`` as draft 4 calls it. A property may be called ``id`` too; then its value is no text."""
    if not isinstance(schema, dict):
        return None
    written = schema.get("$id", schema.get("id"))
    return written if isinstance(written, str) else None


def _plain(uri: str) -> str:
    return uri.removesuffix("#")


def _other_bucket(pointer: str) -> str:
    """Confluent's registry finds ``#/$defs/x`` in ``definitions`` too, whatever the draft."""
    return f"/definitions{pointer[len('/$defs') :]}" if pointer.startswith("/$defs/") else pointer
